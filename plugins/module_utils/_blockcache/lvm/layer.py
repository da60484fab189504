# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer ``lvm_cache``: dm-cache and dm-writecache under LVM, read by one command, changed with lvcreate, lvconvert and lvchange."""

from __future__ import annotations

import dataclasses
import os
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import cache_device, dm
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_settings import BLOCK_SIZE
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.expected import AS_IT_IS, Expected
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flush import INTERVAL, FlushWatch, write_out
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import facts as lvm_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import health as lvm_health
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import metadata as lvm_metadata
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import names as lvm_names
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import plan as lvm_plan
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.boot_volume import read_boot_volumes
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.operations import Attach, VolumeOperation
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import LvmCacheSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import LAYER, LvmState
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import Origin
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import caches_around
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, NotEffective
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import require_room
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Background
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.neighbourhood import Neighbourhood
from ansible_collections.cachefleet.storage.plugins.module_utils._device.table_exchange import Exchange, cleaning

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.operations import CachedVolume
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.report import LogicalVolume, PhysicalVolume, Report
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed

#: LVM flushes inside lvchange and lvconvert, for hours on a large cache over slow disks; FlushWatch ends one that stands still.
PATIENCE = 7 * 24 * 3600.0
#: Seconds that a device may take to answer what is on its way, before it gets another table.
EXCHANGE_PATIENCE = 600.0


class LvmCacheLayer(Layer[LvmState, t.Sequence[LvmCacheSpec]]):
    """Caches of logical volumes."""

    name = LAYER
    one_at_a_time = True
    #: The devices that were examined already; None if something that lies on them has changed since.
    _examined: tuple[Devices, t.Mapping[str, cache_device.DeviceUse]] | None = None

    def read(self, expected: Expected = AS_IT_IS) -> LvmState:
        """One report of LVM, the block devices, and where there is a cache one dmsetup or two, whatever the number of caches.

        Only a cache device that is no physical volume yet costs a wipefs more, and is opened; and a file system whose
        writecache should have a certain block size has it set explicitly.
        """
        if not self.spec:
            return LvmState((), (), Devices(()))
        report_to_come = Background(self.report)
        known = expected.without(read_devices(self.runner, self.root)) if self._examined is None else self._examined[0]
        report = report_to_come.answer()
        if self._examined is None:
            self._examined = known, self._examine(known, lvm_facts.pv_devices(report, known), expected.emptied)
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
        if not (isinstance(step.operation, VolumeOperation) and step.operation.keeps_devices):
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

    def _examine(self, devices: Devices, pv_devices: t.Mapping[str, str], freed: t.Container[str]) -> dict[str, cache_device.DeviceUse]:
        found: dict[str, cache_device.DeviceUse] = {}
        around = Neighbourhood(devices, self.runner, self.root)
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

    # -- commands and what they left behind

    def run_lvm(self, step: Step, command: t.Sequence[str], took_effect: t.Callable[[], bool] | None, watch: t.Callable[[], t.Any] | None = None) -> Completed:
        """Run a command of LVM; one that failed is forgiven only if what it was to do is read back as done (None: its caller checks).

        LVM does not change a group whose metadata it cannot archive, and only reports a backup that it could not write.
        """
        require_room(self.root)
        completed = self.runner.run(command, ok=None, timeout=PATIENCE, item=step.item, watch=watch, interval=INTERVAL)
        if completed.rc != 0:
            self._require_going_on(step)
            if took_effect is not None and not took_effect():
                raise completed.failure(step.item, f"{step.item}: ")
        elif completed.unwritten:
            self.warn(f"{step.item}: {completed.command_line} did its work and could not write what it keeps of it: {completed.unwritten}.")
        return completed

    def _require_going_on(self, step: Step) -> None:
        """LVM leaves a volume suspended whose new table the kernel refuses: every request to it would wait for ever."""
        if isinstance(step.operation, VolumeOperation):
            cached = step.operation.cached
            # What lies below first, which is the cache where there is a snapshot.
            for name in dict.fromkeys((self._cache_layer(cached), cached.device_name)):
                exchange = self.exchange(cached, step, name)
                if exchange.suspended():
                    exchange.go_on(refused=True)

    def report(self) -> Report:
        return lvm_facts.read_report(self.runner)

    def volume(self, vg: str, name: str) -> LogicalVolume | None:
        return next((volume for volume in self.report().volumes if volume.vg == vg and volume.name == name), None)

    def attached(self, cached: CachedVolume) -> LogicalVolume | None:
        volume = self.volume(cached.vg, cached.lv)
        return volume if volume is not None and volume.cached else None

    def kernel(self, cached: CachedVolume) -> dm.CacheStatus | None:
        status = dm.read_status(self.runner)
        return status.get(dm.layer_of(status, cached.device_name))

    def _cache_layer(self, cached: CachedVolume) -> str:
        return dm.layer_of(dm.read_tables(self.runner), cached.device_name)

    def physical_volume(self, path: str, report: Report | None = None) -> PhysicalVolume | None:
        real_path = self._real(path)
        return next((pv for pv in (report or self.report()).physical if self._real(pv.path) == real_path), None)

    def known_physical_volume(self, step: Step, path: str, report: Report) -> PhysicalVolume:
        physical = self.physical_volume(path, report)
        if physical is None:
            raise NotEffective(f"{step.item}: LVM does not list {path} as a physical volume after it was made one.", item=step.item)
        return physical

    def _real(self, path: str) -> str:
        return os.path.realpath(self.root / path.lstrip("/"))

    # -- flushing and proving

    def clean(self, cached: CachedVolume, step: Step) -> None:
        """Bring a cache that is in use to where nothing is dirty in it and nothing can become so, and prove that.

        After a crash every block counts as dirty in every mode. The policy ``cleaner`` brings that to 0 and keeps it there; its table is
        loaded past LVM, which takes it away with the next one that it loads itself, and does not have it for a cachevol at all.
        """
        kernel = self.kernel(cached)
        if kernel is not None and kernel.target == "cache" and not kernel.failed and (kernel.dirty or kernel.mode == "writeback"):
            if kernel.policy != "cleaner" or kernel.mode == "writeback":
                exchange = self.exchange_of_cache(cached, step)
                exchange.load(cleaning(exchange.table()))
            self.watch(cached, step).until_clean(self.sleep, INTERVAL)
        self.require_clean(cached, step)
        write_out(self.runner, step.item, cached.path)
        # What was on its way when it was read first has arrived by now.
        self.require_clean(cached, step)

    def watch(self, cached: CachedVolume, step: Step) -> FlushWatch:
        """Reads the kernel's figure, without taking LVM's lock."""
        return FlushWatch(step.item, cached.full_name, lambda: getattr(self.kernel(cached), "dirty", None), limit=cached.flush_timeout, clock=self.clock)

    def require_clean(self, cached: CachedVolume, step: Step) -> None:
        """No block may be dirty, and none may become so: the kernel reports 0 while it writes through, or while a writecache takes nothing.

        A cache that has failed reports no figure at all, and LVM would skip its flush and go on: that is no proof.
        """
        kernel = self.kernel(cached)
        if kernel is not None and not kernel.failed and kernel.dirty == 0 and not kernel.errors and self._takes_nothing(kernel, cached):
            return
        found = "no cache" if kernel is None else "a failed cache" if kernel.failed else f"mode {kernel.mode} with {kernel.dirty} dirty blocks"
        raise NotEffective(
            f"{step.item}: it could not be verified that the cache of {cached.full_name} holds nothing that the origin does not have"
            f" (found {found}); the cache stays attached and nothing is lost: check dmesg and run again.",
            item=step.item,
        )

    def _takes_nothing(self, kernel: dm.CacheStatus, cached: CachedVolume) -> bool:
        """Whether nothing can become dirty."""
        if kernel.target == "cache":
            return kernel.mode in ("writethrough", "passthrough")
        tables = dm.read_tables(self.runner)
        table = tables.get(dm.layer_of(tables, cached.device_name))
        return table is not None and table.cleaner

    def exchange_of_cache(self, cached: CachedVolume, step: Step) -> Exchange:
        return self.exchange(cached, step, self._cache_layer(cached))

    def exchange(self, cached: CachedVolume, step: Step, name: str) -> Exchange:
        return Exchange(self.runner, name, step.item, cached.path, patience=EXCHANGE_PATIENCE)


def _memory(root: Path) -> int | None:
    """``MemTotal`` of /proc/meminfo (proc(5)) in bytes."""
    try:
        match = re.search(r"^MemTotal:\s+(\d+) kB", (root / "proc/meminfo").read_text(encoding="ascii", errors="replace"), re.MULTILINE)
    except OSError:
        return None
    return int(match.group(1)) * KIB if match else None
