# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The caches of ZFS. The inputs are written by hand after the manual pages and the source of OpenZFS 0.8 to 2.3; none was captured on a host."""

from __future__ import annotations

import re

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Limits
from ansible_collections.cachefleet.storage.plugins.module_utils._health.metrics import Measured, exposition
from ansible_collections.cachefleet.storage.plugins.module_utils._health.readings import Readings, from_dict
from ansible_collections.cachefleet.storage.plugins.module_utils._health.zfs import (
    ARC,
    ZIL,
    Space,
    ZfsHealth,
    parse_iostat,
    parse_kstat,
    read_zfs,
    zfs_findings,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.zfs import parse_count, parse_status
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

_VALUES = {
    "hits": 900_000,
    "misses": 100_000,
    "demand_data_hits": 5,
    "size": 8 << 30,
    "c": 9 << 30,
    "c_max": 16 << 30,
    "memory_throttle_count": 0,
    "l2_hits": 20_000,
    "l2_misses": 80_000,
    "l2_read_bytes": 1 << 30,
    "l2_write_bytes": 2 << 30,
    "l2_cksum_bad": 0,
    "l2_io_error": 0,
    "l2_size": 400 << 30,
    "l2_asize": 200 << 30,
    "l2_hdr_size": 100 << 20,
}


def arcstats(**changes):
    rows = {**_VALUES, **changes}
    return "13 1 0x01 147 39984 7543201967 96012345678901\n" + "".join(
        f"{name:<31} 4    {value}\n" for name, value in {"name": None, **rows}.items() if value is not None
    ).replace(f"{'name':<31} 4    None\n", "name                            type data\n")


_ZIL_TEXT = """\
13 1 0x01 17 4624 7543201967 96012345678901
name                            type data
zil_commit_count                4    4304
zil_commit_writer_count         4    4301
zil_itx_count                   4    40049
zil_itx_metaslab_normal_count   4    80
zil_itx_metaslab_normal_bytes   4    655360
zil_itx_metaslab_slog_count     4    9557
zil_itx_metaslab_slog_bytes     4    1000929
"""

_STATUS = """\
  pool: tank
 state: ONLINE
  scan: scrub repaired 0B in 00:10:11 with 0 errors on Sun Nov  8 00:34:12 2026
config:

\tNAME                STATE     READ WRITE CKSUM
\ttank                ONLINE       0     0     0
\t  mirror-0          ONLINE       0     0     0
\t    /dev/sda1       ONLINE       0     0     0
\t    /dev/sdb1       ONLINE       0     0     0
\tlogs\t
\t  mirror-1          ONLINE       0     0     0
\t    /dev/nvme0n1p1  ONLINE       0     0     0
\t    /dev/nvme1n1p1  ONLINE       0     0     0
\tcache
\t  /dev/nvme0n1p2    ONLINE       0     0     0

errors: No known data errors
"""

_IOSTAT = (
    "tank\t1099511627776\t1099511627776\t10\t20\t163840\t327680\n"
    "mirror-0\t1099511627776\t1099511627776\t10\t15\t163840\t245760\n"
    "/dev/sda1\t-\t-\t5\t7\t81920\t122880\n"
    "/dev/sdb1\t-\t-\t5\t8\t81920\t122880\n"
    "mirror-1\t131072\t8455585792\t0\t5\t0\t81920\n"
    "/dev/nvme0n1p1\t-\t-\t0\t2\t0\t40960\n"
    "/dev/nvme1n1p1\t-\t-\t0\t3\t0\t40960\n"
    "/dev/nvme0n1p2\t214748364800\t0\t3\t1\t49152\t16384\n"
)


def found(status=_STATUS, before=None, limits=None, boot="b1", **arc):
    """The findings of a host as ``(severity, check, subject)``, and their messages."""
    zfs = ZfsHealth(parse_status(status), parse_kstat(arcstats(**arc), ARC))
    findings = list(zfs_findings(zfs, before, boot, limits or Limits()))
    return [(one.severity, one.check, one.subject) for one in findings], [one.message for one in findings]


def test_kstat_is_parsed():
    values = parse_kstat(arcstats(), ARC)
    assert values == {name: value for name, value in _VALUES.items() if name != "demand_data_hits"}
    assert set(values) == set(ARC)
    assert parse_kstat(_ZIL_TEXT, ZIL)["zil_itx_metaslab_slog_bytes"] == 1000929


@pytest.mark.parametrize("text", ["", "13 1 0x01 147\n", "hits 4\n", "hits 4 many\n", "hits 4 -5\n", "\0\0\0"])
def test_text_that_is_no_kstat_has_no_values(text):
    assert parse_kstat(text, ARC) == {}


def test_values_that_a_version_lacks_are_left_out():
    text = "".join(line for line in arcstats().splitlines(keepends=True) if not line.startswith("l2_asize"))
    assert "l2_asize" not in parse_kstat(text, ARC)
    assert "cachefleet_zfs_l2arc_allocated_bytes" not in exposition(Measured(zfs=ZfsHealth((), parse_kstat(text, ARC))))


@pytest.mark.parametrize(
    ("text", "count"), [("0", 0), ("17", 17), ("1.25K", 1280), ("12.5K", 12800), ("999", 999), ("3M", 3 << 20), ("-", None), ("", None), ("K", None)]
)
def test_shortened_counts(text, count):
    assert parse_count(text) == count


def test_iostat_has_the_space_of_top_level_devices_by_pool():
    second = "backup\t1\t2\t0\t0\t0\t0\nmirror-1\t7\t8\t0\t0\t0\t0\n"
    space = parse_iostat(_IOSTAT + second, {"tank", "backup"})
    assert space["tank", "mirror-1"] == Space(131072, 8455585792)
    assert space["tank", "/dev/nvme0n1p2"] == Space(214748364800, 0)
    assert space["backup", "mirror-1"] == Space(7, 8)
    assert ("tank", "/dev/sda1") not in space and ("tank", "tank") not in space


@pytest.mark.parametrize("cut", range(0, len(_IOSTAT), 41))
def test_truncated_iostat_raises_nothing(cut):
    parse_iostat(_IOSTAT[:cut], {"tank"})


def test_mirrored_log_and_healthy_pool_have_no_findings():
    assert found() == ([], [])


def test_log_on_one_device_is_a_warning():
    status = _STATUS.replace("\t  mirror-1          ONLINE       0     0     0\n\t    /dev/nvme0n1p1", "\t  /dev/nvme0n1p1").replace(
        "\t    /dev/nvme1n1p1  ONLINE       0     0     0\n", ""
    )
    keys, (message,) = found(status)
    assert keys == [("warning", "zfs_log_redundancy", "zfs:tank /dev/nvme0n1p1")]
    assert message.startswith("The log of the ZFS pool tank on /dev/nvme0n1p1 is not mirrored") and "zpool attach" in message


def test_mirror_of_the_log_that_lacks_a_device_is_critical():
    status = _STATUS.replace("mirror-1          ONLINE  ", "mirror-1          DEGRADED").replace(
        "/dev/nvme1n1p1  ONLINE       0     0     0", "/dev/nvme1n1p1  UNAVAIL      0     0     0  cannot open"
    )
    status = status.replace(" state: ONLINE", " state: DEGRADED")
    keys, messages = found(status)
    assert keys == [("critical", "zfs_pool_state", "zfs:tank"), ("critical", "zfs_log_state", "zfs:tank mirror-1")]
    assert "lacks /dev/nvme1n1p1: the newest synchronous writes are on one device only" in messages[1]


def test_mirror_of_three_that_lacks_one_is_a_warning():
    status = _STATUS.replace(
        "\t    /dev/nvme1n1p1  ONLINE       0     0     0\n",
        "\t    /dev/nvme1n1p1  ONLINE       0     0     0\n\t    /dev/nvme2n1p1  FAULTED      0     0     0  too many errors\n",
    ).replace("mirror-1          ONLINE  ", "mirror-1          DEGRADED")
    keys, (message,) = found(status)
    assert keys == [("warning", "zfs_log_state", "zfs:tank mirror-1")]
    assert "2 of its devices are left" in message


def test_faulted_log_is_critical():
    status = _STATUS.replace("mirror-1          ONLINE  ", "mirror-1          FAULTED ")
    assert found(status)[0] == [("critical", "zfs_log_state", "zfs:tank mirror-1")]


def test_pool_that_is_being_rebuilt_is_a_warning():
    status = _STATUS.replace(" state: ONLINE", " state: DEGRADED").replace(
        "\t    /dev/sda1 ", "\t    replacing-0     DEGRADED     0     0     0\n\t      /dev/sda1 "
    )
    assert found(status)[0] == [("warning", "zfs_pool_state", "zfs:tank")]
    assert found(_STATUS.replace(" state: ONLINE", " state: SUSPENDED"))[0] == [("critical", "zfs_pool_state", "zfs:tank")]


def test_cache_device_that_failed_and_errors_are_warnings():
    status = _STATUS.replace("/dev/nvme0n1p2    ONLINE       0     0     0", "/dev/nvme0n1p2    FAULTED      3  1.2K     0  too many errors")
    keys, messages = found(status)
    assert keys == [("warning", "zfs_cache_state", "zfs:tank /dev/nvme0n1p2"), ("warning", "zfs_device_errors", "zfs:tank /dev/nvme0n1p2")]
    assert "3 read errors and 1228 write errors" in messages[1]


def test_errors_of_the_data_devices_are_left_to_the_pool():
    assert found(_STATUS.replace("/dev/sda1       ONLINE       0     0     0", "/dev/sda1       ONLINE       5     0     0"))[0] == []


def earlier(boot="b1", **changes):
    counters = {name: _VALUES[name] for name in ("hits", "misses", "l2_hits", "l2_misses", "l2_io_error", "l2_cksum_bad")}
    return Readings(1.0, boot, zfs={**counters, **changes})


def test_low_hit_ratio_of_cache_devices_is_a_warning():
    keys, (message,) = found(before=earlier(), l2_hits=20_100, l2_misses=81_900)
    assert keys == [("warning", "zfs_l2arc_hits", "zfs l2arc")]
    assert "served 5% of 2000 reads" in message
    assert found(before=earlier(), l2_hits=21_000, l2_misses=81_000)[0] == []
    # Too few requests, another run of the kernel, counters that began again, and no earlier reading: no ratio.
    assert found(before=earlier(), l2_hits=20_001, l2_misses=80_100)[0] == []
    assert found(before=earlier(boot="b0"), l2_hits=20_100, l2_misses=81_900)[0] == []
    assert found(before=earlier(l2_hits=10**9), l2_misses=81_900)[0] == []
    assert found(l2_hits=0)[0] == []


def test_errors_of_cache_devices_since_the_last_reading():
    keys, (message,) = found(before=earlier(), l2_io_error=7)
    assert keys == [("warning", "zfs_l2arc_errors", "zfs l2arc")]
    assert "had 7 read errors since the last reading" in message
    assert found(before=earlier(l2_io_error=7), l2_io_error=7)[0] == []
    assert "2 checksum errors since ZFS was loaded" in found(l2_cksum_bad=2)[1][0]
    # After a reset the counters are those since then.
    assert "had 7 read errors since ZFS was loaded" in found(before=earlier(l2_io_error=9), l2_io_error=7)[1][0]


def test_statistics_of_cache_devices_need_cache_devices():
    status = re.sub(r"\tcache\n.*\n", "", _STATUS)
    assert found(status, before=earlier(), l2_io_error=7, l2_hits=20_100, l2_misses=81_900)[0] == []


@pytest.fixture
def host(tmp_path):
    fake = FakeHost(tmp_path)
    fake.disk("sda", ID_FS_TYPE="zfs_member", ID_FS_USAGE="filesystem", ID_FS_LABEL="tank")
    fake.write("proc/spl/kstat/zfs/arcstats", arcstats())
    fake.write("proc/spl/kstat/zfs/zil", _ZIL_TEXT)
    return fake


def read(host, missing=(), **replies):
    commands = {
        ("udevadm", "info"): host.udev_reply,
        ("zpool", "status"): Reply(_STATUS),
        ("zpool", "list"): Reply("tank\t2199023255552\n"),
        ("zpool", "iostat"): Reply(_IOSTAT),
        ("zfs", "get"): Reply("tank\tstandard\n"),
    }
    commands.update({tuple(name.split("_")): reply for name, reply in replies.items()})
    runner = ScriptedRunner(commands, missing=missing)
    return read_zfs(read_devices(runner, host.root), runner, host.root), runner


def test_host_with_zfs_is_read_and_described(host):
    zfs, runner = read(host)
    assert ("zpool", "iostat", "-v", "-H", "-p", "-P", "-L") in runner.calls
    plain = zfs.to_dict()
    assert plain["arc"]["l2_hdr_size"] == 100 << 20 and plain["zil"]["zil_commit_count"] == 4304
    (pool,) = plain["pools"]
    assert (pool["name"], pool["state"], pool["size"]) == ("tank", "ONLINE", 2199023255552)
    assert pool["vdevs"] == [
        {
            "class": "logs",
            "name": "mirror-1",
            "state": "ONLINE",
            "devices": ["/dev/nvme0n1p1", "/dev/nvme1n1p1"],
            "redundancy": "mirrored",
            "allocated": 131072,
            "free": 8455585792,
        },
        {
            "class": "cache",
            "name": "/dev/nvme0n1p2",
            "state": "ONLINE",
            "devices": ["/dev/nvme0n1p2"],
            "redundancy": "none",
            "allocated": 214748364800,
            "free": 0,
        },
    ]
    assert from_dict(Readings(1.0, "b1", zfs=zfs.counters).to_dict()).zfs == {name: _VALUES[name] for name in zfs.counters}


def test_metrics_of_zfs(host):
    text = exposition(Measured(zfs=read(host)[0]))
    for line in (
        'cachefleet_zfs_arc_lookups_total{result="hit"} 900000',
        'cachefleet_zfs_l2arc_lookups_total{result="miss"} 80000',
        f"cachefleet_zfs_arc_size_bytes {8 << 30}",
        'cachefleet_zfs_zil_written_bytes_total{to="log"} 1000929',
        'cachefleet_zfs_pool_state{pool="tank",state="ONLINE"} 1',
        'cachefleet_zfs_vdev_state{pool="tank",vdev="mirror-1",state="DEGRADED"} 0',
        'cachefleet_zfs_vdev_allocated_bytes{pool="tank",vdev="mirror-1"} 131072',
        'cachefleet_zfs_vdev_errors_total{pool="tank",vdev="/dev/nvme1n1p1",kind="checksum"} 0',
        'cachefleet_zfs_vdev_info{pool="tank",vdev="/dev/nvme0n1p2",class="cache",redundancy="none"} 1',
    ):
        assert f"\n{line}\n" in text, line
    assert 'vdev="mirror-0"' not in text


def test_host_without_zfs_costs_no_command(tmp_path):
    fake = FakeHost(tmp_path)
    fake.disk("sda")
    zfs, runner = read(fake)
    assert zfs is None
    assert {words[0] for words in runner.calls} == {"udevadm"}


def test_pool_without_log_and_cache_needs_no_iostat(host):
    zfs, runner = read(host, zpool_status=Reply(re.sub(r"\tlogs.*?(?=\n\nerrors)", "", _STATUS, flags=re.DOTALL)))
    assert zfs.pools and zfs.space == {}
    assert not [words for words in runner.calls if words[:2] == ("zpool", "iostat")]


def test_what_cannot_be_read_is_a_problem(host):
    zfs, _runner = read(host, zpool_iostat=Reply(rc=1, stderr="cannot open"))
    assert zfs.pools and zfs.space == {}
    assert len(zfs.problems) == 1 and "The space of the log and cache devices of ZFS could not be read" in zfs.problems[0]
    zfs, _runner = read(host, missing=("zpool",))
    assert zfs.pools == () and "the command zpool is missing" in zfs.problems[0]
    (host.root / "proc/spl/kstat/zfs/zil").unlink()
    (host.root / "proc/spl/kstat/zfs/zil").mkdir()
    zfs, _runner = read(host)
    assert zfs.zil == {} and zfs.arc and "cannot be read" in zfs.problems[0]
