# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Racks whose right advice is known (tests/unit/data/advice.yml), from the files of a campaign to the file that is recommended."""

from __future__ import annotations

import json
import pathlib

import pytest
import yaml

for library in ("numpy", "scipy", "duckdb", "ruptures"):
    pytest.importorskip(library, reason="results need the libraries of requirements.txt")

from ansible_collections.cachefleet.storage.plugins.action.sweep import ActionModule
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep import state as states
from ansible_collections.cachefleet.storage.tests.unit.support import stack_table, synthetic_campaign

RACKS = yaml.safe_load((pathlib.Path(__file__).resolve().parents[4] / "data/advice.yml").read_text())["racks"]
#: Repeats from which a comparison of a fixed number decides, with one to spare.
REPEATS = 5
LOADS = {"flushed": ("randwrite", "4k", 1), "unflushed": ("randwrite", "4k", 16)}
DISK = "/dev/disk/by-id/ata-DISK"


def variables_of(variant):
    """As a sweep has them: every variant sets all that any of them changes."""
    cache = {"name": "data", "type": "lvm_cache", "origin": "vg0/data"}
    return {
        "drive_write_cache_drives": [{"device": DISK, "write_cache": variant.get("drive", "enabled")}],
        "raid_cache_controllers": [{"serial": "S1", "volumes": [{"name": "data", "write": variant.get("controller", "writethrough")}]}],
        "block_cache_caches": [{**cache, "mode": variant["cache"]} if "cache" in variant else {**cache, "state": "absent"}],
    }


def sweep_of(rack, folder, name="night"):
    """A campaign as the sweep of the rack leaves it before it recommends."""
    variants = rack["variants"]
    truths = {name: synthetic_campaign.Truth(one["speed"], stack_table.described(one["stack"])) for name, one in variants.items()}
    campaign = synthetic_campaign.write_campaign(
        folder / name, 1, cells=REPEATS * len(variants), seconds=12, variants=truths, loads=[LOADS[rack["load"]]], campaign=name
    )
    swept = {name: variables_of(one) for name, one in variants.items()}
    states.save(campaign, states.HostState("host0000", "", "", {}, {}, swept, repeats=REPEATS, most_repeats=REPEATS))
    return campaign


@pytest.mark.parametrize("rack", RACKS, ids=lambda rack: rack["name"])
def test_the_advice_is_right(rack, tmp_path):
    campaign = sweep_of(rack, tmp_path)
    [path], note = ActionModule._recommend(campaign, states.load_all(campaign)[0], "baseline", "", [])
    text = pathlib.Path(path).read_text()
    said = " ".join(line.removeprefix("#").strip() for line in text.splitlines() if line.startswith("#"))

    assert yaml.safe_load(text) == variables_of(rack["variants"][rack["right"]])
    assert f"Variant {rack['right']}." in said
    for words in rack["says"]:
        assert words in said
    assert not note


def text_of(campaign, knowledge):
    [path], note = ActionModule._recommend(campaign, states.load_all(campaign)[0], "baseline", str(knowledge), [])
    assert not note
    return " ".join(line.removeprefix("#").strip() for line in pathlib.Path(path).read_text().splitlines() if line.startswith("#"))


def test_what_a_sweep_has_shown_is_in_a_file_that_the_advice_of_the_next_one_cites(tmp_path):
    rack = RACKS[0]
    known = tmp_path / "knowledge.json"
    first = sweep_of(rack, tmp_path, "first")
    assert "of the same models" not in text_of(first, known)
    # A sweep that is continued does not cite itself.
    assert "of the same models" not in text_of(first, known)
    [entry] = json.loads(known.read_text())["entries"]
    assert (entry["models"], entry["campaign"], entry["best"]["variant"]) == (["MODEL"], "first", "drive_off")
    assert json.loads((first / "recommended/knowledge.json").read_text())["entries"] == [entry]

    said = text_of(sweep_of(rack, tmp_path, "second"), known)
    assert "The sweep first of the same models (1 host) has shown drive_off to be better than its baseline by a factor of 1.8" in said
    assert '"drive_write_cache_drives": [{"write_cache": "disabled"}]' in said
    assert DISK not in known.read_text()
    assert [one["campaign"] for one in json.loads(known.read_text())["entries"]] == ["first", "second"]


def test_every_kind_of_loss_and_at_least_ten_racks_are_covered():
    assert len({rack["name"] for rack in RACKS}) == len(RACKS) >= 10
    verdicts = {(one["verdict"], one["unflushed"], one["device_loss"]) for rack in RACKS for one in map(_described, rack["variants"].values())}
    assert {flushed for flushed, _unflushed, _loss in verdicts} == {"durable", "at_risk", "unknown"}
    assert {unflushed for _flushed, unflushed, _loss in verdicts} == {"kept", "may_be_lost", "unknown"}
    assert {loss for _flushed, _unflushed, loss in verdicts} >= {"survives", "loses"}


def _described(variant):
    return stack_table.described(variant["stack"])
