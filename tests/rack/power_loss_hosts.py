#!/usr/bin/env python
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook power_loss on two hosts at once with the witness on a third: each is a network namespace of this machine, which must be root's.

usage: power_loss_hosts.py

Their power is cut by killing all processes of the namespace; an ID of the boot of its own is mounted for each, and changes. What they write survives, so
that both must be durable: what is proven is the way of the writers to a witness that is no controller, and that hosts are cut together. Then the
witness accepts one host only, and the other must not be cut.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import typing as t
import uuid
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PREFIX = f"cfpl{os.getpid() % 10000}"
HOSTS = {"first": "10.213.7.11", "second": "10.213.7.12", "third": "10.213.7.13"}

WRAPPER = """#!/bin/sh
export BOOT={boot} PYTHON={python}
exec ip netns exec {space} sh -c 'mount --bind "$BOOT" /proc/sys/kernel/random/boot_id && exec "$PYTHON" "$@"' python "$@"
"""

#: Nothing may be killed that does not belong to the namespace.
CUT = """#!/bin/sh
set -e
for pid in $(ip netns pids {space}); do kill -KILL "$pid"; done
cp {new} {boot}
date +%s.%N > {folder}/{name}.cut
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@contextlib.contextmanager
def spaces() -> t.Iterator[None]:
    """A namespace for each host, all on one bridge, which no interface of this machine is on."""
    ip("netns", "add", f"{PREFIX}-net")
    try:
        ip("-n", f"{PREFIX}-net", "link", "add", "bridge", "type", "bridge")
        ip("-n", f"{PREFIX}-net", "link", "set", "bridge", "up")
        for number, (name, address) in enumerate(HOSTS.items()):
            space, port = f"{PREFIX}-{name}", f"port{number}"
            ip("netns", "add", space)
            ip("-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", f"{PREFIX}-net")
            ip("-n", f"{PREFIX}-net", "link", "set", port, "master", "bridge", "up")
            ip("-n", space, "addr", "add", f"{address}/24", "dev", "eth0")
            ip("-n", space, "link", "set", "eth0", "up")
            ip("-n", space, "link", "set", "lo", "up")
        yield
    finally:
        for name in (*HOSTS, "net"):
            found = subprocess.run(["ip", "netns", "pids", f"{PREFIX}-{name}"], capture_output=True, text=True, check=False).stdout.split()
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "delete", f"{PREFIX}-{name}"], check=False)


def inventory(folder: Path) -> Path:
    found = {}
    for name, address in HOSTS.items():
        space, boot, new = f"{PREFIX}-{name}", folder / f"{name}.boot", folder / f"{name}.next"
        for path in (boot, new):
            path.write_text(f"{uuid.uuid4()}\n")
        wrapper, cut = folder / f"{name}.python", folder / f"{name}.off"
        wrapper.write_text(WRAPPER.format(boot=boot, python=sys.executable, space=space))
        cut.write_text(CUT.format(space=space, new=new, boot=boot, folder=folder, name=name))
        for path in (wrapper, cut):
            path.chmod(0o755)
        target = {"file": str(folder / f"{name}.written"), "size": "2M"}
        found[name] = {
            "ansible_connection": "local",
            # Nothing listens there: the controller reaches no namespace, and finds every host off.
            "ansible_host": "127.0.0.1",
            "ansible_port": 1,
            "power_loss_test_witness_hosts": [address],
            "ansible_python_interpreter": str(wrapper),
            "power_loss_test_target": target,
            "power_loss_test_command_off": [str(cut)],
            "power_loss_test_command_on": ["true"],
        }
    path = folder / "inventory.json"
    path.write_text(json.dumps({"all": {"hosts": found}}))
    return path


def play(folder: Path, name: str, **more: t.Any) -> tuple[subprocess.CompletedProcess[str], dict[str, t.Any]]:
    given = {
        "cutter": "command",
        "witness": "third",
        "witness_address": HOSTS["third"],
        "depth": 4,
        "seconds": 1,
        "off_seconds": 0,
        "cuts": 1,
        "name": name,
        "results": str(folder),
        **more,
    }
    variables = {f"power_loss_test_{key}": value for key, value in given.items()}
    words = ["ansible-playbook", "-i", str(folder / "inventory.json"), str(TOP / "playbooks/power_loss.yml"), "-e", json.dumps(variables)]
    completed = subprocess.run([*words, "-e", json.dumps({"storage_hosts": ["first", "second"]})], capture_output=True, text=True, check=False)
    result = folder / name / "power_loss.json"
    return completed, json.loads(result.read_text()) if result.exists() else {}


def prove(what: str, condition: bool, evidence: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {'ok    ' if condition else 'FAILED'} {what}", flush=True)
    if not condition:
        sys.exit(evidence[-6000:])


def main() -> None:
    if os.geteuid():
        sys.exit("Network namespaces need root.")
    # The page cache is no part of what is tested, and O_DIRECT is not supported everywhere.
    with tempfile.TemporaryDirectory(prefix="power-loss-hosts-", dir="/var/tmp") as name, spaces():
        folder = Path(name)
        inventory(folder)
        completed, found = play(folder, "together")
        evidence = completed.stdout + completed.stderr
        prove("two hosts and a witness on a third: the playbook has succeeded", completed.returncode == 0, evidence)
        verdicts = {host["host"]: (host["verdict"], host["cuts"], host["void"]) for host in found["hosts"]}
        prove(f"both are durable: {verdicts}", verdicts == dict.fromkeys(("first", "second"), ("durable", 1, 0)), evidence)
        moments = [float((folder / f"{host}.cut").read_text()) for host in ("first", "second")]
        prove(f"they were cut within {abs(moments[0] - moments[1]):.1f} s", abs(moments[0] - moments[1]) < 10, evidence)
        for host in ("first", "second"):
            (folder / f"{host}.cut").unlink()
        completed, found = play(folder, "refused", witness_hosts=[HOSTS["first"]])
        evidence = completed.stdout + completed.stderr
        said = found["problems"].get("second", "")
        prove(f"a host that the witness does not accept is not cut: {said}", "witness" in said and not (folder / "second.cut").exists(), evidence)


if __name__ == "__main__":
    main()
