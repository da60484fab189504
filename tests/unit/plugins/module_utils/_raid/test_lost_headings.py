# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One character of garbage in the name of a volume or drive: it is still there, or it is said that something is lost."""

from __future__ import annotations

import random
import re

import pytest

from ansible_collections.cachefleet.storage.tests.unit.support.raid_outputs import PARSERS, outputs_of

ROWS = r'"DG/VD" *: *"[^"]*"|"EID:Slt" *: *"[^"]*"'
#: What names volumes and drives.
NAMES = {
    "arcconf": r"^\s*(?:Logical (?:device|drive) number \d+|Device #\d+)\s*$|Reported Channel.*",
    "ssacli": r"^\s*(?:Logical Drive: .*|logicaldrive .*|physicaldrive [^(]*|.* in Slot \d+.*)$",
}
LARGEST = 60_000
GARBAGE = "x?:#\x007"


def named(reading):
    return sum(len(one.volumes) + len(one.drives) for one in reading.controllers)


@pytest.mark.parametrize("tool", PARSERS)
def test_damaged_headings_are_reported_as_lost(tool, shared_corpus):
    parse, pattern = PARSERS[tool], NAMES.get(tool, ROWS)
    chance, tried = random.Random(7), 0
    for path, text in outputs_of(shared_corpus, tool, LARGEST).items():
        whole, found = parse(text), list(re.finditer(pattern, text, re.MULTILINE))
        if whole.lost or path.name == "c0-vall-show-all_24vd.json":
            # The drives of volumes that share a group come more than once there; the list of drives is another answer.
            continue
        for match in chance.sample(found, min(4, len(found))):
            at = chance.choice([index for index in range(*match.span()) if text[index] not in ' \n"'])
            damaged = text[:at] + chance.choice(GARBAGE) + text[at + 1 :]
            reading = parse(damaged)
            assert named(reading) >= named(whole) or reading.lost or not reading.complete, (path.name, damaged[at - 40 : at + 40])
            assert set(reading.lost) <= set(reading.not_understood)
            tried += 1
    assert tried > 10
