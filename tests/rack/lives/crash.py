# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Caches of every type side by side on one machine whose power is cut: what is done before the cut, and what must hold after it."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import multiprocessing
import os
import random
import signal
import time
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from lives.beside import Beside
from lives.caches import LIVES, Cache, tool
from lives.partition import partition
from lives.pattern import Application, Ledger
from lives.trap import Ending, call

#: The types that the kernel of the rack has, and what their caches are called: no name begins another.
TYPES: t.Mapping[str, str] = {"lvm_cachevol": "crashlv", "lvm_writecache": "crashlw", "dm_cache": "crashdc", "dm_writecache": "crashdw", "bcache": "crashbc"}
#: Survives the cut: what was written and flushed before it.
RECORD = Path("/root/after_a_crash.json")
#: Blocks of 64 KiB that are written before a cut and looked for after it, and behind them those that are written during it.
FENCED, TRAFFIC = 128, 48
PATIENCE = 400.0

BEFORE, DURING, AFTER = "before", "during", "after"
CUTS = (BEFORE, DURING, AFTER)


@dataclass(frozen=True)
class Step:
    """One step of a life.

    :param before, after: the module's ``caches`` of one item; ``before`` is None for nothing at all.
    :param live: whether an application may have the device open meanwhile.
    """

    name: str
    before: t.Mapping[str, t.Any] | None
    after: t.Mapping[str, t.Any]
    live: bool = True


def steps_of(cache: Cache) -> list[Step]:
    """The eight steps in the life of a cache, and for those that have it the mode passthrough, in which a cut is no step at all."""
    here, there = cache.disks[:1], cache.disks[1:2]
    through, back = cache.modes[0], cache.modes[-1]
    using = cache.spec(here, back)
    settings = cache.settings
    other = {name: value + 10 if isinstance(value, int) else "2M" for name, value in settings.items()}
    if through == back:
        # dm-writecache has no mode to change.
        changes = [
            Step("change a setting", using, {**using, "settings": settings}),
            Step("change it again", {**using, "settings": settings}, {**using, "settings": other}),
        ]
    else:
        written = cache.spec(here, through)
        changes = [Step("change to write-back", written, using), Step("change to write-through", using, written)]
    gone = {**cache.spec(here, back, state="absent"), "release_devices": True}
    past = {**using, "mode": "passthrough"}
    return [
        Step("create", None, using, live=False),
        *changes,
        Step("change a setting and the cache device", using, {**cache.spec(there, back), "settings": settings}),
        Step("change the cache device", using, cache.spec(there, back)),
        Step("flush", using, {**using, "state": "flushed"}),
        Step("use it again", {**using, "state": "flushed"}, using),
        Step("remove", using, gone, live=False),
        *([Step("stay in passthrough", past, past)] if cache.kind in ("cachevol", "cache") else []),
    ]


@dataclass
class CachePlacement:
    """One cache on its own partitions."""

    type: str
    cache: Cache
    ledger: Ledger
    problems: list[str] = field(default_factory=list)
    story: list[str] = field(default_factory=list)

    def expect(self, good: bool, text: str) -> bool:
        if not good:
            self.problems.append(text)
        return good


class Machine:
    """The caches of a machine, as they were before the last cut and as they are now."""

    def __init__(self, origin: str, disks: t.Sequence[str], types: t.Sequence[str], seed: int) -> None:
        self.origin = origin
        self.disks = list(disks)
        self.seed = seed
        self.everywhere = [self._place(number, name) for number, name in enumerate(types, 1)]
        #: Those that the step at hand is for.
        self.places = self.everywhere
        #: Whether what went wrong is left to be looked at.
        self.keep = False
        #: Of each type whether its data has been written.
        self.filled: set[str] = set()
        #: Of each type whether what has to be there before a cache is there.
        self.ready: set[str] = set()

    def _place(self, number: int, name: str) -> CachePlacement:
        kind, construction, mirror = LIVES[name]
        parts = [f"{disk}-part{number}" for disk in self.disks]
        cache = kind(construction, mirror, f"{self.origin}-part{number}", parts, TYPES[name])
        cache.volume_size = "128m"
        if name == "bcache":
            # The kernel wants 513 of them at least.
            cache.options["bucket_size"] = "128K"
        return CachePlacement(name, cache, Ledger(FENCED, self.seed + number))

    # -- what survives the cut

    @classmethod
    def remembered(cls) -> Machine:
        """:raises OSError: if nothing was begun here."""
        kept = json.loads(RECORD.read_text())
        machine = cls(kept["origin"], kept["disks"], list(kept["versions"]), kept["seed"])
        machine.filled, machine.ready = set(kept["filled"]), set(kept["ready"])
        for place in machine.places:
            for block, version in enumerate(kept["versions"][place.type][:FENCED]):
                place.ledger.versions[block] = version
        return machine

    def remember(self) -> None:
        versions = {place.type: list(place.ledger.versions) for place in self.everywhere}
        kept = {"origin": self.origin, "disks": self.disks, "seed": self.seed, "filled": sorted(self.filled), "ready": sorted(self.ready), "versions": versions}
        half = RECORD.with_suffix(".half")
        with half.open("w") as stream:
            json.dump(kept, stream)
            stream.flush()
            os.fsync(stream.fileno())
        half.replace(RECORD)
        folder = os.open(RECORD.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    # -- before the cut

    def leave(self) -> None:
        """Take everything away that an earlier run left on these disks."""
        for place in self.places:
            place.cache.clean_up()
        partition([self.origin, *self.disks], 0)
        for disk in [self.origin, *self.disks]:
            tool("blkdiscard", "--zeroout", disk)
        RECORD.unlink()

    def make_room(self) -> None:
        """Partitions for every type on each disk; what was there is lost."""
        partition([self.origin, *self.disks], len(self.places))
        for place in self.places:
            place.cache.clean_up()
        self.remember()

    def begin(self, number: int, cut: str) -> None:
        """Bring every cache to where a step begins, take it, and wait for the cut."""
        self._only_with(number)
        steps = {place.type: steps_of(place.cache)[number] for place in self.places}
        for place in self.places:
            try:
                self._bring(place, steps[place.type].before)
            except RuntimeError as error:
                # What an earlier case left, which that case has told.
                say(f"anew {place.type}: {error}")
                self.ready.discard(place.type)
                self._bring(place, steps[place.type].before)
            self._dirty(place)
        self._fence()
        say("ready")
        if cut != BEFORE:
            self._take(steps)
        if cut == AFTER:
            for place in self.places:
                self._dirty(place)
            self._fence()
        say("taken")
        signal.pause()

    def _only_with(self, number: int) -> None:
        self.places = [place for place in self.places if number < len(steps_of(place.cache))]

    def _bring(self, place: CachePlacement, spec: t.Mapping[str, t.Any] | None) -> None:
        if spec is None or place.type not in self.ready:
            place.cache.clean_up()
            place.cache.prepare()
            self.filled.discard(place.type)
            self.ready.add(place.type)
        if place.type not in self.filled and place.cache.begins_with_data:
            place.ledger.fill(place.cache.bottom())
            self.filled.add(place.type)
        if spec is not None:
            ending = call(place.cache.module, [spec], None, PATIENCE)
            if ending.result is None or ending.result.get("failed"):
                raise RuntimeError(f"{place.type}: {spec} could not be reached: {(ending.result or {}).get('msg')}")
        say(f"brought {place.type}")

    def _dirty(self, place: CachePlacement) -> None:
        """New data, which a write-back cache has for itself; all of it when there was none."""
        device = place.cache.device()
        if device is None:
            return
        if place.type in self.filled:
            place.ledger.write(device, place.ledger.some(TRAFFIC))
        else:
            place.ledger.fill(device)
            self.filled.add(place.type)
        handle = os.open(device, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _fence(self) -> None:
        """From here on a cut must not lose anything of it."""
        self.remember()
        for place in self.places:
            say(f"dirty {place.type} {place.cache.dirty()}")

    def _take(self, steps: t.Mapping[str, Step]) -> None:
        """All types take their step at once, so that one cut meets each of them somewhere."""
        applications = []
        for place in self.places:
            device = place.cache.device() if steps[place.type].live else None
            if device:
                applications.append(Application(device, Ledger(TRAFFIC, self.seed, first=FENCED)))
        context = multiprocessing.get_context("fork")
        with concurrent.futures.ProcessPoolExecutor(len(self.places), mp_context=context) as pool:
            calls = {pool.submit(call, place.cache.module, [steps[place.type].after], None, PATIENCE): place for place in self.places}
            say("taking")
            for done in concurrent.futures.as_completed(calls):
                result = done.result().result or {}
                say(f"took {calls[done].type} {result.get('msg') if result.get('failed') else 'changed' if result.get('changed') else 'unchanged'}")
        for application in applications:
            application.stop()

    # -- after it

    def resume(self, number: int, cut: str, seed: int) -> int:
        """What must hold for each type now, and the rest of a life from here; the number of those for which it does not."""
        self._only_with(number)
        tool("systemctl", "is-system-running", "--wait", check=False)
        for place in self.places:
            step = steps_of(place.cache)[number]
            began = time.monotonic()
            with contextlib.ExitStack() as after:
                after.callback(self._tell, place, step, cut, began)
                try:
                    self._live_on(place, step, random.Random(seed))
                except (OSError, RuntimeError, TimeoutError) as error:
                    place.problems.append(f"{type(error).__name__}: {error}")
        self.remember()
        if not any(place.problems for place in self.places):
            self._expect_nothing_in_etc(number)
        return sum(1 for place in self.places if place.problems)

    def _expect_nothing_in_etc(self, number: int) -> None:
        """After all caches have gone nothing of ours is below /etc but the settings of a bcache device, which stays one."""
        left = {str(path) for path in Path("/etc").rglob("*cachefleet*")}
        kept = {str(path) for path in Path("/etc/udev/rules.d").glob("*cachefleet-bcache*")}
        place = self.places[-1]
        place.expect(not left - kept, f"left below /etc: {' '.join(sorted(left - kept))}")
        say(f"etc after step {number}: {' '.join(sorted(left)) or 'nothing'}")

    def _tell(self, place: CachePlacement, step: Step, cut: str, began: float) -> None:
        if place.problems:
            for words in (("dmsetup", "info", "-c"), ("dmsetup", "table"), ("dmsetup", "status"), ("lvs", "-a", "-o", "+devices,lv_attr")):
                print("    ", tool(*words, check=False).replace("\n", "\n     "), flush=True)
            for line in tool("dmesg", check=False).splitlines():
                if "bcache" in line or "device-mapper" in line:
                    print("    ", line, flush=True)
            if not self.keep:
                place.cache.clean_up()
                self.ready.discard(place.type)
        verdict = f"FAIL {'; '.join(place.problems)}" if place.problems else "ok"
        say(f"case {place.type} | {step.name} | {cut} | {verdict} | {', '.join(place.story)} | {time.monotonic() - began:.0f} s")

    def _live_on(self, place: CachePlacement, step: Step, chance: random.Random) -> None:
        cache = place.cache
        if not self._whole(place, "after the power came back"):
            return
        gone = {**cache.spec(cache.disks[:1], cache.modes[-1], state="absent"), "release_devices": True}
        moved = cache.spec(cache.disks[1:2], cache.modes[-1])
        self._ask(place, "site", step.after, again=True)
        if cache.kind in ("cachevol", "cache") and step.after.get("state") != "absent":
            # The kernel takes it only while no block is dirty, and after a cut each load of a table makes all of them so.
            self._ask(place, "passthrough", {**step.after, "mode": "passthrough", "state": "present"})
        self._ask(place, "replace", moved)
        self._ask(place, "flush", {**moved, "state": "flushed"})
        # A cache that is flushed stays so, and new data would make nothing dirty: half of the lives end with a cache in use.
        if chance.random() < 0.5:
            self._ask(place, "use", moved)
        self._ask(place, "remove", {**gone, "cache_devices": cache.disks[1:2]})

    def _ask(self, place: CachePlacement, name: str, spec: t.Mapping[str, t.Any], again: bool = False) -> None:
        """Call the module as a user would, and compare everything."""
        if place.problems:
            return
        self._dirty(place)
        cache = place.cache
        device = cache.device()
        with Beside([device] if device and spec.get("state") != "absent" else []) as beside:
            ending = call(cache.module, [spec], None, PATIENCE)
        outcome = self._outcome(place, name, ending)
        say(f"{place.type} {name} {outcome}")
        place.story.append(f"{name} {outcome} (suspended {beside.suspended:.2f} s, read {beside.waited:.2f} s)")
        place.expect(beside.suspended <= 1, f"{name}: a device was suspended for {beside.suspended:.2f} s")
        if not self._whole(place, name) or outcome != "done":
            return
        state, dirty = spec.get("state", "present"), cache.dirty()
        if state != "present" or spec["mode"] == "writethrough":
            # Newer ansible-core wraps each warning in an event.
            named = "dirty" in json.dumps((ending.result or {}).get("warnings", []))
            if not place.expect(not dirty or named, f"{name}: {dirty} dirty blocks are left and nothing says so"):
                print("    ", json.dumps(ending.result), flush=True)
        if state != "present":
            place.expect(self._same(place, cache.bottom(), cache.offset), f"{name}: the slow device alone differs")
        if again:
            second = call(cache.module, [spec], None, PATIENCE)
            self._outcome(place, f"{name} again", second)
            place.expect(not (second.result or {}).get("changed"), f"{name}: asked again it changed {(second.result or {}).get('actions')}")

    def _outcome(self, place: CachePlacement, name: str, ending: Ending) -> str:
        result = ending.result or {}
        if not result.get("failed"):
            return "done"
        refused = result.get("error") == "refused"
        place.expect(refused, f"{name}: {result.get('error')}: {result.get('msg')}")
        return f"refused ({result.get('msg')})" if refused else "failed"

    def _whole(self, place: CachePlacement, when: str) -> bool:
        """Nothing is suspended, and everything that was written is there."""
        left = [line for line in tool("dmsetup", "info", "-c", "--noheadings", "-o", "name,suspended").splitlines() if line.endswith(":Suspended")]
        if not place.expect(not left, f"{when}: {' and '.join(left)}"):
            return False
        device = place.cache.device()
        if device is None or place.type not in self.filled:
            return True
        return place.expect(self._same(place, device, 0), f"{when}: {device} differs")

    def _same(self, place: CachePlacement, device: str, offset: int) -> bool:
        if place.type not in self.filled:
            return True
        wrong = place.ledger.wrong(device, offset)
        for text in wrong[:3]:
            print(f"     {place.type}: {text}", flush=True)
        return not wrong

    # -- killed at random moments

    def kill(self, count: int, seed: int) -> int:
        """Changes of the mode that are killed at random moments, each followed by the same wish; the number of bad ends."""
        chance = random.Random(seed)
        tool("systemctl", "is-system-running", "--wait", check=False)
        able = [place for place in self.places if len(place.cache.modes) > 1]
        bad = 0
        for turn in range(count):
            place = able[turn % len(able)]
            step = steps_of(place.cache)[2 if chance.random() < 0.7 else 1]
            place.problems.clear()
            place.story.clear()
            began = time.monotonic()
            self._bring(place, step.before)
            self._dirty(place)
            place.story.append(f"{place.cache.dirty()} dirty")
            with Beside([str(place.cache.device())]) as beside:
                place.story.append(killed(place.cache.module, step.after, chance))
            place.story.append(f"suspended {beside.suspended:.2f} s")
            self._ask(place, "site", step.after, again=True)
            bad += bool(place.problems)
            self._tell(place, step, "killed", began)
        self.remember()
        return bad


def killed(module: str, spec: t.Mapping[str, t.Any], chance: random.Random, longest: float = 8.0) -> str:
    """Call a module and end it at a random moment: itself, or with all that it started; how that went."""
    pid = os.fork()
    if pid == 0:
        os.setsid()
        with contextlib.suppress(BaseException):
            call(module, [spec], None, PATIENCE)
        os._exit(0)
    moment = chance.uniform(0.2, longest)
    time.sleep(moment)
    family = descendants(pid)
    everybody = chance.random() < 0.5
    for member in family if everybody else family[:1]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(member, signal.SIGKILL)
    os.waitpid(pid, 0)
    if not family:
        return f"ended before {moment:.1f} s"
    return f"killed {'with its commands' if everybody else 'alone'} at {moment:.1f} s"


def descendants(pid: int) -> list[int]:
    """Children and theirs, the eldest first (proc_pid_task_children(5))."""
    try:
        children = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [*children, *(other for child in children for other in descendants(child))]


def say(text: str) -> None:
    """A line for the controller."""
    print(f"{time.monotonic():8.1f} {text}", flush=True)
