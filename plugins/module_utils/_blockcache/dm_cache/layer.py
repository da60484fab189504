# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer ``dm_cache``: caches of device-mapper without LVM, made with dmsetup and brought up at boot by systemd.

Sources: dmsetup(8), Documentation/admin-guide/device-mapper/{cache,writecache}.rst. A table is exchanged by ``dmsetup reload`` and
one ``dmsetup resume``, which suspends, exchanges and goes on in one call of the kernel: there is no moment between two commands
in which what is mounted stands still, whenever this is killed.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import cache_device, dm, starters
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import facts as dm_cache_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import plan as dm_cache_plan
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import record as dm_cache_record
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import table as tables
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.facts import Kernel
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.operations import (
    EnterPassthrough,
    LoadTable,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.record import LAYER, Tools
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.spec import DmCacheSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.state import (
    DmCacheState,
    OriginContent,
    counted_dirty,
    problems,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.table import CacheTable
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_settings import WRITECACHE
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.expected import AS_IT_IS, Expected
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.fast_device import HostDevices, read_host_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.mirror import CacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import read_origins, unresolved
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.settings import require_order
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import CACHE_TYPES
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Difference, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, DeviceMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file, replace_file, require_room
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.neighbourhood import Neighbourhood
from ansible_collections.cachefleet.storage.plugins.module_utils._device.signatures import read_cache_metadata
from ansible_collections.cachefleet.storage.plugins.module_utils._device.table_exchange import Exchange

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


class DmCacheLayer(CacheLayer[DmCacheState, t.Sequence[DmCacheSpec]]):
    """Caches of block devices."""

    name = LAYER
    one_at_a_time = True

    @functools.cached_property
    def removed(self) -> set[str]:
        """The mappings that this run has removed, by item."""
        return set()

    # -- read and plan

    def read(self, expected: Expected = AS_IT_IS) -> DmCacheState:
        """Three dmsetup and a scan of the block devices, whatever the number of caches; a device without a cache costs a wipefs more."""
        if not self.spec:
            return DmCacheState(Kernel(), Devices(()), HostDevices(Devices(())), Tools("dmsetup"))
        devices = self.settled_devices(expected)
        kernel = dm_cache_facts.read_kernel(self.runner, self.root)
        for kind in CACHE_TYPES.values():
            if kind.in_mapper:
                kernel = dataclasses.replace(kernel, mappings=expected.rest(kind.name, kernel.mappings))
        records, units = (expected.rest(LAYER, found) for found in dm_cache_record.read_records(self.root))
        self.spec = [dm_cache_facts.with_own_origin(cache, kernel, devices) for cache in self.spec]
        in_use = set()
        for mapping in kernel.mappings.values():
            found = dm_cache_facts.attached_of(mapping, kernel, devices) if tables.parse_uuid(mapping.uuid) == ("top", mapping.name) else None
            in_use |= {found.cache_name} if found is not None and found.cache_name is not None else set()
        candidates = [path for cache in self.spec if cache.present for path in cache.cache_devices]
        return DmCacheState(
            kernel=kernel,
            devices=devices,
            ground=read_host_devices(self.runner, devices, candidates, in_use=in_use, root=self.root, sleep=self.sleep, expected=expected),
            records=records,
            units=units,
            heads={record.cache_device: self._head(record.cache_device) for record in records.values() if record.cache_device},
            origins=self._origins(devices, kernel, expected),
            caches=dm_cache_facts.describe(kernel, records, devices, self.root),
            tools=self.tools(),
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

    def tools(self) -> Tools:
        return Tools(self.runner.find("dmsetup"), self.runner.find("cache_check") if self.runner.has("cache_check") else "")

    def _head(self, path: str) -> tuple[str, ...] | None:
        node = self.node(path)
        return read_cache_metadata(node) if node.exists() else None

    def _origins(self, devices: Devices, kernel: Kernel, expected: Expected) -> dict[str, OriginContent]:
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
            alone = mapping is not None or origin.name in expected.origins
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
        kept = {one.item for one in found if one.attribute == "mapping" and one.wanted is None} - self.removed
        return [one for one in found if one.item not in kept or one.attribute not in ("mapping", "unit")]

    # -- apply

    def write_rule(self) -> None:
        if read_file(self.root / RULE_FILE) != RULE:
            replace_file(self.root / RULE_FILE, RULE)
            # udev detects changed rules by itself, a few seconds late.
            self.runner.run(["udevadm", "control", "--reload"], ok=None)

    def remove_rule(self, name: str) -> None:
        """The last cache of the host takes the rule with it: before its unit, so that a run that is killed in between comes back here."""
        records, units = dm_cache_record.read_records(self.root)
        if not {*records, *units} - {name} and (self.root / RULE_FILE).exists():
            replace_file(self.root / RULE_FILE, "")
            self.runner.run(["udevadm", "control", "--reload"], ok=None)

    def exchange(self, step: Step, table: str) -> None:
        self.tables_of(step).load(table)

    def tables_of(self, step: Step) -> Exchange:
        return Exchange(self.runner, step.item, step.item, f"/dev/mapper/{step.item}", patience=PATIENCE)

    def dirty(self, name: str) -> int | None:
        return getattr(self.status(name), "dirty", None)

    # -- commands and what they left behind

    def dmsetup(self, step: Step, *words: str) -> Completed:
        require_room(self.root)
        try:
            return self.runner.run(["dmsetup", *words], timeout=PATIENCE, item=step.item)
        except CommandFailed as error:
            error.message = f"{step.item}: {error.message.rstrip('.')}; see dmesg for the reason."
            error.args = (error.message,)
            raise

    def create_mapping(self, step: Step, role: str, name: str, table: str) -> None:
        self.dmsetup(step, "create", name, "--uuid", tables.uuid_of(role, step.item), "--table", table)

    def remove_helpers(self, step: Step) -> None:
        mappings = self.mappings()
        for role in ("meta", "data"):
            name = tables.helper_name(role, step.item)
            if name in mappings:
                self.dmsetup(step, "remove", "--retry", name)

    def erase(self, step: Step, path: str) -> None:
        """Overwrite the head of a device, past every cache.

        :raises CommandFailed: if that is not possible.
        """
        try:
            handle = os.open(self.node(path), os.O_WRONLY | os.O_CLOEXEC | os.O_SYNC | os.O_EXCL)
            try:
                os.pwrite(handle, bytes(_HEAD), 0)
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise CommandFailed(f"{step.item}: the beginning of {path} cannot be overwritten: {error.strerror}.", item=step.item) from None

    def mappings(self) -> t.Mapping[str, Mapping]:
        return dm_cache_facts.read_kernel(self.runner, self.root).mappings

    def status(self, name: str) -> dm.CacheStatus | None:
        return dm.read_status(self.runner).get(name)

    def node(self, path: str) -> Path:
        return self.root / path.lstrip("/")


def _running(kernel: Kernel) -> set[str]:
    return {name for name, mapping in kernel.mappings.items() if isinstance(mapping.table, CacheTable)}
