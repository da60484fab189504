# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the MTUs that are there to those that are specified: what is refused, and the order of the steps. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotEffective, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import replace_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.mtu_source import UNMANAGED, MtuSource
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.provider import PROVIDERS, find_places
from ansible_collections.cachefleet.storage.plugins.module_utils._net.interfaces import Link, Links, read_links, remember_change
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.spec import LinkSpec, LinkTarget, resolve

LAYER = "storage_network"
#: IPv6 is switched off on an interface with less, with its addresses and routes (RFC 8200, section 5; addrconf_notify of the kernel).
LEAST_IPV6 = 1280
#: What an interface has when nothing is set for it.
DEFAULT_MTU = 1500
RAISE, LOWER, OTHER, ALL = "raise", "lower", "other", "all"


@frozen
class SetMtu(Operation):
    """Set the MTU of an interface now.

    :param mtu: bytes.
    :param index: the number of the interface; ``up`` whether it is up.
    :param management: whether the connection of this run depends on it.
    """

    mtu: int
    index: int
    up: bool
    management: bool

    def carry_out(self, layer: Layer[t.Any, t.Any], step: Step) -> None:
        layer.runner.run(["ip", "link", "set", "dev", step.item, "mtu", str(self.mtu)], item=step.item)
        remember_change(step.item, layer.root)
        found = (layer.root / "sys/class/net" / step.item / "mtu").read_text().strip()
        if found != str(self.mtu):
            raise NotEffective(f"{LAYER}: {step.item}: mtu should be {self.mtu} and is {found}, although ip reported success.", item=step.item)


@frozen
class SetBootMtu(Operation):
    """Write the MTU of an interface, in bytes, where ``provider`` keeps it for the next boot."""

    mtu: int
    provider: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        """:param layer: that of interfaces, with its ``note``."""
        runner, root = layer.runner, layer.root
        links = read_links(runner, root)
        # Read again: a step before may have written into the same file.
        place = find_places(runner, links, {step.item: self.provider}, root)[step.item]
        if place.obstacle:
            raise NotEffective(place.obstacle, item=step.item)
        change = PROVIDERS[self.provider](runner, links, root).change(place, self.mtu)
        if layer.note is not None:
            layer.note(change)
        for file in change.files:
            replace_file(root / file["path"].lstrip("/"), file["after"], file["mode"])
        try:
            for argv in change.commands:
                runner.run(argv, item=step.item)
        except StorageError:
            for file in change.files:
                replace_file(root / file["path"].lstrip("/"), file["before"], file["mode"])
            for argv in change.undo:
                runner.run(argv, ok=None, item=step.item)
            raise


@frozen
class LinkState:
    """The interfaces of a host as they were found.

    :param carrying: the interfaces that the connection of this run depends on.
    :param ipv6: IPv6 addresses by interface.
    :param places: where the MTU of the specified interfaces comes from at boot.
    """

    links: Links
    carrying: frozenset[str] = frozenset()
    ipv6: t.Mapping[str, t.Sequence[str]] = field(default_factory=dict)
    places: t.Mapping[str, MtuSource] = field(default_factory=dict)


def plan_links(state: LinkState, specs: t.Sequence[LinkSpec], direction: str = ALL) -> list[Step]:
    """Raised from the lowest interface up, then lowered from the highest down, then the state at boot in the same order.

    :param direction: of the live changes, which of them are carried out now. The state at boot follows wherever the MTU is right now.
    :raises BadInput: for an MTU that an interface cannot have, or a state at boot that cannot be set.
    :raises Refused: for what would cut connections.
    """
    targets = resolve(state.links, specs)
    for target in targets.values():
        _require_no_switch_port(state, target)
    _require_managed(state, targets)
    for target in targets.values():
        _check(state, target, targets)
    ordered = _ordered(state, targets, RAISE) + _ordered(state, targets, LOWER)
    settled = [target for target in targets.values() if target not in ordered]
    chosen = [target for target in ordered if direction in (ALL, _way(state, target))]
    live = [_live_step(state, target) for target in chosen]
    boot = [_boot_step(state, target) for target in [*chosen, *settled]]
    return [*live, *(step for step in boot if step is not None)]


def directions(state: LinkState, specs: t.Sequence[LinkSpec]) -> list[str]:
    """Which of raise, lower and other (the state at boot alone) the interfaces need."""
    found = set()
    targets = resolve(state.links, specs)
    for target in targets.values():
        way = _way(state, target)
        if way or _boot_step(state, target) is not None:
            found.add(way or OTHER)
    return [word for word in (RAISE, LOWER, OTHER) if word in found]


def _way(state: LinkState, target: LinkTarget) -> str:
    link = state.links[target.name]
    mtu = target.mtu_on(link)
    return RAISE if mtu > link.mtu else LOWER if mtu < link.mtu else ""


def _ordered(state: LinkState, targets: t.Mapping[str, LinkTarget], way: str) -> list[LinkTarget]:
    sign = 1 if way == RAISE else -1
    chosen = [target for target in targets.values() if _way(state, target) == way]
    # A bond hands a smaller MTU to its members by itself; that the members come after it in the list then finds nothing left to do.
    return sorted(chosen, key=lambda target: (sign * state.links.depth(target.name), state.links[target.name].index))


def _check(state: LinkState, target: LinkTarget, targets: t.Mapping[str, LinkTarget]) -> None:
    link, item = state.links[target.name], target.spec.item
    whose = f" (below {item})" if target.implied else ""
    if link.max_mtu is not None and target.mtu > link.max_mtu:
        raise BadInput(f"{link.name}{whose} supports an MTU of {link.max_mtu} at most, and {target.mtu} is requested: use {link.max_mtu} or less.", item=item)
    if target.mtu < link.min_mtu:
        raise BadInput(f"{link.name}{whose} supports an MTU of {link.min_mtu} at least, and {target.mtu} is requested.", item=item)
    place = state.places.get(target.name)
    if place is not None and place.obstacle and not _settled_at_boot(target, place):
        raise BadInput(place.obstacle, item=item)
    if not _way(state, target):
        return
    if target.mtu < LEAST_IPV6 and state.ipv6.get(link.name):
        raise Refused(
            f"{link.name}{whose} keeps its MTU of {link.mtu}: below {LEAST_IPV6} it would lose IPv6, and it has {', '.join(state.ipv6[link.name])}. "
            "Remove its IPv6 addresses first, or choose a larger MTU.",
            item=item,
        )
    if link.name in state.carrying and not target.spec.allow_management:
        raise Refused(
            f"{link.name}{whose} keeps its MTU of {link.mtu}: the connection of Ansible to this host depends on it. "
            f"Set allow_management: true for {item} to change it all the same; it is reverted if the host cannot be reached any more.",
            item=item,
        )
    _check_upper(state, target, targets)


def _require_no_switch_port(state: LinkState, target: LinkTarget) -> None:
    """The kernel shows neither the bridge of a port nor the other ports of that, the least of whose MTUs an internal port gets (ovs-vswitchd.conf.db(5))."""
    link, item = state.links[target.name], target.spec.item
    if link.switch_port:
        whose = f" (below {item})" if target.implied else ""
        raise Refused(
            f"{link.name}{whose} is a port of Open vSwitch, which keeps the MTUs of all ports of a bridge in its own database: run ovs-vsctl set Interface PORT"
            f" mtu_request={target.mtu} for each port of its bridge that ovs-vsctl show lists, uplinks first and the port with the name of the bridge last, and"
            f" remove {item} from the list.",
            item=item,
        )


def _require_managed(state: LinkState, targets: t.Mapping[str, LinkTarget]) -> None:
    """Name at once all interfaces that no tool configures at boot, and what each of them needs of the tool that configures those around them."""
    # What lies below first, as the tools bring them up.
    names = sorted(targets, key=state.links.depth)
    unmanaged = {
        name: target for name in names for target in [targets[name]] for place in [state.places.get(name)] if place is not None and _lacks(target, place)
    }
    around = {place.provider for name, place in state.places.items() if name in targets and place.provider}
    if not any(state.links[name].kind or target.implied for name, target in unmanaged.items()):
        # A card of the list: each has advice of its own.
        return
    tool = next((one for one in _DEFINITIONS if one in around), "")
    where, definition = _DEFINITIONS.get(tool, ("", None))
    items = " and ".join(dict.fromkeys(target.spec.item for target in unmanaged.values()))
    words = f"{' and '.join(unmanaged)} {'is' if len(unmanaged) == 1 else 'are'} configured at boot by no tool of this host"
    first = next(iter(unmanaged.values())).spec.item
    if definition is None:
        raise BadInput(f"{words}: set persistent: false for {items}, and set their MTU where they are made.", item=first)
    needed = "; ".join(definition(state.links[name], target.mtu) for name, target in unmanaged.items())
    raise BadInput(f"{words}: {where}: {needed}; or set persistent: false for {items}.", item=first)


def _lacks(target: LinkTarget, place: MtuSource) -> bool:
    return bool(place.details.get(UNMANAGED)) and not _settled_at_boot(target, place)


def _stanza(link: Link, mtu: int) -> str:
    raw = f", 'vlan-raw-device {link.lower[0]}'" if link.kind == "vlan" and link.lower else ""
    ports = f", 'bridge_ports {' '.join(link.lower)}'" if link.kind == "bridge" and link.lower else ""
    return f"'auto {link.name}', 'iface {link.name} inet manual', 'mtu {mtu}'{raw}{ports}"


#: What an interface needs of the tool that configures those around it.
_DEFINITIONS: t.Mapping[str, tuple[str, t.Callable[[Link, int], str]]] = {
    "ifupdown": ("add these lines to /etc/network/interfaces", _stanza),
    "wicked": (
        "add these files to /etc/sysconfig/network",
        lambda link, mtu: (
            f"ifcfg-{link.name} with 'STARTMODE=auto', 'MTU={mtu}'"
            + (f", 'ETHERDEVICE={link.lower[0]}' and its VLAN_ID" if link.kind == "vlan" and link.lower else "")
            + (f", 'BRIDGE=yes', 'BRIDGE_PORTS=\"{' '.join(link.lower)}\"'" if link.kind == "bridge" else "")
        ),
    ),
    "netplan": (
        "add these definitions to a file in /etc/netplan",
        lambda link, mtu: (
            f"{link.name} below {link.kind or 'ethernet'}s, with mtu: {mtu}"
            + (f", link: {link.lower[0]} and its id" if link.kind == "vlan" and link.lower else "")
        ),
    ),
    "systemd_networkd": (
        "add these files to /etc/systemd/network",
        lambda link, mtu: f"{link.name}.network with '[Match]', 'Name={link.name}', '[Link]', 'MTUBytes={mtu}'",
    ),
    "networkmanager": (
        "add these profiles to NetworkManager, and activate them",
        lambda link, mtu: (
            f"nmcli connection add type {link.kind or 'ethernet'} ifname {link.name} mtu {mtu}"
            + (f" dev {link.lower[0]} id ID" if link.kind == "vlan" and link.lower else "")
        ),
    ),
}


def _check_upper(state: LinkState, target: LinkTarget, targets: t.Mapping[str, LinkTarget]) -> None:
    """The kernel would cut VLANs down without a word, and a bridge would go on sending what its port drops."""
    larger = []
    for upper in state.links.upper(target.name):
        mtu = targets[upper.name].mtu if upper.name in targets else upper.mtu
        if mtu > target.mtu:
            larger.append(f"{upper.name} ({mtu})")
    if larger:
        raise Refused(
            f"{target.name} keeps its MTU of {state.links[target.name].mtu}: {', '.join(larger)} on it would not fit through {target.mtu} any more. "
            f"List {'it' if len(larger) == 1 else 'them'} too, with {target.mtu} or less.",
            item=target.spec.item,
        )


def _live_step(state: LinkState, target: LinkTarget) -> Step:
    link = state.links[target.name]
    because = f", since it is below {target.spec.item}" if target.implied else ""
    return Step(
        layer=LAYER,
        item=target.name,
        attribute="mtu",
        before=link.mtu,
        after=target.mtu,
        action=f"{'Raise' if target.mtu > link.mtu else 'Lower'} the MTU of {target.name} from {link.mtu} to {target.mtu}{because}",
        operation=SetMtu(target.mtu, link.index, link.up, target.name in state.carrying),
    )


def _settled_at_boot(target: LinkTarget, place: MtuSource) -> bool:
    if not target.spec.persistent or target.handed_down:
        return True
    if target.at_least:
        return (DEFAULT_MTU if place.mtu is None else place.mtu) >= target.mtu
    return place.mtu == target.mtu


def _boot_step(state: LinkState, target: LinkTarget) -> Step | None:
    place = state.places.get(target.name)
    if place is None or _settled_at_boot(target, place):
        return None
    return Step(
        layer=LAYER,
        item=target.name,
        attribute="boot_mtu",
        before=place.mtu,
        after=target.mtu,
        action=f"Write the MTU of {target.name} for the next boot, {target.mtu}, into {place.where}",
        operation=SetBootMtu(target.mtu, place.provider),
    )
