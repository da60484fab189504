# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One call of the simulated arcconf that names a controller: its words, what it printed so far, and how it can end."""

from __future__ import annotations

import typing as t

from . import arcconf_state as now
from .arcconf_layouts import layout_of
from .simulator import State
from .templates import entries, filled, names

ABORTED = "Command aborted."
PROMPT = "Press y, then ENTER to continue or press ENTER to abort: "
NOT_SUPPORTED = "The requested feature is not supported on this controller."

#: Exit codes, as the tool writes them to its own log.
SUCCEEDED, FAILED, WAS_ABORTED, INVALID_ARGUMENTS, UNSUPPORTED, INVALID_CONTROLLER = 0, 1, 2, 3, 4, 6


class InvalidArgumentsError(Exception):
    """The usage of the command is printed, exit code 3."""


class AbortedError(Exception):
    """Validation failed, or everything is already as asked: the sentences, then ``Command aborted.``, exit code 2."""

    def __init__(self, *sentences: str) -> None:
        super().__init__(*sentences)
        self.sentences = sentences


class Call:
    """A command to one controller.

    :param words: what follows the controller number, as typed, without ``nologs`` and ``noprompt``.
    :param noprompt: whether ``noprompt`` was among the last words.
    """

    def __init__(self, controller: State, number: int, words: list[str], noprompt: bool, faults: now.Faults, old: bool) -> None:
        self.controller = controller
        self.number = number
        self.words = words
        self.noprompt = noprompt
        self.faults = faults
        self.old = old
        #: The lines so far.
        self.printed: list[str] = []

    @property
    def grammar(self) -> str:
        return layout_of(self.controller).grammar

    def knows(self, form: str) -> bool:
        """Whether this card has a form of SETCACHE."""
        return form in setcache_forms(self.grammar) and not (self.old and form == "DEVICEALL")

    def lower(self) -> list[str]:
        return [word.lower() for word in self.words]

    def confirm(self, *warning: str) -> None:
        """Asks, unless ``noprompt`` was given; nobody answers, which aborts."""
        if not self.noprompt:
            self.printed += [*warning, PROMPT]
            raise AbortedError

    def volume(self, word: str) -> State:
        """The volume with this number."""
        found = now.volume_numbered(self.controller, number(word), self.faults)
        if found is None:
            raise AbortedError(f"Logical device {word} does not exist.")
        if found["status"] in ("Failed", "Offline"):
            raise AbortedError(f"logical device {found['id']} is in failed state. Cache settings cannot be changed for offline/failed array.")
        return found

    def drives(self, words: t.Sequence[str]) -> list[State]:
        """The drives that pairs of channel and device name."""
        if not words or len(words) % 2:
            raise InvalidArgumentsError
        found = []
        for channel, device in zip(words[::2], words[1::2]):
            drive = now.drive_at(self.controller, number(channel), number(device))
            if drive is None:
                raise AbortedError(f"Device {channel},{device} does not exist.")
            found.append(drive)
        return found

    def needs_raid_mode(self) -> None:
        if now.in_hba_mode(self.controller, self.faults):
            raise AbortedError(NOT_SUPPORTED)


def number(word: str, low: int = 0, high: int = 1 << 31) -> int:
    """A number within bounds; everything else is an invalid argument."""
    if not (word.isascii() and word.isdigit() and len(word) < 11) or not low <= int(word) <= high:
        raise InvalidArgumentsError
    return int(word)


def switch(word: str) -> bool:
    """``enable`` or ``disable``."""
    if word.lower() not in ("enable", "disable"):
        raise InvalidArgumentsError
    return word.lower() == "enable"


# -- what arcconf says about itself: the menu of commands, and the usage of one command for the cards that are in the machine


def setcache_forms(grammar: str) -> tuple[str, ...]:
    """The forms of SETCACHE."""
    return entries("arcconf", f"forms: {grammar}")


def _descriptions() -> dict[str, str]:
    return filled("arcconf", "commands", {})


def commands(*, old: bool) -> tuple[str, ...]:
    """The commands of the build that speaks to these cards."""
    missing = {"LIST", "SETMAXCACHE"} if old else set()
    return tuple(command for command in _descriptions() if command not in missing)


def banner(*, old: bool) -> list[str]:
    version = "6.50 (B18579)" if old else "4.17.00 (26540)"
    return [
        "  | UCLI |  Adaptec uniform command line interface",
        f"  | UCLI |  Version {version}",
        "  | UCLI |  SIMULATOR for the tests of cachefleet.storage",
        "  | UCLI |  No controller is behind it",
    ]


def menu(*, old: bool) -> list[str]:
    """What is printed without arguments."""
    return [*banner(old=old), "", *(f" {command:<18}| {_descriptions()[command]}" for command in commands(old=old))]


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
