# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is left of the acknowledged writes of a run after a power cut.

Each place that was acknowledged must have its last acknowledged write, or a later one of the run, which was under way. Anything else is
damage, of one kind:

* ``torn``: sectors of this run, of more than one write or not all of them;
* ``misplaced``: a whole block of this run that belongs elsewhere;
* ``stale``: an earlier write of the run than the last acknowledged one;
* ``lost``: nothing of this run.

A damaged write is also ``reordered`` if a write survived that was begun after it had been acknowledged: then the device did not lose
just the last writes. All times are of the monotonic clock of the host, within one boot: no clock of the day matters.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.witness_log import CUT, ENDED, IMPOSSIBLE, Acknowledged, WitnessLog

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.record import BlockContents, Blocks

KINDS = ("lost", "stale", "torn", "misplaced")

#: Of one power cut.
KEPT, LOST_WRITES, PROVES_NOTHING = "kept", "lost", "proves_nothing"


@frozen
class Damage:
    """One acknowledged write that is not there."""

    kind: str
    write: Acknowledged
    reordered: bool


@frozen
class Verification:
    """What one power cut did.

    :param verdict: ``kept``, ``lost`` or ``proves_nothing``.
    :param reason: one sentence.
    :param acknowledged: writes that were acknowledged.
    :param places: places that were checked: of several writes to one place only the last counts.
    :param oldest_ns: age of the oldest damaged write when the last one was acknowledged.
    """

    verdict: str
    reason: str
    acknowledged: int
    places: int
    damage: tuple[Damage, ...] = ()
    oldest_ns: int | None = None

    def count(self, kind: str) -> int:
        return sum(one.kind == kind for one in self.damage)

    def to_dict(self) -> dict[str, t.Any]:
        """Plain data, as it is returned and stored."""
        first = min((one.write.sequence for one in self.damage), default=None)
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "acknowledged": self.acknowledged,
            "places": self.places,
            "damaged": len(self.damage),
            **{kind: self.count(kind) for kind in KINDS},
            "reordered": sum(one.reordered for one in self.damage),
            "first_damaged_sequence": first,
            "oldest_damage_seconds": None if self.oldest_ns is None else round(self.oldest_ns / 1e9, 3),
        }


def verify(log: WitnessLog, blocks: Blocks, read: t.Callable[[int], bytes], *, rebooted: bool) -> Verification:
    """Read every place that was acknowledged.

    :param read: the block at a place, by its number.
    :param rebooted: whether the host has booted since the writer began.
    :raises NotUnderstood: if the log and the blocks do not fit together, or a block cannot be read.
    """
    expected = _last_writes(log, blocks.size)
    found = {offset: _read(read, blocks, offset) for offset in sorted(expected)}
    begun = max((contents.record.time for offset, contents in found.items() if contents.record is not None and contents.record.offset == offset), default=0)
    damage = []
    for offset, contents in found.items():
        kind = _kind(contents, expected[offset])
        if kind is not None:
            damage.append(Damage(kind, expected[offset], begun > expected[offset].time))
    damage.sort(key=lambda one: one.write.sequence)
    oldest = None
    if damage:
        oldest = max(write.time for write in log.acknowledged) - min(one.write.time for one in damage)
    verdict, reason = _judge(log, len(damage), len(expected), rebooted)
    return Verification(verdict, reason, len(log.acknowledged), len(expected), tuple(damage), oldest)


def is_usable(log: WitnessLog) -> bool:
    """Whether a log can prove anything: it has its end, and only what its writer can have written."""
    return log.complete and IMPOSSIBLE not in log.events


def _last_writes(log: WitnessLog, size: int) -> dict[int, Acknowledged]:
    expected: dict[int, Acknowledged] = {}
    for write in log.acknowledged:
        if write.length != size or write.offset % size:
            raise NotUnderstood(f"The log of the witness has a write of {write.length} bytes at {write.offset}, which is not a block of this run.")
        if write.offset not in expected or expected[write.offset].sequence < write.sequence:
            expected[write.offset] = write
    return expected


def _read(read: t.Callable[[int], bytes], blocks: Blocks, offset: int) -> BlockContents:
    try:
        return blocks.read(read(offset // blocks.size))
    except OSError as error:
        raise NotUnderstood(f"The block at byte {offset} cannot be read: {error.strerror}. What is not read does not count as kept.") from None


def _kind(contents: BlockContents, write: Acknowledged) -> str | None:
    if not contents.records:
        return "lost"
    record = contents.record
    if record is None:
        return "torn"
    if record.offset != write.offset:
        return "misplaced"
    return "stale" if record.sequence < write.sequence else None


def _judge(log: WitnessLog, damaged: int, places: int, rebooted: bool) -> tuple[str, str]:
    if not log.acknowledged:
        return PROVES_NOTHING, "No write was acknowledged before the power cut."
    if not rebooted:
        return PROVES_NOTHING, "The host has not booted since the writer began: its power was not cut."
    if IMPOSSIBLE in log.events:
        return PROVES_NOTHING, "The writer reported more than its load can have written, or other blocks than its own: its reports are not credible."
    if not log.complete:
        return PROVES_NOTHING, "The log of the witness has no end: the witness ended unexpectedly, and what it did not record is not known."
    if damaged:
        return LOST_WRITES, f"{damaged} of {places} blocks with acknowledged writes are damaged."
    if CUT not in log.events:
        return PROVES_NOTHING, "The witness was not notified of the power cut, so it is not known whether the writer was active then."
    if ENDED in log.events:
        return PROVES_NOTHING, "The writer had ended before the power was cut: everything may have been written out by then."
    if not log.active_after_cut:
        return PROVES_NOTHING, "Nothing was in flight: the witness received nothing from the writer after the power cut was ordered."
    return KEPT, f"All {places} blocks with acknowledged writes are present."
