# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings that a controller stores and does not follow, and why; pure."""

from __future__ import annotations

import typing as t
from dataclasses import asdict

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import plan
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    CACHED,
    CHARGING,
    DEGRADED,
    DISABLED,
    ENABLED,
    FAILED,
    LEARNING,
    MISSING,
    UNKNOWN,
    WRITEBACK,
    WRITEBACK_ALWAYS,
    WRITES_BACK,
    WRITETHROUGH,
    Controller,
    Drive,
    Volume,
    writes_back,
)

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import RaidState
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import ControllerSpec


@frozen
class NotInForce:
    """A setting that is stored and not in effect, or of which that is not known.

    :param found: what is in effect; ``unknown`` if the tool does not report it.
    :param must: whether that is a failure.
    """

    item: str
    label: str
    controller: str
    attribute: str
    configured: t.Any
    found: str
    cause: str
    must: bool

    def __str__(self) -> str:
        return f"{self.label}: {self.difference}"

    def to_dict(self) -> dict[str, t.Any]:
        """For results."""
        return asdict(self)

    @property
    def difference(self) -> str:
        """What is the matter, whatever it is the matter with."""
        cause = self.cause.rstrip(".")
        if self.found == UNKNOWN:
            return f"{self.attribute} is set to {self.configured}, and whether that is in effect is not reported: {cause}"
        return f"{self.attribute} is set to {self.configured}, but {self.found} is in effect: {cause}"


def sentences(found: t.Sequence[NotInForce]) -> list[str]:
    """One sentence for each cause: a failed battery has one, however many volumes there are."""
    groups: dict[tuple[str, str], list[NotInForce]] = {}
    for one in found:
        groups.setdefault((one.controller, one.difference), []).append(one)
    return [f"{_names(controller, group)}: {difference}." for (controller, difference), group in groups.items()]


def _names(controller: str, group: t.Sequence[NotInForce]) -> str:
    """The first of many, and how many more there are."""
    if len(group) == 1:
        return group[0].label
    first = ", ".join(one.label.partition(f" of {controller}")[0] for one in group[:3])
    return f"{first}{f' and {len(group) - 3} more' if len(group) > 3 else ''} of {controller}"


def not_in_force(host: RaidState, specs: t.Sequence[ControllerSpec]) -> list[NotInForce]:
    """Every setting of the list that is not in effect, with the cause as far as the tool reports it."""
    targets, _notes = plan.settable(host, specs)
    return [one for target in targets for attribute, value in target.settings.items() for one in _differences(target, attribute, value)]


def predicted(host: RaidState, specs: t.Sequence[ControllerSpec]) -> list[NotInForce]:
    """What :func:`not_in_force` will find after the specification is met, as far as that is known before."""
    found = []
    targets, _notes = plan.settable(host, specs)
    for target in targets:
        for attribute, value in target.settings.items():
            if target.provider.agrees(target.controller, target.subject, attribute, value):
                found += list(_differences(target, attribute, value))
            elif attribute == "write" and value == WRITEBACK and target.controller.protection.protects is False:
                cause = _protection(target.controller)
                must = target.spec.require_effective
                found.append(NotInForce(target.item, target.label, target.controller.label, attribute, value, WRITETHROUGH, cause, must))
    return found


def _differences(target: plan.RaidTarget, attribute: str, value: t.Any) -> t.Iterator[NotInForce]:
    if isinstance(target.subject, Volume) and attribute != "drive_cache":
        found, cause, must = _of_policy(target.controller, target.subject, attribute, value)
    elif attribute.split(".")[0] == "drive_cache" and value in (ENABLED, DISABLED):
        found, cause, must = _of_drives(target, attribute, value)
    else:
        return
    if found is not None:
        yield NotInForce(target.item, target.label, target.controller.label, attribute, value, found, cause, must and target.spec.require_effective)


def _of_policy(controller: Controller, volume: Volume, attribute: str, value: t.Any) -> tuple[str | None, str, bool]:
    """What is in effect instead of a policy (``None``: nothing else), why, and whether that is grave."""
    effective = getattr(volume, attribute).effective
    unprotected = controller.protection.protects is not True
    if attribute == "write" and value != WRITEBACK_ALWAYS and volume.io.effective == CACHED and unprotected:
        return (
            "caching of writes without protection",
            f"with io: {CACHED}, writes are cached whatever the write policy is, and {_protection(controller)}",
            True,
        )
    if effective == UNKNOWN:
        if attribute != "write" or value not in WRITES_BACK:
            return None, "", False
        return UNKNOWN, _protection(controller) if unprotected else "the tool prints no state of it", controller.protection.protects is False
    same = writes_back(value) == writes_back(effective) if attribute == "write" else value == effective
    return (None, "", False) if same else (effective, _cause(controller, volume, attribute), True)


def _of_drives(target: plan.RaidTarget, attribute: str, value: str) -> tuple[str | None, str, bool]:
    """Drives that report something else than the policy for them."""
    others = [drive for drive in target.controller.drives if drive.write_cache not in (UNKNOWN, value)]
    drives = [drive for drive in others if _belongs(target, attribute, drive)]
    if drives:
        return drives[0].write_cache, f"reported by {len(drives)} of its drives ({_some(drives)})", True
    doubtful = [drive for drive in others if drive.usage == UNKNOWN] if isinstance(target.subject, Controller) else []
    if doubtful:
        return UNKNOWN, f"{len(doubtful)} drives whose use is not reported have it {doubtful[0].write_cache} ({_some(doubtful)})", False
    return None, "", False


def _some(drives: t.Sequence[Drive]) -> str:
    return "; ".join(drive.address for drive in drives[:6]) + ("; …" if len(drives) > 6 else "")


def _belongs(target: plan.RaidTarget, attribute: str, drive: Drive) -> bool:
    if isinstance(target.subject, Volume):
        return drive.address in target.subject.members
    kind = attribute.partition(".")[2]
    return kind == "all" or drive.usage == kind


def _cause(controller: Controller, volume: Volume, attribute: str) -> str:
    if controller.cache.reason:
        return f"the controller reports: {controller.cache.reason}"
    if controller.cache.status in ("temporarily_disabled", "permanently_disabled", "not_configured"):
        return f"the cache of the controller is {controller.cache.status.replace('_', ' ')}"
    if attribute == "write" and controller.cache_ratio == 100:
        return "the cache ratio gives 0 % of the cache to writes (cache_ratio: 100)"
    if attribute == "write" and volume.io.effective == CACHED and writes_back(volume.write.effective):
        return "with io: cached, writes are cached whatever the write policy is"
    if attribute == "write" and controller.protection.protects is not True:
        return _protection(controller)
    if volume.status not in ("optimal", UNKNOWN):
        return f"the volume is {volume.status.replace('_', ' ')}"
    return "the tool reports no reason"


_HEALTH = {
    FAILED: "has failed",
    MISSING: "is missing",
    CHARGING: "is charging; write-back returns when it is full",
    LEARNING: "is in a learn cycle; write-back returns when it ends",
    DEGRADED: "is degraded",
    UNKNOWN: "is in a state the tool does not report",
}


def _protection(controller: Controller) -> str:
    """The state of the protection as a clause."""
    protection = controller.protection
    if protection.kind == "none":
        return "the controller has no battery and no capacitor"
    kind = "protection (battery or capacitor)" if protection.kind == UNKNOWN else protection.kind
    raw = f" ({protection.raw})" if protection.raw else ""
    return f"its {kind} {_HEALTH.get(protection.health, 'is ' + protection.health)}{raw}"
