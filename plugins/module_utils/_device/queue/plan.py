# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps from the block queues of a host to the wanted ones; pure."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev_rule
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import NO_STABLE_PATH, require_stable
from ansible_collections.cachefleet.storage.plugins.module_utils._device.match import no_match_sentence
from ansible_collections.cachefleet.storage.plugins.module_utils._device.overrides import Override
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue import boot as queue_boot
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.boot import ModuleSpec, ModuleState, module_warnings
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.profiles import RESETS, place_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.spec import QueueSpec, QueueValue, Selected, select
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.sysfs import PASSING_ON, Obstacle, Queue, obstacle, same, scheduler_for
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import write_sysfs
from ansible_collections.cachefleet.storage.plugins.module_utils._device.udev_rule import WriteRule

LAYER = "block_queue"


@frozen
class WriteAttributes(Operation):
    """Write attributes of one queue, in this order.

    :param name: kernel name of the device.
    :param writes: path below the folder of the device, and the text.
    """

    name: str
    writes: tuple[tuple[str, str], ...]

    def carry_out(self, layer: Layer[t.Any, t.Any], step: Step) -> None:
        for place, value in self.writes:
            write_sysfs(layer.root / "sys/class/block" / self.name / place, value, step.item)


@frozen
class WriteOptions(Operation):
    """Set the options of a kernel module in modprobe.d; an empty mapping removes them."""

    module: str
    options: t.Mapping[str, str]

    def carry_out(self, layer: Layer[t.Any, t.Any], _step: Step) -> None:
        queue_boot.write_options(self.module, self.options, layer.root)


@frozen
class QueuesState:
    """What of a host matters here.

    :param named: kernel names of the queues that each path of the list stands for: one, or the paths of a multipath drive and its device.
    :param loadable: schedulers that the kernel can load.
    :param page_kb: size of a memory page in KiB.
    :param rules: the text of our udev rules file.
    :param kept: the options of modules in our file of modprobe.d.
    :param overrides: what services set when they start.
    """

    queues: t.Mapping[str, Queue] = field(default_factory=dict)
    named: t.Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    loadable: tuple[str, ...] = ()
    page_kb: int = 4
    rules: str = ""
    modules: tuple[ModuleState, ...] = ()
    kept: t.Mapping[str, t.Mapping[str, str]] = field(default_factory=dict)
    overrides: tuple[Override, ...] = ()


@frozen
class QueuesSpec:
    """What a user requests for a host.

    :param exclusive: take away boot rules and module options of what is not listed.
    """

    queues: t.Sequence[QueueSpec] = ()
    modules: t.Sequence[ModuleSpec] = ()
    exclusive: bool = False


@frozen
class Settled:
    """The values that one queue should have.

    :param notes: where a profile had to be fitted to the device, by setting.
    :param renamed: schedulers that were requested by a legacy name, with the current name.
    """

    selected: Selected
    settings: t.Mapping[str, int | str]
    notes: t.Mapping[str, str]
    renamed: tuple[tuple[str, str], ...] = ()


def settle_all(state: QueuesState, spec: QueuesSpec) -> list[Settled]:
    """The wanted values of every queue that an entry concerns.

    :raises BadInput: for a value that the kernel would refuse, cut or ignore, unless it comes from a profile.
    """
    return [settle(one, state) for one in select(state.queues, state.named, spec.queues)]


def settle(selected: Selected, state: QueuesState) -> Settled:
    """The wanted values of one queue: those of a profile are cut to what the device takes, others are refused if they do not fit.

    :raises BadInput: naming the entry, the device, the reason and what can be written instead.
    """
    queue = selected.queue
    settings: dict[str, int | str] = {}
    notes: dict[str, str] = {}
    renamed: list[tuple[str, str]] = []
    for key, requested in selected.requested.items():
        value = requested.value
        scheduler = str(settings.get("scheduler", queue.values.get("scheduler", "none")))
        against = obstacle(queue, key, value, scheduler, state.page_kb)
        if key == "scheduler" and (against is None or queue.multiqueue):
            value = scheduler_for(str(value), queue, state.loadable)
            if value != requested.value:
                renamed.append((str(requested.value), value))
            against = obstacle(queue, key, value, value, state.page_kb)
        if against is None:
            settings[key] = value
        elif selected.lenient and against.instead is None:
            continue
        elif requested.profile is None or (against.instead is None and queue.kind in PASSING_ON):
            raise _refusal(selected, key, requested, against)
        elif against.instead is None:
            notes[key] = f"{key} is left out: {against.reason}."
        else:
            settings[key] = against.instead
            notes[key] = f"the profile {requested.profile} requests {requested.value}; {against.reason}"
    return Settled(selected, settings, notes, tuple(renamed))


def _refusal(selected: Selected, key: str, requested: QueueValue, against: Obstacle) -> BadInput:
    if against.instead is not None:
        advice = f"set {key}: {against.instead}"
        if key == "nr_requests" and "without a scheduler" in against.reason:
            advice += ", or a scheduler such as mq-deadline, which holds more"
    elif selected.queue.kind in PASSING_ON and selected.queue.below:
        advice = "set members: true for the entry, or name the disks" if not selected.queue.multiqueue else f"leave {key} out for it"
    else:
        advice = f"leave {key} out for it"
    return BadInput(
        f"{selected.item} ({selected.queue.name}): {key}: {requested.value} of entry {requested.entry} is refused: {against.reason}. Instead, {advice}.",
        item=selected.item,
    )


def plan(state: QueuesState, spec: QueuesSpec) -> list[Step]:
    """Per device first the scheduler, then what it resets, then the rest, then the boot rule; after all devices the options of modules.

    :raises BadInput: for what cannot be met.
    """
    for queue_spec in spec.queues:
        _check_path(queue_spec, state)
    settled = settle_all(state, spec)
    steps = [step for one in settled for step in (*_live_steps(one), *_boot_steps(one, state))]
    steps += [step for module, module_spec in zip(state.modules, spec.modules) for step in _module_steps(module, module_spec)]
    return steps + (_other_steps(settled, state, spec) if spec.exclusive else [])


def _check_path(queue_spec: QueueSpec, state: QueuesState) -> None:
    if queue_spec.device is not None and queue_spec.persistent:
        queue = state.queues[state.named[queue_spec.device][0]]
        require_stable(queue_spec.device, queue.stable_path, NO_STABLE_PATH)


def _live_steps(one: Settled) -> list[Step]:
    queue = one.selected.queue
    rotational = bool(one.settings.get("rotational", queue.rotational))
    changing = [key for key, value in one.settings.items() if not same(queue, key, value, rotational)]
    steps = []
    for key in changing:
        value = one.settings[key]
        # What is right already and becomes wrong by this step, written again after it.
        again = [(other, one.settings[other]) for other in RESETS.get(key, ()) if other in one.settings and other not in changing]
        steps.append(
            Step(
                layer=LAYER,
                item=one.selected.item,
                attribute=key,
                before=queue.values.get(key),
                after=value,
                action=f"Set {key} of {_named(one)} to {value}{f' ({one.notes[key]})' if key in one.notes else ''}",
                operation=WriteAttributes(queue.name, tuple((place_of(name), str(text)) for name, text in [(key, value), *again])),
            )
        )
    return steps


def _named(one: Settled) -> str:
    item, name = one.selected.item, one.selected.queue.name
    return name if item == one.selected.queue.path else f"{item} ({name})"


def _boot_steps(one: Settled, state: QueuesState) -> list[Step]:
    queue = one.selected.queue
    rule = queue_boot.rule_for(queue, one.settings) if one.selected.persistent else None
    found = "\n".join(udev_rule.lines_for(state.rules, queue.keys)) or None
    if rule == found:
        return []
    return [
        Step(
            layer=LAYER,
            item=one.selected.item,
            attribute="boot_rule",
            before=found,
            after=rule,
            action=f"{'Write' if rule else 'Remove'} the udev rule for the queue of {_named(one)} in /{queue_boot.RULES_FILE}",
            operation=WriteRule(tuple(queue.keys), rule, queue_boot.RULES_FILE, queue_boot.RULES_HEADER),
        )
    ]


def _module_steps(state: ModuleState, spec: ModuleSpec) -> list[Step]:
    if state.builtin and spec.options:
        words = " ".join(f"{spec.module}.{key}={value}" for key, value in spec.options.items())
        raise BadInput(
            f"{spec.module} is built into this kernel, which does not read modprobe.d for it: add {words} to the kernel command line.",
            item=spec.module,
        )
    if dict(state.kept) == dict(spec.options):
        return []
    words = " ".join(f"{key}={value}" for key, value in spec.options.items())
    return [
        Step(
            layer=LAYER,
            item=spec.module,
            attribute="options",
            before=dict(state.kept) or None,
            after=dict(spec.options) or None,
            action=f"{f'Write the options {words}' if words else 'Remove the options'} of the module {spec.module} in /{queue_boot.OPTIONS_FILE}",
            operation=WriteOptions(spec.module, dict(spec.options)),
        )
    ]


def _other_steps(settled: t.Sequence[Settled], state: QueuesState, spec: QueuesSpec) -> list[Step]:
    """What was written for devices and modules that are not listed any more."""
    listed = {line for one in settled for line in udev_rule.lines_for(state.rules, one.selected.queue.keys)}
    others = [line for line in udev_rule.rules_in(state.rules) if line not in listed]
    steps = []
    if others:
        steps.append(
            Step(
                layer=LAYER,
                item=f"/{queue_boot.RULES_FILE}",
                attribute="other_rules",
                before=others,
                after=[],
                action=f"Remove {len(others)} udev {'rule' if len(others) == 1 else 'rules'} of devices that are not listed from /{queue_boot.RULES_FILE}",
                operation=WriteRule((), None, queue_boot.RULES_FILE, queue_boot.RULES_HEADER, tuple(others)),
            )
        )
    modules = {one.module.replace("-", "_") for one in spec.modules}
    for module in sorted(set(state.kept) - modules):
        steps += _module_steps(ModuleState(module, kept=state.kept[module]), ModuleSpec(module, {}))
    return steps


def warnings(state: QueuesState, spec: QueuesSpec) -> list[str]:
    """Warnings although everything is set."""
    settled = settle_all(state, spec)
    met = {number for one in settled for number in one.selected.entries}
    found = [no_match_sentence("block_queue_devices", queue_spec.name) for queue_spec in spec.queues if queue_spec.number not in met]
    renamed: dict[tuple[str, str], list[str]] = {}
    for one in settled:
        for names in one.renamed:
            renamed.setdefault(names, []).append(one.selected.queue.name)
    found += [
        f"The scheduler {old} is called {new} since Linux 5.0, and {new} is set for {', '.join(names)}: set scheduler: {new}."
        for (old, new), names in renamed.items()
    ]
    found += _overridden(state, settled)
    return found + [text for module, module_spec in zip(state.modules, spec.modules) for text in module_warnings(module, module_spec)]


def _overridden(state: QueuesState, settled: t.Iterable[Settled]) -> list[str]:
    """What services make of settings that should last, one sentence for each of their lines."""
    found: dict[Override, tuple[str, str, int]] = {}
    for one in settled:
        queue = one.selected.queue
        for override in state.overrides if one.selected.persistent else ():
            wanted = one.settings.get(override.setting)
            if wanted is not None and str(wanted) != override.value and override.concerns(queue.name):
                name, value, more = found.get(override, (one.selected.item, str(wanted), -1))
                found[override] = name, value, more + 1
    return [override.sentence(f"{name} and {more} more" if more else name, value) for override, (name, value, more) in found.items()]
