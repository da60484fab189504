# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Proofs of descriptions: what is kept, what is left out, and why."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.description import Candidate, Objection, Permission, exact_size, prove, with_value
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import parse_size

ALLOW = Permission("allow", "It is dangerous.")


def checker(**rules):
    """Objects to the values of rules: a text is a plain objection, a Permission one that an option of the entry lifts."""

    def check(entries):
        for entry in entries:
            for key, rule in rules.items():
                if key in entry and isinstance(rule, str):
                    return Objection(rule)
                if key in entry and isinstance(rule, Permission) and not entry.get(rule.option):
                    return Objection("refused.", refused=True)
        return None

    return check


def test_all_values_are_kept_where_nothing_speaks_against_them():
    (entry,), notes = prove([Candidate("x", ({"name": "x"},), ({("a",): 1, ("b", "c"): 2},))], checker())
    assert (entry.values, notes) == ({"name": "x", "a": 1, "b": {"c": 2}}, ())


def test_a_value_that_cannot_be_proven_is_a_note_and_the_others_are_kept():
    (entry,), (note,) = prove([Candidate("The x", ({"name": "x"},), ({("a",): 1, ("b",): 2, ("c",): 3},))], checker(b="b is not set here."))
    assert entry.values == {"name": "x", "a": 1, "c": 3}
    assert note == "The x: b: 2 cannot be described: b is not set here."


def test_an_optional_value_is_left_out_without_a_note():
    (entry,), notes = prove([Candidate("x", ({"name": "x"},), ({("a",): 1, ("b",): 2},), [("b",)])], checker(b="no."))
    assert (entry.values, notes) == ({"name": "x", "a": 1}, ())


def test_a_permission_is_given_only_where_it_is_needed():
    candidate = Candidate("x", ({"name": "x"},), ({("a",): 1, ("b",): 2},), permissions=(ALLOW, Permission("other", "Other.")))
    (entry,), notes = prove([candidate], checker(a=ALLOW))
    assert (entry.values, entry.notes, notes) == ({"name": "x", "a": 1, "b": 2, "allow": True}, ("It is dangerous.",), ())
    (entry,), _notes = prove([candidate], checker())
    assert "allow" not in entry.values


def test_a_permission_is_given_although_another_value_cannot_be_described():
    (entry,), (note,) = prove([Candidate("x", ({"name": "x"},), ({("a",): 1, ("b",): 2},), permissions=(ALLOW,))], checker(a=ALLOW, b="no."))
    assert entry.values == {"name": "x", "a": 1, "allow": True}
    assert note.startswith("x: b: 2 cannot be described")


def test_the_first_form_that_can_be_proven_is_taken_and_the_reason_against_the_last_is_said():
    (entry,), _notes = prove([Candidate("x", ({"good": 1, "bad": 1}, {"good": 2}))], checker(bad="first."))
    assert entry.values == {"good": 2}
    entries, notes = prove([Candidate("The x", ({"bad": 1}, {"worse": 1}))], checker(bad="first.", worse="second."))
    assert (entries, notes) == ((), ("The x is not described: second.",))


def test_an_entry_that_says_nothing_is_left_out():
    entries, notes = prove([Candidate("The x", ({"name": "x"},), ({("a",): 1},), bare=False)], checker(a="no."))
    assert (entries, notes) == ((), ("The x is not described: no.",))


@pytest.mark.parametrize("alone", [False, True])
def test_entries_that_exclude_each_other_are_not_both_described(alone):
    def check(entries):
        return Objection("they are one.") if len(entries) > 1 else None

    entries, notes = prove([Candidate("a", ({"name": "a"},)), Candidate("b", ({"name": "b"},))], check, alone=alone)
    assert [entry.values["name"] for entry in entries] == ["a"]
    assert notes == ("b is not described: they are one.",)


def test_items_that_are_proven_alone_cost_one_plan_each_and_one_for_all():
    sizes: list[int] = []

    def check(entries):
        sizes.append(len(entries))
        return

    prove([Candidate(str(number), ({"name": number},)) for number in range(50)], check, alone=True)
    assert sizes == [1] * 50 + [50]


@pytest.mark.parametrize("count", [0, 1, 511, 512, 1024, 4096, 3 << 20, (3 << 20) + 512, 5 << 30, 1 << 40])
def test_a_size_is_read_back_as_it_was(count):
    assert parse_size(exact_size(count)) == count


def test_a_value_is_set_at_its_path_and_the_original_stays():
    values: dict[str, t.Any] = {"a": {"b": 1}}
    assert with_value(values, ("a", "c"), 2) == {"a": {"b": 1, "c": 2}}
    assert values == {"a": {"b": 1}}
