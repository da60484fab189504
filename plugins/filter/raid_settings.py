# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that divides what users write about RAID controllers among the modules that set it."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.spec import policies, ssd_caches

PARTS = ("policies", "ssd_cache", "removed_ssd_cache")


def raid_settings(controllers: t.Any, part: str) -> list[dict[str, t.Any]]:
    if part not in PARTS:
        raise AnsibleFilterError(f"raid_settings: there is no part {part}: use {', '.join(PARTS)}.")
    if not isinstance(controllers, t.Sequence) or isinstance(controllers, (str, bytes)) or not all(isinstance(one, t.Mapping) for one in controllers):
        raise AnsibleFilterError("raid_settings: the controllers must be a list of dictionaries.")
    try:
        return policies(controllers) if part == "policies" else ssd_caches(controllers, removed=part == "removed_ssd_cache")
    except BadInput as error:
        raise AnsibleFilterError(f"raid_settings: {error.message}") from None


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"raid_settings": raid_settings}
