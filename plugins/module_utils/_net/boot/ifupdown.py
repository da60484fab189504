# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Boot state in ifupdown: the line ``mtu`` in the stanza of the interface; every other byte of the file stays.

Some methods (``dhcp``) have no ``mtu``, and a DHCP server may give one of its own, so there it is a line ``up ip link set``, which
comes after the lease.

Source of the format: interfaces(5): stanzas begin with ``iface``, ``auto``, ``allow-…``, ``mapping``, ``source`` and others at the
beginning of a line; a backslash at its end continues a line; a comment begins with ``#`` as the first character that is no blank.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core import config_values as written
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.mtu_source import BootChange, BootProvider, MtuSource, file_change, obstacle_of

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._net.interfaces import Link

_MAIN = "etc/network/interfaces"
_STANZA = re.compile(r"^(iface|auto|allow-\S+|mapping|source|source-directory|rename|template|no-auto-down|no-scripts)(\s|$)")
_MTU = re.compile(r"^(\s*mtu\s+)(\d+)(\s*)$")
_COMMAND = re.compile(r"^(\s*(?:post-)?up\s+(?:/\S+/)?ip\s+link\s+set\s+(?:dev\s+)?(?:\S+)\s+mtu\s+)(\d+)(\s*)$")
#: Methods of ``inet`` and ``inet6`` that take ``mtu``.
_WITH_MTU = ("static", "manual")
#: Files of a folder that is read: interfaces(5), source-directory.
_FILE_NAME = re.compile(r"^[a-zA-Z0-9_-]+$")


@frozen
class Stanza:
    """One ``iface`` stanza: where it begins and ends in the lines of its file, the line of its MTU if it has one."""

    file: str
    name: str
    family: str
    method: str
    first: int
    end: int
    mtu_line: int | None
    mtu: int | None


def read_stanzas(file: str, text: str) -> list[Stanza]:
    """The ``iface`` stanzas in the text of one file."""
    lines = text.splitlines(keepends=True)
    heads = [place for place, line in enumerate(lines) if _STANZA.match(line.strip()) and not (place and lines[place - 1].rstrip("\n").endswith("\\"))]
    stanzas: list[Stanza] = []
    for head, following in zip(heads, [*heads[1:], len(lines)]):
        words = lines[head].split()
        if words[0] != "iface" or len(words) < 2:
            continue
        # Blank lines and comments before the next stanza belong to that one.
        end = following
        while end > head + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
            end -= 1
        found = [
            (place, match) for place in range(head + 1, end) for match in [_value(lines[place])] if match and not lines[place - 1].rstrip("\n").endswith("\\")
        ]
        place, match = found[-1] if found else (None, None)
        # "iface eth0 inherits template" and, in other implementations, "iface eth0" stand without family and method.
        family, method = (words[2], words[3]) if len(words) >= 4 and words[2] != "inherits" else ("inet", "manual")
        stanzas.append(Stanza(file, words[1], family, method, head, end, place, int(match.group(2)) if match else None))
    return stanzas


def _value(line: str) -> re.Match[str] | None:
    return _MTU.match(line.rstrip("\n")) or _COMMAND.match(line.rstrip("\n"))


def with_mtu(text: str, stanza: Stanza, mtu: int) -> str:
    """The file with the MTU of one stanza set.

    :raises BadInput: if the name of the interface would mean something to the shell that runs the line.
    """
    lines = text.splitlines(keepends=True)
    if stanza.mtu_line is not None:
        line = lines[stanza.mtu_line]
        match = _value(line)
        if match:
            lines[stanza.mtu_line] = match.group(1) + str(mtu) + match.group(3) + line[len(line.rstrip("\n")) :]
            return "".join(lines)
    options = [line for line in lines[stanza.first + 1 : stanza.end] if line.strip() and not line.lstrip().startswith("#")]
    indent = re.match(r"^\s*", options[0]).group(0) if options else "    "  # type: ignore[union-attr]
    option = f"mtu {mtu}" if stanza.method in _WITH_MTU else f"up ip link set dev {written.interface_name(stanza.name)} mtu {mtu}"
    # interfaces(5) reads top down: the MTU before commands that may depend on it.
    place = stanza.first
    while place < stanza.end - 1 and lines[place].rstrip("\n").endswith("\\"):
        place += 1
    if not lines[place].endswith("\n"):
        lines[place] += "\n"
    lines.insert(place + 1, f"{indent}{option}\n")
    return "".join(lines)


class Ifupdown(BootProvider):
    name = "ifupdown"
    title = "ifupdown"

    def places(self, requested: t.Sequence[Link], *, insist: bool = False) -> dict[str, MtuSource]:  # noqa: ARG002
        """Every interface with a stanza in ``/etc/network/interfaces`` or a file that it reads."""
        if not requested or not self.runner.has("ifup"):
            return {}
        texts = self._texts()
        stanzas = [stanza for file, text in texts.items() for stanza in read_stanzas(file, text)]
        return {link.name: self._place(link, own, texts) for link in requested for own in [[one for one in stanzas if one.name == link.name]] if own}

    def _place(self, link: Link, stanzas: t.Sequence[Stanza], texts: t.Mapping[str, str]) -> MtuSource:
        # Both of a pair inet and inet6 may carry it; the one that has it counts, else the one of IPv4, which is first brought up.
        with_value = [one for one in stanzas if one.mtu_line is not None]
        stanza = (with_value or [one for one in stanzas if one.family == "inet"] or list(stanzas))[0]
        path = f"/{stanza.file}"
        obstacle = obstacle_of(link.name, path, self.root, texts[stanza.file])
        if len({one.mtu for one in with_value}) > 1:
            obstacle = f"{path} has several MTUs for {link.name}: leave one of them."
        return MtuSource(
            self.name,
            link.name,
            stanza.mtu,
            {"where": path, "path": path, "before": texts[stanza.file], "stanza": [stanza.family, stanza.method]},
            obstacle=obstacle,
        )

    def _texts(self) -> dict[str, str]:
        """The text of every file that is read, by path without the leading slash."""
        found: dict[str, str] = {}
        ahead = [self.root / _MAIN]
        while ahead:
            place = ahead.pop(0)
            name = str(place.relative_to(self.root))
            if name in found or not place.is_file():
                continue
            found[name] = read_file(place)
            ahead += [more for line in found[name].splitlines() for more in self._sourced(line.split(), place)]
        return found

    def _sourced(self, words: t.Sequence[str], place: Path) -> list[Path]:
        if len(words) < 2 or words[0] not in ("source", "source-directory"):
            return []
        pattern = words[1].strip('"')
        # A relative path is one below the folder of the file (interfaces(5)).
        base, pattern = (self.root, pattern.lstrip("/")) if pattern.startswith("/") else (place.parent, pattern)
        if words[0] == "source-directory":
            return sorted(file for folder in base.glob(pattern) if folder.is_dir() for file in folder.iterdir() if _FILE_NAME.match(file.name))
        return sorted(base.glob(pattern))

    def change(self, place: MtuSource, mtu: int) -> BootChange:
        """One line of the file."""
        text = place.details["before"]
        stanzas = [one for one in read_stanzas(place.details["path"].lstrip("/"), text) if one.name == place.interface]
        family = place.details["stanza"][0]
        stanza = ([one for one in stanzas if one.mtu_line is not None] or [one for one in stanzas if one.family == family] or stanzas)[0]
        return BootChange(files=(file_change(place.details["path"], text, with_mtu(text, stanza, mtu)),))
