# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""storcli2 and perccli2: other labels in the same frame, one property per command."""

from __future__ import annotations

import dataclasses
import json
import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller, Drive, Policy, Reading, Volume
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli import storcli2
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.storcli2 import PercCli2, StorCli2, parse
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

TOOL = "/opt/MegaRAID/storcli2/storcli2"


def answer(data, **status):
    known = {"CLI Version": "008.0005.0000.0010 Feb 22, 2023", "Controller": "0", "Status": "Success", "Description": "None", **status}
    return json.dumps({"Controllers": [{"Command Status": known, "Response Data": data}]}, indent=1)


def only(text):
    reading = parse(text)
    assert list(reading.not_understood) == []
    (controller,) = reading.controllers
    return controller


def row(number=1, current="NR,WB", default="NR,WB"):
    return {
        "DG/VD": f"0/{number}",
        "TYPE": "RAID0",
        "State": "Optl",
        "Access": "RW",
        "CurrentCache": current,
        "DefaultCache": default,
        "Size": "9.094 TiB",
        "Name": "",
    }


DRIVE = {"EID:Slt": "306:0", "PID": 293, "State": "Conf", "Status": "Online", "DG": 0, "Size": "9.094 TiB", "Intf": "SAS", "Med": "HDD", "Model": "X   "}
VOLUME = {"VD Info": row(), "PDs": [DRIVE], "VD Properties": {"Drive Write Cache Policy": "Disabled", "SCSI NAA Id": "600062B2", "OS Drive Name": "/dev/sdb"}}


@pytest.mark.parametrize(
    "current, default, read, write",
    [
        ("NR,WB", "NR,WB", Policy("none", "none"), Policy("writeback", "writeback")),
        ("NR,WT", "NR,WB", Policy("none", "none"), Policy("writeback", "writethrough")),
        ("R,AWB", "R,AWB", Policy("read_ahead", "read_ahead"), Policy("writeback_always", "writeback_always")),
        ("RA,WB", "NR,AWB", Policy("none", "read_ahead"), Policy("writeback_always", "writeback_always")),
        ("NR, WT", "-", Policy("unknown", "none"), Policy("unknown", "writethrough")),
    ],
)
def test_columns_report_configured_and_effective_policies(current, default, read, write):
    (volume,) = only(answer({"VD LIST": [row(current=current, default=default)]})).volumes
    assert (volume.read, volume.write, volume.io) == (read, write, Policy())


@pytest.mark.parametrize("column", ["NRWBD", "NR,XX", "WB", "NR;WB"])
def test_unknown_column_is_reported(column):
    reading = parse(answer({"VD LIST": [row(current=column)]}))
    assert reading.controllers[0].volumes[0].write.effective == "unknown"
    assert [problem.split(" (")[0] for problem in reading.not_understood] == [f"CurrentCache: {column}"]


def test_volumes_are_parsed_from_a_list():
    controller = only(answer({"Virtual Drives": [VOLUME, {**VOLUME, "VD Info": row(2)}]}))
    assert [volume.id for volume in controller.volumes] == ["1", "2"]
    volume = controller.volumes[0]
    assert (volume.drive_cache, volume.wwn, volume.os_device, volume.members, volume.scsi) == ("disabled", "600062b2", "/dev/sdb", ("306:0",), None)
    assert volume.size == int(9.094 * 1024**4)
    (drive,) = controller.drives
    assert (drive.address, drive.usage, drive.state, drive.media, drive.model) == ("306:0", "configured", "online", "hdd", "X")


@pytest.mark.parametrize(
    "state, status, usage",
    [("Conf", "Online", "configured"), ("UConf", "Good", "unconfigured"), ("JBOD", "Online", "jbod"), ("UConf", "GHS", "spare"), ("Conf", "DHS", "spare")],
)
def test_usage_depends_on_state_and_status(state, status, usage):
    (drive,) = only(answer({"PD LIST": [{**DRIVE, "State": state, "Status": status}]})).drives
    assert drive.usage == usage


@pytest.mark.parametrize(("status", "members"), [("DHS", ("306:0",)), ("GHS", ("306:0",)), ("Rebuild", ("306:0", "306:9"))])
def test_active_spare_is_a_member(status, members):
    other = {**DRIVE, "EID:Slt": "306:9", "Status": status}
    line = {"DG": 0, "Span": 0, "Row": 0, "EID:Slot": "306:0", "Type": "DRIVE", "State": "Conf", "Status": "Online"}
    group = [{**line, "Span": "-", "Row": "-", "EID:Slot": "-", "Type": "RAID1"}, line, {**line, "EID:Slot": "306:9", "Status": status}]
    for data in (
        {"Virtual Drives": [{**VOLUME, "PDs": [DRIVE, other]}]},
        {"VD LIST": [{**row(), "DG/VD": "0/1"}], "TOPOLOGY": group, "PD LIST": [DRIVE, other]},
    ):
        (volume,) = only(answer(data)).volumes
        assert (volume.members, volume.members_untold) == (members, 0)


@pytest.mark.parametrize("printed, known", [("On", "enabled"), ("Off", "disabled"), ("N/A", "unknown")])
def test_drive_details(printed, known):
    details = {
        "Serial Number": "S1",
        "WWN": "5000C500EF7DE7D4",
        "Firmware Revision Level": "E001",
        "LU/NS Properties": {"Current Write Cache": printed, "Default Write Cache": "On"},
    }
    (drive,) = only(answer({"Drives List": [{"Drive Information": DRIVE, "Drive Detailed Information": details}]})).drives
    assert (drive.write_cache, drive.serial, drive.wwn, drive.firmware) == (known, "S1", "5000c500ef7de7d4", "E001")


@pytest.mark.parametrize(
    "kind, status, found",
    [
        ("Supercap", "Optimal", ("capacitor", "healthy")),
        ("Supercap", "Critical", ("capacitor", "failed")),
        ("Supercap", "Charging", ("capacitor", "charging")),
        ("Battery", "Learning", ("battery", "learning")),
        ("Odd", "Failed", ("unknown", "failed")),
    ],
)
def test_energy_packs(kind, status, found):
    pack = only(answer({"Energy Pack Info": [{"Type": kind, "SubType": "FBU345", "Status": status}]})).protection
    assert (pack.kind, pack.health, pack.raw) == (*found, f"FBU345 {status}")


def test_missing_energy_pack():
    def pack(supported):
        data = {"HwCfg": {"Energy Pack": "Absent"}, "Supported Controller operations": {"Support Energy Pack": supported}}
        found = only(answer(data)).protection
        return found.kind, found.health

    assert pack("Yes") == ("unknown", "missing")
    assert pack("No") == ("none", "unknown")
    assert only(answer({"HwCfg": {"Energy Pack": "Present"}})).protection.health == "unknown"


def test_controller_fields():
    data = {
        "Basics": {"Product Name": "MegaRAID", "Serial Number": " S "},
        "Version": {"Package Version": "8.12", "Driver Name": "mpi3mr"},
        "HostInterface": {"PCI Address": "00:16:00:0"},
        "Status": {"Controller Status": "Needs Attention", "Controller Personality": "JBOD"},
        "HwCfg": {"DDR Memory Size(MiB)": 4096},
        "Supported VD operations": {"Support Changing Read Policy": "Yes", "Support Changing Disk Cache Policy": "No"},
        "Supported Controller operations": {"Support SSD Ld Disk Cache Change": "No"},
    }
    found = only(answer(data))
    assert (found.id, found.model, found.serial, found.firmware, found.driver) == ("0", "MegaRAID", "S", "8.12", "mpi3mr")
    assert (found.pci_address, found.status, found.mode, found.cache.memory) == ("0000:16:00.0", "needs_attention", "jbod", 4 << 30)
    assert found.traits == {"can_set_read": True, "can_set_drive_cache": False, "ssd_drive_cache_blocked": True}


def test_overview():
    data = {
        "Number of Controllers": 1,
        "System Overview": [{"Ctrl": 2, "Product Name": "A", "Personality": "RAID", "Status": "Optimal", "EPack": "Optimal", "SerialNumber": "S  "}],
    }
    found = only(answer(data, Controller=""))
    assert (found.id, found.model, found.serial, found.mode, found.status, found.protection.health) == ("2", "A", "S", "raid", "optimal", "healthy")


PLAIN = """\
CLI Version = 008.0004.0000.0022 Apr 28, 2023
Operating system = Linux6.8
Controller = 0
Status = Success
Description = None


/c0/v1 :
======

-------------------------------------------------------------------
DG/VD TYPE   State Access CurrentCache DefaultCache      Size Name
-------------------------------------------------------------------
0/1   RAID1  Optl  RW     NR,WT        NR,WB        1.000 TiB
-------------------------------------------------------------------


PDs for VD 1 :
============

---------------------------------------------------------------------------------------
EID:Slt PID State Status DG       Size Intf Med SED_Type   SeSz Model   Sp LU/NS Count
---------------------------------------------------------------------------------------
268:0   257 Conf  Online  0 893.75 GiB SAS  SSD Enterprise 512B MODEL   U            1
268:1   258 Conf  Online  0 893.75 GiB SAS  SSD Enterprise 512B MODEL   U            1
---------------------------------------------------------------------------------------


VD1 Properties :
==============
Strip Size = 64 KiB
Drive Write Cache Policy = Disabled
SCSI NAA Id = 600605b00e440b30000000000000aaaa

"""


def test_plain_text_of_volumes_is_read():
    (volume,) = only(PLAIN).volumes
    assert (volume.id, volume.raid_level, volume.write, volume.drive_cache) == ("1", "1", Policy("writeback", "writethrough"), "disabled")
    assert (volume.members, volume.wwn) == (("268:0", "268:1"), "600605b00e440b30000000000000aaaa")
    assert [(drive.address, drive.usage) for drive in only(PLAIN).drives] == [("268:0", "configured"), ("268:1", "configured")]


@pytest.mark.parametrize("data", [{"Number of Controllers": 0}, {"Virtual Drives": []}, {}])
def test_empty_responses(data):
    assert parse(answer(data)) == Reading()


def test_output_of_storcli_is_rejected():
    reading = parse(answer({"VD LIST": [row()]}).replace("008.0005", "007.2707"))
    assert (reading.controllers, reading.complete) == ((), False)


def provider(kind=StorCli2, replies=None):
    return kind(ScriptedRunner(replies or {}), TOOL)  # type: ignore[arg-type]


ONE = Volume(id="25", read=Policy("none", "none"), write=Policy("writeback", "writeback"), drive_cache="default", members=("306:0",))
CONTROLLER = Controller("storcli2", id="0", mode="raid", volumes=(ONE,), drives=(Drive("306:0", media="ssd"),))


@pytest.mark.parametrize(
    "attribute, value, word",
    [
        ("read", "read_ahead", "rdcache=RA"),
        ("write", "writethrough", "wrcache=WT"),
        ("write", "writeback_always", "wrcache=AWB"),
        ("drive_cache", "disabled", "pdcache=Off"),
    ],
)
def test_one_property_per_command(attribute, value, word):
    assert provider().objection(CONTROLLER, ONE, {attribute: value}, {}) is None
    assert provider().command(CONTROLLER, ONE, attribute, value) == ["/c0/v25", "set", word, "nolog", "J"]


@pytest.mark.parametrize("kind, name", [(StorCli2, "storcli2"), (PercCli2, "perccli2")])
@pytest.mark.parametrize("value", ["direct", "cached"])
def test_io_policy_is_not_supported(kind, name, value):
    reason = f"cannot have io: {value}, since {name} and its controllers have no I/O policy"
    assert provider(kind).objection(CONTROLLER, ONE, {"io": value}, {}) == reason


def test_jbods_and_single_drives_have_no_setting():
    assert "storcli2 has no setting for the cache of a JBOD drive" in (
        provider().objection(CONTROLLER, Drive("306:1", usage="jbod"), {"write_cache": "disabled"}, {}) or ""
    )
    assert "drive_cache of volume 25" in (provider().objection(CONTROLLER, CONTROLLER.drives[0], {"write_cache": "disabled"}, {}) or "")
    assert "storcli2 sets drive caches per volume" in (provider().objection(CONTROLLER, CONTROLLER, {"drive_cache.jbod": "disabled"}, {}) or "")


def test_drive_cache_change_on_ssd_volumes_can_be_unsupported():
    blocked = dataclasses.replace(CONTROLLER, traits={"ssd_drive_cache_blocked": True})
    reason = provider().objection(blocked, ONE, {"drive_cache": "enabled"}, {})
    assert reason is not None
    assert reason.endswith("(Support SSD Ld Disk Cache Change: No)")


def test_read_runs_three_commands_with_any_exit_status():
    replies = {
        (TOOL, "/call", "show", "all", "nolog", "J"): Reply(answer({"VD LIST": [row()], "Energy Pack Info": [{"Type": "Supercap", "Status": "Failed"}]}), rc=6),
        (TOOL, "/call/vall", "show", "all", "nolog", "J"): Reply(answer({"Virtual Drives": [VOLUME]}), rc=6),
        (TOOL, "/call/eall/sall", "show", "all", "nolog", "J"): Reply(answer({"Drives List": [{"Drive Information": DRIVE}]})),
    }
    one = provider(replies=replies)
    reading = one.read()
    assert (reading.complete, reading.not_understood) == (True, ())
    assert reading.controllers[0].volumes[0].drive_cache == "disabled"
    assert len(t.cast("ScriptedRunner", one.runner).calls) == 3


def test_captured_responses_are_evaluated(shared_corpus):
    refused = {
        "c0-add-vd_fail.json": "No freespace available to create VD.",
        "c0-v-delete_vd-not-exist.json": "Invalid VD number; Delete VD failed",
        "set-jbod_fail.txt": "syntax error, unexpected TOKEN_JBOD, expecting TOKEN_HOTSPARE_DRIVE",
    }
    for name in (*refused, "c0-v25-set-wrcache-wt_success.json", "c0-v25-set-rdcache-ra_success.json"):
        text = (shared_corpus / "storcli2" / name).read_text(encoding="utf-8")
        judgement = provider().judge(Completed((TOOL,), 0, text, ""))
        assert (judgement.ok, judgement.message) == (name not in refused, refused.get(name, "")), name


def test_captures_of_storcli_are_rejected(shared_corpus):
    for name in ("c0-show-all_9270cv.json", "c0-show_cisco_plain.txt"):
        reading = parse((shared_corpus / "storcli" / name).read_text(encoding="utf-8"))
        assert (reading.controllers, reading.complete) == ((), False), name


def test_words_round_trip():
    assert {storcli2.WRITE_COLUMN[word.lower()]: word for word in StorCli2.settings["write"][1].values()} == StorCli2.settings["write"][1]
    assert {storcli2.READ_COLUMN[word.lower()]: word for word in StorCli2.settings["read"][1].values()} == StorCli2.settings["read"][1]


@pytest.mark.parametrize("place", ["-", "306:?", ""])
def test_members_without_valid_address_are_counted(place):
    data = {"Virtual Drives": [{**VOLUME, "PDs": [DRIVE, {**DRIVE, "EID:Slt": place}]}]}
    (one,) = parse(answer(data)).controllers[0].volumes
    assert (one.members, one.members_untold) == (("306:0",), 1)
    topology = [{"DG": 0, "Span": 0, "Type": "DRIVE", "EID:Slot": address} for address in ("306:0", place)]
    (one,) = parse(answer({"VD LIST": [row()], "TOPOLOGY": topology})).controllers[0].volumes
    assert (one.members, one.members_untold) == (("306:0",), 1)


@pytest.mark.parametrize(
    ("data", "clause"),
    [
        ({"VD LIST": [{**row(), "DG/VD": "0/x"}]}, "DG/VD: 0/x"),
        ({"Virtual Drives": [{**VOLUME, "VD Info": {**row(), "DG/VD": "x"}}]}, "DG/VD: x"),
        ({"PD LIST": [{**DRIVE, "EID:Slt": "x:0"}]}, "EID:Slt: x:0"),
        ({"VD LIST": [row(1), row(1)]}, "DG/VD: 0/1, twice in one list"),
        ({"Virtual Drives": [VOLUME, VOLUME]}, "DG/VD: 0/1, twice in one list"),
        ({"Virtual Drives": 2, "VD LIST": [row()]}, "Virtual Drives: 2, and 1 are listed"),
    ],
)
def test_unidentified_volumes_and_drives_are_lost(data, clause):
    reading = parse(answer(data))
    assert [reported for reported in reading.lost if clause in reported]
    assert set(reading.lost) <= set(reading.not_understood)
