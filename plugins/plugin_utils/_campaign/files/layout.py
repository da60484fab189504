# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names and places of a campaign: ``<results>/<campaign>/<host>/<variant>/<cell>/<repeat>/``.

Every part of that path may come from a host or by a copied folder, so nothing becomes a path here that is not a
plain name: see :func:`component`.
"""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import component

if t.TYPE_CHECKING:
    import datetime

#: The version of what :func:`archive.receive <receive>` accepts and of the plan files.
SCHEMA = 1

#: What became of a cell. Only the controller sets ``missing``: a host never does.
STATES = ("ok", "not_steady", "noisy", "interrupted", "failed", "refused", "missing")

#: States whose numbers stand for a whole run. The others have none, which is never the same as 0.
MEASURED = frozenset({"ok", "not_steady", "noisy"})

#: Of a cell that was planned, where nothing else is known.
NO_RESULT = "no result came from this host"

CAMPAIGN_FILE = "campaign.json"
PLAN_FILE = "plan.json"
META_FILE = "meta.json"
JOB_FILE = "job.fio"
STACK_FILE = "stack.json"
OUTPUT_FILE = "fio.json.gz"
DEVICE_STATS_FILE = "device-stats.json"
#: Of ``BESIDE_HOSTS``: no host has such a name.
SWEEP_FOLDER, RECOMMENDED_FOLDER, ACCEPT_FOLDER = "sweep", "recommended", "accept"

_CELL_FILE = re.compile(r"(?:job\.fio|fio\.json\.gz|fio\.stderr\.gz|device-stats\.json|stack\.json|meta\.json|[A-Za-z0-9][A-Za-z0-9._-]{0,100}\.log\.gz)\Z")
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~!&])")
_LINK = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)
_MAIL = re.compile(r"(?<=[A-Za-z0-9.+_-])@+(?=[A-Za-z0-9_-])")


class ResultsError(StorageError):
    """Results cannot be kept or read on the controller."""

    kind = "results"


class DamagedArchive(ResultsError):
    """What a host sent is not what the collection's fio module packs."""

    kind = "damaged_archive"


def is_cell_file(name: str) -> bool:
    """Whether a file of this name may lie in the folder of a cell."""
    return bool(_CELL_FILE.match(name))


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, on one line, and makes no link of: GitHub's does of ``://``, ``www.`` and mail addresses.

    Of a mail address it does so after it has resolved what is escaped, so that its ``@`` is code. Source: GitHub Flavored Markdown, 6.9.
    """
    return _MAIL.sub(r"`\g<0>`", _LINK.sub(r"\\\g<0>", _MARKUP.sub(r"\\\1", " ".join(text.split()))))


def natural(name: str) -> list[tuple[int, str]]:
    """Sort key of a name: 4 before 16."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]{1,9})", name)]


def default_campaign_name(now: datetime.datetime, label: str = "") -> str:
    """``2026-11-21T1403Z`` or ``2026-11-21T1403Z-label``, from a time of the controller's clock in UTC.

    :raises BadInput: if the label cannot be part of a name.
    """
    name = now.strftime("%Y-%m-%dT%H%MZ")
    return component(f"{name}-{label}", "campaign") if label else name


def results_folder(text: str) -> Path:
    """The folder of all campaigns as an absolute path.

    :raises BadInput: if none was given.
    """
    if not text.strip():
        raise BadInput("No results folder was given: set it to a folder on the controller.")
    return Path(text).expanduser().absolute()
