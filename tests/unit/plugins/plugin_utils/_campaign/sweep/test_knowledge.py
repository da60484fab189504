# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What sweeps have shown of models of drives, collected over campaigns."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("numpy", reason="statistics need numpy: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.answer import answer_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import points_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep import knowledge
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.knowledge import Source
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.state import HostState
from ansible_collections.cachefleet.storage.tests.unit.support import planted_flows
from ansible_collections.cachefleet.storage.tests.unit.support.report_rows import measurement

SLOW, FAST = (149, 150, 148, 151), (1420, 1400, 1430, 1410)
HERE, THERE = Source("night", "aaa", "1" * 64), Source("other", "bbb", "2" * 64)


def answered(slow=SLOW, fast=FAST, model="DISK A"):
    rates = {"baseline": slow, "off": fast}
    measured = [
        measurement("node1", name, "randwrite-4k-fdatasync", number, iops=rate, fdatasync=1, started=1e9 + place, model=model)
        for place, (name, of) in enumerate(rates.items())
        for number, rate in enumerate(of, 1)
    ]
    return answer_of(Rows("c", measured, settings={}), points_of(measured))


def entries(source=HERE, **more):
    drives = [{"device": "/dev/disk/by-id/a", "write_cache": "disabled", "persistent": False}]
    raid = [{"serial": "S", "volumes": [{"wwn": "0x5", "write": "writeback"}]}]
    variables = {"baseline": {}, "off": {"drive_write_cache_drives": drives, "raid_cache_controllers": raid, "block_cache_caches": []}}
    return knowledge.entries_of(answered(**more), [HostState("node1", "", "", {}, {}, variables)], source)


def test_entry_has_what_was_shown_without_the_devices_of_the_host():
    [entry] = entries()
    best = entry.pop("best")
    assert entry == {
        "models": ["DISK A"],
        "controller": "unknown",
        "workload": "randwrite-4k-fdatasync",
        "campaign": "night",
        "campaign_id": "aaa",
        "results_sha256": "1" * 64,
        "hosts": 1,
        "baseline": {"value": 149.5, "unit": "iops"},
    }
    assert best["settings"] == {"drive_write_cache_drives": [{"write_cache": "disabled"}], "raid_cache_controllers": [{"volumes": [{"write": "writeback"}]}]}
    assert (best["variant"], round(best["ratio"], 1), best["repeats"]) == ("off", 9.5, 4)
    assert best["interval"][0] < best["ratio"] < best["interval"][1]
    assert "/dev/disk" not in json.dumps([entry, best])


def test_nothing_shown_is_an_entry_too():
    assert [one["best"] for one in entries(fast=SLOW)] == [None]


def test_file_collects_campaigns_each_once(tmp_path):
    path = tmp_path / "shared/knowledge.json"
    assert knowledge.read_knowledge(path) == []
    for found in (entries(), entries(THERE), entries(HERE, fast=SLOW)):
        knowledge.write_knowledge(path, knowledge.merged(knowledge.read_knowledge(path), found))
    assert [(one["campaign"], one["best"] is None) for one in knowledge.read_knowledge(path)] == [("night", True), ("other", False)]


def test_two_classes_of_a_campaign_with_the_same_models_are_both_kept():
    """Their kernels may differ, which an entry does not have."""
    both = [*entries(), *entries(fast=SLOW)]
    assert knowledge.merged([], both) == both
    assert knowledge.merged(both, both) == both
    assert knowledge.merged([*both, *entries(THERE)], both) == [*both, *entries(THERE)]
    assert len(knowledge.merged([{**both[0], "campaign_id": []}], both)) == 3


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 2, "entries": []}', '{"schema": 1, "entries": [{}]}', '{"schema": 1}'])
def test_another_file_is_refused_and_stays(tmp_path, text):
    path = tmp_path / "knowledge.json"
    path.write_text(text)
    with pytest.raises(BadInput, match="Nothing was written to it"):
        knowledge.read_knowledge(path)
    assert path.read_text() == text


@pytest.mark.parametrize("model", [None, "", "unknown"])
def test_drives_of_an_unknown_model_are_neither_stored_nor_cited(model):
    assert entries(model=model) == []
    [workload] = answered(model=model).workloads
    for models in ([], [""], ["unknown"]):
        of_before = [{**entries(THERE)[0], "models": models}]
        assert knowledge.cited(of_before, workload, "aaa") == []
    assert knowledge.merged([{**entries(THERE)[0], "models": ["unknown"]}], entries()) == entries()


def test_other_sweeps_of_the_same_models_are_cited():
    known = [*entries(THERE), *entries(THERE, model="DISK B"), *entries()]
    [workload] = answered().workloads
    [sentence] = knowledge.cited(known, workload, "aaa")
    assert sentence == (
        "The sweep other of the same models (1 host) has shown off to be better than its baseline by a factor of 9.46 in randwrite-4k-fdatasync: "
        '{"drive_write_cache_drives": [{"write_cache": "disabled"}], "raid_cache_controllers": [{"volumes": [{"write": "writeback"}]}]}.'
    )


@pytest.mark.parametrize("best", [None, "x", {}, {"ratio": "9"}, {"ratio": 0}, {"ratio": 0.5}, {"ratio": True}])
def test_entry_without_a_gain_or_with_a_wrong_one_is_cited_as_nothing_shown(best):
    [workload] = answered().workloads
    [sentence] = knowledge.cited([{**entries(THERE)[0], "best": best}], workload, "aaa")
    assert "has shown nothing to be better than its baseline" in sentence


def test_the_reason_is_kept_and_cited_with_how_long_the_rate_lasts():
    rows = planted_flows.demo()
    answer = answer_of(rows, rows.points())
    [entry] = knowledge.entries_of(answer, [], THERE)
    assert entry["best"]["because"] == answer.workloads[0].because and entry["best"]["burst"] == answer.workloads[0].burst
    [cited] = knowledge.cited([entry], answer.workloads[0], "aaa")
    assert " in randwrite-4k-fdatasync, because no flush reaches the slow disk sda (bare-disk_on" in cited
    assert cited.endswith("the cell of 2 s is too short to show it.")


def test_an_entry_without_a_reason_is_cited_without_one():
    [entry] = entries(THERE)
    assert (entry["best"]["because"], entry["best"]["burst"]) == (None, "")
    for name in ("because", "burst"):
        del entry["best"][name]
    [cited] = knowledge.cited([entry], answered().workloads[0], "aaa")
    assert "because" not in cited and cited.endswith("}.")
