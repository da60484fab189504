# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which entries speak of which device, and which of them goes before the others."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.profiles import ORDER, PROFILES, RESETS
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.spec import read_specs, select
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.sysfs import Queue

GIB = 1024**3


def queue(name="sda", **more):
    return Queue(**{"name": name, "path": f"/dev/{name}", "kind": "disk", "transport": "sata", "size": 100 * GIB, "rotational": False, "unit": name, **more})


def chosen(entries, *queues, named=None):
    found = select({one.name: one for one in queues}, named or {}, read_specs(entries))
    return {one.queue.name: one for one in found}


def values(selected):
    return {key: requested.value for key, requested in selected.requested.items()}


@pytest.mark.parametrize(
    ("match", "meets"),
    [
        ({}, True),
        ({"rotational": False}, True),
        ({"rotational": True}, False),
        ({"transport": ["sas", "sata"]}, True),
        ({"transport": ["nvme"]}, False),
        ({"kind": ["disk"]}, True),
        ({"kind": ["md"]}, False),
        ({"driver": ["ahci"]}, True),
        ({"driver": ["mpt*"]}, False),
        ({"model": ["intel ssdsc2*"]}, True),
        ({"model": ["INTEL_SSDSC2BB*"]}, True),
        ({"model": ["SSDSC2BB*"]}, False),
        ({"vendor": ["ata"]}, True),
        ({"vendor": ["DELL"]}, False),
        ({"serial": ["btwl0*", "x"]}, True),
        ({"wwn": ["0x55cd2e4*"]}, True),
        ({"wwn": ["naa.*"]}, False),
        ({"size_min": "100G", "size_max": "100G"}, True),
        ({"size_min": "101G"}, False),
        ({"size_max": "99.5 GiB"}, False),
        ({"rotational": False, "transport": ["nvme"]}, False),
    ],
)
def test_all_match_criteria_must_apply(match, meets):
    one = queue(driver="ahci", models=("INTEL SSDSC2BB08", "INTEL_SSDSC2BB080G4"), vendor="ATA", serials=("BTWL0001",), wwns=("0x55cd2e404b",))
    assert bool(chosen([{"match": match, "nomerges": 1}], one)) is meets


def test_later_matches_override_earlier_ones_per_setting():
    entries = [
        {"match": {}, "scheduler": "none", "nomerges": 2, "read_ahead_kb": 64},
        {"match": {"transport": ["sata"]}, "scheduler": "bfq", "nomerges": 0},
    ]
    assert values(chosen(entries, queue())["sda"]) == {"scheduler": "bfq", "nomerges": 0, "read_ahead_kb": 64}
    assert values(chosen(entries, queue(transport="sas"))["sda"]) == {"scheduler": "none", "nomerges": 2, "read_ahead_kb": 64}


def test_named_device_overrides_match_regardless_of_order():
    entries = [{"device": "/dev/x", "nomerges": 2}, {"match": {}, "nomerges": 0, "rq_affinity": 2}]
    one = chosen(entries, queue(), named={"/dev/x": ("sda",)})["sda"]
    assert (values(one), one.item, one.entries) == ({"nomerges": 2, "rq_affinity": 2}, "/dev/x", (2, 1))


def test_later_profile_replaces_earlier_one_and_keeps_other_settings():
    entries = [{"match": {}, "profile": "flash_array", "add_random": False}, {"match": {}, "profile": "hdd", "nr_requests": 512}]
    assert values(chosen(entries, queue())["sda"]) == {**PROFILES["hdd"], "nr_requests": 512, "add_random": 0}


def test_entry_settings_override_its_profile():
    one = chosen([{"match": {}, "profile": "flash_array", "nr_requests": 512}], queue())["sda"]
    assert one.requested["nr_requests"].profile is None
    assert one.requested["queue_depth"].profile == "flash_array"
    assert values(one) == {"scheduler": "none", "nr_requests": 512, "nomerges": 1, "queue_depth": 64}


def test_contradicting_entries_for_one_device_are_rejected():
    named = {"/dev/x": ("sda",), "/dev/y": ("sda",)}
    with pytest.raises(BadInput, match=r"nomerges is 1 by /dev/x \(entry 1\) and 2 by /dev/y \(entry 2\): set it once"):
        chosen([{"device": "/dev/x", "nomerges": 1}, {"device": "/dev/y", "nomerges": 2}], queue(), named=named)
    with pytest.raises(BadInput, match="scheduler is none by"):
        chosen([{"device": "/dev/x", "profile": "nvme"}, {"device": "/dev/y", "profile": "hdd"}], queue(), named=named)
    agreeing = [{"device": "/dev/x", "nomerges": 1}, {"device": "/dev/y", "nomerges": 1, "rq_affinity": 0}]
    assert values(chosen(agreeing, queue(), named=named)["sda"]) == {"nomerges": 1, "rq_affinity": 0}


def test_member_disks_rank_between_match_and_named_device():
    top = queue("dm-0", kind="lvm", below=("sda", "sdb"), multiqueue=False)
    entries = [{"device": "/dev/vg/lv", "members": True, "nomerges": 2}, {"device": "/dev/b", "nomerges": 1}, {"match": {}, "nomerges": 0}]
    found = chosen(entries, queue(), queue("sdb"), queue("sdc"), top, named={"/dev/vg/lv": ("dm-0",), "/dev/b": ("sdb",)})
    assert {name: values(one)["nomerges"] for name, one in found.items()} == {"sda": 2, "sdb": 1, "sdc": 0}


def test_members_of_a_matched_volume():
    top = queue("md0", kind="md", below=("sda",), multiqueue=False)
    found = chosen([{"match": {"kind": ["md"]}, "members": True, "nomerges": 2}], queue(), queue("sdb"), top)
    assert list(found) == ["sda"]


def test_persistence_is_taken_from_the_deciding_entry():
    entries = [{"match": {}, "nomerges": 1}, {"device": "/dev/x", "persistent": False}]
    found = chosen(entries, queue(), queue("sdb"), named={"/dev/x": ("sda",)})
    assert {name: one.persistent for name, one in found.items()} == {"sda": False, "sdb": True}


def test_match_invalidated_by_its_own_setting_is_rejected():
    with pytest.raises(BadInput, match="with rotational set to false by entry 1, other entries would match it in the next run"):
        chosen([{"match": {"rotational": True}, "rotational": False}], queue(rotational=True))
    with pytest.raises(BadInput, match="by entry 2"):
        chosen(
            [{"match": {"rotational": True}, "profile": "hdd"}, {"match": {"model": ["BAD*"]}, "rotational": False}], queue(rotational=True, models=("BAD",))
        )
    assert chosen([{"match": {"model": ["BAD*"]}, "rotational": False}], queue(rotational=True, models=("BAD",)))


def test_network_disks_match_only_by_transport():
    aoe = queue("etherd!e7.1", kind="aoe", transport="aoe")
    assert not chosen([{"match": {}, "nomerges": 1}], aoe)
    assert chosen([{"match": {"transport": ["aoe"]}, "nomerges": 1}], aoe)
    assert chosen([{"match": {"kind": ["aoe"]}, "nomerges": 1}], aoe)


def test_profiles_contain_known_settings_in_order():
    for settings in PROFILES.values():
        assert list(settings) == [key for key in ORDER if key in settings]
    assert PROFILES["flash_array"] == {"scheduler": "none", "nr_requests": 1024, "nomerges": 1, "queue_depth": 64}
    assert all(ORDER.index(first) < ORDER.index(later) for first, reset in RESETS.items() for later in reset)
