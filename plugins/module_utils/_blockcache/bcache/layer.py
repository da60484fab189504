# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer ``bcache``: made with make-bcache, everything else read from and written to sysfs.

Sources: Documentation/admin-guide/bcache.rst, bcache-tools, and what Linux 6.1 was seen to do. The kernel registers, attaches,
detaches and unregisters in its own time and reports failures to dmesg only, so every write is followed by reading back until the
effect is there. udev usually registers what make-bcache made, and not always: both try, and the second is refused, which
is harmless.
"""

from __future__ import annotations

import functools
import os
import secrets
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import facts as bcache_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import journal as bcache_journal
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import plan as bcache_plan
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import udev_rules as bcache_rules
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.facts import BLOCK, FOLDER, NO_CACHE
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.flush import PAUSE, FlushOperations
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.journal import Between
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.settings import BACKING, CACHE, SET, chosen, has_value
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.spec import BcacheSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.steps import (
    Attach,
    Detach,
    EndFlush,
    Flush,
    MakeBacking,
    MakeSet,
    RegisterBacking,
    RegisterSet,
    SetLabel,
    SetMode,
    SetSetting,
    UnregisterSet,
    Wipe,
    WriteRules,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.sysfs import Sysfs
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.target import LAYER, BcacheState, with_backing_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import still_empty
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.fast_device import HostDevices, read_host_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.mirror import CreateMirror, MirrorOperations, ReleaseMirror, StartMirror
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import read_origins, unresolved
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.released import releasing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, DeviceMissing, NotEffective, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices, kernel_name, node_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.signatures import read_signatures

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

#: Seconds for what the kernel does in its own time: registering reads the whole index of a cache.
PATIENCE = 600.0


class BcacheLayer(MirrorOperations, FlushOperations, Layer[BcacheState, t.Sequence[BcacheSpec]]):
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

    def read(self) -> BcacheState:
        """One ``udevadm`` and at most one ``dmsetup``; a device that is no part of a bcache yet costs a ``wipefs`` more."""
        if not self.spec:
            return BcacheState(HostDevices(Devices(())))
        devices = self._settled_devices()
        registered = bcache_facts.read_registered(self.sysfs)
        self.spec = with_backing_devices(self.spec, registered, devices)
        in_use = {*registered.backings, *(name for cset in registered.sets.values() for name in cset.caches)}
        candidates = [path for spec in self.spec for path in (spec.origin, *spec.cache_devices)]
        ground = read_host_devices(self.runner, devices, candidates, in_use=in_use, root=self.root, sleep=self.sleep)
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
        """See :func:`bcache_plan.plan`."""
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

    @functools.singledispatchmethod
    def carry_out(self, operation: Operation, _step: Step) -> None:
        """Carry one operation out.

        :raises CommandFailed: if a command failed and its effect is not there.
        :raises NotEffective: if the kernel does not do what was written, or what must be proven before a step is not.
        :raises Refused: if a device is no longer what it was when the step was planned.
        """
        raise TypeError(operation)

    carry_out.register(CreateMirror, MirrorOperations._create_mirror)
    carry_out.register(StartMirror, MirrorOperations._start_mirror)
    carry_out.register(ReleaseMirror, MirrorOperations._release_mirror)
    carry_out.register(Flush, FlushOperations._flush)
    carry_out.register(EndFlush, FlushOperations._end_flush)

    @carry_out.register
    def _make_backing(self, operation: MakeBacking, step: Step) -> None:
        path = operation.origin
        with still_empty(self.runner, path, step.item, self.root, self.sleep, "overwrite it"):
            self._make(step, ["make-bcache", "--bdev", "--block", str(operation.block_size), path])
        self._start_backing(path, step)

    @carry_out.register
    def _register_backing(self, operation: RegisterBacking, step: Step) -> None:
        self._start_backing(operation.origin, step)

    def _start_backing(self, origin: str, step: Step) -> None:
        folder = self._backing(origin)
        self._register(step, self._kernel_name(origin), lambda: self.sysfs.exists(f"{folder}/cache_mode"))
        uuid = self.sysfs.read(f"{folder}/backing_dev_uuid") or ""
        if self.sysfs.read(f"{folder}/running") == "1":
            self._await_link(origin, uuid, step)

    def _await_link(self, origin: str, uuid: str, step: Step) -> None:
        link = self.root / "dev/bcache/by-uuid" / uuid
        self._await(step, lambda: os.path.lexists(link), f"udev did not show {origin} as /dev/bcache/by-uuid/{uuid}", 30.0)

    @carry_out.register
    def _make_set(self, operation: MakeSet, step: Step) -> None:
        path, cset = operation.path, operation.set
        sizes = ["--bucket", str(operation.bucket_size), "--block", str(operation.block_size)]
        with still_empty(self.runner, path, step.item, self.root, self.sleep, "overwrite it"):
            bcache_journal.note_between(self._uuid(operation.origin, step), Between(cset), self.root)
            self._make(step, ["make-bcache", "--cache", *sizes, "--cset-uuid", cset, path])
        self._start_set(step, self._kernel_name(path), cset)

    @carry_out.register
    def _register_set(self, operation: RegisterSet, step: Step) -> None:
        self._start_set(step, operation.device, operation.set)

    def _start_set(self, step: Step, device: str, cset: str) -> None:
        self._register(step, device, lambda: self.sysfs.exists(f"{FOLDER}/{cset}") and self.sysfs.exists(f"{BLOCK}/{device}/bcache/set"))

    @carry_out.register
    def _attach(self, operation: Attach, step: Step) -> None:
        self._attach_to(operation.origin, operation.set, step)

    def _attach_to(self, origin: str, cset: str, step: Step) -> None:
        folder = self._backing(origin)
        was_running = self.sysfs.read(f"{folder}/running") == "1"
        if self._set_of(folder) != cset:
            # The kernel attaches by itself what waited for a set, and returns an error for a later request.
            self._write(step, f"{folder}/attach", cset, lambda: self._set_of(folder) == cset)
            self._await(step, lambda: self._set_of(folder) == cset, f"the kernel did not attach {origin} to the cache set {cset}")
        uuid = self._uuid(origin, step)
        bcache_journal.note_between(uuid, None, self.root)
        try:
            self._await_link(origin, uuid, step)
        except NotEffective:
            if not was_running:
                raise
            # bcache-tools 1.0.8 knows the name only from the event with which a device starts to run, and loses it at the next one.
            self.warn(f"{step.item}: udev does not show {origin} as /dev/bcache/by-uuid/{uuid}: until it does, as after a reboot, use the name of the kernel.")

    @carry_out.register
    def _detach(self, operation: Detach, step: Step) -> None:
        origin, cset = operation.origin, operation.set
        folder = self._backing(origin)
        if self._set_of(folder) == cset:
            self._require_clean(origin, step, folder)
            bcache_journal.note_between(self._uuid(origin, step), Between(cset, detaching=True), self.root)
            self._write(step, f"{folder}/detach", "1", lambda: self._set_of(folder) is None)
            self._await(step, lambda: self._set_of(folder) is None, f"the kernel did not detach the cache of {origin}")
        state = self.sysfs.read(f"{folder}/state")
        if state != NO_CACHE:
            raise NotEffective(f"{step.item}: {origin} was detached from its cache and is in the state '{state}': check dmesg.", item=step.item)
        bcache_journal.note_between(self._uuid(origin, step), Between(cset), self.root)

    @carry_out.register
    def _set_mode(self, operation: SetMode, step: Step) -> None:
        folder, mode = self._backing(operation.origin), operation.mode
        self._write(step, f"{folder}/cache_mode", mode, lambda: chosen(self.sysfs.read(f"{folder}/cache_mode")) == mode)

    @carry_out.register
    def _set_label(self, operation: SetLabel, step: Step) -> None:
        folder, label = self._backing(operation.origin), operation.label
        self._write(step, f"{folder}/label", label, lambda: self.sysfs.read(f"{folder}/label") == label)

    @carry_out.register
    def _set_setting(self, operation: SetSetting, step: Step) -> None:
        key, value, cset = operation.key, operation.value, operation.set
        folders = {BACKING: [self._backing(operation.origin)], SET: [f"{FOLDER}/{cset}"], CACHE: [f"{BLOCK}/{name}/bcache" for name in self._caches(cset)]}
        for folder in folders[operation.place]:
            if not self.sysfs.exists(f"{folder}/{key}"):
                raise Refused(f"{step.item}: the kernel of this host has no bcache setting {key}: remove it for this host.", item=step.item)
            self._write(step, f"{folder}/{key}", str(value), lambda folder=folder: has_value(key, self.sysfs.read(f"{folder}/{key}"), value))

    @carry_out.register
    def _write_rules(self, operation: WriteRules, step: Step) -> None:
        rules = {uuid: dict(kept) for uuid, kept in bcache_rules.read_rules(self.root).items()}
        uuid, settings = self._uuid(operation.origin, step), operation.settings
        rules[uuid] = bcache_rules.kept(settings, BACKING, rules.get(uuid, {})) if settings is not None else {}
        for name in self._caches(operation.set) if settings is not None and operation.set is not None else ():
            found = bcache_facts.read_superblock(self.runner, node_of(name))
            if found is not None:
                rules[found.uuid] = bcache_rules.kept(settings, SET, rules.get(found.uuid, {}))
        bcache_rules.write_rules(rules, self.root)

    @carry_out.register
    def _unregister_set(self, operation: UnregisterSet, step: Step) -> None:
        cset, device = operation.set, operation.device
        folder = f"{FOLDER}/{cset}"
        if not self.sysfs.exists(folder):
            return
        users = [name for name in self.sysfs.names(folder) if name.startswith("bdev")]
        if users:
            raise NotEffective(f"{step.item}: the cache set {cset} is in use again ({', '.join(users)}), so that it stays.", item=step.item)
        self._require_nothing_dirty(step, cset)
        self._write(step, f"{folder}/unregister", "1", lambda: not self.sysfs.exists(folder))
        gone = f"the kernel did not stop the cache set {cset}"
        self._await(step, lambda: not self.sysfs.exists(folder) and not self.sysfs.exists(f"{BLOCK}/{device}/bcache"), gone)

    def _require_nothing_dirty(self, step: Step, cset: str) -> None:
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

    @carry_out.register
    def _wipe(self, operation: Wipe, step: Step) -> None:
        path, cset = operation.path, operation.set
        # Of the path that is made empty: kernel names and links can mean another device by now.
        found = bcache_facts.read_superblock(self.runner, path)
        if found is not None:
            if not found.cache or found.set != cset:
                raise Refused(f"{step.item}: {path} does not carry the cache set {cset} any more, so it is not wiped.", item=step.item)
            # While its UUID can still be read.
            rules = bcache_rules.read_rules(self.root)
            bcache_rules.write_rules({uuid: kept for uuid, kept in rules.items() if uuid != found.uuid}, self.root)
            with releasing([path], self.root):
                self._wiped(step, path)
        bcache_journal.forget_set(cset, self.root)
        self.runner.run(["udevadm", "settle"], ok=None, item=step.item)

    def _wiped(self, step: Step, path: str) -> None:
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

    # -- what the operations share

    def _make(self, step: Step, command: t.Sequence[str]) -> None:
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

    def _write(self, step: Step, path: str, value: str, took_effect: t.Callable[[], bool]) -> None:
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

    def _await(self, step: Step, reached: t.Callable[[], bool], failure: str, patience: float = PATIENCE) -> None:
        waited = 0.0
        while not reached():
            if waited >= patience:
                raise NotEffective(f"{step.item}: {failure} within {patience:g} seconds: check dmesg and run again.", item=step.item)
            self.sleep(PAUSE)
            waited += PAUSE

    def _kernel_name(self, path: str) -> str:
        return kernel_name(path, self.root)

    def _backing(self, origin: str) -> str:
        """The directory of a backing device in sysfs."""
        return f"{BLOCK}/{self._kernel_name(origin)}/bcache"

    def _uuid(self, origin: str, step: Step) -> str:
        uuid = self.sysfs.read(f"{self._backing(origin)}/backing_dev_uuid")
        if not uuid:
            raise NotEffective(f"{step.item}: {origin} is not registered as a backing device any more: check dmesg.", item=step.item)
        return uuid

    def _set_of(self, folder: str) -> str | None:
        target = self.sysfs.target(f"{folder}/cache")
        return target.name if target is not None else None

    def _caches(self, cset: str) -> list[str]:
        links = [
            self.sysfs.target(f"{FOLDER}/{cset}/{name}") for name in self.sysfs.names(f"{FOLDER}/{cset}") if name.startswith("cache") and name[5:].isdigit()
        ]
        return [place.parent.name for place in links if place is not None]
