# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""maxCache as arcconf's GETCONFIG reports it, in its three generations; pure.

The labels begin with maxCache, in three spellings, and in the oldest builds with MaxIQ.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf import words
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.drives import Places, members_of, segments_of
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.lines import Block, Line
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.values import Values, number_in, raid_level, state_word
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    DISABLED,
    ENABLED,
    UNKNOWN,
    CacheVolume,
    Drive,
    MaxCache,
    Policy,
    VolumeMaxCache,
)

#: Ends of the labels.
_LABEL = re.compile(r"(?:maxcache|maxiq) (.*)")
#: What stands in place of the cache volumes if there is none, as the texts inside the builds have it.
_NONE = re.compile(r"no (?:maxcache|maxiq)\b.* (?:found|created)")
#: Where they are among the lines about a controller: builds moved them below the headings of its RAID and its cache.
_OF_CONTROLLER = ("", "raid", "cache")


class SsdCache:
    """Reads what one GETCONFIG reports about maxCache.

    :param main: the section about the controller.
    :param sections: names of the sections of the output.
    """

    def __init__(self, main: Block, blocks: t.Sequence[Block], sections: t.Container[str], generation: str, values: Values) -> None:
        self.main = main
        self.blocks = blocks
        self.sections = sections
        self.generation = generation
        self.values = values
        self._policies: dict[str, str] = {}

    def volumes(self, blocks: t.Sequence[Block], places: Places) -> list[CacheVolume]:
        """The cache volumes (maxCache 3.0: the one of the controller; maxCache 4: one per cached volume)."""
        return [self._cache_volume(block, places) for block in blocks]

    def _cache_volume(self, block: Block, places: Places) -> CacheVolume:
        lines = _lines(block.lines)
        values = self.values
        number = block.number or UNKNOWN
        status_line = lines.get("write policy status")
        reported = status_line is not None and status_line.value.lower() in words.MAXCACHE_POLICY
        policy = values.word(lines.get("write cache policy", lines.get("write policy", status_line if reported else None)), words.MAXCACHE_POLICY)
        self._policies[number] = policy
        status = values.switch(lines.get("write cache status", None if reported else status_line))
        write = Policy(values.switch(lines.get("write cache setting")), status)
        data = number_in(block.value("associated logical device id", "associated logical device", "data logical device id"))
        if data is not None and policy != UNKNOWN:
            # maxCache 4 has no other switch for writes than the policy.
            requested = DISABLED if policy == "writethrough" else ENABLED
            write = Policy(requested, requested if status == UNKNOWN else status)
        state = block.value("maxcache state") or ""
        dirty = words.DIRTINESS.get(state.lower()) or values.word(lines.get("dirty status"), words.DIRTINESS)
        # The same label reports dirty blocks or the state, depending on its value.
        other = None if dirty != UNKNOWN else state
        return CacheVolume(
            id=number,
            name=block.value("maxcache device name", "maxcache logical device name", "logical device name", "device name"),
            raid_level=raid_level(block.value("raid level")),
            status=state_word(block.value("status of maxcache", "status of maxcache device", "status of logical device") or other),
            size=values.size(block.find("size")),
            dirty=dirty,
            write=write,
            members=members_of(segments_of(block), places)[0],
            data_volume=None if data is None else str(data),
        )

    def of_volume(self, block: Block, acceleration: str, cache_volumes: t.Sequence[CacheVolume]) -> VolumeMaxCache | None:
        """How one volume uses it; ``None`` if not reported."""
        own = next((volume for volume in cache_volumes if volume.data_volume is not None and volume.data_volume == block.number), None)
        if own is not None:
            return VolumeMaxCache(
                read=Policy(ENABLED, ENABLED if acceleration == "maxcache" else UNKNOWN),
                write=own.write,
                write_policy=self._policies.get(own.id, UNKNOWN),
                dirty=own.dirty,
                cache_volume=own.id,
            )
        lines = _lines(block.lines)
        if not lines:
            return None
        switch = self.values.switch
        preferred = lines.get("preferred read cache setting", lines.get("preferred cache setting"))
        setting = lines.get("read cache setting", lines.get("cache setting"))
        status = lines.get("read cache status")
        # Where there is no status, the older builds print what was requested as preferred, and what is as setting.
        read = Policy(switch(setting), switch(status)) if status is not None or preferred is None else Policy(switch(preferred), switch(setting))
        return VolumeMaxCache(
            read=read,
            write=Policy(switch(lines.get("write cache setting")), switch(lines.get("write cache status"))),
            write_policy=self.values.word(lines.get("write cache policy"), words.MAXCACHE_POLICY),
            dirty=self.values.word(lines.get("status", lines.get("dirty status")), words.DIRTINESS),
        )

    def whole(self, cache_volumes: t.Sequence[CacheVolume], drives: t.Sequence[Drive]) -> MaxCache | None:
        """The maxCache of the controller; ``None`` if it reports none."""
        own = [line for line in self.main.lines if line.part in _OF_CONTROLLER]
        lines = _lines(own)
        pool = [line for line in own if re.search(r"max(?:cache|iq).* pool$", line.label)]
        assigned = next((line for line in pool if line.label.startswith("ssds assigned")), None)
        limit = next((line for line in pool if line.label.startswith("maximum ssds")), None)
        generation = self._generation(lines, cache_volumes, limit)
        if generation is None:
            return None
        number = self.values.number
        count = 0 if assigned is None and not cache_volumes and self._says_none() else number(assigned)
        return MaxCache(
            generation=generation,
            volumes=tuple(cache_volumes),
            pool=tuple(drive.address for drive in drives if drive.usage == "cache") if generation == "pool" else (),
            assigned=count,
            limit=number(limit),
            flush_and_fetch_rate=number(lines.get("flush and fetch rate", lines.get("fetch rate", lines.get("cache fetch rate")))),
            dirty_page_threshold=number(lines.get("dirty page threshold")),
            read_write_balance=self.values.pair(lines.get("read, write balance factor", lines.get("cache read, write balance factor"))),
        )

    def _says_none(self) -> bool:
        """Whether the section about the container reports that there is none (``No maxCache 3.0 found``)."""
        free = (text for block in self.blocks if block.kind in ("maxcache", "maxcache3") for unused, text in block.free)
        return any(_NONE.match(text) for text in free)

    def _generation(self, lines: t.Mapping[str, Line], cache_volumes: t.Sequence[CacheVolume], limit: Line | None) -> str | None:
        version = lines.get("version")
        if "maxcache3" in self.sections or any(block.kind == "maxcache3" for block in self.blocks):
            return "container"
        if self.generation == words.SMART:
            reported = version is not None and version.value.lower() not in words.NO_VALUE
            return "smart" if reported or cache_volumes or "maxcache" in self.sections else None
        if limit is not None:
            return "pool"
        if "maxcache" in self.sections or cache_volumes or lines.keys() & {"flush and fetch rate", "dirty page threshold"}:
            return "container"
        return None


def _lines(lines: t.Iterable[Line]) -> dict[str, Line]:
    """The lines of maxCache by what follows its name."""
    found: dict[str, Line] = {}
    for line in lines:
        match = _LABEL.fullmatch(line.label)
        if match and line.part in _OF_CONTROLLER:
            found.setdefault(match.group(1), line)
    return found
