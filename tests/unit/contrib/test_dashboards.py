# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dashboards are what Grafana imports, as far as this can be checked without it, and every query uses metrics that there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.export import openmetrics
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.ingest import ingest
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.views import open_tables
from ansible_collections.cachefleet.storage.tests.unit.support.all_metrics import everything, labels_of
from ansible_collections.cachefleet.storage.tests.unit.support.promql import problems_of
from ansible_collections.cachefleet.storage.tests.unit.support.synthetic_campaign import write_campaign

FOLDER = Path(__file__).resolve().parents[3] / "contrib/grafana"
NAMES = ("health", "results")
#: Panels that come with Grafana; no other plugin is needed.
PANELS = {"bargauge", "heatmap", "row", "stat", "table", "timeseries"}


def load(name):
    return json.loads((FOLDER / f"{name}.json").read_text())


def queries(dashboard):
    """Every expression in a dashboard: those of its panels and of its variables."""
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]


def at_default(dashboard, expression):
    """An expression with the values that the variables of a dashboard have at first, as Grafana puts them in."""
    for variable in dashboard["templating"]["list"]:
        value = variable.get("allValue") or variable["current"].get("value")
        if isinstance(value, str):
            expression = expression.replace(f"${variable['name']}", value)
    return expression


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    """The labels of every series, by the dashboard that shows it."""
    folder = write_campaign(tmp_path_factory.mktemp("results") / "synthetic", 1, cells=2, seconds=1)
    ingest(folder, workers=1)
    database = open_tables(folder)
    exported = "".join(openmetrics.lines(database))
    database.close()
    return {"health": labels_of(everything()), "results": labels_of(exported)}


@pytest.mark.parametrize("name", NAMES)
def test_every_query_uses_existing_metrics_and_labels(name, series):
    found = list(queries(load(name)))
    assert len(found) > 8
    assert [problem for query in found for problem in problems_of(re.sub(r"^label_values\((.*), (\w+)\)$", r"sum by (\2) (\1)", query), series[name])] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_metric_is_shown_or_has_a_reason_not_to_be(name, series):
    shown = set(re.findall(r"cachefleet_\w+", " ".join(queries(load(name)))))
    # Details of what is shown, which alerts or own dashboards use.
    details = {
        "cachefleet_cache_used_bytes",
        "cachefleet_cache_writes_total",
        "cachefleet_controller_writeback_volumes",
        "cachefleet_drive_passed",
        "cachefleet_drive_power_on_seconds_total",
        "cachefleet_drive_reserved_bytes",
        "cachefleet_drive_spare_ratio",
        "cachefleet_drive_unsafe_shutdowns_total",
    }
    missing = {one for one in series[name] if one not in shown and one not in details and not one.startswith("cachefleet_zfs_")}
    assert missing == set()
    assert details & shown == set()


@pytest.mark.parametrize("name", NAMES)
def test_structure_is_that_of_a_dashboard(name):
    dashboard = load(name)
    assert dashboard["uid"] == f"cachefleet-{name}" and dashboard["title"] and dashboard["description"]
    assert dashboard["schemaVersion"] >= 39
    # An identifier of the server on which it was made would make the import fail.
    assert "id" not in dashboard
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["type"] in PANELS and panel["title"]
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24 and place["h"] > 0
        if panel["type"] != "row":
            assert panel["targets"] and panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])


@pytest.mark.parametrize("name", NAMES)
def test_panels_do_not_overlap(name):
    taken = set()
    for panel in load(name)["panels"]:
        place = panel["gridPos"]
        cells = {(column, line) for column in range(place["x"], place["x"] + place["w"]) for line in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.parametrize("name", NAMES)
def test_every_variable_is_defined_and_used(name):
    dashboard = load(name)
    defined = {variable["name"] for variable in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps([dashboard["panels"], dashboard["templating"]])))
    assert used == defined


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool (Debian package prometheus) is not installed")
def test_expressions_are_accepted_by_promtool(name, tmp_path):
    expressions = [target["expr"] for panel in load(name)["panels"] for target in panel.get("targets", ())]
    rules = [{"record": f"panel:{number}", "expr": at_default(load(name), one)} for number, one in enumerate(expressions)]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": name, "rules": rules}]}))
    checked = subprocess.run(["promtool", "check", "rules", str(tmp_path / "rules.yml")], capture_output=True, text=True, timeout=900, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(expressions)} rules found" in checked.stdout


def shown_by(metric):
    """The expressions of the health dashboard that have a metric."""
    dashboard = load("health")
    return [at_default(dashboard, one) for one in queries(dashboard) if re.search(rf"\b{metric}\b", one)]


def steps(rate, *minutes):
    """A counter that a file shows: read every minute, and written at these minutes."""
    return " ".join(f"{rate * 60 * begin}+0x{end - begin - 1}" for begin, end in zip(minutes, minutes[1:], strict=False))


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool (Debian package prometheus) is not installed")
def test_rates_and_ratios_of_a_file_that_is_written_hourly_are_true_at_any_time(tmp_path):
    """1 MB/s is 1 MB/s, 3 of 4 reads are hits, and a host without reads has no ratio. The timer has a random delay of five minutes."""
    runs = (0, 61, 125, 180, 244, 300, 365, 420, 484)
    host = '{job="node",instance="a"'
    series = {
        f"cachefleet_health_last_run_timestamp_seconds{host}}}": steps(1, *runs),
        f'cachefleet_drive_written_bytes_total{host},device="sda"}}': steps(1_000_000, *runs),
        f'cachefleet_zfs_zil_written_bytes_total{host},pool="tank"}}': steps(1_000_000, *runs),
        **{
            f'{metric}{host},{more}result="{result}"}}': steps(reads, *runs)
            for metric, more in {"cachefleet_cache_reads_total": 'cache="c",type="bcache",', "cachefleet_zfs_arc_lookups_total": ""}.items()
            for result, reads in {"hit": 3, "miss": 1}.items()
        },
        **{f'cachefleet_zfs_l2arc_lookups_total{host},result="{result}"}}': steps(0, *runs) for result in ("hit", "miss")},
    }
    expected = {
        "cachefleet_drive_written_bytes_total": [('{job="node",instance="a",device="sda"}', 1_000_000)],
        "cachefleet_zfs_zil_written_bytes_total": [('{job="node",instance="a",pool="tank"}', 1_000_000)],
        "cachefleet_cache_reads_total": [('{instance="a",cache="c",type="bcache"}', 75)],
        "cachefleet_zfs_arc_lookups_total": [('{instance="a"}', 75)],
        "cachefleet_zfs_l2arc_lookups_total": [],
    }
    checks = [
        {
            # Rounded: the arithmetic of promtool is in binary.
            "expr": f"round({'100 * ' if values and values[0][1] == 75 else ''}({expression}))",
            "eval_time": f"{minute}m",
            "exp_samples": [{"labels": labels, "value": value} for labels, value in values],
        }
        for metric, values in expected.items()
        for expression in shown_by(metric)
        # Just before a file is written, just after, and in between.
        for minute in (243, 245, 270, 299, 301, 400)
    ]
    assert len(checks) == 6 * len(expected)
    test = {"interval": "1m", "input_series": [{"series": name, "values": values} for name, values in series.items()], "promql_expr_test": checks}
    (tmp_path / "test.yml").write_text(yaml.safe_dump({"rule_files": [], "evaluation_interval": "1m", "tests": [test]}))
    tested = subprocess.run(["promtool", "test", "rules", "test.yml"], cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False)
    assert tested.returncode == 0, tested.stdout + tested.stderr
