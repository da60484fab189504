# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read, plan, apply, read back: the one shape of everything that changes a host.

A layer reads plain, serialisable state and compares it with its specification. ``plan`` is pure, so check mode, the diff, the
list of actions and what is really done all come from the same steps and cannot disagree. A step carries its operation, a frozen
dataclass with all that is needed to carry it out. Nothing here may assume that a layer runs alone: :func:`converge` drives one, a
later caller may order the steps of many.
"""

from __future__ import annotations

import abc
import contextlib
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotEffective, Refused, StorageError, TimedOut, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import require_room
from ansible_collections.cachefleet.storage.plugins.module_utils._core.lock import exclusive
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import printable
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

State = t.TypeVar("State")
Spec = t.TypeVar("Spec")


class Operation:
    """What one step does. A subclass is a frozen dataclass of plain values, which carries itself out with what the layer has.

    What it starts and what the kernel must have for it is checked before the first step of a run is carried out, in check mode too.
    """

    #: Names of commands.
    needs_commands: t.ClassVar[tuple[str, ...]] = ()
    #: Names of kernel modules.
    needs_modules: t.ClassVar[tuple[str, ...]] = ()

    def carry_out(self, layer: t.Any, step: Step) -> None:
        """Make the change. Every operation of a layer that does not override :meth:`Layer.carry_out` defines it.

        :raises StorageError: if it does not succeed.
        """
        raise NotImplementedError


@frozen
class Step:
    """One change of one attribute of one item.

    :param layer: the layer that plans and applies it, for example ``drive_write_cache``.
    :param item: the thing, as the user named it.
    :param attribute: what of it changes, for example ``write_cache``.
    :param before: the value found (plain data; ``None`` if it was not there).
    :param after: the value wanted (plain data; ``None`` if it is taken away).
    :param action: what will be done, as a sentence in the imperative.
    :param operation: how it is done.
    """

    layer: str
    item: str
    attribute: str
    before: t.Any
    after: t.Any
    action: str
    operation: Operation


@frozen
class Difference:
    """What was wanted and what was found after every step had been carried out."""

    layer: str
    item: str
    attribute: str
    wanted: t.Any
    found: t.Any

    def __str__(self) -> str:
        return f"{self.item}: {self.attribute} should be {self.wanted} and is {self.found}"


class Layer(abc.ABC, t.Generic[State, Spec]):
    """One cache layer of one host.

    :param runner: starts processes.
    :param spec: what the user requests. An empty one reads nothing and changes nothing.
    :param root: below which /sys, /proc, /dev and /etc are.
    :param clock: seconds, only for differences.
    :param sleep: waits for a number of seconds.
    """

    #: The name used in steps, diffs and messages.
    name: str
    #: Whether a run waits for an earlier one of this layer on the same host that has not ended, as after a controller that ended.
    one_at_a_time: bool = False
    #: Whether no step leaves anything behind that the plan does not show: then a failed run whose plan is still the same has changed nothing.
    plan_shows_changes: bool = False

    def __init__(
        self,
        runner: Runner,
        spec: Spec,
        root: Path = Path("/"),
        *,
        clock: t.Callable[[], float] = time.monotonic,
        sleep: t.Callable[[float], None] = time.sleep,
    ) -> None:
        self.runner = runner
        self.spec = spec
        self.root = root
        self.clock = clock
        self.sleep = sleep
        self._warned: list[str] = []

    @abc.abstractmethod
    def read(self) -> State:
        """The whole present state, in as few commands as the tools allow."""

    @abc.abstractmethod
    def plan(self, state: State) -> list[Step]:
        """The steps from ``state`` to the specification; pure. Refusals are raised here, before anything is changed."""

    def apply(self, step: Step) -> None:
        """Carry one step out. The exit status of a tool is no proof: :meth:`verify` is."""
        self.carry_out(step.operation, step)

    def carry_out(self, operation: t.Any, step: Step) -> None:
        """Carry one operation out, as :meth:`Operation.carry_out` says."""
        operation.carry_out(self, step)

    def verify(self, state: State) -> list[Difference]:
        """What still differs in a state that was read back: whatever would have to be planned again."""
        return [Difference(step.layer, step.item, step.attribute, step.after, step.before) for step in self.plan(state)]

    def facts(self, state: State) -> dict[str, t.Any]:  # noqa: ARG002
        """Further return values of the module about the state it leaves behind; plain data."""
        return {}

    def warn(self, text: str) -> None:
        """Keep a warning, one sentence, for the end of the run; an earlier one is not repeated. What is not printable is replaced."""
        text = printable(text)
        if text not in self._warned:
            self._warned.append(text)

    @property
    def warned(self) -> tuple[str, ...]:
        """Every warning so far."""
        return tuple(self._warned)

    def check_settled(self, state: State) -> None:
        """Warn of what is not in order although everything is set as specified.

        Called in every run that leaves a settled state behind, so also where nothing had to be done.

        :raises NotEffective: if what is set is not in effect, and that is a failure.
        """

    def check_planned(self, state: State) -> None:
        """Warn in check mode of what :meth:`check_settled` would find after a run, as far as it can be known before."""


@frozen
class Outcome:
    """What :func:`converge` found and did."""

    steps: tuple[Step, ...]
    state: t.Any
    warnings: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.steps)

    def to_dict(self) -> dict[str, t.Any]:
        """``changed``, ``actions`` and ``diff`` for ``module.exit_json``, all from the same steps."""
        return {"changed": self.changed, "actions": [step.action for step in self.steps], "diff": diff_of(self.steps)}


def diff_of(steps: t.Sequence[Step]) -> dict[str, dict[str, dict[str, t.Any]]]:
    """The steps as Ansible's diff: ``{before: {item: {attribute: value}}, after: …}``."""
    before: dict[str, dict[str, t.Any]] = {}
    after: dict[str, dict[str, t.Any]] = {}
    for step in steps:
        # Two steps on one attribute (off, rebuilt, on again): the first before and the last after are the change.
        before.setdefault(step.item, {}).setdefault(step.attribute, step.before)
        after.setdefault(step.item, {})[step.attribute] = step.after
    return {"before": before, "after": after}


def converge(layer: Layer[State, Spec], *, check_mode: bool) -> Outcome:
    """Bring one layer to its specification and prove it by reading back.

    :raises StorageError: with ``changed``, ``actions`` (what was done) and ``broke_off`` (what failed) in its facts.
    :raises NotEffective: if the state read back is not the specified one.
    """
    state = layer.read()
    steps = plan_steps(layer, state)
    if check_mode and steps:
        layer.check_planned(state)
    elif steps:
        state = apply_steps(layer, steps)
    else:
        layer.check_settled(state)
    return Outcome(steps, state, layer.warned)


def plan_steps(layer: Layer[State, Spec], state: State) -> tuple[Step, ...]:
    """The plan of a layer, of which everything that its steps need is there.

    :raises ToolMissing: if a command is not installed.
    :raises Refused: if the kernel lacks a module.
    """
    steps = tuple(layer.plan(state))
    known: set[str] = set()
    for step in steps:
        for name in step.operation.needs_commands:
            if name not in known and not layer.runner.has(name):
                from ansible_collections.cachefleet.storage.plugins.module_utils._core.distributions import package_advice

                raise ToolMissing(f"{step.item}: the command {name} is missing on this host: {package_advice(name)}.", item=step.item)
            known.add(name)
        for name in step.operation.needs_modules:
            if f"module {name}" not in known:
                _require_module(layer, name, step.item)
            known.add(f"module {name}")
    return steps


def _require_module(layer: Layer[State, Spec], name: str, item: str) -> None:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core import kernel_modules

    if not kernel_modules.is_available(layer.runner, name, layer.root):
        raise Refused(f"{item}: {kernel_modules.missing_sentence(name, layer.root)}.", item=item)


def apply_steps(layer: Layer[State, Spec], steps: t.Sequence[Step], before_reading: t.Callable[[], None] = lambda: None) -> State:
    """Carry steps out, read back and compare.

    :param before_reading: called once nothing is changed any more.
    :raises StorageError: with ``changed``, ``actions`` (what was done) and ``broke_off`` (what failed) in its facts.
    :raises NotEffective: if the state read back is not the specified one.
    """
    done: list[Step] = []
    current: Step | None = None
    try:
        for step in steps:
            current = None
            if layer.one_at_a_time:
                require_room(layer.root)
            current = step
            layer.apply(step)
            done.append(step)
        current = None
        before_reading()
        state = layer.read()
        differences = layer.verify(state)
        if not differences:
            layer.check_settled(state)
    except StorageError as error:
        # A step that was refused did nothing; one that broke off may have done a part of its work.
        begun = current is not None and not isinstance(error, (Refused, ToolMissing))
        changed = (bool(done) or begun) and not _is_all_to_do(layer, steps, error)
        error.facts.setdefault("changed", changed)
        error.facts.setdefault("actions", [step.action for step in done if changed])
        if current is not None:
            error.facts.setdefault("broke_off", current.action)
        raise
    if differences:
        error = not_effective(layer.name, differences)
        changed = not _is_all_to_do(layer, steps, error)
        error.facts.update(changed=changed, actions=[step.action for step in steps if changed])
        raise error
    return state


def not_effective(name: str, differences: t.Sequence[Difference]) -> NotEffective:
    """That a layer of this name is not as specified after its steps."""
    return NotEffective(
        f"{name}: the host did not apply the settings: " + "; ".join(str(difference) for difference in differences),
        item=differences[0].item,
        differences=[vars(difference) for difference in differences],
    )


def _is_all_to_do(layer: Layer[State, Spec], steps: t.Sequence[Step], error: StorageError) -> bool:
    """Whether a run that failed has changed nothing, as far as its layer shows that. After a command that hangs nothing is read again."""
    if not layer.plan_shows_changes or isinstance(error, TimedOut):
        return False
    try:
        return layer.plan(layer.read()) == list(steps)
    except StorageError:
        return False


def run_layer(module: AnsibleModule, make_layer: t.Callable[[], Layer[State, Spec]]) -> t.NoReturn:
    """The body of a module that changes something: converge one layer and exit with its result.

    :param make_layer: reads the options of the module and makes the layer; what it refuses fails the module.
    """
    layer: Layer[State, Spec] | None = None
    try:
        layer = make_layer()
        alone = layer.one_at_a_time and layer.spec and not module.check_mode
        with exclusive(layer.name) if alone else contextlib.nullcontext():
            outcome = converge(layer, check_mode=module.check_mode)
    except StorageError as error:
        # What was found before it failed may be why.
        for warning in layer.warned if layer else ():
            module.warn(warning)
        module.fail_json(**error.to_dict())
    for warning in outcome.warnings:
        module.warn(warning)
    module.exit_json(**layer.facts(outcome.state), **outcome.to_dict())
