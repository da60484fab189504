# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Drives that the user declares to keep their write cache through a power cut, models whose vendor documents that they do, and virtual disks of
which the user declares that a flush reaches media.

A declaration is a serial number, a WWN, a model, a pattern of a model or serial number, or a match. What a vendor documents is a hint for the user,
never a proof: capacitors age, and firmware has had mistakes.
"""

from __future__ import annotations

import fnmatch
import json
import typing as t

from ansible.module_utils.common.validation import check_type_str

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._device.match import Match, Traits, checked_match, read_match, traits_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

#: How a declaration by match begins: it is a text everywhere, as the others are, because orders of measurements and journals have it.
_BY_MATCH = "match: "


def declaration(value: t.Any) -> str:
    """One declaration as a text; that of a dictionary is checked by :func:`checked_declarations`."""
    return _BY_MATCH + json.dumps(value, sort_keys=True) if isinstance(value, t.Mapping) else str(check_type_str(value))


#: The option of modules that take declarations.
PROTECTED_DRIVES_OPTION: t.Mapping[str, t.Mapping[str, t.Any]] = {"protected_drives": {"type": "list", "elements": "raw", "default": []}}
#: The same, with the virtual disks whose flushes reach media, of modules that read the layers under a device.
DECLARATION_OPTIONS = {**PROTECTED_DRIVES_OPTION, "flushed_virtual_disks": {"type": "list", "elements": "str", "default": []}}

#: A pattern with fewer letters and digits than this would fit unrelated drives.
_FEWEST = 4
#: 0x, a digit and six for the vendor (NAA IEEE Registered) fit all of its drives.
_FEWEST_OF_WWN = 11

#: Model → the document of the vendor that lists "enhanced power-loss data protection" as a feature. Only what was read there.
_DOCUMENTED = (
    ("*SSDSC2BB???[GT]4", "Intel SSD DC S3500 Series Product Specification"),
    ("*SSDSC2BA???[GT]3", "Intel SSD DC S3700 Series Product Specification"),
    ("*SSDSC2KB*[GT]7", "Intel SSD DC S4500/S4600 Series Product Specification"),
    ("*SSDSC2KG*[GT]7", "Intel SSD DC S4500/S4600 Series Product Specification"),
    ("*SSDPE2MX???[GT]4", "Intel SSD DC P3500 Series Product Specification"),
    ("*SSDPEDMX???[GT]4", "Intel SSD DC P3500 Series Product Specification"),
)


def checked_declarations(values: t.Sequence[t.Any]) -> t.Sequence[str]:
    """Declarations as texts.

    :param values: as the user writes them, or as texts already.
    :raises BadInput: for a pattern that fits nearly every drive, and for an empty text, which fits one whose serial number is not known.
    """
    texts = [declaration(value) for value in values]
    for number, text in enumerate(texts, 1):
        if text.startswith(_BY_MATCH):
            _check_match(text, number)
        elif not text.strip():
            raise BadInput("An entry of the declared drives is empty: use a serial number, WWN, model or by-id name, or remove it.", item=text)
        elif _is_pattern(text) and sum(char.isalnum() for char in text) < _FEWEST:
            raise BadInput(f"'{text}' would declare nearly every drive: use at least {_FEWEST} letters or digits in a pattern.", item=text)
    return texts


def _check_match(text: str, number: int) -> None:
    try:
        entry = json.loads(text[len(_BY_MATCH) :])
    except ValueError:
        entry = None
    fields = entry.get("match") if isinstance(entry, t.Mapping) and set(entry) == {"match"} else None
    label = f"Entry {number} of the declared drives (storage_protected_drives)"
    if not isinstance(fields, t.Mapping):
        raise BadInput(f"{label} must be a text, or a dictionary with match alone, such as {{match: {{model: 'INTEL SSDSC2*'}}}}.", item=text)
    match = read_match(checked_match(fields, label), number)
    patterns = {**dict.fromkeys((*match.model, *match.serial), _FEWEST), **dict.fromkeys(match.wwn, _FEWEST_OF_WWN)}
    if not patterns or any(sum(char.isalnum() for char in pattern) < fewest for pattern, fewest in patterns.items()):
        raise BadInput(
            f"{label} would declare nearly every drive: match needs a model or serial with at least {_FEWEST} letters or digits, or a wwn with"
            f" {_FEWEST_OF_WWN}.",
            item=text,
        )


def _match_of(text: str) -> Match:
    return read_match(checked_match(json.loads(text[len(_BY_MATCH) :])["match"], text), 0)


def _matches(texts: t.Iterable[str], traits: Traits) -> bool:
    return any(_match_of(text).meets(traits, traits.rotational) for text in texts if text.startswith(_BY_MATCH))


def is_declared(devices: Devices, device: BlockDevice, texts: t.Iterable[str]) -> bool:
    """Whether the user declared that the cache of this drive survives a power cut."""
    texts = list(texts)
    named = any(text in device.models or devices.matches_identity(device, text) or fits(text, (*device.models, device.serial)) for text in texts)
    return named or _matches(texts, traits_of(device))


def fits(text: str, names: t.Iterable[t.Optional[str]]) -> bool:
    """Whether a pattern fits one of the names of a drive; a text without wildcards fits none."""
    return _is_pattern(text) and not text.startswith(_BY_MATCH) and any(name is not None and fnmatch.fnmatchcase(name.strip(), text.strip()) for name in names)


def declares(texts: t.Sequence[str], traits: Traits) -> bool:
    """Whether a drive behind a controller is declared; their tools differ in upper and lower case."""
    known = [name.strip().lower() for name in (*traits.serials, *traits.wwns, *traits.models)]
    return any(text.strip().lower() in known or fits(text.lower(), known) for text in texts) or _matches(texts, traits)


def _is_pattern(text: str) -> bool:
    return any(char in text for char in "*?[")


def documented_protection(model: t.Optional[str]) -> t.Optional[str]:
    """The document in which the vendor of a model describes its power-loss protection; ``None`` if none is known."""
    return next((source for pattern, source in _DOCUMENTED if model and fnmatch.fnmatchcase(model.strip(), pattern)), None)
