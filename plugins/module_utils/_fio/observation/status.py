# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""``runner.json``: what the runner of a campaign is doing, and whether it still runs; ``runner.log``: what it did.

A process number alone does not identify a process after a reboot or a while, so the boot and the start of the process belong to it.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.own_files import READABLE, append_line, write_draft
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import SCHEMA

STATUS_FILE = "runner.json"
#: Bytes of a status; it has about one thousand. The controller asks for no more.
LARGEST_STATUS = 65536
_LIMITS = json_text.Limits(size=LARGEST_STATUS, depth=16, values=10_000, containers=2_000)
#: Characters of a text in it: messages quote the outputs of tools.
_LONGEST_TEXT = 2000
_NUMBERS = ("segment", "step", "steps", "repeat", "done", "failed", "pid", "pid_started")
_TEXTS = ("state", "cell", "target", "message", "error", "order_sha256", "boot_id")
#: States in which the runner has ended, or ends next.
ENDED = ("finished", "stopped", "failed")
#: Bytes of a log after which a new one is begun.
_MOST = 256 * 1024


class Status:
    """The present state, written whenever something changes. Two threads use it."""

    def __init__(self, home: Path, clock: t.Callable[[], float] = time.time, **fixed: t.Any) -> None:
        self.path = home / STATUS_FILE
        self.clock = clock
        self._lock = threading.Lock()
        self._values: dict[str, t.Any] = {
            "schema": SCHEMA,
            "order_sha256": None,
            **process_identity(),
            "state": "starting",
            "segment": 0,
            "step": None,
            "steps": 0,
            "cell": None,
            "repeat": None,
            "target": None,
            "iops": None,
            "bandwidth": None,
            "latency_ms": None,
            "since": clock(),
            "until": None,
            "all_until": None,
            "done": 0,
            "failed": 0,
            "message": "",
            "error": None,
            "archive": {},
            **fixed,
        }

    def __getitem__(self, name: str) -> t.Any:
        return self._values[name]

    def update(self, **values: t.Any) -> None:
        """Change some values and write all; a full disk does not stop a measurement."""
        with self._lock:
            if values.get("state", self._values["state"]) != self._values["state"]:
                values.setdefault("since", self.clock())
            self._values.update({name: _shortened(value) for name, value in values.items()})
            with contextlib.suppress(OSError):
                # The user of the connection reads it again and again.
                write_draft(self.path, json.dumps({**self._values, "time": self.clock()}), mode=READABLE)


def _shortened(value: t.Any) -> t.Any:
    return f"{value[:_LONGEST_TEXT]}…" if isinstance(value, str) and len(value) > _LONGEST_TEXT else value


class RunnerLog:
    """``runner.log``: what a runner did and when, never more than a few hundred kilobytes. A full disk does not stop a measurement."""

    def __init__(self, home: Path) -> None:
        self.path = home / "runner.log"

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            if self.path.exists() and self.path.stat().st_size > _MOST:
                self.path.replace(self.path.with_name("runner.log.1"))
            append_line(self.path, f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}")


def process_identity() -> dict[str, t.Any]:
    """What distinguishes this process from every other one that ever had its number."""
    return {"pid": os.getpid(), "boot_id": boot_id(), "pid_started": started_of(os.getpid())}


def boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def started_of(pid: int) -> int | None:
    """When a process started, in clock ticks since the boot; ``None`` if it is gone or has ended and waits for its parent.

    Source: proc(5), ``/proc/pid/stat``: the name may contain blanks and parentheses, field 3 is the state, field 22 the start.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return None if fields[0] in ("Z", "X") else int(fields[19])
    except (OSError, IndexError, ValueError):
        return None


def read_status(home: Path) -> dict[str, t.Any]:
    """The status of the last runner of a campaign; empty if there was none, or if it is not one that a runner writes."""
    try:
        with open(home / STATUS_FILE, "rb") as file:
            found = json_text.loads(file.read(LARGEST_STATUS + 1), _LIMITS)
    except (OSError, NotUnderstood):
        return {}
    return found if isinstance(found, dict) and _has_types(found) else {}


def _has_types(status: t.Mapping[str, t.Any]) -> bool:
    texts = all(isinstance(status.get(name), (str, type(None))) for name in _TEXTS)
    return texts and all(isinstance(status.get(name), (int, type(None))) for name in _NUMBERS) and isinstance(status.get("archive", {}), dict)


def is_alive(status: t.Mapping[str, t.Any]) -> bool:
    """Whether the process that wrote a status still runs."""
    pid, started = status.get("pid"), status.get("pid_started")
    if not isinstance(pid, int) or started is None or status.get("boot_id") != boot_id():
        return False
    return started_of(pid) == started
