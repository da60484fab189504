# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The block queues of a host as ``block_queue_devices``, and its options of modules as ``block_queue_module_options``."""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.description import Candidate, Values, Variable, objection_of, prove
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev_rule
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue import boot as queue_boot
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.boot import read_module_specs
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.layer import BlockQueueLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.plan import QueuesSpec, QueuesState
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.profiles import FLAGS, ORDER
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.spec import read_specs
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.sysfs import FEWEST_REQUESTS, PASSING_ON, SCHEDULER_REQUESTS, Queue, read_queues
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_number

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.description import Check
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices

DEVICES, MODULES = "block_queue_devices", "block_queue_module_options"
#: What is made by programs for the moment, and what has no queue worth a setting.
_PASSING = frozenset({"loop", "zram", "ram", "rom", "nbd", "rbd"})
#: One attribute of a rule that :func:`queue_boot.rule_for` wrote.
_IN_RULE = re.compile(r'ATTR\{(?:queue|device)/([a-z_]+)\}="([^"]*)"')
#: ``BLKDEV_DEFAULT_RQ`` and the default limits of ``max_sectors_kb`` (``BLK_DEF_MAX_SECTORS``) of Linux 2.6 to 6.x.
_DEFAULT_REQUESTS, _DEFAULT_SECTORS = 128, (512, 1280, 4096)


def describe(runner: Runner, devices: Devices, root: Path = Path("/"), *, every: bool = False) -> list[Variable]:
    """The queues that have a boot rule of this collection or a setting that the kernel does not begin with.

    :param every: all settings of all queues.
    """
    queues = [queue for queue in read_queues(devices, root).values() if queue.size and queue.unit == queue.name and not _is_passing(queue, devices)]
    rules = udev_rule.read_rules(root, queue_boot.RULES_FILE)
    notes, candidates = [], []
    for queue in queues:
        in_rule = rule_settings("\n".join(udev_rule.lines_for(rules, queue.keys)))
        live = _settings(queue, root, every)
        if not _is_named(queue, devices) and (in_rule or live):
            notes.append(f"The queue of {queue.path} is not described: the device has no persistent path.")
        elif in_rule or live:
            candidates.append(_candidate(queue, in_rule, live))
    entries, left_out = prove(candidates, _checker(runner, candidates, root), alone=True)
    kept = [{"module": module, "options": options} for module, options in sorted(queue_boot.read_options(root).items())]
    options, refused = prove([Candidate(str(one["module"]), (one,)) for one in kept], _module_checker(runner, kept, root))
    return [Variable(DEVICES, entries, notes=(*notes, *left_out)), Variable(MODULES, options, notes=refused)]


def _is_passing(queue: Queue, devices: Devices) -> bool:
    """Whether a queue is none of a user: of a device for the moment, or of a part of a volume, which is read ahead of at the top."""
    device = devices.get(queue.name)
    return queue.kind in _PASSING or (queue.kind in PASSING_ON and not queue.multiqueue and device is not None and bool(device.holders))


def _is_named(queue: Queue, devices: Devices) -> bool:
    """Whether a path that lasts leads to it now: a link that udev should have made may be missing."""
    try:
        return queue.stable_path is not None and devices.resolve(queue.stable_path).name == queue.name
    except DeviceMissing:
        return False


def _candidate(queue: Queue, in_rule: Values, live: Values) -> Candidate:
    device = {"device": queue.stable_path}
    if in_rule:
        # A rule has all settings of its entry, so that nothing can be added to it here.
        return Candidate(str(queue.stable_path), ({**device, **in_rule},))
    first, *others = live
    extras = {(name,): live[name] for name in others}
    return Candidate(str(queue.stable_path), ({**device, first: live[first], "persistent": False},), (extras,))


def rule_settings(line: str) -> dict[str, t.Any]:
    """The settings in a rule of ours, as a user writes them."""
    return {name: _as_written(name, text) for name, text in _IN_RULE.findall(line) if name in ORDER}


def _as_written(name: str, value: t.Any) -> t.Any:
    if name == "scheduler":
        return str(value)
    return bool(int(value)) if name in FLAGS else int(value)


def _settings(queue: Queue, root: Path, every: bool) -> dict[str, t.Any]:
    """What a queue is set to, and of it only what it did not begin with, unless ``every`` setting is wanted."""
    usable = [name for name in ORDER if name in queue.settable and name in queue.values]
    if queue.kind in PASSING_ON and not queue.multiqueue:
        usable = [name for name in usable if name == "read_ahead_kb"]
    return {name: _as_written(name, queue.values[name]) for name in usable if every or not _is_usual(queue, name, root)}


def _is_usual(queue: Queue, name: str, root: Path) -> bool:
    """Whether a kernel may have begun with the value; settings whose first value is not known to be one of a few are usual."""
    value = queue.values[name]
    usual = _USUAL.get(name)
    return usual is None or value in usual(queue, root / "sys/class/block" / queue.name)


def _usual_scheduler(queue: Queue, place: Path) -> t.Container[t.Any]:
    # Since Linux 5.0: none for devices with several hardware queues, mq-deadline for those with one or with shared tags (elevator_init_mq).
    several = len([one for one in (place / "mq").glob("[0-9]*") if one.is_dir()]) > 1
    return ("none", "mq-deadline") if several or "mq-deadline" not in queue.schedulers else ("mq-deadline",)


def _usual_requests(queue: Queue, _place: Path) -> t.Container[t.Any]:
    if queue.tags is None:
        return range(FEWEST_REQUESTS, SCHEDULER_REQUESTS + 1)
    return (queue.tags, 2 * min(queue.tags, _DEFAULT_REQUESTS))


def _usual_read_ahead(queue: Queue, place: Path) -> t.Container[t.Any]:
    optimal = (read_number(place / "queue/optimal_io_size") or 0) // 1024
    # LVM gives a volume the largest value of what is below it (lvcreate(8), --readahead auto).
    below = [read_number(place.parent / name / "queue/read_ahead_kb") for name in queue.below]
    # Linux 6.17 takes the largest request where a rotational disk reports no optimal size (blk_apply_bdi_limits).
    largest = _usual_sectors(queue, place) if not optimal and read_number(place / "queue/rotational") else ()
    return (128, max(128, 2 * optimal), *below, *(2 * one for one in largest))


def _usual_sectors(queue: Queue, place: Path) -> t.Container[t.Any]:
    optimal = (read_number(place / "queue/optimal_io_size") or 0) // 1024
    most = queue.largest or max(_DEFAULT_SECTORS)
    return {most, *(min(one, most) for one in (*_DEFAULT_SECTORS, optimal))}


_USUAL: t.Mapping[str, t.Callable[[Queue, Path], t.Container[t.Any]]] = {
    "scheduler": _usual_scheduler,
    "nr_requests": _usual_requests,
    "max_sectors_kb": _usual_sectors,
    "read_ahead_kb": _usual_read_ahead,
    "nomerges": lambda queue, place: (0,),  # noqa: ARG005
    "rq_affinity": lambda queue, place: (1,),  # noqa: ARG005
    "wbt_lat_usec": lambda queue, place: (0, 2000, 75000),  # noqa: ARG005
}


def _checker(runner: Runner, candidates: t.Sequence[Candidate], root: Path) -> Check:
    """The queues are read once more by the layer that would set them."""
    return _check(runner, [candidate.forms[0] for candidate in candidates], root, lambda entries: QueuesSpec(read_specs(entries)))


def _module_checker(runner: Runner, kept: t.Sequence[Values], root: Path) -> Check:
    return _check(runner, kept, root, lambda entries: QueuesSpec(modules=read_module_specs(entries)))


def _check(runner: Runner, entries: t.Sequence[Values], root: Path, spec: t.Callable[[t.Sequence[Values]], QueuesSpec]) -> Check:
    state = BlockQueueLayer(runner, spec(entries), root).read() if entries else QueuesState()
    return lambda chosen: objection_of(lambda: BlockQueueLayer(runner, spec(chosen), root), _only(state, chosen))


def _only(state: QueuesState, chosen: t.Sequence[Values]) -> QueuesState:
    """A plan pairs the modules of the state with those of the specification."""
    names = {one.get("module") for one in chosen}
    return QueuesState(**{**vars(state), "modules": tuple(one for one in state.modules if one.module in names)})
