# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sizes. Everything inside the collection is in bytes; suffixes are powers of 1024, as LVM, fio and QEMU read them."""

from __future__ import annotations

import re

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, abbreviated

#: The kernel's unit in ``/sys/block/*/size``, ``stat`` and device-mapper tables, whatever the drive's block size is.
SECTOR = 512
KIB = 1024
MIB = 1024**2
GIB = 1024**3

_SUFFIXES = {"": 1, "b": 1, "k": KIB, "m": MIB, "g": GIB, "t": 1024**4, "p": 1024**5}
#: With more digits than any size has, Python cannot compute it.
_SIZE = re.compile(r"^\s*(\d{1,30}(?:\.\d+)?)\s*([bkmgtp]?)(?:i?b)?\s*$", re.IGNORECASE)


def parse_size(text: str | int, item: str | None = None, option: str = "") -> int:
    """``"64k"``, ``"1.5 GiB"`` or ``4096`` as bytes.

    :param option: of the item, so that the message names the position of the text.

    :raises BadInput: if it is not a size.
    """
    match = _SIZE.match(str(text))
    if not match:
        where = f"{item}: {option} " if option else ""
        raise BadInput(f"{where}{abbreviated(str(text))} is not a size: use a number with an optional suffix k, M, G or T (powers of 1024).", item=item)
    number, suffix = match.groups()
    return int(float(number) * _SUFFIXES[suffix.lower()]) if "." in number else int(number) * _SUFFIXES[suffix.lower()]


def format_size(count: int) -> str:
    """Bytes for display: the largest binary unit that keeps at least one digit before the point."""
    for unit, name in ((1024**5, "PiB"), (1024**4, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if abs(count) >= unit:
            return f"{count / unit:.4g} {name}"
    return f"{count} B"


def round_up(value: int, step: int) -> int:
    """The smallest multiple of ``step`` that is not below ``value``."""
    return -(-value // step) * step
