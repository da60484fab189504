# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What users request for the SSD cache inside a controller: from module parameters to plain specifications."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import parse_size
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import (
    ALL,
    AUTO,
    CONTROLLER_OPTIONS,
    VOLUME_OPTIONS,
    ControllerSpec,
    ItemSpec,
    plain_address,
)

PRESENT, ABSENT = "present", "absent"
#: A cache volume of one SSD.
SIMPLE = "simple"
#: How writes of a volume may go to the SSDs; ``disabled``: not at all.
WRITE_DISABLED = "disabled"

#: Why a tool that users may expect is not supported here.
WITHOUT_MAXCACHE: t.Mapping[str, str] = {
    **dict.fromkeys(("storcli", "perccli"), "its controllers have no maxCache; their own SSD cache (CacheCade) is not managed here"),
    **dict.fromkeys(("storcli2", "perccli2"), "its controllers have no SSD cache at all"),
    "ssacli": "it has no word for maxCache, and the SSD cache of HPE Smart Array is not managed here; a Microchip card is managed with arcconf",
}
#: Options of a cache volume, a volume and a controller, as the module takes them.
CACHE_VOLUME: t.Mapping[str, t.Any] = {
    "state": {"type": "str", "default": "present", "choices": ["present", "absent"]},
    "drives": {"type": "list", "elements": "str", "default": []},
    "raid_level": {"type": "str", "choices": ["simple", "0", "1", "1E", "5", "10"]},
    "size": {"type": "str", "default": "max"},
    "data_volume": {"type": "str"},
    "line_size": {"type": "int", "choices": [64, 256]},
    "write": {"type": "str", "choices": ["writethrough", "writeback"]},
}
VOLUME: t.Mapping[str, t.Any] = {
    **VOLUME_OPTIONS,
    "read": {"type": "bool"},
    "write": {"type": "str", "choices": ["disabled", "writethrough", "writeback", "instant_writeback"]},
    "allow_unprotected": {"type": "bool", "default": False},
}
CONTROLLER: t.Mapping[str, t.Any] = {
    **CONTROLLER_OPTIONS,
    "cache_volumes": {"type": "list", "elements": "dict", "default": [], "options": CACHE_VOLUME},
    "pool_drives": {"type": "list", "elements": "str", "default": []},
    "flush_and_fetch_rate": {"type": "int"},
    "dirty_page_threshold": {"type": "int"},
    "read_write_balance": {"type": "dict", "options": {"read": {"type": "int", "required": True}, "write": {"type": "int", "required": True}}},
    "volumes": {"type": "list", "elements": "dict", "default": [], "options": VOLUME},
    "flush_timeout": {"type": "int"},
    "allow_unprotected": {"type": "bool", "default": False},
}


@frozen
class CacheVolumeSpec:
    """One cache volume.

    :param drives: addresses of its SSDs, each written as the tool prints it (``0,4``).
    :param raid_level: ``simple``, ``0``, ``1``, ``1E``, ``5`` or ``10``; ``None`` only for one that should be absent.
    :param size: bytes; ``None`` takes all of the SSDs.
    :param data_volume: id or name of the volume it caches, for controllers where a cache volume belongs to one volume.
    :param line_size: KiB; ``None`` leaves it to the controller.
    :param write: the write policy of that volume; ``None`` if it is not given here.
    """

    state: str = PRESENT
    drives: tuple[str, ...] = ()
    raid_level: str | None = None
    size: int | None = None
    data_volume: str | None = None
    line_size: int | None = None
    write: str | None = None

    @property
    def present(self) -> bool:
        return self.state == PRESENT


@frozen
class MaxCacheSpec(ControllerSpec):
    """Everything specified for the SSD caches of the controllers that one list entry names.

    ``settings`` are those of the whole cache: ``flush_and_fetch_rate``, ``dirty_page_threshold`` and ``read_write_balance`` (a pair).

    :param pool_drives: the SSDs that should be in the pool (maxCache 1 and 2); empty leaves the pool as it is.
    :param flush_timeout: seconds that waiting for a clean cache may take; ``None`` sets no limit.
    """

    cache_volumes: tuple[CacheVolumeSpec, ...] = ()
    pool_drives: tuple[str, ...] = ()
    flush_timeout: int | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing is specified."""
        return not (self.settings or self.volumes or self.cache_volumes or self.pool_drives)

    @property
    def named(self) -> bool:
        """Whether one controller is selected, and not all of them."""
        return self.id != ALL or self.serial is not None


def parse_controllers(controllers: t.Sequence[t.Mapping[str, t.Any]]) -> list[MaxCacheSpec]:
    """The parameter ``controllers`` of the module ``raid_maxcache``.

    :raises BadInput: for an entry that contradicts itself, or names a tool without maxCache.
    """
    return [_parse_controller(entry) for entry in controllers]


def _parse_controller(entry: t.Mapping[str, t.Any]) -> MaxCacheSpec:
    provider = entry.get("provider") or AUTO
    label = f"controller {entry.get('serial') or entry.get('id') or ALL} (provider {provider})"
    if provider in WITHOUT_MAXCACHE:
        raise BadInput(f"{label}: {provider} cannot do anything about maxCache: {WITHOUT_MAXCACHE[provider]}. Set provider: arcconf.", item=label)
    if provider == AUTO and entry.get("tool_path"):
        raise BadInput(f"tool_path {entry['tool_path']} requires provider: set provider: arcconf beside it.", item=label)
    timeout = entry.get("flush_timeout")
    if timeout is not None and timeout <= 0:
        raise BadInput(f"{label}: flush_timeout must be a positive number of seconds, not {timeout}; remove it for no limit.", item=label)
    settings: dict[str, t.Any] = {name: entry[name] for name in ("flush_and_fetch_rate", "dirty_page_threshold") if entry.get(name) is not None}
    balance = entry.get("read_write_balance")
    if balance:
        settings["read_write_balance"] = (balance["read"], balance["write"])
    return MaxCacheSpec(
        provider=provider,
        tool_path=entry.get("tool_path"),
        id=str(entry["id"]) if entry.get("id") is not None else ALL,
        serial=entry.get("serial"),
        settings=settings,
        volumes=tuple(_parse_volume(one, label) for one in entry.get("volumes") or ()),
        allow_unprotected=bool(entry.get("allow_unprotected")),
        cache_volumes=tuple(_parse_cache_volume(one, label) for one in entry.get("cache_volumes") or ()),
        pool_drives=_addresses(entry.get("pool_drives") or (), f"{label}: pool_drives"),
        flush_timeout=timeout,
    )


def _parse_volume(entry: t.Mapping[str, t.Any], label: str) -> ItemSpec:
    given = [key for key in ("id", "name", "wwn") if entry.get(key) is not None]
    if len(given) != 1:
        raise BadInput(f"{label}: a volume is named by exactly one of id, name, wwn; this one has {' and '.join(given) or 'none'}.", item=label)
    return ItemSpec(
        by=given[0],
        value=str(entry[given[0]]),
        settings={name: entry[name] for name in ("read", "write") if entry.get(name) is not None},
        allow_unprotected=bool(entry.get("allow_unprotected")),
    )


def _parse_cache_volume(entry: t.Mapping[str, t.Any], label: str) -> CacheVolumeSpec:
    where = f"{label}: cache volume" + (f" of {entry['data_volume']}" if entry.get("data_volume") else "")
    spec = CacheVolumeSpec(
        state=entry.get("state") or PRESENT,
        drives=_addresses(entry.get("drives") or (), where),
        raid_level=entry.get("raid_level"),
        size=None if str(entry.get("size") or "max").lower() == "max" else parse_size(entry["size"], item=where),
        data_volume=entry.get("data_volume"),
        line_size=entry.get("line_size"),
        write=entry.get("write"),
    )
    if spec.present:
        _check_level(spec, where)
    return spec


#: SSDs that each RAID level takes: at least, at most.
_DRIVES: t.Mapping[str, tuple[int, t.Optional[int]]] = {SIMPLE: (1, 1), "0": (1, None), "1": (2, 2), "1E": (3, None), "5": (3, None), "10": (4, None)}


def _check_level(spec: CacheVolumeSpec, where: str) -> None:
    if not spec.drives or spec.raid_level is None:
        raise BadInput(f"{where}: drives and raid_level are required, except with state: absent.", item=where)
    low, high = _DRIVES[spec.raid_level]
    count = len(spec.drives)
    if count < low or (high is not None and count > high) or (spec.raid_level == "10" and count % 2):
        takes = f"exactly {low}" if high == low else f"an even number of at least {low}" if spec.raid_level == "10" else f"at least {low}"
        raise BadInput(f"{where}: raid_level {spec.raid_level} needs {takes} SSDs, and drives has {count}.", item=where)


def _addresses(drives: t.Sequence[str], where: str) -> tuple[str, ...]:
    found = tuple(plain_address(str(drive)) for drive in drives)
    for address in found:
        if not all(word.isdigit() for word in address.split(",")) or address.count(",") != 1:
            raise BadInput(f"{where}: invalid drive address '{address}': use channel and device as arcconf reports them, for example \"0,4\".", item=where)
        if found.count(address) > 1:
            raise BadInput(f"{where}: drive {address} is there twice.", item=where)
    return found
