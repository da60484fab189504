# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer of interfaces: their MTU now and at the next boot.

Its steps are made to be carried out under a dead man's switch (:mod:`storage_network`), which knows what was before.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotEffective, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import replace_file
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.provider import PROVIDERS, find_places
from ansible_collections.cachefleet.storage.plugins.module_utils._net.connection import Peer, carrying, find_peers
from ansible_collections.cachefleet.storage.plugins.module_utils._net.interfaces import Links, ipv6_addresses, read_links, remember_change
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.plan import ALL, LAYER, LinkState, directions, plan_links
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.spec import LinkSpec, resolve

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.mtu_source import BootChange


class LinkLayer(Layer[LinkState, t.Sequence[LinkSpec]]):
    """Interfaces of one host.

    :param wishes: what is looked at.
    :param direction: which live changes are planned: ``all``, ``raise`` or ``lower``.
    :param peers: the other ends of the connection that must not be cut; without it they are looked for.
    :param note: called with every change of the boot state before it is made, so that it can be undone.
    """

    name = LAYER

    def __init__(
        self,
        runner: Runner,
        wishes: t.Sequence[LinkSpec],
        direction: str = ALL,
        root: Path = Path("/"),
        peers: t.Sequence[Peer] | None = None,
        note: t.Callable[[BootChange], None] | None = None,
    ) -> None:
        self.runner = runner
        self.wishes = list(wishes)
        self.direction = direction
        self.root = root
        self.peers = peers
        self.note = note

    def read(self) -> LinkState:
        """All interfaces, and of those in the list and below them also where their MTU comes from at boot.

        :raises BadInput: for a list that cannot be meant on this host.
        """
        if not self.wishes:
            return LinkState(Links([]))
        links = read_links(self.runner, self.root)
        targets = resolve(links, self.wishes)
        kept = {
            target.name: target.wish.provider if not target.implied else "auto"
            for target in targets.values()
            if target.wish.persistent and not target.handed_down
        }
        peers = find_peers(self.root) if self.peers is None else self.peers
        return LinkState(links, carrying(self.runner, links, peers), ipv6_addresses(self.root), find_places(self.runner, links, kept, self.root))

    def plan(self, present: LinkState, wanted: t.Sequence[LinkSpec]) -> list[Step]:
        """See :func:`plan_links`."""
        return plan_links(present, wanted, self.direction)

    def apply(self, step: Step) -> None:
        """Carry one step out."""
        getattr(self, f"_{step.operation}")(step)

    def _set_mtu(self, step: Step) -> None:
        self.runner.run(["ip", "link", "set", "dev", step.item, "mtu", str(step.after)], item=step.item)
        remember_change(step.item, self.root)
        found = (self.root / "sys/class/net" / step.item / "mtu").read_text().strip()
        if found != str(step.after):
            raise NotEffective(f"{LAYER}: {step.item}: mtu should be {step.after} and is {found}, although ip said that it was set.", item=step.item)

    def _set_boot(self, step: Step) -> None:
        links = read_links(self.runner, self.root)
        # Looked at anew: a step before may have written into the same file.
        place = find_places(self.runner, links, {step.item: step.arguments["provider"]}, self.root)[step.item]
        change = PROVIDERS[step.arguments["provider"]](self.runner, links, self.root).change(place, step.after)
        if self.note is not None:
            self.note(change)
        for file in change.files:
            replace_file(self.root / file["path"].lstrip("/"), file["after"], file["mode"])
        try:
            for argv in change.commands:
                self.runner.run(argv, item=step.item)
        except StorageError:
            for file in change.files:
                replace_file(self.root / file["path"].lstrip("/"), file["before"], file["mode"])
            for argv in change.undo:
                self.runner.run(argv, ok=None, item=step.item)
            raise

    def directions(self, present: LinkState) -> list[str]:
        """Which of raise, lower and other are needed."""
        return directions(present, self.wishes)

    def facts(self, present: LinkState) -> dict[str, t.Any]:
        """What the module returns about every interface of the list and those below that follow."""
        found = []
        for target in resolve(present.links, self.wishes).values():
            link, place = present.links[target.name], present.places.get(target.name)
            found.append(
                {
                    "interface": link.name,
                    "mtu": link.mtu,
                    "wanted_mtu": target.mtu,
                    "max_mtu": link.max_mtu,
                    "boot_mtu": place.mtu if place else None,
                    "provider": place.provider or None if place else None,
                    "boot_place": place.where or None if place else None,
                    "carries_connection": link.name in present.carrying,
                    "named": not target.implied,
                }
            )
        return {"links": found}

    def concerns(self, present: LinkState, wanted: t.Sequence[LinkSpec]) -> list[str]:
        """What is right now and may not be so at boot, and purposes that the card does not quite serve."""
        said = [place.concern for place in present.places.values() if place.concern]
        for target in resolve(present.links, wanted).values():
            link, wish = present.links[target.name], target.wish
            if not target.implied and wish.purpose and link.max_mtu is not None and link.max_mtu < wish.max_mtu:
                said.append(f"{link.name} takes an MTU of {link.max_mtu} at most, so {target.mtu} was chosen: every host of its network needs the same.")
        return said

    def foresee(self, present: LinkState, wanted: t.Sequence[LinkSpec]) -> list[str]:
        """The same."""
        return self.concerns(present, wanted)
