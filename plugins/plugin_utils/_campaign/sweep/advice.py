# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is known of the field and concerns a variant, beside what was measured. Pure.

Both are conclusions of published comparisons of all cache modes of RAID controllers and drives: SSDs with capacitors are usually faster with their
write cache disabled, and a drive cache that is enabled behind a controller that writes through hides where flushes end.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import documented_protection
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.variants import CONTROLLERS, DRIVES

if t.TYPE_CHECKING:
    Variables = t.Mapping[str, t.Any]

_ENABLED = "enabled"


def advice_on(variant: str, swept: t.Mapping[str, Variables], models: t.Iterable[str], found: Variables) -> list[str]:
    """Sentences, none if nothing is known.

    :param variant: the one that is recommended.
    :param swept: the variables of all variants of one host, by variant.
    :param models: of its drives.
    :param found: what the host was before; what no variant sets was measured so.
    """
    sentences = []
    if variant in swept and any(_caches_behind_write_through(one) for one in _entries(swept[variant], CONTROLLERS)):
        sentences.append(
            f"{variant} enables the caches of drives behind a controller that writes through. Nothing reports whether such a controller passes flushes on: "
            "test it with the playbook power_loss, or disable these caches."
        )
    protected = sorted(model for model in models if documented_protection(model))
    if protected and not any(_disables_a_drive_cache(variables) for variables in (*swept.values(), found)):
        sentences.append(
            f"The vendor documents power-loss protection for {', '.join(protected)}: such SSDs are usually faster with their write cache disabled, "
            "which no variant of this sweep measured."
        )
    return sentences


def _entries(variables: Variables, name: str) -> list[t.Mapping[str, t.Any]]:
    return [one for one in variables.get(name) or [] if isinstance(one, dict)]


def _caches_behind_write_through(controller: t.Mapping[str, t.Any]) -> bool:
    volumes = controller.get("volumes") or []
    through = [one for one in volumes if one.get("write") == "writethrough"]
    if any(one.get("drive_cache") == _ENABLED for one in through):
        return True
    classes = controller.get("drive_cache") or {}
    drives = [one.get("write_cache") for one in controller.get("drives") or []]
    return bool(through) and (_ENABLED in (classes.get("all"), classes.get("configured")) or _ENABLED in drives)


def _disables_a_drive_cache(variables: Variables) -> bool:
    controllers = _entries(variables, CONTROLLERS)
    words = [one.get("write_cache") for one in _entries(variables, DRIVES)]
    words += [drive.get("write_cache") for one in controllers for drive in one.get("drives") or []]
    words += [volume.get("drive_cache") for one in controllers for volume in one.get("volumes") or []]
    words += [word for one in controllers for word in (one.get("drive_cache") or {}).values()]
    return "disabled" in words
