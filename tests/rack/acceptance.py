#!/usr/bin/env python
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook accept on disks with a known answer: its exit status and its judgement of each, and that a read-only profile writes nothing.

usage: acceptance.py [--times N] [CASE ...]     with the machine of tests/rack/acceptance running: scripts/accept-test starts it
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
HOSTS = [f"--inventory={TOP}/inventories/virtual_rack", f"--inventory={TOP}/tests/rack/acceptance/hosts.yml"]
INVENTORY = Path("~/.cache/cachefleet/racks").expanduser() / os.environ.get("VIRTUAL_RACK_NAME", "accept-test") / "inventory.yml"
DISK = "/dev/disk/by-id/ata-VIRTUAL_{}_NODE1-{}"
FAST, SLOW, HONEST, LIES = (DISK.format("HDD", name) for name in ("FAST", "SLOW", "HONEST", "LIES"))
CACHE = {"name": "accepted", "origin": DISK.format("HDD", "ORIGIN"), "cache_devices": [DISK.format("SSD", "CACHE")], "mode": "writethrough"}
PASSES, FAILS = "pass", "fail"
CELL = {"rw": "randread", "bs": "4k", "ioengine": "libaio", "iodepth": 4, "direct": 1, "ramp_time": 2, "runtime": 10}


def playbook(path, variables, *options):
    given = {"virtual_rack_ssh_timeout": 600, "storage_hosts": "node1", **variables}
    words = ["ansible-playbook", *HOSTS, f"--inventory={INVENTORY}", *options, "--extra-vars", json.dumps(given), path]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def module(name, **arguments):
    """What a module returns on node1."""
    words = ["ansible", *HOSTS, f"--inventory={INVENTORY}", "--become", "node1", "-m", name, "-a", json.dumps(arguments)]
    completed = subprocess.run(words, capture_output=True, text=True, check=False)
    prove(f"{name} has succeeded", completed.returncode == 0, completed.stdout + completed.stderr)
    return completed.stdout


def accept(folder, requirements, targets, job=None, **variables):
    """The exit status of an acceptance, its judgements by path and requirement, and what it printed."""
    load = {"name": "load", "job": {**CELL, **(job or {})}}
    suite = {"description": "One load", "options": {"randrepeat": 0, "time_based": 1}, "cells": [load]}
    given = {"accept_requirements": requirements, "fio_benchmark_suites": {"known": suite}, "accept_suite": "known", "fio_benchmark_targets": targets}
    results = folder / f"results-{time.time_ns()}"
    completed = playbook(f"{TOP}/playbooks/accept.yml", {**given, "fio_benchmark_results": str(results), **variables})
    found = next(results.glob("*/accept/acceptance.json"), None)
    prove("there is a result", found is not None, completed.stdout + completed.stderr)
    return completed.returncode, json.loads(found.read_text()), completed.stdout


def prove(what, condition, evidence=""):
    print(f"{time.strftime('%H:%M:%S')} {'ok    ' if condition else 'FAILED'} {what}", flush=True)
    if not condition:
        sys.exit(f"{what}: {str(evidence)[-4000:]}")


def states(found, path=""):
    """The state of each requirement, of one target."""
    return {one["requirement"]["name"]: one["state"] for one in found["judgements"] if path in ("", one["target"])}


def rates(folder):
    """A disk of 150 IOPS meets a limit of 120, and one of 120 does not meet 150."""
    for path, limit, judged, status in ((FAST, "120 /s", PASSES, 0), (SLOW, "150 /s", FAILS, 1)):
        required = [{"name": "rate", "workload": "load", "metric": "iops", "of": "read", "at_least": limit}]
        ended, found, said = accept(folder, required, [{"device": path}])
        prove(f"{path} is judged {judged} where {limit} are required", (ended, states(found, path)) == (status, {"rate": judged}), said)
    prove("the serial number of what fails is printed", "Drives that fail: NODE1-SLOW" in said, said)


def lies(folder):
    """A disk that lies fails by a test that cut its power, whatever was declared of it."""
    tests = []
    for path in (HONEST, LIES):
        target = {
            "target": {"device": path, "size": "16M"},
            "cuts": 1,
            "results": str(folder),
            "name": f"{time.time_ns()}",
            "sync": "fsync",
            "tunnel": True,
            "cutter": "rack",
            "seconds": 1,
            "off_seconds": 0,
        }
        given = {f"power_loss_test_{key}": value for key, value in target.items()}
        given["power_loss_test_rack"] = os.environ.get("VIRTUAL_RACK_NAME", "accept-test")
        completed = playbook(f"{TOP}/playbooks/power_loss.yml", given, "--limit=node1")
        prove(f"the power was cut under {path}", completed.returncode == 0, completed.stdout + completed.stderr)
        tests.append(str(folder / target["name"]))
    required = [{"name": "power", "survives": "power_failure"}, {"name": "flushes", "flush": "proved"}, ANY]
    status, found, _said = accept(folder, required, [{"device": HONEST}, {"device": LIES}], accept_power_loss=tests)
    prove("the honest disk passes", set(states(found, HONEST).values()) == {PASSES}, found)
    prove("the lying disk fails", status == 1 and states(found, LIES) == {"power": FAILS, "flushes": FAILS, "any": PASSES}, found)


def drive_cache(folder):
    """A drive cache that must be off is on, and is switched off."""
    required = [{"name": "cache", "drive_cache": "disabled"}, ANY]
    for state, judged, status in (("enabled", FAILS, 1), ("disabled", PASSES, 0)):
        module("cachefleet.storage.drive_write_cache", drives=[{"device": HONEST, "write_cache": state}])
        ended, found, said = accept(folder, required, [{"device": HONEST}])
        prove(f"a drive cache that is {state} is judged {judged}", (ended, states(found, HONEST)["cache"]) == (status, judged), said)


def link(folder):
    """The links of the rack's disks have 1.5 Gb/s."""
    for limit, judged, status in (("1.5 Gb/s", PASSES, 0), ("6 Gb/s", FAILS, 1)):
        ended, found, said = accept(folder, [{"name": "link", "drive_link_speed_at_least": limit}], [{"device": FAST}])
        links = {one["state"] for one in found["judgements"] if "SLOW" in one["target"]}
        prove(f"a link of 1.5 Gb/s is judged {judged} where {limit} are required", (ended, links) == (status, {judged}), said)


def cold_cache(folder):
    """A cache that was just attached misses, and hits what was read before."""
    required = [{"name": "hits", "hit_ratio_at_least": "80 %", "workload": "load"}, ANY]
    module("cachefleet.storage.bcache", caches=[CACHE])
    status, found, said = accept(folder, required, [{"device": "/dev/bcache0"}], {"runtime": 40})
    prove("a cold cache fails", (status, states(found, "/dev/bcache0")["hits"]) == (1, FAILS), said)
    module("ansible.builtin.command", cmd="fio --name=warm --filename=/dev/bcache0 --rw=randread --bs=4k --size=16m --direct=1 --allow_file_create=0")
    status, found, said = accept(folder, required, [{"device": "/dev/bcache0", "size": "16M"}], {"runtime": 40})
    prove("a warm cache passes", (status, states(found, "/dev/bcache0")["hits"]) == (0, PASSES), said)


def read_only(folder):
    """Drives that are only read are not written."""
    shell = "for disk in /dev/disk/by-id/ata-VIRTUAL_*; do awk '{print $5, $7}' /sys/class/block/$(basename $(readlink -f $disk))/stat; sha256sum $disk; done"
    before = module("ansible.builtin.shell", cmd=shell)
    writes = {"name": "writes", "workload": "vm_sync", "metric": "iops", "of": "write", "at_least": "1 /s"}
    reads = {"name": "reads", "workload": "object_read", "metric": "iops", "of": "read", "at_least": "1 /s"}
    every = [{"match": {"serial": ["NODE1-*"]}}]
    status, found, said = accept(folder, [writes, reads], every, accept_suite="accept", fio_benchmark_runtime=5)
    prove("what would write is not measured", (status, states(found)["writes"]) == (2, "not measured"), said)
    prove("all drives were read", len({one["target"] for one in found["judgements"] if one["state"] == PASSES}) >= len(DISKS), found)
    after = module("ansible.builtin.shell", cmd=shell)
    prove("no drive was written", before.split("\n", 1)[1] == after.split("\n", 1)[1], (before, after))


#: What every disk meets.
ANY = {"name": "any", "workload": "load", "metric": "iops", "of": "read", "at_least": "1 /s"}
DISKS = (FAST, SLOW, HONEST, LIES)
CASES = {case.__name__: case for case in (rates, lies, drive_cache, link, cold_cache, read_only)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; all by default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="accept-") as name:
        for number in range(options.times):
            for case in options.cases or CASES:
                print(f"{case}, time {number + 1}", flush=True)
                CASES[case](Path(name))


if __name__ == "__main__":
    main()
