# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a step means for those who use the host, beyond what it sets."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import TYPES

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step

#: Writes that are acknowledged and not flushed are lost if the power fails and the cache is not protected.
POWER_LOSS = "power_loss"
#: The cache devices contain data that the origin does not have: without a mirror, the loss of one is a loss of data.
DEVICE_LOSS = "device_loss"
#: I/O or the network is interrupted for moments.
INTERRUPTION = "interruption"
#: Dirty blocks are written to the origin first, which takes as long as there are many.
FLUSH = "flush"
#: A device that must be empty gets a label, or is emptied.
OVERWRITE = "overwrite"
#: Writes become slower.
SLOWER_WRITES = "slower_writes"

RISKS = (POWER_LOSS, DEVICE_LOSS, INTERRUPTION, FLUSH, OVERWRITE, SLOWER_WRITES)

#: Modes of an SSD cache in which a write is acknowledged before the origin has it. dm-writecache has no other.
_WRITE_BACK = ("writeback", "writecache")
_FLUSHES = frozenset({"dirty", "dirty_blocks", "flush", "cleaner"})
_LABELS = frozenset({"physical_volume", "cache_device", "cache_set", "backing_device", "mirror"})
#: A link may go down while its MTU is set; a target is restarted, and an initiator negotiates again.
_INTERRUPTING = frozenset({"mtu", "running", "socket", "payload"})


def risks_of(step: Step) -> list[str]:
    """The risks of a step, in the order of :data:`RISKS`."""
    if step.layer in TYPES:
        found = _of_ssd_cache(step)
    elif step.layer == "storage_network":
        found = {INTERRUPTION} if step.attribute in _INTERRUPTING else set()
    else:
        found = _of_write_cache(step)
    return [risk for risk in RISKS if risk in found]


def _of_write_cache(step: Step) -> set[str]:
    """Of a drive, a volume of a controller, or the SSDs of a controller."""
    name = step.attribute.split(".")[0]
    if name in ("write_cache", "drive_cache", "no_battery_write_cache"):
        return {POWER_LOSS} if step.after == "enabled" else {SLOWER_WRITES} if step.after == "disabled" else set()
    if name == "write":
        return {POWER_LOSS} if str(step.after).startswith("writeback") else {SLOWER_WRITES}
    if name == "maxcache_write":
        return {DEVICE_LOSS} if "writeback" in str(step.after) else {FLUSH} if "writeback" in str(step.before) else set()
    return {FLUSH} if name in _FLUSHES else set()


def _of_ssd_cache(step: Step) -> set[str]:
    before, after = _mode(step.before), _mode(step.after)
    found = set()
    if step.attribute in ("cache", "mode"):
        found |= {DEVICE_LOSS} if after in _WRITE_BACK and before not in _WRITE_BACK else set()
        # What a cache without a mode in its steps may contain is not known: it is flushed first.
        found |= {FLUSH} if before in _WRITE_BACK and after not in _WRITE_BACK else set()
        found |= {SLOWER_WRITES} if before in _WRITE_BACK and after in ("writethrough", "writearound", None) else set()
    if step.attribute in _FLUSHES and step.after is not False:
        found.add(FLUSH)
    if step.attribute in _LABELS and step.after not in ("running", "stopped"):
        found.add(OVERWRITE)
    return found


def _mode(value: t.Any) -> str | None:
    """The mode in the value of a step: a word, or what a cache is made of."""
    if isinstance(value, dict):
        kind = value.get("kind")
        return "writecache" if kind == "writecache" else value.get("mode")
    return value if isinstance(value, str) else None
