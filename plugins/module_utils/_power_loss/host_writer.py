# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The writer of one run on a host: examined by the guard of fio, started in the background, stopped, and what it wrote taken away again."""

from __future__ import annotations

import contextlib
import dataclasses
import mmap
import os
import signal
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import background_process
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, DeviceMissing, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen, has_types
from ansible_collections.cachefleet.storage.plugins.module_utils._guard import examination, judge
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, TargetFacts
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.file_examination import resolved
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import opened_target
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.background import BackgroundRun, make_private_folder
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.record import SECTOR, Blocks, Record, is_test_sector
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.spec import RunSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.writer import Writer, connect

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices

FOLDER = Path("/var/lib/cachefleet/power_loss")
PROCESS = background_process.BackgroundProcess("The writer of the power-loss test", "cachefleet-power-loss-writer")
_PIECE = 1024**2


@frozen
class WitnessAddress:
    """Where the witness of a run listens, and the secret that they share."""

    address: str
    port: int
    secret: bytes


def boot_id() -> str:
    """See :func:`background_process.boot_id`.

    :raises CommandFailed: if it cannot be read: whether the host has booted since would not be known.
    """
    found = background_process.boot_id()
    if not found:
        raise CommandFailed("The boot ID of this host cannot be read: check that /proc is mounted.")
    return found


def examine(target: GuardTarget, spec: RunSpec, devices: Devices, runner: Runner) -> TargetFacts:
    """The facts of a target that may be written to.

    :raises StorageError: if it may not.
    """
    if target.kind == "file" and os.path.lexists(target.path):
        raise Refused(
            f"{target.path} exists: the power-loss test only writes to a file or folder that it makes, so name one that does not exist.", item=target.path
        )
    whole = dataclasses.replace(target, size=spec.extent, caller="The power-loss test")
    facts = examination.examine(devices, whole, runner, writing=True)
    judge.require(facts, writing=True, extent=spec.extent)
    return facts


def lasting_path(facts: TargetFacts) -> str:
    """The path that leads to a target also after a boot: names such as sda can change with it. No link on it is one that another user can exchange."""
    if facts.device is None:
        return facts.path
    if facts.device.stable_path:
        return facts.device.stable_path
    try:
        resolved(Path(facts.target.path), facts.target)
    except (StorageError, OSError):
        return facts.path
    return facts.target.path


def start(spec: RunSpec, facts: TargetFacts, run: str, witness: WitnessAddress, runner: Runner, folder: Path = FOLDER) -> bool:
    """Start the writer of a run, unless it is running.

    :param spec: with the path and the identity that were found.
    :returns: whether it was started.
    :raises StorageError: if it cannot be started; then nothing writes.
    """
    make_private_folder(folder)
    background = BackgroundRun(folder, run)
    if background.is_alive():
        require_same(background, spec)
        return False
    if background.read():
        raise Refused(f"The run {run} was started before and has ended: each run needs an id of its own.", item=run)
    permitted = facts.target.allow_data_loss and facts.identity_matches is True
    background.write({"run": run, "spec": spec.to_dict(), "boot_id": boot_id(), "permitted": permitted, "state": "starting", "message": ""})
    try:
        background.start(PROCESS, lambda under_way: _writer_main(spec, facts, background, witness, runner, under_way), runner)
    except StorageError as error:
        # If the connection failed, the range may already have been written.
        try:
            remove_written(background, runner)
        except StorageError as left:
            error.message = " ".join(dict.fromkeys((error.message, left.message)))
        raise
    return True


def require_same(background: BackgroundRun, spec: RunSpec) -> None:
    """:raises Refused: if the writer that runs has other options."""
    if background.read().get("spec") != spec.to_dict():
        raise Refused(f"The run {background.run} is writing with other options: stop it first.", item=background.run)


def _writer_main(
    spec: RunSpec, facts: TargetFacts, background: BackgroundRun, witness: WitnessAddress, runner: Runner, under_way: t.Callable[[], None]
) -> None:
    """The writer from beginning to end, in its own process."""
    try:
        with judge.claimed(facts, runner):
            if facts.device is not None:
                judge.require_contents(examination.examined_again(facts, runner, Path("/"), None))
            with _prepared(spec, facts, background, runner) as target:
                medium = spec.medium(target)
                greeting = {"run": background.run, "boot_id": boot_id(), "spec": spec.to_dict(), "owner": os.fstat(target).st_uid}
                connection, session = connect(witness.address, witness.port, witness.secret, greeting)
                blocks = Blocks(bytes.fromhex(background.run), spec.block_size)
                writer = Writer(medium, blocks, spec.load(), connection, session)
                signal.signal(signal.SIGTERM, lambda *_signal: writer.stop())
                if facts.device is not None:
                    judge.require_same_device(target, facts, runner)
                background.update(state="writing")
                under_way()
                writer.run()
    except StorageError as error:
        background.update(state="failed", message=error.message)
        raise
    background.update(state="ended", message="The writer has ended by itself.")


@contextlib.contextmanager
def _prepared(spec: RunSpec, facts: TargetFacts, background: BackgroundRun, runner: Runner) -> t.Iterator[int]:
    """What is written to, open: with zeros, and the fence behind them; both are synced."""
    path = Path(spec.path)
    target = _opened(path, spec, facts, background, runner)
    try:
        if spec.layout == "in_place":
            _zero(target, path, spec.extent)
            _write_fence(target, spec, background.run)
        if facts.device is None:
            # The run is verified at its path.
            opened_target.require_in_place(path, target)
        yield target
    finally:
        os.close(target)


def _opened(path: Path, spec: RunSpec, facts: TargetFacts, background: BackgroundRun, runner: Runner) -> int:
    if facts.device is not None:
        target = opened_target.open_device(facts, os.O_WRONLY, runner)
        background.update(made=True)
        return target

    def record(made: opened_target.MadeTarget) -> None:
        background.update(made=dataclasses.asdict(made))

    if spec.layout == "rename":
        return opened_target.make_folder(path, record)
    return opened_target.make_file(path, 0 if spec.layout == "append" else spec.extent, record)


def _write_fence(target: int, spec: RunSpec, run: str) -> None:
    blocks = Blocks(bytes.fromhex(run), spec.block_size)
    with contextlib.closing(dataclasses.replace(spec, sync="none", bulk=False).medium(target)) as medium:
        with mmap.mmap(-1, spec.block_size) as buffer:
            for record in fence_records(spec):
                buffer[:] = blocks.make(record)
                medium.write(record.offset // spec.block_size, buffer)
        medium.sync()


def fence_records(spec: RunSpec) -> list[Record]:
    """The blocks of the fence."""
    return [Record(0, place * spec.block_size, 0) for place in range(spec.places, spec.places + spec.fence)]


def _zero(descriptor: int, path: Path, size: int) -> None:
    try:
        zeros = bytes(_PIECE)
        done = 0
        while done < size:
            done += os.pwrite(descriptor, zeros[: size - done], done)
        os.fsync(descriptor)
    except OSError as error:
        raise CommandFailed(f"{path} cannot be written: {error.strerror}.", item=str(path)) from None


def stop(run: str, folder: Path = FOLDER) -> bool:
    """End the writer of a run; what it wrote stays.

    :returns: whether it was running.
    """
    return BackgroundRun(folder, run).stop()


def remove(run: str, devices: t.Callable[[], Devices], runner: Runner, folder: Path = FOLDER) -> bool:
    """End the writer of a run and take away what it wrote: files are removed, and the range of a device contains zeros again.

    :returns: whether there was anything of it.
    :raises Refused: if the target is in use by now, is another device, or has other data than that of the run.
    """
    background = BackgroundRun(folder, run)
    background.stop()
    if not background.read():
        return False
    remove_written(background, runner, devices)
    with contextlib.suppress(FileNotFoundError):
        (folder / f"{run}.log").unlink()
    background.remove()
    return True


def remove_written(background: BackgroundRun, runner: Runner, devices: t.Callable[[], Devices] | None = None) -> None:
    """Take away what a run wrote that has ended."""
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices

    note = background.read()
    made = note.get("made")
    try:
        spec = RunSpec(**note["spec"])
        left = opened_target.MadeTarget(**made) if made and spec.kind == "file" else None
        if not all(has_types(one) for one in (spec, left) if one is not None):
            raise TypeError
    except (KeyError, TypeError, BadInput):
        raise CommandFailed(f"The note of the run {background.run} on this host is incomplete: remove its files by hand.", item=background.run) from None
    if left is not None:
        opened_target.remove(Path(spec.path), left, rebooted=note.get("boot_id") != boot_id())
    elif made:
        _zero_device(spec, note.get("permitted") is True, devices() if devices is not None else read_devices(runner), runner)


def _zero_device(spec: RunSpec, permitted: bool, devices: Devices, runner: Runner) -> None:
    # What the run wrote is data without a signature: whether it may be overwritten is decided by what it is.
    target = GuardTarget(spec.path, allow_data_loss=True, identity=spec.identity, size=spec.extent)
    facts = examination.examine(devices, target, runner, writing=True)
    judge.require(facts, writing=True, extent=spec.extent)
    with judge.claimed(facts, runner):
        descriptor = opened_target.open_device(facts, os.O_WRONLY, runner)
        try:
            if not permitted:
                _require_test_data(spec, descriptor)
            _zero(descriptor, Path(facts.path), spec.extent)
        finally:
            os.close(descriptor)


def _require_test_data(spec: RunSpec, descriptor: int) -> None:
    """:raises Refused: if the range has anything else than zeros and sectors of this or an earlier run: a disk may have brought those back."""
    medium = spec.medium(descriptor, readable=True)
    zeros = bytes(spec.block_size)
    with contextlib.closing(medium):
        for place in range(spec.places + spec.fence):
            data = medium.read(place)
            if data == zeros:
                continue
            for start in range(0, len(data), SECTOR):
                sector = data[start : start + SECTOR]
                if sector != zeros[:SECTOR] and not is_test_sector(sector):
                    raise Refused(
                        f"{spec.path} has other data than that of the power-loss test at byte {place * spec.block_size + start}: it is not overwritten. "
                        "Wipe the device by hand if its contents may be lost.",
                        item=spec.path,
                    )


def device_of(spec: RunSpec, devices: Devices) -> str | None:
    """The kernel name of the device that a run is on; of a file, of the device of its file system."""
    if spec.kind == "device":
        with contextlib.suppress(DeviceMissing):
            return devices.resolve(spec.path).name
        return None
    folder = Path(spec.path).parent
    try:
        number = folder.stat().st_dev
    except OSError:
        return None
    text = f"{os.major(number)}:{os.minor(number)}"
    return next((device.name for device in devices if device.number == text), None)
