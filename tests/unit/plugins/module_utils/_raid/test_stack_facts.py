# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a flushed write on a volume of a RAID controller is worth, and what is said where nothing can be read."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    CacheVolume,
    Controller,
    Drive,
    MaxCache,
    Policy,
    Protection,
    Reading,
    Volume,
    VolumeMaxCache,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.ssacli.provider import SsaCli
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.stack_facts import drive_caches, read_behind, volume_finding
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import AT_RISK, DURABLE, UNKNOWN, LayerFacts, Stack
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

HEALTHY = Protection("battery", "healthy", raw="Optimal")
FAILED = Protection("battery", "failed", raw="Failed (Replace Batteries)")
THROUGH = Policy("writethrough", "writethrough")
BACK = Policy("writeback", "writeback")
DISK = BlockDevice("sda", "/dev/sda", "8:0", size=1 << 30, transport="raid", driver="megaraid_sas", wwn="0x" + "6" * 32)


def volume(**changes):
    plain = Volume("0", name="data", wwn="6" * 32, write=THROUGH, read=Policy("none", "none"), io=Policy("direct", "direct"), drive_cache="disabled")
    return dataclasses.replace(plain, **changes)


def controller(**changes):
    return dataclasses.replace(Controller("storcli", "0", model="MODEL", driver="megaraid_sas", protection=HEALTHY, volumes=(volume(),)), **changes)


@pytest.mark.parametrize(
    ("write", "protection", "drives", "volatile", "loses", "words"),
    [
        (THROUGH, HEALTHY, "disabled", False, False, "writes through and keeps the caches of its drives off"),
        (THROUGH, FAILED, "disabled", False, False, "writes through"),
        (Policy("writeback", "writethrough"), FAILED, "disabled", False, False, "writes through"),
        (BACK, HEALTHY, "disabled", False, False, "into a protected cache (Optimal)"),
        (BACK, FAILED, "disabled", True, True, "its battery has failed (Failed (Replace Batteries))"),
        (Policy("writeback_always", "writeback_always"), Protection("capacitor", "missing"), "disabled", True, True, "its capacitor is missing"),
        (BACK, Protection("capacitor", "charging"), "disabled", True, True, "its capacitor is charging"),
        (BACK, Protection("none"), "disabled", True, True, "neither battery nor capacitor"),
        (BACK, Protection(), "disabled", None, False, "nothing is reported about the battery or capacitor"),
        (Policy("writeback", "unknown"), HEALTHY, "disabled", None, False, "does not report whether it writes back"),
        (THROUGH, HEALTHY, "enabled", True, True, "answers flushes itself"),
        (BACK, HEALTHY, "enabled", True, True, "in the caches of its drives, which are on"),
        (THROUGH, HEALTHY, "default", None, False, "left at their default"),
        (THROUGH, HEALTHY, "unknown", None, False, "nothing is reported about the caches of its drives"),
        (BACK, HEALTHY, "default", None, False, "default"),
        (BACK, FAILED, "unknown", True, True, "battery has failed"),
        (Policy(), Protection(), "enabled", True, True, "caches of its drives"),
    ],
)
def test_flush_verdicts(write, protection, drives, volatile, loses, words):
    finding = volume_finding(controller(protection=protection), volume(write=write, drive_cache=drives))
    assert (finding.volatile, finding.loses) == (volatile, loses)
    assert finding.why.startswith("is volume data of controller 0 (MODEL, storcli), ")
    assert words in finding.why


def test_cached_io_is_writeback_independent_of_write_policy():
    cached = volume(io=Policy("cached", "cached"))
    assert volume_finding(controller(protection=FAILED), cached).loses
    assert volume_finding(controller(), cached).volatile is False
    assert "I/O policy cached" in volume_finding(controller(protection=FAILED), cached).why


@pytest.mark.parametrize(
    ("reported", "policy", "classes", "result"),
    [
        (("disabled", "disabled"), "enabled", {}, "disabled"),
        (("disabled", "enabled"), "disabled", {}, "enabled"),
        (("unknown", "disabled"), "disabled", {}, "disabled"),
        (("unknown", "disabled"), "unknown", {}, "unknown"),
        (("unknown", "unknown"), "default", {}, "default"),
        (("unknown", "unknown"), "unknown", {"all": "disabled"}, "disabled"),
        (("unknown", "unknown"), "unknown", {"all": "per_drive"}, "unknown"),
        (("unknown", "unknown"), "unknown", {"configured": "enabled", "unconfigured": "disabled"}, "enabled"),
        ((), "unknown", {}, "unknown"),
        ((), "disabled", {}, "disabled"),
    ],
)
def test_drive_cache_states(reported, policy, classes, result):
    drives = tuple(Drive(f"252:{index}", write_cache=word) for index, word in enumerate(reported))
    one = volume(drive_cache=policy, members=tuple(drive.address for drive in drives))
    assert drive_caches(controller(drives=(*drives, Drive("252:9", write_cache="enabled")), drive_cache=classes), one) == result


def test_spare_listed_as_member_holds_no_data():
    drives = (Drive("252:0", write_cache="disabled", usage="configured", serial="S0"), Drive("252:1", write_cache="enabled", usage="spare"))
    one = volume(members=("252:0", "252:1"), drive_cache="unknown")
    assert volume_finding(controller(drives=drives), one).volatile is False
    used = (drives[0], dataclasses.replace(drives[1], usage="configured"))
    assert volume_finding(controller(drives=used), one).loses
    cached = (dataclasses.replace(drives[0], write_cache="enabled"), drives[1])
    assert volume_finding(controller(drives=cached), one, {"s0"}).volatile is False


def test_drives_declared_safe():
    drives = (Drive("252:0", write_cache="enabled", model="PLP MODEL"), Drive("252:1", serial="S1"))
    one = volume(members=("252:0", "252:1"), drive_cache="unknown")
    assert volume_finding(controller(drives=drives), one, {"plp model", "s1"}).volatile is False
    assert volume_finding(controller(drives=drives), one, {"plp model"}).loses


ON = Policy("enabled", "enabled")


def ssd(level, cache, drives=()):
    pool = MaxCache(generation="container", volumes=(CacheVolume("100", raid_level=level, status="optimal", members=("0,7",)),))
    return controller(maxcache=pool, drives=drives), volume(maxcache=cache)


OFF = Policy("disabled", "disabled")
BACK_ON_SSD = VolumeMaxCache(write=ON, write_policy="writeback")
SSD_OFF = (Drive("0,7", write_cache="disabled"),)
SSD_ON = (Drive("0,7", write_cache="enabled"),)


@pytest.mark.parametrize(
    ("level", "cache", "drives", "volatile", "loses", "device_loss"),
    [
        # The SSD keeps what it holds in a power cut; that it is the only one is another matter.
        ("0", BACK_ON_SSD, SSD_OFF, False, False, "loses"),
        ("0", VolumeMaxCache(write=ON, write_policy="instant_writeback"), SSD_OFF, False, False, "loses"),
        ("0", BACK_ON_SSD, SSD_ON, True, True, "loses"),
        ("0", BACK_ON_SSD, (), None, False, "loses"),
        ("1", BACK_ON_SSD, (), None, False, "survives"),
        ("1", BACK_ON_SSD, SSD_OFF, False, False, "survives"),
        ("1", BACK_ON_SSD, SSD_ON, True, True, "survives"),
        # What was written before the cache was switched off is still on the SSDs.
        ("0", VolumeMaxCache(write=OFF, write_policy="writeback", dirty="dirty"), SSD_OFF, False, False, "loses"),
        ("unknown", BACK_ON_SSD, (), None, False, "unknown"),
        ("0", VolumeMaxCache(write=ON, write_policy="writethrough"), (), False, False, "survives"),
        ("0", VolumeMaxCache(write=ON), (), None, False, "unknown"),
        ("0", VolumeMaxCache(write=OFF, write_policy="writeback"), (), False, False, "survives"),
        ("0", VolumeMaxCache(read=ON), (), None, False, "unknown"),
        ("0", VolumeMaxCache(read=OFF), (), False, False, "survives"),
        ("0", VolumeMaxCache(read=ON, write=OFF), (), False, False, "survives"),
        ("0", VolumeMaxCache(write_policy="writeback", cache_volume="100"), SSD_OFF, False, False, "loses"),
        ("1", VolumeMaxCache(write_policy="writeback", cache_volume="101"), (), None, False, "unknown"),
        ("1", VolumeMaxCache(dirty="dirty"), (), None, False, "unknown"),
    ],
)
def test_ssd_caches(level, cache, drives, volatile, loses, device_loss):
    one, two = ssd(level, cache, drives)
    finding = volume_finding(one, dataclasses.replace(two, raid_level="6", status="optimal"))
    assert (finding.volatile, finding.loses, finding.device_loss) == (volatile, loses, device_loss)
    assert finding.newest == (device_loss == "loses")
    assert finding.state["ssd_cache"]["write_policy"] == cache.write_policy


@pytest.mark.parametrize(
    ("level", "status", "device_loss"),
    [
        ("0", "optimal", "loses"),
        ("simple_volume", "optimal", "loses"),
        ("1", "optimal", "survives"),
        ("10", "optimal", "survives"),
        ("6", "optimal", "survives"),
        ("5", "degraded", "loses"),
        ("1", "rebuilding", "loses"),
        ("6", "partially_degraded", "survives"),
        # One or two drives may be missing: the word does not say.
        ("6", "degraded", "unknown"),
        ("5", "failed", "unknown"),
        ("unknown", "optimal", "unknown"),
        ("6", "unknown", "unknown"),
    ],
)
def test_effect_of_a_drive_failure(level, status, device_loss):
    finding = volume_finding(controller(), volume(raid_level=level, status=status))
    assert (finding.device_loss, finding.newest) == (device_loss, False)
    assert finding.device_loss_reason.startswith("is volume data of controller 0 (MODEL, storcli), ")


def test_durable_volume_with_newest_data_on_one_ssd_is_reported(tmp_path):
    one, two = ssd("0", BACK_ON_SSD, SSD_OFF)
    found = behind(tmp_path, Tool("storcli", dataclasses.replace(one, volumes=(dataclasses.replace(two, raid_level="6", status="optimal"),)))).findings["sda"]
    verdict = Stack(Devices([DISK]), {"sda": [LayerFacts("controller", **vars(found))]}).verdict(DISK)
    assert (verdict.verdict, verdict.device_loss) == (DURABLE, "loses")
    assert "newest data is only in its SSD cache (cache volume 100, RAID 0)" in verdict.reason
    assert "newest data is only in its SSD cache" in verdict.device_loss_reason


def test_degraded_ssd_cache_is_unknown():
    one, two = ssd("1", VolumeMaxCache(write=ON, write_policy="writeback"), (Drive("0,7", write_cache="disabled"),))
    degraded = dataclasses.replace(one.maxcache, volumes=(dataclasses.replace(one.maxcache.volumes[0], status="degraded"),))
    assert volume_finding(dataclasses.replace(one, maxcache=degraded), two).volatile is None


def test_drives_with_lost_addresses_may_cache():
    drives = (Drive("0,1", write_cache="disabled"), Drive("0,2", write_cache="disabled"))
    whole = volume(drive_cache="unknown", members=("0,1", "0,2"))
    assert volume_finding(controller(drives=drives), whole).volatile is False
    lost = dataclasses.replace(whole, members_untold=1)
    assert volume_finding(controller(drives=drives), lost).volatile is None
    assert volume_finding(controller(drives=tuple(dataclasses.replace(one, model="PLP") for one in drives)), lost, {"plp"}).volatile is None


@pytest.mark.parametrize(("protection", "volatile", "loses"), [(HEALTHY, False, False), (FAILED, True, True), (Protection(), None, False)])
def test_degraded_parity_volume_requires_protected_memory(protection, volatile, loses):
    finding = volume_finding(controller(protection=protection), volume(raid_level="5", status="degraded"))
    assert (finding.volatile, finding.loses) == (volatile, loses)


def test_favorable_result_of_incomplete_output_is_unknown(tmp_path):
    found = behind(tmp_path, Tool("storcli", controller(), doubts=("line 9",))).findings["sda"]
    assert found.volatile is None
    assert "not whole" in found.why
    losing = controller(volumes=(volume(drive_cache="enabled"),))
    assert behind(tmp_path, Tool("storcli", losing, doubts=("line 9",))).findings["sda"].loses


def test_disk_beside_volumes_is_not_treated_as_pass_through(tmp_path):
    found = behind(tmp_path, Tool("storcli", controller(mode="jbod")), disks=(dataclasses.replace(DISK, wwn=None),))
    assert found.passed_through == frozenset()
    assert found.findings["sda"].volatile is None


def test_unreported_ssd_cache_is_unknown():
    assert volume_finding(controller(), volume(acceleration="maxcache")).volatile is None


def test_state_contains_the_serial_numbers_of_the_drives():
    one = controller(drives=(Drive("0,1", serial="S1"), Drive("0,2", serial="S2")))
    assert volume_finding(one, volume(members=("0,1",))).state["drive_serials"] == ["S1"]
    # What is not reported counts too: a volume of two drives has no single one.
    assert volume_finding(one, volume(members=("0,1", "0,7"), members_untold=1)).state["drive_serials"] == ["S1", None, None]


def test_state_contains_controller_and_volume():
    state = volume_finding(controller(), volume(write=BACK)).state
    assert (state["controller"], state["provider"], state["id"], state["volume"], state["volume_name"]) == ("MODEL", "storcli", "0", "0", "data")
    assert (state["write"], state["drive_cache"]) == ({"configured": "writeback", "effective": "writeback"}, "disabled")
    assert state["protection"] == {"kind": "battery", "health": "healthy", "raw": "Optimal"}


class Tool:
    """A tool that is there and tells what it is given."""

    last = None

    def __init__(self, name, *controllers, error="", doubts=()):
        self.name = name
        self.reading = Reading(controllers, doubts, complete=not doubts)
        self.error = error
        self.reads = 0

    def read(self):
        self.reads += 1
        if self.error:
            raise CommandFailed(self.error)
        return self.reading


def behind(tmp_path, *tools, disks=(DISK,)):
    return read_behind(disks, ScriptedRunner({}), tmp_path, lambda runner: tools)


def test_no_command_runs_without_a_disk_behind_a_controller(tmp_path):
    def find_tools(runner):
        raise AssertionError

    for disk in (dataclasses.replace(DISK, transport="sata", driver="ahci"), dataclasses.replace(DISK, size=0), dataclasses.replace(DISK, kind="partition")):
        assert read_behind([disk], ScriptedRunner({}), tmp_path, find_tools).findings == {}


def test_only_tools_of_present_drivers_run_and_only_once(tmp_path):
    right, wrong = Tool("storcli", controller()), Tool("arcconf")
    found = behind(tmp_path, right, wrong, disks=(DISK, dataclasses.replace(DISK, name="sdb", path="/dev/sdb", wwn=None)))
    assert (right.reads, wrong.reads) == (1, 0)
    assert found.findings["sda"].volatile is False
    assert found.findings["sdb"].volatile is None
    assert "none of the volumes of controller 0 (MODEL, storcli) is surely this disk" in found.findings["sdb"].why


@pytest.mark.parametrize(
    ("driver", "tools"),
    [
        ("megaraid_sas", ("storcli (Broadcom)", "perccli (Dell)")),
        ("mpi3mr", ("storcli2 (Broadcom)", "perccli2 (Dell)")),
        ("aacraid", ("arcconf (Adaptec, Microchip)",)),
        ("smartpqi", ("arcconf (Microchip)", "ssacli (HPE)")),
        ("hpsa", ("ssacli (HPE)",)),
    ],
)
def test_missing_tool_is_named_with_its_vendor(tmp_path, driver, tools):
    finding = behind(tmp_path, disks=[dataclasses.replace(DISK, driver=driver)]).findings["sda"]
    assert (finding.volatile, finding.loses) == (None, False)
    assert "is not installed" in finding.why
    assert all(tool in finding.why for tool in tools)


def test_controller_without_supported_tool(tmp_path):
    assert "arcmsr" in behind(tmp_path, disks=[dataclasses.replace(DISK, driver="arcmsr")]).findings["sda"].why


def test_tool_without_matching_controller_names_alternatives(tmp_path):
    finding = behind(tmp_path, Tool("arcconf"), disks=[dataclasses.replace(DISK, driver="smartpqi")]).findings["sda"]
    assert finding.volatile is None
    assert "arcconf shows no controller there" in finding.why
    assert "ssacli (HPE)" in finding.why


def test_failing_tool_does_not_hide_the_others(tmp_path):
    other = dataclasses.replace(DISK, name="sdb", path="/dev/sdb", driver="aacraid", wwn=None)
    found = behind(tmp_path, Tool("storcli", controller()), Tool("arcconf", error="arcconf did not end."), disks=(DISK, other))
    assert found.findings["sda"].volatile is False
    assert "could not be read: arcconf did not end" in found.findings["sdb"].why
    assert found.problems == ("arcconf did not end.",)


def test_output_not_understood_is_a_problem(tmp_path):
    found = behind(tmp_path, Tool("storcli", controller(), doubts=("line 7: 'odd'",)))
    assert "line 7: 'odd'" in found.problems[0]
    assert "sda" in found.findings


def test_controller_reported_by_two_tools_is_one_controller(tmp_path):
    twins = (Tool("storcli", controller(serial="S")), Tool("perccli", controller(provider="perccli", serial="S")))
    assert behind(tmp_path, *twins).findings["sda"].volatile is False
    rebranded = (Tool("storcli", controller()), Tool("perccli", controller(provider="perccli")))
    assert behind(tmp_path, *rebranded).findings["sda"].volatile is False


def test_pass_through_drives_are_judged_by_themselves(tmp_path):
    jbod = controller(volumes=(), drives=(Drive("252:0", wwn="6" * 32, usage="jbod"),))
    found = behind(tmp_path, Tool("storcli", jbod))
    assert (dict(found.findings), found.passed_through) == ({}, {"sda"})
    hba = controller(volumes=(), mode="hba")
    assert behind(tmp_path, Tool("storcli", hba)).passed_through == {"sda"}


def test_stack_verdict(tmp_path):
    def verdict(one):
        finding = behind(tmp_path, Tool("storcli", one)).findings["sda"]
        return Stack(Devices([DISK]), {"sda": [LayerFacts("controller", **vars(finding))]}).verdict(DISK)

    good = verdict(controller(volumes=(volume(write=BACK),)))
    assert (good.verdict, good.unflushed) == (DURABLE, "kept")
    assert good.reason == (
        "/dev/sda is volume data of controller 0 (MODEL, storcli), which writes back into a protected cache (Optimal) and keeps the caches of its drives off."
    )
    assert verdict(controller(protection=FAILED, volumes=(volume(write=BACK),))).verdict == AT_RISK
    assert verdict(controller(volumes=(volume(drive_cache="default"),))).verdict == UNKNOWN


def test_real_parser_output(tmp_path):
    text = """
Smart Array P000 in Slot 0
   Controller Status: OK
   Cache Board Present: True
   Cache Status: Temporarily Disabled
   Cache Status Details: Cache disabled; low batteries.
   Drive Write Cache: Disabled
   No-Battery Write Cache: Disabled
   Battery/Capacitor Status: Failed (Replace Batteries)
   Driver Name: hpsa

   Array: A
      Status: OK

      Logical Drive: 1
         Status: OK
         Caching:  Enabled
         Unique Identifier: 66666666666666666666666666666666
"""
    tool = SsaCli(ScriptedRunner({("ssacli",): Reply(text)}), "ssacli")
    found = read_behind([dataclasses.replace(DISK, driver="hpsa")], tool.runner, tmp_path, lambda runner: [tool])
    finding = found.findings["sda"]
    assert (finding.volatile, finding.loses) == (False, False)
    assert finding.state["write"] == {"configured": "writeback", "effective": "writethrough"}
    assert finding.state["cache_reason"] == "Cache disabled; low batteries."
