# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._device.over_provisioning import Reserve
from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Finding
from ansible_collections.cachefleet.storage.plugins.module_utils._health.metrics import Measured, exposition
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller, Policy, Protection, Volume
from ansible_collections.cachefleet.storage.tests.unit.support.all_metrics import everything, names_of
from ansible_collections.cachefleet.storage.tests.unit.support.health import BCACHE, cache, drive

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"')
_UNESCAPED = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def parse(text):
    """The exposition format 0.0.4, as strictly as promtool reads it: ``{(name, labels): value}`` and ``{name: type}``."""
    assert text == "" or text.endswith("\n")
    samples, kinds, helped, closed = {}, {}, set(), set()
    current = None
    for line in text.split("\n")[:-1]:
        if line.startswith("# HELP "):
            name, _blank, words = line[len("# HELP ") :].partition(" ")
            assert _NAME.fullmatch(name)
            assert name not in helped, "HELP twice"
            assert words
            helped.add(name)
            closed.add(current)
            current = name
        elif line.startswith("# TYPE "):
            name, kind = line[len("# TYPE ") :].split(" ")
            assert name == current, "TYPE without its HELP"
            assert name not in kinds
            assert kind in ("gauge", "counter")
            assert (kind == "counter") == name.endswith("_total")
            kinds[name] = kind
        else:
            match = re.fullmatch(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)", line)
            assert match, line
            name, inside, value = match.groups()
            assert name == current, "a sample outside its family"
            assert name in kinds
            assert name not in closed
            labels = read_labels(inside or "")
            assert (name, labels) not in samples, "the same series twice"
            samples[name, labels] = float(value)
    return samples, kinds


def read_labels(inside):
    labels, place = [], 0
    while place < len(inside):
        match = _LABEL.match(inside, place)
        assert match, inside
        labels.append((match.group(1), re.sub(r'\\\\|\\"|\\n', lambda found: _UNESCAPED[found.group()], match.group(2))))
        place = match.end()
        if place < len(inside):
            assert inside[place] == ","
            place += 1
    assert len({name for name, _value in labels}) == len(labels)
    return tuple(labels)


def of(**measured):
    return exposition(Measured(**{"time": 1_795_300_300.573789, **measured}))


def test_empty_host_exports_the_run_metrics():
    samples, _kinds = parse(of())
    assert samples == {("cachefleet_health_unread", ()): 0, ("cachefleet_health_last_run_timestamp_seconds", ()): 1795300300.573789}


def test_cache_metrics():
    state = cache(
        dirty=7, used=2**53 + 1, size=2**60 + 2**10, counters={"read_hits": 5, "read_misses": 0, "bypassed_reads": 2, "cache_errors": 1}, mode="writeback"
    )
    text = of(caches=[state])
    samples, kinds = parse(text)
    here = (("cache", "vg0/images"), ("type", "lvm_cache"))
    assert samples["cachefleet_cache_dirty_bytes", here] == 7
    assert f'cachefleet_cache_used_bytes{{cache="vg0/images",type="lvm_cache"}} {2**53 + 1}\n' in text
    assert f" {2**60 + 2**10}\n" in text
    assert {labels[-1][1]: value for (name, labels), value in samples.items() if name == "cachefleet_cache_reads_total"} == {"hit": 5, "miss": 0, "bypass": 2}
    assert not [name for name, _labels in samples if name == "cachefleet_cache_writes_total"]
    assert samples["cachefleet_cache_errors_total", (*here, ("side", "cache"))] == 1
    states = {labels[-1][1]: value for (name, labels), value in samples.items() if name == "cachefleet_cache_state"}
    assert [name for name, value in states.items() if value] == ["ok"]
    assert samples["cachefleet_cache_info", (*here, ("mode", "writeback"), ("redundancy", "none"))] == 1
    assert kinds["cachefleet_cache_reads_total"] == "counter"


def test_drive_metrics_use_base_units_and_omit_unknown_values():
    samples, _kinds = parse(
        of(drives=[drive(wear_used_percent=143, power_on_hours=2, temperature=41, reallocated=0), drive(path="/dev/b", serial=None, model=None)])
    )
    here = (("device", "/dev/disk/by-id/ata-SSD0"),)
    assert samples["cachefleet_drive_wear_used_ratio", here] == 1.43
    assert samples["cachefleet_drive_power_on_seconds_total", here] == 7200
    assert samples["cachefleet_drive_temperature_celsius", here] == 41
    assert samples["cachefleet_drive_reallocated_sectors", here] == 0
    assert not [labels for name, labels in samples if name == "cachefleet_drive_wear_used_ratio" and labels[0][1] == "/dev/b"]
    assert samples["cachefleet_drive_passed", (("device", "/dev/b"),)] == 1
    described = {dict(labels)["device"]: dict(labels) for name, labels in samples if name == "cachefleet_drive_info"}
    assert described["/dev/disk/by-id/ata-SSD0"] == {
        "device": "/dev/disk/by-id/ata-SSD0",
        "model": "TESTSSD",
        "serial": "S1",
        "firmware": "",
        "protocol": "ata",
        "media": "ssd",
    }
    assert described["/dev/b"]["model"] == ""
    # What describes a drive is nowhere else, so that new firmware starts no new series.
    assert not [name for name, labels in samples if {"model", "serial", "firmware"} & dict(labels).keys() and not name.endswith("_info")]


def test_metadata_of_a_cache():
    samples, _kinds = parse(of(caches=[cache(metadata_size=8 << 20, metadata_used=6 << 20), cache(name="vg0/other")]))
    assert {(name, dict(labels)["cache"]): value for (name, labels), value in samples.items() if "metadata" in name} == {
        ("cachefleet_cache_metadata_size_bytes", "vg0/images"): 8 << 20,
        ("cachefleet_cache_metadata_used_bytes", "vg0/images"): 6 << 20,
    }


@pytest.mark.parametrize(
    ("unit", "policy", "state", "volumes"),
    [
        (Protection("battery", "failed"), "writeback_always", "failed", 1),
        (Protection("none"), "writethrough", "none", 0),
        (Protection(), "unknown", "unknown", 0),
        (Protection("capacitor", "healthy"), "writeback", "healthy", 1),
    ],
)
def test_controller_metrics(unit, policy, state, volumes):
    controller = Controller(
        "storcli", "0", model="9361-8i", serial="SV1", firmware="24.21", protection=unit, volumes=(Volume("1", write=Policy(policy, policy)),)
    )
    samples, _kinds = parse(of(controllers=[controller]))
    here = (("controller", "0"), ("provider", "storcli"))
    states = {dict(labels)["state"]: value for (name, labels), value in samples.items() if name == "cachefleet_controller_protection_state"}
    assert [name for name, value in states.items() if value] == [state]
    assert samples["cachefleet_controller_writeback_volumes", here] == volumes
    assert samples["cachefleet_controller_info", (*here, ("model", "9361-8i"), ("serial", "SV1"), ("firmware", "24.21"), ("protection", unit.kind))] == 1


def test_series_that_comes_twice_is_written_once():
    samples, _kinds = parse(of(drives=[drive(temperature=41), drive(temperature=42)]))
    assert samples["cachefleet_drive_temperature_celsius", (("device", "/dev/disk/by-id/ata-SSD0"),)] == 42


def test_everything_is_read_by_the_parser_of_prometheus():
    parser = pytest.importorskip("prometheus_client.parser", reason="prometheus_client (requirements-dev.txt) is not installed")
    families = {family.name: family for family in parser.text_string_to_metric_families(everything())}
    # The parser takes _total from the names of counters.
    assert {name + "_total" * (family.type == "counter") for name, family in families.items()} == names_of(everything())
    assert all(family.documentation and family.samples for family in families.values())


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool (Debian package prometheus) is not installed")
def test_everything_passes_promtool():
    checked = subprocess.run(["promtool", "check", "metrics"], input=everything(), capture_output=True, text=True, timeout=120, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_one_series_per_problem_without_informational_findings():
    twice = [Finding("critical", "sda", "drive_attribute", "one"), Finding("critical", "sda", "drive_attribute", "two")]
    more = [Finding("warning", "sda", "x", "three"), Finding("info", "sda", "over_provisioning", "four")]
    samples, _kinds = parse(of(findings=twice + more, reserves=[Reserve("sda", "/dev/a", 5, 10, hidden=5)]))
    problems = {labels: value for (name, labels), value in samples.items() if name == "cachefleet_problem"}
    assert problems == {
        (("check", "drive_attribute"), ("severity", "critical"), ("subject", "sda")): 1,
        (("check", "x"), ("severity", "warning"), ("subject", "sda")): 1,
    }
    assert samples["cachefleet_drive_reserved_bytes", (("device", "/dev/a"),)] == 5


def test_output_order_is_independent_of_read_order():
    caches, drives = [cache(), BCACHE], [drive(), drive(path="/dev/b", serial="S2")]
    assert of(caches=caches, drives=drives) == of(caches=caches[::-1], drives=drives[::-1])


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", 'a\\"b\n', "", "ä{}=,"])
def test_special_characters_in_names_are_escaped(name):
    samples, _kinds = parse(of(caches=[cache(name=name, counters={})], drives=[drive(model=name)], findings=[Finding("warning", name, "x", "y")]))
    assert {dict(labels)["cache"] for _name, labels in samples if _name == "cachefleet_cache_size_bytes"} == {name}
    assert {dict(labels)["subject"] for _name, labels in samples if _name == "cachefleet_problem"} == {name}


@settings(deadline=None)
@given(st.text(max_size=20), st.integers(0, 10**19), st.floats(0, 2e9, allow_nan=False))
def test_any_name_and_number_can_be_parsed_again(name, size, now):
    samples, _kinds = parse(of(caches=[cache(name=name, size=size, used=None, dirty=None, counters={})], time=now))
    assert samples["cachefleet_cache_size_bytes", (("cache", name), ("type", "lvm_cache"))] == float(size)
