# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verb accept, on campaigns as hosts leave them and with what modules on hosts would answer."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess

import pytest

for library in ("duckdb", "numpy", "scipy", "ruptures"):
    pytest.importorskip(library, reason=f"needs {library}: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.plugins.action import accept
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept import planning
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.export import terminal
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.model import Judgement, Requirement
from ansible_collections.cachefleet.storage.tests.unit.support.action_calls import made_action
from ansible_collections.cachefleet.storage.tests.unit.support.synthetic_campaign import Truth, change, write_campaign

READ = {"rw": "randread", "bs": "4k", "ioengine": "libaio", "direct": 1, "runtime": 5, "time_based": 1}
CELLS = [
    {"name": "fill", "fill": True, "job": {"rw": "write", "bs": "1m", "ioengine": "libaio", "direct": 1}},
    {"name": "randread-4k-qd1", "job": READ},
    {"name": "randwrite-4k-qd1", "job": {**READ, "rw": "randwrite"}},
]
SUITE = {"suite": "mine", "suites": {"mine": {"hosts": "apart", "cells": CELLS}}}
READS = {"name": "reads", "workload": "randread-4k-qd1", "metric": "iops", "of": "read", "at_least": "100 /s"}
WRITES = {"name": "writes", "workload": "randwrite-4k-qd1", "metric": "iops", "of": "write", "at_least": "100 /s"}
#: Of synthetic campaigns.
TARGET = "/dev/vg0/data"
DISK, BUSY = "/dev/disk/by-id/ata-A", "/dev/disk/by-id/ata-B"
STACK = {
    "devices": {"sda": {"stable_path": DISK}, "sdb": {"stable_path": "/dev/disk/by-id/wwn-1", "by_id": [BUSY], "mountpoints": ["/"]}},
    "matched": [[DISK, BUSY]],
}


class Run:
    """The verb in one campaign."""

    def __init__(self, path):
        self.path = path
        self.printed = []
        self.asked = {}

    def __call__(self, operation, *, host="host0000", answers=None, check_mode=False, extra="", **options):
        def answer_of(module, arguments, _task_vars=None):
            name = module.rpartition(".")[2]
            self.asked[name] = arguments
            return (answers or {}).get(name, {})

        arguments = {"operation": operation, "path": str(self.path), **(SUITE if operation in ("validate", "plan") else {}), **options}
        action = made_action(accept, arguments, self.printed, check_mode=check_mode, answer_of=answer_of)
        return action.run(task_vars={"inventory_hostname": host})

    @property
    def output(self):
        return "\n".join(self.printed)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(accept, "load_extra_vars", lambda _loader: {})
    monkeypatch.setattr(accept.context, "CLIARGS", {"inventory": ("inventory/my hosts.yml",), "extra_vars": ("accept_profile=etcd", "secret=x")})
    (tmp_path / "campaign").mkdir()
    return Run(tmp_path / "campaign")


def measured(run, hosts, repeats, loads=(("randread", "4k", 1),)):
    """Repeats of hosts with 4000 reads per second, within a few percent, instead of those that there are."""
    for path in run.path.glob("host*"):
        shutil.rmtree(path)
    write_campaign(run.path, hosts, cells=repeats * len(loads), seconds=5, campaign="campaign", variants={"accept": Truth(1.0, {})}, loads=loads)


def planned(run, hosts, *requirements, **options):
    options = {"requirements": list(requirements), "targets": [{"device": TARGET}], "read_only": False, **options}
    return [run("plan", host=f"host{number:04d}", **options) for number in range(hosts)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "accept_profile"),
        ({"profiles": ["etcd"], "suite": "accept", "repeats_most": 1}, "accept_repeats_most is 1: give 2 to 9999."),
        ({"requirements": [READS], "budget": "soon"}, "accept_budget: 'soon' is not a time"),
        ({"requirements": [{**READS, "at_least": "100"}]}, "without a unit"),
        ({"requirements": [READS], "suite": "none"}, "no suite named 'none'"),
    ],
)
def test_mistakes_are_one_sentence_before_anything_is_measured(run, options, message):
    result = run("validate", **options)
    assert result["failed"] and message in result["msg"] and "\n" not in result["msg"]


def test_variables_that_would_replace_those_of_each_round_are_refused(run, monkeypatch):
    assert not run("validate", requirements=[READS]).get("failed")
    monkeypatch.setattr(accept, "load_extra_vars", lambda _loader: {"fio_benchmark_only": ["x"]})
    assert "fio_benchmark_only is set on the command line" in run("validate", requirements=[READS])["msg"]
    for targets, refused in (([], True), ([{"file": "/srv/f"}], False)):
        monkeypatch.setattr(accept, "load_extra_vars", lambda _loader, targets=targets: {"fio_benchmark_targets": targets})
        result = run("validate", requirements=[READS])
        assert ("would replace the drives of every host" in result.get("msg", "")) == refused == bool(result.get("failed"))


def test_devices_are_only_read_unless_that_is_allowed_and_they_are_free(run):
    answers = {"cache_stack_info": STACK}
    result = run("plan", requirements=[READS, WRITES], answers=answers)
    assert run.asked["cache_stack_info"]["matches"] == [{"kind": ["disk"]}]
    assert [one["device"] for one in result["targets"]] == [DISK, BUSY]
    assert result["due"] == {"only": ["randread-4k-qd1@drive1", "randread-4k-qd1@drive2"], "repeats": 2, "only_repeat": 0}
    (plan,) = planning.load_all(run.path)
    assert plan.left_out == {
        "writes": "randwrite-4k-qd1 is not measured: it writes, and devices are only read: set fio_benchmark_file, or accept_read_only to false"
    }
    result = run("plan", requirements=[READS, WRITES], answers=answers, read_only=False)
    reads, writes = ["randread-4k-qd1@drive1", "randread-4k-qd1@drive2"], ["randwrite-4k-qd1@drive1"]
    assert result["due"]["only"] == ["fill@drive1", *reads, *writes]
    busy = {**STACK, "matched": [[BUSY]]}
    run("plan", requirements=[WRITES], answers={"cache_stack_info": busy}, read_only=False)
    assert planning.load_all(run.path)[0].left_out["writes"].endswith(f"it writes, and {BUSY} is in use")


@pytest.mark.parametrize(
    ("what", "status"),
    [
        ({"partitions": ["sdb1"]}, 2),
        ({"signature": {"type": "ext4"}}, 2),
        ({"holders": ["dm-0"]}, 2),
        ({"partitions": ["sdb1", "root"]}, 0),
        ({"holders": ["dm-0", "root"]}, 0),
        ({"swap": True}, 0),
    ],
)
def test_drive_with_data_is_not_passed_over_and_one_in_use_is_not_required(run, what, status):
    devices = {"sda": {"name": "sda", "path": TARGET}, "sdb": {"name": "sdb", "by_id": [BUSY], **what}, "sdb1": {"name": "sdb1", "holders": ["sdb1"]}}
    devices["root"] = {"name": "root", "mountpoints": ["/"]}
    answers = {"cache_stack_info": {"devices": devices, "matched": [[TARGET, BUSY]]}}
    due = run("plan", requirements=[WRITES], answers=answers, read_only=False)["due"]["only"]
    assert due == ["fill@drive1", "randwrite-4k-qd1@drive1"]
    measured(run, 1, 3, (("randwrite", "4k", 1),))
    (run.path / "host0000/accept/randwrite-4k-qd1").rename(run.path / "host0000/accept/randwrite-4k-qd1.drive1")
    for repeat in (1, 2, 3):
        change(run.path / f"host0000/accept/randwrite-4k-qd1.drive1/{repeat}", cell="randwrite-4k-qd1.drive1")
    result = run("finish", hosts=["host0000"])
    assert result["rc"] == status, run.output
    assert (f"writes {BUSY}: randwrite-4k-qd1 was not measured: it writes, and {BUSY}" in run.output) == (status == 2)


def test_of_a_device_that_is_named_the_guard_decides(run):
    result = run("plan", requirements=[WRITES], targets=[{"device": BUSY}], read_only=False)
    assert result["due"]["only"] == ["fill@", "randwrite-4k-qd1@"] and run.asked == {}
    assert run("plan", requirements=[WRITES], file="/srv/f")["due"]["only"] == ["fill@", "randwrite-4k-qd1@"]


def test_nothing_is_written_in_check_mode_and_nothing_is_measured_for_facts(run):
    worn = {"name": "worn", "wear_at_most": "10 %"}
    assert run("plan", requirements=[worn], file="/srv/f", check_mode=True)["due"]["only"] == []
    run("plan", requirements=[WRITES], targets=[{"device": BUSY}], check_mode=True)
    assert "host0000: randwrite-4k-qd1 is not measured: it writes, and devices are only read" in run.output
    assert list(run.path.iterdir()) == []


def test_facts_are_read_only_if_they_are_required_and_only_what_is_needed_is_kept(run):
    requirements = [{"name": "worn", "wear_at_most": "10 %"}, {"name": "power", "survives": "power_failure"}, {"name": "flush", "flush": "proved"}]
    health = {"drives": [{"path": DISK, "wear_used_percent": 3, "evidence": {"x": 1}}], "verdicts": {"/": {"verdict": "durable"}}}
    answers = {"cache_health_info": health, "flush_check": {"checks": [{"path": "/srv", "state": "proved", "disks": []}]}}
    run("plan", requirements=[*requirements, READS], file="/srv/f", answers=answers, protected_drives=["SERIAL1"])
    assert run.asked["cache_health_info"] == {"verdicts": True, "protected_drives": ["SERIAL1"], "flushed_virtual_disks": []}
    (plan,) = planning.load_all(run.path)
    assert plan.facts["drives"][0] | {"wear_used_percent": 3} == plan.facts["drives"][0] and "evidence" not in plan.facts["drives"][0]
    assert [(one["path"], one["state"]) for one in plan.facts["checks"]] == [("/srv/f", "proved")]
    run.asked.clear()
    run("plan", requirements=[READS], file="/srv/f")
    assert run.asked == {}


@pytest.mark.parametrize(("interfaces", "status"), [(["eth1"], 0), (["eth1", "eth2"], 1), ([], 1), (["eth1", "eth9"], 2), (["../../x"], 2)])
def test_links_of_the_interfaces_that_storage_uses_are_judged(run, interfaces, status):
    links = [{"kind": "network", "name": "eth1", "speed": 25e9}, {"kind": "network", "name": "eth2", "speed": 1e9}, {"kind": "drive", "name": DISK, "speed": 1}]
    link = {"name": "link", "link_speed_at_least": "10 Gb/s"}
    run("plan", requirements=[link], file="/srv/f", interfaces=interfaces, answers={"cache_health_info": {"links": links}})
    assert run("finish", hosts=["host0000"])["rc"] == status


@pytest.mark.parametrize(
    "odd", [None, 7, "x", [1], ["x"], {"a": "b"}, [{"path": ["x"], "serial": {"a": 1}, "state": []}], {"sda": {"by_id": 7, "path": [], "swap": 1}}]
)
def test_host_that_answers_anything_is_not_measured(run, odd):
    requirements = [{"name": "worn", "wear_at_most": "10 %"}, {"name": "power", "survives": "power_failure"}, {"name": "flush", "flush": "proved"}]
    health = {"drives": odd, "verdicts": odd, "links": odd}
    answers = {
        "cache_stack_info": {"devices": odd, "matched": [[DISK]]},
        "cache_health_info": health,
        "flush_check": {"checks": odd},
    }
    result = run("plan", requirements=[*requirements, {"name": "link", "link_speed_at_least": "1 Gb/s"}, READS], answers=answers, interfaces=["eth0"])
    assert not result.get("failed"), result
    result = run("finish", hosts=["host0000"])
    assert (result["rc"], result["states"]) == (2, {"host0000": "not measured"})


def test_host_that_does_not_answer(run):
    assert run("plan", requirements=[READS], answers={"cache_stack_info": {"failed": True, "msg": "No sysfs."}})["msg"] == "No sysfs."
    worn = {"name": "worn", "wear_at_most": "10 %"}
    assert not run("plan", requirements=[worn], file="/srv/f", answers={"cache_health_info": {"failed": True, "msg": "No smartctl."}}).get("failed")
    assert "host0000: No smartctl." in run.output


def test_only_what_is_undecided_is_measured_again(run):
    near = {**READS, "name": "near", "at_least": "4000 /s"}
    planned(run, 6, READS, near, WRITES)
    hosts = [f"host{number:04d}" for number in range(6)]
    first = run("judge", hosts=hosts[:2])["due"]
    assert first == {host: {"only": ["fill@", "randread-4k-qd1@", "randwrite-4k-qd1@"], "repeats": 2, "only_repeat": 0} for host in hosts[:2]}
    measured(run, 6, 2, (("randread", "4k", 1), ("randwrite", "4k", 1)))
    due = run("judge", hosts=hosts, round=2)["due"]
    assert due == {host: {"only": ["randread-4k-qd1@"], "repeats": 3, "only_repeat": 3} for host in hosts}


def test_rounds_end_with_the_budget_and_with_the_last_repeat(run):
    planned(run, 1, {**READS, "at_least": "4000 /s"}, repeats_most=3)
    hosts = ["host0000"]
    measured(run, 1, 2)
    assert run("judge", hosts=hosts, round=2, seconds=100, seconds_of_round=50, budget="149")["due"] == {}
    assert "accept_budget leaves no time for another round" in run.output
    assert run("judge", hosts=hosts, round=2, seconds=100, seconds_of_round=50, budget="150")["due"] != {}
    assert run("judge", hosts=hosts, round=1, seconds=100, seconds_of_round=50, budget="1")["due"] != {}, "a run that continues measures once"
    assert run("judge", hosts=hosts, round=4)["due"] == {}, "what never has a result ends too"
    measured(run, 1, 3)
    assert run("judge", hosts=hosts, round=2)["due"] == {}


def test_what_fails_as_often_as_others_are_measured_is_not_tried_again(run):
    planned(run, 1, READS)
    measured(run, 1, 1)
    for state in ("failed", "ok"):
        change(run.path / "host0000/accept/randread-4k-qd1/1", state=state)
        assert run("judge", hosts=["host0000"], round=2)["due"]["host0000"]["only"] == ["fill@", "randread-4k-qd1@"]
    measured(run, 1, 2)
    for repeat in (1, 2):
        change(run.path / f"host0000/accept/randread-4k-qd1/{repeat}", state="failed", reason="fio was killed")
    assert run("judge", hosts=["host0000"], round=3)["due"] == {}
    result = run("finish", hosts=["host0000"])
    assert (result["rc"], result["states"]) == (2, {"host0000": "not measured"}) and "fio was killed" in run.output


def test_plan_that_was_damaged_is_one_sentence(run):
    planned(run, 1, READS)
    path = planning.file_of(run.path, "host0000")
    content = path.read_text()
    for damaged in (content[:50], content.replace('"host0000"', '"host0001"'), content.replace('"most"', '"other"'), content.replace('"names"', '"x"')):
        path.write_text(damaged)
        assert "is not the plan of an acceptance: use another fio_benchmark_campaign." in run("judge", hosts=["host0000"])["msg"]


def test_exit_status_and_lines_of_hosts_that_do_not_pass(run):
    planned(run, 6, READS, {**READS, "name": "fast", "at_least": "1 MB/s", "metric": "bandwidth"})
    measured(run, 6, 2)
    hosts = [f"host{number:04d}" for number in range(6)]
    result = run("finish", hosts=hosts)
    assert (result["rc"], result["summary"], result["failed"]) == (0, "6 hosts: 6 pass.", False), run.output
    assert (
        set(result["files"]) == {"json", "md", "xml", "prom", "certificates"}
        and len(json.loads((run.path / "accept/acceptance.json").read_text())["judgements"]) == 12
    )
    assert "Repeat:" not in run.output

    run.printed.clear()
    result = run("finish", hosts=[*hosts, "gone"], problems={"gone": "This host is unreachable:\n\x1b[2J no route"})
    assert (result["rc"], result["summary"]) == (2, "7 hosts: 1 not measured, 6 pass.")
    (line,) = [line for line in run.output.splitlines() if "Repeat:" in line]
    assert line.startswith("gone not measured: measurement: This host is unreachable:") and "\x1b" not in line
    assert line.endswith("Repeat: ansible-playbook -i 'inventory/my hosts.yml' cachefleet.storage.accept --limit gone -e accept_profile=etcd")

    planned(run, 1, {**READS, "at_least": "50000 /s"})
    result = run("finish", hosts=[*hosts, "gone"])
    assert (result["rc"], result["states"]["host0000"]) == (1, "fail")
    assert "host0000 fail: reads " in run.output and "required at least 50,000/s" in run.output


def test_requirement_that_cannot_be_measured_on_any_target_is_not_measured(run):
    run("plan", requirements=[READS, WRITES], targets=[{"device": TARGET}])
    measured(run, 1, 3)
    result = run("finish", hosts=["host0000"])
    assert result["rc"] == 2, run.output
    rows = json.loads((run.path / "accept/acceptance.json").read_text())["judgements"]
    (row,) = [row for row in rows if row["requirement"]["name"] == "writes"]
    assert (row["state"], row["target"]) == ("not measured", "") and "devices are only read" in row["reason"]


def test_drives_that_fail_by_what_the_host_reports_are_named_with_their_serial_numbers(run):
    drives = [{"path": DISK, "wear_used_percent": 50, "serial": "S1", "model": "SSD"}, {"path": BUSY, "wear_used_percent": 60}]
    planned(run, 1, {"name": "worn", "wear_at_most": "10 %"}, answers={"cache_health_info": {"drives": drives}})
    assert run("finish", hosts=["host0000"])["rc"] == 1
    assert "Drives that fail: S1 (SSD, host0000)." in run.output and "S1" in (run.path / "accept/acceptance.md").read_text()


def test_host_whose_facts_are_met_does_not_pass_without_its_measurement(run):
    disk = {"cache_health_info": {"drives": [{"path": DISK, "wear_used_percent": 1}]}}
    planned(run, 2, {"name": "worn", "wear_at_most": "10 %"}, READS, answers=disk)
    measured(run, 1, 2)
    for hosts in (2, 1):
        result = run("finish", hosts=[f"host{number:04d}" for number in range(hosts)])
        assert (result["rc"], result["states"]["host0001"]) == (2, "not measured")
    assert f"host0001 not measured: reads {TARGET}: randread-4k-qd1 was not measured." in run.output


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="needs ssh-keygen")
def test_certificates_are_signed_and_compared_with_earlier_ones(run, tmp_path):
    planned(run, 1, READS)
    measured(run, 1, 3)
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    (tmp_path / "signers").write_text(f"me {(tmp_path / 'key.pub').read_text()}")
    run("finish", hosts=["host0000"], key=str(key))
    folder = run.path / "accept/certificates"
    assert (folder / "host-host0000.json.sig").is_file()
    birth = tmp_path / "birth"
    shutil.copytree(folder, birth)
    verified = {"allowed_signers": str(tmp_path / "signers"), "identity": "me"}
    result = run("finish", hosts=["host0000"], earlier=str(birth), **verified)
    assert result["changes"]["host host0000"] == [] and "certificate: nothing has changed." in run.output
    run("finish", hosts=["host0000"], earlier=str(birth), allowed_signers=str(tmp_path / "signers"), identity="you")
    assert "host-host0000.json is not verified" in run.output
    changed = birth / "host-host0000.json"
    changed.write_text(changed.read_text().replace("4", "5", 1))
    assert "host host0000" not in run("finish", hosts=["host0000"], earlier=str(birth))["changes"]
    assert "it was changed after it was written" in run.output
    assert "There are no certificates in" in run("finish", hosts=["host0000"], earlier=str(tmp_path / "none"))["msg"]
    run("finish", hosts=["host0000"], key=str(tmp_path / "none"))
    assert "is not a file that can be read" in run.output


REQUIREMENT = Requirement("reads", "measured", "read", "iops", "read", 100.0, "/s", True, None, 0.95, "")


def judgement(host, state, value=None, target="/dev/sda"):
    return Judgement(host, target, REQUIREMENT, state, value, None, None, 2, f"{value}/s, required at least 100/s")


def test_hosts_that_are_unlike_the_others_are_first_and_drives_are_named():
    values = [judgement(f"node{number}", "pass", 1000.0 + number) for number in range(8)] + [judgement("odd", "pass", 300.0), judgement("a", "fail", 50.0)]
    devices = {("a", "/dev/sda"): ("S1\x1b[2J", "SSD"), ("odd", "/dev/sda"): ("S2", "SSD")}
    lines = list(terminal.lines(values, dict.fromkeys([*(one.host for one in values)], "SSD"), devices, lambda host: f"again {host}"))
    assert lines[1].split() == ["SSD", "10", "1", "-", "-", "9"]
    assert lines[3].startswith("a fail, unlike the others (reads is 0.0499 x their median): reads /dev/sda: 50.0/s") and lines[3].endswith("Repeat: again a")
    assert lines[4] == "odd pass, unlike the others (reads is 0.30 x their median)"
    assert lines[5] == "10 hosts: 1 fail, 9 pass."
    assert lines[6].startswith("Drives that fail: S1") and lines[6].endswith("(SSD, a).") and "\x1b" not in lines[6] and "S2" not in lines[6]


@pytest.mark.parametrize(
    ("states", "status"), [(["pass"], 0), (["pass", "fail", "not measured"], 1), (["undecided", "pass"], 2), (["not measured"], 2), ([], 2)]
)
def test_exit_status(states, status):
    assert terminal.exit_status(states) == status


@pytest.mark.parametrize(
    ("variables", "kept"),
    [
        (("accept_profile=etcd", "fio_benchmark_campaign=c"), ["accept_profile=etcd"]),
        (("@all.yml", '{"accept_budget": "2h"}', '{"password": "x"}'), ["@all.yml", '{"accept_budget": "2h"}']),
        (("ansible_password=x accept_profile=etcd",), ['{"accept_profile": "etcd"}']),
        (('{"ansible_password": "x", "accept_requirements": [{"name": "a"}]}', "ansible_password=x"), ['{"accept_requirements": [{"name": "a"}]}']),
    ],
)
def test_command_that_repeats_has_no_variables_of_others(variables, kept):
    assert [one for one in shlex.split(terminal.command("a", (), variables))[4:] if one != "-e"] == kept
