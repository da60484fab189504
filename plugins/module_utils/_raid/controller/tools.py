# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the tools of the vendors are searched for: the code of a tool is imported only on hosts that have it."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen


@frozen
class Tool:
    """A tool by the name users write.

    :param commands: its names, the one that is preferred first.
    :param folders: where vendors install it, outside of PATH.
    """

    name: str
    commands: tuple[str, ...]
    folders: tuple[str, ...]


#: Every tool. Of two that see the same controller, ``auto`` takes the one that comes first.
TOOLS: t.Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("storcli2", ("storcli2",), ("/opt/MegaRAID/storcli2",)),
        Tool("perccli2", ("perccli2",), ("/opt/MegaRAID/perccli2",)),
        Tool("storcli", ("storcli64", "storcli"), ("/opt/MegaRAID/storcli", "/opt/hpe/storcli", "/opt/lsi/storcli", "/usr/local/MegaRAID/storcli")),
        Tool("perccli", ("perccli64", "perccli"), ("/opt/MegaRAID/perccli",)),
        Tool("arcconf", ("arcconf",), ("/usr/Arcconf", "/usr/StorMan", "/opt/StorMan", "/usr/RaidMan", "/opt/Arcconf", "/usr/local/Arcconf")),
        Tool(
            "ssacli",
            ("ssacli", "hpssacli", "hpacucli"),
            ("/opt/smartstorageadmin/ssacli/bin", "/opt/hp/hpssacli/bin", "/opt/hp/hpssacli/bld", "/opt/compaq/hpacucli/bld"),
        ),
    )
}
