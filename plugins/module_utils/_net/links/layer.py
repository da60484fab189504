# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer of interfaces: their MTU now and at the next boot.

Its steps are made to be carried out under a rollback timer (:mod:`storage_network`), which has the previous values.
"""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.provider import find_places
from ansible_collections.cachefleet.storage.plugins.module_utils._net.connection import Peer, carrying, find_peers
from ansible_collections.cachefleet.storage.plugins.module_utils._net.interfaces import Links, ipv6_addresses, read_links
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.plan import ALL, LAYER, LinkState, directions, plan_links
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.spec import LinkSpec, resolve

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.mtu_source import BootChange


class LinkLayer(Layer[LinkState, t.Sequence[LinkSpec]]):
    """Interfaces of one host.

    :param direction: which live changes are planned: ``all``, ``raise`` or ``lower``.
    :param peers: the other ends of the connection that must not be cut; without it they are searched.
    """

    name = LAYER

    def __init__(
        self,
        runner: Runner,
        spec: t.Sequence[LinkSpec],
        root: Path = Path("/"),
        *,
        direction: str = ALL,
        peers: t.Sequence[Peer] | None = None,
    ) -> None:
        super().__init__(runner, spec, root)
        self.direction = direction
        self.peers = peers
        #: Called with every change of the boot state before it is made, so that it can be undone.
        self.note: t.Callable[[BootChange], None] | None = None

    def read(self) -> LinkState:
        """All interfaces, and of those in the list and below them also where their MTU comes from at boot.

        :raises BadInput: for a list that is invalid on this host.
        """
        if not self.spec:
            return LinkState(Links([]))
        links = read_links(self.runner, self.root)
        targets = resolve(links, self.spec)
        kept = {
            target.name: target.spec.provider if not target.implied else "auto"
            for target in targets.values()
            if target.spec.persistent and not target.handed_down
        }
        peers = find_peers(self.root) if self.peers is None else self.peers
        return LinkState(links, carrying(self.runner, links, peers), ipv6_addresses(self.root), find_places(self.runner, links, kept, self.root))

    def plan(self, state: LinkState) -> list[Step]:
        return plan_links(state, self.spec, self.direction)

    def directions(self, state: LinkState) -> list[str]:
        """Which of raise, lower and other are needed."""
        return directions(state, self.spec)

    def facts(self, state: LinkState) -> dict[str, t.Any]:
        """What the module returns about every interface of the list and those below that follow."""
        found = []
        for target in resolve(state.links, self.spec).values():
            link, place = state.links[target.name], state.places.get(target.name)
            found.append(
                {
                    "interface": link.name,
                    "mtu": link.mtu,
                    "wanted_mtu": target.mtu,
                    "max_mtu": link.max_mtu,
                    "boot_mtu": place.mtu if place else None,
                    "provider": place.provider or None if place else None,
                    "boot_place": place.where or None if place else None,
                    "carries_connection": link.name in state.carrying,
                    "named": not target.implied,
                }
            )
        return {"links": found}

    def check_settled(self, state: LinkState) -> None:
        """What is right now and may not be so at boot, and purposes that the card does not quite serve."""
        for place in state.places.values():
            if place.concern:
                self.warn(place.concern)
        for target in resolve(state.links, self.spec).values():
            link, spec = state.links[target.name], target.spec
            if not target.implied and spec.purpose and link.max_mtu is not None and link.max_mtu < spec.max_mtu:
                self.warn(f"{link.name} supports an MTU of {link.max_mtu} at most, so {target.mtu} was chosen: every host of its network needs the same.")

    #: The same: nothing of it changes by a run.
    check_planned = check_settled
