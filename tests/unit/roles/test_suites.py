# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role fio_benchmark as data: its suites are suites, and what it documents is what it does."""

from __future__ import annotations

import pathlib

import pytest
import yaml

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.suites import check_suite, expand

ROLE = pathlib.Path(__file__).resolve().parents[3] / "roles" / "fio_benchmark"
SUITES = {name: suite for path in (ROLE / "files" / "suites").glob("*.yml") for name, suite in yaml.safe_load(path.read_text()).items()}
DISK = {"device": "/dev/vg0/scratch", "allow_data_loss": True, "identity": "vg0/scratch"}


def test_the_role_brings_these_suites():
    assert set(SUITES) == {"quick", "transactional_write"}


@pytest.mark.parametrize("name", sorted(SUITES))
def test_every_suite_is_one(name):
    check_suite(name, SUITES[name])
    assert SUITES[name]["description"]


@pytest.mark.parametrize("name", sorted(SUITES))
def test_every_file_has_the_name_of_its_suite(name):
    assert set(yaml.safe_load((ROLE / "files" / "suites" / f"{name}.yml").read_text())) == {name}


def test_quick_takes_about_a_minute():
    assert 45 <= expand("quick", SUITES, [DISK]).seconds <= 75


def test_quick_reads_and_writes_small_and_large():
    assert {cell["job"]["rw"] for cell in SUITES["quick"]["cells"]} == {"randread", "randwrite", "read", "write"}


def test_transactional_write_is_case_a_and_its_bound():
    fill, durable, bound = (cell["job"] for cell in SUITES["transactional_write"]["cells"])
    assert (fill["rw"], fill["bs"]) == ("write", "1m")
    wanted = {"rw": "randwrite", "bs": "4k", "ioengine": "libaio", "iodepth": 16, "direct": 1, "invalidate": 1}
    assert {**durable, **wanted, "fdatasync": 1} == durable
    assert {option: value for option, value in durable.items() if option != "fdatasync"} == bound


def test_one_variable_shortens_a_suite():
    assert [cell["job"].get("time_based") and cell["job"]["runtime"] for cell in expand("transactional_write", SUITES, [DISK], runtime=8).cells] == [None, 8, 8]


def options():
    return yaml.safe_load((ROLE / "meta" / "argument_specs.yml").read_text())["argument_specs"]["main"]["options"]


def defaults():
    return yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())


def test_defaults_are_what_is_documented():
    assert {name: option["default"] for name, option in options().items()} == defaults()


def test_every_variable_carries_the_name_of_the_role():
    assert all(name.startswith("fio_benchmark_") for name in defaults())


def test_targets_have_the_options_that_the_filter_knows():
    every = {**dict.fromkeys(options()["fio_benchmark_targets"]["options"], "x"), "allow_data_loss": True}
    every.pop("file")
    assert expand("quick", SUITES, [every]).cells[0]["target"] == {name: value for name, value in every.items() if name != "name"}
