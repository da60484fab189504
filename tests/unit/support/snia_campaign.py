# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A campaign of SNIA's suites as the collection leaves it on the controller: rounds over several cells, fills, a write saturation, a purge."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import numpy as np

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import rounds
from ansible_collections.cachefleet.storage.tests.unit.support import synthetic_campaign
from ansible_collections.cachefleet.storage.tests.unit.support.synthetic_campaign import BEGAN, CREATED

HOST, VARIANT = "node1", "new"
MACHINE = {"cpu": "AMD EPYC 7302P", "cpus": 32, "memory": 137438953472, "vendor": "Supermicro", "product": "AS-1114S"}
CAPACITY = 2**36

#: Of each test: the cells with their mixes, what is tracked, and how fast the rounds are.
TESTS: dict[str, tuple[dict[str, tuple[str, str]], str, str, tuple[float, ...]]] = {
    "iops": (
        {f"rand-{bs}-{rw}": (rw, bs) for rw in ("randread", "randrw", "randwrite") for bs in ("64k", "4k")},
        "rand-4k-randwrite",
        "iops",
        (4.0, 2.0, 1.0, 1.01, 0.99, 1.02, 1.0),
    ),
    # Reads are random: what is written here has no sequential ones.
    "bandwidth": ({"seq-1m-randread": ("randread", "1m"), "seq-1m-write": ("write", "1m")}, "seq-1m-write", "bandwidth", (3.0, 1.0, 2.0, 1.0, 3.0)),
    "latency": ({f"lat-4k-{rw}": (rw, "4k") for rw in ("randread", "randwrite")}, "lat-4k-randwrite", "latency", (1.0, 1.01, 0.99, 1.0, 1.0)),
}


def write_snia_campaign(folder: Path, *, purge: dict[str, t.Any] | None = None, machine: dict[str, t.Any] | None = None, host: str = HOST) -> Path:
    """One host with one device; ``purge`` and ``machine`` are those of all its measurements."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "campaign.json").write_text(json.dumps({"schema": 1, "campaign": folder.name, "created": CREATED}))
    made = _Made(folder, host, {"purge": purge, "machine": machine})
    made.cell("fill-128k-twice", ("write", "64k", 16), 1.0, bytes_written=2 * CAPACITY)
    for cells, decided_by, what, speeds in TESTS.values():
        made.rounds(cells, decided_by, what, speeds)
    made.cell("saturation-4k", ("randwrite", "4k", 16), 1.0, seconds=150, bytes_written=CAPACITY)
    planned = {one.name: [1] for one in sorted((folder / host / VARIANT).iterdir())}
    plan = {"schema": 1, "campaign": folder.name, "host": host, "variant": VARIANT, "created": CREATED, "cells": planned}
    (folder / host / VARIANT / "plan.json").write_text(json.dumps(plan))
    return folder


class _Made:
    """Cells one after another."""

    def __init__(self, folder: Path, host: str, facts: dict[str, t.Any]) -> None:
        self.folder, self.host, self.facts = folder, host, facts
        self.random = np.random.default_rng(7)
        self.began = BEGAN

    def cell(self, name: str, load: tuple[str, str, int], speed: float, seconds: int = 60, **changes: t.Any) -> dict[str, t.Any]:
        place = self._place(name)
        key = {"campaign": self.folder.name, "host": self.host, "variant": VARIANT, "cell": name, "repeat": 1}
        synthetic_campaign._write_cell(place, key, self.random, synthetic_campaign._stack(0, VARIANT), load, speed, self.began, seconds)
        self.began += seconds + 10
        meta = json.loads((place / "meta.json").read_text())
        meta["target"] = {**meta["target"], "size": CAPACITY, "used_size": None, "serial": "S1", "model": "INTEL SSDSC2BB080G4", "firmware": "D2010370"}
        meta = {**meta, **self.facts, **changes}
        (place / "meta.json").write_text(json.dumps(meta))
        return meta

    def rounds(self, cells: dict[str, tuple[str, str]], decided_by: str, what: str, speeds: tuple[float, ...]) -> None:
        wanted = rounds.Rounds(track="write", what=what, decided_by=decided_by)
        values: dict[str, list[float | None]] = {name: [] for name in cells}
        last: dict[str, t.Any] = {}
        for number, speed in enumerate(speeds, start=1):
            for name, (rw, bs) in cells.items():
                last = self.cell(f"{name}.round-{number:02}", (rw, bs, 1 if what == "latency" else 16), speed)
                values[name].append(rounds.value_of(last, wanted) if name == decided_by else rounds.total_of(last, what))
        decided = rounds.conclude(t.cast("list[float]", values[decided_by]), wanted)
        for name in cells:
            own = decided if name == decided_by else rounds.follow(values[name], wanted, decided)
            place = self._place(name)
            files: dict[str, str] = {}
            meta = {**last, "cell": name, "rounds": own, "summary": None, "files": files, "state": "ok" if decided["steady"] else "not_steady", "drives": None}
            (place / "meta.json").write_text(json.dumps(meta))

    def _place(self, name: str) -> Path:
        place = self.folder / self.host / VARIANT / name / "1"
        place.mkdir(parents=True)
        return place
