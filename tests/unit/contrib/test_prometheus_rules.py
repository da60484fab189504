# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The alert rules use metrics that there are, each of them has a test, and the tests pass in Prometheus' own tool."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import SEVERITIES
from ansible_collections.cachefleet.storage.tests.unit.support.all_metrics import everything, labels_of
from ansible_collections.cachefleet.storage.tests.unit.support.promql import problems_of

FOLDER = Path(__file__).resolve().parents[3] / "contrib/prometheus"
RULES = {rule["alert"]: rule for group in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"] for rule in group["rules"]}
TESTS = {test["name"]: test for test in yaml.safe_load((FOLDER / "alerts_test.yml").read_text())["tests"]}
SERIES = labels_of(everything())

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool (Debian package prometheus) is not installed")


@pytest.mark.parametrize("alert", RULES)
def test_rule_uses_existing_metrics_and_labels(alert):
    assert problems_of(RULES[alert]["expr"], SERIES) == []
    assert RULES[alert]["labels"]["severity"] in SEVERITIES
    assert set(RULES[alert]["annotations"]) == {"summary", "description"}


def test_metrics_and_labels_that_do_not_exist_are_found():
    assert problems_of("cachefleet_drive_wear_percent > 80", SERIES) == ["cachefleet_drive_wear_percent is not a metric"]
    assert problems_of('cachefleet_cache_info{model="x"} == 1', SERIES) == ["cachefleet_cache_info has no label model"]
    assert problems_of("sum by (serial) (cachefleet_cache_info)", SERIES) == ["no metric here has the label serial"]


@pytest.mark.parametrize("alert", RULES)
def test_every_alert_has_series_that_fire_it_and_series_that_do_not(alert):
    test = TESTS[alert]
    (case,) = test["alert_rule_test"]
    assert case["alertname"] == alert
    fired = len(case["exp_alerts"])
    assert 0 < fired < len(test["input_series"])
    assert not [problem for one in test["input_series"] for problem in problems_of(one["series"], SERIES)]


def test_no_test_is_left_without_its_alert():
    assert set(TESTS) == set(RULES)


@needs_promtool
def test_rules_pass_their_test_in_promtool():
    tested = subprocess.run(["promtool", "test", "rules", "alerts_test.yml"], cwd=FOLDER, capture_output=True, text=True, timeout=900, check=False)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "SUCCESS" in tested.stdout


@needs_promtool
def test_broken_rule_fails_its_test(tmp_path):
    shutil.copytree(FOLDER, tmp_path / "rules")
    text = (tmp_path / "rules/alerts.yml").read_text()
    (tmp_path / "rules/alerts.yml").write_text(re.sub(r"wear_used_ratio >= 0\.8", "wear_used_ratio >= 0.9", text))
    tested = subprocess.run(["promtool", "test", "rules", "alerts_test.yml"], cwd=tmp_path / "rules", capture_output=True, text=True, timeout=900, check=False)
    assert tested.returncode != 0
    assert "CachefleetWearNearEnd" in tested.stdout + tested.stderr
