# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of earlier versions lead to the plugins that have replaced them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

TOP = Path(__file__).resolve().parents[3]
ROUTING = yaml.safe_load((TOP / "meta/runtime.yml").read_text())["plugin_routing"]
CASES = [(kind, old, entry["redirect"]) for kind, entries in sorted(ROUTING.items()) for old, entry in sorted(entries.items()) if "redirect" in entry]
_FIND = """
import sys
from ansible.plugins.loader import action_loader, module_loader, init_plugin_loader
init_plugin_loader()
loader = {"action": action_loader, "modules": module_loader}[sys.argv[1]]
print(loader.find_plugin_with_context(sys.argv[2]).resolved_fqcn)
"""


@pytest.mark.parametrize(("kind", "old", "new"), CASES)
def test_former_name_is_redirected(kind, old, new):
    found = subprocess.run([sys.executable, "-c", _FIND, kind, f"cachefleet.storage.{old}"], capture_output=True, text=True, timeout=900, check=True)
    assert found.stdout.strip() == new


def test_answers_of_every_module_pass_the_action_plugin_that_limits_them():
    routed = {name for name, entry in ROUTING["modules"].items() if entry.get("action_plugin") == "cachefleet.storage.verify_host"}
    of_their_own = {path.stem for path in (TOP / "plugins/action").glob("*.py")}
    modules = {path.stem for path in (TOP / "plugins/modules").glob("*.py")}
    assert routed == modules - of_their_own
    for path in (TOP / "plugins/action").glob("*.py"):
        assert "class ActionModule(StorageAction)" in path.read_text(), path.name
