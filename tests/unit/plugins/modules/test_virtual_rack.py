# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import importlib

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.cachefleet.storage.tests.unit.support.module_calls import run_here

PACKAGE = "ansible_collections.cachefleet.storage.plugins.modules"


def run(capsys, module, /, **arguments):
    return run_here(importlib.import_module(f"{PACKAGE}.{module}"), capsys, arguments)[1]


def test_absent_of_a_missing_rack_is_no_change(capsys, tmp_path):
    result = run(capsys, "virtual_rack", state="absent", directory=str(tmp_path / "rack"))
    assert (result["changed"], result["machines"]) == (False, [])
    assert not (tmp_path / "rack").exists()


def test_started_requires_an_image(capsys, tmp_path):
    result = run(capsys, "virtual_rack", state="started", directory=str(tmp_path / "rack"))
    assert result["failed"]
    assert "image" in result["msg"]


def test_invalid_input_fails_with_one_sentence_and_item(capsys, tmp_path):
    result = run(capsys, "virtual_rack", name="no good", state="absent", directory=str(tmp_path / "rack"))
    assert (result["failed"], result["error"], result["item"]) == (True, "bad_input", "no good")
    assert "cannot be the name of a rack" in result["msg"]


@pytest.mark.parametrize(("written", "kind"), [(True, "on"), (False, "off"), ("honest", "honest")])
def test_truth_values_of_volatile_cache_still_work(written, kind):
    disk = {"name": "d0", "kind": "nvme", "size": "1G", "volatile_cache": written}
    specification = importlib.import_module(f"{PACKAGE}.virtual_rack").ARGUMENT_SPEC
    result = ArgumentSpecValidator(specification).validate({"machines": [{"name": "a", "disks": [disk]}]})
    assert (result.error_messages, result.validated_parameters["machines"][0]["disks"][0]["volatile_cache"]) == ([], kind)


def test_missing_image_would_be_built(capsys, tmp_path):
    result = run(capsys, "virtual_rack_image", cache_dir=str(tmp_path), _ansible_check_mode=True)
    assert result["changed"]
    assert result["image"]["base"].startswith(str(tmp_path / "images/bookworm-"))
    assert not list(tmp_path.iterdir())


def test_invalid_recipe_fails_with_one_sentence(capsys, tmp_path):
    result = run(capsys, "virtual_rack_image", cache_dir=str(tmp_path), size="huge")
    assert (result["failed"], result["error"]) == (True, "bad_input")
