# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of vblade's instances: ``/etc/vblade.conf.d/<instance>.conf``, which systemd and a shell read.

Source: vblade-persistence(5); the generator of Debian starts each file that is complete, and ``vblade@<instance>.service`` runs it.
"""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import config_values as written
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.output import parse_vblade_file

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.exports import AoeExport

FOLDER = "etc/vblade.conf.d"
_NOTE = "# Written by cachefleet.storage.storage_network: change the inventory, not this file."
_UNSAFE = re.compile(r"[^A-Za-z0-9:_.]")
#: A variable that is not ours and is kept as it is.
_PRIORITY = "ionice"


@frozen
class VbladeFile:
    """One file: its text, and the shell variables in it."""

    text: str
    values: t.Mapping[str, str]


def read_files(root: Path = Path("/")) -> dict[str, VbladeFile]:
    """Every file by the name of its instance."""
    found = {}
    for path in sorted((root / FOLDER).glob("*.conf")):
        text = read_file(path)
        found[path.name[: -len(".conf")]] = VbladeFile(text, parse_vblade_file(text))
    return found


def instance_of(files: t.Mapping[str, VbladeFile], shelf: int, slot: int, interface: str) -> str:
    """The instance that has an address already, however it was named, or the name of the one to make."""
    for instance, file in files.items():
        values = file.values
        if (values.get("shelf"), values.get("slot"), values.get("netif")) == (str(shelf), str(slot), interface):
            return instance
    return f"e{shelf}.{slot}." + _UNSAFE.sub("_", interface)


def unit_of(instance: str) -> str:
    """The unit that runs it: ``%I`` in it is the instance unescaped (systemd-escape(1))."""
    escaped = "".join("-" if char == "/" else char if not _UNSAFE.match(char) else "".join(f"\\x{byte:02x}" for byte in char.encode()) for char in instance)
    return f"vblade@{escaped}.service"


def render(export: AoeExport, found: VbladeFile | None = None) -> str:
    """The text of a file. A priority that was set in it by hand is kept.

    :raises BadInput: if a value means something else to a shell than itself.
    """
    options = written.in_shell_variable(" ".join(export.words[:-4]), export.address)
    lines = [
        _NOTE,
        f"shelf={export.shelf}",
        f"slot={export.slot}",
        f"netif={written.interface_name(export.interface)}",
        f"filename={_word(export.path, export.address)}",
        f"options='{options}'",
    ]
    if found is not None and found.values.get(_PRIORITY):
        lines.append(f"{_PRIORITY}='{written.in_shell_variable(found.values[_PRIORITY], export.address)}'")
    return "\n".join(lines) + "\n"


def _word(value: str, item: str) -> str:
    """A value without quotes around it, in which a blank would end it."""
    if " " in value:
        raise BadInput(f"{item}: {value[:80]!r} cannot be written into a file of vblade: name a path without blanks.", item=item)
    return written.in_shell_variable(value, item)
