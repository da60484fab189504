# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the module ``path_mtu_info`` does: the ways from this host to its peers, over IP and, where AoE is, on layer 2. Changes nothing."""

from __future__ import annotations

import ipaddress
import json
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotUnderstood, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.frames import HEADER, payload
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.output import parse_sancheck
from ansible_collections.cachefleet.storage.plugins.module_utils._net.path_probe import ETHERNET, SMALL, EchoSocket, examine, path_to_dict

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

PEER_OPTIONS = {
    "address": {"type": "str", "required": True},
    "name": {"type": "str", "default": ""},
    "mtu": {"type": "int"},
}
_MOST = 65535
_SANCHECK = "aoe-sancheck"


@frozen
class Interface:
    """One network interface with its addresses of IP version 4."""

    name: str
    mtu: int
    mac: str = ""
    up: bool = True
    addresses: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, t.Any]:
        """For a module's return values."""
        return {**vars(self), "addresses": list(self.addresses), "networks": list(self.networks)}


def parse_addresses(text: str) -> list[Interface]:
    """``ip -json address show`` (ip-address(8)), without the loopback.

    :raises NotUnderstood: if it is no such list.
    """
    try:
        rows = json.loads(text or "[]")
        return [
            Interface(
                row["ifname"],
                row["mtu"],
                row.get("address", ""),
                "UP" in row.get("flags", []),
                tuple(one["local"] for one in _version4(row)),
                tuple(str(ipaddress.ip_network(f"{one['local']}/{one.get('prefixlen', 32)}", strict=False)) for one in _version4(row)),
            )
            for row in rows
            if row.get("link_type") != "loopback" and "ifname" in row
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NotUnderstood("ip -json address show printed something that is not its list of interfaces: is iproute2 older than 4.18?") from None


def _version4(row: t.Mapping[str, t.Any]) -> list[t.Mapping[str, t.Any]]:
    return [one for one in row.get("addr_info", []) if one.get("family") == "inet" and "local" in one]


def read_interfaces(runner: Runner) -> list[Interface]:
    """The interfaces of this host."""
    return parse_addresses(runner.run(["ip", "-json", "address", "show"]).stdout)


@frozen
class Peer:
    """A host to reach. ``mtu``: that packets should have; None for that of the interface of this host."""

    address: str
    name: str = ""
    mtu: int | None = None


def read_peers(entries: t.Sequence[t.Mapping[str, t.Any]]) -> list[Peer]:
    """The peers from the option.

    :raises BadInput: for what is no address of IP version 4, or an MTU out of range.
    """
    peers = []
    for entry in entries:
        peer = Peer(entry["address"].strip(), entry.get("name") or "", entry.get("mtu"))
        try:
            version = ipaddress.ip_address(peer.address).version
        except ValueError:
            raise BadInput(f"'{peer.address}' is not an IP address: use the address that {peer.name or 'the peer'} has on that network.") from None
        if version != 4:
            raise BadInput(f"{peer.address} is an address of IP version 6, over which no MTU is measured here: use one of version 4.", item=peer.address)
        if peer.mtu is not None and not SMALL <= peer.mtu <= _MOST:
            raise BadInput(f"{peer.address}: an MTU to prove is a number from {SMALL} to {_MOST}, and not {peer.mtu}.", item=peer.address)
        peers.append(peer)
    return peers


def measure(
    peer: Peer, interface: str | None, interfaces: t.Sequence[Interface], timeout: float, connect: t.Callable[..., t.Any] = EchoSocket
) -> dict[str, t.Any]:
    """The way to one peer, as plain data.

    :raises StorageError: if this host has no way there, or no permission.
    """
    probe = connect(peer.address, interface, timeout)
    try:
        address = probe.own_address
        own = next((one for one in interfaces if address in one.addresses), None)
        required = peer.mtu or (own.mtu if own is not None else 1500)
        path = examine(peer.address, required, probe)
    finally:
        probe.close()
    found = path_to_dict(path, peer.name, own.name if own is not None else address)
    return {**found, "interface": own.name if own is not None else None, "own_address": address}


def check_layer2(runner: Runner, interface: str | None, interfaces: t.Sequence[Interface]) -> list[dict[str, t.Any]]:
    """What aoe-sancheck finds of the ways to AoE targets; it takes some seconds."""
    words = [_SANCHECK, *([interface] if interface else [])]
    mtus = {one.name: one.mtu for one in interfaces}
    ways = []
    for device in parse_sancheck(runner.run(words, timeout=120).stdout):
        if interface and interface not in device.interfaces:
            continue
        known = [mtus[name] for name in device.interfaces if name in mtus]
        required = min(payload(mtu) for mtu in known) if known else None
        carried = min([device.payload, *(size for _name, _mac, size in device.weak)])
        ok = not device.weak and (required is None or carried >= required)
        ways.append(
            {
                "name": device.name,
                "interfaces": list(device.interfaces),
                "payload": carried,
                "wanted": required,
                "ok": ok,
                "sentences": [] if ok else [_about_way(device.name, device.interfaces, carried, required, min(known) if known else None)],
            }
        )
    return ways


def _about_way(name: str, interfaces: t.Sequence[str], carried: int, required: int | None, mtu: int | None) -> str:
    need = f" Set the interface of the target to the MTU {mtu} and every switch port between to frames of at least {mtu + ETHERNET} bytes." if mtu else ""
    return (
        f"{' and '.join(interfaces)}: frames to the AoE target {name} carry {carried} bytes and not {required or 'more'}: between the two, or at the target,"
        f" something accepts no frame larger than the MTU {carried + HEADER} needs.{need}"
    )


def run_module(module: AnsibleModule, runner: Runner | None = None, connect: t.Callable[..., t.Any] = EchoSocket) -> t.NoReturn:
    """The body of the module."""
    runner = runner or Runner()
    params = module.params
    problems: list[str] = []
    paths: list[dict[str, t.Any]] = []
    layer2: list[dict[str, t.Any]] = []
    try:
        peers = read_peers(params["peers"])
        interfaces = read_interfaces(runner)
        own = {address for one in interfaces for address in one.addresses}
        required = params["interface"]
        if required and required not in {one.name for one in interfaces}:
            raise BadInput(f"There is no interface {required} on this host: see ip link.", item=required)
        for peer in peers:
            if peer.address in own:
                continue
            paths.append(measure(peer, required, interfaces, params["timeout"], connect))
        if params["layer2"]:
            layer2 = check_layer2(runner, required, interfaces)
    except StorageError as error:
        module.fail_json(**error.to_dict())
    problems = [sentence for found in (*paths, *layer2) for sentence in found["sentences"]]
    module.exit_json(
        changed=False,
        ok=not problems and all(found["ok"] for found in (*paths, *layer2)),
        paths=paths,
        layer2=layer2,
        interfaces=[one.to_dict() for one in interfaces],
        problems=problems,
    )
