# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What sweeps have shown of models of drives: one entry for each class of hosts and workload, and a file that many sweeps are added to.

The file is JSON: ``{"schema": 1, "entries": [...]}``. An entry has ``models``, ``controller``, ``workload``, ``campaign``, ``campaign_id`` and
``results_sha256``, the ``baseline`` with its ``value`` and ``unit``, and ``best``: the variant that is shown to be better, with its ``settings`` without
the devices of one host, ``value``, ``ratio`` and its interval, the reason, or ``null``. A campaign is in it once.
"""

from __future__ import annotations

import hashlib
import json
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import explained, read_json, write_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import answer_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import METRICS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.variants import LAYER_VARIABLES
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.host_tables import host_digest
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.ingest import identity_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import counted, figure

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.answer import Answer
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.workload import Result, WorkloadAnswer
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.state import HostState

SCHEMA = 1

#: The file in the folder of recommendations, for one campaign.
KNOWLEDGE_FILE = "knowledge.json"

#: What an item of one host is recognised by.
_IDENTITIES = frozenset({"device", "match", "serial", "id", "wwn", "address", "name", "origin", "cache_devices", "tool_path", "persistent", "drives_of"})

#: Entries of other sweeps that are cited for one class and workload.
_MOST_CITED = 3

Entry = t.Dict[str, t.Any]


class Source(t.NamedTuple):
    """A campaign: its name, an identity that it keeps when it is continued or copied, and a hash of its results."""

    campaign: str
    campaign_id: str
    results_sha256: str


def source_of(campaign: Path, hosts: t.Iterable[str]) -> Source:
    """:raises ResultsError: if it is no campaign."""
    digest = hashlib.sha256("".join(host_digest(campaign / host) for host in sorted(hosts)).encode()).hexdigest()
    return Source(*identity_of(campaign), digest)


def entries_of(answer: Answer, states: t.Sequence[HostState], source: Source) -> list[Entry]:
    """Those of one sweep."""
    by_host = {state.host: state for state in states}
    found = []
    for one in answer.workloads:
        base = one.result(one.baseline)
        models = _models_of(one)
        # Without a model it would be cited for every other drive without one.
        if base is None or base.value is None or not models:
            continue
        best = one.result(one.recommended) if one.recommended else None
        found.append(
            {
                "models": models,
                "controller": one.host_class.facts.get("controller", ""),
                "workload": answer_text.workload_name(one),
                **source._asdict(),
                "hosts": len(one.host_class.hosts),
                "baseline": {"value": base.value, "unit": one.question.metric},
                "best": None if best is None else _best(one, best, [by_host[host] for host in one.host_class.hosts if host in by_host]),
            }
        )
    return found


def _models_of(workload: WorkloadAnswer) -> list[str]:
    """Of the drives of its hosts; none if they are not known."""
    return sorted(model for model in workload.host_class.facts.get("drives", "").split(", ") if model not in ("", "unknown"))


def _best(one: WorkloadAnswer, result: Result, states: t.Sequence[HostState]) -> Entry:
    comparison = result.comparison
    interval = comparison.interval if comparison is not None else None
    known = states[0].variables.get(result.variant, {}) if states else {}
    return {
        "variant": result.variant,
        "settings": {name: [_without_devices(entry) for entry in known[name]] for name in LAYER_VARIABLES if known.get(name)},
        "value": result.value,
        "ratio": result.ratio,
        "interval": None if interval is None else [interval.low, interval.high],
        "confidence": None if interval is None else interval.confidence,
        "repeats": result.repeats,
        "after_a_power_failure": result.acknowledged,
        "because": one.because,
        "burst": one.burst,
    }


def _without_devices(value: t.Any) -> t.Any:
    if isinstance(value, dict):
        return {key: _without_devices(part) for key, part in value.items() if key not in _IDENTITIES}
    return [_without_devices(part) for part in value] if isinstance(value, list) else value


def read_knowledge(path: Path) -> list[Entry]:
    """The entries of a file; none if there is no file yet.

    :raises BadInput: if it is no such file: it is not overwritten.
    """
    if not path.exists():
        return []
    try:
        raw = read_json(path)
    except ResultsError as error:
        raise BadInput(f"{path} is no file of knowledge: {error.message} Nothing was written to it.") from None
    entries = raw.get("entries")
    if raw.get("schema") != SCHEMA or not isinstance(entries, list) or not all(map(_is_entry, entries)):
        raise BadInput(f"{path} is no file of knowledge of schema {SCHEMA}. Nothing was written to it.")
    return entries


def _is_entry(value: t.Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("models"), list)


def merged(known: t.Sequence[Entry], new: t.Sequence[Entry]) -> list[Entry]:
    """Both; of a campaign that was continued the new ones only. Two of its classes may have the same models, and another kernel."""
    campaigns = {str(one["campaign_id"]) for one in new}
    kept = [one for one in known if str(one.get("campaign_id")) not in campaigns and one["models"] not in ([], ["unknown"])]
    return sorted([*kept, *new], key=_key)


def _key(entry: Entry) -> tuple[str, ...]:
    models = ", ".join(map(str, entry.get("models", ())))
    return (models, str(entry.get("controller", "")), str(entry.get("workload", "")), str(entry.get("campaign_id", "")))


def write_knowledge(path: Path, entries: t.Sequence[Entry]) -> None:
    """:raises ResultsError: if the file cannot be written."""
    with explained(path.parent, f"writing {path.name}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps({"schema": SCHEMA, "entries": list(entries)}, indent=2, sort_keys=True) + "\n")


def write_shared(path: Path, entries: t.Sequence[Entry]) -> None:
    """:raises BadInput: if the file cannot be written."""
    try:
        write_knowledge(path, entries)
    except ResultsError as error:
        reason = error.__cause__.strerror if isinstance(error.__cause__, OSError) else error.message
        raise BadInput(f"sweep_knowledge: {path} could not be written ({reason}), so nothing was added to it.") from None


def cited(known: t.Sequence[Entry], workload: WorkloadAnswer, campaign_id: str) -> list[str]:
    """What other sweeps have shown for the same models and workload, one sentence each."""
    models = _models_of(workload)
    name = answer_text.workload_name(workload)
    better = METRICS[workload.question.metric].higher_is_better
    alike = [
        one for one in known if models and sorted(map(str, one["models"])) == models and one.get("workload") == name and one.get("campaign_id") != campaign_id
    ]
    return [_citation(one, higher_is_better=better) for one in alike[:_MOST_CITED]]


def _citation(entry: Entry, *, higher_is_better: bool) -> str:
    hosts, workload = entry.get("hosts"), plain(entry.get("workload"), 80)
    where = f"The sweep {plain(entry.get('campaign'), 80)} of the same models ({counted(hosts if isinstance(hosts, int) else 0, 'host')})"
    best = entry.get("best")
    ratio = best.get("ratio") if isinstance(best, dict) else None
    gain = 0.0 if not isinstance(ratio, (int, float)) or ratio <= 0 else ratio if higher_is_better else 1 / ratio
    if not isinstance(best, dict) or gain <= 1:
        return f"{where} has shown nothing to be better than its baseline in {workload}."
    settings = plain(json.dumps(best.get("settings", {}), sort_keys=True), 400)
    why, burst = (f"{before}{plain(best[name], 400)}" if best.get(name) else "" for name, before in (("because", ", because "), ("burst", " ")))
    shown = f"{plain(best.get('variant'), 80)} to be better than its baseline by a factor of {figure(gain)} in {workload}"
    return f"{where} has shown {shown}{why}: {settings}.{burst}"
