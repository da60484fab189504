# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A stand-in for fio that takes as long as it is told and touches no device. It is a program: tests put it on PATH as ``fio``.

Its behaviour is in the JSON file that ``FAKE_FIO`` names, read anew by each run: ``version``; ``unknown``: options that it lacks;
``seconds`` instead of the job's runtime; ``deaf``: SIGTERM is ignored; ``rates``: IOPS of one run after the other; ``latency_per_depth``: ns
for each I/O in flight; ``fails``: names of jobs that end with an error; ``entry``: values that replace those of the job in the report;
``does``: a shell command that runs before the report is written. ``exec_prerun`` of a job runs first, as with fio. Each run leaves a
link in the folder ``<FAKE_FIO>.runs``, whose text is JSON.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time


def main() -> int:
    words = sys.argv[1:]
    behaviour = _behaviour()
    if "--version" in words:
        print(behaviour.get("version", "fio-3.33"))
        return 0
    if any(word == f"--cmdhelp={option}" for word in words for option in behaviour.get("unknown", ())):
        print("No such command")
        return 0
    if any(word.startswith(("--enghelp=", "--cmdhelp=", "--parse-only")) for word in words):
        print(words[0])
        return 0
    return _run(words, behaviour)


def _behaviour() -> dict:
    try:
        with open(os.environ["FAKE_FIO"]) as file:
            return json.load(file)
    except (KeyError, OSError, ValueError):
        return {}


def _run(words: list[str], behaviour: dict) -> int:
    report = next(word.split("=", 1)[1] for word in words if word.startswith("--output="))
    with open(words[-1]) as file:
        text = file.read()
    options = dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))
    runtime = options.get("runtime", "1")
    runtime = float(runtime[:-2]) / 1000 if runtime.endswith("ms") else float(runtime)
    name = re.findall(r"^\[(.*)\]$", text, re.MULTILINE)[-1]
    told: list[int] = []
    signal.signal(signal.SIGTERM, signal.SIG_IGN if behaviour.get("deaf") else lambda signum, frame: told.append(signum))
    # Last: whoever reads that it runs may end it at once.
    number = _remember(name, text)
    if "exec_prerun" in options and subprocess.call(["/bin/sh", "-c", f"{options['exec_prerun']} > {name}.prerun.txt 2>&1"]):
        return 1
    for path in behaviour.get("opens", ()):
        os.open(path, os.O_WRONLY | os.O_CREAT)
    began = time.time()
    seconds = float(behaviour.get("seconds", runtime))
    while time.time() - began < seconds and not told:
        time.sleep(0.01)
    rates = behaviour.get("rates") or [1000]
    depth = int(options.get("iodepth", 1))
    took = min(time.time() - began, seconds)
    figures = {
        "rate": rates[min(number, len(rates)) - 1],
        "latency": int(behaviour.get("latency_per_depth", 100_000)) * depth,
        "milliseconds": int(1000 * runtime * took / seconds) if seconds else 0,
    }
    error = 5 if name in behaviour.get("fails", ()) else 0
    job = {"jobname": name, "groupid": 0, "error": error, "elapsed": 1 + int(took), "usr_cpu": 10.0, "sys_cpu": 20.0}
    if error:
        print("fio: io_u error on file: Input/output error", file=sys.stderr)
    else:
        job["write" if "write" in options.get("rw", "") else "read"] = _direction(figures)
    job.update(behaviour.get("entry", {}))
    if "does" in behaviour:
        subprocess.call(["/bin/sh", "-c", behaviour["does"]])
    jobs = [job]
    if behaviour.get("all_sections"):
        sections = re.findall(r"^\[(?!global)(.*)\]\n((?:[^\[\n].*\n|\n(?!\[))*)", text, re.MULTILINE)
        jobs = [{**job, "jobname": own, "read": {}, "write": {}, "write" if "rw=write" in lines else "read": _direction(figures)} for own, lines in sections]
    with open(report, "w") as file:
        json.dump({"fio version": "fio-3.33", "timestamp_ms": int(time.time() * 1000), "jobs": jobs}, file)
    if told:
        print("fio: terminating on signal 15", file=sys.stderr)
        return 128
    return 1 if error else 0


def _remember(name: str, text: str) -> int:
    """Which run this is, from 1. A file that is open for writing, however briefly, may be seen there, and a fio that has one is killed."""
    folder = os.environ.get("FAKE_FIO", os.devnull) + ".runs"
    os.makedirs(folder, exist_ok=True)
    number = len(os.listdir(folder)) + 1
    while True:
        try:
            os.symlink(json.dumps({"name": name, "time": time.time(), "pid": os.getpid(), "job": text}), f"{folder}/{number:06}")
        except FileExistsError:
            number += 1
        else:
            return number


def _direction(figures: dict) -> dict:
    count = max(1, figures["rate"] * figures["milliseconds"] // 1000)
    latency = figures["latency"]
    clat = {"min": latency, "max": latency, "mean": float(latency), "stddev": 0.0, "N": count, "percentile": {"99.000000": latency}}
    return {
        "io_bytes": count * 4096,
        "bw_bytes": figures["rate"] * 4096,
        "iops": float(figures["rate"]),
        "runtime": figures["milliseconds"],
        "total_ios": count,
        "clat_ns": {**clat, "bins": {str(latency): count}},
        "lat_ns": {key: value for key, value in clat.items() if key != "percentile"},
    }


if __name__ == "__main__":
    sys.exit(main())
