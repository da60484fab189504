# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A description that came from a host, checked: nothing in it is trusted.

Names of variables and keys are those of the roles; values are plain, in one line, and limited in size and depth.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import REPLACEMENT
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain as one_line
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.shapes import LISTS, wrong_shape
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.variables_text import plain_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._variable_names import RoleVariables

#: The variables that a description may have, in the order of the roles of ``site.yml``.
VARIABLES = (
    "drive_write_cache_drives",
    "raid_cache_controllers",
    "storage_network_links",
    "storage_network_aoe_interfaces",
    "storage_network_aoe_options",
    "storage_network_aoe_devices",
    "storage_network_aoe_targets",
    "storage_network_aoe_receive_buffer",
    "block_cache_caches",
    "block_queue_devices",
    "block_queue_module_options",
    "fio_benchmark_targets",
)
#: Keys of options, and names of settings and of options of kernel modules.
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}\Z")
_LONGEST_TEXT, _MOST_ITEMS, _DEEPEST = 1000, 20_000, 12


@dataclass(frozen=True)
class DescribedEntry:
    """One entry of a list; ``notes`` are comments on it."""

    values: dict[str, t.Any]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class DescribedVariable:
    """One variable as the host described it; ``commented``: its entries are only candidates."""

    name: str
    entries: tuple[DescribedEntry, ...] = ()
    value: t.Any = None
    notes: tuple[str, ...] = ()
    commented: bool = False

    @property
    def content(self) -> t.Any:
        """What the inventory should have; None if nothing is described."""
        if self.commented:
            return None
        return [entry.values for entry in self.entries] if self.entries else self.value


@dataclass(frozen=True)
class Controller:
    """What names a RAID controller and its volumes. Each volume has ``id``, ``name`` and ``wwn``, as far as they are known."""

    provider: str
    id: str
    serial: str
    model: str
    volumes: tuple[t.Mapping[str, str], ...] = ()


@dataclass(frozen=True)
class Description:
    """What one host is, as variables."""

    host: str
    variables: tuple[DescribedVariable, ...] = ()
    controllers: tuple[Controller, ...] = ()

    def contents(self) -> dict[str, t.Any]:
        """The described variables by name."""
        return {variable.name: variable.content for variable in self.variables if variable.content is not None}


def tool_paths_in(*lists: t.Any) -> dict[str, str]:
    """Where RAID tools are, by provider, as entries of ``raid_cache_controllers`` have it."""
    entries = [entry for one in lists if isinstance(one, (list, tuple)) for entry in one if isinstance(entry, t.Mapping)]
    return {str(entry["provider"]): str(entry["tool_path"]) for entry in entries if entry.get("tool_path") and entry.get("provider")}


def read_description(host: str, result: t.Any) -> Description:
    """The result of ``cache_description_info`` on a host.

    :raises NotUnderstood: naming the host and what is wrong in it.
    """
    checker = _Checker(host)
    plain = checker.plain(result)
    if not isinstance(plain, dict) or not isinstance(plain.get("variables"), list):
        raise checker.wrong("it has no list of variables")
    variables = [checker.variable(one) for one in plain["variables"]]
    if len({variable.name for variable in variables}) < len(variables):
        raise checker.wrong("a variable is there twice")
    ordered = sorted(variables, key=lambda variable: VARIABLES.index(variable.name))
    return Description(host, tuple(ordered), tuple(checker.controller(one) for one in checker.list_of(plain, "controllers")))


class _Checker:
    """Checks what one host returned."""

    def __init__(self, host: str) -> None:
        self.host = host
        self._items = 0
        self._variables = RoleVariables()

    def wrong(self, what: str) -> NotUnderstood:
        return NotUnderstood(f"The description of {self.host} is not what cache_description_info returns: {what}. Nothing was written.", item=self.host)

    def plain(self, value: t.Any, depth: int = 0, *, is_note: bool = False) -> t.Any:
        """Plain data of its own, without the classes by which Ansible marks where a value came from.

        :param is_note: a text that becomes a comment, and is put into one line there.
        """
        self._items += 1
        if depth > _DEEPEST or self._items > _MOST_ITEMS:
            raise self.wrong(f"it is deeper than {_DEEPEST} levels or has more than {_MOST_ITEMS} values")
        if isinstance(value, t.Mapping):
            return {self._key(key): self.plain(one, depth + 1, is_note=key == "notes") for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.plain(one, depth + 1, is_note=is_note) for one in value]
        if isinstance(value, str):
            return self._text(value, is_note)
        if value is None or isinstance(value, (bool, int, float)):
            return plain_of(value)
        raise self.wrong(f"a value is of the type {type(value).__name__}")

    def _key(self, key: t.Any) -> str:
        if not isinstance(key, str) or not _KEY.match(key):
            raise self.wrong(f"'{one_line(key, 60)}' is not the name of an option")
        return str(plain_of(key))

    def _text(self, text: str, is_note: bool) -> str:
        if len(text) > _LONGEST_TEXT * 10:
            raise self.wrong(f"a text has {len(text)} characters")
        # What was not printable was replaced when the answer was read.
        if not is_note and (not text.isprintable() or REPLACEMENT in text):
            raise self.wrong(f"the text '{one_line(text, 60)}' has line breaks or other characters that are not printable")
        return str(plain_of(text))

    def variable(self, plain: t.Any) -> DescribedVariable:
        if not isinstance(plain, dict) or plain.get("name") not in VARIABLES:
            raise self.wrong(f"'{one_line(plain.get('name') if isinstance(plain, dict) else plain, 60)}' is not a variable of a role")
        name, value = plain["name"], plain.get("value")
        entries = tuple(self._entry(one) for one in self.list_of(plain, "entries"))
        for values in (*(entry.values for entry in entries), *(value if isinstance(value, list) and name in LISTS else ())):
            if problem := wrong_shape(name, values):
                raise self.wrong(problem)
        unknown = self._variables.unknown_keys(name, [value, *(entry.values for entry in entries)])
        if unknown:
            raise self.wrong(f"{name} has no key {unknown[0]}")
        return DescribedVariable(name, entries, value, self._notes(plain), bool(plain.get("commented")))

    def _entry(self, plain: t.Any) -> DescribedEntry:
        if not isinstance(plain, dict) or not isinstance(plain.get("values"), dict):
            raise self.wrong("an entry has no values")
        return DescribedEntry(plain["values"], self._notes(plain))

    def list_of(self, plain: t.Mapping[str, t.Any], key: str) -> list[t.Any]:
        found = plain.get(key)
        if found is not None and not isinstance(found, list):
            raise self.wrong(f"{key} is not a list")
        return found or []

    def _notes(self, plain: t.Mapping[str, t.Any]) -> tuple[str, ...]:
        return tuple(one_line(one, _LONGEST_TEXT) for one in self.list_of(plain, "notes"))

    def controller(self, plain: t.Any) -> Controller:
        if not isinstance(plain, dict):
            raise self.wrong("a controller is not described")
        words = {name: one_line(plain.get(name) or "") for name in ("provider", "id", "serial", "model")}
        volumes = [
            {name: one_line(one[name], _LONGEST_TEXT) for name in ("id", "name", "wwn") if one.get(name)}
            for one in self.list_of(plain, "volumes")
            if isinstance(one, dict)
        ]
        return Controller(**words, volumes=tuple(volumes))
