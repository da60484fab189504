#!/usr/bin/env python
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of test volumes on a real kernel: predicted, created, rebooted, refused, interrupted, removed and created again.

usage: test_volumes.py [--kills N]     with the machine of tests/rack/volumes running: scripts/volumes-test starts it
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
INVENTORY = [f"--inventory={TOP}/inventories/virtual_rack", f"--inventory={TOP}/tests/rack/volumes/hosts.yml", "--limit=node1"]
LUNS = [f"/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_LUN{number}" for number in range(9)]
SSDS = [f"/dev/disk/by-id/ata-VIRTUAL_SSD_SSD{number}" for number in range(4)]
ARRAY = {"name": "array", "type": "striped", "devices": LUNS[:8], "filesystem": "xfs", "mount": "/mnt/array"}
MIRROR = {"name": "mirror", "type": "raid10", "devices": SSDS, "filesystem": "ext4", "mount": "/mnt/mirror"}
IMAGES = {"name": "images", "type": "thin", "size": "1G", "devices": LUNS[8:]}
ALL = [ARRAY, MIRROR, IMAGES]
#: What is there of volumes, in a form that can be compared.
SHOW = "lsblk --noheadings --output NAME,TYPE,FSTYPE,MOUNTPOINTS; grep /mnt /etc/fstab; true"


def command(volumes, *options):
    return ["ansible-playbook", *INVENTORY, str(TOP / "playbooks/test_volumes.yml"), "--extra-vars", json.dumps({"test_volumes_volumes": volumes}), *options]


def environment():
    return {**os.environ, "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.json", "ANSIBLE_DEPRECATION_WARNINGS": "false"}


def result_of(words):
    completed = subprocess.run(words, capture_output=True, text=True, env=environment(), check=False)
    try:
        return json.loads(completed.stdout[completed.stdout.index("{\n") :])
    except ValueError:
        sys.exit(f"ansible-playbook printed no result: {completed.stdout[-2000:]} {completed.stderr[-2000:]}")


def run(volumes, *options):
    """The statistics of the machine after a run, the message of the task that failed, and the planned actions."""
    result = result_of(command(volumes, *options))
    tasks = [task["hosts"]["node1"] for play in result["plays"] for task in play["tasks"] if "node1" in task["hosts"]]
    messages = [task.get("msg", "") for task in tasks if task.get("failed")]
    return result["stats"]["node1"], (messages or [""])[0], [action for task in tasks for action in task.get("actions", [])]


def examined(*volumes):
    """The message of the module for each volume alone, in check mode; empty where it accepts it."""
    playbook = str(TOP / "tests/rack/volumes/examine.yml")
    result = result_of(["ansible-playbook", *INVENTORY, playbook, "--extra-vars", json.dumps({"examined": volumes})])
    (task,) = (task["hosts"]["node1"] for play in result["plays"] for task in play["tasks"])
    return [one.get("msg", "") for one in task["results"]]


def on_machine(shell, module="ansible.builtin.shell"):
    completed = subprocess.run(["ansible", *INVENTORY, "node1", "-m", module, "-a", shell], capture_output=True, text=True, check=False)
    if completed.returncode:
        sys.exit(f"{shell} failed: {completed.stdout} {completed.stderr}")
    return completed.stdout.partition(">>\n")[2]


def prove(what, condition, evidence=""):
    print(f"{time.strftime('%H:%M:%S')} {'ok    ' if condition else 'FAILED'} {what}", flush=True)
    if not condition:
        sys.exit(f"{what}: {evidence}")


def refused(what, message, *words):
    prove(f"refused: {what}: {message}", all(word in message for word in words), message)


def lives():
    before = on_machine(SHOW)
    stats, message, predicted = run(ALL, "--check")
    prove("check mode predicts a change and makes none", stats["changed"] and not stats["failures"] and on_machine(SHOW) == before, message)
    stats, message, done = run(ALL)
    prove("three volumes are created as predicted", stats["changed"] and not stats["failures"] and done[: len(predicted)] == predicted, message)
    stats, message, _actions = run(ALL)
    prove("a second run changes nothing", not stats["changed"] and not stats["failures"], message)
    on_machine("echo kept > /mnt/array/file; sync")
    restarted = ["ansible-playbook", *INVENTORY[:2], str(TOP / "playbooks/virtual_rack.yml"), "--extra-vars"]
    subprocess.run([*restarted, '{"virtual_rack_state": "restarted", "virtual_rack_only": ["node1"]}'], check=True, capture_output=True)
    prove("mounts and their contents are there after a reboot", on_machine("cat /mnt/array/file; findmnt -n -o SOURCE /mnt/mirror").startswith("kept\n/dev/md"))
    stats, message, _actions = run(ALL)
    prove("a run after the reboot changes nothing", not stats["changed"] and not stats["failures"], message)


def refusals():
    cases = [
        ("more stripes than devices", {**ARRAY, "stripes": 9}, ["array: stripes must be between 2 and"]),
        ("another layout", {**ARRAY, "stripes": 4}, ["array: ", "stripes 8 instead of 4", "state: absent"]),
        ("other devices", {**ARRAY, "devices": LUNS[:7]}, ["array: test_array is on other devices"]),
        ("a device in use", {"name": "other", "devices": LUNS[:1]}, ["other: ", "is part of"]),
        ("a kernel name", {"name": "other", "devices": ["/dev/nvme0n1"]}, ["other: ", "may be another device after the next reboot"]),
        ("a missing device", {"name": "other", "devices": ["/dev/disk/by-id/nvme-none"]}, ["other: ", "does not exist"]),
        ("removal of what holds data", {**ARRAY, "state": "absent"}, ["array: ", "contains xfs", "allow_data_loss"]),
        ("a mount point of another file system", {**IMAGES, "filesystem": "ext4", "mount": "/mnt/array"}, ["images: ", "/mnt/array", "choose another"]),
    ]
    for (what, _volume, words), message in zip(cases, examined(*[volume for _what, volume, _words in cases])):
        refused(what, message, *words)
    on_machine("lvcreate --yes --name foreign --virtualsize 64M --thin test_images/pool; lvchange --permission r test_images/foreign")
    stats, message, _actions = run([{**IMAGES, "state": "absent", "allow_data_loss": True}])
    refused("removal of a group with a foreign volume", message, "images: ", "(foreign)")
    prove("the foreign volume is kept", stats["failures"] == 1 and "foreign" in on_machine("lvs --noheadings -o lv_name test_images"))
    on_machine("lvremove --yes test_images/foreign; vgchange --deltag cachefleet_test_volume test_images")
    refused("removal of a group without the mark", examined({**IMAGES, "state": "absent"})[0], "images: ", "was not created by this role")
    on_machine("vgchange --addtag cachefleet_test_volume test_images")


def removal():
    on_machine("mkdir -p /mnt/array/d && dd if=/dev/urandom of=/mnt/array/d/f bs=1M count=200 status=none; sync")
    gone = [{**volume, "state": "absent", "allow_data_loss": True} for volume in ALL]
    stats, message, _actions = run(gone)
    left = on_machine(SHOW)
    prove(
        "volumes, groups, labels and mounts are removed",
        not stats["failures"] and not any(word in left for word in ("test_", "/mnt", "LVM", "raid")),
        f"{message} {left}",
    )
    stats, message, _actions = run(gone)
    prove("a second removal changes nothing", not stats["changed"] and not stats["failures"], message)
    prove("the devices are free again, although they contain remains", examined({"name": "again", "devices": LUNS[:8]}) == [""])
    on_machine(
        f"dd if=/dev/urandom of={LUNS[0]} bs=1M seek=100 count=8 conv=fsync status=none; dd if=/dev/urandom of={LUNS[0]} bs=512 count=1 conv=fsync status=none"
    )
    refused("data without a signature", examined({"name": "again", "devices": LUNS[:1]})[0], "again: ", "data without a known signature")
    on_machine(f"blkdiscard --zeroout {LUNS[0]}")


def kills(count):
    """The controller and everything that it started are killed at a random moment; the next run completes the work."""
    creating, gone = [ARRAY, MIRROR], [{**volume, "state": "absent", "allow_data_loss": True} for volume in (ARRAY, MIRROR)]
    for number in range(count):
        for volumes in (creating, gone):
            started = time.monotonic()
            process = subprocess.Popen(command(volumes), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(), start_new_session=True)
            time.sleep(random.uniform(5, kills.seconds))
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            # What was started on the machine goes with its connection.
            # Without a module and with patterns that do not match this command. With pipelining the code of a module comes over standard input.
            on_machine("pkill --signal KILL -xf /usr/bin/python3; pkill --signal KILL --full '[A]nsiballZ'; sleep 1; true", module="ansible.builtin.raw")
            moment = time.monotonic() - started
            stats, message, _actions = run(volumes)
            prove(
                f"kill {number + 1} after {moment:.0f} s, {volumes[0].get('state', 'present')}: the next run completes the work", not stats["failures"], message
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60, help="the latest moment of a kill, in seconds after the start of a run")
    parser.add_argument("--only", action="append", choices=["lives", "refusals", "removal", "kills"])
    options = parser.parse_args()
    kills.seconds = options.seconds
    parts = {"lives": lives, "refusals": refusals, "removal": removal, "kills": lambda: kills(options.kills)}
    for name in options.only or parts:
        parts[name]()


if __name__ == "__main__":
    main()
