# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What finished tests tell the report of a campaign."""

from __future__ import annotations

import json

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._power_loss import journal, result
from ansible_collections.cachefleet.storage.plugins.plugin_utils._power_loss.evidence import PowerLossResult, losses_of, of_hosts, read_tests

RUN = "5a" * 16
SETTINGS = {"target": {"device": "/dev/disk/by-id/ata-X"}, "sync": "fsync", "layout": "in_place", "depth": 4, "how": "power_cut"}
STACK = {"verdict": "durable", "reason": "", "unflushed": "may_be_lost", "drives": [{"path": "/dev/sda", "model": "ST4000", "firmware": "SN05", "serial": "Z"}]}


def write_test(folder, host, verdict, settings=None, stack=None):
    """A test as the verb power_loss leaves it."""
    folder.mkdir(parents=True)
    journal.append(folder, host, journal.OPENED, settings=settings or SETTINGS)
    journal.append(folder, host, journal.BEGUN, cut=1, run=RUN)
    journal.append(folder, host, journal.WRITING, run=RUN, boot_id="b", target={}, stack=stack or STACK)
    journal.append(folder, host, journal.VERIFIED, run=RUN, verification={"verdict": verdict, "reason": "a reason", "acknowledged": 5})
    hosts = [result.host_result(one) for one in journal.load_all(folder)]
    (folder / "power_loss.json").write_text(json.dumps({"schema": result.SCHEMA, "name": folder.name, "hosts": hosts, "problems": {}}))


def test_tests_are_read_one_by_one_and_together(tmp_path):
    write_test(tmp_path / "first", "node1", "lost")
    write_test(tmp_path / "second", "node2", "kept")
    lost, kept = read_tests([str(tmp_path)], "report_power_loss")
    assert read_tests([str(tmp_path / "first"), str(tmp_path / "second")], "report_power_loss") == (lost, kept)
    assert (lost.test, lost.host, lost.verdict, lost.models, lost.contradicts) == ("first", "node1", "at_risk", ("ST4000 SN05",), True)
    assert (lost.target, lost.load) == ("/dev/disk/by-id/ata-X", "sync fsync, in_place, depth 4")
    assert (kept.verdict, kept.contradiction, kept.contradicts) == ("durable", "", False)
    assert "95 %" in kept.sentence


def test_only_those_of_the_hosts_are_shown(tmp_path):
    for host in ("node2", "node1", "other"):
        write_test(tmp_path / host, host, "kept")
    assert [one.host for one in of_hosts(read_tests([str(tmp_path)], "report_power_loss"), ["node1", "node2"])] == ["node1", "node2"]


def test_models_that_lost_flushed_writes_are_named(tmp_path):
    write_test(tmp_path / "first", "node1", "lost")
    write_test(tmp_path / "second", "node2", "kept")
    tests = read_tests([str(tmp_path)], "sweep_power_loss")
    (sentence,) = losses_of(tests, ["OTHER", "ST4000"])
    assert sentence.startswith("Flushed writes were lost on ST4000 SN05 in the power-loss test first on node1 (1 of 1 cuts lost acknowledged writes), ")
    assert losses_of(tests, ["ST4000 SN05", ""]) == []


@pytest.mark.parametrize(
    ("settings", "stack"),
    [
        # A file system that sends no flush loses them too, on drives that keep everything.
        ({"target": {"file": "/srv/power_loss"}}, {}),
        ({"sync": "none", "direct": True}, {"unflushed": "kept"}),
    ],
)
def test_drives_are_not_accused_of_what_else_may_have_lost(tmp_path, settings, stack):
    write_test(tmp_path / "first", "node1", "lost", {**SETTINGS, **settings}, {**STACK, **stack})
    tests = read_tests([str(tmp_path)], "sweep_power_loss")
    assert tests[0].contradicts and losses_of(tests, ["ST4000"]) == []


def test_several_models_are_accused_together(tmp_path):
    other = {"path": "/dev/sdb", "model": "SSD", "firmware": "2", "serial": "Y"}
    write_test(tmp_path / "first", "node1", "lost", stack={**STACK, "drives": [*STACK["drives"], other]})
    (sentence,) = losses_of(read_tests([str(tmp_path)], "sweep_power_loss"), ["SSD"])
    assert sentence.startswith("Flushed writes were lost on a stack of ST4000 SN05 and SSD 2, of which at least one did not keep them, in the power-loss test")


def test_folder_without_a_test_is_refused_with_those_beside_it(tmp_path):
    write_test(tmp_path / "2026-11-21T1403Z", "node1", "kept")
    with pytest.raises(BadInput, match=r"^report_power_loss: .*/nowhere has no power_loss\.json\..* Tests in the same folder: 2026-11-21T1403Z\.$"):
        read_tests([str(tmp_path / "nowhere")], "report_power_loss")


@pytest.mark.parametrize("text", ['{"schema": 99, "hosts": []}', '{"schema": 1, "hosts": 5}', "[]", "{"])
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "power_loss.json").write_text(text)
    with pytest.raises(ResultsError):
        read_tests([str(tmp_path)], "report_power_loss")


def test_what_a_host_says_is_made_safe(tmp_path):
    host = {
        "host": "node1\x1b[2J",
        "verdict": ["at_risk"],
        "sentence": "x\ny",
        "contradiction": 5,
        "settings": {"target": "none", "how": "reset"},
        "stack": {"drives": [{"model": "A\x07B"}, "none", {"model": ""}]},
    }
    (tmp_path / "power_loss.json").write_text(json.dumps({"schema": 1, "name": "t", "hosts": [host, "none"]}))
    (found,) = read_tests([str(tmp_path)], "report_power_loss")
    assert isinstance(found, PowerLossResult)
    assert not {character for text in (found.host, found.sentence, *found.models) for character in text if ord(character) < 32}
    assert (found.verdict, found.target, len(found.models), found.load.endswith("a reset instead of a power cut")) == ("unknown", "", 1, True)
