# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.kernel_view import cache_type_for, parse_cache_type, read_kernel
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import DriveCache, kernel_agrees


@pytest.mark.parametrize(
    "word, state",
    [("write back\n", "enabled"), ("write through\n", "disabled"), ("none", "disabled"), ("write back, no read (daft)", "enabled")],
)
def test_kernel_cache_types(word, state):
    assert parse_cache_type(word) == state


def test_unknown_cache_type_is_rejected():
    with pytest.raises(NotUnderstood, match="sideways"):
        parse_cache_type("sideways")


@pytest.mark.parametrize("current", ["write through", "none", "write back", "write back, no read (daft)", None])
@pytest.mark.parametrize("value", ["enabled", "disabled"])
def test_written_cache_type_keeps_read_cache_and_is_never_temporary(value, current):
    text = cache_type_for(value, current)
    assert not text.startswith("temporary")
    assert parse_cache_type(text) == value
    assert (text in ("none", "write back, no read (daft)")) == (current in ("none", "write back, no read (daft)"))


@pytest.mark.parametrize(
    "provider, says, kernel, agrees",
    [
        ("ata", "enabled", "write back", True),
        ("ata", "enabled", "write through", False),
        ("ata", "disabled", "write back", False),
        ("scsi", "enabled", "write back, write through", False),
        ("nvme", "disabled", "write back", True),  # the driver looks only at the presence of a cache
        ("nvme", "enabled", "write through", False),
        ("nvme", "absent", "write through", True),
        ("virtio", "disabled", None, True),
    ],
)
def test_kernel_and_drive_agreement(provider, says, kernel, agrees):
    assert kernel_agrees(provider, says, kernel) is agrees
    assert DriveCache("x", provider, says, kernel).kernel_agrees is agrees


def test_unknown_kernel_cache_type_is_reported_unchanged(tmp_path):
    place = tmp_path / "sys/class/block/sda/queue"
    place.mkdir(parents=True)
    (place / "write_cache").write_text("sideways\n")
    assert read_kernel("sda", tmp_path) == "sideways"
