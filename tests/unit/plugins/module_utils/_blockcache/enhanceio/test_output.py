# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import output
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.output import Config, EnhanceIOSuperblock
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood

CONFIG = """\
src_name   /dev/disk/by-id/ata-HDD_1
ssd_name   /dev/disk/by-id/ata-SSD_1
src_size   209715200
ssd_size   2594816
set_size          256
block_size       4096
mode                1
eviction            2
num_sets        10136
num_blocks    2594816
metadata        small
state        normal
flags      0x00000204
"""
STATS = (
    "".join(
        f"{name:<26} {value:12d}\n"
        for name, value in {"reads": 800, "writes": 160, "read_hits": 600, "read_hit_pct": 75, "write_hits": 0, "cached_blocks": -1, "do_clean": 2}.items()
    )
    + "nr_blocks                       2594816\nnr_dirty                             12\nnr_sets                           10136\n"
)
ERRORS = "disk_read_errors       0\ndisk_write_errors      0\nssd_read_errors        3\nno_cache_dev           1\nno_source_dev          0\n"
HISTOGRAM = "512              7\n4096            41\n10240           2\n"


def superblock(**fields):
    """4096 bytes as the driver writes them."""
    reported = {"state": 0x55DADDEE, "mode": 1, "policy": 2, "sectors": 8, "magic": 0xE10CAC6E, "name": b"images", "fast": b"/dev/sdb", "source": b"/dev/sda"}
    reported.update(fields)
    block = bytearray(4096)
    struct.pack_into("<QIII", block, 0, 2594816, reported["sectors"], 256, reported["state"])
    struct.pack_into("128s", block, 20, reported["fast"])
    struct.pack_into("128s", block, 160, reported["source"])
    struct.pack_into("<I128s", block, 296, 3, reported["name"])
    struct.pack_into("<IIII", block, 428, reported["mode"], reported["policy"], 0, reported["magic"])
    return bytes(block)


def test_config_is_parsed():
    assert output.parse_config(CONFIG, "images") == Config(
        source="/dev/disk/by-id/ata-HDD_1",
        fast="/dev/disk/by-id/ata-SSD_1",
        source_size=100 << 30,
        blocks=2594816,
        set_size=256,
        block_size=4096,
        mode="writeback",
        policy="lru",
        state="normal",
        flags=output.CHANGING | output.FAST_REMOVE,
    )


@pytest.mark.parametrize(
    ("was", "instead", "what"),
    [
        ("mode                1", "mode                7", "mode 7 is not one of 1, 2, 3"),
        ("mode                1\n", "", "mode is ''"),
        ("state        normal", "state        sleepy", "state is 'sleepy'"),
        ("state        normal\n", "", "state is None"),
        ("flags      0x00000204", "flags      204", "flags is '204'"),
        ("block_size       4096", "block_size          0", "block_size is 0"),
        ("block_size       4096", "block_size       4 KiB", "block_size is '4 KiB'"),
        ("src_name   /dev/disk/by-id/ata-HDD_1\n", "", "it does not report src_name"),
        ("metadata        small", "???", "the line '???' is not a name and a value"),
    ],
)
def test_invalid_config_is_rejected(was, instead, what):
    assert was in CONFIG
    with pytest.raises(NotUnderstood) as caught:
        output.parse_config(CONFIG.replace(was, instead), "images")
    assert what in str(caught.value)
    assert "/proc/enhanceio/images/config" in str(caught.value)


def test_unknown_policy_is_reported_unchanged():
    assert output.parse_config(CONFIG.replace("eviction            2", "eviction            4"), "images").policy == "lifo"
    assert output.parse_config(CONFIG.replace("eviction            2", "eviction            9"), "images").policy == "9"


def test_stats_are_parsed():
    stats = output.parse_stats(STATS, "images")
    assert (stats["reads"], stats["nr_dirty"], stats["do_clean"], stats["cached_blocks"]) == (800, 12, 2, -1)


@pytest.mark.parametrize(
    ("was", "instead", "what"),
    [
        ("nr_dirty                             12", "nr_dirty                             -4", "nr_dirty is -4"),
        ("nr_dirty                             12\n", "", "it does not report nr_dirty"),
        ("nr_dirty                             12", "nr_dirty                             many", "nr_dirty is 'many'"),
    ],
)
def test_stats_used_as_proof_are_parsed_strictly(was, instead, what):
    assert was in STATS
    with pytest.raises(NotUnderstood) as caught:
        output.parse_stats(STATS.replace(was, instead), "images")
    assert what in str(caught.value)


def test_errors_and_histogram_are_parsed():
    assert output.parse_errors(ERRORS, "images") == {
        "disk_read_errors": 0,
        "disk_write_errors": 0,
        "ssd_read_errors": 3,
        "no_cache_dev": 1,
        "no_source_dev": 0,
    }
    assert output.parse_histogram(HISTOGRAM, "images") == {512: 7, 4096: 41, 10240: 2}
    assert output.parse_histogram("", "images") == {}


@pytest.mark.parametrize("line", ["512", "512 7 9", "500 7", "0 7", "512 -7", "x 7", "512 \uff17"])
def test_invalid_histogram_line_is_rejected(line):
    with pytest.raises(NotUnderstood, match="is not a size and a count"):
        output.parse_histogram(HISTOGRAM + line + "\n", "images")


@pytest.mark.parametrize(
    ("state", "mode", "word", "dirty"),
    [
        (0x55DADDEE, 1, "running", True),
        (0xCAFEBABF, 1, "dirty", True),
        (0xDEADDEEE, 1, "unstable", True),
        (0xACCEDED1, 1, "clean", False),
        (0x55DADDEE, 3, "running", False),
        (0x55DADDEE, 2, "running", False),
    ],
)
def test_superblock_is_parsed(state, mode, word, dirty):
    found = output.parse_superblock(superblock(state=state, mode=mode))
    assert found == EnhanceIOSuperblock("images", "/dev/sda", "/dev/sdb", output.MODES[mode], "lru", 4096, word)
    assert found.may_be_dirty is dirty


@pytest.mark.parametrize("fields", [{"magic": 0xBADCAC6E}, {"magic": 0}, {"state": 0}, {"mode": 9}])
def test_superblock_the_driver_rejects_is_none(fields):
    assert output.parse_superblock(superblock(**fields)) is None


def test_short_superblock_is_none():
    assert output.parse_superblock(superblock()[:443]) is None
    assert output.parse_superblock(b"") is None


def mutated(text):
    """The text with a piece of it replaced by anything."""
    pieces = st.tuples(st.integers(0, len(text)), st.integers(0, 40), st.text(max_size=40))
    return pieces.map(lambda piece: text[: piece[0]] + piece[2] + text[piece[0] + piece[1] :])


def only_not_understood(parse, text):
    try:
        return parse(text, "images")
    except NotUnderstood as error:
        assert "/proc/enhanceio/images/" in str(error)
        return None


@given(mutated(CONFIG))
def test_mutated_config_raises_only_not_understood(text):
    found = only_not_understood(output.parse_config, text)
    assert found is None or (found.mode in output.MODE_WORDS and found.block_size > 0 and found.state in ("normal", "degraded", "failed"))


@given(mutated(STATS))
def test_mutated_stats_raise_only_not_understood(text):
    found = only_not_understood(output.parse_stats, text)
    assert found is None or found["nr_dirty"] >= 0


@given(mutated(ERRORS))
def test_mutated_errors_raise_only_not_understood(text):
    only_not_understood(output.parse_errors, text)


@given(mutated(HISTOGRAM))
def test_mutated_histogram_raises_only_not_understood(text):
    found = only_not_understood(output.parse_histogram, text)
    assert found is None or all(size > 0 and size % 512 == 0 for size in found)


@given(st.binary(max_size=4096), st.integers(0, 500))
def test_mutated_superblock_raises_nothing(data, place):
    block = superblock()
    output.parse_superblock(block[:place] + data + block[place + len(data) :])
    output.parse_superblock(data)
