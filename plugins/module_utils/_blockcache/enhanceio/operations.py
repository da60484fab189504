# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the steps of an EnhanceIO cache do. The item of a step is the name of the cache; ``origin`` is its path, as the user wrote it."""

from __future__ import annotations

import os
import typing as t
from dataclasses import replace

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import boot_unit
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import examine, identified, still_empty, still_same
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import boot, output
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import facts as proc
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flush import INTERVAL, FlushWatch
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.released import releasing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotEffective, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import replace_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

#: Making a cache writes all of its metadata; changing one that is clean takes a moment.
PATIENCE = 3600.0


@frozen
class CreateCache(Operation):
    """Create a cache on an empty device.

    :param path: of the cache device.
    :param block_size: bytes.
    """

    needs_commands = ("eio_cli",)
    origin: str
    path: str
    mode: str
    policy: str
    block_size: int

    def carry_out(self, layer: t.Any, step: Step) -> None:
        path = self.path
        words = [*_options(self), "-b", str(self.block_size)]
        with still_empty(layer.runner, path, step.item, layer.root, layer.sleep):
            layer.load_module(step)
            layer.run_tool(step, ["eio_cli", "create", *words, "-c", step.item], lambda: layer.cache_of(step) is not None)
        layer.forget_foreign_rule(step)
        cache = layer.require_cache(step, self.origin)
        if cache.config.block_size != self.block_size:
            raise NotEffective(
                f"{step.item}: the driver of EnhanceIO made blocks of {cache.config.block_size} bytes where {self.block_size} were requested, because it"
                " and eio_cli do not belong together: install both from the same source, or leave chunk_size out. The cache runs and nothing is lost.",
                item=step.item,
            )


@frozen
class EnableCache(Operation):
    """Start a cache with what the superblock on its device holds.

    :param path: of the cache device.
    """

    needs_commands = ("eio_cli",)
    origin: str
    path: str
    mode: str
    policy: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        """Start a cache with what its superblock holds. The tool ends with 0 whatever happened."""
        layer.load_module(step)
        completed = layer.runner.run(["eio_cli", "enable", *_options(self), "-c", step.item], ok=None, timeout=PATIENCE, item=step.item)
        if layer.cache_of(step) is None:
            raise NotEffective(
                f"{step.item}: the cache on {self.path} could not be started, and may hold blocks that {self.origin} does not have: check dmesg,"
                " and do not use the origin until it runs.",
                item=step.item,
                completed=completed,
            )


@frozen
class FlushCache(Operation):
    """Have everything written back, with nothing becoming dirty meanwhile.

    :param flush_timeout: seconds, or None for as long as it makes progress.
    """

    needs_commands = ("sysctl",)
    origin: str
    flush_timeout: int | None

    def carry_out(self, layer: t.Any, step: Step) -> None:
        """Have everything written back, with nothing becoming dirty meanwhile; the mode that follows keeps it so."""
        origin = self.origin
        watch = FlushWatch(step.item, origin, lambda: layer.require_cache(step, origin).stats["nr_dirty"], limit=self.flush_timeout, clock=layer.clock)
        while True:
            layer.keep_cleaning(step, origin)
            if watch() == 0:
                return
            layer.sleep(INTERVAL)


@frozen
class StopCleaning(Operation):
    """Let blocks become dirty again after an interrupted flush."""

    needs_commands = ("sysctl",)

    def carry_out(self, layer: t.Any, step: Step) -> None:
        layer.set_sysctl(step, "do_clean", 0)


@frozen
class SetMode(Operation):
    """Change the mode of a cache that runs; it leaves ``writeback`` only while it is clean."""

    needs_commands = ("eio_cli",)
    origin: str
    mode: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        mode, origin = self.mode, self.origin
        if mode != "writeback":
            # The driver flushes in here too, and can then neither be watched nor stopped.
            layer.require_clean(step, origin)
        elif layer.require_cache(step, origin).config.flags & output.FAST_REMOVE:
            raise Refused(output.fast_removal_sentence(step.item), item=step.item)
        command = ["eio_cli", "edit", "-c", step.item, "-m", output.MODE_WORDS[mode]]
        layer.run_tool(step, command, lambda: getattr(layer.config_of(step), "mode", None) == mode)
        layer.forget_foreign_rule(step)
        if mode != "writeback":
            layer.require_clean(step, origin, left_writeback=True)


@frozen
class SetSetting(Operation):
    """Set one sysctl of a cache that runs."""

    needs_commands = ("sysctl",)
    key: str
    value: int

    def carry_out(self, layer: t.Any, step: Step) -> None:
        layer.set_sysctl(step, self.key, self.value)


@frozen
class ResumeCache(Operation):
    """Give a degraded cache its device back, empty.

    :param path: of the cache device.
    """

    needs_commands = ("eio_cli",)
    path: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        """Give a degraded cache its device back; the driver makes it anew, whatever is on it."""
        path = self.path
        before = identified(layer.runner, path, layer.root)
        finding = examine(layer.runner, path, layer.root, layer.sleep)
        superblock = proc.read_superblock(layer.root / path.lstrip("/"))
        if superblock is not None and superblock.name == step.item and not superblock.may_be_dirty:
            finding = replace(finding, cache_metadata=())
        if finding.reasons:
            raise Refused(f"{step.item}: {path} {' and '.join(finding.reasons)}, so that it is not given to the cache: {finding.advice(path)}.", item=step.item)
        with still_same(layer.runner, path, step.item, layer.root, before):
            layer.runner.run(["eio_cli", "notify", "-a", "add", "-s", path, "-c", step.item], ok=None, timeout=PATIENCE, item=step.item)
        if getattr(layer.config_of(step), "state", None) != "normal":
            raise NotEffective(
                f"{step.item}: the driver did not accept {path}, which must be as large as the device that was lost: check dmesg, or remove the cache"
                " with state: absent and create it again.",
                item=step.item,
            )


@frozen
class ProveClean(Operation):
    """Prove that no block is dirty and none can become so."""

    origin: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        layer.require_clean(step, self.origin, left_writeback=True)


@frozen
class DeleteCache(Operation):
    """Delete a cache that is proven to be clean."""

    needs_commands = ("eio_cli",)
    origin: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        layer.require_clean(step, self.origin, left_writeback=True)
        layer.run_tool(step, ["eio_cli", "delete", "-c", step.item], lambda: layer.cache_of(step) is None)
        layer.forget_foreign_rule(step)
        if layer.cache_of(step) is not None:
            raise NotEffective(f"{step.item}: eio_cli ended well and the cache is still there: check dmesg.", item=step.item)


@frozen
class WipeSuperblock(Operation):
    """Overwrite the superblock of a cache that does not run and in which nothing is dirty.

    :param path: of the cache device.
    """

    needs_commands = ("wipefs",)
    path: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        """Overwrite the superblock of a cache that does not run and in which nothing is dirty, and nothing else."""
        path = layer.root / self.path.lstrip("/")
        layer.require_unused(step, self.path)
        try:
            handle = os.open(path, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC)
        except OSError as error:
            raise CommandFailed(f"{step.item}: {self.path} cannot be opened to wipe it: {error.strerror}.", item=step.item) from None
        try:
            # The driver wrote past the page cache.
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            superblock = output.parse_superblock(os.pread(handle, output.SUPERBLOCK_SIZE, output.SUPERBLOCK_OFFSET))
            if superblock is None:
                return
            if superblock.name != step.item or superblock.may_be_dirty:
                raise Refused(
                    f"{step.item}: {self.path} holds the cache {superblock.name} in mode {superblock.mode} ({superblock.state}), which may have"
                    " blocks that its origin does not have: it is not wiped.",
                    item=step.item,
                )
            with releasing([self.path], layer.root):
                os.pwrite(handle, bytes(output.SUPERBLOCK_SIZE), output.SUPERBLOCK_OFFSET)
                os.fsync(handle)
        except OSError as error:
            raise CommandFailed(f"{step.item}: {self.path} cannot be wiped: {error.strerror}.", item=step.item) from None
        finally:
            os.close(handle)


@frozen
class WriteBootFiles(Operation):
    """Write the files that bring the cache back at boot; empty texts remove them.

    :param unit: the text of the systemd unit.
    :param rule: the text of the udev rule that hides the origin.
    """

    needs_commands = ("systemctl",)
    unit: str
    rule: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        """In an order in which a boot between two of them never shows an origin without its write-back cache."""
        unit, rule = self.unit, self.rule
        place, name = layer.root / boot.RULE.format(name=step.item), boot.unit_name(step.item)
        if rule and not (layer.root / boot_unit.FOLDER / name).exists():
            # Not enabled yet, but the rule will call it: a rule without it would hide the origin permanently.
            replace_file(layer.root / boot_unit.FOLDER / name, unit)
        replace_file(place, rule)
        boot_unit.write_unit(layer.runner, name, unit, layer.root)
        layer.forget_foreign_rule(step)


def _options(operation: CreateCache | EnableCache) -> list[str]:
    """The options of eio_cli that ``create`` and ``enable`` share."""
    return ["-d", operation.origin, "-s", operation.path, "-p", operation.policy, "-m", output.MODE_WORDS[operation.mode]]
