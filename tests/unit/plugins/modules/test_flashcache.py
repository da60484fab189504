# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import functools

import pytest
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.layer import FlashcacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._core import lock
from ansible_collections.cachefleet.storage.plugins.modules import flashcache
from ansible_collections.cachefleet.storage.tests.simulators.in_process.flashcache import BACK, ITEM, FlashcacheHost
from ansible_collections.cachefleet.storage.tests.unit.support.module_calls import run_here


@pytest.fixture
def host(tmp_path):
    return FlashcacheHost(tmp_path)


@pytest.fixture
def run(monkeypatch, capsys, host):
    made = []

    def runner(vendor_dirs):
        made.append(list(vendor_dirs))
        return host

    layer = functools.partial(FlashcacheLayer, root=host.root, sleep=lambda seconds: host.kernel.tick())
    monkeypatch.setattr(flashcache, "FlashcacheLayer", layer)
    monkeypatch.setattr(flashcache, "Runner", runner)
    monkeypatch.setattr(flashcache, "VolatileBelow", lambda runner, protected, flushed: lambda path, drives: host.volatile.get(path, []))
    # Ansible says a warning once in a process, and the tests are one.
    message: list[str] = []
    monkeypatch.setattr(AnsibleModule, "warn", lambda _module, warning: message.append(warning))
    monkeypatch.setattr(lock, "FOLDER", str(host.root / "run/lock"))

    def run_module(caches, check_mode=False, **options):
        return run_here(flashcache, capsys, {"caches": caches, **options, "_ansible_check_mode": check_mode})[1]

    run_module.made, run_module.message = made, message
    return run_module


def test_empty_list_reads_nothing(run, host):
    result = run([])
    assert (result["changed"], result["actions"], result["problems"], result["caches"], host.calls) == (False, [], [], [], [])


def test_check_mode_predicts_run_and_no_change_on_second_run(run, host):
    predicted = run([{**ITEM, **BACK}], check_mode=True)
    assert predicted["changed"]
    assert host.changes == []
    done = run([{**ITEM, **BACK}], tool_dirs=["/opt/flashcache"])
    assert (done["actions"], done["diff"]) == (predicted["actions"], predicted["diff"])
    assert done["caches"][0]["name"] == "fc0"
    assert run.made[-1] == ["/opt/flashcache"]
    assert run([{**ITEM, **BACK}])["changed"] is False


def test_invalid_input_and_refusals_are_returned_as_failures(run, host):
    result = run([{**ITEM, "settings": {"fast_remove": 1}}])
    assert (result["failed"], result["error"], result["item"]) == (True, "bad_input", "fc0")
    result = run([{**ITEM, "mode": "writeback"}])
    assert (result["failed"], result["error"], result["item"]) == (True, "refused", "fc0")
    assert host.changes == []
    host.missing.add("flashcache_create")
    assert run([ITEM])["error"] == "tool_missing"


def test_drive_turned_volatile_is_a_warning_and_a_problem(run, host):
    run([ITEM])
    host.volatile = {ITEM["origin"]: ["/dev/sda has its volatile write cache on"]}
    result = run([ITEM])
    assert result["changed"] is False
    assert result["problems"] == [
        "fc0: a power failure would lose acknowledged writes, because flashcache passes no flush down and /dev/sda has its volatile write cache on: turn that"
        " cache off (drive_write_cache)."
    ]
    assert run.message == result["problems"]
