# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter says what is wrong in a sentence, as a filter's error."""

from __future__ import annotations

import pathlib

import pytest
import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.cachefleet.storage.plugins.filter.fio_cells import FilterModule

SUITES = {"one": {"cells": [{"name": "a", "job": {"rw": "read", "runtime": 10}}]}}
DISK = {"device": "/dev/x"}
fio_cells = FilterModule().filters()["fio_cells"]


def test_cells_and_their_time():
    cell = {"name": "a", "repeat": 1, "target": DISK, "job": {"rw": "read", "runtime": 5, "time_based": 1}}
    result = fio_cells([DISK], "one", SUITES, runtime="5", repeats=2)
    assert result == {"cells": [cell, {**cell, "repeat": 2}], "seconds": 10, "limit": 375}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("/dev/x", "one", SUITES), "targets must be a list"),
        (({"device": "/dev/x"}, "one", SUITES), "targets must be a list"),
        (([DISK], "one", []), "suites must be a dictionary"),
        (([DISK], "two", SUITES), "no suite named 'two'"),
        (([DISK], "one", SUITES, "soon"), "must be whole numbers"),
    ],
)
def test_errors_are_sentences(arguments, sentence):
    with pytest.raises(AnsibleFilterError, match=sentence):
        fio_cells(*arguments)


def test_the_documentation_names_the_same_options():
    path = pathlib.Path(__file__).resolve().parents[4] / "plugins" / "filter" / "fio_cells.yml"
    options = yaml.safe_load(path.read_text())["DOCUMENTATION"]["options"]
    assert list(options) == ["_input", "suite", "suites", "runtime", "repeats"]
