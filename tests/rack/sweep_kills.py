#!/usr/bin/env python
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sweep over three layers, interrupted at a random moment and continued: the host is as before, every cell is measured once.

usage: sweep_kills.py [--kills N] [--first N] [--seed N] [--seconds N] [--results DIR]

The machine of tests/rack/sweep has to be running: scripts/sweep-kill-test starts it.

In turn the controller is killed, the module on the machine, the runner that measures, the connection, and the power is cut. Then the same campaign is run
again, as often as a user would: at most three times. It must end with status 0, the settings of all layers must be those from before the sweep, the
journal must be gone, each cell must be there once, and fenced data must be intact. The exit status is 1 if a case was not proven.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import site_kills
from site_kills import MODULE, TOP, cut_power, ground, install, on_machine

INVENTORY = [f"--inventory={TOP}/inventories/virtual_rack", f"--inventory={TOP}/tests/rack/sweep/hosts.yml", "--limit=node1"]
VARIANTS = ("drive_off", "writeback")
#: What kills each kind on the machine; the controller is killed, and the power cut, from here.
ON_MACHINE = {
    "module": f"until pgrep {MODULE} >/dev/null; do sleep 0.2; done; pkill -KILL {MODULE}; true",
    "runner": 'until pgrep -x fio >/dev/null && f=$(ls -t /var/lib/cachefleet/spool/*/runner.json 2>/dev/null | head -n 1) && [ -n "$f" ]; do sleep 0.2; done;'
    r""" kill -KILL $(sed -n 's/.*"pid": \([0-9]*\).*/\1/p' "$f"); pkill -KILL -x fio; true""",
    "connection": "pkill -KILL -f 'sshd: root'; true",
}
#: The target is a file below it, after a power cut too.
MOUNTED_AT_BOOT = "grep -q /mnt/data /etc/fstab || echo '/dev/vg0/data /mnt/data ext4 defaults,nofail 0 2' >>/etc/fstab"
KINDS = ("controller", *ON_MACHINE, "power")
MOST_RUNS = 3
#: The parts of a sweep's time between which it is interrupted; what measures is not there any more when the host is restored and the report is written.
MOMENTS = {"runner": (0.05, 0.5)}
#: Ground for all layers has simulated RAID controllers, which cost a description of the host a minute on a busy machine.
WITHOUT_SIMULATORS = "grep -rlsI 'simulator of cachefleet.storage' /opt /usr/local /usr/sbin /usr/bin | grep -v ^/opt/cachefleet | xargs -r rm"
STATE = """
mountpoint /mnt/data
hdd=/dev/disk/by-id/ata-VIRTUAL_HDD_NODE1-HDD0
hdparm -W "$hdd" | grep write-caching
lvs --noheadings --options lv_name,segtype,pool_lv vg0
queue=/sys/class/block/$(basename "$(realpath "$hdd")")/queue
cat "$queue/read_ahead_kb" "$queue/scheduler"
ls /etc/udev/rules.d
ls /var/lib/cachefleet/sweep 2>/dev/null
true
"""


def sweep(results, campaign):
    extra = {"fio_benchmark_results": str(results), "fio_benchmark_campaign": campaign}
    return ["ansible-playbook", *INVENTORY, "cachefleet.storage.sweep", "--extra-vars", json.dumps(extra)]


def start(command, output=subprocess.DEVNULL):
    return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)


def break_off(kind, moment, command):
    """Run the sweep and interrupt it after some seconds; whether it was still running."""
    process = start(command)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(moment)
    running = process.poll() is None
    if running and kind == "controller":
        os.killpg(process.pid, signal.SIGKILL)
    elif running and kind == "power":
        cut_power()
    elif running:
        killer = on_machine(ON_MACHINE[kind], wait=False)
        # What is looked for may not come any more: the sweep ends.
        while process.poll() is None and killer.poll() is None:
            time.sleep(0.5)
        if killer.poll() is None:
            os.killpg(killer.pid, signal.SIGKILL)
            on_machine("pkill -f '[u]ntil pgrep'; true")
            running = False
        killer.wait()
    # Of what was not killed here the play must end by itself: it goes on, or fails and restores.
    process.wait()
    return running


def problem_after(results, campaign, before):
    """What is wrong once the campaign was continued; empty if all is well."""
    with tempfile.TemporaryFile("w+") as printed:
        for _run in range(MOST_RUNS):
            printed.seek(0)
            printed.truncate()
            if start(sweep(results, campaign), printed).wait() == 0:
                break
        else:
            printed.seek(0)
            return f"the sweep was not completed by {MOST_RUNS} runs: {printed.read()[-2500:]}"
    states = {path.relative_to(results / campaign): json.loads(path.read_text())["state"] for path in (results / campaign / "node1").rglob("meta.json")}
    wanted = {Path("node1", variant, "write", "1", "meta.json"): "ok" for variant in VARIANTS}
    if states != wanted:
        return f"cells are {states}"
    if (after := on_machine(STATE)) != before:
        return f"the host is not as before: {after!r}, not {before!r}"
    found = ground("verify")
    return "" if "intact" in found else f"fenced data differ: {found}"


def without_kill(results, before):
    """The seconds that a sweep takes."""
    began = time.monotonic()
    if problem := problem_after(results, "whole", before):
        sys.exit(f"Without a kill: {problem}")
    longest = time.monotonic() - began
    print(f"without a kill: {longest:.0f} s", flush=True)
    return longest


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--first", type=int, default=1, help="the number of the first kill, to continue a test with its seed")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--prepared", action="store_true", help="the machine was prepared by an earlier run of the same version")
    parser.add_argument("--seconds", type=float, help="what a sweep takes, as an earlier run has measured")
    parser.add_argument("--results", type=Path, help="folder of the campaigns, which is kept")
    options = parser.parse_args()
    # Its functions reach the machine with this inventory too.
    site_kills.INVENTORY[:] = INVENTORY
    chance = random.Random(options.seed)
    print(f"seed {options.seed}", flush=True)
    if not options.prepared:
        install()
        ground("prepare")
        on_machine(f"{WITHOUT_SIMULATORS}; {MOUNTED_AT_BOOT}")
    results = options.results or Path(tempfile.mkdtemp(prefix="sweep-kills-"))
    before = on_machine(STATE)
    longest = options.seconds or without_kill(results, before)
    proven = 0
    number = options.first - 1
    for earlier in range(number):
        chance.uniform(*MOMENTS.get(KINDS[earlier % len(KINDS)], (0.05, 0.9)))
    while number < options.kills:
        kind = KINDS[number % len(KINDS)]
        moment = chance.uniform(*MOMENTS.get(kind, (0.05, 0.9))) * longest
        campaign = f"kill-{number + 1}"
        shutil.rmtree(results / campaign, ignore_errors=True)
        in_time = break_off(kind, moment, sweep(results, campaign))
        problem = problem_after(results, campaign, before)
        outcome = f"{time.strftime('%H:%M:%S')} {kind} after {moment:.0f} of {longest:.0f} s: {problem or 'ok'}"
        if not in_time and not problem:
            print(f"{outcome}, too late, which does not count", flush=True)
            continue
        number += 1
        proven += not problem
        print(f"{outcome} ({proven} of {number - options.first + 1})", flush=True)
    wanted = options.kills - options.first + 1
    print(f"{proven} of {wanted} were continued, with the host as before and every cell once", flush=True)
    if proven == wanted and not options.results:
        shutil.rmtree(results)
    return 0 if proven == wanted else 1


if __name__ == "__main__":
    sys.exit(main())
