# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Snapshots of the cache layers and drives below the targets: full ones seldom, cheap checks between all cells.

Reading every layer takes seconds on a host with many disks. It is done at the beginning and at the end, and between cells only when the
last snapshot is old or a setting changed that is cheap to read.
"""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device import health
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.fingerprint import cheap_fingerprint, hash_of_all, stack_sha256

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import MeasuredHost

#: Seconds after which a snapshot is taken again.
OLD = 300.0

#: A verdict that could not be read is unknown.
_WORSE = {"durable": 0, "unknown": 1, "at_risk": 2}
_FIGURES = (*("wear_used_percent", "spare_percent", "media_errors", "reallocated", "pending", "written_bytes", "power_on_hours", "unsafe_shutdowns", "passed"),)


@frozen
class Snapshot:
    """What was read at one time; ``stacks`` and ``drives`` by kernel name."""

    read_at: float
    stacks: t.Mapping[str, t.Mapping[str, t.Any]]
    drives: t.Mapping[str, t.Mapping[str, t.Any]]
    fingerprint: str

    def stack(self, name: str | None) -> dict[str, t.Any]:
        """The layers of one target, with the time at which they were read."""
        if name is None:
            return {"error": "The block device of the target is not known.", "read_at": self.read_at}
        return {**self.stacks.get(name, {"error": f"{name} was not read."}), "read_at": self.read_at}

    def stack_of_all(self, targets: t.Mapping[str | None, bool]) -> dict[str, t.Any]:
        """The layers of all targets of a cell, each once, and the worst verdict of those that are written.

        :param targets: kernel names, the cell's own target first, and whether each is written.
        """
        if len(targets) == 1:
            return self.stack(next(iter(targets)))
        stacks = {name: self.stack(name) for name in targets}
        layers = {str(layer.get("name")): layer for stack in stacks.values() for layer in stack.get("layers") or ()}
        written = [stacks[name] for name, writes in targets.items() if writes] or list(stacks.values())
        worst = max(written, key=lambda stack: _WORSE.get(stack.get("verdict"), 1))
        each = [{key: value for key, value in stack.items() if key not in ("layers", "read_at")} for stack in stacks.values()]
        return {**worst, "layers": list(layers.values()), "targets": each, "read_at": self.read_at}

    def sha256(self, name: str | None) -> str:
        return stack_sha256({} if name is None else self.stacks.get(name, {}))

    def sha256_of_all(self, names: t.Iterable[str | None]) -> str:
        return hash_of_all([self.sha256(name) for name in names])


class Snapshots:
    """The snapshots of one runner.

    :param tops: kernel names of the targets.
    :param names: kernel names of all devices of all targets.
    """

    def __init__(self, host: MeasuredHost, devices: Devices, tops: t.Collection[str], names: t.Collection[str]) -> None:
        self.host = host
        self.devices = devices
        self.tops = sorted(tops)
        self.names = sorted(names)
        self._last: Snapshot | None = None
        self._mapped = any(device.dm_name for device in map(devices.get, self.names) if device is not None)

    @property
    def last(self) -> Snapshot:
        """The last snapshot; the first one is taken now."""
        return self._last if self._last is not None else self.read()

    def refreshed(self) -> Snapshot:
        """The last snapshot if it is still valid, else a new one."""
        last = self.last
        if self.host.clock() - last.read_at > OLD or self._fingerprint() != last.fingerprint:
            return self.read()
        return last

    def read(self) -> Snapshot:
        """A new snapshot. A layer that cannot be read is reported in it, and stops nothing."""
        try:
            # The first snapshot follows the checks of the targets, for which the devices were read.
            stack = self.host.read_stack(self.devices if self._last is None else None)
            stacks = {name: stack.describe(name) for name in self.tops}
        except StorageError as error:
            stacks = {name: {"error": error.message} for name in self.tops}
        self._last = Snapshot(self.host.clock(), stacks, self._drives(), self._fingerprint())
        return self._last

    def drives_of(self, snapshot: Snapshot, names: t.Iterable[str]) -> dict[str, dict[str, t.Any]]:
        """Temperature and wear of the drives among some devices; the temperature is the present one where the kernel reports it."""
        found = {}
        for name in names:
            temperature = read_temperature(name, self.host.root)
            if name in snapshot.drives or temperature is not None:
                known = snapshot.drives.get(name, {})
                found[name] = {"temperature_c": known.get("temperature_c") if temperature is None else temperature, **_without(known, "temperature_c")}
        return found

    def _drives(self) -> dict[str, dict[str, t.Any]]:
        """By kernel name; drives behind a controller by the argument of ``smartctl -d``."""
        chosen = Devices([device for device in map(self.devices.get, self.names) if device is not None], self.host.root)
        try:
            readings = health.read_drives(chosen, self.host.runner)
        except StorageError:
            return {}
        return {
            drive.device_type or drive.name: {
                "temperature_c": drive.temperature,
                **{name: getattr(drive, name) for name in _FIGURES if getattr(drive, name) is not None},
            }
            for drive in readings.drives
        }

    def _fingerprint(self) -> str:
        tables = ""
        if self._mapped:
            try:
                tables = self.host.runner.run(["dmsetup", "table"], ok=None).stdout
            except StorageError:
                tables = "unknown"
        return cheap_fingerprint(self.names, self.host.root, tables)


def _without(values: t.Mapping[str, t.Any], key: str) -> dict[str, t.Any]:
    return {name: value for name, value in values.items() if name != key}


def read_temperature(name: str, root: Path = Path("/")) -> float | None:
    """Degrees Celsius that the kernel's own sensor reports of a drive (drivetemp, nvme); ``None`` without one.

    Source: Documentation/hwmon/sysfs-interface.rst, ``temp1_input`` in thousandths.
    """
    folder = root / "sys/class/block" / name / "device"
    for place in (*sorted(folder.glob("hwmon/hwmon*/temp1_input")), *sorted(folder.glob("hwmon*/temp1_input"))):
        try:
            return int(place.read_text()) / 1000
        except (OSError, ValueError):
            continue
    return None
