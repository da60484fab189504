# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a user requests for one EnhanceIO cache, checked as far as it can be without the host.

Sources: CLI/eio_cli (names, policies, modes, block sizes), eio.h (lengths of names and paths).
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.output import SET_SIZES
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.settings import VOCABULARY
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.settings import read_settings
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.spec import (
    COMMON_OPTIONS,
    CacheSpec,
    mode_of_settings,
    read_common,
    read_mode,
    require_unique,
    require_whole_device,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import is_stable

MODES = ("writethrough", "writeback", "writearound")
POLICIES = ("lru", "fifo", "rand")

#: eio_cli takes these characters; the driver keeps 31 of them.
_NAME = re.compile(r"^[A-Za-z0-9_]{1,31}\Z")
#: What can stand in a udev rule as it is; eio_cli cuts a path at a blank, and the driver keeps 127 bytes.
_PATH = re.compile(r"^/dev/[0-9A-Za-z_.:+=@,/-]{1,122}\Z")
#: Options of one cache, as a module takes them.
CACHE_OPTIONS: t.Mapping[str, t.Any] = {
    **COMMON_OPTIONS,
    "mode": {"type": "str", "choices": list(MODES), "default": "writethrough"},
    "policy": {"type": "str", "choices": list(POLICIES)},
    "allow_ignored_flushes": {"type": "bool", "default": False},
}


@frozen
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
    specs = [_read_item(item) for item in items]
    require_unique(specs)
    return specs


def _read_item(item: t.Mapping[str, t.Any]) -> EnhanceIOSpec:
    common = read_common(item)
    name, mode = common["name"], read_mode(item, MODES, "EnhanceIO")
    if not _NAME.match(name):
        raise BadInput(f"{name}: the name of an EnhanceIO cache has at most 31 letters, digits and underscores.", item=name)
    for path in (common["origin"], *common["cache_devices"]):
        _require_path(path, name)
    require_whole_device(common, "EnhanceIO")
    chunk_size = common["chunk_size"]
    if chunk_size is not None and chunk_size not in SET_SIZES:
        raise BadInput(f"{name}: chunk_size is {item['chunk_size']}, and EnhanceIO has blocks of {', '.join(map(str, SET_SIZES))} bytes only.", item=name)
    settings = read_settings(VOCABULARY, item.get("settings") or {}, name, mode_of_settings(common["state"], mode))
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
            f"{item}: '{path}' is kept in EnhanceIO's superblock and in a udev rule: use a path below /dev of at most 127 letters, digits and _.:+=@,-/.",
            item=item,
        )
    if not is_stable(path):
        raise BadInput(f"{item}: {path} may be another device after the next reboot: use a persistent path, for example below /dev/disk/by-id.", item=item)
