# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The readers against facts that a human took from the raw outputs (tests/unit/data/raid/facts.yml)."""

from __future__ import annotations

import collections
import functools
import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Reading
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.output import read_output
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.tools import TOOLS
from ansible_collections.cachefleet.storage.tests.unit.support.raid_outputs import PARSERS, folders_of, text_of

TABLE = pathlib.Path(__file__).resolve().parents[3] / "data" / "raid" / "facts.yml"

SECTIONS: dict[str, list[dict[str, t.Any]]] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
#: Which reader the outputs in a folder of the corpus belong to.
READERS_OF_FOLDERS = {folder: parse for name, parse in PARSERS.items() for folder in folders_of(name) if folder != "perccli2"}
FACTS = [fact for facts in SECTIONS.values() for fact in facts]


@functools.lru_cache(maxsize=None)
def reading_of(path):
    return READERS_OF_FOLDERS[path.parent.name](text_of(path))


def described(fact):
    """``arcconf/a.txt: volume 0: write.configured``."""
    objects = [f"{kind} {fact[kind]}" for kind in ("controller", "volume", "drive") if kind in fact]
    return ": ".join([fact["file"], ", ".join(objects) or "the controller", fact["field"]])


def controllers_of(reading, fact):
    return [controller for controller in reading.controllers if fact.get("controller") in (None, controller.id)]


def subject_of(reading, fact):
    """The object that a fact is about; a failed test if there is none or more than one."""
    controllers = controllers_of(reading, fact)
    assert len(controllers) == 1, f"{described(fact)}: found controllers {[one.id for one in reading.controllers]}; {reading.not_understood}"
    controller = controllers[0]
    if "volume" in fact:
        found: list[t.Any] = [volume for volume in controller.volumes if volume.id == fact["volume"]]
        assert len(found) == 1, f"{described(fact)}: found volumes {[one.id for one in controller.volumes]}; {reading.not_understood}"
        return found[0]
    if "drive" in fact:
        found = [drive for drive in controller.drives if drive.address == fact["drive"]]
        # an output that shows one address twice is still clear if both say the same
        assert len(set(found)) == 1, f"{described(fact)}: found drives {[one.address for one in controller.drives]}; {reading.not_understood}"
        return found[0]
    return controller


def value_at(subject, path):
    for step in path.split("."):
        if isinstance(subject, collections.abc.Mapping):
            assert step in subject, f"no {step!r} of {path!r} in {dict(subject)}"
            subject = subject[step]
        elif step.isdigit():
            assert int(step) < len(subject), f"{path!r}: only {len(subject)} there"
            subject = subject[int(step)]
        else:
            assert subject is not None, f"{path!r}: there is nothing before {step!r}"
            subject = getattr(subject, step)
    return list(subject) if isinstance(subject, tuple) else subject


def found_by(reading, fact):
    what, _dot, of = fact["field"].partition(".")
    if what != "count":
        return value_at(subject_of(reading, fact), fact["field"])
    controllers = controllers_of(reading, fact)
    if of == "controllers":
        return len(controllers)
    if "controller" in fact:
        assert len(controllers) == 1, f"{described(fact)}: found controllers {[one.id for one in reading.controllers]}"
    return sum(len(getattr(controller, of)) for controller in controllers)


@pytest.mark.parametrize("fact", [pytest.param(fact, id=described(fact)) for fact in FACTS])
def test_parser_matches_manually_extracted_facts(shared_corpus, fact):
    reading = reading_of(shared_corpus / fact["file"])
    found = found_by(reading, fact)
    assert found == fact["value"], f"{described(fact)}: wanted {fact['value']!r}, found {found!r}"


def test_fact_table_has_minimum_coverage():
    assert len(FACTS) >= 120
    assert len([section for section, facts in SECTIONS.items() if len(facts) >= 10]) >= 6
    assert {fact["file"].split("/")[0] for fact in FACTS} == set(READERS_OF_FOLDERS)


def test_facts_are_unique():
    counts = collections.Counter(described(fact) for fact in FACTS)
    assert [fact for fact, count in counts.items() if count > 1] == []


def test_fact_files_exist_in_the_corpus(shared_corpus):
    assert sorted({fact["file"] for fact in FACTS if not (shared_corpus / fact["file"]).is_file()}) == []


@pytest.mark.parametrize("name", PARSERS)
def test_every_output_of_every_tool_is_parsed_without_an_exception(shared_corpus, name):
    """Its own outputs, and those of the other tools, of MegaCli, smartctl and the rest, which it gets if a path is set wrongly."""
    files = sorted(path for path in shared_corpus.rglob("*") if path.is_file())
    assert len(files) > 150
    failed = []
    for path in files:
        try:
            reading = PARSERS[name](text_of(path))
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs into the list
            failed.append(f"{path.relative_to(shared_corpus)}: {type(error).__name__}: {error}")
            continue
        if not isinstance(reading, Reading):
            failed.append(f"{path.relative_to(shared_corpus)}: {reading!r}")
    assert failed == []


#: Cut in the source that it was taken from.
CUT = "storcli_call-vall-show-all_RWTD-with-WriteBack-initial_truncated.txt"


@pytest.mark.parametrize("folder", sorted(set(READERS_OF_FOLDERS) - {"arcconf"}))
def test_every_capture_is_understood_and_loses_nothing(shared_corpus, folder):
    paths = [path for path in sorted((shared_corpus / folder).iterdir()) if folder != "transcribed" or path.name.startswith("storcli")]
    assert paths
    for path in paths:
        reading = reading_of(path)
        assert reading.complete == (path.name != CUT), path.name
        assert bool(reading.not_understood) == (path.name == CUT), path.name
        if folder in TOOLS:
            assert reading.lost == (), path.name
            assert all(volume.members_untold == 0 for one in reading.controllers for volume in one.volumes), path.name
        if folder != "ssacli":
            assert read_output(text_of(path)).answers, path.name


@pytest.mark.parametrize("folder", sorted(READERS_OF_FOLDERS))
def test_readings_survive_yaml_round_trip(shared_corpus, folder):
    for path in sorted((shared_corpus / folder).iterdir()):
        for controller in reading_of(path).controllers:
            result = controller.to_dict()
            assert yaml.safe_load(yaml.safe_dump(result)) == result, path.name
