# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kernel with bcache, the tools that go with it and a udev that is sometimes late, over a host made of files.

What is on a disk outlives a reboot and a kill, what the kernel knows outlives a kill only. Detaching, unregistering and writing
back take time, which passes when the code under test sleeps. A disk of which dirty blocks were wiped is an AssertionError.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import shutil
import typing as t
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import udev_rules as bcache_rules
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.settings import SETTINGS, printed
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.sysfs import Sysfs
from ansible_collections.cachefleet.storage.plugins.module_utils._core import journal
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost
from ansible_collections.cachefleet.storage.tests.unit.support.fake_modules import load_modules

MIB = 1024**2
MODES = ("writethrough", "writeback", "writearound", "none")
STATES = ("no cache", "clean", "dirty", "inconsistent")
HDD, HDD2, SSD, SSD2 = (f"/dev/disk/by-id/ata-{name}" for name in ("HDD0", "HDD1", "SSD0", "SSD1"))


class Killed(BaseException):
    """The controller, and the process with it, is gone: nothing after it has an effect."""


@dataclass
class Content:
    """What is on a disk: a superblock of bcache, or a signature of something else.

    :param dirty: of a cache device: bytes that are only there, by the UUID of the backing device.
    """

    kind: str
    uuid: str = ""
    set: str | None = None
    state: str = "no cache"
    mode: str = "writethrough"
    label: str = ""
    block: int = 512
    bucket: int = 512 * 1024
    policy: str = "lru"
    discard: str = "0"
    dirty: dict[str, int] = field(default_factory=dict)


@dataclass
class Backing:
    """What the kernel knows of a registered backing device."""

    number: int
    settings: dict[str, str]
    set: str | None = None
    running: bool = False
    detaching: float | None = None
    pause: float = 0.0


@dataclass
class CacheSet:
    device: str
    settings: dict[str, str]
    stopping: float | None = None


class _Tree:
    """Files, links and folders below a root, all by relative path."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: dict[str, str] = {}
        self.links: dict[str, str] = {}
        self.folders: set[str] = set()

    def file(self, path: str, text: str) -> None:
        self.files[path] = text
        self.folder(os.path.dirname(path))

    def link(self, path: str, target: str) -> None:
        self.links[path] = target
        self.folder(os.path.dirname(path))

    def folder(self, path: str) -> None:
        while path and path not in self.folders:
            self.folders.add(path)
            path = os.path.dirname(path)

    def replace(self, before: _Tree) -> None:
        """Make the files of this out of those of another."""
        root = str(self.root)
        for path in [path for path in (*before.files, *before.links) if path not in self.files and path not in self.links]:
            os.unlink(f"{root}/{path}")
        for path in sorted(before.folders - self.folders, reverse=True):
            with contextlib.suppress(OSError):
                os.rmdir(f"{root}/{path}")
        for path in sorted(self.folders - before.folders):
            os.makedirs(f"{root}/{path}", exist_ok=True)
        for path, target in self.links.items():
            if before.links.get(path) != target:
                if path in before.links:
                    os.unlink(f"{root}/{path}")
                os.symlink(f"{root}/{target}", f"{root}/{path}")
        for path, text in self.files.items():
            if before.files.get(path) != text:
                with open(f"{root}/{path}", "w", encoding="utf-8") as stream:
                    stream.write(text + "\n")


class FakeBcache:
    """A Runner and a kernel.

    :param root: where the host of files is made: two hard disks, two SSDs.
    :param udev_registers: whether udev tells the kernel of what make-bcache made, before the next command.
    """

    def __init__(self, root: Path, *, udev_registers: bool = True, missing: t.Container[str] = ()) -> None:
        self.root = root
        self.host = FakeHost(root)
        load_modules(root)
        self.udev_registers = udev_registers
        self.missing = missing
        self.contents: dict[str, Content] = {}
        self.sizes = {"sda": 2048 * MIB, "sdd": 2048 * MIB, "sdb": 512 * MIB, "sdc": 512 * MIB}
        for name, serial in (("sda", "HDD0"), ("sdd", "HDD1"), ("sdb", "SSD0"), ("sdc", "SSD1")):
            self.host.disk(name, size=self.sizes[name], serial=serial, rotational=serial[0] == "H", DEVLINKS=f"/dev/disk/by-id/ata-{serial}")
        self.base_records = dict(zip(("sda", "sdd", "sdb", "sdc"), self.host.records))
        #: Of the one MD array: UUID, name, members.
        self.array: tuple[str, str, tuple[str, ...]] | None = None
        self.degraded = False
        self.backings: dict[str, Backing] = {}
        self.sets: dict[str, CacheSet] = {}
        self.loaded = False
        self.debugfs = True
        self.now = 0.0
        #: Bytes that are written each second; they become dirty where the mode lets them.
        self.load = 0
        #: Writes to register that the kernel refuses although it could.
        self.stubborn = 0
        #: Whether udev makes links by UUID; that of bcache-tools 1.0.8 forgets them while a device is running.
        self.shows_names = True
        self.stuck = False
        self.calls: list[str] = []
        self.made = 0
        #: Devices and UUIDs of all sets that were ever made.
        self.used: set[tuple[str, str]] = set()
        self.shown = _Tree(root)
        self.places: dict[str, str] = {}
        #: Effects until the process is killed; before or after the effect.
        self.kill_at: int | None = None
        self.kill_after = False
        self.effects = 0
        self.dead = False
        self.render()

    # -- being killed

    def effect(self, what: str, work: t.Callable[[], t.Any]) -> t.Any:
        """Everything that changes the host, or asks it, goes through here."""
        if self.dead:
            raise Killed
        self.effects += 1
        if self.kill_at == self.effects and not self.kill_after:
            self.dead = True
            raise Killed(what)
        try:
            return work()
        finally:
            self.render()
            if self.kill_at == self.effects:
                self.dead = True
                raise Killed(what)

    def revive(self) -> None:
        self.dead, self.kill_at, self.effects = False, None, 0

    def snapshot(self) -> dict[str, t.Any]:
        """Everything, to go back to."""
        files = {path: path.read_text() for folder in ("etc", "var", "run") for path in (self.root / folder).rglob("*") if path.is_file()}
        assert self.array is None or "md127" in self.sizes
        return copy.deepcopy(
            {
                "array": self.array,
                "contents": self.contents,
                "backings": self.backings,
                "sets": self.sets,
                "now": self.now,
                "made": self.made,
                "used": self.used,
                "files": files,
            }
        )

    def restore(self, snapshot: t.Mapping[str, t.Any]) -> None:
        before = copy.deepcopy(dict(snapshot))
        for folder in ("etc", "var", "run"):
            shutil.rmtree(self.root / folder, ignore_errors=True)
        for path, text in before.pop("files").items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        vars(self).update(before)
        self.loaded = any(content.kind in ("backing", "cache") for content in self.contents.values())
        self.calls.clear()
        self.revive()
        self.render()

    def reboot(self) -> None:
        """The kernel forgets; udev registers everything, in the order of names, and sets the settings of our rules."""
        self.backings, self.sets = {}, {}
        shutil.rmtree(self.root / "run", ignore_errors=True)
        self.loaded = any(content.kind in ("backing", "cache") for content in self.contents.values())
        rules = bcache_rules.read_rules(self.root)
        for name, content in sorted(self.contents.items()):
            self._register(name)
            for key, value in rules.get(content.uuid, {}).items():
                place = self.backings[name].settings if name in self.backings else self.sets[content.set or ""].settings
                place[key] = value
        self.render()

    # -- time

    def sleep(self, seconds: float) -> None:
        if self.dead:
            raise Killed
        self.pass_time(max(seconds, 0.1))

    def clock(self) -> float:
        return self.now

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for name, backing in self.backings.items():
            self._write_back(name, backing, seconds)
            if backing.detaching is not None and self.now >= backing.detaching and not self._dirty(name):
                self._detached(name)
        for cset, known in list(self.sets.items()):
            if known.stopping is not None and self.now >= known.stopping:
                for name, backing in self.backings.items():
                    if backing.set == cset:
                        self._flush_all(name)
                        self._detached(name)
                del self.sets[cset]
        self.render()

    def cut_before_the_journal(self, name: str, count: int) -> None:
        """A power cut after the superblock was marked clean and before the journal says so of the last blocks."""
        self.make_dirty(name, count)
        self.contents[name].state, self.contents[name].mode = "clean", "writethrough"
        self.reboot()

    def _write_back(self, name: str, backing: Backing, seconds: float) -> None:
        content = self.contents[name]
        if backing.set is None:
            return
        cache = self.contents[self.sets[backing.set].device]
        if content.mode == "writeback" and self.load and backing.detaching is None:
            cache.dirty[content.uuid] = cache.dirty.get(content.uuid, 0) + int(self.load * seconds)
            content.state = "dirty"
        haste = backing.settings["writeback_percent"] == "0" or backing.detaching is not None
        backing.pause = max(backing.pause - seconds, 0.0) if backing.detaching is None else 0.0
        if haste and not self.stuck and not backing.pause and (content.state == "dirty" or backing.detaching is not None):
            cache.dirty[content.uuid] = max(cache.dirty.get(content.uuid, 0) - int(20 * MIB * seconds), 0)
            if not cache.dirty[content.uuid]:
                content.state = "clean"

    def _flush_all(self, name: str) -> None:
        content, cset = self.contents[name], self.backings[name].set
        if cset is not None:
            self.contents[self.sets[cset].device].dirty.pop(content.uuid, None)

    def _detached(self, name: str) -> None:
        backing, content = self.backings[name], self.contents[name]
        backing.set, backing.detaching = None, None
        content.set, content.state = None, "no cache"

    def _dirty(self, name: str) -> int:
        cset = self.backings[name].set
        return self.contents[self.sets[cset].device].dirty.get(self.contents[name].uuid, 0) if cset is not None else 0

    def make_dirty(self, name: str, count: int) -> None:
        """Write for these seconds."""
        backing, content = self.backings[name], self.contents[name]
        assert backing.set is not None and content.mode == "writeback"
        self.contents[self.sets[backing.set].device].dirty[content.uuid] = count
        content.state, backing.pause = "dirty", float(backing.settings["writeback_delay"])
        self.render()

    # -- as Runner

    def has(self, name: str) -> bool:
        return name not in self.missing

    def run(self, argv: t.Sequence[str], *, ok: t.Container[int] | None = (0,), item: str | None = None, **how: t.Any) -> Completed:
        words = [str(word) for word in argv]
        if words[0] in self.missing:
            raise ToolMissing(f"{words[0]} is missing", item=item)
        self.calls.append(" ".join(words))
        rc, out, err = self.effect(" ".join(words), lambda: getattr(self, "_" + words[0].replace("-", "_"))(words[1:]))
        return Completed(tuple(words), rc, out, err).require(ok, item)

    def _kernel_name(self, path: str) -> str:
        return os.path.basename(os.path.realpath(self.root / path.lstrip("/")))

    def _sync(self, words: list[str]) -> tuple[int, str, str]:
        return 0, "", ""

    def _udevadm(self, words: list[str]) -> tuple[int, str, str]:
        if words[0] in ("settle", "trigger"):
            return 0, "", ""
        records = []
        for name, record in self.base_records.items():
            content = self.contents.get(name)
            if content is not None:
                kind = "bcache" if content.kind in ("backing", "cache") else content.kind
                record += f"\nE: ID_FS_TYPE={kind}\nE: ID_FS_USAGE=other\nE: ID_FS_UUID={content.uuid}"
            records.append(record)
        if self.array is not None:
            identity, label, _members = self.array
            record = "P: /devices/virtual/block/md127\nN: md127\nE: SUBSYSTEM=block\nE: DEVTYPE=disk\nE: MD_LEVEL=raid1"
            record += f"\nE: MD_UUID={identity}\nE: MD_NAME=any:{label}\nE: DEVLINKS=/dev/disk/by-id/md-uuid-{identity}"
            if "md127" in self.contents:
                record += f"\nE: ID_FS_TYPE=bcache\nE: ID_FS_UUID={self.contents['md127'].uuid}"
            records.append(record)
        for backing in self.backings.values():
            name = f"bcache{backing.number}"
            if backing.running:
                records.append(f"P: /devices/virtual/block/{name}\nN: {name}\nE: SUBSYSTEM=block\nE: DEVTYPE=disk")
        return 0, "\n\n".join(records) + "\n", ""

    def _modprobe(self, words: list[str]) -> tuple[int, str, str]:
        if not (self.root / "sys/module" / words[-1]).is_dir():
            return 1, "", f"modprobe: FATAL: Module {words[-1]} not found in directory /lib/modules/6.1.0-test"
        assert words == ["bcache"]
        self.loaded = True
        return 0, "", ""

    def _wipefs(self, words: list[str]) -> tuple[int, str, str]:
        name = self._kernel_name(words[-1])
        content = self.contents.get(name)
        if "--all" in words:
            if name in self.backings or name in {known.device for known in self.sets.values()}:
                return 1, "", f"wipefs: error: {words[-1]}: probing initialization failed: Device or resource busy"
            assert content is None or (content.kind == "cache" and not any(content.dirty.values())), f"data was lost with {content}"
            self.contents.pop(name, None)
            return 0, "", ""
        assert "--no-act" in words
        if content is None:
            return 0, "", ""
        kind = "bcache" if content.kind in ("backing", "cache") else content.kind
        return 0, json.dumps({"signatures": [{"type": kind, "uuid": content.uuid}]}), ""

    def _make_bcache(self, words: list[str]) -> tuple[int, str, str]:
        assert "--wipe-bcache" not in words
        self.loaded = True
        option = dict(zip(words, words[1:]))
        name = self._kernel_name(words[-1])
        if name in self.backings or name in {known.device for known in self.sets.values()}:
            return 1, "", f"Can't open dev {words[-1]}: Device or resource busy"
        if name in self.contents:
            return 1, "", f"Device {words[-1]} already has a non-bcache superblock, remove it using wipefs and wipefs -a"
        block = int(option["--block"])
        if "--bdev" in words:
            self.contents[name] = Content("backing", self._new_uuid(), block=block)
        else:
            bucket = int(option["--bucket"])
            # The kernel would replay the journal of the earlier set, which make-bcache does not erase.
            assert (name, option["--cset-uuid"]) not in self.used, "the UUID of an earlier set on this device"
            self.used.add((name, option["--cset-uuid"]))
            self.contents[name] = Content("cache", self._new_uuid(), set=option["--cset-uuid"], block=block, bucket=bucket)
        if self.udev_registers:
            self._register(name)
        return 0, f"UUID:\t\t\t{self.contents[name].uuid}\n", ""

    def _bcache_super_show(self, words: list[str]) -> tuple[int, str, str]:
        content = self.contents.get(self._kernel_name(words[-1]))
        if content is None or content.kind not in ("backing", "cache"):
            return 2, "sb.magic\t\tbad magic\n", "Invalid superblock (bad magic)\n"
        cache = content.kind == "cache"
        lines = ["sb.magic\t\tok", f"sb.version\t\t{3 if cache else 1} [{'cache' if cache else 'backing'} device]", ""]
        lines += [f"dev.label\t\t{content.label or '(empty)'}", f"dev.uuid\t\t{content.uuid}", f"dev.sectors_per_block\t{content.block // 512}"]
        lines.append(f"dev.sectors_per_bucket\t{content.bucket // 512}")
        if not cache:
            number = STATES.index(content.state)
            lines.append(f"dev.data.cache_mode\t{MODES.index(content.mode)} [{content.mode}]")
            lines.append(f"dev.data.cache_state\t{number} [{'detached' if number == 0 else content.state}]")
        return 0, "\n".join([*lines, "", f"cset.uuid\t\t{content.set or '00000000-0000-0000-0000-000000000000'}"]) + "\n", ""

    def _mdadm(self, words: list[str]) -> tuple[int, str, str]:
        option = dict(word.split("=", 1) for word in words if "=" in word)
        members = tuple(self._kernel_name(word) for word in words if word.startswith("/dev/disk/"))
        if words[0] == "--stop":
            assert "md127" not in {known.device for known in self.sets.values()}
            assert "md127" not in self.contents
            self.array = None
        elif words[0] == "--zero-superblock":
            assert self.array is None
            if self.contents.get(members[0]) is None:
                return 2, "", f"mdadm: Unrecognised md component device - {words[-1]}"
            assert self.contents.pop(members[0]).kind == "linux_raid_member"
        else:
            blkid = option["--uuid"].replace(":", "")
            blkid = "-".join((blkid[:8], blkid[8:12], blkid[12:16], blkid[16:20], blkid[20:]))
            if words[0] == "--create":
                assert not any(member in self.contents for member in members), "a member was not empty"
                for member in members:
                    self.contents[member] = Content("linux_raid_member", blkid)
            assert all(self.contents[member].uuid == blkid for member in members)
            self.array = (option["--uuid"], words[1].rsplit("/", 1)[-1], members)
            self.sizes["md127"] = 500 * MIB
        return 0, "", ""

    def _new_uuid(self) -> str:
        self.made += 1
        return str(uuid.UUID(int=0xB0000000 << 96 | self.made))

    # -- the kernel

    def write(self, path: str, value: str, item: str) -> None:
        """A write to sysfs."""
        self.calls.append(f"{path} = {value}")

        def work() -> None:
            if not self._store(path, value):
                raise CommandFailed(f"{item}: the kernel did not accept '{value}' in /{path}", item=item)

        self.effect(self.calls[-1], work)

    def _store(self, path: str, value: str) -> bool:
        if path == "sys/fs/bcache/register":
            if self.stubborn:
                self.stubborn -= 1
                return False
            return self._register(self._kernel_name(value))
        match = re.match(r"^sys/class/block/([a-z0-9]+)/bcache/(\w+)$", path)
        if match and match.group(1) in self.backings:
            return self._store_backing(match.group(1), match.group(2), value)
        if match:
            content = self.contents[match.group(1)]
            key = {"cache_replacement_policy": "policy", "discard": "discard"}[match.group(2)]
            setattr(content, key, value)
            return True
        match = re.match(r"^sys/fs/bcache/([0-9a-f-]{36})/(\w+)$", path)
        assert match, path
        known = self.sets[match.group(1)]
        if match.group(2) == "unregister":
            known.stopping = self.now + 0.3
            return True
        known.settings[match.group(2)] = value
        return True

    def _store_backing(self, name: str, key: str, value: str) -> bool:
        backing, content = self.backings[name], self.contents[name]
        if key == "attach":
            return self._attach(name, value)
        if key == "detach":
            if backing.set is not None:
                backing.detaching = self.now + 0.3
            return True
        if key == "cache_mode":
            if value not in MODES:
                return False
            content.mode = value
        elif key == "label":
            content.label = value
        else:
            assert key in SETTINGS or key == "writeback_running", key
            if key == "sequential_cutoff" and not value.isdigit():
                return False
            if key == "writeback_percent":
                value = str(min(int(value), 40))
            backing.settings[key] = value
        return True

    def _register(self, name: str) -> bool:
        content = self.contents.get(name)
        if content is None or content.kind not in ("backing", "cache"):
            return False
        if content.kind == "backing":
            if name in self.backings:
                return False
            defaults = {key: str(known.default) for key, known in SETTINGS.items() if known.place == "backing"}
            number = next(number for number in range(99) if number not in {other.number for other in self.backings.values()})
            self.backings[name] = Backing(number, {**defaults, "writeback_running": "1"})
            if content.set in self.sets:
                self._attach(name, content.set or "")
            elif content.state in ("no cache", "inconsistent"):
                self.backings[name].running = True
            return True
        if content.set in self.sets or self.sizes[name] // content.bucket < 513:
            return False
        self.sets[content.set or ""] = CacheSet(name, {key: str(known.default) for key, known in SETTINGS.items() if known.place == "set"})
        for other in self.backings:
            if self.backings[other].set is None and self.contents[other].set == content.set:
                self._attach(other, content.set or "")
        return True

    def _attach(self, name: str, cset: str) -> bool:
        backing, content = self.backings[name], self.contents[name]
        if backing.set is not None or cset not in self.sets or self.sets[cset].stopping is not None:
            return False
        cache = self.contents[self.sets[cset].device]
        if content.block < cache.block or (content.state == "dirty" and content.set != cset):
            return False
        backing.set, backing.running, backing.detaching = cset, True, None
        if content.set != cset or content.state not in ("dirty", "clean"):
            cache.dirty.pop(content.uuid, None)
            content.state = "clean"
        content.set = cset
        return True

    # -- what can be seen

    def render(self) -> None:
        """The whole of sysfs as it is now; only what differs from the last time is written."""
        wanted = _Tree(self.root)
        if self.array is not None:
            self._show_array(wanted)
        if self.loaded:
            wanted.folder("sys/fs/bcache")
            for cset, known in self.sets.items():
                self._show_set(wanted, cset, known)
            for name, backing in self.backings.items():
                self._show_backing(wanted, name, backing)
        wanted.replace(self.shown)
        self.shown = wanted

    def _place(self, name: str) -> str:
        """Where a disk is in sysfs, relative to the root."""
        if name not in self.places:
            self.places[name] = os.path.relpath(os.path.realpath(self.root / "sys/class/block" / name), self.root)
        return self.places[name] if name in self.base_records else f"sys/devices/virtual/block/{name}"

    def _show_device(self, wanted: _Tree, name: str, below: t.Iterable[str], texts: t.Mapping[str, str]) -> None:
        """A device that the kernel makes of others."""
        place = f"sys/devices/virtual/block/{name}"
        for key, text in texts.items():
            wanted.file(f"{place}/{key}", text)
        wanted.folder(f"{place}/slaves")
        wanted.folder(f"{place}/holders")
        for under in below:
            wanted.link(f"{place}/slaves/{under}", self._place(under))
            wanted.link(f"{self._place(under)}/holders/{name}", place)
        wanted.link(f"sys/class/block/{name}", place)
        wanted.file(f"dev/{name}", "")

    def _show_array(self, wanted: _Tree) -> None:
        assert self.array is not None
        identity, _label, members = self.array
        texts = {"dev": "9:127", "size": str(self.sizes["md127"] // 512), "queue/logical_block_size": "512", "md/level": "raid1", "md/raid_disks": "2"}
        self._show_device(wanted, "md127", members, {**texts, "md/degraded": str(int(self.degraded))})
        wanted.link(f"dev/disk/by-id/md-uuid-{identity}", "dev/md127")

    def _show_set(self, wanted: _Tree, cset: str, known: CacheSet) -> None:
        content = self.contents[known.device]
        place, folder = f"{self._place(known.device)}/bcache", f"sys/fs/bcache/{cset}"
        texts = {"bucket_size": printed(content.bucket), "block_size": printed(content.block), "cache_available_percent": "99", "unregister": ""}
        for key, text in {**texts, **known.settings}.items():
            wanted.file(f"{folder}/{key}", text)
        policies = " ".join(f"[{word}]" if word == content.policy else word for word in ("lru", "fifo", "random"))
        buckets = str(self.sizes[known.device] // content.bucket)
        for key, text in {"nbuckets": buckets, "cache_replacement_policy": policies, "discard": content.discard, "io_errors": "0"}.items():
            wanted.file(f"{place}/{key}", text)
        wanted.link(f"{place}/set", folder)
        wanted.link(f"{folder}/cache0", place)
        if self.debugfs:
            lines = ["0:16 len 128 -> [0:48128 gen 1]"] + ["1:144 len 8 -> [0:48256 gen 1] dirty" for count in content.dirty.values() if count]
            wanted.file(f"sys/kernel/debug/bcache/bcache-{cset}", "\n".join(lines))

    def _show_backing(self, wanted: _Tree, name: str, backing: Backing) -> None:
        content = self.contents[name]
        place = f"{self._place(name)}/bcache"
        modes = " ".join(f"[{mode}]" if mode == content.mode else mode for mode in MODES)
        texts = {"backing_dev_uuid": content.uuid, "cache_mode": modes, "label": content.label, "state": content.state, "running": str(int(backing.running))}
        texts.update({"dirty_data": printed(self._dirty(name)), "attach": "", "detach": "", "io_errors": "0", "stats_total/cache_hits": "5"})
        for key, value in backing.settings.items():
            known = SETTINGS.get(key)
            text = printed(int(value)) if key == "sequential_cutoff" else value
            if known is not None and known.kind == "choice":
                text = " ".join(f"[{word}]" if word == value else word for word in known.choices)
            texts[key] = text
        for key, text in texts.items():
            wanted.file(f"{place}/{key}", text)
        if backing.set is not None:
            wanted.link(f"{place}/cache", f"sys/fs/bcache/{backing.set}")
            wanted.link(f"sys/fs/bcache/{backing.set}/bdev{backing.number}", place)
        if backing.running:
            device = f"bcache{backing.number}"
            below = (name, self.sets[backing.set].device) if backing.set is not None else (name,)
            size = str(self.sizes[name] // 512 - 16)
            self._show_device(wanted, device, below, {"dev": f"253:{backing.number}", "size": size, "queue/logical_block_size": str(content.block)})
            wanted.link(f"{place}/dev", f"sys/devices/virtual/block/{device}")
            wanted.link(f"sys/devices/virtual/block/{device}/bcache", place)
            if self.shows_names:
                wanted.link(f"dev/bcache/by-uuid/{content.uuid}", f"dev/{device}")

    def die_in_files(self, monkeypatch: t.Any) -> None:
        """Writing a file is an effect too, before and after which the process may be killed."""
        for module in (journal, bcache_rules):
            real = module.replace_file

            def replace(path: Path, text: str, *args: t.Any, real: t.Callable[..., None] = real, **kwargs: t.Any) -> None:
                self.calls.append(f"file {path.name}")
                self.effect(f"write {path}", lambda: real(path, text, *args, **kwargs))

            monkeypatch.setattr(module, "replace_file", replace)


class FakeSysfs(Sysfs):
    """Reads the files that the kernel shows, and writes to the kernel."""

    def __init__(self, bcache: FakeBcache) -> None:
        super().__init__(bcache.root)
        self.bcache = bcache

    def write(self, path: str, value: str, item: str) -> None:
        self.bcache.write(path, value, item)
