#!/usr/bin/env python
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook site from scratch over five layers, interrupted at a random moment: the next run completes it, and fenced data are intact.

usage: site_kills.py [--kills N] [--seed N]     with the machine of tests/rack/site running: scripts/site-kill-test starts it

In turn the controller is killed, the module on the machine, and the power is cut. The file system of the origin is mounted all the time. Fenced are a
file in it, the volume beside it on the same disk, and the beginning of a drive that is in a list. After each kill site is run once more: it must
succeed, a check of all layers must find nothing to do, and all checksums must be those of the beginning. The exit status is 1 if a case was not proven.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
INVENTORY = [f"--inventory={TOP}/inventories/virtual_rack", f"--inventory={TOP}/tests/rack/site/hosts.yml", "--limit=node1"]
GROUND = TOP / "tests/rack/site/ground.sh"
LAYERS = {"drive_write_cache", "raid_cache", "lvm_cache", "block_queue", "storage_network"}
KINDS = ("controller", "module", "power")
#: Seconds from the start of the playbook that cuts the power to the cut, about; what is left is random anyway.
LEAD = 6.0
LEFT_OUT = ("__pycache__", "simulators/tests", "simulators/in_process")
#: The module on the machine, whose code comes over the connection: options of pgrep and pkill that match its whole command line.
MODULE = "-xf /usr/bin/python3"


def environment():
    return {**os.environ, "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.json", "ANSIBLE_DEPRECATION_WARNINGS": "false"}


def site(*options):
    return ["ansible-playbook", *INVENTORY, "cachefleet.storage.site", *options]


def run(*options):
    """The statistics of the machine, the result of the module, and what was printed."""
    completed = subprocess.run(site(*options), capture_output=True, text=True, env=environment(), check=False)
    try:
        result = json.loads(completed.stdout[completed.stdout.index("{\n") :])
    except ValueError:
        return {"failures": 1}, {}, completed.stdout[-2000:] + completed.stderr[-2000:]
    tasks = [task["hosts"]["node1"] for play in result["plays"] for task in play["tasks"] if "node1" in task["hosts"]]
    calls = [task for task in tasks if "pending" in task]
    return result["stats"].get("node1", {"failures": 1}), calls[-1] if calls else {}, "; ".join(str(task.get("msg")) for task in tasks if task.get("failed"))


def on_machine(shell, *, wait=True):
    """Run a command on the machine without a module; ssh is tried until the machine answers."""
    words = ["ansible", *INVENTORY, "node1", "-m", "ansible.builtin.raw", "-a", shell]
    if not wait:
        return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    for _attempt in range(3):
        completed = subprocess.run(words, capture_output=True, text=True, check=False)
        if "UNREACHABLE" not in completed.stdout:
            break
    if completed.returncode:
        sys.exit(f"{shell} failed: {completed.stdout} {completed.stderr}")
    return completed.stdout.partition(">>\n")[2]


def install():
    with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
        subprocess.run(
            ["tar", "-cf", archive.name, *[f"--exclude={name}" for name in LEFT_OUT], "-C", str(TOP / "tests"), "simulators", "-C", GROUND.parent, GROUND.name],
            check=True,
        )
        on_machine("mkdir -p /opt/cachefleet")
        unpacking = ["ansible", *INVENTORY, "node1", "-m", "ansible.builtin.unarchive", "-a", f"src={archive.name} dest=/opt/cachefleet owner=root group=root"]
        subprocess.run(unpacking, check=True, capture_output=True)


def ground(what):
    return on_machine(f"/opt/cachefleet/ground.sh {what} 2>&1")


def cut_power():
    variables = {"virtual_rack_state": "restarted", "virtual_rack_how": "power_cut", "virtual_rack_only": ["node1"], "virtual_rack_ssh_timeout": 600}
    words = ["ansible-playbook", *INVENTORY[:2], "cachefleet.storage.virtual_rack", "--extra-vars", json.dumps(variables)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"node1 did not come back: {done.stdout[-3000:]}{done.stderr[-1000:]}")


def break_off(kind, moment):
    """Run site and interrupt it after some seconds; whether it was still running.

    What the module has started is left running when it is killed alone, and when the controller is.
    """
    killer = None
    if kind == "module":
        search = f"until pgrep {MODULE} >/dev/null; do sleep 0.2; done; sleep {moment:.1f}; pkill -KILL {MODULE}; true"
        killer = on_machine(search, wait=False)
    process = subprocess.Popen(site(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(), start_new_session=True)
    if killer:
        failed = process.wait() != 0
        if killer.poll() is None:
            # It has found no module, and must not find that of the next run.
            os.killpg(killer.pid, signal.SIGKILL)
            on_machine("pkill -f '[u]ntil pgrep'; true")
        killer.wait()
        return failed
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(moment if kind == "controller" else max(0.0, moment - LEAD))
    running = process.poll() is None
    if kind == "power":
        cut_power()
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return running


def problem_after():
    """What is wrong once site has run again; empty if all is well."""
    stats, _call, said = run()
    if stats.get("failures") or stats.get("unreachable"):
        return f"the next run failed: {said}"
    stats, call, said = run("--check")
    if stats.get("failures") or stats.get("changed") or set(call.get("done", ())) != LAYERS:
        return f"there is something left to do: {call.get('actions')} {call.get('done')} {said}"
    found = ground("verify")
    return "" if "intact" in found else f"fenced data differ: {found}"


def first_run():
    """From scratch, without a kill; the seconds that it takes."""
    ground("reset")
    _stats, call, said = run("--check")
    layers = {step["layer"] for step in call.get("steps", ())}
    if layers != LAYERS:
        sys.exit(f"From scratch, site must change {', '.join(sorted(LAYERS))}, not {', '.join(sorted(layers))}: {said}")
    began = time.monotonic()
    run()
    longest = time.monotonic() - began
    if problem := problem_after():
        sys.exit(f"Without a kill: {problem}")
    print(f"from scratch: {longest:.0f} s", flush=True)
    return longest


def parsed(parser):
    """The options of the command line, and the source of all that is drawn."""
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--prepared", action="store_true", help="the machine was prepared by an earlier run of the same version")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    return options, random.Random(options.seed)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seconds", type=float, help="what a run from scratch takes, as an earlier run has measured")
    options, chance = parsed(parser)
    if not options.prepared:
        install()
        ground("prepare")
    longest = options.seconds or first_run()
    proven = number = 0
    while number < options.kills:
        ground("reset")
        kind, moment = KINDS[number % len(KINDS)], chance.uniform(0, 0.8) * longest
        came_in_time = break_off(kind, moment)
        problem = problem_after()
        outcome = f"{time.strftime('%H:%M:%S')} {kind} after {moment:.0f} of {longest:.0f} s: {problem or 'ok'}"
        if not came_in_time and not problem:
            print(f"{outcome}, too late, which does not count", flush=True)
            continue
        number += 1
        proven += not problem
        print(f"{outcome} ({proven} of {number})", flush=True)
    print(f"{proven} of {options.kills} converged at the next run with all fenced data intact", flush=True)
    return 0 if proven == options.kills else 1


if __name__ == "__main__":
    sys.exit(main())
