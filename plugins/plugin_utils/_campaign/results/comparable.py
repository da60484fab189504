# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What measurements are compared by, and what must be equal in two that are. Pure."""

from __future__ import annotations

import operator
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import SHOWN

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement


class Metric(t.NamedTuple):
    """A column of a measurement, whether more of it is better, and the difference in percent that matters unless another is given."""

    column: str
    higher_is_better: bool
    percent: float


METRICS = {
    "iops": Metric("iops", True, 5.0),
    "bandwidth": Metric("bw_bytes", True, 5.0),
    "latency": Metric("lat_mean_ns", False, 10.0),
    **{one.name: Metric(one.column, False, 15.0 if one.name == "p99.9" else 10.0) for one in SHOWN},
}

#: What must be equal in two measurements of one configuration.
KEYS = (
    "behaviour_class", "fio_version", "kernel", "rw", "bs", "ioengine", "iodepth", "numjobs", "rwmixread", "fdatasync", "fsync", "direct",
    "workload_sha256", "target_size", "model", "firmware", "stack_sha256",
)  # fmt: skip

#: Those that are options of the job, which the hash of the whole job covers too.
_OF_THE_JOB = frozenset({"rw", "bs", "ioengine", "iodepth", "numjobs", "rwmixread", "fdatasync", "fsync", "direct"})

#: What two variants differ in on purpose: an SSD cache brings another drive, and makes another stack.
_OF_A_VARIANT = frozenset({"model", "firmware", "stack_sha256"})

#: What must be equal in two measurements of two variants.
KEYS_OF_VARIANTS = tuple(key for key in KEYS if key not in _OF_A_VARIANT)


def keys_without(ignore: t.Collection[str]) -> list[str]:
    """What must be equal in two variants, except what the user ignores."""
    return [key for key in KEYS_OF_VARIANTS if key not in ignore]


def read_ignored(ignore: t.Sequence[str]) -> tuple[str, ...]:
    """:raises BadInput: for what is not compared anyway."""
    unknown = sorted(set(ignore) - set(KEYS))
    if unknown:
        raise BadInput(f"'{unknown[0]}' cannot be ignored: use one of {', '.join(KEYS)}.")
    return tuple(ignore)


def differing_keys(old: t.Iterable[Measurement], new: t.Iterable[Measurement], keys: t.Iterable[str]) -> list[str]:
    """The keys for which both sides have values, and not one and the same. A value missing on one side (an older collection) is not a difference."""
    return list(_different_values(old, new, keys))


def differences(old: t.Iterable[Measurement], new: t.Iterable[Measurement], keys: t.Iterable[str]) -> list[str]:
    """What makes two sides incomparable, as ``kernel 6.1.0 / 6.12.0``."""
    found = _different_values(old, new, keys)
    job = found.pop("workload_sha256", None)
    named = [f"{key.replace('_', ' ')} {' / '.join(', '.join(plain(one, 40) for one in side) for side in values)}" for key, values in found.items()]
    # A hash says nothing where an option that differs is named.
    return [*named, "other options of the job (workload sha256)"] if job and not _OF_THE_JOB & found.keys() else named


def _are_equal(sides: t.Sequence[t.Sequence[Measurement]], keys: tuple[str, ...]) -> bool:
    """Whether all measurements have the same values: most have."""
    if not keys:
        return True
    values = operator.attrgetter(*keys)
    return len({values(one) for side in sides for one in side}) <= 1


def _different_values(old: t.Iterable[Measurement], new: t.Iterable[Measurement], keys: t.Iterable[str]) -> dict[str, list[list[str]]]:
    sides, keys = [list(old), list(new)], tuple(keys)
    if _are_equal(sides, keys):
        return {}
    found = {}
    for key in keys:
        values = [sorted({str(value) for one in side if (value := getattr(one, key)) is not None}) for side in sides]
        # A side with several values is a mixture, whose shares may differ from those of the other side.
        if all(values) and (values[0] != values[1] or len(values[0]) > 1):
            found[key] = values
    return found
