# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that determines which hosts should prove the MTU to which others."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

End = t.Mapping[str, t.Any]


def path_mtu_peers(ends: t.Any, host: str, limit: int = 8) -> list[dict[str, str]]:
    if not isinstance(ends, t.Mapping) or not all(isinstance(end, t.Mapping) and isinstance(end.get("interfaces"), list) for end in ends.values()):
        raise AnsibleFilterError("path_mtu_peers: the ends must be a dictionary by host, each with a list of interfaces.")
    if host not in ends:
        raise AnsibleFilterError(f"path_mtu_peers: {host} is not among the ends.")
    names = sorted(ends)
    place = names.index(host)
    # Each host begins with its successor, so that a limit leaves no host out.
    ring = [*names[place + 1 :], *names[:place]]
    if len({bool(end.get("target")) for end in ends.values()}) == 2:
        ring = [name for name in ring if bool(ends[name].get("target")) != bool(ends[host].get("target"))]
    own = {network for _address, network in _storage_addresses(ends[host])}
    peers: list[dict[str, str]] = []
    chosen = 0
    for name in ring:
        addresses = [address for address, network in _storage_addresses(ends[name]) if network in own]
        peers += [{"name": name, "address": address} for address in addresses]
        chosen += bool(addresses)
        if chosen >= int(limit):
            break
    return peers


def _storage_addresses(end: End) -> t.Iterator[tuple[str, str]]:
    """The addresses of a host that count, each with its network; all of them if it does not name these interfaces."""
    requested = {str(name).lower() for name in end.get("wanted") or ()}
    for interface in end["interfaces"]:
        if not requested or {str(interface.get("name")).lower(), str(interface.get("mac")).lower()} & requested:
            yield from zip(interface.get("addresses") or (), interface.get("networks") or ())


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"path_mtu_peers": path_mtu_peers}
