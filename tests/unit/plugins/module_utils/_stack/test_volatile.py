# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._stack import volatile as _volatile
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import LayerFacts, Stack

ON, OFF = LayerFacts("drive", {}, True, "has its volatile write cache on"), LayerFacts("drive", {}, False, "has its write cache off")
HIDDEN = LayerFacts("drive", {}, None, "is made by the driver virtio_blk, and what is below it cannot be read from this host")


class NamedDevices(Devices):
    def resolve(self, path, item=None):
        found = self.get(path.rsplit("/", 1)[-1])
        if found is None:
            raise DeviceMissing(f"{path} does not exist on this host.")
        return found


def disk(name, **fields):
    return BlockDevice(name=name, path=f"/dev/{name}", number="8:0", size=1 << 30, serial=name.upper(), **fields)


@pytest.fixture
def stack():
    devices = [
        disk("sda"),
        disk("sdb"),
        disk("sdc"),
        disk("vda"),
        disk("md0", kind="md", slaves=("sda", "sdb")),
        disk("sda1", kind="partition", parent="sda"),
    ]
    facts = {"sda": [ON], "sdb": [OFF], "vda": [HIDDEN], "md0": [LayerFacts("array", {}, False, "is an array without a volatile cache")]}
    return lambda *protected: Stack(NamedDevices(devices), facts, protected)


@pytest.mark.parametrize(
    ("path", "protected", "clauses"),
    [
        ("/dev/sda", (), ["/dev/sda has its volatile write cache on"]),
        ("/dev/sda1", (), ["/dev/sda has its volatile write cache on"]),
        ("/dev/md0", (), ["/dev/sda has its volatile write cache on"]),
        ("/dev/md0", ("SDA",), []),
        ("/dev/sdb", (), []),
        ("/dev/sdc", (), ["nothing is known about the write cache of /dev/sdc"]),
        ("/dev/sdc", ("SDC",), []),
        ("/dev/vda", (), ["/dev/vda is made by the driver virtio_blk, and what is below it cannot be read from this host"]),
        ("/dev/gone", (), []),
    ],
)
def test_volatile_layers_below_a_path(stack, path, protected, clauses):
    assert _volatile.volatile_below(stack(*protected), path) == clauses


def test_stack_is_read_once(stack, monkeypatch):
    requested = []
    monkeypatch.setattr(_volatile, "read_stack", lambda runner, root, protected, flushed: requested.append(protected) or stack(*protected))
    below = _volatile.VolatileBelow(None, ["SDA"])
    assert requested == []
    assert below("/dev/sda") == below("/dev/sdb") == []
    assert requested == [["SDA"]]
