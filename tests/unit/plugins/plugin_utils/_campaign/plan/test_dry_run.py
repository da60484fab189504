# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan as text."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import LibraryMissing
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.host_plan import WIDTH, describe_claims, describe_plan, host_plan
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.steps import make_plan

TIMED = {"rw": "write", "bs": "1m", "runtime": 10, "time_based": 1}
CELLS = [
    {"name": "fill", "fill": True, "job": {"rw": "write", "bs": "1m", "runtime": 3600}},
    {"name": "w", "repeats": 3, "pause": 30, "job": TIMED},
    {"name": "r", "repeats": 3, "job": {**TIMED, "rw": "read"}},
    {"name": "s", "pause": {"until": "clean", "most": 600}, "job": TIMED, "search": {"limit": "1ms", "last": 2}},
]
DISK = {"device": "/dev/disk/by-id/ata-A", "capacity": "2000000000", "write_rate": "100000000", "write_iops": 100000, "endurance": "1TB"}


def text_of(*targets, host="", **suite):
    return describe_plan(make_plan("mine", {"mine": {"cells": CELLS, "description": "what it is", **suite}}, targets), host)


def rows(text):
    return {line.split()[0]: re.split(r"  +", line) for line in text.splitlines()[2:] if line.startswith(("fill", "w ", "r ", "s "))}


def test_every_cell_is_listed_with_time_writes_and_wear():
    text = text_of(DISK, host="node1")
    assert text.splitlines()[0] == "node1: suite mine, what it is"
    assert rows(text) == {
        "fill": ["fill", "/dev/disk/by-id/ata-A", "1", "~ 20 s", "-", "2 GB", "0.2 %"],
        "w": ["w", "/dev/disk/by-id/ata-A", "3", "10 s", "30 s", "<= 1 GB", "0.3 %"],
        "r": ["r", "/dev/disk/by-id/ata-A", "3", "10 s", "-", "-", "-"],
        "s": ["s", "/dev/disk/by-id/ata-A", "1", "2 x 10 s", "clean, <= 10 min", "<= 2 GB", "0.2 %"],
    }


def claims_of(**suite):
    return describe_claims(make_plan("mine", {"mine": {"cells": CELLS, **suite}}, [DISK]))


def test_claims_are_about_the_cells_that_decide():
    pytest.importorskip("numpy", reason="needs numpy: pip install -r requirements.txt")
    assert " ".join(claims_of(decides=["w"]).split()) == (
        "3 repeats of each variant cannot show a difference: at least 4 are needed, for example with fio_benchmark_repeats=4."
    )
    both = claims_of()
    assert both.startswith("1 repeat of each variant (s) cannot show") and "\n3 repeats of each variant (w, r) cannot show" in both
    enough = [{**cell, "repeats": 5} for cell in CELLS[:3]]
    text = claims_of(cells=enough)
    assert "5 repeats of each variant: a difference of at least 5 % is shown with 96.8 % confidence if at least 23 of 25 pairs" in text
    assert max(map(len, text.splitlines())) <= WIDTH
    assert claims_of(cells=CELLS[:1]) == ""


def test_claims_end_the_text_of_a_dry_run_only(monkeypatch):
    pytest.importorskip("numpy", reason="needs numpy: pip install -r requirements.txt")
    suites = {"mine": {"cells": CELLS[1:2], "repeats": 4}}
    assert "cannot show" in host_plan([DISK], "mine", suites, claims=True)["text"].splitlines()[-1]
    assert "show" not in host_plan([DISK], "mine", suites)["text"]
    # One pass of a sweep is not all repeats.
    assert "show" not in host_plan([DISK], "mine", suites, claims=True, repeat=2)["text"]

    def missing(_plan):
        raise LibraryMissing("Statistics needs numpy: run 'pip install numpy'.")

    monkeypatch.setattr(f"{host_plan.__module__}.describe_claims", missing)
    assert host_plan([DISK], "mine", suites, claims=True)["text"].endswith("is not computed: Statistics needs numpy: run 'pip install numpy'.")


def test_totals_and_their_assumptions_are_listed():
    text = text_of(DISK)
    assert "8 cells: 3 min 24 s and pauses of at most 10 min" in text
    assert "/dev/disk/by-id/ata-A: writes at most 7 GB, 0.7 % of its rated 1 TB" in text
    assert "Assumed" not in text
    assert "Assumed where a target does not set it: write_rate 3 GB/s, write_iops 500000 writes/s." in text_of({"device": "/dev/a"})


FILL, FOR_5_MIN = {"name": "fill", "fill": True, "job": {"rw": "write"}}, {"name": "w", "job": {"rw": "randwrite", "runtime": 300, "time_based": 1}}
LIMITLESS = "what the target takes in timed cells (no write_rate is set)"


@pytest.mark.parametrize(
    ("target", "cells", "line"),
    [
        ({}, [FOR_5_MIN], f"writes {LIMITLESS}"),
        ({}, [FILL, FOR_5_MIN], f"writes at most 67.1 MB, and {LIMITLESS}"),
        ({}, [FILL], "writes at most 67.1 MB"),
        ({"write_rate": "1m"}, [FILL, FOR_5_MIN], "writes at most 382 MB"),
        ({"write_iops": 10}, [FILL, FOR_5_MIN], "writes at most 79.4 MB"),
        # Of its endurance, the worst case is a share that the user has asked for.
        ({"endurance": 1}, [FOR_5_MIN], "writes at most 614 GB, 61.4 % of its rated 1 TB"),
        ({}, [{"name": "r", "job": {"rw": "read", "runtime": 300, "time_based": 1}}], "writes nothing"),
    ],
)
def test_a_bound_that_is_only_that_of_an_assumed_rate_is_no_figure(target, cells, line):
    text = text_of({"device": "/dev/a", "size": "64M", **target}, cells=cells, repeats=1)
    assert f"/dev/a: {line}" in text.splitlines()


def test_drives_that_are_purged_are_listed():
    assert "Purged before the first cell: /dev/disk/by-id/ata-A." in text_of({**DISK, "allow_purge": True}, purge=True)
    assert "Purged" not in text_of(DISK, purge=True) and "Purged" not in text_of({**DISK, "allow_purge": True})


def test_unknown_values_are_reported():
    text = text_of({"device": "/dev/a", "endurance": 1}, cells=[{"name": "fill", "fill": True, "job": {"rw": "write"}}])
    assert rows(text)["fill"][3:] == ["unknown", "-", "unknown", "-"]
    assert "and 1 of unknown length" in text
    assert "without 1 cells of which that is not known" in text
    assert "Give the targets a size or their capacity" in text


def test_fill_of_unknown_size_is_limited_by_its_runtime():
    assert rows(text_of({"device": "/dev/a"}))["fill"][3] == "<= 1 h"


def test_parallel_targets():
    assert "4 cells, several targets at once: 22 s" in text_of(DISK, {**DISK, "device": "/dev/b"}, targets="together", cells=[dict(CELLS[2], repeats=2)])


def test_no_targets_measure_nothing():
    assert text_of(host="node1") == "node1: nothing is measured: there are no targets."


NAMES = (
    st.text("abcdefghijklmnopqrstuvwxyz0123456789-._", min_size=1, max_size=60)
    .map(lambda text: f"a{text}")
    .filter(lambda text: ".." not in text and text[-1] != ".")
)


@given(
    cells=st.lists(NAMES, min_size=1, max_size=5, unique=True), path=st.text(min_size=1, max_size=200), pause=st.sampled_from([None, "2h", {"until": "clean"}])
)
def test_lines_fit_the_terminal_and_contain_no_control_characters(cells, path, pause):
    suite = [{"name": name, "job": TIMED, "pause": pause} for name in cells]
    text = text_of({"device": f"/dev/{path}", "name": "a" * 20, "endurance": 150}, cells=suite, description="x" * 300)
    assert all(len(line) <= WIDTH for line in text.split("\n"))
    assert all(char == "\n" or char.isprintable() for char in text)


def test_discard_requirement_is_listed():
    discard = {"name": "empty", "job": {"rw": "trim", "bs": "64m"}}
    text = describe_plan(make_plan("mine", {"mine": {"cells": [discard]}}, [DISK]))
    assert "empty discards its target, and a host whose device takes no discards is refused before anything runs;" in text
    assert re.split(r"  +", text.splitlines()[2])[5] == "-"
    assert "discards" not in text_of(DISK)


def test_garbage_collection_measured_only_by_rate_drop_is_reported():
    collecting = [{"name": "gc", "measures_garbage_collection": True, "job": TIMED}, {"name": "w", "pause": {"garbage_collection": "measured"}, "job": TIMED}]
    message = "No cell fills the target before gc: the rate of garbage collection is measured\nonly if the rate of writing falls there"
    assert message in text_of(DISK, cells=collecting)
    assert "No cell fills" not in text_of(DISK, cells=[CELLS[0], *collecting])
    discard = {"name": "discard", "job": {"rw": "trim", "bs": "64m"}}
    assert message in text_of(DISK, cells=[CELLS[0], discard, *collecting])


def test_independent_hosts_are_reported():
    assert "each runs independently" in text_of(DISK, hosts="apart")
    assert "each runs independently" not in text_of(DISK)
