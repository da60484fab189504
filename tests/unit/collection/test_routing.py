# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``meta/runtime.yml`` routes."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

TOP = Path(__file__).resolve().parents[3]
ROUTING = yaml.safe_load((TOP / "meta/runtime.yml").read_text())["plugin_routing"]


def test_answers_of_every_module_pass_the_action_plugin_that_limits_them():
    routed = {name for name, entry in ROUTING["modules"].items() if entry.get("action_plugin") == "cachefleet.storage.verify_host"}
    of_their_own = {path.stem for path in (TOP / "plugins/action").glob("*.py")}
    modules = {path.stem for path in (TOP / "plugins/modules").glob("*.py")}
    assert routed == modules - of_their_own
    for path in (TOP / "plugins/action").glob("*.py"):
        assert re.search(r"^class ActionModule\((StorageAction|Verb)\):", path.read_text(), re.M), path.name
