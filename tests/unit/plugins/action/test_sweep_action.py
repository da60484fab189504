# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verb sweep, with what modules on the host would answer."""

from __future__ import annotations

import copy
import dataclasses
import json
import types

import pytest
from ansible.errors import AnsibleConnectionFailure

from ansible_collections.cachefleet.storage.plugins.action import sweep
from ansible_collections.cachefleet.storage.plugins.plugin_utils import _terminal
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep import state as states
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep import stopping
from ansible_collections.cachefleet.storage.tests.unit.support import report_rows
from ansible_collections.cachefleet.storage.tests.unit.support.action_calls import made_action

DISK = "/dev/disk/by-id/ata-A"
SUITES = {"mine": {"cells": [{"name": "a", "job": {"rw": "randwrite", "bs": "4k", "runtime": 20, "time_based": 1}}]}}
MEASUREMENT = {"suite": "mine", "suites": SUITES, "targets": [{"device": "/dev/vg0/x", "write_rate": "1m"}], "runtime": 0, "gap": 2, "only": []}
DESCRIPTION = {
    "variables": [
        {"name": "drive_write_cache_drives", "entries": [{"values": {"device": DISK, "write_cache": "enabled"}, "notes": []}], "value": None, "notes": []}
    ],
    "controllers": [],
}
FOUND = {"journal": {}, "description": DESCRIPTION, "paths": {DISK: "/dev/sda"}, "machine_id": "aaaa"}
AXES = {"drive": {False: {"drive_write_cache_drives": [{"device": DISK, "write_cache": "disabled"}]}}}


class Campaign:
    """One host in a sweep."""

    def __init__(self, path):
        self.path = path
        self.printed = []
        self.columns = 0
        self.asked = []
        self.journal = None

    def run(self, operation, *, check_mode=False, task_vars=None, found=None, **args):
        """:param found: what a module on the host answers; an exception is raised."""

        def execute(module_name, module_args, task_vars):
            self.asked.append((module_name.rpartition(".")[2], module_args))
            answer = found(module_name) if callable(found) else found
            if isinstance(answer, Exception):
                raise answer
            return copy.deepcopy(answer or {})

        arguments = {"operation": operation, "path": str(self.path), **args}
        templar = types.SimpleNamespace(template=lambda value: value)
        action = made_action(sweep, arguments, self.printed, check_mode=check_mode, columns=self.columns, _templar=templar, _execute_module=execute)
        return action.run(task_vars={"inventory_hostname": "node1", "ansible_play_hosts_all": ["node1"], **(task_vars or {})})

    def open(self, **changes):
        given = {"axes": AXES, "baseline": "baseline", "repeats": 2, "found": FOUND, "measurement": MEASUREMENT, **changes}
        opened = self.run("open", **given)
        self.journal = opened.get("journal")
        return opened

    def restored(self):
        return self.run("restored", journal=self.journal, found=DESCRIPTION)

    def note(self, variant, repeat, state, reason=""):
        return self.run("note", variant=variant, repeat=repeat, state=state, reason=reason, seconds=30)

    @property
    def state(self):
        return states.load(self.path, "node1")


@pytest.fixture
def campaign(tmp_path):
    (tmp_path / "night").mkdir()
    return Campaign(tmp_path / "night")


def keys(result):
    return [step["key"] for step in result["steps"]]


def test_the_state_is_written_before_anything_is_changed(campaign):
    opened = campaign.open()

    assert keys(opened) == ["baseline/1", "drive_off/1", "drive_off/2", "baseline/2"]
    assert opened["variables"]["drive_off"]["drive_write_cache_drives"] == [{"device": DISK, "write_cache": "disabled"}]
    assert opened["journal"]["restore"] == {"drive_write_cache_drives": [{"device": DISK, "write_cache": "enabled"}]}
    assert opened["targets"]["baseline"] == MEASUREMENT["targets"]
    assert (campaign.state.machine_id, campaign.state.restore) == ("aaaa", opened["journal"]["restore"])


def test_an_axis_can_be_called_as_yaml_reads_a_boolean(campaign):
    drive = AXES["drive"][False]
    assert keys(campaign.open(axes={False: {"x": drive, "y": drive}}, exclude=[{False: "y"}], repeats=1)) == ["baseline/1", "off_x/1"]
    assert "there are two axes off" in campaign.open(axes={False: {"x": drive}, "off": {"y": {}}})["msg"]


def test_a_dry_run_writes_nothing(campaign):
    opened = campaign.open(check_mode=True)

    assert "node1: 2 variants, 4 steps, about 2 min, writes at most 83.9 MB" in opened["text"]
    assert campaign.state is None


def test_what_timed_cells_write_is_no_figure_without_the_rate_of_the_target(campaign):
    without = {**MEASUREMENT, "targets": [{"device": "/dev/vg0/x", "size": "64M"}]}
    text = campaign.open(check_mode=True, measurement=without)["text"]
    assert "about 2 min, writes what the target takes in timed cells (no write_rate is set)\n" in text


def test_repeats_in_the_same_order_are_one_line_of_the_plan(campaign):
    lines = campaign.open(repeats=3, check_mode=True)["text"].splitlines()
    assert lines[1:3] == ["  repeats 1, 3: baseline → drive_off", "  repeat 2: drive_off → baseline"]


def test_the_plan_is_wrapped_to_the_terminal_and_nowhere_else(campaign, monkeypatch):
    text = "node1: 2 variants\n  repeat 1: " + " → ".join(["cache_writethrough-drive_on"] * 6)
    campaign.run("show", text=text)
    assert campaign.printed == ["\n" + text]
    monkeypatch.setattr(_terminal, "IS_TERMINAL", True)
    campaign.columns = 80
    campaign.run("show", text=text)
    lines = campaign.printed[1].splitlines()
    assert max(map(len, lines)) <= 80 and " ".join(campaign.printed[1].split()) == " ".join(text.split())
    assert lines[3].startswith("      ")


def test_equal_plans_of_hosts_are_printed_once(campaign):
    campaign.run("show", texts=["a: 2 variants\n  repeat 1: x", "b: 2 variants\n  repeat 1: y", "c: 2 variants\n  repeat 1: x"])
    assert campaign.printed == ["\na and c: 2 variants\n  repeat 1: x\nb: 2 variants\n  repeat 1: y"]


def test_finished_steps_are_not_due_again_and_failed_ones_are(campaign):
    campaign.open()
    campaign.note("drive_off", 1, "failed", "the runner failed")
    state = campaign.state
    state.note("baseline/1", states.DONE)
    states.save(campaign.path, state)

    assert keys(campaign.open()) == ["drive_off/1", "drive_off/2", "baseline/2"]


@pytest.mark.parametrize(("left", "end"), [(90, "failed (the disk is gone); about 2 min left"), (0, "failed (the disk is gone)")])
def test_progress_names_the_time_that_is_left_if_there_is_some(campaign, left, end):
    campaign.open()
    campaign.run("note", variant="drive_off", repeat=1, state="failed", reason="the disk is gone", seconds=30, left=left)
    assert campaign.printed[-1].endswith(end)


def test_a_step_without_measurements_is_not_done(campaign):
    campaign.open()
    (campaign.path / "node1").mkdir()
    campaign.note("baseline", 1, "done")

    assert campaign.state.steps["baseline/1"] == {"state": "failed", "reason": "nothing was measured", "seconds": 30.0}


def test_a_refused_variant_is_no_problem_of_the_sweep(campaign):
    campaign.open()
    campaign.note("drive_off", 1, "refused", "it has no cache")
    state = campaign.state
    state.note("baseline/1", states.DONE)
    state.note("baseline/2", states.DONE)
    states.save(campaign.path, state)
    campaign.restored()

    assert campaign.run("finish")["problems"] == []
    assert "refused: drive_off: it has no cache" in campaign.run("finish")["text"]


def test_a_host_that_is_not_restored_is_a_problem(campaign):
    campaign.open()
    campaign.run("restored", state="failed", reason="the drive is gone")

    assert campaign.run("finish")["problems"][0] == "node1 is not restored: the drive is gone"


def test_nothing_is_recommended_if_no_step_was_measured(campaign):
    campaign.open()
    campaign.note("drive_off", 1, "failed", "its cache is not active")
    campaign.run("finish")

    assert any("Nothing is recommended: no step was measured." in str(line) for line in campaign.printed)


def test_steps_beyond_the_budget_are_left_out_over_all_runs(campaign):
    hours = 100 / 3600
    assert keys(campaign.open(budget=hours)) == ["baseline/1", "drive_off/1"]
    state = campaign.state
    state.note("baseline/1", states.DONE, seconds=60)
    states.save(campaign.path, state)

    assert keys(campaign.open(budget=hours)) == ["drive_off/1"]
    assert campaign.state.left_out == ["drive_off/2", "baseline/2"]


def test_the_state_of_another_host_is_refused(campaign):
    campaign.open()

    assert "is of another host (machine-id aaaa) than this one (bbbb)" in campaign.open(found={**FOUND, "machine_id": "bbbb"})["msg"]


DAMAGES = {
    "found": 5, "restore": {"block_cache_caches": ["x"]}, "variables": {"drive_off": 1}, "refused": [], "order": ["baseline"], "left_out": None,
    "steps": {"baseline/1": {"state": "done"}}, "restored": "no", "problem": None, "repeats": "4", "most_repeats": None, "measures": {"x": 1},
    "closed": {"drive_off": {}},
}  # fmt: skip


def damage(campaign, host, name):
    """:returns: the file and what is in it."""
    file = states.file_of(campaign.path, host)
    text = file.read_text()
    file.write_text(text[: len(text) // 2] if name == "half" else json.dumps({**json.loads(text), name: DAMAGES[name]}))
    return file, file.read_text()


@pytest.mark.parametrize("operation", ["open", "note"])
@pytest.mark.parametrize("name", [*DAMAGES, "half"])
def test_a_state_that_was_edited_or_cut_off_is_one_sentence(campaign, name, operation):
    campaign.open()
    file, damaged = damage(campaign, "node1", name)
    result = campaign.open() if operation == "open" else campaign.run(operation)
    assert result["failed"]
    assert result["msg"].startswith(f"{file}") and result["msg"].endswith(": use another fio_benchmark_campaign.")
    assert file.read_text() == damaged


@pytest.mark.parametrize("name", [*DAMAGES, "half"])
def test_a_damaged_state_is_a_problem_of_its_host_and_no_other(campaign, monkeypatch, name):
    sequential(campaign, monkeypatch)
    states.save(campaign.path, dataclasses.replace(campaign.state, host="node2"))
    file, damaged = damage(campaign, "node2", name)
    both = {"ansible_play_hosts_all": ["node1", "node2"]}

    decided = campaign.run("decide", repeat=5, baseline="baseline", task_vars=both)
    assert decided["closed"] == {"node1": ["baseline", "drive_off"]}
    assert any(f"{file}" in line and line.endswith("What is decided of this host is not recorded.") for line in campaign.printed)
    finished = campaign.run("finish", task_vars=both)
    assert "node1" in finished["text"] and not finished.get("failed")
    (problem,) = [one for one in finished["problems"] if f"{file}" in one]
    assert problem.endswith(": use another fio_benchmark_campaign")
    assert file.read_text() == damaged


def test_a_sweep_without_any_state_that_can_be_read_decides_nothing_and_is_not_complete(campaign):
    campaign.open()
    file, _text = damage(campaign, "node1", "half")
    assert campaign.run("decide", repeat=2)["closed"] == {}
    (problem,) = campaign.run("finish")["problems"]
    assert problem.startswith(f"{file}")


def test_the_campaign_of_a_journal_is_no_path(campaign):
    journal = campaign.open()["journal"]
    assert "'../night' cannot be the name of a campaign" in campaign.run("recall", found={"journal": {**journal, "campaign": "../night"}})["msg"]


def test_a_host_is_restored_by_its_journal_whatever_the_controller_has_of_it(campaign):
    journal = campaign.open()["journal"]
    states.file_of(campaign.path, "node1").write_text("{")

    assert campaign.run("recall", found={"journal": journal, "machine_id": "aaaa"})["journal"] == journal
    assert "failed" not in campaign.run("restored", journal=journal, found=DESCRIPTION)
    assert "it is not recorded that node1 is restored" in campaign.printed[-1]
    assert campaign.run("recall", found={"journal": {}, "machine_id": "aaaa"})["failed"]


def test_a_host_that_was_changed_since_is_refused(campaign):
    campaign.open()
    campaign.note("baseline", 1, "failed")
    changed = json.loads(json.dumps(FOUND).replace("enabled", "disabled"))

    assert "node1 was changed since this campaign began: drive_write_cache_drives differs" in campaign.open(found=changed)["msg"]


def drive(word):
    return {"drive_write_cache_drives": [{"device": DISK, "write_cache": word}]}


def test_a_variant_that_was_measured_cannot_be_another_configuration(campaign):
    campaign.open(axes={}, variants=[{"name": "x", **drive("disabled")}])
    # Nothing was measured yet.
    assert "failed" not in campaign.open(axes={}, variants=[{"name": "x", **drive("enabled")}])
    state = campaign.state
    state.note("x/1", states.DONE)
    states.save(campaign.path, state)

    assert campaign.open(axes={}, variants=[{"name": "x", **drive("disabled")}])["msg"] == (
        "The variant x was measured with another configuration in this campaign: give it another name, or start another campaign."
    )
    assert campaign.state.variables["x"] == drive("enabled")
    cache = {"name": "data", "type": "lvm_cache", "origin": "vg0/data", "cache_devices": ["/dev/sdb"], "mode": "writeback"}
    # Another variant that changes something else adds to it what is as it was found.
    assert "failed" not in campaign.open(axes={}, variants=[{"name": "x", **drive("enabled")}, {"name": "y", "block_cache_caches": [cache]}])
    assert "failed" not in campaign.open(axes={}, variants=[{"name": "z", **drive("disabled")}])


@pytest.mark.parametrize(
    "changes",
    [
        {"suites": {"mine": {"cells": [{"name": "b", "job": {"rw": "read", "bs": "4k", "runtime": 20, "time_based": 1}}]}}},
        {"targets": [{"device": "/dev/vg0/y", "write_rate": "1m"}]},
        {"runtime": 5},
    ],
)
def test_a_sweep_is_continued_with_the_measurements_that_it_began_with(campaign, changes):
    campaign.open()
    other = {**MEASUREMENT, **changes}
    # Nothing was measured yet.
    assert "failed" not in campaign.open(measurement=other)
    state = campaign.state
    state.note("drive_off/1", states.DONE)
    states.save(campaign.path, state)

    assert campaign.open()["msg"].startswith("This campaign has measured drive_off with another suite, or other targets, times or cells of it")
    permitted = [{**one, "allow_data_loss": True, "identity": "vg0/x"} for one in other["targets"]]
    assert "failed" not in campaign.open(measurement={**other, "gap": 5, "targets": permitted})


def test_the_journal_is_recalled_from_the_controller(campaign):
    opened = campaign.open()
    recalled = campaign.run("recall", found={"journal": {}, "machine_id": "aaaa"})["journal"]

    assert (recalled["campaign"], recalled["restore"]) == ("night", opened["journal"]["restore"])
    assert campaign.run("restored", journal=recalled, found=DESCRIPTION, layers=["drive_write_cache"]).get("failed") is None
    assert [name for name, _arguments in campaign.asked] == ["sweep_journal", "fio_runner", "sweep_journal", "cache_description_info", "sweep_journal"]
    assert campaign.asked[-2][1] == {"layers": ["drive_write_cache"], "all_settings": True, "tool_paths": {}}
    assert (campaign.asked[-1][1]["state"], campaign.asked[-1][1]["campaign"]) == ("absent", "night")
    assert campaign.run("recall", found={"journal": {}, "machine_id": "aaaa"})["journal"] == {}


def test_a_host_that_is_not_as_its_journal_says_is_refused(campaign):
    journal = campaign.open()["journal"]
    now = json.loads(json.dumps(DESCRIPTION).replace("enabled", "disabled"))

    assert (
        campaign.run("restored", journal=journal, found=now)["msg"]
        == "node1 is not as the journal of the sweep describes it: drive_write_cache_drives differs."
    )


def test_invalid_variants_are_reported_in_one_sentence(campaign):
    result = campaign.run("validate", variants=[{"name": "a"}, {"name": "a"}])

    assert (result["failed"], result["msg"]) == (True, "The variant a has the same name as another variant: give each variant a name of its own.")


def test_a_host_with_the_name_of_a_folder_is_refused(campaign):
    with pytest.raises(states.BadInput, match="'recommended' cannot be the name of a host"):
        states.file_of(campaign.path, "recommended")


@pytest.mark.parametrize(
    ("name", "operation", "advice"),
    [
        ("block_cache_caches", "validate", "in the inventory"),
        ("drive_write_cache_drives", "recall", "in the inventory"),
        ("storage_network_links", "open", "set it in the inventory or in a variant"),
        ("storage_network_aoe_devices", "open", "leave it out"),
        ("fio_benchmark_variant", "validate", "leave it out"),
        ("fio_benchmark_repeats", "validate", "use sweep_repeats"),
    ],
)
def test_refuses_a_variable_of_the_command_line_that_replaces_every_variant(campaign, monkeypatch, name, operation, advice):
    monkeypatch.setattr(sweep, "load_extra_vars", lambda _loader: {name: [], "fio_benchmark_campaign": "night"})
    result = campaign.run(operation, axes=AXES, found=FOUND, measurement=MEASUREMENT)
    assert result["failed"]
    assert result["msg"].startswith(f"{name} is set on the command line (-e)")
    assert advice in result["msg"]


@pytest.mark.parametrize(("varied", "failed"), [(True, True), (False, False)])
def test_refuses_targets_of_the_command_line_only_if_they_are_varied(campaign, monkeypatch, varied, failed):
    targets = {"fio_benchmark_targets": MEASUREMENT["targets"]}
    monkeypatch.setattr(sweep, "load_extra_vars", lambda _loader: targets)
    variants = [{"name": "one", **AXES["drive"][False], **(targets if varied else {})}]
    assert bool(campaign.run("validate", variants=variants).get("failed")) is failed


# --- repeats that are added


def sequential(campaign, monkeypatch, done=5):
    """A sweep of up to 12 repeats of which five are measured, with known speeds."""
    monkeypatch.setattr(sweep.progress, "require_libraries", lambda: None)
    opened = campaign.open(repeats=2, max_repeats=12)
    speeds = {"baseline": 1.0, "drive_off": 2.0}
    state = campaign.state
    for key in state.order[: 2 * done]:
        state.note(key, states.DONE)
    states.save(campaign.path, state)
    measured = [
        report_rows.measurement("node1", name, repeat=repeat, iops=1000 * speed + repeat, started=1e9 + place)
        for place, (name, speed) in enumerate(speeds.items())
        for repeat in range(1, 6)
    ]
    monkeypatch.setattr(
        sweep.progress,
        "read_progress",
        lambda _campaign, design, repeats, baseline: stopping.progress_after(report_rows.Rows("night", measured), design, repeats, baseline=baseline),
    )
    return opened


def test_steps_up_to_the_most_repeats_are_due_and_a_range_is_printed(campaign, monkeypatch):
    opened = sequential(campaign, monkeypatch)
    assert (len(opened["steps"]), opened["repeats"], opened["in_any_case"]) == (24, 12, 5)
    assert "node1: 2 variants, 10 steps to 24, about" in opened["text"]
    assert "repeats 6 to 12: only variants that are not decided, which is possible from repeat 5 on" in opened["text"]


@pytest.mark.parametrize("other", [{"repeats": 2, "max_repeats": 14}, {"repeats": 3, "max_repeats": 12}, {"repeats": 5, "max_repeats": 0}])
def test_other_numbers_of_repeats_are_refused_once_results_were_compared(campaign, monkeypatch, other):
    sequential(campaign, monkeypatch)
    refused = campaign.open(**other)
    assert refused["msg"] == (
        "This sweep compares its variants from 2 to 12 repeats: continue it with sweep_repeats=2 and sweep_max_repeats=12, or start another campaign."
    )
    assert len(campaign.open(repeats=2, max_repeats=12)["steps"]) == 14


def test_decided_variants_are_recorded_and_not_due_again(campaign, monkeypatch):
    sequential(campaign, monkeypatch)
    assert campaign.run("decide", repeat=4, baseline="baseline")["closed"] == {"node1": []}
    decided = campaign.run("decide", repeat=5, baseline="baseline")
    assert decided["closed"] == {"node1": ["baseline", "drive_off"]}
    assert "node1, after 5 repeats: randwrite-4k: drive_off leads, 2.00 times as fast as baseline (shown)" in decided["text"]
    assert "all variants are decided" in decided["text"]
    assert campaign.state.closed["baseline"] == {"after": 5, "reason": "shown to be slower than drive_off"}
    assert campaign.open(repeats=2, max_repeats=12)["steps"] == []


def test_a_decision_that_was_not_recorded_is_made_again(campaign, monkeypatch):
    sequential(campaign, monkeypatch)
    first = campaign.run("decide", repeat=5, baseline="baseline")
    state = campaign.state
    state.closed = {}
    states.save(campaign.path, state)
    assert campaign.run("decide", repeat=5, baseline="baseline") == first


def test_results_that_cannot_be_read_close_nothing(campaign, monkeypatch):
    sequential(campaign, monkeypatch)

    def broken(*_args):
        raise states.BadInput("the tables are gone")

    monkeypatch.setattr(sweep.progress, "read_progress", broken)
    assert campaign.run("decide", repeat=5)["closed"] == {}


def test_added_repeats_that_were_not_taken_are_no_problem(campaign, monkeypatch):
    sequential(campaign, monkeypatch)
    campaign.restored()
    assert campaign.run("finish")["problems"] == []
    assert "not decided after 5 repeats: baseline, drive_off" in campaign.run("finish")["text"]


def test_a_sweep_that_could_never_decide_without_a_library_is_refused(campaign, monkeypatch):
    def missing():
        raise states.BadInput("Statistics of results needs the Python library numpy")

    monkeypatch.setattr(sweep.progress, "require_libraries", missing)
    assert campaign.open(repeats=2, max_repeats=12)["failed"]
    assert campaign.open(repeats=2).get("failed") is None


def test_the_time_left_is_that_of_what_was_measured(campaign, monkeypatch):
    sequential(campaign, monkeypatch, done=0)
    state = campaign.state
    # The first repeat of a variant has a fill.
    for key, seconds in (("baseline/1", 90), ("drive_off/1", 100), ("drive_off/2", 40)):
        state.note(key, states.DONE, seconds=seconds)
    states.save(campaign.path, state)
    assert campaign.state.seconds_of_next() == 11 * 90 + 10 * 40
    assert campaign.state.seconds_of_next(3) == 90 + 40
    assert states.HostState("node1", "", "", {}, {}, {}, order=["a/1"]).seconds_of_next() is None
    assert campaign.run("decide", repeat=2)["needed"] == {"node1": 130}


def test_the_plan_has_the_share_of_the_endurance(campaign):
    worn = {**MEASUREMENT, "targets": [{**MEASUREMENT["targets"][0], "endurance": "1GB"}]}
    assert "writes at most 83.9 MB (8.39 % of the rated endurance)" in campaign.open(measurement=worn)["text"]


def test_sizes_are_multiples_of_the_cache_of_the_host(campaign):
    job = {"rw": "randwrite", "bs": "4k", "size": "0.5 x cache", "runtime": 5, "time_based": 1}
    measurement = {**MEASUREMENT, "suites": {"mine": {"cells": [{"name": "w", "job": job}]}}}
    assert "set fio_benchmark_cache_size to the size of this host's cache" in campaign.open(measurement=measurement)["msg"]
    assert "failed" not in campaign.open(measurement={**measurement, "cache_size": "10g"})


def test_a_decision_does_not_write_the_state_of_hosts_of_another_controller(campaign, monkeypatch):
    sequential(campaign, monkeypatch)
    other = states.HostState("node2", "", "", {}, {}, campaign.state.variables, repeats=2, most_repeats=12)
    states.save(campaign.path, other)
    written = []
    monkeypatch.setattr(sweep.states, "save", lambda _campaign, state: written.append(state.host))
    assert campaign.run("decide", repeat=5, baseline="baseline")["closed"].keys() == {"node1"}
    assert written == ["node1"]


@pytest.mark.parametrize(("changes", "message"), [({"repeats": 0}, "sweep_repeats must be at least 1."), ({"max_repeats": 51}, "must be at most 50.")])
def test_invalid_repeats_are_refused(campaign, changes, message):
    assert message in campaign.open(**changes)["msg"]
    # Before there is a campaign.
    assert message in campaign.run("validate", axes=AXES, **changes)["msg"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": -24}, "sweep_budget must be a number of hours, at least 0."),
        ({"budget": "nan"}, "sweep_budget must be a number of hours, at least 0."),
        ({"budget": "inf"}, "sweep_budget must be a number of hours, at least 0."),
        ({"settle": -5}, "sweep_settle must be a number of seconds, at least 0."),
        ({"measurement": {**MEASUREMENT, "runtime": "1m"}}, "fio_benchmark_runtime must be a number of seconds, at least 0."),
        ({"measurement": {**MEASUREMENT, "runtime": -5}}, "fio_benchmark_runtime must be a number of seconds, at least 0."),
        ({"measurement": {**MEASUREMENT, "gap": "two"}}, "gap of fio_benchmark_timing must be a number of seconds, at least 0."),
    ],
)
def test_invalid_times_are_refused_and_nothing_is_written(campaign, changes, message):
    assert campaign.open(**changes)["msg"] == message
    assert campaign.state is None


@pytest.mark.parametrize(("caches", "end"), [("x", "must be a list of dictionaries."), ([{"name": "x", "settings": "y"}], "settings must be a dictionary.")])
def test_caches_of_the_inventory_of_another_kind_are_refused(campaign, caches, end):
    message = campaign.run("validate", task_vars={"block_cache_caches": caches}, axes=AXES)["msg"]
    assert message.startswith("block_cache_caches of the inventory") and message.endswith(end)


def test_the_decision_at_the_end_is_that_of_the_repeats_that_were_measured(campaign, monkeypatch):
    sequential(campaign, monkeypatch, done=4)
    assert "after 4 repeats" in campaign.run("decide", repeat=12, baseline="baseline")["text"]
    assert sequential(campaign, monkeypatch) and campaign.run("decide", repeat=12, baseline="baseline")["closed"] == {"node1": ["baseline", "drive_off"]}
    assert "not decided" not in campaign.run("finish")["text"]


def test_what_caches_wrote_back_before_a_step_is_kept_with_it_and_reported(campaign, monkeypatch):
    campaign.open()
    writing = {"drain": [{"name": "data", "type": "lvm_cache", "dirty": 4096, "bytes_per_second": 1024.0}]}
    monkeypatch.setattr(sweep, "time", Clock(pause=30.0))
    campaign.run("note", variant="baseline", repeat=1, state="measuring", drain=60, found=writing)
    assert campaign.asked[2:] == [("block_cache_info", {"sample_seconds": 3})] * 3
    drain = {"outcome": "writing_back", "seconds": 60.0, "dirty": 4096, "bytes_per_second": 1024}
    assert campaign.state.steps["baseline/1"]["drain"] == drain
    said = "its caches still wrote back 1 KiB/s after 60 s, 4 KiB were left"
    assert campaign.printed == [f"node1: baseline/1 is measured, and {said}."]

    campaign.note("baseline", 1, "failed", "the runner failed")
    assert campaign.state.steps["baseline/1"] == {"state": "failed", "reason": "the runner failed", "seconds": 30.0, "drain": drain}
    assert f"  measured although {said}: baseline/1" in campaign.run("finish")["text"]


def test_a_cache_that_has_drained_is_recorded_and_not_reported(campaign):
    campaign.open()
    campaign.run("note", variant="baseline", repeat=1, state="measuring", drain=60, found={"drain": []})
    assert campaign.state.steps["baseline/1"]["drain"]["outcome"] == "drained"
    assert campaign.printed == []
    assert "although" not in campaign.run("finish")["text"]


@pytest.mark.parametrize("found", [{"failed": True, "msg": "no tool"}, AnsibleConnectionFailure("gone"), {}])
def test_caches_that_cannot_be_read_do_not_stop_the_step(campaign, found):
    campaign.open()
    assert "failed" not in campaign.run("note", variant="baseline", repeat=1, state="measuring", drain=60, found=found)
    assert campaign.state.steps["baseline/1"]["drain"]["outcome"] == "not_read"
    assert campaign.printed == ["node1: baseline/1 is measured, and whether its caches still wrote back could not be read."]


def test_caches_are_waited_for_until_they_write_nothing_back(campaign, monkeypatch):
    campaign.open()
    monkeypatch.setattr(sweep, "time", Clock(pause=5.0))
    paces = iter([1024.0, 512.0, 0.0])

    def drain(_module):
        return {"drain": [{"dirty": 4096, "bytes_per_second": next(paces)}]}

    campaign.run("note", variant="baseline", repeat=1, state="measuring", drain=60, found=drain)
    assert campaign.state.steps["baseline/1"]["drain"] == {"outcome": "drained", "seconds": 10.0, "dirty": 4096, "bytes_per_second": 0}


class Clock:
    """Time that only passes where it is waited for."""

    def __init__(self, pause):
        self.now = 0.0
        self.pause = pause

    def monotonic(self):
        return self.now

    def sleep(self, _seconds):
        self.now += self.pause


@pytest.mark.parametrize(
    ("outcome", "refused"),
    [
        ({"failed": True, "error": "refused"}, True),
        ({"failed": True, "error": "tool_missing", "changed": True, "left_out": {"raid_cache": "no tool"}}, True),
        ({"failed": True, "error": "refused", "changed": True}, False),
        ({"failed": True, "error": "refused", "changed": True, "left_out": {}}, False),
        ({"failed": True, "error": "command_failed", "broke_off": "block_cache"}, False),
        ({"failed": True, "error": "timed_out"}, False),
        ({"failed": True, "msg": "MODULE FAILURE"}, False),
        ({"failed": True, "error": "refused", "unreachable": True}, False),
        ({"unreachable": True}, False),
        ({"changed": True}, False),
        ({}, False),
    ],
)
def test_a_variant_is_refused_if_its_plan_was_not_accepted_and_nothing_was_changed(campaign, outcome, refused):
    campaign.open()
    noted = campaign.run("note", variant="drive_off", repeat=1, state="failed", reason="why", outcome=outcome)
    assert noted["refused"] == ({"drive_off": "why"} if refused else {})
    assert campaign.state.steps["drive_off/1"]["state"] == ("refused" if refused else "failed")


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ({"unreachable": True, "msg": "no route"}, "This host became unreachable: no route"),
        ({"not_running": ["The cache a is not running.", "Nor is b."]}, "The variant drive_off is not in effect: The cache a is not running. Nor is b."),
    ],
)
def test_a_variant_that_is_not_in_effect_fails(campaign, outcome, message):
    result = campaign.run("applied", variant="drive_off", outcome=outcome)
    assert (result["failed"], result["msg"]) == (True, message)


@pytest.mark.parametrize(
    ("given", "changes"),
    [
        ({}, False),
        ({"outcome": {"changed": True}}, True),
        ({"network": True}, True),
        ({"wanted": {"block_cache_caches": [{"name": "a"}, {"name": "b", "migrate": True}]}}, True),
        ({"wanted": {"block_cache_caches": [{"name": "a", "migrate": False}]}}, False),
    ],
)
def test_what_was_changed_for_a_variant_is_settled_before_it_is_measured(campaign, given, changes):
    assert campaign.run("applied", variant="drive_off", **given) == {"changed": False, "started": False, "changes": changes}


def test_a_measurement_that_the_layers_have_started_is_not_started_again(campaign):
    assert campaign.run("applied", outcome={"benchmark": {"started": True}})["started"]
    assert not campaign.run("applied", outcome={"benchmark": None})["started"]


STEPS = [{"variant": name, "repeat": repeat, "seconds": 100} for repeat in (1, 2) for name in ("a", "b", "c")]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"repeat": 1, "in_any_case": 1}, "abc"),
        ({"repeat": 2}, "abc"),
        ({"repeat": 2, "refused": {"a": "why"}}, "bc"),
        ({"repeat": 2, "progress": {"closed": {"node1": ["b"], "node2": ["c"]}}}, "ac"),
        # Before anything can be decided, the budget was applied by the plan.
        ({"repeat": 1, "in_any_case": 1, "budget_seconds": 10, "seconds": 5}, "abc"),
        ({"repeat": 2, "in_any_case": 1, "budget_seconds": 305, "seconds": 5}, "abc"),
        ({"repeat": 2, "in_any_case": 1, "budget_seconds": 305, "seconds": 6}, ""),
        ({"repeat": 2, "in_any_case": 1, "budget_seconds": 305, "seconds": 5, "progress": {"needed": {"node1": 301}}}, ""),
        ({"repeat": 2, "in_any_case": 1, "budget_seconds": 105, "seconds": 5, "refused": {"a": "", "b": ""}}, "c"),
        ({"repeat": 2, "in_any_case": 1, "budget_seconds": 0, "seconds": 5}, ""),
    ],
)
def test_only_whole_repeats_that_fit_the_budget_are_due(campaign, given, names):
    assert "".join(step["variant"] for step in campaign.run("due", steps=STEPS, **given)["due"]) == names


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ("open", "This host is unreachable: gone"),
        ("recall", "This host is unreachable: gone"),
        ("begin", "This host became unreachable before anything was changed: gone"),
        ("restored", "This host is unreachable: gone"),
    ],
)
def test_an_unreachable_host_has_failed_with_the_reason(campaign, operation, message):
    journal = campaign.open()["journal"]
    result = campaign.run(operation, axes=AXES, measurement=MEASUREMENT, journal=journal, found=AnsibleConnectionFailure("gone"))
    assert (result["failed"], result["msg"]) == (True, message)
    assert not campaign.state.restored


@pytest.mark.parametrize("operation", ["open", "recall", "begin", "restored"])
def test_what_a_module_on_the_host_refuses_is_the_result_of_the_task(campaign, operation):
    journal = campaign.open()["journal"]
    refusal = {"failed": True, "msg": "This host has the journal of another sweep.", "error": "refused", "item": "day"}
    result = campaign.run(operation, axes=AXES, measurement=MEASUREMENT, journal=journal, found=refusal)
    assert result == {**refusal, "changed": False}


def test_the_journal_is_written_on_the_host(campaign):
    journal = campaign.open()["journal"]
    assert campaign.run("begin", journal=journal, folder="/srv/sweep", found={"changed": True})["changed"]
    assert campaign.asked[-1] == ("sweep_journal", {"state": "present", "journal": journal, "folder": "/srv/sweep"})
    assert not campaign.run("begin", journal=journal, found={"changed": False})["changed"]


def test_a_host_that_differs_keeps_its_journal(campaign):
    journal = campaign.open()["journal"]
    campaign.asked.clear()
    assert campaign.run("restored", journal=journal, found=json.loads(json.dumps(DESCRIPTION).replace("enabled", "disabled")))["failed"]
    assert [name for name, _arguments in campaign.asked] == ["cache_description_info"]


def test_suites_of_the_role_need_not_be_given(campaign):
    assert keys(campaign.open(measurement={**MEASUREMENT, "suite": "quick", "suites": {}}))
    assert campaign.open(measurement={**MEASUREMENT, "suites": ["x"]})["msg"] == "fio_benchmark_suites must be a dictionary of suites."


def test_variants_that_wait_for_caches_are_returned(campaign):
    assert campaign.open()["drains"] == []
    cache = {"name": "data", "type": "lvm_cache", "origin": "vg0/data", "cache_devices": ["/dev/sdb"], "mode": "writeback"}
    assert campaign.open(axes={}, variants=[{"name": "cached", "block_cache_caches": [cache]}])["drains"] == ["cached"]


def test_steps_whose_cache_was_made_anew_fill_again_and_cost_what_that_takes(campaign):
    cache = {"name": "data", "type": "lvm_cache", "origin": "vg0/data", "cache_devices": ["/dev/sdb"], "mode": "writeback"}
    fill = {"name": "fill", "fill": True, "job": {"rw": "write", "bs": "1m", "size": "1g"}}
    suites = {"filled": {"cells": [fill, {"name": "a", "job": {"rw": "read", "runtime": 5, "time_based": 1}}]}}
    steps = campaign.open(
        axes={},
        variants=[{"name": "cached", "block_cache_caches": [cache]}],
        repeats=3,
        measurement={**MEASUREMENT, "suite": "filled", "suites": suites},
    )["steps"]

    assert [step["key"] for step in steps if step["refills"]] == ["cached/3"]
    written = {step["key"]: step["written"] for step in steps}
    assert (written["cached/1"], written["cached/2"], written["cached/3"], written["baseline/3"]) == (2**30, 0, 2**30, 0)


def test_steps_of_a_variant_that_is_refused_later_are_not_counted(campaign):
    campaign.open()
    state = campaign.state
    for key in ("baseline/1", "drive_off/1", "baseline/2"):
        state.note(key, states.DONE)
    state.note("drive_off/2", states.REFUSED, "the battery is gone")
    states.save(campaign.path, state)
    assert "node1: 2 of 2 steps are done" in campaign.run("finish")["text"]


@pytest.mark.parametrize("changes", [{"budget": 1e-6}, {"baseline": "", "found": {**FOUND, "paths": {}}}])
def test_a_host_of_which_nothing_is_measured_was_not_changed(campaign, changes):
    assert campaign.open(**changes)["steps"] == []
    assert "steps are done, the host was not changed" in campaign.run("finish")["text"]


def test_the_time_left_is_without_what_the_budget_left_out(campaign):
    campaign.open(budget=100 / 3600)
    state = campaign.state
    state.note("baseline/1", states.DONE, seconds=40)
    assert (state.left_out, state.seconds_of_next()) == (["drive_off/2", "baseline/2"], 40)


def test_the_largest_sweep_is_planned_noted_and_read_again(campaign):
    """1,000 variants, 50 repeats: its state is more than the small files of a campaign may have."""
    values = {f"value{number}": {} for number in range(31)}
    opened = campaign.open(axes={"one": values, "two": values}, repeats=50, budget=1e5)
    assert len(opened["steps"]) == 962 * 50
    state = campaign.state
    for key in state.order:
        state.note(key, states.DONE, "", 1.0)
    states.save(campaign.path, state)
    campaign.note("baseline", 1, "failed")
    assert keys(campaign.open(axes={"one": values, "two": values}, repeats=50)) == ["baseline/1"]


@pytest.fixture
def measured(campaign, monkeypatch):
    """With the answer of measurements whose drives are of a known model."""
    pytest.importorskip("duckdb", reason="the report needs duckdb: pip install -r requirements.txt")
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page import write
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.answer import answer_of
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import points_of
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep import knowledge

    found = [
        report_rows.measurement("node1", variant, "a", number, iops=rate + number, model="ST4000", started=start + number)
        for variant, rate, start in (("baseline", 150, 1e9), ("drive_off", 1400, 1e9 + 1e4))
        for number in range(1, 5)
    ]
    answer = answer_of(Rows("c", found, settings={}), points_of(found))
    monkeypatch.setattr(write, "analysed", lambda *_args, **_named: types.SimpleNamespace(answer=answer))
    monkeypatch.setattr(knowledge, "source_of", lambda *_args: knowledge.Source("night", "1", "2"))
    campaign.open()
    return campaign


def recommended(campaign, **options):
    result = campaign.run("finish", **options)
    return "".join(open(path).read() for path in result["recommended"])


def test_a_model_that_lost_flushed_writes_is_named_in_the_recommendation(measured, tmp_path):
    drives = [{"model": "ST4000", "firmware": "SN05"}]
    host = {"host": "node9", "verdict": "at_risk", "sentence": "1 of 1 cuts lost.", "contradiction": "Contradiction: x"}
    host |= {"stack": {"verdict": "durable", "drives": drives}, "settings": {"sync": "fsync", "target": {"device": "/dev/sda"}}}
    (tmp_path / "power_loss.json").write_text(json.dumps({"schema": 1, "name": "t1", "hosts": [host]}))

    assert "Flushed writes were lost on ST4000 SN05" in " ".join(recommended(measured, power_loss=[str(tmp_path)]).replace("# ", "").split())
    assert "Flushed writes" not in recommended(measured)


def test_a_missing_power_loss_test_does_not_lose_the_recommendation(measured, tmp_path):
    assert recommended(measured, power_loss=[str(tmp_path / "nowhere")]) != ""
    assert any("sweep_power_loss: " in str(line) for line in measured.printed)


def test_a_file_of_knowledge_that_cannot_be_written_does_not_lose_the_recommendation(measured, tmp_path):
    (tmp_path / "file").write_text("")
    assert recommended(measured, knowledge=str(tmp_path / "file/knowledge.json")) != ""
    assert "0 of 4 steps are done" in measured.printed[-1]
    assert "file/knowledge.json could not be written (File exists), so nothing was added to it." in measured.printed[-1]
    assert "fio_benchmark_results" not in measured.printed[-1]


def test_an_mtu_that_is_varied_has_the_network_described_and_its_initiator_passed_on(campaign):
    links = {"name": "storage_network_links", "entries": [{"values": {"interface": "eth1", "mtu": 9000}, "notes": []}], "value": None, "notes": []}
    initiator = {"name": "storage_network_aoe_interfaces", "entries": [], "value": ["eth1"], "notes": []}
    found = {**FOUND, "description": {**DESCRIPTION, "variables": [*DESCRIPTION["variables"], links, initiator]}}
    axes = {"mtu": {1500: {"storage_network_links": [{"interface": "eth1", "mtu": 1500}]}}}

    campaign.open(axes=AXES)
    opened = campaign.open(axes=axes, found=found)
    assert [arguments["network"] for name, arguments in campaign.asked if name == "sweep_journal"] == [False, True]
    assert opened["variables"]["mtu_1500"]["storage_network_links"] == [{"interface": "eth1", "mtu": 1500, "persistent": False}]
    assert opened["restore"]["storage_network_links"] == [{"interface": "eth1", "mtu": 9000}]
    for recalled in (campaign.run("recall", found={"journal": opened["journal"]}), campaign.run("recall", found={"journal": {}, "machine_id": "aaaa"})):
        assert recalled["initiator"] == opened["initiator"] == {"interfaces": ["eth1"], "options": {}}


MOUNTED = {"target": "/dev/vg0/x", "msg": "fio will not write to /dev/vg0/x: /dev/dm-0 is mounted on /srv.", "lasting": True}
OTHERS = [{"name": "elsewhere", "fio_benchmark_targets": [{"device": "/dev/vg0/y", "write_rate": "1m"}]}]


def guarded(*refusals):
    """A host whose guard refuses that of the first targets that it examines."""
    answers = iter([{"refusals": list(refusals)}])
    return lambda module: next(answers, {"refusals": []}) if module.endswith("fio_runner") else FOUND


def test_a_host_whose_target_is_refused_with_every_variant_fails_before_anything_is_written(campaign):
    for check_mode in (True, False):
        opened = campaign.open(check_mode=check_mode, found=guarded(MOUNTED))
        assert opened["failed"] and opened["msg"] == f"{MOUNTED['msg']} Nothing was changed."
        assert campaign.state is None
    _name, given = campaign.asked[1]
    assert (given["state"], given["caches"], given["host"]) == ("examined", [], "node1")
    assert [cell["target"] for step in given["steps"] for cell in step["cells"]] == [{"device": "/dev/vg0/x"}]


def test_only_variants_with_a_refused_target_are_refused(campaign):
    opened = campaign.open(variants=OTHERS, found=guarded(MOUNTED))
    assert opened["refused"] == dict.fromkeys(("baseline", "drive_off"), MOUNTED["msg"])
    assert keys(opened) == ["elsewhere/1", "elsewhere/2"]
    assert campaign.state.refused == opened["refused"]


def test_a_target_that_a_variant_may_make_is_no_refusal_before_it_has(campaign):
    cache = {"name": "data", "type": "bcache", "origin": "/dev/sdb", "cache_devices": ["/dev/sdc"], "mode": "writeback"}
    opened = campaign.open(
        variants=[{"name": "cached", "block_cache_caches": [cache]}], found=guarded({**MOUNTED, "msg": "It does not exist.", "lasting": False})
    )
    assert opened["refused"] == {} and len(opened["steps"]) == 6
    assert campaign.asked[1][1]["caches"] == ["/dev/sdb", "/dev/sdc"]


def test_the_guard_is_not_asked_while_a_variant_is_in_effect(campaign):
    campaign.open()
    asked = len(campaign.asked)
    assert campaign.open(found={**FOUND, "journal": campaign.journal}).get("failed") is None
    assert [name for name, _arguments in campaign.asked[asked:]] == ["sweep_journal"]


def refused_step(campaign, found, error="refused", variant="drive_off"):
    opened = campaign.open(variants=OTHERS)
    steps = [{"cells": [{"name": "a", "target": {"device": "/dev/vg0/x"}, "job": {"rw": "randwrite"}}]}]
    step = {"state": "failed", "reason": "It is mounted.", "seconds": 30, "error": error, "steps": steps, "targets": opened["targets"]}
    return campaign.run("note", variant=variant, repeat=1, found=found, **step)


def test_a_target_that_is_refused_in_a_step_is_not_tried_again_with_another_variant(campaign):
    noted = refused_step(campaign, {"refusals": [MOUNTED]})
    assert noted["refused"] == dict.fromkeys(("drive_off", "baseline"), "It is mounted.")
    assert campaign.state.steps == {"drive_off/1": {"state": "failed", "reason": "It is mounted.", "seconds": 30.0}}
    assert campaign.printed[-1] == "  not tried again, because the target is refused: drive_off, baseline"
    left = campaign.state
    left.note("elsewhere/1", states.DONE, seconds=40)
    # Only the rest of what is tried takes time.
    assert left.seconds_of_next() == 40
    campaign.restored()
    finished = campaign.run("finish")
    assert "node1: 6 steps not measured, the first is baseline/1" in finished["problems"]
    assert "  failed: drive_off/1: It is mounted.\n  not tried again, because the target is refused: baseline, drive_off" in finished["text"]
    # The next run tries it again.
    assert campaign.open(variants=OTHERS)["refused"] == {} and campaign.state.skipped == {}


@pytest.mark.parametrize(
    ("found", "error", "names"),
    [
        ({"refusals": [{**MOUNTED, "lasting": False}]}, "device_missing", ["drive_off"]),
        # A scanner held it for a moment.
        ({"refusals": []}, "refused", []),
        ({"refusals": "many"}, "refused", []),
        ({"refusals": ["x", {"lasting": "yes"}]}, "refused", ["drive_off"]),
        ({"refusals": [MOUNTED]}, "", []),
        ({"refusals": [MOUNTED]}, "busy", []),
        (AnsibleConnectionFailure("gone"), "refused", []),
        ({"failed": True, "msg": "no Python"}, "refused", []),
    ],
)
def test_other_variants_are_tried_unless_the_guard_refuses_theirs_too(campaign, found, error, names):
    assert list(refused_step(campaign, found, error)["refused"]) == names
    assert list(campaign.state.skipped) == names


def test_a_variant_with_the_same_device_among_others_is_not_tried_again(campaign):
    opened = campaign.open(variants=[{"name": "both", "fio_benchmark_targets": [*OTHERS[0]["fio_benchmark_targets"], *MEASUREMENT["targets"]]}])
    step = {"state": "failed", "reason": "why", "error": "refused", "steps": [{"cells": []}], "targets": opened["targets"]}
    assert set(campaign.run("note", variant="baseline", repeat=1, found={"refusals": [MOUNTED]}, **step)["refused"]) == {"baseline", "drive_off", "both"}


@pytest.mark.parametrize("by", ["inventory", "variant"])
def test_the_tool_of_a_controller_is_used_where_its_path_says_from_the_first_description_to_the_last(campaign, by):
    place = {"provider": "storcli", "tool_path": "/srv/storcli"}
    volume = {"name": "v", "write": "writeback"}
    described = {**place, "serial": "S1", "volumes": [volume]}
    found = copy.deepcopy(FOUND)
    found["description"]["variables"].append({"name": "raid_cache_controllers", "entries": [{"values": described, "notes": []}], "value": None, "notes": []})
    found["description"]["controllers"] = [{"provider": "storcli", "id": "0", "serial": "S1", "model": "M", "volumes": [volume]}]
    entry = {**(place if by == "variant" else {"provider": "storcli"}), "serial": "S1", "volumes": [{"name": "v", "write": "writethrough"}]}
    inventory = {"raid_cache_controllers": [place]} if by == "inventory" else {}

    opened = campaign.open(axes={"raid": {"through": {"raid_cache_controllers": [entry]}}}, found=found, task_vars=inventory)
    assert campaign.asked[0][1]["tool_paths"] == {"storcli": "/srv/storcli"}
    for variables in (opened["restore"], opened["variables"]["raid_through"], opened["variables"]["baseline"]):
        assert variables["raid_cache_controllers"][0]["tool_path"] == "/srv/storcli"
    assert campaign.run("restored", journal=opened["journal"], found=found["description"]).get("failed") is None
    assert campaign.asked[-2][1]["tool_paths"] == {"storcli": "/srv/storcli"}
