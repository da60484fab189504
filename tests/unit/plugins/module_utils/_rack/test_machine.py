# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import GIB, MIB
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.machine import describe_machines, machine_from_data


def disk(name="d0", kind="sata_hdd", size="1G", **more):
    return {"name": name, "kind": kind, "size": size, **more}


def test_power_loss_protection_requires_a_volatile_cache():
    with pytest.raises(BadInput, match="with volatile_cache off there is none"):
        describe_machines("demo", [{"name": "node1", "disks": [disk(power_loss_protection=True, volatile_cache="off")]}])


def test_parallel_racks_have_distinct_mac_addresses():
    options = [{"name": "node1", "networks": [{"name": "storage"}]}]
    assert describe_machines("demo", options)[0].networks[0].mac != describe_machines("other", options)[0].networks[0].mac


def test_description_survives_serialization():
    equipment = {"serial_ports": [{"name": "a.0", "socket": "/s"}], "processes": [["serve", "this"]]}
    options = {"name": "node1", "disks": [disk(iops_limit=150, nbd="/n")], "networks": [{"name": "n"}], "ssh_port": 2222, **equipment}
    (machine,) = describe_machines("demo", [options])
    assert machine_from_data(json.loads(json.dumps(machine.as_data()))) == machine


@pytest.mark.parametrize(("text", "size"), [("768", 768 * MIB), ("1G", GIB), (1024, GIB), ("512M", 512 * MIB)])
def test_memory_without_a_suffix_is_mebibytes(text, size):
    assert describe_machines("demo", [{"name": "node1", "memory": text}])[0].memory == size


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "Node_1"}, "cannot be the name of a machine"),
        ({"name": "../up"}, "cannot be the name of a machine"),
        ({"name": "node1", "memory": "64"}, "at least 256 MiB"),
        ({"name": "node1", "memory": "much"}, "is not a size"),
        ({"name": "node1", "cpus": -1}, "cpus must be between"),
        ({"name": "node1", "ssh_port": 22}, "ssh_port must be between"),
        ({"name": "node1", "disks": [disk(kind="floppy")]}, "'floppy' is not a supported kind of disk"),
        ({"name": "node1", "disks": [disk(size="17 apples")]}, "is not a size"),
        ({"name": "node1", "disks": [disk(size="1000000")]}, "multiple of 64 KiB"),
        ({"name": "node1", "disks": [disk(), disk()]}, "disk d0 is listed twice in node1"),
        ({"name": "node1", "disks": [disk("a", serial="S"), disk("b", serial="S")]}, "serial S is listed twice in node1"),
        ({"name": "node1", "disks": [disk(serial="X" * 21)]}, "at most 20 letters"),
        ({"name": "node1", "disks": [disk(serial="a,file=/etc/shadow")]}, "at most 20 letters"),
        ({"name": "node1", "disks": [disk(kind="nvme", model="PM1733")]}, "no model of one's own"),
        ({"name": "node1", "disks": [disk(wwn="12")]}, "wwn must be 16 hexadecimal digits"),
        ({"name": "node1", "disks": [disk(iops_limit=-1)]}, "must not be negative"),
        ({"name": "node1", "disks": [disk(iops_group="a")]}, "iops_group shares an iops_limit"),
        ({"name": "node1", "disks": [disk(iops_limit=1, iops_group="a,b")]}, "cannot be the name of a group of disks"),
        (
            {"name": "node1", "disks": [disk(iops_limit=1, iops_group="a"), disk(name="b", serial="B", iops_limit=2, iops_group="a")]},
            "the disks of the iops_group a share one iops_limit",
        ),
        ({"name": "node1", "disks": [disk(paths=2)]}, "only a disk of kind scsi_hdd has more than one"),
        ({"name": "node1", "disks": [disk(kind="scsi_hdd", paths=0)]}, "paths must be between 1 and 8"),
        ({"name": "node1", "disks": [disk(kind="scsi_hdd", paths=2, iops_limit=150)]}, "iops_limit is not supported for a disk with several paths"),
        ({"name": "node1", "disks": [disk(vendor="Adaptec")]}, "no vendor of one's own"),
        ({"name": "node1", "disks": [disk(nbd="/s", volatile_cache="lies")]}, "is up to the process that serves it"),
        ({"name": "node1", "disks": [disk(nbd="/s", power_loss_protection=True)]}, "is up to the process that serves it"),
        ({"name": "node1", "serial_ports": [{"name": "a,b", "socket": "/s"}]}, "cannot be the name of a serial port"),
        ({"name": "node1", "serial_ports": [{"name": "a", "socket": "/s"}] * 2}, "serial port a is listed twice"),
        ({"name": "node1", "processes": [[]]}, "a command in processes is empty"),
        ({"name": "node1", "networks": [{"name": "n", "mac": "01:00:5e:00:00:01"}]}, "not the hardware address of one interface"),
        ({"name": "node1", "networks": [{"name": "n", "address": "10.0.0.1"}]}, "prefix length"),
    ],
)
def test_invalid_descriptions_are_rejected_in_one_sentence(options, words):
    with pytest.raises(BadInput, match=r".") as caught:
        describe_machines("demo", [options])
    assert words in caught.value.message


def test_three_machines_on_one_network_are_refused():
    with pytest.raises(BadInput, match="joins 3 machines") as caught:
        describe_machines("demo", [{"name": f"node{number}", "networks": [{"name": "storage"}]} for number in (1, 2, 3)])
    assert "at most two" in caught.value.message


def test_duplicate_names_or_ports_are_refused():
    with pytest.raises(BadInput, match="machine node1 is listed twice"):
        describe_machines("demo", [{"name": "node1"}, {"name": "node1"}])
    with pytest.raises(BadInput, match="ssh_port 2222 is listed twice"):
        describe_machines("demo", [{"name": "node1", "ssh_port": 2222}, {"name": "node2", "ssh_port": 2222}])


@pytest.mark.parametrize(("noted", "kind"), [(True, "on"), (False, "off"), ("lies", "lies")])
def test_racks_of_older_versions_are_read(noted, kind):
    (machine,) = describe_machines("demo", [{"name": "node1", "disks": [disk(volatile_cache=kind)]}])
    data = machine.as_data()
    data["disks"] = [{**data["disks"][0], "volatile_cache": noted}]
    del data["serial_ports"], data["processes"], data["disks"][0]["nbd"]
    assert machine_from_data(data) == machine


def test_unknown_write_cache_is_rejected():
    with pytest.raises(BadInput, match="volatile_cache must be one of"):
        describe_machines("demo", [{"name": "node1", "disks": [disk(volatile_cache="perhaps")]}])
