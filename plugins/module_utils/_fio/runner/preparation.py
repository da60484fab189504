# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Everything that can be refused of an order, before anything of it runs."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import job as fio_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import run as fio_run
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import Cell, MeasuredHost
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.checks import Fio, check_fio, guard_all
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.order import Order, edges
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, TargetFacts

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.made_files import MadeFiles
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import CellKey
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.left_devices import LeftDevices

#: Job files that fio reads at once. It holds every job of all of them in memory, and not more than some thousands.
_AT_ONCE, _MOST_THREADS = 24, 1000


@frozen
class Prepared:
    """A validated order.

    :param facts: what the guard found, by target and whether it is written.
    :param command: the words before fio's own arguments, ``fio`` included, with an absolute path first.
    :param kept: cells whose results in the spool are kept; all others are measured. ``None``: the runner decides by measurement hashes.
    """

    order: Order
    fio: Fio
    devices: Devices
    facts: t.Mapping[tuple[GuardTarget, bool], TargetFacts]
    command: tuple[str, ...]
    kept: t.Collection[CellKey] | None = None

    def facts_of(self, cell: Cell) -> TargetFacts:
        """Of the target of a cell."""
        return self.facts_of_all(cell)[0]

    def facts_of_all(self, cell: Cell) -> list[TargetFacts]:
        """Of all targets of a cell, in the order of its parts."""
        return [self.facts[part.target, part.job.writes] for part in cell.parts]


def prepare(order: Order, host: MeasuredHost, made: MadeFiles, left: LeftDevices | None = None) -> Prepared:
    """Check everything that can be checked without measuring.

    :raises StorageError: the first refusal; those of all targets together.
    """
    cells = [requested.cell for requested in order.requested]
    derived = [requested.cell for step in order.steps for requested in edges(step)]
    fio = check_fio([*cells, *derived], host)
    devices = host.devices()
    # A search may move the end of its cell: both ends of it are judged too.
    facts = guard_all([*cells, *derived], host, devices, made.paths(), left)
    texts: dict[str, Cell] = {}
    for cell in (*cells, *derived):
        own, *others = [_openable(facts[part.target, part.job.writes], host) for part in cell.parts]
        series = "series" if order.pace.series else None
        text = fio_job.render(cell.job, own, others=dict(zip(cell.others, others)), series=series, without=fio.abilities.without)
        texts.setdefault(text, cell)
    _check_job_files(host, texts)
    words = [*fio_run.ended_with_its_parent(host.runner), "fio"]
    return Prepared(order, fio, devices, facts, (host.runner.find(words[0]), *words[1:-1], host.runner.find("fio")))


def _openable(facts: TargetFacts, host: MeasuredHost) -> TargetFacts:
    """As fio can parse it: it requires a folder to be there."""
    return dataclasses.replace(facts, path=str(host.root)) if facts.target.kind == "directory" else facts


def _check_job_files(host: MeasuredHost, texts: t.Mapping[str, Cell]) -> None:
    """Have the fio of this host parse every different job file; many at once, and one by one only if one is rejected."""
    bundle: list[tuple[str, Cell]] = []
    bundles = [bundle]
    for text, cell in texts.items():
        if len(bundle) >= _AT_ONCE or (bundle and sum(one.job.threads for ignored, one in bundle) + cell.job.threads > _MOST_THREADS):
            bundle = []
            bundles.append(bundle)
        bundle.append((text, cell))
    for bundle in bundles:
        if len(bundle) == 1 or not _accepts_all(host, [text for text, cell in bundle]):
            for text, cell in bundle:
                fio_run.check_job_file(host.runner, text, cell.key.cell)


def _accepts_all(host: MeasuredHost, texts: t.Sequence[str]) -> bool:
    folder = tempfile.mkdtemp(prefix="cachefleet-")
    try:
        paths = [Path(folder) / f"{number}.fio" for number in range(len(texts))]
        for path, text in zip(paths, texts):
            path.write_text(text)
        return host.runner.run(["fio", "--parse-only", *map(str, paths)], ok=None).rc == 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)
