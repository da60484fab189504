# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of LVM caches: which are in effect, and the steps to others. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_settings import (
    BLOCK_SIZE,
    METADATA_ONLY,
    MIGRATION_THRESHOLD,
    PAUSE_WRITEBACK,
    WRITECACHE,
    effective_migration_threshold,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.operations import CachedVolume, Refresh, SetSetting, SetSettings
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import CLEANER, LAYER
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.settings import require_order
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation, Step

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.report import LogicalVolume
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import LvmCacheSpec
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import LvmState

#: Settings of a writecache that not every LVM supports that supports the others (2.03.16 does not).
_NEWER = (PAUSE_WRITEBACK, METADATA_ONLY)
#: What LVM has stored and leaves out of a table.
_LEFT_OUT = {METADATA_ONLY: "0"}


def setting_steps(state: LvmState, spec: LvmCacheSpec, cached: LogicalVolume) -> list[Step]:
    """The steps to the wanted settings of a cache that is attached; what is not named is left as it is.

    :raises BadInput: if they contradict what is left.
    """
    if cached.writecache:
        return _writecache_steps(state, spec, cached)
    return [_cache_step(spec, cached, key, value) for key, value in spec.settings.items() if not _has_setting(cached, key, value)]


def settings_at_attach(spec: LvmCacheSpec) -> dict[str, int]:
    """What is set when the cache is attached. A setting that this LVM may not support is set afterwards, when nothing else can fail.

    :raises BadInput: if they contradict each other.
    """
    settings = {key: value for key, value in spec.settings.items() if value is not None and key not in _NEWER}
    if spec.kind == "writecache":
        require_order(WRITECACHE, settings, spec.name)
    return settings


def steps_after_attach(spec: LvmCacheSpec) -> list[Step]:
    """The settings that :func:`settings_at_attach` leaves out."""
    newer = {key: spec.settings[key] for key in _NEWER if spec.settings.get(key) is not None}
    return [_step_of_writecache(spec, {}, newer, {})] if spec.kind == "writecache" and newer else []


def _cache_step(spec: LvmCacheSpec, cached: LogicalVolume, key: str, value: int | None) -> Step:
    before = (cached.settings or {}).get(key)
    text = "default" if value is None else str(value)
    action = f"Set {key} of the cache of {spec.origin} to {text}"
    number = int(before) if before and before.isdigit() else before
    return _step(spec, f"settings.{key}", number, value, action, SetSetting(CachedVolume.of(spec), key, text))


def _writecache_steps(state: LvmState, spec: LvmCacheSpec, cached: LogicalVolume) -> list[Step]:
    stored = {key: value for key, value in (cached.settings or {}).items() if key != CLEANER}
    requested = {key: value for key, value in spec.settings.items() if key != BLOCK_SIZE}
    changed = {key: value for key, value in requested.items() if stored.get(key) != (None if value is None else str(value))}
    if changed:
        kept = {key: value for key, value in stored.items() if key not in changed}
        numbers = {key: int(value) for key, value in kept.items() if value.isdigit()}
        require_order(WRITECACHE, {**numbers, **changed}, spec.name)
        return [_step_of_writecache(spec, {key: _number(stored.get(key)) for key in changed}, changed, kept)]
    table = state.tables.get(cached.full_name)
    if table is not None and any(table.settings.get(key, _LEFT_OUT.get(key)) != value for key, value in stored.items()):
        # LVM writes its metadata first, and was killed before it loaded them.
        action = f"Load the settings of the writecache of {spec.origin} again, as LVM has them"
        return [_step(spec, "settings", dict(table.settings), stored, action, Refresh(CachedVolume.of(spec), None))]
    return []


def _step_of_writecache(spec: LvmCacheSpec, before: t.Mapping[str, t.Any], changed: t.Mapping[str, int | None], kept: t.Mapping[str, str]) -> Step:
    texts = {key: "default" if value is None else str(value) for key, value in changed.items()}
    action = f"Set {' and '.join(f'{key} to {text}' for key, text in texts.items())} of the writecache of {spec.origin}"
    reset = tuple(key for key, value in changed.items() if value is None)
    values = {key: str(value) for key, value in changed.items() if value is not None}
    # One command for all: high and low watermark one after the other may pass through a state that the kernel refuses.
    return _step(spec, "settings", dict(before), dict(changed), action, SetSettings(CachedVolume.of(spec), values, reset, dict(kept)))


def _has_setting(cached: LogicalVolume, key: str, value: int | None) -> bool:
    """Whether LVM has stored a setting and the kernel uses it; the kernel never goes below eight chunks."""
    stored = (cached.settings or {}).get(key)
    if value is None or stored is None:
        return value is None and stored is None
    used = (cached.kernel_settings or {}).get(key)
    if key != MIGRATION_THRESHOLD:
        return stored == str(value) and used in (None, stored)
    requested = effective_migration_threshold(value, cached.chunk_size or 0)
    return effective_migration_threshold(int(stored), cached.chunk_size or 0) == requested and (used is None or int(used) == requested)


def _number(text: str | None) -> int | str | None:
    return int(text) if text and text.isdigit() else text


def _step(spec: LvmCacheSpec, attribute: str, before: t.Any, after: t.Any, action: str, operation: Operation) -> Step:
    return Step(LAYER, spec.name, attribute, before, after, action, operation)
