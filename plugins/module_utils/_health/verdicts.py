# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a flushed write survives a power failure on each device in use: mounted devices and ZFS pools."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Finding
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import AT_RISK, DURABLE, read_stack

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._stack.model import Verdict


def read_verdicts(runner: Runner, root: Path, protected: t.Sequence[str], flushed: t.Sequence[str] = ()) -> tuple[dict[str, Verdict], tuple[str, ...]]:
    """The verdicts by device, and what could not be read.

    :param protected: drives whose cache is declared to survive a power cut; ``flushed``: virtual disks whose flushes are declared to reach media.
    """
    try:
        stack = read_stack(runner, root, protected, flushed=flushed)
    except StorageError as error:
        return {}, (error.message,)
    used = [device for device in stack.devices if device.mountpoints or device.kind == "zfs"]
    return {device.stable_path or device.path: stack.verdict(device) for device in used}, tuple(stack.problems)


def verdict_findings(verdicts: t.Mapping[str, Verdict]) -> t.Iterator[Finding]:
    """Devices on which a flushed write may be lost in a power cut."""
    for device, one in verdicts.items():
        if one.verdict == AT_RISK:
            words = f"A flushed write on {device} may be lost in a power failure: {one.reason}"
            yield Finding("warning", device, "verdict", words, AT_RISK, DURABLE)
