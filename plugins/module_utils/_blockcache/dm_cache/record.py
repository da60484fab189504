# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The unit of one raw cache, which is also the record of it: what lies where, and how it was last known to be.

Everything that protects data rests on its order: a record with ``writeback`` is written before the kernel writes back, and
goes after nothing is dirty any more; a record that nothing is attached is written before anything writes past the
cache, so that what the cache device holds is known to be out of date, also after a power cut at any moment.
"""

from __future__ import annotations

import dataclasses
import json
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import boot_unit
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import table as tables
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.table import CacheTable, Layout, LinearTable
from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen, has_types

LAYER = "dm_cache"


@frozen
class Tools:
    """Absolute paths of the commands that stand in a unit; ``cache_check`` is empty where it is not installed."""

    dmsetup: str
    cache_check: str = ""


@frozen
class Record:
    """One cache. Sizes in bytes.

    :param origin: the path of the slow device.
    :param cache_device: the path of the fast device; empty once it was given up.
    :param table: how the cache is loaded; None while the origin serves alone, and then whatever is on the cache device is out of date.
    """

    name: str
    origin: str
    length: int
    cache_device: str = ""
    layout: Layout | None = None
    table: CacheTable | None = None

    @property
    def may_be_dirty(self) -> bool:
        """Whether the cache may hold what the origin does not have."""
        return self.table is not None and not self.table.settled

    def top(self) -> CacheTable | LinearTable:
        """The table of what is mounted."""
        return self.table if self.table is not None else LinearTable(self.length, self.origin)

    def helpers(self) -> dict[str, LinearTable]:
        """The mappings on the cache device by role; the metadata comes first, so that the device never appears empty."""
        return helpers_of(self.layout, self.cache_device) if self.layout is not None and self.cache_device else {}

    def as_text(self) -> str:
        """For the note in the unit."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)


def helpers_of(layout: Layout, device: str) -> dict[str, LinearTable]:
    """The mappings that divide a cache device."""
    parts = {"meta": LinearTable(layout.metadata, device)} if layout.metadata else {}
    return {**parts, "data": LinearTable(layout.data, device, layout.metadata)}


def table_of(name: str, kind: str, length: int, origin: str, layout: Layout, mode: str, settings: tables.Settings) -> CacheTable:
    """The table of a cache over its own mappings."""
    metadata = f"/dev/mapper/{tables.helper_name('meta', name)}" if kind == tables.CACHE else ""
    data = f"/dev/mapper/{tables.helper_name('data', name)}"
    return CacheTable(kind, length, metadata, data, origin, layout.block_size, mode, False, settings)


def parse_record(text: str) -> Record | None:
    """The record in the text of a unit; None if there is none, or none that is understood."""
    return read_plain(boot_unit.note_of(text))


def read_plain(text: str) -> Record | None:
    """What :meth:`Record.as_text` wrote; None if it did not."""
    try:
        plain = json_text.loads(text)
        layout = Layout(**plain["layout"]) if plain["layout"] else None
        table = CacheTable(**plain["table"]) if plain["table"] else None
        record = Record(plain["name"], plain["origin"], plain["length"], plain["cache_device"], layout, table)
    except (NotUnderstood, KeyError, TypeError):
        return None
    return record if all(has_types(one) for one in (record, layout, table) if one is not None) else None


def read_records(root: Path = Path("/")) -> tuple[dict[str, Record], dict[str, str]]:
    """The records of the host, and the texts of the units that are enabled, both by the name of the cache."""
    records, units = {}, {}
    for name in boot_unit.unit_items(LAYER, root):
        unit = boot_unit.unit_name(LAYER, name)
        record = parse_record(boot_unit.stored_unit(unit, root))
        if record is not None and record.name == name:
            records[name] = record
        units[name] = boot_unit.read_unit(unit, root)
    return records, units


def render_unit(record: Record, tools: Tools) -> str:
    """The text of the unit.

    What lies under the cache may be there already after a start that failed: those commands may fail, and the checks after them decide.
    """
    top = f"/dev/mapper/{record.name}"
    if record.table is None:
        devices, before, helpers = [record.origin], [], []
        description = f"{record.name}, a cached device that its origin serves alone"
    else:
        devices = [record.origin, record.cache_device]
        helpers = list(record.helpers())
        before = [_create(f"-{tools.dmsetup}", tables.helper_name(role, record.name), role, record.name, part) for role, part in record.helpers().items()]
        if record.table.kind == tables.CACHE and tools.cache_check:
            before.append([tools.cache_check, record.table.metadata])
        description = f"{record.name}, a device cached with {record.table.kind}"
    return boot_unit.render(
        description,
        devices,
        [_create(tools.dmsetup, record.name, "top", record.name, record.top())],
        # Also after a start that failed: the part with the data holds pieces of the origin, and LVM would run a group on it.
        clear=[[f"-{tools.dmsetup}", "remove", name] for name in (record.name, *(tables.helper_name(role, record.name) for role in reversed(helpers)))],
        check=before,
        absent=top,
        note=record.as_text(),
        # What writes through has nothing that the origin lacks, and may be outdated by then: a run makes it anew.
        late=record.table is None or record.may_be_dirty,
        item=record.name,
    )


def _create(dmsetup: str, mapping: str, role: str, name: str, table: CacheTable | LinearTable) -> list[str]:
    return [dmsetup, "create", mapping, "--uuid", tables.uuid_of(role, name), "--table", table.render()]


def write_record(runner: t.Any, record: Record | None, name: str, tools: Tools, root: Path) -> None:
    """Write the unit of a cache, or take it away.

    :raises CommandFailed: if that is not possible.
    """
    boot_unit.write_unit(runner, boot_unit.unit_name(LAYER, name), render_unit(record, tools) if record is not None else "", root)
