# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A file of JSON in which a run notes what has to outlive it; what a damaged one means is an argument."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotUnderstood, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import replace_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.own_files import PRIVATE, read_own

#: Of what outlives a reboot of a host.
STATE_FOLDER = "var/lib/cachefleet"

Content = t.TypeVar("Content")


class LaterVersion(NotUnderstood):
    """A later version of the collection wrote the file: what is in it must be neither ignored nor overwritten."""


def is_an_error(error: StorageError) -> t.NoReturn:
    """A file that cannot be used ends the call."""
    raise error


def counts_as_none(_error: StorageError) -> None:
    """A file that cannot be used is treated as missing."""


def counts_as_none_if_damaged(error: StorageError) -> None:
    """As :func:`counts_as_none`, but one that cannot be read ends the call: it may have been written whole."""
    if not isinstance(error, NotUnderstood):
        raise error


def place_of(name: str, root: Path = Path("/")) -> Path:
    """The path of a file in the folder of what outlives a reboot."""
    return root / STATE_FOLDER / name


class Journal(t.Generic[Content]):
    """One file.

    :param content: makes the content of what was written; ``ValueError``, ``KeyError``, ``TypeError``, ``AttributeError`` and ``StorageError``
        of it mean that the file is damaged.
    :param unusable: called with the error if the file cannot be read (``CommandFailed``) or is damaged (``NotUnderstood``): what it returns is
        the content then.
    :param own: only a file of this user or of root that others cannot write counts, and none behind a link: for folders in which others may
        make files.
    :param durable: whether it has to survive a power cut.
    :param schema: of what is written, in its ``schema``; one that is larger is :class:`LaterVersion`, whatever ``unusable`` is.
    """

    def __init__(
        self,
        path: Path,
        content: t.Callable[[t.Any], Content],
        unusable: t.Callable[[StorageError], Content | None] = is_an_error,
        *,
        limits: json_text.Limits = json_text.SMALL,
        mode: int = PRIVATE,
        own: bool = False,
        durable: bool = True,
        schema: int | None = None,
    ) -> None:
        self.path = path
        self._content = content
        self._unusable = unusable
        self._limits = limits
        self._mode = mode
        self._own = own
        self._durable = durable
        self._schema = schema

    def read(self) -> Content | None:
        """The content; ``None`` if there is no file.

        :raises LaterVersion: if a later version of the collection wrote it.
        """
        try:
            value = self._value()
            if value is _MISSING:
                return None
            self._require_known(value)
            return self._content(value)
        except LaterVersion:
            raise
        except StorageError as error:
            return self._unusable(error)
        except (ValueError, KeyError, TypeError, AttributeError):
            return self._unusable(NotUnderstood(f"{self.path} is not what this collection writes: examine it.", item=str(self.path)))

    def _value(self) -> t.Any:
        if not self._own:
            value = json_text.read_json(self.path, self._limits)
            # A file with the value null is damaged.
            return _MISSING if value is None and not self.path.exists() else value
        try:
            return json_text.loads(read_own(self.path), self._limits)
        except FileNotFoundError:
            return _MISSING
        except OSError as error:
            raise CommandFailed(f"{self.path} cannot be read: {error.strerror}.", item=str(self.path)) from None

    def _require_known(self, value: t.Any) -> None:
        found = value.get("schema") if isinstance(value, dict) and self._schema is not None else None
        if isinstance(found, int) and self._schema is not None and found > self._schema:
            raise LaterVersion(
                f"{self.path} was written by a later version of this collection (schema {found}, this one knows {self._schema}): use that version.",
                item=str(self.path),
            )

    def write(self, value: t.Any, *, durable: bool | None = None) -> None:
        """Replace the file, whole or not at all.

        :param durable: overrides the one of the journal.
        :raises CommandFailed: if it cannot be written.
        """
        # The folder of an own file was made by whoever has verified that no other user can exchange it.
        makes_folder = self._durable and not self._own
        replace_file(self.path, self.text_of(value), mode=self._mode, durable=self._durable if durable is None else durable, makes_folder=makes_folder)

    def text_of(self, value: t.Any) -> str:
        """What :meth:`write` writes."""
        if self._schema is not None:
            value = {**value, "schema": self._schema}
        return json.dumps(value, indent=1 if self._durable else None, sort_keys=True) + "\n"

    def remove(self) -> None:
        """:raises CommandFailed: if it cannot be removed."""
        replace_file(self.path, "")


_MISSING: t.Any = object()
