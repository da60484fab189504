# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core import convergence
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Operation, Step, converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotEffective, Refused, StorageError, TimedOut
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner


@dataclass(frozen=True)
class Switch(Operation):
    lit: bool


class Lamps(Layer):
    """A layer small enough to read: lamps that are on or off; some do not obey, some burn out."""

    name = "lamps"

    def __init__(self, lit, requested, deaf=(), broken=()):
        super().__init__(Runner(), requested)
        self.lit, self.deaf, self.broken = dict(lit), deaf, broken

    def read(self):
        return dict(self.lit)

    def plan(self, state):
        if self.spec.get("forbidden"):
            raise Refused("The lamp forbidden stays off: set allow_light for it.", item="forbidden")
        return [
            Step(self.name, lamp, "lit", state[lamp], lit, f"switch {lamp} {'on' if lit else 'off'}", Switch(lit))
            for lamp, lit in self.spec.items()
            if state[lamp] != lit
        ]

    def carry_out(self, operation, step):
        if step.item in self.broken:
            raise CommandFailed("The lamp broke.", item=step.item)
        if step.item not in self.deaf:
            self.lit[step.item] = operation.lit


def test_full_run_stops_before_a_step_of_a_layer_that_waits_for_udev(tmp_path, monkeypatch):
    def room(_root):
        if not remaining.pop():
            raise CommandFailed("/run/udev cannot be written: No space left on device.", item="/run/udev")

    monkeypatch.setattr(convergence, "require_room", room)
    for alone, free in ((False, []), (True, [False]), (True, [True, False])):
        lamps, remaining = Lamps({"hall": False, "stairs": False}, {"hall": True, "stairs": True}), free[::-1]
        lamps.one_at_a_time = alone
        if not free:
            assert converge(lamps, check_mode=False).changed
            continue
        with pytest.raises(CommandFailed, match="No space left") as caught:
            converge(lamps, check_mode=False)
        done = len(free) - 1
        assert (caught.value.facts["changed"], len(caught.value.facts["actions"])) == (bool(done), done)
        assert "broke_off" not in caught.value.facts
        assert list(lamps.lit.values()).count(True) == done


def test_converged_state_is_no_change():
    outcome = converge(Lamps({"a": True}, {"a": True}), check_mode=False)
    assert outcome.to_dict() == {"changed": False, "actions": [], "diff": {"before": {}, "after": {}}}


def test_check_mode_predicts_run_and_changes_nothing():
    lamps = Lamps({"a": False, "b": True}, {"a": True, "b": True})
    predicted = converge(lamps, check_mode=True)
    assert lamps.lit == {"a": False, "b": True}
    done = converge(lamps, check_mode=False)
    assert predicted.to_dict() == done.to_dict()
    assert done.to_dict()["diff"] == {"before": {"a": {"lit": False}}, "after": {"a": {"lit": True}}}
    assert lamps.lit == {"a": True, "b": True}


def test_ineffective_change_fails_with_item_requested_and_found():
    with pytest.raises(NotEffective, match="lamps: the host did not apply the settings: b: lit should be True and is False") as caught:
        converge(Lamps({"a": False, "b": False}, {"a": True, "b": True}, deaf={"b"}), check_mode=False)
    result = caught.value.to_dict()
    assert result["changed"] is True
    assert result["differences"] == [{"layer": "lamps", "item": "b", "attribute": "lit", "wanted": True, "found": False}]


def test_partial_failure_reports_completed_actions():
    with pytest.raises(CommandFailed) as caught:
        converge(Lamps({"a": False, "b": False}, {"a": True, "b": True}, broken={"b"}), check_mode=False)
    assert caught.value.facts == {"changed": True, "actions": ["switch a on"], "broke_off": "switch b on"}


def test_failed_first_step_may_have_changed_the_host():
    with pytest.raises(CommandFailed) as caught:
        converge(Lamps({"a": False}, {"a": True}, broken={"a"}), check_mode=False)
    assert caught.value.facts == {"changed": True, "actions": [], "broke_off": "switch a on"}


@pytest.mark.parametrize(
    ("faults", "changed", "actions"),
    [
        ({"broken": {"a"}}, False, []),
        ({"broken": {"b"}}, True, ["switch a on"]),
        ({"deaf": {"a", "b"}}, False, []),
        ({"deaf": {"b"}}, True, ["switch a on", "switch b on"]),
        ({"deaf": {"a"}, "broken": {"b"}}, False, []),
    ],
)
def test_failed_run_of_a_layer_that_shows_its_changes_reports_a_change_only_if_there_is_one(faults, changed, actions):
    lamps = Lamps({"a": False, "b": False}, {"a": True, "b": True}, **faults)
    lamps.plan_shows_changes = True
    with pytest.raises(StorageError) as caught:
        converge(lamps, check_mode=False)
    assert (caught.value.facts["changed"], caught.value.facts["actions"]) == (changed, actions)


@pytest.mark.parametrize("error", [CommandFailed("The lamp broke."), TimedOut("The lamp did not answer.")])
def test_host_may_have_changed_if_it_cannot_be_read_after_a_failure(monkeypatch, error):
    def fail(*_arguments):
        # A command that hangs is not tried again, and would say that nothing has changed.
        monkeypatch.setattr(lamps, "read", (lambda: {"a": False}) if isinstance(error, TimedOut) else fail)
        raise error

    lamps = Lamps({"a": False}, {"a": True})
    lamps.plan_shows_changes = True
    monkeypatch.setattr(lamps, "carry_out", fail)
    with pytest.raises(StorageError) as caught:
        converge(lamps, check_mode=False)
    assert caught.value.facts["changed"] is True


def test_refusal_precedes_any_change():
    lamps = Lamps({"a": False, "forbidden": False}, {"a": True, "forbidden": True})
    with pytest.raises(Refused):
        converge(lamps, check_mode=False)
    assert lamps.lit == {"a": False, "forbidden": False}
