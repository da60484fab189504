# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""On the machine of the laboratory: the writers of all cells, and their verifiers.

usage: on_machine.py write|verify     with a list of orders on the standard input, in the folder with the collection

What the modules power_loss_writer and power_loss_verify do for one target, with the devices read once for all.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import read_target
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import host_verifier, host_writer
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.background import BackgroundRun
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.spec import RunSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import Stack, read_stack

#: The range of a cell: small, so that a disk that lies never has more in its cache than fits there.
SIZE = 2 * 1024**2
SECONDS = 7200.0
PROTECTED = ["PROTECTED"]

Order = t.Mapping[str, t.Any]


def write(orders: t.Sequence[Order]) -> list[dict[str, t.Any]]:
    """Start one writer for each order; they begin together, once the last is ready."""
    runner = Runner()
    stack = read_stack(runner, protected=PROTECTED)
    started: list[int] = []
    found = []
    try:
        for order in orders:
            pid, result = _start(order, stack, runner)
            os.kill(pid, signal.SIGSTOP)
            started.append(pid)
            found.append(result)
    finally:
        for pid in started:
            os.kill(pid, signal.SIGCONT)
    return found


def _start(order: Order, stack: Stack, runner: Runner) -> tuple[int, dict[str, t.Any]]:
    size = order["load"].get("size", SIZE)
    target = read_target({**order["target"], "size": size}, "target")
    load = {"seconds": SECONDS, **{name: value for name, value in order["load"].items() if name != "size"}}
    spec = RunSpec(target.path, target.kind, target.identity, size, **load)
    try:
        facts = host_writer.examine(target, spec, stack.devices, runner)
        path = (facts.device.stable_path or target.path) if facts.device is not None else facts.path
        spec = dataclasses.replace(spec, path=path, identity=facts.identity)
        witness = host_writer.WitnessAddress("127.0.0.1", order["port"], bytes.fromhex(order["secret"]))
        host_writer.start(spec, facts, order["run"], witness, runner)
    except StorageError as error:
        raise SystemExit(f"{order['name']}: {error.message}") from None
    name = host_writer.device_of(spec, stack.devices)
    described = stack.describe(name) if name is not None else {"verdict": "unknown", "reason": "", "unflushed": "unknown"}
    pid = BackgroundRun(host_writer.FOLDER, order["run"]).read()["pid"]
    return pid, {key: described[key] for key in ("verdict", "reason", "unflushed")}


def verify(orders: t.Sequence[Order]) -> list[dict[str, t.Any]]:
    """What is left of each run; then what it wrote is removed."""
    runner = Runner()
    devices = read_devices(runner)
    found = []
    for order in orders:
        log = host_writer.FOLDER / f"{order['run']}.log"
        log.write_text(order["log"])
        try:
            found.append(host_verifier.verify(log, order["run"], lambda: devices, runner))
            host_writer.remove(order["run"], lambda: devices, runner)
        except StorageError as error:
            raise SystemExit(f"{order['name']}: {error.message}") from None
    return found


def main() -> None:
    work = {"write": write, "verify": verify}[sys.argv[1]]
    orders = json.loads(sys.stdin.read())
    print(json.dumps(work(orders)))


if __name__ == "__main__":
    main()
