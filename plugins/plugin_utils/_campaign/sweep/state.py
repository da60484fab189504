# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of a sweep on the controller: a file for each host in the folder of the campaign, with what was found and what is done."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import component
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import SWEEP_FOLDER, ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import explained, read_json, write_json
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.drain import is_drain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.shapes import wrong_shape

SCHEMA = 1
#: Of a step. ``measuring``: it was interrupted, or is under way.
DONE, FAILED, REFUSED, MEASURING = "done", "failed", "refused", "measuring"

_KEY = re.compile(r"[^/]+/[1-9][0-9]{0,3}\Z")


@dataclass
class HostState:
    """One host in a sweep.

    :param machine_id: of the host that was found.
    :param found: the described variables.
    :param restore: the variables that restore it.
    :param variables: by variant.
    :param refused: reason by variant.
    :param skipped: reason by variant that is not tried again in this run, because the guard refuses its target.
    :param steps: ``state``, ``reason`` and ``seconds`` of each step that began, by ``variant/repeat``; with ``drain`` if it waited for caches.
    :param repeats: of each variant in any case; ``most_repeats``: at most, where nothing is decided.
    :param measures: a hash of the measurements of each variant; that of a variant with finished steps stays.
    :param closed: ``after`` (repeats) and ``reason`` of each variant that is not measured again.
    :param restored: whether the host is as it was; empty if it is, else the reason.
    """

    host: str
    machine_id: str
    created: str
    found: dict[str, t.Any]
    restore: dict[str, t.Any]
    variables: dict[str, dict[str, t.Any]]
    refused: dict[str, str] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    steps: dict[str, dict[str, t.Any]] = field(default_factory=dict)
    restored: bool = False
    problem: str = ""
    repeats: int = 0
    most_repeats: int = 0
    closed: dict[str, dict[str, t.Any]] = field(default_factory=dict)
    measures: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def state_of(self, key: str) -> str:
        return str(self.steps.get(key, {}).get("state", ""))

    def note(self, key: str, state: str, reason: str = "", seconds: float = 0.0, drain: t.Mapping[str, t.Any] | None = None) -> None:
        """Write down how a step ended; a variant that is refused once is refused in every repeat.

        :param drain: what its caches did before it was measured; what is known of it stays.
        """
        if state == REFUSED:
            self.refused[key.rpartition("/")[0]] = plain(reason, 500)
        before = self.steps.get(key, {})
        known = drain or before.get("drain")
        self.steps[key] = {"state": state, "reason": plain(reason, 500), "seconds": round(float(before.get("seconds", 0)) + seconds, 1)}
        if known:
            self.steps[key]["drain"] = dict(known)

    @property
    def spent(self) -> float:
        """Seconds of all steps."""
        return sum(float(one.get("seconds", 0)) for one in self.steps.values())

    @property
    def measured(self) -> list[str]:
        """The variants with a finished step."""
        return list(dict.fromkeys(key.rpartition("/")[0] for key in self.steps if self.state_of(key) == DONE))

    @property
    def repeats_done(self) -> int:
        """The last repeat of which a step is done."""
        return max((int(key.rpartition("/")[2]) for key in self.steps if self.state_of(key) == DONE), default=0)

    def seconds_of_next(self, repeat: int | None = None) -> float | None:
        """What the steps of a repeat take that are not decided; all that are left without one. What a budget left out is not.

        Each as long as the last step of its variant that was measured, else as the last of any: a fill is not in all of them.

        :returns: ``None`` before anything was measured.
        """
        done = {key.rpartition("/")[0]: float(self.steps[key]["seconds"]) for key in self.order if self.state_of(key) == DONE}
        last = next((float(self.steps[key]["seconds"]) for key in reversed(self.order) if self.state_of(key) == DONE), None)
        left_out = set(self.left_out)
        due = [key for key in self.order if self.state_of(key) not in (DONE, REFUSED) and key not in left_out]
        keys = [key for key in due if repeat in (None, int(key.rpartition("/")[2]))]
        names = [name for name in (key.rpartition("/")[0] for key in keys) if name not in {**self.closed, **self.refused, **self.skipped}]
        return None if names and last is None else sum(done.get(name, last or 0.0) for name in names)


def file_of(campaign: Path, host: str) -> Path:
    """:raises BadInput: for a name that no file can have."""
    return campaign / SWEEP_FOLDER / f"{component(host, 'host')}.json"


def load(campaign: Path, host: str) -> HostState | None:
    """What the campaign has of a host; ``None`` if it has nothing.

    :raises BadInput: if it cannot be read, or is not what :func:`save` wrote.
    """
    path = file_of(campaign, host)
    if not path.exists():
        return None
    try:
        # A thousand variants of many drives, repeated often, are more than the small files of a campaign may have.
        values = read_json(path, json_text.FIO)
    except ResultsError as error:
        raise BadInput(f"{error.message.rstrip('.')}: use another fio_benchmark_campaign.", item=host) from None
    if values.pop("schema", None) != SCHEMA or values.get("host") != host:
        raise BadInput(f"{path} is not the state of a sweep of {host}: use another fio_benchmark_campaign.", item=host)
    try:
        state = HostState(**values)
    except TypeError:
        state = None
    if state is None or not _is_whole(state):
        raise BadInput(f"{path} is damaged: use another fio_benchmark_campaign.", item=host)
    return state


def _is_whole(state: HostState) -> bool:
    """Whether everything in it is of the kind that :func:`save` wrote: the file may have been edited."""
    return (
        all(isinstance(one, str) for one in (state.machine_id, state.created, state.problem))
        and all(_is_dict(texts) and all(isinstance(one, str) for one in texts.values()) for texts in (state.refused, state.measures, state.skipped))
        and isinstance(state.restored, bool)
        and all(_is_count(one) for one in (state.repeats, state.most_repeats))
        and all(isinstance(keys, list) and all(map(_is_key, keys)) for keys in (state.order, state.left_out))
        and _is_dict(state.found)
        and _has_lists(state.restore)
        and not any(wrong_shape(name, entry, whole=True) for name, entries in state.restore.items() for entry in entries)
        and _is_dict(state.variables)
        and all(map(_has_lists, state.variables.values()))
        and _is_dict(state.steps)
        and all(_is_key(key) and _is_step(one) for key, one in state.steps.items())
        and _is_dict(state.closed)
        and all(_is_dict(one) and _is_count(one.get("after")) and isinstance(one.get("reason"), str) for one in state.closed.values())
    )


def _is_dict(value: t.Any) -> bool:
    return isinstance(value, dict)


def _is_count(value: t.Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_key(value: t.Any) -> bool:
    """``variant/repeat``."""
    return isinstance(value, str) and bool(_KEY.match(value))


def _is_step(value: t.Any) -> bool:
    return (
        _is_dict(value)
        and isinstance(value.get("state"), str)
        and isinstance(value.get("reason"), str)
        and isinstance(value.get("seconds"), (int, float))
        and (value.get("drain") is None or is_drain(value["drain"]))
    )


def _has_lists(value: t.Any) -> bool:
    """Whether it is variables of the layers."""
    return _is_dict(value) and all(isinstance(entries, list) and all(map(_is_dict, entries)) for entries in value.values())


def load_all(campaign: Path) -> tuple[list[HostState], list[str]]:
    """Every host of the sweep, by name, and one sentence for each whose state cannot be read: the other hosts do not depend on it."""
    folder = campaign / SWEEP_FOLDER
    found, damaged = [], []
    for name in sorted(path.stem for path in folder.glob("*.json")) if folder.is_dir() else []:
        try:
            state = load(campaign, name)
        except BadInput as error:
            damaged.append(error.message)
        else:
            found += [state] if state is not None else []
    return found, damaged


def baseline_of(states: t.Iterable[HostState]) -> str:
    """The variant that the others of a sweep are compared with, whichever was measured first; empty if none was planned."""
    return next((state.order[0].rpartition("/")[0] for state in states if state.order), "")


def save(campaign: Path, state: HostState) -> None:
    """:raises ResultsError: if it cannot be written."""
    path = file_of(campaign, state.host)
    with explained(campaign, f"writing the state of the sweep of {state.host}"):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"schema": SCHEMA, **vars(state)})


def require_same_host(state: HostState, machine_id: str, campaign: Path) -> None:
    """:raises Refused: for the state of another host."""
    if state.machine_id != machine_id:
        raise Refused(
            f"{file_of(campaign, state.host)} is of another host (machine-id {state.machine_id or 'unknown'}) than this one ({machine_id or 'unknown'}):"
            " use another fio_benchmark_campaign.",
            item=state.host,
        )
