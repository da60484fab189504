# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a campaign may be continued on a host: nothing that was measured may mean something else now. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.variants import QUEUES
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description import drift

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.on_host import HostSweep
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.state import HostState
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.stopping import Design
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.read import Description


def require_unchanged(known: HostState, description: Description, planned: HostSweep) -> None:
    """:raises Refused: if the host was changed since the sweep began, so that its baseline is another one."""
    names = [name for name in drift.drift(known.found, description) if name in planned.restore and name != QUEUES]
    if names and known.steps:
        raise Refused(
            f"{known.host} was changed since this campaign began: {', '.join(names)} differs from what was found then. Use another fio_benchmark_campaign.",
            item=known.host,
        )


def require_same_looks(known: HostState, design: Design) -> None:
    """:raises BadInput: if results were looked at already that the correction of other numbers of repeats does not know of."""
    if known.most_repeats > known.repeats and known.repeats_done and (design.first, design.last) != (known.repeats, known.most_repeats):
        raise BadInput(
            f"This sweep compares its variants from {known.repeats} to {known.most_repeats} repeats: continue it with sweep_repeats={known.repeats} and "
            f"sweep_max_repeats={known.most_repeats}, or start another campaign."
        )


def require_same_measurements(known: HostState, measures: t.Mapping[str, str]) -> None:
    """:raises BadInput: for another suite than that of the steps that are done: they would not be measured again."""
    changed = [name for name in known.measured if measures.get(name, "") and known.measures.get(name, measures[name]) != measures[name]]
    if changed:
        raise BadInput(
            f"This campaign has measured {changed[0]} with another suite, or other targets, times or cells of it: continue it with the variables of"
            " fio_benchmark that it began with, or start another campaign."
        )


def require_same_variants(known: HostState, planned: HostSweep) -> None:
    """:raises BadInput: for a variant that has another configuration than the one that was measured under its name."""
    measured = set(known.measured)
    for name, variables in planned.variables.items():
        if name not in measured or name not in known.variables:
            continue
        before, now = _set_by(known.variables[name], known.restore), _set_by(variables, planned.restore)
        # What other variants change was added to it; an item that is absent may be described more completely.
        if any(not any(_is_same(entry, one) for one in now.get(kind, [])) for kind, entries in before.items() for entry in entries):
            raise BadInput(f"The variant {name} was measured with another configuration in this campaign: give it another name, or start another campaign.")


def _set_by(variables: t.Mapping[str, t.Any], restore: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The variables of a variant, of queues without what is as it was found: some of that changes by itself."""
    found = {entry["device"]: entry for entry in restore.get(QUEUES) or []}
    queues = [
        {key: value for key, value in entry.items() if key == "device" or value != found.get(entry["device"], {}).get(key)}
        for entry in variables.get(QUEUES) or []
    ]
    return {**variables, QUEUES: queues}


def _is_same(one: t.Mapping[str, t.Any], other: t.Mapping[str, t.Any]) -> bool:
    return one == other or (one.get("state") == other.get("state") == "absent" and all(one.get(key) == other.get(key) for key in ("type", "origin")))
