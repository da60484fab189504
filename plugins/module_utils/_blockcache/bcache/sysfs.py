# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of sysfs: the kernel's answers, and the one place that writes to them."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import real_path


class Sysfs:
    """Attributes below a root, each a file that holds one value.

    :param root: below which ``sys`` is.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root

    def read(self, path: str) -> str | None:
        """The text of an attribute without the newline; None if it is not there or cannot be read."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace").strip("\n\0")
        except OSError:
            return None

    def exists(self, path: str) -> bool:
        return os.path.lexists(self.root / path)

    def names(self, path: str) -> tuple[str, ...]:
        """What is in a directory; nothing if it is not there."""
        try:
            return tuple(sorted(os.listdir(self.root / path)))
        except OSError:
            return ()

    def target(self, path: str) -> Path | None:
        """What a link leads to, through every other link; None if there is no link, or none any more: the kernel removes it when it detaches."""
        place = self.root / path
        target = real_path(place) if place.is_symlink() else place
        return None if target == place else target

    def lines(self, path: str) -> t.Iterator[str]:
        """One line after the other, for what may be long.

        :raises OSError: if it cannot be read.
        """
        with open(self.root / path, encoding="ascii", errors="replace") as stream:
            yield from stream

    def obstacle(self, path: str) -> str:
        """Why an attribute cannot be read; empty if it can."""
        try:
            os.close(os.open(self.root / path, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            return os.strerror(error.errno or 0)
        return ""

    def write(self, path: str, value: str, item: str) -> None:
        """Write an attribute, in one call as the kernel demands. It may take what it was given for something else: read it back.

        :raises CommandFailed: with the reason of the kernel.
        """
        try:
            handle = os.open(self.root / path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(handle, value.encode())
            finally:
                os.close(handle)
        except OSError as error:
            raise CommandFailed(f"{item}: the kernel did not accept '{value}' in /{path}: {os.strerror(error.errno or 0)}; check dmesg.", item=item) from None
