# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Everything about the health of a host in one reading: drives, caches, controllers, arrays, ZFS; and what follows from it."""

from __future__ import annotations

import dataclasses
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey import host_caches as survey
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, failing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import describe_suspended
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.health import Address, drives_of, read_drives
from ansible_collections.cachefleet.storage.plugins.module_utils._device.over_provisioning import Reserve, read_reserves
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import DECLARATION_OPTIONS, checked_declarations
from ansible_collections.cachefleet.storage.plugins.module_utils._health import rules
from ansible_collections.cachefleet.storage.plugins.module_utils._health.aoe_rules import aoe_findings, read_sight, with_aoe
from ansible_collections.cachefleet.storage.plugins.module_utils._health.diagnosis import Diagnosis, diagnose
from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Finding, Limits, in_order, worse_than
from ansible_collections.cachefleet.storage.plugins.module_utils._health.hit_rates import CacheActivity, passed
from ansible_collections.cachefleet.storage.plugins.module_utils._health.link_speeds import LinkSpeed, read_links
from ansible_collections.cachefleet.storage.plugins.module_utils._health.metrics import Measured, exposition
from ansible_collections.cachefleet.storage.plugins.module_utils._health.readings import Readings, from_dict, from_file, key_of, take
from ansible_collections.cachefleet.storage.plugins.module_utils._health.rules import (
    cache_findings,
    drive_findings,
    read_verdicts,
    reserve_findings,
    verdict_findings,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._health.zfs import ZfsHealth, read_zfs, zfs_findings
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import find_tools

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.wear import DriveHealth
    from ansible_collections.cachefleet.storage.plugins.module_utils._health.readings import Readings
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import RaidProvider
    from ansible_collections.cachefleet.storage.plugins.module_utils._stack.model import Verdict

#: The limits as options of a module; the defaults are those of :class:`Limits`.
LIMIT_OPTIONS: dict[str, dict[str, t.Any]] = {one.name: {"type": "int", "default": one.default} for one in dataclasses.fields(Limits)}

_ROOT = Path("/")


def run_module(module: AnsibleModule) -> t.NoReturn:
    """Examine the host and return the findings."""
    with failing(module):
        questions, problems = read_questions(module.params, _ROOT)
        result = read_health(Runner(), questions, _ROOT).to_dict()
    result["problems"] = [*problems, *result["problems"]]
    result["compared"] = questions.previous is not None
    module.exit_json(changed=False, **result)


def read_questions(params: t.Mapping[str, t.Any], root: Path) -> tuple[Questions, list[str]]:
    """The options of the module, and what is wrong with the readings that were kept.

    :raises BadInput: if an option is invalid.
    """
    limits = Limits(**{name: value for name, value in params["limits"].items() if value is not None})
    if params["interval"] < 0:
        raise BadInput("The interval between two readings must not be negative; set 0 for one reading.", item="interval")
    previous, problem = _previous(params, root)
    further = tuple(Address(row["device"], f"{row['device']} -d {row['type']}", row["type"]) for row in params["further_drives"])
    protected, flushed = (tuple(checked_declarations(params[name])) for name in DECLARATION_OPTIONS)
    return Questions(limits, params["interval"], previous, further, params["verdicts"], protected, flushed), [problem] if problem else []


def _previous(params: t.Mapping[str, t.Any], root: Path) -> tuple[Readings | None, str]:
    if params["previous_file"]:
        return from_file(params["previous_file"], root)
    if not params["previous"]:
        return None, ""
    try:
        return from_dict(params["previous"]), ""
    except ValueError as error:
        raise BadInput(f"previous holds no readings of an earlier run of this module ({error}): give what it returned in readings.", item="previous") from None


ReadCaches = t.Callable[["Devices", "Runner", Path], survey.Survey]
FindTools = t.Callable[["Runner"], t.Sequence["RaidProvider"]]


@frozen
class Questions:
    """What to examine and against which limits.

    :param interval: seconds between two readings of the caches; 0 for one reading.
    :param previous: what an earlier run read, if any.
    :param further_drives: drives that no tool lists.
    :param verdicts: whether to determine if a flushed write survives a power failure on each device in use, which reads the whole stack.
    :param protected: drives whose cache is declared to survive a power cut; ``flushed``: virtual disks whose flushes are declared to reach media.
    """

    limits: Limits = field(default_factory=Limits)
    interval: float = 0.0
    previous: Readings | None = None
    further_drives: tuple[Address, ...] = ()
    verdicts: bool = False
    protected: tuple[str, ...] = ()
    flushed: tuple[str, ...] = ()


@frozen
class HostHealth:
    """One host. ``problems`` are what could not be read, one sentence each; ``worse`` is what is new since the previous reading."""

    drives: tuple[DriveHealth, ...]
    reserves: tuple[Reserve, ...]
    caches: tuple[CacheState, ...]
    passed: t.Mapping[str, CacheActivity]
    diagnoses: t.Mapping[str, Diagnosis]
    controllers: tuple[Controller, ...]
    readings: Readings
    findings: tuple[Finding, ...]
    worse: tuple[Finding, ...]
    verdicts: t.Mapping[str, Verdict]
    zfs: ZfsHealth | None
    links: tuple[LinkSpeed, ...]
    problems: tuple[str, ...]

    def to_dict(self) -> dict[str, t.Any]:
        """The return values of the module."""
        return {
            "healthy": not any(finding.severity != "info" for finding in self.findings),
            "worst": next((finding.severity for finding in self.findings if finding.severity != "info"), "none"),
            "findings": [finding.to_dict() for finding in self.findings],
            "problems": list(self.problems),
            "drives": [drive.to_dict() for drive in self.drives],
            "over_provisioning": [reserve.to_dict() for reserve in self.reserves],
            "caches": [self._plain_cache(cache) for cache in self.caches],
            "controllers": [_plain_controller(controller) for controller in self.controllers],
            "verdicts": {device: {"verdict": one.verdict, "reason": one.reason} for device, one in self.verdicts.items()},
            "zfs": self.zfs.to_dict() if self.zfs is not None else None,
            "links": [dict(vars(one)) for one in self.links],
            "worse": [finding.to_dict() for finding in self.worse],
            "worse_keys": [finding.key for finding in self.worse],
            "readings": self.readings.to_dict(),
            "prometheus": exposition(self._measured()),
        }

    def _measured(self) -> Measured:
        return Measured(
            caches=self.caches,
            drives=self.drives,
            reserves=self.reserves,
            controllers=self.controllers,
            findings=self.findings,
            verdicts={device: one.verdict for device, one in self.verdicts.items()},
            zfs=self.zfs,
            unread=len(self.problems),
            time=self.readings.time,
        )

    def _plain_cache(self, cache: CacheState) -> dict[str, t.Any]:
        key = key_of(cache)
        return {**survey.cache_to_dict(cache), "hit_rates": self.passed[key].to_dict(), "diagnosis": self.diagnoses[key].to_dict()}


def _plain_controller(controller: Controller) -> dict[str, t.Any]:
    unit = controller.protection
    return {
        "provider": controller.provider,
        "id": controller.id,
        "model": controller.model,
        "status": controller.status,
        "protection": {"kind": unit.kind, "health": unit.health, "charge": unit.charge, "raw": unit.raw},
        "cache_status": controller.cache.status,
    }


def read_health(
    runner: Runner,
    questions: Questions,
    root: Path = Path("/"),
    *,
    read_caches: ReadCaches = survey.read_caches,
    tools: FindTools = find_tools,
    clock: t.Callable[[], float] = time.time,
    sleep: t.Callable[[float], None] = time.sleep,
) -> HostHealth:
    """Examine a host, its caches twice if an interval was requested; changes nothing.

    :raises StorageError: if not even the block devices can be read.
    """
    devices = read_devices(runner, root)
    previous = questions.previous
    if questions.interval > 0:
        # Two readings of this run are more accurate than one of an earlier run; that one still shows what has grown.
        first = take(read_caches(devices, runner, root).caches, (), root, clock(), previous, keep_average=False)
        sleep(questions.interval)
    else:
        first = previous
    surveyed = read_caches(devices, runner, root)
    now = clock()
    reported = read_drives(devices, runner, questions.further_drives, root)
    reserves, reserve_problems = read_reserves(drives_of(devices), reported.drives, runner, root)
    controllers, raid_problems = rules.read_controllers(devices, runner, tools)
    groups, group_problems = rules.volume_group_findings(devices, runner)
    zfs = read_zfs(devices, runner, root)
    verdicts, stack_problems = read_verdicts(runner, root, questions.protected, questions.flushed) if questions.verdicts else ({}, ())
    readings = take(surveyed.caches, reported.drives, root, now, previous)
    happened = {key_of(cache): passed(cache, first, readings) for cache in surveyed.caches}
    sharing = {cache.type: sum(other.type == cache.type for other in surveyed.caches) for cache in surveyed.caches}
    diagnoses = {key_of(cache): diagnose(cache, happened[key_of(cache)], sharing[cache.type]) for cache in surveyed.caches}
    findings = [*drive_findings(reported.drives, questions.limits, previous), *reserve_findings(reserves)]
    findings += [*rules.array_findings(devices, root), *groups, *rules.controller_findings(controllers)]
    findings += [Finding("critical", device.stable_path or device.path, "suspended", describe_suspended(device)) for device in devices if device.suspended]
    for cache in surveyed.caches:
        key = key_of(cache)
        findings += cache_findings(cache, happened[key], diagnoses[key], _average(readings, key), questions.limits)
    findings += [*zfs_findings(zfs, previous, readings.boot, questions.limits), *verdict_findings(verdicts)]
    findings = with_aoe(findings, aoe_findings(read_sight(devices, root), devices, surveyed.caches, diagnoses), surveyed.caches, diagnoses)
    ordered = in_order(findings)
    keys = tuple(dict.fromkeys(finding.key for finding in ordered if finding.severity != "info"))
    unread = (*surveyed.problems, *reported.problems, *reserve_problems, *raid_problems, *group_problems, *(zfs.problems if zfs is not None else ()))
    return HostHealth(
        drives=reported.drives,
        reserves=tuple(reserves),
        caches=surveyed.caches,
        passed=happened,
        diagnoses=diagnoses,
        controllers=tuple(controllers),
        readings=dataclasses.replace(readings, zfs=zfs.counters if zfs is not None else {}, problems=keys),
        findings=tuple(ordered),
        worse=tuple(worse_than(ordered, previous.problems if previous is not None else ())),
        verdicts=verdicts,
        zfs=zfs,
        links=read_links(drives_of(devices), root),
        problems=tuple(dict.fromkeys((*unread, *stack_problems))),
    )


def _average(readings: Readings, key: str) -> tuple[float | None, int]:
    shares = readings.caches[key].dirty_shares
    return (sum(shares) / len(shares) if shares else None), len(shares)
