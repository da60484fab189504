# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer ``bcache``: made with make-bcache, everything else read from and written to sysfs.

Sources: Documentation/admin-guide/bcache.rst, bcache-tools, and what Linux 6.1 was seen to do. The kernel registers, attaches,
detaches and unregisters in its own time and reports failures to dmesg only, so every write is followed by reading back until the
effect is there. udev usually registers what make-bcache made, and not always: both try, and the second is refused, which
is harmless.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import facts as bcache_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import journal as bcache_journal
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import plan as bcache_plan
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import udev_rules as bcache_rules
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.facts import BLOCK, CLEAN, FOLDER, NO_CACHE
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.settings import chosen, parse_printed
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.spec import BcacheSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.steps import (
    Flush,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.sysfs import Sysfs
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.target import LAYER, BcacheState, with_backing_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.expected import AS_IT_IS, Expected
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.fast_device import HostDevices, read_host_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flush import INTERVAL, FlushWatch, write_out
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.mirror import CacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import read_origins, unresolved
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, DeviceMissing, NotEffective, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices, kernel_name, node_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.signatures import read_signatures

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

#: What makes the kernel write back as fast as it can.
_HASTE = {"writeback_delay": "0", "writeback_percent": "0", "writeback_running": "1"}
#: Seconds between two readings while the kernel detaches.
PAUSE = 0.5
#: Readings in a row, :data:`INTERVAL` apart, of the state clean with dirty blocks, until it is no coincidence.
_READINGS = 5
#: Seconds for what the kernel does in its own time: registering reads the whole index of a cache.
PATIENCE = 600.0


class BcacheLayer(CacheLayer[BcacheState, t.Sequence[BcacheSpec]]):
    """The bcaches of a host.

    :param sysfs: reads and writes /sys.
    """

    name = LAYER
    one_at_a_time = True

    def __init__(
        self,
        runner: Runner,
        spec: t.Sequence[BcacheSpec],
        root: Path = Path("/"),
        *,
        sysfs: Sysfs | None = None,
        clock: t.Callable[[], float] = time.monotonic,
        sleep: t.Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(runner, spec, root, clock=clock, sleep=sleep)
        self.sysfs = sysfs or Sysfs(root)

    # -- read and plan

    def read(self, expected: Expected = AS_IT_IS) -> BcacheState:
        """One ``udevadm`` and at most one ``dmsetup``; a device that is no part of a bcache yet costs a ``wipefs`` more."""
        if not self.spec:
            return BcacheState(HostDevices(Devices(())))
        devices = self.settled_devices(expected)
        registered = bcache_facts.read_registered(self.sysfs)
        self.spec = with_backing_devices(self.spec, registered, devices)
        in_use = {*registered.backings, *(name for cset in registered.sets.values() for name in cset.caches)}
        candidates = [path for spec in self.spec for path in (spec.origin, *spec.cache_devices)]
        ground = read_host_devices(self.runner, devices, candidates, in_use=in_use, root=self.root, sleep=self.sleep, expected=expected)
        carriers = [name for name, finding in ground.findings.items() if any(text.startswith("bcache") for text in finding.signatures)]
        return BcacheState(
            ground=ground,
            registered=registered,
            supers=self._read_superblocks(devices, registered, carriers),
            rules=bcache_rules.read_rules(self.root),
            journal=bcache_journal.read_journal(self.root),
            token=secrets.token_hex(8),
            found=read_origins(devices, unresolved(self.spec), self.root),
            unreadable={cset: reason for cset in registered.sets for reason in [self.sysfs.obstacle(bcache_facts.INDEX.format(cset=cset))] if reason},
        )

    def _read_superblocks(self, devices: Devices, registered: bcache_facts.Registered, carriers: t.Sequence[str]) -> dict[str, bcache_facts.BcacheSuperblock]:
        """Of devices that are not running, and of backing devices that wait for a set: sysfs does not show for which."""
        running = {name for cset in registered.sets.values() for name in cset.caches} | set(registered.backings)
        unknown = {device.name for device in devices if device.signature is not None and device.signature.type == "bcache" and not device.holders}
        waiting = {backing.name for backing in registered.backings.values() if backing.set is None and backing.state != NO_CACHE}
        supers = {}
        for name in sorted(((unknown | set(carriers)) - running) | waiting):
            found = bcache_facts.read_superblock(self.runner, node_of(name))
            if found is not None:
                supers[name] = found
        return supers

    def plan(self, state: BcacheState) -> list[Step]:
        return bcache_plan.plan(state, self.spec)

    def facts(self, state: BcacheState) -> dict[str, t.Any]:
        origins = set()
        for spec in self.spec:
            try:
                origins.add(state.ground.devices.resolve(spec.origin).name)
            except DeviceMissing:
                continue
        caches = bcache_facts.caches_of(state.registered, state.ground)
        return {"problems": bcache_plan.problems(state), "caches": [cache.to_dict() for cache in caches if cache.origin_name in origins]}

    # -- apply

    def start_backing(self, origin: str, step: Step) -> None:
        folder = self.backing(origin)
        self._register(step, self.kernel_name(origin), lambda: self.sysfs.exists(f"{folder}/cache_mode"))
        uuid = self.sysfs.read(f"{folder}/backing_dev_uuid") or ""
        if self.sysfs.read(f"{folder}/running") == "1":
            self._await_link(origin, uuid, step)

    def _await_link(self, origin: str, uuid: str, step: Step) -> None:
        link = self.root / "dev/bcache/by-uuid" / uuid
        self.wait_until(step, lambda: os.path.lexists(link), f"udev did not show {origin} as /dev/bcache/by-uuid/{uuid}", 30.0)

    def start_set(self, step: Step, device: str, cset: str) -> None:
        self._register(step, device, lambda: self.sysfs.exists(f"{FOLDER}/{cset}") and self.sysfs.exists(f"{BLOCK}/{device}/bcache/set"))

    def attach_to(self, origin: str, cset: str, step: Step) -> None:
        folder = self.backing(origin)
        was_running = self.sysfs.read(f"{folder}/running") == "1"
        if self.set_of(folder) != cset:
            # The kernel attaches by itself what waited for a set, and returns an error for a later request.
            self.write(step, f"{folder}/attach", cset, lambda: self.set_of(folder) == cset)
            self.wait_until(step, lambda: self.set_of(folder) == cset, f"the kernel did not attach {origin} to the cache set {cset}")
        uuid = self.uuid_of(origin, step)
        bcache_journal.note_between(uuid, None, self.root)
        try:
            self._await_link(origin, uuid, step)
        except NotEffective:
            if not was_running:
                raise
            # bcache-tools 1.0.8 knows the name only from the event with which a device starts to run, and loses it at the next one.
            self.warn(f"{step.item}: udev does not show {origin} as /dev/bcache/by-uuid/{uuid}: until it does, as after a reboot, use the name of the kernel.")

    def require_nothing_dirty(self, step: Step, cset: str) -> None:
        """No block of any backing device may be only there, also none of a backing device that is not on this host now.

        The kernel's list of what is cached shows it; the percentage in ``priority_stats`` is cut off and says 0 for some.
        """
        path = bcache_facts.INDEX.format(cset=cset)
        try:
            dirty = any(line.rstrip().endswith(" dirty") for line in self.sysfs.lines(path))
        except OSError as error:
            raise NotEffective(
                f"{step.item}: it could not be verified that the cache set {cset} holds nothing that is nowhere else, because /{path} cannot be read"
                f" ({os.strerror(error.errno or 0)}); it stays: mount debugfs and run again.",
                item=step.item,
            ) from None
        if dirty:
            raise Refused(
                f"{step.item}: the cache set {cset} holds data of a backing device that is not attached now, and that is nowhere else: connect that"
                " device, so that it can be flushed, and run again.",
                item=step.item,
            )

    def wipe_device(self, step: Step, path: str) -> None:
        for attempt in range(10):
            if attempt:
                self.sleep(PAUSE)
            # Opened exclusively: it fails while the kernel, which lets go in its own time, still holds the device.
            completed = self.runner.run(["wipefs", "--all", path], ok=None, item=step.item)
            if not read_signatures(self.runner, path):
                udev.refresh(self.runner, [path], step.item)
                return
        raise CommandFailed(
            f"{step.item}: {completed.command_line} did not wipe {path} (exit status {completed.rc}): {completed.last_words}",
            item=step.item,
            completed=completed,
        )

    def drain(self, operation: Flush, step: Step, folder: str) -> None:
        uuid = self.uuid_of(operation.origin, step)
        if uuid not in bcache_journal.read_journal(self.root).flushing:
            found = {key: self.sysfs.read(f"{folder}/{key}") for key in _HASTE}
            bcache_journal.note_flushing(uuid, {key: text for key, text in found.items() if text is not None}, self.root)

        def dirty() -> int | None:
            if self._is_clean(folder):
                return 0
            # A udev rule that sets the settings of a device again may come in between.
            self._hurry(step, folder)
            return max(parse_printed(self.sysfs.read(f"{folder}/dirty_data")) or 0, 1)

        watch = FlushWatch(str(step.item), operation.origin, dirty, unit="bytes", limit=operation.flush_timeout, clock=self.clock)
        try:
            idle = 0
            while watch() != 0:
                idle = idle + 1 if self._is_clean_with_dirty_blocks(folder) else 0
                if idle == _READINGS:
                    self._drain_by_detaching(operation, step, folder, watch)
                    return
                self.sleep(INTERVAL)
        except BaseException:
            with contextlib.suppress(StorageError):
                self.put_back(operation.origin, step)
            raise

    def _is_clean_with_dirty_blocks(self, folder: str) -> bool:
        """Whether the kernel has nothing to do although blocks are dirty, and none can become so."""
        mode = chosen(self.sysfs.read(f"{folder}/cache_mode"))
        return mode != "writeback" and self.sysfs.read(f"{folder}/state") == CLEAN and bool(parse_printed(self.sysfs.read(f"{folder}/dirty_data")))

    def _drain_by_detaching(self, operation: Flush, step: Step, folder: str, watch: FlushWatch) -> None:
        """Detach the cache, which writes back what is dirty, and attach it again, empty, unless the next step is to detach it."""
        cset = self.set_of(folder)
        self.write(step, f"{folder}/detach", "1", lambda: self.set_of(folder) is None)
        while self.set_of(folder) is not None:
            watch()
            self.sleep(PAUSE)
        # The sooner the less is only in the memory of a disk: what was written back is no longer read from the cache.
        write_out(self.runner, str(step.item), operation.origin)
        if cset is not None and not operation.leaving:
            self.attach_to(operation.origin, cset, step)

    def _hurry(self, step: Step, folder: str) -> None:
        for key, value in _HASTE.items():
            if self.sysfs.read(f"{folder}/{key}") not in (None, value):
                self.sysfs.write(f"{folder}/{key}", value, str(step.item))

    def put_back(self, origin: str, step: Step) -> None:
        """Restore the settings that a flush changed."""
        folder, uuid = self.backing(origin), self.uuid_of(origin, step)
        noted = bcache_journal.read_journal(self.root).flushing.get(uuid)
        if noted is None:
            return
        for key, value in noted.items():
            if key in _HASTE and value.isdigit() and self.sysfs.read(f"{folder}/{key}") not in (None, value):
                self.sysfs.write(f"{folder}/{key}", value, str(step.item))
        bcache_journal.note_flushing(uuid, None, self.root)

    def _is_clean(self, folder: str) -> bool:
        """The kernel's two figures: nothing was dirty at its last scan, and nothing became so since."""
        return self.sysfs.read(f"{folder}/state") in (CLEAN, NO_CACHE) and parse_printed(self.sysfs.read(f"{folder}/dirty_data")) == 0

    def require_clean(self, origin: str, step: Step, folder: str) -> None:
        """No block may be dirty and none may become so; required before anything is removed."""
        mode = chosen(self.sysfs.read(f"{folder}/cache_mode"))
        if mode in ("writethrough", "writearound", "none") and self._is_clean(folder):
            return
        state, dirty = self.sysfs.read(f"{folder}/state"), self.sysfs.read(f"{folder}/dirty_data")
        raise NotEffective(
            f"{step.item}: it could not be verified that the cache of {origin} holds nothing that the origin does not have (found mode {mode},"
            f" state {state}, {dirty} dirty); the cache stays attached and nothing is lost: check dmesg and run again.",
            item=step.item,
        )

    # -- what the operations share

    def run_make(self, step: Step, command: t.Sequence[str]) -> None:
        completed = self.runner.run(command, ok=None, item=step.item)
        # It can end with 0 and without a word when it wrote nothing, and with 1 after another process was faster.
        if bcache_facts.read_superblock(self.runner, command[-1]) is None:
            raise CommandFailed(
                f"{step.item}: {completed.command_line} left no superblock (exit status {completed.rc}): {completed.last_words}",
                item=step.item,
                completed=completed,
            )

    def _register(self, step: Step, device: str, registered: t.Callable[[], bool]) -> None:
        """Register a device with the kernel until it has it: udev usually does, and the second is refused."""
        if not self.sysfs.exists(FOLDER):
            self.runner.run(["modprobe", "bcache"], item=step.item)
        self.runner.run(["udevadm", "settle"], ok=None, item=step.item)
        waited = 0.0
        while not registered():
            if waited > 30.0:
                raise NotEffective(
                    f"{step.item}: the kernel does not accept {node_of(device)} as a part of a bcache: check dmesg for the reason. A bcache that the kernel"
                    " stopped after an error comes back when the host is restarted; a cache device whose content is damaged never is: if nothing on it is"
                    " needed, run wipefs -a on it.",
                    item=step.item,
                )
            try:
                self.sysfs.write(f"{FOLDER}/register", node_of(device), str(step.item))
            except StorageError:
                self.sleep(PAUSE)
                waited += PAUSE

    def write(self, step: Step, path: str, value: str, took_effect: t.Callable[[], bool]) -> None:
        """Write an attribute; who is refused is forgiven if the effect is there, and who is not must see it."""
        try:
            self.sysfs.write(path, value, str(step.item))
        except StorageError:
            if not took_effect():
                raise
            return
        if path.rsplit("/", 1)[-1] not in ("attach", "detach", "unregister") and not took_effect():
            raise NotEffective(
                f"{step.item}: the kernel accepted '{value}' for /{path} and reports '{self.sysfs.read(path)}': the device may not support it, or it is out of"
                " its bounds.",
                item=step.item,
            )

    def wait_until(self, step: Step, reached: t.Callable[[], bool], failure: str, patience: float = PATIENCE) -> None:
        waited = 0.0
        while not reached():
            if waited >= patience:
                raise NotEffective(f"{step.item}: {failure} within {patience:g} seconds: check dmesg and run again.", item=step.item)
            self.sleep(PAUSE)
            waited += PAUSE

    def kernel_name(self, path: str) -> str:
        return kernel_name(path, self.root)

    def backing(self, origin: str) -> str:
        """The directory of a backing device in sysfs."""
        return f"{BLOCK}/{self.kernel_name(origin)}/bcache"

    def uuid_of(self, origin: str, step: Step) -> str:
        uuid = self.sysfs.read(f"{self.backing(origin)}/backing_dev_uuid")
        if not uuid:
            raise NotEffective(f"{step.item}: {origin} is not registered as a backing device any more: check dmesg.", item=step.item)
        return uuid

    def set_of(self, folder: str) -> str | None:
        target = self.sysfs.target(f"{folder}/cache")
        return target.name if target is not None else None

    def caches_in(self, cset: str) -> list[str]:
        links = [
            self.sysfs.target(f"{FOLDER}/{cset}/{name}") for name in self.sysfs.names(f"{FOLDER}/{cset}") if name.startswith("cache") and name[5:].isdigit()
        ]
        return [place.parent.name for place in links if place is not None]
