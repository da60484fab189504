#!/usr/bin/env python
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recording on a real kernel: known requests are counted exactly, kills leave nothing behind, and what it costs.

usage: io_trace.py [--only CASE] [--kills N] [--pairs N]     with node1 of the rack VIRTUAL_RACK_NAME running: scripts/trace-test starts it
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

from ansible_collections.cachefleet.storage.plugins.module_utils._trace.format import OPERATIONS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import read_trace

TOP = Path(__file__).resolve().parents[2]
INVENTORY = Path("~/.cache/cachefleet/racks").expanduser() / os.environ.get("VIRTUAL_RACK_NAME", "trace-test") / "inventory.yml"
DEVICES = ["/dev/sda", "/dev/sdb1", "/dev/trace/volume", "/dev/mapper/trace-linear"]
FOLDER = "/var/lib/cachefleet/traces"
#: What a recorder leaves: instances, units and files except those of a trace that was begun.
LEFT = (
    "ls -d /sys/kernel/tracing/instances/* /sys/kernel/debug/tracing/instances/* 2>/dev/null;"
    " systemctl list-units --no-pager --all --plain --no-legend 'cachefleet-trace-*'; ls /run/systemd/transient | grep cachefleet-trace;"
    f" find {FOLDER} -type f ! -name trace.json ! -name requests.bin ! -name runner.json ! -name order.json 2>/dev/null; true"
)


def playbook(path, **variables):
    """What the tasks of a playbook returned on node1; ``None`` stands for one without a result there."""
    words = ["ansible-playbook", f"--inventory={INVENTORY}", str(path), "--extra-vars", json.dumps(variables)]
    environment = {**os.environ, "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.json", "ANSIBLE_DEPRECATION_WARNINGS": "false"}
    completed = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    try:
        result = json.loads(completed.stdout[completed.stdout.index("{\n") :])
    except ValueError:
        sys.exit(f"ansible-playbook printed no result: {completed.stdout[-2000:]} {completed.stderr[-2000:]}")
    return [task["hosts"].get("node1", {}) for play in result["plays"] for task in play["tasks"]]


def record(name, folder, devices=(), **variables):
    options = {f"io_trace_{key}": value for key, value in variables.items()}
    return playbook(TOP / "playbooks/io_trace.yml", io_trace_name=name, io_trace_results=str(folder), io_trace_devices=list(devices or DEVICES), **options)


def message_of(tasks):
    return next((task.get("msg", "") for task in tasks if task.get("failed")), "")


def on_machine(shell):
    node = json.loads(INVENTORY.read_text())["rack"]["hosts"]["node1"]
    words = ["ssh", "-q", "-p", str(node["ansible_port"]), "-i", node["ansible_ssh_private_key_file"], *shlex.split(node["ansible_ssh_common_args"])]
    completed = subprocess.run([*words, f"root@{node['ansible_host']}", shell], capture_output=True, text=True, check=False)
    if completed.returncode:
        sys.exit(f"{shell} failed: {completed.stdout} {completed.stderr}")
    return completed.stdout.strip()


def prove(what, condition, evidence=""):
    print(f"{time.strftime('%H:%M:%S')} {'ok    ' if condition else 'FAILED'} {what}", flush=True)
    if not condition:
        sys.exit(f"{what}: {evidence}")


def requests_of(log):
    """The requests in a log of fio: operation, offset and size in bytes, in their order; and how often it synced."""
    lines = [line.split() for line in log.read_text().splitlines()]
    found = [(line[2], int(line[3]), int(line[4])) for line in lines if len(line) == 5 and line[2] in ("read", "write")]
    return found, sum(line[2:3] == ["sync"] for line in lines)


def counts(folder, _options):
    """Everything that fio sent is counted and sampled, in its order, and nothing else."""
    name, logs = f"counts-{int(time.time())}", folder / "logs"
    playbook(TOP / "tests/rack/trace/devices.yml")
    record(name, folder, state="started", seconds=3000)
    playbook(TOP / "tests/rack/trace/load.yml", trace_devices=DEVICES, trace_logs=str(logs))
    again = record(name, folder, state="started", seconds=3000)
    prove("a second start changes nothing", not any(task.get("changed") for task in again), again)
    prove("a start with other options is refused", "with other options" in message_of(record(name, folder, state="started", seconds=10)))
    record(name, folder, state="stopped")
    trace = read_trace(folder / name / "node1")
    prove("nothing was lost", trace.lost == 0 and trace.rate == 1.0, (trace.lost, trace.rate))
    for index, device in enumerate(trace.devices):
        known, syncs = requests_of(logs / Path(device.name).name)
        mine = trace.requests[(trace.requests["device"] == index) & (trace.requests["sectors"] > 0)]
        found = [(OPERATIONS[one["operation"]], int(one["sector"]) * 512, int(one["sectors"]) * 512) for one in mine]
        prove(f"{device.name}: its {len(known)} requests are in the sample in their order", found == known, (found[:3], known[:3], len(found)))
        for operation in ("read", "write"):
            sizes = collections.Counter(str(size) for what, _offset, size in known if what == operation)
            prove(f"{device.name}: the sizes of {sum(sizes.values())} requests ({operation})", device.raw["sizes"][operation] == sizes, device.raw["sizes"])
        prove(f"{device.name}: its {syncs} flushes", device.raw["counts"]["flush"]["requests"] == syncs > 0, device.raw["counts"])
        latency = device.raw.get("latency", {}).get("write", {})
        prove(f"{device.name}: latencies of a disk, and of nothing else", bool(latency) == ("/sd" in device.name), latency)
    prove("an odd partition is not aligned", trace.devices[1].raw["counts"]["write"]["unaligned"] > 0 == trace.devices[0].raw["counts"]["write"]["unaligned"])
    prove("nothing is left on the host", on_machine(LEFT) == "" and name not in on_machine(f"ls {FOLDER}"), on_machine(LEFT))
    prove("a name that is in use is refused", "already" in message_of(record(name, folder, state="started")))


def flows(folder, _options):
    """What the table of flows says of a cache and of the disks below it is within 2 % of what the kernel's events say of the same time."""
    tasks = playbook(TOP / "tests/rack/trace/flows.yml", flows_name="events", flows_results=str(folder))
    prove("a measurement was recorded", not message_of(tasks), message_of(tasks))
    trace = read_trace(folder / "events/node1")
    prove("nothing was lost", trace.lost == 0 and trace.rate == 1.0, (trace.lost, trace.rate))
    meta = json.loads(next(folder.glob("flows/node1/*/mixed/1/meta.json")).read_text())
    started = json.loads((folder / "events/node1/trace.json").read_text())["started"]
    begin, end = (int((meta[edge] - started) * 1e9) for edge in ("io_start", "io_end"))
    requests = trace.requests[(trace.requests["time"] >= begin) & (trace.requests["time"] < end)]
    seconds = (end - begin) / 1e9
    columns = "if(level = 0, '/dev/mapper/flows', device), reads, writes, flushes, read_bytes, write_bytes"
    rows = duckdb.connect().execute(f"select {columns} from '{folder}/flows/tables/flows/**/*.parquet'").fetchall()
    figures_of = {device: figures for device, *figures in rows}
    for index, device in enumerate(trace.devices):
        # The cache is gone.
        figures = figures_of[device.name if device.name in figures_of else Path(on_machine(f"readlink -f {device.name}")).name]
        mine = requests[requests["device"] == index]
        moved = [mine[mine["operation"] == OPERATIONS.index(operation)] for operation in ("read", "write")]
        flushed = sum(mine["operation"] == OPERATIONS.index("flush"))
        # A flush without data is a write too.
        counted = [len(moved[0]), len(moved[1]) + flushed, flushed, *(512 * int(one["sectors"].sum()) for one in moved)]
        for what, figure, count in zip(("reads", "writes", "flushes", "bytes read", "bytes written"), figures, counted, strict=True):
            said = f"{device.name}: {what}: {figure} in the table, {count / seconds:.1f} of the kernel's events per second"
            # dm-cache writes its metadata in neighbouring blocks, and the kernel merges such writes and flushes of the cache device.
            merged = index == 2 and what in ("writes", "flushes") and 0 < figure <= count / seconds
            prove(said, merged or (figure is None and what == "flushes") or abs(figure - count / seconds) <= max(0.02 * count / seconds, 0.5), counted)


def recorded(folder, _options):
    """The playbook starts, waits, fetches and says where the trace is; check mode changes nothing; an empty list is a no-op."""
    started = time.time()
    tasks = record("whole", folder, ["/dev/sda"], seconds=20)
    prove("the playbook names the folder of the trace", f"Trace: {folder}/whole/node1" in [task.get("msg") for task in tasks], tasks)
    trace = json.loads((folder / "whole/node1/trace.json").read_text())
    prove("the trace ended by itself", (trace["ended"], trace["seconds"], trace["host"]) == ("time", 20.0, "node1") and time.time() - started > 20, trace)
    prove("nothing is left on the host", on_machine(f"{LEFT}; ls -A {FOLDER}") == "", on_machine(LEFT))
    tasks = record("nothing", folder, [])
    prove("an empty list is a no-op", not any(task.get("changed") for task in tasks) and not (folder / "nothing").exists(), tasks)


def refusals(folder, _options):
    """One sentence for each bad input, and nothing is changed on the host."""
    for what, options, sentence in (
        ("a device that does not exist", {"devices": ["/dev/nothing"]}, "/dev/nothing does not exist"),
        ("a file", {"devices": ["/etc/passwd"]}, "is not a block device"),
        ("the same device twice", {"devices": ["/dev/sda", "/dev/disk/by-path/../../sda"]}, "only once"),
        ("no time", {"seconds": 0}, "seconds must be"),
        ("more than a week", {"seconds": 10**6}, "seconds must be"),
        ("a limit that is no size", {"bytes": "much"}, "is not a size"),
    ):
        message = message_of(record("refused", folder, **{"devices": ["/dev/sda"], **options}))
        prove(f"refused: {what}: {message}", sentence in message, message)
    on_machine("mkdir /sys/kernel/debug/tracing/instances/cachefleet-refused")
    message = message_of(record("refused", folder, ["/dev/sda"]))
    on_machine("rmdir /sys/kernel/debug/tracing/instances/cachefleet-refused")
    prove(f"refused: an instance of that name: {message}", "another trace of that name" in message)
    on_machine("umount /sys/kernel/debug/tracing; umount /sys/kernel/debug")
    message = message_of(record("refused", folder, ["/dev/sda"]))
    on_machine("mount -t debugfs nodev /sys/kernel/debug")
    prove(f"refused: no tracefs: {message}", "tracefs is not mounted" in message)
    prove("nothing is left on the host", on_machine(f"{LEFT}; ls -A {FOLDER} 2>/dev/null") == "", on_machine(LEFT))


def disappears(folder, _options):
    """A device that is removed ends the trace with that reason; what was recorded is fetched."""
    on_machine("dmsetup create trace-gone --table '0 100000 linear /dev/sdd 500000'")
    record("gone", folder, ["/dev/mapper/trace-gone"], state="started", seconds=3000)
    on_machine("dd if=/dev/mapper/trace-gone of=/dev/null bs=64k count=10 iflag=direct; dmsetup remove --retry trace-gone; sleep 5")
    tasks = record("gone", folder, ["/dev/sda"], state="stopped")
    trace = json.loads((folder / "gone/node1/trace.json").read_text())
    prove(f"a device that disappears: {trace['message']}", trace["ended"] == "device" and trace["devices"][0]["counts"]["read"]["requests"] >= 10, tasks)


def kills(folder, options):
    """A killed recorder leaves no instance, no unit and no file besides the trace; what it recorded can be fetched."""
    begun = 0
    load = "fio --name=x --filename=/dev/sda --rw=randread --bs=4k --direct=1 --rate_iops=100 --time_based --runtime=12h"
    on_machine(f"systemd-run --quiet --collect --unit=trace-load {load}")
    for number in range(options.kills):
        name, moment = f"kill-{number}", random.uniform(0.0, 25.0)
        unit = f"cachefleet-trace-{name}.service"
        # From the start of systemd-run on: the recorder may be importing, starting or recording.
        waiting = f'until pid=$(systemctl show --property=MainPID --value {unit} 2>/dev/null) && test "$pid" -gt 0; do sleep 0.05; done'
        killer = f"systemd-run --quiet --collect sh -c '{waiting}; sleep {moment:.2f}; kill -9 $pid; pkill -9 -x systemd-run'"
        on_machine(killer.replace("$", "$$"))
        record(name, folder, ["/dev/sda"], state="started", seconds=600, bytes="1M")
        time.sleep(moment / 2)
        for _attempt in range(30):
            left = on_machine(LEFT)
            if not left:
                break
            time.sleep(1)
        prove(f"kill {number} after {moment:.1f} s leaves nothing", not left, left)
        begun += "trace.json" in on_machine(f"ls {FOLDER}/{name} 2>/dev/null; true")
    on_machine("systemctl stop trace-load")
    record(name, folder, ["/dev/sda"], state="stopped")
    fetched = (folder / name / "node1/trace.json").exists()
    prove("what was recorded until a kill can be fetched", not fetched or read_trace(folder / name / "node1").seconds > 0)
    prove("nothing is left after it was fetched", not on_machine(f"ls {FOLDER} | grep -x {name}; true"))
    on_machine(f"rm -rf {FOLDER}/kill-*")
    prove(f"{begun} of {options.kills} killed recorders left a trace that can be read", begun > 0)


def overhead(folder, options):
    """The requests per second with and without a recorder, in alternating pairs."""
    shell = "fio --name=x --filename=/dev/sda --rw=randread --bs=4k --direct=1 --rate_iops=300 --time_based --runtime=20 --output-format=terse"
    losses = []
    for number in range(options.pairs):
        rates = {}
        for recorded in random.sample([False, True], 2):
            if recorded:
                record(f"cost-{number}", folder, ["/dev/sda"], state="started", seconds=600)
            rates[recorded] = float(on_machine(shell).split(";")[7])
            if recorded:
                used = on_machine(f"systemctl show --property=CPUUsageNSec,MemoryPeak --value cachefleet-trace-cost-{number}; true")
                record(f"cost-{number}", folder, ["/dev/sda"], state="stopped")
        losses.append(100 * (1 - rates[True] / rates[False]))
        print(f"pair {number}: {rates[False]:.0f} IOPS without, {rates[True]:.0f} with ({losses[-1]:+.2f} % lost), {used.split()}", flush=True)
    prove(f"recording costs {statistics.mean(losses):.2f} % of 300 IOPS, at most 2 %", statistics.mean(losses) <= 2.0, losses)


CASES = {case.__name__: case for case in (counts, flows, recorded, refusals, disappears, kills, overhead)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=CASES)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            if options.only in (None, name):
                case(Path(folder), options)


if __name__ == "__main__":
    main()
