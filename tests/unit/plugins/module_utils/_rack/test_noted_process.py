# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import os
import subprocess

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._rack.noted_process import NotedProcess, note_process


@pytest.fixture
def sleeper():
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def write_stat(root, pid, text, threads=1):
    for number in range(threads):
        (root / f"proc/{pid}/task/{pid + number}").mkdir(parents=True)
    (root / f"proc/{pid}/stat").write_text(text)
    (root / "proc/sys/kernel/random").mkdir(parents=True)
    (root / "proc/sys/kernel/random/boot_id").write_text("boot-1\n")


def stat_line(pid, state="S", start=4711, command="qemu-system-x86"):
    return f"{pid} ({command}) {state} " + " ".join(["1"] * 18) + f" {start} " + " ".join(["0"] * 30)


def test_start_time_is_read_behind_a_name_with_blanks_and_parentheses(tmp_path):
    write_stat(tmp_path, 42, stat_line(42, command="a) S 1 (b"))
    assert note_process(42, tmp_path) == NotedProcess(42, 4711, "boot-1")


def test_missing_process_is_none(tmp_path):
    assert note_process(42, tmp_path) is None


def test_zombie_is_gone_unless_threads_are_alive(tmp_path):
    write_stat(tmp_path / "a", 42, stat_line(42, state="Z"))
    write_stat(tmp_path / "b", 42, stat_line(42, state="Z"), threads=2)
    assert note_process(42, tmp_path / "a") is None
    assert note_process(42, tmp_path / "b") is not None


def test_running_process_is_ended(sleeper):
    noted = note_process(sleeper.pid)
    assert noted.alive()
    assert noted.kill()
    assert not noted.alive()
    assert sleeper.wait(5) == -9


@pytest.mark.parametrize("change", [{"start": 1}, {"boot": "another boot of this host"}])
def test_unrelated_process_with_the_same_id_is_not_ended(sleeper, change):
    noted = dataclasses.replace(note_process(sleeper.pid), **change)
    assert not noted.alive()
    assert noted.kill()
    assert sleeper.poll() is None


def test_wait_ends_at_the_timeout():
    assert not note_process(os.getpid()).wait(0.1)
