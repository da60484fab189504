# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What arcconf says about itself: the menu of commands, and the usage of one command for the cards that are in the machine.

The usage lines are those of the command reference; the frame around them (title, rule, closing words) is a guess.
"""

from __future__ import annotations

import typing as t

#: Per grammar, the forms of SETCACHE.
SETCACHE: t.Mapping[str, tuple[str, ...]] = {
    "series6": ("LOGICALDRIVE", "DEVICE"),
    "series6 maxcache": ("LOGICALDRIVE", "DEVICE"),
    "series7": ("LOGICALDRIVE", "DEVICE", "DEVICEALL"),
    "series7 maxcache": ("LOGICALDRIVE", "DEVICE", "DEVICEALL"),
    "smart": (
        "CONTROLLERCACHE",
        "DRIVEWRITECACHEPOLICY",
        "CACHERATIO",
        "WAITFORCACHEROOM",
        "NOBATTERYWRITECACHE",
        "WRITECACHEBYPASSTHRESHOLD",
        "RECOVERCACHEMODULE",
    ),
    "hba": ("DEVICE", "DEVICEALL"),
}

_SETCACHE_LINES = {
    "LOGICALDRIVE": "SETCACHE <Controller#> LOGICALDRIVE <LogicalDrive#> <logical mode> [noprompt] [nologs]",
    "CONTROLLERCACHE": "SETCACHE <Controller#> LOGICALDRIVE <LogicalDrive# | All> <con|coff> [noprompt] [nologs]",
    "DEVICE": "SETCACHE <Controller#> DEVICE <Channel# ID#> <physical mode> [nologs]",
    "DEVICEALL": "SETCACHE <Controller#> DEVICEALL <enable|disable|drivespecific> [noprompt] [nologs]",
    "DRIVEWRITECACHEPOLICY": "SETCACHE <Controller#> DRIVEWRITECACHEPOLICY <Drive Type> <policy> [<Drive Type> <policy>]... [noprompt] [nologs]",
    "CACHERATIO": "SETCACHE <Controller#> CACHERATIO <read#> <write#> [nologs]",
    "WAITFORCACHEROOM": "SETCACHE <Controller#> WAITFORCACHEROOM <enable|disable> [nologs]",
    "NOBATTERYWRITECACHE": "SETCACHE <Controller#> NOBATTERYWRITECACHE <enable|disable> [noprompt] [nologs]",
    "WRITECACHEBYPASSTHRESHOLD": "SETCACHE <Controller#> WRITECACHEBYPASSTHRESHOLD <KB, 16..1040, multiple of 16> [nologs]",
    "RECOVERCACHEMODULE": "SETCACHE <Controller#> RECOVERCACHEMODULE [nologs]",
}
_MAXCACHE_LINES = (
    "SETMAXCACHE <Controller#> LOGICALDRIVE <LogicalDrive#> [<LogicalDrive#>..] READCACHE <ENABLE|DISABLE> [nologs]",
    "SETMAXCACHE <Controller#> LOGICALDRIVE <LogicalDrive#> [<LogicalDrive#>..] WRITECACHE <ENABLE|DISABLE> [MAXCACHEWRITEPOLICY <WB|INSTWB|WT>] [nologs]",
    "SETMAXCACHE <Controller#> LOGICALDRIVE <LogicalDrive#> [<LogicalDrive#>..] MAXCACHEWRITEPOLICY <WB|INSTWB|WT> [nologs]",
    "SETMAXCACHE <Controller#> FLUSHANDFETCHRATE <1..1000> [nologs]",
    "SETMAXCACHE <Controller#> RWBALANCE <1..10> <1..10> [nologs]",
)
_CONTAINER_LINE = "CREATE <Controller#> MAXCACHE [options] <size|MAX> <RAID#> <Channel# ID#> [<Channel# ID#>...] [noprompt] [nologs]"
_SMART_CREATE_LINES = (
    "CREATE <Controller#> MAXCACHE [Wcache WT|WB*] [CacheLineSize 64*|256] DataLD <LogicalDrive#> <Size> <RAID#> <Channel# ID#>... [noprompt] [nologs]",
    "CREATE <Controller#> MAXCACHE [options] DataLD <LogicalDrive#> <Size> <RAID#> ARRAY <maxCache Array#> [noprompt] [nologs]",
)
_SETMAXCACHE: t.Mapping[str, tuple[str, ...]] = {
    "series6 maxcache": (
        *_MAXCACHE_LINES,
        "SETMAXCACHE <Controller#> ADDTOPOOL|REMOVEFROMPOOL <Channel# ID#>... [nologs]",
        "SETMAXCACHE <Controller#> CLEAR [nologs]",
    ),
    "series7 maxcache": (*_MAXCACHE_LINES, "SETMAXCACHE <Controller#> DIRTYPAGETHRESHOLD <1..100> [nologs]"),
    "smart": ("SETMAXCACHE <Controller#> LOGICALDRIVE <LogicalDrive#> [<LogicalDrive#>..] MAXCACHEWRITEPOLICY <WB|WT> [nologs]",),
}
_CREATE: t.Mapping[str, tuple[str, ...]] = {"series7 maxcache": (_CONTAINER_LINE,), "smart": _SMART_CREATE_LINES}
_DELETE: t.Mapping[str, tuple[str, ...]] = {
    "series7 maxcache": ("DELETE <Controller#> MAXCACHE [noprompt] [nologs]",),
    "smart": ("DELETE <Controller#> MAXCACHE <maxCache ld#> [noprompt] [nologs]",),
}

_MODES: t.Mapping[str, t.Mapping[str, str]] = {
    "LOGICALDRIVE": {
        "ron": "enable read cache",
        "roff": "disable read cache",
        "wt": "write through (write cache disabled)",
        "wb": "write back (write cache enabled)",
        "wbb": "write back when protected by battery/ZMM",
    },
    "CONTROLLERCACHE": {"con": "enable controller cache", "coff": "disable controller cache"},
    "DEVICE": {"wt": "write through (write cache disabled)", "wb": "write back (write cache enabled)"},
    "DRIVEWRITECACHEPOLICY": {"Configured|Unconfigured|HBA": "drive type", "0": "Default", "1": "Enable", "2": "Disable", "3": "Unchanged"},
}

DESCRIPTIONS: t.Mapping[str, str] = {
    "CREATE": "creates a maxCache device",
    "DELETE": "deletes a maxCache device",
    "GETCONFIG": "prints controller information",
    "GETCONFIGJSON": "prints controller information in JSON format",
    "GETSTATUS": "displays the status of running tasks",
    "GETVERSION": "prints version information for all controllers",
    "LIST": "prints the list of controllers",
    "MAXCACHEWRITECACHE": "toggles the maxCache write cache feature",
    "SETCACHE": "adjusts physical or logical drive cache mode",
    "SETCONTROLLERMODE": "changes the controller mode",
    "SETMAXCACHE": "adjusts maxCache settings",
    "SETSTATE": "manually sets the state of a maxCache device",
    "VERSION": "prints the version of this program",
}

_GETCONFIG = "GETCONFIG <Controller#> [AD [CACHE] | LD [LD#] | PD [Channel# ID#]... | AR [AR#] | MC | CN | [AL]] [nologs]"
_OLD_GETCONFIG = "GETCONFIG <Controller#> [AD | LD [LD#] | PD | [AL]]"
_PLAIN: t.Mapping[str, str] = {
    "GETCONFIG": _GETCONFIG,
    "GETCONFIGJSON": "GETCONFIGJSON <Controller#> [ALL | LOGICALDRIVE [LD#] | DEVICE [Channel# ID#] | ARRAY [AR#]] [nologs]",
    "GETSTATUS": "GETSTATUS <Controller#> [nologs]",
    "GETVERSION": "GETVERSION [<Controller#>] [nologs]",
    "LIST": "LIST [<Controller#>] [nologs]",
    "MAXCACHEWRITECACHE": "MAXCACHEWRITECACHE <Controller#> <on|off> [nologs]",
    "SETCONTROLLERMODE": "SETCONTROLLERMODE <Controller#> <Controller Mode: 0|1|2|3|4|5> [noprompt] [nologs]",
    "SETSTATE": "SETSTATE <Controller#> MAXCACHE <maxCache ld#> OPTIMAL [nologs]",
    "VERSION": "VERSION [nologs]",
}


def commands(grammars: t.Collection[str], *, old: bool) -> tuple[str, ...]:
    """The commands of the build that speaks to these cards."""
    missing = {"GETCONFIGJSON", "LIST", "SETCONTROLLERMODE", "SETMAXCACHE", "MAXCACHEWRITECACHE", "VERSION"} if old else set()
    if "smart" not in grammars and "hba" not in grammars:
        missing.add("GETCONFIGJSON")
    return tuple(command for command in DESCRIPTIONS if command not in missing)


def banner(*, old: bool) -> list[str]:
    version = "6.50 (B18579)" if old else "4.17.00 (26540)"
    return [
        "  | UCLI |  Adaptec uniform command line interface",
        f"  | UCLI |  Version {version}",
        "  | UCLI |  SIMULATOR for the tests of cachefleet.storage",
        "  | UCLI |  No controller is behind it",
    ]


def menu(grammars: t.Collection[str], *, old: bool) -> list[str]:
    """What is printed without arguments."""
    return [*banner(old=old), "", *(f" {command:<18}| {DESCRIPTIONS[command]}" for command in commands(grammars, old=old))]


def usage(command: str, grammars: t.Sequence[str], *, old: bool) -> list[str]:
    """The usage of one command; what it lists depends on the cards."""
    forms = [form for form in _SETCACHE_LINES if any(form in SETCACHE[grammar] for grammar in grammars)]
    if old:
        forms = [form for form in forms if form in ("LOGICALDRIVE", "DEVICE")] or ["LOGICALDRIVE", "DEVICE"]
    lines: list[str]
    if command == "SETCACHE":
        lines = [_SETCACHE_LINES[form] for form in forms]
    elif command in ("SETMAXCACHE", "CREATE", "DELETE"):
        table = {"SETMAXCACHE": _SETMAXCACHE, "CREATE": _CREATE, "DELETE": _DELETE}[command]
        lines = list(dict.fromkeys(line for grammar in grammars for line in table.get(grammar, ()))) or [f"{command} <Controller#>"]
    else:
        lines = [_OLD_GETCONFIG if old and command == "GETCONFIG" else _PLAIN[command]]
    if old:
        lines = [line.replace(" [nologs]", "") for line in lines]
    printed = ["", *(f" Usage: {line}" for line in lines), " " + "=" * 78, "", f" {DESCRIPTIONS[command][0].upper()}{DESCRIPTIONS[command][1:]}."]
    if command == "SETCACHE":
        for form in forms:
            if form in _MODES:
                printed += ["", *(f"    {word:<28}: {meaning}" for word, meaning in _MODES[form].items())]
    return [*printed, ""]
