# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Metrics in the text format that the textfile collector of Prometheus' node exporter reads. Pure.

Source: the text exposition format 0.0.4 (``# HELP``, ``# TYPE``, label values with backslash, quote and newline escaped, a newline at
the very end) and Prometheus' naming practices: base units, ``_total`` for counters, ratios from 0 to 1, ``_info`` with the value 1.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

Labels = t.Tuple[t.Tuple[str, str], ...]


@frozen
class Family:
    """One metric: its samples differ in their labels."""

    name: str
    kind: str
    help: str
    samples: tuple[tuple[Labels, float], ...]

    @property
    def text(self) -> str:
        lines = [f"# HELP {self.name} {_escaped_help(self.help)}", f"# TYPE {self.name} {self.kind}"]
        lines += [f"{self.name}{_labels(labels)} {_number(value)}" for labels, value in sorted(self.samples)]
        return "\n".join(lines) + "\n"


def family(name: str, kind: str, about: str, samples: t.Iterable[tuple[Labels, t.Any]]) -> Family:
    """One metric. A value that is not known has no sample; one series that comes twice would make the collector refuse the whole file."""
    return Family(name, kind, about, tuple({labels: value for labels, value in samples if value is not None}.items()))


def states(labels: Labels, name: str, value: str, choices: t.Iterable[str]) -> t.Iterator[tuple[Labels, float]]:
    """One sample for each state that there is: 1 for the present one, 0 for all others."""
    for choice in choices:
        yield (*labels, (name, choice)), float(choice == value)


def render(families: t.Iterable[Family]) -> str:
    """The whole file; a metric without samples is left out."""
    return "".join(one.text for one in families if one.samples)


def _labels(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _escaped_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(value: float) -> str:
    """Whole numbers without an exponent, so that no byte of a large drive is lost."""
    return str(int(value)) if value == int(value) else repr(round(value, 6))
