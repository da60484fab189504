# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer ``block_queue``: queues of block devices now and when the devices appear again, and options of kernel modules."""

from __future__ import annotations

import os
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev_rule
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.overrides import read_overrides
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue import boot as queue_boot
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue import plan as queue_plan
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.plan import QueuesSpec, QueuesState
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue.sysfs import loadable_schedulers, read_queues, unit_of


class BlockQueueLayer(Layer[QueuesState, QueuesSpec]):
    """The block queues of one host."""

    name = queue_plan.LAYER
    plan_shows_changes = True

    def read(self) -> QueuesState:
        """Every queue of the host; the only command is ``udevadm info``, for serial numbers and links.

        :raises DeviceMissing: for a path that is not there.
        :raises BadInput: for a path that names no queue, or several drives.
        """
        if not (self.spec.queues or self.spec.modules or self.spec.exclusive):
            return QueuesState()
        queues: t.Mapping[str, t.Any] = {}
        named: dict[str, tuple[str, ...]] = {}
        if self.spec.queues:
            devices = read_devices(self.runner, self.root, dm_targets=False)
            queues = read_queues(devices, self.root)
            named = {entry.device: _named(devices, entry.device) for entry in self.spec.queues if entry.device is not None}
        return QueuesState(
            queues=queues,
            named=named,
            loadable=loadable_schedulers(self.root),
            page_kb=os.sysconf("SC_PAGE_SIZE") // 1024,
            rules=udev_rule.read_rules(self.root, queue_boot.RULES_FILE),
            modules=tuple(queue_boot.read_modules(self.spec.modules, self.root)),
            kept=queue_boot.read_options(self.root),
            overrides=read_overrides(self.root),
        )

    def plan(self, state: QueuesState) -> list[Step]:
        """See :func:`queue_plan.plan`.

        :raises BadInput: for what the kernel would refuse, cut or ignore.
        """
        return queue_plan.plan(state, self.spec)

    def check_settled(self, state: QueuesState) -> None:
        """Matches without a device, legacy names, what services will change, and module options that are not in effect yet."""
        for warning in queue_plan.warnings(state, self.spec):
            self.warn(warning)

    #: The same: a run changes nothing of it but what is in effect, and options never are at once.
    check_planned = check_settled

    def facts(self, state: QueuesState) -> dict[str, t.Any]:
        """What the module returns about every queue that an entry concerns, and every module of the list."""
        return {
            "devices": [
                {
                    "device": one.selected.item,
                    "name": one.selected.queue.name,
                    "kind": one.selected.queue.kind,
                    "transport": one.selected.queue.transport,
                    "entries": list(one.selected.entries),
                    "settings": dict(one.selected.queue.values),
                    "schedulers": list(one.selected.queue.schedulers),
                    "notes": list(one.notes.values()),
                    "boot_rule": "\n".join(udev_rule.lines_for(state.rules, one.selected.queue.keys)) or None,
                }
                for one in queue_plan.settle_all(state, self.spec)
            ],
            "module_options": [{"module": state.module, "options": dict(state.kept), "running": dict(state.running)} for state in state.modules],
        }


def _named(devices: Devices, path: str) -> tuple[str, ...]:
    """The queues that a path stands for: of a multipath drive its device and all its paths, whichever of them is named.

    :raises DeviceMissing: if there is nothing behind it.
    :raises BadInput: for a partition, and for a link that several drives claim.
    """
    device = devices.resolve(path)
    claiming = {unit_of(devices, one): one.path for one in devices.claimants(path)}
    if len(claiming) > 1:
        raise BadInput(f"{path} is the name of several drives ({', '.join(sorted(claiming.values()))}): use a path that only one of them has.", item=path)
    if device.kind == "partition":
        whole = devices.get(device.parent or "")
        raise BadInput(f"{path} is a partition, and the queue belongs to the whole drive: name {(whole and whole.stable_path) or device.parent}.", item=path)
    if device.kind == "rom":
        raise BadInput(f"{path} is a drive for removable media: its queue is not set here.", item=path)
    unit = unit_of(devices, device)
    top = devices.get(unit)
    if top is None or top.kind != "multipath":
        return (device.name,)
    return (*top.slaves, top.name)
