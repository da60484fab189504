# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The journal of a power-loss test on the controller: a file for each host, to which events are only appended."""

from __future__ import annotations

import json
import os
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotUnderstood, Refused, TooMuchOutput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file, sync_folder
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, MIB, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import component

_ENDING = ".ndjson"
#: Bytes of one event, which has what a host reported of its target and its drives, and of all events of a host: thousands of cuts.
_EVENT = json_text.Limits(size=256 * KIB, depth=16, values=10_000, containers=2_000)
_LARGEST = 64 * MIB

#: Events. ``opened``: a run of the playbook began; ``begun``: a cut has its run id; ``writing``: the writer runs; ``cutting``: the power is about
#: to be cut; ``verified``: with its verification; ``interrupted``: nothing was cut, or it was not seen; ``removed``: what was written is gone.
OPENED, BEGUN, WRITING, CUTTING, VERIFIED, INTERRUPTED, REMOVED = "opened", "begun", "writing", "cutting", "verified", "interrupted", "removed"
EVENTS = (WRITING, CUTTING, VERIFIED, INTERRUPTED, REMOVED)


@dataclass
class Cut:
    """One cut of a host.

    :param number: from 1.
    :param run: id of its run.
    :param boot_id: of the boot in which the writer wrote; empty if it was never started.
    :param stack: verdict of ``cache_stack_info`` on the target, and its drives.
    :param verification: of ``power_loss_verify``; empty if there is none.
    """

    number: int
    run: str
    state: str = BEGUN
    boot_id: str = ""
    target: t.Mapping[str, t.Any] = field(default_factory=dict)
    stack: t.Mapping[str, t.Any] = field(default_factory=dict)
    verification: t.Mapping[str, t.Any] = field(default_factory=dict)
    reason: str = ""
    announced: bool = False
    removed: bool = False


@dataclass
class HostJournal:
    """What was done on one host, in all runs of the playbook."""

    host: str
    settings: t.Mapping[str, t.Any] = field(default_factory=dict)
    cuts: list[Cut] = field(default_factory=list)
    controller: t.Mapping[str, t.Any] = field(default_factory=dict)

    def verified(self) -> list[Cut]:
        return [cut for cut in self.cuts if cut.state == VERIFIED]

    def pending(self) -> Cut | None:
        """The last cut, if a run of the playbook was interrupted in it."""
        last = self.cuts[-1] if self.cuts else None
        if last is None or (last.state in (VERIFIED, INTERRUPTED) and last.removed):
            return None
        return last


def path_of(folder: Path, host: str) -> Path:
    """:raises BadInput: if the name of the host cannot be a file name."""
    return folder / f"{component(host, 'host')}{_ENDING}"


def append(folder: Path, host: str, event: str, **facts: t.Any) -> None:
    """Append an event, and return once it is on the disk.

    :raises CommandFailed: if it cannot be written, or has no room left.
    :raises TooMuchOutput: if what the host reported is larger than any such report.
    """
    path = path_of(folder, host)
    text = json.dumps({"event": event, **facts}, sort_keys=True)
    try:
        json_text.loads(text, _EVENT)
    except NotUnderstood as error:
        raise TooMuchOutput(f"What {host} reported of the power-loss test cannot be recorded: {error.message}. Check that host.", item=host) from None
    data = (text + "\n").encode()
    try:
        new = not path.exists()
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            size = os.fstat(descriptor).st_size
            if size + len(data) > _LARGEST:
                raise CommandFailed(f"{path} has more than {format_size(_LARGEST)}: use another power_loss_test_name.", item=host)
            # Begins a new line where a controller was killed within one.
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                data = b"\n" + data
            while data:
                data = data[os.write(descriptor, data) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if new:
            sync_folder(folder)
    except OSError as error:
        raise CommandFailed(f"{path} cannot be written on the controller: {error.strerror}.", item=host) from None


def load(folder: Path, host: str) -> HostJournal:
    """The journal of a host; without a file an empty one.

    :raises NotUnderstood: if it is damaged elsewhere than where a controller was killed.
    """
    path = path_of(folder, host)
    journal = HostJournal(host)
    try:
        lines = read_file(path, 2 * _LARGEST).split("\n")
    except CommandFailed as error:
        raise NotUnderstood(f"On the controller, {error.message}", item=host) from None
    for number, line in enumerate(lines, 1):
        try:
            if line:
                _apply(journal, json_text.loads(line, _EVENT))
        except (NotUnderstood, ValueError, OverflowError, KeyError, TypeError, AttributeError):
            # What was being written when a controller was killed is followed by the next opening.
            if any(lines[number:]) and '"event": "opened"' not in lines[number]:
                raise NotUnderstood(f"{path} is damaged at line {number}: use another power_loss_test_name.", item=host) from None
    return journal


def load_all(folder: Path) -> list[HostJournal]:
    """The journals of all hosts, by name."""
    return [load(folder, path.name[: -len(_ENDING)]) for path in sorted(folder.glob(f"*{_ENDING}"))]


def _apply(journal: HostJournal, event: t.Mapping[str, t.Any]) -> None:
    kind = event["event"]
    if kind == OPENED:
        journal.settings = dict(event["settings"])
        journal.controller = dict(event.get("controller") or {})
        return
    if kind == BEGUN:
        journal.cuts.append(Cut(int(event["cut"]), str(event["run"])))
        return
    cut = next((one for one in journal.cuts if one.run == event["run"]), None)
    if cut is None:
        raise KeyError(event["run"])
    if cut.state == VERIFIED and kind != REMOVED:
        # Nothing takes a verified cut back.
        return
    if kind == WRITING:
        cut.boot_id, cut.target, cut.stack = str(event["boot_id"]), dict(event["target"]), dict(event["stack"])
    elif kind == VERIFIED:
        cut.verification = dict(event["verification"])
    elif kind == REMOVED:
        cut.removed = True
        return
    cut.announced = cut.announced or kind == CUTTING
    cut.reason = str(event.get("reason") or "")
    cut.state = kind


def require_same(journal: HostJournal, settings: t.Mapping[str, t.Any]) -> None:
    """:raises Refused: if earlier cuts were made with other settings: their verdicts cannot be joined."""
    if not journal.settings:
        return
    names = sorted(name for name in {*journal.settings, *settings} if journal.settings.get(name) != settings.get(name))
    if names:
        raise Refused(
            f"{journal.host} was tested with other settings in this test ({', '.join(names)}): use another power_loss_test_name, or the same settings.",
            item=journal.host,
        )


def require_alone(journal: HostJournal, controller: t.Mapping[str, t.Any]) -> None:
    """:raises Refused: if another run of the playbook is testing the host."""
    other = journal.controller
    if not other or other == controller or other.get("host") != controller.get("host"):
        return
    pid = other.get("pid")
    if isinstance(pid, int) and start_of(pid) == other.get("start"):
        raise Refused(f"{journal.host} is being tested by another run of the playbook (process {pid}): wait for its end.", item=journal.host)


def start_of(pid: int) -> str:
    """What distinguishes a process from a later one of the same number; empty if it has ended. Source: proc(5), field 22 of ``stat``."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
