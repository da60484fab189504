# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Simulators of Broadcom's storcli64 and Dell's perccli64, generation 7.x: the same grammar and the same answers under two names.

Stand-ins for proprietary tools, for tests. The truth is in the answer, not in the exit status: a refused policy is told in
"Detailed Status", and some refusals exit 0. Words that the grammar does not know are a syntax error in plain text even where JSON
was asked for.
"""

from __future__ import annotations

import typing as t

from . import storcli_views as views
from .simulator import Answer, Simulator, State
from .storcli_grammar import Command, SyntaxRefusal, parse
from .storcli_models import BROADCOM, DELL
from .storcli_print import Block, as_json, refused
from .storcli_views import View

#: Exit status of a syntax error, as it was seen; of a failure without a code of its own.
_SYNTAX_STATUS = 255
_FAILURE_STATUS = 1
_UNSUPPORTED = "Un-supported command"
_WRONG_STATE = "device state doesn't support requested command"


class Outcome(t.NamedTuple):
    """What one controller answers.

    :param details: rows of "Detailed Status".
    :param quiet: the exit status is 0 in spite of a failure.
    """

    response: views.Response | None = None
    success: bool = True
    description: str = "None"
    details: t.Sequence[views.Response] = ()
    quiet: bool = False

    @property
    def exit_status(self) -> int:
        if self.success or self.quiet:
            return 0
        return next((int(row["ErrCd"]) for row in self.details if row["ErrCd"]), _FAILURE_STATUS)


class Refusal(t.NamedTuple):
    """Why a policy of a volume is not changed."""

    code: int
    message: str
    quiet: bool = False
    silent: bool = False


#: Property of a volume on the command line: its name in the answer, its place in the state, and its words (lower case to printed).
class _VolumeProperty(t.NamedTuple):
    printed: str
    key: str
    words: t.Mapping[str, str]


_SWITCH = {"on": "On", "off": "Off"}
_VOLUME_PROPERTIES = {
    "wrcache": _VolumeProperty("wrCache", "write", {"wt": "WT", "wb": "WB", "awb": "AWB"}),
    "rdcache": _VolumeProperty("rdCache", "read", {"ra": "RA", "nora": "NoRA"}),
    "iopolicy": _VolumeProperty("IoPolicy", "io", {"cached": "Cached", "direct": "Direct"}),
    "pdcache": _VolumeProperty("PdCac", "disk_cache", {**_SWITCH, "default": "Default"}),
}


class StorCli(Simulator):
    """storcli64 7.x. State: ``{"faults": {…}, "controllers": [see storcli_models], "cli_version": …, "operating_system": …}``.

    Details of a fault are ``True`` or ``{"controllers": [numbers], "volumes": [ids], …}`` to limit it; without them it concerns all.
    """

    name: t.ClassVar[str] = "storcli"
    paths: t.ClassVar[tuple[str, ...]] = ("/opt/MegaRAID/storcli/storcli64", "/opt/hpe/storcli/storcli64")
    models: t.ClassVar[t.Mapping[str, t.Callable[..., State]]] = BROADCOM
    binding: t.ClassVar[str] = "storcli_model"
    faults: t.ClassVar[t.Mapping[str, str]] = {
        "battery_failed": "The battery or CacheVault failed: write-back becomes write-through, the configured policy stays.",
        "battery_missing": "The battery or CacheVault was taken out: like failed, and /cx/bbu says that it is absent.",
        "battery_degraded": "The battery needs attention and a learn cycle: write-through, controller status Needs Attention.",
        "learn_cycle": "A learn cycle runs: write-through until it ends, the controller stays Optimal.",
        "capacitor_charging": "The battery or CacheVault is charging: write-through until it is charged.",
        "hba_mode": "The card is in HBA mode: its drives are JBOD and there are no volumes (they come back with the mode).",
        "refused_policy": "Policies of volumes are refused and the exit status is 0; details: properties, volumes, code, message, "
        "silent (claims success and changes nothing).",
        "plain_text_error": "A syntax error in plain text in spite of J; details: verb (only commands with this verb, such as set).",
        "vd_offline": "Volumes are offline: nothing of theirs can be set.",
        "lost_rows": "A summary has lost the last row of its lists; details: list (only of this one, such as VD LIST).",
        "no_controller": "The tool is there, a card is not.",
        "incomplete_foreign": "A summary is a failure with data, because of drives with an incomplete foreign configuration.",
    }
    #: Name of the tool in its banner, in its help, and its version unless the state tells one.
    banner: t.ClassVar[str] = "StorCli SAS Customization Utility"
    version: t.ClassVar[str] = "007.2707.0000.0000 Dec 18, 2023"

    def answer(self, words: t.Sequence[str], stdin: str) -> Answer:
        """What the tool prints for these words; changes the state where they say so."""
        try:
            command = parse(words)
            limit = self.state.get("faults", {}).get("plain_text_error")
            if limit and command.json and (not isinstance(limit, dict) or command.verb == limit.get("verb", command.verb)):
                raise SyntaxRefusal("TOKEN_UNKNOWN")
            return self._answer(command)
        except SyntaxRefusal as refusal:
            expected = "" if refusal.token == "$end" else ", expecting $end"
            return Answer(f"syntax error, unexpected {refusal.token}{expected}\n{self._help()}", _SYNTAX_STATUS)

    def busy(self, given: Answer) -> Answer:
        """The refusal of firmware whose state does not allow it; that it is for this reason is assumed."""
        return Answer(as_json(refused(given.stdout, {"ErrCd": 50, "ErrMsg": _WRONG_STATE})), 50)

    @staticmethod
    def fault_of(controllers: t.Sequence[int]) -> t.Any:
        return {"controllers": list(controllers)}

    def _answer(self, command: Command) -> Answer:
        if command.controllers is None:
            return Answer(as_json([self._overview_block(command)]))
        blocks, statuses = [], []
        chosen = command.controllers.among(range(len(self._controllers())))
        if not chosen:
            return Answer(as_json([self._block({"Status": "Failure", "Description": "No Controller found"})]), _FAILURE_STATUS)
        for number in chosen:
            outcome = self._outcome(number, command)
            status: Block = {"Controller": number, "Status": "Success" if outcome.success else "Failure", "Description": outcome.description}
            if outcome.details:
                status["Detailed Status"] = list(outcome.details)
            blocks.append(self._block(status, outcome.response))
            statuses.append(outcome.exit_status)
        return Answer(as_json(blocks), next((status for status in statuses if status), 0) & 0xFF)

    def _controllers(self) -> list[State]:
        return [] if self.has_fault("no_controller") else self.state.get("controllers", [])

    def _system(self) -> str:
        return self.state.get("operating_system", "Linux 6.12.0-simulated")

    def _version(self) -> str:
        return self.state.get("cli_version", self.version)

    def _banner(self) -> str:
        return f"\n      {self.banner} Ver {self._version()}\n\n    (c)Copyright {self._version()[-4:]}, Broadcom Inc. All Rights Reserved.\n\n"

    def _help(self) -> str:
        """The banner and the first lines of the help; the real one goes on with a list of commands."""
        return f"{self._banner()}\nhelp - lists all the commands with their usage. E.g. {self.name} help\n"

    def _block(self, status: Block, response: views.Response | None = None) -> Block:
        head = {"CLI Version": self._version(), "Operating system": self._system()}
        return {"Command Status": {**head, **status}, **({"Response Data": response} if response else {})}

    def _view(self, number: int) -> View:
        faults = {}
        for name, details in self.state.get("faults", {}).items():
            if details and (not isinstance(details, dict) or number in details.get("controllers", [number])):
                faults[name] = details
        return View(number, self._controllers()[number], faults)

    def _overview_block(self, command: Command) -> Block:
        """The answer to ``show``, which is about the host and always a success."""
        every = [self._view(number) for number in range(len(self._controllers()))]
        raid, plain = [view for view in every if not view.state["hba"]], [view for view in every if view.state["hba"]]
        status = {"Status Code": 0, "Status": "Success", "Description": "None"}
        host = self.state.get("host_name", "simulated")
        response: views.Response = {"Number of Controllers": len(every), "Host Name": host, "Operating System ": self._system()}
        if plain:
            response.update({"StoreLib IT Version": "07.2700.0200.0300", "StoreLib IR3 Version": "16.14-0"})
        if raid:
            response["System Overview"] = [views.overview_row(view) for view in raid]
            if command.rest == ("all",):
                response["ASO"] = [views.options_row(view) for view in raid]
        if plain:
            response["IT System Overview"] = [views.overview_row(view) for view in plain]
        return self._block(status, response)

    def _outcome(self, number: int, command: Command) -> Outcome:
        if number >= len(self._controllers()):
            return Outcome(success=False, description=f"Controller {number} not found")
        view = self._view(number)
        handlers: dict[str, t.Callable[[View, Command], Outcome]] = {
            "controller": self._controller,
            "volumes": self._volumes,
            "drives": self._drives,
            "bbu": self._protection,
            "cv": self._protection,
        }
        return handlers[command.target](view, command)

    def _controller(self, view: View, command: Command) -> Outcome:
        if command.verb == "show" and command.rest in ((), ("all",)):
            return self._summary(view, full=bool(command.rest))
        if view.state["hba"] or not view.state["abilities"]["jbod_write_cache"]:
            return Outcome(success=False, description="Un-supported Command" if command.verb == "show" else _UNSUPPORTED)
        for _word, value in command.assignments:
            view.state["settings"]["jbodwritecache"] = "Default" if value == "default" else value.upper()
        value = str(view.state["settings"]["jbodwritecache"])
        return Outcome({"Controller Properties": [{"Ctrl_Prop": "JBOD Write Cache", "Value": value}]})

    def _summary(self, view: View, full: bool) -> Outcome:
        response = views.controller_full(view) if full else views.controller_brief(view)
        if view.faults.get("lost_rows"):
            response = views.without_rows(response, view.faults["lost_rows"])
        if view.faults.get("incomplete_foreign") and not view.state["hba"]:
            row = {"Ctrl": view.number, "Status": "Failed", "ErrCd": 59, "ErrMsg": "Incomplete foreign configuration"}
            return Outcome(response, success=False, details=[row])
        return Outcome(response)

    def _controller_row(self, view: View, message: str, code: int) -> views.Response:
        return {"Ctrl": view.number, "Status": "Failed", "Property": "-", "ErrMsg": message, "ErrCd": code}

    def _volumes(self, view: View, command: Command) -> Outcome:
        if view.state["hba"]:
            return Outcome(success=False, description=_UNSUPPORTED)
        if not view.volumes and command.objects.text == "all":
            return Outcome(success=command.verb == "show", description="No VD's have been configured.")
        known = {volume["id"]: volume for volume in view.volumes}
        wanted = command.objects.among(known)
        volumes = [known[number] for number in wanted if number in known]
        missing = [number for number in wanted if number not in known]
        rows = [{"VD": number, "Status": "Failed", "ErrCd": 255, "ErrMsg": "Invalid VD number"} for number in missing]
        if command.verb == "show":
            response = views.volumes_full(view, volumes) if command.rest else views.volumes_brief(view, volumes)
            return Outcome(response if volumes else None, success=not rows, details=rows)
        return self._set_volumes(view, volumes, command.assignments, rows)

    def _set_volumes(self, view: View, volumes: list[State], assignments: t.Sequence[tuple[str, str]], rows: list[views.Response]) -> Outcome:
        refusals = []
        for volume in volumes:
            for word, text in assignments:
                prop = _VOLUME_PROPERTIES[word]
                value = prop.words[text]
                refusal = self._refusal(view, volume, word, value)
                refusals += [refusal] if refusal and not refusal.silent else []
                if not refusal:
                    volume[prop.key] = value
                told = refusal if refusal and not refusal.silent else None
                row = {"VD": volume["id"], "Property": prop.printed, "Value": value, "Status": "Failed" if told else "Success"}
                rows.append({**row, "ErrCd": told.code if told else 0, "ErrMsg": told.message if told else "-"})
        failed = bool(refusals) or any(row["Status"] == "Failed" for row in rows)
        return Outcome(success=not failed, details=rows, quiet=bool(refusals) and all(refusal.quiet for refusal in refusals))

    def _refusal(self, view: View, volume: State, word: str, value: str) -> Refusal | None:
        """Why this card does not change this policy of this volume, or ``None`` when it does."""
        abilities = view.state["abilities"]
        details = view.faults.get("refused_policy")
        if details and view.named("refused_policy", volume):
            limits = details if isinstance(details, dict) else {}
            if word in limits.get("properties", [word]):
                code, message = limits.get("code", 151), limits.get("message", "Policy not supported")
                return Refusal(code, message, quiet=True, silent=bool(limits.get("silent")))
        if view.volume_state(volume) != "Optl":
            return Refusal(50, _WRONG_STATE)
        if word == "pdcache" and not abilities["change_ssd_cache"] and view.has_ssd(volume):
            return Refusal(255, "SSD Pd is present", quiet=True)
        if (word == "wrcache" and value != "WT" and not abilities["write_back"]) or (value == "Cached" and not abilities["cached_io"]):
            return Refusal(151, "Policy not supported")
        return None

    def _drives(self, view: View, command: Command) -> Outcome:
        if view.state.get("ir"):
            return Outcome(success=False, description=_UNSUPPORTED)
        here = view.state["enclosure"] in command.enclosures.among([view.state["enclosure"]]) if command.enclosures else True
        known = {drive["slot"]: drive for drive in view.state["drives"]} if here else {}
        wanted = command.objects.among(known)
        drives = [known[slot] for slot in wanted if slot in known]
        path = f"/c{view.number}/e{command.enclosures.first if command.enclosures else view.state['enclosure']}"
        missing = [slot for slot in wanted if slot not in known]
        if missing or not drives:
            rows = [{"Drive": f"{path}/s{slot}", "Status": "Failure", "ErrCd": 255, "ErrMsg": "Drive not found"} for slot in missing]
            return Outcome(success=False, description="Show Drive Information Failed." if rows else "No drive found!", details=rows)
        response = views.drives_full(view, drives) if command.rest else views.drives_brief(view, drives)
        return Outcome(response, description="Show Drive Information Succeeded.")

    def _protection(self, view: View, command: Command) -> Outcome:
        unit, told = view.state["protection"], view.protection
        if view.state["hba"]:
            return Outcome(success=False, description=_UNSUPPORTED)
        if not unit or not told or told.fault == "battery_missing":
            message = "Battery is absent!" if command.target == "bbu" else "Cachevault is absent!"
            return Outcome(success=False, details=[self._controller_row(view, message, 34)])
        other = {"battery": "bbu", "cachevault": "cv"}[unit["kind"]]
        if other != command.target:
            return Outcome(success=False, details=[self._controller_row(view, f"use /cx/{other}", 255)])
        if command.rest == ():
            return Outcome(views.unit_summary(view))
        return Outcome(views.unit_details(view, told))


class PercCli(StorCli):
    """perccli64 7.x, Dell's name for the same tool."""

    name: t.ClassVar[str] = "perccli"
    paths: t.ClassVar[tuple[str, ...]] = ("/opt/MegaRAID/perccli/perccli64",)
    models: t.ClassVar[t.Mapping[str, t.Callable[..., State]]] = DELL
    banner: t.ClassVar[str] = "PercCli SAS Customization Utility"
    version: t.ClassVar[str] = "007.2616.0000.0000 Dec 06, 2023"
