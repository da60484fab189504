# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why the write cache of a drive is not set as specified: every refusal of the layer, from what was read."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import is_stable
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.kernel_view import dropping_sentence
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import ABSENT, ENABLED

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.layer import DriveState
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.spec import DriveSpec


def require_listed_once(pairs: t.Sequence[tuple[DriveState, DriveSpec]]) -> None:
    """:raises BadInput: for a drive that is listed twice, perhaps by two of its names."""
    seen: dict[str, DriveState] = {}
    for drive, spec in pairs:
        if drive.unit not in seen:
            seen[drive.unit] = drive
            continue
        if seen[drive.unit].item == spec.device:
            raise BadInput(f"{spec.device} is listed twice: name it once.", item=spec.device)
        raise BadInput(f"{seen[drive.unit].item} and {drive.item} are the same drive ({drive.name}): name it once.", item=spec.device)


def require_settable(drive: DriveState, spec: DriveSpec) -> None:
    """Everything that speaks against setting a drive, before anything is set.

    :raises BadInput: for what cannot be met.
    :raises Refused: for a cache below which flushes end.
    """
    if spec.persistent and not is_stable(spec.device):
        instead = "it has no serial number or WWN, so set persistent: false for it"
        if drive.stable_path:
            instead = f"use {drive.stable_path}, which is the same device"
        raise BadInput(f"{spec.device} may be another device after the next reboot: {instead}.", item=spec.device)
    if spec.write_cache == ENABLED and drive.drive == ABSENT:
        raise BadInput(
            f"{spec.device} has no volatile write cache (vwc is 0), so there is nothing to enable: set write_cache: disabled, or leave it out.",
            item=spec.device,
        )
    if spec.write_cache == ENABLED and drive.swallowed_by and not spec.allow_ignored_flushes:
        raise Refused(
            f"{spec.device} stays without its write cache: {' and '.join(drive.swallowed_by)} passes no flushes on to it, so what an application has synced "
            "would be lost in a power failure. Set allow_ignored_flushes: true for this drive only if its cache survives a power failure.",
            item=spec.device,
        )
    kept = [one.path for one in drive.above if not one.reloadable]
    if kept and not spec.allow_ignored_flushes:
        raise Refused(
            f"{spec.device} stays without its write cache: {' and '.join(kept)} was created while the cache was disabled, and drops flushes until its table is"
            " reloaded, so what an application has synced would be lost in a power failure. Enable the cache while that is not active (lvchange -an,"
            " cryptsetup close; multipath -r for the paths of a drive), or set allow_ignored_flushes: true for this drive only if its cache"
            " survives a power failure.",
            item=spec.device,
        )
    if spec.write_cache == ENABLED and drive.dropping:
        raise Refused(dropping_sentence(spec.device, drive.dropping[0]), item=spec.device)
    if drive.drive not in (ABSENT, spec.write_cache) and not drive.changeable:
        raise BadInput(f"{spec.device}: the drive reports its write cache as {drive.drive} and does not let it be changed.", item=spec.device)
    if spec.persistent and drive.drive != ABSENT and not drive.boot_rules:
        raise BadInput(drive.no_rule or f"{spec.device} cannot have a boot rule: set persistent: false for it.", item=spec.device)
