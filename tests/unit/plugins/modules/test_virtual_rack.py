# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import importlib
import json

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args

PACKAGE = "ansible_collections.cachefleet.storage.plugins.modules"
MODULES = ("virtual_rack", "virtual_rack_image")


def run(capsys, module, /, **arguments):
    with patch_module_args(arguments), pytest.raises(SystemExit):
        importlib.import_module(f"{PACKAGE}.{module}").main()
    return json.loads(capsys.readouterr().out)


def documented(options):
    return {
        name: {key: value for key, value in option.items() if key in ("type", "elements", "required", "default", "choices")}
        | ({"suboptions": documented(option["suboptions"])} if "suboptions" in option else {})
        for name, option in options.items()
    }


def specified(options):
    return {
        name: {key: value for key, value in option.items() if key in ("type", "elements", "required", "default", "choices")}
        | ({"suboptions": specified(option["options"])} if "options" in option else {})
        for name, option in options.items()
    }


@pytest.mark.parametrize("name", MODULES)
def test_documentation_matches_argument_spec(name):
    module = importlib.import_module(f"{PACKAGE}.{name}")
    assert documented(yaml.safe_load(module.DOCUMENTATION)["options"]) == specified(module.ARGUMENT_SPEC)


def test_a_rack_that_is_not_there_needs_not_be_removed(capsys, tmp_path):
    result = run(capsys, "virtual_rack", state="absent", directory=str(tmp_path / "rack"))
    assert (result["changed"], result["machines"]) == (False, [])
    assert not (tmp_path / "rack").exists()


def test_starting_needs_an_image(capsys, tmp_path):
    result = run(capsys, "virtual_rack", state="started", directory=str(tmp_path / "rack"))
    assert result["failed"]
    assert "image" in result["msg"]


def test_bad_input_is_a_sentence_that_names_the_thing(capsys, tmp_path):
    result = run(capsys, "virtual_rack", name="no good", state="absent", directory=str(tmp_path / "rack"))
    assert (result["failed"], result["error"], result["item"]) == (True, "bad_input", "no good")
    assert "cannot be the name of a rack" in result["msg"]


def test_an_image_that_is_not_there_would_be_built(capsys, tmp_path):
    result = run(capsys, "virtual_rack_image", cache_dir=str(tmp_path), _ansible_check_mode=True)
    assert result["changed"]
    assert result["image"]["base"].startswith(str(tmp_path / "images/bookworm-"))
    assert not list(tmp_path.iterdir())


def test_a_bad_recipe_is_a_sentence(capsys, tmp_path):
    result = run(capsys, "virtual_rack_image", cache_dir=str(tmp_path), size="huge")
    assert (result["failed"], result["error"]) == (True, "bad_input")
