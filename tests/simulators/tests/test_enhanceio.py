# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stand-ins for EnhanceIO: what they print, and what they do with blocks, as the driver and its tool do."""

from __future__ import annotations

import json
import os
import struct
import subprocess

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import output as enhanceio_output
from ansible_collections.cachefleet.storage.tests.simulators import __main__ as simulators
from ansible_collections.cachefleet.storage.tests.simulators import simulator
from ansible_collections.cachefleet.storage.tests.simulators.enhanceio import EioCli, Sysctl
from ansible_collections.cachefleet.storage.tests.simulators.enhanceio_driver import new_state

HDD, SSD = "/dev/sda", "/dev/sdb"
CREATE = ("create", "-d", HDD, "-s", SSD, "-c", "images")


class Host:
    def __init__(self, root, **options):
        (root / "dev").mkdir(parents=True)
        for name in ("sda", "sdb", "sdc"):
            (root / "dev" / name).touch()
            os.truncate(root / "dev" / name, 1 << 20)
        self.root = root
        self.state = {"faults": {}, "controllers": [new_state(str(root), **options)]}
        self.driver.publish()

    @property
    def driver(self):
        return EioCli(self.state).driver

    def eio(self, *words):
        return EioCli(self.state).answer(words, "")

    def sysctl(self, key, value):
        return Sysctl(self.state).answer(["-w", f"dev.enhanceio.images.{key}={value}"], "")

    def file(self, name):
        return (self.root / "proc/enhanceio/images" / name).read_text()

    def stat(self, name):
        return enhanceio_output.parse_stats(self.file("stats"), "images")[name]

    def disk(self, number):
        return self.driver.state["disks"].get(str(self.root / "dev/sda"), {}).get(str(number))


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path / "host")


def test_line_width_matches_the_driver(host):
    host.eio(*CREATE)
    assert host.file("stats").splitlines()[0] == "reads" + " " * 21 + " " + " " * 11 + "0"
    assert {len(line) for line in host.file("stats").splitlines()} == {39}
    assert host.file("errors").splitlines()[0] == "disk_read_errors       0"
    assert host.file("config").splitlines()[4:8] == ["set_size          256", "block_size       4096", "mode                3", "eviction            2"]
    assert "state        normal\nflags      0x00000020\n" in host.file("config")
    assert (host.root / "proc/enhanceio/version").read_text() == "EnhanceIO Version: ENHANCEIO unknown-git-version (checksum disabled)\n"


def test_create_prints_its_options_and_the_udev_rule_match(host):
    answer = host.eio(*CREATE, "-m", "wb", "-p", "fifo")
    assert answer.rc == 0
    assert answer.stdout.splitlines() == [
        "Cache Name       : images",
        "Source Device    : /dev/sda",
        "SSD Device       : /dev/sdb",
        "Policy           : fifo",
        "Mode             : Write Back",
        "Block Size       : 4096",
        "Associativity    : 256",
        'ENV{ID_SERIAL}=="sda", ENV{DEVTYPE}=="disk"',
        'ENV{ID_SERIAL}=="sdb", ENV{DEVTYPE}=="disk"',
        "Cache created successfully",
    ]
    assert (host.root / "etc/udev/rules.d/94-enhanceio-images.rules").exists()
    assert "State            : normal" in host.eio("info").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("create", "-d", HDD, "-s", SSD, "-c", "a-b"), "Cache name can contain only alphanumeric"),
        (("create", "-d", HDD, "-s", HDD, "-c", "a"), "Cache creation failed (dmesg can provide you more info)"),
        (("create", "-d", "/dev/gone", "-s", SSD, "-c", "a"), "Cache creation failed"),
        (("edit", "-c", "other", "-m", "wt"), "Requested cache not found"),
        (("delete", "-c", "other"), "No cache exists with the name other"),
    ],
)
def test_failures_exit_with_status_3(host, words, message):
    answer = host.eio(*words)
    assert answer.rc == 3
    assert message in answer.stdout


@pytest.mark.parametrize(
    "words", [("enable", "-d", HDD, "-s", SSD, "-c", "a"), ("disable", "-c", "a"), ("notify", "-a", "add", "-s", SSD, "-c", "a"), ("clean", "-c", "a")]
)
def test_some_commands_always_exit_with_status_0(host, words):
    assert host.eio(*words).rc == 0
    assert not host.driver.state["caches"]


@pytest.mark.parametrize(
    "words", [(), ("attach",), ("create", "-d", HDD), ("create", "-d"), (*CREATE, "-m", "fast"), (*CREATE, "-b", "512"), (*CREATE, "-x", "1"), ("info", "all")]
)
def test_invalid_arguments_are_rejected_by_argparse(host, words):
    answer = host.eio(*words)
    assert answer.rc == 2
    assert answer.stderr.startswith("usage: eio_cli")


@pytest.mark.parametrize(("ignored", "block_size"), [(False, 8192), (True, 4096)])
def test_block_size_is_that_of_eio_cli_unless_it_belongs_to_another_driver(host, ignored, block_size):
    host.driver.state["block_size_ignored"] = ignored
    host.eio(*CREATE, "-b", "8192")
    config = enhanceio_output.parse_config(host.file("config"), "images")
    assert (config.block_size, config.set_size) == (block_size, 512)


def test_blocks_exclude_the_metadata(host):
    """As measured on a device of 1 GiB."""
    host.eio(*CREATE, "-m", "wb")
    assert enhanceio_output.parse_config(host.file("config"), "images").blocks == 260864
    assert "metadata        large\n" in host.file("config")
    assert host.file("stats").splitlines()[-1].startswith("unaligned_ios")
    assert (host.root / "proc/sys/dev/enhanceio/images/cache_wronly").read_text() == "0\n"


def test_create_overwrites_dirty_blocks_without_prompt(host):
    host.eio(*CREATE, "-m", "wb")
    host.driver.write(HDD, 1, "only here")
    host.driver.shut_down()
    assert host.eio(*CREATE, "-m", "wb").rc == 0
    assert host.driver.read(HDD, 1) is None


def test_dirty_cache_is_enabled_only_in_writeback(host):
    host.eio(*CREATE, "-m", "wb")
    host.driver.write(HDD, 1, "v")
    host.driver.power_cut()
    host.eio("enable", "-d", HDD, "-s", SSD, "-m", "wt", "-c", "images")
    assert not host.driver.state["caches"]
    host.eio("enable", "-d", HDD, "-s", SSD, "-m", "wb", "-c", "images")
    assert (host.driver.read(HDD, 1), host.stat("nr_dirty"), host.disk(1)) == ("v", 1, None)


def test_cache_after_clean_shutdown_keeps_possibly_stale_blocks(host):
    host.eio(*CREATE)
    host.driver.write(HDD, 1, "old")
    host.driver.shut_down()
    host.driver.write(HDD, 1, "new")
    host.eio("enable", "-d", HDD, "-s", SSD, "-c", "images")
    assert host.driver.read(HDD, 1) == "old"


def test_fast_removal_starts_empty_and_loses_dirty_blocks(host):
    host.eio(*CREATE)
    host.driver.write(HDD, 1, "old")
    assert host.sysctl("control", 6).rc == 0
    host.eio("disable", "-c", "images")
    host.driver.write(HDD, 1, "new")
    host.eio("enable", "-d", HDD, "-s", SSD, "-c", "images")
    assert host.driver.read(HDD, 1) == "new"
    host.sysctl("control", 6)
    host.eio("edit", "-c", "images", "-m", "wb")
    host.driver.write(HDD, 2, "lost")
    host.eio("edit", "-c", "images", "-m", "wt")
    assert (host.stat("nr_dirty"), host.disk(2)) == (1, None)


def test_edit_and_delete_flush_in_the_driver(host):
    host.eio(*CREATE, "-m", "wb")
    host.driver.write(HDD, 1, "v")
    assert host.eio("edit", "-c", "images", "-m", "ro").stdout.endswith("Cache edited Successfully\n")
    assert host.disk(1) == "v"
    host.eio("edit", "-c", "images", "-m", "wb")
    host.driver.write(HDD, 2, "w")
    assert host.eio("delete", "-c", "images").stdout.endswith("Done removing rule file\n")
    assert host.disk(2) == "w"
    # The superblock stays.
    assert struct.unpack_from("<I", (host.root / "dev/sdb").read_bytes(), 65536 + 16)[0] == 0xACCEDED1


def test_delete_without_rule_file_deletes_and_fails(host):
    host.eio(*CREATE)
    (host.root / "etc/udev/rules.d/94-enhanceio-images.rules").unlink()
    answer = host.eio("delete", "-c", "images")
    assert (answer.rc, host.driver.state["caches"]) == (3, {})
    assert "Unable to delete rule file(please remove it manually)" in answer.stdout


def test_second_delete_of_failed_cache_drops_dirty_blocks(host):
    host.eio(*CREATE, "-m", "wb")
    host.driver.write(HDD, 1, "v")
    host.driver.lose(SSD)
    with pytest.raises(OSError, match="failed"):
        host.driver.read(HDD, 1)
    host.eio("delete", "-c", "images")
    assert (host.driver.state["caches"], host.disk(1)) == ({}, None)


def test_cleaning_takes_time_and_prevents_new_dirty_blocks(tmp_path):
    host = Host(tmp_path / "slow", drain=2)
    host.eio(*CREATE, "-m", "wb")
    for number in range(5):
        host.driver.write(HDD, number, "v")
    assert host.sysctl("do_clean", 3).rc == 0
    seen = []
    for number in range(4):
        seen.append((host.stat("nr_dirty"), host.stat("do_clean")))
        host.driver.write(HDD, 10 + number, "w")
        host.driver.tick()
    assert seen == [(5, 3), (3, 3), (1, 3), (0, 2)]
    assert host.disk(10) == "w"


@pytest.mark.parametrize(
    ("mode", "key", "value", "message"),
    [
        ("wt", "do_clean", 1, "cannot stat /proc/sys/dev/enhanceio/images/do_clean: No such file"),
        ("wt", "dirty_high_threshold", 50, "cannot stat"),
        ("wb", "unknown", 1, "cannot stat"),
        ("wb", "do_clean", 4, "Invalid argument"),
        ("wb", "dirty_low_threshold", 31, "Invalid argument"),
        ("wb", "dirty_high_threshold", 9, "Invalid argument"),
        ("wb", "time_based_clean_interval", 721, "Invalid argument"),
        ("wb", "control", 6, "Operation not permitted"),
        ("wt", "mem_limit_pct", 101, "Invalid argument"),
        ("wt", "control", 8, "Invalid argument"),
    ],
)
def test_invalid_sysctls_are_rejected(host, mode, key, value, message):
    host.eio(*CREATE, "-m", mode)
    answer = host.sysctl(key, value)
    assert answer.rc == (255 if "cannot stat" in message else 0)
    assert message in answer.stderr


def test_sysctls_are_echoed_and_listed(host):
    host.eio(*CREATE, "-m", "wb")
    assert host.sysctl("dirty_high_threshold", 50).stdout == "dev.enhanceio.images.dirty_high_threshold = 50\n"
    assert (host.root / "proc/sys/dev/enhanceio/images/dirty_high_threshold").read_text() == "50\n"


def test_tool_fails_without_the_kernel_module(tmp_path):
    host = Host(tmp_path / "bare", module="absent")
    assert host.eio(*CREATE).rc == 1
    assert "'/dev/eiodev'" in host.eio(*CREATE).stderr
    assert host.eio("info").rc == 1
    assert not (host.root / "proc/enhanceio").exists()


def test_system_root_is_rejected():
    with pytest.raises(ValueError, match="only in the view"):
        new_state("/")


def test_simulator_is_installed_like_the_others(tmp_path, monkeypatch):
    monkeypatch.setenv(simulator.FOLDER_VARIABLE, str(tmp_path / "states"))
    host = Host(tmp_path / "machine")
    simulators.install(tmp_path / "root")
    assert simulators.main(["add", "eio_cli", "EnhanceIO", "--option", f"root={json.dumps(str(host.root))}"]) == 0
    tool = tmp_path / "root/sbin/eio_cli"
    sent = subprocess.run([tool, *CREATE], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True)
    assert sent.stdout.endswith("Cache created successfully\n")
    assert "state        normal" in host.file("config")
    assert simulator.calls("eio_cli") == [list(CREATE)]
