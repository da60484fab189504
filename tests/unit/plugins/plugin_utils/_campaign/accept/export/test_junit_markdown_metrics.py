# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judgements for pipelines, tickets and monitoring."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.export import junit, markdown, metrics
from ansible_collections.cachefleet.storage.tests.unit.support.judged import POWER, WAL, judgement

JUDGED = (
    judgement("a"),
    judgement("a", "fail", POWER, target="", value=None, low=None, high=None, reason='lost with "power" <cut> & all'),
    judgement("b", "undecided", value=9.9),
    judgement("b", "not measured", target="/dev/sdb", value=None, reason="no result came from this host"),
)
HOSTILE = judgement("x\x00|`<b>\n", "fail", target="/dev/\x1b[31m|\ufffe&\ud800", requirement=replace(WAL, name='"]]>'), reason="[a](http://b)\n# c\x07")

#: Attributes that each element must have and no others, and its children in their order, a set where one of several may be. It is what the schemas of
#: both Ant and Jenkins allow.
SCHEMA = {
    "testsuites": ("", ["testsuite"]),
    "testsuite": ("name package id timestamp hostname tests failures errors skipped time", ["properties", "testcase", "system-out", "system-err"]),
    "properties": ("", []),
    "testcase": ("name classname time", [{"skipped", "error", "failure"}]),
    "failure": ("type message", []),
    "error": ("type message", []),
    "system-out": ("", []),
    "system-err": ("", []),
}


def require_valid(element):
    attributes, children = SCHEMA[element.tag]
    assert set(element.keys()) == set(attributes.split()), element.tag
    places = {name: place for place, names in enumerate(children) for name in ([names] if isinstance(names, str) else names)}
    found = [places[child.tag] for child in element]
    assert found == sorted(found)
    assert all(found.count(places[child.tag]) == 1 for child in element if child.tag not in ("testsuite", "testcase"))
    if element.tag == "testsuite":
        assert {"properties", "system-out", "system-err"} <= {child.tag for child in element} and element.get("hostname")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", element.get("timestamp"))
        counts = {name: len(element.findall(f"testcase/{tag}")) for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))}
        counts["tests"] = len(element.findall("testcase"))
        assert {name: int(element.get(name)) for name in counts} == counts
    for child in element:
        require_valid(child)


def test_junit_has_a_suite_for_each_host():
    root = ElementTree.fromstring(junit.text(JUDGED, "2026-11-29T12:00:00Z"))
    require_valid(root)
    assert [(suite.get("name"), suite.get("timestamp"), suite.get("id")) for suite in root] == [
        ("a", "2026-11-29T12:00:00", "0"),
        ("b", "2026-11-29T12:00:00", "1"),
    ]
    found = [(case.get("classname"), case.get("name"), [(one.tag, one.get("type")) for one in case]) for case in root.iter("testcase")]
    assert found == [
        ("a./dev/sda", "wal_fsync", []),
        ("a.host", "power", [("failure", "fail")]),
        ("b./dev/sda", "wal_fsync", [("error", "undecided")]),
        ("b./dev/sdb", "wal_fsync", [("error", "not measured")]),
    ]
    (failure,) = root.iter("failure")
    assert failure.get("message") == 'lost with "power" <cut> & all' and failure.text == "Limit from: own, 2026"
    assert root[0].find("system-out").text == "/dev/sda wal_fsync: p99 of 5 ms, limit 10 ms"


@pytest.mark.parametrize("judged", [(), (HOSTILE,), (judgement(""),)])
def test_junit_is_valid_whatever_hosts_report(judged):
    text = junit.text(judged)
    root = ElementTree.fromstring(text)
    require_valid(root)
    assert len(root) == len(judged) and re.fullmatch(r"[\n\x20-\ud7ff]*", text)


def test_markdown_has_classes_and_what_did_not_pass():
    lines = markdown.text(JUDGED, {"a": "R650", "b": "R650"}, {("b", "/dev/sdb"): "S7"}).splitlines()
    assert lines[:3] == ["# Acceptance", "", "2 hosts: 0 pass, 0 undecided, 1 not measured, 1 fail."]
    assert lines[4].split(" | ") == ["| class", "hosts", "pass", "undecided", "not measured", "fail |"]
    assert lines[6] == "| R650 | 2 | 0 | 0 | 1 | 1 |"
    assert [line.split(" | ")[:5] for line in lines if r"\_fsync" in line or "power" in line] == [
        ["| fail", "a", "host", "-", "power"],
        ["| not measured", "b", "/dev/sdb", "S7", r"wal\_fsync"],
        ["| undecided", "b", "/dev/sda", "-", r"wal\_fsync"],
    ]
    assert lines[-1] == "1 requirement passed."


def test_markdown_has_hosts_that_are_not_like_their_class_first():
    states = {"a1": "fail", "a2": "fail", "b1": "pass", "b2": "pass", "b3": "fail"}
    text = markdown.text([judgement(host, state) for host, state in states.items()], {host: host[0] for host in states})
    assert re.findall(r"^\| fail \| (..) ", text, re.MULTILINE) == ["b3", "a1", "a2"]
    assert re.findall(r"^\| (.) \| (\d) ", text, re.MULTILINE) == [("b", "3"), ("a", "2")]


def test_markdown_escapes_what_hosts_report():
    text = markdown.text([HOSTILE], {})
    assert "not known" in text and "<b>" not in text and "http://" not in text and text.count("\n#") == 1
    assert text.replace("\n", "").isprintable()


def test_markdown_of_nothing_and_of_passes_is_short():
    assert markdown.text([], {}).splitlines()[2] == "0 hosts: 0 pass, 0 undecided, 0 not measured, 0 fail."
    assert "Not passed" not in markdown.text([judgement()], {})


def samples(text):
    """Values by the values of the labels."""
    return {tuple(re.findall(r'"((?:[^"\\]|\\.)*)"', line)): float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if not line.startswith("#")}


def test_metrics_count_devices_by_state():
    text = metrics.text([*JUDGED, judgement("a", "pass", target="/dev/sdb", value=8.0)], "run1")
    found = samples(text)
    assert found["run1", "a", "wal_fsync", "pass"] == 2 and found["run1", "a", "wal_fsync", "fail"] == 0 and found["run1", "a", "power", "fail"] == 1
    assert found["run1", "a", "wal_fsync"] == 1.25 and ("run1", "a", "power") not in found
    assert text.endswith("# EOF\n") and "/dev/" not in text


@pytest.mark.parametrize(
    ("at_least", "value", "limit", "expected"),
    [(True, 80.0, 100.0, 0.8), (False, 80.0, 100.0, 1.25), (True, 0.0, 1.0, None), (False, None, 1.0, None), (True, 1e300, 1e-300, None)],
)
def test_margin_is_1_at_the_limit(at_least, value, limit, expected):
    found = samples(metrics.text([judgement(value=value, requirement=replace(WAL, at_least=at_least, limit=limit))], "c"))
    assert found.get(("c", "node1", "wal_fsync")) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("judged", [(), JUDGED, (HOSTILE,)])
def test_metrics_are_read_by_the_parser_of_openmetrics(judged):
    parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="prometheus_client (requirements-dev.txt) is not installed")
    families = {one.name: one.type for one in parser.text_string_to_metric_families(metrics.text(judged, "c"))}
    assert families == {"cachefleet_accept_judgements": "gauge", "cachefleet_accept_margin_ratio": "gauge"}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool (Debian package prometheus) is not installed")
def test_metrics_pass_promtool():
    text = metrics.text([*JUDGED, HOSTILE], "c")
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=120, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
