# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a variant keeps: after a power failure, and after the loss of one device. Pure; the verdicts are those of the stacks."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import documented_protection
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import listed

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement

KEEPS, LOSES, UNKNOWN = "keeps", "loses", "unknown"

_WORST_FIRST = (LOSES, UNKNOWN, KEEPS)

#: What the verdicts of a stack mean here.
_MEANINGS = {"durable": KEEPS, "at_risk": LOSES, "kept": KEEPS, "may_be_lost": LOSES, "survives": KEEPS, "loses": LOSES}


@dataclass(frozen=True)
class Safety:
    """Each is ``keeps``, ``loses`` (it can) or ``unknown``.

    :param flushed: a write that was flushed, after a power failure.
    :param unflushed: a write that was acknowledged and not flushed, likewise.
    :param device_loss: everything that was written, after the failure of one device.
    """

    flushed: str
    unflushed: str
    device_loss: str

    def acknowledged(self, *, needs_no_flush: bool) -> str:
        """What a workload can rely on after a power failure.

        :param needs_no_flush: for one that writes and never flushes.
        """
        return self.unflushed if needs_no_flush and self.flushed == KEEPS else self.flushed


def worst(values: t.Iterable[str]) -> str:
    """The worst one; ``unknown`` of none."""
    return min(values, key=_WORST_FIRST.index, default=UNKNOWN)


class SafetyOfHosts:
    """What variants keep on sets of hosts."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._by_variant: dict[str, list[Measurement]] = {}
        self._known: dict[tuple[frozenset[str], str], Safety] = {}
        for one in rows.measurements:
            if one.measured:
                self._by_variant.setdefault(one.variant, []).append(one)

    def of(self, hosts: frozenset[str], variant: str) -> Safety:
        """The worst verdict of the stacks of a variant on these hosts, before or after any of its measurements."""
        if (hosts, variant) not in self._known:
            self._known[hosts, variant] = safety_of(self._rows, [one for one in self._by_variant.get(variant, ()) if one.host in hosts])
        return self._known[hosts, variant]


def safety_of(rows: Rows, measurements: t.Iterable[Measurement]) -> Safety:
    """The worst verdict of the stacks of these measurements, before or after any of them."""
    verdicts: set[str] = set()
    stacks: set[tuple[str, str | None]] = set()
    for one in measurements:
        # A power-loss test has lost what this verdict says is kept.
        verdicts.update((one.verdict_before or "", one.verdict_after or "", *([""] if one.host in rows.disproved else ())))
        stacks.update(((one.host, one.stack_before), (one.host, one.stack_after)))
    meanings: dict[str, set[str]] = {"unflushed": set(), "device_loss": set()}
    for host, stack in stacks:
        if host in rows.disproved:
            meanings["unflushed"].add("")
        reported = {key: value for _device, layer, key, value in rows.settings.get((host, stack or ""), ()) if layer == "verdict"}
        for name, values in meanings.items():
            values.add(reported.get(name, ""))
    return Safety(*(worst(_MEANINGS.get(value, UNKNOWN) for value in values) for values in (verdicts, meanings["unflushed"], meanings["device_loss"])))


def documented_drives(rows: Rows) -> t.Iterator[tuple[str, str]]:
    """Each model that the vendor documents to be protected, with a hint as a sentence; none of hosts on which nothing can be lost already."""
    hosts_of: dict[str, set[str]] = {}
    for one in rows.measurements:
        for model in (one.model or "").split(", "):
            if one.measured and documented_protection(model):
                hosts_of.setdefault(model, set()).add(one.host)
    safety = SafetyOfHosts(rows)
    for model, hosts in sorted(hosts_of.items()):
        safeties = [safety.of(frozenset(hosts), variant) for variant in rows.variants]
        if any(one.flushed != KEEPS or one.unflushed != KEEPS for one in safeties):
            yield (
                model,
                f"The vendor documents power-loss protection for it ({documented_protection(model)}), which is no proof that this drive has it: if it has, "
                f"list it in storage_protected_drives, so that its write cache counts as protected ({listed(sorted(hosts))}).",
            )
