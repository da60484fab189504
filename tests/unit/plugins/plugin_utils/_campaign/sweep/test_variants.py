# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.variants import read_variants

SSD = "/dev/disk/by-id/ata-SSD_1"

#: Case A: an SSD as a volume of a RAID controller, as JBOD and at SATA, each with its cache off and on. Keys as YAML reads on and off.
CASE_A = {
    "attached": {
        "raid": {"fio_benchmark_targets": [{"device": "/dev/disk/by-id/scsi-VOLUME"}]},
        "jbod": {"fio_benchmark_targets": [{"device": "/dev/disk/by-id/scsi-JBOD"}]},
        "sata": {"fio_benchmark_targets": [{"device": SSD}]},
    },
    "drive": {
        word == "enabled": {
            "raid_cache_controllers": [{"id": 1, "drives": [{"address": "0,5", "write_cache": word}]}],
            "drive_write_cache_drives": [{"device": SSD, "write_cache": word}],
        }
        for word in ("disabled", "enabled")
    },
    "controller": {
        word == "writeback": {"raid_cache_controllers": [{"id": 1, "volumes": [{"name": "ssd", "write": word}]}]} for word in ("writethrough", "writeback")
    },
}


def names(variants):
    return [one.name for one in variants]


def drive(word):
    return {"drive_write_cache_drives": [{"device": SSD, "write_cache": word}]}


def test_case_a_has_eight_variants():
    found = read_variants([], CASE_A, [{"attached": ["jbod", "sata"], "controller": True}])

    assert len(found) == 8
    assert names(found)[:2] == ["attached_raid-drive_off-controller_off", "attached_raid-drive_off-controller_on"]


def test_axes_are_joined_by_item():
    found = {one.name: one for one in read_variants([], CASE_A)}

    controllers = found["attached_raid-drive_on-controller_on"].variables["raid_cache_controllers"]
    assert controllers == [{"id": 1, "drives": [{"address": "0,5", "write_cache": "enabled"}], "volumes": [{"name": "ssd", "write": "writeback"}]}]


def test_a_variant_can_be_called_off():
    """YAML reads it as a boolean."""
    assert names(read_variants([{"name": False, **drive("disabled")}, {"name": True, **drive("enabled")}])) == ["off", "on"]


def test_listed_variants_precede_the_product():
    found = read_variants([{"name": "both", **drive("enabled")}], {"drive": {False: drive("disabled")}})

    assert names(found) == ["both", "drive_off"]


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"raid_cache_controllers": [{"id": 1, "volumes": {"name": "ssd"}}]}, "raid_cache_controllers: volumes must be a list of dictionaries"),
        ({"raid_cache_controllers": [{"id": 1, "volumes": ["ssd"]}]}, "volumes must be a list of dictionaries"),
        ({"raid_cache_controllers": [{"id": 1, "volumes": 5}]}, "volumes must be a list of dictionaries"),
        ({"raid_cache_controllers": [{"id": 1, "drives": ["0,5"]}]}, "drives must be a list of dictionaries"),
        ({"raid_cache_controllers": [{"id": 1, "volumes": [{"name": "ssd", "maxcache": "on"}]}]}, "volumes: maxcache must be a dictionary"),
        ({"raid_cache_controllers": [{"id": 1, "drive_cache": "enabled"}]}, "drive_cache must be a dictionary"),
        ({"block_cache_caches": [{"name": "x", "type": ["lvm_cache"], "origin": "vg0/x"}]}, "block_cache_caches: type must be a text or a number"),
        ({"block_cache_caches": [{"name": "x", "type": "lvm_cache", "origin": ["vg0/x"]}]}, "origin must be a text or a number"),
        ({"block_cache_caches": [{"name": "x", "settings": ["a"]}]}, "settings must be a dictionary"),
        ({"drive_write_cache_drives": [{"device": [SSD], "write_cache": "enabled"}]}, "device must be a text or a number"),
        ({"drive_write_cache_drives": [{"device": "", "write_cache": "enabled"}]}, "an entry has no device"),
    ],
)
def test_options_of_another_kind_are_rejected_in_one_sentence(variables, message):
    with pytest.raises(BadInput, match=f"^sweep_variants: a: .*{message}"):
        read_variants([{"name": "a", **variables}])


@pytest.mark.parametrize(
    ("variants", "axes", "exclude", "message"),
    [
        ([], {}, [], "There is no variant"),
        ([{"name": "a"}, {"name": "a"}], {}, [], "same name as another variant"),
        ([{"name": "baseline"}], {}, [], "same name as the configuration that was found"),
        ([{"name": "a b"}], {}, [], "cannot be the name of a variant"),
        ({"a": {}}, {}, [], "must be a list of dictionaries"),
        ([{"name": "a", "block_cache_mode": "x"}], {}, [], "block_cache_mode cannot be varied"),
        ([{"name": "a", "drive_write_cache_drives": [{"write_cache": "enabled"}]}], {}, [], "an entry has no device"),
        ([{"name": "a", "drive_write_cache_drives": [{"device": SSD}, {"device": SSD}]}], {}, [], "is listed twice"),
        ([{"name": "a", "block_queue_devices": [{"match": {}, "scheduler": "none"}]}], {}, [], "match is not supported"),
        ([{"name": "a", "storage_network_links": [{"mtu": 1500}]}], {}, [], "an entry has no interface"),
        ([{"name": "a", "storage_network_links": [{"interface": "eth1", "mtu": "large"}]}], {}, [], "consists of interface and mtu, a number"),
        ([{"name": "a", "storage_network_links": [{"interface": "eth1", "purpose": "aoe"}]}], {}, [], "consists of interface and mtu, a number"),
        ([{"name": "a", "storage_network_links": [{"interface": "eth1", "mtu": 1500, "allow_management": True}]}], {}, [], "consists of interface and mtu"),
        ([{"name": "a", "storage_network_links": [{"interface": "eth1", "mtu": [1500]}]}], {}, [], "mtu must be a text or a number"),
        ([], {"drive": {}}, [], "the axis drive has no values"),
        ([], {"drive": {"off": {}}}, [{"cache": "on"}], "there is no axis cache; the axes are drive"),
        ([], {"drive": {"off": {}}}, [{"drive": "on"}], "the axis drive has no value on; its values are off"),
        ([], {"drive": {"off": {}}}, [{"drive": "off"}], "leaves no variant"),
        ([], {"drive": {True: drive("enabled"), "on": drive("disabled")}}, [], "the axis drive has two values on: give each a name of its own"),
        ([], {1: {"x": drive("enabled")}, "1": {"y": {}}}, [], "there are two axes 1: give each a name of its own"),
        ([], {"a": {"x": drive("enabled")}, "b": {"y": drive("disabled")}}, [], "two axes set write_cache, to enabled and disabled"),
    ],
)
def test_invalid_variants_are_rejected_in_one_sentence(variants, axes, exclude, message):
    with pytest.raises(BadInput, match=message):
        read_variants(variants, axes, exclude, baseline="baseline")


@pytest.mark.parametrize("name", ["a b", "../x", "x" * 129, "tables", "größe"])
def test_the_name_of_what_was_found_is_checked_before_the_host_is_described(name):
    with pytest.raises(BadInput, match=r"cannot be the name of a variant \(sweep_baseline\): use letters"):
        read_variants([{"name": "a", **drive("enabled")}], baseline=name)
