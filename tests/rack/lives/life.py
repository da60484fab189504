# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One life of one cache, in which every step is killed again and again until nothing in it has not been killed once."""

from __future__ import annotations

import os
import random
import sys
import time
import typing as t
import zlib

from lives.caches import Cache, Stage
from lives.pattern import Application, Ledger
from lives.trap import AFTER, BEFORE, INSIDE, ORPHAN, Ending, KillSpec, call

#: Commands that do more than one thing, some of them for minutes: killed in their middle too.
LONG = frozenset(["lvcreate", "lvconvert", "lvchange", "lvremove", "vgextend", "vgreduce", "mdadm", "make-bcache", "dmsetup", "bcache"])
#: Blocks that are written before a run during which nothing may write.
TRAFFIC = 64
#: Seconds that one call may take; the disks are small.
PATIENCE = 300.0
#: A step that has not ended after so many kills goes round in circles.
MOST_KILLS = 60


class WentWrong(Exception):
    """Something a user would have lost, or would have to repair by hand."""


class Report:
    """One line for each proven case."""

    def __init__(self) -> None:
        self.proven = 0
        self.failures = 0
        self.left_out = 0

    def ok(self, text: str) -> None:
        self.proven += 1
        print(f"ok   {text}", flush=True)

    def failed(self, text: str) -> None:
        self.failures += 1
        print(f"FAIL {text}", flush=True)


class Life:
    """Brings one cache through all its stages.

    :param deadline: time (monotonic) after which nothing is killed any more; the life is lived to its end all the same.
    :param thorough: every change is killed before, inside, beside and after, and after each kill the next run goes on to the end of
        the step; otherwise the runs of a step are killed one after the other, each a change further.
    :param sample: kills in each step, at places that the seed chooses; 0 for all.
    """

    def __init__(
        self, cache: Cache, report: Report, *, deadline: float, thorough: bool, seed: int, blocks: int, sample: int = 0, verbose: bool = False
    ) -> None:
        self.cache = cache
        self.report = report
        self.deadline = deadline
        self.thorough = thorough
        self.sample = sample
        self.seed = seed
        self.verbose = verbose
        self.chance = random.Random(seed)
        self.ledger = Ledger(blocks, seed)
        self.filled = False
        self.expected: dict[str, float] = {}
        self.most_dirty = 0
        self.laps = 0

    def live(self) -> None:
        """:raises WentWrong: naming what."""
        self.cache.prepare()
        if self.cache.begins_with_data:
            self._fill(self.cache.bottom())
        proven: set[tuple[str, ...]] = set()
        while True:
            before = len(proven)
            for stage in self.cache.stages():
                self._stage(stage, proven)
            self._expect_nothing_left()
            self.laps += 1
            # Thorough: one kill in each step of each lap, until a lap has found nothing new.
            if not self.thorough or len(proven) == before or self._late():
                break
        if not self.most_dirty and not self.sample and not self._late():
            raise WentWrong("no block was ever dirty when something was killed: these kills prove nothing about write-back")

    def _late(self) -> bool:
        return time.monotonic() > self.deadline

    def _fill(self, device: str) -> None:
        self.ledger.fill(device)
        self.filled = True

    # -- one step

    def _stage(self, stage: Stage, proven: set[tuple[str, ...]]) -> None:
        kills: list[str] = []
        application = self._application(stage)
        try:
            ending = self._kill_until_done(stage, proven, kills)
        finally:
            complaint = application.stop() if application else ""
        self._expect(not ending.result.get("failed"), stage, kills, f"the next run failed: {ending.result.get('msg')}", ending)
        self._expect(not complaint, stage, kills, complaint)
        self._settled(stage, kills)
        for kill in kills or [f"{stage.name}: not interrupted, {len(ending.changes)} changes"]:
            self.report.ok(f"{self.cache.title}: {kill}")
        if not kills and not self.thorough:
            self.report.left_out += len(ending.changes)

    def _kill_until_done(self, stage: Stage, proven: set[tuple[str, ...]], kills: list[str]) -> Ending:
        last = ""
        while True:
            dirty = self._write(stage)
            ending = self._call(stage, self._kill_spec(stage, last, proven, len(kills)))
            self.expected.update(ending.seconds)
            if ending.kill is None:
                return ending
            kind, before, change = ending.kill
            proven.add((stage.name, before, change, kind))
            last = before if kind in (BEFORE, INSIDE) else change
            dirty = max(dirty, self.cache.dirty() or 0)
            self.most_dirty = max(self.most_dirty, dirty)
            kills.append(f"{stage.name}: killed {kind} {change}" + (f" ({dirty} dirty)" if dirty else ""))
            if self.verbose:
                print(f"     {time.monotonic():.0f} {kills[-1]}", flush=True)
            if len(kills) > MOST_KILLS:
                raise WentWrong(f"{stage.name}: {len(kills)} runs were killed and it has not come to its end; the last: {change}")

    def _application(self, stage: Stage) -> Application | None:
        """Writes during the whole step, where a device may stay in use in it."""
        device = self.cache.device() if self.filled and stage.live else None
        return Application(device, self.ledger) if device else None

    def _settled(self, stage: Stage, kills: list[str]) -> None:
        """Everything is as wanted, and every block is the one that was written last."""
        if not self.filled:
            device = self.cache.device()
            self._expect(device is not None, stage, kills, "there is no cached device")
            self._fill(str(device))
        again = self._call(stage, None)
        self._expect(not again.result.get("failed"), stage, kills, f"asked again it failed: {again.result.get('msg')}", again)
        self._expect(not again.result.get("changed"), stage, kills, f"asked again it changed something: {again.result.get('actions')}", again)
        if stage.clean:
            self._compare(self.cache.bottom(), self.cache.offset, stage, kills, "on the slow device alone")
        device = self.cache.device()
        if device:
            self._compare(device, 0, stage, kills, "through the cache")

    def _compare(self, device: str, offset: int, stage: Stage, kills: list[str], where: str) -> None:
        wrong = self.ledger.wrong(device, offset)
        self._expect(not wrong, stage, kills, f"{len(wrong)} of {len(self.ledger.versions)} blocks are wrong {where} ({device}): {'; '.join(wrong[:3])}")

    def _kill_spec(self, stage: Stage, last: str, proven: set[tuple[str, ...]], killed: int) -> KillSpec | None:
        if self._late() or (self.thorough and killed) or (self.sample and killed >= self.sample):
            return None

        def kinds(before: str, change: str) -> list[str]:
            places = [(stage.name, before, change, kind) for kind in self._kinds(change)]
            return [place[-1] for place in places if place not in proven and self._chosen(place)]

        return KillSpec(kinds, last, dict(self.expected), self.chance)

    def _chosen(self, place: tuple[str, ...]) -> bool:
        """The same in the process that is killed and in the one that counts."""
        return not self.sample or zlib.crc32(repr((self.seed, place)).encode()) % 2 == 0

    def _kinds(self, change: str) -> list[str]:
        long = change.split(" ", 1)[0] in LONG
        if self.thorough:
            return [BEFORE, *([INSIDE, ORPHAN] if long else []), AFTER]
        if ".cachefleet-N.tmp" in change:
            # A file that is not read before it has its name.
            return []
        # By the words of the change, so that it is the same in the process that is killed and in the one that counts.
        return [(INSIDE, ORPHAN)[sum(change.encode()) % 2], AFTER] if long else [AFTER]

    def _write(self, stage: Stage) -> int:
        """Where nothing may write during a step: what is dirty when it begins."""
        device = self.cache.device() if self.filled and not stage.live else None
        if device:
            self.ledger.write(device, self.ledger.some(TRAFFIC))
        return self.cache.dirty() or 0

    def _call(self, stage: Stage, kill_spec: KillSpec | None) -> Ending:
        try:
            return call(self.cache.module, stage.caches, kill_spec, PATIENCE)
        except TimeoutError as error:
            raise WentWrong(f"{stage.name}: {error}") from None

    def _expect(self, good: bool, stage: Stage, kills: t.Sequence[str], text: str, ending: Ending | None = None) -> None:
        if good:
            return
        story = f"; before that: {' | '.join(kills[-3:])}" if kills else ""
        evidence = f"; {ending.result}" if ending is not None and self.verbose else ""
        raise WentWrong(f"{stage.name}: {text}{story}{evidence}")

    def _expect_nothing_left(self) -> None:
        """Devices that the last stage released are empty and unused: they could be taken again."""
        for disk in self.cache.stages()[-1].caches[0]["cache_devices"]:
            found = objections(disk)
            if found:
                raise WentWrong(f"remove: {disk} was to be released and {found}")


def objections(path: str) -> str:
    """What the guard of fio has against writing over a device; empty if nothing."""
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.examination import examine
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.judge import judge

    runner = Runner()
    try:
        facts = examine(read_devices(runner), GuardTarget(path), runner, writing=True)
    except StorageError as error:
        return error.message
    return "; ".join(objection.text for objection in judge(facts, writing=True))


def require_scratch(paths: t.Sequence[str]) -> None:
    """Refuse disks that are not named by what is written on them, or are not empty."""
    if os.geteuid():
        sys.exit("It must run as root.")
    real = [os.path.realpath(path) for path in paths]
    for path, device in zip(paths, real):
        if not path.startswith("/dev/disk/by-id/"):
            sys.exit(f"{path} may be another disk tomorrow: name it by a path below /dev/disk/by-id.")
        if real.count(device) > 1:
            sys.exit(f"{path} is named twice.")
        found = objections(path)
        if found:
            sys.exit(f"{path} is not empty or not free: {found}")
