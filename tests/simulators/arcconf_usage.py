# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What arcconf says about itself: the menu of commands, and the usage of one command for the cards that are in the machine."""

from __future__ import annotations

import typing as t

from .templates import entries, filled, names


def setcache_forms(grammar: str) -> tuple[str, ...]:
    """The forms of SETCACHE."""
    return entries("arcconf", f"forms: {grammar}")


def _descriptions() -> dict[str, str]:
    return filled("arcconf", "commands", {})


def commands(grammars: t.Collection[str], *, old: bool) -> tuple[str, ...]:
    """The commands of the build that speaks to these cards."""
    missing = {"GETCONFIGJSON", "LIST", "SETCONTROLLERMODE", "SETMAXCACHE", "MAXCACHEWRITECACHE", "VERSION"} if old else set()
    if "smart" not in grammars and "hba" not in grammars:
        missing.add("GETCONFIGJSON")
    return tuple(command for command in _descriptions() if command not in missing)


def banner(*, old: bool) -> list[str]:
    version = "6.50 (B18579)" if old else "4.17.00 (26540)"
    return [
        "  | UCLI |  Adaptec uniform command line interface",
        f"  | UCLI |  Version {version}",
        "  | UCLI |  SIMULATOR for the tests of cachefleet.storage",
        "  | UCLI |  No controller is behind it",
    ]


def menu(grammars: t.Collection[str], *, old: bool) -> list[str]:
    """What is printed without arguments."""
    return [*banner(old=old), "", *(f" {command:<18}| {_descriptions()[command]}" for command in commands(grammars, old=old))]


def usage(command: str, grammars: t.Sequence[str], *, old: bool) -> list[str]:
    """The usage of one command; what it lists depends on the cards."""
    known = filled("arcconf", "usage: SETCACHE", {})
    forms = [form for form in known if any(form in setcache_forms(grammar) for grammar in grammars)]
    if old:
        forms = [form for form in forms if form in ("LOGICALDRIVE", "DEVICE")] or ["LOGICALDRIVE", "DEVICE"]
    lines: list[str]
    if command == "SETCACHE":
        lines = [known[form] for form in forms]
    elif command in ("SETMAXCACHE", "CREATE", "DELETE"):
        speaking = [f"{command} {grammar}" for grammar in grammars if f"{command} {grammar}" in names("arcconf", "usage: ")]
        lines = list(dict.fromkeys(line for name in speaking for line in entries("arcconf", f"usage: {name}"))) or [f"{command} <Controller#>"]
    else:
        lines = list(entries("arcconf", f"usage: {command}{' of old builds' if old and command == 'GETCONFIG' else ''}"))
    if old:
        lines = [line.replace(" [nologs]", "") for line in lines]
    printed = ["", *(f" Usage: {line}" for line in lines), " " + "=" * 78, "", f" {_descriptions()[command][0].upper()}{_descriptions()[command][1:]}."]
    if command == "SETCACHE":
        for form in forms:
            if form in names("arcconf", "modes: "):
                printed += ["", *(f"    {word:<28}: {meaning}" for word, meaning in filled("arcconf", f"modes: {form}", {}).items())]
    return [*printed, ""]
