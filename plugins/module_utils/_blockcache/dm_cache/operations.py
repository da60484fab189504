# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the steps of a raw cache do. The item of a step is the device-mapper name; tables are texts as ``dmsetup`` takes them."""

from __future__ import annotations

import contextlib
import os
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import cache_device, dm
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.boot_unit import mark_started, start_again, unit_name
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import record as dm_cache_record
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import table as tables
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.record import LAYER, Record
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.state import (
    OUR_METADATA,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.table import CacheTable
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flush import FlushWatch, write_out
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.released import releasing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotEffective, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev
from ansible_collections.cachefleet.storage.plugins.module_utils._device.signatures import read_cache_metadata
from ansible_collections.cachefleet.storage.plugins.module_utils._device.table_exchange import holding


@frozen
class WriteUnit(Operation):
    """Write the unit that brings the cache up at boot; None removes it.

    :param kept: what is written instead of None where the mapping could not be removed.
    """

    needs_commands = ("systemctl",)
    record: Record | None
    kept: Record | None = None

    def carry_out(self, layer: t.Any, step: Step) -> None:
        record = self.kept if self.kept is not None and step.item in layer.mappings() else self.record
        if record is None:
            layer.remove_rule(step.item)
        dm_cache_record.write_record(layer.runner, record, step.item, layer.tools(), layer.root)


@frozen
class PrepareDevice(Operation):
    """Make the mappings on the cache device, with nothing in them.

    :param device: path of the cache device.
    :param helpers: role and table of each mapping, in the order in which they are made.
    :param new: whether the device must be empty; it need not be where this very cache was on it.
    """

    needs_commands = ("udevadm",)
    device: str
    helpers: tuple[tuple[str, str], ...]
    new: bool

    def carry_out(self, layer: t.Any, step: Step) -> None:
        with contextlib.ExitStack() as held:
            if self.new:
                held.enter_context(cache_device.still_empty(layer.runner, self.device, step.item, layer.root, layer.sleep))
            layer.write_rule()
            layer.remove_helpers(step)
            for role, table in self.helpers:
                layer.create_mapping(step, role, tables.helper_name(role, step.item), table)
        layer.erase(step, f"/dev/mapper/{tables.helper_name(self.helpers[0][0], step.item)}")


@frozen
class LoadTable(Operation):
    """Give what is mounted a table, or make it with that table."""

    table: str

    @property
    def needs_modules(self) -> tuple[str, ...]:  # type: ignore[override]
        return dm.MODULES.get(self.table.split(" ")[2], ())

    def carry_out(self, layer: t.Any, step: Step) -> None:
        if step.item in layer.mappings():
            layer.exchange(step, self.table)
        else:
            layer.create_mapping(step, "top", step.item, self.table)


@frozen
class EnterPassthrough(Operation):
    """Load the table of a cache in mode passthrough, which the kernel takes only while no block is dirty.

    :param table: the table in mode passthrough.
    :param through: the same in mode writethrough, which is loaded first.
    """

    table: str
    through: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        """Every load of a table may make all blocks dirty again: that is tried first.

        :raises Refused: if it does.
        """
        name = step.item
        if name not in layer.mappings():
            layer.create_mapping(step, "top", name, self.table)
            return
        # A small cache is clean again before its status can be read, unless the table that is tried cleans nothing.
        layer.exchange(step, holding(self.through))
        refused = None
        if layer.dirty(name):
            layer.exchange(step, self.through)
        else:
            try:
                layer.exchange(step, self.table)
            except CommandFailed as error:
                refused = error.completed
                layer.exchange(step, self.through)
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


@frozen
class ResumeMapping(Operation):
    """Let a mapping go on with the table in effect, and drop one that waits."""

    def carry_out(self, layer: t.Any, step: Step) -> None:
        layer.tables_of(step).go_on()


@frozen
class StartUnit(Operation):
    """Start the unit of a cache that is known and does not run.

    :param kind: the target of its table.
    """

    needs_commands = ("systemctl",)
    kind: str

    @property
    def needs_modules(self) -> tuple[str, ...]:  # type: ignore[override]
        return dm.MODULES[self.kind]

    def carry_out(self, layer: t.Any, step: Step) -> None:
        unit = unit_name(LAYER, step.item)
        if step.item in layer.mappings():
            # Its device has come since the plan was made, as of a mirror that was just assembled, and has started it.
            mark_started(layer.runner, unit)
            return
        layer.remove_helpers(step)
        layer.runner.run(["systemctl", "daemon-reload"], item=step.item)
        layer.runner.run(["systemctl", "reset-failed", unit], ok=None, item=step.item)
        try:
            start_again(layer.runner, unit)
        except CommandFailed as error:
            raise CommandFailed(
                f"{step.item}: the cache could not be started, and nothing was changed on its devices: check journalctl -u {unit};"
                " if cache_check found its metadata damaged, decide manually about cache_repair.",
                item=step.item,
                completed=error.completed,
            ) from None


@frozen
class FlushCache(Operation):
    """Write back until nothing is dirty.

    :param clean: the table with which nothing becomes dirty.
    :param flush_timeout: seconds, or None for as long as it makes progress.
    """

    clean: str
    flush_timeout: int | None

    def carry_out(self, layer: t.Any, step: Step) -> None:
        name = step.item
        mapping = layer.mappings().get(name)
        table = mapping.table if mapping is not None else None
        if not isinstance(table, CacheTable):
            raise NotEffective(f"{step.item}: /dev/mapper/{name} has no cache any more that could be flushed: run again.", item=step.item)
        if not table.cleaner:
            layer.exchange(step, self.clean)
        watch = FlushWatch(step.item, f"/dev/mapper/{name}", lambda: layer.dirty(name), limit=self.flush_timeout, clock=layer.clock)
        watch.until_clean(layer.sleep)


@frozen
class ProveClean(Operation):
    """Prove that no block is dirty and none can become so, and have the origin write out what it keeps in volatile memory."""

    needs_commands = ("sync",)

    def carry_out(self, layer: t.Any, step: Step) -> None:
        """The kernel's own figure, of a table in which nothing can become dirty. A cache that failed has no figure: that is no proof."""
        name = step.item
        mapping = layer.mappings().get(name)
        table = mapping.table if mapping is not None else None
        status = layer.status(name)
        settled = isinstance(table, CacheTable) and table.settled
        if status is None or not settled or status.dirty != 0 or status.errors:
            found = "no cache" if status is None else "a failed cache" if status.failed else f"{status.dirty} dirty blocks"
            raise NotEffective(
                f"{step.item}: it could not be verified that the cache of /dev/mapper/{name} holds nothing that the origin does not have (found {found});"
                " the cache stays attached and nothing is lost: check dmesg and run again.",
                item=step.item,
            )
        write_out(layer.runner, step.item, f"/dev/mapper/{name}")


@frozen
class ClearDevice(Operation):
    """Make a cache device empty that nothing goes through any more, and remove its mappings.

    :param device: path of the cache device; empty if it is not known.
    :param erase: whether its superblock is overwritten.
    :param must: whether it is a failure if that is not possible.
    """

    needs_commands = ("udevadm",)
    device: str
    erase: bool
    must: bool

    def carry_out(self, layer: t.Any, step: Step) -> None:
        device = self.device
        nodes = [f"/dev/mapper/{tables.helper_name(role, step.item)}" for role in ("meta", "data")]
        node = next((node for node in nodes if layer.node(node).exists()), None)
        if node is None and device and cache_device_is_ours(layer.node(device)):
            node = device
        if node is not None and self.erase:
            try:
                with releasing([device] if device else [], layer.root):
                    layer.erase(step, node)
            except StorageError:
                # A device that is gone cannot be made empty, and is not to be.
                if self.must:
                    raise
        layer.remove_helpers(step)
        udev.refresh(layer.runner, [device] if device and layer.node(device).exists() else [], step.item)


@frozen
class RemoveMapping(Operation):
    """Remove what is mounted, once it is unused."""

    def carry_out(self, layer: t.Any, step: Step) -> None:
        try:
            layer.dmsetup(step, "remove", "--retry", step.item)
        except CommandFailed as error:
            # A table without the cache is a change of the device, for which udev has LVM activate a group on it.
            if error.completed is None or "busy" not in error.completed.stderr:
                raise
        else:
            layer.removed.add(step.item)


def cache_device_is_ours(node: Path) -> bool:
    """Whether a device begins with the metadata of a cache of device-mapper, and the kernel does not use it."""
    if not set(read_cache_metadata(node)) & OUR_METADATA:
        return False
    try:
        os.close(os.open(node, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError:
        return False
    return True
