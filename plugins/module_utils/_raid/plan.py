# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""From the present state of RAID controllers to the steps towards the wanted one; pure.

Three things are decided here and nowhere else: what is impossible is said before anything is changed, with the controller's
own reason; what loses data in a power cut needs the permission of its item; and a setting that the tool does not print is not
touched, since nothing could prove it.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import wanted as wishes
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.model import (
    CACHED,
    CHARGING,
    DEGRADED,
    ENABLED,
    FAILED,
    LEARNING,
    MISSING,
    UNKNOWN,
    WRITEBACK_ALWAYS,
    Controller,
    Drive,
    Policy,
    Volume,
    writes_back,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.provider import Subject, configured

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import Host, Seen
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.wanted import ControllerWish, ItemWish

LAYER = "raid_cache"
_ALLOW = "allow_unprotected: true"


@dataclass(frozen=True)
class Target:
    """One thing with settings, what is wished of it, and by whom it is reached."""

    seen: Seen
    wish: ControllerWish
    subject: Subject
    settings: t.Mapping[str, t.Any]
    allowed: bool
    #: Whether it was meant by name, and not as one of all.
    named: bool

    @property
    def controller(self) -> Controller:
        return self.seen.controller

    @property
    def called(self) -> str:
        if isinstance(self.subject, Volume):
            return f"volume {self.subject.name or self.subject.id} of {self.controller.called}"
        if isinstance(self.subject, Drive):
            return f"drive {self.subject.address} of {self.controller.called}"
        return self.controller.called

    @property
    def item(self) -> str:
        """The key in diffs: no two things of a host share it."""
        kind = "" if isinstance(self.subject, Controller) else f" {type(self.subject).__name__.lower()} {_id(self.subject)}"
        return f"{self.controller.provider} controller {self.controller.id}{kind}"


def targets_of(host: Host, wanted: t.Sequence[ControllerWish]) -> list[Target]:
    """Everything that is meant, controllers before their volumes before their drives.

    :raises BadInput, DeviceMissing: for wishes that name nothing, several things, or one thing twice.
    :raises NotUnderstood: if what a tool printed cannot be relied on.
    """
    found: list[Target] = []
    for wish in wanted:
        for one in wishes.choose_controllers(host, wish):
            found.append(Target(one, wish, one.controller, wish.settings, wish.allow_unprotected, named=True))
            found += [_item_target(one, wish, volume, own) for volume, own in wishes.expand_volumes(one.controller, wish.volumes)]
            found += [_item_target(one, wish, drive, own) for drive, own in wishes.expand_drives(one.controller, wish.drives)]
    keys = [target.item for target in found if isinstance(target.subject, Controller)]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice:
        raise BadInput(f"Two entries are for {twice}: join them into one.", item=twice)
    return found


def _item_target(seen: Seen, wish: ControllerWish, subject: Subject, own: ItemWish) -> Target:
    return Target(seen, wish, subject, own.settings, own.allow_unprotected, named=not own.for_all)


def plan(host: Host, wanted: t.Sequence[ControllerWish]) -> tuple[list[Step], list[str]]:
    """The steps, and what is left out of ``all`` because it cannot be set, one sentence each.

    :raises StorageError: for whatever is impossible, dangerous without permission, or could not be proved.
    """
    targets = targets_of(host, wanted)
    left_out = {id(target): reason for target in targets for reason in [_impossible(target)] if reason is not None}
    _check_left_out(targets, left_out)
    settable = [target for target in targets if id(target) not in left_out]
    for target in settable:
        _check_danger(target)
    steps = [step for target in settable for step in _steps(target)]
    return steps, [f"Left as it is: {target.called} {left_out[id(target)]}." for target in targets if id(target) in left_out]


def _impossible(target: Target) -> str | None:
    """Why a setting cannot be made, or could not be proved."""
    if not target.settings:
        return None
    provider = target.seen.source.provider
    reason = provider.objection(target.controller, target.subject, target.settings, target.wish.settings)
    if reason is not None:
        return reason
    for attribute in target.settings:
        if not _is_told(target.subject, attribute):
            return f"does not tell its {attribute}, so that a change could not be proved ({provider.name} prints none)"
    return None


def _is_told(subject: Subject, attribute: str) -> bool:
    """Whether a change of an attribute could be read back: old firmware tells only what is in force."""
    value = getattr(subject, attribute, None)
    told = {value.configured, value.effective} if isinstance(value, Policy) else {configured(subject, attribute)}
    return not told <= {None, UNKNOWN}


def _check_left_out(targets: t.Sequence[Target], left_out: t.Mapping[int, str]) -> None:
    """Who is named must be possible; of all, at least one.

    :raises BadInput: with the controller's own reason.
    """
    for target in targets:
        if id(target) not in left_out:
            continue
        alike = [other for other in targets if not other.named and type(other.subject) is type(target.subject) and other.controller is target.controller]
        if target.named or all(id(other) in left_out for other in alike):
            raise BadInput(f"{target.called} {left_out[id(target)]}. Nothing was changed.", item=target.item)


def _check_danger(target: Target) -> None:
    """
    :raises Refused: if a setting would keep acknowledged writes where a power cut loses them, and its item does not allow that.
    """
    danger = _danger(target)
    if danger is not None and not target.allowed:
        raise Refused(f"{target.called}: {danger}. Set {_ALLOW} on this entry only if its data may be lost. Nothing was changed.", item=target.item)


def _danger(target: Target) -> str | None:
    wished = target.settings
    if wished.get("write") == WRITEBACK_ALWAYS:
        return f"write: {WRITEBACK_ALWAYS} goes on acknowledging writes from the controller's memory when its protection has failed, and a power cut loses them"
    if wished.get("io") == CACHED and not target.controller.protection.protects:
        return f"io: {CACHED} caches writes whatever the write policy says, and {_protection(target.controller)}"
    if wished.get("no_battery_write_cache") == ENABLED:
        return "no_battery_write_cache: enabled acknowledges writes from the controller's memory without any protection, and a power cut loses them"
    for attribute, value in wished.items():
        if value == ENABLED and attribute.split(".")[0] in ("drive_cache", "write_cache"):
            where = attribute.replace(".", " ")
            return (
                f"{where}: enabled keeps writes in the memory of drives, the controller answers flushes itself, and a power cut loses them "
                "unless the drives protect their own cache, which the controller does not tell"
            )
    return None


def _steps(target: Target) -> list[Step]:
    provider = target.seen.source.provider
    position = {attribute: index for index, attribute in enumerate(provider.order)}
    wished = sorted(target.settings.items(), key=lambda pair: position.get(pair[0], len(position)))
    return [
        Step(
            layer=LAYER,
            item=target.item,
            attribute=attribute,
            before=configured(target.subject, attribute),
            after=value,
            action=f"Set {attribute} of {target.called} to {value} (was {configured(target.subject, attribute)})",
            operation="send",
            arguments={
                "provider": provider.name,
                "tool": provider.tool,
                "words": provider.command(target.controller, target.subject, attribute, value),
            },
        )
        for attribute, value in wished
        if not provider.agrees(target.controller, target.subject, attribute, value)
    ]


@dataclass(frozen=True)
class NotInForce:
    """A setting that is stored and not in force."""

    item: str
    called: str
    attribute: str
    wanted: t.Any
    found: str
    cause: str
    must: bool

    def __str__(self) -> str:
        return f"{self.called}: {self.attribute} is set to {self.wanted}, but {self.found} is in force: {self.cause}"


def not_in_force(host: Host, wanted: t.Sequence[ControllerWish]) -> list[NotInForce]:
    """Every setting of the list that the controller stores and does not follow, with the cause as far as the tool tells it."""
    found = []
    for target in targets_of(host, wanted):
        if not isinstance(target.subject, Volume) or _impossible(target) is not None:
            continue
        for attribute, value in target.settings.items():
            policy = getattr(target.subject, attribute, None)
            effective = getattr(policy, "effective", UNKNOWN)
            if effective == UNKNOWN or _same(attribute, value, effective):
                continue
            cause = _cause(target.controller, target.subject, attribute)
            found.append(NotInForce(target.item, target.called, attribute, value, effective, cause, target.wish.require_effective))
    return found


def _same(attribute: str, wanted: t.Any, effective: str) -> bool:
    return writes_back(wanted) == writes_back(effective) if attribute == "write" else wanted == effective


def _cause(controller: Controller, volume: Volume, attribute: str) -> str:
    if controller.cache.reason:
        return f"the controller says: {controller.cache.reason}"
    if controller.cache.status in ("temporarily_disabled", "permanently_disabled", "not_configured"):
        return f"the cache of the controller is {controller.cache.status.replace('_', ' ')}"
    if attribute == "write" and controller.protection.protects is not True:
        return _protection(controller)
    if attribute == "write" and volume.io.effective == CACHED:
        return "with io: cached, writes are cached whatever the write policy says"
    if volume.status not in ("optimal", UNKNOWN):
        return f"the volume is {volume.status.replace('_', ' ')}"
    return "the tool does not say why"


_HEALTH = {
    FAILED: "has failed",
    MISSING: "is missing",
    CHARGING: "is charging; write-back returns when it is full",
    LEARNING: "is in a learn cycle; write-back returns when it ends",
    DEGRADED: "is degraded",
    UNKNOWN: "is in a state the tool does not tell",
}


def _protection(controller: Controller) -> str:
    """The state of the protection as a clause."""
    protection = controller.protection
    if protection.kind == "none":
        return "the controller has no battery and no capacitor"
    kind = "protection (battery or capacitor)" if protection.kind == UNKNOWN else protection.kind
    said = f" ({protection.said})" if protection.said else ""
    return f"its {kind} {_HEALTH.get(protection.health, 'is ' + protection.health)}{said}"


def _id(subject: Volume | Drive) -> str:
    return subject.id if isinstance(subject, Volume) else subject.address
