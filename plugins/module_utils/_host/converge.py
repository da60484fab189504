# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""All layers of one host: read once, planned together, applied in their order, read back."""

from __future__ import annotations

import contextlib
import typing as t
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step, apply_steps, diff_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotEffective, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.lock import exclusive
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import printable
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._host.layers import BLOCK_CACHE, DRIVES, NETWORK, Host, Stage, stages_of
from ansible_collections.cachefleet.storage.plugins.module_utils._host.plan import Planner, StagePlan, are_reported_by_tools
from ansible_collections.cachefleet.storage.plugins.module_utils._host.request import GROUPS, HostRequest, read_request
from ansible_collections.cachefleet.storage.plugins.module_utils._host.risks import risks_of
from ansible_collections.cachefleet.storage.plugins.module_utils._host.runner import HostRunner

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


@dataclass
class HostOutcome:
    """What was found and done on a host.

    :param steps: of all layers, in the order in which they were carried out or are predicted.
    :param facts: the return values of each layer about the state it leaves behind.
    :param pending: the roles that the play has to run; ``waiting``: the groups of layers that come after them, for another call.
    :param done: layers that are as specified; in check mode those whose steps are known.
    :param left_out: why nothing was done of a layer; ``undetermined``: why check mode cannot say what would be done. By layer.
    """

    steps: list[Step] = field(default_factory=list)
    facts: dict[str, dict[str, t.Any]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    left_out: dict[str, StorageError] = field(default_factory=dict)
    undetermined: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, t.Any]:
        """For the result of the module; the diff has the items of each layer below its name."""
        layers = list(dict.fromkeys(step.layer for step in self.steps))
        diffs = {layer: diff_of([step for step in self.steps if step.layer == layer]) for layer in layers}
        return {
            "changed": bool(self.steps),
            "actions": [step.action for step in self.steps],
            "steps": [_plain(step) for step in self.steps],
            "diff": {side: {layer: diff[side] for layer, diff in diffs.items()} for side in ("before", "after")},
            "pending": self.pending,
            "waiting": self.waiting,
            "done": self.done,
            "left_out": {layer: error.message for layer, error in self.left_out.items()},
            "undetermined": self.undetermined,
            "not_running": self.not_running,
            "layers": self.facts,
        }

    @property
    def not_running(self) -> list[str]:
        """The problem of each cache that is not running: it is accepted as long as nothing of it must change, and none of its settings is read back."""
        caches = [cache for facts in self.facts.values() for cache in facts.get("caches") or ()]
        return [f"{cache['problem']}" for cache in caches if cache.get("state", "ok") != "ok"]

    def warn(self, texts: t.Iterable[str]) -> None:
        """Keep warnings, each once, with what is not printable replaced."""
        self.warnings += [text for text in dict.fromkeys(map(printable, texts)) if text not in self.warnings]


def _plain(step: Step) -> dict[str, t.Any]:
    return {"layer": step.layer, "item": step.item, "attribute": step.attribute, "action": step.action, "risks": risks_of(step)}


class HostConvergence:
    """Brings all layers of a host to their specification.

    :param groups: what the call is limited to.
    :param allow_pending: whether steps may be left to the roles of their layers; false once these were run.
    :param verify: whether all layers are planned once more at the end. Each layer is read back in any case, but not what later ones change of it.
    """

    def __init__(
        self,
        host: Host,
        request: HostRequest,
        *,
        check_mode: bool,
        groups: t.Collection[str] = GROUPS,
        allow_pending: bool = True,
        verify: bool = False,
    ) -> None:
        self.host = host
        self.check_mode = check_mode
        self.allow_pending = allow_pending
        self.verify = verify
        self.planner = Planner(host, request, check_mode=check_mode)
        self.stages = [stage for stage in stages_of(request) if stage.group in groups]
        self.outcome = HostOutcome()
        self._finished: list[Stage] = []
        self._current: StagePlan | None = None
        self._left: list[str] = []
        self._devices = Devices(())

    def run(self) -> HostOutcome:
        """Read, plan, apply and read back.

        :raises StorageError: with ``changed``, ``actions``, ``done``, ``not_done`` and, if a step failed, ``broke_off`` and ``layer`` in its facts.
        """
        if not self.stages:
            return self.outcome
        plans = self.planner.make(self.stages)
        with self._locks(plans):
            try:
                whole = self.planner.plan(plans)
                plans, self._devices = whole.in_order, whole.devices
                for one in plans:
                    self._take_turn(one)
                if self.verify and not self.check_mode:
                    self._verify()
            except StorageError as error:
                self._explain(error)
                raise
            finally:
                self.outcome.warn(text for one in plans if one.layer is not None for text in one.layer.warned)
        self._sum_up()
        return self.outcome

    @contextlib.contextmanager
    def _locks(self, plans: t.Sequence[StagePlan]) -> t.Iterator[None]:
        """Those of every layer that runs alone, always in the same order: two calls cannot wait for each other."""
        names = sorted({one.stage.layer for one in plans if one.layer is not None and one.layer.one_at_a_time and one.stage.layer != NETWORK})
        with contextlib.ExitStack() as stack:
            for name in () if self.check_mode else names:
                stack.enter_context(exclusive(name, self.host.root))
            yield

    def _take_turn(self, one: StagePlan) -> None:
        self._current = one
        if one.left_out is not None:
            self.outcome.left_out[one.stage.layer] = one.left_out
        elif one.waits_for == BLOCK_CACHE or (one.waits_for == NETWORK and NETWORK in self.outcome.pending):
            self._wait(one)
        elif one.deferred is not None and self.check_mode:
            self._report_undetermined(one, one.deferred)
        elif one.stage.layer == NETWORK:
            self._report_network(one)
        elif self.check_mode:
            self._predict(one)
        else:
            self._converge(one)

    def _wait(self, one: StagePlan) -> None:
        """For a role of the play: its own, or that of a layer before it."""
        own = one.waits_for == BLOCK_CACHE == one.stage.group or (one.stage.layer == NETWORK and bool(one.steps))
        groups = self.outcome.pending if own else self.outcome.waiting
        self._left += [step.action for step in one.steps] if own else []
        if one.stage.group not in (*self.outcome.pending, *self.outcome.waiting):
            groups.append(one.stage.group)

    def _report_network(self, one: StagePlan) -> None:
        """Its steps have an order over several hosts, so that they are only planned here."""
        self._plan_again(one)
        layer = t.cast("t.Any", one.layer)
        self.outcome.facts[NETWORK] = {**layer.facts(one.state), "directions": layer.directions(one.state)}
        if one.steps and not self.check_mode:
            self.outcome.pending.append(NETWORK)
            self._left += [step.action for step in one.steps]
            return
        self.outcome.steps += one.steps
        self.outcome.done.append(NETWORK)

    def _report_undetermined(self, one: StagePlan, reason: StorageError) -> None:
        self.outcome.undetermined[one.stage.layer] = reason.message
        self.outcome.warn([f"{one.stage.layer}: its steps can be predicted only after those of the layers before it: {reason.message}"])

    def _predict(self, one: StagePlan) -> None:
        layer = t.cast("t.Any", one.layer)
        (layer.check_planned if one.steps else layer.check_settled)(one.state)
        self._keep(one)

    def _plan_again(self, one: StagePlan) -> None:
        """What layers before it have changed may matter to its plan."""
        if self.check_mode or not (self.outcome.steps or one.deferred) or self._is_unaffected(one):
            return
        if not self._changed_only_drives:
            self.host.runner.shared.forget()
        fresh = self.planner.again(one)
        one.layer, one.state, one.steps, one.deferred = fresh.layer, fresh.state, fresh.steps, None

    @property
    def _changed_only_drives(self) -> bool:
        """Whether what was read after the last step is valid for all layers: settings of drives change neither names nor topology."""
        return bool(self.outcome.steps) and all(step.layer == DRIVES for step in self.outcome.steps)

    def _is_unaffected(self, one: StagePlan) -> bool:
        """Whether the tools of RAID controllers, which take seconds, would report the same as before: they know nothing of the drives that have changed."""
        drives = [stage for stage in self._finished if stage.layer == DRIVES]
        alone = one.stage.touches_raid and one.deferred is None and self._changed_only_drives
        return alone and not any(are_reported_by_tools(self._devices, stage) for stage in drives)

    def _converge(self, one: StagePlan) -> None:
        self._plan_again(one)
        layer = t.cast("t.Any", one.layer)
        try:
            if one.steps:
                self.host.runner.shared.forget(remember=False)
                one.state = apply_steps(layer, one.steps, self.host.runner.shared.forget)
            else:
                layer.check_settled(one.state)
        except StorageError as error:
            error.facts.setdefault("layer", one.stage.layer)
            raise
        self._keep(one)

    def _keep(self, one: StagePlan) -> None:
        layer = t.cast("t.Any", one.layer)
        self.outcome.steps += one.steps
        self.outcome.facts[one.stage.layer] = layer.facts(one.state)
        self._finished.append(one.stage)
        if all(stage in self._finished for stage in self.stages if stage.layer == one.stage.layer):
            self.outcome.done.append(one.stage.layer)

    def _verify(self) -> None:
        """Plan every layer that was brought to its specification once more, if another one has changed since.

        :raises NotEffective: if one has steps again.
        """
        if self._changed_only_drives or not self.outcome.steps:
            return
        self.host.runner.shared.forget()
        plans = self.planner.plan(self.planner.make([stage for stage in self.stages if stage in self._finished])).stages
        steps = [step for one in plans for step in one.steps]
        if steps:
            raise NotEffective(
                f"Every layer was configured and read back, but all together are not as specified: {'; '.join(step.action for step in steps)}.",
                item=steps[0].item,
                layer=steps[0].layer,
                changed=True,
            )

    def _explain(self, error: StorageError) -> None:
        """Add what was done by layers before the one that failed."""
        of_layer = error.facts.get("actions", [])
        done = [step for step in (self._current.steps if self._current else ()) if step.action in of_layer and step not in self.outcome.steps]
        earlier = [step.action for step in self.outcome.steps]
        error.facts["actions"] = [*earlier, *of_layer]
        error.facts["steps"] = [_plain(step) for step in (*self.outcome.steps, *done)]
        error.facts["changed"] = bool(error.facts.get("changed")) or (bool(earlier) and not self.check_mode)
        error.facts["done"] = self.outcome.done
        error.facts["not_done"] = list(dict.fromkeys(stage.layer for stage in self.stages if stage.layer not in self.outcome.done))

    def _sum_up(self) -> None:
        """
        :raises StorageError: if a layer was left out; the first one, with everything that was done in its facts.
        :raises NotEffective: if steps are left to a role that was run already.
        """
        if not self.outcome.left_out:
            self._refuse_pending()
            return
        error = next(iter(self.outcome.left_out.values()))
        layers: dict[str, list[str]] = {}
        for layer, one in self.outcome.left_out.items():
            layers.setdefault(one.message.rstrip("."), []).append(layer)
        reasons = "; ".join(f"{' and '.join(names)} {'were' if names[1:] else 'was'} left out: {reason}" for reason, names in layers.items())
        others = f" {'Planned' if self.check_mode else 'Done'} without it: {', '.join(self.outcome.done)}." if self.outcome.done else ""
        raise type(error)(f"{reasons}.{others}", item=error.item, completed=error.completed, **self._result())

    def _refuse_pending(self) -> None:
        if self.allow_pending or not self.outcome.pending:
            return
        steps = f": {'; '.join(self._left)}" if self._left else ""
        raise NotEffective(
            f"{' and '.join(self.outcome.pending)} would still change this host after the role was run{steps}. Run the playbook again.", **self._result()
        )

    def _result(self) -> dict[str, t.Any]:
        not_done = list(dict.fromkeys(stage.layer for stage in self.stages if stage.layer not in self.outcome.done))
        return {**self.outcome.to_dict(), "not_done": not_done}


def run_host(module: AnsibleModule, params: t.Mapping[str, t.Any], follow: t.Callable[[HostOutcome], dict[str, t.Any]] = lambda _outcome: {}) -> t.NoReturn:
    """The body of the module: converge all layers of the host and exit with the result.

    :param params: the options, see :func:`request.argument_spec`.
    :param follow: what is done once all layers are as specified; its result is part of that of the module.
    """
    convergence: HostConvergence | None = None
    try:
        request = read_request(params)
        host = Host(HostRunner(Runner()), log=module.log)
        options = {"groups": params["layers"] or GROUPS, **{name: params[name] for name in ("allow_pending", "verify")}}
        convergence = HostConvergence(host, request, check_mode=module.check_mode, **options)
        outcome = convergence.run()
    except StorageError as error:
        for warning in convergence.outcome.warnings if convergence else ():
            module.warn(warning)
        module.fail_json(**error.to_dict())
    for warning in outcome.warnings:
        module.warn(warning)
    module.exit_json(**outcome.to_dict(), **follow(outcome))
