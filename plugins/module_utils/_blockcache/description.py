# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""An SSD cache that is there as an entry of ``block_cache_caches``: what is the same for every type."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import UNMIRRORED
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.settings import DEFAULT, FLAG, SIZE, Setting, Vocabulary
from ansible_collections.cachefleet.storage.plugins.module_utils._core.description import Candidate, Extras, Permission, Values, exact_size

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices

_UNMIRRORED = Permission("allow_unmirrored_writeback", "It writes back to a cache device that is not mirrored: the newest data is lost with that device.")
IGNORED_FLUSHES = Permission(
    "allow_ignored_flushes", "It passes no flushes down, and a cache below it may be volatile: synced data may be lost in a power failure."
)


def candidate_of(
    cache: CacheState,
    devices: Devices,
    fields: Values,
    vocabulary: Vocabulary,
    *,
    alternatives: t.Sequence[Values] = ({},),
    permissions: tuple[Permission, ...] = (),
    kept: t.Sequence[str] = (),
    every: bool = False,
) -> Candidate:
    """A cache and the ways to write it.

    :param fields: ``name`` and ``origin`` and what else the type needs.
    :param alternatives: further fields, the preferred ones first.
    :param kept: settings that the host keeps for the cache, in its order.
    :param every: settings that have their default are written too.
    """
    first = {"name": fields["name"], "type": cache.type, "origin": fields["origin"]}
    rest = {**{key: value for key, value in fields.items() if key not in first}, "mode": cache.mode}
    forms = tuple({**first, **places, **rest, **more} for places in _places(cache, devices) for more in alternatives)
    # Leaving it as it is may need no permission, and making it so again does.
    required = (_UNMIRRORED,) if cache.mode == "writeback" and cache.redundancy == UNMIRRORED else ()
    extras, optional = _extras(cache, vocabulary, kept, every)
    obstacle = f"it {cache.layout}, and this collection makes caches on one device, or on a mirror of two." if cache.layout else ""
    return Candidate(f"The {cache.type} {cache.name}", forms, extras, optional, required=required, permissions=permissions, obstacle=obstacle)


def _places(cache: CacheState, devices: Devices) -> list[Values]:
    """What a cache lies on: two devices with a mirror of this collection, or by LVM, on them; or the device itself."""
    found: list[Values] = []
    for name in cache.cache_device_names[:1]:
        device = devices.get(name)
        members = [devices.get(member) for member in device.slaves] if device is not None and device.kind == "md" else []
        paths = [member.stable_path for member in members if member is not None]
        if len(paths) == 2 and all(paths):
            found.append({"cache_devices": sorted(str(path) for path in paths), "mirror": True})
    mirrored = {"mirror": True} if len(cache.cache_devices) > 1 else {}
    return [*found, {"cache_devices": list(cache.cache_devices), **mirrored}]


def _extras(cache: CacheState, vocabulary: Vocabulary, kept: t.Sequence[str], every: bool) -> tuple[tuple[Extras, ...], list[tuple[str, ...]]]:
    """The sets of settings to try, and those whose default depends on the host."""
    shown = {key: value for key, value in cache.settings.items() if value is not None and key in vocabulary.settings}
    known = {key: vocabulary.settings[key] for key in shown if vocabulary.settings[key].exists_in(cache.mode or "")}
    changed = [key for key, setting in known.items() if setting.default is not None and shown[key] != setting.default]
    by_host = [key for key, setting in known.items() if setting.default is None]
    written = {("settings", key): _as_written(setting, shown[key]) for key, setting in known.items()}
    usual = {("settings", key): DEFAULT for key in known if key not in (*changed, *by_host)}
    some = _picked(written, [*kept, *changed, *by_host])
    sets = [some, _picked(written, [*kept, *changed]), _picked(written, kept)]
    if not every:
        return tuple(sets), [("settings", key) for key in by_host]
    # A setting that was never made may be stored as such: it is the default, and not the number that the default is.
    unshown = {key: setting for key, setting in vocabulary.settings.items() if key not in cache.settings and not setting.stored}
    unset = {("settings", key): DEFAULT for key, setting in unshown.items() if setting.exists_in(cache.mode or "")}
    return ({**written, **unset}, {**some, **usual, **unset}, written, {**some, **usual}, *sets), list(unset)


def _picked(written: Extras, keys: t.Sequence[str]) -> Extras:
    return {("settings", key): written["settings", key] for key in dict.fromkeys(keys) if ("settings", key) in written}


def _as_written(setting: Setting, value: t.Any) -> t.Any:
    if setting.kind == FLAG:
        return bool(value)
    return exact_size(value) if setting.kind == SIZE and not setting.choices else value
