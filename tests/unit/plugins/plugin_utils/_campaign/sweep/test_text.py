# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a sweep says at its end."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.state import DONE, FAILED, REFUSED, HostState
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.text import end_text, problems_of


def host_of(name="node1", states=(), refused=None, **changes):
    """A host with one step for each state."""
    steps = {f"{variant}/1": {"state": state, "reason": "", "seconds": 1.0} for variant, state in states}
    refused = refused or {}
    return HostState(
        name, "", "", {}, {}, {}, refused=dict(refused), steps=steps, order=list(steps), repeats=1, most_repeats=1, **{"restored": True, **changes}
    )


NOTHING = "nothing was measured, because every variant is refused on every host"


@pytest.mark.parametrize(
    ("hosts", "problems"),
    [
        ([host_of(refused={"a": "No such device."})], [NOTHING]),
        ([host_of(states=[("a", REFUSED)], refused={"a": "No such device."})], [NOTHING]),
        ([host_of(refused={"a": "No such device."}), host_of("node2", [("a", DONE)])], []),
        ([host_of(states=[("a", DONE)], refused={"b": "No such device."})], []),
        ([host_of(states=[("a", FAILED)], refused={"b": "No such device."})], ["node1: 1 step not measured, the first is a/1"]),
        # The play has another host.
        ([host_of(refused={"a": "No such device."}), host_of("other", [("a", DONE)])], [NOTHING]),
        ([], []),
    ],
)
def test_a_sweep_that_measured_nothing_is_not_complete(hosts, problems):
    assert problems_of(hosts, ["node1", "node2"]) == problems


@pytest.mark.parametrize(
    ("host", "text"),
    [
        (host_of(refused={"a": "No such device."}), "node1: 0 of 0 steps are done, the host was not changed\n  refused: a: No such device."),
        (host_of(states=[("a", DONE)]), "node1: 1 of 1 step is done, the host is restored and verified"),
        (
            host_of(states=[("a", DONE)], restored=False, problem="sda is missing."),
            "node1: 1 of 1 step is done, the host IS NOT RESTORED: sda is missing.",
        ),
    ],
)
def test_the_end_says_what_became_of_the_host(host, text):
    assert end_text([host]) == text
