# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one power cut of node1 found on its two disks that forget, and that nothing of the test is left, on the machines and on the controller."""

from __future__ import annotations

import json
import os
import time
from datetime import datetime
from pathlib import Path

import pytest

_RESULTS = Path(os.environ["CACHEFLEET_RESULTS"]) / "power_loss"
_RUNS = Path("/var/lib/cachefleet/power_loss")
_CONTROLLER = Path("~/.cache/cachefleet").expanduser()
_FENCE = 64


@pytest.fixture
def name(host):
    return host.ansible.get_variables()["inventory_hostname"] if host.backend.NAME == "ansible" else host.check_output("hostname")


def _folder():
    """Of the last test: with ``--keep`` there are several. Its name is the time at which it began."""
    return max(_RESULTS.iterdir())


def _found(name):
    hosts = {found["host"]: found for found in json.loads((_folder() / "power_loss.json").read_text())["hosts"]}
    assert set(hosts) == {"node1", "node1_lies"}
    return hosts[name]


def _events(name, kind):
    return [event for event in map(json.loads, (_folder() / f"{name}.ndjson").read_text().splitlines()) if event["event"] == kind]


def _runs():
    return [event["run"] for name in ("node1", "node1_lies") for event in _events(name, "begun")]


def test_check_mode_examines_both_disks():
    runs = [json.loads(path.read_text()) for path in sorted(Path(os.environ["CACHEFLEET_RECORD"]).glob("*.json"))]
    checked = [run["results"] for run in runs if (run["scenario"], run["playbook"], run["check"]) == ("power_loss", "converge", True)][-1]
    examined = {result["host"]: result["changed"] for result in checked if result["module"] == "cachefleet.storage.power_loss_writer"}
    assert examined == {"node1": True, "node1_lies": True}
    assert not [result for result in checked if result["module"] in ("cachefleet.storage.power_loss", "cachefleet.storage.virtual_rack")]


def test_disk_that_honors_flushes_is_durable():
    found = _found("node1")
    (cut,) = found["results"]
    assert (found["verdict"], found["cuts"], found["losses"], found["void"]) == ("durable", 1, 0, 0), found
    assert (found["stack"]["verdict"], found["contradiction"]) == ("durable", "")
    assert cut["verdict"] == "kept"
    assert cut["acknowledged"] >= 200
    # Random writes to 4096 places: few of them are written twice.
    assert cut["places"] >= 100
    assert [cut[kind] for kind in ("damaged", "lost", "stale", "torn", "misplaced", "reordered", "fence_damaged")] == [0] * 7


def test_disk_that_ignores_flushes_is_at_risk_and_contradicts_the_verdict_on_its_stack():
    found = _found("node1_lies")
    (cut,) = found["results"]
    assert (found["verdict"], found["cuts"], found["losses"], found["void"]) == ("at_risk", 1, 1, 0), found
    assert found["stack"]["verdict"] == "durable"
    assert found["contradiction"].startswith("Contradiction: cache_stack_info expects that flushed writes are kept, and the test lost some.")
    assert cut["verdict"] == "lost"
    assert cut["acknowledged"] >= 200
    # Its cache is larger than the range: nothing was written out before the cut.
    assert cut["damaged"] == cut["lost"] + cut["stale"] == cut["places"] >= 100
    assert cut["fence_damaged"] == _FENCE


def test_report_names_the_drives_and_the_contradiction():
    page = (_folder() / "power_loss.md").read_text()
    assert "NODE1-HONEST" in page
    assert "NODE1-LIES" in page
    assert page.count("Contradiction:") == 1


def test_one_power_cut_hit_both_writers_and_no_other_machine(host, name):
    before = {event["boot_id"] for node in ("node1", "node1_lies") for event in _events(node, "writing")}
    assert len(before) == 1
    (cut,) = _events("node1", "cutting")
    (verified,) = _events("node1", "verified")
    moments = [datetime.fromisoformat(event["time"]).timestamp() for event in (cut, verified)]
    running = float(host.check_output("cat /proc/uptime").split()[0])
    if name == "node1":
        assert host.check_output("cat /proc/sys/kernel/random/boot_id") not in before
        assert running < time.time() - moments[0]
    else:
        assert running > time.time() - moments[0]
    assert moments[0] < moments[1]


def test_nothing_is_left_on_the_machine(host, name):
    if name != "node1":
        pytest.skip("the test is on the other machine")
    assert [entry for entry in host.check_output(f"ls -A {_RUNS}").split() if any(run in entry for run in _runs())] == []
    assert host.run("pgrep -f [p]ower_loss").stdout == ""
    extent = 16 * 1024**2 + _FENCE * 4096
    for disk in ("HONEST", "LIES"):
        assert host.run(f"cmp --bytes={extent} /dev/disk/by-id/ata-VIRTUAL_HDD_NODE1-{disk} /dev/zero").rc == 0


def test_nothing_is_left_on_the_controller():
    left = [path.name for folder in (_CONTROLLER, _CONTROLLER / "power_loss_witness") for path in folder.iterdir()]
    assert [entry for entry in left if any(run[:12] in entry for run in _runs())] == []
