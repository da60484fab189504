# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each verb once, with an installed collection and modules that answer: values of hosts have classes of their own in each version of ansible-core.

Verbs that playbooks use are used by them; ``_BY_PLAYBOOK`` names those that ``test_hostile_hosts`` runs, with the same modules.
"""

from __future__ import annotations

import json
import struct

_BY_PLAYBOOK = {
    *("benchmark_plan", "campaign", "collect", "fio_runner", "release_runner", "report", "wait_for_runner"),  # benchmark
    *("cache_layers", "describe", "plan", "power_loss", "summary", "sweep", "verify_host", "verify_inventory"),
}
_HERE = {"accept", "compare", "describe_groups", "io_trace", "results", "storage_network", "trace_report", "wait_for_flush"}


def test_every_verb_is_used(attack):
    assert {path.stem for path in (attack.collection / "plugins/action").glob("*.py")} == _BY_PLAYBOOK | _HERE


def test_hosts_are_described_with_their_group(attack):
    entry = {"values": {"provider": "arcconf", "serial": "1", "volumes": [{"wwn": "0x1", "write": "writethrough"}]}, "notes": ["a note"]}
    controllers = [{"provider": "arcconf", "id": "1", "serial": "1", "model": "ASR8805", "volumes": [{"id": "0", "name": "data", "wwn": "0x1"}]}]
    described = {"changed": False, "variables": [{"name": "raid_cache_controllers", "entries": [entry]}], "controllers": controllers}
    attack.plan["instead"] = {"plugins.modules.cache_description_info": described}
    done = attack.play("cachefleet.storage.describe", "--diff", hostile=("bad", "good"))
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("host_vars/bad", "host_vars/good", "group_vars/asr8805"):
        assert "write: writethrough" in (attack.folder / f"described/{name}.yml").read_text()
    again = attack.play("cachefleet.storage.describe", hostile=("bad", "good"))
    assert "changed=0" in again.stdout.splitlines()[-2], again.stdout


def test_exit_status_of_an_acceptance(attack):
    def accept(*drives, **variables):
        attack.plan["instead"] = {"plugins.modules.cache_health_info": {"changed": False, "drives": list(drives)}}
        given = {"accept_requirements": [{"name": "worn", "wear_at_most": "10 %"}], "fio_benchmark_file": "/nothing/is/measured", **variables}
        return attack.play("cachefleet.storage.accept", "-e", json.dumps(given), hostile=("bad", "good"))

    good, worn = {"path": "/dev/sda", "media": "ssd", "wear_used_percent": 3}, {"path": "/dev/sdb {{ 1 + 1 }}", "media": "ssd", "wear_used_percent": 40}
    done = accept(good)
    assert done.returncode == 0 and "2 hosts: 2 pass." in done.stdout, done.stdout + done.stderr
    done = accept(good, worn)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "bad fail: worn /dev/sdb {{ 1 + 1 }}: 40 % of the rated endurance used, required at most 10 %. Repeat: ansible-playbook" in done.stdout
    assert "Not accepted, 2 hosts: 2 fail" in done.stdout + done.stderr
    done = accept(good, {**good, "wear_used_percent": None})
    assert done.returncode == 2 and "2 hosts: 2 not measured." in done.stdout, done.stdout + done.stderr
    done = accept(good, accept_requirements=[{"name": "worn", "wear_at_most": "10"}])
    assert done.returncode == 2 and "without a unit" in done.stdout + done.stderr, done.stdout
    assert len(list((attack.folder / "results").iterdir())) == 3, "a mistake leaves no campaign"


def test_campaigns_are_compared_and_exported(attack):
    job = {"rw": "randread", "bs": "4k", "ioengine": "psync", "runtime": 1, "time_based": 1}
    suite = {"tiny": {"cells": [{"name": "read", "job": job}]}}
    attack.variables = {"fio_benchmark_suite": "tiny", "fio_benchmark_suites": suite}
    attack.variables["fio_benchmark_targets"] = [{"file": str(attack.folder / "{{ inventory_hostname }}.bin"), "size": "16m"}]
    results = {"fio_benchmark_results": str(attack.folder / "results"), "fio_benchmark_report": False}
    for campaign in ("before", "after"):
        done = attack.play("cachefleet.storage.benchmark", "--limit", "bad", "-e", json.dumps({**results, "fio_benchmark_campaign": campaign}))
        assert done.returncode == 0, done.stdout
    folder = attack.folder / "results"
    compared = {"compare_baseline": str(folder / "before"), "compare_candidate": str(folder / "after"), "compare_files": ["json"]}
    done = attack.play("cachefleet.storage.compare", "-e", json.dumps(compared))
    # One repeat shows nothing, which is the answer.
    assert done.returncode == 2 and "not enough repeats" in done.stdout, done.stdout + done.stderr
    assert list((folder / "after/reports").glob("*.json"))
    for operation, more in (("check", {}), ("export", {"results_file": str(attack.folder / "cells.ndjson")})):
        named = {"results_operation": operation, "results_campaign": str(folder / "after"), **more}
        done = attack.play("cachefleet.storage.results", "-e", json.dumps(named))
        assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((attack.folder / "cells.ndjson").read_text().splitlines()[0])["host"] == "bad"


def test_a_recorded_load_is_reported(attack):
    traces = attack.folder / "traces/monday/db1"
    traces.mkdir(parents=True)
    described = {"schema": 1, "name": "monday", "host": "db1", "seconds": 60.0, "limit": 2**32, "lost": 0, "devices": [{"name": "/dev/sdb", "bytes": 2**30}]}
    (traces / "trace.json").write_text(json.dumps(described))
    records = (struct.pack("<QQIIIHBB", number * 10**7, number % 50 * 8, 8, 8, 1, 0, number % 2, 0) for number in range(3000))
    (traces / "requests.bin").write_bytes(b"".join(records))
    named = {"trace_report_folder": str(traces.parent), "trace_report_sizes": ["1M", "4M"], "trace_report_prices": {"per_gb": 0.1}, "trace_report_key": "k"}
    done = attack.play("cachefleet.storage.trace_report", "-e", json.dumps(named))
    assert done.returncode == 0, done.stdout + done.stderr
    assert {"report.html", "fitted_suite.yml", "replay-0.log.gz", "shared"} <= {path.name for path in traces.iterdir()}
    done = attack.play("cachefleet.storage.trace_report")
    assert done.returncode == 2 and "trace_report_folder" in done.stdout, done.stdout


def test_a_trace_of_any_size_is_not_fetched(attack):
    traces = attack.folder / "fetched"
    entry = {"size": 1 << 60, "sha256": "0" * 64}
    attack.plan["instead"] = {"plugins.modules.io_trace": {"changed": False, "running": False, "files": {"trace.json": entry, "requests.bin": entry}}}
    named = {"io_trace_devices": ["/dev/sda"], "io_trace_name": "monday", "io_trace_state": "stopped", "io_trace_results": str(traces)}
    done = attack.play("cachefleet.storage.io_trace", "--limit", "bad", "-e", json.dumps(named), hostile=("bad",))
    assert done.returncode == 2 and "nothing was fetched" in " ".join(done.stdout.split()), done.stdout + done.stderr
    assert not list(traces.rglob("*"))


def test_network_and_flush(attack):
    flush = {"cachefleet.storage.bcache": {"caches": []}, "async": 60, "poll": 0, "register": "flush"}
    tasks = [
        {"cachefleet.storage.storage_network": {"links": []}, "register": "network"},
        {"ansible.builtin.assert": {"that": ["network is not changed"]}},
        flush,
        {"cachefleet.storage.wait_for_flush": {"jobs": ["{{ flush.ansible_job_id }}"], "interval": 1}, "register": "flushed"},
        {"ansible.builtin.assert": {"that": ["flushed is not changed", "flushed.results | length == 1", "flushed.results[0].caches is defined"]}},
    ]
    done = attack.play("--limit", "bad", plays=[{"hosts": "all", "gather_facts": False, "tasks": tasks}])
    assert done.returncode == 0, done.stdout + done.stderr
