# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The surveys ask for variables that there are, with answers that these take."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._variable_names import RoleVariables

TOP = Path(__file__).resolve().parents[3]
SURVEYS = sorted((TOP / "contrib/awx").glob("*.json"))
QUESTIONS = [pytest.param(question, id=f"{path.stem}-{question['variable']}") for path in SURVEYS for question in json.loads(path.read_text())["spec"]]
SUITES = {path.stem for path in (TOP / "roles/fio_benchmark/files/suites").glob("*.yml")}


def test_there_is_a_survey_for_what_a_team_runs():
    assert {path.stem for path in SURVEYS} == {"benchmark", "health", "site"}


@pytest.mark.parametrize("question", QUESTIONS)
def test_question_is_complete_and_its_answers_are_taken(question):
    variables, name = RoleVariables(), question["variable"]
    assert variables.unknown([name]) == [] and variables.nearest(name) == name
    assert set(question) == {"question_name", "question_description", "required", "type", "variable", "default", "choices", "new_question", "min", "max"}
    # An empty answer is a text, which only a variable that is a text takes: others have a default.
    if question["type"] == "integer":
        assert isinstance(question["default"], int) and question["min"] <= question["default"] <= question["max"]
    choices = question["choices"] or [question["default"]]
    assert question["default"] in choices
    if name == "fio_benchmark_suite":
        assert set(choices) <= SUITES
    assert [error for answer in choices for error in variables.type_errors({name: answer})] == []
