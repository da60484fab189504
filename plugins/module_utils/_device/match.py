# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Entries of a list that choose block devices by what they are, such as their model, in place of naming each."""

from __future__ import annotations

import fnmatch
import typing as t
from pathlib import Path

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import parse_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute

#: Disks of a network are named by their transport; a match without it means the disks of this host.
_NETWORK_DISKS = ("aoe", "nbd", "rbd")
_PATTERNS: t.Mapping[str, t.Any] = {"type": "list", "elements": "str"}
TRANSPORTS = ["sata", "sas", "scsi", "fc", "iscsi", "nvme", "nvme_fabrics", "virtio", "usb", "raid", "aoe", "nbd", "rbd", "virtual", "unknown"]
KINDS = ["disk", "multipath", "lvm", "crypt", "dm", "md", "bcache", "loop", "zram", "ram", "aoe", "nbd", "rbd"]
MATCH_OPTIONS: t.Mapping[str, t.Any] = {
    "rotational": {"type": "bool"},
    "transport": {"type": "list", "elements": "str", "choices": TRANSPORTS},
    "kind": {"type": "list", "elements": "str", "choices": KINDS},
    "driver": _PATTERNS,
    "model": _PATTERNS,
    "vendor": _PATTERNS,
    "serial": _PATTERNS,
    "wwn": _PATTERNS,
    "size_min": {"type": "str"},
    "size_max": {"type": "str"},
}
#: An entry has one of them.
EITHER = [("device", "match")]


@frozen
class Traits:
    """What a device is. ``models``, ``serials`` and ``wwns``: every way in which one is written.

    :param size: in bytes; 0 of a drive without a medium, ``None`` if it is not known.
    """

    kind: str = "disk"
    transport: str = "unknown"
    size: int | None = 0
    rotational: bool | None = None
    driver: str | None = None
    vendor: str | None = None
    models: tuple[str, ...] = ()
    serials: tuple[str, ...] = ()
    wwns: tuple[str, ...] = ()


def traits_of(device: BlockDevice, root: Path = Path("/")) -> Traits:
    """What a device is, from its udev properties and sysfs."""
    properties = device.properties
    vendor = properties.get("ID_VENDOR") or read_attribute(root / "sys/class/block" / device.name / "device/vendor")
    return Traits(
        kind=device.kind,
        transport=device.transport,
        size=device.size,
        rotational=device.rotational,
        driver=device.driver,
        vendor=vendor.replace("_", " ").strip() if vendor else None,
        models=device.models,
        serials=_distinct(device.serial, *(properties.get(name) for name in ("ID_SERIAL_SHORT", "ID_SCSI_SERIAL", "ID_SERIAL"))),
        wwns=_distinct(device.wwn, *(properties.get(name) for name in ("ID_WWN_WITH_EXTENSION", "ID_WWN"))),
    )


@frozen
class Match:
    """What a device must be like; an empty field accepts every one. Sizes in bytes; texts are shell patterns, whatever their case."""

    rotational: bool | None = None
    transport: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    driver: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    vendor: tuple[str, ...] = ()
    serial: tuple[str, ...] = ()
    wwn: tuple[str, ...] = ()
    size_min: int | None = None
    size_max: int | None = None

    def meets(self, traits: Traits, rotational: bool | None) -> bool:
        """Whether a device matches.

        :param rotational: what it is taken for.
        """
        checks = (
            self._kind_meets(traits),
            traits.size != 0,
            self.rotational is None or self.rotational == rotational,
            not self.transport or traits.transport in self.transport,
            self.size_min is None or (traits.size is not None and traits.size >= self.size_min),
            self.size_max is None or (traits.size is not None and traits.size <= self.size_max),
            fits_any(self.driver, (traits.driver,)),
            fits_any(self.model, traits.models),
            fits_any(self.vendor, (traits.vendor,)),
            fits_any(self.serial, traits.serials),
            fits_any(self.wwn, traits.wwns),
        )
        return all(checks)

    def _kind_meets(self, traits: Traits) -> bool:
        if self.kind:
            return traits.kind in self.kind
        return traits.kind == "disk" or (traits.kind in _NETWORK_DISKS and traits.transport in self.transport)


def fits_any(patterns: t.Sequence[str], texts: t.Iterable[str | None]) -> bool:
    """Whether one of the patterns fits one of the texts, whatever their case; no pattern fits every text."""
    return not patterns or any(fnmatch.fnmatchcase((text or "").strip().lower(), pattern.lower()) for text in texts for pattern in patterns)


def read_match(fields: t.Mapping[str, t.Any], number: int) -> Match:
    """The option ``match`` of an entry.

    :param number: that of the entry.
    :raises BadInput: for a size that is none.
    """
    texts = {key: tuple(fields.get(key) or ()) for key in ("transport", "kind", "driver", "model", "vendor", "serial", "wwn")}
    sizes = {key: parse_size(fields[key], f"the match of entry {number}", key) if fields.get(key) is not None else None for key in ("size_min", "size_max")}
    return Match(rotational=fields.get("rotational"), size_min=sizes["size_min"], size_max=sizes["size_max"], **texts)


def checked_match(fields: t.Any, where: str) -> dict[str, t.Any]:
    """The keys of the option ``match`` that are set, where no argument specification has checked it; lists where one text was given.

    :param where: what it belongs to, for the message.
    :raises BadInput: for a key or a value that does not exist.
    """
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.unknown_key import unknown_key, wrong_types

    if not isinstance(fields, t.Mapping):
        raise BadInput(f"{where}: match must be a dictionary, for example match: {{model: 'INTEL SSDSC2*'}}.")
    result = ArgumentSpecValidator(dict(MATCH_OPTIONS)).validate(dict(fields))
    if result.error_messages:
        reasons = list(wrong_types(MATCH_OPTIONS, fields)) or [unknown_key(text) or text for text in result.error_messages]
        raise BadInput(f"{where}: match: {'; '.join(reasons)}{'' if reasons[-1].endswith(('.', '?')) else '.'}")
    return {key: value for key, value in result.validated_parameters.items() if value is not None}


def check_entry(variable: str, number: int, entry: t.Mapping[str, t.Any], name: str = "device") -> None:
    """
    :param name: the option that names one device.
    :raises BadInput: for an entry with both or none of it and ``match``, and for one with ``match`` that allows something: a permission is for one device.
    """
    given = [key for key in (name, "match") if entry.get(key) not in (None, "")]
    if len(given) != 1:
        has = " and ".join(given) or f"neither {name} nor match"
        raise BadInput(f"{variable}: entry {number} has {has}: set one of them, for example match: {{model: 'INTEL SSDSC2*'}}.", item=f"entry {number}")
    allowed = next((key for key, value in entry.items() if key.startswith("allow_") and value), None)
    if entry.get("match") is not None and allowed:
        raise BadInput(
            f"{variable}: entry {number} has {allowed} and match, but a permission is for one device: name each that it is for with {name}.",
            item=f"entry {number}",
        )


class Chooses(t.Protocol):
    """An entry of a list that may have a match."""

    @property
    def match(self) -> Match | None: ...


Entry = t.TypeVar("Entry", bound=Chooses)


def choose(entries: t.Sequence[Entry], traits: Traits) -> Entry | None:
    """The last entry whose match a device meets."""
    return next((entry for entry in reversed(entries) if entry.match is not None and entry.match.meets(traits, traits.rotational)), None)


def chosen_by(error: StorageError, variable: str, label: str, item: str) -> StorageError:
    """An error of a device that a match chose, with its entry."""
    error.message += f" It is chosen by {label} of {variable}: narrow the match, for example by transport, or give this drive an entry of its own with device."
    error.args, error.item = (error.message,), item
    return error


def no_match_sentence(variable: str, label: str) -> str:
    """That an entry chooses nothing."""
    return f"{variable}: {label} matches no device of this host."


def _distinct(*texts: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if text))
