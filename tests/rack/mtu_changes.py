#!/usr/bin/env python
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random MTU changes on a machine of the virtual rack, each with a fault at a random moment: no host may be lost by one.

``mtu_changes.py --host node1 --count 20 --seed 1`` runs on the controller, with VIRTUAL_RACK_NAME naming a rack that is started. The
interface is the storage network or the one that Ansible comes over; the fault is put into the machine by a process that waits there
for the MTU to change:

none        nothing happens, and the change must be kept
large       while the MTU is the new one, packets of more than 1000 bytes leave the machine no more, as behind a switch that drops them
down        the interface is switched off
controller  ansible is killed
module      the module is killed on the machine

Afterwards the machine must answer, and what it has must be all old or all new, now and at boot. Every line is one proven case; the
exit status is 1 if one was not.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

REVERT_AFTER = 60
FAULTS = ("none", "large", "down", "controller", "module")
MTUS = {"eth0": (1300, 1400, 1500, 2000, 9000), "eth1": (1500, 4200, 8700, 9000)}
JOURNAL = "/var/lib/cachefleet/storage_network/journal.json"
#: What waits in the machine. Arguments: interface, fault, seconds after the change.
WATCHER = r"""
import os, signal, subprocess, sys, time
name, fault, delay = sys.argv[1], sys.argv[2], float(sys.argv[3])
path, lock = "/sys/class/net/%s/mtu" % name, "/run/cachefleet.storage/storage_network.lock"
def mtu():
    with open(path) as stream:
        return stream.read()
def tc(*words):
    subprocess.call(["tc", *words])
def holders():
    number = str(os.stat(lock).st_ino)
    with open("/proc/locks") as stream:
        return [int(words[4]) for words in (line.split() for line in stream) if words[1] != "->" and words[5].split(":")[-1] == number]
old, end = mtu(), time.time() + 120
while mtu() == old and time.time() < end:
    time.sleep(0.02)
if mtu() != old:
    time.sleep(delay)
    if fault == "large":
        tc("qdisc", "replace", "dev", name, "clsact")
        tc("filter", "add", "dev", name, "egress", "protocol", "ip", "basic", "match", "cmp(u16 at 2 layer network gt 1000)", "action", "drop")
        while mtu() != old and time.time() < end:
            time.sleep(0.1)
        tc("qdisc", "del", "dev", name, "clsact")
    elif fault == "down":
        subprocess.call(["ip", "link", "set", "dev", name, "down"])
    elif fault == "module":
        while time.time() < end:
            for pid in holders():
                os.kill(pid, signal.SIGKILL)
                sys.exit()
            time.sleep(0.02)
"""


class Machine:
    """One machine, over ssh connections that are not shared with Ansible's."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.folder = Path(os.environ.get("VIRTUAL_RACK_DIRECTORY") or Path.home() / ".cache/cachefleet/racks" / os.environ.get("VIRTUAL_RACK_NAME", "rack"))
        self.port = json.loads((self.folder / "rack.json").read_text())["machines"][name]["ssh_port"]

    def run(self, command: str, stdin: str = "", timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        options = {"UserKnownHostsFile": self.folder / "known_hosts", "IdentitiesOnly": "yes", "ConnectTimeout": 10, "ControlPath": "none", "LogLevel": "ERROR"}
        argv = ["ssh", "-p", str(self.port), "-i", str(self.folder / "id_ed25519"), *(f"-o{name}={value}" for name, value in options.items()), "root@127.0.0.1"]
        return subprocess.run([*argv, command], input=stdin, capture_output=True, text=True, timeout=timeout, check=False)

    def reachable(self, patience: float) -> bool:
        """Whether it answers, with a large packet in each direction."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            with contextlib.suppress(subprocess.TimeoutExpired):
                text = "x" * 65536
                if self.run("cat", text, timeout=30).stdout == text:
                    return True
            time.sleep(1)
        return False

    def state(self, interface: str) -> tuple[int, int | None]:
        """The MTU now and the one at boot."""
        found = self.run(f"cat /sys/class/net/{interface}/mtu; grep -h MTUBytes= /etc/systemd/network/00-cachefleet-mtu-{interface}.link").stdout.split()
        return int(found[0]), int(found[1].partition("=")[2]) if len(found) > 1 else None

    def settled(self, patience: float) -> bool:
        """Whether nothing runs and nothing waits for a confirmation any more: a module goes on when its controller is killed."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if self.run(f"pgrep -fx /usr/bin/python3 >/dev/null || test -e {JOURNAL} || echo gone").stdout.strip() == "gone":
                return True
            time.sleep(1)
        return False

    def inject(self, interface: str, fault: str, delay: float) -> None:
        unit = f"mtu-fault-{time.time_ns()}"
        command = f"systemd-run --quiet --collect --unit={unit} /usr/bin/python3 -c {shlex.quote(WATCHER)} {interface} {fault} {delay}"
        completed = self.run(command)
        if completed.returncode:
            raise SystemExit(f"The fault could not be put into {self.name}: {completed.stderr}")

    def clean(self, interface: str) -> None:
        self.run(f"systemctl stop 'mtu-fault-*'; tc qdisc del dev {interface} clsact; ip link set dev {interface} up")


def _descendants(pid: int) -> list[int]:
    """A process and all that come from it: the workers of Ansible are in sessions of their own."""
    parents = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(place.parent.name)] = int(place.read_text().rpartition(")")[2].split()[1])
    found = [pid]
    for one in found:
        found.extend(child for child, parent in parents.items() if parent == one)
    return found


def change(machine: Machine, interface: str, mtu: int, kill_after: float | None) -> int | None:
    """One call of the module; the exit status of Ansible, None if it was killed."""
    link = {"interface": interface, "mtu": mtu, "allow_management": True, "provider": "systemd_networkd"}
    arguments = json.dumps({"links": [link], "revert_after": REVERT_AFTER})
    top = Path(__file__).resolve().parents[2]
    argv = ["ansible", "-i", str(top / "inventories/virtual_rack"), machine.name, "-m", "cachefleet.storage.storage_network", "-a", arguments]
    process = subprocess.Popen(argv, cwd=top, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        return process.wait(kill_after if kill_after is not None else 400)
    except subprocess.TimeoutExpired:
        for pid in _descendants(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        return None


def case(machine: Machine, interface: str, mtu: int, fault: str, moment: float) -> tuple[bool, str]:
    """One change with one fault: whether all is well, and what became of it."""
    old = machine.state(interface)
    if fault in ("large", "down", "module"):
        machine.inject(interface, fault, moment)
    rc = change(machine, interface, mtu, 2.0 + 2 * moment if fault == "controller" else None)
    reached = machine.reachable(REVERT_AFTER + 120) and machine.settled(REVERT_AFTER + 120)
    machine.clean(interface)
    if not reached:
        return False, "LOST"
    found = machine.state(interface)
    outcome = "new" if found == (mtu, mtu) else "old" if found == old else "MIXED"
    expected = {"none": ("new",), "large": ("old",) if interface == "eth0" else ("new",)}.get(fault, ("old", "new"))
    truthful = rc is None or (rc == 0) == (outcome == "new")
    return outcome in expected and truthful, f"{outcome} {found[0]}/{found[1]} {'killed' if rc is None else f'rc {rc}'}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="node1")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=list(FAULTS))
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    machine, dice = Machine(options.host), random.Random(options.seed)
    print(f"seed {options.seed}, {options.count} changes on {options.host}", flush=True)
    for interface in MTUS:
        if machine.state(interface) != (1500, 1500):
            change(machine, interface, 1500, None)
            # A second time, so that the state at boot is there although nothing had to be changed now.
            change(machine, interface, 1500, None)
    failed = 0
    faults = [options.faults[number % len(options.faults)] for number in range(options.count)]
    dice.shuffle(faults)
    for number, fault in enumerate(faults, 1):
        interface = dice.choice(sorted(MTUS))
        mtu = dice.choice([one for one in MTUS[interface] if one != machine.state(interface)[0]])
        moment = round(dice.uniform(0.0, 4.0), 2) if fault not in ("large", "down") else 0.0
        began = time.monotonic()
        good, outcome = case(machine, interface, mtu, fault, moment)
        failed += not good
        print(
            f"{number:3} {'ok  ' if good else 'FAIL'} {interface} -> {mtu:5} {fault:10} at {moment:4} s: {outcome} ({time.monotonic() - began:.0f} s)",
            flush=True,
        )
    print(f"{options.count - failed} of {options.count} as they should be", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
