# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A rollback timer for changes that can cut the connection they are made over: the former state is restored unless confirmed.

Before the first change a process is started that depends on nothing the change could break: a unit of systemd of its own, since the
end of an ssh session takes the session's processes along, and where there is no systemd a process in a session of its own. It is
with a journal, on the disk, of what to put back. The journal is also the truth about whether a change is confirmed: whoever
takes it away under its lock, by confirming or by putting back, has decided.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import sys
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import journal as state
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotEffective, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import replace_file, require_room
from ansible_collections.cachefleet.storage.plugins.module_utils._net.storage_network import rollback_program

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.mtu_source import BootChange

_NAME = "storage_network"
FOLDER = f"{state.STATE_FOLDER}/{_NAME}"
#: Seconds in which a process must have started.
_START = 30.0
#: Seconds past its deadline in which a rollback timer has restored everything.
GRACE = 30.0


class RollbackTimer:
    """The switch of one host.

    :param root: another folder than ``/`` is for tests only: interfaces are those of the host in any case.
    """

    def __init__(self, runner: Runner, root: Path = Path("/")) -> None:
        self.runner = runner
        self.root = root
        self.folder = state.place_of(_NAME, root)
        self.journal = self.folder / "journal.json"

    def armed(self) -> dict[str, t.Any]:
        """The journal of a change that is not confirmed yet; empty if there is none."""
        return rollback_program.read_json(str(self.journal))

    def last(self) -> dict[str, t.Any]:
        """What was put back last: ``token``, ``reason``, ``said``; empty if nothing ever was."""
        return rollback_program.read_json(str(self.folder / "last.json"))

    def arm(self, token: str, live: t.Sequence[t.Mapping[str, t.Any]], seconds: float) -> None:
        """Start the process that puts back what is there now unless :meth:`confirm` comes in time.

        :param token: names this change.
        :param live: ``{index, name, mtu, up}`` of every interface that is going to be changed, in the order in which to put them back.
        :param seconds: from now.
        :raises CommandFailed: if it cannot be started; nothing has been changed then.
        """
        entries = [{**entry, "routes": self._routes(str(entry["name"])) if entry.get("up") else []} for entry in live]
        program = self.folder / "rollback_program.py"
        replace_file(program, inspect.getsource(rollback_program))
        journal = {
            "token": token,
            "seconds": seconds,
            "deadline": time.monotonic() + seconds,
            "boot": rollback_program.boot_id(),
            "ip": self.runner.find("ip"),
            "live": entries,
            "changes": [],
        }
        self._write(journal)
        try:
            self._start([sys.executable or "/usr/bin/python3", "-I", str(program), str(self.folder), token], token)
            self._await_start(token)
        except StorageError:
            # No process waits for a confirmation of it any more; one that starts late finds nothing to restore.
            with contextlib.suppress(OSError):
                self.journal.unlink()
            # systemd names no reason.
            require_room(self.root)
            raise

    def _write(self, journal: t.Mapping[str, t.Any]) -> None:
        replace_file(self.journal, json.dumps(journal, indent=1) + "\n", 0o600)

    def _routes(self, name: str) -> list[list[str]]:
        completed = self.runner.run(["ip", "-4", "route", "show", "dev", name], ok=None, item=name)
        return [line.split() for line in completed.stdout.splitlines() if line.strip() and completed.rc == 0 and "linkdown" not in line]

    def _start(self, argv: t.Sequence[str], token: str) -> None:
        if os.path.isdir("/run/systemd/system") and self.runner.has("systemd-run"):
            unit = f"cachefleet-storage-network-{token[:12]}"
            self.runner.run(["systemd-run", "--collect", "--quiet", f"--unit={unit}", "--property=KillMode=process", *argv], item="rollback timer")
            return
        _detach(argv)

    def _await_start(self, token: str) -> None:
        end = time.monotonic() + _START
        while rollback_program.read_json(str(self.folder / "watching.json")).get("token") != token:
            if time.monotonic() > end:
                # The process cannot report why it ended; a file system that took no file from it takes none from this one either.
                replace_file(self.folder / "watching.json", "{}\n", 0o600)
                raise CommandFailed(
                    f"The rollback timer did not start within {_START:g} seconds, so nothing was changed: see journalctl.",
                    item="rollback timer",
                )
            time.sleep(0.05)

    @contextlib.contextmanager
    def held(self, token: str) -> t.Iterator[None]:
        """While this lasts nothing is put back by the process, however late it is.

        :raises NotEffective: if it was put back already.
        """
        if not self.folder.is_dir():
            raise self._too_late(token)
        with _locked(self.folder) as mine:
            if not mine or self.armed().get("token") != token:
                raise self._too_late(token)
            yield

    def _too_late(self, token: str) -> NotEffective:
        last = self.last()
        mine = last if last.get("token") == token else {}
        return NotEffective(
            "storage_network: the MTUs were reverted because the controller did not confirm in time that the host can be reached"
            + (f": {'; '.join(mine['said'])}." if mine.get("said") else "."),
            item="rollback timer",
            put_back=mine.get("said", []),
            links_before=[{"interface": entry["name"], "mtu": entry["mtu"]} for entry in mine.get("live", [])],
        )

    def note(self, change: BootChange) -> None:
        """Write down how a change is undone, before it is made. The caller holds the lock."""
        journal = self.armed()
        journal["changes"].append(change.as_data())
        self._write(journal)

    def confirm(self) -> None:
        """What is now stays. The caller holds the lock.

        :raises CommandFailed: if the journal cannot be removed: the process will put back what it names.
        """
        _remove(self.journal)

    def put_back(self, reason: str) -> list[str]:
        """Put back now, in this process. The caller holds the lock, or ensures that no other process can have it."""
        return rollback_program.put_back(str(self.folder), self.armed(), reason)

    def settle(self, *, repair: bool = True) -> list[str]:
        """Wait for what an earlier run left behind: it is confirmed by that run or put back.

        One of an earlier boot, or whose process has ended, is put back here.

        :param repair: false only reports it, for a run that changes nothing.
        :returns: what was put back here, or would be.
        :raises CommandFailed: if another run goes on for longer than its journal allows, or cannot be reverted.
        """
        while self.journal.exists():
            journal = self.armed()
            if not journal:
                if repair:
                    _remove(self.journal)  # Not written by a run that changed anything: it is complete before a change is begun.
                return []
            stale = journal.get("boot") != rollback_program.boot_id() or time.monotonic() > float(journal.get("deadline", 0)) + GRACE
            if stale or not self._watched(journal):
                if not repair:
                    return [f"An earlier run ended without confirming that the host can be reached: {_before(journal)} is restored first."]
                with _locked(self.folder) as mine:
                    if mine and self.journal.exists() and self.armed().get("token") == journal.get("token"):
                        messages = self.put_back("a run ended without confirming that the host can be reached, and its rollback timer has ended")
                        if self.journal.exists():
                            raise CommandFailed(f"An earlier run could not be reverted: {'; '.join(messages)}: run again.", item="rollback timer")
                        return messages
                    if not mine:
                        raise CommandFailed(f"Another run on this host has held {self.folder} for too long: end it.", item="rollback timer")
            time.sleep(0.2)
        return []

    def _watched(self, journal: t.Mapping[str, t.Any]) -> bool:
        watching = rollback_program.read_json(str(self.folder / "watching.json"))
        if watching.get("token") != journal.get("token"):
            # Its process may be on the way.
            return time.monotonic() < float(journal.get("deadline", 0)) - float(journal.get("seconds", 0)) + _START
        try:
            words = Path(f"/proc/{int(watching['pid'])}/cmdline").read_bytes()
        except (OSError, ValueError, KeyError):
            return False
        return str(journal.get("token")).encode() in words


@contextlib.contextmanager
def _locked(folder: Path) -> t.Iterator[bool]:
    """As :func:`rollback_program.locked`.

    :raises CommandFailed: if the lock cannot be made.
    """
    with contextlib.ExitStack() as stack:
        try:
            mine = stack.enter_context(rollback_program.locked(str(folder), GRACE))
        except OSError as error:
            raise CommandFailed(f"{folder} cannot be written: {error.strerror}.", item="rollback timer") from None
        yield mine


def _remove(path: Path) -> None:
    """:raises CommandFailed: if a file cannot be removed."""
    try:
        rollback_program.remove(str(path))
    except IsADirectoryError:
        raise
    except OSError as error:
        raise CommandFailed(f"{path} cannot be removed: {error.strerror}.", item="rollback timer") from None


def _before(journal: t.Mapping[str, t.Any]) -> str:
    return ", ".join(f"the MTU {entry['mtu']} of {entry['name']}" for entry in journal.get("live", [])) or "what was before"


def _detach(argv: t.Sequence[str]) -> None:
    """Start a process that is reparented and in a session of its own."""
    first = os.fork()
    if first:
        os.waitpid(first, 0)
        return
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        os.closerange(3, 256)
        os.chdir("/")
        os.execv(argv[0], list(argv))
    finally:
        os._exit(1)
