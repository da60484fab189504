# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is accepted from a host, and as what value, is the same with the faster parser as with that of Python."""

from __future__ import annotations

import functools
import json
import math
import random

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import output as fio_output
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import faster_json
from ansible_collections.cachefleet.storage.tests.unit.fuzz import mutations

np = pytest.importorskip("numpy")
pytest.importorskip("orjson")

META = {"state": "ok", "files": {"fio.json.gz": "0" * 64}, "cpu": {"busy": 1.5, "n": 2**53}, "notes": ["a, b: [c]", 'say "d"'], "drives": [{"sda": {}}]}
FIO = {"fio version": "fio-3.41", "jobs": [{"jobname": "a", "elapsed": 61, "read": {"total_ios": 9, "lat_ns": {"N": 9, "bins": {"1000": 9}}}}]}


def outcome(function, *arguments):
    # As text, because 1, 1.0 and True are equal.
    try:
        return repr(function(*arguments))
    except StorageError as error:
        return error.message


@pytest.mark.parametrize("seed", range(5))
def test_mutated_text_is_accepted_or_rejected_alike(seed):
    rng = random.Random(seed)
    for _input in range(400):
        text = mutations.json_text(META, rng)
        assert outcome(faster_json.loads, text) == outcome(json_text.loads, text)


@pytest.mark.parametrize("seed", range(5))
def test_mutated_output_of_fio_is_read_alike(seed):
    rng = random.Random(seed)
    for _input in range(400):
        text = "".join(rng.choice(("fio: a note\n", "", "\n")) + mutations.json_text(FIO, rng) + "\n" for _dump in range(rng.choice((1, 1, 2))))
        assert outcome(functools.partial(fio_output.parse, faster=faster_json.same_value), text) == outcome(fio_output.parse, text)


@pytest.mark.parametrize(
    "text",
    [
        "[NaN, Infinity, -Infinity, 1e999, -1E+999]",
        "[18446744073709551615, 18446744073709551616, -9223372036854775808, -9223372036854775809, 99999999999999999999]",
        f"[{'9' * 21}, {'1' * 400}.5, 0.{'3' * 40}, 1e0000000001, -0, -0.0, 5e-324, 2e-324]",
        '["\\ud800", "\\ud83d\\ude00", "\\u0000"]',
        '{"a": 1, "b": [{"c": 1, "c": 2}]}',
        '{"a": 1, "a": 1}',
        '{"a,:[": "b, {", "x\\"": "\\\\"}',
        "[" * 64 + "]" * 64,
        "[" * 65 + "]" * 65,
        '{"a":' * 50_001,
        "[" + "0," * json_text.SMALL.values + "0]",
        b"\xff",
        b"\xef\xbb\xbf{}",
        "",
        "null",
        "[0]]",
        "01",
        '"a\tb"',
    ],
)
def test_text_at_a_limit_is_accepted_or_rejected_alike(text):
    assert outcome(faster_json.loads, text) == outcome(json_text.loads, text)


@pytest.mark.parametrize("text", ["1,2.5, 3\n", "-0.0,1e5,007", "1e999", "nan", "[1]", "true,1", '"1"', "1_0", "1,,2", "", "99999999999999999999", "1 2"])
def test_numbers_are_those_of_python_or_unknown(text):
    found = faster_json.numbers(text)
    assert found is None or [float(one) for one in found] == [float(word) for word in text.split(",")]


def test_valid_numbers_are_read():
    assert faster_json.numbers("1732000000.25,0,17.125, 3") == [1732000000.25, 0, 17.125, 3]


@pytest.mark.parametrize("library", [True, False])
def test_arrays_are_written_with_null_for_what_is_no_number(library, monkeypatch):
    if not library:
        monkeypatch.setattr(faster_json, "orjson", None)
    rows = [{"a": np.array([1.5, math.nan]), "b": np.array([2**62]), "c": [2**65, None]}]
    assert json.loads(faster_json.dumps(rows)) == [{"a": [1.5, None], "b": [2**62], "c": [2**65, None]}]


def test_without_the_library_python_parses(monkeypatch):
    monkeypatch.setattr(faster_json, "orjson", None)
    assert faster_json.loads(b'{"a": [1.5]}') == {"a": [1.5]}
    assert faster_json.same_value("{}") is None
    assert faster_json.numbers("1") is None
