# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a user asks of one LVM cache, checked as far as it can be without looking at the host.

Sources for the bounds of settings: lvmcache(7); Documentation/admin-guide/device-mapper/writecache.rst and ``writecache_ctr``
of drivers/md/dm-writecache.c.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import spec as common
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.sizes import CHUNK_STEP, LARGEST_CHUNK
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size

#: lvm(8), "VALID NAMES"; a leading hyphen would read as an option.
_NAME = re.compile(r"^[A-Za-z0-9_+.][A-Za-z0-9_+.-]*$")

KINDS = ("cachepool", "cachevol", "writecache")
MODES = ("writethrough", "writeback", "passthrough")

#: The one setting of dm-cache that does something: smq has none of its own, and the names of the old mq are taken and ignored.
MIGRATION_THRESHOLD = "migration_threshold"
#: Of dm-writecache, fixed when it is attached.
BLOCK_SIZE = "block_size"
#: Of dm-writecache, not known to every LVM that knows the others.
PAUSE_WRITEBACK = "pause_writeback"
_UNSIGNED = 2**32 - 1
#: Least and largest value of every setting of dm-writecache; times are milliseconds, watermarks per cent.
_WRITECACHE_BOUNDS: t.Mapping[str, tuple[int, int]] = {
    "high_watermark": (0, 100),
    "low_watermark": (0, 100),
    "writeback_jobs": (0, _UNSIGNED),
    "autocommit_blocks": (1, _UNSIGNED),
    "autocommit_time": (1, 3_600_000),
    "max_age": (1, 86_400_000),
    PAUSE_WRITEBACK: (0, 60_000),
}
#: What the kernel takes where nothing is said, the high one first.
USUAL_WATERMARKS: t.Mapping[str, int] = {"high_watermark": 50, "low_watermark": 45}
_BLOCK_SIZES = (512, 4096)


@dataclass(frozen=True)
class LvmCacheSpec(common.CacheSpec):
    """One LVM cache of the volume ``vg/lv``. A setting of None is to be taken away, so that the kernel's own default applies."""

    vg: str = ""
    lv: str = ""

    @property
    def volume(self) -> str:
        """The name of the fast volume while it is attached to nothing; LVM adds ``_cpool`` or ``_cvol`` when it is."""
        return f"{self.lv}_cache"

    @property
    def metadata_volume(self) -> str:
        """The name of what becomes the metadata of a mirrored cachepool, until it does."""
        return f"{self.volume}_meta"


def read_items(items: t.Sequence[t.Mapping[str, t.Any]]) -> list[LvmCacheSpec]:
    """The list a user wrote.

    :raises BadInput: naming the item and what to write instead.
    """
    wanted = [_read_item(item) for item in items]
    common.require_unique(wanted)
    return wanted


def _read_item(item: t.Mapping[str, t.Any]) -> LvmCacheSpec:
    name = item["name"]
    fields = common.read_common(item, plain_name=False)
    fields["origin"], vg, lv = _origin(item["origin"], name)
    kind = item.get("kind") or "cachepool"
    settings = item.get("settings") or {}
    wanted = LvmCacheSpec(
        **fields,
        vg=vg,
        lv=lv,
        kind=kind,
        mode=_mode(item.get("mode"), kind, name),
        settings=_writecache_settings(settings, name) if kind == "writecache" else _cache_settings(settings, name),
    )
    _require_chunk_size(wanted)
    _require_known_devices(wanted)
    if wanted.present and wanted.mirror and kind == "writecache":
        raise BadInput(
            f"{name}: LVM takes only a linear volume for a writecache and mirrors none:"
            " leave mirror out and name one MD RAID1 device (/dev/md/NAME), which counts as mirrored, or use kind cachepool in mode writeback.",
            item=name,
        )
    return wanted


def _origin(text: str, item: str) -> tuple[str, str, str]:
    words = (text[len("/dev/") :] if text.startswith("/dev/") else text).split("/")
    mapped = text.startswith("/dev/mapper/")
    if mapped or len(words) != 2 or not all(_NAME.match(word) for word in words):
        raise BadInput(f"{item}: origin is '{text}': write it as volume group and logical volume, for example vg0/images.", item=item)
    return f"{words[0]}/{words[1]}", words[0], words[1]


def _mode(mode: str | None, kind: str, item: str) -> str:
    if kind != "writecache":
        return mode or "writethrough"
    if mode not in (None, "writeback"):
        raise BadInput(
            f"{item}: mode is {mode}, and a writecache is write-back by its nature: it holds nothing but what is not on the origin yet."
            " Leave mode out, or use kind cachepool or cachevol.",
            item=item,
        )
    return "writeback"


def _require_chunk_size(wanted: LvmCacheSpec) -> None:
    chunk, item = wanted.chunk_size, wanted.name
    if chunk is None:
        return
    if wanted.kind == "writecache":
        raise BadInput(f"{item}: a writecache has no chunks: leave chunk_size out; its block_size (512 or 4096) is one of its settings.", item=item)
    if chunk % CHUNK_STEP or not CHUNK_STEP <= chunk <= LARGEST_CHUNK:
        raise BadInput(f"{item}: chunk_size is {format_size(chunk)}, and LVM takes only multiples of 32 KiB from 32 KiB to 1 GiB.", item=item)


def _require_known_devices(wanted: LvmCacheSpec) -> None:
    if wanted.release_devices and wanted.state == "absent" and not wanted.cache_devices:
        raise BadInput(f"{wanted.name}: release_devices gives cache_devices back, and cache_devices is empty: name them.", item=wanted.name)


def _cache_settings(settings: t.Mapping[str, t.Any], item: str) -> dict[str, int | None]:
    """``default`` becomes None: the setting is taken away."""
    read: dict[str, int | None] = {}
    for key, value in settings.items():
        if key != MIGRATION_THRESHOLD:
            raise BadInput(
                f"{item}: dm-cache has no setting {key} that does anything: the only one is {MIGRATION_THRESHOLD} (sectors of 512 bytes).",
                item=item,
            )
        if str(value) == "default":
            read[key] = None
        elif _is_whole(value) and int(value) > 0:
            read[key] = int(value)
        else:
            raise BadInput(f"{item}: {key} is '{value}': write a number of sectors above zero, or default to take the setting away.", item=item)
    return read


def _writecache_settings(settings: t.Mapping[str, t.Any], item: str) -> dict[str, int | None]:
    read: dict[str, int | None] = {}
    for key, value in settings.items():
        if key == BLOCK_SIZE:
            read[key] = _block_size(value, item)
        elif key == "cleaner":
            raise BadInput(f"{item}: cleaner is not set as a setting: state: flushed does it, and proves that nothing is left in the cache.", item=item)
        elif key not in _WRITECACHE_BOUNDS:
            known = ", ".join((*_WRITECACHE_BOUNDS, BLOCK_SIZE))
            raise BadInput(f"{item}: a writecache on a drive has no setting {key}: there is {known}.", item=item)
        elif str(value) == "default":
            read[key] = None
        else:
            read[key] = _bounded(key, value, item)
    return read


def _block_size(value: t.Any, item: str) -> int | None:
    if str(value) == "default":
        return None
    if not _is_whole(value) or int(value) not in _BLOCK_SIZES:
        raise BadInput(f"{item}: block_size is '{value}': write 512 or 4096, or leave it out for what fits the file system.", item=item)
    return int(value)


def _bounded(key: str, value: t.Any, item: str) -> int:
    least, largest = _WRITECACHE_BOUNDS[key]
    if not _is_whole(value) or not least <= int(value) <= largest:
        raise BadInput(f"{item}: {key} is '{value}': write a whole number from {least} to {largest}, or default to take the setting away.", item=item)
    return int(value)


def _is_whole(value: t.Any) -> bool:
    return not isinstance(value, (bool, float)) and re.match(r"^\d+$", str(value)) is not None
