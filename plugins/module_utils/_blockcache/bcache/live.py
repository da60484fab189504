# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What can be changed while a bcache is used: its label, its mode, its settings, and what is set again at boot. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import udev_rules as bcache_rules
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.facts import DIRTY, Backing
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.settings import BACKING, SET, SETTINGS, has_value, parse_value
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.spec import BcacheSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.steps import EndFlush, Flush, SetLabel, SetMode, SetSetting, WriteRules
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.target import LAYER, BcacheState, CacheSetTarget
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice


@dataclass
class Item:
    """One item of the list and what was found for it.

    :param backing: None if the origin is no backing device yet, or is not there.
    :param registered: whether the backing device is registered with the kernel.
    :param leaves: the set that it has to be detached from.
    """

    spec: BcacheSpec
    device: BlockDevice | None
    backing: Backing | None
    registered: bool
    target: CacheSetTarget | None = None
    leaves: str | None = None

    @property
    def name(self) -> str:
        return self.spec.name

    def step(self, attribute: str, before: t.Any, after: t.Any, action: str, operation: Operation) -> Step:
        return Step(LAYER, self.name, attribute, before, after, action, operation)


@dataclass
class LivePlan:
    """The steps for what can be changed while it is used.

    :param done: what is planned once for all who share a set, and has been.
    """

    state: BcacheState
    done: set[tuple[str, str]] = field(default_factory=set)

    def label(self, item: Item, backing: Backing | None) -> list[Step]:
        before, after = (backing.label if backing is not None else None), item.spec.label
        # An item that is named by the UUID in the superblock leaves the label to whoever made the device.
        if before == after or (backing is not None and backing.uuid == item.name):
            return []
        return [item.step("label", before or None, after, f"Label the bcache on {item.spec.origin} {after}", SetLabel(item.spec.origin, after))]

    def mode(self, item: Item, backing: Backing | None, *, attached_anew: bool) -> list[Step]:
        spec = item.spec
        before = backing.mode if backing is not None else "writethrough"
        if attached_anew and before == "writeback" and not (backing is not None and backing.state == DIRTY and item.leaves is None):
            before = "writethrough"
        dirty = backing is not None and backing.has_dirty_blocks and item.leaves is None
        interrupted = backing is not None and backing.uuid in self.state.journal.flushing and item.leaves is None
        if before == spec.mode and (spec.mode == "writeback" or not dirty):
            action = f"Restore the settings of {spec.origin} that an interrupted flush changed"
            return [item.step("flush", "interrupted", "over", action, EndFlush(spec.origin))] if interrupted else []
        if spec.mode == "writeback":
            steps = [item.step("flush", "interrupted", "over", f"End the interrupted flush of {spec.origin}", EndFlush(spec.origin))] if interrupted else []
            return [*steps, item.step("mode", before, "writeback", f"Switch {spec.origin} from {before} to writeback", SetMode(spec.origin, "writeback"))]
        if before == "writeback" or dirty:
            action = f"Switch {spec.origin} from {before} to {spec.mode} and flush it" if before != spec.mode else f"Flush {spec.origin}"
            shown = before if before != spec.mode else f"{before}, dirty"
            return [item.step("mode", shown, spec.mode, action, Flush(spec.origin, spec.flush_timeout, spec.mode))]
        return [item.step("mode", before, spec.mode, f"Switch {spec.origin} from {before} to {spec.mode}", SetMode(spec.origin, spec.mode))]

    def settings(self, item: Item, backing: Backing | None, target: CacheSetTarget) -> list[Step]:
        steps = []
        for key, value in item.spec.settings.items():
            known = SETTINGS[key]
            if known.place == BACKING:
                text = backing.texts.get(key) if backing is not None and item.registered else None
            else:
                if (key, target.set) in self.done:
                    continue
                self.done.add((key, target.set))
                text = target.exists.texts.get(key) if target.exists is not None else None
            if has_value(key, text, value):
                continue
            self._require_known(item, key, backing, target)
            before = parse_value(key, text)
            action = f"Set {key} of {item.spec.origin if known.place == BACKING else 'the cache of ' + item.spec.origin} to {value}"
            operation = SetSetting(item.spec.origin, key, value, known.place, target.set)
            steps.append(item.step(f"settings.{key}", before, value, action, operation))
        return steps

    def _require_known(self, item: Item, key: str, backing: Backing | None, target: CacheSetTarget) -> None:
        """Refuse a setting that the running kernel does not have, as far as something that runs can show it."""
        place = SETTINGS[key].place
        texts = backing.texts if place == BACKING and backing is not None and item.registered else target.exists.texts if target.exists is not None else {}
        if place != BACKING and target.exists is None:
            return
        if texts and key not in texts:
            raise Refused(f"{item.name}: the kernel of this host has no bcache setting {key}: remove it for this host.", item=item.name)

    def rules(self, item: Item, backing: Backing | None, target: CacheSetTarget) -> list[Step]:
        """The settings that no superblock holds, in the file that sets them again at boot."""
        places = []
        own = self.state.rules.get(backing.uuid, {}) if backing is not None else {}
        requested_own = bcache_rules.kept(item.spec.settings, BACKING, own)
        if requested_own != own:
            places.append((own, requested_own))
        shared = self.state.rules.get(self._cache_uuid(target), {})
        requested_shared = bcache_rules.kept(item.spec.settings, SET, shared)
        if requested_shared != shared:
            places.append((shared, requested_shared))
        if not places:
            return []
        before = {key: value for old, _new in places for key, value in old.items()}
        after = {key: value for _old, new in places for key, value in new.items()}
        action = f"Keep the settings of {item.spec.origin} over a reboot (udev rule)"
        operation = WriteRules(item.spec.origin, dict(item.spec.settings), target.set if requested_shared != shared else None)
        return [item.step("boot_rule", before or None, after or None, action, operation)]

    def _cache_uuid(self, target: CacheSetTarget) -> str:
        """The UUID in the superblock of the cache device, from udev; empty while there is none."""
        device = target.fast.device
        if device is None or target.rebuild is not None or (target.exists is None and not target.register):
            return ""
        sb = self.state.supers.get(device.name)
        if sb is not None:
            return sb.uuid
        return (device.signature.uuid or "") if device.signature is not None else ""
