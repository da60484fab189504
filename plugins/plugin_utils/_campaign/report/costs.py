# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What it cost: money by TB and by I/O from prices that were given, and endurance of drives that the campaign spent."""

from __future__ import annotations

import fnmatch
import typing as t
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.places import shared_hosts
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import median

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.answer import Answer
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point

#: Of which hosts the figures are.
HOSTS_NOTE = "Medians over the hosts that have a price and were measured in every variant, where there are such hosts."

_PRICE_OPTIONS = frozenset({"host", "variant", "price", "capacity_tb"})


@dataclass(frozen=True)
class Price:
    """What the storage of one host costs. ``host`` and ``variant`` are patterns; the first price that matches counts.

    :param capacity: usable bytes; ``None``: the size of the targets."""

    host: str
    variant: str
    price: float
    capacity: float | None


class CostKey(t.NamedTuple):
    """A row of the answer: the label of a class of hosts, a cell and a direction."""

    label: str
    cell: str
    direction: str


@dataclass(frozen=True)
class Cost:
    """One variant: medians over the hosts that have a price in every variant, as far as there are any; else over its own.

    :param hosts: how many have a price.
    :param prices: as they were given, each once; ``capacities`` in bytes likewise.
    :param per_iops: price of one I/O per second, by what decides.
    :param tb_hosts: those of ``per_tb``, ``iops_hosts`` those of ``per_iops``."""

    variant: str
    hosts: int
    prices: tuple[float, ...]
    capacities: tuple[float, ...]
    per_tb: float | None
    per_iops: t.Mapping[CostKey, float]
    tb_hosts: frozenset[str] = frozenset()
    iops_hosts: t.Mapping[CostKey, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Wear:
    """Drives of one model: what the campaign wrote, and how much endurance went.

    :param written: bytes by the counters of the drives, ``None`` where they have none; :param used: most percent points on one drive.
    :param hottest: °C; :param worn: the highest percent used that any of them has now."""

    model: str
    drives: int
    written: int | None
    used: float | None
    worn: float | None
    hottest: float | None
    failing: tuple[str, ...]


def read_prices(raw: t.Any) -> tuple[Price, ...]:
    """Prices as a user writes them.

    :raises BadInput: naming what is wrong.
    """
    if not isinstance(raw, (list, tuple)):
        raise BadInput("report_prices is a list: one entry for each price, such as {variant: writeback, price: 1493, capacity_tb: 4}.")
    return tuple(_price(one, place) for place, one in enumerate(raw, 1))


def _price(raw: t.Any, place: int) -> Price:
    where = f"entry {place} of report_prices"
    if not isinstance(raw, dict) or set(raw) - _PRICE_OPTIONS or "price" not in raw:
        raise BadInput(f"{where} must have 'price' and may have 'host', 'variant' and 'capacity_tb', nothing else.")
    capacity = raw.get("capacity_tb")
    return Price(
        str(raw.get("host", "*")), str(raw.get("variant", "*")), _amount(raw["price"], where), None if capacity is None else _amount(capacity, where) * 1e12
    )


def _amount(value: t.Any, where: str) -> float:
    try:
        amount = float(value)
    except (TypeError, ValueError):
        amount = -1.0
    if isinstance(value, bool) or not 0 < amount < 1e15:
        raise BadInput(f"{where}: must be a number greater than 0, not '{value}'.")
    return amount


def keys_of(answer: Answer) -> list[CostKey]:
    """The rows of the answer, in its order."""
    return list(dict.fromkeys(CostKey(one.host_class.label, one.question.cell, one.question.direction) for one in answer.workloads))


def costs_of(points: t.Sequence[Point], variants: t.Sequence[str], prices: t.Sequence[Price], answer: Answer) -> list[Cost]:
    """Every variant that has a price."""
    if not prices:
        return []
    targets: dict[tuple[str, str], dict[str, int]] = {}
    for one in points:
        if one.first.target and one.first.target_size:
            targets.setdefault((one.host, one.variant), {})[one.first.target] = one.first.target_size
    priced = {key: price for key in sorted({(one.host, one.variant) for one in points}) if (price := _price_of(prices, *key)) is not None}
    of_variant = {variant: {host: price for (host, of), price in priced.items() if of == variant} for variant in variants}
    of_variant = {variant: here for variant, here in of_variant.items() if here}
    rooms = {
        (variant, host): price.capacity or sum(targets.get((host, variant), {}).values()) or None
        for variant, here in of_variant.items()
        for host, price in here.items()
    }
    by_tb = _on_shared(
        {variant: {host: price.price / (room / 1e12) for host, price in here.items() if (room := rooms[variant, host])} for variant, here in of_variant.items()}
    )
    by_iops = {key: _on_shared(values) for key, values in _per_iops(points, of_variant, answer).items()}
    return [
        Cost(
            variant,
            len(here),
            tuple(sorted({price.price for price in here.values()})),
            tuple(sorted({room for host in here if (room := rooms[variant, host])})),
            median(by_tb.get(variant, {}).values()),
            {key: median(values[variant].values()) or 0.0 for key, values in by_iops.items() if variant in values},
            frozenset(by_tb.get(variant, ())),
            {key: frozenset(values[variant]) for key, values in by_iops.items() if variant in values},
        )
        for variant, here in of_variant.items()
    ]


#: By variant and host.
_Figures = t.Mapping[str, t.Mapping[str, float]]


def _on_shared(figures: _Figures) -> _Figures:
    """Of the hosts that every variant has a figure of, as far as there are any: other hosts may be slower."""
    known = {variant: of for variant, of in figures.items() if of}
    shared = shared_hosts({"": known}).get("", frozenset())
    return {variant: {host: value for host, value in of.items() if not shared or host in shared} for variant, of in known.items()}


def _per_iops(points: t.Sequence[Point], prices: t.Mapping[str, t.Mapping[str, Price]], answer: Answer) -> dict[CostKey, _Figures]:
    """Price of one I/O per second on each host, by what decides."""
    rates = {(one.variant, one.host, one.cell, one.direction): one.iops for one in points if one.iops}
    hosts_of = {one.host_class.label: one.host_class.hosts for one in answer.workloads}
    return {
        key: {
            variant: {
                host: here[host].price / rate for host in hosts_of[key.label] if host in here and (rate := rates.get((variant, host, key.cell, key.direction)))
            }
            for variant, here in prices.items()
        }
        for key in keys_of(answer)
    }


def _price_of(prices: t.Sequence[Price], host: str, variant: str) -> Price | None:
    return next((one for one in prices if fnmatch.fnmatchcase(host, one.host) and fnmatch.fnmatchcase(variant, one.variant)), None)


def wear_of(rows: Rows) -> list[Wear]:
    """By model of drive."""
    models: dict[str, list[t.Any]] = {}
    for one in rows.drives:
        models.setdefault(one.model or "unknown model", []).append(one)
    found = []
    for model, drives in sorted(models.items()):
        written = [one.written_after - one.written_before for one in drives if one.written_after is not None and one.written_before is not None]
        used = [one.wear_after - one.wear_before for one in drives if one.wear_after is not None and one.wear_before is not None]
        known = [one.wear_after for one in drives if one.wear_after is not None]
        hot = [one.hottest for one in drives if one.hottest is not None]
        failing = tuple(f"{one.host} {one.device}" for one in drives if one.passed is False)
        found.append(
            Wear(model, len(drives), sum(written) if written else None, max(used, default=None), max(known, default=None), max(hot, default=None), failing)
        )
    return found
