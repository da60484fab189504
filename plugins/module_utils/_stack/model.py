# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words of a stack: the facts of a layer, and what is concluded from them."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen

DURABLE = "durable"
AT_RISK = "at_risk"
UNKNOWN = "unknown"
WORST_FIRST = (AT_RISK, UNKNOWN, DURABLE)

SURVIVES = "survives"
LOSES = "loses"


@frozen
class Group:
    """Devices below a layer that hold the same data together; a layer with several groups needs all of them.

    :param members: each member as the kernel names of all the devices it consists of (an image and its metadata).
    :param tolerance: how many members may be gone before data is lost; ``None`` if that is not known.
    :param why: a clause that describes the group, following the name of the layer: ``is a whole raid1 array``.
    :param newest: whether it holds data that no other group has yet, as a write-back cache does.
    :param mirrored: whether a better source reports that it survives the loss of a member.
    """

    members: tuple[tuple[str, ...], ...]
    tolerance: int | None = 0
    why: str = ""
    newest: bool = False
    mirrored: bool = False


@frozen
class LayerFacts:
    """The facts of a reader about one device.

    :param layer: ``drive``, ``controller``, ``block_cache``, ``array``, ``pool``, ``network``, ``file`` or ``memory``.
    :param state: the effective settings, plain data, as they go into results and reports.
    :param volatile: whether acknowledged writes may wait in memory that a power cut empties; ``None`` if that is not known.
    :param why: the reason, a clause that can follow the name of the device.
    :param loses: whether a power cut can take flushed writes for another reason than a volatile memory.
    :param device_loss: what the loss of one device does to what is stored here, where it does not follow from what lies below.
    :param device_loss_reason: a clause that can follow the name of the device.
    :param newest: whether what a device takes with it is the newest data, which is nowhere else yet, as in a write-back cache.
    :param media: kernel names of what lies below and counts in a power cut, its own name if it is a medium itself; ``None``: all that the
        kernel shows.
    :param groups: how what is stored here is spread over what lies below; ``None``: everything below is needed.
    :param ends_flushes: a clause why no flush goes on from here, or nothing.
    :param lazy: a clause why a flush need not go on from here although nothing is lost, or nothing.
    :param top_only: whether it counts only for what is written to this device itself, not for what lies on it.
    :param note: a sentence that belongs to the loss of a device, or nothing.
    """

    layer: str
    state: t.Mapping[str, t.Any] = field(default_factory=dict)
    volatile: bool | None = None
    why: str = ""
    loses: bool = False
    device_loss: str = ""
    device_loss_reason: str = ""
    newest: bool = False
    media: tuple[str, ...] | None = None
    groups: tuple[Group, ...] | None = None
    ends_flushes: str = ""
    lazy: str = ""
    top_only: bool = False
    note: str = ""


@frozen
class Verdict:
    """Whether a write survives a power failure.

    :param verdict: ``durable``, ``at_risk`` or ``unknown``: one that was acknowledged and flushed, after a power cut.
    :param unflushed: ``kept``, ``may_be_lost`` or ``unknown``: one without a flush, after a power cut.
    :param device_loss: ``survives``, ``loses`` or ``unknown``: everything that was written, after the failure of one device.
    """

    verdict: str
    reason: str
    unflushed: str
    device_loss: str = UNKNOWN
    device_loss_reason: str = ""


@frozen
class Proof:
    """What became of flushes that were really sent.

    :param device: the kernel name of the device that they were sent to.
    :param disk: the kernel name of a medium below it.
    :param reached: whether they arrived; ``None`` if that could not be determined.
    :param flushes: how many were sent.
    """

    device: str
    disk: str
    reached: bool | None
    flushes: int
