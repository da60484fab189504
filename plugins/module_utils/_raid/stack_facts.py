# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the caches of a RAID controller make of a flushed write on each of its volumes.

A controller that writes back answers a flush as soon as the data are in its own memory, so a flush proves nothing about the drives.
What was flushed is in the controller's memory (safe while its battery or capacitor is), in the caches of its drives (lost, for
controllers do not pass flushes on to members unless they report it), or on the SSDs of a cache inside the controller.

The tools run only if there is a disk behind a controller at all, and each runs once.
"""

from __future__ import annotations

import dataclasses
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import declares
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import on_host, registry
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    CACHED,
    DEFAULT,
    DIRTY,
    DISABLED,
    ENABLED,
    PER_DRIVE,
    UNKNOWN,
    WRITETHROUGH,
    CacheVolume,
    Controller,
    Drive,
    Volume,
    writes_back,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.tools import TOOLS, TOOLS_OF_DRIVER

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import RaidProvider

#: SSD caches that survive the loss of one SSD.
_REDUNDANT = frozenset({"1", "1E", "5", "5EE", "6", "10", "50", "60"})
_PARITY = frozenset({"5", "5EE", "6", "50", "60"})
#: The fewest drives of a whole volume: if fewer are listed, some are missing from the list.
_FEWEST_DRIVES = {"1": 2, "1E": 3, "10": 4, "5": 3, "5EE": 4, "6": 3, "50": 6, "60": 6}
_OUTLIVE_TWO = frozenset({"6", "60"})
_NOT_WHOLE = frozenset({"degraded", "partially_degraded", "rebuilding"})
SURVIVES = "survives"
LOSES = "loses"
#: Modes in which disks are drives as they are.
_PASSING = frozenset({"hba", "jbod"})
#: Usages of drives that a volume, or an SSD cache of volumes, is made of.
_IN_VOLUMES = frozenset({"configured", "cache"})


@frozen
class DiskFinding:
    """What is known of one disk behind a controller; the fields of a layer of the stack, in their order.

    :param volatile: whether acknowledged writes may be lost in a power cut here; ``None`` if that is not known.
    :param why: a clause that can follow the name of the disk.
    :param loses: whether a power cut can take flushed writes here.
    :param device_loss: ``survives``, ``loses`` or ``unknown``: what the failure of one drive does.
    :param device_loss_reason: a clause that can follow the name of the disk.
    :param newest: whether what a failure takes is the newest data, which is only in an SSD cache.
    """

    state: t.Mapping[str, t.Any] = field(default_factory=dict)
    volatile: bool | None = None
    why: str = ""
    loses: bool = False
    device_loss: str = UNKNOWN
    device_loss_reason: str = ""
    newest: bool = False


@frozen
class Behind:
    """All disks behind RAID controllers.

    :param findings: by kernel name.
    :param passed_through: kernel names of disks that are drives as they are (HBA mode, JBOD): only the drive itself reports its cache.
    :param problems: tools that failed, one sentence each.
    """

    findings: t.Mapping[str, DiskFinding] = field(default_factory=dict)
    passed_through: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()


def read_behind(
    devices: t.Iterable[BlockDevice],
    runner: Runner,
    root: Path,
    find_tools: t.Callable[[Runner], t.Sequence[RaidProvider]],
    protected: t.Collection[str] = (),
) -> Behind:
    """Query the tools about the disks behind RAID controllers; if there is no such disk, no tool is run.

    :param find_tools: the tools that are on the host.
    :param protected: serials, WWNs or models of drives whose cache is known to survive a power cut.
    """
    disks = [device for device in devices if device.transport == "raid" and device.kind == "disk" and device.size]
    if not disks:
        return Behind()
    drivers = {disk.driver for disk in disks}
    tools = registry.tools_for(drivers, find_tools(runner))
    host = registry.read_host(tools, tolerant=True)
    problems = {source.provider.name: " ".join(source.problems[:3]) for source in host.sources if source.problems}
    damaged = {id(seen.controller) for seen in host.controllers if seen.source.reading.lost_for(seen.controller.id) or not seen.source.reading.complete}
    queried = _QueriedTools(frozenset(tool.name for tool in tools), problems, frozenset(damaged))
    controllers = [seen.controller for seen in host.controllers]
    return _judge(disks, controllers, root, queried, frozenset(word.strip().lower() for word in protected))


@frozen
class _QueriedTools:
    """The tools that were run, by name, what is wrong with the answers of some, and the controllers (``id()``) that were not reported whole."""

    tools: frozenset[str]
    problems: t.Mapping[str, str]
    damaged: frozenset[int] = frozenset()


def _judge(disks: t.Sequence[BlockDevice], controllers: t.Sequence[Controller], root: Path, queried: _QueriedTools, protected: frozenset[str]) -> Behind:
    matches = on_host.match(disks, controllers, root)
    findings: dict[str, DiskFinding] = {}
    passed: set[str] = set()
    for disk in disks:
        matched = matches.get(disk.name)
        place = on_host.place_of(disk, root)
        near = on_host.controllers_at(place, controllers)
        if matched is not None and isinstance(matched[1], Volume):
            found = volume_finding(matched[0], matched[1], protected)
            findings[disk.name] = _doubted(found) if id(matched[0]) in queried.damaged else found
        elif not on_host.is_volume(disk, place) and _passes(matched, near, queried.damaged):
            passed.add(disk.name)
        else:
            findings[disk.name] = _unmatched(disk, near, queried)
    return Behind(findings, frozenset(passed), tuple(queried.problems.values()))


def _passes(matched: on_host.Match | None, near: t.Sequence[Controller], damaged: t.Container[int]) -> bool:
    """Whether a disk is one of the drives of its controller as it is. Of what was reported in part, a volume may be missing."""
    if matched is not None:
        return id(matched[0]) not in damaged and isinstance(matched[1], Drive) and matched[1].usage not in _IN_VOLUMES
    if len(near) != 1 or id(near[0]) in damaged or near[0].mode not in _PASSING:
        return False
    return not near[0].volumes and not any(drive.usage in _IN_VOLUMES for drive in near[0].drives)


def _doubted(finding: DiskFinding) -> DiskFinding:
    """A favorable result of half an output is not used: the other half may have reported the contrary."""
    if finding.volatile is not False:
        return finding
    doubt = "as far as the output of the tool goes, which is not whole"
    return dataclasses.replace(
        finding, volatile=None, why=f"{finding.why}, {doubt}", device_loss=UNKNOWN, device_loss_reason=f"{finding.device_loss_reason}, {doubt}", newest=False
    )


def _unmatched(disk: BlockDevice, near: t.Sequence[Controller], queried: _QueriedTools) -> DiskFinding:
    """A disk that no tool reports, with what to do about it."""
    driver = disk.driver or "unknown driver"
    behind = f"is behind a RAID controller ({driver})"
    fitting = [name for name, tool in TOOLS.items() if name in queried.tools and driver in tool.drivers]
    failed = [queried.problems[tool].rstrip(".") for tool in fitting if tool in queried.problems]
    if driver not in TOOLS_OF_DRIVER:
        why = f"{behind} that none of the supported tools can read"
    elif near:
        why = f"{behind}, and none of the volumes of {' and '.join(controller.label for controller in near)} is surely this disk"
    elif failed:
        why = f"{behind}, and its caches could not be read: {failed[0]}"
    elif fitting:
        why = f"{behind}, and {' and '.join(fitting)} shows no controller there; such controllers are read by {TOOLS_OF_DRIVER[driver]}"
    else:
        why = f"{behind}, and the tool that reports its caches is not installed: {TOOLS_OF_DRIVER[driver]}"
    return DiskFinding({"controller": near[0].model if len(near) == 1 else None, "driver": disk.driver}, None, why, device_loss_reason=why)


def volume_finding(controller: Controller, volume: Volume, protected: t.Collection[str] = frozenset()) -> DiskFinding:
    """Whether a flushed write to a volume survives, as far as its controller decides; pure.

    The worst word counts: what loses writes, then what is not known, then what keeps them.

    :param protected: in lower case, serials, WWNs or models of drives that keep their cache through a power cut.
    """
    drives = drive_caches(controller, volume)
    label = f"is volume {volume.name or volume.id} of {controller.label}"
    losing, unknown, kept = [], [], []
    for verdict, words in (
        _own_cache(controller, volume),
        _drives_verdict(drives, _all_protected(controller, volume, protected)),
        *_ssd_verdicts(controller, volume),
        *_write_hole(controller, volume),
    ):
        (losing if verdict else unknown if verdict is None else kept).append(words)
    state = _state(controller, volume, drives)
    outcome, words = device_loss(controller, volume)
    newest = outcome == LOSES and _ssd_loss(controller, volume) is not None
    fate = {"device_loss": outcome, "device_loss_reason": f"{label}, {words}", "newest": newest}
    if losing:
        return DiskFinding(state, True, f"{label}, which {' and '.join(losing)}", loses=True, **fate)
    if unknown:
        return DiskFinding(state, None, f"{label}, and {' and '.join(unknown)}", **fate)
    return DiskFinding(state, False, f"{label}, which {' and '.join(kept)}", **fate)


def device_loss(controller: Controller, volume: Volume) -> tuple[str, str]:
    """What the failure of one drive does to a volume: ``survives``, ``loses`` or ``unknown``, and a clause with the reason; pure.

    The SSD cache of the controller is checked first: what it holds is not on the volume yet, however redundant that is.
    """
    ssd = _ssd_loss(controller, volume)
    if ssd is not None and ssd[0] == LOSES:
        return ssd
    level, status = volume.raid_level, volume.status
    own = UNKNOWN, f"and what becomes of it when a drive fails is not reported (RAID level {level}, {status.replace('_', ' ')})"
    if level in ("0", "jbod", "single", "simple_volume"):
        own = LOSES, f"which is lost with any of its drives (RAID level {level})"
    elif level in _REDUNDANT and status == "optimal":
        own = SURVIVES, f"which is RAID {level} and whole"
    elif level in _OUTLIVE_TWO and status == "partially_degraded":
        own = SURVIVES, f"which is RAID {level} and has lost one drive, and can lose another"
    elif level in _REDUNDANT - _OUTLIVE_TWO and status in _NOT_WHOLE:
        own = LOSES, f"which is RAID {level} and not whole ({status.replace('_', ' ')})"
    return ssd if ssd is not None and own[0] == SURVIVES else own


def _ssd_loss(controller: Controller, volume: Volume) -> tuple[str, str] | None:
    """What the failure of one SSD does to writes that are only in the controller's SSD cache; ``None`` if none are, or all survive."""
    holds = _ssd_holds_writes(controller, volume)
    if holds is False:
        return None
    container = _container(controller, volume.maxcache.cache_volume) if volume.maxcache is not None else None
    if holds is None or container is None or container.raid_level == UNKNOWN:
        return UNKNOWN, "and nothing is reported about whether its SSD cache holds writes that one SSD alone has"
    if container.raid_level in _REDUNDANT and container.status == "optimal":
        return None
    weak = "does not survive the loss of one SSD" if container.raid_level not in _REDUNDANT else f"is {container.status.replace('_', ' ')}"
    return LOSES, f"whose newest data is only in its SSD cache (cache volume {container.id}, RAID {container.raid_level}), which {weak}"


def _has_no_ssds(controller: Controller) -> bool:
    """Whether the controller reports that no SSD is in its cache: then it caches nothing, whatever its volumes are set to."""
    ssds = controller.maxcache
    return ssds is not None and ssds.assigned == 0 and not ssds.pool and not ssds.volumes


def _ssd_holds_writes(controller: Controller, volume: Volume) -> bool | None:
    """Whether an SSD cache inside the controller holds writes that the volume lacks; ``None`` if that is not reported."""
    cache = volume.maxcache
    if cache is None:
        return None if volume.acceleration == "maxcache" else False
    if _has_no_ssds(controller) and cache.dirty != DIRTY:
        return False
    on = cache.write.effective if cache.write.effective != UNKNOWN else cache.write.configured
    if (on == DISABLED or cache.write_policy == WRITETHROUGH) and cache.dirty != DIRTY:
        return False
    if on == UNKNOWN and cache.write_policy == UNKNOWN:
        used = volume.acceleration == "maxcache" or cache.cache_volume is not None or cache.dirty == DIRTY or cache.read.configured == ENABLED
        return None if used else False
    return None if cache.write_policy == UNKNOWN else True


def _write_hole(controller: Controller, volume: Volume) -> t.Iterator[tuple[bool | None, str]]:
    """Parity with a drive missing: a stripe that a power cut tears loses what was flushed before, unless a protected memory keeps it."""
    if volume.raid_level in _PARITY and volume.status in _NOT_WHOLE and controller.protection.protects is not True:
        words = f"is RAID {volume.raid_level} with a drive missing ({volume.status.replace('_', ' ')}) and has no working protection for a torn stripe"
        yield (None if controller.protection.protects is None else True), words if controller.protection.protects is False else f"it {words}"


def _own_cache(controller: Controller, volume: Volume) -> tuple[bool | None, str]:
    """Whether the controller's own cache loses writes in a power cut, and the words for it."""
    holds = writes_back(volume.write.effective)
    how = "writes back"
    if volume.io.effective == CACHED and holds is not True:
        # With cached I/O, writes are cached whatever the write policy.
        holds, how = True, "caches writes (I/O policy cached)"
    if holds is None:
        return None, "its tool does not report whether it writes back"
    if not holds:
        return False, "writes through"
    protects = controller.protection.protects
    raw = f" ({controller.protection.raw})" if controller.protection.raw else ""
    if protects is None:
        return None, f"it {how} while nothing is reported about the battery or capacitor that would protect its cache{raw}"
    if protects:
        return False, f"{how} into a protected cache{raw}"
    return True, f"answers flushes from its own cache, {how} and has no working protection: {_condition(controller)}{raw}"


def _condition(controller: Controller) -> str:
    """The state of the protection as a clause."""
    if controller.protection.kind == "none":
        return "it has neither battery nor capacitor"
    unit = controller.protection.kind if controller.protection.kind != UNKNOWN else "battery or capacitor"
    words = {"failed": "has failed", "missing": "is missing", "learning": "is in a learn cycle"}
    return f"its {unit} {words.get(controller.protection.health, 'is ' + controller.protection.health)}"


def drive_caches(controller: Controller, volume: Volume) -> str:
    """The caches of the drives below a volume: ``enabled`` if one is, ``disabled`` if all are known to be, else ``default`` or ``unknown``.

    The report of a drive takes precedence over a policy, and a policy counts only where drives report nothing. A spare holds no data until a drive
    fails, and is a member in name only until then.
    """
    reported = [UNKNOWN if drive is None else drive.write_cache for drive in holding(controller, volume)]
    if ENABLED in reported:
        return ENABLED
    fewest = _FEWEST_DRIVES.get(volume.raid_level, 1) if volume.status == "optimal" else 1
    if len(reported) >= fewest and not volume.members_untold and all(word == DISABLED for word in reported):
        return DISABLED
    policy = volume.drive_cache
    if policy == UNKNOWN:
        policy = next((controller.drive_cache[name] for name in ("configured", "all") if name in controller.drive_cache), UNKNOWN)
    return UNKNOWN if policy == PER_DRIVE else policy


def holding(controller: Controller, volume: Volume) -> list[Drive | None]:
    """The drives that hold the data of a volume; ``None`` for one that is not reported."""
    drives = {drive.address: drive for drive in controller.drives}
    members = [drives.get(address) for address in volume.members]
    return [drive for drive in members if drive is None or drive.usage != "spare"]


def _all_protected(controller: Controller, volume: Volume, protected: t.Collection[str]) -> bool:
    """Whether every drive of a volume is declared to keep its cache."""
    known = holding(controller, volume)
    return bool(known) and not volume.members_untold and all(drive is not None and declares(protected, drive.traits) for drive in known)


def _drives_verdict(drives: str, protected: bool) -> tuple[bool | None, str]:
    if protected and drives != DISABLED:
        return False, "has drives that are declared to survive power failures"
    if drives == ENABLED:
        return True, "answers flushes itself and leaves what was flushed in the caches of its drives, which are on"
    if drives == DISABLED:
        return False, "keeps the caches of its drives off"
    if drives == DEFAULT:
        return None, "it answers flushes itself while the caches of its drives are left at their default, which is not reported"
    return None, "it answers flushes itself while nothing is reported about the caches of its drives"


def _ssd_verdicts(controller: Controller, volume: Volume) -> t.Iterator[tuple[bool | None, str]]:
    """What an SSD cache inside the controller means in a power cut; nothing where it holds no writes."""
    holds = _ssd_holds_writes(controller, volume)
    if holds is False:
        return
    cache = volume.maxcache
    if cache is None:
        yield None, "nothing is reported about how its SSD cache writes"
    elif holds is None:
        on = cache.write.effective if cache.write.effective != UNKNOWN else cache.write.configured
        yield None, "nothing is reported about whether its SSD cache holds writes" if on == UNKNOWN else "the write policy of its SSD cache is not reported"
    else:
        container = _container(controller, cache.cache_volume)
        if container is None:
            yield None, "its SSD cache holds writes while nothing is reported about that cache"
        else:
            yield _ssds_verdict(controller, container)


def _ssds_verdict(controller: Controller, container: CacheVolume) -> tuple[bool | None, str]:
    """Whether the SSDs of a cache volume keep what they hold in a power cut."""
    by_address = {drive.address: drive.write_cache for drive in controller.drives}
    reported = [by_address.get(address, UNKNOWN) for address in container.members]
    if ENABLED in reported:
        return True, f"holds flushed writes on SSDs (cache volume {container.id}) whose own caches are on"
    if container.raid_level in _REDUNDANT and container.status != "optimal":
        return None, f"it holds flushed writes on SSDs (cache volume {container.id}) that are not healthy: {container.status.replace('_', ' ')}"
    if reported and all(word == DISABLED for word in reported):
        return False, f"holds writes on SSDs (cache volume {container.id}) whose own caches are off"
    return None, f"it holds flushed writes on SSDs (cache volume {container.id}) while nothing is reported about the caches of these SSDs"


def _container(controller: Controller, volume_id: str | None) -> CacheVolume | None:
    """The SSD cache of a volume: the one it names, else the only one of the controller."""
    volumes = controller.maxcache.volumes if controller.maxcache is not None else ()
    if volume_id is not None:
        return next((one for one in volumes if one.id == volume_id), None)
    return volumes[0] if len(volumes) == 1 else None


def _state(controller: Controller, volume: Volume, drives: str) -> dict[str, t.Any]:
    """The settings that are in effect, as plain data."""
    protection = controller.protection
    ssd = None
    if volume.maxcache is not None:
        container = _container(controller, volume.maxcache.cache_volume)
        ssd = {
            "read": volume.maxcache.read.effective,
            "write": volume.maxcache.write.effective,
            "write_policy": volume.maxcache.write_policy,
            "dirty": volume.maxcache.dirty,
            "cache_volume": container.id if container is not None else None,
            "raid_level": container.raid_level if container is not None else UNKNOWN,
        }
    return {
        "controller": controller.model,
        "id": controller.id,
        "provider": controller.provider,
        "driver": controller.driver,
        "volume": volume.id,
        "volume_name": volume.name,
        "raid_level": volume.raid_level,
        "status": volume.status,
        "write": {"configured": volume.write.configured, "effective": volume.write.effective},
        "read": {"configured": volume.read.configured, "effective": volume.read.effective},
        "io": volume.io.effective,
        "drive_cache": drives,
        "drive_serials": [*(drive and drive.serial for drive in holding(controller, volume)), *[None] * volume.members_untold],
        "protection": {"kind": protection.kind, "health": protection.health, "raw": protection.raw},
        "cache_status": controller.cache.status,
        "cache_reason": controller.cache.reason,
        "ssd_cache": ssd,
    }
