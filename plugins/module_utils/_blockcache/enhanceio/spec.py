# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a user asks of one EnhanceIO cache, checked as far as it can be without the host.

Sources: CLI/eio_cli (names, policies, modes, block sizes), eio.h (lengths of names and paths, limits and defaults of the
sysctls), eio_procfs.c (which of them exist in write-back only, and that low may not be above high).
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.output import SET_SIZES
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.spec import CacheSpec, read_common, require_unique
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import is_stable

MODES = ("writethrough", "writeback", "writearound")
POLICIES = ("lru", "fifo", "rand")

#: eio_cli takes these characters; the driver keeps 31 of them.
_NAME = re.compile(r"^[A-Za-z0-9_]{1,31}\Z")
#: What can stand in a udev rule as it is; eio_cli cuts a path at a blank, and the driver keeps 127 bytes.
_PATH = re.compile(r"^/dev/[0-9A-Za-z_.:+=@,/-]{1,122}\Z")


@dataclass(frozen=True)
class Limits:
    """A setting: its lowest and highest value, what a new cache has, and whether it exists in write-back only.

    ``default`` is None where it depends on the cache device.
    """

    lowest: int
    highest: int
    default: int | None
    writeback_only: bool = True


SETTINGS: t.Mapping[str, Limits] = {
    "mem_limit_pct": Limits(0, 100, 75, writeback_only=False),
    # Minutes; a new cache has one for every 16 GiB of its device.
    "time_based_clean_interval": Limits(0, 720, None),
    "autoclean_threshold": Limits(0, 1024, 128),
    "dirty_high_threshold": Limits(0, 100, 30),
    "dirty_low_threshold": Limits(0, 100, 10),
    "dirty_set_high_threshold": Limits(0, 100, 100),
    "dirty_set_low_threshold": Limits(0, 100, 30),
    # Only in the fork for newer kernels.
    "cache_wronly": Limits(0, 1, 0),
}
#: The lower of two may not be above the higher.
PAIRS = (("dirty_low_threshold", "dirty_high_threshold"), ("dirty_set_low_threshold", "dirty_set_high_threshold"))


@dataclass(frozen=True)
class EnhanceIOSpec(CacheSpec):
    """One EnhanceIO cache; a setting of None is the driver's default.

    :param policy: ``lru``, ``fifo`` or ``rand``; None leaves that of a cache that is there, and a new one gets ``lru``.
    :param allow_ignored_flushes: write-back also over volatile caches, which EnhanceIO does not flush.
    """

    policy: str | None = None
    allow_ignored_flushes: bool = False


def read_items(items: t.Sequence[t.Mapping[str, t.Any]]) -> list[EnhanceIOSpec]:
    """The list a user wrote.

    :raises BadInput: naming the item and what to write instead.
    """
    wanted = [_read_item(item) for item in items]
    require_unique(wanted)
    return wanted


def _read_item(item: t.Mapping[str, t.Any]) -> EnhanceIOSpec:
    common = read_common(item)
    name, mode = common["name"], item.get("mode") or "writethrough"
    if not _NAME.match(name):
        raise BadInput(f"{name}: the name of an EnhanceIO cache has at most 31 letters, digits and underscores.", item=name)
    for path in (common["origin"], *common["cache_devices"]):
        _require_path(path, name)
    if common["size"] is not None or common["share"] != 1.0:
        raise BadInput(f"{name}: EnhanceIO takes the whole cache device: leave size out, and name a partition if the cache shall be smaller.", item=name)
    chunk_size = common["chunk_size"]
    if chunk_size is not None and chunk_size not in SET_SIZES:
        raise BadInput(f"{name}: chunk_size is {item['chunk_size']}, and EnhanceIO has blocks of {', '.join(map(str, SET_SIZES))} bytes only.", item=name)
    settings = _settings(item.get("settings") or {}, mode if common["state"] == "present" else "writeback", name)
    return EnhanceIOSpec(
        **common,
        kind="enhanceio",
        mode=mode,
        settings=settings,
        policy=item.get("policy"),
        allow_ignored_flushes=bool(item.get("allow_ignored_flushes")),
    )


def _require_path(path: str, item: str) -> None:
    if not _PATH.match(path):
        raise BadInput(
            f"{item}: '{path}' is kept in EnhanceIO's superblock and in a udev rule: write a path below /dev of at most 127 letters, digits and _.:+=@,-/.",
            item=item,
        )
    if not is_stable(path):
        raise BadInput(f"{item}: {path} may be another device after the next reboot: write a link such as /dev/disk/by-id/… that stays.", item=item)


def _settings(settings: t.Mapping[str, t.Any], mode: str, item: str) -> dict[str, int | None]:
    read: dict[str, int | None] = {}
    for key, value in settings.items():
        limits = SETTINGS.get(key)
        if limits is None:
            raise BadInput(f"{item}: EnhanceIO has no setting {key}: the settings are {', '.join(SETTINGS)}.", item=item)
        if limits.writeback_only and mode != "writeback":
            raise BadInput(f"{item}: {key} exists in mode writeback only: take it out of settings, or write mode: writeback.", item=item)
        if str(value) == "default":
            read[key] = None
        elif not isinstance(value, bool) and re.match(r"^[0-9]{1,6}$", str(value)) and limits.lowest <= int(value) <= limits.highest:
            read[key] = int(value)
        else:
            raise BadInput(f"{item}: {key} is '{value}': write a number from {limits.lowest} to {limits.highest}, or default.", item=item)
    for low, high in PAIRS:
        lower, higher = read.get(low), read.get(high)
        if lower is not None and higher is not None and lower > higher:
            raise BadInput(f"{item}: {low} ({lower}) is above {high} ({higher}).", item=item)
    return read
