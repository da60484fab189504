# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of stacks in tests/unit/data/stacks.yml, each with the verdict and the reason that it must get."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.tests.unit.support.stack_table import TABLE, Builder, judged


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry["name"])
def test_every_stack_of_the_table_has_its_verdict(entry):
    stack = Builder(entry).stack()
    expected = dict(entry["expect"])
    verdict = stack.verdict(stack.devices.get(judged(entry)))
    assert expected.pop("because") in verdict.reason
    assert expected.pop("loss_because") in verdict.device_loss_reason
    assert {name: getattr(verdict, name) for name in expected} == expected
    assert verdict.reason.endswith(".")
    assert verdict.device_loss_reason.endswith(".")


def test_table_is_large_enough_with_unique_names():
    names = [entry["name"] for entry in TABLE]
    assert len(set(names)) == len(names) >= 40
    assert all({"verdict", "because", "unflushed", "device_loss", "loss_because"} == set(entry["expect"]) for entry in TABLE)


def test_table_covers_all_cache_types_and_layers():
    caches = [cache for entry in TABLE for cache in entry.get("caches", ())]
    assert {cache["type"] for cache in caches} == {"lvm_cache", "dm_cache", "bcache", "flashcache", "enhanceio"}
    assert {cache.get("mode") for cache in caches} >= {"writeback", "writethrough", "writearound", "passthrough", "none"}
    assert {entry["expect"]["verdict"] for entry in TABLE} == {"durable", "at_risk", "unknown"}
    assert {entry["expect"]["device_loss"] for entry in TABLE} == {"survives", "loses", "unknown"}
