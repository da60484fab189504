# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._sweep import journal as sweep_journal

JOURNAL = {"campaign": "night", "host": "node1", "created": "2026-11-25", "description": {"variables": []}, "restore": {"block_cache_caches": []}}


@pytest.fixture
def host(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/machine-id").write_text("aaaa\n")
    return tmp_path


@pytest.fixture
def folder(host):
    return str(host / "sweep")


def write(folder, host, **changes):
    return sweep_journal.write(folder, {**JOURNAL, **changes}, check_mode=False, root=host)


def test_a_journal_is_read_as_it_was_written(folder, host):
    assert write(folder, host)
    assert sweep_journal.read(folder, host) == {**JOURNAL, "schema": 1, "machine_id": "aaaa"}
    assert not write(folder, host)


def test_what_was_found_is_never_replaced(folder, host):
    write(folder, host)
    write(folder, host, description={"variables": ["other"]}, restore={"drive_write_cache_drives": []})

    journal = sweep_journal.read(folder, host)
    assert journal["description"] == {"variables": []}
    assert journal["restore"] == {"drive_write_cache_drives": []}


def test_nothing_is_written_in_check_mode(folder, host):
    assert sweep_journal.write(folder, JOURNAL, check_mode=True, root=host)
    assert sweep_journal.read(folder, host) is None


def test_a_journal_of_another_host_is_refused(folder, host):
    write(folder, host)
    (host / "etc/machine-id").write_text("bbbb\n")

    with pytest.raises(Refused, match=r"is the journal of another host \(node1, machine-id aaaa\), and nothing was changed"):
        sweep_journal.remove(folder, "night", check_mode=False, root=host)


@pytest.mark.parametrize(
    "act", [lambda folder, host: write(folder, host, campaign="day"), lambda folder, host: sweep_journal.remove(folder, "day", check_mode=False, root=host)]
)
def test_a_journal_of_another_sweep_is_refused(folder, host, act):
    write(folder, host)

    with pytest.raises(Refused, match="the journal of the sweep night"):
        act(folder, host)


WHOLE = {**JOURNAL, "schema": 1, "machine_id": "aaaa"}
ENTRY = {"name": "drive_write_cache_drives", "entries": [{"values": "x"}]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        json.dumps({"schema": 1, "campaign": "x"}),
        json.dumps({**WHOLE, "campaign": ["night"]}),
        json.dumps({**WHOLE, "description": []}),
        json.dumps({**WHOLE, "description": {"variables": [{"name": "block_cache_caches"}]}}),
        json.dumps({**WHOLE, "description": {"variables": [ENTRY]}}),
        json.dumps({**WHOLE, "restore": "x"}),
        json.dumps({**WHOLE, "restore": {"block_cache_caches": ["x"]}}),
    ],
)
def test_a_damaged_journal_is_refused(folder, host, text):
    """Also an empty one: without it, the configuration of a variant would be described as what was found."""
    write(folder, host)
    path = sweep_journal.path_of(folder)
    path.write_text(text)

    for act in (
        lambda: sweep_journal.survey(None, folder, [], network=False, spool="", campaign="night", root=host),
        lambda: write(folder, host),
        lambda: sweep_journal.remove(folder, "night", check_mode=False, root=host),
    ):
        with pytest.raises(NotUnderstood, match="is not a journal of a sweep: remove the file, and restore the host from the copy in the folder"):
            act()
        assert path.read_text() == text


def test_a_journal_of_a_later_version_is_refused(folder, host):
    write(folder, host)
    path, text = sweep_journal.path_of(folder), json.dumps({**WHOLE, "schema": 2})
    path.write_text(text)
    with pytest.raises(NotUnderstood, match="was written by a later version of this collection"):
        write(folder, host)
    assert path.read_text() == text


def test_a_journal_is_removed(folder, host):
    write(folder, host)

    assert sweep_journal.remove(folder, "night", check_mode=False, root=host)
    assert sweep_journal.read(folder, host) is None
    assert not sweep_journal.remove(folder, "night", check_mode=False, root=host)


def test_paths_of_the_journal_are_resolved_as_those_of_a_description(folder, host):
    (host / "dev").mkdir()
    (host / "dev/sda").write_text("")
    (host / "dev/by-id").symlink_to("sda")
    entry = {"values": {"device": "/dev/by-id", "write_cache": "enabled"}, "notes": []}
    write(folder, host, description={"variables": [{"name": "drive_write_cache_drives", "entries": [entry]}]})

    found = sweep_journal.survey(None, folder, ["/dev/gone"], network=False, spool="", campaign="night", root=host)
    assert found["paths"] == {"/dev/by-id": str(host / "dev/sda")}
    assert found["description"] == {}


def test_another_campaign_is_refused_with_what_to_do(folder, host):
    write(folder, host)

    with pytest.raises(Refused, match=r"has been in the sweep night since 2026-11-25, .*: continue it with fio_benchmark_campaign=night, or restore"):
        sweep_journal.recall(folder, "day", host)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_journal_below_a_folder_of_another_user_is_neither_read_nor_written(folder, host):
    write(folder, host)
    os.chown(host, 65534, 65534)
    for use in (lambda: sweep_journal.read(folder, host), lambda: write(folder, host, created="x")):
        with pytest.raises(Refused, match=r"belongs to the user with UID 65534.*or set another folder of the journal"):
            use()
