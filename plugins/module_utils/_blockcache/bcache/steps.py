# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the steps of a plan of bcaches do: one class for each operation.

``origin`` and ``path`` are paths as the user wrote them, ``device`` is a kernel name, ``set`` the UUID of a cache set; sizes are bytes.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import facts as bcache_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import journal as bcache_journal
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import udev_rules as bcache_rules
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.facts import BLOCK, FOLDER, NO_CACHE
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.journal import Between
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.settings import BACKING, CACHE, SET, chosen, has_value
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import still_empty
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flush import write_out
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.released import releasing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotEffective, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import node_of


@frozen
class MakeBacking(Operation):
    """Make an empty device a backing device, and register it."""

    needs_commands = ("make-bcache", "bcache-super-show", "udevadm")
    needs_modules = ("bcache",)
    origin: str
    block_size: int

    def carry_out(self, layer: t.Any, step: Step) -> None:
        path = self.origin
        with still_empty(layer.runner, path, step.item, layer.root, layer.sleep, "overwrite it"):
            layer.run_make(step, ["make-bcache", "--bdev", "--block", str(self.block_size), path])
        layer.start_backing(path, step)


@frozen
class RegisterBacking(Operation):
    """Register a backing device with the kernel."""

    needs_commands = ("udevadm",)
    needs_modules = ("bcache",)
    origin: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        layer.start_backing(self.origin, step)


@frozen
class SetLabel(Operation):
    """Set the label in the superblock of the backing device."""

    origin: str
    label: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        folder, label = layer.backing(self.origin), self.label
        layer.write(step, f"{folder}/label", label, lambda: layer.sysfs.read(f"{folder}/label") == label)


# -- cache sets


@frozen
class MakeSet(Operation):
    """Make an empty device the cache device of a new set, and register it.

    :param origin: the backing device that will be attached to it first.
    """

    needs_commands = ("make-bcache", "bcache-super-show", "udevadm")
    needs_modules = ("bcache",)
    origin: str
    path: str
    set: str
    bucket_size: int
    block_size: int

    def carry_out(self, layer: t.Any, step: Step) -> None:
        path, cset = self.path, self.set
        sizes = ["--bucket", str(self.bucket_size), "--block", str(self.block_size)]
        with still_empty(layer.runner, path, step.item, layer.root, layer.sleep, "overwrite it"):
            bcache_journal.note_between(layer.uuid_of(self.origin, step), Between(cset), layer.root)
            layer.run_make(step, ["make-bcache", "--cache", *sizes, "--cset-uuid", cset, path])
        layer.start_set(step, layer.kernel_name(path), cset)


@frozen
class RegisterSet(Operation):
    """Register a cache device with the kernel, which starts its set."""

    needs_commands = ("udevadm",)
    needs_modules = ("bcache",)
    device: str
    set: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        layer.start_set(step, self.device, self.set)


@frozen
class UnregisterSet(Operation):
    """Stop a set that nothing is attached to and that holds nothing dirty."""

    device: str
    set: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        cset, device = self.set, self.device
        folder = f"{FOLDER}/{cset}"
        if not layer.sysfs.exists(folder):
            return
        users = [name for name in layer.sysfs.names(folder) if name.startswith("bdev")]
        if users:
            raise NotEffective(f"{step.item}: the cache set {cset} is in use again ({', '.join(users)}), so that it stays.", item=step.item)
        layer.require_nothing_dirty(step, cset)
        layer.write(step, f"{folder}/unregister", "1", lambda: not layer.sysfs.exists(folder))
        gone = f"the kernel did not stop the cache set {cset}"
        layer.wait_until(step, lambda: not layer.sysfs.exists(folder) and not layer.sysfs.exists(f"{BLOCK}/{device}/bcache"), gone)


@frozen
class Wipe(Operation):
    """Make a cache device empty, if it still carries that set."""

    needs_commands = ("wipefs", "bcache-super-show", "udevadm")
    path: str
    set: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        path, cset = self.path, self.set
        # Of the path that is made empty: kernel names and links can mean another device by now.
        found = bcache_facts.read_superblock(layer.runner, path)
        if found is not None:
            if not found.cache or found.set != cset:
                raise Refused(f"{step.item}: {path} does not carry the cache set {cset} any more, so it is not wiped.", item=step.item)
            # While its UUID can still be read.
            rules = bcache_rules.read_rules(layer.root)
            bcache_rules.write_rules({uuid: kept for uuid, kept in rules.items() if uuid != found.uuid}, layer.root)
            with releasing([path], layer.root):
                layer.wipe_device(step, path)
        bcache_journal.forget_set(cset, layer.root)
        layer.runner.run(["udevadm", "settle"], ok=None, item=step.item)


# -- caches


@frozen
class Attach(Operation):
    """Attach a backing device to a set."""

    origin: str
    set: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        layer.attach_to(self.origin, self.set, step)


@frozen
class Detach(Operation):
    """Detach a backing device from a set, once nothing of it is dirty there."""

    needs_commands = ("sync",)
    origin: str
    set: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        origin, cset = self.origin, self.set
        folder = layer.backing(origin)
        if layer.set_of(folder) == cset:
            layer.require_clean(origin, step, folder)
            bcache_journal.note_between(layer.uuid_of(origin, step), Between(cset, detaching=True), layer.root)
            layer.write(step, f"{folder}/detach", "1", lambda: layer.set_of(folder) is None)
            layer.wait_until(step, lambda: layer.set_of(folder) is None, f"the kernel did not detach the cache of {origin}")
        state = layer.sysfs.read(f"{folder}/state")
        if state != NO_CACHE:
            raise NotEffective(f"{step.item}: {origin} was detached from its cache and is in the state '{state}': check dmesg.", item=step.item)
        bcache_journal.note_between(layer.uuid_of(origin, step), Between(cset), layer.root)


@frozen
class SetMode(Operation):
    """Change the mode of a cache, without a flush."""

    origin: str
    mode: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        folder, mode = layer.backing(self.origin), self.mode
        layer.write(step, f"{folder}/cache_mode", mode, lambda: chosen(layer.sysfs.read(f"{folder}/cache_mode")) == mode)


@frozen
class Flush(Operation):
    """Leave writeback and write everything back.

    :param flush_timeout: seconds that it may take, or None.
    :param mode: the mode afterwards; None for writethrough in place of writeback, and any other as it is.
    :param leaving: whether the next step is to detach it.
    """

    needs_commands = ("sync",)
    origin: str
    flush_timeout: t.Optional[int]
    mode: t.Optional[str] = None
    leaving: bool = False

    def carry_out(self, layer: t.Any, step: Step) -> None:
        folder = layer.backing(self.origin)
        before = chosen(layer.sysfs.read(f"{folder}/cache_mode"))
        mode = self.mode or ("writethrough" if before == "writeback" else before)
        if before != mode:
            layer.write(step, f"{folder}/cache_mode", mode, lambda: chosen(layer.sysfs.read(f"{folder}/cache_mode")) == mode)
        if layer.sysfs.read(f"{folder}/state") != NO_CACHE:
            layer.drain(self, step, folder)
            layer.require_clean(self.origin, step, folder)
            write_out(layer.runner, str(step.item), self.origin)
        layer.put_back(self.origin, step)


@frozen
class EndFlush(Operation):
    """Restore the settings that an interrupted flush changed."""

    origin: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        layer.put_back(self.origin, step)


@frozen
class SetSetting(Operation):
    """Change one setting now.

    :param place: whose it is, as in :data:`settings.SETTINGS`.
    """

    origin: str
    key: str
    value: t.Union[int, str]
    place: str
    set: str

    def carry_out(self, layer: t.Any, step: Step) -> None:
        key, value, cset = self.key, self.value, self.set
        folders = {BACKING: [layer.backing(self.origin)], SET: [f"{FOLDER}/{cset}"], CACHE: [f"{BLOCK}/{name}/bcache" for name in layer.caches_in(cset)]}
        for folder in folders[self.place]:
            if not layer.sysfs.exists(f"{folder}/{key}"):
                raise Refused(f"{step.item}: the kernel of this host has no bcache setting {key}: remove it for this host.", item=step.item)
            layer.write(step, f"{folder}/{key}", str(value), lambda folder=folder: has_value(key, layer.sysfs.read(f"{folder}/{key}"), value))


@frozen
class WriteRules(Operation):
    """Keep settings in the udev rules.

    :param settings: of the backing device; None removes what is kept of it.
    :param set: the set whose settings are kept too, or None.
    """

    origin: str
    settings: t.Optional[t.Mapping[str, t.Union[int, str]]] = None
    set: t.Optional[str] = None

    @property
    def needs_commands(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("bcache-super-show",) if self.set is not None else ()

    def carry_out(self, layer: t.Any, step: Step) -> None:
        rules = {uuid: dict(kept) for uuid, kept in bcache_rules.read_rules(layer.root).items()}
        uuid, settings = layer.uuid_of(self.origin, step), self.settings
        rules[uuid] = bcache_rules.kept(settings, BACKING, rules.get(uuid, {})) if settings is not None else {}
        for name in layer.caches_in(self.set) if settings is not None and self.set is not None else ():
            found = bcache_facts.read_superblock(layer.runner, node_of(name))
            if found is not None:
                rules[found.uuid] = bcache_rules.kept(settings, SET, rules.get(found.uuid, {}))
        bcache_rules.write_rules(rules, layer.root)
