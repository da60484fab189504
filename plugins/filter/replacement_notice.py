# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that reports the effects of changing a cache device, before anything is done."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import type_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size, parse_size
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import estimate, share


def replacement_notice(caches: t.Any, drain: t.Any, old: str, drain_rate: t.Any) -> list[str]:
    try:
        assumed = parse_size(drain_rate)
    except BadInput as error:
        raise AnsibleFilterError(f"replacement_notice: {error.message}") from None
    if assumed <= 0:
        raise AnsibleFilterError("replacement_notice: the drain rate must be greater than 0; set the bytes per second that the slow devices accept.")
    falling = {(row["type"], row["name"]): row.get("bytes_per_second") for row in drain}
    lines = [line for cache in caches for line in _about_cache(cache, falling.get((cache["type"], cache["name"])), assumed)]
    if not lines:
        return [f"No cache is attached that {plain(old)} belongs to: an earlier run has detached it, or it was never made. What follows is the new device."]
    stay = "" if any(not type_of(cache["type"]).removed_in_use for cache in caches) else " The volumes stay in use all the time."
    return [*lines, f"Then {plain(old)} may be pulled.{stay}"]


def _about_cache(cache: t.Mapping[str, t.Any], measured: float | None, assumed: int) -> list[str]:
    name, origin = plain(cache["name"]), plain(cache.get("origin") or "its origin")
    lines = [f"{name} ({cache['type']}, {cache.get('mode') or 'mode not known'}): {_to_flush(cache, measured, assumed)}"]
    ratio = cache.get("hit_ratio")
    served = f"; {share(ratio)} of the requests were served by the cache so far" if isinstance(ratio, (int, float)) else ""
    lines.append(f"{name}: from the flush on until the new device is attached, everything goes at the speed of {origin}{served}.")
    if not type_of(cache["type"]).removed_in_use:
        lines.append(f"{name}: a {cache['type']} in use cannot be removed: unmount {plain(cache.get('device') or name)} before the flush has ended.")
    if cache.get("state") != "ok":
        lines.append(f"{name}: {plain(cache.get('problem') or cache.get('state'), longest=400)}")
    return lines


def _to_flush(cache: t.Mapping[str, t.Any], measured: float | None, assumed: int) -> str:
    dirty = cache.get("dirty")
    if dirty is None:
        return "the number of dirty bytes could not be read."
    if not dirty:
        return "nothing is dirty."
    if measured and measured > 0:
        return f"{format_size(dirty)} dirty, about {estimate(dirty / measured)} to flush at the {format_size(int(measured))}/s measured now."
    return f"{format_size(dirty)} dirty, about {estimate(dirty / assumed)} to flush if the slow device takes {format_size(assumed)}/s (not measured)."


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"replacement_notice": replacement_notice}
