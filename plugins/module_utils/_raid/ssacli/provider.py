# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""HPE Smart Array controllers (drivers hpsa and smartpqi) through ssacli, or hpssacli and hpacucli before it.

One read is one command for the whole host. ``modify`` prints nothing when it succeeds. Words that set something, with where they are from:

=============================================  ====================================================================================
``ld N modify caching=enable|disable``         public notes and tools; ``arrayaccelerator=`` before the label ``Caching`` came up
``modify nbwc=enable|disable``                 libstoragemgmt, public notes
``modify cacheratio=<read>/<write>``           public notes
``modify dwc=enable|disable``                  older controllers, the line ``Drive Write Cache``
``modify dwc=<word> usage=<class>``            newer controllers; the tool's own help lists enable, disable and default for configured,
                                               unconfigured and hba, and answers ``Error: Parameter "usage" must be specified.`` without
``forced``                                     answers the prompt of ``dwc=enable``; accepted by ``caching=`` and ``nbwc=`` too
=============================================  ====================================================================================

Not confirmed by anything public: what the tool answers if a setting is so already (taken here for success if it reports
"already"), and its words when Smart Path or a battery forbids a setting.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    DEFAULT,
    DISABLED,
    ENABLED,
    NONE,
    READ_AHEAD,
    UNKNOWN,
    WRITEBACK,
    WRITEBACK_ALWAYS,
    WRITES_BACK,
    WRITETHROUGH,
    Controller,
    Reading,
    Volume,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import Judgement, RaidProvider, Settings, Subject, configured
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.ssacli import text as ssacli_text
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.ssacli.text import parse

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed

__all__ = ["SsaCli", "parse"]

#: Our words for switches as in the tool's commands.
SWITCH_WORDS: t.Mapping[str, str] = {ENABLED: "enable", DISABLED: "disable"}
DRIVE_POLICY_WORDS: t.Mapping[str, str] = {**SWITCH_WORDS, DEFAULT: "default"}
#: Both policies of a volume hang on one switch.
CACHING_WORDS: t.Mapping[str, str] = {READ_AHEAD: "enable", NONE: "disable", WRITEBACK: "enable", WRITEBACK_ALWAYS: "enable", WRITETHROUGH: "disable"}
_QUESTIONS = ("continue?", "(y/n)", "are you sure")


class SsaCli(RaidProvider):
    """The command language of ssacli, which hpssacli and hpacucli share as far as caches are concerned."""

    name = "ssacli"

    def read(self) -> Reading:
        """Every controller, by ``ctrl all show config detail``."""
        completed = self.run("ctrl", "all", "show", "config", "detail")
        text = completed.stdout if completed.stdout.strip() else completed.stderr
        reading = ssacli_text.parse_configuration(text)
        if reading.controllers or ssacli_text.says_no_controller(text):
            return reading
        if not text.strip():
            return Reading(not_understood=(f"{completed.command_line} printed nothing (exit status {completed.rc})",), complete=False)
        message = " ".join(ssacli_text.errors(text))
        if message or (completed.rc != 0 and reading.complete):
            raise CommandFailed(f"{completed.command_line} failed: {message or completed.last_words}", completed=completed)
        return reading

    def objection(self, controller: Controller, subject: Subject, settings: Settings, controller_settings: Settings) -> str | None:
        """Why these settings are not possible, or ``None``."""
        if isinstance(subject, Controller):
            return next(filter(None, (_controller_objection(controller, name, value, controller_settings) for name, value in settings.items())), None)
        if isinstance(subject, Volume):
            return _volume_objection(controller, subject, settings, controller_settings)
        return f"cannot have {', '.join(settings)}, since this controller has one policy per class of drives: set its drive_cache" if settings else None

    def agrees(self, controller: Controller, subject: Subject, attribute: str, value: t.Any) -> bool:
        """As configured; the two write-back words are one setting of the volume, distinguished by ``no_battery_write_cache``."""
        current = configured(subject, attribute)
        if attribute == "write":
            if value == WRITETHROUGH and controller.cache_ratio == 100:
                return current != UNKNOWN
            return current == value or (current in WRITES_BACK and value in WRITES_BACK)
        if attribute == "drive_cache" and isinstance(subject, Volume):
            return controller.drive_cache.get(_class_of_volumes(controller), UNKNOWN) == value
        return current == value

    def side_effects(self, controller: Controller, subject: Subject, attribute: str, value: t.Any, controller_settings: Settings) -> Settings:
        """What the one switch of a volume for reading and writing sets besides."""
        if not isinstance(subject, Volume) or attribute not in ("read", "write"):
            return {}
        # The ratio changes after the volumes, so it leaves writes alone only if it did before and will.
        only_reads = controller.cache_ratio == 100 and controller_settings.get("cache_ratio", 100) in (None, 100)
        if attribute == "write":
            if value in WRITES_BACK:
                return {"read": READ_AHEAD}
            return {} if only_reads and self.agrees(controller, subject, attribute, value) else {"read": NONE}
        if value != READ_AHEAD or only_reads:
            return {"write": WRITETHROUGH}
        no_battery = controller_settings.get("no_battery_write_cache") or controller.no_battery_write_cache
        return {"write": WRITEBACK_ALWAYS if no_battery == ENABLED else WRITEBACK}

    def command(self, controller: Controller, subject: Subject, attribute: str, value: t.Any) -> list[str]:
        """``ctrl slot=N modify …`` or ``ctrl slot=N ld N modify …``."""
        words = ["ctrl", f"slot={controller.id}"]
        if isinstance(subject, Volume) and attribute in ("read", "write"):
            switch = controller.traits.get("volume_switch", "caching")
            return [*words, "ld", subject.id, "modify", f"{switch}={CACHING_WORDS[value]}", "forced"]
        words.append("modify")
        if attribute == "no_battery_write_cache":
            return [*words, f"nbwc={SWITCH_WORDS[value]}", "forced"]
        if attribute == "cache_ratio":
            return [*words, f"cacheratio={int(value)}/{100 - int(value)}"]
        kind = _class_of_volumes(controller) if attribute == "drive_cache" else attribute.partition(".")[2]
        policy = f"dwc={DRIVE_POLICY_WORDS[value]}"
        return [*words, policy, "forced"] if kind == "all" else [*words, policy, f"usage={kind}", "forced"]

    def judge(self, completed: Completed) -> Judgement:
        """Silence is success, ``Error:`` is not, whatever the exit status; a warning alone does no harm."""
        text = f"{completed.stdout}\n\n{completed.stderr}"
        message = " ".join(ssacli_text.errors(text))
        if message:
            return Judgement("already" in message.lower(), message)
        if any(question in text.lower() for question in _QUESTIONS):
            return Judgement(False, f"it prompted for confirmation: {' '.join(text.split())}")
        if completed.rc != 0:
            return Judgement(False, completed.last_words)
        return Judgement(True)


def _class_of_volumes(controller: Controller) -> str:
    """The class of drives that those of logical drives belong to."""
    return "all" if "all" in controller.drive_cache else "configured"


def _controller_objection(controller: Controller, attribute: str, value: t.Any, controller_settings: Settings) -> str | None:
    setting = f"cannot have {attribute}: {value}"
    if attribute == "cache_ratio":
        if not 0 <= int(value) <= 100:
            return f"{setting}, since it is a percentage of the cache for reading, from 0 to 100"
        if controller.cache_ratio is None and controller_settings.get("caching") and controller.cache.status == "not_configured":
            # The first volume that is cached brings the ratio.
            return None
        if controller.cache_ratio is None:
            return f"{setting}, since {_no_cache(controller) or 'it tells no cache ratio, so the ratio cannot be set now'}"
        return None
    if attribute == "no_battery_write_cache":
        if controller.no_battery_write_cache == UNKNOWN:
            return f"{setting}, since {_no_cache(controller) or 'it has no such setting'}"
        return None if value in SWITCH_WORDS else f"{setting}, since it is either enabled or disabled"
    kind = attribute.partition(".")[2]
    if kind not in controller.drive_cache:
        others = ", ".join(f"drive_cache.{one}" for one in controller.drive_cache)
        return f"{setting}, since it has {f'only {others}' if others else 'no policy for the caches of drives'}"
    if value not in (SWITCH_WORDS if kind == "all" else DRIVE_POLICY_WORDS):
        return f"{setting}, since its policy for drives is {'enabled or disabled' if kind == 'all' else 'enabled, disabled or default'}"
    return None


def _no_cache(controller: Controller) -> str:
    """Why there is no cache to set, as a clause; empty if there is one."""
    if controller.mode == "hba":
        return "the controller is in HBA mode"
    if controller.cache.status == UNKNOWN and controller.no_battery_write_cache == UNKNOWN:
        return "nothing is reported about a cache on this controller"
    message = f": {controller.cache.reason}" if controller.cache.reason else ""
    return {
        "absent": "the controller has no cache board",
        "permanently_disabled": f"its cache is permanently disabled{message}",
        "not_configured": "its cache is not configured: no logical drive has caching enabled",
    }.get(controller.cache.status, "")


def _volume_objection(controller: Controller, volume: Volume, settings: Settings, controller_settings: Settings) -> str | None:
    if "io" in settings:
        return f"cannot have io: {settings['io']}, since Smart Array controllers have no I/O policy"
    if settings.get("read", NONE) not in CACHING_WORDS:
        return f"cannot have read: {settings['read']}, since its cache is on (read_ahead) or off (none)"
    kind = f"drive_cache.{_class_of_volumes(controller)}"
    if "drive_cache" in settings and controller_settings.get(kind) != settings["drive_cache"]:
        return f"cannot have drive_cache: {settings['drive_cache']} of its own, since the policy is for all drives of the controller: set its {kind}"
    if settings.get("write") == WRITETHROUGH and "read" not in settings and _through_by_ratio(controller, volume, controller_settings):
        return (
            f"cannot have write: {WRITETHROUGH} with cache_ratio: {controller_settings['cache_ratio']}, since it is cached and writes through only "
            f"because the ratio is 100 now: set read: {NONE} with it"
        )
    if settings.get("write") not in WRITES_BACK and settings.get("read") != READ_AHEAD:
        return None
    return _caching_objection(controller, volume, settings, controller_settings)


def _through_by_ratio(controller: Controller, volume: Volume, controller_settings: Settings) -> bool:
    """Whether a cached volume writes through only as long as the ratio is what it is now."""
    leaves = controller.cache_ratio == 100 and controller_settings.get("cache_ratio") not in (None, 100)
    return leaves and volume.read.configured == READ_AHEAD


def _caching_objection(controller: Controller, volume: Volume, settings: Settings, controller_settings: Settings) -> str | None:
    """Why a volume cannot be cached as requested; at least one of ``read`` and ``write`` uses the cache."""
    read, write = settings.get("read"), settings.get("write")
    setting = f"cannot have write: {write}" if write in WRITES_BACK else f"cannot have read: {read}"
    no_cache = _no_cache(controller)
    if no_cache and controller.cache.status in ("absent", UNKNOWN):
        return f"{setting}, since {no_cache}"
    if volume.status == "failed":
        return f"{setting}, since the logical drive has failed"
    if volume.read.configured != READ_AHEAD and (volume.acceleration == "io_bypass" or controller.traits.get("smart_path", {}).get(volume.array or "")):
        return f"{setting}, since SSD Smart Path is on for array {volume.array}: a logical drive has either Smart Path or the controller's cache"
    ratio = controller_settings.get("cache_ratio", controller.cache_ratio)
    if write == WRITETHROUGH and (ratio != 100 or controller.cache_ratio != 100):
        return f"cannot have read: {read} with write: {write}, since one switch is for both (only a cache ratio of 100 percent for reading leaves writes alone)"
    if write in WRITES_BACK and read == NONE:
        return f"cannot have write: {write} with read: {read}, since one switch is for both"
    if write in WRITES_BACK and ratio == 100:
        return f"{setting}, since the cache ratio leaves 0 percent for writing: set cache_ratio of the controller below 100"
    no_battery = controller_settings.get("no_battery_write_cache") or controller.no_battery_write_cache
    if write == WRITEBACK_ALWAYS and no_battery != ENABLED:
        return f"{setting}, since no_battery_write_cache of the controller is {no_battery}: it has to be enabled, and then counts for all logical drives"
    if write == WRITEBACK and no_battery == ENABLED:
        return f"{setting} (only while protected), since no_battery_write_cache of the controller is enabled: disable it, or set writeback_always"
    return None
