# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Descriptions on the controller: what a host sent is checked, rendered without templates, and written without losing an edit."""

from __future__ import annotations

import functools

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, NotUnderstood, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._host.describe import _FIRST
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description import drift, files
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.groups import find_groups
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.read import VARIABLES, read_description
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.text import dump, render

DRIVE = {"device": "/dev/disk/by-id/ata-A", "write_cache": "disabled"}


class _Loader(yaml.SafeLoader):
    """As Ansible's: a text that is marked as unsafe is not evaluated."""


_Loader.add_constructor("!unsafe", lambda loader, node: loader.construct_scalar(node))


def load(text):
    return yaml.load(text, _Loader)


def variable(name, *entries, **more):
    return {"name": name, "entries": [{"values": one, "notes": []} for one in entries], "value": None, "notes": [], "commented": False, **more}


def described(*variables, host="node1", controllers=()):
    return read_description(host, {"changed": False, "variables": list(variables), "controllers": list(controllers)})


# -- what a host sent


def test_variables_of_the_module_and_of_the_controller_are_the_same():
    assert set(_FIRST.values()) <= set(VARIABLES)


@pytest.mark.parametrize(
    "result, reason",
    [
        ({}, "no list of variables"),
        ([], "no list of variables"),
        ({"variables": [{"name": "ansible_become_password"}]}, "'ansible_become_password' is not a variable of a role"),
        ({"variables": [{"name": ["x"]}]}, "is not a variable of a role"),
        ({"variables": [variable("block_cache_caches"), variable("block_cache_caches")]}, "twice"),
        ({"variables": [{"name": "block_cache_caches", "entries": ["x"]}]}, "an entry has no values"),
        ({"variables": [variable("block_cache_caches", {"na\nme": 1})]}, "is not the name of an option"),
        ({"variables": [variable("block_cache_caches", {"{{ x }}": 1})]}, "is not the name of an option"),
        ({"variables": [variable("block_cache_caches", {"name": b"x"})]}, "a value is of the type bytes"),
        ({"variables": [variable("block_cache_caches", {"name": "x" * 20000})]}, "a text has 20000 characters"),
        ({"variables": [variable("block_cache_caches", functools.reduce(lambda inner, _: {"a": inner}, range(9), {}))]}, "deeper than"),
        ({"variables": [], "controllers": ["x"]}, "a controller is not described"),
    ],
)
def test_what_the_module_does_not_return_is_refused(result, reason):
    with pytest.raises(NotUnderstood, match="The description of node1 is not what") as raised:
        read_description("node1", result)
    assert reason in raised.value.message


# -- the text


def test_a_file_is_yaml_with_the_variables_and_comments_on_the_rest():
    drives = variable("drive_write_cache_drives", DRIVE, notes=["/dev/sdx could not be read."])
    drives["entries"][0]["notes"] = ["Its cache is on."]
    text = render(
        described(
            variable("fio_benchmark_targets", {"device": "/dev/vg0/free", "identity": "vg0/free"}, commented=True),
            variable("block_cache_caches", notes=["The caches of type bcache could not be read: no."]),
            drives,
            variable("storage_network_aoe_interfaces", value=["eth1"]),
            variable("storage_network_links"),
        )
    )
    assert load(text) == {"drive_write_cache_drives": [DRIVE], "storage_network_aoe_interfaces": ["eth1"]}
    lines = text.splitlines()
    assert "# /dev/sdx could not be read." in lines
    assert "  # Its cache is on." in lines
    assert "# block_cache_caches:" in lines
    assert lines.index("# fio_benchmark_targets:") > lines.index("drive_write_cache_drives:")
    assert "#   - device: /dev/vg0/free" in lines
    assert "storage_network_links" not in text
    proposals = text[text.index("# fio_benchmark_targets:") :].replace("\n# ", "\n").lstrip("# ")
    assert load(proposals) == {"fio_benchmark_targets": [{"device": "/dev/vg0/free", "identity": "vg0/free"}]}
    assert text == render(described(drives, variable("storage_network_aoe_interfaces", value=["eth1"]),
                                    variable("block_cache_caches", notes=["The caches of type bcache could not be read: no."]),
                                    variable("fio_benchmark_targets", {"device": "/dev/vg0/free", "identity": "vg0/free"}, commented=True)))  # fmt: skip


@pytest.mark.parametrize("text", ["{{ lookup('pipe', 'id') }}", "{% if x %}", "a {# b", "{{"])
def test_a_template_of_a_host_is_never_evaluated(text):
    rendered = render(described(variable("block_cache_caches", {"name": text, "settings": {"x": [text]}})))
    assert rendered.count("!unsafe") == 2
    assert load(rendered)["block_cache_caches"] == [{"name": text, "settings": {"x": [text]}}]


@pytest.mark.parametrize("note", ["a\nblock_cache_caches: []", "a\r\nx: 1", "a\u2028x: 1", "a\x85x: 1", "a\x00b"])
def test_a_note_of_a_host_stays_a_comment(note):
    rendered = render(described(variable("drive_write_cache_drives", DRIVE, notes=[note])))
    assert load(rendered) == {"drive_write_cache_drives": [DRIVE]}


_TEXTS = st.text(max_size=60)
_PRINTABLE = _TEXTS.filter(str.isprintable)
_PLAIN = st.none() | st.booleans() | st.integers() | _PRINTABLE
_VALUES = _PLAIN | st.lists(_PLAIN | st.lists(_PLAIN, max_size=3), max_size=3)


@settings(max_examples=200, deadline=None)
@given(value=_VALUES, note=_TEXTS)
def test_every_value_survives_and_every_note_is_a_comment(value, note):
    rendered = render(described(variable("block_cache_caches", {"name": "x", "settings": {"value": value}}, notes=[note])))
    assert load(rendered) == {"block_cache_caches": [{"name": "x", "settings": {"value": value}}]}


@pytest.mark.parametrize("value", ["\x85", "a\x85b", "\u2028", "{{ a }}\x85 b", "{{ a }}\n b", "a\u2029 {# b"])
def test_line_breaks_survive(value):
    assert load(dump([value])) == [value]


def test_words_that_yaml_would_take_for_something_else_are_quoted():
    entry = {"address": "0,5", "id": "252:3", "name": "yes", "other": "1e3", "size": "0x10"}
    assert load(dump([entry])) == [entry]


def test_the_deepest_options_of_a_role_are_not_too_deep():
    entry = {"provider": "arcconf", "maxcache": {"cache_volumes": [{"drives": ["0,4"]}]}, "volumes": [{"id": "0", "maxcache": {"read": True}}]}
    assert load(render(described(variable("raid_cache_controllers", entry)))) == {"raid_cache_controllers": [entry]}


# -- the files


def test_the_same_content_is_written_once(tmp_path):
    path = files.file_of(tmp_path, "host_vars", "node1")
    text = files.sealed("---\n# a\nx: 1\n")
    assert files.write(path, text, force=False, check_mode=False) is True
    assert files.write(path, text, force=False, check_mode=False) is False
    assert [one.name for one in path.parent.iterdir()] == ["node1.yml"]
    assert load(path.read_text()) == {"x": 1}


def test_what_was_not_edited_is_overwritten_and_what_was_is_not(tmp_path):
    path = files.file_of(tmp_path, "host_vars", "node1")
    files.write(path, files.sealed("---\nx: 1\n"), force=False, check_mode=False)
    assert files.write(path, files.sealed("---\nx: 2\n"), force=False, check_mode=False) is True
    edited = path.read_text() + "# mine\n"
    path.write_text(edited)
    with pytest.raises(Refused, match=r"was edited after it was written.*describe_force: true"):
        files.write(path, files.sealed("---\nx: 3\n"), force=False, check_mode=False)
    assert path.read_text() == edited
    assert files.write(path, files.sealed("---\nx: 3\n"), force=True, check_mode=False) is True
    assert load(path.read_text()) == {"x": 3}


@pytest.mark.parametrize("text", ["x: 1\n", "", "---\n# Written by cachefleet.storage.describe, which overwrites it unless it was edited. sha256:00\n"])
def test_a_file_of_something_else_is_not_overwritten(tmp_path, text):
    path = files.file_of(tmp_path, "host_vars", "node1")
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(Refused):
        files.write(path, files.sealed("---\nx: 3\n"), force=False, check_mode=True)


def test_check_mode_writes_nothing(tmp_path):
    assert files.write(files.file_of(tmp_path, "host_vars", "node1"), files.sealed("---\n"), force=False, check_mode=True) is True
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../etc/passwd", "a/b", "", ".hidden", "-x", "a\nb", "x" * 300])
def test_a_name_that_is_no_file_name_is_refused(tmp_path, name):
    with pytest.raises(BadInput, match="cannot be the name of a file"):
        files.file_of(tmp_path, "host_vars", name)


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "host_vars").write_text("a file")
    with pytest.raises(CommandFailed, match=r"could not be (read|written): Not a directory"):
        files.write(files.file_of(tmp_path, "host_vars", "node1"), files.sealed("---\n"), force=False, check_mode=False)


# -- the inventory beside what is there


def test_the_order_of_entries_and_keys_is_no_drift():
    found = described(variable("drive_write_cache_drives", DRIVE, {**DRIVE, "device": "/dev/disk/by-id/ata-B"}))
    inventory = {"drive_write_cache_drives": [{"write_cache": "disabled", "device": "/dev/disk/by-id/ata-B"}, dict(reversed(DRIVE.items()))]}
    assert drift.drift(inventory, found) == []
    assert drift.drift({**inventory, "block_cache_caches": []}, found) == []


def test_what_differs_is_named_and_shown():
    found = described(variable("drive_write_cache_drives", DRIVE), variable("block_queue_devices", {"device": "/dev/disk/by-id/ata-A", "nomerges": 1}))
    inventory = {"drive_write_cache_drives": [{**DRIVE, "write_cache": "enabled"}]}
    assert drift.drift(inventory, found) == ["drive_write_cache_drives", "block_queue_devices"]
    text = drift.unified(*drift.texts(inventory, found), ("inventory", "found"))
    assert "-    write_cache: enabled\n+    write_cache: disabled\n" in text
    assert "+block_queue_devices:\n" in text


def test_a_layer_that_was_not_described_is_no_drift():
    inventory = {"block_cache_caches": [{"name": "images"}]}
    assert drift.drift(inventory, described(variable("block_queue_devices"))) == []
    assert drift.texts(inventory, described(variable("block_queue_devices"))) == ("", "")
    assert drift.drift(inventory, described(variable("block_cache_caches"))) == ["block_cache_caches"]


def test_proposals_for_measurements_are_no_drift():
    found = described(variable("fio_benchmark_targets", {"device": "/dev/vg0/free"}, commented=True))
    assert drift.drift({"fio_benchmark_targets": [{"device": "/dev/sdz"}]}, found) == []


# -- groups


def controller(serial, model="Adaptec ASR-8805", **more):
    volumes = [{"id": "0", "name": "data", "wwn": f"wwn{serial}0"}, {"id": "1", "name": None, "wwn": f"wwn{serial}1"}]
    return {"provider": "arcconf", "id": "1", "serial": serial, "model": model, "volumes": volumes, **more}


def host(name, serial, write="writeback", *others, model="Adaptec ASR-8805"):
    volumes = [{"wwn": f"wwn{serial}{number}", "write": write} for number in (0, 1)]
    raid = variable("raid_cache_controllers", {"provider": "arcconf", "serial": serial, "volumes": volumes})
    return described(raid, *others, host=name, controllers=[controller(serial, model)])


def test_hosts_with_equal_controllers_are_one_group():
    links = variable("storage_network_links", {"interface": "eth1", "mtu": 9000})
    drives = [variable("drive_write_cache_drives", {**DRIVE, "device": f"/dev/disk/by-id/ata-{name}"}) for name in "AB"]
    (group,) = find_groups([host("b", "B", "writeback", links, drives[1]), host("a", "A", "writeback", links, drives[0])])
    assert (group.name, group.hosts) == ("adaptec_asr_8805", ("a", "b"))
    # What names devices of one host is not the same on another.
    assert group.contents == {
        "raid_cache_controllers": [{"provider": "arcconf", "id": "1", "volumes": [{"name": "data", "write": "writeback"}, {"id": "1", "write": "writeback"}]}],
        "storage_network_links": [{"interface": "eth1", "mtu": 9000}],
    }


def test_hosts_that_differ_are_in_other_groups_or_in_none():
    hosts = [host(name, name, "writeback") for name in "abc"] + [host(name, name, "writethrough") for name in "de"] + [host("f", "f", "none")]
    groups = find_groups(hosts)
    assert [(group.name, group.hosts) for group in groups] == [("adaptec_asr_8805", ("a", "b", "c")), ("adaptec_asr_8805_2", ("d", "e"))]
    assert find_groups([host("a", "a"), host("b", "b", model="Adaptec 6805")]) == []
    assert find_groups([described(host="a"), described(host="b")]) == []
