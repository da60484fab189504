# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer ``lvm_cache``: dm-cache and dm-writecache under LVM, read by one command, changed with lvcreate, lvconvert and lvchange."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import cache_device
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_settings import BLOCK_SIZE
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import facts as lvm_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import health as lvm_health
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import metadata as lvm_metadata
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import names as lvm_names
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import plan as lvm_plan
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.boot_volume import read_boot_volumes
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.operations import LvmOperations
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import LvmCacheSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import LAYER, LvmState
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.steps import WITHIN, Attach
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import Origin
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import caches_around
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Background
from ansible_collections.cachefleet.storage.plugins.module_utils._core.shared_reading import expected_leaving
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.neighbourhood import Neighbourhood

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.report import LogicalVolume


class LvmCacheLayer(LvmOperations, Layer[LvmState, t.Sequence[LvmCacheSpec]]):
    """Caches of logical volumes."""

    name = LAYER
    one_at_a_time = True
    #: The devices that were examined already; None if something that lies on them has changed since.
    _examined: tuple[Devices, t.Mapping[str, cache_device.DeviceUse]] | None = None

    def read(self) -> LvmState:
        """One report of LVM, the block devices, and where there is a cache one dmsetup or two, whatever the number of caches.

        Only a cache device that is no physical volume yet costs a wipefs more, and is opened; and a file system whose
        writecache should have a certain block size has it set explicitly.
        """
        if not self.spec:
            return LvmState((), (), Devices(()))
        report_to_come = Background(self._report)
        known = expected_leaving(self.runner).without(read_devices(self.runner, self.root)) if self._examined is None else self._examined[0]
        report = report_to_come.answer()
        if self._examined is None:
            self._examined = known, self._examine(known, lvm_facts.pv_devices(report, known))
        devices, findings = self._examined
        # What is meant stays the same once a step of this run has changed what leads to it.
        self.spec = lvm_names.resolve(self.spec, report.volumes)
        kernel, tables = lvm_facts.read_kernel(self.runner, report.volumes)
        redundant, degraded = lvm_facts.read_arrays(devices, self.root)
        state = LvmState(
            volumes=lvm_facts.with_block_sizes(report.volumes, tables),
            physical=report.physical,
            devices=devices,
            pv_devices=lvm_facts.pv_devices(report, devices),
            kernel=kernel,
            tables=tables,
            findings=findings,
            redundant=redundant,
            degraded=degraded,
            sectors=self._read_sectors({volume.full_name for volume in report.volumes if not volume.suspended}),
            memory=_memory(self.root),
            boot=read_boot_volumes(self.runner, devices, self.spec, self.root),
            cache_check=self.runner.has("cache_check"),
            caches_integrity=lvm_facts.caches_integrity(self.runner, report.volumes),
            origins=self._read_origins(report.volumes, devices),
        )
        return dataclasses.replace(state, unused=lvm_metadata.unused(state, {spec.full_name for spec in self.spec}, self.root))

    def plan(self, state: LvmState) -> list[Step]:
        """See :func:`lvm_plan.plan`. The state of a description was read for other items."""
        return lvm_plan.plan(state, lvm_names.resolve(self.spec, state.volumes))

    def apply(self, step: Step) -> None:
        if not isinstance(step.operation, WITHIN):
            self._examined = None
        super().apply(step)

    def facts(self, state: LvmState) -> dict[str, t.Any]:
        origins = {spec.full_name for spec in self.spec}
        caches = [lvm_facts.describe(state, volume) for volume in state.volumes if volume.cached and volume.full_name in origins]
        return {"problems": lvm_health.problems(state), "caches": [cache.to_dict() for cache in caches]}

    def check_settled(self, state: LvmState) -> None:
        """Warn of the memory that writecaches take, of cache devices that could not be given back, and of counters after a crash."""
        for warning in lvm_plan.kept_devices(state, self.spec):
            self.warn(warning)
        for spec in self.spec:
            volume = state.volume(spec.vg, spec.lv)
            if not spec.present or volume is None or not volume.cached:
                continue
            booted = state.boot.get(spec.full_name)
            if booted is not None and booted.lacking:
                self.warn(booted.sentence(spec))
            if not volume.active:
                self.warn(f"{spec.name}: {spec.origin} {lvm_health.inactive_advice(state, volume)}. Its settings are those that LVM has stored.")
            counted = lvm_health.counted_dirty(state, volume)
            if counted:
                self.warn(counted)
            if volume.writecache:
                pool = state.pool_of(volume)
                self._check_memory(state, spec, pool.size if pool is not None else 0, volume.chunk_size)

    def check_planned(self, state: LvmState) -> None:
        """Warn of the memory that new writecaches will take."""
        specs = {spec.name: spec for spec in self.spec}
        for step in self.plan(state):
            if isinstance(step.operation, Attach) and step.operation.kind == "writecache":
                self._check_memory(state, specs[step.item], step.after["size"], step.after["chunk_size"])

    def _check_memory(self, state: LvmState, spec: LvmCacheSpec, size: int, block_size: int | None) -> None:
        """:param size: bytes of the writecache."""
        needed = lvm_health.memory_of_writecache(size, block_size or 4 * KIB)
        if state.memory is not None and needed > lvm_health.MEMORY_SHARE * state.memory:
            self.warn(
                f"{spec.name}: the writecache of {spec.origin} needs about {format_size(needed)} of this host's {format_size(state.memory)} of memory"
                f" for its bookkeeping: use a smaller size{', or use a block_size of 4096' if block_size == 512 else ''}."
            )

    def _examine(self, devices: Devices, pv_devices: t.Mapping[str, str]) -> dict[str, cache_device.DeviceUse]:
        found: dict[str, cache_device.DeviceUse] = {}
        around = Neighbourhood(devices, self.runner, self.root)
        freed = expected_leaving(self.runner).emptied
        for path in (path for spec in self.spec if spec.present for path in spec.cache_devices):
            try:
                device = devices.resolve(path)
            except DeviceMissing:
                continue
            if device.name in freed:
                found[device.name] = cache_device.DeviceUse(examined=True)
            elif device.name not in found and device.name not in pv_devices.values():
                found[device.name] = cache_device.examine(self.runner, path, self.root, self.sleep, around=around)
        return found

    def _read_origins(self, volumes: t.Iterable[LogicalVolume], devices: Devices) -> dict[str, Origin]:
        """Of items whose volume has no cache that LVM reports: whether it belongs to another. A volume that is not active belongs to none that runs."""
        known = {volume.full_name: volume for volume in volumes}
        found = {}
        for spec in self.spec:
            volume = known.get(spec.full_name)
            if not spec.present and volume is not None and not volume.cached:
                device = lvm_facts.device_of(devices, spec.vg, spec.lv)
                found[spec.name] = Origin(caches=caches_around(devices, device, self.root, of_volume=True) if device is not None else ())
        return found

    def _read_sectors(self, known: t.AbstractSet[str]) -> dict[str, int]:
        """``BLOCK_SIZE`` of blkid(8): the smallest unit in which a file system writes; 512 for what is there and has none."""
        found = {}
        for spec in self.spec:
            if spec.present and spec.settings.get(BLOCK_SIZE) and spec.full_name in known:
                completed = self.runner.run(["blkid", "-p", "-o", "export", f"/dev/{spec.full_name}"], ok=None)
                # 2: nothing on it that blkid supports. Releases before 2.38 print no BLOCK_SIZE, and it is not known for every content.
                if completed.rc != 2:
                    size = re.search(r"^BLOCK_SIZE=(\d+)$", completed.stdout, re.MULTILINE)
                    found[spec.full_name] = int(size.group(1)) if size else 512
        return found


def _memory(root: Path) -> int | None:
    """``MemTotal`` of /proc/meminfo (proc(5)) in bytes."""
    try:
        match = re.search(r"^MemTotal:\s+(\d+) kB", (root / "proc/meminfo").read_text(encoding="ascii", errors="replace"), re.MULTILINE)
    except OSError:
        return None
    return int(match.group(1)) * KIB if match else None
