# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer ``lvm_cache``: dm-cache and dm-writecache under LVM, read in one look, changed with lvcreate, lvconvert and lvchange."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import re
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import cache_device
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_settings import BLOCK_SIZE
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import facts as lvm_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import health as lvm_health
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import plan as lvm_plan
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.operations import PATIENCE, LvmOperations
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.shell import LvmRunner
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import LvmCacheSpec, read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import LAYER, LvmState
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.spec import warn_of_former_names
from ansible_collections.cachefleet.storage.plugins.module_utils._core.background import Background
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Outcome, Step, run_layer
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

__all__ = ["PATIENCE", "LvmCacheLayer", "run_module"]

#: Operations after which the same devices lie on the same devices: they need not be looked at again.
_WITHIN = frozenset({"set_mode", "set_setting", "set_settings", "set_cleaner", "refresh", "leave_cleaner", "go_on", "prove_clean", "flush_writecache"})


class LvmCacheLayer(LvmOperations, Layer[LvmState, t.Sequence[LvmCacheSpec]]):
    """Caches of logical volumes.

    :param runner: starts the commands.
    :param wanted: the caches that will be planned: their devices may have to be asked for signatures, their file systems for
        the size of their sectors, and they are what :meth:`facts` describes.
    :param root: below which /sys, /proc and /dev are read.
    :param clock: seconds that only grow.
    :param sleep: waits so many seconds.
    """

    name = LAYER
    one_at_a_time = True

    def __init__(
        self,
        runner: Runner,
        wanted: t.Sequence[LvmCacheSpec] = (),
        root: Path = Path("/"),
        *,
        clock: t.Callable[[], float] = time.monotonic,
        sleep: t.Callable[[float], None] = time.sleep,
    ) -> None:
        self.runner = runner
        self.wanted = wanted
        self.root = root
        self.clock = clock
        self.sleep = sleep
        self._ground: tuple[Devices, t.Mapping[str, cache_device.DeviceUse]] | None = None

    def read(self) -> LvmState:
        """One report of LVM, the block devices, and where there is a cache one dmsetup or two, whatever the number of caches.

        Only a cache device that is no physical volume yet costs a wipefs more, and is opened; and a file system whose
        writecache shall have a certain block size is asked for its own.
        """
        report_to_come = Background(self._report)
        known = read_devices(self.runner, self.root) if self._ground is None else self._ground[0]
        report = report_to_come.answer()
        if self._ground is None:
            self._ground = known, self._examine(known, lvm_facts.pv_devices(report, known))
        devices, findings = self._ground
        kernel, tables = lvm_facts.read_kernel(self.runner, report.volumes)
        redundant, degraded = lvm_facts.read_arrays(devices, self.root)
        return LvmState(
            volumes=report.volumes,
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
            cache_check=self.runner.has("cache_check"),
        )

    def plan(self, present: LvmState, wanted: t.Sequence[LvmCacheSpec]) -> list[Step]:
        return lvm_plan.plan(present, wanted)

    def apply(self, step: Step) -> None:
        if step.operation not in _WITHIN:
            self._ground = None
            if isinstance(self.runner, LvmRunner):
                self.runner.forget_devices()
        operation: t.Callable[[Step], None] = getattr(self, f"_{step.operation}")
        operation(step)

    def facts(self, present: LvmState) -> dict[str, t.Any]:
        origins = {cache.origin for cache in self.wanted}
        states = [lvm_facts.describe(present, volume) for volume in present.volumes if volume.cached and volume.full_name in origins]
        return {"problems": lvm_health.problems(present), "caches": [state.as_plain() for state in states]}

    def concerns(self, present: LvmState, wanted: t.Sequence[LvmCacheSpec]) -> list[str]:
        """The memory that writecaches take, and cache devices that could not be given back."""
        found = lvm_plan.kept_devices(present, wanted)
        for cache in wanted:
            volume = present.volume(cache.vg, cache.lv)
            counted = lvm_health.counted_dirty(present, volume) if cache.present and volume is not None and volume.cached else ""
            found += [counted] if counted else []
            if cache.present and volume is not None and volume.writecache:
                pool = present.pool_of(volume)
                found += self._memory_concern(present, cache, pool.size if pool is not None else 0, volume.chunk_size)
        return found

    def foresee(self, present: LvmState, wanted: t.Sequence[LvmCacheSpec]) -> list[str]:
        caches = {cache.name: cache for cache in wanted}
        found = []
        for step in self.plan(present, wanted):
            if step.operation == "attach" and step.arguments["kind"] == "writecache":
                found += self._memory_concern(present, caches[step.item], step.after["size"], step.after["chunk_size"])
        return found

    @staticmethod
    def _memory_concern(present: LvmState, cache: LvmCacheSpec, size: int, block_size: int | None) -> list[str]:
        needed = lvm_health.memory_of_writecache(size, block_size or 4 * KIB)
        if present.memory is None or needed <= lvm_health.MEMORY_SHARE * present.memory:
            return []
        return [
            f"{cache.name}: the writecache of {cache.origin} takes about {format_size(needed)} of this host's {format_size(present.memory)} of memory"
            f" for its bookkeeping: make it smaller{', or use a block_size of 4096' if block_size == 512 else ''}."
        ]

    def _examine(self, devices: Devices, pv_devices: t.Mapping[str, str]) -> dict[str, cache_device.DeviceUse]:
        found: dict[str, cache_device.DeviceUse] = {}
        for path in (path for cache in self.wanted if cache.present for path in cache.cache_devices):
            try:
                device = devices.resolve(path)
            except DeviceMissing:
                continue
            if device.name not in found and device.name not in pv_devices.values():
                found[device.name] = cache_device.examine(self.runner, path, self.root, self.sleep)
        return found

    def _read_sectors(self, known: t.AbstractSet[str]) -> dict[str, int]:
        """``BLOCK_SIZE`` of blkid(8): the smallest unit in which a file system writes."""
        found = {}
        for cache in self.wanted:
            if cache.present and cache.settings.get(BLOCK_SIZE) and cache.origin in known:
                # 2: nothing on it that blkid knows.
                command = ["blkid", "-p", "-s", "BLOCK_SIZE", "-o", "value", f"/dev/{cache.origin}"]
                text = self.runner.run(command, ok=None).stdout.strip()
                if text.isdigit():
                    found[cache.origin] = int(text)
        return found


def _memory(root: Path) -> int | None:
    """``MemTotal`` of /proc/meminfo (proc(5)) in bytes."""
    try:
        match = re.search(r"^MemTotal:\s+(\d+) kB", (root / "proc/meminfo").read_text(encoding="ascii", errors="replace"), re.MULTILINE)
    except OSError:
        return None
    return int(match.group(1)) * KIB if match else None


def run_module(module: AnsibleModule) -> t.NoReturn:
    """The whole of the module ``lvm_cache``."""
    if not module.params["caches"]:
        module.exit_json(problems=[], caches=[], **Outcome((), None).as_result())
    try:
        wanted = read_items(module.params["caches"])
    except StorageError as error:
        module.fail_json(**error.as_result())
    warn_of_former_names(module, wanted)
    run_layer(module, LvmCacheLayer(LvmRunner(), wanted), wanted)
