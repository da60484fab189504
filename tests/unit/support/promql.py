# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What expressions of PromQL use of our metrics. Their grammar is checked by promtool."""

from __future__ import annotations

import re
import typing as t

#: What Prometheus adds to every series.
TARGET_LABELS = frozenset({"job", "instance"})

_SELECTOR = re.compile(r"\b(cachefleet_\w+)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")


def problems_of(expression: str, series: t.Mapping[str, t.Collection[str]]) -> list[str]:
    """Names of metrics and labels in an expression that no series has.

    :param series: the labels of each series, by its name.
    """
    problems, known = [], set(TARGET_LABELS)
    for name, matchers in _SELECTOR.findall(expression):
        if name not in series:
            problems.append(f"{name} is not a metric")
            continue
        known.update(series[name])
        # Values of matchers can contain anything but are quoted.
        for label in _MATCHER.findall(re.sub(r'"[^"]*"|\'[^\']*\'', '""', matchers)):
            if label not in series[name] and label not in TARGET_LABELS:
                problems.append(f"{name} has no label {label}")
    for labels in _GROUPING.findall(expression):
        problems += [f"no metric here has the label {label}" for label in re.findall(r"\w+", labels) if label not in known]
    return problems
