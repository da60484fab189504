# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""ZFS pools as devices of the stack: what is written to a pool or a zvol, and where it ends up.

Sources: zpool-status(8) (``-P``: full paths, ``-L``: the real path behind a link; since OpenZFS 0.7), zpool-list(8), zfs-get(8), zpoolconcepts(7),
zfsprops(7) (``sync``), zfs(4) (``zfs_nocacheflush``), ``kstat`` of the SPL (a line of numbers, ``name type data``, then one line for each value).
Nothing of a pool is ever changed.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import read_mounts
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.model import UNKNOWN, Group, LayerFacts

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

#: Headings of ``zpool status`` that stand at the place of the pool.
_CLASSES = ("logs", "cache", "spares", "special", "dedup")
#: Classes of devices that hold data, and so must keep what was flushed.
_DATA_CLASSES = ("data", "special", "dedup", "logs")
_VDEV = re.compile(r"^(mirror|raidz(\d?)|draid(\d?)(?::\S+)?|spare|replacing|indirect|missing)-?\d*$")
_COUNT = re.compile(r"^(\d+(?:\.\d+)?)([KMGTPE])?$")
_WHOLE = "ONLINE"
_MEMBER = "zfs_member"
_NAMED = 3
PREFIX = "zfs:"
KSTATS = "proc/spl/kstat/zfs"
#: What is recorded of the caches of ZFS while something is measured: each is one for all pools of a host.
ARC, L2ARC = "ARC of the host", "L2ARC of the host"


@frozen
class Vdev:
    """One device of a pool, or several together.

    :param name: ``mirror-0``, or the path of a device.
    :param state: the word of ZFS: ``ONLINE``, ``DEGRADED``, ``FAULTED``, ``UNAVAIL``…
    :param errors: of reading, writing and checksums, since the pool was imported or cleared; None if a number is not printed.
    """

    name: str
    state: str
    children: tuple[Vdev, ...] = ()
    errors: tuple[int | None, int | None, int | None] = (None, None, None)

    @property
    def disks(self) -> tuple[str, ...]:
        """The paths of every device in it."""
        return tuple(leaf.name for leaf in self.leaves)

    @property
    def leaves(self) -> tuple[Vdev, ...]:
        """Every device in it."""
        return (self,) if not self.children else tuple(leaf for child in self.children for leaf in child.leaves)

    @property
    def parity(self) -> int:
        """How many of its children may fail while all others are well."""
        match = _VDEV.match(self.name)
        if not self.children or match is None:
            return 0
        if match.group(1).startswith("mirror"):
            return len(self.children) - 1
        if match.group(1).startswith(("raidz", "draid")):
            return int(match.group(2) or match.group(3) or 1)
        return 0

    @property
    def missing(self) -> int:
        """How many of its children are not well now."""
        return sum(child.state != _WHOLE for child in self.children)


@frozen
class Pool:
    """One imported pool.

    :param vdevs: by class: ``data``, ``special``, ``dedup``, ``logs``, ``cache``, ``spares``.
    :param size: bytes.
    :param sync: the property of each of its datasets.
    """

    name: str
    state: str = UNKNOWN
    vdevs: t.Mapping[str, tuple[Vdev, ...]] = field(default_factory=dict)
    size: int = 0
    sync: t.Mapping[str, str] = field(default_factory=dict)


@frozen
class Pools:
    """The pools of a host.

    :param nocacheflush: whether the module parameter ``zfs_nocacheflush`` makes ZFS send no flushes.
    :param problems: what could not be read, one sentence each.
    """

    pools: tuple[Pool, ...] = ()
    nocacheflush: bool = False
    problems: tuple[str, ...] = ()


def parse_status(text: str) -> tuple[Pool, ...]:
    """``zpool status -P -L`` of every pool. In its ``config:`` each level is two blanks further to the right; classes of devices stand where
    the pool stands."""
    return tuple(_parse_pool(part) for part in re.split(r"(?m)^\s*pool: ", text)[1:])


def _parse_pool(text: str) -> Pool:
    name = text.split("\n", 1)[0].strip()
    state = re.search(r"(?m)^\s*state: (\S+)", text)
    body = re.search(r"(?ms)^config:\s*\n(.*?)(?:^errors:|\Z)", text)
    rows = [_Row.of(line) for line in (body.group(1) if body else "").splitlines() if line.strip()]
    rows = [row for row in rows if row.name != "NAME"]
    classes: dict[str, list[_Row]] = {}
    base = rows[0].depth if rows else 0
    current = "data"
    for row in rows:
        if row.depth == base:
            current = row.name if row.name in _CLASSES else "data"
        else:
            classes.setdefault(current, []).append(row)
    return Pool(name, state.group(1) if state else UNKNOWN, {word: tuple(_tree(found)) for word, found in classes.items()})


class _Row(t.NamedTuple):
    depth: int
    name: str
    state: str
    errors: tuple[int | None, int | None, int | None]

    @classmethod
    def of(cls, line: str) -> _Row:
        words = line.split()
        bare = line.replace("\t", "")
        return cls(len(bare) - len(bare.lstrip(" ")), words[0], words[1] if len(words) > 1 else UNKNOWN, _errors(words[2:5]))


def _errors(words: t.Sequence[str]) -> tuple[int | None, int | None, int | None]:
    read, write, checksum = [*map(parse_count, words), None, None, None][:3]
    return read, write, checksum


def parse_count(text: str) -> int | None:
    """A number as zpool shortens it, ``1.25K`` for about 1280: steps of 1024, at most five characters (``zfs_nicenum``)."""
    match = _COUNT.match(text)
    return int(float(match.group(1)) * 1024 ** " KMGTPE".index(match.group(2) or " ")) if match else None


def _tree(rows: t.Sequence[_Row]) -> t.Iterator[Vdev]:
    """Rows with their depths as vdevs with their children."""
    place = 0
    while place < len(rows):
        row = rows[place]
        end = place + 1
        while end < len(rows) and rows[end].depth > row.depth:
            end += 1
        yield Vdev(row.name, row.state, tuple(_tree(rows[place + 1 : end])), row.errors)
        place = end


def read_pools(devices: Devices, runner: Runner, root: Path) -> Pools:
    """The imported pools; no command is run on a host without a trace of ZFS."""
    traces = any(device.signature is not None and device.signature.type == _MEMBER for device in devices) or any(_is_zvol(device) for device in devices)
    if not traces and not (root / "sys/module/zfs").is_dir():
        return Pools()
    nocacheflush = read_attribute(root / "sys/module/zfs/parameters/zfs_nocacheflush") == "1"
    if not runner.has("zpool"):
        return Pools(nocacheflush=nocacheflush, problems=("There are ZFS pools on this host and the command zpool is missing: install zfsutils-linux.",))
    try:
        found = parse_status(runner.run(["zpool", "status", "-P", "-L"]).stdout)
        sizes = dict(_pairs(runner.run(["zpool", "list", "-H", "-p", "-o", "name,size"]).stdout)) if found else {}
        sync = dict(_pairs(runner.run(["zfs", "get", "-H", "-t", "filesystem,volume", "-o", "name,value", "sync"]).stdout)) if found else {}
    except StorageError as error:
        return Pools(nocacheflush=nocacheflush, problems=(f"The ZFS pools could not be read: {error.message}",))
    pools = [
        dataclasses.replace(
            pool,
            size=int(sizes[pool.name]) if sizes.get(pool.name, "").isdigit() else 0,
            sync={name: word for name, word in sync.items() if name.split("/", 1)[0] == pool.name},
        )
        for pool in found
    ]
    return Pools(tuple(pools), nocacheflush)


def _pairs(text: str) -> t.Iterator[tuple[str, str]]:
    for line in text.splitlines():
        name, _tab, value = line.partition("\t")
        if value:
            yield name, value.strip()


def with_pools(devices: Devices, pools: Pools, root: Path) -> tuple[Devices, dict[str, list[LayerFacts]]]:
    """The devices of a host with its pools among them, as ``zfs:POOL``, zvols lying on them, and the facts of each."""
    known = {pool.name: pool for pool in pools.pools}
    named = {
        device.signature.label: device for device in devices if device.signature is not None and device.signature.type == _MEMBER and device.signature.label
    }
    facts: dict[str, list[LayerFacts]] = {}
    virtual = []
    for pool in pools.pools:
        names = _Names(devices)
        facts[PREFIX + pool.name] = pool_facts(pool, names, nocacheflush=pools.nocacheflush)
        virtual.append(_device(pool.name, pool.size, names.of(path for word in _DATA_CLASSES for vdev in pool.vdevs.get(word, ()) for path in vdev.disks)))
    for name in named:
        if name not in known:
            why = "is a ZFS pool that is not imported here or whose devices cannot be read (zpool)"
            members = [one.name for one in devices if one.signature is not None and one.signature.type == _MEMBER and one.signature.label == name]
            facts[PREFIX + name] = [LayerFacts("pool", {}, None, why, device_loss=UNKNOWN, device_loss_reason=why)]
            virtual.append(_device(name, sum(devices.get(one).size for one in members), tuple(members)))
    zvols = {device.name: _dataset(device) for device in devices if _is_zvol(device)}
    replaced = []
    for device in devices:
        dataset = zvols.get(device.name)
        if dataset is None or dataset.split("/", 1)[0] not in known:
            replaced.append(device)
            continue
        pool = known[dataset.split("/", 1)[0]]
        replaced.append(dataclasses.replace(device, kind="zvol", slaves=(PREFIX + pool.name,)))
        facts[device.name] = [_dataset_facts([dataset], pool)]
    return (Devices([*replaced, *virtual], root), facts) if virtual or zvols else (devices, facts)


def _device(name: str, size: int, slaves: tuple[str, ...]) -> BlockDevice:
    return BlockDevice(PREFIX + name, PREFIX + name, PREFIX + name, kind="zfs", size=size, slaves=slaves, transport="virtual")


def mounted_pool(number: str, root: Path) -> BlockDevice | None:
    """The pool of a mounted file system, which no block device of the kernel is. :param number: ``major:minor``."""
    try:
        mounts = read_mounts(root / "proc/self/mountinfo")
    except OSError:
        return None
    source = next((one.source for one in mounts if one.kind == "zfs" and one.number == number), None)
    return None if source is None else _device(source.split("/", 1)[0], 0, ())


def is_in_pool(name: str) -> bool:
    """Whether a kernel name is that of a zvol, or stands for a pool."""
    return name.startswith(PREFIX) or bool(re.match(r"^zd\d+$", name))


def parse_kstat(text: str, names: t.Container[str]) -> dict[str, int]:
    """The values of a kstat by name; other lines are passed over, for each version of OpenZFS has its own."""
    rows = (line.split() for line in text.splitlines())
    return {row[0]: int(row[2]) for row in rows if len(row) == 3 and row[0] in names and row[2].isdigit()}


def _is_zvol(device: BlockDevice) -> bool:
    return is_in_pool(device.name)


def _dataset(device: BlockDevice) -> str | None:
    """The name of a zvol, from the link that its udev rule makes: ``/dev/zvol/tank/images``."""
    return next((link[len("/dev/zvol/") :] for link in (*device.by_id, *device.links) if link.startswith("/dev/zvol/")), None)


class _Names:
    """Kernel names of paths; a device that this host does not have keeps its path."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices

    def of(self, paths: t.Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name in map(self._one, paths) if name))

    def _one(self, path: str) -> str | None:
        by_path = next((device.name for device in self._devices if device.path == path or path in device.by_id or path in device.links), None)
        if by_path is not None or not path.startswith("/"):
            return by_path
        try:
            return self._devices.resolve(path).name
        except DeviceMissing:
            return None


def pool_facts(pool: Pool, names: _Names, *, nocacheflush: bool = False) -> list[LayerFacts]:
    """What a pool means for a write. Log devices hold it until the next transaction group; the read cache (L2ARC) never matters."""
    groups, lost = [], []
    for word in _DATA_CLASSES:
        for vdev in pool.vdevs.get(word, ()):
            seen = [names.of(child.disks) for child in (vdev.children or (vdev,))]
            lost += [path for path in vdev.disks if not names.of([path])]
            if word != "logs":
                groups.append(_group(vdev, tuple(seen)))
    state = {
        "pool": pool.name,
        "state": pool.state,
        "zfs_nocacheflush": nocacheflush,
        "vdevs": {word: [vdev.name for vdev in found] for word, found in pool.vdevs.items()},
        "sync": {name: value for name, value in pool.sync.items() if value != "standard"},
    }
    plain = LayerFacts(
        "pool",
        state,
        False,
        "is a ZFS pool, which flushes its devices itself",
        media=names.of(path for word in _DATA_CLASSES for vdev in pool.vdevs.get(word, ()) for path in vdev.disks),
        groups=tuple(groups),
        ends_flushes="sends no flushes (zfs_nocacheflush=1)" if nocacheflush else "",
        lazy="sends flushes only when something was written",
        note=_log_note(pool),
    )
    doubt = []
    if lost:
        why = f"has devices that are not block devices of this host ({', '.join(lost[:_NAMED])})"
        doubt = [LayerFacts("pool", {}, None, why, device_loss=UNKNOWN, device_loss_reason=why)]
    elif not any(pool.vdevs.get("data", ())):
        why = "is a ZFS pool whose devices could not be read"
        doubt = [LayerFacts("pool", {}, None, why, device_loss=UNKNOWN, device_loss_reason=why)]
    return [plain, *doubt, _dataset_facts(list(pool.sync), pool)]


def _group(vdev: Vdev, members: tuple[tuple[str, ...], ...]) -> Group:
    if not vdev.children or vdev.parity == 0:
        return Group(members) if len(members) == 1 else Group((tuple(name for member in members for name in member),))
    well = tuple(names for names, child in zip(members, vdev.children) if child.state == _WHOLE) or members
    left = max(vdev.parity - vdev.missing, 0)
    condition = f"is not whole ({vdev.missing} missing)" if vdev.missing else "is whole"
    return Group(well, left, f"has the vdev {vdev.name}, which {condition}")


def _dataset_facts(datasets: t.Sequence[str], pool: Pool) -> LayerFacts:
    """What counts for what is written to these datasets and not for others on the same pool."""
    careless = [name for name in datasets if pool.sync.get(name) == "disabled"]
    if not careless:
        return LayerFacts("dataset", {}, False, "honours flushes", top_only=True)
    named = ", ".join(careless[:_NAMED]) + (f" and {len(careless) - _NAMED} more" if len(careless) > _NAMED else "")
    why = f"acknowledges an fsync before anything is written, on {named} (sync=disabled)"
    return LayerFacts("dataset", {"sync": "disabled"}, True, why, loses=True, top_only=True)


def _log_note(pool: Pool) -> str:
    single = [path for vdev in pool.vdevs.get("logs", ()) if vdev.parity - vdev.missing < 1 for path in vdev.disks]
    if not single:
        return ""
    where = " and ".join(single)
    return f"The newest synchronous writes are in the log on {where}, which is not mirrored: they are lost if it fails during a power failure."
