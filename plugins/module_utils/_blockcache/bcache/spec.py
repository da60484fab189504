# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a user requests for one bcache, checked as far as it can be without reading the host."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import spec as common
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import settings as bcache_settings
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, MIB, format_size, parse_size

MODES = ("writethrough", "writeback", "writearound", "none")
#: A superblock has room for so many bytes of a label.
LABEL = 32
#: make-bcache keeps both in 16 bits of sectors, as powers of two; the kernel takes no bucket below a page.
LEAST_BLOCK, LARGEST_BLOCK = 512, 4 * KIB
LEAST_BUCKET, LARGEST_BUCKET = 4 * KIB, 8 * MIB
#: Options of one cache, as a module takes them.
CACHE_OPTIONS: t.Mapping[str, t.Any] = {
    **common.COMMON_OPTIONS,
    "kind": {"type": "str", "choices": ["bcache"], "default": "bcache"},
    "mode": {"type": "str", "choices": list(MODES), "default": "writethrough"},
    "bucket_size": {"type": "str"},
    "block_size": {"type": "str"},
}


@frozen
class BcacheSpec(common.CacheSpec):
    """One cached device. ``bucket_size`` and ``block_size`` in bytes, or None for the usual."""

    bucket_size: int | None = None
    block_size: int | None = None

    @property
    def label(self) -> str:
        """What the superblock of the backing device carries."""
        return self.name[:LABEL]


def read_items(items: t.Sequence[t.Mapping[str, t.Any]]) -> list[BcacheSpec]:
    """The list a user wrote.

    :raises BadInput: naming the item and what to write instead.
    """
    read = [_read_item(item) for item in items]
    common.require_unique(read)
    labels: dict[str, str] = {}
    for cache in read:
        if cache.label in labels:
            raise BadInput(
                f"{cache.name}: its first {LABEL} characters are those of {labels[cache.label]}, and bcache keeps no more of a name: use another.",
                item=cache.name,
            )
        labels[cache.label] = cache.name
    _require_agreement(read)
    return read


def _read_item(item: t.Mapping[str, t.Any]) -> BcacheSpec:
    fields = common.read_common(item)
    name = fields["name"]
    common.require_whole_device(fields, "bcache")
    if fields["chunk_size"] is not None:
        raise BadInput(f"{name}: chunk_size is not supported for bcache; set bucket_size (what is allocated at once) or block_size.", item=name)
    if not fields["origin"].startswith("/dev/"):
        raise BadInput(f"{name}: the origin '{fields['origin']}' is not a path below /dev: use for example /dev/disk/by-id/ata-SERIAL.", item=name)
    if fields["origin"] in fields["cache_devices"]:
        raise BadInput(f"{name}: {fields['origin']} is the origin and a cache device at once: name another cache device.", item=name)
    mode = common.read_mode(item, MODES, "bcache")
    block = _power(item.get("block_size"), "block_size", LEAST_BLOCK, LARGEST_BLOCK, name)
    bucket = _power(item.get("bucket_size"), "bucket_size", LEAST_BUCKET, LARGEST_BUCKET, name)
    return BcacheSpec(
        kind="bcache",
        mode=mode,
        settings=bcache_settings.read_settings(item.get("settings") or {}, name),
        bucket_size=bucket,
        block_size=block,
        **fields,
    )


def _power(value: t.Any, option: str, low: int, high: int, item: str) -> int | None:
    if value is None:
        return None
    size = parse_size(value, item, option)
    if not low <= size <= high or size & (size - 1):
        raise BadInput(f"{item}: {option} is {value}: use a power of two from {format_size(low)} to {format_size(high)}.", item=item)
    return size


def _require_agreement(items: t.Iterable[BcacheSpec]) -> None:
    """Several origins may share a cache device; their options for it must then be the same."""
    first: dict[tuple[str, ...], BcacheSpec] = {}
    seen: dict[tuple[tuple[str, ...], str], tuple[t.Any, str]] = {}
    for cache in items:
        if not cache.present or not cache.cache_devices:
            continue
        devices = tuple(sorted(cache.cache_devices))
        leader = first.setdefault(devices, cache)
        if leader.mirror != cache.mirror:
            raise BadInput(f"{cache.name}: it shares {' and '.join(devices)} with {leader.name}, and only one of the two has mirror: true.", item=cache.name)
        shared = {key: value for key, value in cache.settings.items() if bcache_settings.SETTINGS[key].place != bcache_settings.BACKING}
        shared.update({"bucket_size": cache.bucket_size} if cache.bucket_size is not None else {})
        for key, value in shared.items():
            earlier, other = seen.setdefault((devices, key), (value, cache.name))
            if earlier != value:
                raise BadInput(
                    f"{cache.name}: {key} is {value}, and {other}, which shares {' and '.join(devices)}, has {earlier}: it belongs to the cache device,"
                    " so set the same for both.",
                    item=cache.name,
                )
