# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.drain import drain_text, read_drain


def cache(dirty, pace):
    return {"name": "data", "type": "lvm_cache", "dirty": dirty, "bytes_per_second": pace, "seconds_until_clean": None}


@pytest.mark.parametrize(
    ("found", "outcome", "dirty", "pace", "text"),
    [
        ({"drain": []}, "drained", 0, 0, ""),
        ({"drain": [cache(0, 0.0)]}, "drained", 0, 0, ""),
        # A part that stays dirty, and another one that is written to by others.
        ({"drain": [cache(4096, 0.0), cache(8192, -100.0)]}, "drained", 12288, 0, ""),
        ({"drain": [cache(0, None)]}, "drained", 0, 0, ""),
        (
            {"drain": [cache(3 << 20, 1 << 20), cache(0, 0.0)]},
            "writing_back",
            3 << 20,
            1 << 20,
            "its caches still wrote back 1 MiB/s after 9 s, 3 MiB were left",
        ),
        ({"drain": [cache(None, None), cache(0, 2048.0)]}, "writing_back", None, 2048, "its caches still wrote back 2 KiB/s after 9 s"),
        ({"drain": [cache(None, None)]}, "not_read", None, 0, "whether its caches still wrote back could not be read"),
        ({"msg": "The tool is missing."}, "not_read", None, None, "whether its caches still wrote back could not be read"),
    ],
)
def test_what_is_kept_of_a_drain(found, outcome, dirty, pace, text):
    kept = read_drain(found, 9.04)
    assert kept == {"outcome": outcome, "seconds": 9.0, "dirty": dirty, "bytes_per_second": pace}
    assert drain_text(kept) == text


def test_a_step_without_a_drain_has_no_text():
    assert drain_text({}) == ""
