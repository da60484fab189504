# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judgements as Markdown, for tickets: classes of hosts, then everything that is not a pass, hosts that are not like others of their class first."""

from __future__ import annotations

import operator
import typing as t
from collections import Counter

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.model import PASS, STATES, Judgement
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import escaped
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.columns import Column, Table, figures, markdown_table
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import count, counted

#: Lines of the table of what is not a pass.
_MOST = 500


def text(judgements: t.Sequence[Judgement], classes: t.Mapping[str, str], serials: t.Mapping[tuple[str, str], str] | None = None) -> str:
    """The whole file.

    :param classes: the class of each host. :param serials: serial numbers by host and target.
    """
    drives = serials or {}
    states = state_of_hosts(judgements)
    by_class: dict[str, Counter[str]] = {}
    for host, state in states.items():
        by_class.setdefault(classes.get(host, ""), Counter())[state] += 1
    total = Counter(states.values())
    lines = ["# Acceptance", "", f"{counted(len(states), 'host')}: {', '.join(f'{count(total[state])} {state}' for state in reversed(STATES))}.", ""]
    columns = [Column("class", lambda row: plain(row[0]) or "not known"), *figures(("hosts", lambda row: row[1].total(), count))]
    columns += figures(*((state, _count_of(state), count) for state in reversed(STATES)))
    lines += markdown_table(Table("classes", columns, sorted(by_class.items(), key=lambda row: (-row[1].total(), row[0]))))

    def rank(one: Judgement) -> tuple[t.Any, ...]:
        """Where most of a class fails, its hosts are alike: what differs is first."""
        alike = by_class[classes.get(one.host, "")]
        return 2 * alike[PASS] < alike.total(), STATES.index(states[one.host]), one.host, STATES.index(one.state), one.target, one.requirement.name

    bad = sorted((one for one in judgements if one.state != PASS), key=rank)
    if bad:
        heads = [
            Column("state", operator.attrgetter("state")),
            Column("host", lambda one: plain(one.host)),
            Column("device", lambda one: plain(one.target) or "host"),
            Column("serial number", lambda one: plain(drives.get((one.host, one.target), "")) or "-"),
            Column("requirement", lambda one: plain(one.requirement.name)),
            Column("reason", lambda one: plain(one.reason, 500)),
        ]
        lines += ["", "## Not passed", "", *markdown_table(Table("not_passed", heads, bad, most=_MOST))]
    passed = sum(one.state == PASS for one in judgements)
    return "\n".join([*lines, "", escaped(f"{counted(passed, 'requirement')} passed.")]) + "\n"


def _count_of(state: str) -> t.Callable[[t.Any], int]:
    return lambda row: row[1][state]


def state_of_hosts(judgements: t.Iterable[Judgement]) -> dict[str, str]:
    """The worst state of each host."""
    found: dict[str, str] = {}
    for one in judgements:
        found[one.host] = min(found.get(one.host, PASS), one.state, key=STATES.index)
    return found
