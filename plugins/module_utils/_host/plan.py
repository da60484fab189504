# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One plan over all layers of a host."""

from __future__ import annotations

import dataclasses
import typing as t
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import CACHE_TYPES
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step, plan_steps
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, Refused, StorageError, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import RAID_DRIVERS, read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._host import conflicts
from ansible_collections.cachefleet.storage.plugins.module_utils._host.layers import (
    BLOCK_CACHE,
    DRIVES,
    NETWORK,
    AnyLayer,
    Host,
    Stage,
    path_of_origin,
    transaction_of,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._host.request import HostRequest

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.expected import Expected

#: How devices are attached that depend on the network of the host.
_NETWORK_TRANSPORTS = ("aoe", "iscsi", "nbd", "nvme_fabrics", "rbd")
#: Errors at planning that steps of other layers, which come before, can resolve: a device that appears, a risk that they remove.
_RESOLVABLE = (DeviceMissing, Refused)


@dataclass
class StagePlan:
    """One layer of a host with what was read and planned.

    :param left_out: why nothing of it is done; ``deferred``: why its steps can be planned only after those of layers before it.
    :param follows_network: whether its devices need a network that changes, or it comes after a layer whose devices do.
    :param waits_for: what the play does before its turn comes: ``block_cache`` or ``storage_network``.
    """

    stage: Stage
    layer: AnyLayer | None = None
    state: t.Any = None
    steps: tuple[Step, ...] = ()
    left_out: StorageError | None = None
    deferred: StorageError | None = None
    follows_network: bool = False
    waits_for: str = ""

    @property
    def changes(self) -> bool:
        """Whether something of it may be different later."""
        return bool(self.steps or self.deferred or self.waits_for)


@dataclass
class HostPlan:
    """The layers of a host in their order.

    :param devices: every block device of the host before anything was changed.
    """

    stages: list[StagePlan]
    devices: Devices = field(default_factory=lambda: Devices(()))

    @property
    def in_order(self) -> list[StagePlan]:
        """As they are carried out: the play configures the network when all is done that does not need it."""
        network = next((one for one in self.stages if one.stage.layer == NETWORK), None)
        if network is None or not network.changes:
            return self.stages
        return sorted(self.stages, key=lambda one: 2 if one.follows_network else int(one is network))

    @property
    def left_out(self) -> list[StagePlan]:
        return [one for one in self.stages if one.left_out is not None]


class Planner:
    """Reads and plans the layers of a host.

    :param revert_after: seconds, of the rollback timer of the network.
    """

    def __init__(self, host: Host, request: HostRequest, *, check_mode: bool) -> None:
        self.host = host
        self.request = request
        self.check_mode = check_mode
        self.revert_after = int(request.network["revert_after"]) if request.network else 0

    def make(self, stages: t.Sequence[Stage]) -> list[StagePlan]:
        """Every layer, without reading the host: what contradicts itself is found first, whichever tools are there.

        :raises BadInput: for parameters that are invalid.
        """
        return [self._make(stage) for stage in stages]

    def _make(self, stage: Stage) -> StagePlan:
        try:
            return StagePlan(stage, stage.layer_on(self.host))
        except ToolMissing as error:
            return StagePlan(stage, left_out=error)

    def plan(self, made: list[StagePlan]) -> HostPlan:
        """The steps of all layers against the host as it is, each after what the layers before it will have changed.

        :raises StorageError: for what cannot be met, and is not resolved by the layers before it.
        """
        devices = read_devices(self.host.runner, self.host.root)
        conflicts.check(self.request, devices, self.host.root)
        plan = HostPlan(made, devices)
        migrating = self._migrating(devices)
        for place, one in enumerate(made):
            self._plan_at(plan, place, one, migrating=migrating)
        return plan

    def _plan_at(self, plan: HostPlan, place: int, one: StagePlan, *, migrating: bool) -> None:
        before = plan.stages[:place]
        missing = next((other for other in before if other.left_out is not None and depends(plan.devices, one.stage, other.stage)), None)
        if one.left_out is None and missing is not None and missing.left_out is not None:
            text = f"it depends on {missing.stage.layer}, which was left out ({missing.left_out.message})"
            one.left_out = type(missing.left_out)(text, item=missing.left_out.item)
        if one.left_out is not None:
            return
        one.follows_network = self._follows_network(plan.devices, one.stage, before)
        one.waits_for = self._waits_for(one, before, migrating=migrating)
        self._read_and_plan(plan, one, before)

    def _read_and_plan(self, plan: HostPlan, one: StagePlan, before: t.Sequence[StagePlan]) -> None:
        try:
            self.fill(one, before)
        except ToolMissing as error:
            one.left_out = error
        except StorageError as error:
            # What drives will be is expected by caches already (_expected); a target that is served also depends on what is between it and its drives.
            expected = (DRIVES,) if one.stage.group == BLOCK_CACHE else ()
            related = [other for other in before if other.changes and other.stage.layer not in expected and depends(plan.devices, one.stage, other.stage)]
            if not one.waits_for and not (related and isinstance(error, _RESOLVABLE)):
                error.facts.setdefault("layer", one.stage.layer)
                raise
            one.deferred = error

    def fill(self, one: StagePlan, before: t.Sequence[StagePlan] = ()) -> None:
        """Read and plan one layer."""
        layer = one.layer
        if layer is None:
            return
        if one.stage.layer == NETWORK:
            report = transaction_of(layer, self.host, self.revert_after).predict(planned_drives(before))
            one.state, one.steps = report.state, report.steps
            return
        if one.stage.group == BLOCK_CACHE:
            one.state = t.cast("t.Any", layer).read(self._expected(before))
        else:
            one.state = _without_removed(layer.read(), before) if one.stage.layer == DRIVES else layer.read()
        one.steps = plan_steps(layer, one.state)

    def again(self, one: StagePlan) -> StagePlan:
        """The same layer, read and planned once layers before it have changed."""
        fresh = dataclasses.replace(one, layer=one.stage.layer_on(self.host), deferred=None)
        self.fill(fresh)
        return fresh

    def _expected(self, before: t.Sequence[StagePlan]) -> Expected:
        """What a layer of caches is planned with: without the caches that are removed before, over drives as they will be."""
        from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.expected import left_by, together

        removing = [one for one in before if one.stage.group == BLOCK_CACHE and any(step.attribute == "cache" and step.after is None for step in one.steps)]
        devices = read_devices(self.host.runner, self.host.root) if removing else Devices(())
        origins = {id(one): {spec.name: path_of_origin(spec.origin) for spec in t.cast("t.Any", one.layer).spec} for one in removing}
        return together((left_by(one.stage.layer, origins[id(one)], one.steps, devices) for one in removing), planned_drives(before))

    def _waits_for(self, one: StagePlan, before: t.Sequence[StagePlan], *, migrating: bool) -> str:
        """What of the play has to come first. Check mode waits for the migration only, which it cannot foresee."""
        if migrating and one.stage.group == BLOCK_CACHE:
            return BLOCK_CACHE
        if self.check_mode:
            return ""
        if any(other.waits_for == BLOCK_CACHE for other in before):
            return BLOCK_CACHE
        return NETWORK if one.follows_network else ""

    def _follows_network(self, devices: Devices, stage: Stage, before: t.Sequence[StagePlan]) -> bool:
        """Whether devices of a layer are attached by a network that changes, or may be once it is configured."""
        if not any(other.stage.layer == NETWORK and other.changes for other in before):
            return False
        related = _related(devices, stage)
        attached = any(device.name in related and device.transport in _NETWORK_TRANSPORTS for device in devices)
        return any(other.follows_network for other in before) or None in related or attached or (stage.takes_any_device and self.request.attaches)

    def _migrating(self, devices: Devices) -> bool:
        """Whether a cache of another type is where one should be that may replace it."""
        if not self.request.migrating:
            return False
        from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey.host_caches import is_meant, read_caches

        found = read_caches(devices, self.host.runner, self.host.root).caches
        return any(cache.type != item["type"] and is_meant(cache, str(item["origin"]), devices) for item in self.request.migrating for cache in found)


def planned_drives(before: t.Sequence[StagePlan]) -> dict[str, str]:
    """What the write cache of each drive will be that steps before change, by kernel name."""
    planned = {}
    for one in before:
        if one.stage.layer == DRIVES:
            wanted = {step.item: step.after for step in one.steps if step.attribute == "write_cache"}
            planned.update({path: wanted[drive.item] for drive in one.state or () if drive.item in wanted for path in drive.paths})
    return planned


def _without_removed(drives: t.Sequence[t.Any], before: t.Sequence[StagePlan]) -> list[t.Any]:
    """The drives once caches that pass no flushes, and are removed before, no longer lie on them."""
    gone = {
        f"{one.stage.layer} {step.item}"
        for one in before
        if one.stage.layer in CACHE_TYPES and not CACHE_TYPES[one.stage.layer].passes_flushes
        for step in one.steps
        if step.after is None
    }
    return [dataclasses.replace(drive, swallowed_by=tuple(label for label in drive.swallowed_by if label not in gone)) for drive in drives]


def depends(devices: Devices, later: Stage, earlier: Stage) -> bool:
    """Whether the plan of a layer depends on what one before it does: for a device that is not there yet, or one that both are about."""
    mine = _related(devices, later)
    if None in mine and earlier.group in (BLOCK_CACHE, NETWORK):
        return True
    if later.needs_only_presence:
        return False
    return bool((mine - {None}) & _related(devices, earlier)) or (later.touches_raid and earlier.touches_raid)


def are_reported_by_tools(devices: Devices, stage: Stage) -> bool:
    """Whether tools of RAID controllers report settings of the devices of a layer."""
    # Hosts without a RAID controller do not import it.
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.tools import TOOLS_OF_DRIVER

    # Tools also report the drives of plain adapters.
    related, drivers = _related(devices, stage), RAID_DRIVERS | {*TOOLS_OF_DRIVER}
    return None in related or any(device.name in related and (device.transport == "raid" or device.driver in drivers) for device in devices)


def _related(devices: Devices, stage: Stage) -> set[str | None]:
    """Kernel names of the devices of a layer, of all below and above them; ``None`` stands for one that is not there."""
    found: set[str | None] = set()
    chooses = stage.takes_any_device and not stage.needs_only_presence
    named = [device for device in devices if chooses and device.kind == "disk"]
    named += [device for device in devices if stage.touches_raid and (device.transport == "raid" or device.driver in RAID_DRIVERS)]
    for path in stage.paths:
        try:
            named.append(devices.resolve(path))
        except DeviceMissing:
            found.update((None, path))
    for device in named:
        found.update(one.name for one in (device, *devices.parents(device), *devices.children(device)))
    return found
