# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lives that caches live here, and how each type is looked at without the code that is being tested."""

from __future__ import annotations

import abc
import contextlib
import os
import re
import subprocess
import time
import typing as t
from dataclasses import dataclass, replace
from pathlib import Path

#: What everything that is made here is called, so that it is found again.
NAME = "lives"


def tool(*argv: str, check: bool = True) -> str:
    """Run a command of the machine itself.

    :raises RuntimeError: if it fails and that matters.
    """
    done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C"})
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout.strip()


@dataclass(frozen=True)
class Stage:
    """One wish of a user.

    :param caches: the module's ``caches``.
    :param clean: whether the origin alone must hold everything afterwards, whatever is written meanwhile.
    :param live: whether an application may have the device open all the time.
    """

    name: str
    caches: t.Sequence[t.Mapping[str, t.Any]]
    clean: bool = False
    live: bool = True


class Cache(abc.ABC):
    """One type of cache of one kind on the scratch disks."""

    module: str
    kinds: t.Sequence[str] = ()
    #: Bytes before the first block on the slow device.
    offset = 0
    #: Whether there is a cached device before there is a cache.
    begins_with_data = True
    settings: t.Mapping[str, t.Any] = {"migration_threshold": 16384}
    #: Steps in which nothing may have the device open.
    not_live: t.Collection[str] = ()

    #: Of the volume that is cached, where there are volumes.
    volume_size = "256m"

    def __init__(self, kind: str, mirror: bool, origin: str, disks: t.Sequence[str], name: str = NAME) -> None:
        """:param name: of everything that is made; caches of several names live side by side."""
        self.kind = kind
        self.mirror = mirror
        self.origin = origin
        self.disks = list(disks)
        self.name = name
        #: Options of the module beside those of the type.
        self.options: dict[str, t.Any] = {}

    @property
    def title(self) -> str:
        return " ".join(word for word in (self.module, self.kind, "mirrored" if self.mirror else "") if word)

    @property
    def modes(self) -> t.Sequence[str]:
        """In the order in which a life goes through them."""
        return ("writethrough", "writeback")

    def stages(self) -> list[Stage]:
        """From nothing to nothing."""
        first, second = (self.disks[:2], self.other_mirror()) if self.mirror else (self.disks[:1], self.disks[1:2])
        made = [Stage(f"create in {self.modes[0]}", [self.spec(first, self.modes[0])])]
        made += [Stage(f"change to {mode}", [self.spec(first, mode)]) for mode in self.modes[1:]]
        last = self.modes[-1]
        made.append(Stage("change a setting", [self.spec(first, last, settings=self.settings)]))
        devices = first
        if len(second) == len(first):
            devices = second
            made.append(Stage("change the cache device", [self.spec(devices, last, settings=self.settings)]))
        made.append(Stage("flush", [self.spec(devices, last, settings=self.settings, state="flushed")], clean=True))
        made.append(Stage("use it again", [self.spec(devices, last, settings=self.settings)]))
        made.append(Stage("remove", [self.spec(devices, last, state="absent", release_devices=True)], clean=True))
        return [replace(stage, live=stage.name not in self.not_live) for stage in made]

    def other_mirror(self) -> list[str]:
        """Two disks that the mirror is not made of: a half of an MD mirror goes to no other while that is there."""
        return self.disks[2:4]

    def spec(self, devices: t.Sequence[str], mode: str, **more: t.Any) -> dict[str, t.Any]:
        """One item of the module."""
        item = {"name": self.name, "origin": self.origin_path, "cache_devices": list(devices), "mirror": self.mirror, "mode": mode}
        item.update({"kind": self.kind} if self.kind else {})
        if mode == "writeback" and not self.mirror:
            item["allow_unmirrored_writeback"] = True
        return {**item, **self.own_options(), **self.options, **more}

    # -- what each type does in its own way

    @property
    def origin_path(self) -> str:
        return self.origin

    def own_options(self) -> dict[str, t.Any]:
        return {"size": "128M", "chunk_size": "64K"}

    def prepare(self) -> None:  # noqa: B027 (most types need nothing)
        """Make what has to be there before a cache."""

    @abc.abstractmethod
    def device(self) -> str | None:
        """What an application would write to now; None if there is nothing safe to write to."""

    def bottom(self) -> str:
        """The slow device alone."""
        return self.origin

    @abc.abstractmethod
    def dirty(self) -> int | None:
        """What the kernel says is only on the cache device; None if there is no cache."""

    def clean_up(self) -> None:
        """Take everything away by force: only for scratch disks, and only after the last look at them."""
        for disk in [*self.disks, self.origin]:
            tool("wipefs", "--all", "--force", disk, check=False)
            tool("blkdiscard", "--zeroout", disk, check=False)
        tool("udevadm", "settle", check=False)


class LvmCache(Cache):
    module = "lvm_cache"

    @property
    def modes(self) -> t.Sequence[str]:
        return ("writeback",) if self.kind == "writecache" else super().modes

    @property
    def settings(self) -> t.Mapping[str, t.Any]:  # type: ignore[override]
        return {"high_watermark": 60} if self.kind == "writecache" else {"migration_threshold": 16384}

    @property
    def origin_path(self) -> str:
        return f"{self.name}/data"

    def own_options(self) -> dict[str, t.Any]:
        return {"size": "128M"} if self.kind == "writecache" else super().own_options()

    def other_mirror(self) -> list[str]:
        return [*self.disks[2:3], *self.disks[:1]]

    def prepare(self) -> None:
        tool("vgcreate", "--yes", self.name, self.origin)
        tool("lvcreate", "--yes", "--name", "data", "--size", self.volume_size, self.name)

    def device(self) -> str | None:
        return usable(f"/dev/{self.name}/data")

    def bottom(self) -> str:
        below = [f"/dev/mapper/{self.name}-data_{suffix}" for suffix in ("corig", "wcorig")]
        return next((path for path in below if os.path.exists(path)), f"/dev/{self.name}/data")

    def dirty(self) -> int | None:
        return mapping_dirty(f"{self.name}-data")

    def clean_up(self) -> None:
        for line in tool("dmsetup", "info", "-c", "--noheadings", "-o", "name,suspended", check=False).splitlines():
            if line.startswith(f"{self.name}-") and line.endswith(":Suspended"):
                tool("dmsetup", "resume", line.split(":")[0], check=False)
        tool("vgremove", "--force", "--force", "--yes", self.name, check=False)
        remove_mappings(f"{self.name}-")
        for disk in [*self.disks, self.origin]:
            tool("pvremove", "--force", "--force", "--yes", disk, check=False)
        super().clean_up()


class DmCache(Cache):
    module = "dm_cache"
    # What is cached must be free, and what shall go altogether too.
    not_live = ("create in writethrough", "create in writeback", "remove")

    @property
    def modes(self) -> t.Sequence[str]:
        return ("writeback",) if self.kind == "writecache" else super().modes

    @property
    def settings(self) -> t.Mapping[str, t.Any]:  # type: ignore[override]
        return {"high_watermark": 60} if self.kind == "writecache" else {"migration_threshold": 16384}

    def own_options(self) -> dict[str, t.Any]:
        return {} if self.kind == "writecache" else {"chunk_size": "64K"}

    def device(self) -> str | None:
        mapped = f"/dev/mapper/{self.name}"
        # Without the mapping the origin may be stale, and an application must not have it.
        return usable(mapped) if os.path.exists(mapped) else None

    def dirty(self) -> int | None:
        return mapping_dirty(self.name)

    def clean_up(self) -> None:
        forget_units(self.name)
        remove_mappings(self.name)
        stop_arrays(self.disks)
        super().clean_up()


class Bcache(Cache):
    module = "bcache"
    begins_with_data = False
    settings: t.Mapping[str, t.Any] = {"sequential_cutoff": "8M"}
    #: What make-bcache leaves free before the data, 16 sectors.
    offset = 8192

    def own_options(self) -> dict[str, t.Any]:
        return {}

    def _sys(self) -> Path:
        return Path("/sys/class/block") / os.path.basename(os.path.realpath(self.origin)) / "bcache"

    def device(self) -> str | None:
        try:
            name = (self._sys() / "dev").resolve(strict=True).name
        except OSError:
            return None
        return usable(f"/dev/{name}")

    def dirty(self) -> int | None:
        try:
            text, state = (self._sys() / "dirty_data").read_text().strip(), (self._sys() / "state").read_text().strip()
        except OSError:
            return None
        amount = float(re.sub(r"[^0-9.]", "", text) or 0)
        # The figure is rounded to a tenth of its unit; the state is not.
        return 0 if state != "dirty" and not amount else max(int(amount), 1)

    def clean_up(self) -> None:
        forget_units(self.name)
        names = {os.path.basename(os.path.realpath(disk)) for disk in self.disks}
        arrays = {array.name for array in Path("/sys/block").glob("md*") if {part.name for part in array.glob("slaves/*")} <= names}
        # The backing device first: a set that is stopped while something is attached only detaches it.
        self._stop(self._sys(), self._sys() / "stop")
        self._stop_sets(names | arrays)
        stop_arrays(self.disks)
        super().clean_up()
        # udev registers what the kernel let go of, as long as its superblock was there.
        self._stop_sets(names)

    def _stop_sets(self, names: t.Iterable[str]) -> None:
        for name in names:
            folder = Path("/sys/class/block") / name / "bcache"
            self._stop(folder, folder / "set/stop")

    def _stop(self, folder: Path, switch: Path) -> None:
        for _attempt in range(60):
            with contextlib.suppress(OSError):
                switch.write_text("1")
            if not folder.exists():
                return
            time.sleep(0.5)


#: What a life is called on the command line.
LIVES: t.Mapping[str, tuple[type[Cache], str, bool]] = {
    "lvm_cachepool": (LvmCache, "cachepool", False),
    "lvm_cachevol": (LvmCache, "cachevol", False),
    "lvm_mirrored": (LvmCache, "cachepool", True),
    "lvm_cachevol_mirrored": (LvmCache, "cachevol", True),
    "lvm_writecache": (LvmCache, "writecache", False),
    "dm_cache": (DmCache, "cache", False),
    "dm_mirrored": (DmCache, "cache", True),
    "dm_writecache": (DmCache, "writecache", False),
    "bcache": (Bcache, "", False),
    "bcache_mirrored": (Bcache, "", True),
}


def usable(path: str) -> str | None:
    """The path if writing to it would not hang: a mapping whose change was interrupted may be suspended."""
    name = os.path.basename(os.path.realpath(path))
    with contextlib.suppress(OSError):
        if (Path("/sys/class/block") / name / "dm/suspended").read_text().strip() == "1":
            return None
    return path if os.path.exists(path) else None


def mapping_dirty(name: str) -> int | None:
    """Dirty blocks of a dm-cache or dm-writecache (Documentation/admin-guide/device-mapper/cache.rst, writecache.rst)."""
    words = tool("dmsetup", "status", name, check=False).split()
    if words[2:3] == ["cache"] and len(words) > 14:
        return int(words[13])
    if words[2:3] == ["writecache"] and len(words) > 5:
        return int(words[4]) - int(words[5])
    return None


def remove_mappings(prefix: str) -> None:
    """Every mapping of that name or beginning, the upper ones first."""
    for _attempt in range(4):
        names = [line.split()[0] for line in tool("dmsetup", "ls", check=False).splitlines() if line.startswith(prefix)]
        if not names:
            return
        for name in names:
            tool("dmsetup", "remove", "--retry", name, check=False)


def stop_arrays(disks: t.Sequence[str]) -> None:
    """Arrays of nothing but these disks."""
    names = {os.path.basename(os.path.realpath(disk)) for disk in disks}
    for array in Path("/sys/block").glob("md*"):
        members = {part.name for part in array.glob("slaves/*")}
        if members and members <= names:
            tool("mdadm", "--stop", f"/dev/{array.name}", check=False)
    for disk in disks:
        tool("mdadm", "--zero-superblock", disk, check=False)


def forget_units(name: str = NAME) -> None:
    """Units that a life that went wrong left behind, and halves of files."""
    folder = Path("/etc/systemd/system")
    for unit in folder.glob(f"cachefleet-*-{name}.service"):
        tool("systemctl", "disable", "--now", unit.name, check=False)
        with contextlib.suppress(OSError):
            unit.unlink()
    for half in folder.glob(".cachefleet-*.tmp"):
        half.unlink()
    tool("systemctl", "daemon-reload", check=False)
