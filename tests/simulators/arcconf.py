# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A stand-in for arcconf, the tool of Adaptec and Microchip RAID cards. It is a SIMULATOR: no controller is behind it.

It speaks for both generations, aacraid (series 6 to 8) and SmartRAID. What it prints is held to captured outputs by
``tests/simulators/tests/test_arcconf.py``. Reading comes first here; what changes a state is in ``arcconf_cache`` and
``arcconf_maxcache``.
"""

from __future__ import annotations

import copy
import typing as t

from . import arcconf_maxcache
from . import arcconf_state as now
from . import arcconf_text as text
from .arcconf_cache import set_cache
from .arcconf_call import (
    ABORTED,
    FAILED,
    INVALID_ARGUMENTS,
    INVALID_CONTROLLER,
    NOT_SUPPORTED,
    WAS_ABORTED,
    AbortedError,
    Call,
    InvalidArgumentsError,
    commands,
    menu,
    number,
    usage,
)
from .arcconf_layouts import MAIN_RULE, layout_of, section
from .arcconf_models import MODELS
from .simulator import Answer, Simulator, State

_UNKNOWN_TO_OLD_BUILDS = ("MC", "AR")
_READING = ("GETCONFIG", "GETSTATUS", "GETVERSION", "LIST")


class Arcconf(Simulator):
    """``arcconf <command> <controller> …``."""

    name = "arcconf"
    paths = ("/usr/Arcconf/arcconf", "/usr/sbin/arcconf", "/usr/StorMan/arcconf")
    models = MODELS
    binding = "arcconf_model"
    faults = {
        "battery_failed": "The battery, ZMM, supercap or green backup has failed: protected write-back falls to write-through; SmartRAID suspends its cache.",
        "learn_cycle": "The unit is in maintenance (Maintenance mode; Learn Status Active; Recharging) and protects nothing meanwhile.",
        "capacitor_charging": "The unit is not charged yet.",
        "zmm_not_installed": "There is no ZMM, battery or backup unit on the card.",
        "hba_mode": "The card is in HBA mode: no volumes, drives are raw. No effect on cards without modes.",
        "refused_policy": "What is set is answered with success, and nothing changes.",
        "cache_permanently_disabled": "SmartRAID: the cache module is broken.",
        "no_controller": "No controller is found.",
        "drive_write_cache_unknown": "The Write Cache line of drives is missing; with the value unknown it is there and says Unknown.",
        "old_build": "arcconf 6.50: nologs is an argument error, newer commands and SmartRAID cards are unknown to it.",
    }

    def answer(self, words: t.Sequence[str], stdin: str) -> Answer:
        """What arcconf prints for these words."""
        if not words:
            return Answer(_joined(menu(old=self._old)))
        command = words[0].upper()
        if command not in commands(old=self._old):
            return Answer(_joined(menu(old=self._old)), INVALID_ARGUMENTS)
        head = f"Controllers found: {len(self._controllers())}"
        backup = copy.deepcopy(self.state.get("controllers", [])) if command not in _READING else []
        call: Call | None = None
        try:
            rest, noprompt = self._options(list(words[1:]), command)
            if command in ("LIST", "GETVERSION"):
                return Answer(_joined([head, *self._overview(command, rest)]))
            if not rest:
                raise InvalidArgumentsError
            chosen = number(rest[0])
            if not 1 <= chosen <= len(self._controllers()):
                return Answer(_joined([head, "Invalid controller number."]), INVALID_CONTROLLER)
            faults = now.faults_of(self.state, chosen)
            call = Call(self._controllers()[chosen - 1], chosen, rest[1:], noprompt, faults, self._old)
            return Answer(_joined([head, *self._to_controller(command, call, backup)]))
        except InvalidArgumentsError:
            self._restore(backup)
            return Answer(_joined([head, *usage(command, self._grammars(), old=self._old)]), INVALID_ARGUMENTS)
        except AbortedError as error:
            self._restore(backup)
            printed = [head, *(call.printed if call else []), *error.sentences, "", ABORTED]
            # The real tool ends here without a newline.
            return Answer("\n".join(printed), WAS_ABORTED)

    def busy(self, given: Answer) -> Answer:
        """The failure of a command that the controller has not carried out; that it is for this reason is assumed."""
        return Answer(_joined([given.stdout.partition("\n")[0], "", "Command failed."]), FAILED)

    @staticmethod
    def fault_of(controllers: t.Sequence[int]) -> t.Any:
        return [number + 1 for number in controllers]

    # ------------------------------------------------------------------------------------------------------- the machine

    @property
    def _old(self) -> bool:
        return self.has_fault("old_build")

    def _controllers(self) -> list[State]:
        """The controllers that this build finds."""
        if self.has_fault("no_controller"):
            return []
        found: list[State] = self.state.get("controllers", [])
        return [controller for controller in found if controller["generation"] == "aacraid"] if self._old else found

    def _restore(self, backup: list[State]) -> None:
        """Takes back what a command changed before it was refused."""
        for controller, before in zip(self.state.get("controllers", []), backup):
            controller.clear()
            controller.update(before)

    def _grammars(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(layout_of(controller).grammar for controller in self._controllers()))

    def _options(self, rest: list[str], command: str) -> tuple[list[str], bool]:
        """The words without the options at their end, and whether prompts are to be left out."""
        noprompt = False
        allowed = {"nologs"} if not self._old else set()
        if self._may_prompt(command, rest):
            allowed.add("noprompt")
        while rest and rest[-1].lower() in allowed:
            noprompt = noprompt or rest.pop().lower() == "noprompt"
        return rest, noprompt

    def _may_prompt(self, command: str, rest: list[str]) -> bool:
        if command == "SETCACHE":
            form = rest[1].upper() if len(rest) > 1 else ""
            # SmartRAID builds are called with it by other programs for DEVICE too, though their usage does not list it.
            newer = any(grammar in ("smart", "hba") for grammar in self._grammars())
            return form in ("LOGICALDRIVE", "DEVICEALL", "DRIVEWRITECACHEPOLICY", "NOBATTERYWRITECACHE") or (form == "DEVICE" and newer)
        return command in ("CREATE", "DELETE")

    # ----------------------------------------------------------------------------------------------------------- commands

    def _to_controller(self, command: str, call: Call, backup: list[State]) -> list[str]:
        if command == "GETCONFIG":
            printed = self._get_config(call)
            arcconf_maxcache.flush_a_little(call.controller)
            return [*printed, "", text.SUCCESS]
        if command == "GETSTATUS":
            if call.words:
                raise InvalidArgumentsError
            return ["   Current operation              : None", "", text.SUCCESS]
        changes: dict[str, t.Callable[[Call], None]] = {
            "SETCACHE": set_cache,
            "SETMAXCACHE": arcconf_maxcache.set_maxcache,
            "CREATE": arcconf_maxcache.create,
            "DELETE": arcconf_maxcache.delete,
        }
        changes[command](call)
        if call.faults.get("refused_policy"):
            self._restore(backup)
        return [*call.printed, "", text.SUCCESS]

    def _get_config(self, call: Call) -> list[str]:
        controller, faults, chosen = call.controller, call.faults, call.number
        what, rest = (call.words[0].upper(), call.words[1:]) if call.words else ("AL", [])
        if what not in ("AD", "LD", "PD", "AR", "MC", "AL") or (self._old and what in _UNKNOWN_TO_OLD_BUILDS):
            raise InvalidArgumentsError
        if what in ("LD", "AR", "MC") and now.in_hba_mode(controller, faults):
            raise AbortedError(NOT_SUPPORTED)
        if what == "PD" and rest:
            drives = [(number(channel), number(device)) for channel, device in _pairs(rest)]
            if not self._old and all(now.drive_at(controller, *drive) or drive == (2, 0) for drive in drives):
                return text.physical(controller, faults, drives)
            raise InvalidArgumentsError if self._old else AbortedError("The specified device does not exist.")
        only = number(rest[0]) if what in ("LD", "AR") and len(rest) == 1 else None
        if rest and only is None:
            raise InvalidArgumentsError
        if only is not None and not any(volume["id" if what == "LD" else "array"] == only for volume in now.volumes(controller, faults)):
            raise AbortedError(f"{'Logical device' if what == 'LD' else 'Array'} {only} does not exist.")
        if what in ("AR", "MC") and controller["generation"] == "aacraid" and (what == "AR" or now.maxcache_kind(controller) != "container"):
            raise AbortedError(NOT_SUPPORTED)
        if what == "AL":
            return self._everything(call)
        sections: dict[str, t.Callable[[], list[str]]] = {
            "AD": lambda: text.adapter(controller, faults),
            "LD": lambda: text.logical(controller, chosen, faults, only),
            "PD": lambda: text.physical(controller, faults),
            "AR": lambda: text.arrays(controller, chosen, faults, only),
            "MC": lambda: text.maxcache(controller, chosen),
        }
        return sections[what]()

    def _everything(self, call: Call) -> list[str]:
        controller, faults, chosen = call.controller, call.faults, call.number
        layout, raid = layout_of(controller), not now.in_hba_mode(controller, faults)
        printed = text.adapter(controller, faults)
        if raid and layout.smart:
            printed += text.arrays(controller, chosen, faults)
        if raid:
            printed += text.logical(controller, chosen, faults)
        printed += text.physical(controller, faults)
        if raid and now.maxcache_kind(controller) in ("container", "smart"):
            printed += text.maxcache(controller, chosen)
        if layout.connectors.startswith("section"):
            printed += text.connectors(controller, faults)
        return printed

    def _overview(self, command: str, rest: list[str]) -> list[str]:
        controllers = list(enumerate(self._controllers(), 1))
        if rest:
            raise InvalidArgumentsError
        if not controllers:
            return ["", text.SUCCESS]
        if command == "LIST":
            return [*self._table(controllers), "", text.SUCCESS]
        printed: list[str] = []
        for chosen, controller in controllers:
            values = {**text.adapter_values(controller, now.faults_of(self.state, chosen)), "staged firmware": controller["firmware"], "seeprom version": "0"}
            build = " (0)" if controller["series"] == "hba" else ""
            printed += [f"Controller #{chosen}", "=" * 14]
            printed += [f"{label:<39}: {values[label.casefold()]}{build}" for label in layout_of(controller).firmware_versions]
            printed += ["", ""]
        return [*printed, text.SUCCESS]

    def _table(self, controllers: t.Sequence[tuple[int, State]]) -> list[str]:
        printed = [*section("Controller information"), f"   {'Controller ID':<26}: Status, Slot, Mode, Name, SerialNumber, WWN", MAIN_RULE]
        for chosen, controller in controllers:
            mode = now.mode(controller, now.faults_of(self.state, chosen)) or now.MODES[0]
            facts = ("Optimal", f"Slot {controller['slot']}", mode, controller["model"].strip(), controller["serial"], controller["wwn"])
            printed.append(f"   {f'Controller {chosen}:':<26}: {', '.join(facts)}")
        return printed


def _pairs(words: list[str]) -> list[tuple[str, str]]:
    if len(words) % 2:
        raise InvalidArgumentsError
    return list(zip(words[::2], words[1::2]))


def _joined(lines: t.Sequence[str]) -> str:
    return "\n".join(lines) + "\n"
