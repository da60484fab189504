# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""One campaign, loaded from its files and from its tables: every row, every median and every sum is the same."""

from __future__ import annotations

import dataclasses
import json
import shutil

import pytest

for library in ("numpy", "duckdb"):
    pytest.importorskip(library, reason=f"needs {library}: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.added_bins import AddedBins
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.aggregate import aggregates_of, notes_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.aggregate import rows_of as rows_of_sums
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.from_files import CampaignFiles
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.from_tables import CampaignTables
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import COLUMNS, read_measurements, row_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import points_of, rows_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.sets import sets_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.ingest import ingest
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.views import open_tables
from ansible_collections.cachefleet.storage.tests.unit.support.synthetic_campaign import write_campaign

HOSTS = [f"host{number:04d}" for number in range(4)]


def meta_of(folder, where):
    return json.loads((folder / where / "meta.json").read_text())


def change(folder, where, **changes):
    (folder / where / "meta.json").write_text(json.dumps(meta_of(folder, where) | changes))


def plan(folder, where, **changes):
    path = folder / where / "plan.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def later(folder, where, seconds):
    """It was measured so much later: its logs say so as well, for they count from there."""
    meta = meta_of(folder, where)
    change(folder, where, io_start=meta["io_start"] + seconds, io_end=meta["io_end"] + seconds)


def lose(folder, where, ending):
    """Without some of its files, as if they had never been."""
    files = {name: value for name, value in meta_of(folder, where)["files"].items() if not name.startswith(ending)}
    for path in (folder / where).glob(f"{ending}*"):
        path.unlink()
    change(folder, where, files=files)


def put_on_two_targets(folder, host, variant, cell):
    """What was one cell was measured on two targets at once."""
    where = folder / host / variant
    planned = json.loads((where / "plan.json").read_text())["cells"]
    (where / cell).rename(where / f"{cell}.sda")
    shutil.copytree(where / f"{cell}.sda", where / f"{cell}.sdb")
    repeats = planned.pop(cell)
    for target in ("sda", "sdb"):
        planned[f"{cell}.{target}"] = repeats
        for repeat in repeats:
            reported = {"cell": f"{cell}.{target}", "target": {"path": f"/dev/{target}"}, "step": 10 + repeat, "order_sha256": "5" * 64}
            change(folder, f"{host}/{variant}/{cell}.{target}/{repeat}", **reported)
    plan(folder, f"{host}/{variant}", cells=planned)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Four hosts in two groups, two repeats of some cells, several targets at once, and most of what may be wrong with a result."""
    made = write_campaign(tmp_path_factory.mktemp("results") / "synthetic", 4, cells=52, seconds=8)
    first, second, third, fourth = (f"{host}/writeback" for host in HOSTS)
    for number, host in enumerate(HOSTS):
        for variant in ("writeback", "writethrough"):
            plan(made, f"{host}/{variant}", group="left" if number < 2 else "right")
        put_on_two_targets(made, host, "writethrough", "randwrite-4k-qd1")
    put_on_two_targets(made, HOSTS[0], "writeback", "randrw-4k-qd1")
    change(made, f"{first}/randread-4k-qd1/2", state="noisy", reason="other work on the host", synchronised=False)
    change(made, f"{second}/randread-64k-qd1/1", state="failed", reason="fio ended with status 1", summary=None)
    change(made, f"{second}/randread-64k-qd16/1", clock=None)
    change(made, f"{third}/randread-1m-qd1/1", clock={"offset": -7.25, "error": 0.5}, bytes_written=None, notes=["one", "two"])
    change(made, f"{third}/randread-1m-qd16/1", io_end=None)
    change(made, f"{fourth}/write-4k-qd1/1", group="x", search={"answer": "found"}, cpu=None)
    change(made, "host0001/writethrough/randwrite-4k-qd1.sdb/1", state="interrupted", reason="the host was rebooted")
    shutil.rmtree(made / third / "randrw-4k-qd16/1")
    later(made, f"{fourth}/randwrite-4k-qd1/1", 1.4)
    later(made, f"{fourth}/randwrite-64k-qd1/1", 3600)
    lose(made, f"{first}/write-64k-qd1/1", "series_")
    lose(made, f"{second}/write-64k-qd16/1", "fio.json.gz")
    (made / first / "write-1m-qd1/1/series_iops.1.log.gz").write_bytes(b"damaged")
    ingest(made, workers=1)
    return made


@pytest.fixture(scope="module")
def files(folder):
    return CampaignFiles(store.load_campaign(folder))


@pytest.fixture(scope="module")
def tables(folder):
    database = open_tables(folder)
    loaded = CampaignTables(database)
    # The report does not read all columns; here every one of them counts.
    loaded.measurements = read_measurements(database, [column.name for column in COLUMNS])
    yield loaded
    database.close()


def near(one, other):
    """DuckDB adds up in another order."""
    return one is other is None or one == pytest.approx(other, rel=1e-12)


def by(things, *names):
    return {tuple(str(getattr(one, name)) for name in names): one for one in things}


def test_every_column_of_every_measurement_matches(files, tables):
    of_files, of_tables = (by(loaded.measurements, "host", "variant", "cell", "repeat", "direction") for loaded in (files, tables))
    assert len(of_files) == len(files.measurements) and of_files.keys() == of_tables.keys()
    for key, one in of_files.items():
        assert row_of(one) == row_of(of_tables[key]), key
    assert {one.state for one in of_files.values()} == {"ok", "noisy", "interrupted", "failed", "missing"}
    # All but what no cell of this campaign was to measure.
    message = {name for one in of_files.values() for name, value in row_of(one).items() if value is not None}
    assert {column.name for column in COLUMNS} - message == {"collection_rate", "collection_shown_by", "rate_limit", "rounds", "not_deciding", "drive"}


def test_common_target_names_match(files, tables):
    assert files.common_names == tables.common_names
    assert len(set(files.common_names.values())) == 2


def test_medians_of_the_repeats_match(files, tables):
    of_files, of_tables = (by(points_of(loaded.measurements), "host", "variant", "cell", "direction") for loaded in (files, tables))
    assert of_files.keys() == of_tables.keys()
    for key, one in of_files.items():
        assert dataclasses.replace(one, runs=[]) == dataclasses.replace(of_tables[key], runs=[]), key


def test_terminal_rows_match(files, tables):
    of_files, of_tables = (by(rows_of(loaded.measurements), "host", "variant", "cell", "direction") for loaded in (files, tables))
    assert of_files == of_tables


def test_every_aggregate_matches(files, tables):
    names = ("group", "host", "variant", "cell", "repeat", "direction")
    of_files, of_tables = (by(aggregates_of(loaded), *names) for loaded in (files, tables))
    assert of_files.keys() == of_tables.keys()
    assert {one.label for one in of_files.values()} >= {
        "all 4 hosts",
        "group left",
        "group right",
        "all 8 targets",
        "group left, 4 targets",
        "host0000, 2 targets",
    }
    for key, one in of_files.items():
        other = of_tables[key]
        for name in ("iops", "bandwidth", "iops_overall"):
            assert near(getattr(one, name), getattr(other, name)), (key, name)
        figures = dict.fromkeys(("iops", "bandwidth", "iops_overall"))
        assert dataclasses.replace(one, **figures) == dataclasses.replace(other, **figures), key
    # What is odd in this campaign is in its sums.
    assert any(one.iops is None for one in of_files.values())
    assert any(one.pro_rata for one in of_files.values())
    assert any(one.is_partial for one in of_files.values())
    assert {bool(one.latency["p99.9"]) for one in of_files.values()} == {True, False}
    assert any(one.synced for one in of_files.values())


def test_rows_and_notes_of_the_aggregates_match(files, tables):
    of_files, of_tables = (aggregates_of(loaded) for loaded in (files, tables))
    assert sorted(notes_of(of_files)) == sorted(notes_of(of_tables))
    rows, others = (by(rows_of_sums(found), "host", "variant", "cell", "direction") for found in (of_files, of_tables))
    assert rows.keys() == others.keys()
    for key, row in rows.items():
        other = others[key]
        assert row.iops_of_runs == pytest.approx(other.iops_of_runs)
        assert (row.iops, row.bandwidth, row.spread) == (pytest.approx(other.iops), pytest.approx(other.bandwidth), pytest.approx(other.spread, abs=1e-9))
        assert (row.latency, row.synced, row.runs, row.planned, row.state) == (other.latency, other.synced, other.runs, other.planned, other.state)


def test_series_and_histograms_of_every_set_match(files, tables):
    of_files, of_tables = (
        {(one.group, one.host, one.variant, one.cell, one.repeat): figures for one, figures in zip(sets_of(loaded), loaded.figures(sets_of(loaded)))}
        for loaded in (files, tables)
    )
    assert of_files.keys() == of_tables.keys()
    for key, one in of_files.items():
        other = of_tables[key]
        assert one.pooled == other.pooled, key
        known = {place: rates for place, rates in one.rates.items() if rates != (None, None)}
        assert known.keys() == other.rates.keys(), key
        for place, rates in known.items():
            assert all(map(near, rates, other.rates[place])), key


def test_percentiles_are_merged_only_for_hosts_with_the_same_job(tmp_path):
    """A host with another rate_iops would be in the tail of the others."""
    made = write_campaign(tmp_path / "c", 2, cells=4, seconds=2)
    cells = sorted(path.name for path in (made / "host0000/writeback").iterdir() if path.is_dir())
    for repeat in sorted((made / "host0001/writeback" / cells[0]).iterdir()):
        change(made, f"host0001/writeback/{cells[0]}/{repeat.name}", workload_sha256="5" * 64)
    ingest(made, workers=1)
    database = open_tables(made)
    try:
        tables = CampaignTables(database)
        here = {}
        for one in points_of(tables.measurements):
            if one.variant == "writeback":
                here.setdefault((one.cell, one.direction), []).append(one)
        bins = AddedBins(tables.added)
        merged = {cell for (cell, _direction), points in here.items() if bins.percentiles(points)["p50"] is not None}
    finally:
        database.close()
    assert merged == set(cells[1:])
