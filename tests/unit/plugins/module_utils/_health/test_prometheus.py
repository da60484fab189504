# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._device.over_provisioning import Reserve
from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Finding
from ansible_collections.cachefleet.storage.plugins.module_utils._health.prometheus import exposition
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


def of(caches=(), drives=(), reserves=(), findings=(), unread=0, now=1_795_300_300.573789):
    return exposition(caches, drives, reserves, findings, unread, now)


def test_empty_host_exports_the_run_metrics():
    samples, _kinds = parse(of())
    assert samples == {("cachefleet_health_unread", ()): 0, ("cachefleet_health_last_run_timestamp_seconds", ()): 1795300300.573789}


def test_cache_metrics():
    state = cache(
        dirty=7, used=2**53 + 1, size=2**60 + 2**10, counters={"read_hits": 5, "read_misses": 0, "bypassed_reads": 2, "cache_errors": 1}, mode="writeback"
    )
    text = of([state])
    samples, kinds = parse(text)
    here = (("cache", "vg0/images"), ("type", "lvm_cache"))
    assert samples["cachefleet_cache_dirty_bytes", here] == 7
    assert f'cachefleet_cache_used_bytes{{cache="vg0/images",type="lvm_cache"}} {2**53 + 1}\n' in text
    assert f" {2**60 + 2**10}\n" in text
    assert {labels[-1][1]: value for (name, labels), value in samples.items() if name == "cachefleet_cache_reads_total"} == {"hit": 5, "miss": 0, "bypass": 2}
    assert not [name for name, _labels in samples if name == "cachefleet_cache_writes_total"]
    assert samples["cachefleet_cache_errors_total", (*here, ("device", "cache"))] == 1
    states = {labels[-1][1]: value for (name, labels), value in samples.items() if name == "cachefleet_cache_state"}
    assert [name for name, value in states.items() if value] == ["ok"]
    assert samples["cachefleet_cache_info", (*here, ("mode", "writeback"), ("redundancy", "none"))] == 1
    assert kinds["cachefleet_cache_reads_total"] == "counter"


def test_drive_metrics_use_base_units_and_omit_unknown_values():
    samples, _kinds = parse(
        of(drives=[drive(wear_used_percent=143, power_on_hours=2, temperature=41, reallocated=0), drive(path="/dev/b", serial=None, model=None)])
    )
    here = (("device", "/dev/disk/by-id/ata-SSD0"), ("model", "TESTSSD"), ("serial", "S1"))
    assert samples["cachefleet_drive_wear_used_ratio", here] == 1.43
    assert samples["cachefleet_drive_power_on_seconds_total", here] == 7200
    assert samples["cachefleet_drive_temperature_celsius", here] == 41
    assert samples["cachefleet_drive_reallocated_sectors", here] == 0
    assert not [labels for name, labels in samples if name == "cachefleet_drive_wear_used_ratio" and labels[0][1] == "/dev/b"]
    assert samples["cachefleet_drive_passed", (("device", "/dev/b"), ("model", ""), ("serial", ""))] == 1


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
    assert of(caches, drives) == of(caches[::-1], drives[::-1])


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", 'a\\"b\n', "", "ä{}=,"])
def test_special_characters_in_names_are_escaped(name):
    samples, _kinds = parse(of([cache(name=name, counters={})], [drive(model=name)], findings=[Finding("warning", name, "x", "y")]))
    assert {dict(labels)["cache"] for _name, labels in samples if _name == "cachefleet_cache_size_bytes"} == {name}
    assert {dict(labels)["subject"] for _name, labels in samples if _name == "cachefleet_problem"} == {name}


@settings(deadline=None)
@given(st.text(max_size=20), st.integers(0, 10**19), st.floats(0, 2e9, allow_nan=False))
def test_any_name_and_number_can_be_parsed_again(name, size, now):
    samples, _kinds = parse(of([cache(name=name, size=size, used=None, dirty=None, counters={})], now=now))
    assert samples["cachefleet_cache_size_bytes", (("cache", name), ("type", "lvm_cache"))] == float(size)
