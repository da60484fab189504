# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What LVM reports of volume groups, physical and logical volumes, as far as test volumes need it. Pure but for the command.

Sources: lvmreport(7), lvm-fullreport(8); values are strings, sizes are bytes, names of hidden volumes stand in brackets.
"""

from __future__ import annotations

import json
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

#: All of it in one scan of the disks.
REPORT = (
    *("lvm", "fullreport", "-a", "--reportformat", "json", "--units", "b", "--nosuffix"),
    *("--configreport", "vg", "-o", "vg_name,vg_tags,vg_size,vg_extent_size"),
    *("--configreport", "pv", "-o", "pv_name,vg_name"),
    *("--configreport", "lv", "-o", "lv_name"),
    *("--configreport", "pvseg", "-o", "pvseg_start"),
    *("--configreport", "seg", "-o", "lv_name,segtype,stripes,stripe_size,lv_size"),
)


@frozen
class Volume:
    """A logical volume by its first segment; sizes in bytes. ``name`` of a hidden one is without brackets."""

    name: str
    segtype: str
    size: int
    stripes: int = 1
    stripe_size: int = 0
    hidden: bool = False


@frozen
class Group:
    """A volume group; sizes in bytes, ``devices`` as LVM names them."""

    name: str
    tags: tuple[str, ...]
    size: int
    extent: int
    devices: tuple[str, ...]
    volumes: tuple[Volume, ...] = ()

    def volume(self, name: str) -> Volume | None:
        """The volume of that name, hidden or not."""
        return next((volume for volume in self.volumes if volume.name == name), None)


@frozen
class Report:
    """Every volume group, and the physical volumes that belong to none."""

    groups: tuple[Group, ...] = ()
    orphans: tuple[str, ...] = ()

    def group(self, name: str) -> Group | None:
        return next((group for group in self.groups if group.name == name), None)


def parse_report(text: str) -> Report:
    """The output of :data:`REPORT`.

    :raises NotUnderstood: quoting what is not as LVM prints it.
    """
    try:
        parts = json.loads(text)["report"]
        groups = tuple(_group(part) for part in parts if any(row["vg_name"] for row in part.get("vg", ())))
        orphans = tuple(row["pv_name"] for part in parts for row in part.get("pv", ()) if not row["vg_name"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NotUnderstood(f"LVM did not print the requested report in JSON, but: {text.strip()[:200]}") from None
    return Report(groups, orphans)


def _group(part: t.Mapping[str, t.Any]) -> Group:
    (row,) = part["vg"]
    volumes: dict[str, Volume] = {}
    for segment in part.get("seg", ()):
        name = segment["lv_name"].strip("[]")
        # Segments come in their order: the first one tells the layout.
        volumes.setdefault(
            name,
            Volume(
                name=name,
                segtype=segment["segtype"],
                size=int(segment["lv_size"]),
                stripes=int(segment["stripes"]),
                stripe_size=int(segment["stripe_size"] or 0),
                hidden=segment["lv_name"].startswith("["),
            ),
        )
    return Group(
        name=row["vg_name"],
        tags=tuple(tag for tag in row["vg_tags"].split(",") if tag),
        size=int(row["vg_size"]),
        extent=int(row["vg_extent_size"]),
        devices=tuple(one["pv_name"] for one in part.get("pv", ()) if one["vg_name"]),
        volumes=tuple(volumes.values()),
    )
