# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which variants cannot be measured because the guard refuses their targets, before anything is changed for them. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.planning import plan_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.variants import CACHES, TARGETS

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.variants import Variant

Values = t.Mapping[str, t.Any]


class Refusal(t.NamedTuple):
    """A target that the guard refuses.

    :param lasting: whether it does so with the SSD caches of every variant.
    """

    target: str
    reason: str
    lasting: bool


def orders_of(given: Values, variants: t.Iterable[Variant]) -> list[tuple[list[str], list[dict[str, t.Any]]]]:
    """What is measured in the first repeat, as ``fio_runner`` reads it, with the variants that measure it on the same targets.

    :param given: as in ``steps_of``.
    """
    found: list[tuple[t.Any, list[str]]] = []
    for one in variants:
        targets = one.variables.get(TARGETS, given["targets"])
        names = next((names for known, names in found if known == targets), None)
        if names is None:
            found.append((targets, [one.name]))
        else:
            names.append(one.name)
    return [(names, [step.to_dict() for step in plan_of(given, targets, 1, 1).steps]) for targets, names in found]


def caches_of(variables: t.Iterable[Values]) -> list[str]:
    """The origins and cache devices of all SSD caches of some variants."""
    entries = [entry for one in variables for entry in one.get(CACHES) or []]
    return sorted({str(name) for entry in entries for name in (entry.get("origin"), *(entry.get("cache_devices") or [])) if name})


def refusals_in(answer: Values) -> list[Refusal]:
    """What ``fio_runner`` has examined."""
    rows = answer.get("refusals")
    return [
        Refusal(plain(row.get("target"), 300), plain(row.get("msg"), 1000), row.get("lasting") is True)
        for row in (rows if isinstance(rows, list) else [])
        if isinstance(row, dict)
    ]


def reason_of(refusals: t.Iterable[Refusal]) -> str:
    """Each reason once; empty if nothing is refused."""
    return " ".join(dict.fromkeys(one.reason for one in refusals))


def not_tried_again(variant: str, targets: t.Mapping[str, t.Any], refusals: t.Sequence[Refusal]) -> list[str]:
    """The variants that need not be tried after the guard has refused one of them.

    :param targets: of each variant.
    """
    lasting = {one.target for one in refusals if one.lasting}
    alike = [name for name, rows in targets.items() if lasting and (rows == targets.get(variant) or lasting & _paths(rows))]
    return list(dict.fromkeys([variant, *alike])) if refusals else []


def _paths(rows: t.Any) -> set[str]:
    rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, (list, tuple)) else []
    return {str(row[kind]) for row in rows for kind in ("device", "file", "directory") if row.get(kind)}
