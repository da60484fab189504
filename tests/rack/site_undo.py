#!/usr/bin/env python
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What site has done, undone as docs/removal.md says: describe before, site after, and site_state=absent.

usage: site_undo.py [--cases N] [--seed N]     with the machine of tests/rack/site running: scripts/site-undo-test starts it

Each case begins with settings of its own, drawn at random, and lets site change all layers, with another type of SSD cache in turn. Then the description of
before is applied, with the cache absent, and the files are removed. The description must be that of before again, the files of /etc, /run and /var/lib
must be as they were, the second of each run must change nothing, and what is fenced must be intact. The exit status is 1 if a case was not proven.
"""

from __future__ import annotations

import argparse
import difflib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import site_kills

SSD = "/dev/disk/by-id/ata-VIRTUAL_SSD_NODE1-SSD0"
CACHES = {
    "lvm_cache": {"origin": "vg0/data", "mode": "writeback", "allow_unmirrored_writeback": True},
    "lvm_cache in writethrough": {"origin": "vg0/data", "mode": "writethrough"},
    "dm_cache": {"origin": "/dev/vg0/spare", "size": "96M", "mode": "writeback", "allow_unmirrored_writeback": True},
    "dm_cache of kind writecache": {"origin": "/dev/vg0/spare", "size": "96M", "kind": "writecache", "allow_unmirrored_writeback": True},
    "bcache": {"origin": "/dev/vg0/plain", "mode": "writeback", "allow_unmirrored_writeback": True},
}
#: What others write all the time: systemd, udev, LVM's copies of its metadata, apt, this rack's image and simulators, and what the test itself keeps.
OTHERS = (
    *(
        "/run/udev",
        "/run/systemd",
        "/run/log",
        "/run/lock/lvm",
        "/run/lvm",
        "/run/user",
        "/run/rack-bytecode",
        "/run/blkid",
        "/run/dmeventd-client",
        "/run/initctl",
        "/run/utmp",
    ),
    *("/etc/lvm/archive", "/etc/lvm/backup", "/etc/adjtime", "/var/lib/systemd", "/var/lib/apt", "/var/lib/dpkg", "/var/lib/private"),
    *("/var/lib/cachefleet-ground", "/var/lib/cachefleet-simulators", "/var/lib/chrony", "/var/lib/dbus", "/var/lib/logrotate"),
)
SNAPSHOT = r"""
import hashlib, os, stat, sys
for top in ("/etc", "/run", "/var/lib"):
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in sys.argv[1:]]
        for name in folders + files:
            path = os.path.join(folder, name)
            if path in sys.argv[1:]:
                continue
            found = os.lstat(path)
            content = ""
            if stat.S_ISLNK(found.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(found.st_mode):
                content = hashlib.sha256(open(path, "rb").read()).hexdigest()
            print(path, oct(found.st_mode), found.st_uid, found.st_gid, content)
"""


def snapshot():
    found = site_kills.on_machine(f"/opt/cachefleet/snapshot.sh {' '.join(OTHERS)}")
    return sorted(line.strip() for line in found.splitlines() if line.startswith("/"))


def install():
    site_kills.install()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "snapshot.sh")
        script.write_text("#!/bin/sh\npython3 - \"$@\" <<'END'\n" + SNAPSHOT + "END\n")
        copied = ["ansible", *site_kills.INVENTORY, "node1", "-m", "ansible.builtin.copy", "-a", f"src={script} dest=/opt/cachefleet/ mode=0755"]
        subprocess.run(copied, check=True, capture_output=True)


def describe(folder):
    """The state of the machine as variables, in ``folder``/host_vars; their text without comments."""
    variables = json.dumps({"describe_directory": str(folder), "describe_all_settings": True, "describe_force": True})
    words = ["ansible-playbook", *site_kills.INVENTORY, "cachefleet.storage.describe", "--extra-vars", variables]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"describe failed: {done.stdout[-3000:]}{done.stderr[-1000:]}")
    return [line for line in (folder / "host_vars/node1.yml").read_text().splitlines() if not line.lstrip().startswith("#")]


def differences(before, after):
    return "; ".join(line for line in difflib.unified_diff(before, after, lineterm="", n=0) if not line.startswith(("---", "+++", "@@")))[:3000]


def drawn(chance):
    """A state to begin with, as a command."""
    onoff = [chance.choice("01") for _drive in range(3)]
    ahead = [chance.choice((64, 128, 256, 512, 4096)) for _disk in range(2)]
    schedulers = [chance.choice(("none", "mq-deadline")) for _disk in range(2)]
    return f"/opt/cachefleet/ground.sh begin {' '.join(map(str, (*onoff, *ahead, *schedulers, chance.choice((1500, 1400, 4000)))))} 2>&1"


def applied(what, *options):
    """Run site twice; what is wrong, empty if it succeeds and the second run changes nothing."""
    for turn in ("", "the second run of "):
        stats, call, said = site_kills.run(*options)
        if stats.get("failures") or stats.get("unreachable"):
            return f"{turn}{what} failed: {said}"
        if turn and stats.get("changed"):
            return f"{turn}{what} changed {call.get('actions')}"
    return ""


def case(kind, chance, folder):
    """One case; what is wrong with it."""
    site_kills.ground("reset")
    site_kills.on_machine(drawn(chance))
    shutil.rmtree(folder.parent, ignore_errors=True)
    files, before = snapshot(), describe(folder)
    (folder / "hosts.yml").write_text((site_kills.TOP / "tests/rack/site/hosts.yml").read_text())
    cache = {"name": "data", "type": kind.split()[0], "cache_devices": [SSD], **CACHES[kind]}
    absent = {"name": "data", "type": cache["type"], "origin": cache["origin"], "state": "absent"}
    if cache["type"] == "lvm_cache":
        absent.update(cache_devices=[SSD], release_devices=True)
    variables = {"block_cache_caches": [cache]}
    undo = f"--inventory={folder}/hosts.yml"
    steps = (
        lambda: applied("site", "--extra-vars", json.dumps(variables)),
        lambda: "" if describe(folder.with_name("during")) != before else "site has changed nothing",
        lambda: applied("the undo", undo, "--extra-vars", json.dumps({"block_cache_caches": [absent]})),
        lambda: different("the description", before, describe(folder.with_name("after"))),
        lambda: applied("the removal", undo, "--extra-vars", "site_state=absent"),
        lambda: different("files", files, snapshot()),
        lambda: different("the description after the removal", before, describe(folder.with_name("after"))),
        lambda: "" if "intact" in (found := site_kills.ground("verify")) else f"fenced data differ: {found}",
    )
    return next(filter(None, (step() for step in steps)), "")


def different(what, before, after):
    return "" if before == after else f"{what}: {differences(before, after)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--cases", type=int, default=10)
    parser.add_argument("--cache", choices=CACHES, help="only with this one")
    options, chance = site_kills.parsed(parser)
    install()
    if not options.prepared:
        site_kills.ground("prepare")
    proven = 0
    for number in range(options.cases):
        kind = options.cache or list(CACHES)[number % len(CACHES)]
        # Kept for inspection.
        problem = case(kind, chance, site_kills.TOP / f".build/site-undo/{number}/before")
        proven += not problem
        print(f"{time.strftime('%H:%M:%S')} {kind}: {problem or 'ok'} ({proven} of {number + 1})", flush=True)
    print(f"{proven} of {options.cases} were undone and removed without a trace", flush=True)
    return 0 if proven == options.cases else 1


if __name__ == "__main__":
    sys.exit(main())
