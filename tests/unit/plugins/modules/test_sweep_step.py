# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bad input of the module, which is refused before anything is changed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HDD = "/dev/disk/by-id/ata-HDD0"
ORDER = {"campaign": "c1", "host": "node1", "steps": [{"cells": [{"name": "c", "target": {"device": "/dev/vg/data"}, "job": {"rw": "randread"}}]}]}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"layers": {"drives": [{"device": HDD, "write_cash": "on"}]}}, "write_cash"),
        ({"layers": {"drive": []}}, "drive"),
        ({"benchmark": {**ORDER, "steps": [{"cells": []}]}}, "must have cells"),
    ],
)
def test_the_module_refuses_with_one_sentence(arguments, words):
    text = json.dumps({"ANSIBLE_MODULE_ARGS": {"layers": {}, "benchmark": ORDER, **arguments}})
    command = [sys.executable, "-m", "ansible_collections.cachefleet.storage.plugins.modules.sweep_step"]
    completed = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    result = json.loads(completed.stdout)
    assert result["failed"] and words in result["msg"] and not result.get("changed")
