#!/usr/bin/env python
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook power_loss on disks with a known answer: its verdict on each, and a controller that is killed before and after a power cut.

usage: power_loss_playbook.py [--cuts N] [CASE ...]     with the machine of tests/rack/power_cuts running: scripts/power-loss-test starts it
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
INVENTORY = [f"--inventory={TOP}/inventories/virtual_rack", f"--inventory={TOP}/tests/rack/power_cuts/hosts.yml", "--limit=node1"]
HONEST, LIES, TORN = "ata-VIRTUAL_HDD_HONEST", "ata-VIRTUAL_HDD_LIES", "ata-VIRTUAL_SSD_TORN"
#: By name: the target, how it is written, and what is known: the verdict, and whether it contradicts the verdict on the stack.
CASES = {
    "honest-fsync": ({"device": HONEST}, {"sync": "fsync"}, "durable", False),
    "honest-none": ({"device": HONEST}, {"sync": "none"}, "at_risk", False),
    "lies-fsync": ({"device": LIES}, {"sync": "fsync"}, "at_risk", True),
    "torn-none": ({"device": TORN}, {"sync": "none"}, "at_risk", False),
    "honest-fua": ({"device": HONEST}, {"sync": "fua", "depth": 8}, "durable", False),
    "honest-bulk": ({"device": HONEST}, {"bulk": True}, "durable", False),
}
#: One cut is enough to find a loss.
ONCE = ("lies-fsync", "torn-none")


def command(folder, name, target, load, cuts):
    path = {"device": f"/dev/disk/by-id/{target['device']}", "size": "16M"}
    variables = {"target": path, "cuts": cuts, "results": str(folder), "name": name, **load}
    given = {f"power_loss_test_{key}": value for key, value in variables.items()}
    given["power_loss_test_rack"] = os.environ.get("VIRTUAL_RACK_NAME", "rack")
    return ["ansible-playbook", *INVENTORY, str(TOP / "playbooks/power_loss.yml"), "--extra-vars", json.dumps(given)]


def run(words):
    return subprocess.run(words, capture_output=True, text=True, check=False)


def result_of(folder, name):
    return json.loads((folder / name / "power_loss.json").read_text())["hosts"][0]


def prove(what, condition, evidence=""):
    print(f"{time.strftime('%H:%M:%S')} {'ok    ' if condition else 'FAILED'} {what}", flush=True)
    if not condition:
        sys.exit(evidence[-4000:])


def known_answer(folder, name, cuts):
    target, load, verdict, contradicts = CASES[name]
    completed = run(command(folder, name, target, load, cuts))
    prove(f"{name}: the playbook has succeeded", completed.returncode == 0, completed.stdout + completed.stderr)
    found = result_of(folder, name)
    prove(f"{name}: {found['sentence']}", (found["verdict"], found["cuts"], found["void"]) == (verdict, cuts, 0), json.dumps(found, indent=1))
    if verdict == "at_risk":
        prove(f"{name}: every cut lost something", found["losses"] == cuts, json.dumps(found, indent=1))
    prove(f"{name}: contradiction {contradicts}", found["contradiction"].startswith("Contradiction") == contradicts, json.dumps(found, indent=1))


def killed(folder, name, task, verdict):
    """Kill the controller when a task has begun, and run the playbook again."""
    words = command(folder, name, {"device": HONEST}, {"sync": "none", "seconds": 20}, 1)
    log = folder / f"{name}.log"
    with log.open("w") as stream:
        process = subprocess.Popen(words, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True)
    while task not in log.read_text() and process.poll() is None:
        time.sleep(0.2)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    prove(f"{name}: the controller was killed", process.returncode == -signal.SIGKILL, log.read_text())
    completed = run(words)
    prove(f"{name}: the test was continued", completed.returncode == 0, completed.stdout + completed.stderr)
    found = result_of(folder, name)
    runs = {event["run"] for event in map(json.loads, (folder / name / "node1.ndjson").read_text().splitlines()) if "run" in event}
    prove(f"{name}: {found['sentence']}", (found["verdict"], found["cuts"]) == (verdict, 1), json.dumps(found, indent=1))
    return len(runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=3)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join([*CASES, 'killed-before', 'killed-after'])}; all by default")
    options = parser.parse_args()
    cases = options.cases or [*CASES, "killed-before", "killed-after"]
    with tempfile.TemporaryDirectory(prefix="power-loss-") as name:
        folder = Path(name)
        for case in cases:
            if case in CASES:
                known_answer(folder, case, 1 if case in ONCE else options.cuts)
            elif case == "killed-before":
                prove("killed-before: the first run was abandoned", killed(folder, case, "Let the writer write", "at_risk") == 2)
            elif case == "killed-after":
                prove("killed-after: the cut was verified", killed(folder, case, "Verify that the host is off", "at_risk") == 1)
            else:
                parser.error(f"{case} is not a case")


if __name__ == "__main__":
    main()
