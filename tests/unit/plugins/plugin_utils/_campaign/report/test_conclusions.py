# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Conclusions on campaigns with a known truth, and on campaigns in which there is none to draw."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("numpy", reason="statistics need numpy: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page import page, twins
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.analysis import Options, analyse
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows
from ansible_collections.cachefleet.storage.tests.unit.support.report_rows import measurement


def analysed(runs, tmp_path):
    return analyse(Rows("c", list(runs)), [], 0, [], tmp_path, Options())


def concluded(runs, tmp_path):
    return analysed(runs, tmp_path).conclusions


def repeats(iops, cell, count=4, start=0.0, seconds=60.0, **changes):
    """Repeats of a cell that vary by 1 %, ten minutes apart."""
    chance = random.Random(f"{iops} {cell} {changes}")
    for repeat in range(1, count + 1):
        began = 1e9 + start + 6000 * repeat
        times = {"started": began, "io_start": began, "io_end": began + seconds, "runtime_ms": int(1000 * seconds)}
        yield measurement(cell=cell, repeat=repeat, iops=iops * chance.gauss(1, 0.01), **{"workload_sha256": "w", **times, **changes})


def disks(alone, each, count=4, names=("sda", "sdb")):
    """Each disk alone, one after the other, and all of them at once."""
    for number, name in enumerate(names):
        yield from repeats(alone, f"one.{name}", count, start=100.0 * number, target=f"/dev/{name}")
        yield from repeats(each, f"all.{name}", count, start=1000.0 + 0.2 * number, target=f"/dev/{name}")


def hosts(alone, each, names=("node1", "node2"), offset=0.0):
    for number, name in enumerate(names):
        yield from repeats(alone, "one", start=100.0 * number + offset * number, host=name, clock_offset=offset * number)
        yield from repeats(each, "all", start=1000.0 + offset * number, host=name, clock_offset=offset * number)


def test_targets_that_share_a_limit(tmp_path):
    [said] = concluded(disks(20000, 10000), tmp_path)
    assert said.startswith("Random 4 KiB writes in none: each of 2 targets at once (")
    assert "times as much as one target alone (" in said and "so targets share a limit: together they do" in said
    assert said.endswith("within 5 %.")


def test_targets_that_share_no_limit(tmp_path):
    assert concluded(disks(20000, 20000), tmp_path) == ()


def test_targets_that_were_measured_once_show_nothing(tmp_path):
    [said] = concluded(disks(20000, 10000, count=1), tmp_path)
    assert "is not known" in said and "share a limit" not in said


def test_targets_one_after_the_other_are_not_at_once(tmp_path):
    runs = [one for number, name in enumerate(("sda", "sdb")) for one in repeats(9000 + number, f"all.{name}", start=100.0 * number, target=f"/dev/{name}")]
    assert concluded(runs, tmp_path) == ()


def test_three_targets_that_lose_a_tenth_are_not_within_5_percent_of_one(tmp_path):
    [said] = concluded(disks(20000, 16000, names=("sda", "sdb", "sdc")), tmp_path)
    assert "each of 3 targets" in said and "so targets slow one another: together they do 2.4" in said and "within 5 %" not in said


@pytest.mark.parametrize("offset", [0.0, 3600.0])
def test_hosts_within_5_percent_of_one(tmp_path, offset):
    said = concluded(hosts(20000, 10000, offset=offset), tmp_path)
    assert len(said) == 1 and "each of 2 hosts at once" in said[0] and said[0].endswith("times one alone, within 5 %.")


def test_hosts_that_share_nothing(tmp_path):
    assert concluded(hosts(20000, 20000), tmp_path) == ()


# --- attachments


def moved(sata, raid, **changes):
    yield from repeats(sata, "randwrite-4k", host="node1", attachment="SATA", drive="S1", target="/dev/sda")
    yield from repeats(raid, "randwrite-4k", host="node2", attachment="RAID volume", drive="S1", target="/dev/sdb", **changes)


def test_sata_or_raid_of_a_drive_that_was_moved(tmp_path):
    [said] = concluded(moved(26000, 21000, target_size=int(3.99e12)), tmp_path)
    assert said.startswith("RAID volume or SATA? Random 4 ")
    assert ": SATA (26," in said or ": SATA (25," in said
    assert "times as much as RAID volume (2" in said and said.endswith("with the same drive (S1).")


def test_sata_or_raid_without_a_difference(tmp_path):
    [said] = concluded(moved(26000, 26000), tmp_path)
    assert "does as much as RAID volume" in said and "within 5 %" in said


def test_sata_or_raid_of_other_kernels_is_not_known(tmp_path):
    [said] = concluded(moved(26000, 21000, kernel="6.12.0"), tmp_path)
    assert "is not known with the same drive (S1): kernel 6.12.0 / 6.1.0." in said


def test_an_unknown_attachment_is_never_guessed(tmp_path):
    sata = repeats(26000, "randwrite-4k", attachment="SATA", drive="S1")
    unknown = repeats(21000, "randwrite-4k", host="node2", attachment="unknown", drive="S1")
    assert concluded([*sata, *unknown], tmp_path) == ()


def fleet_of(count, raid):
    for number in range(count):
        yield from repeats(26000 + number, "randwrite-4k", host=f"a{number}", attachment="SATA", drive=f"S{number}")
        yield from repeats(raid + number, "randwrite-4k", host=f"b{number}", attachment="RAID volume", drive=f"R{number}")


def test_different_drives_are_the_unit(tmp_path):
    [few] = concluded(fleet_of(2, 21000), tmp_path)
    [many] = concluded(fleet_of(5, 21000), tmp_path)
    assert "is not known with different drives (2 and 2 SSD A): different drives, of which at least 4 on each side are needed." in few
    assert "times as much as RAID volume" in many and many.endswith("with different drives (5 and 5 SSD A).")


def test_rows_are_not_medians_over_attachments(tmp_path):
    found = analysed(moved(26000, 21000), tmp_path)
    assert [line.model for line in found.table] == ["SSD A, RAID volume", "SSD A, SATA"]
    assert [round(line.cells[0].iops, -3) for line in found.table] == [21000, 26000]


def test_one_attachment_changes_no_row(tmp_path):
    runs = [*repeats(26000, "w", attachment="SATA"), *repeats(21000, "w", host="node2", attachment="SATA")]
    assert [line.model for line in analysed(runs, tmp_path).table] == ["SSD A"]


def test_variants_of_one_attachment_each_stay_in_one_row(tmp_path):
    runs = [*repeats(26000, "w", variant="jbod", attachment="JBOD", drive="S1"), *repeats(21000, "w", variant="volume", attachment="RAID volume", drive="S1")]
    found = analysed(runs, tmp_path)
    assert [(line.model, len(line.cells)) for line in found.table] == [("SSD A", 2)]
    [said] = found.conclusions
    assert "of which JBOD is variant jbod and RAID volume volume." in said


def test_rows_are_not_medians_over_classes_of_hosts(tmp_path):
    runs = [*repeats(26000, "w"), *repeats(21000, "w", host="node2", kernel="6.12.0")]
    assert [line.model for line in analysed(runs, tmp_path).table] == ["SSD A, node1 (kernel 6.1.0)", "SSD A, node2 (kernel 6.12.0)"]


# --- free space, engines


def shares(whole, part, seconds=3600.0, count=4):
    yield from repeats(whole, "randwrite-100pct", count, seconds=seconds, target_size=10**12, workload_sha256="a")
    yield from repeats(part, "randwrite-70pct", count, seconds=seconds, target_size=7 * 10**11, workload_sha256="b")


def test_sustained_writes_to_a_part_of_the_target(tmp_path):
    [said] = concluded(shares(10000, 20000), tmp_path)
    assert ": 70 % (" in said and "times as much as 100 % of the target (1 TB) (" in said and said.endswith("sustained, if the rest was discarded.")


def test_sustained_writes_without_a_difference(tmp_path):
    [said] = concluded(shares(10000, 10000), tmp_path)
    assert "does as much as 100 % of the target" in said


def test_short_writes_are_not_sustained(tmp_path):
    assert concluded(shares(10000, 20000, seconds=60.0), tmp_path) == ()


def test_sustained_writes_that_ran_once_show_nothing(tmp_path):
    [said] = concluded(shares(10000, 20000, count=1), tmp_path)
    assert "whether 70 % (" in said and "is not known" in said


def engines(sync, libaio, jobs=32, depth=8):
    yield from repeats(sync, "sync", ioengine="psync", numjobs=jobs, iodepth=1, workload_sha256="a")
    yield from repeats(libaio, "async", ioengine="libaio", numjobs=jobs // depth, iodepth=depth, workload_sha256="b")


def test_asynchronous_against_synchronous(tmp_path):
    [said] = concluded(engines(10000, 15000), tmp_path)
    assert "libaio by 4 jobs at depth 8 (" in said and "times as much as synchronous I/O by 32 jobs (" in said
    assert said.endswith("with as many I/Os in flight.")


def test_asynchronous_without_a_difference(tmp_path):
    [said] = concluded(engines(10000, 10000), tmp_path)
    assert "does as much as synchronous I/O by 32 jobs" in said


def test_engines_with_other_loads_are_not_compared(tmp_path):
    runs = [*repeats(9000, "sync", ioengine="psync", numjobs=4, iodepth=1), *repeats(15000, "async", ioengine="libaio", numjobs=4, iodepth=8)]
    assert concluded(runs, tmp_path) == ()


# --- where they are printed


def test_more_than_three_are_counted(tmp_path):
    runs = [
        one
        for number in range(5)
        for one in (
            *repeats(9000, f"sync-{number}k", ioengine="psync", numjobs=8, iodepth=1, bs=f"{number}k", workload_sha256=f"a{number}"),
            *repeats(9000 + 2000 * number, f"async-{number}k", ioengine="libaio", numjobs=1, iodepth=8, bs=f"{number}k", workload_sha256=f"b{number}"),
        )
    ]
    said = concluded(runs, tmp_path)
    assert len(said) == 4 and said[-1].startswith("2 more comparisons of this kind (libaio by 1 job at depth 8): ")


def test_page_and_markdown_have_them(tmp_path):
    found = analysed(disks(20000, 10000), tmp_path)
    assert "so targets share a limit" in page.render(found, "c") and "so targets share a limit" in twins.markdown(found)
