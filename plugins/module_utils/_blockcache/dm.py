# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""What the kernel's device-mapper says about a cache.

Source: Documentation/admin-guide/device-mapper/cache.rst and ``cache_status`` of drivers/md/dm-cache-target.c.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood


@dataclass(frozen=True)
class CacheStatus:
    """``dmsetup status`` of a dm-cache. ``block_size`` in bytes, everything else in blocks of that size.

    ``failed`` says that the whole status is only ``Fail`` or ``Error``: then every figure is None.
    """

    failed: bool = False
    block_size: int | None = None
    used: int | None = None
    total: int | None = None
    dirty: int | None = None
    features: tuple[str, ...] = ()
    core_arguments: t.Mapping[str, str] | None = None
    policy: str | None = None
    policy_arguments: t.Mapping[str, str] | None = None
    read_only: bool | None = None
    needs_check: bool | None = None


def device_name(vg: str, lv: str) -> str:
    """The device-mapper name of a logical volume: hyphens inside the two names are doubled."""
    return f"{vg.replace('-', '--')}-{lv.replace('-', '--')}"


def parse_cache_status(text: str) -> CacheStatus:
    """One line ``start length cache …``; lists carry their own lengths, so nothing is counted from the end.

    :raises NotUnderstood: quoting the line.
    """
    line = text.strip()
    words = line.split()
    if len(words) < 4 or words[2] != "cache":
        raise NotUnderstood(f"dmsetup status did not describe a dm-cache, but printed: {line[:200] or 'nothing'}")
    if words[3] in ("Fail", "Error"):
        return CacheStatus(failed=True)
    rest = iter(words[3:])
    try:
        next(rest), next(rest)  # metadata block size and use
        block_size = int(next(rest)) * 512
        used, total = (int(number) for number in next(rest).split("/"))
        counters = [int(next(rest)) for _ in range(7)]
        features = tuple(next(rest) for _ in range(int(next(rest))))
        core = _pairs(rest)
        policy = next(rest)
        policy_arguments = _pairs(rest)
        mode = next(rest, "")
        check = next(rest, "")
    except (StopIteration, ValueError, RuntimeError):
        raise NotUnderstood(f"dmsetup printed a dm-cache status that is not understood: {line[:300]}") from None
    return CacheStatus(
        block_size=block_size,
        used=used,
        total=total,
        dirty=counters[6],
        features=features,
        core_arguments=core,
        policy=policy,
        policy_arguments=policy_arguments,
        read_only=mode == "ro",
        needs_check=check == "needs_check",
    )


def _pairs(words: t.Iterator[str]) -> dict[str, str]:
    """``count key value key value …``."""
    flat = [next(words) for _ in range(int(next(words)))]
    return dict(zip(flat[::2], flat[1::2]))
