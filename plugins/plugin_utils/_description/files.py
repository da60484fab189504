# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of descriptions: what was edited is not overwritten, and the same content is not written again."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, Refused
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import write_text

#: Names of hosts and groups that can be the name of a file, here and where the folder is copied to.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}\Z")
_SEAL = "# Written by cachefleet.storage.describe, which overwrites it unless it was edited. sha256:"
_SEALED = re.compile(rf"^{re.escape(_SEAL)}([0-9a-f]{{64}})$", re.MULTILINE)


def file_of(folder: Path, kind: str, name: str) -> Path:
    """``FOLDER/host_vars/NAME.yml`` or ``FOLDER/group_vars/NAME.yml``.

    :raises BadInput: for a name that is no file name.
    """
    if not _NAME.match(name):
        raise BadInput(f"'{name[:100]}' cannot be the name of a file: use letters, digits, '.', ':', '_' and '-' for names of hosts.", item=name)
    return folder / kind / f"{name}.yml"


def sealed(text: str) -> str:
    """A text with a line by which it is seen later whether it was edited."""
    body = text if text.endswith("\n") else f"{text}\n"
    first, separator, rest = body.partition("\n")
    return f"{first}{separator}{_SEAL}{_digest(first + separator + rest)}\n{rest}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def is_edited(text: str) -> bool:
    """Whether a file is not as it was written, or was never written by this collection."""
    match = _SEALED.search(text)
    if match is None:
        return True
    return _digest(text[: match.start()] + text[match.end() + 1 :]) != match.group(1)


def read(path: Path) -> str | None:
    """The text of a file; None if there is none.

    :raises CommandFailed: if it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(
            f"{path} could not be read: {_reason(error)}. Set describe_directory to a folder that can be read and written.", item=str(path)
        ) from None


def write(path: Path, text: str, *, force: bool, check_mode: bool) -> bool:
    """Write a sealed text unless it is there already.

    :returns: whether it differed.
    :raises Refused: if what is there was edited.
    :raises CommandFailed: if it cannot be written.
    """
    before = read(path)
    if before == text:
        return False
    if before is not None and is_edited(before) and not force:
        raise Refused(
            f"{path} was edited after it was written, or was written by something else, and is not overwritten: set describe_force: true to overwrite it,"
            " or describe_directory to another folder.",
            item=str(path),
        )
    if not check_mode:
        _replace(path, text)
    return True


def _replace(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    except OSError as error:
        raise CommandFailed(f"{path} could not be written: {_reason(error)}. Set describe_directory to a folder that can be written.", item=str(path)) from None


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or "it is not text in UTF-8")
