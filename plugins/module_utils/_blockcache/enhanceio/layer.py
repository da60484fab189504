# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer ``enhanceio``: read from /proc, changed with eio_cli and sysctl.

The output and exit status of eio_cli are no proof: ``enable``, ``disable``, ``notify`` and ``clean`` always end with 0, ``delete``
ends with 3 after it has deleted a cache whose udev rule is gone, and ``create`` takes any device, also one with dirty blocks
of another cache. What is read back from /proc counts, and nothing is taken away before the driver reports that no block is
dirty. A kill of eio_cli does not end what the driver does for it, so that a long flush is never left to ``edit`` or
``delete``: it is requested from the driver beforehand (``do_clean``), and watched.

Sources: CLI/eio_cli, eio_ttc.c (``eio_cache_edit``), eio_conf.c (``eio_cache_create``, ``eio_cache_delete``), eio_procfs.c.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
import typing as t
from dataclasses import replace
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import boot_unit, fast_device, starters
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import examine, identified, still_empty, still_same
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import boot, output
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import facts as proc
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import plan as enhanceio_plan
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.boot import LAYER, AtBoot
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
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.spec import EnhanceIOSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.state import EnhanceIOState, half_flushed, problems
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flush import INTERVAL, FlushWatch
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.mirror import CreateMirror, MirrorOperations, ReleaseMirror, StartMirror
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import read_origins, unresolved
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.released import releasing
from ansible_collections.cachefleet.storage.plugins.module_utils._core import kernel_modules
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, DeviceMissing, NotEffective, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file, replace_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._core.shared_reading import expected_leaving
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices, node_of

#: Making a cache writes all of its metadata; changing one that is clean takes a moment.
PATIENCE = 3600.0
#: Seconds in which another command should have done with a cache.
_CHANGING = 60


class EnhanceIOLayer(MirrorOperations, Layer[EnhanceIOState, t.Sequence[EnhanceIOSpec]]):
    """EnhanceIO caches.

    :param kernel_module: the name of the kernel module.
    :param volatile_below: what may lose acknowledged writes in a power cut at or below the device of a path, sentences.
    """

    name = LAYER
    one_at_a_time = True

    def __init__(
        self,
        runner: Runner,
        spec: t.Sequence[EnhanceIOSpec] = (),
        root: Path = Path("/"),
        *,
        kernel_module: str = "enhanceio",
        volatile_below: t.Callable[[str], t.Sequence[str]] = lambda path: (),  # noqa: ARG005
        clock: t.Callable[[], float] = time.monotonic,
        sleep: t.Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(runner, spec, root, clock=clock, sleep=sleep)
        self.kernel_module = kernel_module
        self.volatile_below = volatile_below

    # -- read and plan

    def read(self) -> EnhanceIOState:
        """The block devices and files of /proc, whatever the number of caches.

        Only a cache device that no cache lies on costs a wipefs more, and is opened.
        """
        if not self.spec:
            return EnhanceIOState({}, Devices(()), fast_device.HostDevices(Devices(())))
        leaving = expected_leaving(self.runner)
        caches = leaving.rest(LAYER, self._settled())
        devices = self._settled_devices()
        at_boot = {item.name: self._read_boot(item.name) for item in self.spec}
        fast = [proc.find(devices, cache.config.fast) for cache in caches.values()]
        in_use = {device.name for device in fast if device is not None}
        candidates = [path for item in self.spec for path in item.cache_devices]
        ground = fast_device.read_host_devices(self.runner, devices, candidates, in_use=in_use, root=self.root, sleep=self.sleep)
        looked_at = [*candidates, *(files.fast for files in at_boot.values() if files.fast)]
        return EnhanceIOState(
            caches=caches,
            devices=devices,
            ground=ground,
            superblocks=self._read_superblocks(devices, looked_at, in_use | leaving.emptied, ground),
            boot=at_boot,
            tools=self._find_tools(),
            module=self.kernel_module,
            module_there=self._module_there(set(at_boot) - set(caches)),
            kernel=read_file(self.root / "proc/sys/kernel/osrelease").strip(),
            volatile=self._read_volatile(caches),
            found=read_origins(devices, unresolved(self.spec), self.root),
            starters=starters.read_starters(self.runner, devices, self.spec, self.root, running=caches, hides=True),
        )

    def plan(self, state: EnhanceIOState) -> list[Step]:
        return enhanceio_plan.plan(state, self.spec)

    def facts(self, state: EnhanceIOState) -> dict[str, t.Any]:
        named = [state.caches[item.name] for item in self.spec if item.name in state.caches]
        return {
            "problems": [*problems(state), *starters.sentences(state.starters)],
            "caches": [proc.describe(cache, state.devices, self.root).to_dict() for cache in named],
        }

    def check_settled(self, state: EnhanceIOState) -> None:
        """Caches that are dirty in a mode that writes through, and what a boot starts from an origin although it is hidden."""
        for warning in half_flushed(state, self.spec):
            self.warn(warning)
        self.check_planned(state)

    def check_planned(self, state: EnhanceIOState) -> None:
        """What a boot starts from an origin although it is hidden."""
        for warning in starters.sentences(state.starters):
            self.warn(warning)

    def _settled(self) -> dict[str, proc.Cache]:
        """The caches that run, as soon as no other command is changing one of those that are named."""
        names = {item.name for item in self.spec}
        for _second in range(_CHANGING):
            caches = {cache.name: cache for cache in proc.read_running(self.root)}
            if not any(cache.config.flags & output.CHANGING for name, cache in caches.items() if name in names):
                break
            self.sleep(1.0)
        return caches

    def _read_boot(self, name: str) -> AtBoot:
        rule = read_file(self.root / boot.RULE.format(name=name))
        return AtBoot(boot_unit.read_unit(boot.unit_name(name), self.root), rule, (self.root / boot.FOREIGN_RULE.format(name=name)).exists())

    def _read_superblocks(
        self, devices: Devices, paths: t.Iterable[str], in_use: t.Container[str], ground: fast_device.HostDevices
    ) -> dict[str, output.EnhanceIOSuperblock]:
        names = {device.name for device in (proc.find(devices, path) for path in paths) if device is not None}
        names |= {array.name for array in ground.arrays.values() if array.members and set(array.members) & names}
        found = {name: proc.read_superblock(self._node(devices, name)) for name in sorted(names) if name not in in_use}
        return {name: superblock for name, superblock in found.items() if superblock is not None}

    def _node(self, devices: Devices, name: str) -> Path:
        device = devices.get(name)
        return self.root / (device.path if device is not None else node_of(name)).lstrip("/")

    def _find_tools(self) -> dict[str, str]:
        return {name: self.runner.find(name) for name in boot.TOOLS if self.runner.has(name)}

    def _module_there(self, missing: t.Collection[str]) -> bool:
        if (self.root / proc.PROC).is_dir():
            return True
        # It is not needed: not worth a command.
        return bool(missing) and kernel_modules.is_available(self.runner, self.kernel_module, self.root)

    def _read_volatile(self, caches: t.Mapping[str, proc.Cache]) -> dict[str, t.Sequence[str]]:
        """Only for caches that are to enter write-back: it requires a query of every drive."""
        modes = {name: cache.config.mode for name, cache in caches.items()}
        entering = [item for item in self.spec if item.present and item.mode in proc.SWALLOWS and modes.get(item.name) != item.mode]
        requested = [item for item in entering if not item.allow_ignored_flushes]
        paths = dict.fromkeys(path for item in requested for path in (item.origin, *item.cache_devices))
        found: dict[str, t.Sequence[str]] = {}
        for path in paths:
            # The plan reports which device is missing.
            with contextlib.suppress(DeviceMissing):
                found[path] = self.volatile_below(path)
        return found

    # -- apply

    @functools.singledispatchmethod
    def carry_out(self, operation: Operation, _step: Step) -> None:
        raise TypeError(operation)

    carry_out.register(CreateMirror, MirrorOperations._create_mirror)
    carry_out.register(StartMirror, MirrorOperations._start_mirror)
    carry_out.register(ReleaseMirror, MirrorOperations._release_mirror)

    @carry_out.register
    def _create(self, operation: CreateCache, step: Step) -> None:
        path = operation.path
        words = [*_options(operation), "-b", str(operation.block_size)]
        with still_empty(self.runner, path, step.item, self.root, self.sleep):
            self._load_module(step)
            self._run(step, ["eio_cli", "create", *words, "-c", step.item], lambda: self._cache(step) is not None)
        self._forget_foreign_rule(step)
        cache = self._require_cache(step, operation.origin)
        if cache.config.block_size != operation.block_size:
            raise NotEffective(
                f"{step.item}: the driver of EnhanceIO made blocks of {cache.config.block_size} bytes where {operation.block_size} were requested, because it"
                " and eio_cli do not belong together: install both from the same source, or leave chunk_size out. The cache runs and nothing is lost.",
                item=step.item,
            )

    @carry_out.register
    def _enable(self, operation: EnableCache, step: Step) -> None:
        """Start a cache with what its superblock holds. The tool ends with 0 whatever happened."""
        self._load_module(step)
        completed = self.runner.run(["eio_cli", "enable", *_options(operation), "-c", step.item], ok=None, timeout=PATIENCE, item=step.item)
        if self._cache(step) is None:
            raise NotEffective(
                f"{step.item}: the cache on {operation.path} could not be started, and may hold blocks that {operation.origin} does not have: check dmesg,"
                " and do not use the origin until it runs.",
                item=step.item,
                completed=completed,
            )

    def _load_module(self, step: Step) -> None:
        if not (self.root / proc.PROC).is_dir():
            self.runner.run(["modprobe", self.kernel_module], item=step.item)

    @carry_out.register
    def _flush(self, operation: FlushCache, step: Step) -> None:
        """Have everything written back, with nothing becoming dirty meanwhile; the mode that follows keeps it so."""
        origin = operation.origin
        watch = FlushWatch(step.item, origin, lambda: self._require_cache(step, origin).stats["nr_dirty"], limit=operation.flush_timeout, clock=self.clock)
        while True:
            self._keep_cleaning(step, origin)
            if watch() == 0:
                return
            self.sleep(INTERVAL)

    def _keep_cleaning(self, step: Step, origin: str) -> None:
        """Begin the cleaning, and begin it again if it went through and left something."""
        cache = self._require_cache(step, origin)
        if cache.config.state != "normal":
            raise NotEffective(f"{step.item}: the cache became {cache.config.state} while it was flushed: check dmesg; nothing was removed.", item=step.item)
        cleaning = cache.stats["do_clean"]
        if cache.config.mode == "writeback" and (not cleaning & output.CLEAN_KEEP or (cache.stats["nr_dirty"] and not cleaning & output.CLEAN_START)):
            self._set(step, "do_clean", output.CLEAN_START | output.CLEAN_KEEP)

    @carry_out.register
    def _stop_cleaning(self, _operation: StopCleaning, step: Step) -> None:
        self._set(step, "do_clean", 0)

    @carry_out.register
    def _set_mode(self, operation: SetMode, step: Step) -> None:
        mode, origin = operation.mode, operation.origin
        if mode != "writeback":
            # The driver flushes in here too, and can then neither be watched nor stopped.
            self._require_clean(step, origin)
        elif self._require_cache(step, origin).config.flags & output.FAST_REMOVE:
            raise Refused(output.fast_removal_sentence(step.item), item=step.item)
        command = ["eio_cli", "edit", "-c", step.item, "-m", output.MODE_WORDS[mode]]
        self._run(step, command, lambda: getattr(self._config(step), "mode", None) == mode)
        self._forget_foreign_rule(step)
        if mode != "writeback":
            self._require_clean(step, origin, left_writeback=True)

    @carry_out.register
    def _set_setting(self, operation: SetSetting, step: Step) -> None:
        self._set(step, operation.key, operation.value)

    @carry_out.register
    def _resume(self, operation: ResumeCache, step: Step) -> None:
        """Give a degraded cache its device back; the driver makes it anew, whatever is on it."""
        path = operation.path
        before = identified(self.runner, path, self.root)
        finding = examine(self.runner, path, self.root, self.sleep)
        superblock = proc.read_superblock(self.root / path.lstrip("/"))
        if superblock is not None and superblock.name == step.item and not superblock.may_be_dirty:
            finding = replace(finding, cache_metadata=())
        if finding.reasons:
            raise Refused(f"{step.item}: {path} {' and '.join(finding.reasons)}, so that it is not given to the cache: {finding.advice(path)}.", item=step.item)
        with still_same(self.runner, path, step.item, self.root, before):
            self.runner.run(["eio_cli", "notify", "-a", "add", "-s", path, "-c", step.item], ok=None, timeout=PATIENCE, item=step.item)
        if getattr(self._config(step), "state", None) != "normal":
            raise NotEffective(
                f"{step.item}: the driver did not accept {path}, which must be as large as the device that was lost: check dmesg, or remove the cache"
                " with state: absent and create it again.",
                item=step.item,
            )

    @carry_out.register
    def _prove_clean(self, operation: ProveClean, step: Step) -> None:
        self._require_clean(step, operation.origin, left_writeback=True)

    @carry_out.register
    def _delete(self, operation: DeleteCache, step: Step) -> None:
        self._require_clean(step, operation.origin, left_writeback=True)
        self._run(step, ["eio_cli", "delete", "-c", step.item], lambda: self._cache(step) is None)
        self._forget_foreign_rule(step)
        if self._cache(step) is not None:
            raise NotEffective(f"{step.item}: eio_cli ended well and the cache is still there: check dmesg.", item=step.item)

    @carry_out.register
    def _wipe(self, operation: WipeSuperblock, step: Step) -> None:
        """Overwrite the superblock of a cache that does not run and in which nothing is dirty, and nothing else."""
        path = self.root / operation.path.lstrip("/")
        self._require_unused(step, operation.path)
        try:
            handle = os.open(path, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC)
        except OSError as error:
            raise CommandFailed(f"{step.item}: {operation.path} cannot be opened to wipe it: {error.strerror}.", item=step.item) from None
        try:
            # The driver wrote past the page cache.
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            superblock = output.parse_superblock(os.pread(handle, output.SUPERBLOCK_SIZE, output.SUPERBLOCK_OFFSET))
            if superblock is None:
                return
            if superblock.name != step.item or superblock.may_be_dirty:
                raise Refused(
                    f"{step.item}: {operation.path} holds the cache {superblock.name} in mode {superblock.mode} ({superblock.state}), which may have"
                    " blocks that its origin does not have: it is not wiped.",
                    item=step.item,
                )
            with releasing([operation.path], self.root):
                os.pwrite(handle, bytes(output.SUPERBLOCK_SIZE), output.SUPERBLOCK_OFFSET)
                os.fsync(handle)
        except OSError as error:
            raise CommandFailed(f"{step.item}: {operation.path} cannot be wiped: {error.strerror}.", item=step.item) from None
        finally:
            os.close(handle)

    def _require_unused(self, step: Step, path: str) -> None:
        real = os.path.realpath(self.root / path.lstrip("/"))
        for cache in proc.read_running(self.root):
            if os.path.realpath(self.root / cache.config.fast.lstrip("/")) == real:
                raise Refused(f"{step.item}: the cache {cache.name} runs on {path}, which is not wiped.", item=step.item)

    @carry_out.register
    def _write_boot_files(self, operation: WriteBootFiles, step: Step) -> None:
        """In an order in which a boot between two of them never shows an origin without its write-back cache."""
        unit, rule = operation.unit, operation.rule
        place, name = self.root / boot.RULE.format(name=step.item), boot.unit_name(step.item)
        if rule and not (self.root / boot_unit.FOLDER / name).exists():
            # Not enabled yet, but the rule will call it: a rule without it would hide the origin permanently.
            replace_file(self.root / boot_unit.FOLDER / name, unit)
        replace_file(place, rule)
        boot_unit.write_unit(self.runner, name, unit, self.root)
        self._forget_foreign_rule(step)

    def _forget_foreign_rule(self, step: Step) -> None:
        replace_file(self.root / boot.FOREIGN_RULE.format(name=step.item), "")

    # -- commands and what they left behind

    def _run(self, step: Step, command: t.Sequence[str], took_effect: t.Callable[[], bool]) -> None:
        """Run eio_cli; a command that failed is forgiven only if what it was to do is read back as done."""
        completed = self.runner.run(command, ok=None, timeout=PATIENCE, item=step.item)
        if not took_effect():
            raise CommandFailed(
                f"{step.item}: {completed.command_line} did not do it (exit status {completed.rc}): {completed.last_words}. Check dmesg.",
                item=step.item,
                completed=completed,
            )

    def _set(self, step: Step, key: str, value: int) -> None:
        completed = self.runner.run(["sysctl", "-w", boot.sysctl(step.item, key, value)], ok=None, item=step.item)
        # Of procps 3.3.17 only the message says that the kernel has refused it.
        if completed.rc or completed.stderr.strip():
            raise CommandFailed(
                f"{step.item}: {key} cannot be set to {value} ({completed.command_line}, exit status {completed.rc}): {completed.last_words}.",
                item=step.item,
                completed=completed,
            )

    def _cache(self, step: Step) -> proc.Cache | None:
        return proc.read_one(step.item, self.root)

    def _config(self, step: Step) -> output.Config | None:
        cache = self._cache(step)
        return cache.config if cache is not None else None

    def _require_cache(self, step: Step, origin: str) -> proc.Cache:
        cache = self._cache(step)
        if cache is None:
            raise NotEffective(f"{step.item}: the cache of {origin} does not run any more: check dmesg.", item=step.item)
        return cache

    def _require_clean(self, step: Step, origin: str, *, left_writeback: bool = False) -> None:
        """Nothing may be dirty and nothing may become so: the driver reports 0, and is configured to keep it so, or is in another mode."""
        cache = self._require_cache(step, origin)
        kept = cache.config.mode != "writeback" or (not left_writeback and bool(cache.stats["do_clean"] & output.CLEAN_KEEP))
        if cache.stats["nr_dirty"] or not kept or cache.config.state == "failed":
            found = f"mode {cache.config.mode}, state {cache.config.state}, {cache.stats['nr_dirty']} dirty blocks"
            raise NotEffective(
                f"{step.item}: it could not be verified that the cache of {origin} holds nothing that the origin does not have (found {found});"
                " the cache stays and nothing is lost: check dmesg and run again.",
                item=step.item,
            )


def _options(operation: CreateCache | EnableCache) -> list[str]:
    """The options of eio_cli that ``create`` and ``enable`` share."""
    return ["-d", operation.origin, "-s", operation.path, "-p", operation.policy, "-m", output.MODE_WORDS[operation.mode]]
