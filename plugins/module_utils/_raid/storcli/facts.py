# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the labels of storcli and perccli 7.x mean."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import ADAPTER_DRIVERS
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    CACHED,
    CHARGING,
    DEGRADED,
    ENABLED,
    FAILED,
    HEALTHY,
    LEARNING,
    MISSING,
    NONE,
    UNKNOWN,
    WRITEBACK,
    WRITETHROUGH,
    CacheVolume,
    Controller,
    Drive,
    MaxCache,
    Protection,
    Reading,
    Volume,
    VolumeMaxCache,
    filled,
    policy,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.output import Data, Output, Reply, folded, read_output, rows, section, word
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.reader import (
    Generation,
    Reader,
    interpreted,
    major_version,
    members_of_rows,
    with_members,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.words import (
    ADAPTER_FLAGS,
    BBU_BITS,
    BBU_LEARN_ACTIVE,
    BBU_LEARN_REQUESTED,
    CONTROLLER_STATES,
    DRIVE_CACHE,
    DRIVE_KEY,
    DRIVE_LIST,
    DRIVE_WRITE_CACHE,
    INITIAL_WRITE,
    IO_COLUMN,
    OTHER_PLACE,
    PERSONALITIES,
    READ_COLUMN,
    UNIT_FAULTS,
    USAGES,
    VOLUME_FLAGS,
    VOLUME_KEY,
    VOLUME_LIST,
    WRITE_COLUMN,
    address_of,
    announced,
    configured_and_effective,
    first,
    flag,
    flags,
    identifier,
    is_drive_key,
    is_spare,
    learn_cycle_of,
    pci_address,
    percent,
    squeezed,
    whole,
)

_COLUMN = re.compile(r"(?P<read>NR|Ra|R|A)(?P<write>AWB|FWB|WB|WT)(?P<io>[DC])?\Z")


def parse(text: str, provider: str = "storcli") -> Reading:
    """Any output of storcli or perccli 7.x (or older): JSON or plain text, of any of its commands."""
    return interpret(read_output(text), provider)


def interpret(output: Output, provider: str) -> Reading:
    """The contents of an output of storcli or perccli 7.x."""
    if major_version(output.version) >= 8:
        return Reading((), (f"CLI version {output.version} is of storcli2 or perccli2, not of storcli or perccli",), complete=False)
    return interpreted(Reader(output, provider), _Generation7)


class _Generation7(Generation):
    """One answer of storcli or perccli 7.x."""

    def __init__(self, reader: Reader, answer: Reply) -> None:
        super().__init__(reader, answer)
        self.adapter = section(self.data.get("Supported Adapter Operations"))
        self.driver = self.told(self.version, "Driver Name")

    def controllers(self) -> t.Iterator[Controller]:
        if "System Overview" in self.data or "IT System Overview" in self.data:
            for row in rows(self.data.get("System Overview")):
                yield self._overview(row)
            for row in rows(self.data.get("IT System Overview")):
                yield dataclasses.replace(self._overview(row), mode="hba", pci_address=pci_address(row.get("PCI Address")))
        elif "Number of Controllers" in self.data:
            return
        elif self.data:
            yield self._controller()
        else:
            unit = self._unit_of_failure()
            if unit is not None:
                yield Controller(provider=self.reader.provider, id=self._id(), protection=unit)

    def _overview(self, row: Data) -> Controller:
        unit = first(row.get("BBU"), row.get("EPack"))
        health = self.reader.health(unit)
        return Controller(
            provider=self.reader.provider,
            id=first(row.get("Ctl"), row.get("Ctrl")) or UNKNOWN,
            model=first(row.get("Model"), row.get("Product Name")) or None,
            status=self.reader.known(CONTROLLER_STATES, "Hlth", row.get("Hlth")),
            protection=Protection(health=health, raw=unit),
        )

    def _id(self) -> str:
        reported = first(self.answer.status.get("Controller"), self.basics.get("Controller"))
        if reported:
            return reported
        for key in self.data:
            found = VOLUME_KEY.match(key) or DRIVE_KEY.match(key)
            if found:
                return found["controller"]
        return UNKNOWN

    def _controller(self) -> Controller:
        volumes = self._volumes()
        caches = [volume for volume, row in volumes if _is_cache_volume(row)]
        data_volumes = tuple(volume for volume, row in volumes if not _is_cache_volume(row))
        drives = self._drives([volume.array for volume in caches if volume.array is not None])
        package = first(self.version.get("Firmware Package Build"), self.data.get("FW Package Build"))
        memory = self.reader.size(self.hardware.get("On Board Memory Size"), decimal=False)
        return Controller(
            provider=self.reader.provider,
            id=self._id(),
            model=first(self.basics.get("Model"), self.data.get("Product Name"), self.data.get("Model")) or None,
            serial=self.told(self.basics, "Serial Number") or None,
            firmware=(package if package.strip("0.") else first(self.version.get("Firmware Version"), self.data.get("FW Version"), package)) or None,
            driver=self.driver or None,
            pci_address=pci_address(self.told(self.basics, "PCI Address")),
            mode=self.reader.known(PERSONALITIES, "Current Personality", self.told(self.state, "Current Personality")),
            status=self.status(),
            cache=self.cache(memory),
            protection=self._protection(),
            drive_cache=self._jbod_drive_cache(),
            volumes=data_volumes,
            drives=drives,
            maxcache=self._maxcache(caches),
            traits=self._traits(),
        )

    # Volumes

    def _volumes(self) -> list[tuple[Volume, Data]]:
        found: dict[str, tuple[Volume, Data]] = {}
        summary, drives = self._listed(VOLUME_LIST), self._listed(DRIVE_LIST)
        self.reader.count(self.data, "Virtual Drives", summary)
        self.reader.count(self.data, "Physical Drives", drives)
        self.reader.count(self.data, "JBOD Drives", rows(self.data.get("JBOD LIST")))
        self.reader.unique(summary, "DG/VD")
        self.reader.unique(drives, "EID:Slt")
        self.reader.unique((row for key, value in self.data.items() if VOLUME_KEY.match(key) for row in rows(value)), "DG/VD")
        self.reader.unique((row for key, value in self.data.items() if is_drive_key(key) for row in rows(value)), "EID:Slt")
        listed = [*summary, *rows(self.data.get("Virtual Drives"))]
        for key, value in self.data.items():
            if VOLUME_KEY.match(key):
                listed.extend(rows(value))
        for row in listed:
            volume = self.reader.volume(row)
            if volume is not None:
                found[volume.id] = (self._volume(volume, row), row)
        placed = []
        for volume in self.with_topology([volume for volume, _row in found.values()], "Arr"):
            # A row that is lost in one list may be in the other.
            used = [address for row in drives if volume.array and word(row.get("DG")) == volume.array for address in _used(row)]
            placed.append((with_members(volume, used, 0), found[volume.id][1]))
        return placed

    def _listed(self, names: t.Pattern[str]) -> list[Data]:
        """The rows of a list that has several names."""
        return [row for key, value in self.data.items() if names.match(key.strip()) for row in rows(value)]

    def _volume(self, volume: Volume, row: Data) -> Volume:
        properties = section(self.data.get(f"VD{volume.id} Properties"))
        read, write, io = self._column(row.get("Cache"))
        initial = self.reader.known(INITIAL_WRITE, "Write Cache(initial setting)", properties.get("Write Cache(initial setting)"))
        if io == CACHED and write == WRITETHROUGH:
            # Cached I/O puts writes into the cache whatever the write policy.
            write = WRITEBACK
        members, untold = members_of_rows(rows(self.data.get(f"PDs for VD {volume.id}")))
        association = word(row.get("Cac"))
        return dataclasses.replace(
            self.reader.with_properties(volume, properties, "Disk Cache Policy"),
            read=policy(read),
            write=configured_and_effective(initial, write),
            io=policy(io),
            members=members,
            members_untold=untold,
            maxcache=None if association in ("", "-") else VolumeMaxCache(read=policy(ENABLED), cache_volume=association),
        )

    def _column(self, value: t.Any) -> tuple[str, str, str]:
        """Read, write and I/O policy. ``AWB`` ends like ``WB`` and begins like an adaptive read, so the whole must match."""
        raw = word(value)
        if raw in ("", "-"):
            return UNKNOWN, UNKNOWN, UNKNOWN
        found = _COLUMN.match(raw)
        if not found or raw.startswith("AWB"):
            self.reader.not_understood("Cache", raw)
            return UNKNOWN, UNKNOWN, UNKNOWN
        return READ_COLUMN[found["read"]], WRITE_COLUMN[found["write"]], IO_COLUMN[found["io"]] if found["io"] else UNKNOWN

    def _maxcache(self, caches: t.Sequence[Volume]) -> t.Optional[MaxCache]:
        if not caches:
            return None
        return MaxCache(
            volumes=tuple(
                CacheVolume(id=cache.id, name=cache.name, status=cache.status, size=cache.size, write=cache.write, members=cache.members) for cache in caches
            )
        )

    # Drives

    def _drives(self, cache_groups: t.Container[str]) -> tuple[Drive, ...]:
        found: dict[str, Drive] = {}
        inside = section(self.data.get("Physical Device Information"))
        for place in (self.data, inside):
            for key, value in place.items():
                name = folded(key)
                known = DRIVE_LIST.match(key.strip()) or name in ("jbodlist", "driveinformation") or name.startswith("pdsforvd") or is_drive_key(key)
                for row in rows(value) if known else ():
                    drive = self.reader.drive(row, self._usage(row, name))
                    if drive is None:
                        continue
                    if word(row.get("DG")) in cache_groups:
                        drive = dataclasses.replace(drive, usage="cache")
                    found[drive.address] = filled(found[drive.address], drive) if drive.address in found else drive
        for place in (self.data, inside):
            for address, attributes in _attributes(place):
                drive = found.get(address, Drive(address=address))
                found[address] = self._with_attributes(drive, attributes)
        return tuple(found.values())

    def _usage(self, row: Data, place: str) -> str:
        """How a drive is used. Some builds print a JBOD drive as ``Onln``, so its type, its group and its list count as much as its state.

        :param place: the list it is in.
        """
        if is_spare(row):
            return "spare"
        if squeezed(word(row.get("Type"))) == "jbod" or place == "jbodlist":
            return "jbod"
        used = self.reader.known(USAGES, "State", row.get("State"))
        # IR firmware has no groups.
        return UNKNOWN if used == "configured" and whole(row.get("DG")) is None and self.driver not in ADAPTER_DRIVERS else used

    def _with_attributes(self, drive: Drive, attributes: Data) -> Drive:
        self.reader.unread_caches(attributes)
        return dataclasses.replace(
            drive,
            write_cache=self.reader.known(DRIVE_WRITE_CACHE, "Write Cache", attributes.get("Write Cache")),
            serial=first(attributes.get("SN"), attributes.get("Serial Number")) or None,
            firmware=word(attributes.get("Firmware Revision")) or None,
            wwn=identifier(attributes.get("WWN")),
            model=drive.model or word(attributes.get("Model Number")) or None,
        )

    # Protection

    def _protection(self) -> Protection:
        for name, kind in (("Cachevault_Info", "capacitor"), ("BBU_Info", "battery"), ("Energy Pack Info", UNKNOWN), ("EnergyPack_Info", UNKNOWN)):
            if name in self.data:
                unit = self._unit(self.data[name], kind)
                if unit is not None:
                    return unit
        return self._unit_without_row()

    def _unit(self, value: t.Any, kind: str) -> t.Optional[Protection]:
        properties = section(value)
        for row in rows(value):
            if "State" in row:
                raw = " ".join(part for part in (word(row.get("Model")), word(row.get("State"))) if part)
                health = self.reader.health(row.get("State"))
                return Protection(kind=kind, health=health, learn_cycle=learn_cycle_of(health), raw=raw)
        state = first(properties.get("State"), properties.get("Battery State"))
        if not state:
            return None
        health = self.reader.health(state)
        firmware = section(self.data.get("BBU_Firmware_Status")) or section(self.data.get("Firmware_Status"))
        learning = flag(firmware.get("Learn Cycle Active"))
        requested = flag(firmware.get("Learn Cycle Requested"))
        if learning and health not in (FAILED, MISSING):
            health = LEARNING
        elif health in (DEGRADED, UNKNOWN) and squeezed(word(firmware.get("Charging Status"))) == "charging":
            health = CHARGING
        elif flag(firmware.get("Battery Pack Missing")):
            health = MISSING
        elif health == HEALTHY and any(flag(firmware.get(label)) for label in UNIT_FAULTS):
            health = DEGRADED
        capacity = section(self.data.get("BBU_Capacity_Info"))
        return Protection(
            kind=kind,
            health=health,
            charge=percent(capacity.get("Relative State of Charge")),
            learn_cycle="requested" if requested and not learning else "idle" if learning is False and health != LEARNING else learn_cycle_of(health),
            raw=" ".join(part for part in (word(properties.get("Type")), state) if part),
        )

    def _unit_without_row(self) -> Protection:
        present = squeezed(first(self.hardware.get("BBU"), self.hardware.get("Energy Pack")))
        label = "BBU" if word(self.hardware.get("BBU")) else "Energy Pack"
        supported = flag(first(self.adapter.get("BBU"), self.adapter.get("Energy Pack")))
        bits = whole(first(self.state.get("BBU Status"), self.state.get("Energy Pack Status")))
        if present == "absent":
            raw = f"{label}: Absent"
            return Protection(kind=NONE, raw=raw) if supported is False else Protection(health=MISSING, raw=raw)
        if bits is None:
            return Protection(raw=f"{label}: Present") if present == "present" else Protection()
        health = next((state for mask, state in BBU_BITS if bits & mask), HEALTHY if present == "present" else UNKNOWN)
        learn = "active" if bits & BBU_LEARN_ACTIVE else "requested" if bits & BBU_LEARN_REQUESTED else UNKNOWN
        return Protection(health=health, learn_cycle=learn, raw=f"{label} Status: {bits}")

    def _unit_of_failure(self) -> t.Optional[Protection]:
        for reason in self.answer.reasons:
            raw = reason.lower()
            if "battery is absent" in raw:
                return Protection(kind="battery", health=MISSING, raw=reason)
            if "cachevault" in raw.replace(" ", "") and "absent" in raw:
                return Protection(kind="capacitor", health=MISSING, raw=reason)
            other = OTHER_PLACE.search(reason)
            if other:
                return Protection(kind={"cv": "capacitor", "bbu": "battery"}[other.group(1).lower()], raw=reason)
        return None

    # Settings of the controller

    def _jbod_drive_cache(self) -> dict[str, str]:
        for label, value in section(self.data.get("Controller Properties")).items():
            if "jbod" in label.lower() and "cache" in label.lower():
                return {"jbod": self.reader.known(DRIVE_CACHE, label, value)}
        return {"jbod": UNKNOWN} if flag(self.adapter.get("Support JBOD Write cache")) else {}

    def _traits(self) -> dict[str, t.Any]:
        operations = section(self.data.get("Supported VD Operations"))
        return {
            **announced(self.data),
            **flags(self.adapter, ADAPTER_FLAGS),
            **flags(operations, VOLUME_FLAGS),
            **flags(section(self.data.get("Defaults")), {"cache_when_bbu_bad": "Cache When BBU Bad"}),
        }


def _used(row: Data) -> t.Iterator[str]:
    """The address of a drive that is no spare."""
    address = address_of(row.get("EID:Slt"))
    if address is not None and not is_spare(row):
        yield address


def _is_cache_volume(row: Data) -> bool:
    return word(row.get("TYPE")).lower().startswith("cac")


def _attributes(place: Data) -> t.Iterator[tuple[str, Data]]:
    """Address and attributes of each drive that has a detailed description; plain text does not nest it."""
    for key, value in place.items():
        found = DRIVE_KEY.match(key)
        if not found:
            continue
        address = f"{found['enclosure'] or ''}:{found['slot']}"
        if found["part"].lower() == " device attributes" and isinstance(value, dict):
            yield address, section(value)
        elif found["part"].lower() == " - detailed information":
            yield from _attributes(section(value))
