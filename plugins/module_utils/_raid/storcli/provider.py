# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""storcli and perccli 7.x (MegaRAID and PERC controllers of SAS2 and SAS3, tri-mode 94xx and 95xx, HBAs): reading and setting.

A read takes three commands for the whole host, whatever the number of controllers, volumes and drives, and up to four more
in cases that are known after the first: drives without enclosure, a drive cache policy for JBODs, a unit that is not well or
of which the summary does not report enough.
The exit status means nothing with these tools; the command status and the row of each property count.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import ADAPTER_DRIVERS
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    CACHED,
    DEFAULT,
    DIRECT,
    DISABLED,
    ENABLED,
    HEALTHY,
    MISSING,
    NONE,
    READ_AHEAD,
    UNKNOWN,
    WRITEBACK,
    WRITEBACK_ALWAYS,
    WRITES_BACK,
    WRITETHROUGH,
    Controller,
    Drive,
    Protection,
    Reading,
    Volume,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import Judgement, RaidProvider, Settings, Subject, configured
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.facts import interpret, parse
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.output import Output, read_output, word
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.reader import join
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.words import ADAPTER_FLAGS, NOTHING_THERE, OTHER_PLACE, UNSUPPORTED, VOLUME_FLAGS

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed

__all__ = ["PercCli", "StorCli", "join", "parse"]

#: Our words as arguments of ``set``. There is none for adaptive reading: the tool supports ``RA`` and ``NoRA`` only.
READ_WORDS = {NONE: "NoRA", READ_AHEAD: "RA"}
WRITE_WORDS = {WRITETHROUGH: "WT", WRITEBACK: "WB", WRITEBACK_ALWAYS: "AWB"}
IO_WORDS = {DIRECT: "Direct", CACHED: "Cached"}
DRIVE_CACHE_WORDS = {ENABLED: "On", DISABLED: "Off", DEFAULT: "Default"}
JBOD_WORDS = {ENABLED: "on", DISABLED: "off", DEFAULT: "default"}

#: Each attribute of a volume: the property of ``set`` and its words.
SettingWords = t.Mapping[str, t.Tuple[str, t.Mapping[str, str]]]

#: ``nolog`` keeps the tool from leaving a storcli.log where it runs; ``J`` has to be the last word.
LAST_WORDS = ("nolog", "J")

#: Where each kind of unit is shown. A battery is queried first where the kind is not known: the card names the other word.
_PLACES = {"battery": "bbu", "capacitor": "cv", UNKNOWN: "bbu"}


class StorCli(RaidProvider):
    """storcli 7.x."""

    name = "storcli"
    #: Cached I/O puts writes into the cache whatever the write policy, so it goes first.
    order = ("drive_cache.jbod", "io", "read", "write", "drive_cache")

    settings: t.ClassVar[SettingWords] = {
        "io": ("iopolicy", IO_WORDS),
        "read": ("rdcache", READ_WORDS),
        "write": ("wrcache", WRITE_WORDS),
        "drive_cache": ("pdcache", DRIVE_CACHE_WORDS),
    }
    #: Labels of the flags with which a controller reports what cannot be set.
    labels: t.ClassVar[t.Mapping[str, str]] = {**ADAPTER_FLAGS, **VOLUME_FLAGS}
    jbod_property: t.ClassVar[t.Optional[str]] = "jbodwritecache"
    memory_label: t.ClassVar[str] = "On Board Memory Size"
    #: The value of the flag for drive caches of volumes on SSDs that means that they cannot be changed.
    blocked_word: t.ClassVar[str] = "Yes"
    #: Whether batteries and CacheVaults can be queried for more than the summary contains.
    asks_for_units: t.ClassVar[bool] = True

    # Reading

    @classmethod
    def interpret(cls, output: Output) -> Reading:
        """The contents of an output of this tool."""
        return interpret(output, cls.name)

    def read(self) -> Reading:
        summary, output = self._show("/call", "show", "all")
        readings = [summary]
        if summary.controllers:
            readings.append(self._show("/call/vall", "show", "all", listed="volumes")[0])
            readings.append(self._show("/call/eall/sall", "show", "all", listed="drives")[0])
            readings.extend(self._show(*words, needed=False)[0] for words in self._further(join(readings)))
            readings.extend(self._units(join(readings).controllers))
        elif output.complete and not any(answer.refused for answer in output.answers):
            # An answer about no controller at all is settled by the overview.
            readings.append(self._show("show")[0])
        return _with_unlisted(join(readings))

    def _further(self, reading: Reading) -> t.Iterator[t.Sequence[str]]:
        """The queries needed after the first three."""
        controllers = reading.controllers
        if any(drive.address.startswith(":") and drive.serial is None for controller in controllers for drive in controller.drives):
            yield ("/call/sall", "show", "all")
        if self.jbod_property and any(controller.drive_cache.get("jbod") == UNKNOWN for controller in controllers):
            yield ("/call", "show", self.jbod_property)

    def _units(self, controllers: t.Sequence[Controller]) -> t.Iterator[Reading]:
        """The output of units that are not healthy, or of which the summary does not report enough; each place is queried once."""
        worth = [one for one in controllers if self.asks_for_units and _is_worth_asking(one.protection)]
        places = {one.id: _PLACES[one.protection.kind] for one in worth}
        open_kind = {one.id for one in worth if one.protection.kind == UNKNOWN}
        done: set[str] = set()
        while set(places.values()) - done:
            place = min(set(places.values()) - done)
            done.add(place)
            words = (f"/call/{place}", "show", "all")
            output = self._ask(*words)
            numbers = [number for number, other in places.items() if other == place]
            places.update(_other_places(output, numbers))
            # A card that does not know the command for a battery may have a capacitor.
            unsupported = [number for number, reason in _refusals_of(output, numbers) if number in open_kind and UNSUPPORTED.search(reason)]
            elsewhere = {number: "cv" for number in unsupported if places[number] == place == "bbu"}
            places.update(elsewhere)
            yield _unit_reading(self.interpret(output), output, words, [number for number in numbers if number not in elsewhere], self.name)

    def _show(self, *words: str, needed: bool = True, listed: str = "") -> tuple[Reading, Output]:
        """One output and its contents.

        :param needed: whether the reading is worth nothing if the tool refuses it as a whole.
        :param listed: ``volumes`` or ``drives`` that an answer consists of, unless it reports that there are none.
        """
        output = self._ask(*words)
        reading = self.interpret(output)
        failures = list(_failures(output))
        problems = [f"{' '.join(words)}: {problem}" for problem in (*reading.not_understood, *(reason for _number, reason in failures))]
        lost_of = {number: [*clauses] for number, clauses in reading.lost_of.items()}
        lost = [*reading.lost]
        # A controller that answers with a failure is there, and its state is unknown; so is what it succeeded to print in an unknown layout.
        silent = [(number, f"answers with a failure: {reason}") for number, reason in failures if needed and number]
        empty = list(_empty(output, reading, listed)) if listed else []
        silent += [(number, f"reports no {listed} in its answer") for number in empty]
        for number, clause in silent:
            lost.append(f"controller {number} {clause}")
            lost_of.setdefault(number, []).append(lost[-1])
        problems += [f"{' '.join(words)}: {clause}" for clause in lost[len(lost) - len(empty) :]]
        complete = reading.complete and not (needed and any(not number for number, _reason in failures))
        owned = {number: tuple(f"{' '.join(words)}: {clause}" for clause in clauses) for number, clauses in lost_of.items()}
        lost = [f"{' '.join(words)}: {clause}" for clause in lost]
        return Reading(reading.controllers, tuple(dict.fromkeys(problems)), complete, tuple(dict.fromkeys(lost)), owned), output

    def _ask(self, *words: str) -> Output:
        """One answer.

        :raises CommandFailed: if there is none.
        """
        completed = self.run(*words, *LAST_WORDS)
        if not completed.stdout.strip() and completed.rc != 0:
            raise completed.failure()
        return read_output(completed.stdout)

    # What cannot be done

    def objection(
        self,
        controller: Controller,
        subject: Subject,
        settings: Settings,
        controller_settings: Settings,  # noqa: ARG002
    ) -> str | None:
        for attribute, value in settings.items():
            if value is None or self.agrees(controller, subject, attribute, value):
                continue
            if isinstance(subject, Volume):
                reason = self._volume_objection(controller, subject, attribute, value)
            elif isinstance(subject, Drive):
                reason = self._drive_objection(controller, subject)
            else:
                reason = self._controller_objection(controller, attribute)
            if reason is not None:
                return f"cannot have {attribute}: {value}, since {reason}"
        return None

    def _volume_objection(self, controller: Controller, volume: Volume, attribute: str, value: t.Any) -> str | None:
        if attribute not in self.settings:
            return f"{self.name} has no such setting for a volume"
        if value not in self.settings[attribute][1]:
            known = " and ".join(self.settings[attribute][1].values())
            return f"{self.name} sets {self.settings[attribute][0]} to {known} only"
        if controller.mode == "hba":
            return "the controller is an HBA and has no volumes"
        if controller.driver in ADAPTER_DRIVERS:
            return "the controller is an adapter whose firmware has no policies for volumes"
        if attribute == "write" and value in WRITES_BACK and controller.cache.memory == 0:
            return f"the controller has no cache memory ({self.memory_label}: 0 MB)"
        trait = f"can_set_{attribute}"
        if controller.traits.get(trait) is False:
            return f"the controller does not support it ({self.labels[trait]}: No)"
        if attribute == "drive_cache" and controller.traits.get("ssd_drive_cache_blocked") and _on_ssd(controller, volume):
            return f"the controller does not let the drive cache of volumes on SSDs be changed ({self.labels['ssd_drive_cache_blocked']}: {self.blocked_word})"
        return None

    def _drive_objection(self, controller: Controller, drive: Drive) -> str:
        if controller.mode == "hba":
            return "the controller is an HBA and leaves the cache of its drives to the host"
        if drive.usage == "jbod":
            if self.jbod_property is None:
                return f"{self.name} has no setting for the cache of a JBOD drive"
            return f"{self.name} sets the cache of JBOD drives for the whole controller only (drive_cache.jbod)"
        owners = [volume.id for volume in controller.volumes if drive.address in volume.members]
        where = f"drive_cache of volume {', '.join(owners)}" if owners else "drive_cache of its volume"
        return f"{self.name} has no setting for a single drive, only for all drives of a volume ({where})"

    def _controller_objection(self, controller: Controller, attribute: str) -> str | None:
        if attribute == "drive_cache.jbod" and self.jbod_property:
            supported = controller.traits.get("jbod_write_cache")
            if supported:
                return None
            label = self.labels["jbod_write_cache"]
            return (
                f"the controller does not support it ({label}: No)"
                if supported is False
                else f"the controller does not report support ({label} is not printed)"
            )
        if attribute.startswith("drive_cache."):
            jbod = " and for all JBOD drives (drive_cache.jbod)" if self.jbod_property else ""
            return f"{self.name} sets drive caches per volume{jbod}"
        if attribute == "no_battery_write_cache":
            return f"{self.name} allows that per volume (write: writeback_always)"
        return f"{self.name} has no such setting"

    # Setting

    def agrees(self, controller: Controller, subject: Subject, attribute: str, value: t.Any) -> bool:
        """Whether the requested value is the configured one, as far as that can be proved.

        Old firmware prints no ``Write Cache(initial setting)``, only what is in effect. With cached I/O that proves nothing, since writes
        are cached whatever the write policy. Otherwise write-back in effect was requested, by its own word. Write-through in effect was
        requested only if nothing can have made the controller fall back to it: its protection is healthy, it has no memory, or its
        write policy cannot be changed. With a protection that is not healthy, or not reported, a volume that was set to write-through appears
        like one that was set to write-back and fell; this is no agreement then, and a command that is repeated each run is the lesser evil. Adapters with IR
        firmware have no cache of their own.
        """
        known = configured(subject, attribute)
        if known != UNKNOWN or attribute != "write" or not isinstance(subject, Volume):
            return known == value
        # Old firmware prints no initial setting. What is in effect shows it, unless write-back may have fallen to write-through.
        if subject.io.effective != DIRECT or subject.write.effective != value:
            return False
        if controller.driver in ADAPTER_DRIVERS:
            return True
        return (
            value != WRITETHROUGH or controller.protection.protects is True or controller.cache.memory == 0 or controller.traits.get("can_set_write") is False
        )

    def command(self, controller: Controller, subject: Subject, attribute: str, value: t.Any) -> list[str]:
        if isinstance(subject, Volume):
            label, words = self.settings[attribute]
            return [f"/c{controller.id}/v{subject.id}", "set", f"{label}={words[value]}", *LAST_WORDS]
        return [f"/c{controller.id}", "set", f"{self.jbod_property}={JBOD_WORDS[value]}", *LAST_WORDS]

    def judge(self, completed: Completed) -> Judgement:
        output = read_output(completed.stdout)
        reasons = [reason for answer in output.answers for reason in answer.reasons]
        if any(answer.refused for answer in output.answers):
            return Judgement(False, "; ".join(dict.fromkeys(reasons)))
        if not output.answers:
            return Judgement(False, "" if not completed.stdout.strip() else "; ".join(output.not_understood))
        if not output.complete:
            return Judgement(False, "; ".join(output.not_understood) or "its answer is cut")
        return Judgement(True)


class PercCli(StorCli):
    """perccli 7.x: storcli under Dell's name."""

    name = "perccli"


def _on_ssd(controller: Controller, volume: Volume) -> bool:
    media = {drive.address: drive.media for drive in controller.drives}
    return any(media.get(address) == "ssd" for address in volume.members)


def _is_worth_asking(unit: Protection) -> bool:
    """Whether a unit can report more than the summary does: it is there, and not known to be healthy."""
    return unit.kind in _PLACES and unit.health not in (HEALTHY, MISSING) and (unit.kind != UNKNOWN or bool(unit.raw))


def _other_places(output: Output, numbers: t.Sequence[str]) -> dict[str, str]:
    """Where controllers report that their unit is shown instead."""
    found = ((number, OTHER_PLACE.search(reason)) for number, reason in _refusals_of(output, numbers))
    return {number: other.group(1).lower() for number, other in found if other}


def _unit_reading(reported: Reading, output: Output, words: t.Sequence[str], numbers: t.Sequence[str], provider: str) -> Reading:
    """The output of the selected controllers about their units.

    The others answer too, since one command is for all of them, and that a card has no such unit is no news. A refusal of one that
    was selected is in its own words where the state of its unit would be.
    """
    meant = [one for one in reported.controllers if one.id in (*numbers, UNKNOWN)]
    known = {one.id for one in meant if one.protection != Protection()}
    refusals = [(number, reason) for number, reason in _refusals_of(output, numbers) if number not in known]
    silent = {number: Controller(provider, id=number, protection=Protection(raw=reason)) for number, reason in reversed(refusals)}
    problems = [*reported.not_understood, *(f"controller {number}: {reason}" for number, reason in refusals)]
    return Reading((*meant, *silent.values()), tuple(dict.fromkeys(f"{' '.join(words)}: {problem}" for problem in problems)), reported.complete)


def _refusals_of(output: Output, numbers: t.Sequence[str]) -> list[tuple[str, str]]:
    """What some controllers refused; what names no controller is refused for each of them."""
    found = []
    for number, reason in _refusals(output):
        found += [(number, reason)] if number in numbers else [(one, reason) for one in numbers if number in ("", UNKNOWN)]
    return found


def _with_unlisted(reading: Reading) -> Reading:
    """With the loss of volumes and drives that a controller counts and that no output lists."""
    lost, lost_of = list(reading.lost), dict(reading.lost_of)
    for one in reading.controllers:
        volumes = len(one.volumes) + (len(one.maxcache.volumes) if one.maxcache is not None else 0)
        for kind, listed in (("volumes", volumes), ("drives", len(one.drives))):
            number = one.traits.get("announced", {}).get(kind, 0)
            if listed < number and not lost_of.get(one.id):
                lost.append(f"controller {one.id} has {number} {kind}, and {listed} are listed")
                lost_of[one.id] = (lost[-1],)
    news = [clause for clause in lost if clause not in reading.lost]
    return dataclasses.replace(reading, lost=tuple(lost), lost_of=lost_of, not_understood=(*reading.not_understood, *news))


def _empty(output: Output, reading: Reading, listed: str) -> t.Iterator[str]:
    """The controllers whose answer succeeded and shows nothing of what it consists of: its layout is another one, or it lost its rows."""
    shown = {one.id for one in reading.controllers if getattr(one, listed) or one.maxcache is not None}
    for answer in output.answers:
        number = word(answer.status.get("Controller"))
        none_there = NOTHING_THERE.search(answer.description) or (answer.data and all(value == [] for value in answer.data.values()))
        if answer.succeeded and number and number not in shown and not none_there:
            yield number


def _failures(output: Output) -> t.Iterator[tuple[str, str]]:
    """What failed, unless it only means that there is nothing of the kind: see :func:`_refusals`."""
    return ((number, reason) for number, reason in _refusals(output) if not NOTHING_THERE.search(reason))


def _refusals(output: Output) -> t.Iterator[tuple[str, str]]:
    """What failed: the controller (empty if the tool itself refuses) and its reason."""
    for answer in output.answers:
        if answer.refused and not answer.data:
            for reason in answer.reasons or ["the command failed without a reason"]:
                yield word(answer.status.get("Controller")) or ("unknown" if "Controller" in answer.status else ""), reason
