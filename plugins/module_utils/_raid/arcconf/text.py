# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What arcconf prints, read into the model; pure, and never raises.

Both generations: aacraid (series 2 to 8, IBM ServeRAID, Sun STK) and SmartRAID (SmartHBA, HBA 1000 and later, Cisco). Which of the
two a controller is follows from the labels and the name of the driver, never from a version: one arcconf manages both.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf import words
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.config import PROVIDER, Config
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.lines import Block, Line, Structure, problem, state_word, structure
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import UNKNOWN, Controller, Reading, filled

_CONFIG = ("controller", "array", "volume", "drive", "maxcache", "maxcache3")


def parse(text: str) -> Reading:
    """Read any one output of arcconf.

    Outputs without a controller (set answers, GETSTATUS, GETLOGS, usage texts) give an empty reading. A controller has the
    id ``unknown`` unless the output contains it (LIST and GETVERSION do, GETCONFIG does not).
    """
    found = structure(text)
    if not found.known:
        first = next(((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()), None)
        message = "the output is empty" if first is None else f"{problem(*first)}: this is not output of arcconf"
        return Reading(not_understood=(message,), complete=False)
    problems, lost = list(found.problems), list(found.lost)
    controllers = _listed(found, problems)
    if any(block.kind in _CONFIG and not _is_list(block) for block in found.blocks):
        controllers.append(Config([block for block in found.blocks if not _is_list(block)], found.sections, problems, lost).controller())
    if found.found is not None and controllers and _is_listing(found) and found.found != len(controllers):
        message = f"the tool found {found.found} controllers and reports {len(controllers)}"
        problems.append(message)
        lost.append(message)
    complete = found.verdict is not None or found.menu
    if not complete:
        problems.append("the output has no end: the last line is not the tool's verdict")
    return Reading(tuple(controllers), tuple(problems), complete, tuple(lost))


def join(listed: Reading, configs: t.Mapping[str, Reading]) -> Reading:
    """One reading of a LIST (or GETVERSION) and of one GETCONFIG per controller.

    :param configs: by the number of the controller.
    """
    controllers: list[Controller] = []
    problems, lost_of = list(listed.not_understood), {}
    for number, config in configs.items():
        problems += [f"controller {number}: {text}" for text in config.not_understood]
        lost_of[number] = tuple(f"controller {number}: {text}" for text in config.lost)
        short = next((one for one in listed.controllers if one.id == number), Controller(PROVIDER, id=number))
        if config.controllers:
            controllers.append(dataclasses.replace(filled(config.controllers[0], short), id=short.id))
        else:
            problems.append(f"controller {number}: GETCONFIG reports nothing about it")
            lost_of[number] = (*lost_of[number], problems[-1])
            controllers.append(short)
    complete = listed.complete and all(config.complete for config in configs.values())
    lost = (*listed.lost, *(clause for clauses in lost_of.values() for clause in clauses))
    return Reading(tuple(controllers), tuple(problems), complete, lost, lost_of)


def _is_listing(found: Structure) -> bool:
    return all(block.kind == "controller" and (block.number is not None or _is_list(block)) for block in found.blocks)


def _is_list(block: Block) -> bool:
    """Whether a controller section is the table of LIST, or one of GETVERSION's."""
    return block.kind == "controller" and (block.number is not None or any(_list_number(line) or line.label == "controller id" for line in block.lines))


def _list_number(line: Line) -> str | None:
    match = re.fullmatch(r"controller ([0-9]{1,6}):?", line.label)
    return match.group(1) if match and line.part == "" else None


def _listed(found: Structure, problems: list[str]) -> list[Controller]:
    controllers = []
    for block in found.blocks:
        if block.kind == "controller" and block.number is not None:
            controllers.append(Controller(PROVIDER, id=block.number, firmware=block.value("firmware")))
        elif _is_list(block):
            controllers += [_of_list(line, number, problems) for line in block.lines for number in [_list_number(line)] if number]
    return controllers


def _of_list(line: Line, number: str, problems: list[str]) -> Controller:
    """``: Optimal, Slot 8, HBA, MSCC Adaptec HBA 1100-16i, 8A246320899, 50000D1704B53280``; a name may have commas."""
    pieces = [piece.strip() for piece in line.value.lstrip(": ").split(",")]
    if len(pieces) < 6:
        problems.append(problem(line.number, line.text))
        return Controller(PROVIDER, id=number)
    mode = words.MODES.get(pieces[2].lower())
    if mode is None:
        problems.append(problem(line.number, line.text))
    return Controller(
        PROVIDER,
        id=number,
        model=", ".join(pieces[3:-2]) or None,
        serial=pieces[-2] or None,
        mode=mode or UNKNOWN,
        status=state_word(pieces[0]),
        traits={"mode_word": pieces[2]},
    )
