# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which hosts share an array: the group that stands in the plan of a host and variant."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import component
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import PLAN_FILE
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import read_json, write_json

if t.TYPE_CHECKING:
    from pathlib import Path


def note_group(campaign: Path, host: str, variant: str, group: str) -> bool:
    """Write down in the plan of a host which array it shares with others.

    :returns: whether that is new.
    """
    path = campaign / component(host, "host") / component(variant, "variant") / PLAN_FILE
    plan = read_json(path)
    if str(plan.get("group") or "") == group:
        return False
    write_json(path, {**plan, "group": component(group, "group") if group else ""})
    return True


def group_of(variant: Path) -> str | None:
    """The array that a host shares with others in a variant, according to its plan; ``None`` for none.

    :param variant: the folder of the variant in that of the host.
    :raises ResultsError: if the plan cannot be read.
    """
    path = variant / PLAN_FILE
    group = read_json(path).get("group") if path.is_file() else None
    return plain(group, 1000) or None if isinstance(group, str) else None
