# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import re

import pytest

for library in ("duckdb", "numpy"):
    pytest.importorskip(library, reason=f"needs {library}: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.snia import form, write
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.snia.form import NOT_RECORDED, Line
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.snia.form import tests_of as read_tests
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.snia.tested import read_tested
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.ingest import ingest
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.views import open_tables
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import figure, megabytes
from ansible_collections.cachefleet.storage.tests.unit.support.snia_campaign import MACHINE, TESTS, write_snia_campaign
from ansible_collections.cachefleet.storage.tests.unit.support.synthetic_campaign import write_campaign

CAMPAIGN = "2026-11-22T0600Z"
PURGE = {
    "identity": "S1", "device": "/dev/vg0/data", "method": "nvme_format", "once": f"{CAMPAIGN}/new/snia_iops", "state": "done", "started": 1_794_999_000.0,
    "finished": 1_794_999_030.0, "reads": "returns zeroes at all 258 places that were read", "message": "",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = write_snia_campaign(tmp_path_factory.mktemp("results") / CAMPAIGN, purge=PURGE, machine=MACHINE)
    ingest(made)
    write.write_form(made)
    return made


@pytest.fixture(scope="module")
def page(folder):
    with open_tables(folder) as database:
        [tested] = read_tested(database, folder)
    return form.form_of(tested, CAMPAIGN)


def section(page, beginning):
    return next(one for one in page.sections if one.title.startswith(beginning))


def fields(page, beginning):
    return dict(section(page, beginning).fields)


def cell_of(page, beginning, title, row, column):
    table = next(one for one in section(page, beginning).tables if one.title.startswith(title))
    return next(values for values in table.rows if values[0] == row)[table.heads.index(column)]


# -- figures are those of the tables


@pytest.mark.parametrize("cell", sorted(TESTS["iops"][0]))
def test_iops_matrix_has_the_averages_of_the_tables(folder, page, cell):
    rw, bs = TESTS["iops"][0][cell]
    query = (
        "SELECT avg(total) FROM (SELECT sum(iops) AS total FROM cells WHERE split_part(cell, '.round-', 1) = ? AND contains(cell, '.round-') "
        "AND CAST(split_part(cell, '.round-', 2) AS INTEGER) BETWEEN 3 AND 7 GROUP BY cell)"
    )
    with open_tables(folder) as database:
        [(average,)] = database.execute(query, [cell]).fetchall()
    column = {"randread": "100/0", "randrw": "50/50", "randwrite": "0/100"}[rw]
    shown = cell_of(page, "IOPS test", "IOPS, average", {"4k": "4 KiB", "64k": "64 KiB"}[bs], column)
    assert shown == figure(average)
    assert f"| {shown} |" in (folder / "reports/snia.md").read_text() and f"<td>{shown}</td>" in (folder / "reports/snia.html").read_text()


@pytest.mark.parametrize(("cell", "column"), [("seq-1m-randread", "100/0"), ("seq-1m-write", "0/100")])
def test_throughput_has_the_averages_of_the_tables(folder, page, cell, column):
    with open_tables(folder) as database:
        [(average,)] = database.execute("SELECT avg(bw_bytes) FROM cells WHERE starts_with(cell, ?)", [f"{cell}.round-"]).fetchall()
    assert cell_of(page, "Throughput test", "Throughput, average", "1024 KiB", column) == f"{megabytes(average)} MB/s"


def test_a_test_that_is_not_steady_is_reported_as_such(page):
    found = fields(page, "Throughput test")
    assert found["Steady state"] == "not reached after 5 rounds" and found["Measurement window"] == "rounds 1 to 5, 5 rounds"
    assert any("steady state was not reached in 5 rounds; up to 25 rounds are required" in note for note in section(page, "Deviations").notes)


def test_latency_tables_have_the_values_of_the_tables(folder, page):
    query = "SELECT avg(lat_mean_ns), max(lat_max_ns) FROM cells WHERE starts_with(cell, 'lat-4k-randwrite.round-') AND direction = 'write'"
    bins = (
        "SELECT bin_ns, sum(count) FROM histograms WHERE starts_with(cell, 'lat-4k-randwrite.round-') AND direction = 'write' GROUP BY bin_ns ORDER BY bin_ns"
    )
    with open_tables(folder) as database:
        [(mean, slowest)] = database.execute(query).fetchall()
        counts = database.execute(bins).fetchall()
    assert cell_of(page, "Latency test", "Mean latency, average", "4 KiB", "0/100") == form.latency(mean)
    assert cell_of(page, "Latency test", "Maximum", "4 KiB", "0/100") == form.latency(slowest)
    total = sum(count for _bin, count in counts)
    shown = cell_of(page, "Latency test", "99.999 %", "4 KiB", "0/100")
    assert shown == f"too few I/Os ({total:,} of 1,536,569)", "a percentile is hidden where its rank is not known"


def test_kinds_of_latency_are_not_mixed_silently(folder, page):
    assert section(page, "Latency test").notes[0].startswith("The maximum and the percentile are from submission to completion")
    with open_tables(folder) as database:
        [tested] = read_tested(database, folder)
    tested.rows = [dataclasses.replace(row, latency_kind="lat") for row in tested.rows]
    assert section(form.form_of(tested, CAMPAIGN), "Latency test").notes == ()


def test_99_999_percent_latency_of_enough_ios(folder):
    with open_tables(folder) as database:
        [tested] = read_tested(database, folder)
    tested.bins = {name: {1000: 400_000, 2000: 10} for name in tested.bins}
    latency = next(one for one in read_tests(tested) if one.what == "latency")
    found = next(one for one in latency.results if one.cell == "lat-4k-randwrite")
    assert (found.samples, found.tail) == (2_000_050, 2000), "the bins of the five rounds of the window are added"


def test_measurement_window_and_its_limits(page):
    found = fields(page, "IOPS test")
    assert found["Steady state"] == "reached after 7 rounds" and found["Measurement window"] == "rounds 3 to 7, 5 rounds"
    assert re.fullmatch(r"\d\.\d % of the average \(limit 20\.0 %\)", found["Range in the window"])
    assert re.fullmatch(r"-?\d\.\d % of the average \(limit 10\.0 %\)", found["Slope in the window"])
    rows = next(one for one in section(page, "IOPS test").tables if one.title.startswith("IOPS in each round")).rows
    assert [row[2] for row in rows] == ["no", "no", "yes", "yes", "yes", "yes", "yes"]
    assert found["Load"] == "1 thread, 16 outstanding I/Os each, 16 in total"


def test_write_saturation_by_the_minute(folder, page):
    with open_tables(folder) as database:
        rows = database.execute(
            "SELECT second // 60 AS minute, avg(iops) FROM intervals WHERE cell = 'saturation-4k' GROUP BY minute ORDER BY minute"
        ).fetchall()
    [table] = section(page, "Write saturation").tables
    assert [row[1] for row in table.rows] == [figure(iops) for _minute, iops in rows] and len(rows) == 3
    with open_tables(folder) as database:
        [(moved,)] = database.execute("SELECT sum(bw_bytes) FROM intervals WHERE cell = 'saturation-4k'").fetchall()
    assert table.rows[-1][3] == form.size(moved), "the last minute has 30 seconds"
    assert fields(page, "Write saturation")["Written"] == "68.7 GB, 1.00 x the capacity"


# -- fields


def test_device_and_host_are_what_was_recorded(page):
    device, host = fields(page, "Device under test"), fields(page, "Test host")
    assert (device["Model"], device["Firmware"]) == ("INTEL SSDSC2BB080G4", "D2010370") and device["Serial number or identity"].startswith("S1")
    assert device["Capacity"] == "68.7 GB (68,719,476,736 bytes)" and device["Active range"] == "68.7 GB, 100 % of the capacity"
    assert (host["CPU"], host["Logical CPUs"], host["Memory"]) == ("AMD EPYC 7302P", "32", "137 GB")
    assert (host["Manufacturer and model"], host["Test software"], host["Operating system kernel"]) == ("Supermicro AS-1114S", "fio-3.33", "6.1.0-28-amd64")


def test_capacity_of_a_file_is_that_of_its_drive(folder):
    with open_tables(folder) as database:
        [tested] = read_tested(database, folder)
    tested.meta = {**tested.meta, "target": {"kind": "file", "size": 2**20}}
    tested.drives = tested.drives[:1]
    page = form.form_of(tested, CAMPAIGN)
    assert fields(page, "Device under test")["Capacity"].endswith(f"({tested.drives[0].size:,} bytes)")
    assert "The target is a file, not a device." in section(page, "Deviations").notes


def test_purge_and_preconditioning(page):
    purge = fields(page, "Purge")
    assert (purge["Purge"], purge["Method"]) == ("done", "nvme_format") and purge["Read back"] == "the drive returns zeroes at all 258 places that were read"
    assert "2.00 x the capacity" in fields(page, "Preconditioning")["Workload independent"]
    assert "rounds 1 to 5" in fields(page, "Preconditioning")["Workload dependent"]


def test_deviations_are_listed(page):
    notes = " ".join(section(page, "Deviations").notes)
    assert "IOPS test (rand-4k-randwrite): " in notes and "of 56 cells are missing" in notes
    assert "less than four times the capacity" in notes
    assert "purged" not in notes and "preconditioning" not in notes


def test_what_was_not_recorded_is_said(tmp_path):
    made = write_snia_campaign(tmp_path / CAMPAIGN)
    ingest(made)
    with open_tables(made) as database:
        [tested] = read_tested(database, made)
    page = form.form_of(tested, CAMPAIGN)
    assert fields(page, "Test host")["CPU"] == fields(page, "Test host")["Memory"] == fields(page, "Purge")["Purge"] == NOT_RECORDED
    assert "It is not recorded that the device was purged for this campaign." in section(page, "Deviations").notes
    # Tables may be copied without the files.
    tested.meta, tested.job = {}, ""
    page = form.form_of(tested, CAMPAIGN)
    assert fields(page, "IOPS test")["Data pattern"] == NOT_RECORDED
    tested.drives = []
    page = form.form_of(tested, CAMPAIGN)
    assert "The capacity is not recorded, so the active range and the written amounts cannot be compared with it." in section(page, "Deviations").notes


def test_other_measurements_are_not_presented_as_tests_of_the_specification(tmp_path):
    made = write_campaign(tmp_path / CAMPAIGN, 1, campaign=CAMPAIGN)
    ingest(made)
    with open_tables(made) as database:
        tested = read_tested(database, made)
    for page in (form.form_of(one, CAMPAIGN) for one in tested):
        assert section(page, "Deviations").notes[0].startswith("No test of the specification was measured: ")
        assert "deviation" in form.summary(page)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"state": "running"}, "interrupted: it has begun and not ended"),
        ({"state": "failed", "message": "the drive is frozen"}, "failed: the drive is frozen"),
        ({"once": "another/new/snia_iops"}, "not for this campaign"),
    ],
)
def test_a_purge_that_does_not_count_is_said(folder, change, words):
    with open_tables(folder) as database:
        [tested] = read_tested(database, folder)
    tested.meta = {**tested.meta, "purge": {**PURGE, **change}}
    page = form.form_of(tested, CAMPAIGN)
    assert words in fields(page, "Purge")["Purge"]
    assert any("not recorded that the device was purged" in note for note in section(page, "Deviations").notes)


# -- files


def test_page_has_no_script_and_escapes_what_hosts_say(folder):
    with open_tables(folder) as database:
        [tested] = read_tested(database, folder)
    tested.host = "<script>alert(1)</script>"
    tested.meta = {**tested.meta, "machine": {"cpu": "<img src=x onerror=alert(1)>", "cpus": "many", "memory": -1}}
    pages = [form.form_of(tested, CAMPAIGN)]
    html = write.render(pages, CAMPAIGN)
    assert "<script" not in html
    assert "<img" not in html
    assert "default-src &#39;none&#39;; style-src &#39;sha256-" in html
    assert not re.search(r"(?<!\\)<script", write.markdown(pages, CAMPAIGN)), "Markdown escapes by a backslash"
    assert dict(pages[0].sections[2].fields)["Logical CPUs"] == NOT_RECORDED


def test_charts_mark_the_window():
    line = Line("IOPS by round", "IOPS", "round", ((1.0, 400.0), (2.0, 100.0), (3.0, 101.0)), window=(2.0, 3.0), average=100.5, limit=10.0, fit=(100.0, 101.0))
    svg = write.chart(line)
    assert all(f'class="{name}"' in svg for name in ("window", "average", "limit", "fit", "data", "point"))
    assert 'class="window"' not in write.chart(Line("t", "u", "a", ((1.0, 1.0),))) and write.chart(Line("t", "u", "a", ())) == ""


@pytest.mark.parametrize(("value", "step"), [(1, 1), (0.3, 0.5), (27.3, 50), (2100, 2500), (999, 1000), (1e-3, 1e-3)])
def test_axes_have_round_numbers(value, step):
    assert write._step(value) == pytest.approx(step)


def test_many_devices_are_limited_and_that_is_said(folder, monkeypatch):
    monkeypatch.setattr(write, "_MOST_PAGES", 0)
    write.write_form(folder)
    assert "1 further device of this campaign" in (folder / "reports/snia.md").read_text()
    monkeypatch.undo()
    files = write.write_form(folder)
    assert {name: path.rpartition("/")[2] for name, path in files.items()} == {"snia": "snia.html", "snia_markdown": "snia.md"}


def test_campaign_without_tables(tmp_path):
    with pytest.raises(ResultsError, match="There are no tables"):
        write.write_form(tmp_path)
