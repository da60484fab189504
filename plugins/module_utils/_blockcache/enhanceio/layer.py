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
import os
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import boot_unit, fast_device, starters
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import boot, output
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import facts as proc
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import plan as enhanceio_plan
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.boot import LAYER, AtBoot
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.operations import (
    PATIENCE,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.spec import EnhanceIOSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.state import EnhanceIOState, half_flushed, problems
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.expected import AS_IT_IS, Expected
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.mirror import CacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import read_origins, unresolved
from ansible_collections.cachefleet.storage.plugins.module_utils._core import kernel_modules
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, DeviceMissing, NotEffective, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file, replace_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices, node_of

#: Seconds in which another command should have done with a cache.
_CHANGING = 60


class EnhanceIOLayer(CacheLayer[EnhanceIOState, t.Sequence[EnhanceIOSpec]]):
    """EnhanceIO caches.

    :param kernel_module: the name of the kernel module.
    :param volatile_below: what may lose acknowledged writes in a power cut at or below the device of a path, sentences; it is given what is planned
        for drives.
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
        volatile_below: t.Callable[[str, t.Mapping[str, str]], t.Sequence[str]] = lambda path, drives: (),  # noqa: ARG005
        clock: t.Callable[[], float] = time.monotonic,
        sleep: t.Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(runner, spec, root, clock=clock, sleep=sleep)
        self.kernel_module = kernel_module
        self.volatile_below = volatile_below

    # -- read and plan

    def read(self, expected: Expected = AS_IT_IS) -> EnhanceIOState:
        """The block devices and files of /proc, whatever the number of caches.

        Only a cache device that no cache lies on costs a wipefs more, and is opened.
        """
        if not self.spec:
            return EnhanceIOState({}, Devices(()), fast_device.HostDevices(Devices(())))
        caches = expected.rest(LAYER, self._settled())
        devices = self.settled_devices(expected)
        at_boot = {item.name: self._read_boot(item.name) for item in self.spec}
        fast = [proc.find(devices, cache.config.fast) for cache in caches.values()]
        in_use = {device.name for device in fast if device is not None}
        candidates = [path for item in self.spec for path in item.cache_devices]
        ground = fast_device.read_host_devices(self.runner, devices, candidates, in_use=in_use, root=self.root, sleep=self.sleep, expected=expected)
        looked_at = [*candidates, *(files.fast for files in at_boot.values() if files.fast)]
        return EnhanceIOState(
            caches=caches,
            devices=devices,
            ground=ground,
            superblocks=self._read_superblocks(devices, looked_at, in_use | expected.emptied, ground),
            boot=at_boot,
            tools=self._find_tools(),
            module=self.kernel_module,
            module_there=self._module_there(set(at_boot) - set(caches)),
            kernel=read_file(self.root / "proc/sys/kernel/osrelease").strip(),
            volatile=self._read_volatile(caches, expected.drives),
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

    def _read_volatile(self, caches: t.Mapping[str, proc.Cache], drives: t.Mapping[str, str]) -> dict[str, t.Sequence[str]]:
        """Only for caches that are to enter write-back: it requires a query of every drive."""
        modes = {name: cache.config.mode for name, cache in caches.items()}
        entering = [item for item in self.spec if item.present and item.mode in proc.SWALLOWS and modes.get(item.name) != item.mode]
        requested = [item for item in entering if not item.allow_ignored_flushes]
        paths = dict.fromkeys(path for item in requested for path in (item.origin, *item.cache_devices))
        found: dict[str, t.Sequence[str]] = {}
        for path in paths:
            # The plan reports which device is missing.
            with contextlib.suppress(DeviceMissing):
                found[path] = self.volatile_below(path, drives)
        return found

    # -- apply

    def load_module(self, step: Step) -> None:
        if not (self.root / proc.PROC).is_dir():
            self.runner.run(["modprobe", self.kernel_module], item=step.item)

    def keep_cleaning(self, step: Step, origin: str) -> None:
        """Begin the cleaning, and begin it again if it went through and left something."""
        cache = self.require_cache(step, origin)
        if cache.config.state != "normal":
            raise NotEffective(f"{step.item}: the cache became {cache.config.state} while it was flushed: check dmesg; nothing was removed.", item=step.item)
        cleaning = cache.stats["do_clean"]
        if cache.config.mode == "writeback" and (not cleaning & output.CLEAN_KEEP or (cache.stats["nr_dirty"] and not cleaning & output.CLEAN_START)):
            self.set_sysctl(step, "do_clean", output.CLEAN_START | output.CLEAN_KEEP)

    def require_unused(self, step: Step, path: str) -> None:
        real = os.path.realpath(self.root / path.lstrip("/"))
        for cache in proc.read_running(self.root):
            if os.path.realpath(self.root / cache.config.fast.lstrip("/")) == real:
                raise Refused(f"{step.item}: the cache {cache.name} runs on {path}, which is not wiped.", item=step.item)

    def forget_foreign_rule(self, step: Step) -> None:
        replace_file(self.root / boot.FOREIGN_RULE.format(name=step.item), "")

    # -- commands and what they left behind

    def run_tool(self, step: Step, command: t.Sequence[str], took_effect: t.Callable[[], bool]) -> None:
        """Run eio_cli; a command that failed is forgiven only if what it was to do is read back as done."""
        completed = self.runner.run(command, ok=None, timeout=PATIENCE, item=step.item)
        if not took_effect():
            raise CommandFailed(
                f"{step.item}: {completed.command_line} did not do it (exit status {completed.rc}): {completed.last_words}. Check dmesg.",
                item=step.item,
                completed=completed,
            )

    def set_sysctl(self, step: Step, key: str, value: int) -> None:
        completed = self.runner.run(["sysctl", "-w", boot.sysctl(step.item, key, value)], ok=None, item=step.item)
        # Of procps 3.3.17 only the message says that the kernel has refused it.
        if completed.rc or completed.stderr.strip():
            raise CommandFailed(
                f"{step.item}: {key} cannot be set to {value} ({completed.command_line}, exit status {completed.rc}): {completed.last_words}.",
                item=step.item,
                completed=completed,
            )

    def cache_of(self, step: Step) -> proc.Cache | None:
        return proc.read_one(step.item, self.root)

    def config_of(self, step: Step) -> output.Config | None:
        cache = self.cache_of(step)
        return cache.config if cache is not None else None

    def require_cache(self, step: Step, origin: str) -> proc.Cache:
        cache = self.cache_of(step)
        if cache is None:
            raise NotEffective(f"{step.item}: the cache of {origin} does not run any more: check dmesg.", item=step.item)
        return cache

    def require_clean(self, step: Step, origin: str, *, left_writeback: bool = False) -> None:
        """Nothing may be dirty and nothing may become so: the driver reports 0, and is configured to keep it so, or is in another mode."""
        cache = self.require_cache(step, origin)
        kept = cache.config.mode != "writeback" or (not left_writeback and bool(cache.stats["do_clean"] & output.CLEAN_KEEP))
        if cache.stats["nr_dirty"] or not kept or cache.config.state == "failed":
            found = f"mode {cache.config.mode}, state {cache.config.state}, {cache.stats['nr_dirty']} dirty blocks"
            raise NotEffective(
                f"{step.item}: it could not be verified that the cache of {origin} holds nothing that the origin does not have (found {found});"
                " the cache stays and nothing is lost: check dmesg and run again.",
                item=step.item,
            )
