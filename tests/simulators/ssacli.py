# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Simulator of ssacli (before: hpssacli, hpacucli), the tool of HPE Smart Array controllers.

It is a simulator: it reads and changes a file, no controller. The form of its answers is that of public captures; error texts
are quoted from public reports where there are any. What is assumed is named so in the comments here and in ``ssacli_text``.
"""

from __future__ import annotations

import re
import textwrap
import typing as t

from . import ssacli_text as text
from .simulator import Answer, Simulator, State
from .ssacli_models import MODELS

#: Exit status with every error text (seen with several).
FAILED = 1

#: The question before the write cache of drives is switched on, and its wrapping, as published.
_DRIVE_CACHE_WARNING = """
Warning: Without the proper safety precautions, use of write cache on physical
         drives could cause data loss in the event of power failure.  To ensure
         data is properly protected, use redundant power supplies and
         Uninterruptible Power Supplies. Also, if you have multiple storage
         enclosures, all data should be mirrored across them. Use of this
         feature is not recommended unless these precautions are followed.
         Continue? (y/n) """
_NO_CONTROLLERS = """
Error: No controllers detected. Possible causes:
        The driver for the installed controller(s) is not loaded.
        On LINUX, the scsi_generic (sg) driver module is not loaded.
        See the README file for more details.

"""
_NOT_SUPPORTED = (
    'This operation is not supported with the current configuration. Use the "show" command on devices to show additional details about the configuration.'
)
_LONG_WORDS = {"ctrl": "controller", "ld": "logicaldrive"}
_LONG_PARAMETERS = {
    "dwc": "drivewritecache",
    "nbwc": "nobatterywritecache",
    "cr": "cacheratio",
    "aa": "caching",
    "arrayaccelerator": "caching",
}
_SWITCH = {"enable": True, "disable": False}
_USAGES = ("configured", "unconfigured", "hba")


class Refused(Exception):
    """The tool prints an error and ends."""

    def __init__(self, message: str, reason: str | None = None, rc: int = FAILED) -> None:
        super().__init__(message)
        self.reason = reason
        self.rc = rc


class SsaCli(Simulator):
    """ssacli with its controllers. See the module for what is simulated."""

    name: t.ClassVar[str] = "ssacli"
    paths: t.ClassVar[tuple[str, ...]] = (
        "/usr/sbin/ssacli",
        "/opt/smartstorageadmin/ssacli/bin/ssacli",
        "/usr/sbin/hpssacli",
        "/opt/hp/hpssacli/bld/hpssacli",
    )
    faults: t.ClassVar[t.Mapping[str, str]] = {
        "battery_failed": "the battery is Failed, the cache Temporarily Disabled (unless no-battery write cache is on)",
        "capacitor_charging": "the battery is Recharging, the cache Temporarily Disabled (unless no-battery write cache is on)",
        "cable_error": "the line of the battery is missing, the cache is Permanently Disabled with the detail Cable Error",
        "permanently_disabled": "the cache is Permanently Disabled, the line of its ratio is missing",
        "hba_mode": "every controller is in HBA mode: few lines, no volumes",
        "refused_policy": "a modify prints an error, changes nothing and yet exits 0 (true, or the parameters it is for: ['caching'])",
        "ignored_policy": "a modify says nothing, exits 0 and changes nothing (true, or the parameters it is for)",
        "no_controller": "no controller is detected",
    }
    models: t.ClassVar[t.Mapping[str, t.Callable[..., State]]] = MODELS
    binding: t.ClassVar[str] = "ssacli_model"

    def answer(self, words: t.Sequence[str], stdin: str) -> Answer:
        """What ssacli prints for these words; one quoted argument with blanks counts as several."""
        given = " ".join(words).split()
        try:
            return self._answer(given)
        except Refused as refused:
            return Answer(_error(str(refused), refused.reason), refused.rc)

    def busy(self, given: Answer) -> Answer:
        """The words are those of other operations that are not possible now; the reason is assumed."""
        return Answer(_error(_NOT_SUPPORTED, "Controller is busy"), FAILED)

    def _answer(self, words: list[str]) -> Answer:
        if not words or _LONG_WORDS.get(words[0].lower(), words[0].lower()) != "controller":
            raise _syntax(words[0] if words else "")
        controllers = self._controllers(words[1:2])
        rest = words[2:]
        objects: list[tuple[str, str]] = []
        while rest and _LONG_WORDS.get(rest[0].lower(), rest[0].lower()) in ("logicaldrive", "array"):
            kind = _LONG_WORDS.get(rest[0].lower(), rest[0].lower())
            objects.append((kind, rest[1] if len(rest) > 1 else ""))
            rest = rest[2:]
        if not rest or len(objects) > 1:
            raise _syntax(rest[0] if rest else words[-1])
        command, options = rest[0].lower(), [word.lower() for word in rest[1:]]
        if command == "show":
            return Answer("".join(self._show(controller, objects, options) for controller in controllers))
        if command != "modify" or not options:
            raise _syntax(rest[0])
        return Answer("".join(self._modify(controller, objects, options) for controller in controllers))

    def _controllers(self, words: list[str]) -> list[State]:
        controllers = [] if self.has_fault("no_controller") else self.state.get("controllers", [])
        if not controllers:
            raise Refused(_NO_CONTROLLERS)
        if not words:
            raise _syntax("controller")
        selector = words[0].lower()
        if selector == "all":
            return list(controllers)
        key, equals, value = selector.partition("=")
        if not equals or key != "slot":
            raise _syntax(words[0])
        chosen = [card for card in controllers if value == str(card["slot"])]
        if not chosen:
            raise Refused(f'The controller identified by "{words[0]}" was not detected.')
        return chosen

    def _show(self, controller: State, objects: list[tuple[str, str]], options: list[str]) -> str:
        if not objects and options in (["detail"], ["config", "detail"]):
            return (text.details if len(options) == 1 else text.config_details)(self.state, controller)
        if not objects or objects[0][0] != "logicaldrive" or options != ["detail"]:
            raise _syntax(options[-1] if options else "show")
        return text.volumes_details(self.state, controller, self._volumes(controller, objects[0][1]))

    def _volumes(self, controller: State, selector: str) -> list[State]:
        volumes = [] if text.in_hba_mode(self.state, controller) else controller["volumes"]
        if not volumes:
            raise Refused("The specified device does not have any logical drives.")
        if selector.lower() == "all":
            return list(volumes)
        chosen = [volume for volume in volumes if str(volume["id"]) == selector]
        if not chosen:  # in the words of the same error about an array; assumed
            raise Refused(f'Controller identified by "slot={controller["slot"]}" does not have a logical drive identified by "{selector}".')
        return chosen

    def _arrays(self, controller: State, selector: str) -> list[State]:
        arrays = [] if text.in_hba_mode(self.state, controller) else controller["arrays"]
        chosen = [array for array in arrays if selector.lower() in ("all", array["letter"].lower())]
        if not chosen:
            raise Refused(f'Controller identified by "slot={controller["slot"]}" does not have an array identified by "{selector}".')
        return chosen

    def _modify(self, controller: State, objects: list[tuple[str, str]], options: list[str]) -> str:
        name, value, usage = _parameter(objects[0][0] if objects else "", options)
        change: t.Callable[[], None]
        if name == "caching":
            change = self._caching(controller, self._volumes(controller, objects[0][1]), value)
        elif name == "ssdsmartpath":
            change = self._smart_path(controller, self._arrays(controller, objects[0][1]), value)
        elif name == "nobatterywritecache":
            change = self._no_battery(controller, value)
        elif name == "cacheratio":
            change = self._ratio(controller, value)
        else:
            change = self._drive_cache(controller, value, usage)
        if self._policy_fault("refused_policy", name):
            raise Refused(_NOT_SUPPORTED, "Operation not available", rc=0)
        asks = name == "drivewritecache" and value == "enable" and "forced" not in options
        # Nobody answers the question.
        if not self._policy_fault("ignored_policy", name) and not asks:
            change()
        return _DRIVE_CACHE_WARNING + "\n" if asks else ""

    def _policy_fault(self, fault: str, name: str) -> bool:
        wanted = self.state.get("faults", {}).get(fault)
        if isinstance(wanted, (list, str)):
            return name in {_LONG_PARAMETERS.get(word, word) for word in ([wanted] if isinstance(wanted, str) else wanted)}
        return bool(wanted)

    def _caching(self, controller: State, volumes: list[State], value: str) -> t.Callable[[], None]:
        if value not in _SWITCH:
            raise _bad_value("caching", value)
        for volume in volumes:
            if _SWITCH[value] and text.acceleration(controller, volume) == controller["style"].get("smart_path_text"):
                raise Refused(f"Invalid drive specified: {volume['id']}")  # as reported: caching and Smart Path exclude each other
            if not controller["cache"]:
                raise Refused(_NOT_SUPPORTED, "Caching not available")

        def change() -> None:
            for volume in volumes:
                volume["caching"] = _SWITCH[value]

        return change

    def _smart_path(self, controller: State, arrays: list[State], value: str) -> t.Callable[[], None]:
        if value not in _SWITCH:
            raise _bad_value("ssdsmartpath", value)
        for array in arrays:
            media = {drive["media"] for drive in controller["drives"] if text.place(drive) in array["drives"]}
            if not controller["style"].get("smart_path") or (_SWITCH[value] and any("SSD" not in kind for kind in media)):
                raise Refused(_NOT_SUPPORTED, "SSD Smart Path not available")

        def change() -> None:
            for array in arrays:
                if array["smart_path"] != _SWITCH[value]:
                    array["smart_path"] = _SWITCH[value]
                    for volume in controller["volumes"]:
                        # Reported: without Smart Path the method of a volume is the controller's cache again.
                        if volume["array"] == array["letter"]:
                            volume["caching"] = not _SWITCH[value] and bool(controller["cache"])

        return change

    def _no_battery(self, controller: State, value: str) -> t.Callable[[], None]:
        if value not in _SWITCH:
            raise _bad_value("nobatterywritecache", value)
        self._needs_cache(controller)
        return lambda: controller.__setitem__("no_battery_write_cache", _SWITCH[value])

    def _ratio(self, controller: State, value: str) -> t.Callable[[], None]:
        self._needs_cache(controller)
        shares = re.fullmatch(r"([0-9]{1,3})/([0-9]{1,3})", value)
        if not shares or int(shares[1]) + int(shares[2]) != 100 or int(shares[1]) % 5:
            raise _bad_value("cacheratio", value)
        if text.cache_status(self.state, controller)[0] == "Permanently Disabled":
            raise Refused(_NOT_SUPPORTED, "Cache is permanently disabled")
        if int(shares[2]) and not controller["power"] and not controller["no_battery_write_cache"]:
            raise Refused(_NOT_SUPPORTED, "Write cache not available without a battery")
        return lambda: controller["cache"].__setitem__("read", int(shares[1]))

    def _needs_cache(self, controller: State) -> None:
        if not controller["cache"] or text.in_hba_mode(self.state, controller):
            raise Refused(_NOT_SUPPORTED, "Cache not available")

    def _drive_cache(self, controller: State, value: str, usage: str | None) -> t.Callable[[], None]:
        choices = _drive_cache_choices(controller, usage)
        if text.in_hba_mode(self.state, controller) and "hba" not in controller["drive_write_cache"]:
            raise Refused(_NOT_SUPPORTED, "Physical drive write cache not available")
        if value not in choices:
            raise _bad_value("drivewritecache", value)
        printed = value.capitalize() if usage else f"{value.capitalize()}d"
        return lambda: controller["drive_write_cache"].__setitem__(usage or "all", printed)


def _parameter(kind: str, options: list[str]) -> tuple[str, str, str | None]:
    """The one parameter of a modify, its value, and for which drives it is; anything else is a syntax error."""
    known = {"": ("drivewritecache", "nobatterywritecache", "cacheratio"), "logicaldrive": ("caching",), "array": ("ssdsmartpath",)}.get(kind, ())
    found: dict[str, str] = {}
    usage = None
    for option in options:
        name, equals, value = option.partition("=")
        name = _LONG_PARAMETERS.get(name, name)
        if name == "usage" and equals and not kind:
            usage = value
        elif name in known and equals and not found:
            found[name] = value
        elif option != "forced":
            raise _syntax(option)
    if not found:
        raise _syntax(options[-1])
    name, value = next(iter(found.items()))
    if usage is not None and name != "drivewritecache":
        raise _syntax(f"usage={usage}")
    return name, value, usage


def _drive_cache_choices(controller: State, usage: str | None) -> list[str]:
    """The values of the drive write cache; newer controllers need to know for which drives."""
    policies = controller["drive_write_cache"]
    if "all" in policies or not policies:
        if usage is not None:
            raise _syntax(f"usage={usage}")
        return ["enable", "disable"]
    if usage is None:
        raise Refused('Parameter "usage" must be specified.')
    if usage not in _USAGES or usage not in policies:
        raise _bad_value("usage", usage)
    return ["enable", "disable", "default"]


def _syntax(word: str) -> Refused:
    """The text is the tool's as far as anybody remembers it; no capture of it was found."""
    return Refused(f'Syntax error at "{word}"')


def _bad_value(name: str, value: str) -> Refused:
    """Assumed, in the manner of the error about a missing parameter."""
    return Refused(f'Parameter "{name}" has an invalid value: "{value}".')


def _error(message: str, reason: str | None) -> str:
    """An error as the tool prints it: a line of eighty, the rest under the first word."""
    if message == _NO_CONTROLLERS:
        return message
    wrapped = textwrap.fill(f"Error: {message}", 80, subsequent_indent=" " * 7, break_long_words=False, break_on_hyphens=False)
    return f"\n{wrapped}\n" + (f"Reason: {reason}\n" if reason else "") + "\n"
