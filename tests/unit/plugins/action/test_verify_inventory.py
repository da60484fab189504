# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verb verify_inventory, without a host."""

from __future__ import annotations

import re
import types
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.action import verify_inventory
from ansible_collections.cachefleet.storage.plugins.plugin_utils._variable_names import OF_PLAYBOOKS, RoleVariables

TOP = Path(__file__).resolve().parents[4]


def run(play, inventory=("node1", "node2"), variables=None, selected=("all",), skipped=(), **args):
    action = object.__new__(verify_inventory.ActionModule)
    vars(action).update(
        _display=types.SimpleNamespace(),
        _task=types.SimpleNamespace(args=args, check_mode=False, async_val=0),
        _connection=types.SimpleNamespace(_shell=types.SimpleNamespace(tmpdir=None)),
        _loader=None,
    )
    hostvars = {host: {"ansible_host": host, **(variables or {})} for host in play}
    tags = {"ansible_run_tags": list(selected), "ansible_skip_tags": list(skipped)}
    return action.run(task_vars={"ansible_play_hosts_all": list(play), "groups": {"all": list(inventory)}, "hostvars": hostvars, **tags})


@pytest.mark.parametrize(
    ("play", "inventory", "hosts"),
    [
        (["node1", "node2"], ["node1", "node2"], None),
        (["node1"], ["node1", "node2"], "node1"),
        (["localhost"], ["localhost"], None),
        (["localhost"], [], "localhost"),
        (["localhost"], ["node1"], ["node9", "localhost"]),
    ],
)
def test_hosts_that_are_there(play, inventory, hosts):
    assert run(play, inventory, hosts=hosts) == {"changed": False}


@pytest.mark.parametrize(
    ("inventory", "hosts", "message"),
    [
        ([], None, "The inventory has no host: give one with -i, or set storage_hosts=localhost for the controller itself."),
        (["node1"], "rack9", "No host of the inventory matches rack9: set storage_hosts to hosts or groups of the inventory."),
        (["localhost"], ["rack9", "db*"], "No host of the inventory matches rack9, db*: set storage_hosts to hosts or groups of the inventory."),
    ],
)
def test_play_that_would_fall_back_to_the_controller_fails(inventory, hosts, message):
    assert run(["localhost"], inventory, hosts=hosts) == {"failed": True, "changed": False, "msg": message}


@pytest.mark.parametrize("pattern", ["~[", "[", "rack1,!~node(", "all:!web["])
def test_pattern_for_which_ansible_would_take_all_hosts_is_refused(pattern):
    message = f"{pattern} is no pattern of hosts: a bracket does not end, or the regular expression is invalid."
    assert run(["node1", "node2"], hosts=[pattern])["msg"] == message


@pytest.mark.parametrize("pattern", ["~node[0-9]+", "node[1:2]", "rack*:!node1", "web[0],db", "all"])
def test_pattern_of_hosts_is_accepted(pattern):
    assert run(["node1", "node2"], hosts=[pattern]) == {"changed": False}


def test_mistyped_variable_fails_with_its_hosts():
    result = run(["node1", "node2"], variables={"block_cache_cache": []})
    assert result["msg"] == "No role or playbook has the variable block_cache_cache, which is set for node1, node2: did you mean block_cache_caches?"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("drive_write_cahce_drives", "drive_write_cache_drives"),
        ("blok_cache_caches", "block_cache_caches"),
        ("storage_protected_drive", "storage_protected_drives"),
        ("storage_host", "storage_hosts"),
        ("plan_dirctory", "plan_directory"),
        ("report_baselin", "report_baseline"),
        ("compare_treshold", "compare_thresholds"),
        ("my_block_cache_caches", None),
        ("_sweep_variants", None),
        ("drive_write_caches", None),
        ("ansible_host", None),
    ],
)
def test_slip_in_the_prefix_of_a_variable_is_found_and_names_of_the_user_are_not(name, meant):
    found = run(["node1"], variables={name: []})
    assert found == ({"changed": False} if meant is None else {"changed": False, "failed": True, "msg": found["msg"]})
    assert meant is None or f"did you mean {meant}?" in found["msg"]


def test_variables_of_playbooks_are_known():
    texts = [path.read_text() for path in (TOP / "playbooks").glob("*.yml")]
    used = {name for text in texts for name in re.findall(r"\b([a-z]\w+) (?:\| default\(|is (?:not )?defined)", text)}
    assert RoleVariables().unknown(used) == [] and {"storage_hosts", "report_baseline", "results_operation"} <= used
    assert {"storage_hosts", "report_baseline", "results_operation"} <= OF_PLAYBOOKS <= used | {"sweep_campaign", "replace_cache_device_confirm"}


def test_types_and_keys_are_verified_with_equal_hosts_together():
    result = run(["node1", "node2"], variables={"fio_benchmark_targets": {"file": "/x"}, "block_queue_devices": [{"device": "/dev/x", "schedular": "none"}]})
    assert result["msg"] == (
        "node1, node2: block_queue_devices: there is no key schedular: did you mean scheduler? "
        "node1, node2: fio_benchmark_targets must be a list of dictionaries, for example [{device: ...}]."
    )
    assert run(["node1"], variables={"fio_benchmark_targets": {"file": "/x"}}, types=False) == {"changed": False}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("storage_protected_drives", [{"model": "INTEL"}], "must be a text, or a dictionary with match alone"),
        ("storage_protected_drives", ["*"], "would declare nearly every drive"),
        ("storage_flushed_virtual_disks", [""], "is empty"),
        ("storage_protected_drives", [{"match": {"model": "INTEL SSDSC2*"}}, "BTWA1234"], ""),
        ("storage_protected_drives", "{{ drives_of_the_rack }}", ""),
    ],
)
def test_declarations_are_verified_before_a_sweep_writes_its_journal(name, value, words):
    result = run(["node1"], variables={name: value})
    assert (words in result["msg"] and result["msg"].startswith("node1: ")) if words else result == {"changed": False}


@pytest.mark.parametrize(
    ("selected", "failed"), [(["block_cahce"], True), (["block_cache"], False), (["all"], False), (["my_play"], False), (["restore"], False)]
)
def test_tag_that_is_similar_to_a_known_one_fails(selected, failed):
    result = run(["node1"], selected=selected, tags=["block_cache", "raid_cache"])
    assert result == ({"failed": True, "changed": False, "msg": "No task has the tag block_cahce: did you mean block_cache?"} if failed else {"changed": False})


def test_skipped_tag_that_is_similar_to_a_known_one_fails():
    """It would skip nothing, and configure what should be left alone."""
    result = run(["node1"], skipped=["raid_cahce"], tags=["block_cache", "raid_cache"])
    assert result["msg"] == "No task has the tag raid_cahce: did you mean raid_cache?"
    assert run(["node1"], skipped=["raid_cache"], tags=["block_cache", "raid_cache"]) == {"changed": False}


LAYERS = ["drive_write_cache", "raid_cache", "block_queue"]
TAGS = [f"{layer}{suffix}" for layer in LAYERS for suffix in ("", "_configure")]


@pytest.mark.parametrize(
    ("selected", "skipped", "tag"), [(("raid",), (), "raid"), (("raid_cache", "drive_cache"), (), "drive_cache"), (("all",), ("raid",), "raid")]
)
def test_tag_that_selects_nothing_fails_if_no_other_playbook_is_run(monkeypatch, selected, skipped, tag):
    message = f"No task has the tag {tag}, and nothing was done: the tags of this playbook are drive_write_cache, raid_cache, block_queue."
    for alone in ("cachefleet.storage.site", str(TOP / "playbooks/site.yml")):
        monkeypatch.setattr(verify_inventory.context, "CLIARGS", {"args": (alone,)})
        assert run(["node1"], tags=TAGS, selected=selected, skipped=skipped)["msg"] == message
    # The tag may be one of the user's own plays.
    monkeypatch.setattr(verify_inventory.context, "CLIARGS", {"args": ("cachefleet.storage.site", "everything.yml")})
    assert run(["node1"], tags=TAGS, selected=selected, skipped=skipped) == {"changed": False}


@pytest.mark.parametrize("selected", [("all",), ("tagged",), ("raid_cache_configure", "always")])
def test_tag_that_selects_a_layer_is_accepted(monkeypatch, selected):
    monkeypatch.setattr(verify_inventory.context, "CLIARGS", {"args": ("cachefleet.storage.site",)})
    assert run(["node1"], tags=TAGS, selected=selected) == {"changed": False}


@pytest.mark.parametrize(
    ("variables", "selected", "message"),
    [
        ({}, ("all",), "one of the variables block_queue_devices, drive_write_cache_drives, raid_cache_controllers: is its file named like"),
        ({"write_cache_drives": []}, ("all",), ": did you mean drive_write_cache_drives, in place of write_cache_drives of node1?"),
        ({"block_queue_devices": None}, ("all",), ": block_queue_devices of node1 has no value: list its entries below it, or set it to [] if there are none."),
        ({"block_queue_devices": [{}]}, ("raid_cache",), "no host of this play (node1, node2) has raid_cache_controllers: is its file"),
        ({"block_queue_devices": [{}]}, ("raid_cache_configure",), "has raid_cache_controllers: is its file"),
    ],
)  # fmt: skip
def test_nothing_to_configure_for_any_host_fails(variables, selected, message):
    found = run(["node1", "node2"], variables=variables, selected=selected, layers=LAYERS)
    assert found["failed"] and message in found["msg"] and found["msg"].startswith("Nothing was done: ")


@pytest.mark.parametrize(("variables", "selected"), [({"block_queue_devices": []}, ("all",)), ({"raid_cache_controllers": []}, ("raid_cache",))])
def test_empty_list_is_something_that_was_described(variables, selected):
    assert run(["node1"], variables=variables, selected=selected, layers=LAYERS, types=False) == {"changed": False}


def test_empty_answer_of_a_survey_is_named():
    message = "node1: fio_benchmark_repeats is empty: set a whole number, or leave it out (in a survey, give the question a default)."
    assert run(["node1"], variables={"fio_benchmark_repeats": ""})["msg"] == message


@pytest.mark.parametrize(("selected", "fails"), [(("all",), True), (("block_queue",), True), (("storage_network_prove",), False)])
def test_tags_that_leave_out_every_layer_are_an_error(selected, fails):
    found = run(["node1"], variables={"block_queue_devices": []}, selected=selected, skipped=LAYERS, layers=LAYERS)
    assert found.get("failed", False) == fails
    assert not fails or found["msg"] == f"The tags leave out all layers, and nothing was done: the layers are {', '.join(LAYERS)}."


@pytest.mark.parametrize(
    ("state", "given", "selected", "skipped", "message"),
    [
        ("absent", "absent", ("all",), (), ""),
        ("present", None, ("block_queue",), (), ""),
        ("absnt", "absnt", ("all",), (), "site_state is 'absnt', and nothing was done: set it to present or absent."),
        ("absent", None, ("all",), (), "where it has no effect, and nothing was done: set it on the command line"),
        ("absent", "absent", ("block_queue",), (), "and nothing was done: run it without the tag block_queue."),
        ("absent", "absent", ("all",), ("raid_cache",), "and nothing was done: run it without the tag raid_cache."),
    ],
)
def test_state_of_site_does_what_it_says_or_is_refused(monkeypatch, state, given, selected, skipped, message):
    monkeypatch.setattr(verify_inventory, "load_extra_vars", lambda loader: {"site_state": given} if given else {})
    variables = {"block_queue_devices": []} if state == "present" else {}
    found = run(["node1"], variables=variables, selected=selected, skipped=skipped, layers=LAYERS, site_state=state)
    assert found.get("failed", False) == bool(message) and message in found.get("msg", "")
