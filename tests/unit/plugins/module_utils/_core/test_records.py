# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import dataclasses
import pickle
import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen


@frozen
class Disk:
    """A disk."""

    name: str
    size: int = 0
    tags: list[str] = field(default_factory=list)
    text: str = field(default="", compare=False, repr=False)
    kind: t.ClassVar[str] = "disk"


@dataclasses.dataclass(frozen=True)
class Standard:
    name: str
    size: int = 0
    tags: list[str] = dataclasses.field(default_factory=list)
    text: str = dataclasses.field(default="", compare=False, repr=False)


@frozen
class Mirror(Disk):
    other: str = "none"


@frozen
class Pair:
    left: int
    right: tuple[int, ...] = ()


@frozen
class Nothing:
    pass


@frozen
class Loud:
    name: str

    def __post_init__(self):
        if not self.name:
            raise ValueError("no name")

    def __repr__(self):
        return self.name.upper()


CALLS = [
    (("sda",), {}),
    (("sda", 5), {}),
    ((), {"name": "sda"}),
    (("sda",), {"tags": ["a"]}),
    (("sda", 1, ["b"], "x"), {}),
    (("sda",), {"text": "y", "size": 3}),
]


@pytest.mark.parametrize(("values", "named"), CALLS)
def test_record_matches_a_standard_dataclass(values, named):
    disk, standard = Disk(*values, **named), Standard(*values, **named)
    assert dataclasses.asdict(disk) == dataclasses.asdict(standard)
    assert repr(disk) == repr(standard).replace("Standard", "Disk")
    assert dataclasses.asdict(dataclasses.replace(disk, size=9)) == dataclasses.asdict(dataclasses.replace(standard, size=9))
    assert disk == Disk(*values, **{**named, **({} if len(values) == 4 else {"text": "not compared"})})
    assert disk != dataclasses.replace(disk, size=77)
    assert pickle.loads(pickle.dumps(disk)) == copy.deepcopy(disk) == copy.copy(disk) == disk
    assert copy.deepcopy(disk).tags is not disk.tags


@pytest.mark.parametrize(
    "values, named", [((), {}), (("sda", 1, [], "", 4), {}), (("sda",), {"name": "sdb"}), (("sda",), {"colour": "red"}), ((), {"size": 1})]
)
def test_wrong_call_is_refused_as_by_a_standard_dataclass(values, named):
    with pytest.raises(TypeError):
        Standard(*values, **named)
    with pytest.raises(
        TypeError, match=r"Disk\(\) (needs these fields: name|has 4 fields and was given 5|was given these fields twice: name|has no such fields: colour)"
    ):
        Disk(*values, **named)


def test_every_record_has_a_default_value_of_its_own():
    assert Disk("a").tags is not Disk("b").tags


def test_values_can_not_be_changed():
    disk = Disk("sda")
    with pytest.raises(dataclasses.FrozenInstanceError, match="'name'"):
        disk.name = "sdb"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="'name'"):
        del disk.name
    with pytest.raises(dataclasses.FrozenInstanceError, match="'colour'"):
        disk.colour = "red"  # type: ignore[attr-defined]


def test_equal_records_have_equal_hashes_and_those_of_other_classes_are_not_equal():
    assert len({Pair(1), Pair(1), Pair(1, (2,)), Pair(2)}) == 3
    assert Nothing() == Nothing() and len({Nothing(), Nothing()}) == 1
    assert Disk("sda") != Standard("sda") and Disk("sda") != Mirror("sda") and Pair(1) != 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(Disk("sda"))


def test_subclass_has_the_fields_of_its_base_first():
    assert Mirror("sda", 5, other="sdb") == Mirror("sda", 5, [], "", "sdb")
    assert [field.name for field in dataclasses.fields(Mirror)] == ["name", "size", "tags", "text", "other"]
    assert dataclasses.is_dataclass(Mirror) and Mirror.kind == "disk"


def test_methods_of_the_class_itself_are_kept():
    assert repr(Loud("sda")) == "SDA"
    with pytest.raises(ValueError, match="no name"):
        Loud("")


def test_field_without_default_after_one_with_a_default_is_refused():
    with pytest.raises(TypeError, match="Wrong: a field without a default follows one with a default: a, b"):

        @frozen
        class Wrong:
            a: int = 0
            b: int  # type: ignore[misc]
