#!/usr/bin/env python
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Power cuts at every step in the life of every SSD cache, on a machine of a virtual rack.

``after_a_crash.py --rack NAME --machine NAME --origin DISK --cache DISK --cache DISK`` runs on the controller. On the machine the five
types that its kernel has (LVM cache, LVM writecache, dm-cache, dm-writecache, bcache) live side by side on partitions of the disks,
which are overwritten. For each of the eight steps of a life, and for a cut before, during and after it: the caches are brought to
the step, data are written and flushed, all types take the step at once, and the power is cut. When the machine is back, each type gets
what a user would ask for: the same step (twice), another cache device, flushed, removed. Each must end done, or refused with a reason;
no device may be suspended for more than a second or left so; every flushed block must be there, through the cache, and on the slow disk
alone when nothing is dirty any more. ``--kills N`` changes modes N times and kills the module at a random moment.

A line for each case is printed; the exit status is 1 if one was not proven. On the machine the same file, packed with the
collection, has the commands ``prepare``, ``begin``, ``resume`` and ``kill``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import typing as t
from pathlib import Path

HERE = Path(__file__).resolve()
#: On the machine.
PROGRAM = "/root/after_a_crash.pyz"
CUTS = ("before", "during", "after")
#: Eight of a life, and a mode of two types in which nothing is done.
STEPS = 9
#: Seconds until everything before a cut has happened.
LONGEST = 1500.0


class Controller:
    """Reaches one machine of a rack by ssh, and its power by the playbook of the rack."""

    def __init__(self, rack: str, machine: str) -> None:
        self.rack = rack
        self.machine = machine
        self.top = HERE.parents[2]

    def words(self) -> list[str]:
        """What reaches a command on the machine; read anew, because a port may change with a start."""
        inventory = Path.home() / ".cache/cachefleet/racks" / self.rack / "inventory.yml"
        listing = subprocess.run(["ansible-inventory", "-i", str(inventory), "--host", self.machine], capture_output=True, text=True, check=True)
        known = json.loads(listing.stdout)
        options = ["-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=40", "-o", "BatchMode=yes"]
        common = known.get("ansible_ssh_common_args", "").split()
        user = known.get("ansible_user", "root")
        key = known["ansible_ssh_private_key_file"]
        return ["ssh", *options, *common, "-i", key, "-p", str(known["ansible_port"]), f"{user}@{known['ansible_host']}"]

    def copy(self, file: str) -> None:
        with open(file, "rb") as stream:
            subprocess.run([*self.words(), f"cat > {PROGRAM}"], stdin=stream, check=True)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.words(), "python3", PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True
        )

    def run(self, *arguments: str) -> tuple[int, list[str]]:
        """Run a command to its end and print what it says."""
        process = self.start(*arguments)
        lines = [show(line) for line in process.stdout or ()]
        return process.wait(), lines

    def cut(self) -> None:
        """End the machine without asking it, and start it again."""
        variables = {"virtual_rack_state": "restarted", "virtual_rack_how": "power_cut", "virtual_rack_only": [self.machine], "virtual_rack_ssh_timeout": 600}
        inventory = str(self.top / "inventories/virtual_rack")
        words = ["ansible-playbook", "-i", inventory, "cachefleet.storage.virtual_rack", "-e", json.dumps(variables)]
        done = subprocess.run(words, env={**os.environ, "VIRTUAL_RACK_NAME": self.rack}, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode:
            sys.exit(f"{self.machine} did not come back: {done.stdout[-3000:]}{done.stderr[-1000:]}")

    def cut_at(self, number: int, cut: str, chance: random.Random, longest: float) -> float:
        """Begin a step and cut the power; the seconds that the step took, or was given.

        :raises RuntimeError: if the caches could not be brought to the step.
        """
        process = self.start("begin", str(number), cut)
        began: list[float] = []
        arrived = threading.Event()
        printed: list[str] = []

        def listen() -> None:
            for line in process.stdout or ():
                printed.append(show(line))
                if "taking" in line.split():
                    began.append(time.monotonic())
                if line.split()[1:2] == [{"before": "ready", "during": "taking", "after": "taken"}[cut]]:
                    arrived.set()
            arrived.set()

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        arrived.wait(LONGEST)
        marker = {"before": "ready", "during": "taking", "after": "taken"}[cut]
        if not any(line.split()[1:2] == [marker] for line in printed):
            process.kill()
            raise RuntimeError("; ".join(printed[-5:]))
        took = time.monotonic() - began[0] if began else longest
        if cut == "during":
            took = longest
            moment = chance.uniform(0.5, longest)
            time.sleep(moment)
            print(f"     cut {moment:.1f} s after the beginning", flush=True)
        self.cut()
        process.kill()
        process.wait()
        return took


def show(line: str) -> str:
    print(line.rstrip(), flush=True)
    return line.rstrip()


def controller(arguments: argparse.Namespace) -> int:
    sys.path.insert(0, str(HERE.parent))
    from interrupted_lives import pack

    machine = Controller(arguments.rack, arguments.machine)
    chance = random.Random(arguments.seed)
    print(f"seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        packed = str(Path(folder) / "after_a_crash.pyz")
        pack(packed, __file__)
        machine.copy(packed)
    if not arguments.go_on:
        types = [word for name in arguments.type for word in ("--type", name)]
        disks = ["--origin", arguments.origin, *(word for disk in arguments.cache for word in ("--cache", disk))]
        status, _lines = machine.run("prepare", *disks, *types, "--seed", str(arguments.seed))
        if status:
            return 1
    failures: list[str] = []
    cases: list[str] = []
    # How long the caches take for a step together; learnt from the cuts after one.
    longest = arguments.longest
    stay = ["--stay"] if arguments.stay else []
    for number in arguments.step or range(STEPS):
        for cut in arguments.cut or CUTS:
            print(f"== step {number}, cut {cut}", flush=True)
            try:
                longest = machine.cut_at(number, cut, chance, longest)
            except RuntimeError as error:
                failures.append(f"step {number} cut {cut}: {error}")
                print(f"FAIL {failures[-1]}", flush=True)
                machine.cut()
                continue
            keep(machine.run("resume", str(number), cut, *stay, "--seed", str(chance.randrange(2**32))), cases, failures)
            if failures and arguments.stay:
                return 1
    if arguments.kills:
        # After a cut, so that a table of dm-cache makes all of its blocks dirty whenever it is loaded.
        machine.cut_at(1, "before", chance, longest)
        keep(machine.run("kill", str(arguments.kills), "--seed", str(arguments.seed)), cases, failures)
    proven = sum(1 for case in cases if "| ok |" in case)
    print(f"{proven} of {len(cases)} proven, {len(failures)} failures")
    return 1 if failures or proven < len(cases) or not cases else 0


def keep(ending: tuple[int, list[str]], cases: list[str], failures: list[str]) -> None:
    status, lines = ending
    cases += [line for line in lines if line.split()[1:2] == ["case"]]
    if status:
        failures += [line for line in lines if "| FAIL" in line] or lines[-3:]


def on_the_machine(arguments: argparse.Namespace) -> int:
    from lives.crash import RECORD, TYPES, Machine
    from lives.life import require_scratch

    if arguments.command == "prepare":
        if RECORD.exists():
            Machine.remembered().leave()
        require_scratch([arguments.origin, *arguments.cache])
        machine = Machine(arguments.origin, arguments.cache, arguments.type or list(TYPES), arguments.seed)
        machine.make_room()
        return 0
    machine = Machine.remembered()
    machine.keep = arguments.stay
    if arguments.command == "begin":
        machine.begin(arguments.number, arguments.when)
        return 0
    if arguments.command == "resume":
        return 1 if machine.resume(arguments.number, arguments.when, arguments.seed) else 0
    return 1 if machine.kill(arguments.number, arguments.seed) else 0


def arguments_of(argv: t.Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="?", choices=["prepare", "begin", "resume", "kill"], help="on the machine only")
    parser.add_argument("number", nargs="?", type=int, default=0, help="on the machine only: step, or how many kills")
    parser.add_argument("when", nargs="?", choices=CUTS, default="before", help="on the machine only")
    parser.add_argument("--rack", default="rack")
    parser.add_argument("--machine", default="node1")
    parser.add_argument("--origin", metavar="DISK", help="the slow disk; it is overwritten")
    parser.add_argument("--cache", metavar="DISK", action="append", default=[], help="a fast disk; it is overwritten; two")
    parser.add_argument("--type", action="append", default=[], help="which; default: all five")
    parser.add_argument("--step", type=int, action="append", choices=range(STEPS), help="which; default: all")
    parser.add_argument("--cut", action="append", choices=CUTS, help="which; default: all three")
    parser.add_argument("--kills", type=int, default=0, metavar="N", help="changes of the mode that are killed, after all cuts")
    parser.add_argument("--longest", type=float, default=25.0, metavar="SECONDS", help="after the beginning of a step, for the first cut during one")
    parser.add_argument("--go-on", action="store_true", help="with the partitions of an earlier run")
    parser.add_argument("--stay", action="store_true", help="end with the first failure, and leave everything as it is")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    return parser.parse_args(argv)


def main() -> int:
    arguments = arguments_of()
    if arguments.command:
        return on_the_machine(arguments)
    if not arguments.go_on and (not arguments.origin or len(arguments.cache) != 2):
        sys.exit("Name the disks that may be overwritten: --origin once and --cache twice.")
    with contextlib.suppress(KeyboardInterrupt):
        return controller(arguments)
    return 1


if __name__ == "__main__":
    sys.exit(main())
