# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated flashcache prints what captures of a real one print, to the byte, once it has the same numbers."""

from __future__ import annotations

import re

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import output as flashcache_output
from ansible_collections.cachefleet.storage.tests.simulators import flashcache, flashcache_kernel, simulator
from ansible_collections.cachefleet.storage.tests.simulators import flashcache_text as text

MODES = {"back": text.BACK, "thru": text.THROUGH, "around": text.AROUND}
SSD, DISK = "/dev/sdc", "/dev/sda"


@pytest.fixture
def state(tmp_path):
    """A machine with the devices of the captures: an SSD of 128 MiB and a disk of 1 GiB."""
    (tmp_path / "dev").mkdir()
    for path, sectors in ((SSD, 262144), (DISK, 2097152)):
        with (tmp_path / path.lstrip("/")).open("wb") as device:
            device.truncate(sectors * 512)
    return {"faults": {}, "controllers": [flashcache_kernel.host(root=str(tmp_path))]}


def call(state, kind: type[flashcache.FlashcacheTool], *words: str, stdin: str = "") -> simulator.Answer:
    return kind(state).answer(words, stdin)


def captured(folder, name, mode):
    return (folder / "cache" / f"flashcache-{name}.{mode}.txt").read_text()


def counted(state, folder, mode):
    """A cache with the numbers of a capture."""
    assert call(state, flashcache.FlashcacheCreate, "-p", mode, "fc0", SSD, DISK).rc == 0
    cache = state["controllers"][0]["caches"]["fc0"]
    table = flashcache_output.parse_table(captured(folder, "dmsetup-table", mode))
    cache["counters"] = flashcache_output.parse_statistics(captured(folder, "proc-stats", mode))
    cache.update(cached=table.cached, dirty=table.dirty)
    state["controllers"][0]["histogram"] = {str(size): count for size, count in table.histogram.items()}
    return cache


@pytest.mark.parametrize("mode", MODES)
def test_table_and_status_match_the_capture(state, shared_samples, mode):
    counted(state, shared_samples, mode)
    assert call(state, flashcache.Dmsetup, "table", "fc0").stdout == captured(shared_samples, "dmsetup-table", mode)
    assert call(state, flashcache.Dmsetup, "status", "fc0").stdout == captured(shared_samples, "dmsetup-status", mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("file", "name"), [("stats", "stats"), ("errors", "errors"), ("iosize_hist", "iosize_hist"), ("pidlists", "pidlists")])
def test_proc_files_match_the_capture(state, shared_samples, tmp_path, mode, file, name):
    counted(state, shared_samples, mode)
    call(state, flashcache.Dmsetup, "table", "fc0")
    shown = (tmp_path / "proc/flashcache/sdc+sda" / f"flashcache_{file}").read_text()
    assert shown == captured(shared_samples, f"proc-{name}", mode)


@pytest.mark.parametrize("mode", MODES)
def test_default_sysctls_match_the_capture(state, shared_samples, tmp_path, mode):
    call(state, flashcache.FlashcacheCreate, "-p", mode, "fc0", SSD, DISK)
    place = tmp_path / "proc/sys/dev/flashcache/sdc+sda"
    shown = "".join(f"dev.flashcache.sdc+sda.{file.name} = {file.read_text()}" for file in sorted(place.iterdir()))
    assert shown == captured(shared_samples, "sysctl", mode)


def test_version_lines_match_the_capture(state, shared_samples, tmp_path):
    call(state, flashcache.FlashcacheCreate, "-p", "thru", "fc0", SSD, DISK)
    shown = (tmp_path / "proc/flashcache/flashcache_version").read_text()
    capture = (shared_samples / "cache/flashcache-proc-version.txt").read_text()
    assert re.sub(r": \S+$", ":", shown, flags=re.MULTILINE) == re.sub(r": \S+$", ":", capture, flags=re.MULTILINE)
