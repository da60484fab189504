# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The witness of one run in the background: started, asked for its progress, notified of the power cut, and stopped."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.background_process import BackgroundProcess
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, Refused, TimedOut, abbreviated
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.background import BackgroundRun, make_private_folder
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.messages import read_secret
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.witness import Witness, log_path
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.witness_log import CUT, ENDED, IMPOSSIBLE, LOST, note_event

PROCESS = BackgroundProcess("The witness of the power-loss test", "cachefleet-power-loss-witness")
_PAUSE = 0.2
_PIECE = 1024**2
#: Why a run is not cut, by the event that ended it.
_ENDINGS = {
    LOST: "the connection of its writer has ended: nothing would be in flight",
    ENDED: "its writer has ended by itself: nothing would be in flight",
    IMPOSSIBLE: "its writer reported more writes than its load can have made or the log has room for, or other blocks than its own: check the host under test",
}


@frozen
class WitnessSpec:
    """How a witness listens.

    :param hosts: IP addresses from which a connection is accepted.
    :param lifetime: seconds after which it ends by itself.
    """

    address: str
    port: int
    hosts: tuple[str, ...]
    lifetime: float


def addresses_of(names: t.Iterable[str]) -> tuple[str, ...]:
    """The IP addresses of hosts.

    :raises BadInput: if a name cannot be resolved.
    """
    found: dict[str, None] = {}
    for name in names:
        try:
            found.update({str(row[4][0]): None for row in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)})
        except (OSError, ValueError):
            raise BadInput(f"{abbreviated(name)} is neither an IP address nor a name that the host of the witness can resolve.", item=name) from None
    return tuple(found)


def start(folder: Path, run: str, secret: bytes, spec: WitnessSpec) -> tuple[bool, int]:
    """Start the witness of a run, unless it is running.

    :returns: whether it was started, and its port.
    :raises StorageError: if it cannot listen there.
    """
    make_private_folder(folder)
    background = BackgroundRun(folder, run)
    if background.is_alive():
        return False, int(background.read().get("port") or 0)
    note = background.read()
    # A witness that crashed goes on with its log, at the same port if it can.
    port = spec.port or int(note.get("port") or 0)
    witness = Witness(folder, {run: secret}, spec.hosts, spec.address, port)
    # The secret is only in the memory of the process.
    background.write({"run": run, "address": spec.address, "port": witness.port})
    try:
        _serve(background, witness, spec.lifetime)
    finally:
        witness.close()
    return True, witness.port


def _serve(background: BackgroundRun, witness: Witness, lifetime: float) -> None:
    def work(under_way: t.Callable[[], None]) -> None:
        signal.signal(signal.SIGTERM, lambda *_signal: witness.stop())
        timer = threading.Timer(lifetime, witness.stop)
        timer.daemon = True
        timer.start()
        under_way()
        witness.serve()

    background.start(PROCESS, work, Runner(), keep=(witness.fileno(),))


def stop(folder: Path, run: str, *, forget: bool) -> bool:
    """End the witness of a run.

    :param forget: remove its log too.
    :returns: whether anything was changed.
    """
    background = BackgroundRun(folder, run)
    changed = background.stop()
    if forget and background.read():
        with contextlib.suppress(FileNotFoundError):
            log_path(folder, run).unlink()
        background.remove()
        changed = True
    return changed


class _GrowingLog:
    """What was added to the log of a run, read piece by piece: a log may have hundreds of megabytes."""

    def __init__(self, folder: Path, run: str) -> None:
        self._path = log_path(folder, run)
        self._run = run
        self._offset = 0
        self._rest = b""
        self.writes = 0
        self.is_active = False
        self.ended = ""

    def read(self) -> None:
        """Read what was added since.

        :raises CommandFailed: if it cannot be read.
        """
        try:
            with open(self._path, "rb") as stream:
                stream.seek(self._offset)
                for piece in iter(lambda: stream.read(_PIECE), b""):
                    self._offset += len(piece)
                    self._take(piece)
        except FileNotFoundError:
            return
        except OSError as error:
            raise CommandFailed(f"The log of the witness cannot be read: {error.strerror}.", item=self._run) from None

    def _take(self, piece: bytes) -> None:
        lines = b"\n" + self._rest + piece
        end = lines.rfind(b"\n")
        lines, self._rest = lines[:end], lines[end + 1 :]
        writes = lines.count(b"\nA ")
        self.writes += writes
        self.is_active = self.is_active or writes > 0 or b"\nP " in lines
        for name, what in _ENDINGS.items():
            if f"\nE {name} ".encode() in lines:
                self.ended = what

    def require_connected(self) -> None:
        """:raises CommandFailed: if the writer has ended."""
        if self.ended:
            raise CommandFailed(f"The run {self._run} was not cut, because {self.ended}.", item=self._run)


def acknowledged(folder: Path, run: str) -> int:
    """How many writes the log has."""
    log = _GrowingLog(folder, run)
    log.read()
    return log.writes


def wait_for_writes(folder: Path, run: str, writes: int, timeout: float) -> int:
    """Wait until so many writes are acknowledged.

    :raises TimedOut: if that takes longer.
    :raises CommandFailed: if the writer has ended.
    """
    deadline = time.monotonic() + timeout
    log = _GrowingLog(folder, run)
    while True:
        log.read()
        # A writer may have ended only after it wrote all that it should: then nothing is in flight either.
        log.require_connected()
        if log.writes >= writes:
            return log.writes
        if time.monotonic() > deadline:
            raise TimedOut(
                f"The witness has {log.writes} acknowledged writes of the run {run} after {timeout:g} s, less than {writes}: the power is not cut.", item=run
            )
        time.sleep(_PAUSE)


def announce_cut(folder: Path, run: str, timeout: float) -> None:
    """Note that the power is about to be cut, and wait until the writer was heard of after that.

    :raises Refused: if nothing is heard of it: a cut would prove nothing.
    """
    log = _GrowingLog(folder, run)
    log.read()
    log.require_connected()
    log.is_active = False
    note_event(log_path(folder, run), CUT)
    deadline = time.monotonic() + timeout
    while True:
        log.read()
        if log.is_active:
            return
        log.require_connected()
        if time.monotonic() > deadline:
            raise Refused(
                f"The witness has heard nothing of the writer of the run {run} for {timeout:g} s: the power is not cut, since that would prove nothing."
            )
        time.sleep(_PAUSE)


def carry_out(options: t.Mapping[str, t.Any], folder: Path, *, check_mode: bool) -> dict[str, t.Any]:
    """The result of the module ``power_loss_witness``.

    :raises StorageError: what is refused, and what fails.
    """
    run, state = options["run"], options["state"]
    path = log_path(folder, run)
    done: dict[str, t.Any] = {"changed": False}
    if state == "started":
        secret = read_secret(options["secret"])
        spec = WitnessSpec(options["address"], options["port"], addresses_of(options["hosts"]), options["lifetime"])
        background = BackgroundRun(folder, run)
        if check_mode:
            done = {"changed": not background.is_alive(), "port": spec.port}
        else:
            changed, port = start(folder, run, secret, spec)
            done = {"changed": changed, "port": port}
    elif state in ("stopped", "absent"):
        forget = state == "absent"
        background = BackgroundRun(folder, run)
        done["changed"] = (background.is_alive() or (forget and bool(background.read()))) if check_mode else stop(folder, run, forget=forget)
    elif not check_mode:
        if state == "writing":
            wait_for_writes(folder, run, options["writes"], options["timeout"])
        else:
            announce_cut(folder, run, options["timeout"])
            done["changed"] = True
    return {**done, "log": str(path), "acknowledged": acknowledged(folder, run)}
