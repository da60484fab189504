# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the operations of the layer ``lvm_cache`` share: running commands of LVM, reading back their effect, and proving that a cache is clean."""

from __future__ import annotations

import os
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import dm
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flush import INTERVAL, FlushWatch, write_out
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import facts as lvm_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.steps import CachedVolume, VolumeOperation
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotEffective
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import require_room
from ansible_collections.cachefleet.storage.plugins.module_utils._device.table_exchange import Exchange, cleaning

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import report as lvm_report
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed, Runner

#: LVM flushes inside lvchange and lvconvert, for hours on a large cache over slow disks; FlushWatch ends one that stands still.
PATIENCE = 7 * 24 * 3600.0
#: Seconds that a device may take to answer what is on its way, before it gets another table.
EXCHANGE_PATIENCE = 600.0
#: Seconds that another process may keep a device suspended.
PATIENCE_WITH_OTHERS = 10


class LvmCommands:
    """For a layer that has a runner, a root, a clock and a sleep."""

    runner: Runner
    root: Path
    clock: t.Callable[[], float]
    sleep: t.Callable[[float], None]
    warn: t.Callable[[str], None]

    # -- commands and what they left behind

    def _run(self, step: Step, command: t.Sequence[str], took_effect: t.Callable[[], bool] | None, watch: t.Callable[[], t.Any] | None = None) -> Completed:
        """Run a command of LVM; one that failed is forgiven only if what it was to do is read back as done (None: its caller checks).

        LVM does not change a group whose metadata it cannot archive, and only reports a backup that it could not write.
        """
        require_room(self.root)
        completed = self.runner.run(command, ok=None, timeout=PATIENCE, item=step.item, watch=watch, interval=INTERVAL)
        if completed.rc != 0:
            self._require_going_on(step)
            if took_effect is not None and not took_effect():
                raise failed(step, completed)
        elif completed.unwritten:
            self.warn(f"{step.item}: {completed.command_line} did its work and could not write what it keeps of it: {completed.unwritten}.")
        return completed

    def _require_going_on(self, step: Step) -> None:
        """LVM leaves a volume suspended whose new table the kernel refuses: every request to it would wait for ever."""
        if isinstance(step.operation, VolumeOperation):
            cached = step.operation.cached
            # What lies below first, which is the cache where there is a snapshot.
            for name in dict.fromkeys((self._cache_layer(cached), cached.device_name)):
                exchange = self._exchange(cached, step, name)
                if exchange.suspended():
                    exchange.go_on(refused=True)

    def _report(self) -> lvm_report.Report:
        return lvm_facts.read_report(self.runner)

    def _volume(self, vg: str, name: str) -> lvm_report.LogicalVolume | None:
        return next((volume for volume in self._report().volumes if volume.vg == vg and volume.name == name), None)

    def _cached(self, cached: CachedVolume) -> lvm_report.LogicalVolume | None:
        volume = self._volume(cached.vg, cached.lv)
        return volume if volume is not None and volume.cached else None

    def _kernel(self, cached: CachedVolume) -> dm.CacheStatus | None:
        status = dm.read_status(self.runner)
        return status.get(dm.layer_of(status, cached.device_name))

    def _cache_layer(self, cached: CachedVolume) -> str:
        return dm.layer_of(dm.read_tables(self.runner), cached.device_name)

    def _physical_volume(self, path: str, report: lvm_report.Report | None = None) -> lvm_report.PhysicalVolume | None:
        real_path = self._real(path)
        return next((pv for pv in (report or self._report()).physical if self._real(pv.path) == real_path), None)

    def _known_physical_volume(self, step: Step, path: str, report: lvm_report.Report) -> lvm_report.PhysicalVolume:
        physical = self._physical_volume(path, report)
        if physical is None:
            raise NotEffective(f"{step.item}: LVM does not list {path} as a physical volume after it was made one.", item=step.item)
        return physical

    def _real(self, path: str) -> str:
        return os.path.realpath(self.root / path.lstrip("/"))

    # -- flushing and proving

    def _clean(self, cached: CachedVolume, step: Step) -> None:
        """Bring a cache that is in use to where nothing is dirty in it and nothing can become so, and prove that.

        After a crash every block counts as dirty in every mode. The policy ``cleaner`` brings that to 0 and keeps it there; its table is
        loaded past LVM, which takes it away with the next one that it loads itself, and does not have it for a cachevol at all.
        """
        kernel = self._kernel(cached)
        if kernel is not None and kernel.target == "cache" and not kernel.failed and (kernel.dirty or kernel.mode == "writeback"):
            if kernel.policy != "cleaner" or kernel.mode == "writeback":
                exchange = self._exchange_of_cache(cached, step)
                exchange.load(cleaning(exchange.table()))
            self._watch(cached, step).until_clean(self.sleep, INTERVAL)
        self._require_clean(cached, step)
        write_out(self.runner, step.item, cached.path)
        # What was on its way when it was read first has arrived by now.
        self._require_clean(cached, step)

    def _watch(self, cached: CachedVolume, step: Step) -> FlushWatch:
        """Reads the kernel's figure, without taking LVM's lock."""
        return FlushWatch(step.item, cached.full_name, lambda: getattr(self._kernel(cached), "dirty", None), limit=cached.flush_timeout, clock=self.clock)

    def _require_clean(self, cached: CachedVolume, step: Step) -> None:
        """No block may be dirty, and none may become so: the kernel reports 0 while it writes through, or while a writecache takes nothing.

        A cache that has failed reports no figure at all, and LVM would skip its flush and go on: that is no proof.
        """
        kernel = self._kernel(cached)
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

    def _exchange_of_cache(self, cached: CachedVolume, step: Step) -> Exchange:
        return self._exchange(cached, step, self._cache_layer(cached))

    def _exchange(self, cached: CachedVolume, step: Step, name: str) -> Exchange:
        return Exchange(self.runner, name, step.item, cached.path, patience=EXCHANGE_PATIENCE)


def failed(step: Step, completed: Completed) -> CommandFailed:
    return CommandFailed(
        f"{step.item}: {completed.command_line} failed with exit status {completed.rc}: {completed.last_words}", item=step.item, completed=completed
    )
