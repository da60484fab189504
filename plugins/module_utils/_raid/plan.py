# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the present state of RAID controllers to the steps towards the specification; pure.

What is impossible is reported before anything is changed, with the controller's own reason, and a setting that the tool does not
print is not touched, since nothing could prove it. What keeps acknowledged writes where a power cut loses them is refused unless its
item allows it.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotUnderstood, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import declares
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import spec as raid_spec
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.commands import SendCommand
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    CACHED,
    DEFAULT,
    DIRECT,
    DISABLED,
    ENABLED,
    NONE,
    PER_DRIVE,
    READ_AHEAD,
    UNKNOWN,
    WRITEBACK_ALWAYS,
    WRITES_BACK,
    WRITETHROUGH,
    Controller,
    Drive,
    Policy,
    Volume,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import RaidProvider, Settings, Subject, configured
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.stack_facts import holding

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import RaidState, Seen
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import ControllerSpec, ItemSpec


@frozen
class RaidTarget:
    """One thing with settings, its specification, and the tool that reaches it.

    :param spec: the whole entry of the list that it belongs to.
    :param settings: what is specified for this thing.
    """

    seen: Seen
    spec: ControllerSpec
    subject: Subject
    settings: Settings
    allowed: bool
    #: Whether it was selected by name or match, and not as one of all.
    named: bool
    #: The entry that chose it by match, as messages name it.
    match: str = ""

    @property
    def controller(self) -> Controller:
        return self.seen.controller

    @property
    def provider(self) -> RaidProvider:
        return self.seen.source.provider

    @property
    def controller_settings(self) -> dict[str, t.Any]:
        """What is specified for the controller itself in the same run, and whether that run switches caching on for a volume."""
        caching = any(one.settings.get("write") in WRITES_BACK or one.settings.get("read") == READ_AHEAD for one in self.spec.volumes)
        return {**self.spec.settings, "caching": caching}

    @property
    def brings_ratio(self) -> bool:
        """Whether the controller has no cache ratio yet, and the first volume that is cached in this run brings it."""
        return self.controller.cache_ratio is None and self.controller.cache.status == "not_configured" and self.controller_settings["caching"]

    def follows(self, attribute: str, value: t.Any) -> dict[str, t.Any]:
        """What else changes when an attribute is set to a value: a command can set more than one."""
        also = self.provider.side_effects(self.controller, self.subject, attribute, value, self.controller_settings)
        return {name: after for name, after in also.items() if not self.provider.agrees(self.controller, self.subject, name, after)}

    @property
    def label(self) -> str:
        if isinstance(self.subject, Volume):
            return f"volume {self.subject.name or self.subject.id} of {self.controller.label}"
        if isinstance(self.subject, Drive):
            return f"drive {self.subject.address} of {self.controller.label}"
        return self.controller.label

    @property
    def item(self) -> str:
        """The key in diffs: no two things of a host share it."""
        kind = "" if isinstance(self.subject, Controller) else f" {type(self.subject).__name__.lower()} {_id(self.subject)}"
        return f"{self.controller.provider} controller {self.controller.id}{kind}"


def _id(subject: Volume | Drive) -> str:
    return subject.id if isinstance(subject, Volume) else subject.address


def check(target: RaidTarget) -> None:
    """
    :raises Refused: if a setting for this target, or what its command sets besides, is dangerous, and its own entry does not allow that.
    """
    found = _danger(target)
    if found is not None and not target.allowed:
        place = f"an entry of its own with its address (it is chosen by {target.match} of {raid_spec.VARIABLE})" if target.match else "this entry"
        raise Refused(f"{target.label}: {found}. Set allow_unprotected: true on {place} only if its data may be lost.", item=target.item)


def _danger(target: RaidTarget) -> str | None:
    for attribute, value in target.settings.items():
        found = _of_setting(target, attribute, value) or _of_command(target, attribute, value)
        if found is not None:
            return found
    return None


def _of_setting(target: RaidTarget, attribute: str, value: t.Any) -> str | None:
    """A setting that is dangerous whether or not it is in effect already: the permission belongs to the inventory."""
    if attribute == "write" and value == WRITEBACK_ALWAYS:
        return (
            f"write: {WRITEBACK_ALWAYS} continues to acknowledge writes from the controller's memory when its protection has failed,"
            " and a power failure loses them"
        )
    if attribute == "io" and value == CACHED:
        return f"io: {CACHED} caches writes whatever the write policy is, and continues when the protection has failed"
    if attribute == "no_battery_write_cache" and value == ENABLED:
        return "no_battery_write_cache: enabled acknowledges writes from the controller's memory without any protection, and a power failure loses them"
    if not _is_drive_cache(attribute) or _are_protected(target):
        return None
    label = attribute.replace(".", " ")
    if value == ENABLED:
        return (
            f"{label}: enabled keeps writes in the memory of drives, the controller answers flushes itself, and a power failure loses them "
            "unless the drives protect their own cache, which the controller does not report (storage_protected_drives declares it)"
        )
    if value == DEFAULT and configured(target.subject, attribute) != DEFAULT:
        return f"{label}: default leaves the caches of drives, now {configured(target.subject, attribute)}, to the drives, and most have them on"
    if value == PER_DRIVE and configured(target.subject, attribute) == DISABLED and not _all_drives_off(target):
        return (
            f"{label}: {PER_DRIVE} makes each drive use its own setting, which cannot be read while {DISABLED} applies to all; "
            "with drives: [{address: all, write_cache: disabled}] in addition, none of them stays on"
        )
    return None


def _are_protected(target: RaidTarget) -> bool:
    """Whether all drives that the setting is for are declared to keep their cache."""
    if not target.spec.protected_drives:
        return False
    subject = target.subject
    if isinstance(subject, Drive):
        drives: t.Sequence[t.Optional[Drive]] = [subject]
    elif isinstance(subject, Volume):
        drives = [] if subject.members_untold else holding(target.controller, subject)
    else:
        drives = target.controller.drives
    declared = target.spec.protected_drives
    return bool(drives) and all(drive is not None and declares(declared, drive.traits) for drive in drives)


def _all_drives_off(target: RaidTarget) -> bool:
    """Whether the same run switches the caches of all drives off one by one."""
    return any(one.for_all and one.settings.get("write_cache") == DISABLED for one in target.spec.drives)


def _of_command(target: RaidTarget, attribute: str, value: t.Any) -> str | None:
    """A change that is dangerous for what comes with it."""
    if target.provider.agrees(target.controller, target.subject, attribute, value):
        return None
    if target.follows(attribute, value).get("write") == WRITEBACK_ALWAYS:
        return (
            f"{attribute}: {value} switches write-back on with it (one switch is for both), and with no_battery_write_cache enabled that is without "
            "any protection"
        )
    unprotected = (target.spec.settings.get("no_battery_write_cache") or target.controller.no_battery_write_cache) == ENABLED
    if isinstance(target.subject, Controller) and attribute == "cache_ratio" and value < 100 and unprotected:
        return f"cache_ratio: {value} gives a share of the cache to writes, and with no_battery_write_cache enabled that is without any protection"
    return None


def _is_drive_cache(attribute: str) -> bool:
    return attribute.split(".")[0] in ("drive_cache", "write_cache")


LAYER = "raid_cache"

#: Settings that keep less in memory: they are made before a setting of the controller lets anything wait there, and an entry for
#: all volumes that cannot be met everywhere must not end with a warning.
_SAFER = {"write": WRITETHROUGH, "read": NONE, "io": DIRECT, "drive_cache": DISABLED}


def plan(host: RaidState, specs: t.Sequence[ControllerSpec]) -> tuple[list[Step], list[str]]:
    """The steps, and what is left out of ``all`` because it cannot be set, one sentence each.

    :raises StorageError: for whatever is impossible, dangerous without permission, or could not be proved.
    """
    targets, notes = settable(host, specs)
    for target in targets:
        check(target)
        _check_ratio_is_kept(target, targets)
    steps = [step for phase in range(4) for target in targets for step in _steps(target, phase)]
    return steps, notes


def _check_ratio_is_kept(target: RaidTarget, targets: t.Sequence[RaidTarget]) -> None:
    """
    :raises BadInput: for a cache ratio where no volume will be cached: arcconf then sets it to 100 percent for reading by itself.
    """
    if target.settings.get("cache_ratio", 100) == 100 or not target.controller.volumes:
        return
    specified = {id(other.subject): other.settings for other in targets if isinstance(other.subject, Volume)}
    if not any(_will_cache(volume, specified.get(id(volume), {})) for volume in target.controller.volumes):
        raise BadInput(
            f"{target.label} cannot keep cache_ratio: {target.settings['cache_ratio']}, since none of its volumes will be cached: "
            "leave the ratio out, or cache a volume.",
            item=target.item,
        )


def _will_cache(volume: Volume, settings: Settings) -> bool:
    if "write" in settings or "read" in settings:
        return settings.get("write") in WRITES_BACK or settings.get("read") == READ_AHEAD
    # What is not reported may be cached.
    return volume.read.configured != NONE or volume.write.configured != WRITETHROUGH


def settable(host: RaidState, specs: t.Sequence[ControllerSpec]) -> tuple[list[RaidTarget], list[str]]:
    """Everything that is selected, each with the settings it can have, and a sentence about each that is left out of ``all``.

    :raises StorageError: for specifications that name nothing, several things, or one thing twice; for output that cannot be relied on; for
        what is impossible where it was named, or everywhere.
    """
    found, notes = [], []
    targets = targets_of(host, specs)
    for target in targets:
        reason = _impossible(target)
        if reason is None:
            found.append(target)
            continue
        if target.named:
            chosen = f" It is chosen by {target.match} of {raid_spec.VARIABLE}: narrow the match, or give it an entry with its address." if target.match else ""
            raise BadInput(f"{target.label} {reason}.{chosen}", item=target.item)
        reduced, left_out = _reduced(target, reason)
        _check_left_out(targets, target, left_out)
        found.append(reduced)
        notes += [f"Unchanged: {attribute} of {target.label}, which {why}." for attribute, why in left_out.items()]
    return found, notes + _no_controller_message(targets)


def targets_of(host: RaidState, specs: t.Sequence[ControllerSpec]) -> list[RaidTarget]:
    """Everything that is selected, controllers before their volumes before their drives."""
    found: list[RaidTarget] = []
    for spec in specs:
        for one in raid_spec.choose_controllers(host, spec):
            _check_nothing_lost(one, spec)
            found.append(RaidTarget(one, spec, one.controller, spec.settings, spec.allow_unprotected, named=True))
            found += [_item_target(one, spec, volume, own) for volume, own in raid_spec.expand_volumes(one.controller, spec.volumes)]
            found += [_item_target(one, spec, drive, own) for drive, own in raid_spec.expand_drives(one.controller, spec.drives)]
    controllers = [target for target in found if isinstance(target.subject, Controller)]
    for index, target in enumerate(controllers):
        if any(raid_spec.is_same(target.seen, other.seen) for other in controllers[:index]):
            raise BadInput(f"Two entries are for {target.label}: join them into one.", item=target.item)
    return found


def _check_nothing_lost(seen: Seen, spec: ControllerSpec) -> None:
    """
    :raises NotUnderstood: if something is there that could not be read, and all of its kind are selected.
    """
    lost = seen.source.reading.lost_for(seen.controller.id)
    if lost and any(one.for_all or one.match is not None for one in (*spec.volumes, *spec.drives)):
        raise NotUnderstood(
            f"{seen.controller.label}: not everything that is there could be read ({lost[0]}), so nothing can be set for all of it. "
            "Name volumes and drives one by one, or report the output.",
            item=seen.controller.label,
        )


def _item_target(seen: Seen, spec: ControllerSpec, subject: Subject, own: ItemSpec) -> RaidTarget:
    match = own.label if own.match is not None else ""
    return RaidTarget(seen, spec, subject, own.settings, own.allow_unprotected, named=not own.for_all, match=match)


def _no_controller_message(targets: t.Sequence[RaidTarget]) -> list[str]:
    """A sentence for each controller that has nothing of what ``all`` of it should be set."""
    found = []
    for target in targets:
        if not isinstance(target.subject, Controller):
            continue
        for kind, entries, there in (("volumes", target.spec.volumes, target.controller.volumes), ("drives", target.spec.drives, target.controller.drives)):
            if not there and any(one.for_all and one.settings for one in entries):
                found.append(f"{target.label} has no {kind}, so there is nothing to set for all of them.")
    return found + _no_match_messages(targets)


def _no_match_messages(targets: t.Sequence[RaidTarget]) -> list[str]:
    """A sentence for each match that no drive of any controller meets that its entry is for."""
    there: dict[int, list[Controller]] = {}
    specs = {id(target.spec): target.spec for target in targets}
    for target in targets:
        if isinstance(target.subject, Controller):
            there.setdefault(id(target.spec), []).append(target.controller)
    return [
        f"{raid_spec.VARIABLE}: {own.label} matches no drive of {' and '.join(controller.label for controller in there[key])}."
        for key, spec in specs.items()
        for own in spec.drives
        if own.match is not None and not any(raid_spec.matching([own], drive) for controller in there[key] for drive in controller.drives)
    ]


def _impossible(target: RaidTarget) -> str | None:
    """Why a setting cannot be made, or could not be proved."""
    if not target.settings:
        return None
    reason = target.provider.objection(target.controller, target.subject, target.settings, target.controller_settings)
    if reason is not None:
        return reason
    untold = next((attribute for attribute in target.settings if not _is_told(target, attribute)), None)
    return untold and f"does not report its {untold}, so that a change could not be verified ({target.provider.name} prints none)"


def _is_told(target: RaidTarget, attribute: str) -> bool:
    """Whether a change of an attribute could be read back: old firmware reports only what is in effect."""
    if attribute == "cache_ratio" and target.brings_ratio:
        return True
    value = getattr(target.subject, attribute, None)
    reported = {value.configured, value.effective} if isinstance(value, Policy) else {configured(target.subject, attribute)}
    return not reported <= {None, UNKNOWN}


def _reduced(target: RaidTarget, reason: str) -> tuple[RaidTarget, dict[str, str]]:
    """A target of ``all`` with the settings it can have, and why it cannot have the others."""
    alone = {name: _impossible(dataclasses.replace(target, settings={name: value})) for name, value in target.settings.items()}
    left_out = {name: why for name, why in alone.items() if why is not None}
    reduced = dataclasses.replace(target, settings={name: value for name, value in target.settings.items() if name not in left_out})
    if _impossible(reduced) is not None:
        # The settings exclude each other.
        return dataclasses.replace(target, settings={}), dict.fromkeys(target.settings, reason)
    return reduced, left_out


def _check_left_out(targets: t.Sequence[RaidTarget], target: RaidTarget, left_out: t.Mapping[str, str]) -> None:
    """Of all, at least one must be able to have a setting; and a volume that should keep less in memory must be able to.

    :raises BadInput: with the controller's own reason.
    """
    alike = [other for other in targets if not other.named and type(other.subject) is type(target.subject) and other.controller is target.controller]
    for attribute, why in left_out.items():
        value = target.settings[attribute]
        safer = isinstance(target.subject, Volume) and _SAFER.get(attribute) == value
        if safer or all(attribute in _reduced(other, why)[1] for other in alike if attribute in other.settings):
            raise BadInput(f"{target.label} {why}.", item=target.item)


def _phase(target: RaidTarget, attribute: str, value: t.Any) -> int:
    """When a step has its turn: what keeps less in memory, the controller, everything else, and what a cached volume brings."""
    if isinstance(target.subject, Volume):
        return 0 if _SAFER.get(attribute) == value else 2
    if isinstance(target.subject, Drive):
        return 2
    return 3 if attribute == "cache_ratio" and target.brings_ratio else 1


def _steps(target: RaidTarget, phase: int) -> list[Step]:
    position = {attribute: index for index, attribute in enumerate(target.provider.order)}
    settings = sorted(target.settings.items(), key=lambda pair: position.get(pair[0], len(position)))
    return [
        step
        for attribute, value in settings
        if _phase(target, attribute, value) == phase and not target.provider.agrees(target.controller, target.subject, attribute, value)
        for step in _steps_of_one(target, attribute, value)
    ]


def _steps_of_one(target: RaidTarget, attribute: str, value: t.Any) -> list[Step]:
    """One attribute, and whatever else its command sets: the latter shares the command and is sent once."""
    words = target.provider.command(target.controller, target.subject, attribute, value)
    follows = {name: after for name, after in target.follows(attribute, value).items() if name not in target.settings}
    return [
        Step(
            layer=LAYER,
            item=target.item,
            attribute=name,
            before=configured(target.subject, name),
            after=after,
            action=f"Set {name} of {target.label} to {after} (was {configured(target.subject, name)}{reason})",
            operation=SendCommand(target.provider.name, target.provider.tool, tuple(words)),
        )
        for name, after, reason in (
            (attribute, value, ""),
            *((name, after, f"; one switch is for this and {attribute}") for name, after in follows.items()),
        )
    ]
