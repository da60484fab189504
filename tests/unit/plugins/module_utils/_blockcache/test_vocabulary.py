# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One vocabulary for five types of SSD cache: each question is put to all of them, and has one answer."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

import pytest

from ansible_collections.cachefleet.storage.plugins.filter.block_caches import block_caches
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import settings as bcache_settings
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import spec as bcache
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import spec as dm_cache
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_settings import BLOCK_SIZE, CACHE, METADATA_ONLY, WRITECACHE
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import settings as enhanceio_settings
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import spec as enhanceio
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import settings as flashcache_settings
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import spec as flashcache
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import spec as lvm
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.settings import CHOICE, FLAG, NUMBER, SIZE, Vocabulary
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput

DEVICES = ["/dev/disk/by-id/ata-SSD_A", "/dev/disk/by-id/ata-SSD_B"]
ITEM = {"name": "images", "origin": "/dev/vg0/images", "cache_devices": DEVICES[:1]}
ACCEPTED = "accepted"


@dataclass(frozen=True)
class Type:
    """One type of cache: what reads its items, its settings, one of them that is a number and one that is a flag, and what both need."""

    read_items: t.Callable[[t.Any], list[t.Any]]
    vocabulary: Vocabulary
    number: str
    flag: str
    fields: t.Mapping[str, t.Any]

    def read(self, **fields):
        return self.read_items([{**ITEM, **self.fields, **fields}])[0]

    def value(self, key, value):
        """What a setting is read as: flashcache keeps its numbers beside what was written."""
        cache = self.read(settings={key: value})
        return (cache.numbers if isinstance(cache, flashcache.FlashcacheSpec) else cache.settings)[key]


TYPES = {
    "lvm_cache": Type(lvm.read_items, WRITECACHE, "autocommit_time", METADATA_ONLY, {"kind": "writecache"}),
    "dm_cache": Type(dm_cache.read_items, WRITECACHE, "autocommit_time", METADATA_ONLY, {"kind": "writecache"}),
    "bcache": Type(bcache.read_items, bcache_settings.VOCABULARY, "writeback_percent", "discard", {"mode": "writeback"}),
    "flashcache": Type(flashcache.read_items, flashcache_settings.VOCABULARY, "dirty_thresh_pct", "reclaim_policy", {"mode": "writeback"}),
    "enhanceio": Type(enhanceio.read_items, enhanceio_settings.VOCABULARY, "autoclean_threshold", "cache_wronly", {"mode": "writeback"}),
}


def _answer(ask, kind, expected):
    """``expected`` if that is the answer of a type, else what the answer is."""
    try:
        ask(kind)
    except BadInput as error:
        return expected if expected != ACCEPTED and re.search(expected, error.message) and error.item == "images" else error.message
    return ACCEPTED


def _with(**fields):
    return lambda kind: kind.read(**fields)


def _number(value):
    return lambda kind: kind.value(kind.number, value)


def _bound(side, offset):
    return lambda kind: kind.value(kind.number, getattr(kind.vocabulary.settings[kind.number], side) + offset)


def _flag(value):
    return lambda kind: kind.value(kind.flag, value)


WHOLE, SWITCH = r"is '.*' and must be a whole number between \d+ and \d+.*, or default\.$", r"is '.*' and must be true or false, or default\.$"
QUESTIONS = {
    "the lowest number": (_bound("low", 0), ACCEPTED),
    "the highest number": (_bound("high", 0), ACCEPTED),
    "a number below the lowest": (_bound("low", -1), WHOLE),
    "a number above the highest": (_bound("high", 1), WHOLE),
    "a number as text": (_number(" 20 "), ACCEPTED),
    "the default of a number": (_number("default"), ACCEPTED),
    "true as a number": (_number(True), WHOLE),
    "a fraction": (_number(1.5), WHOLE),
    "a word as a number": (_number("many"), WHOLE),
    "nothing as a number": (_number(None), WHOLE),
    "an empty text as a number": (_number(""), WHOLE),
    "the default of a flag": (_flag("default"), ACCEPTED),
    "2 as a flag": (_flag(2), SWITCH),
    "a word as a flag": (_flag("maybe"), SWITCH),
    "nothing as a flag": (_flag(None), SWITCH),
    "a setting that does not exist": (_with(settings={"colour": 1}), r"has no setting colour: use \w+"),
    "a mode that does not exist": (_with(mode="sideways"), r"^images: mode sideways is not supported for .*; set mode: write"),
    "settings of a cache that is removed": (lambda kind: kind.read(state="absent", mode=None, settings={kind.number: 20}), ACCEPTED),
    "settings of a cache that is flushed": (lambda kind: kind.read(state="flushed", mode=None, settings={kind.number: 20}), ACCEPTED),
    "bad settings of a cache that is removed": (lambda kind: kind.read(state="absent", settings={kind.number: "many"}), WHOLE),
    "all of the device": (_with(size="100%"), ACCEPTED),
    "more than all of the device": (_with(size="101%"), "a share of the free space"),
    "a size that is none": (_with(size="much"), "size 'much' is not a size"),
    "no bytes": (_with(size="0"), "size is 0"),
    "a chunk size that is none": (_with(chunk_size="big"), "chunk_size 'big' is not a size"),
    "no seconds for a flush": (_with(flush_timeout=0), "flush_timeout is 0 and must be at least 1 second"),
    "no cache device": (_with(cache_devices=[]), "cache_devices is empty"),
    "no cache device of a cache that is removed": (_with(cache_devices=[], state="absent"), ACCEPTED),
    "a cache device that is no path": (_with(cache_devices=["sdb"]), "not a path below /dev|use a path below /dev"),
    "two cache devices and no mirror": (_with(cache_devices=DEVICES), "set mirror: true"),
    "a mirror of one": (_with(mirror=True), "a mirror needs two cache devices"),
    "two caches of one name": (
        lambda kind: kind.read_items([{**ITEM, **kind.fields}] * 2),
        "Two caches have the name images: each name may be listed only once",
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_all_types_give_the_same_answer(question):
    ask, expected = QUESTIONS[question]
    assert {name: _answer(ask, kind, expected) for name, kind in TYPES.items()} == dict.fromkeys(TYPES, expected)


@pytest.mark.parametrize(
    ("on", "spellings"), [(True, (True, 1, "1", "true", "True", "yes", "on")), (False, (False, 0, "0", "false", "False", "no", "off"))], ids=["on", "off"]
)
def test_flag_spellings_are_the_same_for_all_types(on, spellings):
    read = {name: [bool(kind.value(kind.flag, value)) for value in spellings] for name, kind in TYPES.items()}
    assert read == dict.fromkeys(TYPES, [on] * len(spellings))


@pytest.mark.parametrize(("name", "low", "high"), [(name, low, high) for name, kind in TYPES.items() for low, high in kind.vocabulary.pairs])
def test_thresholds_are_validated_before_host_is_read(name, low, high):
    kind, usual = TYPES[name], TYPES[name].vocabulary.settings[low].default
    for lower, higher, shown in ((60, 50, 60), ("default", usual - 1, usual)):
        with pytest.raises(BadInput, match=f"{low} must not exceed {high}, and {low} would be {shown} and {high} "):
            kind.read(settings={low: lower, high: higher})
    assert kind.read(settings={low: 50, high: 50}).settings == {low: 50, high: 50}
    # The other one is as the host has it: only a plan can compare.
    assert kind.read(settings={high: 0}).settings == {high: 0}


@pytest.mark.parametrize("vocabulary", [CACHE, *{id(kind.vocabulary): kind.vocabulary for kind in TYPES.values()}.values()], ids=lambda one: one.label)
def test_every_setting_description_is_complete(vocabulary):
    for key, setting in vocabulary.settings.items():
        assert setting.kind in (NUMBER, SIZE, FLAG, CHOICE) and setting.place, key
        assert bool(setting.choices) == (setting.kind == CHOICE or key == BLOCK_SIZE), key
        assert setting.low <= (setting.default if isinstance(setting.default, int) else setting.low) <= setting.high, key
        assert key not in vocabulary.refused
    assert all(key in vocabulary.settings for pair in vocabulary.pairs for key in pair)


# -- dm-writecache under LVM and without it

LVM, DM = TYPES["lvm_cache"], TYPES["dm_cache"]
NUMBERS = (-1, 0, 1, 45, 50, 100, 101, 512, 4096, 60_000, 60_001, 3_600_000, 86_400_000, 2**31, 2**32 - 1, 2**32)
VALUES = (*NUMBERS, "4K", True, False, "yes", "default", None, 1.5, "x")
NO_CHUNKS = "images: chunk_size is not supported for kind writecache; set settings.block_size (512 or 4096)."


def _writecache(kind, **fields):
    """The settings as a user writes them, or the refusal."""
    try:
        cache = kind.read(**fields)
    except BadInput as error:
        return error.message
    block = {BLOCK_SIZE: cache.chunk_size} if cache.chunk_size is not None else {}
    return {key: value for key, value in {**cache.settings, **block}.items() if value is not None}


@pytest.mark.parametrize("key", [*WRITECACHE.settings, *WRITECACHE.refused, "migration_threshold", "start_sector"])
def test_writecache_settings_match_with_and_without_lvm(key):
    answers = [[_writecache(kind, settings={key: value}) for value in VALUES] for kind in (LVM, DM)]
    assert answers[0] == answers[1]
    assert any(isinstance(answer, dict) and key in answer for answer in answers[0]) == (key in WRITECACHE.settings)


@pytest.mark.parametrize("value", [*VALUES, 2**63 - 1, 2**63, "16384"])
def test_dm_cache_settings_match_with_and_without_lvm(value):
    read = []
    for read_items in (lvm.read_items, dm_cache.read_items):
        try:
            read.append(read_items([{**ITEM, "settings": {"migration_threshold": value}}])[0].settings)
        except BadInput as error:
            read.append(error.message)
    assert read[0] == read[1]


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ({"settings": {"block_size": 512}}, {"block_size": 512}),
        ({"settings": {"block_size": "4k"}}, {"block_size": 4096}),
        ({"settings": {"block_size": 1024}}, "images: block_size is '1024' and must be 512 or 4096, or default."),
        ({"chunk_size": "512"}, NO_CHUNKS),
        ({"chunk_size": "64k"}, NO_CHUNKS),
        ({"chunk_size": "4k", "settings": {"block_size": 512}}, NO_CHUNKS),
    ],
)
def test_writecache_block_size_has_one_option_name(fields, answer):
    assert [_writecache(kind, **fields) for kind in (LVM, DM)] == [answer, answer]


@pytest.mark.parametrize(
    "fields",
    [
        {"chunk_size": "128K", "settings": {"migration_threshold": 16384}},
        {"kind": "writecache", "settings": {"block_size": 512, "writeback_jobs": 0, "metadata_only": "yes", "high_watermark": 40, "low_watermark": 30}},
        {"kind": "writecache", "settings": dict.fromkeys(WRITECACHE.settings, "default")},
    ],
)
def test_cache_migrated_from_lvm_keeps_its_settings(fields):
    before = {**ITEM, "type": "lvm_cache", **fields}
    after = {**before, "type": "dm_cache", "migrate": True}
    (old,) = lvm.read_items(block_caches([before], "rest")[0]["caches"])
    (new,) = dm_cache.read_items(block_caches([after], "rest")[0]["caches"])
    assert (new.mode, new.settings, new.chunk_size) == (
        old.mode,
        {key: value for key, value in old.settings.items() if key != BLOCK_SIZE},
        old.settings.get(BLOCK_SIZE) or old.chunk_size,
    )
