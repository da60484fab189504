# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is refused of the lists of a host, in words that name the variable of the user."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._host import request

EMPTY = {name: option.get("default") for name, option in request.argument_spec().items()}


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        (
            {"drives": [{"device": "/dev/sda", "write_cache": "off"}]},
            "drives (variable drive_write_cache_drives): value of write_cache must be one of: enabled, disabled, got: off.",
        ),
        (
            {"queues": [{"device": "/dev/sda", "schedular": "none"}]},
            "queues (variable block_queue_devices): there is no key schedular: did you mean scheduler?",
        ),
        (
            {"caches": [{"type": "lvm_cache", "name": "a", "origin": "vg/a", "mode": "fast"}]},
            "caches of type lvm_cache (variable block_cache_caches): value of mode must be one of:",
        ),
    ],
)
def test_a_wrong_entry_names_the_variable(lists, message):
    with pytest.raises(BadInput) as failure:
        request.read_request({**EMPTY, **lists})
    assert failure.value.message.startswith(message)
    assert "found in" not in failure.value.message


@pytest.mark.parametrize("value", ["yes", ["/dev/sda"], {"device": "/dev/sda"}, 5])
def test_a_list_that_is_none_of_dictionaries_is_named(value):
    assert request.wrong_list({"drives": value}) == "drives (variable drive_write_cache_drives) must be a list of dictionaries."


def test_lists_of_dictionaries_and_what_is_not_given_are_right():
    assert request.wrong_list({"drives": [{"device": "/dev/sda"}], "caches": [], "queues": None}) == ""
