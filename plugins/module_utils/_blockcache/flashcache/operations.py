# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the steps of a flashcache device do. The item of a step is the name of the device."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import boot_unit
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import examine, identified, still_empty, still_same
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import host as flashcache_host
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import remains as flashcache_remains
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.output import folder_of
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flush import FlushWatch
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.released import releasing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotEffective, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed

LAYER = "flashcache"
#: ``dmsetup remove`` writes back whatever is dirty and must not be ended in the middle.
PATIENCE = 7 * 24 * 3600.0


@frozen
class WriteUnit(Operation):
    """Write the unit that brings the cache up at boot; an empty text removes it."""

    needs_commands = ("systemctl",)
    text: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        boot_unit.write_unit(layer.runner, unit_of(step.item), self.text, layer.root)


@frozen
class StartUnit(Operation):
    """Start the unit of a cache that is up, so that systemd takes it down at shutdown."""

    needs_commands = ("systemctl",)

    def carry_out(self, layer: t.Any, step: Step) -> None:
        boot_unit.mark_started(layer.runner, unit_of(step.item))


@frozen
class CreateCache(Operation):
    """Create a cache on an empty SSD.

    :param ssd: path of the SSD, or of its mirror.
    :param command: ``flashcache_create`` with all its options.
    """

    needs_commands = ("blockdev", "dmsetup", "udevadm")
    ssd: str
    command: tuple[str, ...]

    def carry_out(self, layer: t.Any, step: Step) -> None:
        ssd = self.ssd
        layer.load_module(step)
        layer.forget_pages(step, ssd)
        with still_empty(layer.runner, ssd, step.item, layer.root, layer.sleep):
            layer.run_until_there(step, self.command)


@frozen
class LoadCache(Operation):
    """Load a write-back cache from its SSD."""

    needs_commands = ("blockdev", "dmsetup", "udevadm")
    ssd: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        layer.load_module(step)
        layer.forget_pages(step, self.ssd)
        layer.run_until_there(step, ["flashcache_load", self.ssd, step.item])


@frozen
class SetSysctl(Operation):
    """Set one sysctl of a cache that runs."""

    key: str
    value: int

    def carry_out(self, layer: t.Any, step: Step) -> None:
        layer.write(step, layer.folder(step), self.key, self.value)


@frozen
class FlushCache(Operation):
    """Let nothing more become dirty, and write back until nothing is.

    :param flush_timeout: seconds, or None for as long as it makes progress.
    """

    flush_timeout: int | None

    def carry_out(self, layer: t.Any, step: Step) -> None:
        """Let nothing more become dirty, then write back until nothing is."""
        folder = layer.folder(step)
        layer.write(step, folder, "cache_all", 0)
        layer.empty_whitelist(step, folder)
        readings: list[int] = []

        def count_dirty() -> int | None:
            dirty = flashcache_host.read_dirty(layer.runner, step.item)
            # One pass leaves out the blocks that were busy when it came by: another for those.
            if dirty and (not readings or dirty >= readings[-1]):
                layer.write(step, folder, "do_sync", 1)
            readings[:] = [] if dirty is None else [dirty]
            return dirty

        FlushWatch(step.item, f"/dev/mapper/{step.item}", count_dirty, limit=self.flush_timeout, clock=layer.clock).until_clean(layer.sleep)
        layer.write(step, folder, "do_sync", 0)
        layer.require_flushed(step, folder)


@frozen
class RemoveCache(Operation):
    """Remove a cache that runs.

    :param ssd: the path of the SSD in its table; ``disk`` that of its origin.
    :param mode: of the cache that runs.
    :param lasting: a path that names the SSD after a reboot too; empty if there is none.
    """

    needs_commands = ("dmsetup", "udevadm")
    ssd: str
    disk: str
    mode: str
    lasting: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        folder, writes_back = folder_of(self.ssd, self.disk), self.mode == "writeback"
        if writes_back:
            layer.require_flushed(step, folder)
            # With this the kernel would leave on the SSD what became dirty in the meantime.
            layer.write(step, folder, "fast_remove", 0)
        layer.note_errors(step, folder)
        # Only a cache in write-back writes while it goes, and then its superblock identifies it.
        layer.note_remains(step, self.lasting, "" if writes_back else flashcache_remains.digest_of(self.ssd, layer.root))
        completed = layer.runner.run(["dmsetup", "remove", "--retry", step.item], ok=None, timeout=PATIENCE, item=step.item)
        if completed.rc and layer.table_there(step.item):
            raise failed_command(step, completed)
        layer.note_remains(step, self.lasting, flashcache_remains.digest_of(self.ssd, layer.root))


@frozen
class ClearDevice(Operation):
    """Prove that an SSD holds nothing that its origin does not have, and make it empty.

    :param lasting: as of :class:`RemoveCache`.
    """

    needs_commands = ("blockdev", "dmsetup", "wipefs", "udevadm")
    ssd: str
    lasting: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        """Only an SSD of which is known that the cache on it was ours, and is clean."""
        ssd = self.ssd
        if layer.table_there(step.item):
            # flashcache_destroy does not check whether a cache runs.
            raise Refused(f"{step.item}: the flashcache device {step.item} still runs, so {ssd} was not wiped: run again.", item=step.item)
        layer.forget_pages(step, ssd)
        stored = flashcache_host.read_superblock(layer.root, ssd)
        if stored is not None and not stored.clean:
            raise NotEffective(
                f"{step.item}: the cache was removed, and its superblock on {ssd} reports '{stored.state_name}': {stored.disk} may lack blocks that are only"
                f" on {ssd}, so nothing was wiped: check dmesg, and load it again with flashcache_load {ssd} before {stored.disk} is used.",
                item=step.item,
            )
        before = identified(layer.runner, ssd, layer.root)
        finding = examine(layer.runner, ssd, layer.root, layer.sleep)
        if finding.users:
            raise Refused(f"{step.item}: {ssd} {' and '.join(finding.users)}, so it was not wiped: find out who uses it, and run again.", item=step.item)
        layer.require_as_left(step, ssd, stored, finding)
        with still_same(layer.runner, ssd, step.item, layer.root, before), releasing([ssd], layer.root):
            if stored is not None:
                layer.note_remains(step, self.lasting, flashcache_remains.digest_of(ssd, layer.root))
                layer.runner.run(["flashcache_destroy", ssd], item=step.item)
            # In the other modes copies of the first blocks of the origin lie there: file systems with the same UUID.
            layer.runner.run(["wipefs", "--all", ssd], item=step.item)
        udev.refresh(layer.runner, [ssd], step.item)
        # What the cache has left there carries no signature.
        finding = examine(layer.runner, ssd, layer.root, layer.sleep, empty=False)
        if finding.reasons:
            raise NotEffective(f"{step.item}: {ssd} was wiped and still {' and '.join(finding.reasons)}: check dmesg.", item=step.item)
        flashcache_remains.note_remains(step.item, None, layer.root)


@frozen
class ForgetRemains(Operation):
    """Delete the note that an SSD was to be made empty."""

    def carry_out(self, layer: t.Any, step: Step) -> None:
        flashcache_remains.note_remains(step.item, None, layer.root)


def unit_of(item: str) -> str:
    return boot_unit.unit_name(LAYER, item)


def failed_command(step: Step, completed: Completed) -> CommandFailed:
    return CommandFailed(
        f"{step.item}: {completed.command_line} ended with exit status {completed.rc} and without an effect: {completed.last_words}",
        item=step.item,
        completed=completed,
    )
