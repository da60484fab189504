# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import itertools
import struct

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import layer as layer_module
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import metadata
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import operations as operations_module
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.layer import LvmCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.metadata import Place, cache_blocks, place_of, unused
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.operations import ActivateUnused
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice
from ansible_collections.cachefleet.storage.tests.unit.support.fake_lvm import EXTENT, HDD, MIB, SSD, SSD1, SSD_PATH, FakeLvm, NamedDevices, make_dev, present

ITEM = {"name": "images", "origin": "vg/data", "cache_devices": [SSD_PATH]}
VOLUME = BlockDevice(name="dm-0", path="/dev/dm-0", number="253:0", kind="lvm", size=400 * MIB, dm_name="vg-data", links=("/dev/vg/data",))
#: Where every leaf of the fake begins: extent 2 behind the label of the physical volume.
OFFSET = MIB + 2 * EXTENT


def superblock(blocks, magic=metadata.MAGIC):
    written = bytearray(4096)
    struct.pack_into("<Q", written, 32, magic)
    struct.pack_into("<I", written, 240, blocks)
    return bytes(written)


def inactive(**fields):
    lvm = FakeLvm(fast=fields.pop("fast", "cachepool"), **fields)
    lvm.origin["attr"] = "-wi-------"
    return lvm


@pytest.fixture
def host(monkeypatch, tmp_path):
    """A function that writes a superblock where the metadata of the cache begin."""
    make_dev(tmp_path)
    for module in (layer_module, operations_module):
        monkeypatch.setattr(module, "read_devices", lambda runner, root: NamedDevices([HDD, SSD, SSD1, VOLUME]))

    def write(block, offset=OFFSET):
        with (tmp_path / "dev/sdb").open("r+b") as node:
            node.seek(offset)
            node.write(block)

    return write


@pytest.fixture
def run(tmp_path):
    def converged(lvm, *, check_mode=False, **fields):
        ticks = itertools.count(0, 30)
        layer = LvmCacheLayer(lvm, read_items([{**ITEM, **fields}]), tmp_path, clock=lambda: next(ticks), sleep=lambda seconds: None)
        return converge(layer, check_mode=check_mode)

    return converged


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (superblock(0), 0),
        (superblock(7984), 7984),
        (superblock(0, magic=metadata.MAGIC + 1), None),
        (bytes(4096), None),
        (superblock(0)[:243], None),
        (b"", None),
    ],
)
def test_number_of_blocks_is_read_of_superblock_only(block, expected):
    assert cache_blocks(block) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"fast": "cachepool"}, Place("/dev/sdb", OFFSET)),
        ({"fast": "cachevol"}, Place("/dev/sdb", OFFSET)),
        ({"fast": "cachepool", "mirror": True}, Place("/dev/sdb", OFFSET)),
        ({"fast": "writecache"}, None),
    ],
)
def test_place_of_metadata(fields, expected):
    state = present(inactive(**fields))
    assert place_of(state, state.volume("vg", "data")) == expected


def test_place_is_not_known_without_start_of_data_or_device():
    state = present(inactive())
    older = dataclasses.replace(state, physical=tuple(dataclasses.replace(one, data_start=None) for one in state.physical))
    assert place_of(older, older.volume("vg", "data")) is None
    lvm = inactive()
    lvm.gone.add("/dev/sdb")
    state = present(lvm)
    assert place_of(state, state.volume("vg", "data")) is None


@pytest.mark.parametrize("blocks", [1, 7984])
def test_cache_that_was_used_is_never_activated_without_check(host, run, tmp_path, blocks):
    host(superblock(blocks))
    lvm = inactive(mode="writeback")
    lvm.interrupted_attach = True
    outcome = run(lvm, mode="writeback", allow_unmirrored_writeback=True)
    assert lvm.changes == []
    assert outcome.warnings == (
        "images: vg/data is not active, so that its cache cannot be read: activate it with lvchange -ay vg/data first."
        " Its settings are those that LVM has stored.",
    )
    with pytest.raises(Refused, match="activate it with lvchange"):
        run(lvm, state="absent")
    assert unused(present(lvm), None, tmp_path) == frozenset()


def test_active_volume_is_not_looked_at(host, tmp_path):
    host(superblock(0))
    assert unused(present(FakeLvm(fast="cachepool")), None, tmp_path) == frozenset()


def test_only_volumes_of_list_are_looked_at(host, tmp_path):
    host(superblock(0))
    state = present(inactive())
    assert unused(state, {"vg/other"}, tmp_path) == frozenset()
    assert unused(state, {"vg/data"}, tmp_path) == {"vg/data"}


def test_device_that_cannot_be_read_is_no_proof(host, tmp_path):
    state = present(inactive())
    assert unused(state, None, tmp_path) == frozenset()
    (tmp_path / "dev/sdb").unlink()
    assert unused(state, None, tmp_path) == frozenset()


@pytest.mark.parametrize("kind", ["cachepool", "cachevol"])
def test_cache_that_was_never_used_is_activated_and_kept(host, run, kind):
    host(superblock(0))
    lvm = inactive(fast=kind)
    lvm.interrupted_attach = True
    predicted = run(lvm, check_mode=True, kind=kind).to_dict()
    assert lvm.changes == []
    outcome = run(lvm, kind=kind)
    assert outcome.to_dict() == predicted
    assert lvm.changes == ['lvchange --yes --activate y --config global/cache_check_executable="" vg/data']
    assert outcome.warnings == ()
    assert not run(lvm, kind=kind).changed


@pytest.mark.parametrize(
    ("mounted", "unmountable", "expected"),
    [
        ("", False, ["images: vg/data was mounted on /mnt/data, as line 1 of /etc/fstab specifies: at boot it was not active."]),
        ("", True, ["images: vg/data could not be mounted (Conversion aborted.) on /mnt/data, as line 1 of /etc/fstab specifies: at boot it was not active."]),
        ("36 1 253:0 / /mnt/data rw - ext4 /dev/vg/data rw\n", False, []),
    ],
)
def test_what_the_boot_could_not_mount_is_mounted(host, run, tmp_path, mounted, unmountable, expected):
    host(superblock(0))
    for path, text in {"etc/fstab": "/dev/vg/data /mnt/data ext4 nofail\n/dev/vg/data /once ext4 noauto\n", "proc/self/mountinfo": mounted}.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    lvm = inactive()
    lvm.interrupted_attach = True
    if unmountable:
        lvm.lies["mount"] = (32, False)
    assert list(run(lvm).warnings) == expected
    assert lvm.changes[1:] == ["mount /mnt/data"] * bool(expected)


def test_cache_that_was_never_used_is_removed(host, run):
    host(superblock(0))
    lvm = inactive(mode="writeback")
    lvm.interrupted_attach = True
    run(lvm, state="absent")
    assert lvm.cache is None


def test_cache_is_read_again_before_check_is_skipped(host, run, monkeypatch):
    host(superblock(0))
    lvm = inactive()
    lvm.interrupted_attach = True
    activate = ActivateUnused.carry_out

    def used_meanwhile(self, layer, step):
        host(superblock(12))
        activate(self, layer, step)

    monkeypatch.setattr(ActivateUnused, "carry_out", used_meanwhile)
    with pytest.raises(Refused, match="was found unused and is not any more"):
        run(lvm)
    assert lvm.changes == []


def test_volume_that_cannot_be_activated_fails_with_words_of_lvm(host, run):
    host(superblock(0))
    lvm = inactive()
    lvm.lies["lvchange"] = (5, False)
    with pytest.raises(CommandFailed, match="Conversion aborted") as caught:
        run(lvm)
    assert caught.value.facts["broke_off"].startswith("Activate vg/data without the check")
