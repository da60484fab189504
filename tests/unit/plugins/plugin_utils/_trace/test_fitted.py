# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs that are fitted to traces, checked with what fio itself does."""

from __future__ import annotations

import re
import shutil
import subprocess
import typing as t

import numpy as np
import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import parse_size
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.suites import read_suite
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace import contents, distances, fitted
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import TraceError
from ansible_collections.cachefleet.storage.tests.unit.support import recorded_loads

COUNT = 24_000
needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio")


def fit(name: str, count: int = COUNT, **device: t.Any) -> tuple[t.Any, fitted.Fitted]:
    trace = recorded_loads.LOADS[name](count)
    return trace, fitted.fit(trace, 0, contents.contents_of(trace).devices[0])


def job_file(job: t.Mapping[str, t.Any], **instead: t.Any) -> str:
    sections = [("global", {**job["global"], **instead}), *((one["name"], {key: value for key, value in one.items() if key != "name"}) for one in job["jobs"])]
    return "".join(f"[{name}]\n" + "".join(f"{key}={value}\n" for key, value in options.items() if value is not None) for name, options in sections)


@pytest.mark.parametrize("name", recorded_loads.LOADS)
def test_hits_and_sizes_are_those_of_the_trace(name: str) -> None:
    _trace, found = fit(name)
    assert found.fits, found.sentence
    # Of all sizes but those at a cliff.
    assert np.mean([abs(one - other) > fitted.CURVE_LIMIT for _size, one, other in found.curve]) <= 0.05
    suite = read_suite("s", {"s": {"cells": [{"name": found.name, "job": found.job}]}})
    assert [section.name for section in suite.cells[0].checked_job().sections] == [one["name"] for one in found.job["jobs"]]


@needs_fio
@pytest.mark.parametrize("name", ["hot and cold", "loop and zipf", "mixed sizes"])
def test_fio_does_what_was_computed(name: str, tmp_path) -> None:
    """fio writes the accesses of each section, which are then joined at their rates."""
    trace, found = fit(name)
    (tmp_path / "whole.fio").write_text(job_file(found.job))
    assert subprocess.run(["fio", "--parse-only", "whole.fio"], cwd=tmp_path, check=False).returncode == 0
    requests = []
    for section in found.job["jobs"]:
        alone = {"global": {**found.job["global"], "time_based": None, "runtime": None}, "jobs": [{**section, "rate": None}]}
        more = {
            "ioengine": "null",
            "direct": None,
            "iodepth": 1,
            "io_size": "1t",
            "number_ios": COUNT,
            "filename": "/none",
            "write_iolog": f"{section['name']}.log",
        }
        (tmp_path / "one.fio").write_text(job_file(alone, **more))
        done = subprocess.run(["fio", "one.fio"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0 and "exceed" not in done.stderr, done.stderr[:500]
        ios = np.array([line.split()[3:] for line in (tmp_path / f"{section['name']}.log").read_text().splitlines() if re.search(" (read|write) ", line)], int)
        rate = sum(int(one) for one in section["rate"].split(",")) / ios[:, 1].mean()
        requests += [(place / rate, start // 4096, (start + length - 1) // 4096) for place, (start, length) in enumerate(ios)]
    blocks = [block for _time, first, last in sorted(requests) for block in range(first, last + 1)][: len(trace.accesses(4096))]
    reuse = distances.reuse_distances(distances.last_accesses(np.array(blocks))[0])
    for size, hits, _job in found.curve:
        low, high = (float(np.mean(reuse < size * scale / 4096)) for scale in (0.98, 1.02))
        assert low - fitted.CURVE_LIMIT <= hits <= high + fitted.CURVE_LIMIT, size


def test_a_job_has_the_rates_mix_depth_and_flushes_of_the_trace() -> None:
    trace = recorded_loads.recorded(np.arange(4000) % 50 * 64, 8, np.arange(4000) % 4 == 0, seconds=4, latency={"read": {"20000000": 9}}, bytes=0)
    found = contents.contents_of(trace).devices[0]
    found = contents.dataclasses.replace(found, counts={**found.counts, "flush": contents.Count(requests=500)})
    job = fitted.fit(trace, 0, found).job
    (section,) = job["jobs"]
    assert (section["rw"], section["rate"], section["bssplit"]) == ("randrw", f"{750 * 4096},{250 * 4096}", "4k/100,4k/100")
    assert (section["fsync"], section["blockalign"], job["global"]["iodepth"], job["global"]["runtime"]) == (2, 4096, 20, 4)
    zones = [parse_size(one.partition("/")[2]) for one in section["random_distribution"].split(":")[1:]]
    assert sum(zones) + 4096 == section["size"]


def test_a_job_of_a_sample_is_as_large_as_the_whole() -> None:
    chance = np.random.default_rng(9)
    sector = 32 * chance.integers(0, 4000, 2 * COUNT)
    traces = [recorded_loads.recorded(sector, 32, sector % 64 > 0, part=part) for part in (4, 1)]
    part, whole = (fitted.fit(trace, 0, contents.contents_of(trace).devices[0]).job["jobs"][0] for trace in traces)
    assert part["size"] == pytest.approx(whole["size"], rel=0.2)
    for one, other in zip(part["rate"].split(","), whole["rate"].split(","), strict=True):
        assert int(one) == pytest.approx(int(other), rel=0.2)


def test_zones_are_not_larger_than_the_device() -> None:
    once = recorded_loads.recorded(np.arange(COUNT) * 8, 8, False, bytes=4096 * 2 * COUNT)
    found = fitted.fit(once, 0, contents.contents_of(once).devices[0])
    assert found.job["jobs"][0]["size"] <= 4096 * (2 * COUNT + 1)


def test_a_bad_fit_says_so() -> None:
    bad = fitted.Fitted("fitted-x", {}, (), 0.2, 0.0)
    assert not bad.fits and bad.sentence.endswith("no good substitute for the recorded load.") and "20.0 %" in bad.sentence


def test_too_few_accesses_are_refused() -> None:
    with pytest.raises(TraceError, match="has 100 accesses, and a fitted job needs at least 2000"):
        fit("zipf 0.8", 100)


def test_names_of_cells_are_made_of_harmless_characters() -> None:
    names = [fitted.name_of(one, place) for place, one in enumerate(("/dev/vg0/da ta", "$(x)\n{{ y }}", "/dev/", "/dev/vg0-da-ta"))]
    assert names == ["fitted-0-vg0-da-ta", "fitted-1-x-y", "fitted-2-device", "fitted-3-vg0-da-ta"]
