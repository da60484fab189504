# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The network interfaces of a host and what lies on what: VLANs on parents, bonds and bridges on their members.

Source of the format: ``ip -details -json link show`` (ip-link(8), ``print_linkinfo`` of iproute2).
"""

from __future__ import annotations

import dataclasses
import json
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.journal import Journal, counts_as_none
from ansible_collections.cachefleet.storage.plugins.module_utils._core.own_files import READABLE
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

#: Kinds that cannot send more than the device named by ``link``. A veth has a ``link`` too: its other end, which is nothing below it.
_ON_A_PARENT = ("vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "macsec")
#: Kinds of ``master`` whose MTU has to do with that of their members. A VRF, for one, has not.
_OF_MEMBERS = ("bond", "bridge", "team")
#: Kind of the datapath of Open vSwitch and of its internal ports; its other ports have the datapath as ``master``. Which bridge a port belongs to is only
#: in the database of Open vSwitch.
OPEN_VSWITCH = "openvswitch"
#: When the MTU of which interface was changed by this collection: emptied at boot, like every program that uses it.
_CHANGES = "run/cachefleet.storage/mtu-changed.json"
_COMMAND = ("ip", "-details", "-json", "link", "show")


@frozen
class Link:
    """One interface.

    :param mtu: bytes of an IP packet, so without the Ethernet header.
    :param min_mtu: the least the driver takes.
    :param max_mtu: the most the driver takes; ``None`` if it does not report it.
    :param kind: ``vlan``, ``bond``, ``bridge`` and others of ``ip link``; empty for a network card.
    :param master: the bond or bridge that it is a member of.
    :param lower: what it lies on: the parent of a VLAN, the members of a bond or bridge.
    :param mac: in small letters; empty if it has none.
    :param permanent_mac: that of the card, where a bond gave it another one.
    :param switch_port: whether it is a port of Open vSwitch.
    :param up: whether it is switched on, which does not mean that a cable is connected.
    """

    name: str
    index: int
    mtu: int
    min_mtu: int = 68
    max_mtu: int | None = None
    kind: str = ""
    master: str | None = None
    lower: tuple[str, ...] = ()
    mac: str = ""
    permanent_mac: str = ""
    up: bool = True
    switch_port: bool = False
    alternative_names: tuple[str, ...] = ()

    @property
    def hardware_mac(self) -> str:
        """The address of the card itself."""
        return self.permanent_mac or self.mac


class Links:
    """All interfaces of a host, in the order of their numbers."""

    def __init__(self, links: t.Iterable[Link]) -> None:
        self._links = {link.name: link for link in sorted(links, key=lambda link: link.index)}

    def __iter__(self) -> t.Iterator[Link]:
        return iter(self._links.values())

    def __contains__(self, name: str) -> bool:
        return name in self._links

    def __getitem__(self, name: str) -> Link:
        return self._links[name]

    def find(self, name: str) -> Link:
        """The interface of this name or alternative name.

        :raises BadInput: naming the interfaces that there are.
        """
        if name in self._links:
            return self._links[name]
        for link in self:
            if name in link.alternative_names:
                return link
        raise BadInput(f"There is no interface {name} on this host: there are {', '.join(self._links)}.", item=name)

    def find_mac(self, mac: str) -> Link:
        """The interface with this hardware address. A VLAN or bond that has borrowed the address of a card does not count beside it.

        :raises BadInput: if there is none, or more than one.
        """
        mac_address = mac.lower().replace("-", ":")
        found = [link for link in self if link.hardware_mac == mac_address]
        cards = [link for link in found if not link.kind] or [link for link in found if not link.lower] or found
        if len(cards) == 1:
            return cards[0]
        if cards:
            raise BadInput(f"Several interfaces have the address {mac} ({', '.join(link.name for link in cards)}): set interface instead of mac.", item=mac)
        there = ", ".join(f"{link.name} {link.hardware_mac}" for link in self if link.hardware_mac.strip("0:"))
        raise BadInput(f"There is no interface with the address {mac} on this host: there are {there}.", item=mac)

    def with_mtus(self, mtus: t.Mapping[str, int]) -> Links:
        """The same interfaces with other MTUs, by their names."""
        return Links(dataclasses.replace(link, mtu=mtus.get(link.name, link.mtu)) for link in self)

    def upper(self, name: str) -> list[Link]:
        """What lies directly on an interface."""
        return [link for link in self if name in link.lower]

    def all_lower(self, name: str) -> set[str]:
        """Everything below an interface."""
        return self._closure(name, lambda one: self._links[one].lower if one in self._links else ())

    def all_upper(self, name: str) -> set[str]:
        """Everything above an interface."""
        return self._closure(name, lambda one: [link.name for link in self.upper(one)])

    @staticmethod
    def _closure(name: str, step: t.Callable[[str], t.Iterable[str]]) -> set[str]:
        found: set[str] = set()
        ahead = list(step(name))
        while ahead:
            one = ahead.pop()
            if one not in found:
                found.add(one)
                ahead.extend(step(one))
        return found

    def depth(self, name: str) -> int:
        """How many interfaces lie below one another under this one: 0 for a card."""
        lower = [one for one in self._links[name].lower if one in self._links] if name in self._links else []
        return 1 + max(self.depth(one) for one in lower) if lower else 0


def read_links(runner: Runner, root: Path = Path("/")) -> Links:  # noqa: ARG001
    """Every interface of the host.

    :raises ToolMissing: if there is no ``ip``.
    :raises NotUnderstood: if its output is not what it should be.
    """
    return parse_links(runner.run(_COMMAND, item="ip").stdout)


def parse_links(text: str) -> Links:
    """The interfaces in the output of ``ip -details -json link show``.

    :raises NotUnderstood: if it is none.
    """
    try:
        entries = [entry for entry in json.loads(text) if entry]
        kinds = {entry["ifname"]: _kind(entry) for entry in entries}
        members: dict[str, list[str]] = {}
        for entry in entries:
            if kinds.get(entry.get("master")) in _OF_MEMBERS:
                members.setdefault(entry["master"], []).append(entry["ifname"])
        return Links(_link(entry, kinds[entry["ifname"]], members.get(entry["ifname"], []), kinds) for entry in entries)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotUnderstood(
            f"{' '.join(_COMMAND)} printed something else than a list of interfaces ({type(error).__name__}: {error}): iproute2 4.18 or newer is needed.",
            item="ip",
        ) from None


def _kind(entry: t.Mapping[str, t.Any]) -> str:
    return str((entry.get("linkinfo") or {}).get("info_kind") or "")


def _link(entry: t.Mapping[str, t.Any], kind: str, members: t.Sequence[str], kinds: t.Mapping[str, str]) -> Link:
    below = [entry["link"]] if kind in _ON_A_PARENT and entry.get("link") in kinds else []
    return Link(
        name=str(entry["ifname"]),
        index=int(entry["ifindex"]),
        mtu=int(entry["mtu"]),
        min_mtu=int(entry.get("min_mtu") or 0),
        max_mtu=int(entry.get("max_mtu") or 0) or None,
        kind=kind,
        master=entry.get("master") if kinds.get(entry.get("master")) in _OF_MEMBERS else None,
        lower=tuple(below or members),
        mac=str(entry.get("address") or "").lower(),
        permanent_mac=str(entry.get("permaddr") or "").lower(),
        switch_port=OPEN_VSWITCH in (kind, kinds.get(entry.get("master"))),
        up="UP" in entry.get("flags", ()),
        alternative_names=tuple(entry.get("altnames") or ()),
    )


def ipv6_addresses(root: Path = Path("/")) -> dict[str, list[str]]:
    """The IPv6 addresses of every interface that has some.

    Source: ``/proc/net/if_inet6``: address in 32 hexadecimal digits, number of the interface, prefix, scope, flags, name (proc(5)).
    """
    try:
        lines = (root / "proc/net/if_inet6").read_text().splitlines()
    except OSError:
        return {}
    found: dict[str, list[str]] = {}
    for words in (line.split() for line in lines):
        if len(words) == 6:
            found.setdefault(words[5], []).append(":".join(words[0][place : place + 4] for place in range(0, 32, 4)))
    return found


def untold_changes(root: Path = Path("/")) -> frozenset[str]:
    """The interfaces whose MTU this collection has changed, and what uses them has not been updated yet."""
    return frozenset(_changes(root)[1])


def _changes(root: Path) -> tuple[dict[str, float], set[str]]:
    return _journal(root).read() or ({}, set())


def _journal(root: Path) -> Journal[tuple[dict[str, float], set[str]]]:
    return Journal(
        root / _CHANGES,
        lambda found: ({str(name): float(moment) for name, moment in found["changed"].items()}, {str(name) for name in found["untold"]}),
        counts_as_none,
        mode=READABLE,
    )


def _write_changes(root: Path, changed: t.Mapping[str, float], untold: t.Iterable[str]) -> None:
    _journal(root).write({"changed": changed, "untold": sorted(untold)})


def remember_change(name: str, root: Path = Path("/")) -> None:
    """Note that the MTU of an interface is changed now: programs that took its size when they started have to start again.

    :raises CommandFailed: if that cannot be written.
    """
    changed, untold = _changes(root)
    _write_changes(root, {**changed, name: time.clock_gettime(time.CLOCK_BOOTTIME)}, untold | {name})


def tell_changes(root: Path = Path("/")) -> None:
    """Record that everything which uses the interfaces has their MTU."""
    changed, untold = _changes(root)
    if untold:
        _write_changes(root, changed, ())
