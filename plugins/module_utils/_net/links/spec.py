# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wanted of interfaces, and what that means for those below them."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.frames import best_mtu
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.provider import AUTO, CHOICES

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.interfaces import Link, Links

AOE = "aoe"
#: The last three are streams of TCP: where a block ends has nothing to do with where a packet ends, so the largest MTU is the best.
PURPOSES = (AOE, "iscsi", "nvme_tcp", "ceph")
#: What every host of the Internet must take (RFC 791). Less is a typing error.
LEAST_MTU = 576
#: The length of an IPv4 packet is a field of 16 bits.
MOST_MTU = 65535
#: A bond hands its MTU to its members, a member that joins gets it too, and it can have no other.
_HANDS_DOWN = ("bond", "team")

#: Kinds that the configuration of the network makes. A tap or veth of a virtual machine is made by what starts that.
_MADE_BY_CONFIGURATION = ("", "vlan", "bond", "bridge", "team")

LINK_OPTIONS: dict[str, dict[str, t.Any]] = {
    "interface": {"type": "str"},
    "mac": {"type": "str"},
    "mtu": {"type": "int"},
    "purpose": {"type": "str", "choices": list(PURPOSES)},
    "max_mtu": {"type": "int", "default": 9000},
    "block_size": {"type": "int", "default": 4096},
    "members": {"type": "bool", "default": True},
    "allow_management": {"type": "bool", "default": False},
    "persistent": {"type": "bool", "default": True},
    "provider": {"type": "str", "default": AUTO, "choices": list(CHOICES)},
}


@frozen
class LinkSpec:
    """One entry of the list; the options of it."""

    interface: str | None = None
    mac: str | None = None
    mtu: int | None = None
    purpose: str | None = None
    max_mtu: int = 9000
    block_size: int = 4096
    members: bool = True
    allow_management: bool = False
    persistent: bool = True
    provider: str = AUTO

    @property
    def item(self) -> str:
        """How the user named it."""
        return self.interface or self.mac or ""

    def mtu_for(self, link: Link) -> int:
        """The wanted MTU of an interface.

        :raises BadInput: if there is none that serves the purpose.
        """
        if self.mtu is not None:
            return self.mtu
        limit = min(self.max_mtu, link.max_mtu or self.max_mtu)
        if self.purpose != AOE:
            return limit
        try:
            return best_mtu(limit, self.block_size)
        except BadInput as error:
            raise BadInput(f"{self.item}: {error.message}", item=self.item) from None


@frozen
class LinkTarget:
    """The MTU that an interface should have.

    :param spec: the entry that it follows from.
    :param implied: it is not named itself, it lies below one that is.
    :param at_least: more is as good.
    :param handed_down: what creates it, such as the bond that it is a member of, gives it its MTU at boot.
    """

    name: str
    mtu: int
    spec: LinkSpec
    implied: bool = False
    at_least: bool = False
    handed_down: bool = False

    def mtu_on(self, link: Link) -> int:
        """The MTU that it should have now."""
        return max(self.mtu, link.mtu) if self.at_least else self.mtu


def read_specs(entries: t.Iterable[t.Mapping[str, t.Any]]) -> list[LinkSpec]:
    """The entries of the list, checked as far as that goes without a host.

    :raises BadInput: for one that contradicts itself.
    """
    specs = [LinkSpec(**entry) for entry in entries]
    for place, spec in enumerate(specs):
        if bool(spec.interface) == bool(spec.mac):
            raise BadInput(f"links: entry {place + 1} must name its interface by interface or by mac, and by one of them only.", item=spec.item)
        if (spec.mtu is None) == (spec.purpose is None):
            raise BadInput(f"{spec.item}: set either mtu or purpose.", item=spec.item)
        for option, value in (("mtu", spec.mtu), ("max_mtu", spec.max_mtu)):
            if value is not None and not LEAST_MTU <= value <= MOST_MTU:
                raise BadInput(f"{spec.item}: {option} must be between {LEAST_MTU} and {MOST_MTU}, not {value}.", item=spec.item)
        if spec.purpose != AOE and spec.block_size != LINK_OPTIONS["block_size"]["default"]:
            raise BadInput(f"{spec.item}: block_size has a meaning with purpose: aoe only.", item=spec.item)
    return specs


def resolve(links: Links, specs: t.Sequence[LinkSpec]) -> dict[str, LinkTarget]:
    """What every interface of the list, and every one below it that must follow, should have.

    :raises BadInput: for an interface that is not there or is named twice, and for entries that contradict each other.
    """
    targets: dict[str, LinkTarget] = {}
    for spec in specs:
        link = links.find(spec.interface) if spec.interface else links.find_mac(spec.mac or "")
        if link.name in targets:
            raise BadInput(f"{targets[link.name].spec.item} and {spec.item} are the same interface {link.name}: name it once.", item=spec.item)
        targets[link.name] = LinkTarget(link.name, spec.mtu_for(link), spec)
    # From the top down, so that what follows from an entry has been added when its own lower interfaces are checked.
    for link in sorted(links, key=lambda one: -links.depth(one.name)):
        if link.name in targets:
            for name in link.lower:
                if name in links:
                    _carry_down(targets, targets[link.name], links[name], targets[link.name].mtu_on(link) if link.kind in _HANDS_DOWN else None)
    _check_members(links, targets)
    return targets


def _carry_down(targets: dict[str, LinkTarget], upper: LinkTarget, lower: Link, handed: int | None) -> None:
    known = targets.get(lower.name)
    named = known is not None and not known.implied
    if handed is not None:
        if known is not None and named and known.mtu != handed:
            raise BadInput(
                f"{lower.name} is a member of {upper.name} and has its MTU: {known.mtu} and {handed} contradict each other, name {upper.name} only.",
                item=known.spec.item,
            )
        if not named:
            targets[lower.name] = LinkTarget(lower.name, handed, upper.spec, implied=True, handed_down=True)
        return
    if known is not None and named:
        if known.mtu < upper.mtu:
            raise BadInput(
                f"{upper.name} cannot have an MTU of {upper.mtu} on {lower.name}, which is set to {known.mtu}: give {lower.name} at least as much.",
                item=known.spec.item,
            )
        return
    if not upper.spec.members:
        if lower.mtu < upper.mtu:
            raise BadInput(
                f"{upper.name} cannot have an MTU of {upper.mtu} on {lower.name}, which has {lower.mtu}: list {lower.name} too, or set members: true.",
                item=upper.spec.item,
            )
        return
    if known is None or known.mtu < upper.mtu:
        made_later = lower.kind not in _MADE_BY_CONFIGURATION
        targets[lower.name] = LinkTarget(lower.name, upper.mtu, upper.spec, implied=True, at_least=True, handed_down=made_later)


def _check_members(links: Links, targets: t.Mapping[str, LinkTarget]) -> None:
    for target in targets.values():
        master = links[target.name].master
        if master is None or master not in links or links[master].kind not in _HANDS_DOWN or master in targets:
            continue
        if target.mtu != links[master].mtu:
            raise BadInput(
                f"{target.name} is a member of {master} and has its MTU, which is {links[master].mtu}: name {master} instead.", item=target.spec.item
            )
