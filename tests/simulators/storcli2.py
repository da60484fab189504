# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Simulators of storcli2 and perccli2, the tools of MegaRAID 96xx, PERC 12 and Cisco Tri-Mode controllers.

They are simulators: they read and change a file, no controller. Answers that public captures of the tools show are printed as
captured; unpublished answers are assumed, and named as such in the comments here and in ``storcli2_text``.
"""

from __future__ import annotations

import re
import typing as t

from . import storcli2_text as text
from .simulator import Answer, Simulator, State
from .storcli2_models import MODELS
from .storcli_print import as_json, refused

#: Exit status of ``show`` on a newer tool although everything is well (seen with 008.0011).
SHOW_STATUS = 6
#: A drive that is not there and a syntax error: seen to be other than 0; the number is assumed.
REFUSED_STATUS = 1

_WHICH = r"all|[0-9]{1,6}"
_SELECTOR = re.compile(rf"/c(?P<c>{_WHICH})(?:/v(?P<v>{_WHICH})|(?:/e(?P<e>{_WHICH}))?/s(?P<s>{_WHICH}))?", re.IGNORECASE)

#: Settable policies of a volume: the word, the tool's name of its token, what it prints as property, the key of the state,
#: and the values: as typed (lower case), as printed, as kept. The token and the property of ``pdcache`` are assumed.
_POLICIES: dict[str, tuple[str, str, str, dict[str, tuple[str, str]]]] = {
    "wrcache": ("TOKEN_WRITE_CACHE", "Write Cache Policy", "write", {"wt": ("WT", "WT"), "wb": ("WB", "WB"), "awb": ("AWB", "AWB")}),
    "rdcache": ("TOKEN_READ_CACHE", "Read Cache Policy", "read", {"ra": ("RA", "RA"), "nora": ("NoRA", "NoRA")}),
    "pdcache": (
        "TOKEN_PD_CACHE",
        "Drive Write Cache Policy",
        "drive_cache",
        {"on": ("On", "Enabled"), "off": ("Off", "Disabled"), "default": ("Default", "Default")},
    ),
}


class SyntaxRefusal(Exception):
    """The tool's parser stopped: printed as plain text, whatever form was asked for."""


class _Outcome(t.NamedTuple):
    """The answer for one controller."""

    status: text.Data
    data: text.Data | None = None
    rc: int = 0


class StorCli2(Simulator):
    """storcli2 with its controllers. See the module for what is simulated."""

    name: t.ClassVar[str] = "storcli2"
    paths: t.ClassVar[tuple[str, ...]] = ("/opt/MegaRAID/storcli2/storcli2",)
    faults: t.ClassVar[t.Mapping[str, str]] = {
        "battery_failed": "the energy pack is Critical: write-back volumes write through, what they are set to stays",
        "capacitor_charging": "the energy pack is Charging: the same",
        "learn_cycle": "the energy pack is Learning: the same",
        "pack_missing": "there is no energy pack: HwCfg says Absent, the table of packs is missing",
        "hba_mode": "the controller has the personality HBA: no volumes, drives are JBODs",
        "refused_policy": "a set fails in the JSON and still exits 0 (true, or the words it is for: ['pdcache'])",
        "ignored_policy": "a set succeeds and changes nothing (true, or the words it is for)",
        "plain_text_error": "every set is a plain-text syntax error in spite of J, as if the tool were older",
        "show_exits_6": "the overview exits 6 although it succeeds, also with an older tool",
    }
    models: t.ClassVar[t.Mapping[str, t.Callable[..., State]]] = MODELS
    binding: t.ClassVar[str] = "storcli_model"

    def answer(self, words: t.Sequence[str], stdin: str) -> Answer:
        """What storcli2 prints for these words."""
        rest = list(words)
        if rest and rest[-1].lower() == "j":
            rest.pop()
        if rest and rest[-1].lower() == "nolog":
            rest.pop()
        try:
            outcomes = self._outcomes(rest)
        except SyntaxRefusal as refusal:
            return Answer(self._syntax_error(str(refusal)), REFUSED_STATUS)
        answers = []
        for outcome in outcomes:
            block: text.Data = {"Command Status": outcome.status}
            if outcome.data is not None:
                block["Response Data"] = outcome.data
            answers.append(block)
        # Captures of answers about no controller end without an empty line.
        blank = bool(self.state.get("controllers")) and isinstance(outcomes[0].status.get("Controller", ""), str)
        return Answer(as_json(answers, empty="[]", blank=blank), max(outcome.rc for outcome in outcomes))

    def busy(self, given: Answer) -> Answer:
        """Assumed, in the manner of other refusals."""
        error = {"ErrType": "DCMD", "ErrCd": 50, "ErrMsg": "Device state does not support the requested command"}
        return Answer(as_json(refused(given.stdout, error), empty="[]"), REFUSED_STATUS)

    def _syntax_error(self, message: str) -> str:
        head = f"CLI Version = {text.cli_version(self.state)}\nOperating system = {text.operating_system(self.state)}\n"
        return f"{head}Status = Failure\nDescription = syntax error, {message}\n\n"

    def _outcomes(self, words: list[str]) -> list[_Outcome]:
        lowered = [word.lower() for word in words]
        if lowered[:1] == ["show"]:
            return [self._overview(lowered[1:])]
        path = ""
        while words and words[0].startswith("/"):
            path += words.pop(0)
        selector = _SELECTOR.fullmatch(path)
        if not selector:
            raise SyntaxRefusal(f"unexpected {'$end' if not path and not words else '$undefined'}")
        controllers = self.state.get("controllers", [])
        numbers = _numbers(selector["c"], range(len(controllers)))
        if not numbers:
            return [_Outcome(text.command_status(self.state, None, False, "No Controller found"))]
        outcomes = []
        for number in numbers:
            if number >= len(controllers):
                outcomes.append(_Outcome(text.command_status(self.state, number, False, f"Controller {number} not found")))
            else:
                outcomes.append(self._controller(str(number), controllers[number], selector, words))
        return outcomes

    def _overview(self, words: list[str]) -> _Outcome:
        if words not in ([], ["all"]):
            raise SyntaxRefusal("unexpected $undefined, expecting $end")
        status = text.command_status(self.state, None, True, "None")
        head = {key: status[key] for key in ("CLI Version", "Operating system")}
        status = {**head, "Status Code": 0, "Status": "Success", "Description": "None"}
        strange = bool(self.state.get("controllers")) and (text.newer(self.state) or self.has_fault("show_exits_6"))
        return _Outcome(status, text.overview(self.state), SHOW_STATUS if strange else 0)

    def _controller(self, number: str, controller: State, selector: re.Match[str], words: list[str]) -> _Outcome:
        lowered = [word.lower() for word in words]
        if selector["v"]:
            return self._volume_command(number, controller, selector["v"], words)
        if selector["s"]:
            return self._drive_command(number, controller, selector["e"] or "all", selector["s"], lowered)
        if lowered == ["show"]:
            return self._well(number, text.controller_summary(self.state, controller))
        if lowered == ["show", "all"]:
            return self._well(number, text.controller_details(self.state, controller))
        raise SyntaxRefusal(f"unexpected {_token(lowered)}")

    def _well(self, number: str, data: text.Data | None, description: str = "None", rows: t.Sequence[text.Data] = ()) -> _Outcome:
        return _Outcome(text.command_status(self.state, number, True, description, rows), data)

    def _volume_command(self, number: str, controller: State, chosen: str, words: list[str]) -> _Outcome:
        lowered = [word.lower() for word in words]
        if lowered[:1] == ["set"]:
            change = self._policy(lowered[1:])
        elif lowered != ["show", "all"]:
            raise SyntaxRefusal(f"unexpected {_token(lowered)}, expecting TOKEN_ERASE or TOKEN_INIT or TOKEN_CC or TOKEN_LOCATE")
        volumes = {volume["id"]: volume for volume in text.volumes_of(self.state, controller)}
        identifiers = _numbers(chosen, volumes)
        if not identifiers:
            return self._well(number, None, "No VD's have been configured.")  # as storcli; not captured from storcli2
        missing = [_invalid_volume(identifier) for identifier in identifiers if identifier not in volumes]
        found = [volumes[identifier] for identifier in identifiers if identifier in volumes]
        if lowered[0] == "set":
            return self._set(number, controller, found, missing, *change)
        entries = [text.volume_details(self.state, controller, volume) for volume in found]
        return _Outcome(text.command_status(self.state, number, not missing, "None", missing), {"Virtual Drives": entries})

    def _policy(self, words: list[str]) -> tuple[str, str]:
        """The one property of a set and its value; anything else stops the parser."""
        if not words:
            raise SyntaxRefusal("unexpected $end")
        name, equals, value = words[0].partition("=")
        if self.has_fault("plain_text_error") or not equals or name not in _POLICIES:
            raise SyntaxRefusal(f"unexpected {_POLICIES[name][0] if name in _POLICIES else '$undefined'}")
        if value not in _POLICIES[name][3]:
            raise SyntaxRefusal(f"unexpected $undefined, expecting {' or '.join(f'TOKEN_{word.upper()}' for word in _POLICIES[name][3])}")
        if len(words) > 1:
            raise SyntaxRefusal(f"unexpected {_token(words[1:])}, expecting $end")
        return name, value

    def _set(self, number: str, controller: State, found: list[State], missing: list[text.Data], name: str, value: str) -> _Outcome:
        _token_name, title, key, values = _POLICIES[name]
        printed, kept = values[value]
        refused = self._policy_fault("refused_policy", name)
        rows = list(missing)
        for volume in found:
            row: text.Data = {"VD": volume["id"], "Property": title, "Value": printed}
            if refused:
                # The row is built as those of other refusals; its number and text are those of storcli's list of errors.
                rows.append({**row, "Status": "Failed", "ErrType": "DCMD", "ErrCd": 151, "ErrMsg": "Requested policy is not supported"})
                continue
            rows.append({**row, "Status": "Success", "ErrType": "-", "ErrCd": "-", "ErrMsg": "-"})
            if not self._policy_fault("ignored_policy", name):
                volume[key] = kept
                if name == "pdcache":
                    _switch_drives(controller, volume)
        return _Outcome(text.command_status(self.state, number, not missing and not refused, "None", rows))

    def _policy_fault(self, fault: str, name: str) -> bool:
        wanted = self.state.get("faults", {}).get(fault)
        return name in wanted if isinstance(wanted, (list, str)) else bool(wanted)

    def _drive_command(self, number: str, controller: State, enclosures: str, slots: str, words: list[str]) -> _Outcome:
        if words == ["delete", "jbod"]:
            raise SyntaxRefusal("unexpected TOKEN_JBOD, expecting TOKEN_HOTSPARE_DRIVE")
        if words != ["show", "all"]:
            raise SyntaxRefusal(f"unexpected {_token(words)}")
        drives = {text.drive_id(drive): drive for drive in controller["drives"]}
        shelves = _numbers(enclosures, dict.fromkeys(drive["eid"] for drive in drives.values()))
        wanted = [f"{shelf}:{slot}" for shelf in shelves for slot in _numbers(slots, [drive["slot"] for drive in drives.values() if drive["eid"] == shelf])]
        found = [drives[name] for name in wanted if name in drives]
        missing = [
            {"EID:Slt": name, "PID": "-", "Status": "Failure", "ErrType": "CLI", "ErrCd": 255, "ErrMsg": "Drive not found"}
            for name in wanted
            if name not in drives
        ]
        if not found:
            return _Outcome(text.command_status(self.state, number, False, "No PD found.", missing), None, REFUSED_STATUS)
        entries = [text.drive_details(self.state, controller, drive) for drive in found]
        return _Outcome(text.command_status(self.state, number, not missing, "Show Drive Information Succeeded.", missing), {"Drives List": entries})


class PercCli2(StorCli2):
    """perccli2, Dell's storcli2: the same language under another name."""

    name: t.ClassVar[str] = "perccli2"
    paths: t.ClassVar[tuple[str, ...]] = ("/opt/MegaRAID/perccli2/perccli2",)


def _numbers(text: str, known: t.Iterable[int]) -> list[int]:
    """The numbers of ``all`` or ``3``."""
    return list(known) if text.lower() == "all" else [int(text)]


def _token(words: t.Sequence[str]) -> str:
    """How the parser calls the word at which it stopped."""
    if not words:
        return "$end"
    name = words[0].partition("=")[0]
    if name in _POLICIES:
        return _POLICIES[name][0]
    return f"TOKEN_{name.upper()}" if name in ("migrate", "start", "show", "set", "delete", "add", "expand", "jbod", "all") else "$undefined"


def _invalid_volume(identifier: int) -> text.Data:
    return {"VD": identifier, "Status": "Failed", "ErrType": "CLI", "ErrCd": 255, "ErrMsg": "Invalid VD number"}


def _switch_drives(controller: State, volume: State) -> None:
    """The policy of a volume reaches its drives; Default leaves them as they come up."""
    for drive in controller["drives"]:
        if text.drive_id(drive) in volume["drives"] and drive["write_cache_changeable"] == "Yes":
            drive["write_cache"] = {"Enabled": "On", "Disabled": "Off"}.get(volume["drive_cache"], drive["default_write_cache"])
