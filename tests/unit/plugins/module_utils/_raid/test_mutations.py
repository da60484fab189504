# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Damaged outputs: whatever a tool prints, a reader gives a Reading and never an exception.

What is cut is not complete, and what is missing is unknown: never off, and never healthy.
"""

from __future__ import annotations

import json
import operator
import re
import typing as t

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller, Reading
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.ssacli.text import parse_configuration
from ansible_collections.cachefleet.storage.tests.unit.support.raid_outputs import PARSERS, outputs_of

Draw = t.Callable[[st.SearchStrategy[t.Any]], t.Any]

#: Larger outputs only take longer to damage; every shape of output is there below this size.
LARGEST = 40_000
SPEEDY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

#: What a number can be replaced with: nothing, too much for an int() that limits its digits, no number at all.
NUMBERS = ("", "0", "-1", "9" * 40, "7" * 5000, "1e999", "NaN", "0x", "٣", "²", "1,5", "3/4")
#: What any value of a JSON document can be replaced with.
VALUES = (None, True, 0, -1, 10**30, 1.5, float("inf"), "", "-", "N/A", " ", ":", "/", "1/", "\u0000", [], [None], [[]], {}, {"": None}, [{}], [1, "a"])


@pytest.fixture(scope="session")
def outputs(shared_corpus):
    """Real outputs by tool, shortest first."""
    return {tool: sorted(outputs_of(shared_corpus, tool, LARGEST, transcribed=True).values(), key=len) for tool in PARSERS}


def read(parse, text):
    reading = parse(text)
    assert isinstance(reading, Reading)
    for clause in reading.not_understood:
        assert clause
        assert isinstance(clause, str)
    for controller in reading.controllers:
        assert isinstance(controller, Controller)
        controller.to_dict()
    return reading


def place(draw, text):
    return draw(st.integers(min_value=0, max_value=len(text)))


def cut(draw, text, other):
    return text[: place(draw, text)]


def beheaded(draw, text, other):
    return text[place(draw, text) :]


def spliced(draw, text, other):
    return text[: place(draw, text)] + other[place(draw, other) :]


def lines_deleted(draw, text, other):
    lines = text.splitlines(keepends=True)
    gone = set(draw(st.lists(st.integers(0, max(0, len(lines) - 1)), max_size=8)))
    return "".join(line for number, line in enumerate(lines) if number not in gone)


def lines_repeated(draw, text, other):
    lines = text.splitlines(keepends=True)
    for at in draw(st.lists(st.integers(0, max(0, len(lines) - 1)), max_size=8)):
        lines[at:at] = lines[at : at + 1] * draw(st.integers(1, 3))
    return "".join(lines)


def lines_swapped(draw, text, other):
    lines = text.splitlines(keepends=True)
    if lines:
        index = st.integers(0, len(lines) - 1)
        for one, two in draw(st.lists(st.tuples(index, index), max_size=8)):
            lines[one], lines[two] = lines[two], lines[one]
    return "".join(lines)


def lines_of_another(draw, text, other):
    lines, strange = text.splitlines(keepends=True), other.splitlines(keepends=True)
    if lines and strange:
        for at, of in draw(st.lists(st.tuples(st.integers(0, len(lines) - 1), st.integers(0, len(strange) - 1)), max_size=8)):
            lines[at] = strange[of]
    return "".join(lines)


def characters_flipped(draw, text, other):
    letters = list(text)
    if letters:
        for at, letter in draw(st.lists(st.tuples(st.integers(0, len(letters) - 1), st.characters()), max_size=12)):
            letters[at] = letter
    return "".join(letters)


def characters_removed(draw, text, other):
    """All of one character: no blanks, no colons, no line ends, no quotes."""
    return text.replace(draw(st.sampled_from(" :\n\t\r,(){}[]=\"-/'")), draw(st.sampled_from(("", " ", "\x00", "\u2028"))))


def numbers_replaced(draw, text, other):
    words = text.split(" ")
    numbers = [at for at, word in enumerate(words) if any(letter.isdigit() for letter in word)]
    if numbers:
        for at in draw(st.lists(st.sampled_from(numbers), max_size=8)):
            digits = "".join(letter for letter in words[at] if letter.isdigit())
            words[at] = words[at].replace(digits, draw(st.sampled_from(NUMBERS))) if digits else draw(st.sampled_from(NUMBERS))
    return " ".join(words)


def values_emptied(draw, text, other):
    lines = text.splitlines(keepends=True)
    labelled = [at for at, line in enumerate(lines) if ":" in line]
    if labelled:
        for at in draw(st.lists(st.sampled_from(labelled), max_size=8)):
            lines[at] = lines[at].partition(":")[0] + draw(st.sampled_from((":", "", " : ", ":\t?"))) + "\n"
    return "".join(lines)


def lines_indented(draw, text, other):
    """Nothing is where it was in a tree."""
    return "\n".join(" " * draw(st.integers(0, 12)) + line.strip() for line in text.splitlines()[: draw(st.integers(1, 60))])


def line_made_long(draw, text, other):
    at = place(draw, text)
    return text[:at] + draw(st.sampled_from((" ", "-", ":", "9", "/", "=", "a ", "0,0 ", "{", '"'))) * 20_000 + text[at:]


def json_retyped(draw, text, other):
    """Well-formed JSON in which some values are of another kind; texts that are not JSON stay as they are."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not document or not isinstance(document, (dict, list)):
        return text
    places: list[tuple[t.Any, t.Any]] = []
    waiting = [document]
    while waiting:
        node = waiting.pop()
        pairs = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in pairs:
            places.append((node, key))
            if isinstance(value, (dict, list)):
                waiting.append(value)
    for holder, key in draw(st.lists(st.sampled_from(places), max_size=6)):
        holder[key] = draw(st.sampled_from(VALUES))
    return json.dumps(document)


MUTATIONS = (
    cut,
    beheaded,
    spliced,
    lines_deleted,
    lines_repeated,
    lines_swapped,
    lines_of_another,
    characters_flipped,
    characters_removed,
    numbers_replaced,
    values_emptied,
    lines_indented,
    line_made_long,
    json_retyped,
)


@pytest.mark.parametrize("tool", sorted(PARSERS))
@settings(SPEEDY, max_examples=300)
@given(data=st.data())
def test_damaged_output_of_the_tool(outputs, tool, data):
    text = data.draw(st.sampled_from(outputs[tool]))
    other = data.draw(st.sampled_from(outputs[data.draw(st.sampled_from(sorted(PARSERS)))]))
    for mutate in data.draw(st.lists(st.sampled_from(MUTATIONS), min_size=1, max_size=3)):
        text = mutate(data.draw, text, other)
    read(PARSERS[tool], text)
    if tool == "ssacli":
        read(parse_configuration, text)


@pytest.mark.parametrize("tool", sorted(set(PARSERS) - {"arcconf", "ssacli"}))
@SPEEDY
@given(data=st.data())
def test_json_with_values_of_other_types(outputs, tool, data):
    text = data.draw(st.sampled_from([text for text in outputs[tool] if text.lstrip().startswith("{")]))
    read(PARSERS[tool], json_retyped(data.draw, text, ""))


@pytest.mark.parametrize("tool", sorted(PARSERS))
@SPEEDY
@given(bytes_=st.binary(max_size=300))
def test_arbitrary_bytes(tool, bytes_):
    read(PARSERS[tool], bytes_.decode("utf-8", errors="replace"))
    read(PARSERS[tool], bytes_.decode("utf-8", errors="surrogateescape"))


@pytest.mark.parametrize("tool", sorted(PARSERS))
@SPEEDY
@given(text=st.text(alphabet='CDE:/,=-|"{}[] \n\t0123456789ailnorstv', max_size=400))
def test_text_of_characters_used_in_outputs(tool, text):
    read(PARSERS[tool], text)


@pytest.mark.parametrize("tool", sorted(PARSERS))
@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"Controllers":' * 50_000,
        '{"Controllers":[' + '{"Response Data":' * 20_000 + "}" * 20_000 + "]}",
        '{"Controllers":[{"Command Status":{"Controller":' + "9" * 6000 + ',"Status":"Success"}}]}',
        '{"Controllers":[{"Command Status":{"Controller":1e999,"Status":NaN},"Response Data":{"VD LIST":-Infinity}}]}',
        "Controllers found: 1\n" + "   Size : " + "9" * 6000 + " MB\n",
        "Logical device number " + "9" * 6000 + "\n   Size : 1 MB\n",
        "\n" * 100_000,
        " " * 100_000,
        ":" * 100_000,
        "-" * 100_000 + "\n" + "=" * 100_000,
        " : " * 40_000,
        "\ufeff",
        "\x00",
        "\ud800",
        "",
    ],
    ids=lambda text: f"{text[:20]!r} ({len(text)})",
)
def test_extreme_inputs(tool, text):
    read(PARSERS[tool], text)


#: The last words of a complete output, where the tool has such.
VERDICT = "Command completed successfully."


@pytest.mark.parametrize("tool", ["arcconf", "storcli", "storcli2"])
@SPEEDY
@given(data=st.data())
def test_truncated_output_is_not_complete(outputs, tool, data):
    if tool == "arcconf":
        whole = [text for text in outputs[tool] if text.rstrip().endswith(VERDICT) and "evice information" in text.lower()]
        text = data.draw(st.sampled_from(whole))
        end = text.rindex(VERDICT)
    else:
        text = data.draw(st.sampled_from([text for text in outputs[tool] if text.startswith("{")]))
        end = len(text.rstrip()) - 1
    reading = read(PARSERS[tool], text[: data.draw(st.integers(min_value=0, max_value=end))])
    assert not reading.complete
    assert reading.controllers == () or reading.not_understood


#: What the first word of a path stands for; of volumes that are written through by choice, the state of the cache does not matter.
THINGS: dict[str, t.Callable[[Controller], t.Iterable[t.Any]]] = {
    "controller": lambda one: [one],
    "drives": lambda one: one.drives,
    "volumes": lambda one: one.volumes,
    "cached": lambda one: [volume for volume in one.volumes if volume.write.configured != "writethrough"],
}


def found_at(reading, paths):
    """All values at some paths, such as ''volumes.write.effective''."""
    found: set[str] = set()
    for path in paths.split():
        kind, _dot, name = path.partition(".")
        for value in (operator.attrgetter(name)(thing) for one in reading.controllers for thing in THINGS[kind](one)):
            found |= {*value.values()} if isinstance(value, dict) else {value}
    return found


@pytest.mark.parametrize(
    "tool, lines, path",
    [
        ("arcconf", r" +Write Cache +:", "drives.write_cache"),
        ("arcconf", r" +Write-cache |  +Caching +:", "volumes.write.configured volumes.write.effective"),
        ("arcconf", r" +Read-cache |  +Caching +:", "volumes.read.configured volumes.read.effective"),
        ("arcconf", r" +Status of [Ll]ogical", "volumes.status"),
        ("arcconf", r" +(Status|Overall Backup Unit Status|Supercap Status|Non-Volatile Storage Status) +:", "controller.protection.health"),
        ("arcconf", r" +Cache Status +:", "controller.cache.status"),
        ("arcconf", r" +No-Battery Write Cache +:", "controller.no_battery_write_cache"),
        ("arcconf", r" +Global Physical Device Write Cache Policy|   (Configured|Unconfigured|HBA) Drives  ", "controller.drive_cache"),
        ("ssacli", r" +Caching:", "volumes.write.configured volumes.write.effective"),
        ("ssacli", r" +Cache Status:", "controller.cache.status"),
        ("ssacli", r" +Cache (Status|Ratio|Status Details):", "cached.write.effective"),
        ("ssacli", r" +Battery/Capacitor Status:", "controller.protection.health"),
        ("ssacli", r" +No-Battery Write Cache:", "controller.no_battery_write_cache"),
        ("ssacli", r".*Drive Write Cache", "controller.drive_cache"),
    ],
)
def test_missing_values_are_unknown(outputs, tool, lines, path):
    known_before = set()
    for text in outputs[tool]:
        known_before |= found_at(read(PARSERS[tool], text), path)
        left = "".join(line for line in text.splitlines(keepends=True) if not re.match(lines, line))
        assert found_at(read(PARSERS[tool], left), path) <= {"unknown"}, text[:200]
    # or the test would hold for outputs that never tell it
    assert known_before - {"unknown"}


def without(node, keys):
    """A document without these keys, and without the rows of lists of properties that are called so."""
    if isinstance(node, dict):
        return {key: without(value, keys) for key, value in node.items() if key not in keys}
    if isinstance(node, list):
        return [without(value, keys) for value in node if not (isinstance(value, dict) and value.get("Property") in keys)]
    return node


@pytest.mark.parametrize(
    "tool, keys, path",
    [
        ("storcli", {"Cache"}, "volumes.write.effective"),
        ("storcli", {"Cache"}, "volumes.read.configured volumes.read.effective"),
        ("storcli", {"Write Cache(initial setting)"}, "volumes.write.configured"),
        ("storcli", {"Write Cache"}, "drives.write_cache"),
        ("storcli", {"PDC", "Disk Cache Policy"}, "volumes.drive_cache"),
        ("storcli", {"State", "BBU"}, "controller.protection.health"),
        ("storcli2", {"CurrentCache"}, "volumes.write.effective"),
        ("storcli2", {"DefaultCache"}, "volumes.write.configured"),
        ("storcli2", {"CurrentCache", "DefaultCache"}, "volumes.read.configured volumes.read.effective"),
        ("storcli2", {"Current Write Cache"}, "drives.write_cache"),
        ("storcli2", {"PDC", "Drive Write Cache Policy"}, "volumes.drive_cache"),
        ("storcli2", {"Energy Pack Info", "EPack"}, "controller.protection.health"),
    ],
    ids=lambda value: "+".join(sorted(value)) if isinstance(value, set) else value,
)
def test_missing_json_values_are_unknown(outputs, tool, keys, path):
    known_before = set()
    for text in outputs[tool]:
        if not text.startswith("{") or "Battery is absent" in text:
            continue
        known_before |= found_at(read(PARSERS[tool], text), path)
        assert found_at(read(PARSERS[tool], json.dumps(without(json.loads(text), keys))), path) <= {"unknown"}, text[:200]
    assert known_before - {"unknown"}
