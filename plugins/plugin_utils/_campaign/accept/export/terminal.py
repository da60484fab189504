# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The end of an acceptance on the terminal: a table of classes, and a line for each host that does not pass, those that are unlike the others first."""

from __future__ import annotations

import json
import shlex
import typing as t
from collections import Counter

import yaml
from ansible.parsing.splitter import parse_kv

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.export.markdown import state_of_hosts
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.model import FAIL, PASS, STATES, Judgement
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.since_birth import WORSE, Change
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import LibraryMissing
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.outliers import HostValue, outliers
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import count, counted, listed, times

#: Variables of the command line that are part of the command that repeats an acceptance.
_PREFIXES, _OF_THIS_RUN = ("accept_", "fio_benchmark_"), ("fio_benchmark_campaign", "fio_benchmark_label")

#: Exit statuses.
PASSED, FAILED, OPEN = 0, 1, 2


def exit_status(states: t.Collection[str]) -> int:
    """1 if one fails, 2 if one is not decided or nothing was measured, otherwise 0."""
    if FAIL in states:
        return FAILED
    return PASSED if states and set(states) == {PASS} else OPEN


def summary(states: t.Mapping[str, str]) -> str:
    """``8 hosts: 1 fail, 7 pass.``"""
    counts = Counter(states.values())
    return f"{counted(len(states), 'host')}: {', '.join(f'{counts[state]} {state}' for state in STATES if counts[state]) or 'nothing was measured'}."


def unlike(judgements: t.Iterable[Judgement], classes: t.Mapping[str, str]) -> dict[str, str]:
    """How far the hosts are from the others of their class that have a figure which they do not have, the farthest first."""
    values = {}
    for one in judgements:
        if one.value is not None and one.value > 0 and one.requirement.workload:
            key = f"{one.host}\0{one.target}"
            values[key, one.requirement.name] = HostValue(key, one.requirement.name, classes.get(one.host, ""), one.value)
    try:
        found = outliers(values.values(), {})
    except LibraryMissing:
        return {}
    texts: dict[str, str] = {}
    for host in found:
        texts.setdefault(host.host.partition("\0")[0], f"unlike the others ({host.scores[0].cell} is {times(host.scores[0].ratio)} their median)")
    return texts


def lines(
    judgements: t.Sequence[Judgement],
    classes: t.Mapping[str, str],
    drives: t.Mapping[tuple[str, str], tuple[str, str]],
    command: t.Callable[[str], str],
) -> t.Iterator[str]:
    """Everything that is printed.

    :param classes: what the hosts are, by host. :param drives: serial number and model by host and target.
    :param command: that repeats the acceptance of a host.
    """
    states, apart = state_of_hosts(judgements), unlike(judgements, classes)
    place = {host: number for number, host in enumerate(apart)}
    of_host: dict[str, list[Judgement]] = {}
    for one in judgements:
        of_host.setdefault(one.host, []).append(one)
    yield from (*_table(states, classes), "")
    for host in sorted(states, key=lambda host: (place.get(host, len(place)), STATES.index(states[host]), host)):
        if states[host] != PASS or host in apart:
            yield _line(host, states[host], apart.get(host, ""), of_host[host], command)
    yield summary(states)
    failed = dict.fromkeys((one.host, *drives[one.host, one.target]) for one in judgements if one.state == FAIL and (one.host, one.target) in drives)
    if failed:
        yield f"Drives that fail: {', '.join(plain(f'{serial} ({model}, {host})' if model else f'{serial} ({host})') for host, serial, model in failed)}."


def _line(host: str, state: str, apart: str, judgements: t.Sequence[Judgement], command: t.Callable[[str], str]) -> str:
    head = ", ".join(filter(None, (f"{host} {state}", apart)))
    if state == PASS:
        return head
    worst = next(one for one in judgements if one.state == state)
    more = len([one for one in judgements if one.state != PASS]) - 1
    what = " ".join(filter(None, (worst.requirement.name, plain(worst.target))))
    others = f" ({more} more)" if more else ""
    return f"{head}: {what}: {plain(worst.reason, 500).rstrip('.')}{others}. Repeat: {command(host)}"


def changes(found: t.Mapping[str, t.Sequence[Change]]) -> t.Iterator[str]:
    """What has changed since the earlier certificates: each figure that is worse, and how many are something else."""
    if found:
        counts = Counter(one.state for some in found.values() for one in some)
        states = [f"{number} {state}" for state, number in counts.items()]
        yield f"Since the earlier certificates, of {counted(len(found), 'certificate')}: {listed(states) or 'nothing has changed'}."
    for name, some in found.items():
        for one in some:
            if one.state == WORSE:
                yield f"  {plain(name)} {one.state}: {plain(one.what)}: {plain(one.reason, 500)}"


def _table(states: t.Mapping[str, str], classes: t.Mapping[str, str]) -> list[str]:
    """The number of hosts of each class in each state, those with the most that do not pass first."""
    counts: dict[str, Counter[str]] = {}
    for host, state in states.items():
        counts.setdefault(classes.get(host) or "unknown", Counter())[state] += 1
    rows = [("CLASS", "HOSTS", *(state.upper() for state in STATES))]
    for name, of in sorted(counts.items(), key=lambda item: (item[1][PASS] - item[1].total(), item[0])):
        rows.append((plain(name, 60), count(of.total()), *(count(of[state]) if of[state] else "-" for state in STATES)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(text.rjust(width) if column else text.ljust(width) for column, (text, width) in enumerate(zip(row, widths, strict=True))) for row in rows]


def command(host: str, inventories: t.Iterable[str], variables: t.Iterable[str]) -> str:
    """The command that repeats the acceptance of a host, in a campaign of its own.

    :param variables: what ``-e`` was given; what is not ours may be secret.
    """
    parts = ["ansible-playbook", *(part for one in inventories for part in ("-i", one)), "cachefleet.storage.accept", "--limit", host]
    for one in filter(None, map(_ours, variables)):
        parts += ["-e", one]
    return shlex.join(parts)


def _ours(given: str) -> str:
    """Of what one ``-e`` was given, the variables of an acceptance; files as they are."""
    if given.startswith("@"):
        return given
    variables = yaml.safe_load(given) if given.startswith("{") else parse_kv(given)
    kept = {name: value for name, value in variables.items() if str(name).startswith(_PREFIXES) and name not in _OF_THIS_RUN}
    return given if kept == variables else json.dumps(kept) if kept else ""
