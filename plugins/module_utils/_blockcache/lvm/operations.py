# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The operations of the layer ``lvm_cache``: what each step does to the host.

Sources: lvmcache(7), lvconvert(8), lvchange(8), and what LVM 2.03 was seen to do. Its messages and exit statuses are no
proof: ``lvconvert --uncache`` can fail with status 5 after printing that the volume is not cached. A command that failed is
forgiven only if its effect is read back, and nothing is taken away before the kernel reports that no block is dirty.
"""

from __future__ import annotations

import functools
import os
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import cache_device, dm, fstab
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flush import INTERVAL
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import health as lvm_health
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.commands import PATIENCE_WITH_OTHERS, LvmCommands, failed
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import TAG
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.steps import (
    ActivateUnused,
    Attach,
    CachedVolume,
    CreateMetadata,
    CreatePhysicalVolume,
    CreateVolume,
    Detach,
    Drop,
    ExtendVolumeGroup,
    FinishDetaching,
    FlushWritecache,
    ForgetMissing,
    GoOn,
    JoinPool,
    LeaveCleaner,
    ProveClean,
    Refresh,
    ReleaseDevice,
    RemoveVolume,
    SetCleaner,
    SetMode,
    SetSetting,
    SetSettings,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.released import releasing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotEffective, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev, users
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.table_exchange import holding

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import LvmState


# Not synchronised first: a cache reads no block of data or metadata that it has not written, and it writes to both sides; so
# nothing that is ever read can differ, and the mirror protects from the first write on instead of after hours of copying.
_MIRRORED = ["--type", "raid1", "--mirrors", "1", "--nosync"]


class LvmOperations(LvmCommands):
    """One method for each operation. The layer that inherits them has a runner, a root, a clock and a sleep, and reads."""

    read: t.Callable[[], LvmState]

    @functools.singledispatchmethod
    def carry_out(self, operation: Operation, _step: Step) -> None:
        """Carry one operation out.

        :raises CommandFailed: if a command failed and its effect is not read back.
        :raises NotEffective: if what must be proven before a step is not.
        :raises Refused: if a device is no longer what it was when the step was planned.
        """
        raise TypeError(operation)

    # -- devices

    @carry_out.register
    def _create_physical_volume(self, operation: CreatePhysicalVolume, step: Step) -> None:
        path = operation.path
        with cache_device.still_empty(self.runner, path, step.item, self.root, self.sleep):
            # Without --yes: pvcreate prompts before it wipes anything, and no answer is no.
            self._run(step, ["pvcreate", path], lambda: self._physical_volume(path) is not None)

    @carry_out.register
    def _extend_volume_group(self, operation: ExtendVolumeGroup, step: Step) -> None:
        path, vg = operation.path, operation.vg
        self._run(step, ["vgextend", vg, path], lambda: getattr(self._physical_volume(path), "vg", None) == vg)

    @carry_out.register
    def _forget_missing(self, operation: ForgetMissing, step: Step) -> None:
        """Without ``--force`` LVM removes only devices that hold nothing."""
        vg = operation.cached.vg
        self._run(step, ["vgreduce", "--removemissing", vg], lambda: not any(pv.missing and pv.vg == vg for pv in self._report().physical))

    @carry_out.register
    def _release_device(self, operation: ReleaseDevice, step: Step) -> None:
        """Out of the volume group, and empty; from wherever an earlier run was cut off."""
        path, vg = operation.path, operation.vg
        report = self._report()
        physical = self._physical_volume(path, report)
        if physical is not None and physical.vg == vg:
            if not any(volume.vg == vg and volume.segtype in ("cache-pool", "thin-pool") for volume in report.volumes):
                for spare in [volume for volume in report.volumes if volume.vg == vg and volume.name.endswith("_pmspare")]:
                    # LVM takes the spare away with the last pool, if it is not killed in between.
                    self._run(step, ["lvremove", "--yes", spare.full_name], lambda name=spare.name: self._volume(vg, name) is None)
            self._run(step, ["vgreduce", vg, path], lambda: getattr(self._physical_volume(path), "vg", vg) is None)
        if physical is not None:
            with releasing([path], self.root):
                self._run(step, ["pvremove", path], lambda: self._physical_volume(path) is None)
            udev.refresh(self.runner, [path], step.item)

    # -- the fast volume

    @carry_out.register
    def _create_volume(self, operation: CreateVolume, step: Step) -> None:
        vg, name = operation.cached.vg, operation.volume
        report = self._report()
        volumes = [self._known_physical_volume(step, path, report) for path in operation.paths]
        extents, metadata = operation.extents, operation.metadata
        single_pool = operation.kind == "cachepool" and not operation.mirror
        if operation.fill:
            size = volumes[0].extent_size
            beside = (2 if single_pool else 1) * metadata // size + int(operation.mirror)
            extents = min(extents, max(min(pv.free for pv in volumes) // size - beside, extents - 8))
        command = self._lvcreate(name, extents)
        if single_pool:
            command += ["--type", "cache-pool", "--poolmetadatasize", f"{metadata}b", "--chunksize", f"{operation.chunk_size}b"]
        if operation.mirror:
            command += _MIRRORED
        if operation.kind == "writecache":
            # LVM attaches an inactive volume only, and clears what matters of it then.
            command += ["--activate", "n", "--zero", "n"]
        self._run(step, [*command, vg, *(pv.path for pv in volumes)], lambda: self._volume(vg, name) is not None)

    @carry_out.register
    def _create_metadata(self, operation: CreateMetadata, step: Step) -> None:
        vg, name = operation.cached.vg, operation.volume
        report = self._report()
        paths = [self._known_physical_volume(step, path, report).path for path in operation.paths]
        self._run(step, [*self._lvcreate(name, operation.extents), *_MIRRORED, vg, *paths], lambda: self._volume(vg, name) is not None)

    @staticmethod
    def _lvcreate(name: str, extents: int) -> list[str]:
        # Our own lvcreate and not lvconvert --cachedevice, which names the volume itself, tags nothing and mirrors nothing.
        return ["lvcreate", "--yes", "--addtag", TAG, "--name", name, "--extents", str(extents)]

    @carry_out.register
    def _join_pool(self, operation: JoinPool, step: Step) -> None:
        vg, name = operation.cached.vg, operation.volume
        command = ["lvconvert", "--yes", "--type", "cache-pool", "--chunksize", f"{operation.chunk_size}b"]
        command += ["--poolmetadata", f"{vg}/{operation.metadata_volume}", f"{vg}/{name}"]
        self._run(step, command, lambda: getattr(self._volume(vg, name), "segtype", None) == "cache-pool")

    @carry_out.register
    def _remove_volume(self, operation: RemoveVolume, step: Step) -> None:
        vg, name = operation.cached.vg, operation.volume
        self._run(step, ["lvremove", "--yes", f"{vg}/{name}"], lambda: self._volume(vg, name) is None)

    # -- the cache

    @carry_out.register
    def _attach(self, operation: Attach, step: Step) -> None:
        cached, kind = operation.cached, operation.kind
        vg, fast = cached.vg, f"{cached.vg}/{operation.volume}"
        settings = [f"{key}={value}" for key, value in operation.settings.items()]
        if kind == "writecache":
            if getattr(self._volume(vg, operation.volume), "active", False):
                self._run(step, ["lvchange", "--activate", "n", fast], lambda: not getattr(self._volume(vg, operation.volume), "active", True))
            command = ["lvconvert", "--yes", "--type", "writecache", "--cachevol", fast]
            command += ["--cachesettings", " ".join(settings)] if settings else []
        else:
            command = ["lvconvert", "--yes", "--type", "cache"]
            command += ["--cachepool", fast] if kind == "cachepool" else ["--cachevol", fast, "--chunksize", f"{operation.chunk_size}b"]
            # LVM does not keep the mode of a volume that was attached before: it is always given.
            command += ["--cachemode", operation.mode]
            for setting in settings:
                command += ["--cachesettings", setting]
        self._run(step, [*command, cached.command_name], lambda: self._cached(cached) is not None)

    @carry_out.register
    def _set_mode(self, operation: SetMode, step: Step) -> None:
        cached, mode = operation.cached, operation.mode
        stored = getattr(self._cached(cached), "mode", None)
        if mode == "passthrough":
            if stored == "writeback":
                self._change_mode(cached, step, "writethrough")
            self._require_closed_cleanly(cached, step)
        elif mode == "writethrough" and stored == "writeback":
            # LVM flushes too, and then loads a table in which every block may count as dirty: what is proven is proven before.
            self._clean(cached, step)
        self._change_mode(cached, step, mode)
        if mode == "passthrough":
            self._require_passthrough(cached, step)

    def _require_passthrough(self, cached: CachedVolume, step: Step) -> None:
        """The kernel reads again: what was clean in the table before may count as dirty in this one. LVM has noted the mode all the same."""
        kernel = self._kernel(cached)
        if kernel is not None and kernel.mode != "passthrough" and getattr(self._cached(cached), "mode", None) == "passthrough":
            self._change_mode(cached, step, "writethrough")
            raise self._not_closed_cleanly(cached, step, kernel.dirty)

    def _change_mode(self, cached: CachedVolume, step: Step, mode: str) -> None:
        command = ["lvchange", "--yes", "--cachemode", mode, cached.full_name]
        self._run(step, command, lambda: getattr(self._cached(cached), "cache_mode", None) == mode, watch=self._watch(cached, step))

    def _require_closed_cleanly(self, cached: CachedVolume, step: Step) -> None:
        """The kernel takes a table in passthrough only while no block is dirty, and every load of a table may make them all so again.

        A small cache is clean again before its status can be read: a table that cleans nothing is loaded, and LVM's own afterwards.

        :raises Refused: if blocks count as dirty in a table that was loaded just now and writes through.
        """
        if getattr(self._kernel(cached), "dirty", None):
            self._clean(cached, step)
        exchange = self._exchange_of_cache(cached, step)
        exchange.load(holding(exchange.table()))
        dirty = getattr(self._kernel(cached), "dirty", None)
        self._run(step, ["lvchange", "--refresh", cached.command_name], None)
        if dirty != 0:
            raise self._not_closed_cleanly(cached, step, dirty)

    @staticmethod
    def _not_closed_cleanly(cached: CachedVolume, step: Step, dirty: int | None) -> Refused:
        volume = cached.command_name
        return Refused(
            f"{step.item}: {volume} cannot be changed to mode passthrough while it is in use: the metadata of its cache was not closed cleanly when the"
            f" host went down, so that the kernel counts {dirty or 'its'} blocks as dirty after every change; nothing is lost, it writes through now:"
            f" unmount it, run lvchange -an {volume} and lvchange -ay {volume}, and run again.",
            item=step.item,
        )

    @carry_out.register
    def _leave_cleaner(self, operation: LeaveCleaner, step: Step) -> None:
        """Out of the policy in which a flush that was killed left the cache.

        A table of ours goes with one that LVM loads. What LVM has noted itself stays through ``--refresh``, the same mode and the same policy,
        which all end with 0; only another mode takes it away.
        """
        cached, stored = operation.cached, operation.stored
        self._run(step, ["lvchange", "--refresh", cached.command_name], None)
        if getattr(self._kernel(cached), "policy", None) != "cleaner":
            return
        if stored == "writethrough":
            self._require_closed_cleanly(cached, step)
        self._change_mode(cached, step, "passthrough" if stored == "writethrough" else "writethrough")
        if stored == "writethrough":
            self._require_passthrough(cached, step)
        if stored == "passthrough":
            self._require_closed_cleanly(cached, step)
        self._change_mode(cached, step, stored)
        if stored == "passthrough":
            self._require_passthrough(cached, step)

    @carry_out.register
    def _set_setting(self, operation: SetSetting, step: Step) -> None:
        cached, key, value = operation.cached, operation.key, operation.value

        def stored() -> bool:
            settings = getattr(self._cached(cached), "settings", None) or {}
            return key not in settings if value == "default" else settings.get(key) == value

        self._run(step, ["lvchange", "--yes", "--cachesettings", f"{key}={value}", cached.full_name], stored)

    @carry_out.register
    def _set_settings(self, operation: SetSettings, step: Step) -> None:
        """LVM takes none of them away alone: all go, and the others come again."""
        values = {**operation.kept, **operation.settings} if operation.reset else operation.settings
        if operation.reset:
            self._change_settings(operation.cached, step, {}, named=operation.settings)
        if values:
            self._change_settings(operation.cached, step, values, named=operation.settings)

    @carry_out.register
    def _set_cleaner(self, operation: SetCleaner, step: Step) -> None:
        self._change_settings(operation.cached, step, {"cleaner": str(operation.cleaner)})

    def _change_settings(self, cached: CachedVolume, step: Step, values: t.Mapping[str, str], named: t.Iterable[str] | None = None) -> None:
        """Change settings of a writecache.

        :param values: none remove all.
        :param named: those that a message names, if not these.
        """

        def stored() -> bool:
            found = getattr(self._cached(cached), "settings", None) or {}
            return all(found.get(key) == value for key, value in values.items()) if values else not found

        text = " ".join(f"{key}={value}" for key, value in values.items())
        completed = self._run(step, ["lvchange", "--yes", "--cachesettings", text, cached.full_name], None)
        if completed.rc and "nrecognized writecache setting" in completed.stdout + completed.stderr:
            raise NotEffective(
                f"{step.item}: this version of LVM does not support the writecache setting {' or '.join(values if named is None else named)};"
                " everything else is as wanted: leave it out, or use a newer lvm2.",
                item=step.item,
                completed=completed,
            )
        if completed.rc and not stored():
            raise failed(step, completed)

    @carry_out.register
    def _refresh(self, operation: Refresh, step: Step) -> None:
        cached, mode = operation.cached, operation.mode
        self._run(step, ["lvchange", "--refresh", cached.command_name], lambda: mode is not None and getattr(self._kernel(cached), "mode", None) == mode)

    @carry_out.register
    def _activate_unused(self, operation: ActivateUnused, step: Step) -> None:
        """The check would find damage where nothing was ever written; with anything else in the metadata it must not be skipped."""
        cached = operation.cached
        if cached.full_name not in self.read().unused:
            raise Refused(
                f"{step.item}: the cache of {cached.full_name} was found unused and is not any more; refusing to activate it without a check: run again.",
                item=step.item,
            )
        command = ["lvchange", "--yes", "--activate", "y", "--config", 'global/cache_check_executable=""', cached.command_name]
        self._run(step, command, lambda: getattr(self._cached(cached), "active", False))
        self._mount_as_at_boot(cached, step)

    def _mount_as_at_boot(self, cached: CachedVolume, step: Step) -> None:
        """The boot found no such device to mount; whoever relies on /etc/fstab expects it."""
        device = next((one for one in read_devices(self.runner, self.root) if one.dm_name == cached.device_name), None)
        mounted = users.mount_points(self.root)
        for line in fstab.mounts_at_boot(read_file(self.root / fstab.FSTAB), device) if device is not None else ():
            if os.path.normpath(line.target) in mounted:
                continue
            completed = self.runner.run(["mount", line.target], ok=None, item=step.item)
            told = "was mounted" if completed.rc == 0 else f"could not be mounted ({completed.last_words})"
            self.warn(f"{step.item}: {cached.full_name} {told} on {line.target}, as line {line.number} of /etc/fstab specifies: at boot it was not active.")

    # -- flushing and taking away

    @carry_out.register
    def _flush_writecache(self, operation: FlushWritecache, step: Step) -> None:
        self._change_settings(operation.cached, step, {"cleaner": "1"})
        self._watch(operation.cached, step).until_clean(self.sleep, INTERVAL)

    @carry_out.register
    def _prove_clean(self, operation: ProveClean, step: Step) -> None:
        self._clean(operation.cached, step)

    @carry_out.register
    def _go_on(self, operation: GoOn, step: Step) -> None:
        """What lies below first: a table above is read from it."""
        for name in operation.names:
            exchange = self._exchange(operation.cached, step, name)
            # The process that suspended it may still be at work.
            for _second in range(PATIENCE_WITH_OTHERS):
                if not exchange.suspended():
                    break
                self.sleep(1)
            else:
                exchange.go_on()

    @carry_out.register
    def _detach(self, operation: Detach, step: Step) -> None:
        self._require_clean(operation.cached, step)
        self._uncache(operation.cached, step)

    @carry_out.register
    def _drop(self, operation: Drop, step: Step) -> None:
        """LVM flushes nothing of it, so that it must have written through all the time."""
        target, state = operation.cached, self.read()
        cached = state.volume(target.vg, target.lv)
        if cached is not None and cached.cached and not lvm_health.writes_through(state, cached):
            raise NotEffective(
                f"{step.item}: the cache of {target.full_name} is not known to have written through any more, and stays: check dmesg and run again.",
                item=step.item,
            )
        self._uncache(target, step)

    def _uncache(self, cached: CachedVolume, step: Step) -> None:
        command = ["lvconvert", "--yes", "--uncache", cached.command_name]

        def detached() -> bool:
            return self._cached(cached) is None and self._volume(cached.vg, cached.lv) is not None

        self._run(step, command, detached, watch=self._watch(cached, step))

    @carry_out.register
    def _finish_detaching(self, operation: FinishDetaching, step: Step) -> None:
        """LVM goes on with what was killed once the devices it left, which answer every request with an error, are out of its way."""
        vg, dead = operation.cached.vg, operation.dead
        prefixes = tuple(dm.device_name(vg, name) for name in (dead, operation.pool) if name)
        for name in dm.parse_dead(self.runner.run(["dmsetup", "table"]).stdout):
            if name.startswith(prefixes):
                self.runner.run(["dmsetup", "remove", name], ok=None, item=step.item)
        self._run(step, ["lvconvert", "--yes", "--uncache", f"{vg}/{dead}"], lambda: self._volume(vg, dead) is None)
