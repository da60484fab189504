# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The simulated arcconf prints what captured outputs print: the same lines in the same order, apart from what names a machine.

For each capture a state is made by hand that has the same volumes, drives and settings. Compared are whole outputs, line by
line: label, indent, column of the colon, rules, blank lines and trailing blanks always; of values the words that say something
(On, Disabled, Optimal, …), while numbers, sizes, names, serial numbers and versions are reduced to a mark.
"""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest

from ansible_collections.cachefleet.storage.tests.simulators.arcconf import Arcconf
from ansible_collections.cachefleet.storage.tests.simulators.arcconf_models import MODELS

State = dict[str, t.Any]

#: Values that are compared word by word.
_WORDS = re.compile(
    r"(?i)(enabled|disabled|on|off|yes|no|true|false|none|unknown|clean|dirty|optimal|degraded|ok|ready|online|default|idle|inactive|supported|failed"
    r"|not (applicable|available|configured|present|installed|supported|mounted)|zmm .*|on when protected by .*|write back|controller cache"
    r"|(enabled|disabled) \(write-(back|through)\).*|drive specific|mixed|hba|raid \(.*\)|raw \(pass through\)|hard drive|data|unassigned|success"
    r"|sas/sata|scsi|pcie|high|\d+ percent|serial attached scsi|serial ata|sas 4k|\d+ bytes|4k bytes|\d,\d|[0-9]{1,2}|full rpm.*|smartpqi|aacraid)"
)
# Labels whose values belong to the machine, whatever they look like.
_MACHINE = re.compile(
    r"(?i).*(temperature|slot|name|model|size|space|vendor|firmware|bios|driver|flash|version|serial|wide|address|speed|rate|channel,device|location"
    r"|identifier|unique|sensor|memory|parity|stripe|revision|sectors|hours|faults|hot plug|segment|device \d|consumption|backplane|during post|bbs"
    r"|consistency check|task priority|copyback|collection mode|partitioned|bootable|additional details|supported power states|link width|pci|reported"
    r"|count|ports|voltage|current|health|life|fru|id$|values?$|interface|type|phy|defunct|s\.m\.a\.r\.t|performance mode|sanitize .*|threshold|maximum"
    r"|rotational|ncq|spinup|errors|failures|mount points).*"
)
_MEMBER = re.compile(r"(Group \d+, )?Segment \d+|Device \d+|Logical \d+")
# Labels whose values are numbers in a form that a reader depends on.
_FORMATTED = re.compile(
    r"(?i)(total |used |unused |reserved )?size|parity space|stripe-unit size|full stripe size|cache memory|.*percentage|reported (channel|location|esd).*"
    r"|.*threshold size|transfer speed|programmed max speed|.* link rate|temperature|.* temperature|logical devices/failed/degraded|installed memory"
)


def shape(text: str) -> list[str]:
    """The lines of an output without what belongs to one machine."""
    shaped = []
    for line in text.splitlines():
        found = re.fullmatch(r"( *)(.*?)( *):(?: (.*)|)", line)
        if not found or line.startswith(("Controllers", "-")):
            shaped.append(re.sub(r"#\d+|number \d+", "#", line))
            continue
        indent, label, gap, value = found.groups()
        text_of_value = "" if value is None else value
        if _MEMBER.fullmatch(label) and "(" in text_of_value:
            # The serial number after the bracket: right-justified or after one blank.
            text_of_value = re.sub(r"\)( +)\S*$", lambda end: ")  S" if len(end.group(1)) > 1 else ") S", re.sub(r"\d+(?=[^)]*\))", "9", text_of_value))
            shaped.append(f"{indent}{re.sub(r'[0-9]+', '9', label)}: {text_of_value}")
            continue
        if _FORMATTED.fullmatch(label):
            shaped.append(f"{indent}{label}{gap}: {re.sub(r'-?[0-9]+', '9', text_of_value)}")
            continue
        told = _WORDS.fullmatch(text_of_value.strip()) and not _MACHINE.fullmatch(label)
        label = re.sub(r"\d+", "9", label) + "_" * (len(label) - len(re.sub(r"\d+", "9", label)))
        shaped.append(f"{indent}{label}{gap}: {text_of_value.strip() if told else '…' if text_of_value.strip() else ''}")
    return shaped


def printed(controller: State, words: str, **faults: t.Any) -> str:
    return Arcconf({"faults": faults, "controllers": [controller]}).answer(words.split(), "").stdout


def made(model: str, kinds: str, **options: t.Any) -> State:
    """A controller with one drive per letter: H hard disk, S SSD; small letters: SATA, capitals: SAS."""
    controller = (
        MODELS[model](drives=kinds.lower().count("h") or None, ssds=0, **options) if model in _TAKES_SSDS else MODELS[model](drives=len(kinds), **options)
    )
    for letter, drive in zip(kinds, controller["drives"], strict=False):
        drive.update(ssd=letter in "sS", bus="SAS" if letter.isupper() else "SATA")
    return controller


_TAKES_SSDS = ("Adaptec 6805Q", "Adaptec ASR-7805Q", "Adaptec ASR-81605ZQ", "Adaptec SmartRAID 3154-8i")


def compare(ours: str, theirs: str) -> None:
    assert shape(ours) == shape(theirs)


@pytest.fixture
def captured(shared_corpus: pathlib.Path) -> t.Callable[[str], str]:
    def read(name: str) -> str:
        return (shared_corpus / "arcconf" / name).read_text(encoding="utf-8", errors="surrogateescape")

    return read


Captured = t.Callable[[str], str]


def test_series6_old_format(captured):
    controller = made("Adaptec ASR-6805", "hhhh", raid="5", build="old")
    controller["volumes"][0]["write"] = "wb"
    for drive in controller["drives"]:
        drive["vendor"] = ""
    compare(printed(controller, "GETCONFIG 1 AL"), captured("getconfig-al_adaptec-6405_zmm-optimal.txt"))


def test_series6_unprotected_writeback(captured):
    controller = made("Adaptec ASR-6805", "hhhh", raid="10", build="middle")
    controller.update(location="enclosure", enclosure={"vendor": "ADAPTEC", "model": "Virtual SGPIO", "firmware": ""})
    controller["volumes"][0]["write"] = "wb"
    for drive in controller["drives"]:
        drive.update(write_cache="wt", wwn="")
        drive["facts"] = {"transfer speed": "SATA 3.0 Gb/s"}
    theirs = captured("getconfig-al_adaptec-6405_zmm-not-installed-wb.txt").partition("\n")[2]  # the command itself was pasted, too
    compare(printed(controller, "GETCONFIG 1 AL", zmm_not_installed=True), theirs)


def test_series6_adapter_of_a_new_build(captured):
    controller = made("Adaptec ASR-6805", "hh", build="new")
    compare(printed(controller, "GETCONFIG 1 AD", zmm_not_installed=True), captured("getconfig-ad_adaptec-6805_zmm-not-installed.txt"))


def test_series6_drives_of_a_new_build(captured):
    theirs = captured("getconfig-pd_adaptec-6805.txt")
    controller = made("Adaptec ASR-6805", "h" * 8, build="new")
    for drive, temperature in zip(controller["drives"], re.findall(r"Temperature +: (.*)", theirs), strict=True):
        drive["facts"] = {"temperature": temperature}
    controller["enclosure"] = None
    compare(printed(controller, "GETCONFIG 1 PD"), theirs.rstrip("\n"))


def test_volume_in_current_format(captured):
    controller = made("Adaptec ASR-6805", "ssss", raid="10", build="new")
    controller["volumes"][0]["write"] = "wb"
    for drive in controller["drives"]:
        drive.update(ssd=True)
    controller["volumes"][0]["facts"] = {"device type": "HDD"}  # so says the capture, of SSDs
    ours = printed(controller, "GETCONFIG 1 LD").splitlines()
    theirs = captured("netdata_getconfig-ld-current.txt").splitlines()
    compare("\n".join(ours[2 : 2 + len(theirs)]), "\n".join(theirs))


@pytest.mark.parametrize(("name", "cache"), [("wt", "wt"), ("wb", "wb")])
def test_maxcache_2(captured, name, cache):
    theirs = captured(f"getconfig-al_adaptec-6805q_maxcache2-drives-{name}.txt")
    count = len(re.findall(r"Device #\d+", theirs))
    controller = MODELS["Adaptec 6805Q"](drives=count - 1, ssds=0, raid="6")
    pool = MODELS["Adaptec 6805Q"](drives=0, ssds=1)["drives"][0]
    pool.update(bus="SATA", vendor="", wwn="", write_cache="wb", facts={"supported power states": "…"})
    controller["drives"].insert(0, pool)
    written = iter(re.findall(r"Write Cache +: \w+ \(write-(\w+)", theirs))
    for drive in controller["drives"]:
        drive["write_cache"] = {"back": "wb", "through": "wt"}[next(written)]
    controller["volumes"][0]["maxcache"]["read"] = True
    controller["maxcache"]["balance"] = [int(part) for part in re.findall(r"Balance Factor +: (\d+),(\d+)", theirs)[0]]
    words = ["GETCONFIG", "2", "AL"]
    two = Arcconf({"controllers": [MODELS["Adaptec 6805Q"](), controller]}).answer(words, "").stdout
    compare(two, theirs)


def test_maxcache_3(captured):
    kinds = "sss" + "H" * 6 + "sss" + "ss"
    controller = MODELS["Adaptec ASR-7805Q"](volumes=1, drives=len(kinds), ssds=0, maxcache=False)
    drives = controller["drives"]
    for letter, drive in zip(kinds, drives, strict=True):
        drive.update(ssd=letter == "s", bus="SATA" if letter == "s" else "SAS", vendor="ATA" if letter == "s" else "SEAGATE")
        drive["wwn"] = drive["wwn"] if letter == "H" else ""
        drive["facts"] = {"supported power states": "…"}
    template = controller["volumes"][0]
    controller["volumes"] = [
        {**template, "id": number, "raid": raid, "read": number == 2, "write": "wbb" if number == 2 else "wt", "maxcache": dict(template["maxcache"]),
         "members": [[0, drive["device"]] for drive in chosen]}
        for number, (raid, chosen) in enumerate((("1", drives[12:14]), ("1", drives[0:2]), ("5", drives[3:9])))
    ]  # fmt: skip
    for spare in (2, 11):
        drives[spare]["state"] = "Dedicated Hot-Spare"
    for cached in drives[9:11]:
        cached["facts"]["unused size"] = "24000 MB"
    controller["volumes"][2]["maxcache"].update(read=True, write=True)
    controller["maxcache"]["containers"] = [
        {"id": 100, "name": "x", "raid": "1", "size": 1, "status": "Optimal", "members": [[0, drive["device"]] for drive in drives[9:11]], "data": None}
    ]
    controller["enclosure"] = {"vendor": "LSI", "model": "x", "firmware": "1"}
    theirs = captured("getconfig-al_asr7805q_maxcache3-wbb.txt").rstrip("\n")
    # Not simulated: hot spares, and the sensors of a real enclosure.
    theirs = re.sub(r"(?m)^ +(Dedicated Spare for|Dedicated Hot-Spare|Fan \d status|Temperature Sensor Status \d) .*\n", "", theirs)
    theirs = theirs.replace("Protected by Hot-Spare                   : Yes", "Protected by Hot-Spare                   : No")
    ours = printed(controller, "GETCONFIG 1 AL").rstrip("\n")
    compare(ours, theirs)


def test_series7_unprotected(captured):
    controller = made("Adaptec ASR-71605", "h" * 16, raid="5")
    compare(printed(controller, "GETCONFIG 1 AL"), captured("getconfig-al_asr71605_drive-specific-unprotected-wb.txt"))


def test_series8(captured):
    controller = made("Adaptec ASR-8805", "h" * 8, raid="6")
    compare(printed(controller, "GETCONFIG 1 AL"), captured("getconfig-al_asr8805_nobackup.txt"))


def test_battery(captured):
    controller = made("IBM ServeRAID 8k", "HH", raid="1")
    controller["volumes"][0]["name"] = ""
    for drive in controller["drives"]:
        drive["write_cache"] = "wt"
    compare(printed(controller, "GETCONFIG 1 AL"), captured("getconfig-al_ibm-serveraid-8k_battery-optimal.txt"))


def unconfigured(drives: str = "HHHHHHHH") -> State:
    controller = made("Adaptec SmartRAID 3204-8i", drives, volumes=0)
    for drive in controller["drives"]:
        drive["block"] = 4096
    return controller


def test_smartraid_adapter(captured):
    compare(printed(unconfigured(), "GETCONFIG 1 AD"), captured("getconfig-ad_smartraid-3204_unconfigured.txt"))


def test_smartraid_no_volumes(captured):
    compare(printed(unconfigured(), "GETCONFIG 1 LD"), captured("getconfig-ld_smartraid-3204_no-lds.txt"))


def test_smartraid_volumes(captured):
    controller = unconfigured("HHHHHHHH")
    two = MODELS["Adaptec SmartRAID 3204-8i"](volumes=2, drives=4)["volumes"]
    for volume, chosen, raid in ((two[0], (8, 9), "1"), (two[1], (11, 13, 12, 14), "10")):
        volume.update(members=[[0, device] for device in chosen], raid=raid)
    controller["volumes"] = two
    for drive in controller["drives"]:
        drive["state"] = "Ready" if drive["device"] in (10, 15) else "Online"
    compare(printed(controller, "GETCONFIG 1 LD"), captured("getconfig-ld_smartraid-3204_caching-disabled-4kn.txt"))
    compare(printed(controller, "GETCONFIG 1 AR"), captured("getconfig-ar_smartraid-3204.txt"))
    theirs = captured("getconfig-pd_smartraid-3204.txt")
    controller["drives"][2].update(block=512, write_cache="wt")
    drives = _without_enclosures(theirs)
    compare(_without_enclosures(printed(controller, "GETCONFIG 1 PD")), drives)


def test_smartraid_degraded_volume(captured):
    controller = made("Adaptec SmartRAID 3154-8i", "h" * 15, raid="50")
    controller["volumes"][0].update(status="Degraded", group=5)
    for drive in controller["drives"]:
        drive["bus"] = "SATA"
    controller["drives"][0]["state"] = "Failed"
    # This build printed no line of column names above the members, and its user had a file system mounted.
    ours = re.sub(r"( +Segment +: Availability .*\n-+\n)", "", printed(controller, "GETCONFIG 1 LD")).rstrip("\n")
    compare(ours, captured("getconfig-ld_smartraid_degraded.txt"))


def _without_enclosures(text: str) -> str:
    """The enclosure behind an expander is not simulated, only the virtual one of the card."""
    return text.partition("   Channel #2:")[0]


def test_smartraid_everything(captured):
    theirs = captured("getconfig-al_smartraid-3204_unconfigured.txt")
    controller = unconfigured()
    for drive, cache, block in zip(
        controller["drives"], re.findall(r"Write Cache +: \w+ \(write-(\w+)", theirs), re.findall(r"  Block Size +: (\w+)", theirs), strict=True
    ):
        drive.update(write_cache={"back": "wb", "through": "wt"}[cache], block=4096 if block == "4K" else 512)
    ours = printed(controller, "GETCONFIG 1")
    compare(_without_enclosures(ours), _without_enclosures(theirs))
    last = theirs.rpartition("   Channel #2:")[2].replace("Device #1", "Device #0")
    compare(ours.rpartition("   Channel #2:")[2], last)


def test_oem_volumes(captured):
    controller = made("Cisco UCSC-RAID-M1L16", "HHH", volumes=3)
    ours = printed(controller, "GETCONFIG 1 LD").splitlines()
    theirs = captured("getconfig-ld_cisco-ucsc-raid-m1l16.txt").splitlines()
    first = theirs.index("   Interface Type                             : Serial Attached ATA")
    theirs[first] = theirs[first].replace("ATA", "SCSI")  # edited upstream
    # How many blank lines end it is not known: the capture is a literal of a program.
    strip = "\n".join
    compare(strip(line for line in ours[4:] if line), strip(line for line in theirs if line))


def hba(kinds: str) -> State:
    controller = made("Adaptec HBA 1100-16i", kinds, shows_drive_cache=False)
    for drive in controller["drives"]:
        drive["facts"] = {"vendor": "ATA     "}
    return controller


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("getconfig-ad_hba1100-16i", "GETCONFIG 1 AD"),
        ("list_hba1100-16i", "LIST"),
        ("getversion_hba1100-16i", "GETVERSION"),
        ("getstatus_hba1100-16i", "GETSTATUS 1"),
        ("getconfig-pd-one_hba1100-16i", "GETCONFIG 1 PD 0 1"),
    ],
)
def test_hba(captured, name, words):
    compare(printed(hba("s"), words), captured(f"{name}.txt"))


def test_hba_everything(captured):
    theirs = captured("getconfig-al_hba1100-16i_hba-mode.txt")
    speeds = re.findall(r"Transfer Speed +: (\w+)", theirs)
    controller = hba("".join("s" if speed == "SATA" else "S" for speed in speeds))
    names = re.findall(r"State .*\n.*\n( +Disk Name)?", theirs)
    for drive, named in zip(controller["drives"], names, strict=True):
        drive["os_path"] = drive["os_path"] if named else None
    compare(printed(controller, "GETCONFIG 1"), theirs)


@pytest.mark.parametrize(
    ("model", "name", "words"),
    [
        ("Adaptec ASR-6805", "list_adaptec-6805", "LIST"),
        ("Adaptec SmartRAID 3204-8i", "list_smartraid-3204", "LIST"),
        ("Adaptec SmartRAID 3204-8i", "getversion_smartraid-3204", "GETVERSION"),
        ("Adaptec ASR-6805", "getstatus_adaptec-5405_issue105", "GETSTATUS 1"),
    ],
)
def test_short_responses(captured, model, name, words):
    theirs = captured(f"{name}.txt").partition("Command completed successfully.")
    compare(printed(MODELS[model](), words), theirs[0] + theirs[1])


def test_renamed_label_is_detected():
    text = printed(MODELS["Adaptec ASR-8805"](), "GETCONFIG 1 AL")
    for before, after in (
        ("Write-cache status", "Write-cache Status"),
        ("Write-cache status                       :", "Write-cache status                      :"),
        ("Full rpm\n", "Full rpm\n\n"),
    ):
        assert before in text
        assert shape(text.replace(before, after)) != shape(text)
