# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One cache of the list beside what the host has of it: whether they differ, and what speaks against touching it.

Sources: the checks of ``flashcache_ctr`` (flashcache_conf.c), flashcache_create.c and flashcache_load.c.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import boot_unit, fast_device
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import require_mirrored, resolve_stable, uses_of
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import unit as flashcache_unit
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.host import FlashcacheState, Running, name_behind
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.output import UNSTABLE, FlashcacheSuperblock
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.sizes import MEMORY_SHARE, blocks_of, memory_of
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.spec import FlashcacheSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice


class Diff:
    """One cache of the list.

    :param taken: kernel names of fast devices that caches before it in the list have taken; its own is added.
    """

    def __init__(self, present: FlashcacheState, wanted: FlashcacheSpec, taken: set[str]) -> None:
        self.present = present
        self.wanted = wanted
        self.taken = taken
        self.running = present.running.get(wanted.name)
        self.candidates = candidates_of(present, wanted)
        self.targets = _with_arrays(present, wanted.cache_devices)
        self.stored_on = self._find_stored()
        #: The text of its unit as it is at this point of the plan.
        self.unit = present.units.get(wanted.name, "")

    # -- comparisons

    def _ground_without_it(self) -> fast_device.HostDevices:
        """The host as it is when this cache has been taken down and its SSD made empty, which may then become half of a mirror."""
        ground = self.present.ground
        emptied = name_behind(ground.devices, self.present.emptied.get(self.wanted.name, ""))
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
        wanted, table = self.wanted, running.table
        changed = []
        if fast.device is None or running.ssd_name != fast.device.name:
            changed.append("cache device")
        if table.mode != wanted.mode:
            changed.append("mode")
        if table.mode == wanted.mode and table.write_only != wanted.write_only:
            changed.append("write_only")
        if table.block_size != wanted.block_size:
            changed.append("chunk_size")
        if table.associativity != wanted.associativity:
            changed.append("associativity")
        if table.disk_associativity is not None and table.disk_associativity != wanted.disk_associativity:
            changed.append("disk_associativity")
        if wanted.mode == "writeback" and table.metadata_block_size not in (None, wanted.metadata_block_size):
            changed.append("metadata_block_size")
        if not changed and abs(table.total - self._blocks(fast)) > wanted.associativity:
            changed.append("size")
        return changed

    def _stored_as_wanted(self, stored: FlashcacheSuperblock, fast: fast_device.FastDevice) -> bool:
        wanted = self.wanted
        if fast.device is None or wanted.mode != "writeback" or self.stored_on != fast.device.name:
            return False
        found = (stored.block_size, stored.associativity, stored.disk_associativity, stored.metadata_block_size, stored.write_only)
        asked = (wanted.block_size, wanted.associativity, wanted.disk_associativity, wanted.metadata_block_size, wanted.write_only)
        return found == asked and abs(stored.blocks - self._blocks(fast)) <= wanted.associativity

    def _size(self, fast: fast_device.FastDevice) -> int:
        """Bytes of the SSD that the cache takes, with its metadata."""
        wanted = self.wanted
        size = wanted.size if wanted.size is not None else int(fast.size * wanted.share)
        return size // wanted.block_size * wanted.block_size

    def _blocks(self, fast: fast_device.FastDevice) -> int:
        metadata = self.wanted.metadata_block_size if self.wanted.mode == "writeback" else None
        # Without a size flashcache takes the device to its last sector.
        size = fast.size if self.wanted.size is None and self.wanted.share >= 1 else self._size(fast)
        return blocks_of(size, self.wanted.block_size, self.wanted.associativity, metadata)

    def _find_stored(self) -> str | None:
        """The wanted cache device with a superblock of this cache."""
        if self.running is not None:
            return None
        origin = name_behind(self.present.ground.devices, self.wanted.origin)
        for name in sorted(self.candidates):
            stored = self.present.stored.get(name)
            if stored is not None and is_named(stored, self.wanted.name) and name_behind(self.present.ground.devices, stored.disk) == origin:
                return name
        return None

    def _ours(self) -> bool:
        """Whether what is on the wanted cache device comes from this cache."""
        if self.running is not None:
            return self.running.ssd_name in self.targets
        emptied = self.present.emptied.get(self.wanted.name, "")
        return self.stored_on in self.targets or (bool(emptied) and name_behind(self.present.ground.devices, emptied) in self.targets)

    # -- refusals

    def _origin(self) -> BlockDevice:
        return resolve_stable(self.present.ground.devices, self.wanted.origin, self.wanted.name)

    def _require_own_name(self, origin: BlockDevice | None) -> None:
        """A cache that runs keeps its origin, and an origin has one cache."""
        wanted, running = self.wanted, self.running
        if origin is not None and origin.name in self.taken:
            raise BadInput(f"{wanted.name}: {wanted.origin} is taken by a cache before it in the list: cache a device once.", item=wanted.name)
        if running is not None:
            devices = self.present.ground.devices
            if name_behind(devices, wanted.origin) not in (None, running.disk_name):
                raise self._refused(f"caches {running.table.disk}, and origin is {wanted.origin}: take it away with state: absent and that origin first")
            return
        other = next((cache for cache in self.present.running.values() if origin is not None and cache.disk_name == origin.name), None)
        if other is not None:
            raise self._refused(f"would be a second cache of {wanted.origin}, which the flashcache device {other.name} caches: use that name, or remove it")
        mapped = next((device for device in self.present.ground.devices if device.dm_name == wanted.name), None)
        if mapped is not None:
            raise self._refused(f"cannot be made: a device-mapper device of that name is there, and it is no flashcache device ({mapped.kind})")

    def _require_in_sight(self) -> None:
        """What wrote back and does not run: that its SSD cannot be found is no proof that nothing is only there."""
        unit = self.present.units.get(self.wanted.name, "")
        ssd = flashcache_unit.ssd_of(unit)
        if self.running is not None or not flashcache_unit.loads(unit) or name_behind(self.present.ground.devices, ssd) is not None:
            return
        raise self._refused(
            f"has a write-back cache that does not run, and its device {ssd} cannot be found, which may hold newer blocks than its origin: bring it back"
            " and do not use the origin before; if it is lost for good, a person must decide and take the unit"
            f" {boot_unit.unit_name('flashcache', self.wanted.name)} away"
        )

    def _require_fast(self, fast: fast_device.FastDevice, origin: BlockDevice) -> None:
        devices = self.present.ground.devices
        tops = [fast.device] if fast.device is not None else [devices.resolve(path, self.wanted.name) for path in self.wanted.cache_devices]
        below = {device.name for top in tops for device in (top, *devices.parents(top))}
        if origin.name in below or below & {device.name for device in self.present.ground.devices.parents(origin)}:
            raise self._refused(f"would lie on {fast.path}, on which {self.wanted.origin} lies too: name another device")
        self.taken.update({*below, origin.name})

    def _require_safe(self, fast: fast_device.FastDevice, origin: BlockDevice) -> None:
        """What a new cache needs."""
        wanted = self.wanted
        mine = {self.running.device.name} if self.running is not None and self.running.device is not None else set()
        held = [use for use in uses_of(origin) if not (mine and use == f"is used by {', '.join(mine)}")]
        if held:
            raise self._refused(
                f"cannot cache {wanted.origin}, which {' and '.join(held)}: unmount or deactivate it first, and use /dev/mapper/{wanted.name} instead"
            )
        if fast.device is not None and self.running is None:
            # What an earlier run has left there is made empty; what somebody uses by now is not.
            users = uses_of(fast.device)
            if users:
                raise self._refused(f"cannot lie on {fast.path}, which {' and '.join(users)}: name an empty device")
        self._require_size(fast, origin)
        self._require_permission(fast)
        self._require_durable(fast)

    def _require_size(self, fast: fast_device.FastDevice, origin: BlockDevice) -> None:
        wanted, size = self.wanted, self._size(fast)
        if size > fast.size:
            raise BadInput(f"{wanted.name}: size is {format_size(size)}, and {fast.path} has {format_size(fast.size)}: write a smaller size.", item=wanted.name)
        if self._blocks(fast) < wanted.associativity:
            raise BadInput(
                f"{wanted.name}: {format_size(size)} is not enough for one set of {wanted.associativity} blocks of {format_size(wanted.block_size)}.",
                item=wanted.name,
            )
        if fast.device is not None and wanted.mode == "writeback" and wanted.metadata_block_size < fast.device.logical_block:
            raise BadInput(
                f"{wanted.name}: metadata_block_size is {format_size(wanted.metadata_block_size)}, and {fast.path} has sectors of"
                f" {format_size(fast.device.logical_block)}: write at least that.",
                item=wanted.name,
            )
        if size > origin.size:
            raise self._refused(f"would have {format_size(size)}, more than its origin {wanted.origin} with {format_size(origin.size)}: write a smaller size")
        needed, memory = memory_of(size, wanted.block_size), self.present.memory
        if memory and needed > memory * MEMORY_SHARE:
            raise self._refused(
                f"would take {format_size(needed)} of the {format_size(memory)} of main memory for its table of blocks, more than a quarter:"
                " write a smaller size or a larger chunk_size"
            )

    def _require_permission(self, fast: fast_device.FastDevice) -> None:
        wanted = self.wanted
        if wanted.mode == "writeback":
            require_mirrored(fast.redundancy, wanted.cache_devices, wanted.name, wanted.origin, allowed=wanted.allow_unmirrored_writeback)

    def _require_durable(self, fast: fast_device.FastDevice) -> None:
        clauses = volatile_under(self.present, self.wanted, fast.path)
        if clauses and not self.wanted.allow_ignored_flushes:
            raise self._refused(
                f"would lose acknowledged writes in a power cut, because flashcache passes no flush down and {' and '.join(clauses)}: turn that cache off"
                " (drive_write_cache), name the drive in protected_drives if it keeps its cache through a power cut, or set"
                " allow_ignored_flushes: true for this cache"
            )

    def _require_unused(self, running: Running, purpose: str) -> None:
        device = running.device
        uses = [use for use in uses_of(device) if use != "is read-only"] if device is not None else []
        if not uses and running.opened:
            uses = [f"is open ({running.opened} times)"]
        if uses:
            raise self._refused(f"has to be taken down to {purpose}, and /dev/mapper/{running.name} {' and '.join(uses)}: unmount it first")

    def _require_loadable(self, stored: FlashcacheSuperblock, path: str) -> None:
        devices = self.present.ground.devices
        if stored.state == UNSTABLE:
            raise self._refused(
                f"cannot be loaded from {path}: its metadata could not be written when it was shut down, and the kernel takes it no more;"
                " what was dirty is in no other place, so restore the origin from a backup, or let a person look at it before flashcache_destroy"
            )
        disk, ssd = devices.resolve(stored.disk, self.wanted.name), devices.resolve(path, self.wanted.name)
        for device, place, recorded in ((ssd, path, stored.ssd_size), (disk, stored.disk, stored.disk_size)):
            if device.size != recorded:
                raise self._refused(
                    f"cannot be loaded: {place} had {recorded} bytes when the cache was made and has {device.size} now, and flashcache loads no cache whose"
                    " devices have another size: give the device its old size back"
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
        present = self.present
        if not present.module:
            raise Refused(
                f"{self.wanted.name}: the kernel module {present.places.kernel_module} is not available on kernel {present.release}: flashcache exists for"
                " kernels up to 4.4, and as a port of its users for 4.18 of Enterprise Linux 8; bring it to this host, or use the type lvm_cache,"
                " dm_cache or bcache.",
                item=self.wanted.name,
            )

    def _require_tool(self, tool: str) -> None:
        if tool not in self.present.places.tools:
            raise ToolMissing(
                f"{self.wanted.name}: the command {tool} is missing on this host: install the tools of flashcache, or name their folder in tool_dirs.",
                item=self.wanted.name,
            )

    def _path_of(self, name: str) -> str:
        """The path by which the user, or else the host, names a fast device."""
        devices = self.present.ground.devices
        for path in self.wanted.cache_devices:
            if name_behind(devices, path) == name:
                return path
        device = devices.get(name)
        array = self.present.ground.arrays.get(name)
        if array is not None and array.uuid:
            return array.path
        if device is None:
            raise DeviceMissing(f"{self.wanted.name}: /dev/{name} has gone.", item=self.wanted.name)
        return device.stable_path or device.path

    def _refused(self, reason: str) -> Refused:
        return Refused(f"{self.wanted.name}: the flashcache device {self.wanted.name} {reason}.", item=self.wanted.name)


def is_named(stored: FlashcacheSuperblock, name: str) -> bool:
    """Whether a superblock may be that of a cache; the first format has the path of the SSD where the later ones have the name."""
    return stored.name == name or stored.name.startswith("/")


def candidates_of(present: FlashcacheState, wanted: FlashcacheSpec) -> frozenset[str]:
    """Kernel names of what the cache of an item lies on or may lie on: its devices, an array of them, what its unit names."""
    return _with_arrays(present, [*wanted.cache_devices, flashcache_unit.ssd_of(present.units.get(wanted.name, "")), present.emptied.get(wanted.name, "")])


def _with_arrays(present: FlashcacheState, paths: t.Iterable[str]) -> frozenset[str]:
    """Kernel names behind paths; an array of some of them stands for its members."""
    devices, arrays = present.ground.devices, present.ground.arrays
    names = {name for name in (name_behind(devices, path) for path in paths if path) if name is not None}
    above = {array.name for array in arrays.values() if array.members and set(array.members) <= names}
    return frozenset((names - {member for name in above for member in arrays[name].members}) | above)


def volatile_under(present: FlashcacheState, wanted: FlashcacheSpec, *paths: str) -> list[str]:
    """What below a cache and its origin keeps writes in volatile memory, each once."""
    clauses = [clause for path in (*wanted.cache_devices, *paths, wanted.origin) for clause in present.volatile.get(path, ())]
    return list(dict.fromkeys(clauses))
