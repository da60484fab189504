# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Boot state in systemd-networkd: a drop-in beside the ``.network`` file that matches the interface, or a ``.link`` file of its own.

A drop-in is read with every interface that its ``.network`` file matches. Where that is more than one, and where nothing of
networkd matches (``provider: systemd_networkd`` was named all the same), the MTU goes into a ``.link`` file that names the card by
its address; udev applies it before networkd handles the card. Of ``.link`` files only the first that matches is read, so what
the present one sets (how cards are named!) is carried over.

Sources: systemd.network(5) (order of drop-ins, ``[Link] MTUBytes=``, ``UseMTU=``), systemd.link(5), networkctl(1).
"""

from __future__ import annotations

import fnmatch
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.mtu_source import BootChange, BootProvider, MtuSource, file_change

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._net.interfaces import Link

_DROP_IN = "50-cachefleet-mtu.conf"
_NETWORK_FOLDERS = ("etc/systemd/network", "run/systemd/network", "usr/local/lib/systemd/network", "usr/lib/systemd/network", "lib/systemd/network")
_BLOCK = re.compile(r"^\S+ \d+: (\S+)\s*$")
_FILE = re.compile(r"^\s*Network File: (\S+)\s*$")
_MAC = re.compile(r"^[0-9a-f]{2}(:[0-9a-f]{2}){5}\Z")
_HEADER = "# Written by cachefleet.storage.storage_network: change the inventory, not this file.\n"
NETPLAN = re.compile(r"^/run/systemd/network/10-netplan-(.+)\.network$")


def network_files(runner: t.Any, links: t.Iterable[Link]) -> dict[str, str]:
    """The ``.network`` file that matches each interface, where one does and networkd runs."""
    names = [link.name for link in links if link.name != "lo"]
    if not names or not runner.has("networkctl"):
        return {}
    completed = runner.run(["networkctl", "--no-pager", "--no-legend", "--full", "--lines=0", "status", *names], ok=None, item="networkctl")
    return parse_status(completed.stdout)


def parse_status(text: str) -> dict[str, str]:
    """The file after ``Network File:`` of every interface in the output of ``networkctl status NAME…``.

    A block begins with a sign, the number and the name of the interface; ``n/a`` stands for no file.
    """
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        begin = _BLOCK.match(line)
        if begin:
            name = begin.group(1)
        match = _FILE.match(line)
        if match and name and match.group(1).startswith("/"):
            found[name] = match.group(1)
    return found


class SystemdNetworkd(BootProvider):
    name = "systemd_networkd"
    title = "systemd-networkd"

    def places(self, requested: t.Sequence[Link], *, insist: bool = False) -> dict[str, MtuSource]:
        """Every interface with a ``.network`` file that netplan did not make."""
        files = network_files(self.runner, self.links if requested else [])
        places: dict[str, MtuSource] = {}
        for link in requested:
            file = files.get(link.name)
            if file is not None and not NETPLAN.match(file):
                sharing = sorted(name for name, other in files.items() if other == file and name != link.name)
                several = bool(sharing) or _matches_by_pattern(self._text(file))
                places[link.name] = self.beside_link_file(link, file, sharing) if several else self._beside_network_file(link, file)
            elif file is None and insist:
                places[link.name] = self.beside_link_file(link, "", [])
        return places

    def _text(self, path: str) -> str:
        return read_file(self.root / path.lstrip("/"))

    def _beside_network_file(self, link: Link, file: str) -> MtuSource:
        name = file.rpartition("/")[2]
        own = f"/etc/systemd/network/{name}.d/{_DROP_IN}"
        drop_ins = self._drop_ins(name)
        others = [place for place in drop_ins if place.name != _DROP_IN]
        dhcp = _last([self._text(file), *(read_file(place) for place in others)], ("DHCPv4", "DHCP"), "UseMTU")
        mtu = _bytes(_last([self._text(file), *(read_file(place) for place in drop_ins)], ("Link",), "MTUBytes"))
        later = [place for place in others if place.name > _DROP_IN and _last([read_file(place)], ("Link",), "MTUBytes")]
        obstacle = ""
        if later:
            path = f"/{later[-1].relative_to(self.root)}"
            obstacle = f"{path} sets MTUBytes= for {link.name} and is read last: remove that line."
        follows_dhcp = (dhcp or "").lower() in ("1", "yes", "true", "on", "y", "t")
        return MtuSource(
            self.name,
            link.name,
            mtu if not follows_dhcp or "UseMTU=no" in self._text(own) else None,
            {"where": own, "path": own, "before": self._text(own), "kind": "network", "follows_dhcp": follows_dhcp},
            concern=f"{link.name}: the MTU that a DHCP server gives is not used any more (UseMTU=no in {own})." if follows_dhcp else "",
            obstacle=obstacle,
        )

    def _drop_ins(self, name: str) -> list[Path]:
        """The drop-ins of a file, in the order in which they are read; one of a name hides those of later folders."""
        found: dict[str, Path] = {}
        for folder in _NETWORK_FOLDERS:
            for place in sorted((self.root / folder / f"{name}.d").glob("*.conf")):
                found.setdefault(place.name, place)
        return [found[one] for one in sorted(found)]

    def beside_link_file(self, link: Link, file: str, sharing: t.Sequence[str]) -> MtuSource:
        """A place in a ``.link`` file that names the card.

        :param file: what configures it together with others, by its path or its name; empty if nothing does.
        :param sharing: the others that are there.
        """
        own = f"/etc/systemd/network/00-cachefleet-mtu-{re.sub('[^A-Za-z0-9_.-]', '_', link.name)}.link"
        why = (
            f"{file} is for several interfaces ({', '.join(sharing) or 'it matches by a pattern'})" if file else "systemd-networkd has no .network file for it"
        )
        obstacle = ""
        if link.kind:
            obstacle = (
                f"{link.name} is a {link.kind}, and {why}: give it a .network file of its own, or set persistent: false and set its MTU where it is made."
            )
        elif not _MAC.match(link.hardware_mac):
            obstacle = f"{link.name} has no hardware address that a .link file could name, and {why}: set persistent: false."
        properties = self._udev(link) if not obstacle else {}
        current = self._text(own)
        template = properties.get("ID_NET_LINK_FILE", "")
        source = current if template == own else self._text(template) if template else ""
        carried = [line for line in _section(source, "Link") if not line.startswith("MTUBytes=")]
        text = _HEADER + "[Match]\n" + f"PermanentMACAddress={link.hardware_mac}\n" + "\n[Link]\n" + "".join(f"{line}\n" for line in carried)
        return MtuSource(
            self.name,
            link.name,
            _bytes(_last([current], ("Link",), "MTUBytes")),
            {"where": own, "path": own, "before": current, "kind": "link", "text": text},
            concern=f"{link.name}: {properties['ID_NET_LINK_FILE_DROPINS']} is no longer read next to {own}."
            if properties.get("ID_NET_LINK_FILE_DROPINS")
            else "",
            obstacle=obstacle,
        )

    def _udev(self, link: Link) -> dict[str, str]:
        completed = self.runner.run(["udevadm", "info", "--query=property", f"--path=/sys/class/net/{link.name}"], ok=None, item=link.name)
        return dict(line.split("=", 1) for line in completed.stdout.splitlines() if "=" in line)

    def change(self, place: MtuSource, mtu: int) -> BootChange:
        """The drop-in, or the ``.link`` file. Neither is read before the next boot: a reload would take the interface down for a moment."""
        details = place.details
        if details["kind"] == "link":
            after = f"{details['text']}MTUBytes={mtu}\n"
        else:
            # systemd.network(5): an MTU that DHCP gives wins over MTUBytes=.
            after = f"{_HEADER}[Link]\nMTUBytes={mtu}\n" + ("\n[DHCPv4]\nUseMTU=no\n" if details["follows_dhcp"] else "")
        return BootChange(files=(file_change(details["path"], details["before"], after),))


def _section(text: str, name: str) -> list[str]:
    """The lines of a section, without blanks and comments."""
    found: list[str] = []
    inside = False
    for line in (line.strip() for line in text.splitlines()):
        if line.startswith("["):
            inside = line == f"[{name}]"
        elif inside and line and not line.startswith(("#", ";")):
            found.append(line)
    return found


def _last(texts: t.Sequence[str], sections: t.Sequence[str], key: str) -> str | None:
    """The value that counts: the last one, of files in the order in which they are read; an empty one takes it back."""
    found: str | None = None
    for text in texts:
        for section in sections:
            for line in _section(text, section):
                name, equals, value = line.partition("=")
                if equals and name.strip() == key:
                    found = value.strip() or None
    return found


def _bytes(value: str | None) -> int | None:
    """A size of systemd: K, M and G stand for powers of 1024."""
    match = re.match(r"^(\d+)([KMG]?)$", value or "")
    return int(match.group(1)) * 1024 ** " KMG".index(match.group(2) or " ") if match else None


def _matches_by_pattern(text: str) -> bool:
    """Whether a ``.network`` file may meet interfaces that are not there at the moment."""
    lines = _section(text, "Match")
    keys = {line.partition("=")[0].strip() for line in lines}
    if keys & {"MACAddress", "PermanentMACAddress", "Path"}:
        return any(fnmatch.fnmatch(line, "Path=*[*?[]*") for line in lines)
    names = [word for line in lines if line.partition("=")[0].strip() == "Name" for word in line.partition("=")[2].split()]
    return len(names) != 1 or names[0].startswith("!") or bool(re.search(r"[*?\[]", names[0]))
