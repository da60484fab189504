# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verb power_loss, without a host."""

from __future__ import annotations

import json

import pytest

from ansible_collections.cachefleet.storage.plugins.action import power_loss
from ansible_collections.cachefleet.storage.tests.unit.support.action_calls import made_action

SETTINGS = {"sync": "fsync", "how": "power_cut", "target": {"device": "/dev/disk/by-id/x"}}
WRITER = {"boot_id": "b1", "target": {"path": "/dev/x"}, "stack": {"verdict": "durable", "reason": "R.", "unflushed": "kept", "drives": []}}


class Test:
    """One host in a test."""

    __test__ = False

    def __init__(self, folder):
        self.folder = folder
        self.printed = []

    def run(self, operation, *, check_mode=False, **args):
        action = made_action(power_loss, {"operation": operation, "path": str(self.folder), **args}, self.printed, check_mode=check_mode)
        return action.run(task_vars={"inventory_hostname": "node1", "ansible_play_hosts_all": ["node1", "node2"]})

    def open(self, cuts=2, settings=None):
        return self.run("open", settings=settings or SETTINGS, cuts=cuts)

    def cut(self, verdict):
        run = self.run("begin")["run"]
        self.run("note", run=run, event="writing", found=WRITER)
        self.run("note", run=run, event="cutting")
        self.run("note", run=run, event="verified", found={"verification": {"verdict": verdict, "reason": "R."}})
        self.run("note", run=run, event="removed")


@pytest.fixture
def test(tmp_path):
    return Test(tmp_path)


def test_test_is_named_by_the_time_or_continued(tmp_path, test):
    made = test.run("create", results=str(tmp_path), name="")
    assert made["changed"]
    assert not test.run("create", results=str(tmp_path), name=made["name"])["changed"]


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden"])
def test_name_is_no_path(tmp_path, test, name):
    assert test.run("create", results=str(tmp_path), name=name)["failed"]


def test_cuts_that_are_verified_are_not_due(test):
    assert test.open()["due"] == 2
    test.cut("kept")
    opened = test.open()
    assert (opened["due"], opened["pending"]) == (1, {})


def test_secret_is_new_for_each_run_and_not_stored(tmp_path, test):
    test.open()
    first, second = test.run("begin"), test.run("begin")
    assert first["secret"] != second["secret"]
    assert first["secret"] not in (tmp_path / "node1.ndjson").read_text()


def test_interrupted_cut_is_returned(test):
    test.open()
    run = test.run("begin")["run"]
    test.run("note", run=run, event="writing", found=WRITER)
    pending = test.open()["pending"]
    assert (pending["run"], pending["state"], pending["boot_id"]) == (run, "writing", "b1")


def test_other_settings_are_refused(test):
    test.open()
    assert "another power_loss_test_name" in test.open(settings={**SETTINGS, "sync": "none"})["msg"]


def test_number_of_cuts_must_be_positive(test):
    assert test.open(cuts=0)["failed"]


def test_result_names_contradiction_and_problems(tmp_path, test):
    test.open()
    test.cut("lost")
    done = test.run("finish", problems={"node2": "It did not come back."})
    assert "Contradiction" in done["text"]
    assert "node2: not finished: It did not come back." in test.printed[-1]
    assert json.loads((tmp_path / "power_loss.json").read_text())["hosts"][0]["losses"] == 1
    assert (tmp_path / "power_loss.md").read_text().startswith("# Power-loss test")


def test_check_mode_writes_nothing(tmp_path, test):
    assert test.run("open", check_mode=True, settings=SETTINGS)["skipped"]
    assert list(tmp_path.iterdir()) == []


USABLE = {"settings": {**SETTINGS, "cutter": "command"}, "witness_address": "192.0.2.1"}
BY_BMC = {"settings": {**SETTINGS, "cutter": "redfish"}}


@pytest.mark.parametrize(
    "changes",
    [{}, {"witness": "elsewhere"}, {"tunnel": True, "witness_address": ""}, BY_BMC, {"settings": {**SETTINGS, "how": "reset", "cutter": "ipmi"}}],
)
@pytest.mark.parametrize("check_mode", [False, True])
def test_usable_variables_are_accepted_and_nothing_is_written(test, changes, check_mode):
    assert test.run("validate", check_mode=check_mode, **{**USABLE, **changes}) == {"changed": False}
    assert not list(test.folder.iterdir())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": {**USABLE["settings"], "target": {}}}, "Set power_loss_test_target to a device or a file on this host"),
        ({"witness_address": ""}, "Set power_loss_test_witness_address to the IP address at which this host reaches the witness on localhost, or"),
        ({"tunnel": True, "witness": "elsewhere"}, "power_loss_test_tunnel needs the witness on the controller."),
        ({"witness": "node2"}, "The witness node2 is one of the hosts whose power is cut."),
        ({"settings": {**USABLE["settings"], "how": "reset"}}, "power_loss_test_how can only be reset if"),
        ({"described": False}, "Set power_loss_test_command_off and power_loss_test_command_on to the commands"),
        ({**BY_BMC, "described": False}, "Set power_loss_test_redfish to the address and the credentials of the BMC"),
    ],
)
def test_variables_that_contradict_each_other_are_one_sentence(test, changes, message):
    result = test.run("validate", check_mode=True, **{**USABLE, **changes})
    assert result["failed"] and result["msg"].startswith(message) and result["msg"].endswith(".")
