# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Boot state in wicked (SLES 15, openSUSE Leap 15): the variable ``MTU`` in the file of the interface; every other byte of the file stays.

Only while ``network.service``, an alias that is set with the service, is wicked: the same files stay on a host that has changed to NetworkManager.

Source of the format: ifcfg(5) of wicked: variables as in a shell, the last of a name counts; only the file with exactly the name of the interface is read here.
"""

from __future__ import annotations

import os
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.mtu_source import BootChange, BootProvider, MtuSource, file_change, obstacle_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.interfaces import Link

_FILE = "etc/sysconfig/network/ifcfg-{name}"
_SERVICE = "etc/systemd/system/network.service"
_VARIABLE = r"^(?P<before>[ \t]*(?:export[ \t]+)?{name}=)(?P<value>[^\n#]*?)(?P<after>[ \t]*(?:#[^\n]*)?)$"


def _assignments(text: str, name: str) -> list[re.Match[str]]:
    return list(re.finditer(_VARIABLE.format(name=name), text, re.MULTILINE))


def _value(text: str, name: str) -> str:
    """What a variable has at the end of a file, without quotes; empty if it is not set."""
    found = _assignments(text, name)
    return found[-1]["value"].strip().strip("\"'") if found else ""


def with_mtu(text: str, mtu: int) -> str:
    """The file with another MTU: the last assignment is the one that counts."""
    found = _assignments(text, "MTU")
    if not found:
        return text + ("\n" if text and not text.endswith("\n") else "") + f"MTU='{mtu}'\n"
    place = found[-1]
    return f"{text[: place.start('value')]}'{mtu}'{text[place.end('value') :]}"


class Wicked(BootProvider):
    name = "wicked"
    title = "wicked"

    def places(self, requested: t.Sequence[Link], *, insist: bool = False) -> dict[str, MtuSource]:
        """Every interface with a file of its own while wicked is the service of the network."""
        if not requested or not self.runner.has("wicked") or not (insist or self._is_the_service()):
            return {}
        return {link.name: self._place(link, file) for link in requested for file in [_FILE.format(name=link.name)] if (self.root / file).is_file()}

    def _is_the_service(self) -> bool:
        place = self.root / _SERVICE
        return place.is_symlink() and Path(os.readlink(place)).name == "wicked.service"

    def _place(self, link: Link, file: str) -> MtuSource:
        path, text = f"/{file}", read_file(self.root / file)
        value, method = _value(text, "MTU"), _value(text, "BOOTPROTO")
        obstacle = obstacle_of(link.name, path, self.root, text)
        if value and not value.isdigit():
            obstacle = f"{link.name}: the value of MTU in {path} is no number ({value}): write the number, or remove the line."
        concern = f"{link.name} is configured by {method} in {path}: if its server announces an MTU, verify it after the next boot." if "dhcp" in method else ""
        return MtuSource(self.name, link.name, int(value) if value.isdigit() else None, {"where": path, "path": path, "before": text}, concern, obstacle)

    def change(self, place: MtuSource, mtu: int) -> BootChange:
        """One line of the file."""
        text = place.details["before"]
        return BootChange(files=(file_change(place.details["path"], text, with_mtu(text, mtu)),))
