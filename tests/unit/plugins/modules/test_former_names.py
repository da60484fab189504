# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options that were renamed: each module as Ansible starts it, with the former name."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from ansible.module_utils.common.parameters import PASS_VARS

_CACHE = {"name": "former", "origin": "/dev/disk/by-id/ata-GONE", "cache_devices": ["/dev/disk/by-id/ata-GONE2"]}


@pytest.mark.parametrize(
    ("module", "items", "item"),
    [
        ("drive_write_cache", "drives", {"device": "/dev/disk/by-id/ata-GONE", "write_cache": "enabled"}),
        ("enhanceio", "caches", _CACHE),
        ("flashcache", "caches", _CACHE),
        ("storage_network", "aoe_targets", {"shelf": 70000, "slot": 1, "interface": "lo", "device": "/dev/disk/by-id/ata-GONE"}),
    ],
)
def test_former_option_name_is_accepted(module, items, item):
    requested = {"_ansible_check_mode": True}
    if "inject_invocation" in PASS_VARS:
        # Newer ansible-core returns the invocation only if the controller asks for it, older ones refuse the question.
        requested["_ansible_inject_invocation"] = True
    arguments = {"ANSIBLE_MODULE_ARGS": {items: [{**item, "allow_swallowed_flushes": True}], **requested}}
    code = (
        "import sys\n"
        "from ansible.module_utils import basic\n"
        "basic._ANSIBLE_ARGS = sys.stdin.buffer.read()\n"
        "basic._ANSIBLE_PROFILE = 'legacy'\n"
        f"from ansible_collections.cachefleet.storage.plugins.modules import {module}\n"
        f"{module}.main()\n"
    )
    path = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(arguments), capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False
    )
    assert done.stdout.strip(), done.stderr
    result = json.loads(done.stdout.strip().splitlines()[-1])
    # What it names is not there: that, and nothing else, is what it fails with.
    assert result["error"] in ("device_missing", "bad_input", "tool_missing", "refused")
    assert result["invocation"]["module_args"][items][0]["allow_ignored_flushes"] is True
    if items == "caches":
        # Newer ansible-core wraps each warning in an event of its own.
        assert json.dumps(result["warnings"]).count("former: allow_swallowed_flushes is now called allow_ignored_flushes.") == 1
