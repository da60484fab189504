# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One answer for each path that a user names: whether an fsync there reaches every volatile cache below."""

from __future__ import annotations

import dataclasses
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import describe_suspended
from ansible_collections.cachefleet.storage.plugins.module_utils._stack import flush_proof, flush_target
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.flush_proof import Arrival, Counters
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.model import AT_RISK, UNKNOWN

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice
    from ansible_collections.cachefleet.storage.plugins.module_utils._stack.flush_target import FlushTarget
    from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import Stack

PROVED = "proved"
DISPROVED = "disproved"
UNPROVEN = "unproven"
NOT_NEEDED = "not_needed"
OUT_OF_SIGHT = "unknown"
MOST_FLUSHES = 1000
FLUSHES, SETTLE = 8, 0.5


@frozen
class Check:
    """What was found out about one block device.

    :param error: why no flush could be sent, as a sentence, or nothing.
    """

    device: BlockDevice
    arrivals: tuple[Arrival, ...]
    error: str = ""

    @property
    def state(self) -> str:
        """``proved``, ``disproved``, ``unproven`` or ``not_needed``; the worst medium decides."""
        if self.error:
            return UNPROVEN
        needed = [one.reached for one in self.arrivals if one.needed]
        if not needed:
            return NOT_NEEDED
        if False in needed:
            return DISPROVED
        return UNPROVEN if None in needed else PROVED


@frozen
class Means:
    """How flushes are sent and counted; tests bring their own."""

    counters: Counters
    send: flush_proof.Sender = flush_proof.send_flushes
    clock: t.Callable[[], float] = time.monotonic
    sleep: t.Callable[[float], None] = time.sleep


def check(
    stack: Stack, paths: t.Sequence[str], flushes: int = FLUSHES, settle: float = SETTLE, root: Path = Path("/"), means: Means | None = None
) -> tuple[Stack, list[dict[str, t.Any]]]:
    """Send flushes to what the paths name, one after the other.

    :param flushes: per burst.
    :param settle: seconds between the first flush and the first burst.
    :returns: the stack with the proofs, and one result for each path as plain data.
    :raises BadInput: for a count that makes no sense.
    :raises DeviceMissing: if a path lies on no block device.
    """
    if not 1 <= flushes <= MOST_FLUSHES:
        raise BadInput(f"flushes is {flushes}: use a number from 1 to {MOST_FLUSHES}.", item="flushes")
    if settle < 0:
        raise BadInput(f"settle is {settle:g}: use a number of seconds, 0 or more.", item="settle")
    means = means or Means(Counters(root))
    targets = [flush_target.resolve(path, stack.devices, root) for path in paths]
    devices = {device.name: device for target in targets for device in target.devices}
    checks = {name: _check_device(stack, device, flushes, settle, means) for name, device in devices.items()}
    proved = stack.with_proofs([proof for one in checks.values() for proof in flush_proof.proofs(one.device, one.arrivals, flushes)])
    results = [_result(stack, proved, target, device, checks[device.name], flushes) for target in targets for device in target.devices]
    return proved, results


def _check_device(stack: Stack, device: BlockDevice, flushes: int, settle: float, means: Means) -> Check:
    together = {means.counters.of(path) for path in stack.paths(device)}
    rounds: list[flush_proof.Round] = []
    error = ""
    suspended = [one for one in (device, *stack.devices.parents(device)) if one.suspended]
    if suspended:
        # A flush would wait as long as it is suspended.
        error = describe_suspended(suspended[0])
    elif device.kind != "zfs":
        # A pool is no node that could be opened.
        try:
            rounds = flush_proof.count(device, together, flushes, counters=means.counters, send=means.send, settle=settle, clock=means.clock, sleep=means.sleep)
        except CommandFailed as failed:
            error = failed.message
    return Check(device, tuple(flush_proof.arrivals(stack, device, flushes, rounds, means.counters)), error)


def agreed(state: str, verdict: str) -> str:
    """The state of a check that does not contradict the verdict on the stack.

    That every flush reached the disks of the kernel is no proof where a controller answers for drives behind it that are not visible, and
    none where one of those is known to lose what it was given.
    """
    if state not in (PROVED, NOT_NEEDED):
        return state
    return {AT_RISK: DISPROVED, UNKNOWN: OUT_OF_SIGHT}.get(verdict, state)


def _result(stack: Stack, proved: Stack, target: FlushTarget, device: BlockDevice, found: Check, flushes: int) -> dict[str, t.Any]:
    before, after = stack.verdict(device), proved.verdict(device)
    state, verdict, reason = found.state, after.verdict, after.reason
    if not target.barriers and found.state != NOT_NEEDED:
        state, verdict = DISPROVED, AT_RISK
        reason = f"The file system on {target.mount} is mounted without barriers, so that it sends no flush at all."
    state = agreed(state, verdict)
    return {
        "path": target.path,
        "device": device.path,
        "mount": target.mount,
        "barriers": target.barriers,
        "flushes": flushes,
        "state": state,
        "error": found.error,
        "disks": [{**dataclasses.asdict(one), "counted": list(one.counted), "control": list(one.control)} for one in found.arrivals],
        "verdict": verdict,
        "reason": reason,
        "verdict_without_proof": before.verdict,
        "reason_without_proof": before.reason,
        "device_loss": after.device_loss,
        "device_loss_reason": after.device_loss_reason,
    }
