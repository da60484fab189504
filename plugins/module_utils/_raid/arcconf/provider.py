# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""arcconf: Adaptec and Microchip controllers, their IBM, Sun and Cisco builds, of both generations.

* aacraid (series 2 to 8): reading and writing are switched per volume; the cache of drives per drive, from series 7 on also for
  the whole controller.
* smart (SmartRAID, SmartHBA): one switch per volume for reading and writing; whether it writes back without protection is one
  setting of the controller; the cache of drives per class of drives.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf import text as arcconf_text
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf import words
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.maxcache_output import nologs
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    ADAPTIVE,
    DEFAULT,
    DISABLED,
    ENABLED,
    NONE,
    PER_DRIVE,
    READ_AHEAD,
    UNKNOWN,
    WRITEBACK,
    WRITEBACK_ALWAYS,
    WRITES_BACK,
    WRITETHROUGH,
    Controller,
    Drive,
    Reading,
    Volume,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import Judgement, RaidProvider, Settings, Subject, configured

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed

parse = arcconf_text.parse

_INVALID_ARGUMENTS = 3
_ABORTED = 2
_CLASSES = tuple(words.CLASS_COMMANDS)
#: Of drives whose usage is known, the class whose policy they follow.
_CLASS_OF_USAGE = {"configured": "configured", "spare": "configured", "cache": "configured", "unconfigured": "unconfigured", "hba": "hba"}


class ArcConf(RaidProvider):
    """The command ``arcconf``."""

    name = "arcconf"

    def __init__(self, runner: t.Any, tool: str) -> None:
        super().__init__(runner, tool)
        #: Whether this build supports the word ``nologs``; ``None`` until it was tried.
        self._nologs: bool | None = None

    def read(self) -> Reading:
        """LIST, then GETCONFIG once per controller; one more command on old builds, and once."""
        listed, numbers = self._list()
        configs = {number: self._config(number) for number in numbers}
        joined = arcconf_text.join(listed, configs)
        known = bool(self._nologs)
        controllers = tuple(_with_traits(controller, nologs=known) for controller in joined.controllers)
        return dataclasses.replace(joined, controllers=controllers)

    def _list(self) -> tuple[Reading, list[str]]:
        """What the tool lists, and the numbers to query."""
        completed = self.run("LIST")
        if completed.rc == _INVALID_ARGUMENTS:
            # Builds before 2010 have no LIST.
            completed = self.run("GETVERSION")
        reading = _reading(completed, expected=_says_none(completed.stdout))
        numbers = [controller.id for controller in reading.controllers if controller.id != UNKNOWN]
        match = re.search(r"controllers found\s*:\s*([0-9]{1,2})\b", completed.stdout, re.IGNORECASE)
        count = int(match.group(1)) if match else 0
        # The tool numbers its controllers from 1, whatever is missing from a cut list.
        missing = [str(number) for number in range(1, count + 1) if str(number) not in numbers]
        numbers += missing[: max(count - len(numbers), 0)]
        # All are queried, so what the list lacks is lost only if they do not respond.
        return dataclasses.replace(reading, lost=()), numbers

    def _config(self, number: str) -> Reading:
        argv = ["GETCONFIG", number, "AL"]
        completed = self.run(*argv, *([] if self._nologs is False else ["nologs"]))
        if completed.rc == _INVALID_ARGUMENTS and self._nologs is None:
            completed = self.run(*argv)
            self._nologs = False
        elif self._nologs is None and completed.rc == 0:
            self._nologs = True
        return _reading(completed)

    def objection(self, controller: Controller, subject: Subject, settings: Settings, controller_settings: Settings) -> str | None:
        if isinstance(subject, Volume):
            return _volume_objection(self, controller, subject, settings, controller_settings)
        if isinstance(subject, Drive):
            return _drive_objection(self, controller, subject, settings, controller_settings)
        return _controller_objection(self, controller, settings, controller_settings)

    def agrees(self, controller: Controller, subject: Subject, attribute: str, value: t.Any) -> bool:
        found = configured(subject, attribute)
        if attribute == "write" and is_switched(controller, subject):
            # One switch: whether it needs protection is the controller's own setting.
            return found != UNKNOWN and (found in WRITES_BACK) == (value in WRITES_BACK)
        return found == value

    def side_effects(self, controller: Controller, subject: Subject, attribute: str, value: t.Any, controller_settings: Settings) -> Settings:
        """What the switch of SmartRAID for reading and writing sets besides."""
        if attribute not in ("read", "write") or not is_switched(controller, subject):
            return {}
        if attribute == "write":
            return {"read": READ_AHEAD if value in WRITES_BACK else NONE}
        if value != READ_AHEAD:
            return {"write": WRITETHROUGH}
        without = controller_settings.get("no_battery_write_cache") or controller.no_battery_write_cache
        return {"write": WRITEBACK_ALWAYS if without == ENABLED else WRITEBACK}

    def command(self, controller: Controller, subject: Subject, attribute: str, value: t.Any) -> list[str]:
        start = ["SETCACHE", controller.id]
        quiet, log = ["noprompt"], nologs(controller)
        if isinstance(subject, Volume):
            return [*start, "LOGICALDRIVE", subject.id, _volume_word(controller, subject, attribute, value), *quiet, *log]
        if isinstance(subject, Drive):
            # The usage line of this form lists no noprompt.
            return [*start, "DEVICE", *subject.address.split(","), words.DRIVE_COMMANDS[value], *log]
        if attribute == "drive_cache.all":
            return [*start, "DEVICEALL", words.GLOBAL_COMMANDS[value], *quiet, *log]
        if attribute.startswith("drive_cache."):
            kind = words.CLASS_COMMANDS[attribute.partition(".")[2]]
            return [*start, "DRIVEWRITECACHEPOLICY", kind, words.CLASS_POLICY_COMMANDS[value], *quiet, *log]
        if attribute == "no_battery_write_cache":
            return [*start, "NOBATTERYWRITECACHE", "enable" if value == ENABLED else "disable", *quiet, *log]
        return [*start, "CACHERATIO", str(value), str(100 - int(value)), *log]

    def judge(self, completed: Completed) -> Judgement:
        """Exit status 2 is a refusal, and also the answer to a setting that was so already; refusals with 0 were seen, too."""
        lines = [line.strip() for line in f"{completed.stdout}\n{completed.stderr}".splitlines() if line.strip()]
        text = " ".join(" ".join(lines).lower().split())
        refusals = [phrase for phrase in words.REFUSALS if phrase in text]
        already = any(phrase in text for phrase in words.ALREADY)
        if not refusals and (completed.rc == 0 or (completed.rc == _ABORTED and already)):
            undone = completed.rc == 0 and not already and any(phrase in text for phrase in ("command aborted", "command failed", words.NOTHING_LEFT))
            return Judgement(ok=not undone, message=_reason(lines, refusals) if undone else "")
        meaning = words.RETURN_CODES.get(completed.rc)
        message = _reason(lines, refusals) if completed.rc != _INVALID_ARGUMENTS or refusals else "it rejects the command (invalid arguments)"
        return Judgement(ok=False, message=message or (f"exit status {completed.rc}, {meaning}" if meaning else f"exit status {completed.rc}"))


def _reading(completed: Completed, *, expected: bool = False) -> Reading:
    """The contents of an answer; an exit status that was not expected makes it incomplete."""
    reading = parse(completed.stdout)
    if completed.rc == 0 or expected:
        return reading
    message = f"{completed.command_line} ended with exit status {completed.rc}: {completed.last_words}"
    return dataclasses.replace(reading, not_understood=(*reading.not_understood, message), complete=False)


def is_switched(controller: Controller, subject: Subject) -> bool:
    """Whether reading and writing of a volume share one switch (``Caching``)."""
    if not isinstance(subject, Volume):
        return False
    message = controller.traits.get("volumes", {}).get(subject.id, {})
    return "caching" in message or ("write" not in message and "read" not in message and controller.traits.get("generation") == words.SMART)


def _volume_word(controller: Controller, volume: Volume, attribute: str, value: str) -> str:
    if is_switched(controller, volume):
        on = value in WRITES_BACK if attribute == "write" else value == READ_AHEAD
        return words.CACHING_COMMANDS[on]
    return (words.WRITE_COMMANDS if attribute == "write" else words.READ_COMMANDS)[value]


def _cannot(attribute: str, value: t.Any, reason: str) -> str:
    return f"cannot have {attribute}: {value}, since {reason}"


def _volume_objection(provider: ArcConf, controller: Controller, volume: Volume, settings: Settings, controller_settings: Settings) -> str | None:
    if "io" in settings:
        return _cannot("io", settings["io"], "arcconf has no I/O policy")
    if "drive_cache" in settings:
        instead = _instead(controller)
        return _cannot("drive_cache", settings["drive_cache"], f"arcconf does not set the cache of drives per volume: set {instead}")
    if settings.get("read") == ADAPTIVE:
        return _cannot("read", ADAPTIVE, "arcconf turns the read cache on or off and leaves the rest to the firmware: read_ahead or none")
    switched = is_switched(controller, volume)
    if switched:
        reason = _switch_objection(controller, settings, controller_settings)
        if reason is not None:
            return reason
    message = controller.traits.get("volumes", {}).get(volume.id, {})
    for attribute, value in settings.items():
        if attribute not in ("read", "write") or provider.agrees(controller, volume, attribute, value):
            continue
        if attribute == "write" and message.get("write", "").lower() == words.NOT_SUPPORTED:
            return _cannot(attribute, value, f"the controller reports 'Write-cache mode: {message['write']}'")
        reason = _state_objection(controller, volume, message)
        if reason is None and switched and value not in (NONE, WRITETHROUGH):
            reason = _protection_objection(controller, controller_settings)
        if reason is not None:
            return _cannot(attribute, value, reason)
    return None


def _switch_objection(controller: Controller, settings: Settings, controller_settings: Settings) -> str | None:
    """What one switch for reading and writing cannot distinguish."""
    read, write = settings.get("read"), settings.get("write")
    if read is not None and write is not None and (read == READ_AHEAD) != (write in WRITES_BACK):
        return (
            f"cannot have read: {read} with write: {write}, since this controller has one switch for both (Caching): "
            f"read: {READ_AHEAD} with write: {WRITEBACK}, or read: {NONE} with write: {WRITETHROUGH}"
        )
    without = controller_settings.get("no_battery_write_cache", controller.no_battery_write_cache)
    if write == WRITEBACK and without == ENABLED:
        reason = "no_battery_write_cache is enabled, and with it the controller writes back without protection, too"
        return _cannot("write", write, f"{reason}: set no_battery_write_cache: disabled")
    if write == WRITEBACK_ALWAYS and without != ENABLED:
        is_what = f"is {without}" if without != UNKNOWN else "is not reported by this controller"
        reason = f"no_battery_write_cache {is_what}, and without it the controller writes back only while protected"
        return _cannot("write", write, f"{reason}: set no_battery_write_cache: enabled")
    return None


def _state_objection(controller: Controller, volume: Volume, message: t.Mapping[str, str]) -> str | None:
    """Why the controller changes no cache setting of this volume now, in its own words."""
    if controller.mode == "hba":
        return "the controller reports 'All connectors are in HBA mode, Set cache operation is invalid.'"
    if volume.acceleration == "maxcache" or (volume.maxcache is not None and volume.maxcache.cache_volume is not None):
        return "the controller reports 'maxCache is enabled on the logical drive, controller cache cannot be modified.'"
    bypass = controller.traits.get("io_bypass", {}).get(volume.array, "")
    if volume.acceleration == "io_bypass" or bypass.lower() in ("enabled", "yes", "on", "active"):
        what = message.get("acceleration") if volume.acceleration == "io_bypass" else f"SSD I/O Bypass: {bypass}"
        array = f"array {volume.array}" if volume.array is not None else "its array"
        return f"the controller refuses it while 'SSD I/O bypass has been enabled on {array}' ({what})"
    if volume.status in ("failed", "offline"):
        return f"the controller reports 'logical device {volume.id} is in failed state. Cache settings cannot be changed for offline/failed array.'"
    return None


def _protection_objection(controller: Controller, controller_settings: Settings) -> str | None:
    without = controller_settings.get("no_battery_write_cache", controller.no_battery_write_cache)
    if controller.protection.protects is False and without == DISABLED:
        return f"the controller refuses it while 'battery status is not Ok and No Battery Write Cache is disabled' (it reports {controller.protection.raw!r})"
    return None


def _drive_objection(provider: ArcConf, controller: Controller, drive: Drive, settings: Settings, controller_settings: Settings) -> str | None:
    if "write_cache" not in settings:
        return None
    value = settings["write_cache"]
    if any(name in controller.drive_cache for name in _CLASSES):
        own = _CLASS_OF_USAGE.get(drive.usage)
        instead = f"drive_cache.{own}, the class of this drive" if own in controller.drive_cache else _instead(controller)
        return _cannot("write_cache", value, f"this controller sets the cache of drives per class: set {instead}")
    requested = controller_settings.get("drive_cache.all")
    policy = requested or controller.drive_cache.get("all")
    # A policy that is only about to come changes a drive that is as requested now.
    overruled = requested not in (None, PER_DRIVE, value)
    if provider.agrees(controller, drive, "write_cache", value) and not overruled:
        return None
    if drive.usage == "cache":
        return _cannot("write_cache", value, "the controller reports 'Disk specified cannot be used as it is assigned to MaxCache pool'")
    if policy is not None and policy != PER_DRIVE:
        return _cannot(
            "write_cache",
            value,
            f"the policy for all drives is {policy}, and the controller reports 'Please modify the controller Global Physical Devices Cache policy to "
            "Drivespecific for updating the write cache on a specific drive': set drive_cache.all: per_drive",
        )
    return None


def _controller_objection(provider: ArcConf, controller: Controller, settings: Settings, controller_settings: Settings) -> str | None:
    for attribute, value in settings.items():
        if attribute.startswith("drive_cache."):
            reason = _drive_policy_objection(controller, attribute, value)
        else:
            reason = _cache_objection(controller, attribute, controller_settings)
        if reason is not None:
            return _cannot(attribute, value, reason)
        if controller.mode == "hba" and not attribute.startswith("drive_cache.") and not provider.agrees(controller, controller, attribute, value):
            return _cannot(attribute, value, "the controller reports 'All connectors are in HBA mode, Set cache operation is invalid.'")
    return None


def _drive_policy_objection(controller: Controller, attribute: str, value: str) -> str | None:
    name = attribute.partition(".")[2]
    if name not in controller.drive_cache:
        if name == "all":
            return f"the controller prints no policy for all drives (Global Physical Device Write Cache Policy): set {_instead(controller)}"
        return f"the controller prints no policy for this class of drives: set {_instead(controller)}"
    if name == "all" and value == DEFAULT:
        return "the policy for all drives is enabled, disabled or per_drive"
    return None


def _cache_objection(controller: Controller, attribute: str, controller_settings: Settings) -> str | None:
    if attribute == "no_battery_write_cache" and controller.no_battery_write_cache == UNKNOWN:
        if controller.traits.get("generation") == words.AACRAID:
            return "it decides per volume whether to write back without protection: set write: writeback or writeback_always there"
        return "the controller prints no No-Battery Write Cache"
    if attribute == "cache_ratio" and controller.cache_ratio is None:
        if controller.traits.get("generation") == words.AACRAID:
            return "it does not divide its cache between reading and writing"
        if controller_settings.get("caching") and controller.cache.status == "not_configured":
            # The first volume that is cached brings the ratio.
            return None
        status = controller.traits.get("cache_status")
        return (
            f"the controller reports no Read Cache Percentage now (Cache Status: {status}); it has one when a volume is cached"
            if status
            else ("the controller prints no Read Cache Percentage")
        )
    return None


def _instead(controller: Controller) -> str:
    """How the cache of drives is set on this controller."""
    classes = [f"drive_cache.{name}" for name in _CLASSES if name in controller.drive_cache]
    if classes:
        return " or ".join(classes) + " of the controller"
    if "all" in controller.drive_cache:
        return "drive_cache.all of the controller, or with drive_cache.all: per_drive the write_cache of drives"
    return "the write_cache of each drive"


def _reason(lines: t.Sequence[str], refusals: t.Sequence[str]) -> str:
    """The line with the reason; the last one that is not the verdict, if none is known."""
    for line in lines:
        if any(phrase in line.lower() for phrase in refusals):
            return line
    telling = [line for line in lines if line.lower().rstrip(".! ") not in words.VERDICTS and not line.lower().startswith("controllers found")]
    return telling[-1] if telling else ""


def _says_none(stdout: str) -> bool:
    return "no controllers detected" in stdout.lower() or re.search(r"controllers found\s*:\s*0\b", stdout, re.IGNORECASE) is not None


def _with_traits(controller: Controller, **more: t.Any) -> Controller:
    return dataclasses.replace(controller, traits={**controller.traits, **more})
