# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON of an untrusted source: limits hold before it is parsed, and every value can be computed with and written."""

from __future__ import annotations

import json

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.json_text import FIO, SMALL, check, loads


@pytest.mark.parametrize("value", [{}, {"a": [1, 2.5, None, True, 'x,[{\\"}']}, [[]], "text", 0, {"deep": [[[[]]]]}, {'quo"te\\': "\\\\", "b": '"'}])
def test_json_is_parsed_like_the_standard_library(value):
    assert loads(json.dumps(value)) == loads(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 65 + "]" * 65, "nested deeper than 64 levels"),
        ('{"a":' * 50_001, "more than 50,000 arrays"),
        ("[" + "0," * SMALL.values + "0]", "more than 200,000 values"),
        ("[" + "{}," * 60_000 + "0]", "more than 50,000 arrays and objects"),
        ('"' * 900_000, "more than 200,000 values"),
        (" " * (SMALL.size + 1), "larger than 4 MiB"),
        (b"\xff\xfe{\x00}\x00", "not UTF-8"),
        ("", "not JSON"),
        ('{"a": 1, "a": 2}', "not JSON"),
        ("[0]]", "not JSON"),
        ("]" * 100 + "[" * 100, "not JSON|nested deeper"),
        ('"\\', "not JSON"),
    ],
)
def test_text_exceeding_a_limit_is_rejected(text, why):
    with pytest.raises(NotUnderstood, match=why):
        loads(text)


@pytest.mark.parametrize("text", ['["' + "[" * 1000 + '"]', '["' + '\\"[' * 1000 + '"]', '["' + "\\\\" * 999 + '", "[[' + '"]'])
def test_brackets_inside_strings_are_not_levels(text):
    assert loads(text) == json.loads(text)


@pytest.mark.parametrize("prefix", ['["\\\\", ', '["\\"", ', '["\\\\\\"", ', '["",'])
def test_escapes_do_not_hide_levels(prefix):
    with pytest.raises(NotUnderstood, match="nested deeper"):
        loads(prefix + "[" * 70 + "]" * 70 + "]")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[NaN, Infinity, -Infinity, 1e999, -1e999]", [None] * 5),
        ("[18446744073709551615, -18446744073709551615]", [2**64 - 1, -(2**64) + 1]),
        (f"[{'9' * 21}, -{'9' * 21}, {'9' * 5000}, {'1' * 400}.5]", [None] * 4),
        ("[1e300, 0.1]", [1e300, 0.1]),
        ('["\\ud800", "\\ud83d\\ude00", "\\udc00x"]', ["\ufffd", "\U0001f600", "\ufffdx"]),
    ],
)
def test_non_finite_values_become_none(text, value):
    found = loads(text)
    assert found == value
    json.dumps(found, ensure_ascii=False, allow_nan=False).encode()


def test_large_fleet_output_is_within_the_limits():
    bins = {str(duration): 3 for duration in range(400)}
    job = {"jobname": "a", "read": {"lat_ns": {"bins": bins}, "clat_ns": {"bins": bins}, "slat_ns": {"bins": bins}}}
    assert check(json.dumps({"jobs": [job] * 512}), FIO) > 600_000
