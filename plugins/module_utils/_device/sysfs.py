# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Attributes of sysfs, and small files of proc: one value each."""

from __future__ import annotations

import os
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed


def read_attribute(path: Path) -> str | None:
    """The text of an attribute without the blanks around it and its line end; ``None`` if it is not there or cannot be read."""
    try:
        # Without the buffers of a text file: this is called some dozen times for each device of a host.
        with open(path, "rb", buffering=0) as stream:
            return stream.read().decode("utf-8", "replace").strip("\n\0 ")
    except (OSError, ValueError):  # ValueError: a name from elsewhere with a zero byte
        return None


def read_number(path: Path) -> int | None:
    """The whole number in an attribute; ``None`` if it is not there, cannot be read, or is no number."""
    try:
        return int(read_attribute(path) or "")
    except ValueError:
        return None


def write_sysfs(path: Path, value: str, item: str) -> None:
    """Write an attribute.

    :raises CommandFailed: if the kernel refuses the value.
    """
    try:
        with path.open("w") as stream:
            stream.write(value)
    except OSError as error:
        raise CommandFailed(f"{item}: the kernel refused '{value}' for {path}: {error.strerror}.", item=item) from None


def instance_of(disk: Path) -> str | None:
    """What the kernel gives anew to each disk, and to each file or medium that is put into one, as a text for messages; ``None`` if it is not there.

    Names and numbers are given again: sdb is another drive after the first one was pulled. Kernels before 5.15 have no ``diskseq``: there the inode of
    the disk's folder in sysfs is new with each disk, and a loop device that gets another file keeps it.

    Source: Documentation/ABI/stable/sysfs-block, ``diskseq``.

    :param disk: of a partition, that of its disk.
    """
    sequence = read_attribute(disk / "diskseq")
    if sequence:
        return f"diskseq {sequence}"
    try:
        return f"inode {os.stat(disk).st_ino}"
    except OSError:
        return None


def real_path(path: Path) -> Path:
    """Where a link of sysfs leads to, through every other link; the path itself if the link vanishes while it is followed.

    ``os.path.realpath`` reads a link after it has checked whether it is one, and raises if it has gone in between.
    """
    try:
        return Path(os.path.realpath(path))
    except OSError:
        return path
