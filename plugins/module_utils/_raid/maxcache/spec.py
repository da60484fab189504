# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What users request for the SSD cache inside a controller: from module parameters to plain specifications.

A list of controllers with both is divided into policies, SSD caches that are removed, and the others: SSD caches are removed before
policies are set and created after it, since many controllers cache a volume either in their own memory or on SSDs.
"""

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
    Options,
    parse_item,
    parse_selection,
    plain_address,
    tool_path_alone,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.tools import MAXCACHE_TOOL, TOOLS

PRESENT, ABSENT = "present", "absent"
#: A cache volume of one SSD.
SIMPLE = "simple"

#: Options of a cache volume, a volume and a controller, as the module takes them.
CACHE_VOLUME: Options = {
    "state": {"type": "str", "default": "present", "choices": ["present", "absent"]},
    "drives": {"type": "list", "elements": "str", "default": []},
    "raid_level": {"type": "str", "choices": ["simple", "0", "1", "1E", "5", "10"]},
    "size": {"type": "str", "default": "max"},
    "data_volume": {"type": "str"},
    "line_size": {"type": "int", "choices": [64, 256]},
    "write": {"type": "str", "choices": ["writethrough", "writeback"]},
}
VOLUME: Options = {
    **VOLUME_OPTIONS,
    "read": {"type": "bool"},
    "write": {"type": "str", "choices": ["disabled", "writethrough", "writeback", "instant_writeback"]},
    "allow_unprotected": {"type": "bool", "default": False},
}
CONTROLLER: Options = {
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


def parse_controllers(controllers: t.Sequence[Options]) -> list[MaxCacheSpec]:
    """The parameter ``controllers`` of the module ``raid_maxcache``.

    :raises BadInput: for an entry that contradicts itself, or names a tool without maxCache.
    """
    return [_parse_controller(entry) for entry in controllers]


def _parse_controller(entry: Options) -> MaxCacheSpec:
    provider = entry.get("provider") or AUTO
    label = f"controller {entry.get('serial') or entry.get('id') or ALL} (provider {provider})"
    if provider not in (AUTO, MAXCACHE_TOOL):
        reason = TOOLS[provider].without_maxcache
        raise BadInput(f"{label}: {provider} cannot do anything about maxCache: {reason}. Set provider: {MAXCACHE_TOOL}.", item=label)
    if provider == AUTO and entry.get("tool_path"):
        raise BadInput(tool_path_alone(entry["tool_path"], MAXCACHE_TOOL), item=label)
    timeout = entry.get("flush_timeout")
    if timeout is not None and timeout <= 0:
        raise BadInput(f"{label}: flush_timeout must be a positive number of seconds, not {timeout}; remove it for no limit.", item=label)
    settings: dict[str, t.Any] = {name: entry[name] for name in ("flush_and_fetch_rate", "dirty_page_threshold") if entry.get(name) is not None}
    balance = entry.get("read_write_balance")
    if balance:
        settings["read_write_balance"] = (balance["read"], balance["write"])
    return MaxCacheSpec(
        **parse_selection(entry),
        settings=settings,
        volumes=tuple(parse_item(one, VOLUME_OPTIONS, ("read", "write"), f"{label}: a volume", ".", label) for one in entry.get("volumes") or ()),
        cache_volumes=tuple(_parse_cache_volume(one, label) for one in entry.get("cache_volumes") or ()),
        pool_drives=_addresses(entry.get("pool_drives") or (), f"{label}: pool_drives"),
        flush_timeout=timeout,
    )


def _parse_cache_volume(entry: Options, label: str) -> CacheVolumeSpec:
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


Entry = t.Dict[str, t.Any]

_WHO = ("provider", "tool_path", "id", "serial")
#: What names a volume. Its allow_unprotected is about power cuts and is no permission to lose data with an SSD: maxcache has its own.
_WHICH = ("id", "name", "wwn")


def policies(controllers: t.Sequence[Options]) -> list[Entry]:
    """What ``raid_cache`` gets: every controller, without SSD caches."""
    return [policies_of(one) for one in controllers]


def ssd_caches(controllers: t.Sequence[Options], *, removed: bool) -> list[Entry]:
    """What ``raid_maxcache`` gets.

    :param removed: what is removed before policies are set, or what is created and set afterwards.
    :raises BadInput: for a cache volume that is in both.
    """
    take = removed_of if removed else kept_of
    entries = [entry for one in controllers for entry in [ssd_cache_of(one)] if entry]
    return [entry for one in entries for entry in [take(one)] if entry]


def policies_of(controller: Options) -> Entry:
    """The entry for ``raid_cache``.

    :raises BadInput: for volumes that are no list of dictionaries.
    """
    volumes = [{name: value for name, value in volume.items() if name != "maxcache"} for volume in _entries(controller, "volumes")]
    return {**{name: value for name, value in controller.items() if name != "maxcache"}, **({"volumes": volumes} if volumes else {})}


def ssd_cache_of(controller: Options) -> Entry | None:
    """The entry for ``raid_maxcache``; ``None`` if the entry has no SSD cache.

    :raises BadInput: for volumes that are no list of dictionaries, and for a ``maxcache`` that is no dictionary.
    """
    volumes = [
        {**{name: volume[name] for name in _WHICH if name in volume}, **_maxcache_of(volume, "read: true, write: writethrough")}
        for volume in _entries(controller, "volumes")
        if volume.get("maxcache")
    ]
    own = _maxcache_of(controller, "flush_and_fetch_rate: 200")
    if not volumes and not own:
        return None
    return {**{name: controller[name] for name in _WHO if controller.get(name) is not None}, **own, "volumes": volumes}


def removed_of(entry: Options) -> Entry | None:
    """Only what takes an SSD cache away: that has to come before controller caching can be switched on for its volumes."""
    absent = [one for one in _entries(entry, "cache_volumes") if one.get("state") == "absent"]
    if not absent:
        return None
    kept = {str(one.get("data_volume") or "") for one in entry["cache_volumes"] if one.get("state") != "absent"}
    if kept & {str(one.get("data_volume") or "") for one in absent}:
        # Split between two calls, this would be deleted and made anew in every run.
        raise BadInput("cache_volumes has one cache volume twice, once with state: absent: list it once.")
    # The pool that should have SSDs cannot be absent: the module reports that if it is given both.
    return {**{name: entry[name] for name in (*_WHO, "flush_timeout", "pool_drives") if entry.get(name)}, "cache_volumes": absent}


def kept_of(entry: Options) -> Entry | None:
    """The rest: what should go was taken away before, and would be reported twice in check mode."""
    kept_volumes = [one for one in _entries(entry, "cache_volumes") if one.get("state") != "absent"]
    kept = {**{name: value for name, value in entry.items() if name != "cache_volumes"}, **({"cache_volumes": kept_volumes} if kept_volumes else {})}
    return kept if kept["volumes"] or set(kept) - {*_WHO, "volumes", "flush_timeout", "allow_unprotected"} else None


def _entries(entry: Options, name: str) -> t.Sequence[Options]:
    """A list of what is divided; the modules check it only afterwards."""
    entries = entry.get(name) or []
    if not isinstance(entries, (list, tuple)) or not all(isinstance(one, t.Mapping) for one in entries):
        example = {"volumes": "{id: 0, write: writethrough}", "cache_volumes": '{drives: ["0,1"]}'}[name]
        raise BadInput(f"controllers: {name} must be a list of dictionaries: for example {name}: [{example}].", item=name)
    return entries


def _maxcache_of(entry: Options, example: str) -> Entry:
    found = entry.get("maxcache") or {}
    if not isinstance(found, t.Mapping):
        raise BadInput(f"controllers: maxcache must be a dictionary: for example maxcache: {{{example}}}.", item="maxcache")
    return dict(found)
