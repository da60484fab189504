# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The storage network of one host: interfaces, what it serves over ATA over Ethernet, what it uses of it.

One run is one transaction, or two module calls that are one. The first call arms a dead man's switch and changes the MTUs. The second
one, which comes over a connection that was made afterwards, changes the state at boot, confirms, and sees to what depends on the
MTU. Whatever ends a run before it confirms (a cut connection, a killed module, a controller that died, a reboot) ends in the MTUs
that were there before, now and at boot.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import dataclasses
import typing as t
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Difference, Layer, Step, diff_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotEffective, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.lock import exclusive
from ansible_collections.cachefleet.storage.plugins.module_utils._net.interfaces import tell_changes, untold_changes
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.layer import LinkLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.plan import ALL, LAYER, OTHER, SET_MTU
from ansible_collections.cachefleet.storage.plugins.module_utils._net.storage_network.rollback_timer import RollbackTimer

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.initiator import AoeInitiatorState
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.connection import Peer
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.spec import LinkSpec

States = t.Dict[str, t.Any]


@dataclass(frozen=True)
class Part:
    """A layer over the interfaces, and what is wanted of it.

    :param later: its state when interfaces have other MTUs, by name, and when those who use some of them do not know of it yet.
    """

    layer: Layer[t.Any, t.Any]
    wanted: t.Any
    later: t.Callable[[t.Any, t.Mapping[str, int], frozenset[str]], t.Any] = lambda state, mtus, untold: state  # noqa: ARG005


@dataclass(frozen=True)
class NetworkSpec:
    """Everything that is wanted of a host. Parts come in the order in which they are brought about."""

    links: t.Sequence[LinkSpec] = ()
    parts: t.Sequence[Part] = ()
    direction: str = ALL
    peers: t.Sequence[Peer] | None = None


class StorageNetworkLayer(Layer[States, NetworkSpec]):
    """Interfaces first, then what is served over them, then what is used."""

    name = LAYER
    one_at_a_time = True

    def __init__(self, runner: Runner, wish: NetworkSpec, root: Path = Path("/")) -> None:
        self.wish = wish
        self.root = root
        self.links = LinkLayer(runner, wish.links, wish.direction, root, wish.peers)
        self._layers: dict[str, Layer[t.Any, t.Any]] = {self.links.name: self.links, **{part.layer.name: part.layer for part in wish.parts}}

    def read(self) -> States:
        """The state of every layer, by its name."""
        return {name: layer.read() for name, layer in self._layers.items()}

    def plan(self, present: States, wanted: NetworkSpec) -> list[Step]:
        """The steps of the interfaces; where they are planned in all directions, also those of what lies on them."""
        steps = self.links.plan(present[self.links.name], wanted.links)
        return steps + (self._plan_parts(present, wanted, steps) if wanted.direction == ALL else [])

    def _plan_parts(self, present: States, wanted: NetworkSpec, links: t.Sequence[Step]) -> list[Step]:
        # What is planned for an interface depends on the MTU that the steps before will leave behind.
        expected = {step.item: step.after for step in links if step.operation == SET_MTU}
        untold = untold_changes(self.root) if wanted.parts else frozenset()
        return [step for part in wanted.parts for step in part.layer.plan(part.later(present[part.layer.name], expected, untold), part.wanted)]

    def with_mtus(self, present: States, mtus: t.Mapping[str, int]) -> States:
        """The state with other MTUs of interfaces: those that come back before anything else is done."""
        links = present[self.links.name]
        return {**present, self.links.name: dataclasses.replace(links, links=links.links.with_mtus(mtus))}

    def directions(self, present: States, wanted: NetworkSpec) -> list[str]:
        """Which of raise, lower and other the host needs, whatever direction is carried out now."""
        found = self.links.directions(present[self.links.name])
        # What follows from another MTU counts too: nobody has to come back to a host on which nothing follows.
        if OTHER not in found and self._plan_parts(present, wanted, self.links.plan(present[self.links.name], wanted.links)):
            found.append(OTHER)
        return found

    def apply(self, step: Step) -> None:
        """Carry one step out in the layer that planned it."""
        self._layers[step.layer].apply(step)

    def facts(self, present: States) -> dict[str, t.Any]:
        """Those of all layers."""
        return {name: value for one, layer in self._layers.items() for name, value in layer.facts(present[one]).items()}

    def concerns(self, present: States, wanted: NetworkSpec) -> list[str]:
        """Those of all layers."""
        said = list(self.links.concerns(present[self.links.name], wanted.links))
        return said + [concern for part in wanted.parts for concern in part.layer.concerns(present[part.layer.name], part.wanted)]

    def foresee(self, present: States, wanted: NetworkSpec) -> list[str]:
        """Those of all layers."""
        said = list(self.links.foresee(present[self.links.name], wanted.links))
        return said + [concern for part in wanted.parts for concern in part.layer.foresee(present[part.layer.name], part.wanted)]


def later_initiator(state: AoeInitiatorState, mtus: t.Mapping[str, int], untold: frozenset[str]) -> AoeInitiatorState:
    """The initiator when interfaces have other MTUs: it negotiates again over those that it does not know the MTU of."""
    later = state.after_links(mtus)
    return dataclasses.replace(later, changing=later.changing | untold)


@dataclass(frozen=True)
class Report:
    """What a run, or the first half of one, did.

    :param pending: what waits for a confirmation: ``token`` and ``changes``; empty if nothing does.
    """

    steps: tuple[Step, ...]
    present: States
    concerns: tuple[str, ...] = ()
    pending: t.Mapping[str, t.Any] = field(default_factory=dict)

    def as_result(self) -> dict[str, t.Any]:
        """``changed``, ``actions``, ``diff`` and, if something waits, ``pending``."""
        result: dict[str, t.Any] = {"changed": bool(self.steps), "actions": [step.action for step in self.steps], "diff": diff_of(self.steps)}
        return {**result, "pending": dict(self.pending)} if self.pending else result


class Transaction:
    """Carries the steps of a storage network out under a dead man's switch.

    :param revert_after: seconds in which a confirmation must come.
    """

    def __init__(self, layer: StorageNetworkLayer, dead_man: RollbackTimer, revert_after: int, root: Path = Path("/")) -> None:
        self.layer = layer
        self.dead_man = dead_man
        self.revert_after = revert_after
        self.root = root
        self.done: list[Step] = []

    def foresee(self) -> Report:
        """What a run would do. It waits for an earlier one that is not confirmed, since what that leaves behind is not known yet."""
        said = self.dead_man.settle(repair=False)
        present = self.layer.read()
        if said:
            present = self.layer.with_mtus(present, {entry["name"]: entry["mtu"] for entry in self.dead_man.armed().get("live", [])})
        steps = self.layer.plan(present, self.layer.wish)
        return Report(tuple(steps), present, (*said, *self.layer.foresee(present, self.layer.wish)))

    def run(self, token: str | None = None) -> Report:
        """All of it, or, with a token, up to where the connection must be proven.

        :raises StorageError: with ``changed``, ``actions`` and ``broke_off`` in its facts.
        """
        with self._told():
            put_back: list[str] = []
            while True:
                # The run that is waited for needs the lock to confirm.
                put_back += self.dead_man.settle()
                with exclusive(self.layer.name, self.root):
                    if not self.dead_man.armed():
                        return self._run(token, put_back)

    def _run(self, token: str | None, put_back: t.Sequence[str]) -> Report:
        present = self.layer.read()
        steps = self.layer.plan(present, self.layer.wish)
        live = [step for step in steps if step.layer == LAYER and step.operation == SET_MTU]
        if not live:
            return self._finish(present, steps, put_back)
        mine = token or uuid.uuid4().hex
        self._change(mine, live)
        if token:
            changes = [{"interface": step.item, "before": step.before, "after": step.after} for step in live]
            return Report(tuple(self.done), present, tuple(put_back), {"token": token, "changes": changes, "revert_after": self.revert_after})
        return self._keep(mine)

    def confirm(self, token: str) -> Report:
        """The second half, after the host was reached over a new connection.

        :raises NotEffective: if it was too late and everything was put back.
        """
        with self._told(), exclusive(self.layer.name, self.root):
            return self._keep(token)

    def _change(self, token: str, steps: t.Sequence[Step]) -> None:
        live = [{"index": step.arguments["index"], "name": step.item, "mtu": step.before, "up": step.arguments["up"]} for step in reversed(steps)]
        self.dead_man.arm(token, live, self.revert_after)
        try:
            for step in steps:
                self._apply(step)
        except StorageError as error:
            self._undo(token, error, f"a change failed: {error.message}")
            raise

    def _keep(self, token: str) -> Report:
        """Make the state at boot as the one now, confirm, and do the rest."""
        with self.dead_man.held(token):
            try:
                # Interfaces only: the rest was looked at before anything was changed, and the deadline comes nearer.
                steps = self.layer.links.plan(self.layer.links.read(), self.layer.wish.links)
                again = [step for step in steps if step.operation == SET_MTU]
                if again:
                    raise NotEffective(
                        f"{LAYER}: {again[0].item}: mtu should be {again[0].after} and is {again[0].before} again: something else on this host sets it.",
                        item=again[0].item,
                    )
                self.layer.links.note = self.dead_man.note
                for step in steps:
                    self._apply(step)
            except StorageError as error:
                self._undo(token, error, f"the change was not kept: {error.message}", held=True)
                raise
            finally:
                self.layer.links.note = None
            self.dead_man.confirm()
        present = self.layer.read()
        return self._finish(present, self.layer.plan(present, self.layer.wish), [])

    def _undo(self, token: str, error: StorageError, reason: str, *, held: bool = False) -> None:
        if held:
            said = self.dead_man.put_back(reason)
        else:
            with self.dead_man.held(token):
                said = self.dead_man.put_back(reason)
        error.facts.setdefault("put_back", said)
        error.facts.setdefault("changed", False)

    def _finish(self, present: States, steps: t.Sequence[Step], said: t.Sequence[str]) -> Report:
        for step in steps:
            self._apply(step)
        if steps:
            present = self.layer.read()
        if self.done:
            self._prove(self.layer.verify(present, self.layer.wish))
        if self.layer.wish.direction == ALL:
            tell_changes(self.root)
        return Report(tuple(self.done), present, (*said, *self.layer.concerns(present, self.layer.wish)))

    def _apply(self, step: Step) -> None:
        try:
            self.layer.apply(step)
        except StorageError as error:
            error.facts.setdefault("broke_off", step.action)
            raise
        self.done.append(step)

    def _prove(self, differences: t.Sequence[Difference]) -> None:
        if differences:
            raise NotEffective(
                f"{LAYER}: the host did not take what was set: " + "; ".join(str(difference) for difference in differences),
                item=differences[0].item,
                differences=[vars(difference) for difference in differences],
            )

    def _told(self) -> _Told:
        return _Told(self)


class _Told:
    """Puts what was done before a failure into its facts."""

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: t.Any, error: t.Any, trace: t.Any) -> None:
        if isinstance(error, StorageError):
            error.facts.setdefault("changed", bool(self.transaction.done))
            error.facts.setdefault("actions", [step.action for step in self.transaction.done])
