# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import CellKey
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.finished import ExpectedMeasurement, finished, measured_as
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.probes import Pattern
from ansible_collections.cachefleet.storage.tests.unit.support.archives import cell, pack
from ansible_collections.cachefleet.storage.tests.unit.support.campaigns import KEY, NOW, take_in

ASKED = ExpectedMeasurement("abc", "/dev/x", None)


SEARCH = Pattern("randwrite-4k", (1,), "iodepth", 1, 64)
PROBE = CellKey("before", "randwrite-4k.iodepth-16", 1)


def test_existing_result_is_identified_by_its_measurement(campaign, tmp_path):
    store.write_plan(campaign, "node1", "before", [("c", 1), ("d", 1)], patterns=[SEARCH], now=NOW)
    cells = [cell(measurement_sha256="a" * 64), cell(repeat=2, measurement_sha256="b" * 64, state="failed"), cell("c", measurement_sha256="x"), cell("d")]
    take_in(pack(tmp_path / "a.tar", *cells, cell(PROBE.cell, measurement_sha256="c" * 64)), campaign)
    assert measured_as(campaign, "node1", "before") == {("randwrite-4k", 1): "a" * 64, (PROBE.cell, 1): "c" * 64}
    assert measured_as(campaign, "node1", "after") == measured_as(campaign, "node2", "before") == {}
    (campaign / "node1/before/randwrite-4k/1/fio.json.gz").write_bytes(b"cut")
    assert measured_as(campaign, "node1", "before") == {(PROBE.cell, 1): "c" * 64}


def measured(**target):
    return {"workload_sha256": "abc", "target": {"path": "/dev/x", "used_size": None, **target}}


def test_only_ok_results_are_finished(campaign, tmp_path):
    take_in(pack(tmp_path / "a.tar", cell(**measured()), cell(repeat=2, state="failed", **measured())), campaign)
    requested = dict.fromkeys([KEY, CellKey("before", "randwrite-4k", 2), CellKey("before", "other", 1)], ASKED)
    assert finished(campaign, "node1", requested) == {KEY}
    (campaign / "node1/before/randwrite-4k/1/fio.json.gz").write_bytes(b"cut")
    assert finished(campaign, "node1", requested) == set()


@pytest.mark.parametrize(
    "message", [{}, {"workload_sha256": "x", "target": {"path": "/dev/x"}}, measured(path="/dev/y"), measured(used_size=4096), {"target": []}]
)
def test_ok_result_of_another_measurement_is_rejected(campaign, tmp_path, message):
    take_in(pack(tmp_path / "a.tar", cell(**message)), campaign)
    with pytest.raises(BadInput, match=r"has an ok result of before/randwrite-4k/1 of host node1 already, of another job or target.*fio_benchmark_replace"):
        finished(campaign, "node1", {KEY: ASKED})
