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
    rules = [{"record": f"panel:{number}", "expr": one.replace("$__rate_interval", "2h")} for number, one in enumerate(expressions)]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": name, "rules": rules}]}))
    checked = subprocess.run(["promtool", "check", "rules", str(tmp_path / "rules.yml")], capture_output=True, text=True, timeout=900, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(expressions)} rules found" in checked.stdout
