# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every kind of value has one formatter, and nothing on the controller formats a number elsewhere."""

from __future__ import annotations

import ast
import pathlib
import re

import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils import _text as text

PLUGINS = pathlib.Path(__file__).resolve().parents[4] / "plugins"

#: What rounds, or groups digits: ``:g`` and ``:d`` alone write a number as it is.
ROUNDS = re.compile(r"[,.%eE][^<>^]*$|[0-9]f$|^[+ ]?[fF]$")


@pytest.mark.parametrize(
    ("written", "message"),
    [
        *((text.figure(value), said) for value, said in ((None, "-"), (0, "0"), (0.314, "0.314"), (9.834, "9.83"), (75.26, "75.3"), (99.96, "100"))),
        *((text.figure(value), said) for value, said in ((154.2, "154"), (999.6, "1,000"), (12345.6, "12,300"), (1234567.0, "1,230,000"))),
        *((text.latency(value), said) for value, said in ((None, "-"), (0, "0 ns"), (850, "850 ns"), (1000, "1 µs"), (400_000, "400 µs"), (999.7, "1 µs"))),
        *((text.latency(value), said) for value, said in ((999_600.0, "1 ms"), (45_100_000, "45.1 ms"), (3.2e9, "3.2 s"), (2.5e12, "2,500 s"))),
        *((text.size(value), said) for value, said in ((None, "-"), (999_999, "1 MB"), (-2.5e6, "-2.5 MB"), (7.4e19, "74,000 PB"), (12, "12 B"))),
        *(
            (text.times(value), said)
            for value, said in ((None, "-"), (1.3, "1.30 x"), (12.0, "12 x"), (999.7, "1,000 x"), (1234.5, "1,234 x"), (0.0123, "0.0123 x"))
        ),
        *((text.chance(p), said) for p, said in ((None, "-"), (1.4e-34, "< 0.001"), (0.00099, "< 0.001"), (0.001, "0.001"), (0.03125, "0.031"))),
        *((text.share(value), said) for value, said in ((None, "-"), (0.05, "5 %"), (1, "100 %"))),
        (text.share(0.3226, 1), "32.3 %"),
        (text.share(-0.2, signed=True), "-20 %"),
        (text.confidence(0.9699), "at least 96 %"),
        (text.count(1_536_569), "1,536,569"),
        (text.megabytes(5_820_000), "5.82"),
        (text.amount(0.1234), "0.123 %"),
        (text.amount(41, "°C"), "41 °C"),
        (text.in_seconds(1234.5), "1,234 s"),
        *((text.duration(value), said) for value, said in ((0, "0 s"), (0.2, "<1 s"), (14, "14 s"), (190, "3 min 10 s"), (3600, "1 h"), (64800, "18 h"))),
        *((text.duration(value), said) for value, said in ((3661, "1 h 1 min"), (90000, "1 d 1 h"), (86401, "1 d"))),
        *((text.estimate(value), said) for value, said in ((0.2, "1 s"), (40, "40 s"), (720, "12 min"), (12_600, "3.5 h"))),
        (text.money(1493.25, "EUR", as_given=True), "EUR 1,493.25"),
        (text.money(373.3125, "EUR"), "EUR 373.3"),
        (text.money(0.000123456, "EUR"), "EUR 0.0001235"),
        (text.counted(1, "host"), "1 host"),
        (text.counted(1000, "host"), "1,000 hosts"),
        (text.listed(["a"]), "a"),
        (text.listed(list("abc")), "a, b and c"),
        (text.listed(list("abcdefg")), "a, b, c, d, e and 2 more"),
    ],
)
def test_formatters(written, message):
    assert written == message


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ((1.03, 1.36), "1.03 to 1.36"),
        ((1.0031, 1.3), "1.003 to 1.300"),
        ((0.52, 0.9993), "0.520 to 0.999"),
        ((1.0, 1.0), "1.00 to 1.00"),
        ((1.1, 1.1), "1.10 to 1.10"),
        ((1.0, 1.35), "1.00 to 1.35"),
        ((0.0, 0.0), "0.00 to 0.00"),
        ((0.0312, 0.0351), "0.031 to 0.035"),
        ((12.0, 15.0), "12 to 15"),
    ],
)
def test_interval_without_1_is_not_written_as_if_it_had_1(ends, message):
    assert text.span(*ends) == message


def formats_of(source):
    """What of a file formats a number: specifications of f-strings and of ``format``, percent formats, and rounded numbers in text."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FormattedValue):
            spec = "".join(one.value for one in node.format_spec.values if isinstance(one, ast.Constant)) if node.format_spec else ""
            if ROUNDS.search(spec):
                yield node.lineno, f":{spec}"
            called = node.value.func if isinstance(node.value, ast.Call) else None
            if isinstance(called, ast.Name) and called.id == "round":
                yield node.lineno, "round()"
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"%[0-9]*\.[0-9]+[efg]|\{[a-z0-9]*:[,.][^{} ]*\}", node.value):
            yield node.lineno, node.value
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "format":
            yield node.lineno, "format()"


@pytest.mark.parametrize(
    "line",
    [
        'f"{x:,.0f}"',
        'f"{x:.2f} s"',
        'f"{x:.0%}"',
        'f"{x:,}"',
        'f"{round(x)} s"',
        '"%.1f %%" % x',
        '"{:,}".format(x)',
        "format(x, '.2f')",
        'f"{x:.3g}"',
        'f"{x:.{n}f}"',
    ],
)
def test_formatting_is_found(line):
    assert list(formats_of(line))


@pytest.mark.parametrize("line", ['f"{x}"', 'f"{x:g}"', 'f"{name:<20}"', 'f"{number:04d}"', "y = round(x, 3)", '"a, b: {}"'])
def test_what_does_not_round_is_not_found(line):
    assert not list(formats_of(line))


def test_nothing_else_formats_a_number():
    folders = [PLUGINS / name for name in ("plugin_utils", "action", "callback", "filter")]
    files = [file for folder in folders for file in folder.rglob("*.py") if file.name != "_text.py"]
    assert len(files) > 150
    assert [f"{file.relative_to(PLUGINS)}:{line}: {what}" for file in files for line, what in formats_of(file.read_text(encoding="utf-8"))] == []


def test_no_template_formats_a_number():
    templates = [*(PLUGINS / "plugin_utils").rglob("*.j2"), *(PLUGINS / "plugin_utils").rglob("*.js")]
    assert len(templates) == 5
    found = re.compile(r"format\(|\| *round|toFixed|toPrecision|toLocaleString|%\.[0-9]")
    assert [f"{file.name}: {one}" for file in templates for one in found.findall(file.read_text(encoding="utf-8"))] == []
