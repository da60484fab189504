# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer ``dm_cache``: caches of device-mapper without LVM, made with dmsetup and brought up at boot by systemd.

Sources: dmsetup(8), Documentation/admin-guide/device-mapper/{cache,writecache}.rst. A table is exchanged by ``dmsetup reload`` and
one ``dmsetup resume``, which suspends, exchanges and goes on in one call of the kernel: there is no moment between two commands
in which what is mounted stands still, whenever this is killed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import cache_device, dm, starters
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.boot_unit import mark_started, start_again, unit_name
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import facts as dm_cache_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import plan as dm_cache_plan
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import record as dm_cache_record
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import table as tables
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.facts import Kernel
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.operations import (
    ClearDevice,
    EnterPassthrough,
    FlushCache,
    LoadTable,
    PrepareDevice,
    ProveClean,
    RemoveMapping,
    ResumeMapping,
    StartUnit,
    WriteUnit,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.record import LAYER, Tools
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.spec import DmCacheSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.state import (
    OUR_METADATA,
    DmCacheState,
    OriginContent,
    counted_dirty,
    problems,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.table import CacheTable
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_settings import WRITECACHE
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.fast_device import HostDevices, read_host_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flush import FlushWatch, write_out
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.mirror import CreateMirror, MirrorOperations, ReleaseMirror, StartMirror
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import read_origins, unresolved
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.released import releasing
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.settings import require_order
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Difference, Layer, Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, DeviceMissing, NotEffective, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file, replace_file, require_room
from ansible_collections.cachefleet.storage.plugins.module_utils._core.shared_reading import expected_leaving
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.neighbourhood import Neighbourhood
from ansible_collections.cachefleet.storage.plugins.module_utils._device.signatures import read_cache_metadata
from ansible_collections.cachefleet.storage.plugins.module_utils._device.table_exchange import Exchange, holding

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.facts import Mapping
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed

#: Loading a large cache after a crash reads all of its metadata, on a device that may be slow.
PATIENCE = 24 * 3600.0

#: Before 10-dm.rules and 55-dm.rules, which hand the flags on: a piece of the origin in the cache must not pass for the origin.
RULE_FILE = "etc/udev/rules.d/09-cachefleet-dm-cache.rules"
RULE = (
    "# Written by cachefleet.storage.dm_cache: no search for file systems in the parts of a cache.\n"
    'SUBSYSTEM=="block", ACTION=="add|change", ATTR{dm/uuid}=="CACHEFLEET-META-?*|CACHEFLEET-DATA-?*",'
    ' ENV{DM_UDEV_DISABLE_DISK_RULES_FLAG}="1", ENV{DM_UDEV_DISABLE_OTHER_RULES_FLAG}="1"\n'
)

#: What is overwritten of a cache device: all of the superblock of dm-cache, and the first sector of dm-writecache.
_HEAD = 4096


class DmCacheLayer(MirrorOperations, Layer[DmCacheState, t.Sequence[DmCacheSpec]]):
    """Caches of block devices."""

    name = LAYER
    one_at_a_time = True

    @functools.cached_property
    def _removed(self) -> set[str]:
        """The mappings that this run has removed, by item."""
        return set()

    # -- read and plan

    def read(self) -> DmCacheState:
        """Three dmsetup and a scan of the block devices, whatever the number of caches; a device without a cache costs a wipefs more."""
        if not self.spec:
            return DmCacheState(Kernel(), Devices(()), HostDevices(Devices(())), Tools("dmsetup"))
        devices = self._settled_devices()
        leaving = expected_leaving(self.runner)
        kernel = dm_cache_facts.read_kernel(self.runner, self.root)
        kernel = dataclasses.replace(kernel, mappings=leaving.rest("flashcache", leaving.rest(LAYER, kernel.mappings)))
        records, units = (leaving.rest(LAYER, found) for found in dm_cache_record.read_records(self.root))
        self.spec = [dm_cache_facts.with_own_origin(cache, kernel, devices) for cache in self.spec]
        in_use = set()
        for mapping in kernel.mappings.values():
            found = dm_cache_facts.attached_of(mapping, kernel, devices) if tables.parse_uuid(mapping.uuid) == ("top", mapping.name) else None
            in_use |= {found.cache_name} if found is not None and found.cache_name is not None else set()
        candidates = [path for cache in self.spec if cache.present for path in cache.cache_devices]
        return DmCacheState(
            kernel=kernel,
            devices=devices,
            ground=read_host_devices(self.runner, devices, candidates, in_use=in_use, root=self.root, sleep=self.sleep),
            records=records,
            units=units,
            heads={record.cache_device: self._head(record.cache_device) for record in records.values() if record.cache_device},
            origins=self._origins(devices, kernel),
            caches=dm_cache_facts.describe(kernel, records, devices, self.root),
            tools=self._tools(),
            found=read_origins(devices, unresolved(self.spec), self.root),
            starters=starters.read_starters(self.runner, devices, self.spec, self.root, running=_running(kernel)),
            root=self.root,
        )

    def plan(self, state: DmCacheState) -> list[Step]:
        steps = dm_cache_plan.plan(state, self.spec)
        for step in steps:
            # What is not named stays as it was, so that only the table that follows from both can be compared.
            if isinstance(step.operation, (LoadTable, EnterPassthrough)) and step.after and "settings" in step.after:
                require_order(WRITECACHE, step.after["settings"], step.item)
        return steps

    def facts(self, state: DmCacheState) -> dict[str, t.Any]:
        names = {item.name for item in self.spec}
        return {
            "problems": [*problems(state), *starters.sentences(state.starters)],
            "caches": [cache.to_dict() for cache in state.caches if cache.name in names],
        }

    def check_settled(self, state: DmCacheState) -> None:
        """Blocks that count as dirty although nothing depends on them, and what a boot starts from an origin."""
        for item in self.spec:
            counted = counted_dirty(state, item.name) if item.present else ""
            if counted:
                self.warn(counted)
        self.check_planned(state)

    def check_planned(self, state: DmCacheState) -> None:
        """What a boot starts from an origin."""
        for warning in starters.sentences(state.starters):
            self.warn(warning)

    def _tools(self) -> Tools:
        return Tools(self.runner.find("dmsetup"), self.runner.find("cache_check") if self.runner.has("cache_check") else "")

    def _head(self, path: str) -> tuple[str, ...] | None:
        node = self._node(path)
        return read_cache_metadata(node) if node.exists() else None

    def _origins(self, devices: Devices, kernel: Kernel) -> dict[str, OriginContent]:
        """What stands on origins and uses them, of those that have no cache yet."""
        found = {}
        around = Neighbourhood(devices, self.runner, self.root)
        for cache in self.spec:
            mapping = kernel.mappings.get(cache.name)
            if not cache.present or (mapping is not None and isinstance(mapping.table, CacheTable) and mapping.table.kind == cache.kind):
                continue
            try:
                origin = devices.resolve(cache.origin)
            except DeviceMissing:
                continue
            # An origin keeps its data: only who uses it matters.
            alone = mapping is not None or origin.name in expected_leaving(self.runner).origins
            users = () if alone else cache_device.examine(self.runner, cache.origin, self.root, self.sleep, around=around, empty=False).users
            found[cache.origin] = OriginContent(users, self._content_block(cache.origin) if cache.kind == tables.WRITECACHE else 0)
        return found

    def _content_block(self, path: str) -> int:
        """The block size of what a device carries, 0 if it carries nothing; 512 where it cannot be determined (blkid(8), BLOCK_SIZE)."""
        completed = self.runner.run(["blkid", "--probe", "--output", "export", path], ok=(0, 2, 8), item=path)
        if completed.rc == 2:
            return 0
        values = dict(line.split("=", 1) for line in completed.stdout.splitlines() if "=" in line)
        return int(values["BLOCK_SIZE"]) if values.get("BLOCK_SIZE", "").isdigit() else 512

    def verify(self, state: DmCacheState) -> list[Difference]:
        """A mapping that was kept because it was in use may be unused by now: the next run removes it, and nothing else is wrong."""
        found = super().verify(state)
        kept = {one.item for one in found if one.attribute == "mapping" and one.wanted is None} - self._removed
        return [one for one in found if one.item not in kept or one.attribute not in ("mapping", "unit")]

    # -- apply

    @functools.singledispatchmethod
    def carry_out(self, operation: Operation, _step: Step) -> None:
        raise TypeError(operation)

    carry_out.register(CreateMirror, MirrorOperations._create_mirror)
    carry_out.register(StartMirror, MirrorOperations._start_mirror)
    carry_out.register(ReleaseMirror, MirrorOperations._release_mirror)

    @carry_out.register
    def _write_unit(self, operation: WriteUnit, step: Step) -> None:
        if operation.record is None:
            self._remove_rule(step.item)
        dm_cache_record.write_record(self.runner, operation.record, step.item, self._tools(), self.root)

    @carry_out.register
    def _prepare(self, operation: PrepareDevice, step: Step) -> None:
        with contextlib.ExitStack() as held:
            if operation.new:
                held.enter_context(cache_device.still_empty(self.runner, operation.device, step.item, self.root, self.sleep))
            self._write_rule()
            self._remove_helpers(step)
            for role, table in operation.helpers:
                self._create_mapping(step, role, tables.helper_name(role, step.item), table)
        self._erase(step, f"/dev/mapper/{tables.helper_name(operation.helpers[0][0], step.item)}")

    def _write_rule(self) -> None:
        if read_file(self.root / RULE_FILE) != RULE:
            replace_file(self.root / RULE_FILE, RULE)
            # udev detects changed rules by itself, a few seconds late.
            self.runner.run(["udevadm", "control", "--reload"], ok=None)

    def _remove_rule(self, name: str) -> None:
        """The last cache of the host takes the rule with it: before its unit, so that a run that is killed in between comes back here."""
        records, units = dm_cache_record.read_records(self.root)
        if not {*records, *units} - {name} and (self.root / RULE_FILE).exists():
            replace_file(self.root / RULE_FILE, "")
            self.runner.run(["udevadm", "control", "--reload"], ok=None)

    @carry_out.register
    def _load(self, operation: LoadTable, step: Step) -> None:
        if step.item in self._mappings():
            self._exchange(step, operation.table)
        else:
            self._create_mapping(step, "top", step.item, operation.table)

    @carry_out.register
    def _enter_passthrough(self, operation: EnterPassthrough, step: Step) -> None:
        """Every load of a table may make all blocks dirty again: that is tried first.

        :raises Refused: if it does.
        """
        name = step.item
        if name not in self._mappings():
            self._create_mapping(step, "top", name, operation.table)
            return
        # A small cache is clean again before its status can be read, unless the table that is tried cleans nothing.
        self._exchange(step, holding(operation.through))
        refused = None
        if self._dirty(name):
            self._exchange(step, operation.through)
        else:
            try:
                self._exchange(step, operation.table)
            except CommandFailed as error:
                refused = error.completed
                self._exchange(step, operation.through)
            else:
                return
        unit = unit_name(LAYER, name)
        raise Refused(
            f"{step.item}: the kernel does not change /dev/mapper/{name} to mode passthrough while it is in use: the metadata of its cache was not closed"
            " cleanly when the host went down, so that every block counts as dirty after every change; nothing is lost, it writes through now:"
            f" unmount it, run systemctl stop {unit} and systemctl start {unit}, and run again.",
            item=step.item,
            completed=refused,
        )

    def _exchange(self, step: Step, table: str) -> None:
        self._tables_of(step).load(table)

    @carry_out.register
    def _resume(self, _operation: ResumeMapping, step: Step) -> None:
        self._tables_of(step).go_on()

    def _tables_of(self, step: Step) -> Exchange:
        return Exchange(self.runner, step.item, step.item, f"/dev/mapper/{step.item}", patience=PATIENCE)

    @carry_out.register
    def _start(self, _operation: StartUnit, step: Step) -> None:
        unit = unit_name(LAYER, step.item)
        if step.item in self._mappings():
            # Its device has come since the plan was made, as of a mirror that was just assembled, and has started it.
            mark_started(self.runner, unit)
            return
        self._remove_helpers(step)
        self.runner.run(["systemctl", "daemon-reload"], item=step.item)
        self.runner.run(["systemctl", "reset-failed", unit], ok=None, item=step.item)
        try:
            start_again(self.runner, unit)
        except CommandFailed as error:
            raise CommandFailed(
                f"{step.item}: the cache could not be started, and nothing was changed on its devices: check journalctl -u {unit};"
                " if cache_check found its metadata damaged, decide manually about cache_repair.",
                item=step.item,
                completed=error.completed,
            ) from None

    @carry_out.register
    def _flush(self, operation: FlushCache, step: Step) -> None:
        name = step.item
        mapping = self._mappings().get(name)
        table = mapping.table if mapping is not None else None
        if not isinstance(table, CacheTable):
            raise NotEffective(f"{step.item}: /dev/mapper/{name} has no cache any more that could be flushed: run again.", item=step.item)
        if not table.cleaner:
            self._exchange(step, operation.clean)
        watch = FlushWatch(step.item, f"/dev/mapper/{name}", lambda: self._dirty(name), limit=operation.flush_timeout, clock=self.clock)
        watch.until_clean(self.sleep)

    def _dirty(self, name: str) -> int | None:
        return getattr(self._status(name), "dirty", None)

    @carry_out.register
    def _prove_clean(self, _operation: ProveClean, step: Step) -> None:
        """The kernel's own figure, of a table in which nothing can become dirty. A cache that failed has no figure: that is no proof."""
        name = step.item
        mapping = self._mappings().get(name)
        table = mapping.table if mapping is not None else None
        status = self._status(name)
        settled = isinstance(table, CacheTable) and table.settled
        if status is None or not settled or status.dirty != 0 or status.errors:
            found = "no cache" if status is None else "a failed cache" if status.failed else f"{status.dirty} dirty blocks"
            raise NotEffective(
                f"{step.item}: it could not be verified that the cache of /dev/mapper/{name} holds nothing that the origin does not have (found {found});"
                " the cache stays attached and nothing is lost: check dmesg and run again.",
                item=step.item,
            )
        write_out(self.runner, step.item, f"/dev/mapper/{name}")

    @carry_out.register
    def _clear(self, operation: ClearDevice, step: Step) -> None:
        device = operation.device
        nodes = [f"/dev/mapper/{tables.helper_name(role, step.item)}" for role in ("meta", "data")]
        node = next((node for node in nodes if self._node(node).exists()), None)
        if node is None and device and cache_device_is_ours(self._node(device)):
            node = device
        if node is not None and operation.erase:
            try:
                with releasing([device] if device else [], self.root):
                    self._erase(step, node)
            except StorageError:
                # A device that is gone cannot be made empty, and is not to be.
                if operation.must:
                    raise
        self._remove_helpers(step)
        udev.refresh(self.runner, [device] if device and self._node(device).exists() else [], step.item)

    @carry_out.register
    def _remove_top(self, _operation: RemoveMapping, step: Step) -> None:
        self._removed.add(step.item)
        self._dmsetup(step, "remove", "--retry", step.item)

    # -- commands and what they left behind

    def _dmsetup(self, step: Step, *words: str) -> Completed:
        require_room(self.root)
        try:
            return self.runner.run(["dmsetup", *words], timeout=PATIENCE, item=step.item)
        except CommandFailed as error:
            error.message = f"{step.item}: {error.message.rstrip('.')}; see dmesg for the reason."
            error.args = (error.message,)
            raise

    def _create_mapping(self, step: Step, role: str, name: str, table: str) -> None:
        self._dmsetup(step, "create", name, "--uuid", tables.uuid_of(role, step.item), "--table", table)

    def _remove_helpers(self, step: Step) -> None:
        mappings = self._mappings()
        for role in ("meta", "data"):
            name = tables.helper_name(role, step.item)
            if name in mappings:
                self._dmsetup(step, "remove", "--retry", name)

    def _erase(self, step: Step, path: str) -> None:
        """Overwrite the head of a device, past every cache.

        :raises CommandFailed: if that is not possible.
        """
        try:
            handle = os.open(self._node(path), os.O_WRONLY | os.O_CLOEXEC | os.O_SYNC | os.O_EXCL)
            try:
                os.pwrite(handle, bytes(_HEAD), 0)
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise CommandFailed(f"{step.item}: the beginning of {path} cannot be overwritten: {error.strerror}.", item=step.item) from None

    def _mappings(self) -> t.Mapping[str, Mapping]:
        return dm_cache_facts.read_kernel(self.runner, self.root).mappings

    def _status(self, name: str) -> dm.CacheStatus | None:
        return dm.read_status(self.runner).get(name)

    def _node(self, path: str) -> Path:
        return self.root / path.lstrip("/")


def _running(kernel: Kernel) -> set[str]:
    return {name for name, mapping in kernel.mappings.items() if isinstance(mapping.table, CacheTable)}


def cache_device_is_ours(node: Path) -> bool:
    """Whether a device begins with the metadata of a cache of device-mapper, and the kernel does not use it."""
    if not set(read_cache_metadata(node)) & OUR_METADATA:
        return False
    try:
        os.close(os.open(node, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError:
        return False
    return True
