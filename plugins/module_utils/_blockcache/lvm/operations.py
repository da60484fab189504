# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the steps of a plan of LVM caches do. Paths are as the user wrote them; sizes are bytes.

Sources: lvmcache(7), lvconvert(8), lvchange(8), and what LVM 2.03 was seen to do. Its messages and exit statuses are no
proof: ``lvconvert --uncache`` can fail with status 5 after printing that the volume is not cached. A command that failed is
forgiven only if its effect is read back, and nothing is taken away before the kernel reports that no block is dirty.
"""

from __future__ import annotations

import os
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import cache_device, dm, fstab
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flush import INTERVAL
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import health as lvm_health
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import TAG
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.released import releasing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotEffective, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev, users
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.table_exchange import holding

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import LvmCacheSpec

#: What the kernel needs for a RAID1 of LVM.
MIRROR_MODULES = ("dm-raid", "raid1")
#: Seconds that another process may keep a device suspended.
PATIENCE_WITH_OTHERS = 10
# Not synchronised first: a cache reads no block of data or metadata that it has not written, and it writes to both sides; so
# nothing that is ever read can differ, and the mirror protects from the first write on instead of after hours of copying.
_MIRRORED = ["--type", "raid1", "--mirrors", "1", "--nosync"]


@frozen
class CachedVolume:
    """The volume that is cached, or will be.

    :param flush_timeout: seconds that a flush of it may take, or None.
    :param public: see :attr:`LvmCacheSpec.public`.
    """

    vg: str
    lv: str
    flush_timeout: int | None = None
    public: str = ""

    @classmethod
    def of(cls, spec: LvmCacheSpec) -> CachedVolume:
        return cls(spec.vg, spec.lv, spec.flush_timeout, spec.public)

    @property
    def full_name(self) -> str:
        return f"{self.vg}/{self.lv}"

    @property
    def command_name(self) -> str:
        """What lvconvert, ``lvchange --activate`` and ``lvchange --refresh`` get; ``--cachemode`` and ``--cachesettings`` need the full name."""
        return f"{self.vg}/{self.public or self.lv}"

    @property
    def path(self) -> str:
        """Its device. A hidden volume has none in the folder of its group."""
        return f"/dev/mapper/{self.device_name}" if self.public else f"/dev/{self.full_name}"

    @property
    def device_name(self) -> str:
        """Its name in device-mapper; with a snapshot the cache is in the layer below it (:func:`dm.layer_of`)."""
        return dm.device_name(self.vg, self.lv)


@frozen
class VolumeOperation(Operation):
    """An operation on behalf of a volume, which is resumed if a command that fails leaves it suspended."""

    needs_commands = ("dmsetup", "lvchange", "lvconvert", "lvcreate", "lvremove", "sync")
    #: Whether the same devices lie on the same devices afterwards: they need not be examined again.
    keeps_devices = False
    cached: CachedVolume


# -- devices


@frozen
class CreatePhysicalVolume(Operation):
    """Make an empty device a physical volume."""

    needs_commands = ("pvcreate",)
    path: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        path = self.path
        with cache_device.still_empty(layer.runner, path, step.item, layer.root, layer.sleep):
            # Without --yes: pvcreate prompts before it wipes anything, and no answer is no.
            layer.run_lvm(step, ["pvcreate", path], lambda: layer.physical_volume(path) is not None)


@frozen
class ExtendVolumeGroup(Operation):
    """Add a physical volume to a volume group."""

    needs_commands = ("vgextend",)
    vg: str
    path: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        path, vg = self.path, self.vg
        layer.run_lvm(step, ["vgextend", vg, path], lambda: getattr(layer.physical_volume(path), "vg", None) == vg)


@frozen
class ReleaseDevice(Operation):
    """Take a device that holds nothing out of its volume group and make it no physical volume."""

    needs_commands = ("vgreduce", "pvremove", "udevadm")
    vg: str
    path: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        """Out of the volume group, and empty; from wherever an earlier run was cut off."""
        path, vg = self.path, self.vg
        report = layer.report()
        physical = layer.physical_volume(path, report)
        if physical is not None and physical.vg == vg:
            if not any(volume.vg == vg and volume.segtype in ("cache-pool", "thin-pool") for volume in report.volumes):
                for spare in [volume for volume in report.volumes if volume.vg == vg and volume.name.endswith("_pmspare")]:
                    # LVM takes the spare away with the last pool, if it is not killed in between.
                    layer.run_lvm(step, ["lvremove", "--yes", spare.full_name], lambda name=spare.name: layer.volume(vg, name) is None)
            layer.run_lvm(step, ["vgreduce", vg, path], lambda: getattr(layer.physical_volume(path), "vg", vg) is None)
        if physical is not None:
            with releasing([path], layer.root):
                layer.run_lvm(step, ["pvremove", path], lambda: layer.physical_volume(path) is None)
            udev.refresh(layer.runner, [path], step.item)


@frozen
class ForgetMissing(VolumeOperation):
    """Remove missing devices that hold nothing from the volume group."""

    def carry_out(self, layer: t.Any, step: Step) -> None:
        """Without ``--force`` LVM removes only devices that hold nothing."""
        vg = self.cached.vg
        layer.run_lvm(step, ["vgreduce", "--removemissing", vg], lambda: not any(pv.missing and pv.vg == vg for pv in layer.report().physical))


# -- the fast volume


@frozen
class CreateVolume(VolumeOperation):
    """Create the fast volume, or of a mirrored cache pool its data.

    :param volume: its name.
    :param paths: the physical volumes.
    :param extents: its size.
    :param metadata: size of the metadata of a pool.
    :param fill: whether the size is a share of what is free, and may be an extent smaller on a device that became a physical volume just now.
    """

    volume: str
    paths: tuple[str, ...]
    kind: str
    mirror: bool
    extents: int
    metadata: int
    chunk_size: int | None
    fill: bool

    @property
    def needs_modules(self) -> tuple[str, ...]:  # type: ignore[override]
        return MIRROR_MODULES if self.mirror else ()

    def carry_out(self, layer: t.Any, step: Step) -> None:
        vg, name = self.cached.vg, self.volume
        report = layer.report()
        volumes = [layer.known_physical_volume(step, path, report) for path in self.paths]
        extents, metadata = self.extents, self.metadata
        single_pool = self.kind == "cachepool" and not self.mirror
        if self.fill:
            size = volumes[0].extent_size
            beside = (2 if single_pool else 1) * metadata // size + int(self.mirror)
            extents = min(extents, max(min(pv.free for pv in volumes) // size - beside, extents - 8))
        command = _lvcreate(name, extents)
        if single_pool:
            command += ["--type", "cache-pool", "--poolmetadatasize", f"{metadata}b", "--chunksize", f"{self.chunk_size}b"]
        if self.mirror:
            command += _MIRRORED
        if self.kind == "writecache":
            # LVM attaches an inactive volume only, and clears what matters of it then.
            command += ["--activate", "n", "--zero", "n"]
        layer.run_lvm(step, [*command, vg, *(pv.path for pv in volumes)], lambda: layer.volume(vg, name) is not None)


@frozen
class CreateMetadata(VolumeOperation):
    """Create the metadata of a mirrored cache pool. Fields as of :class:`CreateVolume`."""

    needs_modules = MIRROR_MODULES
    volume: str
    paths: tuple[str, ...]
    extents: int

    def carry_out(self, layer: t.Any, step: Step) -> None:
        vg, name = self.cached.vg, self.volume
        report = layer.report()
        paths = [layer.known_physical_volume(step, path, report).path for path in self.paths]
        layer.run_lvm(step, [*_lvcreate(name, self.extents), *_MIRRORED, vg, *paths], lambda: layer.volume(vg, name) is not None)


@frozen
class JoinPool(VolumeOperation):
    """Make a cache pool of its mirrored data and metadata."""

    volume: str
    metadata_volume: str
    chunk_size: int | None

    def carry_out(self, layer: t.Any, step: Step) -> None:
        vg, name = self.cached.vg, self.volume
        command = ["lvconvert", "--yes", "--type", "cache-pool", "--chunksize", f"{self.chunk_size}b"]
        command += ["--poolmetadata", f"{vg}/{self.metadata_volume}", f"{vg}/{name}"]
        layer.run_lvm(step, command, lambda: getattr(layer.volume(vg, name), "segtype", None) == "cache-pool")


@frozen
class RemoveVolume(VolumeOperation):
    """Remove a fast volume that is attached to nothing."""

    volume: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        vg, name = self.cached.vg, self.volume
        layer.run_lvm(step, ["lvremove", "--yes", f"{vg}/{name}"], lambda: layer.volume(vg, name) is None)


# -- the cache


@frozen
class Attach(VolumeOperation):
    """Attach the fast volume.

    :param volume: its name.
    """

    volume: str
    kind: str
    mode: str
    chunk_size: int | None
    settings: t.Mapping[str, int]

    @property
    def needs_modules(self) -> tuple[str, ...]:  # type: ignore[override]
        return dm.MODULES["writecache" if self.kind == "writecache" else "cache"]

    def carry_out(self, layer: t.Any, step: Step) -> None:
        cached, kind = self.cached, self.kind
        vg, fast = cached.vg, f"{cached.vg}/{self.volume}"
        settings = [f"{key}={value}" for key, value in self.settings.items()]
        if kind == "writecache":
            if getattr(layer.volume(vg, self.volume), "active", False):
                layer.run_lvm(step, ["lvchange", "--activate", "n", fast], lambda: not getattr(layer.volume(vg, self.volume), "active", True))
            command = ["lvconvert", "--yes", "--type", "writecache", "--cachevol", fast]
            command += ["--cachesettings", " ".join(settings)] if settings else []
        else:
            command = ["lvconvert", "--yes", "--type", "cache"]
            command += ["--cachepool", fast] if kind == "cachepool" else ["--cachevol", fast, "--chunksize", f"{self.chunk_size}b"]
            # LVM does not keep the mode of a volume that was attached before: it is always given.
            command += ["--cachemode", self.mode]
            for setting in settings:
                command += ["--cachesettings", setting]
        layer.run_lvm(step, [*command, cached.command_name], lambda: layer.attached(cached) is not None)


@frozen
class SetMode(VolumeOperation):
    """Change the mode; from writeback to another one after a flush."""

    keeps_devices = True
    mode: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        cached, mode = self.cached, self.mode
        stored = getattr(layer.attached(cached), "mode", None)
        if mode == "passthrough":
            if stored == "writeback":
                _change_mode(layer, cached, step, "writethrough")
            _require_closed_cleanly(layer, cached, step)
        elif mode == "writethrough" and stored == "writeback":
            # LVM flushes too, and then loads a table in which every block may count as dirty: what is proven is proven before.
            layer.clean(cached, step)
        _change_mode(layer, cached, step, mode)
        if mode == "passthrough":
            _require_passthrough(layer, cached, step)


@frozen
class LeaveCleaner(VolumeOperation):
    """Leave the policy in which an interrupted flush left the cache.

    :param stored: the mode that LVM has stored, which is in effect afterwards.
    """

    keeps_devices = True
    stored: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        """A table of ours goes with one that LVM loads. What LVM has noted itself stays through ``--refresh``, the same mode and the same policy,
        which all end with 0; only another mode takes it away.
        """
        cached, stored = self.cached, self.stored
        layer.run_lvm(step, ["lvchange", "--refresh", cached.command_name], None)
        if getattr(layer.kernel(cached), "policy", None) != "cleaner":
            return
        if stored == "writethrough":
            _require_closed_cleanly(layer, cached, step)
        _change_mode(layer, cached, step, "passthrough" if stored == "writethrough" else "writethrough")
        if stored == "writethrough":
            _require_passthrough(layer, cached, step)
        if stored == "passthrough":
            _require_closed_cleanly(layer, cached, step)
        _change_mode(layer, cached, step, stored)
        if stored == "passthrough":
            _require_passthrough(layer, cached, step)


@frozen
class SetSetting(VolumeOperation):
    """Change one setting of dm-cache; ``default`` removes it."""

    keeps_devices = True
    key: str
    value: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        cached, key, value = self.cached, self.key, self.value

        def stored() -> bool:
            settings = getattr(layer.attached(cached), "settings", None) or {}
            return key not in settings if value == "default" else settings.get(key) == value

        layer.run_lvm(step, ["lvchange", "--yes", "--cachesettings", f"{key}={value}", cached.full_name], stored)


@frozen
class SetSettings(VolumeOperation):
    """Change settings of a writecache.

    :param settings: what they become.
    :param reset: those that are removed.
    :param kept: those that are stored and stay.
    """

    keeps_devices = True
    settings: t.Mapping[str, str]
    reset: tuple[str, ...]
    kept: t.Mapping[str, str]

    def carry_out(self, layer: t.Any, step: Step) -> None:
        """LVM takes none of them away alone: all go, and the others come again."""
        values = {**self.kept, **self.settings} if self.reset else self.settings
        if self.reset:
            _change_settings(layer, self.cached, step, {}, named=self.settings)
        if values:
            _change_settings(layer, self.cached, step, values, named=self.settings)


@frozen
class SetCleaner(VolumeOperation):
    """Set ``cleaner`` of a writecache, 0 or 1: whether it only writes back."""

    keeps_devices = True
    cleaner: int

    def carry_out(self, layer: t.Any, step: Step) -> None:
        _change_settings(layer, self.cached, step, {"cleaner": str(self.cleaner)})


@frozen
class Refresh(VolumeOperation):
    """Load the table again, as LVM has it stored.

    :param mode: the mode that is in effect afterwards; None if it does not prove that the table was loaded.
    """

    keeps_devices = True
    mode: str | None

    def carry_out(self, layer: t.Any, step: Step) -> None:
        cached, mode = self.cached, self.mode
        layer.run_lvm(step, ["lvchange", "--refresh", cached.command_name], lambda: mode is not None and getattr(layer.kernel(cached), "mode", None) == mode)


@frozen
class GoOn(VolumeOperation):
    """Resume devices of device-mapper that an interrupted command left suspended, in this order."""

    keeps_devices = True
    names: tuple[str, ...]

    def carry_out(self, layer: t.Any, step: Step) -> None:
        """What lies below first: a table above is read from it."""
        for name in self.names:
            exchange = layer.exchange(self.cached, step, name)
            # The process that suspended it may still be at work.
            for _second in range(PATIENCE_WITH_OTHERS):
                if not exchange.suspended():
                    break
                layer.sleep(1)
            else:
                exchange.go_on()


@frozen
class ActivateUnused(VolumeOperation):
    """Activate a volume whose cache was being attached when the host went down, and holds nothing: LVM's check rejects its metadata."""

    def carry_out(self, layer: t.Any, step: Step) -> None:
        """The check would find damage where nothing was ever written; with anything else in the metadata it must not be skipped."""
        cached = self.cached
        if cached.full_name not in layer.read().unused:
            raise Refused(
                f"{step.item}: the cache of {cached.full_name} was found unused and is not any more; refusing to activate it without a check: run again.",
                item=step.item,
            )
        command = ["lvchange", "--yes", "--activate", "y", "--config", 'global/cache_check_executable=""', cached.command_name]
        layer.run_lvm(step, command, lambda: getattr(layer.attached(cached), "active", False))
        _mount_as_at_boot(layer, cached, step)


@frozen
class FlushWritecache(VolumeOperation):
    """Let a writecache only write back, and wait until it is empty."""

    keeps_devices = True

    def carry_out(self, layer: t.Any, step: Step) -> None:
        _change_settings(layer, self.cached, step, {"cleaner": "1"})
        layer.watch(self.cached, step).until_clean(layer.sleep, INTERVAL)


@frozen
class ProveClean(VolumeOperation):
    """Bring the cache to where nothing is dirty in it and nothing can become so, and prove that."""

    keeps_devices = True

    def carry_out(self, layer: t.Any, step: Step) -> None:
        layer.clean(self.cached, step)


@frozen
class Detach(VolumeOperation):
    """Detach a clean cache and remove the fast volume."""

    def carry_out(self, layer: t.Any, step: Step) -> None:
        layer.require_clean(self.cached, step)
        _uncache(layer, self.cached, step)


@frozen
class Drop(VolumeOperation):
    """Remove a cache that misses its device or has failed, and that wrote through."""

    def carry_out(self, layer: t.Any, step: Step) -> None:
        """LVM flushes nothing of it, so that it must have written through all the time."""
        target, state = self.cached, layer.read()
        cached = state.volume(target.vg, target.lv)
        if cached is not None and cached.cached and not lvm_health.writes_through(state, cached):
            raise NotEffective(
                f"{step.item}: the cache of {target.full_name} is not known to have written through any more, and stays: check dmesg and run again.",
                item=step.item,
            )
        _uncache(layer, target, step)


@frozen
class FinishDetaching(VolumeOperation):
    """Finish a detachment that was interrupted.

    :param dead: the name of the cached volume that no longer serves.
    :param pool: the name of its fast volume, or empty.
    """

    dead: str
    pool: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        """LVM goes on with what was killed once the devices it left, which answer every request with an error, are out of its way."""
        vg, dead = self.cached.vg, self.dead
        prefixes = tuple(dm.device_name(vg, name) for name in (dead, self.pool) if name)
        for name in dm.parse_dead(layer.runner.run(["dmsetup", "table"]).stdout):
            if name.startswith(prefixes):
                layer.runner.run(["dmsetup", "remove", name], ok=None, item=step.item)
        layer.run_lvm(step, ["lvconvert", "--yes", "--uncache", f"{vg}/{dead}"], lambda: layer.volume(vg, dead) is None)


# -- parts of operations


def _lvcreate(name: str, extents: int) -> list[str]:
    # Our own lvcreate and not lvconvert --cachedevice, which names the volume itself, tags nothing and mirrors nothing.
    return ["lvcreate", "--yes", "--addtag", TAG, "--name", name, "--extents", str(extents)]


def _require_passthrough(layer: t.Any, cached: CachedVolume, step: Step) -> None:
    """The kernel reads again: what was clean in the table before may count as dirty in this one. LVM has noted the mode all the same."""
    kernel = layer.kernel(cached)
    if kernel is not None and kernel.mode != "passthrough" and getattr(layer.attached(cached), "mode", None) == "passthrough":
        _change_mode(layer, cached, step, "writethrough")
        raise _not_closed_cleanly(cached, step, kernel.dirty)


def _change_mode(layer: t.Any, cached: CachedVolume, step: Step, mode: str) -> None:
    command = ["lvchange", "--yes", "--cachemode", mode, cached.full_name]
    layer.run_lvm(step, command, lambda: getattr(layer.attached(cached), "cache_mode", None) == mode, watch=layer.watch(cached, step))


def _require_closed_cleanly(layer: t.Any, cached: CachedVolume, step: Step) -> None:
    """The kernel takes a table in passthrough only while no block is dirty, and every load of a table may make them all so again.

    A small cache is clean again before its status can be read: a table that cleans nothing is loaded, and LVM's own afterwards.

    :raises Refused: if blocks count as dirty in a table that was loaded just now and writes through.
    """
    if getattr(layer.kernel(cached), "dirty", None):
        layer.clean(cached, step)
    exchange = layer.exchange_of_cache(cached, step)
    exchange.load(holding(exchange.table()))
    dirty = getattr(layer.kernel(cached), "dirty", None)
    layer.run_lvm(step, ["lvchange", "--refresh", cached.command_name], None)
    if dirty != 0:
        raise _not_closed_cleanly(cached, step, dirty)


def _not_closed_cleanly(cached: CachedVolume, step: Step, dirty: int | None) -> Refused:
    volume = cached.command_name
    return Refused(
        f"{step.item}: {volume} cannot be changed to mode passthrough while it is in use: the metadata of its cache was not closed cleanly when the"
        f" host went down, so that the kernel counts {dirty or 'its'} blocks as dirty after every change; nothing is lost, it writes through now:"
        f" unmount it, run lvchange -an {volume} and lvchange -ay {volume}, and run again.",
        item=step.item,
    )


def _change_settings(layer: t.Any, cached: CachedVolume, step: Step, values: t.Mapping[str, str], named: t.Iterable[str] | None = None) -> None:
    """Change settings of a writecache.

    :param values: none remove all.
    :param named: those that a message names, if not these.
    """

    def stored() -> bool:
        found = getattr(layer.attached(cached), "settings", None) or {}
        return all(found.get(key) == value for key, value in values.items()) if values else not found

    text = " ".join(f"{key}={value}" for key, value in values.items())
    completed = layer.run_lvm(step, ["lvchange", "--yes", "--cachesettings", text, cached.full_name], None)
    if completed.rc and "nrecognized writecache setting" in completed.stdout + completed.stderr:
        raise NotEffective(
            f"{step.item}: this version of LVM does not support the writecache setting {' or '.join(values if named is None else named)};"
            " everything else is as wanted: leave it out, or use a newer lvm2.",
            item=step.item,
            completed=completed,
        )
    if completed.rc and not stored():
        raise completed.failure(step.item, f"{step.item}: ")


def _mount_as_at_boot(layer: t.Any, cached: CachedVolume, step: Step) -> None:
    """The boot found no such device to mount; whoever relies on /etc/fstab expects it."""
    device = next((one for one in read_devices(layer.runner, layer.root) if one.dm_name == cached.device_name), None)
    mounted = users.mount_points(layer.root)
    for line in fstab.mounts_at_boot(read_file(layer.root / fstab.FSTAB), device) if device is not None else ():
        if os.path.normpath(line.target) in mounted:
            continue
        completed = layer.runner.run(["mount", line.target], ok=None, item=step.item)
        told = "was mounted" if completed.rc == 0 else f"could not be mounted ({completed.last_words})"
        layer.warn(f"{step.item}: {cached.full_name} {told} on {line.target}, as line {line.number} of /etc/fstab specifies: at boot it was not active.")


def _uncache(layer: t.Any, cached: CachedVolume, step: Step) -> None:
    command = ["lvconvert", "--yes", "--uncache", cached.command_name]

    def detached() -> bool:
        return layer.attached(cached) is None and layer.volume(cached.vg, cached.lv) is not None

    layer.run_lvm(step, command, detached, watch=layer.watch(cached, step))
