# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Show one line for each measuring host while the play waits for them."""

from __future__ import annotations

DOCUMENTATION = r"""
name: progress
type: aggregate
short_description: Show the progress of benchmarks on all hosts
version_added: 1.0.0
author:
  - the cachefleet.storage authors (@cachefleet)
description:
  - While a play waits for benchmarks, shows for each host the cell that it is measuring and the number of cells, its current IOPS and latency,
    and the remaining time. On a terminal the lines are updated in place. Otherwise a line is printed when a host starts another
    cell, at most every 30 seconds for each host, or when it waits for longer than that.
  - With more hosts than lines, the hosts that need attention or take longest are shown, and the sum of all hosts.
  - Hosts are not polled for this. The callback shows the last status that M(cachefleet.storage.wait_for_runner) read.
  - While the play waits, Ansible polls its own worker processes 20 times per second instead of 1000 times, which would use
    some percent of a CPU core, unless C(internal_poll_interval) is set in ansible.cfg.
options:
  mode:
    description:
      - V(auto) updates lines in place on a terminal and prints lines otherwise, V(plain) always prints lines, V(quiet) shows nothing.
    type: str
    choices: [auto, plain, quiet]
    default: auto
    env:
      - name: CACHEFLEET_PROGRESS
    ini:
      - section: callback_progress
        key: mode
requirements:
  - enabling it, with C(callbacks_enabled = cachefleet.storage.progress) in the section C(defaults) of ansible.cfg
seealso:
  - module: cachefleet.storage.wait_for_runner
"""

import atexit
import contextlib
import shutil
import sys
import threading
import time
import typing as t
from pathlib import Path

from ansible import constants
from ansible.plugins.callback import CallbackBase

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import natural
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.table import cut, widths_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.runner.runner_status import Watched, watched_hosts
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.runner.watch import HEADER, columns_of, line_of, mark_of, ordered, sum_of

#: Seconds between two drawings, and the least between two lines of one host.
_REDRAW = 2.0
_LEAST = 30.0
#: How much longer than a drawing took of the processor the next one waits at least.
_REST = 500.0

#: Seconds between two checks of Ansible on its own processes: its own default, and while nothing but waiting is done.
_HURRIED = 0.001
_CALM = 0.05

_AWAIT = ("cachefleet.storage.wait_for_runner", "wait_for_runner", "cachefleet.storage.await_runner")
_CAMPAIGN = ("cachefleet.storage.campaign", "campaign")

#: Of terminals, as in ECMA-48 and the private modes of DEC that all of them have.
_HIDE_CURSOR = "\x1b[?25l"
_SHOW_CURSOR = "\x1b[?25h"
_NO_WRAP = "\x1b[?7l"
_WRAP = "\x1b[?7h"
_BOLD = "\x1b[1m{}\x1b[0m"


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "cachefleet.storage.progress"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args: t.Any, **words: t.Any) -> None:
        super().__init__(*args, **words)
        # What lies there from an earlier run does not apply to this one.
        self._since = time.time()
        self._campaign: Path | None = None
        self._view: _View | None = None
        self._printed: dict[str, tuple[float, tuple[t.Any, ...]]] = {}
        atexit.register(self._stop)

    def v2_runner_on_ok(self, result: t.Any) -> None:
        with contextlib.suppress(Exception):
            if str(_task_of(result).action) in _CAMPAIGN:
                path = _values_of(result).get("path")
                if isinstance(path, str) and path:
                    self._campaign = Path(path)

    def v2_playbook_on_task_start(self, task: t.Any, is_conditional: bool) -> None:  # noqa: ARG002 Ansible gives them by name
        try:
            waits = str(getattr(task, "action", "")) in _AWAIT
            _set_pace(_HURRIED, _CALM) if waits else _set_pace(_CALM, _HURRIED)
            if not waits:
                self._stop()
            elif self._view is None and self._campaign is not None and self._mode() != "quiet":
                self._view = self._new_view(self._campaign)
                self._view.begin()
        except Exception as error:  # noqa: BLE001 a picture must never stop a play
            self._give_up(error)

    def v2_playbook_on_play_start(self, play: t.Any) -> None:  # noqa: ARG002
        _set_pace(_CALM, _HURRIED)
        self._stop()

    def v2_playbook_on_stats(self, stats: t.Any) -> None:  # noqa: ARG002
        self._stop()

    def _mode(self) -> str:
        try:
            return str(self.get_option("mode"))
        except Exception:  # noqa: BLE001 without options, as in tests of others
            return "auto"

    def _new_view(self, campaign: Path) -> _View:
        if self._mode() == "plain" or not sys.stdout.isatty():
            return _Lines(campaign, self._since, self._display, self._printed)
        return _Drawing(campaign, self._since, self._display)

    def _stop(self) -> None:
        view, self._view = self._view, None
        if view is not None:
            try:
                view.end()
            except Exception as error:  # noqa: BLE001
                self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._view = None
        with contextlib.suppress(Exception):
            self._display.vv(f"The callback cachefleet.storage.progress shows nothing more: {error}")


def _set_pace(old: float, new: float) -> None:
    """Change the interval at which Ansible polls its worker processes, unless a user has set it (internal_poll_interval, read each time)."""
    if getattr(constants, "DEFAULT_INTERNAL_POLL_INTERVAL", None) == old:
        constants.DEFAULT_INTERNAL_POLL_INTERVAL = new


def _task_of(result: t.Any) -> t.Any:
    # The public name came with ansible-core 2.19, where the other one is deprecated.
    return result.task if hasattr(result, "task") else result._task


def _values_of(result: t.Any) -> t.Mapping[str, t.Any]:
    values = result.result if hasattr(result, "result") else result._result
    return values if isinstance(values, dict) else {}


class _View:
    """Reads the notes of a campaign in a separate thread while the play waits."""

    def __init__(self, campaign: Path, since: float, display: t.Any) -> None:
        self.campaign = campaign
        self.since = since
        self.display = display
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._work, name="cachefleet-progress", daemon=True)

    def begin(self) -> None:
        self.thread.start()

    def end(self) -> None:
        self.over.set()
        # It may be writing; a play is not kept for it.
        self.thread.join(timeout=5)

    def _work(self) -> None:
        rest = _REDRAW
        with contextlib.suppress(Exception):
            while not self.over.wait(rest):
                began = time.thread_time()
                hosts = [one for one in watched_hosts(self.campaign) if one.seen >= self.since]
                if hosts and not self.over.is_set():
                    self.show(hosts, time.time())
                rest = max(_REDRAW, _REST * (time.thread_time() - began))

    def show(self, hosts: t.Sequence[Watched], now: float) -> None:
        raise NotImplementedError


class _Lines(_View):
    """Prints a line when the status of a host has changed.

    :param printed: by host, the time of its last line and the printed values.
    """

    def __init__(self, campaign: Path, since: float, display: t.Any, printed: dict[str, tuple[float, tuple[t.Any, ...]]]) -> None:
        super().__init__(campaign, since, display)
        self.printed = printed
        self.found: dict[str, tuple[float, tuple[t.Any, ...]]] = {}

    def show(self, hosts: t.Sequence[Watched], now: float) -> None:
        for one in hosts:
            mark = mark_of(one)
            last, printed = self.printed.get(one.host, (0.0, ()))
            if self.found.get(one.host, (0.0, ()))[1] != mark:
                self.found[one.host] = now, mark
            # A host waits for a moment before each of its cells. A line for that would delay the line for the cell.
            is_brief = _is_idle(one) and now - self.found[one.host][0] < _LEAST
            if mark != printed and now - last >= _LEAST and not is_brief:
                self.printed[one.host] = now, mark
                self.display.display(line_of(one, now))


def _is_idle(one: Watched) -> bool:
    return one.status is not None and one.status.state in ("starting", "waiting") and not one.note and not one.ended


class _Above:
    """A stream of the play while a table is drawn: what is written to it appears above the table, which is drawn again at the next reading."""

    def __init__(self, view: _Drawing, stream: t.Any) -> None:
        self._view, self._stream = view, stream

    def write(self, text: str) -> int:
        with self._view.lock:
            self._view.erase()
            self._view.is_within_line = bool(text) and not text.endswith("\n")
            return self._stream.write(text)

    def __getattr__(self, name: str) -> t.Any:
        return getattr(self._stream, name)


class _Drawing(_View):
    """A table that is updated in place; other output of the play appears above it."""

    def __init__(self, campaign: Path, since: float, display: t.Any) -> None:
        super().__init__(campaign, since, display)
        # Ansible prints, and forks, under this lock.
        self.lock = getattr(display, "_lock", None) or contextlib.nullcontext()
        self.streams = sys.stdout, sys.stderr
        self.height = 0
        self.is_within_line = False

    def begin(self) -> None:
        with self.lock:
            self._write(_HIDE_CURSOR)
            sys.stdout, sys.stderr = (_Above(self, stream) for stream in self.streams)
        super().begin()

    def end(self) -> None:
        super().end()
        with self.lock:
            self.erase()
            sys.stdout, sys.stderr = self.streams
            self._write(_SHOW_CURSOR)

    def show(self, hosts: t.Sequence[Watched], now: float) -> None:
        size = shutil.get_terminal_size()
        header, *lines, total = table_of(hosts, now, max(size.lines - 6, 3), size.columns)
        with self.lock:
            if not self.over.is_set():
                self.erase()
                shown = "\n".join([_BOLD.format(header), *lines, _BOLD.format(total)])
                # A line that is wider than expected must not become two, which would not be erased.
                self._write(f"{chr(10) if self.is_within_line else ''}{_NO_WRAP}{shown}\n{_WRAP}")
                self.height, self.is_within_line = len(lines) + 2, False

    def erase(self) -> None:
        if self.height:
            self._write(f"\x1b[{self.height}A\r\x1b[J")
            self.height = 0

    def _write(self, text: str) -> None:
        self.streams[0].write(text)
        self.streams[0].flush()


def table_of(hosts: t.Sequence[Watched], now: float, room: int, width: int = 120) -> list[str]:
    """Lines of a table: as many hosts as fit on the terminal, and the sum of all.

    :param width: columns of the terminal. Names and remarks are shortened, figures are not.
    """
    shown = ordered(hosts, now)[:room]
    lines = [HEADER, *([plain(text, 200) for text in columns_of(one, now)] for one in sorted(shown, key=lambda one: natural(one.host)))]
    widths = widths_of(lines, (2, 0, 6), width)
    texts = [
        "  ".join(cut(text, wide).rjust(wide) if 3 <= place <= 5 else cut(text, wide).ljust(wide) for place, (text, wide) in enumerate(zip(line, widths)))
        for line in lines
    ]
    rest = len(hosts) - len(shown)
    return [line.rstrip()[:width] for line in [*texts, (f"and {rest} more. " if rest else "") + sum_of(hosts, now)]]
