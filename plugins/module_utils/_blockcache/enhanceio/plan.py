# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the EnhanceIO caches that run to the specified ones: pure, and the place of every refusal.

A cache goes into write-back last and leaves it first: it is made in write-through, the files that bring it back at boot are
written, and only then may blocks become dirty. Whatever a run is killed between, the next boot finds what it needs.
"""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import fast_device, starters
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import (
    DEGRADED,
    DeviceUse,
    require_mirrored,
    require_whole_unit,
    resolve_stable,
    uses_of,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import boot, settings
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.boot import LAYER, AtBoot
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.facts import Cache, find, recovery
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.operations import (
    CreateCache,
    DeleteCache,
    EnableCache,
    FlushCache,
    ProveClean,
    ResumeCache,
    SetMode,
    SetSetting,
    StopCleaning,
    WipeSuperblock,
    WriteBootFiles,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.output import (
    CHANGING,
    FAST_REMOVE,
    SET_SIZES,
    Config,
    EnhanceIOSuperblock,
    fast_removal_sentence,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.spec import EnhanceIOSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.state import EnhanceIOState
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.expected import left_by
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.fast_device import FastDevice, HostDevices
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import Origin
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import require_no_cache
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice

BLOCK_SIZE = 4096
_METADATA = "EnhanceIO metadata"
_WITHOUT = "lvm_cache, dm_cache and bcache do the same on every kernel"


def plan(state: EnhanceIOState, specs: t.Sequence[EnhanceIOSpec]) -> list[Step]:
    """The steps for every cache of the list, in its order.

    :raises BadInput: if the specification is invalid on this host.
    :raises DeviceMissing: if the origin or a cache device is not there.
    :raises Refused: if it would risk data, naming the option that allows it or the manual action.
    :raises ToolMissing: if the driver or a tool is not there and is needed.
    """
    taken: set[str] = set()
    steps: list[Step] = []
    for spec in specs:
        planned = _CachePlan(state, spec, taken).steps()
        steps += planned
        if not spec.present:
            state = state.without(left_by(LAYER, {spec.name: spec.origin}, planned, state.devices))
    return steps


def _volatile(state: EnhanceIOState, spec: EnhanceIOSpec) -> list[str]:
    return list(dict.fromkeys(reason for path in (spec.origin, *spec.cache_devices) for reason in state.volatile.get(path, ())))


class _CachePlan:
    """The plan of one cache.

    :param taken: kernel names of the cache devices and origins that items before it have taken; grows.
    """

    def __init__(self, state: EnhanceIOState, spec: EnhanceIOSpec, taken: set[str]) -> None:
        self.state = state
        self.spec = spec
        self.taken = taken
        self.name = spec.name

    def steps(self) -> list[Step]:
        running = self.state.caches.get(self.name)
        if running is not None:
            return self._steps_of_running(running)
        left = self._left_behind()
        if left is not None and left[1].may_be_dirty:
            return self._revive(*left)
        if self.spec.present:
            return self._attach(left)
        known = left is not None or bool(self.state.boot.get(self.name, AtBoot()).unit)
        if self.spec.state == "absent" or not known:
            require_no_cache(self.spec, self.state.found.get(self.name, Origin()), LAYER)
        if self.spec.state == "flushed":
            # It does not run, and is known to have written through.
            return []
        return [*self._boot_steps(None), *([self._wipe_step(left[0])] if left is not None else []), *self._release()]

    # -- a cache runs

    def _steps_of_running(self, cache: Cache) -> list[Step]:
        self._require_same_origin(cache)
        self._require_healthy(cache)
        if self.spec.state == "absent":
            steps = [*self._stop(cache), *self._release()]
        elif self.spec.state == "flushed":
            steps = self._stay(cache, "writethrough" if cache.config.mode == "writeback" else cache.config.mode, self._lies_on(cache))
        else:
            steps = self._adjust(cache)
        if steps:
            self._require_tools()
        return steps

    def _lies_on(self, cache: Cache) -> str:
        """The path of the cache device as the user wrote it, or one that stays."""
        device = find(self.state.devices, cache.config.fast)
        if device is None:
            return cache.config.fast
        written = (path for path in self.spec.cache_devices if find(self.state.devices, path) is device)
        array = self.state.ground.arrays.get(device.name)
        return next(written, None) or (array.path if array is not None else None) or device.stable_path or cache.config.fast

    def _require_same_origin(self, cache: Cache) -> None:
        origin = resolve_stable(self.state.devices, self.spec.origin, self.name)
        found = find(self.state.devices, cache.config.source)
        if found is None or found.name != origin.name:
            raise self._refused(
                f"and the EnhanceIO cache {self.name} that runs is that of {cache.config.source}: give this one another name, or remove that one first"
            )

    def _require_healthy(self, cache: Cache) -> None:
        config = cache.config
        if config.flags & CHANGING:
            raise self._refused("has a cache that another command is changing, or a shutdown: wait until it is done and run again")
        if config.state == "failed":
            raise self._refused(f"has a cache that has failed, so that it cannot be flushed and every request ends with an error, because {recovery(cache)}")

    def _adjust(self, cache: Cache) -> list[Step]:
        config = cache.config
        if config.state == "degraded" and all(find(self.state.devices, path) is None for path in self.spec.cache_devices):
            raise self._refused(f"works without its cache, because the cache device {config.fast} is gone: reconnect it, or name another in cache_devices")
        chosen = fast_device.choose(self.state.ground, self.spec, LAYER, taken=self.taken, check_empty=False)
        found = find(self.state.devices, config.fast)
        same = chosen.device is not None and found is not None and chosen.device.name == found.name
        # The driver is one change of the policy behind as long as it runs, and prints the word that was requested.
        if not same or self._wants_other_blocks(config) or self.spec.policy not in (None, config.policy):
            # Checked before anything is removed: what cannot be attached again is not detached.
            return [*self._stop(cache), *self._attach(None, replaces=found.name if found is not None else "", former=config)]
        self.taken.update([*self._names(chosen), resolve_stable(self.state.devices, self.spec.origin, self.name).name])
        self._permit(chosen, entering=config.mode != "writeback")
        back = [self._resume_step(chosen.path)] if config.state == "degraded" else []
        return back + self._stay(cache, self.spec.mode, chosen.path)

    def _wants_other_blocks(self, config: Config) -> bool:
        """Whether the cache has to be made anew for the size of its blocks.

        The driver takes the size that its own eio_cli passes. One that was built from another source takes 4096 bytes, and only the size of its
        sets shows what was requested.
        """
        requested = self.spec.chunk_size
        if requested is None or requested == config.block_size:
            return False
        if config.block_size == BLOCK_SIZE and config.set_size == SET_SIZES[requested]:
            raise BadInput(
                f"{self.name}: the driver of EnhanceIO and eio_cli on this host do not belong together: blocks are {BLOCK_SIZE} bytes after {requested} were"
                " requested. Install both from the same source, or leave chunk_size out.",
                item=self.name,
            )
        return True

    def _stay(self, cache: Cache, mode: str, fast: str) -> list[Step]:
        """The cache goes on: mode, settings, and what brings it back."""
        config = cache.config
        steps: list[Step] = []
        leaving, entering = config.mode == "writeback" != mode, mode == "writeback" != config.mode
        files = self._boot_steps(self._files(mode, config.policy, config.block_size, fast))
        if leaving:
            steps.append(self._flush_step(cache))
        if entering and config.flags & FAST_REMOVE:
            raise Refused(fast_removal_sentence(self.name), item=self.name)
        if entering:
            steps += files
        if config.mode != mode:
            steps.append(self._mode_step(config.mode, mode))
        elif mode == "writeback" and cache.stats["do_clean"]:
            action = f"Keep writes to {self.spec.origin} in the cache {self.name} again, after an interrupted flush"
            steps.append(self._step("do_clean", cache.stats["do_clean"], 0, action, StopCleaning()))
        # A cache that enters write-back shows most of its settings only then.
        known = {} if entering else settings.existing(mode, cache.settings)
        steps += self._setting_steps(known, mode)
        return steps if entering else steps + files

    def _stop(self, cache: Cache) -> list[Step]:
        """Flush, prove, and take the cache away, with what would bring it back and with its superblock."""
        steps: list[Step] = []
        if cache.config.mode == "writeback":
            steps += [self._flush_step(cache), self._mode_step("writeback", "writethrough")]
        action = f"Verify that no block of the cache {self.name} of {self.spec.origin} is dirty"
        steps.append(self._step("dirty", "not proven", 0, action, ProveClean(self.spec.origin)))
        steps += self._boot_steps(None)
        before = {"mode": cache.config.mode, "policy": cache.config.policy, "block_size": cache.config.block_size, "device": cache.config.fast}
        steps.append(self._step("cache", before, None, f"Delete the EnhanceIO cache {self.name} of {self.spec.origin}", DeleteCache(self.spec.origin)))
        if find(self.state.devices, cache.config.fast) is not None:
            steps.append(self._wipe_step(cache.config.fast))
        return steps

    # -- no cache runs

    def _left_behind(self) -> tuple[str, EnhanceIOSuperblock] | None:
        """The path and the superblock of a cache of this name that does not run.

        :raises Refused: if it is that of another origin, or if a write-back cache that should run cannot be read.
        """
        needed_files = self.state.boot.get(self.name, AtBoot())
        for path in (*self.spec.cache_devices, *([needed_files.fast] if needed_files.fast else [])):
            device = find(self.state.devices, path)
            if device is None:
                continue
            above = [array for array in self.state.ground.arrays.values() if device.name in array.members]
            for name, place in [(device.name, path), *((array.name, array.path) for array in above)]:
                superblock = self.state.superblocks.get(name)
                if superblock is not None and superblock.name == self.name:
                    self._require_of_this_origin(place, superblock)
                    return place, superblock
        if needed_files.rule and (not needed_files.fast or find(self.state.devices, needed_files.fast) is None):
            lost = f"its cache device {needed_files.fast}" if needed_files.fast else "its cache device"
            raise self._refused(
                f"has a write-back cache that does not run, and {lost} cannot be found, which may hold newer blocks: reconnect it and run again, which starts"
                f" the cache with them; only if it is permanently lost, remove /{boot.RULE.format(name=self.name)}, which hides the origin, and restore that"
                " from a backup"
            )
        return None

    def _require_of_this_origin(self, path: str, superblock: EnhanceIOSuperblock) -> None:
        source, origin = find(self.state.devices, superblock.source), find(self.state.devices, self.spec.origin)
        same = superblock.source == self.spec.origin or (source is not None and source is origin)
        if superblock.may_be_dirty and not same:
            raise self._refused(
                f"and {path} holds a write-back cache {self.name} of {superblock.source} that may have blocks its origin does not have:"
                " start that cache and flush it first"
            )

    def _revive(self, path: str, superblock: EnhanceIOSuperblock) -> list[Step]:
        """A write-back cache that does not run, as after a boot without the driver: it is started, and then treated as any other."""
        self._require_tools()
        origin = resolve_stable(self.state.devices, self.spec.origin, self.name)
        used = [reason for device in (origin, *self.state.devices.children(origin)) for reason in uses_of(device) if not reason.startswith("has the")]
        if used:
            raise self._refused(
                f"{used[0]} without its write-back cache {self.name}, which does not run and may hold newer blocks: stop using it at once; if anything was"
                " written to it since, decide manually which of the two is right"
            )
        after = {"mode": superblock.mode, "policy": superblock.policy, "device": path}
        enable = EnableCache(self.spec.origin, path, superblock.mode, superblock.policy)
        start = self._step("cache", None, after, f"Start the write-back cache {self.name} of {self.spec.origin} again", enable)
        config = Config(superblock.source, path, origin.size, 0, 0, superblock.block_size, "writeback", superblock.policy, "normal", 0)
        counts = dict.fromkeys(("reads", "writes", "read_hits", "write_hits", "cached_blocks", "do_clean", "nr_blocks", "nr_dirty"), 0)
        cache = Cache(self.name, replace(config, source=self.spec.origin), counts)
        return [start, *self._steps_of_running(cache)]

    def _attach(self, left: tuple[str, EnhanceIOSuperblock] | None, *, replaces: str = "", former: Config | None = None) -> list[Step]:
        """Make the cache.

        :param left: the superblock of an earlier one of this name, in which nothing is dirty.
        :param replaces: kernel name of the device that the cache lies on until the steps before these.
        :param former: what the cache is until then: what the item leaves out stays.
        """
        spec = self.spec
        self._require_tools()
        origin = resolve_stable(self.state.devices, spec.origin, self.name)
        # Two links of one disk are two origins if only their paths are compared.
        if origin.name in self.taken:
            raise BadInput(f"{self.name}: {spec.origin} is used by a cache before it in the list: cache a device once.", item=self.name)
        require_whole_unit(self.state.devices, origin, spec.origin, self.name)
        chosen = fast_device.choose(self._ground_without(left), spec, LAYER, taken=self.taken)
        self._require_apart(origin, chosen, replaces)
        self.taken.update([*self._names(chosen), origin.name])
        self._permit(chosen, entering=True)
        first = "writethrough" if spec.mode == "writeback" else spec.mode
        policy, block_size = spec.policy or (former.policy if former else "lru"), spec.chunk_size or (former.block_size if former else BLOCK_SIZE)
        steps = [*chosen.steps, *([self._wipe_step(left[0])] if left is not None else [])]
        after = {"mode": first, "policy": policy, "block_size": block_size, "device": chosen.path}
        action = f"Create the EnhanceIO cache {self.name} of {spec.origin} on {chosen.path} in mode {first}"
        steps.append(self._step("cache", None, after, action, CreateCache(spec.origin, chosen.path, first, policy, block_size)))
        files = self._boot_steps(self._files(spec.mode, policy, block_size, chosen.path), replaces=bool(replaces))
        if spec.mode == "writeback":
            steps += [*files, self._mode_step(first, "writeback"), *self._setting_steps({}, "writeback")]
        else:
            steps += [*self._setting_steps({}, spec.mode), *files]
        return steps

    def _ground_without(self, left: tuple[str, EnhanceIOSuperblock] | None) -> HostDevices:
        """The ground as it will be when the superblock of our own earlier cache is wiped."""
        ground = self.state.ground
        device = find(self.state.devices, left[0]) if left is not None else None
        if device is None:
            return ground
        finding = ground.findings.get(device.name, DeviceUse())
        cleaned = replace(finding, cache_metadata=tuple(name for name in finding.cache_metadata if name != _METADATA))
        return replace(ground, findings={**ground.findings, device.name: cleaned})

    def _require_apart(self, origin: BlockDevice, chosen: FastDevice, replaces: str) -> None:
        users = self.state.users()
        for name in self._names(chosen):
            if users.get(name) not in (None, self.name) and name != replaces:
                raise BadInput(f"{self.name}: {chosen.path} is used by the EnhanceIO cache {users[name]}: name another device.", item=self.name)
            device = self.state.devices.get(name)
            if device is not None and (device.parent or device.name) == (origin.parent or origin.name):
                raise BadInput(f"{self.name}: {chosen.path} and {self.spec.origin} are one disk, which EnhanceIO refuses: name another device.", item=self.name)
        if users.get(origin.name) not in (None, self.name):
            raise self._refused(f"already has the EnhanceIO cache {users[origin.name]}: a device has one cache")

    # -- permissions

    def _permit(self, chosen: FastDevice, *, entering: bool) -> None:
        """Whether the cache may be in write-back.

        A mirror that degraded under a cache that is in write-back already is no reason to fail a play that changes nothing:
        problems() reports it.
        """
        spec = self.spec
        if spec.mode != "writeback" or (not entering and chosen.redundancy == DEGRADED):
            return
        require_mirrored(chosen.redundancy, spec.cache_devices, self.name, spec.origin, allowed=spec.allow_unmirrored_writeback)
        if not entering:
            return
        origin = resolve_stable(self.state.devices, spec.origin, self.name)
        for device in (origin, *self.state.devices.children(origin)):
            if {"/", "/usr"} & set(device.mountpoints):
                raise self._refused(
                    "carries the system itself, which is mounted at boot before an EnhanceIO cache can be started: use mode writethrough or writearound"
                )
        starters.require_kept_away(self.state.starters, self.name)
        volatile = [] if spec.allow_ignored_flushes else _volatile(self.state, spec)
        if volatile:
            raise self._refused(
                f"would lose flushed writes in a power failure, because EnhanceIO in mode writeback does not pass every flush down, and"
                f" {volatile[0].rstrip('.')}: turn that cache off (drive_write_cache), name the drive in protected_drives if it has"
                " power-loss protection, use mode writethrough, or set allow_ignored_flushes: true for this cache"
            )

    def _require_tools(self) -> None:
        state = self.state
        if not state.module_there:
            raise ToolMissing(
                f"{self.name}: the kernel module {state.module} is not installed for kernel {state.kernel or 'of this host'}; this collection does not"
                f" build EnhanceIO, whose public source does not build on kernels from 5.10 on. {_WITHOUT}.",
                item=self.name,
            )
        if "eio_cli" not in state.tools:
            raise ToolMissing(
                f"{self.name}: the command eio_cli of EnhanceIO is missing on this host: install it, or name its folder in tool_dirs. {_WITHOUT}.",
                item=self.name,
            )
        missing = [name for name in boot.TOOLS if name not in state.tools]
        if missing:
            raise ToolMissing(
                f"{self.name}: the command {missing[0]} is missing on this host, and an EnhanceIO cache could not be started at boot.", item=self.name
            )

    # -- settings and files

    def _setting_steps(self, known: t.Mapping[str, int], mode: str) -> list[Step]:
        requested = self._settings(mode)
        strange = sorted(set(requested) - set(known)) if "dirty_high_threshold" in known else []
        if strange:
            raise BadInput(f"{self.name}: the EnhanceIO of this host has no setting {strange[0]}: remove it from settings.", item=self.name)
        return [self._setting_step(*change) for change in settings.changes(requested, known, self.name)]

    def _settings(self, mode: str) -> dict[str, int]:
        devices = [find(self.state.devices, path) for path in self.spec.cache_devices]
        return settings.values(self.spec.settings, mode, min((device.size for device in devices if device is not None), default=0))

    def _files(self, mode: str, policy: str, block_size: int, fast: str) -> AtBoot:
        if set(boot.TOOLS) - set(self.state.tools):
            self._require_tools()
        return boot.needed_files(self.name, self.spec.origin, fast, mode, policy, block_size, self._settings(mode), self.state.tools, self.state.module)

    def _boot_steps(self, files: AtBoot | None, *, replaces: bool = False) -> list[Step]:
        """The step that writes the files that bring the cache back; none if they are as specified.

        :param files: None to remove them.
        :param replaces: whether steps before this one take the files away that are there now.
        """
        found = AtBoot() if replaces else self.state.boot.get(self.name, AtBoot())
        after = files or AtBoot()
        if found == after:
            return []
        action = f"Write the files that start the cache {self.name} at boot" if files else f"Remove the files that start the cache {self.name} at boot"
        return [self._step("at_boot", vars(found), vars(after), action, WriteBootFiles(after.unit, after.rule))]

    # -- steps

    def _flush_step(self, cache: Cache) -> Step:
        action = f"Flush the cache {self.name} of {self.spec.origin} ({format_size(cache.dirty)} dirty)"
        return self._step("dirty", cache.dirty, 0, action, FlushCache(self.spec.origin, self.spec.flush_timeout))

    def _mode_step(self, before: str, after: str) -> Step:
        action = f"Switch the cache {self.name} of {self.spec.origin} from {before} to {after}"
        return self._step("mode", before, after, action, SetMode(self.spec.origin, after))

    def _setting_step(self, key: str, before: int | None, after: int) -> Step:
        return self._step(f"settings.{key}", before, after, f"Set {key} of the cache {self.name} to {after}", SetSetting(key, after))

    def _resume_step(self, path: str) -> Step:
        return self._step("state", "degraded", "normal", f"Resume the cache {self.name} on its cache device {path}, empty", ResumeCache(path))

    def _wipe_step(self, path: str) -> Step:
        return self._step("cache_device", path, None, f"Wipe the superblock of the cache {self.name} on {path}", WipeSuperblock(path))

    def _release(self) -> list[Step]:
        return fast_device.release(self.state.ground, self.spec, LAYER) if self.spec.release_devices else []

    # -- shared

    def _names(self, chosen: FastDevice) -> list[str]:
        """Kernel names of the device that was chosen and of the members of its mirror."""
        found = [chosen.device] + [find(self.state.devices, path) for path in self.spec.cache_devices]
        return [device.name for device in found if device is not None]

    def _step(self, attribute: str, before: t.Any, after: t.Any, action: str, operation: Operation) -> Step:
        return Step(LAYER, self.name, attribute, before, after, action, operation)

    def _refused(self, reason: str) -> Refused:
        return Refused(f"{self.name}: {self.spec.origin} {reason}.", item=self.name)
