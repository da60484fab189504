# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""The layer ``lvm_cache``: dm-cache under LVM, read with lvs and pvs, changed with lvcreate, lvconvert and lvchange.

Sources: lvmcache(7), lvconvert(8), lvchange(8), and what LVM 2.03 was seen to do. Its messages and exit statuses are no
proof: ``lvconvert --uncache`` can fail with status 5 after printing that the volume is not cached. A command that failed is
forgiven only if its effect is read back, and nothing is taken away before the kernel says that no block is dirty.
"""

from __future__ import annotations

import os
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import dm, lvm_device, lvm_plan, lvm_report
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm_plan import LAYER, TAG, Present
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm_wanted import WantedCache, read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Outcome, Step, run_layer
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import (
    CommandFailed,
    DeviceMissing,
    NotEffective,
    NotUnderstood,
    Refused,
    StorageError,
    TimedOut,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices, read_devices

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

#: LVM flushes inside lvchange and lvconvert, for hours on a large cache over slow disks; FlushWatch ends one that stands still.
PATIENCE = 7 * 24 * 3600.0
#: A flush whose dirty count has not fallen for so long does not work: a broken disk, or writers that are faster.
STANDSTILL = 600.0
#: Between two looks at a flush.
INTERVAL = 2.0


class LvmCacheLayer(Layer[Present, t.Sequence[WantedCache]]):
    """Caches of logical volumes.

    :param runner: starts the commands.
    :param candidates: cache devices that may have to be made physical volumes, and are asked for signatures.
    :param root: below which /sys, /proc and /dev are read.
    :param clock: seconds that only grow.
    :param sleep: waits so many seconds.
    """

    name = LAYER

    def __init__(
        self,
        runner: Runner,
        candidates: t.Sequence[str] = (),
        root: Path = Path("/"),
        *,
        clock: t.Callable[[], float] = time.monotonic,
        sleep: t.Callable[[float], None] = time.sleep,
    ) -> None:
        self.runner = runner
        self.candidates = candidates
        self.root = root
        self.clock = clock
        self.sleep = sleep

    # -- read and plan

    def read(self) -> Present:
        """One lvs, one pvs and, where there is a cache, one dmsetup, whatever the number of caches; and the block devices.

        Only a cache device that is no physical volume yet costs a wipefs more, and is opened.
        """
        volumes, physical = self._read_volumes(), self._read_physical()
        devices = read_devices(self.runner, self.root)
        cached = [volume for volume in volumes if volume.cached]
        status = dm.read_status(self.runner) if cached else {}
        pv_devices = _pv_devices(physical, devices)
        arrays = {device.name: lvm_device.md_redundancy(self.root, device.name) for device in devices if device.kind == "md"}
        names = {volume.full_name: dm.device_name(volume.vg, volume.name) for volume in cached}
        return Present(
            volumes=volumes,
            physical=physical,
            devices=devices,
            pv_devices=pv_devices,
            findings=self._examine(devices, pv_devices),
            kernel={full_name: status[name] for full_name, name in names.items() if name in status},
            redundant=frozenset(name for name, redundant in arrays.items() if redundant),
            degraded=frozenset(name for name, redundant in arrays.items() if redundant is False),
            cache_check=self.runner.has("cache_check"),
        )

    def plan(self, present: Present, wanted: t.Sequence[WantedCache]) -> list[Step]:
        return lvm_plan.plan(present, wanted)

    def facts(self, present: Present) -> dict[str, t.Any]:
        return {"problems": lvm_plan.problems(present)}

    def _examine(self, devices: Devices, pv_devices: t.Mapping[str, str]) -> dict[str, lvm_device.Finding]:
        found: dict[str, lvm_device.Finding] = {}
        for path in self.candidates:
            try:
                device = devices.resolve(path)
            except DeviceMissing:
                continue
            if device.name not in found and device.name not in pv_devices.values():
                found[device.name] = lvm_device.examine(self.runner, path, self.root, self.sleep)
        return found

    def _read_volumes(self) -> tuple[lvm_report.LogicalVolume, ...]:
        return self._report(lvm_report.LVS, lvm_report.parse_logical_volumes)

    def _read_physical(self) -> tuple[lvm_report.PhysicalVolume, ...]:
        return self._report(lvm_report.PVS, lvm_report.parse_physical_volumes)

    def _report(self, command: t.Sequence[str], parse: t.Callable[[str], t.Any]) -> t.Any:
        # LVM reports what it can and ends with 5 when something about another volume group is wrong: the report counts.
        completed = self.runner.run(command, ok=(0, 5))
        try:
            return parse(completed.stdout)
        except NotUnderstood as error:
            if completed.rc:
                raise CommandFailed(f"{completed.command_line} failed with exit status {completed.rc}: {completed.last_words}", completed=completed) from None
            error.completed = completed
            raise

    # -- apply

    def apply(self, step: Step) -> None:
        operation: t.Callable[[Step], None] = getattr(self, f"_{step.operation}")
        operation(step)

    def _create_physical_volume(self, step: Step) -> None:
        path = step.arguments["path"]
        finding = lvm_device.examine(self.runner, path, self.root, self.sleep)
        if finding.reasons:
            raise Refused(
                f"{step.item}: {path} was empty when it was looked at and now {' and '.join(finding.reasons)}, so that it is not taken for a cache:"
                f" {finding.advice(path)}.",
                item=step.item,
            )
        # Without --yes: pvcreate asks before it wipes anything, and no answer is no.
        self._run(step, ["pvcreate", path], lambda: self._physical_volume(path) is not None)

    def _extend_volume_group(self, step: Step) -> None:
        path, vg = step.arguments["path"], step.arguments["vg"]
        self._run(step, ["vgextend", vg, path], lambda: getattr(self._physical_volume(path), "vg", None) == vg)

    def _create_volume(self, step: Step) -> None:
        asked = step.arguments
        vg, name = asked["vg"], asked["volume"]
        physical = self._physical_volume(asked["path"])
        if physical is None:
            raise NotEffective(f"{step.item}: LVM does not list {asked['path']} as a physical volume after it was made one.", item=step.item)
        extents, metadata = asked["extents"], asked["metadata"]
        if asked["fill"]:
            beside = 2 * metadata // physical.extent_size
            extents = min(extents, max(physical.free // physical.extent_size - beside, extents - 8))
        command = ["lvcreate", "--yes", "--addtag", TAG, "--name", name, "--extents", str(extents)]
        if asked["kind"] == "cachepool":
            command += ["--type", "cache-pool", "--poolmetadatasize", f"{metadata}b", "--chunksize", f"{asked['chunk_size']}b"]
        self._run(step, [*command, vg, physical.path], lambda: self._volume(vg, name) is not None)

    def _attach(self, step: Step) -> None:
        asked = step.arguments
        vg, lv = asked["vg"], asked["lv"]
        command = ["lvconvert", "--yes", "--type", "cache"]
        if asked["kind"] == "cachepool":
            command += ["--cachepool", f"{vg}/{asked['volume']}"]
        else:
            command += ["--cachevol", f"{vg}/{asked['volume']}", "--chunksize", f"{asked['chunk_size']}b"]
        # LVM does not remember the mode of a volume that was attached before: it is always said.
        command += ["--cachemode", asked["mode"]]
        for key, value in asked["settings"].items():
            command += ["--cachesettings", f"{key}={value}"]
        self._run(step, [*command, f"{vg}/{lv}"], lambda: self._cached(vg, lv) is not None)

    def _set_mode(self, step: Step) -> None:
        asked = step.arguments
        vg, lv, mode = asked["vg"], asked["lv"], asked["mode"]
        watch = FlushWatch(self.runner, step, self.clock)
        command = ["lvchange", "--yes", "--cachemode", mode, f"{vg}/{lv}"]
        self._run(step, command, lambda: getattr(self._cached(vg, lv), "cache_mode", None) == mode, watch=watch)
        if mode != "writeback":
            self._require_clean(step)

    def _set_setting(self, step: Step) -> None:
        asked = step.arguments
        vg, lv, key, value = asked["vg"], asked["lv"], asked["key"], asked["value"]

        def stored() -> bool:
            settings = getattr(self._cached(vg, lv), "settings", None) or {}
            return key not in settings if value == "default" else settings.get(key) == value

        self._run(step, ["lvchange", "--yes", "--cachesettings", f"{key}={value}", f"{vg}/{lv}"], stored)

    def _refresh(self, step: Step) -> None:
        vg, lv = step.arguments["vg"], step.arguments["lv"]
        self._run(step, ["lvchange", "--refresh", f"{vg}/{lv}"], lambda: getattr(self._kernel(vg, lv), "mode", None) == step.after)

    def _prove_clean(self, step: Step) -> None:
        vg, lv = step.arguments["vg"], step.arguments["lv"]
        kernel = self._kernel(vg, lv)
        if kernel is not None and kernel.dirty:
            # Every cached block counts as dirty after a crash, in every mode. LVM cleans the cache before it enters passthrough.
            watch = FlushWatch(self.runner, step, self.clock)
            command = ["lvchange", "--yes", "--cachemode", "passthrough", f"{vg}/{lv}"]
            self._run(step, command, lambda: getattr(self._cached(vg, lv), "cache_mode", None) == "passthrough", watch=watch)
        self._require_clean(step)

    def _detach(self, step: Step) -> None:
        vg, lv = step.arguments["vg"], step.arguments["lv"]
        self._require_clean(step)
        self._run(step, ["lvconvert", "--yes", "--uncache", f"{vg}/{lv}"], lambda: self._cached(vg, lv) is None and self._volume(vg, lv) is not None)

    def _remove_volume(self, step: Step) -> None:
        vg, name = step.arguments["vg"], step.arguments["volume"]
        self._run(step, ["lvremove", "--yes", f"{vg}/{name}"], lambda: self._volume(vg, name) is None)

    def _require_clean(self, step: Step) -> None:
        """No block may be dirty, and none may become so: the kernel says 0 while the mode writes through.

        A cache that has failed reports no figure at all, and LVM would skip its flush and go on: that is no proof.
        """
        vg, lv = step.arguments["vg"], step.arguments["lv"]
        kernel = self._kernel(vg, lv)
        if kernel is None or kernel.mode not in ("writethrough", "passthrough") or kernel.dirty != 0:
            found = "no cache" if kernel is None else "a failed cache" if kernel.failed else f"mode {kernel.mode} with {kernel.dirty} dirty blocks"
            raise NotEffective(
                f"{step.item}: it could not be proven that the cache of {vg}/{lv} holds nothing that the origin does not have"
                f" (found {found}); the cache stays attached and nothing is lost: look at dmesg and run again.",
                item=step.item,
            )

    # -- commands and what they left behind

    def _run(self, step: Step, command: t.Sequence[str], took_effect: t.Callable[[], bool], watch: FlushWatch | None = None) -> None:
        """Run a command of LVM; one that failed is forgiven only if what it was to do is read back as done."""
        completed = self.runner.run(command, ok=None, timeout=PATIENCE, item=step.item, watch=watch, interval=INTERVAL)
        if completed.rc != 0 and not took_effect():
            raise CommandFailed(
                f"{step.item}: {completed.command_line} failed with exit status {completed.rc}: {completed.last_words}", item=step.item, completed=completed
            )

    def _volume(self, vg: str, name: str) -> lvm_report.LogicalVolume | None:
        return next((volume for volume in self._read_volumes() if volume.vg == vg and volume.name == name), None)

    def _cached(self, vg: str, name: str) -> lvm_report.LogicalVolume | None:
        volume = self._volume(vg, name)
        return volume if volume is not None and volume.cached else None

    def _kernel(self, vg: str, lv: str) -> dm.CacheStatus | None:
        return dm.read_status(self.runner).get(dm.device_name(vg, lv))

    def _physical_volume(self, path: str) -> lvm_report.PhysicalVolume | None:
        wanted = self._real(path)
        return next((pv for pv in self._read_physical() if self._real(pv.path) == wanted), None)

    def _real(self, path: str) -> str:
        return os.path.realpath(self.root / path.lstrip("/"))


class FlushWatch:
    """Looks at the dirty blocks of a cache while LVM flushes it, without taking LVM's lock.

    There is no deadline but the user's own: a flush may take hours. It ends when the count does not fall any more.
    """

    def __init__(self, runner: Runner, step: Step, clock: t.Callable[[], float]) -> None:
        self.runner = runner
        self.step = step
        self.clock = clock
        self.started = self.progressed = clock()
        self.least: int | None = None

    def __call__(self) -> None:
        now = self.clock()
        dirty = self._dirty()
        if self.least is None or (dirty is not None and dirty < self.least):
            self.least, self.progressed = dirty, now
        target = f"{self.step.arguments['vg']}/{self.step.arguments['lv']}"
        kept = "the cache stays attached and nothing is lost"
        limit = self.step.arguments.get("flush_timeout")
        if limit and now - self.started > limit:
            raise TimedOut(
                f"{self.step.item}: the cache of {target} was not flushed within flush_timeout ({limit} seconds), {self.least} blocks were still dirty;"
                f" {kept}: run again with more time.",
                item=self.step.item,
                dirty_blocks=self.least,
            )
        if self.least and now - self.progressed > STANDSTILL:
            raise NotEffective(
                f"{self.step.item}: flushing the cache of {target} has not come below {self.least} dirty blocks for {STANDSTILL / 60:g} minutes; {kept}:"
                " stop what writes to it, look at dmesg for errors of the disk below, and run again.",
                item=self.step.item,
                dirty_blocks=self.least,
            )

    def _dirty(self) -> int | None:
        name = dm.device_name(self.step.arguments["vg"], self.step.arguments["lv"])
        try:
            status = dm.read_status(self.runner).get(name)
        except StorageError:
            # The table may be in the middle of being replaced: the next look will see it.
            return None
        return status.dirty if status is not None else None


def _pv_devices(physical: t.Sequence[lvm_report.PhysicalVolume], devices: Devices) -> dict[str, str]:
    """The kernel name behind every physical volume that is there."""
    names = {}
    for pv in physical:
        if pv.missing:
            continue
        try:
            names[pv.path] = devices.resolve(pv.path).name
        except DeviceMissing:
            continue
    return names


def run_module(module: AnsibleModule) -> t.NoReturn:
    """The whole of the module ``lvm_cache``."""
    if not module.params["caches"]:
        module.exit_json(problems=[], **Outcome((), None).as_result())
    try:
        wanted = read_items(module.params["caches"])
    except StorageError as error:
        module.fail_json(**error.as_result())
    candidates = [path for cache in wanted for path in cache.cache_devices]
    run_layer(module, LvmCacheLayer(Runner(), candidates), wanted)
