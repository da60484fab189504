# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tables of campaigns: what is in them, that another engine reads the same, and what is written when."""

from __future__ import annotations

import gzip
import json
import os
import shutil

import duckdb
import polars
import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._fio import histogram
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import output as fio_output
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import summary as fio_summary
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results import from_files
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Column
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables import views
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.host_tables import Batch, host_digest
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.ingest import ingest
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.schema import TABLES, Table
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.views import open_tables, read_tables
from ansible_collections.cachefleet.storage.tests.unit.support.synthetic_campaign import change, write_campaign

LAST = "host0001/writeback/randread-64k-qd1/1"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two hosts, 12 cells each, of 5 s, with tables."""
    folder = write_campaign(tmp_path_factory.mktemp("results") / "synthetic", 2, cells=20, seconds=5)
    ingest(folder, workers=1)
    return folder


@pytest.fixture
def campaign(made, tmp_path):
    return shutil.copytree(made, tmp_path / "synthetic")


@pytest.fixture
def ask():
    opened = []

    def requested(folder, query, *values, **options):
        opened.append(open_tables(folder, **options))
        return opened[-1].execute(query, list(values)).fetchall()

    yield requested
    for database in opened:
        database.close()


def cell_of(tmp_path, text, logs=None, **meta):
    """A campaign of one cell with this output of fio, ingested."""
    folder = write_campaign(tmp_path / "one", 1, cells=1, seconds=3)
    place = folder / "host0000/writethrough/randread-4k-qd1/1"
    (place / "fio.json.gz").write_bytes(gzip.compress(text.encode()))
    for name, content in (logs or {}).items():
        (place / name).write_bytes(gzip.compress(content.encode()))
    change(place, summary=fio_summary.summarize(fio_output.parse(text)), **meta)
    ingest(folder, workers=1)
    return folder


# ---------------------------------------------------------------------------------------------------------------------
# What is in them


def test_cells_match_meta_json(made, ask):
    meta = json.loads((made / LAST / "meta.json").read_text())
    columns = "iops, bw_bytes, total_ios, p50_ns, p99_ns, lat_n, rw, bs_bytes, iodepth, model, verdict_before, path"
    message = ask(made, f"SELECT {columns} FROM cells WHERE path = ?", LAST)
    read, clat = meta["summary"]["read"], meta["summary"]["read"]["clat"]
    percentiles = clat["percentiles_ns"]
    numbers = (read["iops"], read["bw_bytes"], read["total_ios"], percentiles["50"], percentiles["99"], clat["n"])
    assert message == [(*numbers, "randread", 65536, 1, "SAMSUNG MZ7LH960", "durable", LAST)]


def test_syncs_have_a_separate_row(made, ask):
    rows = ask(
        made, "SELECT direction, latency_kind, iops FROM cells WHERE host = 'host0000' AND variant = 'writeback' AND fdatasync = 1 AND bs = '4k' ORDER BY 1"
    )
    assert [row[:2] for row in rows] == [("sync", "sync"), ("write", "clat")]
    assert rows[0][2] == pytest.approx(rows[1][2])


def test_percentile_with_too_few_samples_is_null(tmp_path, ask):
    job = {"jobname": "x", "groupid": 0, "error": 0, "elapsed": 4, "job options": {}}
    bins = {"1000": 150, "2000": 5}
    read = {"io_bytes": 155 * 4096, "bw_bytes": 4096, "iops": 51.7, "runtime": 3000, "total_ios": 155}
    clat = {"min": 900, "max": 2000, "mean": 1000.0, "stddev": 1.0, "N": 155, "percentile": {"50.000000": 1000, "99.000000": 2000}, "bins": bins}
    report = {"fio version": "fio-3.33", "jobs": [{**job, "read": {**read, "clat_ns": clat, "lat_ns": {"N": 155}}}]}
    assert ask(cell_of(tmp_path, json.dumps(report)), "SELECT p50_ns, p90_ns, p99_ns FROM cells") == [(1000, 1000, None)]


NOT_USED = "The series of read is not used: added up it differs by more than 3% from the total that fio reports."


def change_total(place, **values):
    """What the report has of reads, so that it is that of another series."""
    summary = json.loads((place / "meta.json").read_text())["summary"]
    change(place, summary={**summary, "read": {**summary["read"], "iops": None, "bw_bytes": None, **values}})


def write_level_series(place, seconds, **values):
    """The logs of a run that does the same in every second."""
    start = json.loads((place / "meta.json").read_text())["io_start"]
    for what, value in values.items():
        rows = [f"{int((start + second + 1) * 1000) + 3}, {value}, 0, 0, 0" for second in range(seconds)]
        (place / f"series_{what}.1.log.gz").write_bytes(gzip.compress(("\n".join(rows) + "\n").encode()))


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({}, (1, 1, None)),
        ({"total_ios": 1030, "io_bytes": 1030 * 4096}, (1, 1, None)),
        # Ten rows in each second instead of one, as with log_avg_msec=100.
        ({"total_ios": 100, "io_bytes": 100 * 4096}, (0, 0, NOT_USED)),
        ({"total_ios": 960, "io_bytes": 960 * 4096}, (0, 0, NOT_USED)),
        # The last second of a thread has no row, if it was not whole.
        ({"total_ios": 1110, "io_bytes": 1110 * 4096}, (1, 1, None)),
        ({"total_ios": 1150, "io_bytes": 1150 * 4096}, (0, 0, NOT_USED)),
        ({"total_ios": 1000, "io_bytes": 900 * 4096}, (1, 0, None)),
    ],
)
def test_series_that_does_not_add_up_to_the_total_is_not_used(tmp_path, ask, values, shown):
    folder = write_campaign(tmp_path / "one", 1, cells=1, seconds=10)
    place = folder / "host0000/writethrough/randread-4k-qd1/1"
    write_level_series(place, 10, iops=100, bw=400)
    change_total(place, **{"total_ios": 1000, "io_bytes": 1000 * 4096, "runtime_ms": 10_000, **values})
    ingest(folder, workers=1)
    used = ask(folder, "SELECT count(DISTINCT direction), count(DISTINCT direction) FILTER (bw_bytes IS NOT NULL) FROM intervals")
    ((notes,),) = ask(folder, "SELECT array_to_string(notes, '') FROM cells")
    assert (*used[0], notes or None) == shown


def test_slow_ios_have_the_series_of_their_bytes(tmp_path, ask):
    folder = write_campaign(tmp_path / "one", 1, cells=1, seconds=20)
    place = folder / "host0000/writethrough/randread-4k-qd1/1"
    # 3.5 I/Os of 4 KiB per second, of which fio logs 3.
    write_level_series(place, 20, iops=3, bw=14)
    change_total(place, total_ios=70, io_bytes=70 * 4096, runtime_ms=20_000)
    ingest(folder, workers=1)
    assert ask(folder, "SELECT DISTINCT iops FROM intervals") == [(3.5,)]


def test_every_second_has_a_row_and_missing_ones_are_0(tmp_path, ask):
    folder = write_campaign(tmp_path / "one", 1, cells=1, seconds=8)
    place = folder / "host0000/writethrough/randread-4k-qd1/1"
    start = json.loads((place / "meta.json").read_text())["io_start"]
    for what, values in {"iops": (100, 200, 300), "bw": (400, 800, 1200), "lat": (5000, 6000, 7000)}.items():
        rows = [f"{int((start + second + 1) * 1000) + 3}, {value}, 0, 0, 0" for second, value in zip((0, 1, 4), values)]
        (place / f"series_{what}.1.log.gz").write_bytes(gzip.compress(("\n".join(rows) + "\n").encode()))
    change_total(place, total_ios=600, io_bytes=2400 * 1024)
    ingest(folder, workers=1)
    found = ask(folder, "SELECT second, iops, bw_bytes, lat_ns FROM intervals ORDER BY second")
    # The last two seconds may be missing because fio does not log an end: it ended after 8 s, so one of three is a stall.
    assert found == [
        (0, 100.0, 400 * 1024.0, 5000.0),
        (1, 200.0, 800 * 1024.0, 6000.0),
        (2, 0.0, 0.0, None),
        (3, 0.0, 0.0, None),
        (4, 300.0, 1200 * 1024.0, 7000.0),
        (5, 0.0, 0.0, None),
        (6, 0.0, 0.0, None),
    ]


def test_threads_are_added_and_latencies_weighted(tmp_path, ask):
    folder = write_campaign(tmp_path / "one", 1, cells=1, seconds=2)
    place = folder / "host0000/writethrough/randread-4k-qd1/1"
    end = int((json.loads((place / "meta.json").read_text())["io_start"] + 1) * 1000)
    for name, value in {"iops.1": 300, "iops.2": 100, "lat.1": 1000, "lat.2": 2000, "bw.1": 4, "bw.2": 4}.items():
        (place / f"series_{name}.log.gz").write_bytes(gzip.compress(f"{end}, {value}, 0, 0, 0\n".encode()))
    change_total(place, total_ios=400, io_bytes=8192)
    ingest(folder, workers=1)
    assert ask(folder, "SELECT second, iops, bw_bytes, lat_ns FROM intervals") == [(0, 400.0, 8192.0, 1250.0)]


def test_cell_without_figures_has_one_row_without_direction(campaign, ask):
    shutil.rmtree(campaign / LAST)
    change(campaign / "host0001/writeback/randread-4k-qd1/1", state="failed", reason="no device", summary=None)
    (campaign / "host0001/writeback/randread-4k-qd16/1/job.fio").write_text("something else")
    ingest(campaign, workers=1)
    query = "SELECT cell, state, direction, iops, p50_ns, rw, bw_bytes FROM cells WHERE state <> 'ok' ORDER BY cell"
    assert ask(campaign, query) == [
        ("randread-4k-qd1", "failed", None, None, None, "randread", None),
        ("randread-4k-qd16", "failed", None, None, None, None, None),
        ("randread-64k-qd1", "missing", None, None, None, None, None),
    ]


def test_results_of_old_versions_have_null_for_missing_values(campaign, ask):
    place = campaign / LAST
    meta = json.loads((place / "meta.json").read_text())
    for name in ("device_series.log.gz", *(f"series_{what}.1.log.gz" for what in ("bw", "iops", "lat", "clat", "slat"))):
        (place / name).unlink()
    new = {"measurement_sha256", "stack_sha256", "order_sha256", "synchronised", "asked_start", "clock", "io_start", "io_end", "bytes_written", "bytes_read"}
    for name in new | {"cpu", "drives", "notes", "replaces", "step", "segment"}:
        del meta[name]
    (place / "meta.json").write_text(json.dumps(meta))
    change(place)
    ingest(campaign, workers=1)
    columns = "state, iops IS NULL, io_start, cpu_usr, cpu_bound, synchronised, clock_offset, bytes_written, notes, host_group, search"
    assert ask(campaign, f"SELECT {columns} FROM cells WHERE path = ?", LAST) == [("ok", False, *[None] * 9)]
    devices = (
        "SELECT device, model, temperature_c FROM devices WHERE host = 'host0001' AND cell = 'randread-64k-qd1' AND variant = 'writeback' AND side = 'after'"
    )
    assert ask(campaign, devices) == [("sda", "SAMSUNG MZ7LH960", None), ("sdb", "SAMSUNG MZ7LH960", None)]


def test_garbage_collection_rate_is_a_column(campaign, ask):
    place = campaign / LAST
    change(place, garbage_collection={"rate": 6.4e8, "block_size": 65536, "shown_by": "fall", "reason": ""})
    silent = place.parent.parent / "randread-4k-qd1/1"
    change(silent, garbage_collection={"rate": None, "block_size": 4096, "shown_by": "", "reason": "The rate of writing did not fall."})
    ingest(campaign, workers=1)
    query = "SELECT collection_rate, collection_shown_by FROM cells WHERE path = ?"
    assert ask(campaign, query, LAST) == [(6.4e8, "fall")]
    assert ask(campaign, query, str(silent.relative_to(campaign))) == [(None, None)]
    # An older runner wrote the rate at the end of a cell whether or not anything fell.
    change(place, garbage_collection=None, garbage_collection_rate=1.7e9)
    ingest(campaign, workers=1)
    assert ask(campaign, query, LAST) == [(None, None)]


def test_stacks_are_listed_per_measurement_and_stored_once(made, ask):
    assert ask(made, "SELECT count(DISTINCT stack) FROM layers") == [(4,)]
    where = "host = 'host0001' AND cell = 'randread-64k-qd1' AND side = 'after' AND variant = 'writeback' AND key = 'policy'"
    assert ask(made, f"SELECT level, device, kind, layer, key, value FROM stacks WHERE {where}") == [(0, "dm-0", "lvm", "block_cache", "policy", "writeback")]
    assert ask(made, "SELECT count(*) FROM (SELECT DISTINCT host, variant, cell, repeat, side FROM stacks)") == [(80,)]


def test_host_values_are_treated_as_data(campaign, ask):
    odd = "x'); DROP TABLE cells; --\x1b[31m\n<script>\ud800"
    place = campaign / LAST
    meta = json.loads((place / "meta.json").read_text())
    change(
        place, notes=[odd], kernel=odd, target={**meta["target"], "model": odd, "size": 10**30}, cpu={"fio_usr": "much", "cpu_bound": 3}, bytes_written=2**70
    )
    ingest(campaign, workers=1)
    ((notes, kernel, model, *nothing),) = ask(campaign, "SELECT notes, kernel, model, cpu_usr, cpu_bound, bytes_written FROM cells WHERE path = ?", LAST)
    assert notes == [kernel] and kernel == model == "x'); DROP TABLE cells; -- <script>\ufffd"
    assert nothing == [None, None, None]


def test_campaign_folder_with_special_characters(made, tmp_path, ask):
    folder = shutil.copytree(made, tmp_path / "it's [all] *?" / "synthetic")
    assert len(ingest(folder, workers=1).unchanged) == 2
    ingest(folder, workers=1, force=True)
    assert ask(folder, "SELECT count(DISTINCT path) FROM cells") == [(40,)]


# ---------------------------------------------------------------------------------------------------------------------
# Percentiles


def jobs_of_samples(folder):
    """Every job of every output that was kept, as an output of its own."""
    for path in sorted((folder / "fio").glob("v*/*.json")):
        objects, _messages, _truncated = fio_output.split(path.read_text(errors="replace"))
        for job in (objects[-1].get("jobs") or objects[-1].get("client_stats") or []) if objects else []:
            yield path.name, json.dumps({"fio version": objects[-1]["fio version"], "jobs": [job]})


HOSTILE = {
    "nested": ("fio.json.gz", b'{"fio version": "fio-3.33", "jobs": [' + b"[" * 90_000 + b"]" * 90_000 + b"]}"),
    "many values": ("fio.json.gz", b'{"jobs": [' + b"[]," * 5_500_000 + b"0]}"),
    "unpacked": ("fio.json.gz", b" " * (65 << 20)),
    "bin": ("fio.json.gz", b'{"fio version": "fio-2.1.4", "jobs": [{"write": {"io_bytes": 1, "lat": {"bins": {"FIO_IO_U_PLAT_BITS": 6, "99999999999": 1}}}}]}'),
    "number": ("fio.json.gz", b'{"fio version": "fio-3.33", "jobs": [{"groupid": [1], "read": {"io_bytes": "x"}}]}'),
    "not packed": ("fio.json.gz", None),
    "lines": ("series_iops.1.log.gz", b"1,1,0\n" * 5_000_001),
    "log": ("device_series.log.gz", None),
    "stack": ("stack.json", b'{"before": ' + b"[" * 3000),
    "odd stack": ("stack.json", b'{"before": {"layers": [{"name": {"a": []}, "kind": [], "caches": [{"layer": []}]}]}}'),
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_one_hostile_cell_is_failed_and_all_others_are_stored(campaign, ask, hostile):
    name, content = HOSTILE[hostile]
    place = campaign / LAST
    data = b"junk" if content is None else gzip.compress(content, 1) if name.endswith(".gz") else content
    (place / name).write_bytes(data)
    change(place)
    total = len(list(campaign.glob("*/*/*/*/meta.json")))
    ingest(campaign, workers=1)
    states = dict(ask(campaign, "SELECT state, count(DISTINCT (host, variant, cell, repeat)) FROM cells GROUP BY ALL"))
    assert states == {"ok": total - 1, "failed": 1}
    ((reason, iops),) = ask(campaign, "SELECT reason, iops FROM cells WHERE state = 'failed'")
    assert reason.startswith("the stored result could not be read: ") and iops is None


def test_outlying_timestamp_does_not_create_weeks_of_rows():
    log = from_files.read_log("1000,1,0\n5000000000,1,0\n")
    assert from_files.seconds_of({"iops": [log], "bw": [], "lat": []}, None, None, ["read"]) == {}
    log = from_files.read_log("1000,1,0\n3600000,1,0\n")
    series = from_files.seconds_of({"iops": [log], "bw": [], "lat": []}, None, None, ["read"])["read"]
    assert len(series["second"]) == 3600


def test_chunked_log_is_parsed_like_the_whole_log(monkeypatch):
    content = "".join(f"{second}000, {second % 7}, {second % 2}, 4096\n" for second in range(500))
    whole = from_files.read_log(content)
    monkeypatch.setattr(from_files, "_PART", 100)
    assert from_files.read_log(content) == whole and len(whole["read"]) == 250


def test_sample_percentiles_are_reproduced_from_histograms(shared_samples, tmp_path, ask):
    folder = write_campaign(tmp_path / "samples", 1, cells=1, seconds=2)
    cell = folder / "host0000/writethrough/randread-4k-qd1"
    expected = {}
    for repeat, (name, text) in enumerate(jobs_of_samples(shared_samples), start=2):
        place = shutil.copytree(cell / "1", cell / str(repeat))
        (place / "fio.json.gz").write_bytes(gzip.compress(text.encode()))
        output = fio_output.parse(text)
        # The job of a sample is not known, and with it how many of its I/Os were under way.
        summary = {name: {**figures, "in_flight": 10**6} if figures else None for name, figures in fio_summary.summarize(output).items()}
        change(place, repeat=repeat, summary=summary)
        found = {direction: values.lat if values.lat.bins else values.clat for direction, values in output.jobs[0].directions.items()} if output.jobs else {}
        if output.jobs and output.jobs[0].sync is not None:
            found["sync"] = output.jobs[0].sync
        for direction, latency in found.items():
            # Where a garbage sample was left out, the percentiles of fio still count it.
            if latency.bins and not latency.flags:
                expected.update({(repeat, direction, percent): (value, name) for percent, value in latency.percentiles.items()})
    ingest(folder, workers=1)
    database = open_tables(folder)
    wanted = json.dumps([{"repeat": repeat, "direction": direction, "percent": percent} for repeat, direction, percent in expected])
    query = """
        SELECT w.repeat, w.direction, w.percent, min(h.bin_ns)
        FROM (SELECT unnest(from_json(?, '[{"repeat": "INTEGER", "direction": "VARCHAR", "percent": "DOUBLE"}]'), recursive := true)) AS w
        JOIN (SELECT *, sum(count) OVER (series ORDER BY bin_ns) AS reached, sum(count) OVER series AS of FROM histograms
              WINDOW series AS (PARTITION BY repeat, direction)) AS h USING (repeat, direction)
        WHERE reached >= w.percent / 100.0 * of GROUP BY ALL
    """
    found = {row[:3]: row[3] for row in database.execute(query, [wanted]).fetchall()}
    database.close()
    assert len(expected) > 500
    assert {key: (found.get(key), expected[key]) for key in expected if found.get(key) != expected[key][0]} == {}


def test_merged_histograms_are_those_of_all_hosts(made, ask):
    parts = []
    for host in ("host0000", "host0001"):
        text = gzip.decompress((made / host / "writeback/randread-4k-qd16/1/fio.json.gz").read_bytes()).decode()
        parts.append(fio_output.parse(text).jobs[0].directions["read"].clat.bins)
    query = "SELECT bin_ns, sum(count)::BIGINT FROM histograms WHERE cell = 'randread-4k-qd16' AND variant = 'writeback' AND direction = 'read' GROUP BY 1"
    assert dict(ask(made, query)) == histogram.merge(parts)


# ---------------------------------------------------------------------------------------------------------------------
# Another engine


@pytest.mark.parametrize(
    ("table", "keys", "sums"),
    [
        ("cells", ["variant", "direction"], ["iops", "total_ios", "p99_ns", "bytes_written"]),
        ("intervals", ["host", "cell"], ["iops", "bw_bytes", "lat_ns", "second"]),
        ("histograms", ["host", "direction"], ["bin_ns", "count"]),
        ("devices", ["model"], ["size", "temperature_c", "written_bytes"]),
        ("device_intervals", ["device"], ["r_s", "wkb_s"]),
        ("layers", ["host", "layer"], ["level"]),
    ],
)
def test_another_engine_reads_the_same_sums(made, ask, table, keys, sums):
    found = polars.scan_parquet(f"{made}/tables/{table}/**/*.parquet", hive_partitioning=False)
    theirs = found.group_by(keys).agg([*(polars.col(name).sum() for name in sums), polars.len().alias("rows")]).collect().rows()
    own = ask(made, f"SELECT {', '.join([*keys, *(f'sum({name})' for name in sums), 'count(*)'])} FROM {table} GROUP BY ALL")
    assert own
    close = [[pytest.approx(float(value)) if isinstance(value, (int, float)) else value for value in row] for row in sorted(own, key=str_key)]
    assert [[0.0 if value is None else value for value in row] for row in close] == [list(row) for row in sorted(theirs, key=str_key)]


def str_key(row):
    return [str(value) for value in row if isinstance(value, str)]


def test_folders_are_usable_as_partitions(made):
    found = polars.scan_parquet(f"{made}/tables/cells/**/*.parquet", hive_partitioning=True).filter(polars.col("host") == "host0001")
    assert found.select(polars.col("path").n_unique()).collect().item() == 20


# ---------------------------------------------------------------------------------------------------------------------
# What is written when


def stamps(folder):
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in (folder / "tables").rglob("*.parquet")}


def test_only_changed_hosts_are_rewritten(campaign):
    before = stamps(campaign)
    assert ingest(campaign, workers=1).changed is False
    assert stamps(campaign) == before
    change(campaign / LAST, state="not_steady")
    found = ingest(campaign, workers=1)
    assert (found.written, found.unchanged, found.cells) == (("host0001",), ("host0000",), 20)
    assert {name.split("host=")[1][:8] for name, stamp in stamps(campaign).items() if stamp != before[name]} == {"host0001"}


@pytest.mark.parametrize("name", ["writeback/plan.json", "writeback/randread-64k-qd1/1/meta.json"])
def test_digest_changes_with_plans_and_results_only(campaign, name):
    host = campaign / "host0001"
    before = host_digest(host)
    (host / "writeback/elsewhere").symlink_to(campaign / "host0000/writeback/randread-64k-qd1")
    (host / "writeback/randread-64k-qd1/notes.txt").write_text("beside the results")
    assert host_digest(host) == before
    (host / name).write_text((host / name).read_text() + " ")
    changed = host_digest(host)
    (host / name).unlink()
    assert len({before, changed, host_digest(host)}) == 3


@pytest.mark.parametrize("name", ["meta.json", "../../plan.json"])
def test_digest_does_not_wait_for_a_pipe_or_follow_a_link(campaign, tmp_path, name):
    (campaign / LAST / name).unlink()
    without = host_digest(campaign / LAST[:8])
    (tmp_path / "other.json").write_text("{}")
    (campaign / LAST / name).symlink_to(tmp_path / "other.json")
    assert host_digest(campaign / LAST[:8]) == without
    (campaign / LAST / name).unlink()
    os.mkfifo(campaign / LAST / name)
    assert host_digest(campaign / LAST[:8])


def test_dry_run_writes_nothing(campaign):
    before = stamps(campaign)
    shutil.rmtree(campaign / "host0000")
    found = ingest(campaign, workers=1, force=True, dry_run=True)
    assert (found.written, found.removed, stamps(campaign)) == (("host0001",), ("host0000",), before)


def test_damaged_table_is_rewritten(campaign, ask):
    part = next((campaign / "tables/cells").rglob("*host0001*/*.parquet"))
    part.write_bytes(b"")
    assert "host0001" in ingest(campaign, workers=1).written
    assert ask(campaign, "SELECT count(DISTINCT path) FROM cells") == [(40,)]


def test_missing_table_is_rewritten(campaign, ask):
    shutil.rmtree(campaign / "tables/intervals")
    assert ingest(campaign, workers=1).written == ("host0000", "host0001")
    assert ask(campaign, "SELECT count(*) > 0 FROM intervals") == [(True,)]


def test_tables_of_a_removed_host_are_removed(campaign, ask):
    shutil.rmtree(campaign / "host0000")
    found = ingest(campaign, workers=1)
    assert (found.written, found.removed) == ((), ("host0000",))
    assert ask(campaign, "SELECT DISTINCT host FROM cells") == [("host0001",)]


def test_several_processes_write_the_same_tables(campaign, ask):
    before = ask(campaign, "SELECT * FROM histograms ORDER BY ALL")
    shutil.rmtree(campaign / "tables")
    found = ingest(campaign, workers=2)
    assert (found.cells, found.written) == (40, ("host0000", "host0001"))
    assert ask(campaign, "SELECT * FROM histograms ORDER BY ALL") == before
    assert not [path for path in (campaign / "tables").rglob("*") if path.is_file() and path.suffix != ".parquet"]


def test_failing_process_is_reported(campaign):
    (campaign / "tables").rename(campaign / "away")
    (campaign / "tables").mkdir()
    for table in TABLES:
        (campaign / "tables" / table.name).write_text("in the way")
    with pytest.raises(ResultsError, match="cannot be written"):
        ingest(campaign, workers=2)


def test_campaigns_of_several_controllers_share_a_folder(made, tmp_path, ask):
    other = write_campaign(tmp_path / "other", [1, 2], cells=2, seconds=2, campaign="other")
    shared = tmp_path / "shared"
    ingest(made, shared, workers=1)
    ingest(other, shared, workers=1)
    count = "SELECT campaign, count(DISTINCT host), count(DISTINCT (host, path)) FROM cells GROUP BY 1 ORDER BY 1"
    assert ask(shared, count) == [("other", 2, 4), ("synthetic", 2, 40)]
    assert ask(shared, count, campaign="other") == [("other", 2, 4)]
    shutil.rmtree(other / "host0001")
    assert ingest(other, shared, workers=1).removed == ("host0001",)
    assert ask(shared, count) == [("other", 1, 2), ("synthetic", 2, 40)]


def test_campaigns_are_selected_by_pattern(made, tmp_path, ask):
    for name in ("a", "b"):
        ingest(write_campaign(tmp_path / name, 1, cells=1, seconds=2, campaign=name), workers=1)
    assert ask(f"{tmp_path}/*", "SELECT DISTINCT campaign FROM cells ORDER BY 1") == [("a",), ("b",)]


@pytest.mark.parametrize("names", [("a-1", "b:2"), ("it's", "b"), ("x'::VARCHAR); --", None), ("ä", "\x00"), (None, None)])
@pytest.mark.parametrize("length", [1, 500])
def test_names_of_long_series_are_text(tmp_path, names, length):
    """Those of a long series are written as an enumeration, unless they have a character that means something in SQL."""
    table = Table("t", "", (Column("name", "VARCHAR", ""), Column("repeat", "INTEGER", "")), (Column("bin", "BIGINT", ""),))
    with duckdb.connect() as database:
        batch = Batch(database, table)
        batch.add({"name": name, "repeat": number, "bin": list(range(length))} for number, name in enumerate(names))
        batch.copy_to(tmp_path / "t.parquet", "FORMAT parquet")
        read = f"FROM '{tmp_path}/t.parquet'"
        assert database.execute(f"SELECT DISTINCT repeat, name {read} ORDER BY repeat").fetchall() == list(enumerate(names))
        assert database.execute(f"SELECT count(*), max(bin), any_value(typeof(name)) {read}").fetchone() == (2 * length, length - 1, "VARCHAR")


def test_missing_tables_are_reported_with_the_command(tmp_path):
    with pytest.raises(ResultsError, match=r"There are no tables in .*results_campaign"):
        open_tables(write_campaign(tmp_path / "new", 1, cells=1, seconds=2))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ResultsError, match="is not the folder of a campaign"):
        ingest(tmp_path / "empty")


def test_reading_that_needs_more_memory_gets_it(campaign, monkeypatch):
    """A controller with many CPUs could not report on a thousand hosts: each thread needs memory of its own."""
    limits = []

    def read(database):
        limits.append(database.execute("SELECT current_setting('memory_limit')").fetchall()[0][0])
        # Sixteen million numbers in one value: nothing of it can wait on disk.
        return database.execute("SELECT len(list(range)) FROM range(16000000)").fetchall()

    monkeypatch.setattr(views, "_LEAST_MEMORY", 32)
    assert read_tables(campaign, read) == [(16_000_000,)]
    assert len(limits) == 2 and limits[0] != limits[1]


def test_too_little_memory_is_one_sentence(campaign):
    tries = []

    def read(_database):
        tries.append(1)
        raise duckdb.OutOfMemoryException("failed to allocate data of size 32 bytes")

    with pytest.raises(ResultsError, match=r"too little free memory to read the tables in .*synthetic: read them on a machine with more\.$"):
        read_tables(campaign, read)
    assert len(tries) == 2


@pytest.mark.parametrize(("cpus", "threads"), [(1, 1), (2, 2), (96, 8)])
def test_number_of_threads_is_limited(campaign, monkeypatch, cpus, threads):
    monkeypatch.setattr(views.os, "sched_getaffinity", lambda _process: set(range(cpus)))
    query = "SELECT current_setting('threads'), current_setting('memory_limit')"
    ((found, limit),) = read_tables(campaign, lambda database: database.execute(query).fetchall())
    assert found == threads
    assert float(limit.split()[0]) == pytest.approx(128e6 * max(1, threads / 2) / 2**20, abs=1)
