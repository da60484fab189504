# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A key that is not supported, as a sentence with the most similar one that is; a value of another type, with its place and an example. Pure."""

from __future__ import annotations

import re
import typing as t

from ansible.module_utils.common import validation

#: The message of Ansible's validator: the paths of the keys, and the supported ones, with aliases in brackets.
_UNKNOWN_KEY = re.compile(r"(?P<path>[^()]+)\. Supported parameters include: (?P<known>[^()]*?)(?: \([^)]*\))?\.?")


#: What a value must be, an example of it, and what Ansible converts to it.
_TYPES: t.Mapping[str, tuple[str, str, t.Callable[[t.Any], t.Any]]] = {
    "int": ("a whole number", "9000", validation.check_type_int),
    "float": ("a number", "0.5", validation.check_type_float),
    "bool": ("true or false", "true", validation.check_type_bool),
    "dict": ("a dictionary", "", validation.check_type_dict),
    "list": ("a list", "", validation.check_type_list),
}
#: What an entry of a list is called by, if it has one of these.
_LABELS = ("name", "device", "interface", "id", "serial", "address")
_LONGEST = 60


def wrong_types(options: t.Mapping[str, t.Any], values: t.Mapping[str, t.Any], where: str = "") -> t.Iterator[str]:
    """One sentence, without its end, for each value that Ansible cannot convert to the type of its option.

    :param where: the place of ``values``, which sentences begin with.
    """
    for key, value in values.items():
        if value is not None:
            yield from _wrong_type(options.get(key, {}), value, f"{where}{key}")


def _wrong_type(option: t.Mapping[str, t.Any], value: t.Any, where: str) -> t.Iterator[str]:
    kind = option.get("type", "raw")
    if kind in _TYPES:
        name, example, convert = _TYPES[kind]
        try:
            convert(value)
        except (TypeError, ValueError):
            yield f"{where} must be {name}, not {_shown(value)}: for example {where.rpartition(' ')[2]}: {example or _example(option)}"
            return
    if kind == "list" and isinstance(value, (list, tuple)):
        for number, entry in enumerate(value, 1):
            label = next((str(entry[key]) for key in _LABELS if entry.get(key)), "") if isinstance(entry, dict) else ""
            place = f"{where}, entry {number}{f' ({label[:_LONGEST]})' if label else ''}"
            if option.get("elements") == "dict" and not isinstance(entry, dict):
                yield f"{place} must be a dictionary, not {_shown(entry)}: for example {where.rpartition(' ')[2]}: {_example(option)}"
            elif isinstance(entry, dict):
                yield from wrong_types(option.get("options") or {}, entry, f"{place}: ")
    elif kind == "list" and option.get("elements") == "dict":
        # Ansible makes a list of a text.
        yield f"{where} must be a list of dictionaries, not {_shown(value)}: for example {where.rpartition(' ')[2]}: {_example(option)}"
    elif kind == "dict" and isinstance(value, dict):
        yield from wrong_types(option.get("options") or {}, value, f"{where}: ")


def _shown(value: t.Any) -> str:
    text = f"'{value}'" if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _example(option: t.Mapping[str, t.Any]) -> str:
    """A value with the keys that are required, or the first one."""
    keys = option.get("options") or {}
    named = [key for key, one in keys.items() if one.get("required")] or list(keys)[:1]
    entry = "{" + ", ".join(f"{key}: ..." for key in named) + "}" if keys else "{key: value}"
    return entry if option.get("type") == "dict" else f"[{entry if option.get('elements') == 'dict' else '...'}]"


def validator_sentence(text: str) -> str:
    """A message of Ansible's validator about several options as what to write; any other as it is."""
    start, _separator, names = text.rpartition(": ")
    if start == "parameters are mutually exclusive":
        return f"set only one of {names.replace('|', ' and ')}"
    if start == "one of the following is required":
        return f"set one of {names}"
    return text


def unknown_key(text: str, more: t.Sequence[str] = ()) -> str | None:
    """What is wrong with keys, in one line; ``None`` if the message of Ansible is about something else.

    :param more: keys that are supported too.
    """
    found = _UNKNOWN_KEY.fullmatch(text)
    if found is None:
        return None
    import difflib

    known = [*found["known"].split(", "), *more]
    sentences = []
    for path in found["path"].split(", "):
        key = path.rpartition(".")[2]
        near = difflib.get_close_matches(key, known, 1, 0.6)
        sentences.append(f"there is no key {key}: {f'did you mean {near[0]}?' if near else 'give one of ' + ', '.join(known) + '.'}")
    return " ".join(sentences)
