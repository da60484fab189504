# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Frozen dataclasses that cost little to define.

``dataclass(frozen=True)`` writes the source of six methods and compiles each of them: 1.4 ms for a class, in every call of a module on every
host, and a module that reads a whole host defines more than a hundred classes. Here all classes have the same methods, and a class takes
0.1 ms. The fields are those of the standard library, so that its ``replace``, ``asdict``, ``fields`` and ``is_dataclass`` work.
"""

from __future__ import annotations

import dataclasses
import operator
import typing as t

Class = t.TypeVar("Class", bound=type)
Method = t.Callable[..., t.Any]


def frozen(cls: Class) -> Class:
    """What ``dataclasses.dataclass(frozen=True)`` makes of a class, but for the words of errors and for what ``inspect.signature`` says of it.

    :raises TypeError: a field without a default follows one with a default.
    """
    if cls.__doc__ is None:
        # dataclass() would make one of the signature, which costs more than all the rest.
        cls.__doc__ = cls.__name__
    own = set(vars(cls))
    dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    fields = dataclasses.fields(cls)
    methods = {
        "__init__": _initializer(cls, fields),
        "__repr__": _representation([field.name for field in fields if field.repr]),
        **_comparison([field.name for field in fields if field.compare]),
        "__setattr__": _refuse_assignment,
        "__delattr__": _refuse_deletion,
    }
    for name, method in methods.items():
        if name not in own:
            setattr(cls, name, method)
    return cls


def field(**options: t.Any) -> t.Any:
    """``dataclasses.field``, for a class that is :func:`frozen`."""
    return dataclasses.field(**options)  # pylint: disable=invalid-field-call


_KINDS: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,), "None": (type(None),)}


def has_types(one: t.Any) -> bool:
    """Whether the simple fields of a record, of :data:`_KINDS`, are what the class says: it may have been made from a file."""
    for name, annotation in type(one).__annotations__.items():
        words = [word.strip() for word in annotation.split("|")]
        if all(word in _KINDS for word in words):
            value = getattr(one, name)
            kinds = tuple(kind for word in words for kind in _KINDS[word])
            if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
                return False
    return True


def _initializer(cls: type, fields: t.Sequence[dataclasses.Field[t.Any]]) -> Method:
    names = tuple(field.name for field in fields)
    defaults = {field.name: field.default for field in fields if field.default is not dataclasses.MISSING}
    factories = [(field.name, field.default_factory) for field in fields if field.default_factory is not dataclasses.MISSING]
    has_default = [name in defaults or name in dict(factories) for name in names]
    if has_default != sorted(has_default):
        raise TypeError(f"{cls.__name__}: a field without a default follows one with a default: {', '.join(names)}")
    finish = getattr(cls, "__post_init__", None)
    known = frozenset(names)

    def initialize(self: t.Any, *positional: t.Any, **named: t.Any) -> None:
        values = dict(zip(names, positional), **named)
        given = len(positional) + len(named)
        # Less if there are more values than fields, or a field is given twice.
        right = len(values) == given
        if given < len(names):
            values = {**defaults, **values}
            for name, make in factories:
                if name not in values:
                    values[name] = make()
        if not right or values.keys() != known:
            raise TypeError(_wrong_call(cls, names, len(positional), named, values))
        self.__dict__.update(values)
        if finish:
            finish(self)

    return initialize


def _wrong_call(cls: type, names: tuple[str, ...], positional: int, named: t.Mapping[str, t.Any], values: t.Mapping[str, t.Any]) -> str:
    if positional > len(names):
        return f"{cls.__name__}() has {len(names)} fields and was given {positional} values"
    twice = named.keys() & set(names[:positional])
    if twice:
        return f"{cls.__name__}() was given these fields twice: {', '.join(sorted(twice))}"
    unknown = values.keys() - set(names)
    if unknown:
        return f"{cls.__name__}() has no such fields: {', '.join(sorted(unknown))}"
    return f"{cls.__name__}() needs these fields: {', '.join(name for name in names if name not in values)}"


def _representation(names: t.Sequence[str]) -> Method:
    def represent(self: t.Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return represent


def _comparison(names: t.Sequence[str]) -> dict[str, Method]:
    read: Method = operator.attrgetter(*names) if names else type

    def equal(self: t.Any, other: object) -> t.Any:
        return read(self) == read(other) if other.__class__ is self.__class__ else NotImplemented

    return {"__eq__": equal, "__hash__": lambda self: hash(read(self))}


def _refuse_assignment(_record: object, name: str, _value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_record: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
