# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read, plan, apply, read back: the one shape of everything that changes a host.

A layer is an object with four methods over plain, serialisable state. ``plan`` is pure, so check mode, the diff, the list
of actions and what is really done all come from the same steps and cannot disagree. Nothing here may assume that a layer
runs alone: :func:`converge` drives one, a later caller may order the steps of many.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import abc
import contextlib
import typing as t
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotEffective, Refused, StorageError, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.lock import exclusive

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

State = t.TypeVar("State")
Wanted = t.TypeVar("Wanted")


@dataclass(frozen=True)
class Step:
    """One change of one attribute of one item.

    :param layer: the layer that plans and applies it, for example ``drive_write_cache``.
    :param item: the thing, as the user named it.
    :param attribute: what of it changes, for example ``write_cache``.
    :param before: the value found (plain data; ``None`` if it was not there).
    :param after: the value wanted (plain data; ``None`` if it is taken away).
    :param action: what will be done, as a sentence in the imperative.
    :param operation: which operation of the layer does it.
    :param arguments: what that operation needs, plain data.
    """

    layer: str
    item: str
    attribute: str
    before: t.Any
    after: t.Any
    action: str
    operation: str
    arguments: t.Mapping[str, t.Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Difference:
    """What was wanted and what was found after every step had been carried out."""

    layer: str
    item: str
    attribute: str
    wanted: t.Any
    found: t.Any

    def __str__(self) -> str:
        return f"{self.item}: {self.attribute} should be {self.wanted} and is {self.found}"


class Layer(abc.ABC, t.Generic[State, Wanted]):
    """One cache layer of one host."""

    #: The name used in steps, diffs and messages.
    name: str
    #: Whether a run waits for an earlier one of this layer on the same host that has not ended, as after a controller that died.
    one_at_a_time: bool = False

    @abc.abstractmethod
    def read(self) -> State:
        """The whole present state, in as few commands as the tools allow."""

    @abc.abstractmethod
    def plan(self, present: State, wanted: Wanted) -> list[Step]:
        """The steps from ``present`` to ``wanted``; pure. Refusals are raised here, before anything is changed."""

    @abc.abstractmethod
    def apply(self, step: Step) -> None:
        """Carry one step out. The exit status of a tool is no proof: :meth:`verify` is."""

    def verify(self, present: State, wanted: Wanted) -> list[Difference]:
        """What still differs in a state that was read back: whatever would have to be planned again."""
        return [Difference(step.layer, step.item, step.attribute, step.after, step.before) for step in self.plan(present, wanted)]

    def facts(self, present: State) -> dict[str, t.Any]:  # noqa: ARG002
        """Further return values of the module about the state it leaves behind; plain data."""
        return {}

    def concerns(self, present: State, wanted: Wanted) -> list[str]:  # noqa: ARG002
        """What a person should know although everything is set as wanted, one sentence each; they become warnings.

        Asked in every run that leaves a settled state behind, so also where nothing had to be done.

        :raises NotEffective: if what is set is not in force, and that shall count as a failure.
        """
        return []

    def foresee(self, present: State, wanted: Wanted) -> list[str]:  # noqa: ARG002
        """What :meth:`concerns` would say after a run, as far as it can be known before; asked in check mode."""
        return []


@dataclass(frozen=True)
class Outcome:
    """What :func:`converge` found and did."""

    steps: tuple[Step, ...]
    present: t.Any
    concerns: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.steps)

    def as_result(self) -> dict[str, t.Any]:
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


def converge(layer: Layer[State, Wanted], wanted: Wanted, *, check_mode: bool) -> Outcome:
    """Bring one layer to the wanted state and prove it by reading back.

    :raises StorageError: with ``changed``, ``actions`` (what was done) and ``broke_off`` (what failed) in its facts.
    :raises NotEffective: if the state read back is not the wanted one.
    """
    present = layer.read()
    steps = tuple(layer.plan(present, wanted))
    if not steps:
        return Outcome(steps, present, tuple(layer.concerns(present, wanted)))
    if check_mode:
        return Outcome(steps, present, tuple(layer.foresee(present, wanted)))
    done: list[Step] = []
    current: Step | None = None
    try:
        for current in steps:
            layer.apply(current)
            done.append(current)
        current = None
        present = layer.read()
        differences = layer.verify(present, wanted)
        concerns = [] if differences else layer.concerns(present, wanted)
    except StorageError as error:
        # A step that was refused did nothing; one that broke off may have done a part of its work.
        begun = current is not None and not isinstance(error, (Refused, ToolMissing))
        error.facts.setdefault("changed", bool(done) or begun)
        error.facts.setdefault("actions", [step.action for step in done])
        if current is not None:
            error.facts.setdefault("broke_off", current.action)
        raise
    if differences:
        raise NotEffective(
            f"{layer.name}: the host did not take what was set: " + "; ".join(str(difference) for difference in differences),
            item=differences[0].item,
            changed=True,
            actions=[step.action for step in steps],
            differences=[vars(difference) for difference in differences],
        )
    return Outcome(steps, present, tuple(concerns))


def run_layer(module: AnsibleModule, layer: Layer[State, Wanted], wanted: Wanted) -> t.NoReturn:
    """The body of a module that changes something: converge one layer and leave with its result."""
    try:
        with exclusive(layer.name) if layer.one_at_a_time and not module.check_mode else contextlib.nullcontext():
            outcome = converge(layer, wanted, check_mode=module.check_mode)
    except StorageError as error:
        module.fail_json(**error.as_result())
    for concern in outcome.concerns:
        module.warn(concern)
    module.exit_json(**layer.facts(outcome.present), **outcome.as_result())
