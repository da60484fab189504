# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a trace."""

from __future__ import annotations

import csv
import dataclasses
import html
import json
import re
import typing as t

import numpy as np
import pytest
import yaml

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.suites import read_suite
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace import analysis
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.page import page
from ansible_collections.cachefleet.storage.tests.unit.support.recorded_loads import LOADS, recorded

HOSTILE = "</script><script>alert(1)</script>{{ 7*7 }}[x](javascript:1)"


@pytest.fixture(scope="module")
def found() -> analysis.Analysis:
    trace = LOADS["mixed sizes"](6000)
    minutes = [{"minute": minute, "read": [50 * minute, 0], "busiest": 40} for minute in range(10)]
    raw = {**trace.devices[0].raw, "latency": {"read": {"1000": 5}}, "minutes": minutes}
    device = dataclasses.replace(trace.devices[0], name=f"/dev/{HOSTILE}", raw=raw)
    return analysis.analyse(dataclasses.replace(trace, name=HOSTILE, host=HOSTILE, devices=(device,)), [4 << 20, 8 << 20, 16 << 20])


def charts_of(text: str) -> dict[str, t.Any]:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])["charts"]


def test_the_page_has_what_it_names_and_nothing_of_a_host_is_markup(found: analysis.Analysis) -> None:
    text = page.render(found)
    assert "<script>alert" not in text and html.escape(HOSTILE) in text
    assert set(charts_of(text)) == set(re.findall(r'data-chart="([^"]+)"', text)) == {"curves", "rates-0", "working-set-0"}
    assert "http://" not in re.sub(r"<script>.*?</script>|<style>.*?</style>", "", text, flags=re.DOTALL)
    for name in re.findall(r'href="#(\w+)"', text):
        assert f'id="{name}"' in text
    plain = html.unescape(re.sub(r"<[^>]+>", "", text))
    assert found.recommendation.sentence in plain and found.fitted[0].sentence in plain


def test_titles_are_true_of_their_charts(found: analysis.Analysis) -> None:
    charts = {one.name: one for charts in page.charts(found).values() for one in charts}
    lines = {one["name"]: max(one["y"]) for one in charts["curves"].data}
    name = charts["curves"].title.rpartition(" with ")[2]
    assert lines[name] == max(lines.values()) and f"{round(lines[name])} % of the requests" in charts["curves"].title
    assert "40 in the busiest second" in charts["rates-0"].title
    (reads,) = charts["rates-0"].data
    assert (reads["name"], reads["y"][3]) == ("read", 2.5)
    assert charts["working-set-0"].data[1]["y"][-1] == pytest.approx(found.contents.devices[0].working_set[-1].cumulative / 1e9, rel=1e-3)


def test_each_of_several_devices_has_its_own_curve(found: analysis.Analysis) -> None:
    assert not found.of_devices and "all together" not in page.markdown(found)
    # One rereads 1 MiB, and the other never comes back.
    trace = recorded(np.where(np.arange(4000) % 2, np.arange(4000) * 4096, np.arange(4000) % 256 * 8), 8, 0)
    trace.requests["device"] = np.arange(4000) % 2
    both = dataclasses.replace(trace, devices=tuple(dataclasses.replace(trace.devices[0], name=name) for name in ("/dev/hot", "/dev/cold")))
    made = analysis.analyse(both, [4 << 20])
    hits = {name: points[0].hits for name, points in made.of_devices.items()}
    assert hits["/dev/hot"] > 0.9 and hits["/dev/cold"] == 0 and made.points[0].hits == pytest.approx(hits["/dev/hot"] / 2, abs=0.01)
    assert [one.title.partition(":")[0] for one in page.charts(made)["curves"][1:]] == ["/dev/hot alone", "/dev/cold alone"]
    assert {"curves", "curves-0", "curves-1"} <= set(charts_of(page.render(made)))
    assert [row["device"] for row in csv.DictReader(page.csv_text(made).splitlines()) if row["type"] == "lru"] == ["", "/dev/hot", "/dev/cold"]
    assert "| all together |" in page.markdown(made) and "| /dev/hot |" in page.markdown(made)
    only = dataclasses.replace(both, requests=trace.requests[::2])
    assert list(analysis.analyse(only, [4 << 20]).of_devices) == ["/dev/hot"], "of a device without requests there is none"


def test_a_long_recording_has_a_point_for_several_minutes() -> None:
    minutes = [{"minute": minute, "write": [60, 0]} for minute in range(2880)]
    made = analysis.analyse(recorded(np.arange(2880) * 8, 8, 1, minutes=minutes, seconds=172_800), [1 << 20])
    (writes,) = page.charts(made)["time"][0].data
    assert len(writes["x"]) == 720 and set(writes["y"]) == {1} and writes["x"][:2] == [0, 4]


def test_markdown_has_the_same_as_text(found: analysis.Analysis) -> None:
    text = page.markdown(found)
    assert [f"## {title}" for _name, title in page.SECTIONS] == re.findall(r"^## .*", text, flags=re.MULTILINE)
    text = re.sub(r"```yaml\n.*?\n```\n", "", text, flags=re.DOTALL)
    assert "<script>" not in text and "](javascript" not in text.replace("\\]", "")
    assert len(re.findall(r"^\| .* KiB \|", text, flags=re.MULTILINE)) == len(found.points)


def test_files_can_be_read_again(found: analysis.Analysis) -> None:
    made = {name: make() for name, make in page.makers(found, "monday").items()}
    assert set(made) >= {"report.html", "report.md", "report.json", "curves.csv", "fitted_suite.yml"}
    points = list(csv.DictReader(made["curves.csv"].splitlines()))
    assert len(points) == len(found.points) and float(points[0]["hits"]) == found.points[0].hits
    read = json.loads(made["report.json"])
    assert read["contents"]["devices"][0]["latency"]["read"]["50.0"] == 1000 and read["recommendation"]["sentence"] == found.recommendation.sentence
    variables = yaml.safe_load(made["fitted_suite.yml"])
    (cell,) = read_suite(variables["fio_benchmark_suite"], variables["fio_benchmark_suites"]).cells
    assert (cell.name, cell.decides, cell.repeats) == (found.fitted[0].name, ("latency", "p99"), 4)


def test_the_recommended_cache_is_an_entry_that_is_not_evaluated(found: analysis.Analysis) -> None:
    entry = {"name": HOSTILE, "type": "some_type", "mode": "writeback"}
    made = dataclasses.replace(found, recommendation=dataclasses.replace(found.recommendation, entry=entry))
    text = page.makers(made, "monday")["recommended_cache.yml"]()
    assert f"name: !unsafe '{HOSTILE}'" in text and page.entry_text(made) in text and html.escape(page.entry_text(made).splitlines()[2]) in page.render(made)
    none = dataclasses.replace(found, fitted=(), recommendation=dataclasses.replace(found.recommendation, entry={}))
    assert not {"recommended_cache.yml", "fitted_suite.yml"} & set(page.makers(none, "monday"))
    assert "<pre>" not in page.render(none)
