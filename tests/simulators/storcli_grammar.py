# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The command language of storcli and perccli 7.x, as far as the simulators know it.

``[/cx[/vx | /ex/sx | /sx | /bbu | /cv]] verb [words] [nolog] [J]``; an ``x`` is a number or ``all``; nobody sends
the lists that the real tools know. Case does not matter, and a path may be given in several words (``/c0 /v1``). What is not known is a syntax error.
"""

from __future__ import annotations

import re
import typing as t

_NUMBERS = "all|[0-9]{1,6}"
_PATH = re.compile(
    rf"/c(?P<c>{_NUMBERS})(?:/v(?P<v>{_NUMBERS})|/e(?P<e>{_NUMBERS})/s(?P<es>{_NUMBERS})|/s(?P<s>{_NUMBERS})|/(?P<unit>bbu|cv))?",
)

_SWITCH = ("on", "off")
#: ``set`` of volumes: property to the words that it takes.
VOLUME_WORDS: t.Mapping[str, tuple[str, ...]] = {
    "wrcache": ("wt", "wb", "awb"),
    "rdcache": ("ra", "nora"),
    "iopolicy": ("cached", "direct"),
    "pdcache": (*_SWITCH, "default"),
}
#: ``set`` of a controller: property to the words that it takes.
CONTROLLER_WORDS: t.Mapping[str, tuple[str, ...]] = {"jbodwritecache": (*_SWITCH, "default")}


class SyntaxRefusal(Exception):
    """The parser of the tool met a word that it did not expect."""

    def __init__(self, token: str) -> None:
        super().__init__(token)
        self.token = token


class Numbers(t.NamedTuple):
    """An ``x`` of a path: a number, or ``all``."""

    text: str = "all"

    @property
    def first(self) -> t.Any:
        return "all" if self.text == "all" else int(self.text)

    def among(self, known: t.Iterable[int]) -> list[int]:
        """The numbers that are meant when these are there: with ``all`` those, otherwise the named one, there or not."""
        return list(known) if self.text == "all" else [int(self.text)]


class Command(t.NamedTuple):
    """What was asked: which controllers (``None``: the host), what of them, and the verb with its words in lower case.

    :param assignments: for ``set``: property and value, in the order given.
    :param rest: the words after the verb, as far as they matter.
    """

    verb: str
    json: bool = False
    target: str = "host"
    controllers: Numbers | None = None
    objects: Numbers = Numbers()
    enclosures: Numbers | None = None
    rest: tuple[str, ...] = ()
    assignments: tuple[tuple[str, str], ...] = ()


def parse(given: t.Sequence[str]) -> Command:
    """The command in these words.

    :raises SyntaxRefusal: the tool would answer with a syntax error.
    """
    words = [word.lower() for word in given if word.lower() != "nolog"]
    json = bool(words) and words[-1] == "j"
    if json:
        words.pop()
    path = ""
    while words and words[0].startswith("/"):
        path += words.pop(0)
    if not path:
        return _host(words, json)
    match = _PATH.fullmatch(path)
    if not match:
        raise SyntaxRefusal("TOKEN_UNKNOWN")
    if not words:
        raise SyntaxRefusal("$end")
    controllers = Numbers(match["c"])
    verb, rest = words[0], tuple(words[1:])
    if match["v"]:
        return _volumes(verb, rest, json, controllers, Numbers(match["v"]))
    if match["es"] or match["s"]:
        enclosures = Numbers(match["e"]) if match["e"] else None
        return _drives(verb, rest, json, controllers, enclosures, Numbers(match["es"] or match["s"]))
    if match["unit"]:
        _require(verb == "show" and rest in ((), ("all",)))
        return Command(verb, json, match["unit"], controllers, rest=rest)
    return _controller(verb, rest, json, controllers)


def _require(known: bool) -> None:
    if not known:
        raise SyntaxRefusal("TOKEN_UNKNOWN")


def _host(words: list[str], json: bool) -> Command:
    _require(words in (["show"], ["show", "all"]))
    return Command("show", json, rest=tuple(words[1:]))


def _assignments(words: tuple[str, ...], known: t.Mapping[str, tuple[str, ...]]) -> tuple[tuple[str, str], ...]:
    if not words:
        raise SyntaxRefusal("$end")
    pairs = []
    for word in words:
        name, _equals, value = word.partition("=")
        _require(value in known.get(name, ()))
        pairs.append((name, value))
    return tuple(pairs)


def _controller(verb: str, rest: tuple[str, ...], json: bool, controllers: Numbers) -> Command:
    command = Command(verb, json, "controller", controllers, rest=rest)
    if verb == "set":
        return Command(verb, json, "controller", controllers, assignments=_assignments(rest, CONTROLLER_WORDS))
    _require(verb == "show" and rest in ((), ("all",), *((word,) for word in CONTROLLER_WORDS)))
    return command


def _volumes(verb: str, rest: tuple[str, ...], json: bool, controllers: Numbers, volumes: Numbers) -> Command:
    if verb == "set":
        return Command(verb, json, "volumes", controllers, volumes, assignments=_assignments(rest, VOLUME_WORDS))
    _require(verb == "show" and rest in ((), ("all",)))
    return Command(verb, json, "volumes", controllers, volumes, rest=rest)


def _drives(verb: str, rest: tuple[str, ...], json: bool, controllers: Numbers, enclosures: Numbers | None, slots: Numbers) -> Command:
    _require(verb == "show" and rest in ((), ("all",)))
    return Command(verb, json, "drives", controllers, slots, enclosures, rest)
