# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""Hosts of one kind: what is measured on unlike hosts is never put into one figure. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.text import counted, listed

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows

#: What can distinguish hosts.
FACTS = ("controller", "drives", "drive_firmware", "kernel", "fio")

USUAL_FACTS = ("controller", "drives", "kernel")


@dataclass(frozen=True)
class HostClass:
    """Hosts that are alike.

    :param label: who they are, and what of them is different from other classes.
    :param facts: by name, all that distinguishes classes.
    """

    label: str
    hosts: tuple[str, ...]
    facts: t.Mapping[str, str]


def read_facts(names: t.Sequence[str]) -> tuple[str, ...]:
    """:raises BadInput: for what does not distinguish hosts."""
    unknown = [name for name in names if name not in FACTS]
    if unknown:
        raise BadInput(f"Hosts have no fact '{unknown[0]}': report_host_class takes {', '.join(FACTS)}.")
    return tuple(names) or USUAL_FACTS


def host_classes(rows: Rows, names: t.Sequence[str] = USUAL_FACTS) -> list[HostClass]:
    """Every class, the largest first."""
    groups: dict[tuple[str, ...], list[str]] = {}
    known = _facts(rows)
    for host in rows.hosts:
        groups.setdefault(tuple(known[host].get(name, "unknown") for name in names), []).append(host)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    different = [place for place in range(len(names)) if len({key[place] for key, _hosts in ordered}) > 1]
    return [
        HostClass(_label(hosts, [_said(names[place], key[place]) for place in different]), tuple(hosts), dict(zip(names, key, strict=True)))
        for key, hosts in ordered
    ]


def _label(hosts: t.Sequence[str], different: t.Sequence[str]) -> str:
    who = listed(hosts, 3) if len(hosts) <= 3 else counted(len(hosts), "host")
    return f"{who} ({', '.join(different)})" if different else who


def _said(name: str, value: str) -> str:
    return value if name in ("controller", "drives") else f"{name.replace('_', ' ')} {value}"


def _facts(rows: Rows) -> dict[str, dict[str, str]]:
    """What each host is, as text; drives that only some variants use are part of the host all the same."""
    with_drives = {one.host for one in rows.drives}
    known = {(one.host, name, value) for one in rows.drives for name, value in (("drives", one.model), ("drive_firmware", one.firmware))}
    # Once for each host, where a fleet has a hundred thousand measurements.
    for host, kernel, fio, model, firmware in {(one.host, one.kernel, one.fio_version, one.model, one.firmware) for one in rows.measurements}:
        known.update({(host, "kernel", kernel), (host, "fio", fio)})
        if host not in with_drives:
            known.update({(host, "drives", model), (host, "drive_firmware", firmware)})
    for (host, _stack), settings in rows.settings.items():
        known.update((host, "controller", value) for _device, layer, key, value in settings if layer == "controller" and key in ("controller", "firmware"))
    found: dict[str, dict[str, list[str]]] = {host: {} for host in rows.hosts}
    for host, name, value in known:
        if value and host in found:
            found[host].setdefault(name, []).append(value)
    return {host: {name: ", ".join(sorted(values)) for name, values in facts.items()} for host, facts in found.items()}
