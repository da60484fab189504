# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a user requests for one SSD cache, in the one vocabulary of every type, checked as far as it can be without the host."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import TYPES
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import parse_size

#: ``flushed``: the cache stays, holds nothing that the origin does not have, and nothing can become dirty in it.
STATES = ("present", "flushed", "absent")
#: What may be found with ``state: absent`` where it would be refused otherwise: that there is no such origin, or that a cache of another type has it.
MISSING = "missing"
EXPECTED = (MISSING, *TYPES)
#: What every module of an SSD cache understands. Each adds ``kind``, ``mode`` and ``settings`` with its own choices.
COMMON_OPTIONS: t.Mapping[str, t.Mapping[str, t.Any]] = {
    "name": {"type": "str", "required": True},
    "origin": {"type": "str", "required": True},
    "cache_devices": {"type": "list", "elements": "path", "default": []},
    "mirror": {"type": "bool", "default": False},
    "size": {"type": "str"},
    "chunk_size": {"type": "str"},
    "settings": {"type": "dict", "default": {}},
    "state": {"type": "str", "choices": list(STATES), "default": "present"},
    "expect": {"type": "list", "elements": "str", "choices": list(EXPECTED), "default": []},
    "release_devices": {"type": "bool", "default": False},
    "allow_unmirrored_writeback": {"type": "bool", "default": False},
    "flush_timeout": {"type": "int"},
}
#: Where types with tools that no distribution packages are searched.
TOOL_DIRS_OPTION: t.Mapping[str, t.Mapping[str, t.Any]] = {"tool_dirs": {"type": "list", "elements": "path", "default": []}}

_SHARE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*%\s*$")
#: Goes into names of device-mapper, MD arrays, units and files; a leading hyphen would read as an option.
_NAME = re.compile(r"^[A-Za-z0-9_+.][A-Za-z0-9_+.-]*\Z")


@frozen
class CacheSpec:
    """One cache. ``size`` in bytes, or None for ``share`` of what is free; ``settings`` as the user wrote them.

    :param origin: what is cached, as the user wrote it.
    :param chunk_size: bytes of one block of the cache, or None for the usual one.
    :param expect: of :data:`EXPECTED`.
    """

    name: str
    origin: str
    cache_devices: tuple[str, ...] = ()
    mirror: bool = False
    kind: str = ""
    mode: str = "writethrough"
    size: int | None = None
    share: float = 1.0
    chunk_size: int | None = None
    settings: t.Mapping[str, t.Any] = field(default_factory=dict)
    state: str = "present"
    expect: tuple[str, ...] = ()
    release_devices: bool = False
    allow_unmirrored_writeback: bool = False
    flush_timeout: int | None = None

    @property
    def present(self) -> bool:
        """Whether the cache should be there and as described."""
        return self.state == "present"


def read_common(item: t.Mapping[str, t.Any], *, plain_name: bool = True) -> dict[str, t.Any]:
    """The arguments of :class:`CacheSpec` that mean the same for every type; ``kind``, ``mode`` and ``settings`` do not.

    :param plain_name: whether the name becomes part of names on the host, so that not every character can stand in it.
    :raises BadInput: naming the item and what to write instead.
    """
    name = item["name"]
    if plain_name and not _NAME.match(name):
        raise BadInput(f"Invalid cache name '{name}': use only letters, digits, '.', '-', '_' and '+', and no '-' at the beginning.", item=name)
    state = item.get("state") or "present"
    if item.get("expect") and state != "absent":
        raise BadInput(f"{name}: expect is only supported with state: absent; remove it.", item=name)
    limit = item.get("flush_timeout")
    if limit is not None and limit < 1:
        raise BadInput(f"{name}: flush_timeout is {limit} and must be at least 1 second; remove it for no limit.", item=name)
    size, share = read_size(item.get("size"), name)
    return {
        "name": name,
        "origin": item["origin"],
        "cache_devices": read_cache_devices(item, name, required=state == "present"),
        "mirror": bool(item.get("mirror")),
        "size": size,
        "share": share,
        "chunk_size": parse_size(item["chunk_size"], name, "chunk_size") if item.get("chunk_size") is not None else None,
        "state": state,
        "expect": tuple(item.get("expect") or ()),
        "release_devices": bool(item.get("release_devices")),
        "allow_unmirrored_writeback": bool(item.get("allow_unmirrored_writeback")),
        "flush_timeout": limit,
    }


def read_mode(item: t.Mapping[str, t.Any], modes: t.Sequence[str], label: str) -> str:
    """The mode, of which the first is the default.

    :param label: how messages call the type or kind.
    :raises BadInput: naming the modes.
    """
    name, mode = item["name"], item.get("mode") or modes[0]
    if mode not in modes:
        raise BadInput(f"{name}: mode {mode} is not supported for {label}; set mode: {' or '.join(modes)}.", item=name)
    return mode


def mode_of_settings(state: str, mode: str) -> str:
    """The mode whose settings are accepted: none in particular for a cache that is flushed or removed, which gets no settings."""
    return mode if state == "present" else ""


def require_whole_device(fields: t.Mapping[str, t.Any], label: str) -> None:
    """Refuse a size where a type takes the whole cache device; a share of all of it is equivalent.

    :param fields: what :func:`read_common` has read.
    :raises BadInput: naming another way to a smaller cache.
    """
    name = fields["name"]
    if fields["size"] is not None or fields["share"] != 1.0:
        raise BadInput(f"{name}: size is not supported for {label}, which uses the whole cache device; remove it, or name a smaller partition.", item=name)


def read_cache_devices(item: t.Mapping[str, t.Any], name: str, *, required: bool) -> tuple[str, ...]:
    """The fast devices: one, or the two of a mirror.

    :raises BadInput: naming what is missing.
    """
    devices = tuple(item.get("cache_devices") or ())
    for path in devices:
        if not path.startswith("/dev/"):
            raise BadInput(f"{name}: the cache device '{path}' is not a path below /dev: use for example /dev/disk/by-id/nvme-SERIAL.", item=name)
    if not required:
        return devices
    if not devices:
        raise BadInput(f"{name}: cache_devices is empty: name the fast device, for example /dev/disk/by-id/nvme-SERIAL.", item=name)
    if len(set(devices)) < len(devices):
        raise BadInput(f"{name}: cache_devices names {devices[0]} twice.", item=name)
    if item.get("mirror") and len(devices) != 2:
        raise BadInput(f"{name}: a mirror needs two cache devices, and cache_devices names {len(devices)}.", item=name)
    if not item.get("mirror") and len(devices) > 1:
        raise BadInput(f"{name}: cache_devices names {len(devices)} devices: set mirror: true to keep the cache on both, or name one.", item=name)
    return devices


def read_size(value: t.Any, item: str) -> tuple[int | None, float]:
    """A size in bytes, or None and the share of what is free.

    :raises BadInput: if it is neither.
    """
    if value is None:
        return None, 1.0
    match = _SHARE.match(str(value))
    if not match:
        size = parse_size(value, item, "size")
        if size <= 0:
            raise BadInput(f"{item}: size is {value}: use a size above zero, a share such as 50%, or leave it out for all that is free.", item=item)
        return size, 1.0
    share = float(match.group(1)) / 100
    if not 0 < share <= 1:
        raise BadInput(f"{item}: size is {value}: a share of the free space is above 0% and at most 100%.", item=item)
    return None, share


def require_unique(wanted: t.Iterable[CacheSpec], attributes: t.Sequence[str] = ("name", "origin")) -> None:
    """Refuse a list in which two caches are the same.

    :raises BadInput: naming what stands in it twice.
    """
    wanted = list(wanted)
    for attribute in attributes:
        seen: set[str] = set()
        for cache in wanted:
            value = getattr(cache, attribute)
            if value in seen:
                raise BadInput(f"Two caches have the {attribute} {value}: each {attribute} may be listed only once.", item=cache.name)
            seen.add(value)
