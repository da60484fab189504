# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts with the same controllers that are alike, and what is the same of them."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.read import Controller, Description

_CONTROLLERS = "raid_cache_controllers"


@dataclass(frozen=True)
class Group:
    """Hosts that are alike.

    :param name: a valid name of a group, made from the models of their controllers.
    :param contents: the variables that are the same, with controllers and volumes named by what is the same.
    """

    name: str
    hosts: tuple[str, ...]
    contents: t.Mapping[str, t.Any]


def find_groups(descriptions: t.Iterable[Description]) -> list[Group]:
    """A group for every two or more hosts with the same models of controllers and the same settings of them, the largest first."""
    alike: dict[str, list[tuple[Description, dict[str, t.Any]]]] = {}
    for description in sorted(descriptions, key=lambda one: one.host):
        contents = _without_identities(description)
        if description.controllers and _CONTROLLERS in contents:
            alike.setdefault(_key(description, contents), []).append((description, contents))
    numbers: dict[str, int] = {}
    groups = []
    for members in sorted(alike.values(), key=lambda found: (-len(found), found[0][0].host)):
        if len(members) > 1:
            model = group_name(members[0][0].controllers)
            numbers[model] = numbers.get(model, 0) + 1
            name = model if numbers[model] == 1 else f"{model}_{numbers[model]}"
            groups.append(Group(name, tuple(one.host for one, _contents in members), _shared([contents for _one, contents in members])))
    return groups


def _key(description: Description, contents: t.Mapping[str, t.Any]) -> str:
    return repr((group_name(description.controllers), contents[_CONTROLLERS]))


def group_name(controllers: t.Iterable[Controller]) -> str:
    """``adaptec_asr8805`` of ``Adaptec ASR8805``; several models are joined."""
    words = sorted({re.sub(r"[^a-z0-9]+", "_", controller.model.lower()).strip("_") or "unknown_controller" for controller in controllers})
    name = "_and_".join(words)[:100]
    return name if name[:1].isalpha() else f"controller_{name}"


def _shared(contents: t.Sequence[t.Mapping[str, t.Any]]) -> dict[str, t.Any]:
    return {key: value for key, value in contents[0].items() if all(key in other and other[key] == value for other in contents)}


def _without_identities(description: Description) -> dict[str, t.Any]:
    """The variables with controllers by their number and volumes by their name: serial numbers and WWNs differ from host to host."""
    contents = description.contents()
    if _CONTROLLERS in contents:
        contents[_CONTROLLERS] = [_renamed(entry, description.controllers) for entry in contents[_CONTROLLERS]]
    return contents


def _renamed(entry: t.Mapping[str, t.Any], controllers: t.Sequence[Controller]) -> dict[str, t.Any]:
    known = next((one for one in controllers if _is_of(entry, one)), None)
    if known is None:
        return dict(entry)
    rest = {key: value for key, value in entry.items() if key not in ("provider", "serial", "id")}
    renamed = {"provider": known.provider, "id": known.id, **rest}
    if "volumes" in renamed:
        renamed["volumes"] = [_renamed_volume(volume, known) for volume in renamed["volumes"]]
    return renamed


def _is_of(entry: t.Mapping[str, t.Any], controller: Controller) -> bool:
    if entry.get("provider") != controller.provider:
        return False
    return entry["serial"] == controller.serial if "serial" in entry else entry.get("id") == controller.id


def _renamed_volume(volume: t.Mapping[str, t.Any], controller: Controller) -> dict[str, t.Any]:
    names = [one.get("name") for one in controller.volumes]
    known = next((one for one in controller.volumes if volume.get("wwn") and one.get("wwn") == volume["wwn"]), None)
    if known is None:
        return dict(volume)
    unique = known.get("name") and names.count(known["name"]) == 1
    who = {"name": known["name"]} if unique else {"id": known["id"]}
    return {**who, **{key: value for key, value in volume.items() if key != "wwn"}}
