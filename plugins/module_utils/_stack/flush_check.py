# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One answer for each path that a user names: whether an fsync there reaches every volatile cache below.

Flushes that are really sent, and counted where they arrive: a proof, without a power cut, of what the queues only claim.

An fsync of a block device, opened for reading, sends one flush even if there is nothing to write (``blkdev_fsync``). Every disk
counts the flushes that it completed in field 16 of its ``stat`` (Documentation/block/stat.rst, since Linux 5.5; whole disks
only, not the layers of device-mapper and MD). Ours are sent one after the other, so that the kernel can merge none of
them with another of ours: a disk that counts fewer than were sent did not get them all, whatever else goes on. Others can only
add to the count. Against that, each burst is followed by a control time of the same length without flushes of ours: if the
bursts counted no more than chance allows, nothing is proved.

What a path that a user names has to do with flushes: a block device itself, or the one under a file system.

Sources: proc(5) (``/proc/self/mountinfo``), btrfs(5) and Documentation/filesystems/{ext4,xfs} (``barrier``, ``nobarrier``, ``logdev``),
``/sys/fs/btrfs/<uuid>/devices``.
"""

from __future__ import annotations

import dataclasses
import os
import re
import select
import signal
import stat
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, DeviceMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import printable
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import describe_suspended
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import Mount, read_mounts
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.layers import label
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.model import AT_RISK, UNKNOWN, Proof
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.power_cut import where_flushes_end
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.zfs import PREFIX

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
    from ansible_collections.cachefleet.storage.plugins.module_utils._stack.layers import Layers
    from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import Stack

_NO_BARRIERS = frozenset({"nobarrier", "barrier=0", "barrier=none"})


@frozen
class FlushTarget:
    """What is flushed for a path.

    :param devices: the block devices on which a flush of the path ends up; several for a btrfs of several devices or an external journal.
    :param mount: the mount point, if the path is no block device.
    :param barriers: whether its file system sends flushes at all.
    """

    path: str
    devices: tuple[BlockDevice, ...]
    mount: str | None = None
    barriers: bool = True


def resolve(path: str, devices: Devices, root: Path) -> FlushTarget:
    """The block devices behind a path.

    :raises DeviceMissing: if it is not there, or lies on no block device of this host.
    """
    if path.startswith(PREFIX) and devices.get(path) is not None:
        return FlushTarget(path, (t.cast("BlockDevice", devices.get(path)),))
    node = os.path.realpath(root / path.lstrip("/"))
    try:
        status = os.stat(node)
    except OSError as error:
        raise DeviceMissing(f"{path} cannot be read on this host ({error.strerror}): name a block device or a folder.", item=path) from None
    if stat.S_ISBLK(status.st_mode) or any(device.path == path for device in devices):
        return FlushTarget(path, (devices.resolve(path),))
    # What realpath added in front of it, if the host is not this one but a folder.
    inside = "/" + os.path.relpath(node, os.path.realpath(root)) if str(root) != "/" else node
    return _under_file_system(path, _mount_of(inside, root), devices, root)


def _under_file_system(path: str, mount: Mount | None, devices: Devices, root: Path) -> FlushTarget:
    if mount is None:
        raise DeviceMissing(f"{path} is on no mounted file system of this host.", item=path)
    if mount.kind == "zfs" and devices.get(PREFIX + mount.source.split("/", 1)[0]) is not None:
        return FlushTarget(path, (t.cast("BlockDevice", devices.get(PREFIX + mount.source.split("/", 1)[0])),), printable(mount.point))
    found = [device for device in devices if device.number == mount.number]
    if not found and mount.source.startswith("/dev/"):
        found = [devices.resolve(mount.source, path)]
    if not found:
        raise DeviceMissing(
            f"{path} is on {mount.kind} ({mount.source}), which is on no block device of this host: name a block device, or a folder that is.", item=path
        )
    journals = [devices.resolve(word.split("=", 1)[1], path) for word in mount.options if word.startswith("logdev=/dev/")]
    together = [*found, *journals, *_btrfs_companions(found[0], devices, root)]
    return FlushTarget(path, tuple({device.name: device for device in together}.values()), printable(mount.point), _NO_BARRIERS.isdisjoint(mount.options))


def _mount_of(path: str, root: Path) -> Mount | None:
    """The mount with the longest mount point above a path; of several there, the last, which hides the others."""
    try:
        mounts = read_mounts(root / "proc/self/mountinfo")
    except OSError:
        return None
    above = [mount for mount in mounts if mount.kind and f"{path}/".startswith(mount.point.rstrip("/") + "/")]
    return max(reversed(above), key=lambda mount: len(mount.point), default=None)


def _btrfs_companions(device: BlockDevice, devices: Devices, root: Path) -> t.Iterator[BlockDevice]:
    """The other devices of the btrfs on this one."""
    for folder in sorted((root / "sys/fs/btrfs").glob("*/devices")):
        names = sorted(place.name for place in folder.iterdir())
        if device.name in names:
            yield from devices.existing(names)


#: The flush counter in ``stat``, counted from 0; the two fields of flushes are the last of 17.
_FIELD, _FIELDS = 15, 17
#: Quiet rounds that prove, and rounds on a busy host: that all five bursts count more than all five control times happens by chance in one
#: of 252 cases.
QUIET_ROUNDS, ROUNDS = 2, 5
#: Seconds in which a device must answer a burst of flushes: longer than the kernel repeats a command that a drive does not answer (30 s).
PATIENCE = 120.0
#: Bytes of a problem.
_PROBLEM = 4096
#: Seconds that a control time lasts at least.
_CONTROL = 0.05
_METADATA = re.compile(r"_(?:tmeta|pmspare|rmeta_\d+)$")
#: Targets of device-mapper with a metadata device beside the data; LVM names which is which, others do not.
_METADATA_TARGETS = frozenset({"thin-pool", "era", "clone"})
_NVME = re.compile(r"^nvme(\d+)n(\d+)$")


@frozen
class Round:
    """How many flushes each counter counted in one burst, and in the control time after it; a counter that cannot be read is left out."""

    burst: t.Mapping[str, int]
    control: t.Mapping[str, int]


@frozen
class Arrival:
    """What became of the flushes at one medium.

    :param needed: whether a flushed write needs them there: not if the medium holds nothing volatile, or is declared safe.
    :param reached: whether all arrived; ``None`` if that cannot be determined.
    :param counted: what was counted in each burst, and ``control`` in each control time.
    """

    disk: str
    path: str
    needed: bool
    reached: bool | None
    reason: str
    counted: tuple[int, ...] = ()
    control: tuple[int, ...] = ()


class Sender(t.Protocol):
    """Sends so many flushes to a device, one after the other."""

    def __call__(self, device: BlockDevice, count: int) -> None: ...


def send_flushes(device: BlockDevice, count: int, patience: float = PATIENCE) -> None:
    """fsync a block device. Nothing is written but what was waiting in the page cache for this device, and that by the first.

    A process of its own does it: one that waits for a device which does not answer can neither go on nor be ended.

    :param patience: seconds in which all of them must be answered.
    :raises CommandFailed: if the device cannot be opened, answers a flush with an error, or does not answer.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            # Whoever waits for the end of this module's output must not wait for this process.
            null = os.open(os.devnull, os.O_RDWR)
            for standard in (0, 1, 2):
                os.dup2(null, standard)
            os.write(writer, _flush(device, count).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    try:
        answered = bool(select.select([reader], [], [], patience)[0])
        problem = (
            os.read(reader, _PROBLEM).decode(errors="replace") if answered else f"did not answer an fsync within {patience:g} seconds: check the kernel log"
        )
    finally:
        os.close(reader)
    if not answered:
        os.kill(child, signal.SIGKILL)
    elif os.waitpid(child, 0)[1] and not problem:
        problem = "could not be flushed: the process that sent the flushes ended early"
    if problem:
        raise CommandFailed(f"{label(device)} {problem}.", item=device.path)


def _flush(device: BlockDevice, count: int) -> str:
    """What went wrong; empty if nothing did."""
    try:
        descriptor = os.open(device.path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        return f"cannot be opened for reading ({error.strerror})"
    try:
        for _number in range(count):
            os.fsync(descriptor)
    except OSError as error:
        return f"answered an fsync with an error ({error.strerror}): check the kernel log, writes may be lost"
    return ""


class Counters:
    """The flush counters of a host."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root

    def read(self, names: t.Iterable[str]) -> dict[str, int]:
        """Flushes that each of these whole devices has completed since it came; one that does not count them is left out."""
        found = {}
        for name in names:
            try:
                words = (self.root / "sys/class/block" / name / "stat").read_text().split()
                if len(words) >= _FIELDS:
                    found[name] = int(words[_FIELD])
            except (OSError, ValueError):
                continue
        return found

    def of(self, path: t.Sequence[BlockDevice]) -> tuple[str, ...]:
        """The counters, one of which counts each flush that takes this way.

        Several paths to one drive share its flushes, and a request-based multipath device counts them itself. An NVMe drive
        with several ports counts them at its hidden path devices (``nvme0c0n1``).
        """
        shared = next((device for device in path if device.kind == "multipath"), None)
        if shared is not None:
            return (shared.name, *shared.slaves)
        name = path[-1].name
        match = _NVME.match(name)
        hidden = sorted(place.name for place in (self.root / "sys/class/block").glob(f"nvme{match.group(1)}c*n{match.group(2)}")) if match else []
        return (name, *hidden)


def count(
    device: BlockDevice,
    together: t.Collection[tuple[str, ...]],
    flushes: int,
    *,
    counters: Counters,
    send: Sender = send_flushes,
    settle: float = 0.0,
    clock: t.Callable[[], float] = time.monotonic,
    sleep: t.Callable[[float], None] = time.sleep,
) -> list[Round]:
    """Bursts of flushes to a device, each with its control time, until all is clear or enough was tried.

    :param together: the counters to compare, as :meth:`Counters.of` gives them.
    :param settle: seconds between the first flush, which writes out what is dirty, and the first burst.
    :raises CommandFailed: if the device answers a flush with an error.
    """
    names = sorted({name for group in together for name in group})
    send(device, 1)
    sleep(settle)
    rounds: list[Round] = []
    while len(rounds) < ROUNDS:
        before, began = counters.read(names), clock()
        send(device, flushes)
        after, took = counters.read(names), clock() - began
        sleep(max(took, _CONTROL))
        later = counters.read(names)
        rounds.append(Round(_difference(before, after), _difference(after, later)))
        if all(_conclude(_added(rounds, group), flushes) is not None for group in together):
            break
    return rounds


def _difference(before: t.Mapping[str, int], after: t.Mapping[str, int]) -> dict[str, int]:
    return {name: after[name] - number for name, number in before.items() if name in after}


def _added(rounds: t.Sequence[Round], names: t.Sequence[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What some counters counted together in each burst and each control time; nothing if none of them counts."""
    if not any(name in one.burst for one in rounds for name in names):
        return (), ()
    bursts = tuple(sum(one.burst.get(name, 0) for name in names) for one in rounds)
    return bursts, tuple(sum(one.control.get(name, 0) for name in names) for one in rounds)


def _conclude(counted: tuple[tuple[int, ...], tuple[int, ...]], flushes: int) -> bool | None:
    """Whether all flushes arrived; ``None`` while it cannot be determined."""
    bursts, controls = counted
    if not bursts or min(bursts) < 0:
        return None
    if min(bursts) < flushes:
        return False
    if not any(controls):
        return True if len(bursts) >= QUIET_ROUNDS else None
    return True if len(bursts) >= ROUNDS and min(bursts) > max(controls) else None


def arrivals(layers: Layers, device: BlockDevice, flushes: int, rounds: t.Sequence[Round], counters: Counters) -> list[Arrival]:
    """What became of the flushes at every medium under a device.

    :param rounds: what was counted; empty if none could be sent.
    """
    ways: dict[str, list[list[BlockDevice]]] = {}
    for path in layers.paths(device):
        ways.setdefault(path[-1].name, []).append(path)
    return [_arrival(layers, paths, flushes, rounds, counters) for paths in ways.values()]


def _arrival(layers: Layers, paths: t.Sequence[t.Sequence[BlockDevice]], flushes: int, rounds: t.Sequence[Round], counters: Counters) -> Arrival:
    medium = paths[0][-1]
    counted = _added(rounds, counters.of(paths[0]))
    reached = _conclude(counted, flushes)
    needed, reason = _need(layers, medium)
    lazy = [_lazy(layers, path) for path in paths]
    deaf = next((end for path in paths for end in [where_flushes_end(layers, path)] if end is not None), None)
    if reached and deaf is not None and needed:
        # What was counted came on another way to the same disk.
        reached, message = None, f"No proof: flushes arrived there, but not on every way, since {deaf[1]}."
    elif reached:
        message = f"All of the {flushes} flushes of each burst were counted there."
    elif reached is False and all(lazy):
        # One that has nothing to flush and one that ignores flushes cannot be distinguished.
        reached, message = None, f"No proof either way: {lazy[0]}."
    elif reached is False:
        obliged = next(path for path, excuse in zip(paths, lazy) if not excuse)
        end = where_flushes_end(layers, obliged)
        what = f"Of {flushes} flushes {min(counted[0])} arrived"
        if end is None:
            message = f"{what}, although every queue on the way reports write back."
        else:
            message = f"{what}: {end[1] if end[0] < len(obliged) - 1 else 'the kernel believes that it has no write cache and sends it none'}."
    elif not rounds:
        message = f"No proof: {lazy[0]}." if lazy[0] else "No proof: no flush could be sent."
    elif not counted[0]:
        message = "No proof: this device does not count its flushes (disks do since Linux 5.5)."
    else:
        message = "No proof: the flushes of others hide ours; try again when there is less to do, or with more flushes."
    return Arrival(medium.name, medium.path, needed, reached, message if needed else f"{reason} {message}", *counted)


def _need(layers: Layers, medium: BlockDevice) -> tuple[bool, str]:
    if layers.is_protected(medium):
        return False, f"{label(medium)} is declared to survive power failures and needs no flushes."
    facts = layers.facts_of(medium)
    if facts and all(one.volatile is False for one in facts):
        return False, f"{label(medium)} {facts[0].why} and needs no flushes."
    return True, ""


def _lazy(layers: Layers, path: t.Sequence[BlockDevice]) -> str:
    """Why a flush that takes this way need not arrive although nothing is lost; nothing if it must."""
    for device in path[:-1]:
        for facts in layers.facts_of(device):
            if facts.lazy:
                return f"{label(device)} {facts.lazy}"
        if _METADATA_TARGETS & set(device.dm_targets) and not (device.dm_uuid or "").startswith("LVM-"):
            return f"{label(device)} flushes its metadata only when they change, and does not report which of its devices holds them"
        if _METADATA.search(device.dm_name or ""):
            return f"{label(device)} holds metadata, which are flushed only when they change"
    return ""


def proofs(device: BlockDevice, found: t.Sequence[Arrival], flushes: int) -> list[Proof]:
    """The same in the words of the verdict."""
    return [Proof(device.name, one.disk, one.reached, flushes) for one in found]


PROVED = "proved"
DISPROVED = "disproved"
UNPROVEN = "unproven"
NOT_NEEDED = "not_needed"
OUT_OF_SIGHT = "unknown"
MOST_FLUSHES = 1000
FLUSHES, SETTLE = 8, 0.5


@frozen
class Check:
    """What was found out about one block device.

    :param error: why no flush could be sent, as a sentence, or nothing.
    """

    device: BlockDevice
    arrivals: tuple[Arrival, ...]
    error: str = ""

    @property
    def state(self) -> str:
        """``proved``, ``disproved``, ``unproven`` or ``not_needed``; the worst medium decides."""
        if self.error:
            return UNPROVEN
        needed = [one.reached for one in self.arrivals if one.needed]
        if not needed:
            return NOT_NEEDED
        if False in needed:
            return DISPROVED
        return UNPROVEN if None in needed else PROVED


@frozen
class Means:
    """How flushes are sent and counted; tests bring their own."""

    counters: Counters
    send: Sender = send_flushes
    clock: t.Callable[[], float] = time.monotonic
    sleep: t.Callable[[float], None] = time.sleep


def check(
    stack: Stack, paths: t.Sequence[str], flushes: int = FLUSHES, settle: float = SETTLE, root: Path = Path("/"), means: Means | None = None
) -> tuple[Stack, list[dict[str, t.Any]]]:
    """Send flushes to what the paths name, one after the other.

    :param flushes: per burst.
    :param settle: seconds between the first flush and the first burst.
    :returns: the stack with the proofs, and one result for each path as plain data.
    :raises BadInput: for a count that makes no sense.
    :raises DeviceMissing: if a path lies on no block device.
    """
    if not 1 <= flushes <= MOST_FLUSHES:
        raise BadInput(f"flushes is {flushes}: use a number from 1 to {MOST_FLUSHES}.", item="flushes")
    if settle < 0:
        raise BadInput(f"settle is {settle:g}: use a number of seconds, 0 or more.", item="settle")
    means = means or Means(Counters(root))
    targets = [resolve(path, stack.devices, root) for path in paths]
    devices = {device.name: device for target in targets for device in target.devices}
    checks = {name: _check_device(stack, device, flushes, settle, means) for name, device in devices.items()}
    proved = stack.with_proofs([proof for one in checks.values() for proof in proofs(one.device, one.arrivals, flushes)])
    results = [_result(stack, proved, target, device, checks[device.name], flushes) for target in targets for device in target.devices]
    return proved, results


def _check_device(stack: Stack, device: BlockDevice, flushes: int, settle: float, means: Means) -> Check:
    together = {means.counters.of(path) for path in stack.paths(device)}
    rounds: list[Round] = []
    error = ""
    suspended = [one for one in (device, *stack.devices.parents(device)) if one.suspended]
    if suspended:
        # A flush would wait as long as it is suspended.
        error = describe_suspended(suspended[0])
    elif device.kind != "zfs":
        # A pool is no node that could be opened.
        try:
            rounds = count(device, together, flushes, counters=means.counters, send=means.send, settle=settle, clock=means.clock, sleep=means.sleep)
        except CommandFailed as failed:
            error = failed.message
    return Check(device, tuple(arrivals(stack, device, flushes, rounds, means.counters)), error)


def agreed(state: str, verdict: str) -> str:
    """The state of a check that does not contradict the verdict on the stack.

    That every flush reached the disks of the kernel is no proof where a controller answers for drives behind it that are not visible, and
    none where one of those is known to lose what it was given.
    """
    if state not in (PROVED, NOT_NEEDED):
        return state
    return {AT_RISK: DISPROVED, UNKNOWN: OUT_OF_SIGHT}.get(verdict, state)


def _result(stack: Stack, proved: Stack, target: FlushTarget, device: BlockDevice, found: Check, flushes: int) -> dict[str, t.Any]:
    before, after = stack.verdict(device), proved.verdict(device)
    state, verdict, reason = found.state, after.verdict, after.reason
    if not target.barriers and found.state != NOT_NEEDED:
        state, verdict = DISPROVED, AT_RISK
        reason = f"The file system on {target.mount} is mounted without barriers, so that it sends no flush at all."
    state = agreed(state, verdict)
    return {
        "path": target.path,
        "device": device.path,
        "mount": target.mount,
        "barriers": target.barriers,
        "flushes": flushes,
        "state": state,
        "error": found.error,
        "disks": [{**dataclasses.asdict(one), "counted": list(one.counted), "control": list(one.control)} for one in found.arrivals],
        "verdict": verdict,
        "reason": reason,
        "verdict_without_proof": before.verdict,
        "reason_without_proof": before.reason,
        "device_loss": after.device_loss,
        "device_loss_reason": after.device_loss_reason,
    }
