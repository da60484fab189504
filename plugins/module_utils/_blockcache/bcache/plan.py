# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the bcache that is there to the caches that are wanted: pure, and the place of every refusal.

Several backing devices may share a cache set, so the list is planned as a whole, in three parts: items leave sets, sets that
that have no members left are taken down, items join sets.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import fast_device
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.facts import CLEAN, DIRTY, INDEX, NO_CACHE, Backing, judge
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.live import Item, LivePlan
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.spec import BcacheSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.steps import (
    Attach,
    Detach,
    Flush,
    MakeBacking,
    MakeSet,
    RegisterBacking,
    RegisterSet,
    SetMode,
    UnregisterSet,
    Wipe,
    WriteRules,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.target import (
    LAYER,
    BcacheState,
    CacheSetTarget,
    attachable,
    emptied,
    find_origin,
    find_target,
    new_backing_block,
    other_registration,
    require_fitting_blocks,
    require_not_nested,
    require_unformatted,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import DEGRADED, STALE_MEMBER, require_mirrored, require_whole_unit
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import Origin
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import require_no_cache
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import node_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice


def plan(state: BcacheState, specs: t.Sequence[BcacheSpec]) -> list[Step]:
    """The steps for the whole list.

    :raises BadInput: if the request is invalid on this host.
    :raises DeviceMissing: if the origin or the cache device is not there.
    :raises Refused: if it would risk data, naming the option that allows it or the manual action.
    """
    return _Plan(state, specs).steps()


@dataclass
class _Plan:
    state: BcacheState
    specs: t.Sequence[BcacheSpec]
    items: list[Item] = field(default_factory=list)
    targets: dict[tuple[str, ...], CacheSetTarget] = field(default_factory=dict)
    #: Steps that are only planned once for all who share a set.
    done: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.live = LivePlan(self.state, self.done)

    def steps(self) -> list[Step]:
        self.items = [self._find(spec) for spec in self.specs]
        for item in self.items:
            self._require_nothing_lost(item)
        self._find_targets()
        for item in self.items:
            self._judge(item)
        # First what may fail without anything having been taken away.
        starting = [step for item in self.items if item.target is not None and item.target.register for step in self._make_set(item, item.target)]
        leaving = [step for item in self.items for step in self._leave(item)]
        gone = self._orphaned_sets()
        taking_down = [step for cset, item in gone.items() for step in self._take_down(cset, item)]
        released = [step for item in self.items for step in self._release(item, gone)]
        joining = [step for item in self.items for step in self._converge(item)]
        return [*starting, *leaving, *taking_down, *released, *joining]

    # -- what is there

    def _find(self, spec: BcacheSpec) -> Item:
        device = find_origin(self.state, spec)
        if device is None:
            require_no_cache(spec, self._found(spec), LAYER)
            return Item(spec, None, None, registered=False)
        if device.name in {name for cset in self.state.registered.sets.values() for name in cset.caches} or self._carries_cache(device):
            raise Refused(f"{spec.name}: {spec.origin} is a cache device of bcache, and cannot be an origin: name the slow device.", item=spec.name)
        backing, registered = self.state.backing_on(device)
        if backing is not None and not registered:
            self._require_registrable(spec, device, backing)
        if not spec.present and (backing is None or (backing.set is None and backing.state == NO_CACHE)):
            require_no_cache(spec, self._found(spec), LAYER)
        return Item(spec, device, backing, registered)

    def _require_registrable(self, spec: BcacheSpec, device: BlockDevice, backing: Backing) -> None:
        """Refuse a path to a backing device of which the kernel knows another one, or may soon."""
        other = next((one for one in self.state.registered.backings.values() if one.uuid == backing.uuid), None)
        if other is not None:
            raise other_registration(spec, spec.origin, other.name)
        require_whole_unit(self.state.ground.devices, device, spec.origin, spec.name)

    def _found(self, spec: BcacheSpec) -> Origin:
        return self.state.found.get(spec.name, Origin())

    def _carries_cache(self, device: BlockDevice) -> bool:
        sb = self.state.supers.get(device.name)
        return sb is not None and sb.cache

    def _find_targets(self) -> None:
        awaited = {self.state.awaited(item.backing) for item in self.items if item.backing is not None}
        taken: dict[str, tuple[str, ...]] = {}
        host = emptied(self.state, self._vacated())
        for item in self.items:
            if not item.spec.present:
                continue
            key = tuple(sorted(item.spec.cache_devices))
            if key not in self.targets:
                target = find_target(host, item.spec, awaited, {name for name, owner in taken.items() if owner != key})
                self.targets[key] = target
                for path in item.spec.cache_devices:
                    taken[self._kernel_name(path)] = key
            item.target = self.targets[key]

    def _vacated(self) -> set[str]:
        """Devices that a set lies on now and that will be a member of a mirror: all who are attached to the set move there."""
        moving = {item.backing.name: item for item in self.items if item.backing is not None and item.spec.present and item.spec.mirror}
        found = {
            name
            for cset in self.state.registered.sets.values()
            for name in cset.caches
            if cset.backings and all(user in moving and name in self._named_by(moving[user].spec) for user in cset.backings)
        }
        # What a run left behind that was killed on the way there.
        for item in moving.values():
            noted = self.state.journal.between.get(item.backing.uuid) if item.backing is not None else None
            place = self.state.place_of(noted.set) if noted is not None else None
            cset = self.state.registered.sets.get(noted.set) if noted is not None else None
            if place in self._named_by(item.spec) and (cset is None or not cset.backings):
                found.add(str(place))
        return found

    def _named_by(self, spec: BcacheSpec) -> set[str]:
        return {self._kernel_name(path) for path in spec.cache_devices}

    def _kernel_name(self, path: str) -> str:
        try:
            return self.state.ground.devices.resolve(path).name
        except DeviceMissing:
            return path

    # -- what has to be refused, and who has to leave

    def _judge(self, item: Item) -> None:
        backing, spec = item.backing, item.spec
        if backing is None:
            if spec.present and item.device is not None and item.target is not None:
                require_whole_unit(self.state.ground.devices, item.device, spec.origin, spec.name)
                require_not_nested(self.state, item.device, spec.origin, spec)
                require_unformatted(self.state, item.device, spec)
                new_backing_block(item.device, item.target, spec)
                if spec.mode == "writeback":
                    self._require_permission(item, item.target)
            return
        self._require_served(item, backing)
        if item.target is not None:
            require_fitting_blocks(self.state.block_size_of(backing), item.target, spec)
            if spec.mode == "writeback" and (backing.mode != "writeback" or backing.set != item.target.set):
                self._require_permission(item, item.target)
        if spec.state == "absent":
            item.leaves = backing.set
        elif spec.present and item.target is not None:
            noted = self.state.journal.between.get(backing.uuid)
            going = noted is not None and noted.detaching and noted.set == backing.set
            if backing.set is not None and (backing.set != item.target.set or item.target.rebuild is not None or going):
                item.leaves = backing.set
        if item.leaves is not None and item.target is not None and item.target.rebuild is not None:
            self._require_alone(item, item.target.rebuild)

    def _require_nothing_lost(self, item: Item) -> None:
        """The first message for an origin of which the newest data is on a device that is not there."""
        backing = item.backing
        if backing is None or backing.set is not None or backing.state != DIRTY:
            return
        awaited = self.state.awaited(backing)
        if awaited is None or self.state.place_of(awaited) is None:
            _state, problem = judge(backing, None, [])
            raise Refused(f"{item.name}: {problem}", item=item.name)

    def _require_served(self, item: Item, backing: Backing) -> None:
        """Refuse a backing device that waits for a cache that does not come."""
        spec = item.spec
        cset = self.state.registered.sets.get(backing.set or "")
        state, problem = judge(backing, cset, [device for name in (cset.caches if cset else ()) for device in [self.state.ground.devices.get(name)] if device])
        awaited = self.state.awaited(backing)
        if state == "failed" and item.target is not None and item.target.register and item.target.set == awaited:
            # Attached again, it would answer with what was true before it failed: seen on Linux 6.1, in writethrough.
            raise Refused(
                f"{spec.name}: {spec.origin} was written to since its cache on {item.target.fast.path} failed, and what that cache holds is older:"
                f" run wipefs -a {item.target.fast.path} manually and run again, which creates a new cache there.",
                item=spec.name,
            )
        comes = (awaited is not None and item.target is not None and item.target.register and item.target.set == awaited) or (
            not item.registered and backing.set is not None
        )
        if spec.state == "flushed" and state == "inconsistent" and backing.set is None:
            raise Refused(f"{spec.name}: {problem}", item=spec.name)
        if state not in ("cache_missing", "failed") or comes:
            return
        if backing.set is None and spec.present and attachable(backing):
            return
        if spec.state == "flushed" and backing.running and backing.state == CLEAN:
            return
        raise Refused(f"{spec.name}: {problem}", item=spec.name)

    def _require_permission(self, item: Item, target: CacheSetTarget) -> None:
        spec = item.spec
        require_mirrored(target.fast.redundancy, spec.cache_devices, spec.name, spec.origin, allowed=spec.allow_unmirrored_writeback)

    def _require_alone(self, item: Item, cset: str) -> None:
        """A set that is made anew is left by all; those that are not in the list are not touched."""
        mine = {other.backing.name for other in self.items if other.backing is not None and other.spec.state != "flushed"}
        strangers = sorted(set(self.state.registered.sets[cset].backings) - mine) if cset in self.state.registered.sets else []
        if strangers:
            raise Refused(
                f"{item.name}: another bucket_size requires a new cache set, and {', '.join('/dev/' + name for name in strangers)} is attached to it"
                " too: put it into the list, or leave bucket_size as it is.",
                item=item.name,
            )

    # -- leaving

    def _leave(self, item: Item) -> list[Step]:
        backing = item.backing
        if backing is None or item.leaves is None:
            return []
        steps = self._bring_back(item, item.leaves)
        target = f"{item.spec.origin}"
        before = {"set": item.leaves, "mode": backing.mode, "dirty": backing.dirty}
        after = {"set": item.leaves, "mode": "writethrough" if backing.mode == "writeback" else backing.mode, "dirty": 0}
        flush = Flush(item.spec.origin, item.spec.flush_timeout, leaving=True)
        steps.append(item.step("cache", before, after, f"Flush the cache of {target} and verify that nothing is dirty", flush))
        steps.append(item.step("cache", after, None, f"Detach the cache of {target}", Detach(item.spec.origin, item.leaves)))
        return steps

    def _bring_back(self, item: Item, cset: str) -> list[Step]:
        """Start what is on the devices and not running, so that the kernel can be queried."""
        steps = []
        if not item.registered:
            steps.append(self._register_backing(item))
        place = self.state.place_of(cset)
        if cset not in self.state.registered.sets and place is not None and ("register", cset) not in self.done:
            self.done.add(("register", cset))
            steps.append(item.step("cache_set", "stopped", "running", f"Start the cache set on {node_of(place)}", RegisterSet(place, cset)))
        return steps

    def _register_backing(self, item: Item) -> Step:
        return item.step("backing_device", "stopped", "running", f"Start the backing device {item.spec.origin}", RegisterBacking(item.spec.origin))

    # -- sets that are no longer needed

    def _orphaned_sets(self) -> dict[str, Item]:
        """The sets that are taken down, each with the item that is the reason."""
        claimed = {item.target.set for item in self.items if item.target is not None and item.target.rebuild is None}
        leaving = {item.backing.name: item.leaves for item in self.items if item.backing is not None and item.leaves is not None}
        reasons: dict[str, Item] = {}
        for item in self.items:
            for cset in self._left_by(item):
                reasons.setdefault(cset, item)
        gone = {}
        for cset, item in reasons.items():
            registered = self.state.registered.sets.get(cset)
            rest = [name for name in (registered.backings if registered is not None else ()) if leaving.get(name) != cset]
            if cset not in claimed and not rest and self.state.place_of(cset) is not None:
                gone[cset] = item
        return gone

    def _left_by(self, item: Item) -> list[str]:
        """The sets that an item leaves now, or left in a run that was killed."""
        found = [item.leaves] if item.leaves is not None else []
        noted = self.state.journal.between.get(item.backing.uuid) if item.backing is not None else None
        if noted is not None:
            found.append(noted.set)
        if item.target is not None and item.target.rebuild is not None:
            found.append(item.target.rebuild)
        if item.spec.state == "absent" and (item.backing is None or item.backing.set is None):
            found += self._idle_on(item.spec)
        return found

    def _idle_on(self, spec: BcacheSpec) -> list[str]:
        """Sets on the cache devices of an item that is absent, or on the mirror of them."""
        names = self._named_by(spec)
        names |= {array.name for array in self.state.ground.arrays.values() if array.members and set(array.members) <= names}
        found = [cset.uuid for name in sorted(names) for cset in [self.state.registered.set_on(name)] if cset is not None]
        return found + [sb.set for name, sb in self.state.supers.items() if name in names and sb.cache and sb.set is not None]

    def _take_down(self, cset: str, item: Item) -> list[Step]:
        unreadable = self.state.unreadable.get(cset)
        if unreadable:
            raise Refused(
                f"{item.name}: it cannot be verified that the cache set {cset} holds nothing that is nowhere else, because /{INDEX.format(cset=cset)} cannot be"
                f" read ({unreadable}), so that it cannot be removed: mount debugfs (mount -t debugfs none /sys/kernel/debug) and run again.",
                item=item.name,
            )
        place = self.state.place_of(cset) or ""
        device = self.state.ground.devices.get(place)
        path = (device.stable_path or device.path) if device is not None else node_of(place)
        steps = []
        if cset not in self.state.registered.sets and ("register", cset) not in self.done:
            self.done.add(("register", cset))
            steps.append(item.step("cache_set", "stopped", "running", f"Start the cache set on {path}, to see what it holds", RegisterSet(place, cset)))
        steps.append(item.step("cache_set", cset, None, f"Stop the cache set on {path}", UnregisterSet(place, cset)))
        steps.append(item.step("cache_device", path, None, f"Wipe {path}", Wipe(path, cset)))
        return steps

    def _release(self, item: Item, gone: t.Mapping[str, Item]) -> list[Step]:
        spec = item.spec
        key = tuple(sorted(spec.cache_devices))
        if spec.state != "absent" or not spec.release_devices or key in self.targets or ("release", str(key)) in self.done:
            return []
        if any(cset not in gone for cset in self._idle_on(spec)):
            return []
        self.done.add(("release", str(key)))
        return fast_device.release(self.state.ground, spec, LAYER)

    # -- as wanted

    def _converge(self, item: Item) -> list[Step]:
        if item.spec.state == "absent":
            return self._forget_rules(item)
        if item.spec.state == "flushed":
            return self._flushed(item)
        return self._join(item)

    def _forget_rules(self, item: Item) -> list[Step]:
        kept = self.state.rules.get(item.backing.uuid) if item.backing is not None else None
        if not kept:
            return []
        return [item.step("boot_rule", dict(kept), None, f"Remove the settings of {item.spec.origin} from the udev rules", WriteRules(item.spec.origin))]

    def _flushed(self, item: Item) -> list[Step]:
        backing = item.backing
        if backing is None or (backing.set is None and backing.state != DIRTY):
            return []
        steps = self._bring_back(item, backing.set or "")
        if backing.mode == "writeback" or backing.has_dirty_blocks or backing.uuid in self.state.journal.flushing:
            steps.append(self._flush_step(item, backing))
        return steps

    def _flush_step(self, item: Item, backing: Backing) -> Step:
        before = {"mode": backing.mode, "dirty": backing.dirty}
        after = {"mode": "writethrough" if backing.mode == "writeback" else backing.mode, "dirty": 0}
        action = f"Flush the cache of {item.spec.origin}, so that nothing is dirty in it"
        return item.step("cache", before, after, action, Flush(item.spec.origin, item.spec.flush_timeout))

    def _join(self, item: Item) -> list[Step]:
        spec, target = item.spec, item.target
        if target is None or item.device is None:
            return []
        backing = item.backing
        stays = backing is not None and backing.set == target.set and item.leaves is None
        steps: list[Step] = []
        if backing is None:
            block = new_backing_block(item.device, target, spec)
            after = {"device": spec.origin, "block_size": block}
            action = f"Create a bcache backing device on {spec.origin} with blocks of {format_size(block)}"
            steps.append(item.step("backing_device", None, after, action, MakeBacking(spec.origin, block)))
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
            return [item.step("cache_set", "stopped", "running", f"Start the cache set on {target.fast.path}", RegisterSet(device, target.set))]
        paths = " and ".join(item.spec.cache_devices)
        after = {"device": target.fast.path, "bucket_size": target.bucket_size, "block_size": target.block_size}
        action = f"Create a bcache cache device on {paths} with buckets of {format_size(target.bucket_size)}"
        operation = MakeSet(item.spec.origin, target.fast.path, target.set, target.bucket_size, target.block_size)
        return [*target.fast.steps, item.step("cache_set", None, after, action, operation)]

    def _attach(self, item: Item, backing: Backing | None, target: CacheSetTarget) -> list[Step]:
        steps = []
        paths = " and ".join(item.spec.cache_devices)
        if backing is not None and backing.mode == "writeback" and item.leaves is None and backing.state != DIRTY:
            # Its superblock may still have write-back from another time, which would begin with the cache.
            action = f"Set {item.spec.origin} to writethrough while it has no cache"
            steps.append(item.step("mode", backing.mode, "writethrough", action, SetMode(item.spec.origin, "writethrough")))
        used = ", which was used without its cache," if backing is not None and backing.state == "inconsistent" else ""
        after = {"set": target.set, "devices": list(item.spec.cache_devices)}
        action = f"Attach the cache on {paths} to {item.spec.origin}{used}"
        steps.append(item.step("cache", None, after, action, Attach(item.spec.origin, target.set)))
        return steps


def problems(state: BcacheState) -> list[str]:
    """Warnings about bcaches that are left as they are, one sentence each."""
    found = []
    for backing in state.registered.backings.values():
        cset = state.registered.sets.get(backing.set or "")
        caches = [state.ground.devices.get(name) for name in (cset.caches if cset is not None else ())]
        if backing.set is not None or backing.state != NO_CACHE:
            _state, sentence = judge(backing, cset, [device for device in caches if device is not None])
            found += [sentence] if sentence else []
        if cset is not None and backing.mode == "writeback" and state.ground.redundancy(cset.caches) == DEGRADED:
            found.append(
                f"{node_of(backing.name)} has a write-back cache on a mirror that is degraded: its newest data is only on what is left of the mirror."
                f" Replace the member that failed, or change to mode writethrough, which flushes. {STALE_MEMBER}"
            )
    return found
