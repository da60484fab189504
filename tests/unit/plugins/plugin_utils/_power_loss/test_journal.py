# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotUnderstood, Refused
from ansible_collections.cachefleet.storage.plugins.plugin_utils._power_loss import journal
from ansible_collections.cachefleet.storage.plugins.plugin_utils._power_loss.result import contradiction, host_result, markdown, text_of

SETTINGS = {"sync": "fsync", "how": "power_cut", "target": {"device": "/dev/disk/by-id/x"}}
STACK = {
    "verdict": "durable",
    "reason": "The cache is off.",
    "unflushed": "kept",
    "drives": [{"path": "/dev/sda", "model": "M|1", "firmware": "F", "serial": "S"}],
}


def opened(folder, settings=None, controller=None):
    journal.append(folder, "node1", journal.OPENED, settings=settings or SETTINGS, controller=controller or {})


def made(folder, number, verdict="kept", *, removed=True):
    run = f"{number:032x}"
    journal.append(folder, "node1", journal.BEGUN, cut=number, run=run)
    journal.append(folder, "node1", journal.WRITING, run=run, boot_id="b", target={}, stack=STACK)
    journal.append(folder, "node1", journal.CUTTING, run=run)
    journal.append(folder, "node1", journal.VERIFIED, run=run, verification={"verdict": verdict, "reason": "R.", "places": 3, "damaged": 0})
    if removed:
        journal.append(folder, "node1", journal.REMOVED, run=run)
    return run


def test_verified_cuts_are_counted(tmp_path):
    opened(tmp_path)
    made(tmp_path, 1)
    made(tmp_path, 2, "proves_nothing")
    found = journal.load(tmp_path, "node1")
    assert [cut.verification["verdict"] for cut in found.verified()] == ["kept", "proves_nothing"]
    assert found.pending() is None


@pytest.mark.parametrize(
    ("events", "state", "announced"),
    [
        ([], "begun", False),
        ([(journal.WRITING, {"boot_id": "b", "target": {}, "stack": {}})], "writing", False),
        ([(journal.CUTTING, {})], "cutting", True),
        ([(journal.INTERRUPTED, {"reason": "R"})], "interrupted", False),
        ([(journal.VERIFIED, {"verification": {"verdict": "kept"}})], "verified", False),
    ],
)
def test_interrupted_cut_is_pending_until_removed(tmp_path, events, state, announced):
    opened(tmp_path)
    journal.append(tmp_path, "node1", journal.BEGUN, cut=1, run="a" * 32)
    for event, facts in events:
        journal.append(tmp_path, "node1", event, run="a" * 32, **facts)
    found = journal.load(tmp_path, "node1").pending()
    assert (found.state, found.announced) == (state, announced)


def test_verified_cut_is_not_taken_back(tmp_path):
    opened(tmp_path)
    run = made(tmp_path, 1, "lost")
    journal.append(tmp_path, "node1", journal.INTERRUPTED, run=run, reason="R")
    assert len(journal.load(tmp_path, "node1").verified()) == 1


def test_line_of_a_killed_controller_is_left_out(tmp_path):
    opened(tmp_path)
    made(tmp_path, 1)
    with open(tmp_path / "node1.ndjson", "ab") as handle:
        handle.write(b'{"event": "begun", "cu')
    assert len(journal.load(tmp_path, "node1").cuts) == 1
    opened(tmp_path)
    made(tmp_path, 2)
    assert len(journal.load(tmp_path, "node1").verified()) == 2


def test_damaged_journal_is_refused(tmp_path):
    opened(tmp_path)
    made(tmp_path, 1)
    path = tmp_path / "node1.ndjson"
    path.write_bytes(path.read_bytes().replace(b"verified", b'ver"fied', 1))
    with pytest.raises(NotUnderstood, match="damaged at line"):
        journal.load(tmp_path, "node1")


@pytest.mark.parametrize("event", ["7", "[]", '{"event": "verified", "run": "x"}', '{"event": "opened", "settings": 3}', '{"run": 1}'])
def test_strange_event_is_refused(tmp_path, event):
    (tmp_path / "node1.ndjson").write_text(f'{event}\n{{"event": "begun", "cut": 1, "run": "a"}}\n')
    with pytest.raises(NotUnderstood):
        journal.load(tmp_path, "node1")


def test_other_settings_are_another_test(tmp_path):
    opened(tmp_path)
    found = journal.load(tmp_path, "node1")
    journal.require_same(found, SETTINGS)
    with pytest.raises(Refused, match="sync"):
        journal.require_same(found, {**SETTINGS, "sync": "none"})


def test_two_runs_on_one_host_are_refused(tmp_path):
    me = {"host": "c", "pid": os.getpid(), "start": journal.start_of(os.getpid())}
    opened(tmp_path, controller=me)
    found = journal.load(tmp_path, "node1")
    journal.require_alone(found, me)
    with pytest.raises(Refused, match="another run of the playbook"):
        journal.require_alone(found, {**me, "pid": 1, "start": "1"})
    # A process that has ended, and a later one of its number, are no run.
    found.controller = {**me, "start": "1"}
    journal.require_alone(found, {**me, "pid": 1})


def test_host_is_no_path(tmp_path):
    with pytest.raises(BadInput):
        journal.append(tmp_path, "../x", journal.OPENED)


@pytest.mark.parametrize(
    ("verdict", "stack", "sync", "word"),
    [
        ("at_risk", "durable", "fsync", "Contradiction"),
        ("durable", "durable", "fsync", ""),
        ("at_risk", "at_risk", "fsync", ""),
        ("durable", "at_risk", "fsync", "Not confirmed"),
        ("unknown", "durable", "fsync", ""),
        # Of a write without a flush another verdict holds.
        ("at_risk", "durable", "none", ""),
    ],
)
def test_contradictions_are_named(verdict, stack, sync, word):
    found = contradiction(verdict, {"verdict": stack, "unflushed": "may_be_lost"}, {"sync": sync})
    assert found.startswith(word)
    assert bool(found) == bool(word)


@pytest.mark.parametrize(
    ("direct", "target", "contradicts"), [(True, {"device": "/dev/x"}, True), (False, {"device": "/dev/x"}, False), (True, {"file": "/x"}, False)]
)
def test_lost_write_without_a_flush_contradicts_kept_below_the_page_cache_only(direct, target, contradicts):
    settings = {"sync": "none", "direct": direct, "target": target}
    assert contradiction("at_risk", {"verdict": "durable", "unflushed": "kept"}, settings).startswith("Contradiction") == contradicts


def test_result_has_verdict_confidence_and_drives(tmp_path):
    opened(tmp_path)
    for number in range(1, 6):
        made(tmp_path, number)
    made(tmp_path, 6, "proves_nothing")
    found = host_result(journal.load(tmp_path, "node1"))
    assert (found["verdict"], found["cuts"], found["void"]) == ("durable", 5, 1)
    assert "fewer than 45.1 % of cuts" in found["sentence"]
    assert found["stack"]["drives"] == STACK["drives"]
    page = markdown("t", [found])
    assert "| /dev/sda | M\\|1 | F | S |" in page
    assert "cut 6 proves nothing" in text_of([found], {"node2": "off"})


def test_page_has_no_links_of_a_host(tmp_path):
    opened(tmp_path)
    drive = {"path": "https://evil.example", "model": "www.evil.example", "firmware": "me@evil.example", "serial": "S"}
    journal.append(tmp_path, "node1", journal.BEGUN, cut=1, run="a" * 32)
    journal.append(tmp_path, "node1", journal.WRITING, run="a" * 32, boot_id="b", target={}, stack={**STACK, "drives": [drive]})
    page = markdown("t", [host_result(journal.load(tmp_path, "node1"))])
    assert "| https\\://evil.example | www\\.evil.example | me`@`evil.example | S |" in page


def test_reset_is_named(tmp_path):
    opened(tmp_path, {**SETTINGS, "how": "reset"})
    made(tmp_path, 1)
    assert "0 of 1 resets" in host_result(journal.load(tmp_path, "node1"))["sentence"]


@pytest.mark.parametrize("stack", [{}, {"drives": 3}, {"drives": [3], "verdict": ["x"]}, {"verdict": "\x1b[2J"}])
def test_strange_facts_of_a_host_are_harmless(tmp_path, stack):
    opened(tmp_path)
    journal.append(tmp_path, "node1", journal.BEGUN, cut=1, run="a" * 32)
    journal.append(tmp_path, "node1", journal.WRITING, run="a" * 32, boot_id="b", target={}, stack=stack)
    journal.append(tmp_path, "node1", journal.VERIFIED, run="a" * 32, verification={"verdict": "<b>", "places": "many"})
    found = host_result(journal.load(tmp_path, "node1"))
    assert found["verdict"] == "unknown"
    page = markdown("t", [found])
    assert "\x1b" not in page
    assert "<b>" not in page
