# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of an SSD cache: one description of a setting and one parser for every type of cache.

Each type keeps the table of its settings next to it, as a :class:`Vocabulary`. Values mean the same in all of them: ``default``
takes a setting back to what a new cache has, a flag is written as true, false, yes, no, on, off, 1 or 0, and numbers may be text.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import parse_size

NUMBER, SIZE, FLAG, CHOICE = "number", "size", "flag", "choice"
#: What a user writes to take a setting back to what a new cache has.
DEFAULT = "default"

#: More digits than any bound has, and few enough to be converted.
_WHOLE = re.compile(r"[0-9]{1,20}")
_FLAGS: t.Mapping[str, int] = {"1": 1, "true": 1, "yes": 1, "on": 1, "0": 0, "false": 0, "no": 0, "off": 0}

#: What was read: a number (a size in bytes, a flag 0 or 1), a choice, or None for the default.
Value = t.Union[int, str, None]


@frozen
class Setting:
    """One setting.

    :param kind: :data:`NUMBER`, :data:`SIZE` (bytes), :data:`FLAG` or :data:`CHOICE`.
    :param low: the smallest value; ``high`` is the largest.
    :param default: what a new cache has; None if that depends on the host.
    :param choices: the words of a choice, or the only values of a size.
    :param unit: of the value, for messages.
    :param mode: the only mode in which it exists; empty if it exists in every mode.
    :param place: where it is stored, in the words of its type.
    :param stored: whether it is stored in a superblock, so that it survives a reboot by itself.
    """

    kind: str = NUMBER
    low: int = 0
    high: int = 2**31 - 1
    default: Value = None
    choices: tuple[t.Any, ...] = ()
    unit: str = ""
    mode: str = ""
    place: str = ""
    stored: bool = False

    def exists_in(self, mode: str) -> bool:
        """Whether a cache in this mode has the setting."""
        return self.mode in ("", mode)


def flag(default: int = 0, **fields: t.Any) -> Setting:
    """A setting that is on or off."""
    return Setting(FLAG, 0, 1, default, **fields)


@frozen
class Vocabulary:
    """The settings of one type of cache.

    :param label: how messages call the type.
    :param refused: settings that exist and cannot be set, with the reason and what to do instead.
    :param pairs: two settings each, of which the first must not exceed the second.
    """

    label: str
    settings: t.Mapping[str, Setting]
    refused: t.Mapping[str, str] = field(default_factory=dict)
    pairs: tuple[tuple[str, str], ...] = ()


def read_settings(vocabulary: Vocabulary, requested: t.Mapping[str, t.Any], item: str, mode: str = "") -> dict[str, Value]:
    """What a user wrote, checked as far as it can be without the host; ``default`` becomes None.

    :param mode: the mode of the cache; empty if it does not matter, as for a cache that is flushed or removed.
    :raises BadInput: naming the setting and what is accepted.
    """
    read = {key: _read_one(vocabulary, key, value, item, mode) for key, value in requested.items()}
    for pair in vocabulary.pairs:
        # What is not named stays as the host has it: then only the plan can compare.
        if all(key in read for key in pair):
            _require_order(vocabulary, pair, read, item)
    return read


def require_order(vocabulary: Vocabulary, values: t.Mapping[str, t.Any], item: str) -> None:
    """Check all settings that a cache will have; those that are not among ``values`` have their defaults.

    :raises BadInput: if a lower threshold exceeds its higher one.
    """
    for pair in vocabulary.pairs:
        _require_order(vocabulary, pair, values, item)


def _require_order(vocabulary: Vocabulary, pair: tuple[str, str], values: t.Mapping[str, t.Any], item: str) -> None:
    (low, lower), (high, higher) = ((key, vocabulary.settings[key].default if values.get(key) is None else values[key]) for key in pair)
    if lower > higher:
        raise BadInput(f"{item}: {low} must not exceed {high}, and {low} would be {lower} and {high} {higher}: set both in settings.", item=item)


def _read_one(vocabulary: Vocabulary, key: str, value: t.Any, item: str, mode: str) -> Value:
    if key in vocabulary.refused:
        raise BadInput(f"{item}: {key} cannot be set: {vocabulary.refused[key]}.", item=item)
    setting = vocabulary.settings.get(key)
    if setting is None:
        raise BadInput(f"{item}: {vocabulary.label} has no setting {key}: use {', '.join(vocabulary.settings)}.", item=item)
    if mode and not setting.exists_in(mode):
        raise BadInput(f"{item}: {key} is supported in mode {setting.mode} only: remove it from settings, or set mode: {setting.mode}.", item=item)
    if str(value).strip() == DEFAULT:
        return None
    read = _PARSERS[setting.kind](setting, value, key, item)
    if read is None:
        raise BadInput(f"{item}: {key} is '{value}' and must be {_expected(setting)}, or default.", item=item)
    return read


def _expected(setting: Setting) -> str:
    if setting.kind == FLAG:
        return "true or false"
    if setting.choices:
        return f"{', '.join(str(choice) for choice in setting.choices[:-1])} or {setting.choices[-1]}"
    return f"a whole number between {setting.low} and {setting.high}{f' ({setting.unit})' if setting.unit else ''}"


def _number(setting: Setting, value: t.Any, _key: str, _item: str) -> int | None:
    text = "" if isinstance(value, (bool, float)) else str(value).strip()
    return int(text) if _WHOLE.fullmatch(text) and setting.low <= int(text) <= setting.high else None


def _size(setting: Setting, value: t.Any, key: str, item: str) -> int | None:
    size = parse_size(value, item, key)
    return size if (size in setting.choices if setting.choices else setting.low <= size <= setting.high) else None


def _flag(_setting: Setting, value: t.Any, _key: str, _item: str) -> int | None:
    return None if isinstance(value, float) else _FLAGS.get(str(value).strip().lower())


def _choice(setting: Setting, value: t.Any, _key: str, _item: str) -> str | None:
    return str(value) if str(value) in setting.choices else None


_PARSERS: t.Mapping[str, t.Callable[[Setting, t.Any, str, str], t.Union[int, str, None]]] = {NUMBER: _number, SIZE: _size, FLAG: _flag, CHOICE: _choice}
