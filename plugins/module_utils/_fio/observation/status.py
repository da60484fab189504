# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""``runner.json``: what the runner of a campaign is doing, and whether it still runs; ``runner.log``: what it did."""

from __future__ import annotations

import contextlib
import threading
import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.background_process import process_identity
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.journal import Journal, counts_as_none
from ansible_collections.cachefleet.storage.plugins.module_utils._core.own_files import READABLE, append_line
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import SCHEMA

if t.TYPE_CHECKING:
    from pathlib import Path

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
        self._journal = status_journal(home)
        self.clock = clock
        self._lock = threading.Lock()
        self._values: dict[str, t.Any] = {
            "schema": SCHEMA,
            "order_sha256": None,
            **process_identity(),
            "state": "starting",
            "segment": None,
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
            with contextlib.suppress(StorageError):
                self._journal.write({**self._values, "time": self.clock()})


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


def status_journal(home: Path) -> Journal[dict[str, t.Any]]:
    """``runner.json`` of a campaign: what the user of the connection reads again and again."""
    return Journal(home / STATUS_FILE, _checked, counts_as_none, limits=_LIMITS, mode=READABLE, durable=False)


def read_status(home: Path) -> dict[str, t.Any]:
    """The status of the last runner of a campaign; empty if there was none, or if it is not one that a runner writes."""
    return status_journal(home).read() or {}


def _checked(status: t.Any) -> dict[str, t.Any]:
    texts = all(isinstance(status.get(name), (str, type(None))) for name in _TEXTS)
    numbers = all(isinstance(status.get(name), (int, type(None))) for name in _NUMBERS)
    if not texts or not numbers or not isinstance(status.get("archive", {}), dict):
        raise TypeError
    return dict(status)
