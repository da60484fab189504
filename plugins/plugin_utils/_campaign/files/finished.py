# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which measurements of a host have a result in the results folder already."""

from __future__ import annotations

import datetime
import typing as t
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import CellKey, component
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import META_FILE
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import is_sha256, read_json, stored_state
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import repeat_folders

#: Seconds since the epoch that every calendar has: the end of the year 9998.
_LATEST = 253370764800.0


@dataclass(frozen=True)
class ExpectedMeasurement:
    """What a cell should measure, as far as its result contains it.

    :param workload_sha256: of the job, whatever it runs on.
    :param path: of the target, as the user wrote it; ``used_size``: how much of it, in bytes, ``None`` for all.
    """

    workload_sha256: str
    path: str
    used_size: int | None


def finished(campaign: Path, host: str, expected: t.Mapping[CellKey, ExpectedMeasurement]) -> set[CellKey]:
    """The cells that have an ``ok`` result of the very same measurement already: whole files, same job, same target.

    :raises BadInput: if an ``ok`` result of another measurement has the name of a cell.
    """
    done = set()
    for key, one in expected.items():
        if stored_state(campaign / component(host, "host"), key) != "ok":
            continue
        meta = read_json(key.below(campaign / host) / META_FILE)
        target = meta.get("target")
        target = target if isinstance(target, dict) else {}
        if ExpectedMeasurement(meta.get("workload_sha256"), target.get("path"), target.get("used_size")) != one:  # type: ignore[arg-type]
            raise BadInput(
                f"The campaign {campaign.name} has an ok result of {key} of host {host} already, of another job or target: "
                "give fio_benchmark_campaign or fio_benchmark_variant another name, or set fio_benchmark_replace to true.",
                item=host,
            )
        done.add(key)
    return done


def measured_as(campaign: Path, host: str, variant: str) -> dict[tuple[str, int], str]:
    """What stands for each whole ``ok`` result of a host, by cell and repeat: its ``measurement_sha256``.

    The runner on the host determines which measurement that would be now, and measures again what is another one. Results that say
    nothing of the kind, of earlier versions of the collection, are left out.
    """
    folder = campaign / component(host, "host")
    place = folder / component(variant, "variant")
    if not place.is_dir():
        return {}
    found = {}
    for path in repeat_folders(place, []):
        key = CellKey(variant, path.parent.name, int(path.name))
        if stored_state(folder, key) != "ok":
            continue
        sha256 = read_json(path / META_FILE).get("measurement_sha256")
        if is_sha256(sha256):
            found[key.cell, key.repeat] = sha256
    return found


def unexplained(campaign: Path, host: str, keys: t.Iterable[CellKey]) -> list[CellKey]:
    """Of some cells those with an ``ok`` result that does not record what exactly was measured, as results of earlier versions of the collection.

    Whether that would be the same measurement now is unknown, so they are measured again; but they are not replaced without a request.
    """
    folder = campaign / component(host, "host")
    return [key for key in keys if stored_state(folder, key) == "ok" and not is_sha256(read_json(key.below(folder) / META_FILE).get("measurement_sha256"))]


def measured_note(campaign: Path, host: str, variant: str, cells: t.Sequence[tuple[str, int]]) -> str:
    """That every cell of a plan, by name and repeat, was measured; empty if one is left."""
    stored = measured_as(campaign, host, variant)
    if not cells or not all(cell in stored for cell in cells):
        return ""
    ends = [read_json(CellKey(variant, *cell).below(campaign / host) / META_FILE).get("finished") for cell in cells]
    times = [end for end in ends if isinstance(end, (int, float)) and 0 <= end < _LATEST]
    when = f" at {datetime.datetime.fromtimestamp(max(times)).strftime('%Y-%m-%d %H:%M')}" if times else ""
    which = f"all {len(cells)} cells of variant {variant} were" if len(cells) > 1 else f"the cell of variant {variant} was"
    return (
        f"{host}: {which} measured{when}, and only what would now be another measurement is repeated: set another variant (fio_benchmark_variant), or"
        " fio_benchmark_replace=true."
    )
