# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which campaign is meant: its folder, its name in the results folder, or ``latest``."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import CAMPAIGN_FILE, ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import read_json

#: The results folder if none is given, below the current folder.
RESULTS = "results"

LATEST = "latest"

_MOST_LISTED = 10


def find_campaign(text: str, variable: str, results: str = "") -> Path:
    """The folder of a campaign.

    :param text: a folder, a name in the results folder, or ``latest``.
    :param variable: named in messages.
    :param results: the results folder; empty for ``results`` in the current folder.
    :raises BadInput: with the campaigns that there are, if none is named, or none has the name.
    """
    folder = Path(results or RESULTS).expanduser().absolute()
    if text == LATEST:
        known = campaigns_in(folder)
        if not known:
            raise BadInput(f"There is no campaign in {folder}: run the playbook benchmark first, or set {variable} to the folder of a campaign.")
        return known[0]
    path = Path(text).expanduser()
    if text and (path.is_dir() or len(path.parts) != 1):
        return path.absolute()
    if text and (folder / text).is_dir():
        return folder / text
    names = [one.name for one in campaigns_in(folder)]
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    there = f"{folder} has, the latest first: {', '.join(names[:_MOST_LISTED])}{more}" if names else f"{folder} has none"
    what = f"There is no campaign {plain(text)}" if text else "No campaign is named"
    raise BadInput(f"{what}: set {variable} to a folder, to a name in the results folder, or to {LATEST}. {there}.")


def campaigns_in(results: Path) -> list[Path]:
    """The folders of campaigns, the latest first."""
    try:
        found = [path for path in results.iterdir() if (path / CAMPAIGN_FILE).is_file()]
    except OSError:
        return []
    return sorted(found, key=_age, reverse=True)


def _age(campaign: Path) -> tuple[str, str]:
    """When it was opened, as text that sorts; its name if that cannot be read."""
    try:
        created: t.Any = read_json(campaign / CAMPAIGN_FILE).get("created", "")
    except ResultsError:
        created = ""
    return str(created), campaign.name
