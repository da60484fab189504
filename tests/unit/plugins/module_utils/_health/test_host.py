# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey.host_caches import Survey
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._health import rules
from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Limits
from ansible_collections.cachefleet.storage.plugins.module_utils._health.host import LIMIT_OPTIONS, Questions, read_health, read_questions
from ansible_collections.cachefleet.storage.plugins.module_utils._health.readings import from_dict
from ansible_collections.cachefleet.storage.plugins.module_utils._stack import readers
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost
from ansible_collections.cachefleet.storage.tests.unit.support.health import BCACHE, GIB, cache
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner


def smart(serial, value):
    rows = [{"id": 233, "name": "Media_Wearout_Indicator", "value": value, "raw": {"value": 0, "string": "0"}}]
    return Reply(
        json.dumps(
            {"device": {"protocol": "ATA"}, "model_name": "TESTSSD", "serial_number": serial, "rotation_rate": 0, "ata_smart_attributes": {"table": rows}}
        )
    )


@pytest.fixture
def host(tmp_path):
    fake = FakeHost(tmp_path)
    fake.write("proc/sys/kernel/random/boot_id", "b1\n")
    fake.disk("sdb", size=64 << 20, serial="S1", DEVLINKS="/dev/disk/by-id/ata-SSD0")
    return fake


def look(host, caches, *, value=100, **questions):
    """Look at a host whose caches are given look by look."""
    replies = {
        ("udevadm", "info"): host.udev_reply,
        ("smartctl", "-j", "-x"): smart("S1", value),
        ("dmsetup", "table"): Reply("images: 0 2048 linear 8:0 0\n"),
        ("hdparm", "-N"): Reply("\n max sectors   = 131072/131072, HPA is disabled\n"),
        ("hdparm", "-W"): lambda words: Reply("".join(f"\n{word}:\n write-caching =  1 (on)\n" for word in words[2:])),
    }
    looks, now = list(caches), [1000.0]
    slept = []

    def read_caches(_devices, _runner, _root):
        return Survey(looks.pop(0), ("The caches of type x could not be read: y.",))

    def sleep(seconds):
        slept.append(seconds)
        now[0] += seconds

    found = read_health(
        ScriptedRunner(replies), Questions(**questions), host.root, read_caches=read_caches, tools=lambda _runner: [], clock=lambda: now[0], sleep=sleep
    )
    assert looks == []
    return found.to_dict(), slept


def counted(**counters):
    return cache(counters={"read_hits": 0, "read_misses": 0, **counters})


def test_healthy_host(host):
    result, slept = look(host, [(cache(),)])
    assert result["healthy"] is True
    assert result["worst"] == "none"
    assert result["findings"] == []
    assert result["problems"] == ["The caches of type x could not be read: y."]
    assert result["caches"][0]["hit_rates"]["state"] == "first_reading"
    assert slept == []
    json.dumps(result)


def test_suspended_device_is_critical(host):
    host.disk("dm-0", "virtual", dm_name="images", dm_uuid="")
    host.write("sys/class/block/dm-0/dm/suspended", "1\n")
    result, _slept = look(host, [()])
    assert result["worst"] == "critical"
    assert [(finding["check"], finding["subject"]) for finding in result["findings"] if finding["severity"] == "critical"] == [
        ("suspended", "/dev/mapper/images")
    ]


def test_worn_drive_is_critical(host):
    result, _slept = look(host, [()], value=9)
    assert (result["healthy"], result["worst"]) == (False, "critical")
    assert [one["check"] for one in result["findings"]] == ["drive_wear"]
    assert 'cachefleet_problem{check="drive_wear",severity="critical",subject="/dev/disk/by-id/ata-SSD0"} 1' in result["prometheus"]


def test_limits_are_applied(host):
    assert look(host, [()], value=40, limits=Limits(wear_used=60))[0]["worst"] == "critical"


def test_two_readings_in_one_run_give_rates(host):
    result, slept = look(host, [(counted(),), (counted(read_hits=100, read_misses=4900),)], interval=30.0)
    assert slept == [30.0]
    assert result["caches"][0]["hit_rates"]["seconds"] == 30.0
    assert result["caches"][0]["hit_rates"]["reads"]["percent"] == 2.0
    assert [one["check"] for one in result["findings"]] == ["cache_hits"]


def test_earlier_run_gives_rates_and_contributes_to_the_average(host):
    first, _slept = look(host, [(cache(counters={"read_hits": 0, "read_misses": 0}, dirty=60 * GIB),)])
    assert [one["check"] for one in first["findings"]] == ["cache_dirty"]
    earlier = from_dict({**json.loads(json.dumps(first["readings"])), "time": 400.0})
    second, _slept = look(host, [(cache(counters={"read_hits": 900, "read_misses": 300}, dirty=10 * GIB),)], previous=earlier)
    assert second["caches"][0]["hit_rates"]["seconds"] == 600.0
    assert second["caches"][0]["hit_rates"]["reads"]["percent"] == 75.0
    assert [(one["check"], one["value"]) for one in second["findings"]] == [("cache_dirty", 35.0)]


def test_problems_are_worse_only_when_they_are_new_or_more_severe(host):
    first, _slept = look(host, [()], value=15)
    assert [(one["severity"], one["check"]) for one in first["worse"]] == [("warning", "drive_wear")]
    earlier = from_dict(json.loads(json.dumps(first["readings"])))
    same, _slept = look(host, [()], value=14, previous=earlier)
    assert (len(same["findings"]), same["worse"], same["worse_keys"]) == (1, [], [])
    worn, _slept = look(host, [()], value=9, previous=earlier)
    assert [(one["severity"], one["check"]) for one in worn["worse"]] == [("critical", "drive_wear")]
    assert worn["worse_keys"] == worn["readings"]["problems"] == ["critical drive_wear /dev/disk/by-id/ata-SSD0"]
    better, _slept = look(host, [()], value=15, previous=from_dict(worn["readings"]))
    assert (len(better["findings"]), better["worse"]) == (1, [])


def test_verdicts_of_mounted_devices_are_read_on_request(host, monkeypatch):
    host.disk("sda", size=64 << 20, serial="S2", DEVLINKS="/dev/disk/by-id/ata-DATA", ID_FS_TYPE="ext4", ID_FS_USAGE="filesystem")
    host.mount("sda", "/srv")
    monkeypatch.setattr(readers, "read_caches", lambda devices, runner, root: Survey())
    for kernel, verdict in (("write through", "at_risk"), ("write back", "durable")):
        host.write("sys/class/block/sda/queue/write_cache", f"{kernel}\n")
        result, _slept = look(host, [()], verdicts=True)
        assert {device: one["verdict"] for device, one in result["verdicts"].items()} == {"/dev/disk/by-id/ata-DATA": verdict}
        assert f'cachefleet_device_verdict{{device="/dev/disk/by-id/ata-DATA",verdict="{verdict}"}} 1\n' in result["prometheus"]
        found = [(one["severity"], one["subject"]) for one in result["findings"] if one["check"] == "verdict"]
        assert found == ([("warning", "/dev/disk/by-id/ata-DATA")] if verdict == "at_risk" else [])
    assert look(host, [()])[0]["verdicts"] == {}

    def broken(*_arguments, **_options):
        raise CommandFailed("The stack cannot be read.")

    monkeypatch.setattr(rules, "read_stack", broken)
    result, _slept = look(host, [()], verdicts=True)
    assert result["verdicts"] == {} and "The stack cannot be read." in result["problems"]


def test_second_reading_of_one_run_does_not_count_for_the_average(host):
    result, _slept = look(host, [(cache(dirty=1),), (cache(dirty=1),)], interval=1.0)
    (kept,) = result["readings"]["caches"].values()
    assert len(kept["dirty_shares"]) == 1


def test_bcache_without_counters_yet(host):
    place = host.disk("bcache0", "virtual")
    (place / "stat").write_text("5 0 40 1 0 0 0 0 0 0 0\n")
    calls = []

    def read_caches(_devices, _runner, _root):
        calls.append(1)
        (place / "stat").write_text(f"{5 * len(calls)} 0 40 1 0 0 0 0 0 0 0\n")
        return Survey((cache(BCACHE, counters={"read_hits": 7, "read_misses": 1}),))

    replies = {("udevadm", "info"): host.udev_reply, ("smartctl", "-j", "-x"): smart("S1", 100), ("hdparm", "-N"): Reply("")}
    clock = iter([1.0, 2.0])
    found = read_health(
        ScriptedRunner(replies), Questions(interval=1.0), host.root, read_caches=read_caches, clock=lambda: next(clock), sleep=lambda _seconds: None
    )
    assert found.to_dict()["caches"][0]["hit_rates"] == {"state": "not_known_yet", "seconds": 1.0, "reads": None, "writes": None}


def test_command_count_is_independent_of_number_of_caches(host):
    def commands(count):
        replies = {("udevadm", "info"): host.udev_reply, ("smartctl", "-j", "-x"): smart("S1", 100), ("hdparm", "-N"): Reply("")}
        runner = ScriptedRunner(replies)
        caches = tuple(cache(name=f"vg0/lv{number}") for number in range(count))
        read_health(runner, Questions(), host.root, read_caches=lambda *_arguments: Survey(caches), tools=lambda _runner: [])
        return len(runner.calls)

    assert commands(1) == commands(24) == 3


def params(**changes):
    declared = {"protected_drives": [], "flushed_virtual_disks": []}
    return {"interval": 0, "previous": None, "previous_file": None, "further_drives": [], "limits": {}, "verdicts": False, **declared, **changes}


def test_options_are_converted_to_questions(tmp_path):
    questions, problems = read_questions(params(limits={"dirty": 50, "requests": None}, further_drives=[{"device": "/dev/sg1", "type": "cciss,0"}]), tmp_path)
    assert questions.limits == Limits(dirty=50)
    assert questions.further_drives[0].arguments == ["-d", "cciss,0", "/dev/sg1"]
    assert (questions.previous, problems) == (None, [])


def test_damaged_file_is_a_problem_and_damaged_input_an_error(tmp_path):
    (tmp_path / "health.json").write_text("{")
    questions, problems = read_questions(params(previous_file="/health.json"), tmp_path)
    assert questions.previous is None
    assert len(problems) == 1
    with pytest.raises(BadInput, match="previous holds no readings"):
        read_questions(params(previous={"version": 2}), tmp_path)
    with pytest.raises(BadInput, match="would declare nearly every drive"):
        read_questions(params(verdicts=True, protected_drives=["*a*"]), tmp_path)
    with pytest.raises(BadInput, match="must not be negative"):
        read_questions(params(interval=-1), tmp_path)


def test_option_defaults_match_the_limits():
    assert {name: option["default"] for name, option in LIMIT_OPTIONS.items()} == vars(Limits())
