# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What can be changed while a bcache is used: its label, its mode, its settings, and what is set again at boot. Pure."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import udev_rules as bcache_rules
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.facts import DIRTY, Backing
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.settings import BACKING, SET, SETTINGS, as_plain, has_value
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.spec import BcacheSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.target import LAYER, BcacheState, CacheSetTarget
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice


@dataclass
class Item:
    """One item of the list and what was found for it.

    :param backing: None if the origin is no backing device yet, or is not there.
    :param registered: whether the kernel knows the backing device.
    :param leaves: the set that it has to be detached from.
    """

    wanted: BcacheSpec
    device: BlockDevice | None
    backing: Backing | None
    registered: bool
    target: CacheSetTarget | None = None
    leaves: str | None = None

    @property
    def name(self) -> str:
        return self.wanted.name

    def step(self, attribute: str, before: t.Any, after: t.Any, action: str, operation: str, **arguments: t.Any) -> Step:
        """One step of this item, with what every operation needs."""
        common = {"origin": self.wanted.origin, "flush_timeout": self.wanted.flush_timeout}
        return Step(LAYER, self.name, attribute, before, after, action, operation, {**common, **arguments})


@dataclass
class LivePlan:
    """The steps for what can be changed while it is used.

    :param done: what is planned once for all who share a set, and has been.
    """

    present: BcacheState
    done: set[tuple[str, str]] = field(default_factory=set)

    def label(self, item: Item, backing: Backing | None) -> list[Step]:
        before, after = (backing.label if backing is not None else None), item.wanted.label
        if before == after:
            return []
        return [item.step("label", before or None, after, f"Label the bcache on {item.wanted.origin} {after}", "set_label", label=after)]

    def mode(self, item: Item, backing: Backing | None, *, attached_anew: bool) -> list[Step]:
        wanted = item.wanted
        before = backing.mode if backing is not None else "writethrough"
        if attached_anew and before == "writeback" and not (backing is not None and backing.state == DIRTY and item.leaves is None):
            before = "writethrough"
        dirty = backing is not None and backing.has_dirty_blocks and item.leaves is None
        interrupted = backing is not None and backing.uuid in self.present.journal.flushing and item.leaves is None
        if before == wanted.mode and (wanted.mode == "writeback" or not dirty):
            action = f"Put back the settings of {wanted.origin} that an interrupted flush changed"
            return [item.step("flush", "interrupted", "over", action, "end_flush")] if interrupted else []
        if wanted.mode == "writeback":
            steps = [item.step("flush", "interrupted", "over", f"End the interrupted flush of {wanted.origin}", "end_flush")] if interrupted else []
            return [*steps, item.step("mode", before, "writeback", f"Switch {wanted.origin} from {before} to writeback", "set_mode", mode="writeback")]
        if before == "writeback" or dirty:
            action = f"Switch {wanted.origin} from {before} to {wanted.mode} and flush it" if before != wanted.mode else f"Flush {wanted.origin}"
            shown = before if before != wanted.mode else f"{before}, dirty"
            return [item.step("mode", shown, wanted.mode, action, "flush", mode=wanted.mode)]
        return [item.step("mode", before, wanted.mode, f"Switch {wanted.origin} from {before} to {wanted.mode}", "set_mode", mode=wanted.mode)]

    def settings(self, item: Item, backing: Backing | None, target: CacheSetTarget) -> list[Step]:
        steps = []
        for key, value in item.wanted.settings.items():
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
            before = as_plain(key, text)
            action = f"Set {key} of {item.wanted.origin if known.place == BACKING else 'the cache of ' + item.wanted.origin} to {value}"
            steps.append(item.step(f"settings.{key}", before, value, action, "set_setting", key=key, value=value, place=known.place, set=target.set))
        return steps

    def _require_known(self, item: Item, key: str, backing: Backing | None, target: CacheSetTarget) -> None:
        """Refuse a setting that the running kernel does not have, as far as something that runs can show it."""
        place = SETTINGS[key].place
        texts = backing.texts if place == BACKING and backing is not None and item.registered else target.exists.texts if target.exists is not None else {}
        if place != BACKING and target.exists is None:
            return
        if texts and key not in texts:
            raise Refused(f"{item.name}: the kernel of this host has no bcache setting {key}: take it out for this host.", item=item.name)

    def rules(self, item: Item, backing: Backing | None, target: CacheSetTarget) -> list[Step]:
        """The settings that no superblock holds, in the file that sets them again at boot."""
        places = []
        own = self.present.rules.get(backing.uuid, {}) if backing is not None else {}
        wanted_own = bcache_rules.kept(item.wanted.settings, BACKING, own)
        if wanted_own != own:
            places.append((own, wanted_own))
        shared = self.present.rules.get(self._cache_uuid(target), {})
        wanted_shared = bcache_rules.kept(item.wanted.settings, SET, shared)
        arguments: dict[str, t.Any] = {}
        if wanted_shared != shared:
            places.append((shared, wanted_shared))
            arguments = {"set": target.set}
        if not places:
            return []
        before = {key: value for old, _new in places for key, value in old.items()}
        after = {key: value for _old, new in places for key, value in new.items()}
        action = f"Keep the settings of {item.wanted.origin} over a reboot (udev rule)"
        settings = dict(item.wanted.settings)
        return [item.step("boot_rule", before or None, after or None, action, "write_rules", settings=settings, **arguments)]

    def _cache_uuid(self, target: CacheSetTarget) -> str:
        """The UUID in the superblock of the cache device, which udev knows; empty while there is none."""
        device = target.fast.device
        if device is None or target.rebuild is not None or (target.exists is None and not target.register):
            return ""
        sb = self.present.supers.get(device.name)
        if sb is not None:
            return sb.uuid
        return (device.signature.uuid or "") if device.signature is not None else ""
