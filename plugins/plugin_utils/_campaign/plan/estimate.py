# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long a job takes on a target and how much it writes, before it is run. Pure.

Written bytes are rather over- than underestimated: a job with a time limit is taken to write all the time, as fast as the
target can, its ramp included. Only what its own sizes bound is exact.
"""

from __future__ import annotations

import math
import re
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import parse_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import sections
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.extent import bytes_of
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job_options import DIRECTIONS
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.cautions import by_direction
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import Job, Section

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.replay import Replay
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.targets import CampaignTarget

_WRITES_ALL = frozenset({"write", "randwrite"})
_WRITES_PART = frozenset({"rw", "readwrite", "randrw", "trimwrite", "randtrimwrite"})
#: What fio uses without an option (HOWTO: blocksize).
_BLOCK = 4096


@dataclass(frozen=True)
class Estimate:
    """What one run of a job will take.

    :param seconds: expected, ramp included; ``None`` if neither the job nor the size of the target determines it.
    :param known: whether it takes just that long on every host, so that a timetable can count on it.
    :param longest: seconds after which the job ends by itself, whatever the target does; ``None`` if nothing limits it.
    :param written: bytes at most; ``None`` if they cannot be known.
    :param exact: whether ``written`` follows from its sizes, and no upper bound from a time and a rate.
    """

    seconds: float | None
    known: bool
    longest: float | None
    written: int | None
    exact: bool

    def times(self, count: int) -> Estimate:
        """Several of them, one after the other."""
        seconds, longest, written = (None if value is None else value * count for value in (self.seconds, self.longest, self.written))
        return Estimate(seconds, self.known, longest, None if written is None else round(written), self.exact)


@dataclass(frozen=True)
class _Part:
    """One section: the same for it alone, and the bytes of it that its device would take in a second, whatever the job limits itself to."""

    seconds: float | None
    written: int | None
    exact: bool
    device_rate: float


def estimate(job: Job, target: CampaignTarget, cell: str, others: t.Mapping[str, CampaignTarget] | None = None) -> Estimate:
    """What a job will take on a target. Sections that run at the same time share what their target can do.

    :param others: targets that sections of the job name.
    :raises BadInput: if a number of the job cannot be read.
    """
    parts: dict[str, _Part] = {}
    for section in job.sections:
        try:
            parts[section.name] = _part(section, target if section.target is None else (others or {}).get(section.target, target))
        except BadInput as error:
            raise BadInput(f"{cell}: how much the job writes cannot be determined: {error.message}", item=cell) from None
        except (ValueError, ArithmeticError):
            raise BadInput(f"{cell}: how much the job writes cannot be determined: one of its numbers is out of range.", item=cell) from None
    spans = sections.spans_of(job.sections, lambda section: parts[section.name].seconds)
    when = {} if spans is None else {section.name: span for section, span in zip(job.sections, spans)}
    phases = [
        [section.name for section in phase if section.target == place] for phase in sections.phases_of(job.sections) for place in (None, *job.target_names)
    ]
    known = all(section.asked_runtime is not None for section in job.sections)
    return Estimate(
        seconds=job.longest if known else None if spans is None else sections.covered(spans)[1],
        known=known,
        longest=job.longest,
        written=_sum([_written([parts[name] for name in names], [when[name] for name in names if name in when]) for names in phases]),
        exact=all(part.exact for part in parts.values()),
    )


def _sum(values: t.Sequence[t.Any]) -> t.Any:
    return None if any(value is None for value in values) else sum(values)


def _written(parts: t.Sequence[_Part], spans: t.Sequence[sections.Span]) -> int | None:
    """What the sections of one phase write: in the time that they take together their device takes no more than it can."""
    written = _sum([part.written for part in parts])
    if written is None or not spans or all(part.exact for part in parts):
        return written
    begin, end = sections.covered(spans)
    return min(written, round((end - begin) * max(part.device_rate for part in parts)))


def _part(section: Section, target: CampaignTarget) -> _Part:
    if section.replay is not None:
        return _replay_part(section, section.replay, target)
    share = _write_share(section)
    device_rate, limits = _device_rate(section, target), _limits(section)
    if share and any(by_direction(section.value(option)) for option in ("rate", "rate_iops")):
        # fio holds each direction to its own limit, whatever the mix says: the one that is behind goes on while the other waits.
        share = 1.0
    moved = None if section.asked_runtime is not None else _moved(section, target)
    longest = section.longest
    # A job of mixed directions moves as much more than it writes; a device reads no slower than it writes.
    active = [limits.get(direction, device_rate) for direction in DIRECTIONS.get(_mode(section), ("read",))]
    by_size = None if moved is None else moved / min(device_rate, sum(active))
    seconds = longest if by_size is None else by_size if longest is None else min(longest, by_size)
    if share == 0:
        return _Part(seconds, 0, True, device_rate)
    by_time = None if longest is None else longest * min(device_rate * share, limits.get("write", device_rate))
    amount = None if moved is None else moved * share
    bounds = [bound for bound in (by_time, amount) if bound is not None]
    exact = _write_share(section) == 1 and amount is not None and (by_time is None or amount <= by_time)
    return _Part(seconds, round(min(bounds)) if bounds else None, exact, device_rate)


def _replay_part(section: Section, log: Replay, target: CampaignTarget) -> _Part:
    """A log moves what is in it, not faster than the target, and not faster than recorded if it has times."""
    average = sum(log.moved.values()) / log.ios
    rate = min(target.write_rate, target.write_iops * average)
    seconds = max(sum(log.moved.values()) / rate, log.seconds or 0.0)
    limit = section.longest
    return _Part(seconds if limit is None else min(seconds, limit), log.moved["write"], limit is None or limit >= seconds, rate)


def _write_share(section: Section) -> float:
    """The part of what a section moves that it writes; trimming writes nothing."""
    mode = _mode(section)
    if mode in _WRITES_ALL:
        return 1.0
    if mode not in _WRITES_PART:
        return 0.0
    return 1 - section.read_share


def _mode(section: Section) -> str:
    return (section.value("rw", "readwrite") or "read").split(":")[0]


def _device_rate(section: Section, target: CampaignTarget) -> float:
    """Bytes per second that the target takes at most."""
    block = _block(section)
    return target.write_rate if block is None else min(target.write_rate, target.write_iops * block)


def _limits(section: Section) -> dict[str, float]:
    """Bytes per second to which the job limits itself, by direction: each of its clones, in each direction by itself."""
    block, jobs = _block(section), _jobs(section)
    found: dict[str, float] = {}
    for option, unit in (("rate_iops", block), ("rate", 1)):
        for direction, limit in by_direction(section.value(option)).items():
            if unit is not None:
                found[direction] = min(found.get(direction, math.inf), limit * unit * jobs)
    return found


def _percent(text: str) -> float:
    """As a part of 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise BadInput(f"'{text}' is not a percentage.")
    return value / 100


def _whole(section: Section, option: str) -> int:
    text = section.value(option) or "1"
    if not text.isascii() or not text.isdigit():
        raise BadInput(f"{option}={text} is not a whole number.")
    return int(text)


def _jobs(section: Section) -> int:
    return max(1, _whole(section, "numjobs"))


def _block(section: Section) -> int | None:
    """Bytes of one write; the largest of a range, ``None`` if the job has a list of them."""
    if section.value("bssplit") is not None:
        return None
    text = section.value("bsrange", "blocksize_range") or section.value("bs", "blocksize") or str(_BLOCK)
    # Read, write, trim. One value is for all of them, and one that is left out is fio's own.
    parts = text.split(",")
    write = parts[1] if len(parts) > 1 else parts[0]
    block = parse_size(re.split(r"[-:]", write)[-1]) if write.strip() else _BLOCK
    if not block:
        raise BadInput(f"'{text}' is not the size of a block.")
    return block


def _moved(section: Section, target: CampaignTarget) -> int | None:
    """Bytes that a job without a time moves before it ends by itself, all its clones together; ``None`` if unknown."""
    count = section.value("number_ios")
    block = _block(section)
    if count is not None and block is not None:
        return _whole(section, "number_ios") * block * _jobs(section)
    region = _region(section, target)
    moved = section.value("io_size", "io_limit")
    if moved is not None:
        region = _of(moved, region)
    return None if region is None else region * max(1, _whole(section, "loops")) * _jobs(section)


def _region(section: Section, target: CampaignTarget) -> int | None:
    size = section.value("size")
    if target.kind == "directory":
        return bytes_of(section) if size is None else min(bytes_of(section), parse_size(size))
    return target.region if size is None else _of(size, target.region)


def _of(text: str, whole: int | None) -> int | None:
    """A size, or a percentage of the target's."""
    if text.endswith("%"):
        part = _percent(text[:-1])
        return None if whole is None else int(whole * part)
    return parse_size(text)
