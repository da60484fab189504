# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer ``flashcache``: made and loaded with the tools of flashcache, read and removed with dmsetup, tuned below /proc/sys.

Sources: doc/flashcache-sa-guide.txt and the sources of github.com/facebookarchive/flashcache. No exit status and no message
is a proof: the tools read the SSD through the page cache and report what was there before. What runs is what dmsetup
shows, and what is clean is what the superblock contains after the device has gone.
"""

from __future__ import annotations

import dataclasses
import os
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import boot_unit, starters
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.expected import AS_IT_IS, Expected
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.fast_device import HostDevices, read_host_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import diff as flashcache_diff
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import facts as flashcache_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import host as flashcache_host
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import plan as flashcache_plan
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import remains as flashcache_remains
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.host import FlashcacheState, Running
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.operations import (
    PATIENCE,
    failed_command,
    unit_of,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.output import parse_tables
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.plan import LAYER
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.remains import Remains
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.spec import FlashcacheSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.unit import Places, ssd_of
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flush import INTERVAL, STANDSTILL
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.mirror import CacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import read_origins, unresolved
from ansible_collections.cachefleet.storage.plugins.module_utils._core import kernel_modules
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotEffective, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices, node_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import DeviceUse
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.output import FlashcacheSuperblock
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

TOOLS = ("flashcache_create", "flashcache_load", "flashcache_destroy", "flashcache_setioctl", "dmsetup", "modprobe", "blockdev")

Volatile = t.Callable[[str, t.Mapping[str, str]], t.Sequence[str]]


class FlashcacheLayer(CacheLayer[FlashcacheState, t.Sequence[FlashcacheSpec]]):
    """Caches of flashcache.

    :param volatile_below: what below a path keeps writes in volatile memory, each as a clause; it is given what is planned for drives.
    :param kernel_module: the name of the kernel module; ``release`` is that of the kernel, by default of the one that runs.
    """

    name = LAYER
    one_at_a_time = True

    def __init__(
        self,
        runner: Runner,
        spec: t.Sequence[FlashcacheSpec],
        root: Path = Path("/"),
        *,
        volatile_below: Volatile,
        kernel_module: str = "flashcache",
        release: str = "",
        clock: t.Callable[[], float] = time.monotonic,
        sleep: t.Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(runner, spec, root, clock=clock, sleep=sleep)
        self.volatile_below = volatile_below
        self.kernel_module = kernel_module
        self.release = release or os.uname().release
        #: What the caches that this run has removed left on their SSDs, also on one without a path that could be noted.
        self.left: dict[str, str] = {}

    # -- read and plan

    def read(self, expected: Expected = AS_IT_IS) -> FlashcacheState:
        """The block devices, two dmsetup for all caches, one systemctl, and one wipefs for each device that no cache lies on yet."""
        if not self.spec:
            return FlashcacheState(HostDevices(Devices(())), {}, {}, {}, Places({}, self.kernel_module))
        # One that was written and not enabled is none where one should be, and one where none should be.
        units = {item.name: (boot_unit.read_unit if item.present else boot_unit.stored_unit)(unit_of(item.name), self.root) for item in self.spec}
        remains = {item.name: flashcache_remains.read_remains(item.name, self.root) for item in self.spec}
        emptied = {item: left.device for item, left in remains.items()}
        paths = [path for item in self.spec for path in (*item.cache_devices, ssd_of(units[item.name]), emptied[item.name]) if path]
        devices, running, removing = self._read_settled(paths, expected)
        self.spec = [flashcache_host.with_own_origin(item, running, devices) for item in self.spec]
        used = {cache.ssd_name for cache in running.values() if cache.ssd_name}
        ground = read_host_devices(self.runner, devices, paths, in_use=used | removing, root=self.root, sleep=self.sleep, expected=expected)
        tools = {name: self.runner.find(name) for name in TOOLS if self.runner.has(name)}
        stored = {name: flashcache_host.read_superblock(self.root, node_of(name)) for name in ground.findings if name not in expected.emptied}
        return FlashcacheState(
            ground=ground,
            running=running,
            stored={name: found for name, found in stored.items() if found is not None},
            volatile={
                path: tuple(self.volatile_below(path, expected.drives)) for item in self.spec for path in (*item.cache_devices, item.origin) if item.present
            },
            places=Places(tools, self.kernel_module),
            removing=frozenset(removing),
            memory=flashcache_host.read_memory(self.root),
            release=self.release,
            module=bool(running)
            or not (any(stored.values()) or any(item.state != "absent" for item in self.spec))
            or kernel_modules.is_available(self.runner, self.kernel_module, self.root),
            units=units,
            started=self._started([item for item, text in units.items() if text]),
            emptied={item: path for item, path in emptied.items() if path},
            altered=frozenset(item for item, left in remains.items() if left.device and item not in running and not self._is_as_left(left)),
            found=read_origins(devices, unresolved(self.spec), self.root),
            starters=starters.read_starters(self.runner, devices, self.spec, self.root, running=running),
        )

    def plan(self, state: FlashcacheState) -> list[Step]:
        return flashcache_plan.plan(state, self.spec)

    def check_settled(self, state: FlashcacheState) -> None:
        """Drives whose volatile cache was turned on, and what a boot starts from an origin."""
        for warning in self._warnings(state):
            self.warn(warning)

    def check_planned(self, state: FlashcacheState) -> None:
        """What a boot starts from an origin."""
        for warning in starters.sentences(state.starters):
            self.warn(warning)

    def facts(self, state: FlashcacheState) -> dict[str, t.Any]:
        caches = [state.running[item.name] for item in self.spec if item.name in state.running]
        of_host = self._warnings(state)
        # What was found while a cache was removed is in no state that is read afterwards.
        of_run = [text for text in self.warned if text not in of_host]
        of_caches = [text for cache in caches for text in flashcache_facts.warnings_of(cache, state.ground)]
        return {
            "problems": [*of_run, *of_host, *of_caches],
            "caches": [flashcache_facts.state_of(cache, state.ground).to_dict() for cache in caches],
        }

    def _warnings(self, state: FlashcacheState) -> list[str]:
        return [*self._exposed(state), *starters.sentences(state.starters)]

    def _exposed(self, state: FlashcacheState) -> list[str]:
        """Caches that run over a drive whose volatile cache was turned on since."""
        sentences = []
        for item in self.spec:
            clauses = flashcache_diff.volatile_under(state, item) if item.name in state.running and not item.allow_ignored_flushes else []
            if clauses:
                sentences.append(
                    f"{item.name}: a power failure would lose acknowledged writes, because flashcache passes no flush down and {' and '.join(clauses)}:"
                    " turn that cache off (drive_write_cache)."
                )
        return sentences

    def _read_settled(self, paths: t.Sequence[str], expected: Expected) -> tuple[Devices, dict[str, Running], set[str]]:
        """The devices, once no removal is under way: ``dmsetup remove`` of a run that was killed goes on in the kernel, out of sight."""
        waited = 0.0
        while True:
            devices = self.settled_devices(expected)
            running = expected.rest(LAYER, flashcache_host.read_running(devices, self.runner, self.root))
            names = {name for name in (flashcache_host.name_behind(devices, path) for path in paths) if name}
            removing = {name for name in names if _is_unused(devices, name)}
            if not removing or waited >= STANDSTILL:
                return devices, running, removing
            self.sleep(INTERVAL)
            waited += INTERVAL

    def _started(self, items: t.Sequence[str]) -> frozenset[str]:
        if not items:
            return frozenset()
        shown = self.runner.run(["systemctl", "show", "--property=Id,ActiveState", *map(unit_of, items)], ok=None).stdout
        blocks = [dict(line.partition("=")[::2] for line in block.splitlines()) for block in shown.split("\n\n")]
        active = {block.get("Id") for block in blocks if block.get("ActiveState") == "active"}
        return frozenset(item for item in items if unit_of(item) in active)

    # -- apply

    # -- parts of operations

    def load_module(self, step: Step) -> None:
        if not kernel_modules.is_loaded(self.kernel_module, self.root):
            self.runner.run(["modprobe", self.kernel_module], item=step.item)

    def forget_pages(self, step: Step, ssd: str) -> None:
        """The tools read the superblock from the page cache, where it may still be as it was before the cache ran."""
        self.runner.run(["blockdev", "--flushbufs", ssd], item=step.item)

    def run_until_there(self, step: Step, command: t.Sequence[str]) -> None:
        """No input is given: a question that was not foreseen gets no answer, and the tool gives up."""
        completed = self.runner.run(command, ok=None, timeout=PATIENCE, item=step.item)
        if not self.table_there(step.item):
            raise failed_command(step, completed)
        self.runner.run(["udevadm", "settle"], ok=None, item=step.item)

    def table_there(self, name: str) -> bool:
        return self.runner.run(["dmsetup", "table", name], ok=None).rc == 0

    def folder(self, step: Step) -> str:
        running = parse_tables(self.runner.run(["dmsetup", "table", step.item], item=step.item).stdout).get("")
        if running is None:
            raise NotEffective(f"{step.item}: /dev/mapper/{step.item} is no longer a flashcache device: run again.", item=step.item)
        return running.folder

    def write(self, step: Step, folder: str, key: str, value: int) -> None:
        try:
            flashcache_host.write_sysctl(self.root, folder, key, value)
        except OSError as error:
            raise CommandFailed(f"{step.item}: {key} of {folder} cannot be set to {value}: {error.strerror}.", item=step.item) from None

    def empty_whitelist(self, step: Step, folder: str) -> None:
        if not flashcache_host.read_whitelist(self.root, folder):
            return
        self.runner.run(["flashcache_setioctl", "-c", "-w", "0", f"/dev/mapper/{step.item}"], ok=None, item=step.item)
        left = flashcache_host.read_whitelist(self.root, folder)
        if left:
            raise NotEffective(
                f"{step.item}: the processes {', '.join(map(str, left))} are on the whitelist of the cache and still write to it: end them, and run again.",
                item=step.item,
            )

    def require_flushed(self, step: Step, folder: str) -> None:
        """The kernel's own figure, in a state in which nothing can become dirty."""
        dirty = flashcache_host.read_dirty(self.runner, step.item)
        cache_all = flashcache_host.read_sysctls(self.root, folder).get("cache_all")
        if dirty != 0 or cache_all != 0 or flashcache_host.read_whitelist(self.root, folder):
            raise NotEffective(
                f"{step.item}: it could not be verified that the origin has everything that the cache holds (dirty blocks {dirty}, cache_all {cache_all});"
                " it stays and nothing is lost: check dmesg and run again.",
                item=step.item,
            )

    def note_errors(self, step: Step, folder: str) -> None:
        """Nothing shows them once the cache has gone."""
        errors = {key: count for key, count in flashcache_host.read_errors(self.root, folder).items() if count}
        if errors:
            counted = ", ".join(f"{key} {count}" for key, count in sorted(errors.items()))
            self.warn(f"{step.item}: the cache had counted errors before it was removed ({counted}): check dmesg and the health of its devices.")

    def note_remains(self, step: Step, lasting: str, digest: str) -> None:
        self.left[step.item] = digest
        flashcache_remains.note_remains(step.item, Remains(lasting, digest), self.root)

    def _is_as_left(self, remains: Remains) -> bool:
        return bool(remains.digest) and flashcache_remains.digest_of(remains.device, self.root) == remains.digest

    def require_as_left(self, step: Step, ssd: str, stored: FlashcacheSuperblock | None, finding: DeviceUse) -> None:
        """A run that was killed may have been followed by another use of the SSD."""
        digest = self.left.get(step.item) or flashcache_remains.read_remains(step.item, self.root).digest
        if self._is_as_left(Remains(ssd, digest)):
            return
        ours = stored is not None and flashcache_diff.is_named(stored, step.item)
        reasons = (dataclasses.replace(finding, cache_metadata=()) if ours else finding).reasons
        if reasons:
            raise Refused(flashcache_remains.altered_sentence(step.item, ssd, reasons, self.root), item=step.item)


def _is_unused(devices: Devices, name: str) -> bool:
    """Whether a device is held by a mapping that has no name any more, as during its removal."""
    device = devices.get(name)
    holders = [devices.get(holder) for holder in device.holders] if device is not None else []
    return any(holder is None or (holder.name.startswith("dm-") and not holder.dm_name) for holder in holders)
