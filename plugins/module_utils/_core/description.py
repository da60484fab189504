# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""State that was read, as the variables that would make it.

An entry counts only if it is proven: the plan of its layer for the entry and everything described before it has no step and no
refusal, and the layer finds it settled. What cannot be proven becomes a sentence instead.
"""

from __future__ import annotations

import itertools
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import GIB, KIB, MIB

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer

#: What the plans of some layers add to a refusal.
_NOTHING = " Nothing was changed."
Values = t.Mapping[str, t.Any]
#: Values by their path in an entry.
Extras = t.Mapping[t.Tuple[str, ...], t.Any]


@frozen
class Entry:
    """One entry of a list variable; ``notes`` are comments on it, one sentence each."""

    values: Values
    notes: tuple[str, ...] = ()


@frozen
class Variable:
    """One variable of a role.

    :param entries: those of a list of dictionaries.
    :param value: that of any other variable; None if there is none.
    :param notes: what cannot be described, one sentence each.
    :param commented: whether the entries are proposals, which belong into comments.
    """

    name: str
    entries: tuple[Entry, ...] = ()
    value: t.Any = None
    notes: tuple[str, ...] = ()
    commented: bool = False

    def to_dict(self) -> dict[str, t.Any]:
        entries = [{"values": dict(entry.values), "notes": list(entry.notes)} for entry in self.entries]
        return {"name": self.name, "entries": entries, "value": self.value, "notes": list(self.notes), "commented": self.commented}


@frozen
class Objection:
    """Why a description would not leave the host as it is, a sentence; ``refused``: a permission may be missing."""

    reason: str
    refused: bool = False


@frozen
class Permission:
    """An option that allows what is there although it is dangerous, and a sentence on what is dangerous about it."""

    option: str
    note: str


@frozen
class Candidate:
    """One item, and the ways to describe it.

    :param item: how notes name it.
    :param forms: complete entries, the preferred one first.
    :param extras: sets of further values, each by its path in the entry, the preferred set first; as many as can be proven are kept.
    :param optional: paths of those that are left out without a note, as they may follow from the host.
    :param bare: whether an entry without any of them says something.
    :param required: permissions that the entry needs to be brought about, whether or not leaving it as it is needs them.
    :param permissions: those that are added where the layer refuses the entry without them.
    :param notes: comments on the entry.
    :param obstacle: why it cannot be described, as a sentence; empty if that is to be found out.
    """

    item: str
    forms: tuple[Values, ...]
    extras: tuple[Extras, ...] = ({},)
    optional: t.Collection[tuple[str, ...]] = ()
    bare: bool = True
    required: tuple[Permission, ...] = ()
    permissions: tuple[Permission, ...] = ()
    notes: tuple[str, ...] = ()
    obstacle: str = ""


#: Whether a list of entries would leave the host as it is: None, or why not.
Check = t.Callable[[t.Sequence[Values]], t.Optional[Objection]]


def objection_of(make_layer: t.Callable[[], Layer[t.Any, t.Any]], state: t.Any) -> Objection | None:
    """What a run with a specification would do to a host in a state; None if it would change nothing and succeed.

    :param make_layer: makes the layer with the specification, and may refuse it.
    """
    try:
        layer = make_layer()
        steps = layer.plan(state)
        if not steps:
            layer.check_settled(state)
    except StorageError as error:
        return Objection(error.message.replace(_NOTHING, ""), isinstance(error, Refused))
    return Objection(f"a run would change it: {steps[0].action}.") if steps else None


def prove(candidates: t.Iterable[Candidate], check: Check, *, alone: bool = False) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """The entries that leave the host as it is, all together, and a sentence for each item or value that cannot be described.

    :param alone: whether items hardly depend on each other: each is proven alone, and all of them once at the end. A plan with n entries
        can take n squared, and hosts have hundreds of disks.
    """
    candidates = list(candidates)
    if alone:
        entries, notes = _prove_each(candidates, check, together=False)
        if check([one.values for one in entries]) is None:
            return entries, notes
    return _prove_each(candidates, check, together=True)


def _prove_each(candidates: t.Sequence[Candidate], check: Check, *, together: bool) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    entries: list[Entry] = []
    notes: list[str] = []
    for candidate in candidates:
        entry, left_out = _prove_one(candidate, [one.values for one in entries] if together else [], check)
        entries += [entry] if entry is not None else []
        notes += left_out
    return tuple(entries), tuple(notes)


@frozen
class _Found:
    """An entry with some of the further values, the permissions it needed, and the objections to having all of the values."""

    values: Values
    extras: Extras
    permissions: tuple[Permission, ...]
    objection: Objection | None


def _prove_one(candidate: Candidate, before: t.Sequence[Values], check: Check) -> tuple[Entry | None, list[str]]:
    if candidate.obstacle:
        return None, [f"{candidate.item} is not described: {candidate.obstacle}"]
    objection: Objection | None = None
    for form in candidate.forms:
        base = {**form, **{one.option: True for one in candidate.required}}
        found, objection = _prove_form(base, candidate, before, check)
        if found is not None and (candidate.bare or found.extras):
            notes = (*candidate.notes, *(one.note for one in (*candidate.required, *found.permissions)))
            return Entry(found.values, notes), _left_out(candidate, found)
        objection = objection or (found.objection if found is not None else None)
    # The last form asks for the least, so that what speaks against it speaks against all.
    return None, [f"{candidate.item} is not described: {objection.reason if objection else 'there is nothing to set.'}"]


def _prove_form(base: Values, candidate: Candidate, before: t.Sequence[Values], check: Check) -> tuple[_Found | None, Objection | None]:
    """The entry with the first of the sets that can be proven, or with as many values of the first one as can be."""

    def attempt(extras: Extras) -> tuple[tuple[Permission, ...] | None, Objection | None]:
        return _permitted(_joined(base, extras), candidate.permissions, before, check)

    first: Objection | None = None
    last: Objection | None = None
    most = candidate.extras[0]
    for extras in (*candidate.extras, *_fewer(most, attempt)):
        permissions, objection = attempt(extras)
        if permissions is not None:
            values = {**_joined(base, extras), **{one.option: True for one in permissions}}
            return _Found(values, extras, permissions, last), None
        first, last = first or objection, objection
    return None, first


def _fewer(most: Extras, attempt: t.Callable[[Extras], tuple[t.Any, Objection | None]]) -> t.Iterator[Extras]:
    """Sets with fewer values: with those that can be had alone, with one less, with those that can be had one after the other, with none."""
    alone = {path: value for path, value in most.items() if attempt({path: value})[0] is not None}
    yield alone
    yield from ({path: value for path, value in most.items() if path != out} for out in most)
    kept: Extras = {}
    for path, value in alone.items():
        longer = {**kept, path: value}
        kept = longer if attempt(longer)[0] is not None else kept
    yield kept
    yield {}


def _permitted(
    values: Values, permissions: t.Sequence[Permission], before: t.Sequence[Values], check: Check
) -> tuple[tuple[Permission, ...] | None, Objection | None]:
    """No permission, one, two, …: what is not needed is not given; None if no permission helps, with the first objection."""
    first: Objection | None = None
    for count in range(len(permissions) + 1):
        for some in itertools.combinations(permissions, count):
            objection = check([*before, {**values, **{one.option: True for one in some}}])
            if objection is None:
                return some, None
            first = first or objection
            if not objection.refused:
                return None, first if count == 0 else objection
    return None, first


def _joined(values: Values, extras: Extras) -> Values:
    for path, value in extras.items():
        values = with_value(values, path, value)
    return values


def _left_out(candidate: Candidate, found: _Found) -> list[str]:
    missing = {path: value for path, value in candidate.extras[0].items() if path not in found.extras and path not in candidate.optional}
    if not missing or found.objection is None:
        return []
    words = ", ".join(f"{'.'.join(path)}: {value}" for path, value in missing.items())
    return [f"{candidate.item}: {words} cannot be described: {found.objection.reason}"]


def with_value(values: Values, path: t.Sequence[str], value: t.Any) -> dict[str, t.Any]:
    """A copy with one value more, at a path of keys; dictionaries on the way are made."""
    if len(path) == 1:
        return {**values, path[0]: value}
    return {**values, path[0]: with_value(values.get(path[0]) or {}, path[1:], value)}


def exact_size(count: int) -> str | int:
    """A size as a user would write it, so that :func:`parse_size` reads the same number of bytes."""
    for unit, suffix in ((1024**4, "T"), (GIB, "G"), (MIB, "M"), (KIB, "K")):
        if count >= unit and count % unit == 0:
            return f"{count // unit}{suffix}"
    return count
