#!/usr/bin/env python
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Power cuts of disks with a known right answer: what the power-loss test says of each, on a machine of a virtual rack.

``power_loss.py --rack NAME --machine NAME --cuts N`` runs on the controller, with the witness. The machine needs disks with
``volatile_cache`` honest, lies, torn and off (any number of them, at least 64 MiB), which are overwritten. In each cut every disk has
a writer of its own; when each has 200 acknowledged writes and is still active, the power is cut. When the machine is back, the
verifier reads the disks; with ``--at-rest`` it reads their files while the machine is off, which is quicker. A line for each disk and
cut is printed; the exit status is 1 if one answer was not the known one.

The machine reaches the witness through ssh, since the guests of a rack reach nothing else. On the machine the same file, beside the
collection, has the commands ``write`` and ``verify``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import mmap
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
import typing as t
from pathlib import Path

HERE = Path(__file__).resolve()
FOLDER = "/root/power_loss"
BLOCK = 4096
PLACES = 4096
#: A bar of the power-loss test: a disk that lies is found within so many acknowledged writes.
WRITES = 200
LONGEST = 600.0

#: For each kind of disk, one load for each cut in turn: sync, depth, order, and the answer that is right.
LOADS = {
    "honest": (
        ("fsync", 1, "random", "kept"),
        ("none", 1, "random", "lost"),
        ("fua", 8, "random", "kept"),
        ("fdatasync", 4, "sequential", "kept"),
        ("o_dsync", 16, "random", "kept"),
    ),
    "lies": (("fsync", 1, "random", "lost"), ("fdatasync", 8, "sequential", "lost"), ("fua", 1, "random", "lost"), ("o_dsync", 4, "random", "lost")),
    # What is acknowledged is whole, unless a later write of the same place was under way.
    "torn": (("none", 1, "random", "torn"), ("fsync", 1, "random", "torn_at_most"), ("fdatasync", 4, "random", "torn_at_most")),
    "off": (("none", 1, "random", "kept"), ("fsync", 4, "random", "kept"), ("none", 16, "sequential", "kept")),
}


def judged(cell: t.Mapping[str, t.Any], found: t.Mapping[str, t.Any]) -> bool:
    """Whether the verifier gave the known answer."""
    if cell["answer"] == "torn":
        return found["verdict"] == "lost" and found["torn"] == found["damaged"] > 0
    if cell["answer"] == "torn_at_most":
        return found["verdict"] == "kept" or 0 < found["damaged"] == found["torn"] <= cell["depth"]
    return found["verdict"] == cell["answer"]


class Controller:
    """Reaches one machine of a rack by ssh, and its power by the module of the rack."""

    def __init__(self, rack: str, machine: str) -> None:
        self.folder = Path.home() / ".cache/cachefleet/racks" / rack
        self.rack = rack
        self.machine = machine

    def note(self) -> dict[str, t.Any]:
        return json.loads((self.folder / "rack.json").read_text())["machines"][self.machine]

    def words(self, *command: str, options: t.Sequence[str] = ()) -> list[str]:
        known = [f"UserKnownHostsFile={self.folder}/known_hosts", "StrictHostKeyChecking=yes", "BatchMode=yes", "ServerAliveInterval=15"]
        flags = [word for option in known for word in ("-o", option)]
        return ["ssh", *flags, *options, "-i", str(self.folder / "id_ed25519"), "-p", str(self.note()["ssh_port"]), "root@127.0.0.1", *command]

    def run(self, *command: str, stdin: bytes = b"", timeout: float = LONGEST) -> str:
        completed = subprocess.run(self.words(*command), input=stdin, capture_output=True, check=False, timeout=timeout)
        if completed.returncode:
            raise SystemExit(f"{' '.join(command)}: {completed.stderr.decode(errors='replace').strip()}")
        return completed.stdout.decode()

    def install(self) -> None:
        top = HERE.parents[2] / "plugins/module_utils"
        place = f"{FOLDER}/ansible_collections/cachefleet/storage/plugins/module_utils"
        packed = subprocess.run(["tar", "-C", str(top), "-cz", "_core", "_power_loss"], capture_output=True, check=True).stdout
        self.run(f"mkdir -p {place} && tar -xz -C {place}", stdin=packed)
        self.run(f"cat > {FOLDER}/power_loss.py && sync", stdin=HERE.read_bytes())

    def power(self, state: str, how: str = "power_cut") -> subprocess.CompletedProcess[str]:
        options = {"name": self.rack, "only": [self.machine], "state": state, "how": how, "ssh_timeout": LONGEST}
        words = ["ansible", "localhost", "-i", "localhost,", "-c", "local", "-e", f"ansible_python_interpreter={sys.executable}"]
        return subprocess.run([*words, "-m", "cachefleet.storage.virtual_rack", "-a", json.dumps(options)], capture_output=True, text=True, check=False)

    def cut(self) -> None:
        completed = self.power("stopped")
        if completed.returncode:
            raise SystemExit(completed.stdout[-2000:])

    def start(self, how: str = "power_cut") -> None:
        # A busy host may need longer than the module waits: to shut down, and to answer.
        if self.power("restarted", how).returncode and how == "shutdown":
            self.power("restarted", how)
        _wait(lambda: subprocess.run(self.words("true"), capture_output=True, check=False).returncode == 0, f"{self.machine} back")


def control(rack: str, machine: str, cuts: int, *, at_rest: bool) -> int:
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.confidence import summary

    controller = Controller(rack, machine)
    disks = [disk for disk in controller.note()["description"]["disks"] if disk["volatile_cache"] in LOADS]
    if not disks:
        raise SystemExit("The machine has no disk whose volatile_cache is honest, lies, torn or off.")
    wrong = 0
    results: dict[str, list[str]] = {}
    for cut in range(cuts):
        cells = [_cell(disk, cut) for disk in disks]
        if cut and at_rest:
            controller.start()
        for cell, found in zip(cells, one_cut(controller, cells, at_rest=at_rest)):
            right = judged(cell, found)
            wrong += not right
            results.setdefault(f"{cell['kind']} {cell['sync']}", []).append(found["verdict"])
            print(json.dumps({"right": right, **{key: cell[key] for key in ("disk", "kind", "sync", "depth", "order", "answer")}, **found}), flush=True)
    for name, verdicts in sorted(results.items()):
        print(f"{name}: {summary(verdicts)['sentence']}", flush=True)
    return 1 if wrong else 0


def _cell(disk: t.Mapping[str, t.Any], cut: int) -> dict[str, t.Any]:
    loads = LOADS[disk["volatile_cache"]]
    sync, depth, order, answer = loads[cut % len(loads)]
    run = secrets.token_hex(16)
    load = {"sync": sync, "depth": depth, "order": order, "answer": answer}
    return {"run": run, "secret": secrets.token_hex(32), "disk": disk["name"], "serial": disk["serial"], "kind": disk["volatile_cache"], **load}


@contextlib.contextmanager
def witness_of(controller: Controller, logs: Path, cells: t.Sequence[t.Mapping[str, t.Any]]) -> t.Iterator[int]:
    """The port of a witness of several runs, at which the machine reaches it through SSH.

    :param cells: with the keys run and secret.
    """
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.witness import Witness

    witness = Witness(logs, {cell["run"]: bytes.fromhex(cell["secret"]) for cell in cells}, ["127.0.0.1"], "127.0.0.1")
    thread = threading.Thread(target=witness.serve, daemon=True)
    thread.start()
    forward = subprocess.Popen(controller.words("-N", options=["-o", "ExitOnForwardFailure=yes", "-R", f"{witness.port}:127.0.0.1:{witness.port}"]))
    try:
        time.sleep(5)
        yield witness.port
    finally:
        forward.terminate()
        forward.wait()
        witness.stop()
        # It records the end of each log.
        thread.join()


def one_cut(controller: Controller, cells: t.Sequence[dict[str, t.Any]], *, at_rest: bool) -> list[dict[str, t.Any]]:
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.witness import log_path
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.witness_log import CUT, note_event, read_log

    controller.install()
    with tempfile.TemporaryDirectory() as name:
        logs = Path(name)
        with witness_of(controller, logs, cells) as port:
            orders = [{**cell, "port": port} for cell in cells]
            controller.run(f"cd {FOLDER} && python3 power_loss.py write", stdin=json.dumps(orders).encode())
            # Before the cut there is a time in which every writer is proven to be active.
            paths = [log_path(logs, cell["run"]) for cell in cells]
            for cell, path in zip(cells, paths):
                _wait(lambda path=path, cell=cell: path.exists() and len(read_log(path, cell["run"]).acknowledged) >= WRITES, f"{cell['disk']} {WRITES} writes")
            for path in paths:
                note_event(path, CUT)
            for cell, path in zip(cells, paths):
                _wait(lambda path=path, cell=cell: read_log(path, cell["run"]).active_after_cut, f"{cell['disk']} active")
            controller.cut()
        if at_rest:
            return [_verify_one(cell, path, controller.folder / controller.machine / f"{cell['disk']}.raw", "off") for cell, path in zip(cells, paths)]
        controller.start()
        orders = [{**cell, "log": path.read_text(errors="replace")} for cell, path in zip(cells, paths)]
        return json.loads(controller.run(f"cd {FOLDER} && python3 power_loss.py verify", stdin=json.dumps(orders).encode()))


def _wait(condition: t.Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LONGEST
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"not within {LONGEST:g} s: {what}")
        time.sleep(0.2)


# on the machine ---------------------------------------------------------------------------------------------------------


def _device(serial: str) -> Path:
    places = [place for place in Path("/sys/block").iterdir() if not place.name.startswith(("loop", "ram"))]
    for place in places:
        told = subprocess.run(["udevadm", "info", "--query=property", f"--name=/dev/{place.name}"], capture_output=True, text=True, check=False).stdout
        if f"ID_SERIAL_SHORT={serial}\n" in told:
            return Path("/dev") / place.name
    raise SystemExit(f"no disk has the serial number {serial}")


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def write(orders: t.Sequence[t.Mapping[str, t.Any]]) -> None:
    """Start one writer for each order, each a process of its own, and return."""
    for order in orders:
        device = _device(order["serial"])
        if os.fork():
            continue
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        log = os.open(f"{FOLDER}/{order['disk']}.err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        null = os.open(os.devnull, os.O_RDWR)
        for number, descriptor in enumerate((null, null, log)):
            os.dup2(descriptor, number)
        _write_one(order, device)
        os._exit(0)


def _write_one(order: t.Mapping[str, t.Any], device: Path) -> None:
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.medium import InPlace
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.record import Blocks
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.spec import RunSpec
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.writer import Load, Writer, connect

    # Held exclusively: nothing is mounted or built on it.
    held = os.open(device, os.O_RDONLY | os.O_EXCL)
    medium = InPlace(device, BLOCK, order["sync"], direct=True)
    # What an earlier run left would be of another run anyway; zeros make that visible in a dump.
    with mmap.mmap(-1, 1024 * 1024) as zeros, open(device, "r+b", buffering=0) as handle:
        for _block in range(PLACES * BLOCK // len(zeros)):
            handle.write(zeros)
        os.fsync(handle.fileno())
    spec = RunSpec(str(device), "device", order["serial"], PLACES * BLOCK, sync=order["sync"], order=order["order"], depth=order["depth"], seconds=3600.0)
    greeting = {"run": order["run"], "serial": order["serial"], "boot_id": _boot_id(), "spec": spec.to_dict()}
    connection, session = connect("127.0.0.1", order["port"], bytes.fromhex(order["secret"]), greeting)
    load = Load(BLOCK, PLACES, order=order["order"], depth=order["depth"])
    Writer(medium, Blocks(bytes.fromhex(order["run"]), BLOCK), load, connection, session).run()
    os.close(held)


def verify(orders: t.Sequence[t.Mapping[str, t.Any]]) -> list[dict[str, t.Any]]:
    found = []
    for order in orders:
        path = Path(FOLDER) / f"{order['run']}.log"
        path.write_text(order["log"])
        found.append(_verify_one(order, path, _device(order["serial"]), _boot_id()))
        path.unlink()
    return found


def _verify_one(order: t.Mapping[str, t.Any], log_file: Path, device: Path, boot_id: str) -> dict[str, t.Any]:
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import verifier
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.medium import InPlace
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.record import Blocks
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.witness_log import read_log

    log = read_log(log_file, order["run"])
    medium = InPlace(device, BLOCK, "none", direct=False, readable=True)
    with contextlib.closing(medium):
        rebooted = log.writer["boot_id"] != boot_id
        return verifier.verify(log, Blocks(bytes.fromhex(order["run"]), BLOCK), medium.read, rebooted=rebooted).to_dict()


def main() -> int:
    if sys.argv[1:] == ["write"]:
        write(json.load(sys.stdin))
        return 0
    if sys.argv[1:] == ["verify"]:
        print(json.dumps(verify(json.load(sys.stdin))))
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rack", required=True)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--cuts", type=int, default=1)
    parser.add_argument("--at-rest", action="store_true", help="verify the files of the disks while the machine is off, instead of in the machine")
    options = parser.parse_args()
    return control(options.rack, options.machine, options.cuts, at_rest=options.at_rest)


if __name__ == "__main__":
    raise SystemExit(main())
