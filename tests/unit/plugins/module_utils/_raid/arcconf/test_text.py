# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What arcconf prints: small texts in its format, one idea each."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf import words
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.provider import parse
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.text import join
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import UNKNOWN, Controller, Policy, Reading
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.stack_facts import volume_finding

RULE = "-" * 70
SHORT = "   " + "-" * 56
END = "\nCommand completed successfully.\n"


def lines(*pairs, indent=3):
    """``label=value`` as the tool aligns them."""
    return "".join(f"{' ' * indent}{label:<{41 - indent}}: {value}\n" for label, unused, value in (pair.partition("=") for pair in pairs))


def section(title, body):
    return f"{RULE}\n{title}\n{RULE}\n{body}\n"


def part(title, *pairs):
    return f"{SHORT}\n   {title}\n{SHORT}\n{lines(*pairs)}"


def config(*sections, end=END):
    return "Controllers found: 1\n" + "".join(sections) + end


def controller(body):
    return section("Controller information", body)


def volume(*pairs, number=0):
    return section("Logical device information", f"Logical device number {number}\n{lines(*pairs)}")


def drives(*bodies):
    return section(
        "Physical Device information", "".join(f"      Device #{index}\n         Device is a Hard drive\n{body}" for index, body in enumerate(bodies))
    )


def drive(*pairs):
    return lines(*pairs, indent=9)


def only(text):
    reading = parse(text)
    assert reading.complete
    assert reading.not_understood == ()
    (one,) = reading.controllers
    return one


@pytest.mark.parametrize(
    ("pairs", "requested"),
    [
        # The old wording: mode is in force, setting was asked for.
        (
            ["Write-cache mode=Disabled (write-through)", "Write-cache setting=Enabled (write-back) when protected by battery"],
            Policy("writeback", "writethrough"),
        ),
        (["Write-cache mode=Enabled (write-back)", "Write-cache setting=Enabled (write-back) when protected by battery/ZMM"], Policy("writeback", "writeback")),
        (["Write-cache mode=Enabled (write-back)", "Write-cache setting=Enabled (write-back)"], Policy("writeback_always", "writeback_always")),
        (["Write-cache mode=Disabled (write-through)", "Write-cache setting=Disabled (write-through)"], Policy("writethrough", "writethrough")),
        # The later wording.
        (["Write-cache setting=On when protected by battery/ZMM", "Write-cache status=Off"], Policy("writeback", "writethrough")),
        (["Write-cache setting=Enabled", "Write-cache status=On"], Policy("writeback_always", "writeback_always")),
        (["Write-cache setting=Disabled", "Write-cache status=Off"], Policy("writethrough", "writethrough")),
        # It writes back although it was not asked to.
        (["Write-cache setting=Disabled", "Write-cache status=On"], Policy("writethrough", "writeback")),
        # Cards without memory say so; silence says nothing.
        (["Write-cache mode=Not supported"], Policy("writethrough", "writethrough")),
        (["Write-cache setting=Enabled"], Policy("writeback_always", UNKNOWN)),
        (["Write-cache mode=Enabled (write-back)"], Policy(UNKNOWN, "writeback")),
        ([], Policy()),
    ],
)
def test_write_policy_in_three_formats(pairs, requested):
    (one,) = only(config(volume("RAID level=1", "Read-cache mode=Enabled", *pairs))).volumes
    assert one.write == requested


@pytest.mark.parametrize(
    ("pairs", "requested"),
    [
        (["Read-cache mode=Enabled"], Policy("read_ahead", "read_ahead")),
        (["Read-cache mode=Disabled"], Policy("none", "none")),
        (["Read-cache setting=Enabled", "Read-cache status=Off"], Policy("read_ahead", "none")),
        (["Read-cache setting=Enabled"], Policy("read_ahead", UNKNOWN)),
        ([], Policy()),
    ],
)
def test_read_policy(pairs, requested):
    (one,) = only(config(volume("RAID level=1", "Write-cache mode=Not supported", *pairs))).volumes
    assert one.read == requested


SMART_VOLUME = (
    "RAID level=1",
    "Array=0",
    "Caching=Enabled",
    "LD Acceleration Method=Controller Cache",
    "Volume Unique Identifier=600508B1001C0000000000000000ABCD",
)


def smart(*cache, volume_lines=SMART_VOLUME):
    body = lines("Controller Mode=Mixed", "Driver Name=smartpqi") + part("Cache Properties", *cache)
    return config(controller(body), section("Array Information", f"Array Number 0\n{lines('Name=A', 'SSD I/O Bypass=Disabled')}"), volume(*volume_lines))


@pytest.mark.parametrize(
    ("cache", "read", "write"),
    [
        (["Cache Status=Ok", "No-Battery Write Cache=Disabled"], "read_ahead", "writeback"),
        (["Cache Status=Ok", "No-Battery Write Cache=Disabled", "Read Cache Percentage=100 percent"], "read_ahead", "writethrough"),
        (["Cache Status=Ok", "No-Battery Write Cache=Disabled", "Read Cache Percentage=0 percent"], "none", "writeback"),
        (["Cache Status=Temporarily Disabled", "No-Battery Write Cache=Disabled"], "none", "writethrough"),
        (["Cache Status=Permanently Disabled", "No-Battery Write Cache=Disabled"], "none", "writethrough"),
        (["Cache Status=Not Configured", "No-Battery Write Cache=Disabled"], "none", "writethrough"),
        (["No-Battery Write Cache=Disabled"], UNKNOWN, UNKNOWN),
    ],
)
def test_configured_caching_and_effective_cache_state(cache, read, write):
    (one,) = only(smart(*cache)).volumes
    assert one.read == Policy("read_ahead", read)
    assert one.write == Policy("writeback", write)


def test_smartraid_writeback_without_battery_is_writeback_always():
    found = only(smart("Cache Status=Ok", "No-Battery Write Cache=Enabled"))
    assert found.volumes[0].write == Policy("writeback_always", "writeback_always")
    assert found.no_battery_write_cache == "enabled"


def test_disabled_caching_and_other_acceleration_methods():
    off = ("RAID level=1", "Caching=Disabled", "LD Acceleration Method=None")
    (one,) = only(smart("Cache Status=Ok", volume_lines=off)).volumes
    assert (one.read, one.write, one.acceleration) == (Policy("none", "none"), Policy("writethrough", "writethrough"), "none")
    bypass = ("RAID level=1", "Caching=Disabled", "LD Acceleration Method=SSD I/O Bypass")
    assert only(smart("Cache Status=Ok", volume_lines=bypass)).volumes[0].acceleration == "io_bypass"
    cached = ("RAID level=1", "Caching=Disabled", "LD Acceleration Method=maxCache")
    assert only(smart("Cache Status=Ok", volume_lines=cached)).volumes[0].acceleration == "maxcache"


def test_reason_of_a_disabled_cache_is_kept():
    found = only(smart("Cache Status=Temporarily Disabled", "Cache State Details=Temporarily Disabled(Reason: Charge level of capacitor is low)"))
    assert found.cache.status == "temporarily_disabled"
    assert found.cache.reason == "Charge level of capacitor is low"


def test_labels_apply_only_in_their_section():
    body = (
        lines("Controller Status=Optimal") + part("Controller Battery Information", "Status=Failed") + part("Controller Version Information", "Status=Nonsense")
    )
    found = only(config(controller(body), section("Array Information", f"Array Number 0\n{lines('Status=Ok')}")))
    assert (found.protection.kind, found.protection.health, found.protection.raw) == ("battery", "failed", "Failed")
    assert found.status == "optimal"


def test_no_battery_write_cache_is_not_a_drive_cache():
    text = config(drives(drive("State=Online", "Reported Channel,Device(T:L)=0,1(1:0)", "No-Battery Write Cache=Disabled")))
    assert only(text).drives[0].write_cache == UNKNOWN


@pytest.mark.parametrize(
    ("title", "pairs", "kind", "health", "charge"),
    [
        ("Controller Battery Information", ["Status=Optimal", "Over temperature=No", "Capacity remaining=99 percent"], "battery", "healthy", 99),
        ("Controller Battery Information", ["Status=Okay"], "battery", "healthy", None),
        ("Controller Battery Information", ["Status=Optimal", "Over temperature=Yes"], "battery", "degraded", None),
        ("Controller Battery Information", ["Status=Not Installed"], "battery", "missing", None),
        ("Controller Battery Information", ["Status=Maintenance mode", "Capacity remaining=62 percent"], "battery", "learning", 62),
        ("Controller Battery Information", ["Status=Charging"], "battery", "charging", None),
        ("Controller ZMM Information", ["Status=ZMM Optimal"], "capacitor", "healthy", None),
        ("Controller ZMM Information", ["Status=ZMM Charging / Not Ready"], "capacitor", "charging", None),
        ("Controller ZMM Information", ["Status=ZMM not installed"], "capacitor", "missing", None),
        ("Controller ZMM Information", ["Status=ZMM Status Unknown"], "capacitor", UNKNOWN, None),
        ("Controller Cache Backup Unit Information", ["Overall Backup Unit Status=Ready", "Charge Level=100 percent"], "capacitor", "healthy", 100),
        ("Controller Cache Backup Unit Information", ["Overall Backup Unit Status=Not Present"], "capacitor", "missing", None),
        ("Controller Cache Backup Unit Information", ["Overall Backup Unit Status=Not Ready"], "capacitor", "degraded", None),
        ("Controller Cache Backup Unit Information", ["Overall Backup Unit Status=Not Ready", "Supercap Status=Fatal"], "capacitor", "failed", None),
        ("Controller Cache Backup Unit Information", ["Overall Backup Unit Status=Not Ready", "Learn Status=Active"], "capacitor", "learning", None),
        ("Controller Cache Backup Unit Information", ["Overall Backup Unit Status=Preparing for backup"], "capacitor", "charging", None),
        ("Green Backup Information", ["Backup Power Status=Ok", "Power Type=Supercap", "Relative Charge=100 percent"], "capacitor", "healthy", 100),
        ("Green Backup Information", ["Backup Power Status=Not Fully Charged", "Power Type=Battery"], "battery", "charging", None),
        ("Green Backup Information", ["Backup Power Status=Failed (Replace Batteries/Capacitors)"], "capacitor", "failed", None),
        ("Green Backup Information", ["Backup Power Status=Hot removed since the last boot"], "capacitor", "missing", None),
    ],
)
def test_protection(title, pairs, kind, health, charge):
    found = only(config(controller(lines("Controller Status=Optimal") + part(title, *pairs)))).protection
    assert (found.kind, found.health, found.charge) == (kind, health, charge)


def test_controller_without_reported_unit_has_unknown_protection():
    assert only(config(controller(lines("Controller Status=Optimal")))).protection.health == UNKNOWN


def test_present_unit_takes_precedence_over_an_empty_slot():
    body = part("Controller Battery Information", "Status=Not Installed") + part("Controller ZMM Information", "Status=ZMM Optimal")
    assert only(config(controller(body))).protection.raw == "ZMM Optimal"


def test_drive_policies():
    old = only(config(controller("   Global Physical Device Write Cache Policy: Drive Specific\n")))
    assert old.drive_cache == {"all": "per_drive"}
    classes = part("Physical Drive Write Cache Policy Information", "Configured Drives=Default", "Unconfigured Drives=Disabled", "HBA Drives=Not Applicable")
    assert only(config(controller(lines("Controller Mode=Mixed") + classes))).drive_cache == {"configured": "default", "unconfigured": "disabled"}
    unchanged = part("Physical Drive Write Cache Policy Information", "Configured Drives=Unchanged")
    assert only(config(controller(lines("Controller Mode=Mixed") + unchanged))).drive_cache == {"configured": UNKNOWN}


def test_drives_use_their_reported_address_and_enclosures_are_ignored():
    disk = drive(
        "State=Ready", "Reported Channel,Device(T:L)=0,31(31:0)", "Transfer Speed=SATA 6.0 Gb/s", "Total Size=953869 MB", "SSD=No", "Write Cache=Unknown"
    )
    enclosure = "      Device #1\n         Device is an Enclosure services device\n" + drive("Reported Channel,Device(T:L)=2,0(0:0)", "Type=SES2")
    found = only(config(drives(disk + enclosure))).drives
    (one,) = found
    assert (one.address, one.usage, one.interface, one.media, one.write_cache) == ("0,31", "unconfigured", "sata", "hdd", UNKNOWN)
    assert one.size == 953869 * 2**20


def test_drive_without_address_is_reported_as_not_understood():
    reading = parse(config(drives(drive("State=Online", "Model=X"))))
    assert reading.controllers[0].drives == ()
    assert "Device #0" in reading.not_understood[0]


@pytest.mark.parametrize(
    ("pairs", "usage"),
    [
        (["State=Online"], "configured"),
        (["State=Online (JBOD)"], "jbod"),
        (["State=Global Hot-Spare"], "spare"),
        (["State=Raw (Pass Through)"], "hba"),
        (["State=Failed"], UNKNOWN),
        (["State=Online", "Drive Configuration Type=Data"], "configured"),
        (["State=Ready", "Drive Configuration Type=Unassigned"], "unconfigured"),
        (["State=Online", "MaxCache Assigned=Yes"], "cache"),
        (["State=Online", "maxCache Assigned=No"], "configured"),
    ],
)
def test_usage_of_drives(pairs, usage):
    assert only(config(drives(drive("Reported Channel,Device=0,3", *pairs)))).drives[0].usage == usage


def test_members_by_serial_location_and_pair():
    disks = drives(
        drive("Reported Channel,Device(T:L)=0,8(8:0)", "Reported Location=Enclosure 0, Slot 0", "Serial number=A1"),
        drive("Reported Channel,Device(T:L)=0,9(9:0)", "Reported Location=Enclosure 0, Slot 1", "Serial number=XX"),
        drive("Reported Channel,Device(T:L)=0,10(10:0)", "Reported Location=Enclosure 0, Slot 2", "Serial number=XX"),
    )
    segments = part(
        "Logical device segment information",
        "Segment 0=Present (Controller:1,Enclosure:0,Slot:7) A1",
        "Segment 1=Present (953869MB, SATA, HDD, Enclosure:0, Slot:2) XX",
        "Segment 2=Missing (953869MB, SATA, HDD, Enclosure:0, Slot:1)",
    )
    text = config(section("Logical device information", f"Logical device number 0\n{lines('RAID level=5')}{segments}"), disks)
    assert only(text).volumes[0].members == ("0,8", "0,10")
    pairs = part("Logical device segment information", "Group 0, Segment 0=Present (0,8) A1", "Group 0, Segment 1=Inconsistent (0,2)")
    alone = config(section("Logical device information", f"Logical device number 0\n{lines('RAID level=10')}{pairs}"))
    assert only(alone).volumes[0].members == ("0,8", "0,2")


def test_os_device_and_scsi_address_of_a_volume():
    disk = "Disk Name=/dev/sdd (Disk0) (Bus: 1, Target: 0, Lun: 3)"
    (one,) = only(smart("Cache Status=Ok", volume_lines=(*SMART_VOLUME, disk))).volumes
    assert (one.os_device, one.scsi, one.wwn) == ("/dev/sdd", (1, 0, 3), "600508b1001c0000000000000000abcd")
    text = config(volume("RAID level=6 Reed-Solomon", "Write-cache setting=Enabled", "Unique Identifier=947389A6", number=4))
    found = only(text)
    assert found.driver == "aacraid"
    assert (found.volumes[0].scsi, found.volumes[0].raid_level, found.volumes[0].wwn) == ((0, 4, 0), "6", "947389a6")


def test_generation_is_derived_from_driver_and_labels_not_versions():
    assert (
        only(config(controller(lines("Driver Name=smartpqi") + part("Controller Version Information", "Firmware=7.5-0 (32033)")))).traits["generation"]
        == words.SMART
    )
    assert only(config(controller(lines("Driver Name=aacraid") + part("Cache Properties", "Cache Status=Ok")))).traits["generation"] == words.AACRAID
    assert only(config(controller(part("Controller ZMM Information", "Status=ZMM Optimal")))).traits["generation"] == words.AACRAID
    assert only(config(controller(lines("Controller Status=Optimal")))).traits["generation"] == UNKNOWN


def test_pci_address_is_in_sysfs_format():
    assert only(config(controller("   PCI Address (Domain:Bus:Device:Function)   : 0:3b:0:0\n"))).pci_address == "0000:3b:00.0"


def test_max_cache_pool_in_all_spellings():
    for name in ("MaxCache", "maxCache"):
        body = lines(
            f"SSDs assigned to {name} pool=1",
            f"Maximum SSDs allowed in {name} pool=8",
            f"{name} flush and fetch rate=100",
            f"{name} Read, Write Balance Factor=5,5",
        )
        found = only(config(controller(body), drives(drive("Reported Channel,Device(T:L)=0,4(4:0)", f"{name} Capable=Yes", f"{name} Assigned=Yes")))).maxcache
        assert found is not None
        assert (found.generation, found.assigned, found.limit, found.flush_and_fetch_rate, found.read_write_balance) == ("pool", 1, 8, 100, (5, 5))
        assert found.pool == ("0,4",)
    oldest = only(config(controller(lines("SSDs assigned to MaxIQ Cache pool=0", "Maximum SSDs allowed in MaxIQ Cache pool=8", "MaxIQ cache fetch rate=0"))))
    assert oldest.maxcache is not None
    assert (oldest.maxcache.generation, oldest.maxcache.flush_and_fetch_rate) == ("pool", 0)


def test_max_cache_container():
    own = (
        "Maxcache device number 100\n"
        + lines(
            "Maxcache device name=Fast",
            "MaxCache Dirty Status=Dirty",
            "RAID level=1",
            "Status of MaxCache=Optimal",
            "Size=1024 MB",
            "MaxCache write cache status=On",
        )
        + part("Logical device segment information", "Segment 0=Present (0,17) S1")
    )
    cached = volume(
        "RAID level=5",
        "MaxCache Status=Dirty",
        "MaxCache read cache setting=Enabled",
        "MaxCache read cache status=On",
        "MaxCache write cache setting=Enabled",
        "MaxCache write cache status=Off",
        "MaxCache write cache policy=Instant Write Back",
    )
    disks = drives(drive("State=Online", "Reported Channel,Device(T:L)=0,17(17:0)"))
    found = only(config(controller(lines("MaxCache Dirty Page Threshold=75")), cached, disks, section("MaxCache 3.0 information", own)))
    assert found.maxcache is not None
    (container,) = found.maxcache.volumes
    assert (container.id, container.name, container.dirty, container.write.effective, container.members) == ("100", "Fast", "dirty", "enabled", ("0,17",))
    assert (found.maxcache.generation, found.maxcache.dirty_page_threshold) == ("container", 75)
    assert found.drives[0].usage == "cache"
    uses = found.volumes[0].maxcache
    assert uses is not None
    assert (uses.read, uses.write, uses.write_policy, uses.dirty) == (Policy("enabled", "enabled"), Policy("enabled", "disabled"), "instant_writeback", "dirty")


def test_preferred_setting_of_old_builds_is_the_configured_one():
    found = only(config(volume("Write-cache setting=Enabled", "MaxCache preferred read cache setting=Enabled", "MaxCache read cache setting=Disabled")))
    assert found.volumes[0].maxcache is not None
    assert found.volumes[0].maxcache.read == Policy("enabled", "disabled")


def test_max_cache_4_volumes_belong_to_their_data_volume():
    own = "maxCache Logical Device number 1\n" + lines(
        "maxCache Logical Device name=mc", "Associated Logical Device ID=0", "RAID level=1", "maxCache state=Dirty", "maxCache write cache policy=Write Back"
    )
    body = lines("Driver Name=smartpqi", "maxCache Version=4")
    cached = volume("RAID level=5", "Caching=Disabled", "LD Acceleration Method=maxCache")
    found = only(config(controller(body), cached, section("maxCache information", own)))
    assert found.maxcache is not None
    assert (found.maxcache.generation, found.maxcache.volumes[0].data_volume, found.maxcache.volumes[0].dirty) == ("smart", "0", "dirty")
    uses = found.volumes[0].maxcache
    assert uses is not None
    assert (uses.cache_volume, uses.write_policy, uses.write.configured, uses.read.effective) == ("1", "writeback", "enabled", "enabled")


#: A volume that would be cached if there were an SSD, on drives whose caches are off.
WISHES = ("RAID level=1", "Status of logical device=Optimal", "Write-cache setting=Disabled", "Write-cache status=Off")
OFF = drives(*(drive("State=Online", f"Reported Channel,Device(T:L)=0,{number}({number}:0)", "Write Cache=Disabled (write-through)") for number in (1, 2)))


def finding(adapter, *settings, below=""):
    members = part("Logical device segment information", "Segment 0=Present (0,1) S1", "Segment 1=Present (0,2) S2")
    one = section("Logical device information", f"Logical device number 0\n{lines(*WISHES, *settings)}{members}")
    (found,) = parse(config(controller(adapter), one, OFF, below)).controllers
    return volume_finding(found, found.volumes[0])


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("MaxIQ Cache", ("MaxIQ preferred cache setting=Enabled", "MaxIQ cache setting=Disabled")),
        ("MaxIQ Cache", ("MaxIQ preferred cache setting=Disabled", "MaxIQ cache setting=Disabled")),
        ("MaxCache", ("MaxCache preferred read cache setting=Enabled", "MaxCache read cache setting=Enabled")),
        ("maxCache", ("maxCache read cache setting=Enabled", "maxCache read cache status=Off")),
        ("maxCache", ("maxCache write cache setting=Enabled", "maxCache write cache policy=Write Back")),
        ("maxCache", ("maxCache write cache setting=Enabled",)),
    ],
)
def test_empty_pool_caches_nothing_and_does_not_affect_the_verdict(name, settings):
    empty = lines(f"SSDs assigned to {name} pool=0", f"Maximum SSDs allowed in {name} pool=8")
    found = finding(empty, *settings)
    assert (found.volatile, found.loses, found.device_loss) == (False, False, "survives")
    assert found == dataclasses.replace(finding(""), state=found.state)


@pytest.mark.parametrize(
    "adapter",
    [
        # One SSD is in the pool, or nothing is told of how many.
        lines("SSDs assigned to maxCache pool=1", "Maximum SSDs allowed in maxCache pool=8"),
        lines("Maximum SSDs allowed in maxCache pool=8"),
    ],
)
def test_pool_with_possible_ssd_is_not_treated_as_empty(adapter):
    assert finding(adapter, "maxCache write cache setting=Enabled", "maxCache write cache policy=Write Back").volatile is None


def test_empty_pool_contradicted_by_dirty_blocks_is_unknown():
    empty = lines("SSDs assigned to maxCache pool=0", "Maximum SSDs allowed in maxCache pool=8")
    assert finding(empty, "maxCache write cache policy=Write Back", "maxCache Status=Dirty").volatile is None


def test_missing_container_caches_nothing():
    adapter, settings = lines("maxCache Dirty Page Threshold=75"), ("maxCache write cache setting=Enabled", "maxCache write cache policy=Write Back")
    for message in ("No maxCache 3.0 found", "No maxCache device created", "No maxCache Array found"):
        assert finding(adapter, *settings, below=section("maxCache 3.0 information", f"   {message}\n")).volatile is False
    assert finding(adapter, *settings).volatile is None


def test_controller_without_max_cache_device():
    found = only(config(controller(lines("MaxCache Dirty Page Threshold=75")), section("MaxCache 3.0 information", "   No maxCache 3.0 found\n")))
    assert found.maxcache is not None
    assert (found.maxcache.generation, found.maxcache.volumes) == ("container", ())


@pytest.mark.parametrize(
    ("table", "commands"),
    [
        (words.WRITE_SETTING, words.WRITE_COMMANDS),
        (words.READ_SETTING, words.READ_COMMANDS),
        (words.GLOBAL_POLICY, words.GLOBAL_COMMANDS),
        (words.CACHING, words.CACHING_COMMANDS),
        (words.DRIVE_WRITE_CACHE, words.DRIVE_COMMANDS),
        (words.CLASS_POLICY, words.CLASS_POLICY_COMMANDS),
    ],
)
def test_settable_and_parsed_words_correspond(table, commands):
    assert {value for value in table.values() if value != UNKNOWN} == set(commands)
    assert all(word == word.lower() for word in table)
    assert len(set(commands.values())) == len(commands)


LIST = section(
    "Controller information",
    "   Controller ID             : Status, Slot, Mode, Name, SerialNumber, WWN\n"
    + RULE
    + "\n   Controller 1:             : Optimal, Slot 0, RAID (Expose RAW), Adaptec 6805, SIM1, 50000D11\n"
    + "   Controller 2:             : Okay, Slot 3, Mixed, Adaptec SmartRAID, 8 ports, SIM2, 50000D12\n",
)


def test_list_reports_each_controller():
    reading = parse("Controllers found: 2\n" + LIST + END)
    assert reading.not_understood == ()
    first, second = reading.controllers
    assert (first.id, first.model, first.serial, first.mode, first.status) == ("1", "Adaptec 6805", "SIM1", "raid", "optimal")
    assert (second.id, second.model, second.mode) == ("2", "Adaptec SmartRAID, 8 ports", "mixed")


def test_list_with_fewer_controllers_than_counted_is_reported():
    reading = parse("Controllers found: 3\n" + LIST + END)
    assert reading.not_understood == ("the tool found 3 controllers and reports 2",)


def test_join_keeps_controller_number_and_list_only_values():
    listed = parse("Controllers found: 2\n" + LIST + END)
    configs = {"1": parse(config(controller(lines("Controller Model=Adaptec 6805X")))), "2": Reading(complete=False, not_understood=("line 1: 'x'",))}
    joined = join(listed, configs)
    assert [one.id for one in joined.controllers] == ["1", "2"]
    assert (joined.controllers[0].model, joined.controllers[0].serial, joined.controllers[0].mode) == ("Adaptec 6805X", "SIM1", "raid")
    assert joined.not_understood == ("controller 2: line 1: 'x'", "controller 2: GETCONFIG reports nothing about it")
    assert not joined.complete


@pytest.mark.parametrize(
    "text",
    [
        "Controllers found: 0\n\nCommand completed successfully.\n",
        "Controllers found: 1\nCommand aborted.",
        "Controllers found: 1\nNew write cache mode is the same as the old write cache mode.\nThe selected parameter will be ignored.\n\nCommand aborted.",
        "Controllers found: 1\n   Current operation              : None\n\nCommand completed successfully.\n",
        "Controllers found: 1\n Usage: SETCACHE <Controller#> LOGICALDRIVE <LogicalDrive#> <logical mode> [noprompt]\n   ron : read cache on\n",
        "Invalid controller number.\n",
    ],
)
def test_outputs_without_controller(text):
    assert parse(text) == Reading()


@pytest.mark.parametrize("text", ["", "\n\n", '{"Controllers": []}', "CLI Version = 007.2707\n", "Smart Array P440 in Slot 0\n   Bus Interface: PCI\n"])
def test_foreign_output_is_rejected(text):
    reading = parse(text)
    assert (reading.controllers, reading.complete, len(reading.not_understood)) == ((), False, 1)


def test_truncated_output_is_incomplete():
    reading = parse(config(controller(lines("Controller Status=Optimal")), end=""))
    assert not reading.complete
    assert reading.controllers[0].status == "optimal"


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        (config(volume("Write-cache setting=Perhaps", "Write-cache status=On")), "Perhaps"),
        (config(volume("RAID level=1", "Size=many MB")), "many MB"),
        (config(controller("   Controller Mo\ufffd\x00de : x\n")), "Mo"),
        (config(controller("   Controller Status : Optimal\nNot indented, and no part of the format\n")), "Not indented"),
        (config(controller("")) + config(controller("")), "second output"),
        (config(volume("RAID level=1") + volume("RAID level=5")), "twice"),
        (config(controller(lines("Controller Mode=Quantum"))), "Quantum"),
    ],
)
def test_invalid_lines_are_quoted(text, quoted):
    assert any(quoted in one for one in parse(text).not_understood)


def test_unknown_labels_are_ignored():
    assert only(config(controller(lines("Flux Compensator=Armed") + part("Something New", "Status=Sideways")))).status == UNKNOWN


# ------------------------------------------------------------------------------------------------------------ what is lost

SEGMENTS = "Logical device segment information"


def volumes_and(segments, *locations):
    disks = "".join(drive(f"Reported Channel,Device(T:L)={where}", f"Serial number=S{index}") for index, where in enumerate(locations))
    body = "\n".join(f"      Device #{index}\n         Device is a Hard drive\n{text}" for index, text in enumerate(disks.split("\n\n")) if text)
    return config(
        section("Logical device information", f"Logical device number 0\n{lines('RAID level=5')}{segments}"),
        section("Physical Device information", body),
    )


@pytest.mark.parametrize(
    ("segments", "members", "untold"),
    [
        (("Segment 0=Present (Controller:1,Enclosure:0,Slot:0) S0", "Segment 1=Present (Controller:1,Enclosure:0,Slot:1) S9"), ("0,0",), 1),
        (("Segment 0=Present (Controller:1,Enclosure:0,Slot:0) S0", "Segment 1=Missing"), ("0,0",), 1),
        (("Segment 0=Present (Controller:1,Enclosure:0,Slot:0) S0", "Segment 1=Prese"), ("0,0",), 1),
        (("Segment 0=Present (Controller:1,Enclosure:0,Slot:0) S0", "S?gment 1=Present (0,1)"), ("0,0",), 1),
        (("Segment 0=Missing", "Segment 1=Missing", "Segment 0=Missing", "Segment 1=Missing"), (), 2),
        (("Segment 0=Present (0,0)", "Segment 1=Missing (9537536MB, SATA, HDD, Enclosure:1, Slot:0) S1", "Segment=State (Size) Serial"), ("0,0",), 1),
        (("Segment 0=Present (0,0) S0", "Segment 1=Present (0,1) S1"), ("0,0",), 1),
        (("Segment 0=Present (0,0) S0", "Segment 1=Present (0,0) S0"), ("0,0",), 0),
    ],
)
def test_unidentified_members_are_counted(segments, members, untold):
    (one,) = parse(volumes_and(part(SEGMENTS, *segments), "0,0(0:0)")).controllers[0].volumes
    assert (one.members, one.members_untold) == (members, untold)


def test_unidentified_members_of_pair_lists_are_counted():
    text = volume("RAID level=1", "Drive(s) (Channel,Device)=0,0 0,x")
    (one,) = parse(config(text)).controllers[0].volumes
    assert (one.members, one.members_untold) == (("0,0",), 1)


def test_member_whose_drive_has_no_address_is_unidentified():
    reading = parse(volumes_and(part(SEGMENTS, "Segment 0=Present (Controller:1,Enclosure:0,Slot:0) S0"), "0,?(0:0)"))
    (one,) = reading.controllers[0].volumes
    assert (one.members, one.members_untold, reading.controllers[0].drives) == ((), 1, ())
    assert len(reading.lost) == 1
    assert "a drive without its channel and device" in reading.lost[0]
    assert reading.lost[0] in reading.not_understood


TWO_VOLUMES = config(
    section(
        "Logical device information",
        "".join(
            f"Logical device number {number}\n{lines('Logical device name=V', 'RAID level=1', 'Write-cache setting=Disabled')}"
            f"{part(SEGMENTS, f'Segment 0=Present (0,{number}) S{number}')}\n"
            for number in (0, 1)
        ),
    ),
    drives(*(drive("Vendor=X", f"Reported Channel,Device(T:L)=0,{number}(0:0)", f"Serial number=S{number}") for number in (0, 1))),
)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(
    "heading", ["Logical dev\x00ce number {}", "Logical device number {}x", "Logical device: number {}", "   logical device number {}x", None]
)
def test_volume_with_damaged_heading_is_lost(number, heading):
    line = f"Logical device number {number}\n"
    reading = parse(TWO_VOLUMES.replace(line, "" if heading is None else f"{heading.format(number)}\n"))
    assert [one.id for one in reading.controllers[0].volumes] == [str(1 - number)]
    assert reading.lost
    assert set(reading.lost) <= set(reading.not_understood)
    assert join(Reading((Controller("arcconf", "1"),)), {"1": reading}).lost == tuple(f"controller 1: {message}" for message in reading.lost)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("heading", ["Dev\x00ce #{}", "Device #{}x", "Device: #{}", "Device {}", None])
def test_drive_with_damaged_heading_is_lost(number, heading):
    line = f"      Device #{number}\n"
    reading = parse(TWO_VOLUMES.replace(line, "" if heading is None else f"      {heading.format(number)}\n"))
    assert [one.address for one in reading.controllers[0].drives] == [f"0,{1 - number}"]
    assert reading.lost


def test_drive_below_channel_is_lost_with_its_heading():
    text = TWO_VOLUMES.replace("      Device #0\n", "   Channel #0:\n      Devjce #0\n")
    reading = parse(text)
    assert [one.address for one in reading.controllers[0].drives] == ["0,1"]
    assert reading.lost


def test_enclosure_with_damaged_heading_is_not_lost():
    enclosure = "      Device ?\n         Device is an Enclosure services device\n" + drive("Reported Channel,Device(T:L)=2,0(0:0)")
    reading = parse(TWO_VOLUMES.replace(END, enclosure + END))
    assert len(reading.controllers[0].drives) == 2
    assert (bool(reading.not_understood), reading.lost) == (True, ())


def test_duplicate_volume_number_is_reported_as_lost():
    reading = parse(TWO_VOLUMES.replace("Logical device number 1\n", "Logical device number 0\n"))
    assert any("twice in one output" in message for message in reading.lost)


def test_volumes_missing_from_the_controller_count_are_lost():
    two = controller(lines("Controller Model=X", "Logical devices/Failed/Degraded=2/0/0")) + volume("RAID level=1")
    assert [message for message in parse(config(two)).lost if "volumes, and 1 are reported" in message]
    assert parse(config(two.replace("2/0/0", "1/0/0"))).lost == ()
    assert parse(config(controller(lines("Controller Model=X", "Logical devices/Failed/Degraded=2/0/0")))).lost == ()


def test_controllers_missing_from_list_are_lost():
    listed = parse(section("Controller information", "   Controller 1:   : Optimal, Slot 0, Mixed, X, S, W\n").join(("Controllers found: 3\n", END)))
    assert listed.lost == ("the tool found 3 controllers and reports 1",)
    assert listed.lost[0] in listed.not_understood
    joined = join(listed, {"1": parse(config(controller(lines("Controller Model=X")))), "2": Reading()})
    assert joined.lost == (*listed.lost, "controller 2: GETCONFIG reports nothing about it")


def test_unused_smartraid_cache_has_no_ratio():
    message = part("Cache Properties", "Cache Status=Not Configured", "Read Cache Percentage=Not Applicable", "Write Cache Percentage=Not Applicable")
    one = only(config(controller(lines("Controller Model=X", "Driver Name=smartpqi") + message)))
    assert (one.cache_ratio, one.cache.status) == (None, "not_configured")
