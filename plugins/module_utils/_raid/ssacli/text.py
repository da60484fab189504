# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reader of what ssacli, hpssacli and hpacucli print.

The format is a tree made by indentation, in steps of three blanks: a controller's heading in column 0, its properties, enclosures
and arrays below it, logical drives and physical drives below the array. A label means nothing without its place: ``Status`` and
``Serial Number`` occur in every section. Sources: captures of ``ctrl all show config detail``, ``ctrl slot=0 show detail`` and
``ctrl slot=0 ld all show detail`` of hpacucli 8 to ssacli 6 (P400 to P816i-a), and public reports of error texts and of warnings,
which stand in column 0 in the middle of the tree.

Sizes of logical drives and of the cache are in powers of 1024, sizes of physical drives in powers of 1000; newer versions print the
size of the cache without a unit, in GiB (libstoragemgmt issue 340).
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import re

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller, Reading
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.ssacli.outline import FIELD, Block, Outline, outline, quote
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.ssacli.reader import ControllerReader
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.ssacli.words import CACHING

_HELP = re.compile(
    r"\b(?:hp)?ssacli\b|\bhpacucli\b|^CLI Syntax|<target>|^[ \t]*Available options are|\bSOULAPI Version|^[ \t]*(?:logical|physical)drive \S+ \(.*\): ",
    re.IGNORECASE | re.MULTILINE,
)
#: Labels that are at or near the end of a section in every version that has them.
_LAST_LABELS = ("drive type", "ld acceleration method", "phy count", "phy transfer rate")

_CALLED = {"volume": "logical drive", "drive": "physical drive", "controller": "controller"}


def parse(text: str) -> Reading:
    """Any output of the tool; never raises. Errors, help and the answers of ``modify`` (which are empty) describe no controller."""
    return _parse(text, whole=False)


def parse_configuration(text: str) -> Reading:
    """``ctrl all show config detail``: as :func:`parse`, and a controller must have its properties and something below them."""
    return _parse(text, whole=True)


def _parse(text: str, *, whole: bool) -> Reading:
    if not text.strip():
        return Reading()
    tree = outline(text)
    heads = tree.heads()
    if not heads:
        if not tree.blocks or _HELP.search(text):
            return Reading()
        return Reading(not_understood=tuple(tree.strange[:1]), complete=False)
    doubts = [*tree.strange, *(f"the tool reports: {error}" for error in tree.errors)]
    cut = [] if text.endswith("\n") else [f"{quote(text.count(chr(10)) + 1, text[text.rfind(chr(10)) + 1 :])} is the last and does not end"]
    controllers: dict[str, Controller] = {}
    blocks = {block.line: block for block in tree.blocks}
    lost, lost_of = [], {head.key: [] for head in heads}
    for line, kind in tree.lost().items():
        lost.append(f"{quote(line, blocks[line].text)}: a {_CALLED[kind]} that is not named here")
        owner = blocks[line].within("controller") or blocks[line]
        lost_of.get(owner.key if owner.kind == "controller" else "", []).append(lost[-1])
    doubts += lost
    for head in heads:
        if head.key in controllers:
            # One of them may be another one whose slot is damaged.
            lost.append(f"{quote(head.line, head.text)} reports slot {head.key} again")
            doubts.append(lost[-1])
            continue
        cut += _missing(tree, head, whole=whole)
        controllers[head.key] = ControllerReader(tree, head, doubts, lost_of[head.key]).read()
    lost += [clause for clauses in lost_of.values() for clause in clauses if clause not in lost]
    owned = {key: tuple(clauses) for key, clauses in lost_of.items()}
    return Reading(tuple(controllers.values()), (*doubts, *cut), complete=not cut and not tree.ownerless, lost=tuple(lost), lost_of=owned)


def says_no_controller(text: str) -> bool:
    """Whether the tool reports that it found none. It does so too when the kernel's ``sg`` driver is not loaded."""
    return any("no controllers detected" in error.lower() for error in outline(text).errors)


def errors(text: str) -> list[str]:
    """The tool's errors, each as one line, with its reason."""
    return outline(text).errors


def _missing(tree: Outline, head: Block, *, whole: bool) -> list[str]:
    """What an uncut output would have: details of each drive it lists, and each drive and logical drive to its last labels."""
    found = []
    volumes = [block for block in tree.of("volume", head) if not block.rest]
    drives = tree.of("drive", head)
    if drives:
        detailed = {block.key for block in drives}
        absent = [block for block in tree.of("listed_drive", head) if block.key not in detailed]
        found += [f"{quote(block.line, block.text)} lists a drive of which nothing more is reported" for block in absent[:1]]
    found += [f"{quote(block.line, block.text)} is not reported completely" for block in (*volumes, *drives) if "status" not in block.fields]
    found += [f"{quote(block.line, block.text)} reports nothing about its caching" for block in volumes if not any(label in block.fields for label in CACHING)]
    for blocks in (volumes, drives):
        if len(blocks) > 1 and not _ends_like(blocks[-1], blocks[0]):
            found.append(f"{quote(blocks[-1].line, blocks[-1].text)} is not reported completely")
    if whole and not (head.fields and (volumes or drives or any(block.parent is head and not FIELD.match(block.text) for block in tree.of("other", head)))):
        found.append(f"{quote(head.line, head.text)} is a controller of which nothing more is reported")
    return found


def _ends_like(last: Block, first: Block) -> bool:
    """Whether a section has the last labels that another of its kind has; drives of another sort or in trouble may have fewer."""
    alike = last.value("interface type") == first.value("interface type") and last.value("status") == first.value("status")
    labels = _LAST_LABELS if alike else _LAST_LABELS[:1]
    return all(label in last.fields for label in labels if label in first.fields)
