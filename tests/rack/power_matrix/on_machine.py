# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""On the machine of the laboratory: the writers of all cells, and their verifiers.

usage: on_machine.py stacks|write|verify     with a list of orders on the standard input, in the folder with the collection

What is between the guard and the removal in the modules power_loss_writer and power_loss_verify. The guard reads whole devices, and is tested elsewhere;
here everything is of the laboratory.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import signal
import sys
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import host_verifier, host_writer
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.opened_target import make_file, make_folder
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.record import Blocks
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.spec import RunSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.writer import Writer, connect
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import read_stack

#: The range of a cell: small, so that a disk that lies never has more in its cache than fits there.
SIZE = 2 * 1024**2
#: Each block of a file that grows is written once: there must be room until the power is cut.
GROWING = 64 * 1024**2
PROTECTED = ["PROTECTED"]
FLUSHED = ["VIRTUAL HDD", "VIRTUAL SSD", "VIRTUAL VD", "QEMU NVMe Ctrl"]
MESSAGES = Path("/run/lab/messages")
_PIECE = 1024**2

Order = t.Mapping[str, t.Any]


def spec_of(order: Order) -> RunSpec:
    ((kind, path),) = order["target"].items()
    size = GROWING if order["load"].get("layout") == "append" else SIZE
    return RunSpec(path, kind, None, size, seconds=7200.0, **order["load"])


def stacks(orders: t.Sequence[Order]) -> list[dict[str, t.Any]]:
    """What ``cache_stack_info`` says of each target."""
    stack = read_stack(Runner(), protected=PROTECTED, flushed=FLUSHED)
    found = []
    for order in orders:
        name = host_writer.device_of(spec_of(order), stack.devices)
        described = stack.describe(name) if name is not None else {"verdict": "unknown", "reason": "The device is not known.", "unflushed": "unknown"}
        found.append({key: described[key] for key in ("verdict", "reason", "unflushed")})
    return found


def write(orders: t.Sequence[Order]) -> list[int]:
    """Start one writer for each order; they begin together, once the last is ready."""
    MESSAGES.mkdir(exist_ok=True)
    pids = []
    for order in orders:
        pid = os.fork()
        if not pid:
            _writer_main(order)
        pids.append(pid)
    for order, pid in zip(orders, pids):
        _pid, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            raise SystemExit(f"{order['name']}: the writer has ended: {(MESSAGES / order['name']).read_text()[-1000:]}")
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    return pids


def _writer_main(order: Order) -> t.NoReturn:
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        log = os.open(MESSAGES / order["name"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for number, descriptor in enumerate((null, null, log)):
            os.dup2(descriptor, number)
        _write(order, spec_of(order))
    except BaseException as error:  # noqa: BLE001 - it is read by the process that started this one
        print(getattr(error, "message", repr(error)), file=sys.stderr, flush=True)
    finally:
        os._exit(1)


def _write(order: Order, spec: RunSpec) -> None:
    blocks = Blocks(bytes.fromhex(order["run"]), spec.block_size)
    _prepare(spec, blocks)
    greeting = {"run": order["run"], "boot_id": host_writer.boot_id(), "spec": spec.to_dict()}
    connection, session = connect("127.0.0.1", order["port"], bytes.fromhex(order["secret"]), greeting, patience=300)
    os.kill(os.getpid(), signal.SIGSTOP)
    Writer(spec.medium(), blocks, spec.load(), connection, session).run()


def _prepare(spec: RunSpec, blocks: Blocks) -> None:
    """What the run before has left is removed; the range has zeros, and behind it is the fence; both are synced."""
    path = Path(spec.path)
    if spec.kind == "file":
        if path.is_dir():
            shutil.rmtree(path)
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        if spec.layout == "rename":
            os.close(make_folder(path))
        else:
            os.close(make_file(path, 0 if spec.layout == "append" else spec.extent))
    if spec.layout != "in_place":
        return
    with open(path, "r+b", buffering=0) as stream:
        for start in range(0, spec.extent, _PIECE):
            stream.write(bytes(min(_PIECE, spec.extent - start)))
        os.fsync(stream.fileno())
    medium = dataclasses.replace(spec, sync="none").medium()
    buffers = blocks.buffers()
    for record in host_writer.fence_records(spec):
        medium.write(record.offset // spec.block_size, buffers.fill(record))
    medium.sync()
    medium.close()


def verify(orders: t.Sequence[Order]) -> list[dict[str, t.Any]]:
    """What is left of each run."""
    runner = Runner()
    devices = read_devices(runner)
    found = []
    for order in orders:
        log = Path("/run/lab") / f"{order['run']}.log"
        log.write_text(order["log"])
        found.append(host_verifier.verify(log, order["run"], lambda: devices, runner))
    return found


def main() -> None:
    work = {"stacks": stacks, "write": write, "verify": verify}[sys.argv[1]]
    print(json.dumps(work(json.loads(sys.stdin.read()))))


if __name__ == "__main__":
    main()
