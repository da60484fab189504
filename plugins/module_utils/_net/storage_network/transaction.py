# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The storage network of one host: interfaces, what it serves over ATA over Ethernet, what it uses of it.

One run is one transaction, or two module calls that are one. The first call arms a rollback timer and changes the MTUs. The second
one, which comes over a connection that was made afterwards, changes the state at boot, confirms, and handles what depends on the
MTU. Whatever ends a run before it confirms (a cut connection, a killed module, a controller that ended, a reboot) ends in the MTUs
that were there before, now and at boot.
"""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t
import uuid
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Outcome, Step, not_effective, plan_steps
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotEffective, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.lock import exclusive
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._net.interfaces import tell_changes, untold_changes
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.layer import LinkLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.plan import ALL, LAYER, OTHER, SetMtu
from ansible_collections.cachefleet.storage.plugins.module_utils._net.storage_network.rollback_timer import RollbackTimer
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.volatile import NO_DRIVES

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.initiator import AoeInitiatorState
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.connection import Peer
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.spec import LinkSpec

States = t.Dict[str, t.Any]


@frozen
class Part:
    """A layer over the interfaces.

    :param later: its state when interfaces have other MTUs, by name, and when the users of some of them are not updated yet.
    :param over_drives: whether its state depends on the write caches of drives, so that it is read with what is planned for them.
    """

    layer: Layer[t.Any, t.Any]
    later: t.Callable[[t.Any, t.Mapping[str, int], frozenset[str]], t.Any] = lambda state, mtus, untold: state  # noqa: ARG005
    over_drives: bool = False


@frozen
class NetworkSpec:
    """Everything that is specified for a host. Parts come in the order in which they are brought about."""

    links: t.Sequence[LinkSpec] = ()
    parts: t.Sequence[Part] = ()
    direction: str = ALL
    peers: t.Sequence[Peer] | None = None


class StorageNetworkLayer(Layer[States, NetworkSpec]):
    """Interfaces first, then what is served over them, then what is used."""

    name = LAYER
    one_at_a_time = True

    def __init__(self, runner: Runner, spec: NetworkSpec, root: Path = Path("/")) -> None:
        super().__init__(runner, spec, root)
        self.links = LinkLayer(runner, spec.links, root, direction=spec.direction, peers=spec.peers)
        self._layers: dict[str, Layer[t.Any, t.Any]] = {self.links.name: self.links, **{part.layer.name: part.layer for part in spec.parts}}

    def read(self, drives: t.Mapping[str, str] = NO_DRIVES) -> States:
        """The state of every layer, by its name.

        :param drives: what the write cache of a drive will be, by kernel name, once planned steps have been carried out.
        """
        over_drives = {part.layer.name for part in self.spec.parts if part.over_drives}
        return {name: t.cast("t.Any", layer).read(drives) if name in over_drives else layer.read() for name, layer in self._layers.items()}

    def plan(self, state: States) -> list[Step]:
        """The steps of the interfaces; where they are planned in all directions, also those of what lies on them."""
        steps = self.links.plan(state[self.links.name])
        return steps + (self._plan_parts(state, steps) if self.spec.direction == ALL else [])

    def _plan_parts(self, state: States, links: t.Sequence[Step]) -> list[Step]:
        # What is planned for an interface depends on the MTU that the steps before will leave behind.
        expected = {step.item: step.operation.mtu for step in links if isinstance(step.operation, SetMtu)}
        untold = untold_changes(self.root) if self.spec.parts else frozenset()
        return [step for part in self.spec.parts for step in part.layer.plan(part.later(state[part.layer.name], expected, untold))]

    def with_mtus(self, state: States, mtus: t.Mapping[str, int]) -> States:
        """The state with other MTUs of interfaces: those that come back before anything else is done."""
        links = state[self.links.name]
        return {**state, self.links.name: dataclasses.replace(links, links=links.links.with_mtus(mtus))}

    def directions(self, state: States) -> list[str]:
        """Which of raise, lower and other the host needs, whatever direction is carried out now."""
        found = self.links.directions(state[self.links.name])
        # What follows from another MTU counts too: no second call is needed for a host on which nothing follows.
        if OTHER not in found and self._plan_parts(state, self.links.plan(state[self.links.name])):
            found.append(OTHER)
        return found

    def apply(self, step: Step) -> None:
        """In the layer that planned the step."""
        self._layers[step.layer].apply(step)

    def facts(self, state: States) -> dict[str, t.Any]:
        """Those of all layers."""
        return {name: value for one, layer in self._layers.items() for name, value in layer.facts(state[one]).items()}

    def check_settled(self, state: States) -> None:
        for name, layer in self._layers.items():
            layer.check_settled(state[name])

    def check_planned(self, state: States) -> None:
        for name, layer in self._layers.items():
            layer.check_planned(state[name])

    @property
    def warned(self) -> tuple[str, ...]:
        """Its own warnings, then those of all layers."""
        return tuple(dict.fromkeys([*super().warned, *(text for layer in self._layers.values() for text in layer.warned)]))


def later_initiator(state: AoeInitiatorState, mtus: t.Mapping[str, int], untold: frozenset[str]) -> AoeInitiatorState:
    """The initiator when interfaces have other MTUs: it negotiates again over those whose MTU it does not have."""
    later = state.after_links(mtus)
    return dataclasses.replace(later, changing=later.changing | untold)


@frozen
class Report(Outcome):
    """What a run, or the first half of one, did.

    :param pending: what waits for a confirmation: ``token`` and ``changes``; empty if nothing does.
    """

    pending: t.Mapping[str, t.Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, t.Any]:
        """``changed``, ``actions``, ``diff`` and, if something waits, ``pending``."""
        return {**super().to_dict(), "pending": dict(self.pending)} if self.pending else super().to_dict()


class Transaction:
    """Carries the steps of a storage network out under a rollback timer.

    :param revert_after: seconds in which a confirmation must come.
    """

    def __init__(self, layer: StorageNetworkLayer, rollback_timer: RollbackTimer, revert_after: int, root: Path = Path("/")) -> None:
        self.layer = layer
        self.rollback_timer = rollback_timer
        self.revert_after = revert_after
        self.root = root
        self.done: list[Step] = []

    def predict(self, drives: t.Mapping[str, str] = NO_DRIVES) -> Report:
        """What a run would do. It waits for an earlier one that is not confirmed, since what that leaves behind is not known yet.

        :param drives: as of :meth:`StorageNetworkLayer.read`.
        """
        put_back = self._settle(repair=False)
        state = self.layer.read(drives)
        if put_back:
            state = self.layer.with_mtus(state, {entry["name"]: entry["mtu"] for entry in self.rollback_timer.armed().get("live", [])})
        steps = plan_steps(self.layer, state)
        self.layer.check_planned(state)
        return Report(steps, state, self.layer.warned)

    def run(self, token: str | None = None) -> Report:
        """All of it, or, with a token, up to where the connection must be proven.

        :raises StorageError: with ``changed``, ``actions`` and ``broke_off`` in its facts.
        """
        with self._reporting_what_was_done():
            while True:
                # The run that is waited for needs the lock to confirm.
                self._settle()
                with exclusive(self.layer.name, self.root):
                    if not self.rollback_timer.armed():
                        return self._run(token)

    def _settle(self, *, repair: bool = True) -> bool:
        """Wait for an earlier run or undo what it left behind; whether there was such a run to undo."""
        sentences = self.rollback_timer.settle(repair=repair)
        for sentence in sentences:
            self.layer.warn(sentence)
        return bool(sentences)

    def _run(self, token: str | None) -> Report:
        state = self.layer.read()
        steps = plan_steps(self.layer, state)
        live = [(step, step.operation) for step in steps if isinstance(step.operation, SetMtu)]
        if not live:
            return self._finish(state, steps)
        mine = token or uuid.uuid4().hex
        self._change(mine, live)
        if token:
            changes = [{"interface": step.item, "before": step.before, "after": step.after} for step, _operation in live]
            return Report(tuple(self.done), state, self.layer.warned, {"token": token, "changes": changes, "revert_after": self.revert_after})
        return self._keep(mine)

    def confirm(self, token: str) -> Report:
        """The second half, after the host was reached over a new connection.

        :raises NotEffective: if it was too late and everything was put back.
        """
        with self._reporting_what_was_done(), exclusive(self.layer.name, self.root):
            return self._keep(token)

    def _change(self, token: str, live: t.Sequence[tuple[Step, SetMtu]]) -> None:
        before = [{"index": operation.index, "name": step.item, "mtu": step.before, "up": operation.up} for step, operation in reversed(live)]
        self.rollback_timer.arm(token, before, self.revert_after)
        try:
            for step, _operation in live:
                self._apply(step)
        except StorageError as error:
            self._undo(token, error, f"a change failed: {error.message}")
            raise

    def _keep(self, token: str) -> Report:
        """Make the state at boot as the one now, confirm, and do the rest."""
        with self.rollback_timer.held(token):
            try:
                # Interfaces only: the rest was checked before anything was changed, and the deadline comes nearer.
                steps = self.layer.links.plan(self.layer.links.read())
                again = [step for step in steps if isinstance(step.operation, SetMtu)]
                if again:
                    raise NotEffective(
                        f"{LAYER}: {again[0].item}: mtu should be {again[0].after} and is {again[0].before} again: something else on this host sets it.",
                        item=again[0].item,
                    )
                self.layer.links.note = self.rollback_timer.note
                for step in steps:
                    self._apply(step)
                self.rollback_timer.confirm()
            except StorageError as error:
                self._undo(token, error, f"the change was not kept: {error.message}", held=True)
                raise
            finally:
                self.layer.links.note = None
        state = self.layer.read()
        return self._finish(state, self.layer.plan(state))

    def _undo(self, token: str, error: StorageError, reason: str, *, held: bool = False) -> None:
        if held:
            messages = self.rollback_timer.put_back(reason)
        else:
            with self.rollback_timer.held(token):
                messages = self.rollback_timer.put_back(reason)
        error.facts.setdefault("put_back", messages)
        error.facts.setdefault("changed", False)

    def _finish(self, state: States, steps: t.Sequence[Step]) -> Report:
        for step in steps:
            self._apply(step)
        if steps:
            state = self.layer.read()
        differences = self.layer.verify(state) if self.done else ()
        if differences:
            raise not_effective(LAYER, differences)
        if self.layer.spec.direction == ALL:
            tell_changes(self.root)
        self.layer.check_settled(state)
        return Report(tuple(self.done), state, self.layer.warned)

    def _apply(self, step: Step) -> None:
        try:
            self.layer.apply(step)
        except StorageError as error:
            error.facts.setdefault("broke_off", step.action)
            raise
        self.done.append(step)

    @contextlib.contextmanager
    def _reporting_what_was_done(self) -> t.Iterator[None]:
        """Puts what was done before a failure into its facts."""
        try:
            yield
        except StorageError as error:
            error.facts.setdefault("changed", bool(self.done))
            error.facts.setdefault("actions", [step.action for step in self.done])
            raise
