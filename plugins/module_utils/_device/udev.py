# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The udev database: one command for the identity of every block device of a host."""

from __future__ import annotations

import time
import typing as t
from pathlib import Path

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner


#: udevd has this file as long as it has events to process: what ``udevadm settle`` waits for (src/libudev of systemd, udev_queue_get_queue_is_empty).
_QUEUE = "run/udev/queue"
_PATIENCE, _LOOK = 3.0, 0.05


def wait_until_settled(root: Path = Path("/"), sleep: t.Callable[[float], None] = time.sleep) -> bool:
    """Whether udev has processed all events, after a few seconds at most: before that its database may have the properties of an earlier device."""
    waited = 0.0
    while (root / _QUEUE).exists():
        if waited >= _PATIENCE:
            return False
        sleep(_LOOK)
        waited += _LOOK
    return True


def parse_export(text: str) -> dict[str, dict[str, str]]:
    """``udevadm info`` of many devices, or of the whole database, as ``{kernel name: {property: value}}``, block devices only.

    Records are separated by blank lines; ``P:`` carries the path in sysfs, ``E:`` one ``KEY=value`` property each
    (udevadm(8)). The kernel name is the last part of the path, in which a slash of the device name is written ``!``.
    """
    devices: dict[str, dict[str, str]] = {}
    for record in text.split("\n\n"):
        name = ""
        properties: dict[str, str] = {}
        for line in record.splitlines():
            if line.startswith("P: "):
                name = line.rsplit("/", 1)[-1]
            elif line.startswith("E: "):
                key, separator, value = line[3:].partition("=")
                if separator:
                    properties[key] = value
        if name and properties.get("SUBSYSTEM") == "block":
            devices[name] = properties
    return devices


def refresh(runner: Runner, paths: t.Sequence[str], item: str | None = None) -> None:
    """Have udev examine devices again whose content was changed, and wait for it: its database is what most programs of a host go by.

    udev examines a device by itself when a writer closes it, and misses it while it is busy with the same device.
    """
    if paths:
        runner.run(["udevadm", "trigger", "--action=change", "--settle", *paths], ok=None, item=item)


def read_properties(runner: Runner, names: t.Sequence[str]) -> dict[str, dict[str, str]]:
    """The properties of block devices; empty where the host runs no udev at all.

    :param names: the kernel names that /sys/class/block shows.
    """
    if not names or not runner.has("udevadm"):
        return {}
    # The database of a whole server takes udevadm five times as long as its block devices do.
    completed = runner.run(["udevadm", "info", *(f"/sys/class/block/{name}" for name in names)], ok=None)
    found = parse_export(completed.stdout) if completed.rc == 0 else {}
    # A device that went away in between ends udevadm, and an old one answers for the first device only.
    if set(names) <= set(found):
        return found
    return parse_export(runner.run(["udevadm", "info", "--export-db"]).stdout)
