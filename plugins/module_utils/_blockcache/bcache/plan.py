# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the bcache that is there to the caches that are wanted: pure, and the place of every refusal.

Several backing devices may share a cache set, so the list is planned as a whole, in three parts: items leave sets, sets that
nobody is left in are taken down, items join sets.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import fast_device
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.facts import DIRTY, NO_CACHE, Backing, judge
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.live import Item, LivePlan
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.spec import BcacheSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.target import (
    LAYER,
    BcacheState,
    CacheSetTarget,
    attachable,
    emptied,
    find_origin,
    find_target,
    new_backing_block,
    require_fitting_blocks,
    require_unformatted,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import DEGRADED, STALE_MEMBER, require_mirrored
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import node_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice


def plan(present: BcacheState, wanted: t.Sequence[BcacheSpec]) -> list[Step]:
    """The steps for the whole list.

    :raises BadInput: if what is asked for cannot be meant on this host.
    :raises DeviceMissing: if the origin or the cache device is not there.
    :raises Refused: if it would risk data, naming the option that allows it or what a person has to do.
    """
    return _Plan(present, wanted).steps()


@dataclass
class _Plan:
    present: BcacheState
    wanted: t.Sequence[BcacheSpec]
    items: list[Item] = field(default_factory=list)
    targets: dict[tuple[str, ...], CacheSetTarget] = field(default_factory=dict)
    #: Steps that are only planned once for all who share a set.
    done: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.live = LivePlan(self.present, self.done)

    def steps(self) -> list[Step]:
        self.items = [self._find(wanted) for wanted in self.wanted]
        for item in self.items:
            self._require_nothing_lost(item)
        self._find_targets()
        for item in self.items:
            self._judge(item)
        # First what may fail without anything having been taken away.
        starting = [step for item in self.items if item.target is not None and item.target.register for step in self._make_set(item, item.target)]
        leaving = [step for item in self.items for step in self._leave(item)]
        gone = self._deserted()
        taking_down = [step for cset, item in gone.items() for step in self._take_down(cset, item)]
        released = [step for item in self.items for step in self._release(item, gone)]
        joining = [step for item in self.items for step in self._converge(item)]
        return [*starting, *leaving, *taking_down, *released, *joining]

    # -- what is there

    def _find(self, wanted: BcacheSpec) -> Item:
        device = find_origin(self.present, wanted)
        if device is None:
            return Item(wanted, None, None, registered=False)
        if device.name in {name for cset in self.present.registered.sets.values() for name in cset.caches} or self._carries_cache(device):
            raise Refused(f"{wanted.name}: {wanted.origin} is a cache device of bcache, and cannot be an origin: name the slow device.", item=wanted.name)
        backing, registered = self.present.backing_on(device)
        return Item(wanted, device, backing, registered)

    def _carries_cache(self, device: BlockDevice) -> bool:
        sb = self.present.supers.get(device.name)
        return sb is not None and sb.cache

    def _find_targets(self) -> None:
        awaited = {self.present.awaited(item.backing) for item in self.items if item.backing is not None}
        taken: dict[str, tuple[str, ...]] = {}
        host = emptied(self.present, self._vacated())
        for item in self.items:
            if not item.wanted.present:
                continue
            key = tuple(sorted(item.wanted.cache_devices))
            if key not in self.targets:
                target = find_target(host, item.wanted, awaited, {name for name, owner in taken.items() if owner != key})
                self.targets[key] = target
                for path in item.wanted.cache_devices:
                    taken[self._kernel_name(path)] = key
            item.target = self.targets[key]

    def _vacated(self) -> set[str]:
        """Devices that a set lies on now and that will be a member of a mirror: all who are attached to the set move there."""
        moving = {item.backing.name: item for item in self.items if item.backing is not None and item.wanted.present and item.wanted.mirror}
        found = {
            name
            for cset in self.present.registered.sets.values()
            for name in cset.caches
            if cset.backings and all(user in moving and name in self._named_by(moving[user].wanted) for user in cset.backings)
        }
        # What a run left behind that was killed on the way there.
        for item in moving.values():
            noted = self.present.journal.between.get(item.backing.uuid) if item.backing is not None else None
            place = self.present.place_of(noted.set) if noted is not None else None
            cset = self.present.registered.sets.get(noted.set) if noted is not None else None
            if place in self._named_by(item.wanted) and (cset is None or not cset.backings):
                found.add(str(place))
        return found

    def _named_by(self, wanted: BcacheSpec) -> set[str]:
        return {self._kernel_name(path) for path in wanted.cache_devices}

    def _kernel_name(self, path: str) -> str:
        try:
            return self.present.ground.devices.resolve(path).name
        except DeviceMissing:
            return path

    # -- what has to be refused, and who has to leave

    def _judge(self, item: Item) -> None:
        backing, wanted = item.backing, item.wanted
        if backing is None:
            if wanted.present and item.device is not None and item.target is not None:
                require_unformatted(self.present, item.device, wanted)
                new_backing_block(item.device, item.target, wanted)
                if wanted.mode == "writeback":
                    self._require_permission(item, item.target)
            return
        self._require_served(item, backing)
        if item.target is not None:
            require_fitting_blocks(self.present.block_size_of(backing), item.target, wanted)
            if wanted.mode == "writeback" and (backing.mode != "writeback" or backing.set != item.target.set):
                self._require_permission(item, item.target)
        if wanted.state == "absent":
            item.leaves = backing.set
        elif wanted.present and item.target is not None:
            noted = self.present.journal.between.get(backing.uuid)
            going = noted is not None and noted.detaching and noted.set == backing.set
            if backing.set is not None and (backing.set != item.target.set or item.target.rebuild is not None or going):
                item.leaves = backing.set
        if item.leaves is not None and item.target is not None and item.target.rebuild is not None:
            self._require_alone(item, item.target.rebuild)

    def _require_nothing_lost(self, item: Item) -> None:
        """The first to be said of an origin of which the newest data is on a device that is not there."""
        backing = item.backing
        if backing is None or backing.set is not None or backing.state != DIRTY:
            return
        awaited = self.present.awaited(backing)
        if awaited is None or self.present.place_of(awaited) is None:
            _state, problem = judge(backing, None, [])
            raise Refused(f"{item.name}: {problem}", item=item.name)

    def _require_served(self, item: Item, backing: Backing) -> None:
        """Refuse a backing device that waits for a cache that does not come."""
        wanted = item.wanted
        cset = self.present.registered.sets.get(backing.set or "")
        state, problem = judge(
            backing, cset, [device for name in (cset.caches if cset else ()) for device in [self.present.ground.devices.get(name)] if device]
        )
        awaited = self.present.awaited(backing)
        if state == "failed" and item.target is not None and item.target.register and item.target.set == awaited:
            # Attached again, it would answer with what was true before it failed: seen on Linux 6.1, in writethrough.
            raise Refused(
                f"{wanted.name}: {wanted.origin} was written to since its cache on {item.target.fast.path} failed, and what that cache holds is older:"
                f" run wipefs -a {item.target.fast.path} yourself and run again, which makes a new cache there.",
                item=wanted.name,
            )
        comes = (awaited is not None and item.target is not None and item.target.register and item.target.set == awaited) or (
            not item.registered and backing.set is not None
        )
        if state not in ("cache_missing", "failed") or comes:
            return
        if backing.set is None and wanted.present and attachable(backing):
            return
        if wanted.state == "flushed" and backing.running and backing.state != DIRTY:
            return
        raise Refused(f"{wanted.name}: {problem}", item=wanted.name)

    def _require_permission(self, item: Item, target: CacheSetTarget) -> None:
        wanted = item.wanted
        require_mirrored(target.fast.redundancy, wanted.cache_devices, wanted.name, wanted.origin, allowed=wanted.allow_unmirrored_writeback)

    def _require_alone(self, item: Item, cset: str) -> None:
        """A set that is made anew is left by all; those that are not in the list are not touched."""
        mine = {other.backing.name for other in self.items if other.backing is not None and other.wanted.state != "flushed"}
        strangers = sorted(set(self.present.registered.sets[cset].backings) - mine) if cset in self.present.registered.sets else []
        if strangers:
            raise Refused(
                f"{item.name}: another bucket_size needs the cache set made anew, and {', '.join('/dev/' + name for name in strangers)} is attached to it"
                " too: put it into the list, or leave bucket_size as it is.",
                item=item.name,
            )

    # -- leaving

    def _leave(self, item: Item) -> list[Step]:
        backing = item.backing
        if backing is None or item.leaves is None:
            return []
        steps = self._bring_back(item, item.leaves)
        target = f"{item.wanted.origin}"
        before = {"set": item.leaves, "mode": backing.mode, "dirty": backing.dirty}
        after = {"set": item.leaves, "mode": "writethrough" if backing.mode == "writeback" else backing.mode, "dirty": 0}
        steps.append(item.step("cache", before, after, f"Flush the cache of {target} and prove that nothing is dirty", "flush", leaving=True))
        steps.append(item.step("cache", after, None, f"Detach the cache of {target}", "detach", set=item.leaves))
        return steps

    def _bring_back(self, item: Item, cset: str) -> list[Step]:
        """Start what is on the devices and not running, so that the kernel can be asked."""
        steps = []
        if not item.registered:
            steps.append(self._register_backing(item))
        place = self.present.place_of(cset)
        if cset not in self.present.registered.sets and place is not None and ("register", cset) not in self.done:
            self.done.add(("register", cset))
            steps.append(item.step("cache_set", "stopped", "running", f"Start the cache set on {node_of(place)}", "register_set", device=place, set=cset))
        return steps

    def _register_backing(self, item: Item) -> Step:
        return item.step("backing_device", "stopped", "running", f"Start the backing device {item.wanted.origin}", "register_backing")

    # -- sets that nobody needs any more

    def _deserted(self) -> dict[str, Item]:
        """The sets that are taken down, each with the item that is the reason."""
        claimed = {item.target.set for item in self.items if item.target is not None and item.target.rebuild is None}
        leaving = {item.backing.name: item.leaves for item in self.items if item.backing is not None and item.leaves is not None}
        reasons: dict[str, Item] = {}
        for item in self.items:
            for cset in self._left_by(item):
                reasons.setdefault(cset, item)
        gone = {}
        for cset, item in reasons.items():
            registered = self.present.registered.sets.get(cset)
            rest = [name for name in (registered.backings if registered is not None else ()) if leaving.get(name) != cset]
            if cset not in claimed and not rest and self.present.place_of(cset) is not None:
                gone[cset] = item
        return gone

    def _left_by(self, item: Item) -> list[str]:
        """The sets that an item leaves now, or left in a run that was killed."""
        found = [item.leaves] if item.leaves is not None else []
        noted = self.present.journal.between.get(item.backing.uuid) if item.backing is not None else None
        if noted is not None:
            found.append(noted.set)
        if item.target is not None and item.target.rebuild is not None:
            found.append(item.target.rebuild)
        if item.wanted.state == "absent" and (item.backing is None or item.backing.set is None):
            found += self._idle_on(item.wanted)
        return found

    def _idle_on(self, wanted: BcacheSpec) -> list[str]:
        """Sets on the cache devices of an item that is absent, or on the mirror of them."""
        names = self._named_by(wanted)
        names |= {array.name for array in self.present.ground.arrays.values() if array.members and set(array.members) <= names}
        found = [cset.uuid for name in sorted(names) for cset in [self.present.registered.set_on(name)] if cset is not None]
        return found + [sb.set for name, sb in self.present.supers.items() if name in names and sb.cache and sb.set is not None]

    def _take_down(self, cset: str, item: Item) -> list[Step]:
        place = self.present.place_of(cset) or ""
        device = self.present.ground.devices.get(place)
        path = (device.stable_path or device.path) if device is not None else node_of(place)
        steps = []
        if cset not in self.present.registered.sets and ("register", cset) not in self.done:
            self.done.add(("register", cset))
            steps.append(
                item.step("cache_set", "stopped", "running", f"Start the cache set on {path}, to see what it holds", "register_set", device=place, set=cset)
            )
        steps.append(item.step("cache_set", cset, None, f"Stop the cache set on {path}", "unregister_set", device=place, set=cset))
        steps.append(item.step("cache_device", path, None, f"Make {path} empty", "wipe", path=path, set=cset))
        return steps

    def _release(self, item: Item, gone: t.Mapping[str, Item]) -> list[Step]:
        wanted = item.wanted
        key = tuple(sorted(wanted.cache_devices))
        if wanted.state != "absent" or not wanted.release_devices or key in self.targets or ("release", str(key)) in self.done:
            return []
        if any(cset not in gone for cset in self._idle_on(wanted)):
            return []
        self.done.add(("release", str(key)))
        return fast_device.release(self.present.ground, wanted, LAYER)

    # -- as wanted

    def _converge(self, item: Item) -> list[Step]:
        if item.wanted.state == "absent":
            return self._forget_rules(item)
        if item.wanted.state == "flushed":
            return self._flushed(item)
        return self._join(item)

    def _forget_rules(self, item: Item) -> list[Step]:
        kept = self.present.rules.get(item.backing.uuid) if item.backing is not None else None
        if not kept:
            return []
        return [item.step("boot_rule", dict(kept), None, f"Take the settings of {item.wanted.origin} out of the udev rules", "write_rules")]

    def _flushed(self, item: Item) -> list[Step]:
        backing = item.backing
        if backing is None or (backing.set is None and backing.state != DIRTY):
            return []
        steps = self._bring_back(item, backing.set or "")
        if backing.mode == "writeback" or backing.has_dirty_blocks or backing.uuid in self.present.journal.flushing:
            steps.append(self._flush_step(item, backing))
        return steps

    def _flush_step(self, item: Item, backing: Backing) -> Step:
        before = {"mode": backing.mode, "dirty": backing.dirty}
        after = {"mode": "writethrough" if backing.mode == "writeback" else backing.mode, "dirty": 0}
        return item.step("cache", before, after, f"Flush the cache of {item.wanted.origin}, so that nothing is dirty in it", "flush")

    def _join(self, item: Item) -> list[Step]:
        wanted, target = item.wanted, item.target
        if target is None or item.device is None:
            return []
        backing = item.backing
        stays = backing is not None and backing.set == target.set and item.leaves is None
        steps: list[Step] = []
        if backing is None:
            block = new_backing_block(item.device, target, wanted)
            after = {"device": wanted.origin, "block_size": block}
            action = f"Make {wanted.origin} a backing device of bcache with blocks of {format_size(block)}"
            steps.append(item.step("backing_device", None, after, action, "make_backing", block_size=block))
        elif not item.registered and item.leaves is None:
            steps.append(self._register_backing(item))
        steps += self._make_set(item, target)
        if not stays:
            steps += self._attach(item, backing, target)
        steps += self.live.label(item, backing)
        steps += self.live.mode(item, backing, attached_anew=not stays)
        steps += self.live.settings(item, backing, target)
        steps += self.live.rules(item, backing, target)
        return steps

    def _make_set(self, item: Item, target: CacheSetTarget) -> list[Step]:
        if target.exists is not None or ("set", target.set) in self.done:
            return []
        self.done.add(("set", target.set))
        if target.register:
            if ("register", target.set) in self.done:
                return []
            self.done.add(("register", target.set))
            device = target.fast.device.name if target.fast.device is not None else ""
            return [item.step("cache_set", "stopped", "running", f"Start the cache set on {target.fast.path}", "register_set", device=device, set=target.set)]
        paths = " and ".join(item.wanted.cache_devices)
        after = {"device": target.fast.path, "bucket_size": target.bucket_size, "block_size": target.block_size}
        action = f"Make {paths} a cache device of bcache with buckets of {format_size(target.bucket_size)}"
        arguments = {"path": target.fast.path, "set": target.set, "bucket_size": target.bucket_size, "cache_block_size": target.block_size}
        return [*target.fast.steps, item.step("cache_set", None, after, action, "make_set", **arguments)]

    def _attach(self, item: Item, backing: Backing | None, target: CacheSetTarget) -> list[Step]:
        steps = []
        paths = " and ".join(item.wanted.cache_devices)
        if backing is not None and backing.mode == "writeback" and item.leaves is None and backing.state != DIRTY:
            # Its superblock may remember write-back from another time, which would begin with the cache.
            action = f"Set {item.wanted.origin} to writethrough while it has no cache"
            steps.append(item.step("mode", backing.mode, "writethrough", action, "set_mode", mode="writethrough"))
        used = ", which was used without its cache," if backing is not None and backing.state == "inconsistent" else ""
        after = {"set": target.set, "devices": list(item.wanted.cache_devices)}
        steps.append(item.step("cache", None, after, f"Attach the cache on {paths} to {item.wanted.origin}{used}", "attach", set=target.set))
        return steps


def problems(present: BcacheState) -> list[str]:
    """What a person should know of bcaches that are left as they are, one sentence each."""
    found = []
    for backing in present.registered.backings.values():
        cset = present.registered.sets.get(backing.set or "")
        caches = [present.ground.devices.get(name) for name in (cset.caches if cset is not None else ())]
        if backing.set is not None or backing.state != NO_CACHE:
            _state, sentence = judge(backing, cset, [device for device in caches if device is not None])
            found += [sentence] if sentence else []
        if cset is not None and backing.mode == "writeback" and present.ground.redundancy(cset.caches) == DEGRADED:
            found.append(
                f"{node_of(backing.name)} has a write-back cache on a mirror that is degraded: its newest data is only on what is left of the mirror."
                f" Replace the member that failed, or change to mode writethrough, which flushes. {STALE_MEMBER}"
            )
    return found
