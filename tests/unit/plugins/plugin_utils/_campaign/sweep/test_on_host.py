# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.on_host import (
    Found,
    HostSweep,
    devices_of,
    draining,
    host_sweep,
    initiator,
    refilled,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.variants import Variant
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.read import Controller

ATA, WWN, SSD = "/dev/disk/by-id/ata-HDD_1", "/dev/disk/by-id/wwn-0x1", "/dev/disk/by-id/ata-SSD_1"
PATHS = {ATA: "sda", WWN: "sda", SSD: "sdb"}
CACHE = {"name": "images", "type": "lvm_cache", "origin": "vg0/images", "cache_devices": [SSD], "mode": "writeback"}
CONTROLLER = Controller("arcconf", "1", "8C1", "ASR-6805", ({"id": "0", "name": "ssd", "wwn": "0x9"},))
DESCRIBED = {
    "drive_write_cache_drives": [{"device": ATA, "write_cache": "enabled", "persistent": False}, {"device": SSD, "write_cache": "disabled"}],
    "raid_cache_controllers": [
        {
            "provider": "arcconf",
            "serial": "8C1",
            "volumes": [{"wwn": "0x9", "write": "writethrough", "read": "read_ahead"}],
            "drives": [{"address": "0,5", "write_cache": "enabled"}],
        }
    ],
    "block_queue_devices": [{"device": ATA, "scheduler": "none", "nr_requests": 64, "nomerges": 0, "queue_depth": 32, "persistent": False}],
}


def found(**contents):
    return Found({**DESCRIBED, **contents}, (CONTROLLER,), PATHS)


def sweep(*variants, inventory=None, **contents):
    return host_sweep([Variant(f"v{number}", one) for number, one in enumerate(variants, 1)], found(**contents), inventory or {})


def drive(device, word):
    return {"drive_write_cache_drives": [{"device": device, "write_cache": word}]}


def caches(*entries):
    return {"block_cache_caches": list(entries)}


def test_a_drive_is_found_by_another_path():
    planned = sweep(drive(WWN, "disabled"))

    assert planned.variables["v1"] == {"drive_write_cache_drives": [{"device": ATA, "write_cache": "disabled", "persistent": False}]}
    assert planned.restore == {"drive_write_cache_drives": [DESCRIBED["drive_write_cache_drives"][0]]}


def test_every_variant_sets_all_items_that_the_sweep_touches():
    planned = sweep(drive(ATA, "disabled"), drive(SSD, "enabled"))

    words = {name: [one["write_cache"] for one in variables["drive_write_cache_drives"]] for name, variables in planned.variables.items()}
    assert words == {"v1": ["disabled", "disabled"], "v2": ["enabled", "enabled"]}


def test_what_could_not_be_described_is_named_with_its_reason():
    notes = {"drive_write_cache_drives": ["/dev/vda: it has no persistent path."]}
    planned = host_sweep([Variant("v1", drive("/dev/vda", "disabled")), Variant("v2", {})], Found({}, (), {"/dev/vda": "/dev/vda"}, (), notes), {})
    assert planned.refused["v1"].endswith("could not be described, so it could not be restored: /dev/vda: it has no persistent path.")


def test_a_variant_that_is_left_alone_is_refused_too():
    """It would be measured again and again, and compared with nothing."""
    variants = [Variant("baseline", {}), Variant("v1", drive("/dev/vda", "disabled")), Variant("v2", drive("/dev/vda", "enabled"))]
    found = Found({}, (), {"/dev/vda": "/dev/vda"})
    assert host_sweep(variants, found, {}).refused["baseline"] == "Every other variant is refused, so it could not be compared with anything."
    assert host_sweep(variants, found, {}).variables == {}
    assert "baseline" not in host_sweep(variants[:1], found, {}).refused


def test_a_cache_that_a_variant_lacks_is_absent():
    planned = sweep(caches(CACHE), {}, caches({"name": "images", "mode": "writethrough"}))

    absent = {"name": "images", "type": "lvm_cache", "origin": "vg0/images", "cache_devices": [SSD], "state": "absent", "release_devices": True}
    assert planned.variables["v1"]["block_cache_caches"] == [CACHE]
    assert planned.variables["v2"]["block_cache_caches"] == [absent]
    assert planned.variables["v3"]["block_cache_caches"] == [{**CACHE, "mode": "writethrough"}]
    assert planned.restore["block_cache_caches"] == [absent]


def test_a_cache_that_was_there_is_kept_unless_a_variant_removes_it():
    planned = sweep(caches({"name": "images", "mode": "writethrough"}), caches({"name": "images", "state": "absent"}), {}, block_cache_caches=[CACHE])

    modes = [(one.get("state", "present"), one.get("mode")) for name in ("v1", "v2", "v3") for one in planned.variables[name]["block_cache_caches"]]
    assert modes == [("present", "writethrough"), ("absent", None), ("present", "writeback")]
    assert planned.restore["block_cache_caches"] == [CACHE]


def test_a_cache_that_was_not_there_is_defined_by_the_inventory():
    planned = sweep(caches({"name": "images", "mode": "writethrough"}), inventory={"block_cache_caches": [CACHE]})

    assert planned.variables["v1"]["block_cache_caches"] == [{**CACHE, "mode": "writethrough"}]


def test_a_removed_cache_expects_that_of_another_type_which_the_list_names_by_another_link():
    """One disk, two links: on a host the entry that is absent would otherwise be refused because of the other cache."""
    one = {"name": "one", "type": "dm_cache", "origin": ATA, "cache_devices": [SSD]}
    other = {"name": "other", "type": "flashcache", "origin": WWN, "cache_devices": [SSD]}
    planned = sweep(caches(one), caches(other), {})
    states = {
        name: [(entry["type"], entry.get("state", "present"), entry.get("expect")) for entry in variables["block_cache_caches"]]
        for name, variables in planned.variables.items()
    }
    assert states == {
        "v1": [("dm_cache", "present", None), ("flashcache", "absent", ["dm_cache"])],
        "v2": [("dm_cache", "absent", ["flashcache"]), ("flashcache", "present", None)],
        "v3": [("dm_cache", "absent", None), ("flashcache", "absent", None)],
    }


def test_a_cache_of_another_type_takes_the_place_of_the_one_that_was_there():
    dm_writecache = {"name": "images", "type": "dm_cache", "origin": "vg0/images", "cache_devices": [SSD]}
    planned = sweep(caches(dm_writecache), block_cache_caches=[CACHE])

    assert [(one["type"], one.get("state")) for one in planned.variables["v1"]["block_cache_caches"]] == [("dm_cache", None), ("lvm_cache", "absent")]
    assert [(one["type"], one.get("state")) for one in planned.restore["block_cache_caches"]] == [("dm_cache", "absent"), ("lvm_cache", None)]


def test_settings_of_one_mode_are_not_used_in_another():
    planned = sweep(caches({"name": "images", "mode": "writethrough"}), block_cache_caches=[{**CACHE, "settings": {"migration_threshold": 4096}}])

    assert "settings" not in planned.variables["v1"]["block_cache_caches"][0]
    assert planned.restore["block_cache_caches"][0]["settings"] == {"migration_threshold": 4096}


def test_controllers_and_volumes_are_found_by_number_and_name():
    planned = sweep(
        {"raid_cache_controllers": [{"id": 1, "volumes": [{"name": "ssd", "write": "writeback"}], "drives": [{"address": "0, 5", "write_cache": "disabled"}]}]}
    )

    assert planned.variables["v1"]["raid_cache_controllers"] == [
        {
            "provider": "arcconf",
            "serial": "8C1",
            "volumes": [{"wwn": "0x9", "write": "writeback", "read": "read_ahead"}],
            "drives": [{"address": "0,5", "write_cache": "disabled"}],
        }
    ]
    assert planned.restore["raid_cache_controllers"] == DESCRIBED["raid_cache_controllers"]


def test_an_entry_of_one_volume_is_over_that_of_all_setting_by_setting():
    one = {"name": "ssd", "read": "none"}
    for volumes in ([{"id": "all", "write": "writeback"}, one], [one, {"id": "all", "write": "writeback", "read": "adaptive"}]):
        planned = sweep({"raid_cache_controllers": [{"id": 1, "volumes": volumes}]})
        assert planned.variables["v1"]["raid_cache_controllers"][0]["volumes"] == [{"wwn": "0x9", "write": "writeback", "read": "none"}]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ({"volumes": [{"name": "ssd", "write": "writeback"}, {"wwn": "0x9", "read": "none"}]}, "ssd and 0x9 are the same volume of the controller 8C1"),
        ({"drives": [{"address": "0,5", "write_cache": "disabled"}, {"address": "0, 5"}]}, "0,5 and 0, 5 are the same drive of the controller 8C1"),
    ],
)
def test_an_item_of_a_controller_that_is_named_in_two_ways_is_refused(items, message):
    assert sweep({"raid_cache_controllers": [{"id": 1, **items}]}).refused == {"v1": f"{message}: name it once."}


def test_a_profile_sets_what_the_queue_has_and_leaves_the_rest_as_found():
    planned = sweep(
        {"block_queue_devices": [{"device": WWN, "profile": "flash_array"}]}, {"block_queue_devices": [{"device": ATA, "scheduler": "mq-deadline"}]}
    )

    first, second = (planned.variables[name]["block_queue_devices"][0] for name in ("v1", "v2"))
    assert first == {"device": ATA, "scheduler": "none", "nr_requests": 1024, "nomerges": 1, "queue_depth": 64, "persistent": False}
    assert second == {**DESCRIBED["block_queue_devices"][0], "scheduler": "mq-deadline"}


def test_a_controller_without_a_name_is_not_named():
    planned = host_sweep([Variant("v1", {"raid_cache_controllers": [{}]})], Found({}), {})
    assert planned.refused == {"v1": "The controller is not on this host; controllers of this host: none."}


@pytest.mark.parametrize(
    ("variant", "reason"),
    [
        (drive("/dev/disk/by-id/gone", "enabled"), "/dev/disk/by-id/gone is not on this host."),
        ({"drive_write_cache_drives": [{"device": ATA, "write_cache": "enabled"}, {"device": WWN, "write_cache": "enabled"}]}, "are the same device"),
        ({"block_queue_devices": [{"device": SSD, "scheduler": "none"}]}, "The queue of .* could not be described"),
        ({"block_queue_devices": [{"device": ATA, "wbt_lat_usec": 0}]}, "the present value of wbt_lat_usec could not be described"),
        ({"block_queue_devices": [{"device": ATA, "profile": "flash_aray"}]}, "there is no profile flash_aray; profiles are flash_array, hdd"),
        (caches({"name": "images", "mode": "writeback"}), "The cache images has no type"),
        ({"raid_cache_controllers": [{"id": 2}]}, "controller 2 is not on this host; controllers of this host: 1"),
        ({"raid_cache_controllers": [{"volumes": [{"name": "x", "write": "writeback"}]}]}, "no volume with name x; its volumes: ssd"),
        ({"raid_cache_controllers": [{"cache_ratio": 50}]}, "present value of cache_ratio could not be described"),
        ({"raid_cache_controllers": [{"drives": [{"address": "9,9", "write_cache": "enabled"}]}]}, "The drive 9,9 .* is not there"),
    ],
)
def test_what_is_not_there_or_could_not_be_restored_is_refused(variant, reason):
    planned = sweep(variant, drive(ATA, "disabled"), drive(ATA, "enabled"))

    assert list(planned.refused) == ["v1"]
    assert "v2" in planned.variables
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(planned.refused["v1"])


def test_all_paths_of_devices_are_compared():
    variants = [Variant("a", {**drive(WWN, "enabled"), **caches({**CACHE, "origin": "/dev/md0"})})]

    assert devices_of(variants, {}) == [WWN, "/dev/md0"]


def test_what_an_interrupted_run_changed_is_restored_although_no_variant_names_it_any_more():
    first = sweep(drive(ATA, "disabled"), caches(CACHE))
    second = host_sweep([Variant("v1", drive(SSD, "enabled"))], found(), {}, first.restore)

    assert {one["device"] for one in second.restore["drive_write_cache_drives"]} == {ATA, SSD}
    assert second.restore["block_cache_caches"] == first.restore["block_cache_caches"]
    assert {one["device"]: one["write_cache"] for one in second.variables["v1"]["drive_write_cache_drives"]} == {ATA: "enabled", SSD: "enabled"}


@pytest.mark.parametrize(
    ("variants", "contents", "drains"),
    [
        # Write-through after write-back may still be written back, and what is absent has nothing.
        ([caches(CACHE), caches({"name": "images", "mode": "writethrough"}), {}], {}, ["v1", "v2"]),
        ([caches({**CACHE, "mode": "writethrough"}), {}], {}, []),
        # A cache of the host that no variant touches.
        ([drive(ATA, "disabled"), {}], caches(CACHE), ["v1", "v2"]),
        ([drive(ATA, "disabled")], caches({**CACHE, "mode": "writethrough"}), []),
        ([caches({**CACHE, "origin": "vg0/other", "mode": "writethrough"}), {}], caches(CACHE), ["v1", "v2"]),
        # What was in write-back before the sweep may still be dirty in every other mode.
        ([caches({"name": "images", "mode": "writethrough"}), caches({"name": "images", "state": "absent"})], caches(CACHE), ["v1"]),
    ],
)
def test_variants_whose_caches_may_still_write_back(variants, contents, drains):
    assert draining(sweep(*variants, **contents), found(**contents).contents) == drains


def test_targets_are_filled_again_where_the_ssd_caches_changed_since_the_step_before():
    through = caches({"name": "images", "mode": "writethrough"})
    planned = sweep({}, caches(CACHE), through, {**through, **drive(ATA, "disabled")})
    passes = [(name, number) for number in (1, 2, 3) for name in (("v1", "v2", "v3", "v4") if number % 2 else ("v4", "v3", "v2", "v1"))]

    again = [step for step, refills in zip(passes, refilled(planned, passes), strict=True) if refills]

    # Not the first repeats, not the same caches twice in a row (v4 after v4, v3 after v4), and nothing without a cache.
    assert again == [("v2", 2), ("v2", 3), ("v3", 3)]


def test_targets_are_filled_again_where_the_ssd_cache_of_a_controller_changed():
    def volume(**maxcache):
        return {
            "raid_cache_controllers": [{"id": "1", "serial": "S", "maxcache": {"flush_and_fetch_rate": 200}, "volumes": [{"wwn": "w", "maxcache": maxcache}]}]
        }

    off, on, back = volume(read=False, write="disabled"), volume(read=True, write="disabled"), volume(read=True, write="writeback")
    planned = HostSweep({"off": off, "reads": on, "writeback": back}, {}, {})
    passes = [(name, number) for number in (1, 2) for name in (("off", "reads", "writeback") if number % 2 else ("writeback", "reads", "off"))]

    assert [step for step, refills in zip(passes, refilled(planned, passes), strict=True) if refills] == [("reads", 2)]


ETH1 = {"interface": "eth1", "mtu": 9000}
NETWORK = {"storage_network_links": [ETH1, {"interface": "eth0", "mtu": 1500, "persistent": False}], "storage_network_aoe_interfaces": ["eth1"]}


def mtu(value, interface="eth1"):
    return {"storage_network_links": [{"interface": interface, "mtu": value}]}


def test_a_variant_lowers_an_mtu_and_leaves_boot_as_it_is():
    planned = sweep(mtu(4200), {}, mtu("8700"), **NETWORK)

    links = [planned.variables[name]["storage_network_links"] for name in ("v1", "v2", "v3")]
    assert links == [[{**ETH1, "mtu": 4200, "persistent": False}], [ETH1], [{**ETH1, "mtu": 8700, "persistent": False}]]
    assert planned.restore == {"storage_network_links": [ETH1]}


@pytest.mark.parametrize(
    ("variant", "contents", "words"),
    [
        (mtu(9001), {}, "The MTU of eth1 is 9000, and a variant can only lower it"),
        (mtu(1500, "eth9"), {}, "eth9 is no interface whose MTU could be described"),
        (mtu(1500), {"storage_network_aoe_targets": [{"shelf": 7, "slot": 1, "interface": "eth1", "device": ATA}]}, "serves AoE targets"),
    ],
)
def test_an_mtu_that_other_hosts_would_have_to_follow_is_refused(variant, contents, words):
    planned = sweep(variant, {}, **{**NETWORK, **contents})

    assert words in planned.refused["v1"]
    assert "v1" not in planned.variables


def test_an_initiator_that_could_not_be_described_would_not_follow():
    before = Found(NETWORK, indescribable=["storage_network_aoe_interfaces"])
    planned = host_sweep([Variant("v1", mtu(1500))], before, {})
    assert "would not renegotiate its frames: set storage_network_aoe_interfaces" in planned.refused["v1"]


def test_the_initiator_is_passed_as_it_was_found():
    assert initiator(NETWORK) == {"interfaces": ["eth1"], "options": {}}
    assert initiator({**NETWORK, "storage_network_aoe_options": {"deadsecs": 60}})["options"] == {"deadsecs": 60}
    assert initiator({"storage_network_links": [ETH1]}) == {}
