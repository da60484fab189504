# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The journal of a sweep on its host: what was there before, and the variables that restore it, whichever controller does."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.mirror import machine_id
from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotUnderstood, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import exchangeable
from ansible_collections.cachefleet.storage.plugins.module_utils._core.journal import Journal
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, format_size

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

SCHEMA = 1
FOLDER = "/var/lib/cachefleet/sweep"
#: What a sweep can change, and what it can change besides if a variant names it; of targets nothing.
LAYERS, NETWORK = ("drive_write_cache", "raid_cache", "block_cache", "block_queue"), ("storage_network",)
#: Of a journal: hundreds of drives with all of their settings have a tenth of it.
_LIMITS = json_text.Limits(size=16 * MIB, depth=16, values=500_000, containers=100_000)
_KEYS = ("campaign", "host", "created", "description", "restore")


def path_of(folder: str) -> Path:
    """The journal of the host: there is one sweep at a time."""
    return Path(folder) / "journal.json"


def read(folder: str, root: Path = Path("/")) -> dict[str, t.Any] | None:
    """The journal; ``None`` if there is none.

    :raises NotUnderstood: if it is damaged, or a later version of the collection wrote it.
    :raises Refused: if it is that of another host.
    """
    path = path_of(folder)
    reason = exchangeable(path)
    if reason:
        raise Refused(f"{reason}, or set another folder of the journal.", item=str(path))
    journal = _journal(folder).read()
    if journal is None:
        return None
    if journal.get("machine_id") != machine_id(root):
        raise Refused(
            f"{path} is the journal of another host ({journal['host']}, machine-id {journal.get('machine_id') or 'unknown'}), and nothing was changed:"
            " remove it if this host is a copy of that one.",
            item=str(path),
        )
    return journal


def _journal(folder: str) -> Journal[dict[str, t.Any]]:
    path = path_of(folder)

    def unusable(error: StorageError) -> t.NoReturn:
        # Also an empty file, which is a journal that was cut off: what is there now may be the configuration of a variant.
        if not isinstance(error, NotUnderstood):
            raise error
        raise NotUnderstood(
            f"{path} on this host is not a journal of a sweep: remove the file, and restore the host from the copy in the folder of the campaign with"
            " --tags restore -e fio_benchmark_campaign=NAME.",
            item=str(path),
        )

    return Journal(path, _checked, unusable, limits=_LIMITS, schema=SCHEMA)


def _checked(value: t.Any) -> dict[str, t.Any]:
    if not _is_journal(value):
        raise ValueError
    return dict(value)


def _is_journal(value: t.Any) -> bool:
    """Whether it is what :func:`write` wrote: what is in it is used to restore the host."""
    if not isinstance(value, dict) or value.get("schema") != SCHEMA or any(key not in value for key in _KEYS):
        return False
    description, restore = value["description"], value["restore"]
    return (
        all(isinstance(value[key], str) for key in ("campaign", "host", "created"))
        and isinstance(description, dict)
        and _are_dictionaries(description.get("variables"))
        and all(_are_dictionaries(one.get("entries")) for one in description["variables"])
        and all(isinstance(entry.get("values"), dict) for one in description["variables"] for entry in one["entries"])
        and isinstance(restore, dict)
        and all(map(_are_dictionaries, restore.values()))
    )


def _are_dictionaries(value: t.Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def recall(folder: str, campaign: str, root: Path = Path("/")) -> dict[str, t.Any]:
    """The journal, and which host this is.

    :raises StorageError: if the journal cannot be used, or is that of another sweep than ``campaign``, if this is not empty.
    """
    journal = read(folder, root)
    if journal is not None and campaign and journal["campaign"] != campaign:
        raise Refused(
            f"This host has been in the sweep {journal['campaign']} since {journal['created']}, which was not restored: continue it with"
            f" fio_benchmark_campaign={journal['campaign']}, or restore the host with --tags restore.",
            item=str(journal["campaign"]),
        )
    return {"journal": journal or {}, "machine_id": machine_id(root)}


def survey(
    runner: Runner,
    folder: str,
    devices: t.Sequence[str],
    *,
    network: bool,
    spool: str,
    campaign: str,
    tool_paths: t.Mapping[str, str] | None = None,
    root: Path = Path("/"),
) -> dict[str, t.Any]:
    """The journal, or what it would say: the state of the host as variables.

    :param devices: paths to resolve.
    :param network: whether the storage network is described, too.
    :param tool_paths: of RAID tools, by provider.
    :raises StorageError: if a journal cannot be used, or if something else is measured on the host.
    """
    found: dict[str, t.Any] = {**recall(folder, campaign, root), "description": {}}
    if not found["journal"]:
        # Every layer is imported by these; a journal is read and written without them.
        from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import control
        from ansible_collections.cachefleet.storage.plugins.module_utils._host.describe import describe

        control.require_idle(control.spool_of(spool, campaign or "sweep"))
        layers = (*LAYERS, *(NETWORK if network else ()))
        found["description"] = describe(runner, root, layers=layers, every=True, tool_paths=tool_paths).to_dict()
    paths = [*devices, *_paths_in(found["journal"].get("description") or found["description"])]
    return {**found, "paths": {path: os.path.realpath(root / path.lstrip("/")) for path in paths if (root / path.lstrip("/")).exists()}}


def _paths_in(description: t.Mapping[str, t.Any]) -> list[str]:
    values = [entry["values"] for variable in description.get("variables", []) for entry in variable["entries"]]
    return [str(one[key]) for one in values for key in ("device", "origin") if str(one.get(key) or "").startswith("/")]


def write(folder: str, journal: t.Mapping[str, t.Any], *, check_mode: bool, root: Path = Path("/")) -> bool:
    """Write the journal. Of one that is there, only the variables that restore the host are replaced: what was found stays.

    :returns: whether it changes.
    :raises StorageError: if it is that of another sweep or host, incomplete, or cannot be written.
    """
    missing = [key for key in _KEYS if key not in journal]
    if missing:
        raise BadInput(f"The journal has no {missing[0]}.", item=missing[0])
    before = read(folder, root)
    if before is not None and before["campaign"] != journal["campaign"]:
        raise Refused(f"This host has the journal of the sweep {before['campaign']}, which was not restored.", item=str(before["campaign"]))
    content = {**{key: journal[key] for key in _KEYS}, "schema": SCHEMA, "machine_id": machine_id(root)}
    if before is not None:
        content.update({"description": before["description"], "created": before["created"]})
    if content == before:
        return False
    if len(_journal(folder).text_of(content)) > _LIMITS.size or not _is_journal(content):
        raise BadInput(f"The journal is not one of a sweep, or is larger than {format_size(_LIMITS.size)}: nothing was written.", item="journal")
    if not check_mode:
        _journal(folder).write(content)
    return True


def remove(folder: str, campaign: str, *, check_mode: bool, root: Path = Path("/")) -> bool:
    """Remove the journal of a host that is restored.

    :returns: whether there was one.
    :raises StorageError: if it is that of another sweep or host.
    """
    before = read(folder, root)
    if before is None:
        return False
    if before["campaign"] != campaign:
        raise Refused(f"This host has the journal of the sweep {before['campaign']}, and not of {campaign}.", item=campaign)
    if not check_mode:
        _journal(folder).remove()
    return True
