# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Poll the runner of a host with cheap shell commands until it waits at a barrier or has exited."""

from __future__ import annotations

import os
import shlex
import time
import typing as t
from pathlib import Path

from ansible import constants as C  # noqa: N812
from ansible.errors import AnsibleConnectionFailure

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import component
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.status import LARGEST_STATUS
from ansible_collections.cachefleet.storage.plugins.modules.wait_for_runner import argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import Verb
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.runner.runner_status import RunnerStatus, Watched, keep, read_status
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.runner.watch import line_of, mark_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._limited_answer import require_short
from ansible_collections.cachefleet.storage.plugins.plugin_utils._raw_shell import RawShell, why
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import in_seconds

Results = t.Dict[str, t.Any]

#: Seconds for which a runner may report nothing at all, as before its first status.
_SPEECHLESS = 60.0
#: Seconds between two polls when the runner should have ended, or has just begun.
_SHORTEST = 0.5
#: Seconds without a new status after which the existence of the process is checked.
_QUIET = 20.0
#: What shows the progress of all hosts together, and how it is switched off; without it a few hosts print lines of their own.
_CALLBACK, _SWITCH = "cachefleet.storage.progress", "CACHEFLEET_PROGRESS"
_FEW = 20
#: Seconds between two lines of one host.
_LEAST = 30.0


class ActionModule(Verb):
    argument_spec = staticmethod(argument_spec)

    def answer(self, options: Results) -> Results:
        host = component(self._host, "host")
        component(options["campaign"], "campaign")
        if self._task.check_mode:
            return {"changed": False, "state": "not_started", "segment": 0, "waiting": False, "ended": True, "message": "", "status": None, "round_trip": None}
        return _Follower(self, options, host, shows=_shows(options, self._variables)).follow()


def _shows(options: t.Mapping[str, t.Any], task_vars: t.Mapping[str, t.Any]) -> bool:
    """Whether the progress of this host is printed here. A host that is followed in turns would print a line in each of them."""
    few = len(task_vars.get("ansible_play_hosts_all") or ()) <= _FEW
    return few and not options["turn"] and _CALLBACK not in (C.CALLBACKS_ENABLED or ()) and os.environ.get(_SWITCH) != "quiet"


class _Follower:
    """Polls one runner repeatedly.

    :param shows: whether a line is printed when the host begins another cell.
    """

    def __init__(self, action: t.Any, options: t.Mapping[str, t.Any], host: str, *, shows: bool = False) -> None:
        self.action = action
        self.options = options
        self.host = host
        self.shell = RawShell(action, host, limit=max(60.0, 2.0 * options["interval"]))
        self.folder = f"{options['spool'].rstrip('/')}/{options['campaign']}"
        # One byte more than a status may have shows that it is longer.
        self.read_command = f"head -c {LARGEST_STATUS + 1} -- {shlex.quote(self.folder + '/runner.json')}"
        self.status: RunnerStatus | None = None
        self.said_new = self.answered = self.began = time.monotonic()
        self.fastest: float | None = None
        self.is_away = False
        self.shows = shows
        self.shown: tuple[float, t.Any] | None = None

    def follow(self) -> Results:
        while True:
            try:
                found = self._poll()
            except AnsibleConnectionFailure as error:
                self._away(error)
            else:
                self.answered = time.monotonic()
                if found is not None:
                    return found
            limits = [seconds for seconds in (self.options["turn"], self.options["limit"]) if seconds > 0]
            if limits and time.monotonic() - self.began >= min(limits):
                return self._result(self.status.state if self.status else "starting", self.status.message if self.status else "")
            time.sleep(self._pause())

    def _pause(self) -> float:
        """Seconds until the next poll: short at the start, and when all cells should be done."""
        pause = min(max((time.monotonic() - self.began) / 2, _SHORTEST), max(self.options["interval"], 1.0))
        if self.status is None or self.is_away:
            return pause
        if self.status.left is not None:
            # A step of unknown length, a fill for example, may take hours.
            pause = min(pause, max(self.status.left + 0.2, self.status.overdue / 4, _SHORTEST))
        if self.options["segment"] is not None and self.status.cell_left is not None:
            # The others may wait at the barrier already. Not every cell or pause is the last one before it, though.
            pause = min(pause, max(self.status.cell_left + 0.2, pause / 4, _SHORTEST))
        return pause

    def _poll(self) -> Results | None:
        """Poll once: the result of the task if there is nothing more to wait for.

        :raises AnsibleConnectionFailure: if the host is not in reach.
        """
        started = time.monotonic()
        answer = self.shell.ask(self.read_command)
        require_short({"stdout": answer.stdout}, self.host, LARGEST_STATUS)
        now = time.monotonic()
        self.fastest = min(now - started, self.fastest or now - started)
        if self.is_away:
            self.is_away = False
            self._say("reachable again")
        try:
            if answer.rc != 0:
                raise StorageError(f"There is no status of a runner in {self.folder} on this host.")
            status = read_status(answer.stdout)
        except StorageError as error:
            # While it is being replaced, or before its first word; but not for ever.
            if now - self.said_new > _SPEECHLESS:
                return self._gone(error.message)
            self._keep("the runner has not reported yet")
            return None
        if self.status is None or status != self.status:
            self.said_new = now
        first, self.status = self.status is None, status
        self._keep("")
        reached = self._reached(status)
        if reached is None and not status.ended and (first or now - self.said_new >= _QUIET) and not self._lives(status):
            # It may have ended between the two queries, and reported that.
            again = self.shell.ask(self.read_command)
            try:
                self.status = read_status(again.stdout) if again.rc == 0 else status
            except StorageError:
                return self._gone("The runner on this host ended unexpectedly without reporting a reason.")
            if not self.status.ended:
                return self._gone("The runner on this host ended unexpectedly without reporting a reason, for example because the host was restarted.")
            reached = self._reached(self.status)
        return reached

    def _reached(self, status: RunnerStatus) -> Results | None:
        """The result if the awaited state was reached, otherwise ``None``."""
        if status.ended:
            return self._result(status.state, status.message)
        segment = self.options["segment"]
        # Before its first barrier a runner may warm caches for an hour.
        if segment is None or status.segment is None or status.state == "starting":
            return None
        if status.segment > segment or (status.segment == segment and status.state in ("waiting", "pausing", "measuring")):
            # A runner that waits for its first release could have ended as well: all hosts would wait for it.
            if status.state == "waiting" and not self._lives(status):
                return self._gone("The runner on this host ended unexpectedly while it waited.")
            return self._result(status.state, status.message)
        return None

    def _lives(self, status: RunnerStatus) -> bool:
        """Whether the process that wrote the status is running: not another process with the same ID, nor one from before a reboot."""
        if status.pid is None:
            return True
        # As root, if there is become: other users' processes may be hidden.
        answer = self.shell.do(f"cat /proc/sys/kernel/random/boot_id; cat /proc/{status.pid}/stat 2>/dev/null || test ! -d /proc/{status.pid}")
        lines = answer.stdout.splitlines()
        if answer.rc != 0 or not lines:
            return True
        if status.boot_id and lines[0].strip() != status.boot_id:
            return False
        if len(lines) < 2:
            return False
        # proc_pid_stat(5): the name may hold blanks and brackets; state is field 3, the number of threads 20, starttime 22.
        fields = lines[1].rpartition(")")[2].split()
        if len(fields) < 20:
            return True
        # A process whose first thread has ended runs on as long as it has others, as in _core/background_process.py.
        if fields[0] in ("Z", "X") and fields[17] in ("0", "1"):
            return False
        return status.pid_started is None or fields[19] == str(status.pid_started)

    def _away(self, error: AnsibleConnectionFailure) -> None:
        """:raises AnsibleConnectionFailure: if the host was unreachable for too long."""
        gone = time.monotonic() - self.answered
        if gone > self.options["patience"]:
            self._keep("not reachable, given up", ended=True)
            raise AnsibleConnectionFailure(
                f"{self.host} was not reachable for {in_seconds(gone)} while it measured: {why(error)}. Its runner continues; run again with the same"
                " campaign to collect its results."
            ) from error
        if not self.is_away:
            self._say(f"not reachable at the moment, the measurement continues ({why(error)})")
        self.is_away = True
        self._keep("not reachable")
        self.shell.renew()

    def _gone(self, message: str) -> Results:
        self._keep("its runner is gone", ended=True)
        return self._result("dead", message)

    def _result(self, state: str, message: str) -> Results:
        ended = state == "dead" or bool(self.status and self.status.ended)
        if ended and state != "dead":
            self._keep("", ended=True)
        return {
            "changed": False,
            "state": state,
            "segment": self.status.segment if self.status else 0,
            "waiting": state == "waiting" and self.status is not None and self.status.segment == self.options["segment"],
            "ended": ended,
            "message": plain(message, 300),
            "status": self.status.to_dict() if self.status else None,
            "round_trip": None if self.fastest is None else round(self.fastest, 3),
        }

    def _say(self, text: str) -> None:
        self.action._display.display(f"{self.host}: {text}")

    def _keep(self, note: str, *, ended: bool = False) -> None:
        now = Watched(self.host, self.status, time.time(), note, ended)
        if self.options["path"]:
            keep(Path(self.options["path"]), now)
        if self.shows and not note and not ended and self.status is not None and self.status.state in ("measuring", "pausing"):
            self._show(now)

    def _show(self, now: Watched) -> None:
        """A line for what is new, at most every half minute."""
        moment, mark = time.monotonic(), mark_of(now)
        if self.shown is None or (mark != self.shown[1] and moment - self.shown[0] >= _LEAST):
            self.shown = (moment, mark)
            self.action._display.display(line_of(now, now.seen))
