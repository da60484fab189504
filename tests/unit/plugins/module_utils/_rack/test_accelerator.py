# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused, TimedOut
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed, Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._rack import accelerator
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.accelerator import PROBE_MARKER, choose_accelerator, guest_boots
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

VERSION = ("qemu-system-x86_64", "--version")
PROBE = ("qemu-system-x86_64", "-machine")


def hangs(words):
    raise TimedOut("it hangs", completed=Completed(tuple(words), -9, "SeaBIOS\n", ""))


def choose(tmp_path, runner, requested="auto", device="/dev/null"):
    return choose_accelerator(runner, requested, kernel="/k", initrd="/i", cache_dir=tmp_path / "cache", device=device)


def runner(probe):
    return ScriptedRunner({VERSION: Reply("QEMU emulator version 7.2\n"), PROBE: probe})


@pytest.mark.parametrize(
    ("probe", "answer"),
    [(Reply(f"Linux\n[    0.9] {PROBE_MARKER}\n"), "kvm"), (hangs, "tcg"), (Reply(rc=1, stderr="failed to initialize kvm"), "tcg")],
)
def test_kvm_is_used_only_if_a_guest_boots(tmp_path, probe, answer):
    assert choose(tmp_path, runner(probe)) == answer


def test_result_is_cached(tmp_path):
    assert choose(tmp_path, runner(hangs)) == "tcg"
    again = runner(hangs)
    assert choose(tmp_path, again) == "tcg"
    assert [call[:2] for call in again.calls] == [VERSION]


def test_another_qemu_version_is_probed_again(tmp_path):
    choose(tmp_path, runner(hangs))
    newer = ScriptedRunner({VERSION: Reply("QEMU emulator version 9.0\n"), PROBE: Reply(PROBE_MARKER)})
    assert choose(tmp_path, newer) == "kvm"
    assert len(json.loads((tmp_path / "cache/accelerators.json").read_text())) == 2


def test_missing_kvm_device_skips_the_probe(tmp_path):
    unspecified = ScriptedRunner({})
    assert choose(tmp_path, unspecified, device=str(tmp_path / "kvm")) == "tcg"
    assert choose(tmp_path, unspecified, requested="tcg") == "tcg"
    assert unspecified.calls == []


def test_requested_but_unusable_kvm_is_an_error(tmp_path):
    with pytest.raises(Refused, match="does not exist or may not be opened"):
        choose(tmp_path, ScriptedRunner({}), requested="kvm", device=str(tmp_path / "kvm"))
    with pytest.raises(Refused, match="no guest booted with it within 10 seconds"):
        choose(tmp_path, runner(hangs), requested="kvm")


def test_guest_hanging_after_boot_counts_as_booted():
    def late(words):
        raise TimedOut("late", completed=Completed(tuple(words), -9, PROBE_MARKER, ""))

    assert guest_boots(ScriptedRunner({PROBE: late}), "/k", "/i", "kvm")


def test_hanging_probe_leaves_no_process(tmp_path, monkeypatch):
    noted = tmp_path / "pid"
    program = tmp_path / "qemu-system-x86_64"
    program.write_text(f"#!/bin/sh\necho $$ >{noted}\ntrap '' TERM\nwhile :; do sleep 0.1; done\n")
    program.chmod(0o755)
    monkeypatch.setattr(accelerator, "PROBE_SECONDS", 0.5)
    assert not guest_boots(Runner(vendor_dirs=[str(tmp_path)]), "/k", "/i", "kvm")
    from ansible_collections.cachefleet.storage.plugins.module_utils._rack.noted_process import note_process

    assert note_process(int(noted.read_text())) is None
