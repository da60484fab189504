# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A campaign as a file for other systems."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.histogram import bin_index
from ansible_collections.cachefleet.storage.plugins.modules.results import argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.export import influx, ndjson, openmetrics
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.export.files import export
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.ingest import ingest
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.views import open_tables
from ansible_collections.cachefleet.storage.tests.unit.support.synthetic_campaign import write_campaign

_SAMPLE = re.compile(r'([a-z_]+)\{((?:[a-z_]+="(?:[^"\\\n]|\\.)*",?)+)\} (\S+)')


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """48 cells and two repeats of the first of them; one cell failed."""
    made = write_campaign(tmp_path_factory.mktemp("results") / "synthetic", 1, cells=50, seconds=3)
    place = made / "host0000/writeback/write-1m-qd16/1"
    meta = json.loads((place / "meta.json").read_text())
    (place / "meta.json").write_text(json.dumps({**meta, "state": "failed", "summary": None, "reason": 'no "device"\\'}))
    ingest(made, workers=1)
    return made


@pytest.fixture
def database(folder):
    opened = open_tables(folder)
    yield opened
    opened.close()


def test_ndjson_has_every_row_and_no_null(database, tmp_path):
    changed, lines = export(database, "ndjson", tmp_path / "out", ["cells", "intervals", "stacks"])
    rows = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert changed and len(rows) == lines
    counts = {table: database.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0] for table in ("cells", "intervals", "stacks")}
    assert {table: sum(row["table"] == table for row in rows) for table in counts} == counts
    assert all(value is not None for row in rows for value in row.values())
    (failed,) = [row for row in rows if row.get("state") == "failed"]
    assert failed["reason"] == 'no "device"\\' and "iops" not in failed and "direction" not in failed


def test_module_exports_every_table():
    assert sorted(argument_spec()["export_tables"]["choices"]) == sorted(ndjson.COLUMNS)


def test_unchanged_export_is_no_change(database, tmp_path):
    assert export(database, "openmetrics", tmp_path / "out")[0] is True
    before = (tmp_path / "out").stat()
    assert export(database, "openmetrics", tmp_path / "out")[0] is False
    assert (tmp_path / "out").stat().st_mtime_ns == before.st_mtime_ns
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert before.st_mode & 0o777 == 0o644


def test_openmetrics_format(database, folder, tmp_path):
    export(database, "openmetrics", tmp_path / "out")
    text = (tmp_path / "out").read_text()
    assert text.endswith("# EOF\n") and text.count("# EOF") == 1
    families, samples, name = [], {}, ""
    for line in text.splitlines()[:-1]:
        if line.startswith("# TYPE"):
            name = line.split()[2]
            assert name not in families
            families.append(name)
        elif line.startswith("# UNIT"):
            assert name.endswith("_" + line.split()[3])
        elif not line.startswith("#"):
            match = _SAMPLE.fullmatch(line)
            assert match and match[1].removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") == name, line
            assert (match[1], match[2]) not in samples
            samples[match[1], match[2]] = float(match[3])
    labels = 'campaign="synthetic",host="host0000",variant="writethrough",cell="randread-4k-qd1",direction="read"'
    repeats = [json.loads((folder / "host0000/writethrough/randread-4k-qd1" / repeat / "meta.json").read_text())["summary"]["read"] for repeat in "12"]
    assert samples["cachefleet_fio_ios_per_second", labels] == pytest.approx(sum(one["iops"] for one in repeats) / 2)
    assert not [key for key in samples if "quantile=" in key[1]]
    states = {key: value for key, value in samples.items() if key[0] == "cachefleet_campaign_cells"}
    assert sum(states.values()) == 50
    assert states["cachefleet_campaign_cells", 'campaign="synthetic",host="host0000",variant="writeback",state="failed"'] == 1
    assert not re.search(r"S000000sd|/dev/", text)


def test_openmetrics_file_is_read_by_the_parser_of_openmetrics(database, tmp_path):
    parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="prometheus_client (requirements-dev.txt) is not installed")
    export(database, "openmetrics", tmp_path / "out")
    families = {family.name: family for family in parser.text_string_to_metric_families((tmp_path / "out").read_text())}
    assert {name: family.type for name, family in families.items()} == {
        "cachefleet_fio_ios_per_second": "gauge",
        "cachefleet_fio_bandwidth_bytes_per_second": "gauge",
        "cachefleet_fio_latency_mean_seconds": "gauge",
        "cachefleet_fio_latency_seconds": "histogram",
        "cachefleet_fio_cell_info": "gauge",
        "cachefleet_campaign_cells": "gauge",
    }
    info = [sample for sample in families["cachefleet_fio_cell_info"].samples if sample.labels["cell"] == "randread-4k-qd1"]
    assert info and all(sample.value == 1 and sample.labels["fio_version"] and sample.labels["verdict"] in ("durable", "at_risk", "unknown") for sample in info)


def test_openmetrics_histogram_has_the_bins_of_all_repeats(database, tmp_path):
    export(database, "openmetrics", tmp_path / "out")
    where = {"variant": "writethrough", "cell": "randread-4k-qd1", "direction": "read"}
    bins = database.execute(
        "SELECT bin_ns, sum(count) FROM histograms WHERE variant = $variant AND cell = $cell AND direction = $direction GROUP BY ALL", where
    ).fetchall()
    assert len(bins) > 1
    label = r'cachefleet_fio_latency_seconds_(\w+)\{campaign="synthetic",host="host0000",' + ",".join(f'{name}="{value}"' for name, value in where.items())
    found = re.findall(label + r'(?:,le="([^"]+)")?\} (\S+)', (tmp_path / "out").read_text())
    buckets = {float(bound): int(count) for kind, bound, count in found if kind == "bucket"}
    assert len(buckets) == 52 and list(buckets) == sorted(buckets)
    assert buckets == {bound: sum(count for midpoint, count in bins if midpoint < bound * 1e9) for bound in buckets}
    total = sum(count for _midpoint, count in bins)
    assert [(kind, float(value)) for kind, bound, value in found if not bound] == [
        ("sum", pytest.approx(sum(midpoint * count for midpoint, count in bins) / 1e9)),
        ("count", total),
    ]
    assert buckets[float("inf")] == total


def test_bounds_of_the_histogram_are_edges_of_fios_bins():
    for bound in openmetrics._BOUNDS:
        # The bin of a bound begins at it: what is below it is in lower bins.
        assert bin_index(bound - 1) == bin_index(bound) - 1, bound


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool (Debian package prometheus) is not installed")
def test_openmetrics_file_passes_promtool(database, tmp_path):
    export(database, "openmetrics", tmp_path / "out")
    checked = subprocess.run(["promtool", "check", "metrics"], input=(tmp_path / "out").read_text(), capture_output=True, text=True, timeout=120, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_influx_format(database, folder, tmp_path):
    export(database, "influx", tmp_path / "out")
    lines = (tmp_path / "out").read_text().splitlines()
    pattern = re.compile(r"fio_(cell|interval)((?:,[a-z]+=[^, ]+){6}) ([a-z0-9_]+=[0-9.e+-]+i?(?:,[a-z0-9_]+=[0-9.e+-]+i?)*) ([0-9]{19})")
    assert all(pattern.fullmatch(line) for line in lines)
    meta = json.loads((folder / "host0000/writethrough/randread-4k-qd1/1/meta.json").read_text())
    tags = "campaign=synthetic,host=host0000,variant=writethrough,cell=randread-4k-qd1,repeat=1,direction=read"
    points = [pattern.fullmatch(line) for line in lines if line.startswith(f"fio_interval,{tags} ")]
    # The clock of the host is 4 ms ahead of that of the controller.
    assert [int(point[4]) for point in points] == [round((meta["io_start"] - 0.004 + second) * 1000) * 10**6 for second in (1, 2, 3)]
    (cell,) = [line for line in lines if line.startswith(f"fio_cell,{tags} ")]
    assert f" iops={meta['summary']['read']['iops']!r}," in cell


def test_influx_tags_are_escaped():
    row = ("a b", "h,1", "v=2", "c\\", 1, "read", 1.5, 10.0, None, None, None, None, None, None)
    assert list(influx._point("fio_cell", row, influx._CELL_FIELDS)) == [
        "fio_cell,campaign=a\\ b,host=h\\,1,variant=v\\=2,cell=c/,repeat=1,direction=read iops=10.0 1500000000\n"
    ]


def test_invalid_exports_are_rejected(database, tmp_path):
    with pytest.raises(BadInput, match="'xls' is not a format of an export"):
        export(database, "xls", tmp_path / "out")
    with pytest.raises(BadInput, match="'rows' is not a table"):
        export(database, "ndjson", tmp_path / "out", ["rows"])
    with pytest.raises(ResultsError, match=r"cannot be written \(No such file or directory\)"):
        export(database, "ndjson", tmp_path / "nowhere" / "out")


def test_exported_campaign_keeps_valid_hashes(folder):
    meta = json.loads((folder / "host0000/writethrough/randread-4k-qd1/1/meta.json").read_text())
    place = folder / "host0000/writethrough/randread-4k-qd1/1"
    assert all(hashlib.sha256((place / name).read_bytes()).hexdigest() == message for name, message in meta["files"].items())
