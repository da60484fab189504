# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Arrays of the kernel: MD, and the targets raid and mirror of device-mapper, which LVM uses.

Sources: Documentation/admin-guide/md.rst (level, degraded, raid_disks, layout, sync_action, consistency_policy, journal_mode,
dev-*/state and slot), Documentation/driver-api/md/raid5-cache.rst, Documentation/admin-guide/device-mapper/dm-raid.rst (the status
line), ``mirror_status`` of drivers/md/dm-raid1.c.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.model import UNKNOWN, Group, LayerFacts

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

#: Levels that write a stripe in several steps; a power cut between them, with a disk missing, loses what was flushed before.
_PARITY = {"raid4": 1, "raid5": 1, "raid6": 2}
_MD_WORDS = ("level", "degraded", "raid_disks", "layout", "sync_action", "consistency_policy", "journal_mode")
_RAID_MEMBER = re.compile(r"_r(?:image|meta)_(\d+)$")
_IN_SYNC = "A"
_GONE = "D-"


@frozen
class Array:
    """An array of any driver.

    :param level: ``raid0``, ``raid1``, ``raid5``…
    :param members: what holds data, each with all its devices.
    :param missing: how many more members it should have; ``None`` if that is not known.
    :param copies: of each block, for levels that keep copies.
    :param unfinished: whether its parity is being made or made again.
    :param guarded: whether a journal or a partial parity log records torn stripes.
    """

    level: str
    members: tuple[tuple[str, ...], ...]
    missing: int | None = 0
    copies: int = 1
    unfinished: bool = False
    guarded: bool = False

    @property
    def tolerance(self) -> int | None:
        """How many more members may be lost."""
        if self.missing is None:
            return None
        if self.level in _PARITY:
            return 0 if self.unfinished else max(_PARITY[self.level] - self.missing, 0)
        return max(self.copies - 1 - self.missing, 0)

    @property
    def torn(self) -> bool:
        """Whether a power cut can tear a stripe that nothing makes whole again."""
        return self.level in _PARITY and not self.guarded and bool(self.missing or self.unfinished)

    @property
    def group(self) -> Group:
        """The members as one group."""
        return Group(self.members, self.tolerance, self._why)

    @property
    def _why(self) -> str:
        if self.missing is None:
            return f"is a {self.level} array that does not report whether it is whole"
        if self.level not in _PARITY and self.copies < 2:
            return ""
        if self.unfinished and self.level in _PARITY:
            return f"is a {self.level} array whose parity is not complete yet"
        return f"is a {self.level} array that is not whole ({self.missing} missing)" if self.missing else f"is a whole {self.level} array"


def array_facts(array: Array, state: t.Mapping[str, t.Any], media: tuple[str, ...] | None = None, *extra: Group, lazy: str = "") -> LayerFacts:
    """What an array means for a write."""
    if not array.members and array.missing is not None:
        why = "is an array whose members cannot be seen"
        return LayerFacts("array", state, None, why, device_loss=UNKNOWN, device_loss_reason=why)
    why, loses = "is an array without a volatile cache", False
    if array.torn:
        why, loses = f"is a {array.level} array that is not whole and has neither a journal nor a partial parity log", True
    # An array that needs every member is no group: each of them is one.
    groups = (array.group, *extra) if array.tolerance is None or array._why else (*(Group((member,)) for member in array.members), *extra)
    return LayerFacts("array", state, False, why, loses=loses, media=media, groups=groups, lazy=lazy)


def read_md(devices: Devices, _runner: Runner, root: Path, _protected: t.Sequence[str]) -> t.Iterator[tuple[str, LayerFacts]]:
    """MD arrays. With parity and a disk missing, a stripe that a power cut tears can no longer be distinguished from a whole one."""
    for device in devices:
        if device.kind != "md":
            continue
        folder = root / "sys/class/block" / device.name / "md"
        words = {name: read_attribute(folder / name) for name in _MD_WORDS}
        members = {
            name: {"state": read_attribute(folder / f"dev-{name}/state") or "", "slot": read_attribute(folder / f"dev-{name}/slot") or ""}
            for name in device.slaves
        }
        state: dict[str, t.Any] = {name: word for name, word in words.items() if word is not None}
        if any(reported["state"] for reported in members.values()):
            state["members"] = members
        yield device.name, md_facts(device, state)


def md_facts(device: BlockDevice, state: t.Mapping[str, t.Any]) -> LayerFacts:
    """One MD array from sysfs.

    :param state: the files of its ``md`` folder by name, and ``members``: state and slot of each.
    """
    reported = state.get("members", {})
    states = {name: reported.get(name, {}).get("state", "").split(",") for name in device.slaves}
    slots = {name: reported.get(name, {}).get("slot", "") for name in device.slaves}
    journal = [name for name in device.slaves if slots[name] == "journal" or "journal" in states[name]]
    # Spares and what has failed get neither data nor flushes.
    used = [name for name in device.slaves if name not in journal and "faulty" not in states[name] and slots[name] != "none"]
    synced = [name for name in used if "spare" not in states[name]] or used
    level = state.get("level", "")
    array = Array(
        level,
        tuple((name,) for name in synced),
        _md_missing(state),
        _md_copies(state, level),
        state.get("sync_action") in ("resync", "recover") and level in _PARITY,
        state.get("consistency_policy") in ("journal", "ppl"),
    )
    keeps_newest = bool(journal) and "[write-back]" in state.get("journal_mode", "")
    extra = (Group(tuple((name,) for name in journal), newest=True),) if keeps_newest else ()
    lazy = "has a journal, which was flushed when each write was acknowledged" if journal else ""
    return array_facts(array, state, (*synced, *journal), *extra, lazy=lazy)


def _md_missing(state: t.Mapping[str, t.Any]) -> int | None:
    if state.get("level") in ("raid0", "linear"):
        return 0
    return int(state["degraded"]) if state.get("degraded", "").isdigit() else None


def _md_copies(state: t.Mapping[str, t.Any], level: str) -> int:
    if level == "raid1":
        # While an array is reshaped: "3 (2)".
        count = state.get("raid_disks", "").split(" ", 1)[0]
        return int(count) if count.isdigit() else 1
    if level == "raid10":
        layout = int(state["layout"]) if state.get("layout", "").isdigit() else 0x102
        return max((layout & 0xFF) * (layout >> 8 & 0xFF), 1)
    return 1


def read_dm(devices: Devices, runner: Runner, _root: Path, _protected: t.Sequence[str]) -> t.Iterator[tuple[str, LayerFacts]]:
    """Arrays of device-mapper; one ``dmsetup status`` if there is one."""
    for device in devices:
        if device.dm_name is not None and not device.dm_targets and len(device.slaves) > 1 and device.kind != "multipath":
            why = "is on several devices, and how they are combined cannot be read (dmsetup)"
            yield device.name, LayerFacts("mapping", {}, False, "is a mapping without a volatile cache", device_loss=UNKNOWN, device_loss_reason=why)
    arrays = [device for device in devices if {"raid", "mirror"} & set(device.dm_targets)]
    if not arrays:
        return
    lines = (line.partition(": ") for line in runner.run(["dmsetup", "status"]).stdout.splitlines())
    status = {name: rest.split() for name, _colon, rest in lines if len(rest.split()) > 3 and rest.split()[2] in ("raid", "mirror")}
    for device in arrays:
        yield device.name, dm_facts(device, devices, status.get(device.dm_name or "", []))


def dm_facts(device: BlockDevice, devices: Devices, words: t.Sequence[str]) -> LayerFacts:
    """One array of device-mapper from its status line, cut into words; without words its state is not known."""
    reader = {"raid": _dm_raid, "mirror": _dm_mirror}.get(words[2] if len(words) > 2 else "")
    try:
        array, health = reader(device, devices, words[3:]) if reader else (None, "")
    except (IndexError, ValueError):
        array, health = None, ""
    if array is None:
        return array_facts(Array("device-mapper", (), None), {"health": None})
    alive = tuple(name for member, sign in zip(array.members, health) if sign not in _GONE for name in member)
    members = tuple(member for member, sign in zip(array.members, health) if sign == _IN_SYNC) or array.members
    return array_facts(
        Array(array.level, members, array.missing, array.copies, array.unfinished, array.guarded),
        {"level": array.level, "degraded": str(array.missing), "health": health},
        alive or None,
    )


def _dm_raid(device: BlockDevice, devices: Devices, words: t.Sequence[str]) -> tuple[Array | None, str]:
    """``raid1 2 AA 2097152/2097152 idle 0 0 -``: type, number of members, health, progress, action, mismatches, offset, journal."""
    level = re.sub(r"^(raid\d+)_.*$", r"\1", words[0])
    count, health = int(words[1]), words[2]
    images: dict[int, list[str]] = {}
    for name in device.slaves:
        below = devices.get(name)
        match = _RAID_MEMBER.search(below.dm_name or "") if below is not None else None
        if match:
            images.setdefault(int(match.group(1)), []).append(name)
    if sorted(images) != list(range(count)) or len(health) != count:
        return None, ""
    missing = sum(sign != _IN_SYNC for sign in health)
    copies = {"raid1": count, "raid10": 2}.get(level, 1)
    guarded = len(words) > 7 and words[7] in ("A", "P")
    members = tuple(tuple(images[number]) for number in range(count))
    return Array(level, members, 0 if level == "raid0" else missing, copies, len(words) > 4 and words[4] == "resync", guarded), health


def _dm_mirror(_device: BlockDevice, devices: Devices, words: t.Sequence[str]) -> tuple[Array | None, str]:
    """``2 253:0 253:1 100/100 1 AA 3 disk 253:2 A``: members, progress, health, log."""
    count = int(words[0])
    by_number = {one.number: one.name for one in devices}
    members = tuple((by_number[number],) for number in words[1 : 1 + count] if number in by_number)
    done, _slash, total = words[1 + count].partition("/")
    health = words[3 + count]
    if len(members) != count or len(health) != count:
        return None, ""
    missing = sum(sign != _IN_SYNC for sign in health) if done == total else count - 1
    return Array("mirror", members, missing, count), health
