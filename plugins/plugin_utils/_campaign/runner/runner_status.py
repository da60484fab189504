# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The status of the runner on a host (``runner.json`` in its spool), and what the controller keeps of it for the progress display.

Every value comes from a host: numbers are numbers here, and text is safe on a terminal.
"""

from __future__ import annotations

import contextlib
import json
import re
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import replacing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import component
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.status import LARGEST_STATUS

#: States of a runner while its process runs, and those in which it has ended by itself.
LIVING = ("starting", "waiting", "pausing", "measuring")
ENDED = ("finished", "stopped", "failed")

#: The folder of a campaign with the last status of every host. It begins with a dot: no host has such a name.
PROGRESS_FOLDER = ".progress"

_LIMITS = json_text.Limits(size=4 * LARGEST_STATUS, depth=16, values=10_000, containers=2_000)

#: No status has a time before 2001, in seconds since the epoch: such a clock was never set.
_EARLIEST = 1e9

_BOOT_ID = re.compile(r"[0-9a-f-]{36}\Z")


class StrangeStatus(StorageError):
    """The status from a host is not what a runner writes."""

    kind = "strange_status"


@dataclass(frozen=True)
class RunnerStatus:
    """One status of a runner.

    :param segment: the part of the order between two barriers that it waits for or works on, from 0; ``None`` before the first one, while it pauses or
        warms caches.
    :param step: the step it is at, from 0, of ``steps``.
    :param iops: of its devices in the last sample, per second; ``bandwidth``: bytes per second; ``latency_ms``: milliseconds.
    :param until: when it expects the cell to end, ``all_until``: everything; ``time``: the time of the status. All of them are seconds since
        the epoch of the clock of the host, and so is ``since``.
    :param done: cells that are finished; ``failed``: those of them that are not ok.
    :param archive: ``path``, ``sha256`` and ``size`` of the packed results of a runner that has finished, as the host reports them; or empty.
    """

    state: str
    segment: int | None = None
    step: int = 0
    steps: int = 0
    cell: str = ""
    repeat: int | None = None
    target: str = ""
    iops: float | None = None
    bandwidth: float | None = None
    latency_ms: float | None = None
    since: float | None = None
    until: float | None = None
    all_until: float | None = None
    done: int = 0
    failed: int = 0
    message: str = ""
    time: float | None = None
    pid: int | None = None
    pid_started: int | None = None
    boot_id: str = ""
    order_sha256: str = ""
    archive: t.Mapping[str, t.Any] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def left(self) -> float | None:
        """Seconds until everything is done, at the time of this status."""
        return None if self.all_until is None or self.time is None else max(self.all_until - self.time, 0.0)

    @property
    def overdue(self) -> float:
        """Seconds for which everything should have been done already, at the time of this status."""
        return 0.0 if self.all_until is None or self.time is None else max(self.time - self.all_until, 0.0)

    @property
    def cell_left(self) -> float | None:
        """Seconds until this cell is done, at the time of this status."""
        return None if self.until is None or self.time is None else max(self.until - self.time, 0.0)

    def to_dict(self) -> dict[str, t.Any]:
        """Plain data for the result of a task."""
        return dict(vars(self))


def read_status(text: str) -> RunnerStatus:
    """The status in the text of a ``runner.json``.

    :raises StrangeStatus: if it is none.
    """
    if len(text) > LARGEST_STATUS:
        raise StrangeStatus(f"The host sends {len(text)} characters as the status of its runner, and none has more than {LARGEST_STATUS}.")
    try:
        raw = json_text.loads(text, _LIMITS)
    except NotUnderstood:
        raise StrangeStatus(f"The host sends a status of its runner that is not JSON: '{plain(text, 80)}'.") from None
    if not isinstance(raw, dict) or raw.get("schema") != 1 or isinstance(raw.get("schema"), bool):
        raise StrangeStatus("The host sends a status of its runner of another version: use one version of the collection.")
    state = raw.get("state")
    if state not in LIVING and state not in ENDED:
        raise StrangeStatus(f"The host reports that its runner is in the state '{plain(state, 40)}', which does not exist.")
    return RunnerStatus(
        state=str(state),
        **{name: _count(raw.get(name)) or 0 for name in ("step", "steps", "done", "failed")},
        **{name: _count(raw.get(name)) for name in ("segment", "repeat", "pid", "pid_started")},
        **{name: _amount(raw.get(name)) for name in ("iops", "bandwidth", "latency_ms")},
        **{name: _instant(raw.get(name)) for name in ("since", "until", "all_until", "time")},
        **{name: "" if raw.get(name) is None else plain(raw[name], longest) for name, longest in (("cell", 128), ("target", 128), ("message", 300))},
        boot_id=str(raw["boot_id"]) if _BOOT_ID.match(str(raw.get("boot_id"))) else "",
        order_sha256=plain(raw.get("order_sha256") or "", 64),
        archive=_archive(raw.get("archive")),
    )


def _archive(value: t.Any) -> dict[str, t.Any]:
    """What is collected is verified then: here only that it is one, and short."""
    if not isinstance(value, dict) or not isinstance(value.get("path"), str) or not isinstance(value.get("sha256"), str):
        return {}
    size = _count(value.get("size"))
    return {} if size is None else {"path": plain(value["path"], 4096), "sha256": plain(value["sha256"], 64), "size": size}


def _amount(value: t.Any) -> float | None:
    """A finite number that is not negative, else ``None``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        converted = float(value)
    except OverflowError:
        return None
    return converted if 0 <= converted < 1e24 else None


def _count(value: t.Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def _instant(value: t.Any) -> float | None:
    found = _amount(value)
    return found if found is not None and _EARLIEST < found < 1e11 else None


# ---------------------------------------------------------------------------------------------------------------------
# For those who watch


@dataclass(frozen=True)
class Watched:
    """The last status of a host, as the controller keeps it.

    :param seen: when, in seconds since the epoch of the controller's clock.
    :param note: a further note on the host, for example that it is not in reach.
    :param ended: it is not polled any more.
    """

    host: str
    status: RunnerStatus | None
    seen: float
    note: str = ""
    ended: bool = False

    def left(self, now: float) -> float | None:
        """Seconds until the host is done, estimated at another time of the controller's clock."""
        if self.status is None or self.status.left is None:
            return None
        return max(self.status.left - max(now - self.seen, 0.0), 0.0)


def keep(campaign: Path, watched: Watched) -> None:
    """Write a status. A failure to write it does not stop anything."""
    value = {"host": watched.host, "seen": watched.seen, "note": watched.note, "ended": watched.ended, "status": None}
    if watched.status is not None:
        value["status"] = {"schema": 1, **watched.status.to_dict()}
    folder = campaign / PROGRESS_FOLDER
    with contextlib.suppress(OSError, StorageError):
        name = component(watched.host, "host")
        folder.mkdir(exist_ok=True)
        # It is not needed after a crash.
        with replacing(folder / f"{name}.json", durable=False) as file:
            json.dump(value, file)


def forget(campaign: Path, host: str) -> None:
    """Remove the last status of a host."""
    with contextlib.suppress(OSError, StorageError):
        (campaign / PROGRESS_FOLDER / f"{component(host, 'host')}.json").unlink()


def watched_hosts(campaign: Path) -> list[Watched]:
    """The last status of every host of a campaign, by name. What cannot be read is left out."""
    found = []
    for path in sorted((campaign / PROGRESS_FOLDER).glob("[!.]*.json")):
        try:
            if path.stat().st_size > 2 * LARGEST_STATUS:
                continue
            value = json_text.loads(path.read_bytes(), _LIMITS)
            status = None if value.get("status") is None else read_status(json.dumps(value["status"]))
            seen = _instant(value.get("seen"))
            if seen is not None:
                found.append(Watched(plain(path.stem, 128), status, seen, plain(value.get("note") or "", 200), value.get("ended") is True))
        except (OSError, ValueError, AttributeError, TypeError, StorageError):
            continue
    return found
