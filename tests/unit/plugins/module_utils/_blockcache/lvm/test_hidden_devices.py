# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A filter or the devices file of LVM hides a device: what works is not stopped, and nothing that is only hidden is taken for lost."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import layer as layer_module
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.layer import LvmCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Signature
from ansible_collections.cachefleet.storage.tests.unit.support.fake_lvm import HDD, SSD, SSD1, SSD1_PATH, SSD_PATH, FakeLvm, NamedDevices, make_dev

LABEL = Signature("raid", "LVM2_member")
WRITEBACK = {"mode": "writeback", "allow_unmirrored_writeback": True}
ADVICE = f"does not show here .*{SSD_PATH}.* and that works: make LVM show it, for example with lvm lvmdevices --adddev"


def mapped(name, dm_name, *below):
    return BlockDevice(name, f"/dev/{name}", f"253:{name[3:]}", kind="lvm", dm_name=dm_name, slaves=below)


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A cached volume that runs; LVM shows none of the SSDs in ``gone``, which are all there."""
    make_dev(tmp_path)

    def make(lvm, gone=("/dev/sdb",), running=True):
        above = [mapped("dm-1", "vg-data_cache_cpool_cdata", "sdb"), mapped("dm-2", "vg-data", "dm-1", "dm-3"), mapped("dm-3", "vg-data_corig", "sda")]
        ssds = [dataclasses.replace(one, signature=LABEL, holders=("dm-1",) if running else ()) for one in (SSD, SSD1)]
        monkeypatch.setattr(layer_module, "read_devices", lambda runner, root: NamedDevices([HDD, *ssds, *(above if running else ())]))
        lvm.gone = set(gone)

        def run(*, check_mode=False, read_only=False, **fields):
            item = {"name": "images", "origin": "vg/data", "cache_devices": [SSD_PATH], **fields}
            ticks = itertools.count(0, 30)
            layer = LvmCacheLayer(lvm, read_items([item]), tmp_path, clock=lambda: next(ticks), sleep=lambda seconds: None)
            return layer if read_only else converge(layer, check_mode=check_mode)

        return run

    return make


@pytest.mark.parametrize("mode", ["writethrough", "writeback"])
@pytest.mark.parametrize("state", ["present", "flushed", "absent"])
@pytest.mark.parametrize("check_mode", [True, False])
def test_hidden_cache_device_of_a_running_cache_is_left_alone(host, mode, state, check_mode):
    lvm = FakeLvm(fast="cachepool", mode=mode, dirty=7 if mode == "writeback" else 0)
    with pytest.raises(Refused, match=ADVICE) as caught:
        host(lvm)(state=state, check_mode=check_mode, **(WRITEBACK if mode == "writeback" else {}))
    assert lvm.changes == []
    for word in ("lvchange -an", "--force", "reconnect", "state: absent"):
        assert word not in caught.value.message


def test_hidden_side_of_a_mirror_is_not_repaired(host):
    lvm = FakeLvm(fast="cachepool", mirror=True, mode="writeback", dirty=0)
    with pytest.raises(Refused, match=ADVICE) as caught:
        host(lvm)(cache_devices=[SSD_PATH, SSD1_PATH], mirror=True, mode="writethrough")
    assert "--repair" not in caught.value.message
    layer = host(lvm)(cache_devices=[SSD_PATH, SSD1_PATH], mirror=True, mode="writeback", read_only=True)
    (problem,) = layer.facts(layer.read())["problems"]
    assert "make LVM show it" in problem
    assert "--repair" not in problem


def test_hidden_origin_is_not_repaired(host):
    lvm = FakeLvm()
    run = host(lvm, gone=("/dev/sda",))
    with pytest.raises(Refused, match=r"does not show here .*ata-HDD0.*make LVM show it"):
        run()
    assert lvm.changes == []


def test_device_that_is_gone_is_removed_as_before_although_another_is_hidden(host):
    """Nothing runs on the other one, so that it is not known to be what is missing; a cache that wrote through may go."""
    lvm = FakeLvm(fast="cachepool", mode="writethrough", dirty=0)
    run = host(lvm, running=False)
    assert run(state="absent").changed
    assert any("--uncache" in change for change in lvm.changes)


def test_missing_device_of_a_write_back_cache_may_be_the_one_that_is_hidden(host):
    lvm = FakeLvm(fast="cachepool", mode="writeback", dirty=7)
    with pytest.raises(Refused, match=f"LVM does not show {SSD_PATH}.* which has the label of a physical volume"):
        host(lvm, running=False)(state="absent")
