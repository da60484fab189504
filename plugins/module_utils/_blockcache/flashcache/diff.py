# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One cache of the list beside what the host has of it: whether they differ, and the reasons not to change it.

Sources: the checks of ``flashcache_ctr`` (flashcache_conf.c), flashcache_create.c and flashcache_load.c.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import boot_unit, fast_device, starters
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import require_mirrored, resolve_stable, uses_of
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import facts as flashcache_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import unit as flashcache_unit
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.host import FlashcacheState, Running, name_behind
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.output import UNSTABLE, FlashcacheSuperblock
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.sizes import MEMORY_SHARE, blocks_of, memory_of
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.spec import FlashcacheSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import Origin
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import require_no_cache
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.spec import MISSING
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice


class Diff:
    """One cache of the list.

    :param taken: kernel names of fast devices that caches before it in the list have taken; its own is added.
    """

    def __init__(self, state: FlashcacheState, spec: FlashcacheSpec, taken: set[str]) -> None:
        self.state = state
        self.spec = spec
        self.taken = taken
        self.running = state.running.get(spec.name)
        self.candidates = candidates_of(state, spec)
        self.targets = _with_arrays(state, spec.cache_devices)
        self.stored_on = self._find_stored()
        #: The text of its unit as it is at this point of the plan.
        self.unit = state.units.get(spec.name, "")

    # -- comparisons

    def _ground_without_it(self) -> fast_device.HostDevices:
        """The host as it is when this cache has been taken down and its SSD made empty, which may then become half of a mirror."""
        ground = self.state.ground
        emptied = name_behind(ground.devices, self.state.emptied.get(self.spec.name, ""))
        name = (self.running.ssd_name if self.running is not None else self.stored_on or emptied) or ""
        ssd = ground.devices.get(name)
        if ssd is None:
            return ground
        own = self.running.device.name if self.running is not None and self.running.device is not None else None
        freed = dataclasses.replace(ssd, holders=tuple(holder for holder in ssd.holders if holder != own), signature=None)
        findings = {other: finding for other, finding in ground.findings.items() if other != name}
        return dataclasses.replace(ground, devices=ground.devices.with_changed([freed]), findings=findings)

    def _changed(self, running: Running, fast: fast_device.FastDevice) -> list[str]:
        """What of a cache that runs is not as wanted and cannot be changed while it runs."""
        spec, table = self.spec, running.table
        changed = []
        if fast.device is None or running.ssd_name != fast.device.name:
            changed.append("cache device")
        if table.mode != spec.mode:
            changed.append("mode")
        if table.mode == spec.mode and table.write_only != spec.write_only:
            changed.append("write_only")
        if table.block_size != spec.block_size:
            changed.append("chunk_size")
        if table.associativity != spec.associativity:
            changed.append("associativity")
        if table.disk_associativity is not None and table.disk_associativity != spec.disk_associativity:
            changed.append("disk_associativity")
        if spec.mode == "writeback" and table.metadata_block_size not in (None, spec.metadata_block_size):
            changed.append("metadata_block_size")
        if not changed and abs(table.total - self._blocks(fast)) > spec.associativity:
            changed.append("size")
        return changed

    def _stored_as_specified(self, stored: FlashcacheSuperblock, fast: fast_device.FastDevice) -> bool:
        spec = self.spec
        if fast.device is None or spec.mode != "writeback" or self.stored_on != fast.device.name:
            return False
        found = (stored.block_size, stored.associativity, stored.disk_associativity, stored.metadata_block_size, stored.write_only)
        requested = (spec.block_size, spec.associativity, spec.disk_associativity, spec.metadata_block_size, spec.write_only)
        return found == requested and abs(stored.blocks - self._blocks(fast)) <= spec.associativity

    def _size(self, fast: fast_device.FastDevice) -> int:
        """Bytes of the SSD that the cache takes, with its metadata."""
        spec = self.spec
        size = spec.size if spec.size is not None else int(fast.size * spec.share)
        return size // spec.block_size * spec.block_size

    def _blocks(self, fast: fast_device.FastDevice) -> int:
        metadata = self.spec.metadata_block_size if self.spec.mode == "writeback" else None
        # Without a size flashcache takes the device to its last sector.
        size = fast.size if self.spec.size is None and self.spec.share >= 1 else self._size(fast)
        return blocks_of(size, self.spec.block_size, self.spec.associativity, metadata)

    def _find_stored(self) -> str | None:
        """The wanted cache device with a superblock of this cache."""
        if self.running is not None:
            return None
        origin = name_behind(self.state.ground.devices, self.spec.origin)
        for name in sorted(self.candidates):
            stored = self.state.stored.get(name)
            if stored is not None and is_named(stored, self.spec.name) and name_behind(self.state.ground.devices, stored.disk) == origin:
                return name
        return None

    def _ours(self) -> bool:
        """Whether what is on the wanted cache device comes from this cache."""
        if self.running is not None:
            return self.running.ssd_name in self.targets
        emptied = self.state.emptied.get(self.spec.name, "")
        return self.stored_on in self.targets or (bool(emptied) and name_behind(self.state.ground.devices, emptied) in self.targets)

    # -- refusals

    def _origin(self) -> BlockDevice:
        return resolve_stable(self.state.ground.devices, self.spec.origin, self.spec.name)

    def _require_own_name(self, origin: BlockDevice | None) -> None:
        """A cache that runs keeps its origin, and an origin has one cache."""
        spec, running = self.spec, self.running
        if origin is not None and origin.name in self.taken:
            raise BadInput(f"{spec.name}: {spec.origin} is used by a cache before it in the list: cache a device once.", item=spec.name)
        if running is not None:
            devices = self.state.ground.devices
            if not spec.present and running.disk_name is not None and MISSING not in spec.expect:
                devices.resolve(spec.origin, spec.name)
            if name_behind(devices, spec.origin) not in (None, running.disk_name):
                raise self._refused(f"caches {running.table.disk}, and origin is {spec.origin}: remove it with state: absent and that origin first")
            return
        other = next((cache for cache in self.state.running.values() if origin is not None and cache.disk_name == origin.name), None)
        if other is not None:
            raise self._refused(f"would be a second cache of {spec.origin}, which the flashcache device {other.name} caches: use that name, or remove it")
        mapped = next((device for device in self.state.ground.devices if device.dm_name == spec.name), None)
        if mapped is not None:
            raise self._refused(f"cannot be created: a device-mapper device of that name is there, and it is not a flashcache device ({mapped.kind})")

    def _require_no_cache(self) -> None:
        """Of an item of which no cache was found."""
        require_no_cache(self.spec, self.state.found.get(self.spec.name, Origin()), "flashcache")

    def _require_in_sight(self) -> None:
        """What wrote back and does not run: that its SSD cannot be found is no proof that nothing is only there."""
        unit = self.state.units.get(self.spec.name, "")
        ssd = flashcache_unit.ssd_of(unit)
        if self.running is not None or not flashcache_unit.loads(unit) or name_behind(self.state.ground.devices, ssd) is not None:
            return
        raise self._refused(
            f"has a write-back cache that does not run, and its device {ssd} cannot be found, which may hold newer blocks than its origin: do not use"
            " the origin, reconnect the device and run again, which loads the cache with them; only if it is permanently lost, remove the unit"
            f" {boot_unit.unit_name('flashcache', self.spec.name)} and restore the origin from a backup"
        )

    def _require_not_used_past(self) -> None:
        """An origin that something uses past its cache: only a cache that writes through can be removed then, as that flushes nothing."""
        running = self.running
        state, problem = flashcache_facts.condition_of(running, self.state.ground.devices) if running is not None else ("ok", "")
        if running is None or state != "inconsistent" or (self.spec.state == "absent" and running.table.mode != "writeback"):
            return
        raise Refused(f"{self.spec.name}: {problem}", item=self.spec.name)

    def _require_fast(self, fast: fast_device.FastDevice, origin: BlockDevice) -> None:
        devices = self.state.ground.devices
        tops = [fast.device] if fast.device is not None else [devices.resolve(path, self.spec.name) for path in self.spec.cache_devices]
        below = {device.name for top in tops for device in (top, *devices.parents(top))}
        if origin.name in below or below & {device.name for device in self.state.ground.devices.parents(origin)}:
            raise self._refused(f"would be on {fast.path}, which {self.spec.origin} is on too: name another device")
        self.taken.update({*below, origin.name})

    def _require_safe(self, fast: fast_device.FastDevice, origin: BlockDevice) -> None:
        """What a new cache needs."""
        spec = self.spec
        mine = {self.running.device.name} if self.running is not None and self.running.device is not None else set()
        held = [use for use in uses_of(origin) if not (mine and use == f"is used by {', '.join(mine)}")]
        if held:
            raise self._refused(
                f"cannot cache {spec.origin}, which {' and '.join(held)}: unmount or deactivate it first, and use /dev/mapper/{spec.name} instead"
            )
        if fast.device is not None and self.running is None:
            # What an earlier run has left there is made empty; what is in use by now is not.
            users = uses_of(fast.device)
            if users:
                raise self._refused(f"cannot be on {fast.path}, which {' and '.join(users)}: name an empty device")
        if spec.mode == "writeback":
            starters.require_kept_away(self.state.starters, spec.name)
        self._require_size(fast, origin)
        self._require_permission(fast)
        self._require_durable(fast)

    def _require_size(self, fast: fast_device.FastDevice, origin: BlockDevice) -> None:
        spec, size = self.spec, self._size(fast)
        if size > fast.size:
            raise BadInput(f"{spec.name}: size is {format_size(size)}, and {fast.path} has {format_size(fast.size)}: use a smaller size.", item=spec.name)
        if self._blocks(fast) < spec.associativity:
            raise BadInput(
                f"{spec.name}: {format_size(size)} is not enough for one set of {spec.associativity} blocks of {format_size(spec.block_size)}.",
                item=spec.name,
            )
        if fast.device is not None and spec.mode == "writeback" and spec.metadata_block_size < fast.device.logical_block:
            raise BadInput(
                f"{spec.name}: metadata_block_size is {format_size(spec.metadata_block_size)}, and {fast.path} has sectors of"
                f" {format_size(fast.device.logical_block)}: use at least that.",
                item=spec.name,
            )
        if size > origin.size:
            raise self._refused(f"would have {format_size(size)}, more than its origin {spec.origin} with {format_size(origin.size)}: use a smaller size")
        needed, memory = memory_of(size, spec.block_size), self.state.memory
        if memory and needed > memory * MEMORY_SHARE:
            raise self._refused(
                f"would need {format_size(needed)} of the {format_size(memory)} of main memory for its table of blocks, more than a quarter:"
                " use a smaller size or a larger chunk_size"
            )

    def _require_permission(self, fast: fast_device.FastDevice) -> None:
        spec = self.spec
        if spec.mode == "writeback":
            require_mirrored(fast.redundancy, spec.cache_devices, spec.name, spec.origin, allowed=spec.allow_unmirrored_writeback)

    def _require_durable(self, fast: fast_device.FastDevice) -> None:
        clauses = volatile_under(self.state, self.spec, fast.path)
        if clauses and not self.spec.allow_ignored_flushes:
            raise self._refused(
                f"would lose acknowledged writes in a power failure, because flashcache passes no flush down and {' and '.join(clauses)}: turn that cache off"
                " (drive_write_cache), name the drive in protected_drives if it keeps its cache through a power failure, or set"
                " allow_ignored_flushes: true for this cache"
            )

    def _require_unused(self, running: Running, purpose: str) -> None:
        device = running.device
        uses = [use for use in uses_of(device) if use != "is read-only"] if device is not None else []
        if not uses and running.opened:
            uses = [f"is open ({running.opened} times)"]
        if uses:
            raise self._refused(f"must be stopped to {purpose}, and /dev/mapper/{running.name} {' and '.join(uses)}: unmount it first")

    def _require_loadable(self, stored: FlashcacheSuperblock, path: str) -> None:
        devices = self.state.ground.devices
        if stored.state == UNSTABLE:
            raise self._refused(
                f"cannot be loaded from {path}: its metadata could not be written when it was shut down, and the kernel no longer loads it;"
                " the dirty blocks are nowhere else, so restore the origin from a backup, or examine it before you run flashcache_destroy"
            )
        disk, ssd = devices.resolve(stored.disk, self.spec.name), devices.resolve(path, self.spec.name)
        for device, place, recorded in ((ssd, path, stored.ssd_size), (disk, stored.disk, stored.disk_size)):
            if device.size != recorded:
                raise self._refused(
                    f"cannot be loaded: {place} had {recorded} bytes when the cache was made and has {device.size} now, and flashcache loads no cache whose"
                    " devices have another size: restore the old size of the device"
                )
        uses = uses_of(disk)
        if uses:
            raise self._refused(
                f"cannot be loaded: {stored.disk} {' and '.join(uses)}, without the blocks that are only on {path}: stop that before more is lost, and keep"
                " LVM from that disk with a filter in lvm.conf"
            )

    def _require_kernel(self, tool: str) -> None:
        self._require_module()
        self._require_tool(tool)

    def _require_module(self) -> None:
        state = self.state
        if not state.module:
            raise Refused(
                f"{self.spec.name}: the kernel module {state.places.kernel_module} is not available on kernel {state.release}: flashcache exists for"
                " kernels up to 4.4, and as a port of its users for 4.18 of Enterprise Linux 8; bring it to this host, or use the type lvm_cache,"
                " dm_cache or bcache.",
                item=self.spec.name,
            )

    def _require_tool(self, tool: str) -> None:
        if tool not in self.state.places.tools:
            raise ToolMissing(
                f"{self.spec.name}: the command {tool} is missing on this host: install the tools of flashcache, or name their folder in tool_dirs.",
                item=self.spec.name,
            )

    def _path_of(self, name: str) -> str:
        """The path by which the user, or else the host, names a fast device."""
        devices = self.state.ground.devices
        for path in self.spec.cache_devices:
            if name_behind(devices, path) == name:
                return path
        device = devices.get(name)
        array = self.state.ground.arrays.get(name)
        if array is not None and array.uuid:
            return array.path
        if device is None:
            raise DeviceMissing(f"{self.spec.name}: /dev/{name} is missing.", item=self.spec.name)
        return device.stable_path or device.path

    def _refused(self, reason: str) -> Refused:
        return Refused(f"{self.spec.name}: the flashcache device {self.spec.name} {reason}.", item=self.spec.name)


def is_named(stored: FlashcacheSuperblock, name: str) -> bool:
    """Whether a superblock may be that of a cache; the first format has the path of the SSD where the later ones have the name."""
    return stored.name == name or stored.name.startswith("/")


def candidates_of(state: FlashcacheState, spec: FlashcacheSpec) -> frozenset[str]:
    """Kernel names of what the cache of an item lies on or may lie on: its devices, an array of them, what its unit names."""
    return _with_arrays(state, [*spec.cache_devices, flashcache_unit.ssd_of(state.units.get(spec.name, "")), state.emptied.get(spec.name, "")])


def _with_arrays(state: FlashcacheState, paths: t.Iterable[str]) -> frozenset[str]:
    """Kernel names behind paths; an array of some of them stands for its members."""
    devices, arrays = state.ground.devices, state.ground.arrays
    names = {name for name in (name_behind(devices, path) for path in paths if path) if name is not None}
    above = {array.name for array in arrays.values() if array.members and set(array.members) <= names}
    return frozenset((names - {member for name in above for member in arrays[name].members}) | above)


def volatile_under(state: FlashcacheState, spec: FlashcacheSpec, *paths: str) -> list[str]:
    """What below a cache and its origin keeps writes in volatile memory, each once."""
    clauses = [clause for path in (*spec.cache_devices, *paths, spec.origin) for clause in state.volatile.get(path, ())]
    return list(dict.fromkeys(clauses))
