# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verifier of one run on its host, once that is back: the target is waited for and must be the same, then every block is read."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._guard import examination, judge
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import opened_target, verifier
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.host_writer import boot_id, fence_records
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.record import Blocks
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.spec import RunSpec, spec_of
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.witness_log import read_log

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import TargetFacts
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.medium import Medium
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.witness_log import WitnessLog

_PAUSE = 2.0


def verify(log_file: Path, run: str, read_devices: t.Callable[[], Devices], runner: Runner, *, timeout: float = 120.0) -> dict[str, t.Any]:
    """What is left of a run.

    :param timeout: seconds to wait for the target after the boot.
    :returns: see :meth:`verifier.Verification.to_dict`, with ``fence_damaged`` and ``booted``.
    :raises StorageError: if that cannot be determined: nothing counts as kept that was not read.
    """
    if not 0 <= timeout < math.inf:
        raise BadInput(f"timeout must be a number of seconds from 0, not {timeout}.", item="timeout")
    log = read_log(log_file, run)
    spec = spec_of(log.writer)
    rebooted = log.writer.get("boot_id") != boot_id()
    target = _open_target(spec, log, _wait_for_target(spec, read_devices, runner, timeout), runner)
    if target is None:
        # Its acknowledged writes are gone with it.
        return _result(_nothing_left(log, spec, run, rebooted=rebooted), [], rebooted=rebooted, is_usable=verifier.is_usable(log))
    try:
        medium = spec.medium(target, readable=True)
    finally:
        os.close(target)
    with contextlib.closing(medium):
        blocks = Blocks(bytes.fromhex(run), spec.block_size)
        found = verifier.verify(log, blocks, medium.read, rebooted=rebooted)
        damaged = damaged_fence(spec, blocks, medium)
    return _result(found, damaged, rebooted=rebooted, is_usable=verifier.is_usable(log))


def _open_target(spec: RunSpec, log: WitnessLog, facts: TargetFacts | None, runner: Runner) -> int | None:
    """The target, open; ``None`` if it is gone."""
    if facts is not None:
        return opened_target.open_device(facts, os.O_RDONLY, runner)
    owner = log.writer.get("owner", os.geteuid())
    return opened_target.open_left(Path(spec.path), owner, is_folder=spec.layout == "rename")


def _nothing_left(log: WitnessLog, spec: RunSpec, run: str, *, rebooted: bool) -> verifier.Verification:
    return verifier.verify(log, Blocks(bytes.fromhex(run), spec.block_size), lambda _place: b"", rebooted=rebooted)


def _result(found: verifier.Verification, damaged: t.Sequence[int], *, rebooted: bool, is_usable: bool) -> dict[str, t.Any]:
    if damaged and rebooted and is_usable and found.verdict != verifier.LOST_WRITES:
        reason = f"{len(damaged)} blocks behind the range that was written, which had been synced before the run, are damaged."
        found = dataclasses.replace(found, verdict=verifier.LOST_WRITES, reason=reason)
    return {**found.to_dict(), "fence_damaged": len(damaged), "rebooted": rebooted}


def damaged_fence(spec: RunSpec, blocks: Blocks, medium: Medium) -> list[int]:
    """Offsets of the blocks of the fence that are not as they were written."""
    damaged = []
    for record in fence_records(spec):
        try:
            contents = blocks.read(medium.read(record.offset // spec.block_size))
        except OSError as error:
            raise NotUnderstood(f"The block at byte {record.offset} cannot be read: {error.strerror}. What is not read does not count as kept.") from None
        if contents.record != record:
            damaged.append(record.offset)
    return damaged


def _wait_for_target(spec: RunSpec, read_devices: t.Callable[[], Devices], runner: Runner, timeout: float) -> TargetFacts | None:
    """Wait until the target is there: caches are assembled after the boot.

    :returns: what was found of a device; nothing of a file.
    :raises DeviceMissing: if it does not appear.
    :raises Refused: if it is another device by now.
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            if spec.kind == "file":
                if not Path(spec.path).parent.is_dir():
                    raise DeviceMissing(f"The folder {Path(spec.path).parent} does not exist.", item=spec.path)
                return None
            target = GuardTarget(spec.path, identity=spec.identity, size=spec.extent)
            facts = examination.examine(read_devices(), target, runner, writing=False)
            judge.require(facts, writing=False)
            return facts
        except DeviceMissing as error:
            if time.monotonic() > deadline:
                raise DeviceMissing(
                    f"The target {spec.path} of the power-loss test did not appear within {timeout:g} s after the boot ({error.message}) "
                    "Assemble it, for example mount it or activate its cache, and run the playbook again to verify this cut.",
                    item=spec.path,
                ) from None
        time.sleep(_PAUSE)
