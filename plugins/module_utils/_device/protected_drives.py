# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Drives that the user declares to keep their write cache through a power cut, models whose vendor documents that they do, and virtual disks of
which the user declares that a flush reaches media.

A declaration is a serial number, a WWN, a model, or a pattern of a model or serial number. What a vendor documents is a hint for the user, never a proof:
capacitors age, and firmware has had mistakes.
"""

from __future__ import annotations

import fnmatch
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

#: The option of modules that take declarations.
PROTECTED_DRIVES_OPTION: t.Mapping[str, t.Mapping[str, t.Any]] = {"protected_drives": {"type": "list", "elements": "str", "default": []}}
#: The same, with the virtual disks whose flushes reach media, of modules that read the layers under a device.
DECLARATION_OPTIONS = {**PROTECTED_DRIVES_OPTION, "flushed_virtual_disks": {"type": "list", "elements": "str", "default": []}}

#: A pattern with fewer letters and digits than this would fit unrelated drives.
_FEWEST = 4

#: Model → the document of the vendor that lists "enhanced power-loss data protection" as a feature. Only what was read there.
_DOCUMENTED = (
    ("*SSDSC2BB???[GT]4", "Intel SSD DC S3500 Series Product Specification"),
    ("*SSDSC2BA???[GT]3", "Intel SSD DC S3700 Series Product Specification"),
    ("*SSDSC2KB*[GT]7", "Intel SSD DC S4500/S4600 Series Product Specification"),
    ("*SSDSC2KG*[GT]7", "Intel SSD DC S4500/S4600 Series Product Specification"),
    ("*SSDPE2MX???[GT]4", "Intel SSD DC P3500 Series Product Specification"),
    ("*SSDPEDMX???[GT]4", "Intel SSD DC P3500 Series Product Specification"),
)


def checked_declarations(texts: t.Sequence[str]) -> t.Sequence[str]:
    """:raises BadInput: for a pattern that fits nearly every drive, and for an empty text, which fits one whose serial number is not known."""
    for text in texts:
        if not text.strip():
            raise BadInput("An entry of the declared drives is empty: use a serial number, WWN, model or by-id name, or remove it.", item=text)
        if _is_pattern(text) and sum(char.isalnum() for char in text) < _FEWEST:
            raise BadInput(f"'{text}' would declare nearly every drive: use at least {_FEWEST} letters or digits in a pattern.", item=text)
    return texts


def is_declared(devices: Devices, device: BlockDevice, texts: t.Iterable[str]) -> bool:
    """Whether the user declared that the cache of this drive survives a power cut."""
    return any(text in device.models or devices.matches_identity(device, text) or fits(text, (*device.models, device.serial)) for text in texts)


def fits(text: str, names: t.Iterable[t.Optional[str]]) -> bool:
    """Whether a pattern fits one of the names of a drive; a text without wildcards fits none."""
    return _is_pattern(text) and any(name is not None and fnmatch.fnmatchcase(name.strip(), text.strip()) for name in names)


def declares(texts: t.Iterable[str], names: t.Iterable[t.Optional[str]]) -> bool:
    """Whether one of the names of a drive behind a controller is declared; their tools differ in upper and lower case."""
    known = [name.strip().lower() for name in names if name is not None]
    return any(text.strip().lower() in known or fits(text.lower(), known) for text in texts)


def _is_pattern(text: str) -> bool:
    return any(char in text for char in "*?[")


def documented_protection(model: t.Optional[str]) -> t.Optional[str]:
    """The document in which the vendor of a model describes its power-loss protection; ``None`` if none is known."""
    return next((source for pattern, source in _DOCUMENTED if model and fnmatch.fnmatchcase(model.strip(), pattern)), None)
