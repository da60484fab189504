# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every tool of a vendor that is supported, in one table: options, messages, searches and documentation are derived from it.

Another tool is an entry here, a folder with its provider and its readers (a row in docs/architecture.md), a column in docs/raid_cache.md, a
simulator and a folder of tests. ``scripts/role-specs`` writes its name into the documentation of modules and roles, and the tests of all
tools take it from here.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import RaidProvider


# Ansible sends to a host only what it finds in import statements, and a host imports only the code of the tools that it has.


def _storcli() -> type[RaidProvider]:
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.provider import StorCli

    return StorCli


def _perccli() -> type[RaidProvider]:
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.provider import PercCli

    return PercCli


def _storcli2() -> type[RaidProvider]:
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.storcli2 import StorCli2

    return StorCli2


def _perccli2() -> type[RaidProvider]:
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.storcli2 import PercCli2

    return PercCli2


def _arcconf() -> type[RaidProvider]:
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.provider import ArcConf

    return ArcConf


def _ssacli() -> type[RaidProvider]:
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.ssacli.provider import SsaCli

    return SsaCli


@frozen
class Tool:
    """A tool by the name users write.

    :param provider: imports the code that implements its commands.
    :param commands: its names, the one that is preferred first.
    :param folders: where vendors install it, outside of PATH.
    :param drivers: the kernel drivers of its controllers, each with what a message tells to install for them; empty if that is another tool.
    :param family: tools of one family are for the same controllers: a host that has two of them shows each controller twice.
    :param rebranded: whether a controller has the same number in all tools of the family.
    :param without_maxcache: why it cannot manage maxCache; empty for the tool that can.
    """

    name: str
    provider: t.Callable[[], type[RaidProvider]]
    commands: tuple[str, ...]
    folders: tuple[str, ...]
    drivers: t.Mapping[str, str]
    family: str
    rebranded: bool = False
    without_maxcache: str = ""


_NO_MAXCACHE = "its controllers have no maxCache; their own SSD cache (CacheCade) is not managed here"
_NO_SSD_CACHE = "its controllers have no SSD cache at all"

#: Every tool. Of two that see the same controller, ``auto`` takes the one that comes first.
TOOLS: t.Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("storcli2", _storcli2, ("storcli2",), ("/opt/MegaRAID/storcli2",), {"mpi3mr": "storcli2 (Broadcom)"}, "mpi3mr", True, _NO_SSD_CACHE),
        Tool("perccli2", _perccli2, ("perccli2",), ("/opt/MegaRAID/perccli2",), {"mpi3mr": "perccli2 (Dell)"}, "mpi3mr", True, _NO_SSD_CACHE),
        Tool(
            "storcli",
            _storcli,
            ("storcli64", "storcli"),
            ("/opt/MegaRAID/storcli", "/opt/hpe/storcli", "/opt/lsi/storcli", "/usr/local/MegaRAID/storcli"),
            dict.fromkeys(("megaraid_sas", "mpt3sas", "mpt2sas"), "storcli (Broadcom)"),
            "megaraid",
            True,
            _NO_MAXCACHE,
        ),
        Tool(
            "perccli",
            _perccli,
            ("perccli64", "perccli"),
            ("/opt/MegaRAID/perccli",),
            {"megaraid_sas": "perccli (Dell)", "mpt3sas": "", "mpt2sas": ""},
            "megaraid",
            True,
            _NO_MAXCACHE,
        ),
        Tool(
            "arcconf",
            _arcconf,
            ("arcconf",),
            ("/usr/Arcconf", "/usr/StorMan", "/opt/StorMan", "/usr/RaidMan", "/opt/Arcconf", "/usr/local/Arcconf"),
            {"aacraid": "arcconf (Adaptec, Microchip)", "smartpqi": "arcconf (Microchip)"},
            "smartpqi",
        ),
        Tool(
            "ssacli",
            _ssacli,
            ("ssacli", "hpssacli", "hpacucli"),
            ("/opt/smartstorageadmin/ssacli/bin", "/opt/hp/hpssacli/bin", "/opt/hp/hpssacli/bld", "/opt/compaq/hpacucli/bld"),
            {"hpsa": "ssacli (HPE)", "smartpqi": "ssacli (HPE)", "cciss": "ssacli or hpacucli (HPE)"},
            "smartpqi",
            without_maxcache="it has no word for maxCache, and the SSD cache of HPE Smart Array is not managed here; a Microchip card is managed with arcconf",
        ),
    )
}
#: Every kernel driver of a controller that a tool can manage, and what a message tells to install for it.
TOOLS_OF_DRIVER: t.Mapping[str, str] = {
    driver: " or ".join(tool.drivers[driver] for tool in TOOLS.values() if tool.drivers.get(driver))
    for driver in dict.fromkeys(driver for tool in TOOLS.values() for driver in tool.drivers)
}
#: The only tool that manages controllers with maxCache.
MAXCACHE_TOOL = next(name for name, tool in TOOLS.items() if not tool.without_maxcache)


def are_of_one_family(one: str, other: str) -> bool:
    """Whether two different tools are for the same controllers."""
    return one != other and one in TOOLS and other in TOOLS and TOOLS[one].family == TOOLS[other].family
