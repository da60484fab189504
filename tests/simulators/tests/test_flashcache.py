# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated tools of flashcache behave as the published ones: checks, questions, messages, and what stays on the SSD."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.tests.simulators import flashcache, flashcache_kernel
from ansible_collections.cachefleet.storage.tests.simulators.flashcache import (
    Blockdev,
    Dmsetup,
    FlashcacheCreate,
    FlashcacheDestroy,
    FlashcacheLoad,
    FlashcacheSetioctl,
    Modprobe,
)

SSD, DISK = "/dev/disk/by-id/ata-S.1", "/dev/disk/by-id/wwn-0x5"


@pytest.fixture
def state(tmp_path):
    (tmp_path / "dev/disk/by-id").mkdir(parents=True)
    for path, name, sectors in ((SSD, "sdc", 262144), (DISK, "sda", 2097152)):
        with (tmp_path / "dev" / name).open("wb") as device:
            device.truncate(sectors * 512)
        (tmp_path / path.lstrip("/")).symlink_to(tmp_path / "dev" / name)
    return {"faults": {}, "controllers": [flashcache_kernel.host(root=str(tmp_path))]}


@pytest.fixture
def call(state):
    return lambda kind, *words, stdin="": kind(state).answer(words, stdin)


@pytest.fixture
def kernel(state):
    return flashcache_kernel.Kernel(state["controllers"][0], state["faults"])


def superblock_state(kernel):
    found = kernel.superblock(SSD)
    return found[3] if found else None


def test_writeback_cache_lifecycle(call, state, kernel):
    made = call(FlashcacheCreate, "-p", "back", "fc0", SSD, DISK)
    assert made.rc == 0
    assert made.stdout.splitlines()[0] == f"cachedev fc0, ssd_devname {SSD}, disk_devname {DISK} cache mode WRITE_BACK"
    assert made.stdout.splitlines()[1] == "block_size 8, md_block_size 8, cache_size 0"
    assert superblock_state(kernel) == flashcache_kernel.RUNNING
    kernel.write("fc0", 100)
    assert "\tdirty blocks(100), dirty percent(0)\n" in call(Dmsetup, "table", "fc0").stdout
    assert call(Dmsetup, "remove", "fc0").rc == 0
    assert superblock_state(kernel) == flashcache_kernel.CLEAN
    call(Blockdev, "--flushbufs", SSD)
    assert call(FlashcacheLoad, SSD).rc == 0
    assert "cached blocks(100)" in call(Dmsetup, "table", "fc0").stdout


def test_only_dirty_blocks_survive_a_crash(call, kernel):
    call(FlashcacheCreate, "-p", "back", "fc0", SSD, DISK)
    kernel.write("fc0", 100)
    kernel.host["caches"]["fc0"]["cached"] = 900
    kernel.crash()
    assert call(Dmsetup, "table").stdout == "No devices found\n"
    call(FlashcacheLoad, SSD)
    assert "cached blocks(100)" in call(Dmsetup, "table", "fc0").stdout


def test_sysctls_are_reset_on_load(call, kernel, tmp_path):
    place = tmp_path / "proc/sys/dev/flashcache/ata-S.1+wwn-0x5"
    call(FlashcacheCreate, "-p", "back", "fc0", SSD, DISK)
    (place / "fast_remove").write_text("1\n")
    kernel.write("fc0", 10)
    call(Dmsetup, "remove", "fc0")
    assert superblock_state(kernel) == flashcache_kernel.FAST_CLEAN
    call(Blockdev, "--flushbufs", SSD)
    call(FlashcacheLoad, SSD)
    assert (place / "fast_remove").read_text() == "0\n"
    assert "dirty blocks(10)" in call(Dmsetup, "table", "fc0").stdout


def test_out_of_range_value_is_clamped_with_success(call, tmp_path):
    call(FlashcacheCreate, "-p", "back", "fc0", SSD, DISK)
    file = tmp_path / "proc/sys/dev/flashcache/ata-S.1+wwn-0x5/dirty_thresh_pct"
    file.write_text("99\n")
    call(Dmsetup, "table", "fc0")
    assert file.read_text() == "95\n"


def test_statistics_are_zeroed_but_the_histogram_is_not(call, kernel, tmp_path):
    call(FlashcacheCreate, "-p", "thru", "fc0", SSD, DISK)
    kernel.send("fc0", {512: 3, 4096: 5})
    file = tmp_path / "proc/sys/dev/flashcache/ata-S.1+wwn-0x5/zero_stats"
    file.write_text("1\n")
    assert "reads(0)" in call(Dmsetup, "status", "fc0").stdout
    assert file.read_text() == "1\n"
    kernel.send("fc0", {4096: 5})
    assert "reads(5)" in call(Dmsetup, "status", "fc0").stdout
    call(Dmsetup, "remove", "fc0")
    call(FlashcacheCreate, "-p", "thru", "fc1", SSD, DISK)
    assert call(Dmsetup, "table", "fc1").stdout.endswith("Size Hist: 512:3 4096:10 \n")


def test_only_full_blocks_are_cached(call, kernel):
    call(FlashcacheCreate, "-p", "thru", "fc0", SSD, DISK)
    kernel.send("fc0", {512: 3, 4096: 5})
    status = call(Dmsetup, "status", "fc0").stdout
    assert "uncached reads(3)" in status
    assert "cached blocks(5)" in call(Dmsetup, "table", "fc0").stdout


def test_disabled_caching_creates_no_dirty_blocks_except_for_whitelist(call, kernel, tmp_path):
    call(FlashcacheCreate, "-p", "back", "fc0", SSD, DISK)
    (tmp_path / "proc/sys/dev/flashcache/ata-S.1+wwn-0x5/cache_all").write_text("0\n")
    kernel.write("fc0", 10)
    assert "dirty blocks(0)" in call(Dmsetup, "table", "fc0").stdout
    assert call(FlashcacheSetioctl, "-a", "-w", "4711", "/dev/mapper/fc0").rc == 0
    kernel.write("fc0", 10)
    assert "dirty blocks(10)" in call(Dmsetup, "table", "fc0").stdout
    assert "Whitelist: 4711 \n" in (tmp_path / "proc/flashcache/ata-S.1+wwn-0x5/flashcache_pidlists").read_text()
    call(FlashcacheSetioctl, "-c", "-w", "0", "/dev/mapper/fc0")
    assert "Whitelist: \n" in (tmp_path / "proc/flashcache/ata-S.1+wwn-0x5/flashcache_pidlists").read_text()


def test_existing_dirty_cache_is_neither_overwritten_nor_destroyed(call, state, kernel):
    call(FlashcacheCreate, "-p", "back", "fc0", SSD, DISK)
    kernel.write("fc0", 10)
    kernel.crash()
    made = call(FlashcacheCreate, "-p", "thru", "fc0", SSD, DISK)
    assert (made.rc, made.stderr) == (
        1,
        f"flashcache_create: Valid Flashcache already exists on {SSD}\nflashcache_create: Use flashcache_destroy first and then create again {SSD}\n",
    )
    destroyed = call(FlashcacheDestroy, SSD)
    assert destroyed.rc == 1
    assert destroyed.stderr.startswith(f"flashcache_destroy: DIRTY BLOCKS EXIST ON {SSD}, ABORTING CACHE DESTROY\n")
    assert state["controllers"][0]["lost"] == 0
    assert call(FlashcacheDestroy, "-f", SSD).rc == 0
    assert state["controllers"][0]["lost"] == 10
    assert superblock_state(kernel) is None


def test_tools_read_stale_page_cache(call, kernel):
    call(FlashcacheCreate, "-p", "back", "fc0", SSD, DISK)
    assert call(FlashcacheDestroy, SSD).stderr == f"flashcache_destroy: No valid Flashcache found on {SSD}\n"
    assert call(FlashcacheLoad, SSD).stderr == f"flashcache_load: Invalid Flashcache superblock {SSD}\n"
    call(Blockdev, "--flushbufs", SSD)
    assert "Destroying Flashcache" in call(FlashcacheDestroy, SSD).stderr


def test_unanswered_prompts_default_to_no(call, state):
    state["controllers"][0]["memory"] = 1 << 20
    made = call(FlashcacheCreate, "-p", "thru", "fc0", SSD, DISK)
    assert made.rc == 1
    assert "Are you sure you want to proceed ? (y/n): Exiting FlashCache creation\n" in made.stderr
    assert call(FlashcacheCreate, "-p", "thru", "fc0", SSD, DISK, stdin="y\n").rc == 0
    call(Dmsetup, "remove", "fc0")
    assert call(FlashcacheCreate, "-f", "-p", "thru", "fc0", SSD, DISK).rc == 0


def test_device_with_changed_size_is_not_loaded(call, kernel, tmp_path):
    call(FlashcacheCreate, "-p", "back", "fc0", SSD, DISK)
    call(Dmsetup, "remove", "fc0")
    call(Blockdev, "--flushbufs", SSD)
    with (tmp_path / "dev/sda").open("r+b") as device:
        device.truncate(2097152 * 512 + 4096)
    assert call(FlashcacheLoad, SSD).stderr == "flashcache_load: Disk size mismatch, expect 2097152, given 2097160\n"


def test_open_or_held_device_is_kept(call, state):
    call(FlashcacheCreate, "-p", "thru", "fc0", SSD, DISK)
    state["controllers"][0]["caches"]["fc0"]["opened"] = 1
    removed = call(Dmsetup, "remove", "fc0")
    assert (removed.rc, removed.stderr) == (1, "device-mapper: remove ioctl on fc0  failed: Device or resource busy\nCommand failed.\n")
    again = call(FlashcacheCreate, "-p", "thru", "fc1", SSD, DISK)
    assert again.rc == 1
    assert again.stderr.startswith("device-mapper: reload ioctl on fc1  failed: Device or resource busy\nCommand failed.\necho 0 2097152 flashcache ")
    assert call(Dmsetup, "info", "-c", "--noheadings", "--separator", ":", "-o", "name,open").stdout == "fc0:1\n"
    assert "Open count:        1\n" in call(Dmsetup, "info", "fc0").stdout
    assert call(Dmsetup, "ls", "--target", "flashcache").stdout == "fc0\t(253:0)\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fc0", SSD, DISK), "Cache Mode back|thru|around is required argument"),
        (("-p", "thru", "-b", "12k", "fc0", SSD, DISK), "Block size must be a power of 2"),
        (("-p", "thru", "-b", "4M", "fc0", SSD, DISK), "Unknown block size type M"),
        (("-p", "thru", "-s", "1x", "fc0", SSD, DISK), "Unknown cache size type x"),
        (("-p", "thru", "-s", "1g", "fc0", SSD, DISK), "Cache size is larger than ssd size 2097152/262144"),
        (("-p", "thru", "-d", "1024", "fc0", SSD, DISK), "Invalid Disk Associativity 1024"),
        (("-p", "thru", "fc0", "/dev/nothing", DISK), "Failed to open /dev/nothing"),
        (("-p", "thru", "-w", "fc0", SSD, DISK), "reload ioctl on fc0  failed: Invalid argument"),
        (("-p", "back", "-m", "32", "fc0", SSD, DISK), "reload ioctl on fc0  failed: Invalid argument"),
    ],
)
def test_invalid_create_arguments_are_rejected(call, words, said):
    made = call(FlashcacheCreate, *words)
    assert made.rc == 1
    assert said in made.stderr


def test_missing_module_prevents_creation(call, state):
    state["controllers"][0]["module"] = "missing"
    assert call(FlashcacheCreate, "-p", "thru", "fc0", SSD, DISK).stderr.endswith("Could not load Flashcache Module\n")
    assert call(Modprobe, "flashcache").rc == 1
    state["controllers"][0]["module"] = "installed"
    assert call(Modprobe, "--dry-run", "--quiet", "flashcache").rc == 0
    assert state["controllers"][0]["module"] == "installed"
    assert call(FlashcacheCreate, "-p", "thru", "fc0", SSD, DISK).rc == 0


def test_dmsetup_creates_a_cache_from_the_documented_table(call):
    line = f"0 2097152 flashcache {DISK} {SSD} fc0 1 2 8 200000"
    assert call(Dmsetup, "create", "fc0", stdin=line).rc == 0
    assert "total blocks(24576)" in call(Dmsetup, "table", "fc0").stdout
    assert call(Dmsetup, "create", "other", stdin="0 8 linear 8:0 0").rc == 1
    assert call(Dmsetup, "frobnicate").rc == 1


def test_simulator_without_machine_prints_setup_instructions():
    answer = flashcache.Dmsetup({"faults": {}, "controllers": []}).answer(["table"], "")
    assert answer.rc == 1
    assert "python3 -m simulators add flashcache_create machine" in answer.stderr
