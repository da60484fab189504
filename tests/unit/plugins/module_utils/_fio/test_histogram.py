# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.cachefleet.storage.plugins.module_utils._fio import histogram
from ansible_collections.cachefleet.storage.tests.unit.support.fio_samples import latencies


def test_indexes_and_midpoints_of_both_tables():
    assert [histogram.bin_midpoint(index) for index in (0, 63, 127, 128, 129, 191, 192)] == [0, 63, 127, 129, 131, 255, 258]
    for cells in (1216, 1856):
        assert all(histogram.bin_index(histogram.bin_midpoint(index)) == index for index in range(cells))


def test_midpoint_error_is_at_most_one_in_128():
    for value in (1, 127, 128, 1000, 272_384, 10**6, 3_159_000_000_000):
        assert abs(histogram.bin_midpoint(histogram.bin_index(value)) - value) <= value / 128


def test_percentiles_match_fio():
    bins = {100: 90, 200: 9, 10_000: 1}
    assert histogram.percentile(bins, 50) == 100
    assert histogram.percentile(bins, 90) == 100
    assert histogram.percentile(bins, 90.1) == 200
    assert histogram.percentile(bins, 99) == 200
    assert histogram.percentile(bins, 99.9) == 10_000
    assert histogram.percentile({}, 99) is None
    assert histogram.percentiles(bins, (50, 99)) == {50: 100, 99: 200}


def test_merged_percentile_of_ten_hosts_with_one_slow_host():
    """Nine at 0.1 ms and one at 10 ms: the mean of the hosts' p99 says 1.09 ms, and one I/O in ten took 10 ms."""
    hosts = [{100_000: 1000}] * 9 + [{10_000_000: 1000}]
    merged = histogram.merge(hosts)
    assert histogram.total(merged) == 10_000
    assert histogram.percentile(merged, 90) == 100_000
    assert histogram.percentile(merged, 99) == 10_000_000


def test_merge_adds_counts():
    parts = [{1: 2, 5: 1}, {5: 4}, {}]
    assert histogram.merge(parts) == {1: 2, 5: 5}
    assert histogram.merge([parts[1], parts[2], parts[0]]) == histogram.merge(parts)


def test_bins_of_fio_2_are_indexed_in_microseconds():
    cells = {str(index): 0 for index in range(1216)}
    cells.update({"100": 3, "128": 2, "FIO_IO_U_PLAT_BITS": 6, "FIO_IO_U_PLAT_VAL": 64, "FIO_IO_U_PLAT_NR": 1216})
    assert histogram.from_indexed(cells, 1000) == {100_000: 3, 129_000: 2}


def test_bins_since_fio_2_20_are_durations():
    assert histogram.from_durations({"470": 1, "482": 0}, 1) == {470: 1}


def test_sample_percentiles_are_reproduced_from_bins(shared_samples):
    compared = 0
    for path in sorted((shared_samples / "fio").glob("v*/*.json")):
        for values in latencies(path.read_text(errors="replace")):
            bins = histogram.from_durations(values["bins"], 1)
            for key, value in values["percentile"].items():
                if float(key) > 0:
                    assert histogram.percentile(bins, float(key)) == value, f"{path.name} {key}"
                    compared += 1
    assert compared >= 600
