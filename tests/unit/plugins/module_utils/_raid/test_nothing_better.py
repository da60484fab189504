# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is missing from an output, or is not understood in it, makes no conclusion better than unknown.

Rows, lists, columns and lines are taken out of each output, and values replaced by words that no tool prints: nothing becomes a bare drive,
durable, off, healthy or new by that. What the whole output already says may stay.
"""

from __future__ import annotations

import copy
import json
import pathlib
import random
import re
import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache import providers as drive_cache
from ansible_collections.cachefleet.storage.plugins.module_utils._device.wear import parse_smartctl
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import in_force, plan, registry
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import parse_controllers
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.stack_facts import read_behind, volume_finding
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli import provider as storcli
from ansible_collections.cachefleet.storage.tests.unit.support.raid_outputs import PARSERS, outputs_of
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

DATA = pathlib.Path(__file__).resolve().parents[3] / "data"
UNKNOWN_WORD = "Zzyx"
LARGEST = 40_000
#: Damages of each output that are tried, chosen by a fixed seed.
MOST = 60

# Damages


def damaged(text):
    return damaged_json(text) if text.lstrip().startswith("{") else damaged_text(text)


def damaged_text(text):
    """Without one line, without all lines of one label, and with another value on one line."""
    lines = text.splitlines(keepends=True)
    labels = {label for line in lines for label in [re.split(r"\s*[:=]", line)[0].strip()] if label}
    for at, line in enumerate(lines):
        if line.strip():
            yield "".join(lines[:at] + lines[at + 1 :])
        found = re.match(r"(.*?[:=]\s*)(\S.*)\n", line)
        if found:
            yield "".join((*lines[:at], f"{found[1]}{UNKNOWN_WORD}\n", *lines[at + 1 :]))
    for label in sorted(labels):
        yield "".join(line for line in lines if not line.strip().startswith(label))


def damaged_json(text):
    """Without one row, one list, one label in all places, or all values of one label."""
    whole = json.loads(text, strict=False)
    labels = sorted({str(key) for node in nodes(whole) if isinstance(node, dict) for key in node} - {"Controllers", "Command Status", "CLI Version"})
    for label in labels:
        for change in ("gone", "strange", "other case"):
            changed = copy.deepcopy(whole)
            for node in nodes(changed):
                if isinstance(node, dict) and label in node:
                    value = node.pop(label)
                    if change == "strange" and not isinstance(value, (dict, list)):
                        node[label] = UNKNOWN_WORD
                    elif change == "other case":
                        node[label.lower()] = value
            yield json.dumps(changed)
    count = sum(isinstance(node, list) for node in nodes(whole))
    for index in range(count):
        length = len([node for node in nodes(whole) if isinstance(node, list)][index])
        for row in (*range(length), None):
            changed = copy.deepcopy(whole)
            place = [node for node in nodes(changed) if isinstance(node, list)][index]
            del place[slice(None) if row is None else row]
            yield json.dumps(changed)


def nodes(node):
    found, waiting = [], [node]
    while waiting:
        one = waiting.pop(0)
        found.append(one)
        waiting += [*one.values()] if isinstance(one, dict) else one if isinstance(one, list) else []
    return found


def some(variants):
    known = list(dict.fromkeys(variants))
    return random.Random(11).sample(known, min(MOST, len(known)))


# Conclusions


def favourable(reading):
    """What is good news for those who store data behind a controller, unless it is doubted."""
    found: set[tuple[str, ...]] = set()
    for one in reading.controllers:
        at = one.id if len(reading.controllers) > 1 else "the only one"
        if at == "unknown" or not reading.complete or reading.lost_for(one.id):
            continue
        if one.mode in ("hba", "jbod") and not one.volumes:
            found.add(("bare drives", at))
        if one.protection.protects:
            found.add(("healthy", at))
        found |= {("off", at, name) for name, value in one.drive_cache.items() if value == "disabled"}
        found |= {("off", at, drive.address) for drive in one.drives if drive.write_cache == "disabled"}
        for volume in one.volumes:
            finding = volume_finding(one, volume)
            found |= {("durable", at, volume.id)} if finding.volatile is False else set()
            found |= {("survives", at, volume.id)} if finding.device_loss == "survives" else set()
            found |= {("through", at, volume.id)} if volume.write.effective == "writethrough" else set()
            found |= {("off", at, volume.id)} if volume.drive_cache == "disabled" else set()
    return found


@pytest.mark.parametrize("tool", PARSERS)
def test_captured_outputs_of_raid_tools(tool, shared_corpus):
    parse = PARSERS[tool]
    better, news = [], 0
    for path, text in outputs_of(shared_corpus, tool, LARGEST).items():
        if text.lstrip().startswith("{") and not parse(text).complete:
            continue
        before = favourable(parse(text))
        news += len(before)
        better += [(path.name, sorted(favourable(parse(variant)) - before)) for variant in some(damaged(text)) if favourable(parse(variant)) - before]
    assert better == []
    assert news


# Hosts: everything that a tool answers, and what is concluded about their disks

NAA = "600605b00e440b30000000000000aaaa"


def answer(data=None, description="None", number=0, version="007.3503.0000.0000", **status):
    head = {"CLI Version": version, "Controller": number, "Status": "Success", "Description": description, **status}
    return {"Command Status": head, **({} if data is None else {"Response Data": data})}


def pd(slot, state="Onln", group=0, kind="-", enclosure="252"):
    return {"EID:Slt": f"{enclosure}:{slot}", "DID": slot, "State": state, "DG": group, "Size": "1.000 TB", "Intf": "SAS", "Med": "HDD", "Type": kind}


def details(slot, cache, row):
    path = f"Drive /c0/e252/s{slot}"
    return {path: [row], f"{path} - Detailed Information": {f"{path} Device attributes": {"SN": f"S{slot}", "Write Cache": cache}}}


def megaraid(cache, caches, unit, state="Optl"):
    row = {"DG/VD": "0/0", "TYPE": "RAID1", "State": state, "Cache": cache, "Cac": "-", "Size": "1.000 TB", "Name": ""}
    drives = [pd(0), pd(1)]
    summary = {
        "Basics": {"Controller": 0, "Model": "MODEL", "Serial Number": "C0", "PCI Address": "00:65:00:00"},
        "Version": {"Driver Name": "megaraid_sas"},
        "Status": {"Controller Status": "Optimal", "BBU Status": 0 if unit == "Optimal" else 1024, "Current Personality": "RAID-Mode "},
        "HwCfg": {"BBU": "Present", "On Board Memory Size": "1024MB"},
        "Virtual Drives": 1,
        "VD LIST": [row],
        "Physical Drives": 2,
        "PD LIST": drives,
        "Cachevault_Info": [{"Model": "CVPM02", "State": unit}],
    }
    volumes = {"/c0/v0": [row], "PDs for VD 0": drives, "VD0 Properties": {"Write Cache(initial setting)": "WriteBack", "SCSI NAA Id": NAA}}
    return {
        "show all": [answer(summary)],
        "vall": [answer(volumes)],
        "sall": [answer({**details(0, caches[0], drives[0]), **details(1, caches[1], drives[1])})],
    }


def adapter(rows):
    """IR firmware of an LSI adapter with that many volumes in its list."""
    row = {"VD": "0", "TYPE": "RAID1", "State": "Optl", "Access": "RW", "Cache": "NRWTD", "Size": "1.000 TB", "Name": ""}
    drives = [pd(slot, "Online" if rows else "UGood", "-", enclosure=" ") for slot in (0, 1)]
    summary = {"Product Name": "LSI3008-IR", "Serial Number": "C1", "PCI Address": "00:65:00:00", "Driver Name": "mpt3sas", "PD LIST": drives}
    listed = {"Virtual Drives": rows, "VD LIST": [row] * rows} if rows else {}
    return {
        "show all": [answer({**summary, "Physical Drives": 2, **listed})],
        "vall": [answer(None, "Un-supported command", Status="Failure")],
        "sall": [answer(None, "Un-supported command", Status="Failure")],
    }


HOSTS: dict[str, tuple[dict[str, list[t.Any]], str, str]] = {
    "a drive's cache is on": (megaraid("NRWTD", ("Disabled", "Enabled"), "Optimal"), "megaraid_sas", "2:0:0"),
    "both drives' caches are on": (megaraid("RWBD", ("Enabled", "Enabled"), "Optimal"), "megaraid_sas", "2:0:0"),
    "the unit has failed": (megaraid("RAWBD", ("Disabled", "Disabled"), "Failed"), "megaraid_sas", "2:0:0"),
    "nothing about the drives": (megaraid("NRWTD", ("N/A", "N/A"), "Optimal", "Dgrd"), "megaraid_sas", "2:0:0"),
    "a good volume": (megaraid("RWBD", ("Disabled", "Disabled"), "Optimal"), "megaraid_sas", "2:0:0"),
    "an IR volume": (adapter(1), "mpt3sas", "1:0:0"),
    "an IR volume that is not listed": (adapter(0), "mpt3sas", "1:0:0"),
}


def place(root, driver, address):
    channel = address.rpartition(":")[0]
    folder = root / f"sys/devices/pci0000:64/0000:64:00.0/0000:65:00.0/host0/target0:{channel}/0:{address}/block/sda"
    (folder / "device").mkdir(parents=True)
    (root / "sys/class/block").mkdir(parents=True)
    (root / "sys/class/block/sda").symlink_to(folder)
    (root / "sys/class/scsi_host/host0").mkdir(parents=True)
    (root / "sys/class/scsi_host/host0/proc_name").write_text(f"{driver}\n")
    return BlockDevice("sda", "/dev/sda", "8:0", size=1 << 40, transport="raid", driver=driver, wwn=f"0x{NAA}" if driver == "megaraid_sas" else None)


def concluded(answers, disk, root):
    words = {"show all": ("/call", "show", "all"), "vall": ("/call/vall",), "sall": ("/call/eall/sall",)}
    refused = json.dumps({"Controllers": [answer(None, "Un-supported command", Status="Failure")]})
    replies = {("storcli",): Reply(refused), **{("storcli", *words[name]): Reply(text) for name, text in answers.items()}}
    runner = ScriptedRunner(replies)
    found = read_behind([disk], runner, root, lambda runner: [storcli.StorCli(runner, "storcli")])
    if "sda" in found.passed_through:
        return {"bare drive"}
    finding = found.findings["sda"]
    return {word for word, good in (("durable", finding.volatile is False), ("survives", finding.device_loss == "survives")) if good}


@pytest.mark.parametrize("name", HOSTS)
def test_disks_behind_damaged_outputs(name, tmp_path):
    answers, driver, address = HOSTS[name]
    disk = place(tmp_path, driver, address)
    whole = {command: json.dumps({"Controllers": blocks}) for command, blocks in answers.items()}
    before = concluded(whole, disk, tmp_path)
    assert "bare drive" not in before
    assert ("durable" in before) is (name == "a good volume")
    for command, text in whole.items():
        for variant in damaged(text):
            assert concluded({**whole, command: variant}, disk, tmp_path) <= before, (command, variant)
        # A second loss may hide the first one.
        for first, second in zip(some(damaged(text)), some(reversed(list(damaged(text))))):
            joined = {**whole, command: first, **({"sall": second} if command == "vall" else {})}
            assert concluded(joined, disk, tmp_path) <= before, (command, first, second)


def test_volume_of_an_adapter_is_no_bare_drive(tmp_path):
    for name, outcome in (("an IR volume", {"survives"}), ("an IR volume that is not listed", set())):
        answers, driver, address = HOSTS[name]
        root = tmp_path / name.replace(" ", "_")
        disk = place(root, driver, address)
        assert concluded({command: json.dumps({"Controllers": blocks}) for command, blocks in answers.items()}, disk, root) == outcome
        assert read_behind([disk], ScriptedRunner({}), root, lambda runner: []).findings["sda"].volatile is None


# What is set for all


def state(*readings):
    answers = zip((("/call", "show", "all"), ("/call/vall",), ("/call/eall/sall",), ("/call", "show", "jbodwritecache")), readings)
    replies = {("storcli", *words): Reply(text) for words, text in answers}
    tool = storcli.StorCli(ScriptedRunner({("storcli",): Reply(json.dumps({"Controllers": []})), **replies}), "storcli")
    return registry.read_host([tool])


def test_loss_of_one_controller_does_not_stop_another_one():
    good = megaraid("RWBD", ("Disabled", "Disabled"), "Optimal")
    damaged_row = {"DG/VD": "0/?", "TYPE": "RAID1", "State": "Optl", "Cache": "RWBD"}
    other = answer({"Basics": {"Model": "OTHER"}, "Version": {"Driver Name": "megaraid_sas"}, "VD LIST": [damaged_row]}, number=1)
    refused = answer(None, "No VDs have been configured.", 1, Status="Failure")
    host = state(*(json.dumps({"Controllers": [*good[name], one]}) for name, one in (("show all", other), ("vall", refused), ("sall", refused))))
    wanted = {"provider": "storcli", "volumes": [{"id": "all", "write": "writethrough"}]}
    steps, _notes = plan.plan(host, parse_controllers([{**wanted, "id": "0"}]))
    assert [(step.item, step.attribute) for step in steps] == [("storcli controller 0 volume 0", "write")]
    with pytest.raises(NotUnderstood, match="not everything that is there could be read"):
        plan.plan(host, parse_controllers([{**wanted, "id": "1"}]))


@pytest.mark.parametrize(
    ("kind", "found", "words"),
    [("JBOD", "enabled", "reported by 2 of its drives (252:0; 252:1)"), ("-", "unknown", "2 drives whose use is not reported have it enabled")],
)
def test_caches_of_jbod_drives_that_are_printed_as_online(kind, found, words):
    rows = [pd(slot, "Onln", "-", kind) for slot in (0, 1)]
    summary = {
        "Basics": {"Model": "MODEL"},
        "Version": {"Driver Name": "megaraid_sas"},
        "Supported Adapter Operations": {"Support JBOD Write cache": "Yes"},
        "Drive LIST": rows,
    }
    policy = {"Controller Properties": [{"Ctrl_Prop": "JBOD Write Cache", "Value": "Off"}]}
    drives = {key: value for row in rows for key, value in details(row["DID"], "Enabled", row).items()}
    blocks = (answer(summary), answer(None, "No VDs have been configured.", Status="Failure"), answer(drives), answer(policy))
    host = state(*(json.dumps({"Controllers": [block]}) for block in blocks))
    (one,) = in_force.not_in_force(host, parse_controllers([{"provider": "storcli", "id": "0", "drive_cache": {"jbod": "disabled"}}]))
    assert (one.found, one.must) == (found, found == "enabled")
    assert words in one.cause


# Drives


def smart(**further):
    rows = [
        {"id": 177, "name": "Wear_Leveling_Count", "value": 60, "thresh": 0, "raw": {"value": 800, "string": "800"}},
        {"id": 231, "name": "SSD_Life_Left", "value": 100, "thresh": 0, "raw": {"value": 60, "string": "60"}},
        {"id": 230, "name": "Media_Wearout_Indicator", "value": 61, "thresh": 0, "raw": {"value": 0x280014002800, "string": "0x280014002800"}},
        {"id": 202, "name": "Percent_Lifetime_Remain", "value": 60, "thresh": 1, "raw": {"value": 40, "string": "40"}},
    ]
    return json.dumps({"device": {"protocol": "ATA"}, "in_smartctl_database": True, "ata_smart_attributes": {"table": rows}, **further})


def wear(text):
    try:
        return parse_smartctl(text, 0, "sda", "/dev/sda").wear_used_percent
    except NotUnderstood:
        return None


def worn(shared_corpus):
    for row in range(4):
        one = json.loads(smart(model_family="Phison Driven SSDs"))
        one["ata_smart_attributes"]["table"] = [one["ata_smart_attributes"]["table"][row]]
        yield json.dumps(one)
    yield smart()
    page = {"table": [{"name": "Percentage Used Endurance Indicator", "value": 40, "flags": {"valid": True}}]}
    yield smart(ata_device_statistics={"pages": [page]})
    yield json.dumps({"device": {"protocol": "NVMe"}, "nvme_smart_health_information_log": {"percentage_used": 40, "available_spare": 9}})
    yield json.dumps({"device": {"protocol": "SCSI"}, "scsi_percentage_used_endurance_indicator": 40})
    for path in sorted((shared_corpus / "smartctl").glob("*.json")):
        yield path.read_text(encoding="utf-8")


def test_wear_does_not_decrease_with_what_is_missing(shared_corpus):
    known = 0
    for text in worn(shared_corpus):
        before = wear(text)
        known += before is not None
        for variant in damaged_json(text):
            after = wear(variant)
            assert after is None or (before is not None and after >= before), (before, after, variant[:2000])
    assert known > 6


def pages(text):
    return {(device, False) for device, page in drive_cache.parse_sdparm(text).items() if not page.enabled}


def feature(text):
    try:
        return set() if drive_cache.parse_nvme_feature(text) else {"off"}
    except NotUnderstood:
        return set()


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (lambda text: {(device, word) for device, word in drive_cache.parse_hdparm(text).items() if word == "disabled"}, "hdparm-get.txt"),
        (lambda text: {(device, word) for device, word in drive_cache.parse_hdparm(text).items() if word == "disabled"}, "hdparm-off.txt"),
        (pages, "sdparm-get.txt"),
        (feature, "nvme-feature-on-verbose.txt"),
        (feature, "nvme-feature-on.txt"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_caches_of_drives_are_not_off(parse, text):
    whole = (DATA / "drive_cache" / text).read_text(encoding="utf-8")
    for sample in (whole, whole.replace("write-caching =  1 (on)", "write-caching =  0 (off)", 1), whole.replace("WCE           0", "WCE           1", 1)):
        before = parse(sample)
        for variant in damaged_text(sample):
            assert parse(variant) <= before, variant
