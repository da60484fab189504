# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What keeps data twice on a host besides its caches: MD arrays and volume groups, and the protection units of RAID controllers.

Sources: Documentation/admin-guide/md.rst (``level``, ``raid_disks``, ``degraded``, ``sync_action``); vgs(8), ``vg_missing_pv_count``.
"""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute, read_number
from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Finding
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import registry
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import HEALTHY, NONE, UNKNOWN, writes_back
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.tools import TOOLS_OF_DRIVER

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller, Volume
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import RaidProvider

#: Of a unit that will be well again by itself.
_PASSING = frozenset({"charging", "learning"})
#: What becomes well by itself, if nothing else happens.
_REBUILDING = frozenset({"rebuilding"})
_NOT_WHOLE = frozenset({"failed", "offline", "degraded", "partially_degraded"})


def array_findings(devices: Devices, root: Path = Path("/")) -> t.Iterator[Finding]:
    """MD arrays that lack members."""
    for device in devices:
        if device.kind != "md":
            continue
        folder = root / "sys/class/block" / device.name / "md"
        lacking, members = read_number(folder / "degraded"), (read_attribute(folder / "raid_disks") or "").split(" ", 1)[0]
        if not lacking:
            continue
        name = device.stable_path or device.path
        rebuilding = read_attribute(folder / "sync_action") in ("recover", "resync", "reshape")
        now = "it is being rebuilt" if rebuilding else "add a drive in place of the one that failed"
        words = f"{name} ({read_attribute(folder / 'level') or ''}, /dev/{device.name}) lacks {lacking} of {members} members: {now}."
        yield Finding("warning" if rebuilding else "critical", name, "array_degraded", words, lacking, 0)


def volume_group_findings(devices: Devices, runner: Runner) -> tuple[list[Finding], list[str]]:
    """Volume groups that lack physical volumes, and what could not be read; no command where there is no LVM."""
    if not any(_is_lvm(device) for device in devices) or not runner.has("vgs"):
        return [], []
    try:
        completed = runner.run(["vgs", "--reportformat", "json", "-o", "vg_name,vg_missing_pv_count"], item="vgs")
        return [_partial(name, missing) for name, missing in parse_missing(completed.stdout) if missing], []
    except StorageError as error:
        return [], [error.message]


def parse_missing(text: str) -> list[tuple[str, int]]:
    """Volume groups and how many physical volumes each lacks.

    :raises NotUnderstood: if it is no report of vgs.
    """
    try:
        return [(row["vg_name"], int(row["vg_missing_pv_count"])) for row in json.loads(text)["report"][0]["vg"]]
    except (ValueError, KeyError, IndexError, TypeError):
        raise NotUnderstood("The report of vgs could not be parsed.", item="vgs") from None


def _is_lvm(device: BlockDevice) -> bool:
    return device.kind == "lvm" or (device.signature is not None and device.signature.type == "LVM2_member")


def _partial(name: str, missing: int) -> Finding:
    words = f"The volume group {name} lacks {missing} of its physical volumes: reconnect them, or replace them with the data from a copy."
    return Finding("critical", name, "volume_group_partial", words, missing, 0)


def read_controllers(devices: Devices, runner: Runner, find_tools: t.Callable[[Runner], t.Sequence[RaidProvider]]) -> tuple[list[Controller], list[str]]:
    """The RAID controllers of a host; no tool is run if no disk is behind one."""
    drivers = {device.driver for device in devices if device.transport == "raid" and device.kind == "disk" and device.size}
    if not drivers:
        return [], []
    tools = registry.tools_for(drivers, find_tools(runner))
    if not tools:
        reported = sorted(str(driver) for driver in drivers)
        install = {driver: TOOLS_OF_DRIVER.get(driver, "the tool of its vendor") for driver in reported}
        return [], [f"The protection of the RAID controller ({driver}) is not known: install {tool}." for driver, tool in install.items()]
    host = registry.read_host(tools, tolerant=True)
    return [seen.controller for seen in host.controllers], list(host.problems)


def controller_findings(controllers: t.Iterable[Controller]) -> t.Iterator[Finding]:
    """Findings about RAID controllers."""
    for controller in controllers:
        yield from _protection(controller)
        yield from _module(controller)
        for volume in controller.volumes:
            yield from _volume(controller, volume)


def _protection(controller: Controller) -> t.Iterator[Finding]:
    """A unit that is not well: write-back without it loses data, and with it gone the controller mostly writes through."""
    unit = controller.protection
    if unit.health in (HEALTHY, UNKNOWN) and unit.kind != NONE:
        return
    back = [volume.name or volume.id for volume in controller.volumes if writes_back(volume.write.effective)]
    if unit.kind == NONE and not back:
        return
    subject = controller.label
    raw = f" ({unit.raw})" if unit.raw else ""
    what = "no battery and no capacitor" if unit.kind == NONE else f"a {'protection unit' if unit.kind == UNKNOWN else unit.kind} that is {unit.health}"
    if back:
        words = f"{subject} has {what}{raw} and still writes back on {', '.join(back)}: a power failure loses what is in its cache."
        yield Finding("warning" if unit.health in _PASSING else "critical", subject, "protection_unit", words, unit.health, HEALTHY)
    else:
        words = f"{subject} has {what}{raw}: it writes through until that is healthy again, which is slow."
        yield Finding("info" if unit.health in _PASSING else "warning", subject, "protection_unit", words, unit.health, HEALTHY)


def _module(controller: Controller) -> t.Iterator[Finding]:
    if controller.cache.status in ("temporarily_disabled", "permanently_disabled"):
        reason = f" ({controller.cache.reason})" if controller.cache.reason else ""
        words = f"{controller.label}: its cache is {controller.cache.status.replace('_', ' ')}{reason}."
        yield Finding("warning", controller.label, "controller_cache", words, controller.cache.status, "ok")
    if controller.cache.note:
        yield Finding(
            "info", controller.label, "controller_cache_note", f"{controller.label} reports of its cache: {controller.cache.note}", controller.cache.status
        )


def _volume(controller: Controller, volume: Volume) -> t.Iterator[Finding]:
    if volume.status not in _NOT_WHOLE | _REBUILDING:
        return
    subject = f"volume {volume.name or volume.id} of {controller.label}"
    words = f"The {subject} (RAID {volume.raid_level}) is {volume.status.replace('_', ' ')}."
    yield Finding("critical" if volume.status in _NOT_WHOLE else "warning", subject, "volume_status", words, volume.status, "optimal")
