# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which cells of a host are one cell of its suite on several targets at once. Pure.

A runner writes into each result at which step of which order it was measured, and one step has several targets only if the suite requests
them together. Probes of a search and rounds share a step too, but one target.
"""

from __future__ import annotations

import itertools
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import number

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import CellRecord

#: A host, its variant and the name of a cell.
HostVariantCell = t.Tuple[str, str, str]


def shared_names(records: t.Iterable[CellRecord]) -> dict[HostVariantCell, str]:
    """For every cell that was measured on several targets at once, the name that these have in common: ``w`` for ``w.sda`` and ``w.sdb``.

    A cell of them that never came is known by its name.
    """
    steps: dict[tuple[t.Any, ...], dict[str, str]] = {}
    unknown: list[CellRecord] = []
    for record in records:
        step, order, path = number(record.meta.get("step")), record.meta.get("order_sha256"), _path_of(record)
        if step is None or not isinstance(order, str) or not path:
            unknown.append(record)
            continue
        key = (record.host, record.key.variant, record.key.repeat, order, step)
        # A path that is there already belongs to a search or to rounds: no name stands for both.
        names = steps.setdefault(key, {})
        names[path] = "" if path in names else record.key.cell
    found: dict[HostVariantCell, str] = {}
    for (host, variant, *_rest), names in steps.items():
        common = _common_name(names.values())
        found.update({(host, variant, name): common for name in names.values() if common})
    for record in unknown:
        common = _name_of_missing(record, found)
        if common:
            found[record.host, record.key.variant, record.key.cell] = common
    return found


def _path_of(record: CellRecord) -> str:
    target = record.meta.get("target")
    path = target.get("path") if isinstance(target, dict) else None
    return path if isinstance(path, str) else ""


def _common_name(names: t.Collection[str]) -> str:
    """What stands before the dot and the names of the targets; empty if there is no such thing."""
    if len(names) < 2 or not all(names):
        return ""
    places = zip(*(name.split(".")[:-1] for name in names), strict=False)
    return ".".join(same[0] for same in itertools.takewhile(lambda parts: len(set(parts)) == 1, places))


def _name_of_missing(record: CellRecord, found: t.Mapping[HostVariantCell, str]) -> str:
    """The longest name of this host that a cell without a result begins with, if what follows can be the name of a target."""
    mine = [(name, common) for (host, variant, name), common in found.items() if (host, variant) == (record.host, record.key.variant)]
    targets = {name[len(common) + 1 :] for name, common in mine}
    for common in sorted({common for _name, common in mine}, key=len, reverse=True):
        target = record.key.cell[len(common) + 1 :]
        if record.key.cell.startswith(f"{common}.") and (target in targets or "." not in target):
            return common
    return ""
