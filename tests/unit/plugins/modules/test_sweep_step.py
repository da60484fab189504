# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bad input of the module, which is refused before anything is changed."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.tests.unit.support.module_calls import run_process

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
    result = run_process("sweep_step", {"layers": {}, "benchmark": ORDER, **arguments})
    assert result["failed"] and words in result["msg"] and not result.get("changed")
