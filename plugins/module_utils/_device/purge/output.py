# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What drives report of how they can be purged: the security section of hdparm, Identify Controller and the sanitize log of nvme-cli. Pure.

Sources: hdparm(8) and its function identify.c; ATA/ATAPI Command Set 4 (SECURITY ERASE UNIT); NVM Express base specification 2.0
(Identify Controller ``oacs``, ``fna`` and ``sanicap``; Sanitize Status log page ``sprog`` and ``sstat``); nvme-cli(1).
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

_SECTION = re.compile(r"^Security:[ \t]*$", re.MULTILINE)
_MINUTES = re.compile(r"(\d+)min for (ENHANCED )?SECURITY ERASE UNIT")
_FLAGS = ("supported", "enabled", "locked", "frozen", "expired")

_FORMATS, _ALL_FORMATTED, _ALL_ERASED, _CRYPTO_FORMAT = 1 << 1, 1 << 0, 1 << 1, 1 << 2
_CRYPTO, _BLOCK = 1 << 0, 1 << 1
#: ``sstat``, bits 0 to 2.
_STATES = {0: "never", 1: "done", 2: "running", 3: "failed", 4: "done"}
_WHOLE = 65536
_LEADING = re.compile(r"^\s*\(?(0x[0-9a-fA-F]+|\d+)\)?")


@frozen
class AtaSecurity:
    """The security feature set of an ATA drive; times in minutes, ``None`` where the drive gives none."""

    supported: bool = False
    enabled: bool = False
    locked: bool = False
    frozen: bool = False
    expired: bool = False
    enhanced: bool = False
    minutes: int | None = None
    enhanced_minutes: int | None = None


def parse_security(text: str) -> AtaSecurity:
    """The section ``Security:`` of ``hdparm -I``; nothing is supported where there is none, as of bridges and RAID volumes."""
    section = _SECTION.search(text)
    if section is None:
        return AtaSecurity()
    lines = []
    for line in text[section.end() :].lstrip("\n").splitlines():
        if not line.startswith((" ", "\t")):
            break
        lines.append(line)
    flags = {}
    for line in lines:
        words = line.split()
        negated = words[:1] == ["not"]
        # "expired: security count", "supported: enhanced erase" carry more words.
        word = words[int(negated)] if len(words) > negated else ""
        if word.rstrip(":") in _FLAGS and word != "supported:":
            flags[word.rstrip(":")] = not negated
    times = {bool(enhanced): int(minutes) for minutes, enhanced in _MINUTES.findall("\n".join(lines))}
    enhanced = any(line.split() == ["supported:", "enhanced", "erase"] for line in lines)
    return AtaSecurity(**flags, enhanced=enhanced, minutes=times.get(False), enhanced_minutes=times.get(True))


@frozen
class NvmeErase:
    """What an NVMe controller can erase.

    :param formats: it can format; ``all_namespaces``: a format, or its secure erase, goes over every namespace.
    :param crypto: by format; ``sanitize_crypto`` and ``sanitize_block``: by sanitize, which always goes over every namespace.
    """

    formats: bool = False
    all_namespaces: bool = False
    crypto: bool = False
    sanitize_crypto: bool = False
    sanitize_block: bool = False


def parse_erase(found: t.Mapping[str, t.Any]) -> NvmeErase:
    """Identify Controller as nvme-cli prints it as JSON."""
    oacs, fna, sanicap = (_number(found.get(name)) or 0 for name in ("oacs", "fna", "sanicap"))
    return NvmeErase(
        formats=bool(oacs & _FORMATS),
        all_namespaces=bool(fna & (_ALL_FORMATTED | _ALL_ERASED)),
        crypto=bool(fna & _CRYPTO_FORMAT),
        sanitize_crypto=bool(sanicap & _CRYPTO),
        sanitize_block=bool(sanicap & _BLOCK),
    )


@frozen
class SanitizeLog:
    """How far the last sanitize is. ``state``: ``never``, ``running``, ``done``, ``failed`` or ``unknown``; ``percent`` only while it runs."""

    state: str
    percent: float | None = None


def parse_sanitize_log(found: t.Mapping[str, t.Any]) -> SanitizeLog:
    """``nvme sanitize-log`` as JSON.

    The log is in an object by the name of the device. ``sstat`` is a number, or since nvme-cli 1.9 an object whose ``status`` is a number or a text
    that begins with one in parentheses.
    """
    inner = next((value for value in found.values() if isinstance(value, dict) and "sprog" in value), found)
    reported = inner.get("sstat")
    if isinstance(reported, dict):
        reported = reported.get("status")
    status = _number(reported)
    state = "unknown" if status is None else _STATES.get(status & 0b111, "unknown")
    progress = _number(inner.get("sprog"))
    return SanitizeLog(state, 100 * progress / _WHOLE if state == "running" and progress is not None else None)


def _number(value: t.Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    if isinstance(value, int):
        return value
    match = _LEADING.match(value)
    return int(match.group(1), 0) if match else None
