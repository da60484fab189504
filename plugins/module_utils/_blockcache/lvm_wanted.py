# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""What a user asks of one LVM cache, checked as far as it can be without looking at the host."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm_layout import CHUNK_STEP, LARGEST_CHUNK
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size, parse_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import is_stable

#: lvm(8), "VALID NAMES"; a leading hyphen would read as an option.
_NAME = re.compile(r"^[A-Za-z0-9_+.][A-Za-z0-9_+.-]*$")
_SHARE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*%\s*$")

#: The one setting of dm-cache that does something: smq has none of its own, and the names of the old mq are taken and ignored.
MIGRATION_THRESHOLD = "migration_threshold"


@dataclass(frozen=True)
class WantedCache:
    """One cache. ``size`` in bytes, or None for ``share`` of what is free; a setting of None is the kernel's default."""

    name: str
    vg: str
    lv: str
    cache_devices: tuple[str, ...] = ()
    kind: str = "cachepool"
    mode: str = "writethrough"
    size: int | None = None
    share: float = 1.0
    chunk_size: int | None = None
    settings: t.Mapping[str, int | None] = field(default_factory=dict)
    present: bool = True
    allow_unmirrored_writeback: bool = False
    flush_timeout: int | None = None

    @property
    def origin(self) -> str:
        return f"{self.vg}/{self.lv}"

    @property
    def volume(self) -> str:
        """The name of the fast volume while it is attached to nothing; LVM adds ``_cpool`` or ``_cvol`` when it is."""
        return f"{self.lv}_cache"


def read_items(items: t.Sequence[t.Mapping[str, t.Any]]) -> list[WantedCache]:
    """The list a user wrote.

    :raises BadInput: naming the item and what to write instead.
    """
    wanted = [_read_item(item) for item in items]
    for attribute in ("name", "origin"):
        seen: set[str] = set()
        for cache in wanted:
            value = getattr(cache, attribute)
            if value in seen:
                raise BadInput(f"Two caches have the {attribute} {value}: every {attribute} may stand in the list once.", item=cache.name)
            seen.add(value)
    return wanted


def _read_item(item: t.Mapping[str, t.Any]) -> WantedCache:
    name = item["name"]
    vg, lv = _origin(item["origin"], name)
    present = item.get("state", "present") == "present"
    size, share = _size(item.get("size"), name)
    return WantedCache(
        name=name,
        vg=vg,
        lv=lv,
        cache_devices=_cache_devices(item, name) if present else (),
        kind=item.get("kind") or "cachepool",
        mode=item.get("mode") or "writethrough",
        size=size,
        share=share,
        chunk_size=_chunk_size(item.get("chunk_size"), name),
        settings=_settings(item.get("settings") or {}, name),
        present=present,
        allow_unmirrored_writeback=bool(item.get("allow_unmirrored_writeback")),
        flush_timeout=item.get("flush_timeout"),
    )


def _origin(text: str, item: str) -> tuple[str, str]:
    words = (text[len("/dev/") :] if text.startswith("/dev/") else text).split("/")
    mapped = text.startswith("/dev/mapper/")
    if mapped or len(words) != 2 or not all(_NAME.match(word) for word in words):
        raise BadInput(f"{item}: origin is '{text}': write it as volume group and logical volume, for example vg0/images.", item=item)
    return words[0], words[1]


def _cache_devices(item: t.Mapping[str, t.Any], name: str) -> tuple[str, ...]:
    devices = tuple(item.get("cache_devices") or ())
    if not devices:
        raise BadInput(f"{name}: cache_devices is empty: name the fast device, for example /dev/disk/by-id/nvme-SERIAL.", item=name)
    if item.get("mirror") or len(devices) > 1:
        raise BadInput(
            f"{name}: a cache over several devices is not offered yet: write one path in cache_devices and leave mirror out;"
            " for a mirror name one MD RAID1 device (/dev/md/NAME), which counts as mirrored.",
            item=name,
        )
    for path in devices:
        if not path.startswith("/dev/"):
            raise BadInput(f"{name}: the cache device '{path}' is not a path below /dev.", item=name)
    return devices


def require_stable(path: str, stable: str | None, item: str) -> None:
    """Refuse a path that may name another device after a reboot.

    :raises BadInput: naming the stable path of the same device.
    """
    if is_stable(path):
        return
    instead = f"write {stable}, which is the same device" if stable else "and it has no stable path: give it a serial number or put LVM or MD on it"
    raise BadInput(f"{item}: {path} may be another device after the next reboot: {instead}.", item=item)


def _size(value: t.Any, item: str) -> tuple[int | None, float]:
    if value is None:
        return None, 1.0
    match = _SHARE.match(str(value))
    if not match:
        size = parse_size(value, item)
        if size <= 0:
            raise BadInput(f"{item}: size is {value}: write a size above zero, a share such as 50%, or leave it out for all that is free.", item=item)
        return size, 1.0
    share = float(match.group(1)) / 100
    if not 0 < share <= 1:
        raise BadInput(f"{item}: size is {value}: a share of the free space is above 0% and at most 100%.", item=item)
    return None, share


def _chunk_size(value: t.Any, item: str) -> int | None:
    if value is None:
        return None
    chunk = parse_size(value, item)
    if chunk % CHUNK_STEP or not CHUNK_STEP <= chunk <= LARGEST_CHUNK:
        raise BadInput(f"{item}: chunk_size is {format_size(chunk)}, and LVM takes only multiples of 32 KiB from 32 KiB to 1 GiB.", item=item)
    return chunk


def _settings(settings: t.Mapping[str, t.Any], item: str) -> dict[str, int | None]:
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
        elif not isinstance(value, bool) and re.match(r"^[1-9]\d*$", str(value)):
            read[key] = int(value)
        else:
            raise BadInput(f"{item}: {key} is '{value}': write a number of sectors above zero, or default to take the setting away.", item=item)
    return read
