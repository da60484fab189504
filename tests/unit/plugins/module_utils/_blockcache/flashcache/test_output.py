# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import output
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.sizes import blocks_of, memory_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood

MIB = 1024**2
BACK = """0 4194304 flashcache conf:
\tssd dev (/dev/disk/by-id/ata-S.1), disk dev (/dev/disk/by-id/wwn-0x5000) cache mode(WRITE_CACHE)
\tcapacity(126M), associativity(512), data block size(4K) metadata block size(4096b)
\tdisk assoc(128K)
\tskip sequential thresh(64K)
\ttotal blocks(32256), cached blocks(900), cache percent(2)
\tdirty blocks(77), dirty percent(0)
\tnr_queued(3)
Size Hist: 512:3 4096:17\x20
"""
#: As case C shows it: no disk associativity, no metadata block size.
OLD = """0 7814037168 flashcache conf:
\tssd dev (/dev/sdc1), disk dev (/dev/md3) cache mode(WRITE_BACK)
\tcapacity(115200M), associativity(512), block size(4K)
\ttotal blocks(29491200), cached blocks(1184000), cache percent(4)
\tdirty blocks(36601), dirty percent(0)
\tnr_queued(0)
Size Hist: 512:117531108 1024:61124866\x20
"""
STATUS = (
    "0 2097152 flashcache stats: \n\treads(10), writes(20)\n\tread hits(4), read hit percent(40)\n"
    "\tdisk read errors(0), disk write errors(2) ssd read errors(0)\n"
)


def test_single_cache_table():
    table = output.parse_table(BACK)
    assert (table.size, table.mode, table.write_only, table.block_size, table.metadata_block_size) == (2 << 30, "writeback", True, 4096, 4096)
    assert (table.disk_associativity, table.total, table.cached, table.dirty) == (128 * 1024, 32256, 900, 77)
    assert table.histogram == {512: 3, 4096: 17}
    assert table.folder == "ata-S.1+wwn-0x5000"


def test_tables_of_multiple_devices_and_other_targets():
    linear = "vg-lv: 0 8192 linear 8:0 2048\nvg-lv: 8192 8192 linear 8:16 2048\n"
    text = f"{linear}fc 1: {BACK}images: {BACK.replace('WRITE_CACHE', 'WRITE_BACK')}crypt: 0 8 crypt aes 0\n"
    tables = output.parse_tables(text)
    assert list(tables) == ["fc 1", "images"]
    assert tables["images"].mode == "writeback"
    assert output.parse_tables("No devices found\n") == {}
    assert output.parse_tables("") == {}


def test_writeback_table_without_dirty_blocks_is_not_clean():
    with pytest.raises(NotUnderstood):
        output.parse_table(BACK.replace("dirty blocks", "blocks that are dirty"))


@pytest.mark.parametrize("spoil", ["cache mode(WRITE_CACHE)", "total blocks(32256)", "ssd dev (/dev/disk/by-id/ata-S.1)"])
def test_table_without_mandatory_fields_is_rejected(spoil):
    with pytest.raises(NotUnderstood, match="dmsetup table of a flashcache device could not be parsed"):
        output.parse_table(BACK.replace(spoil, ""))


def test_older_release_with_fewer_fields():
    table = output.parse_table(OLD)
    assert (table.dirty, table.disk_associativity, table.metadata_block_size) == (36601, None, None)


def test_status_numbers_are_parsed_by_label():
    status = output.parse_status(STATUS)
    assert status["disk write errors"] == 2
    assert status["read hit percent"] == 40
    with pytest.raises(NotUnderstood):
        output.parse_status("0 8 linear 8:0 0\n")


def test_pid_lists():
    assert output.parse_pid_lists("Blacklist: 1 2 \nWhitelist: 30 \n") == ((1, 2), (30,))
    assert output.parse_pid_lists("") == ((), ())


@pytest.mark.parametrize("mode", ["back", "thru", "around"])
def test_captured_output_is_parsed_completely(shared_samples, mode):
    folder = shared_samples / "cache"
    table = output.parse_table((folder / f"flashcache-dmsetup-table.{mode}.txt").read_text())
    status = output.parse_status((folder / f"flashcache-dmsetup-status.{mode}.txt").read_text())
    statistics = output.parse_statistics((folder / f"flashcache-proc-stats.{mode}.txt").read_text())
    histogram = output.parse_histogram((folder / f"flashcache-proc-iosize_hist.{mode}.txt").read_text())
    assert output.parse_statistics((folder / f"flashcache-proc-errors.{mode}.txt").read_text())["ssd_write_errors"] == 0
    assert output.parse_pid_lists((folder / f"flashcache-proc-pidlists.{mode}.txt").read_text()) == ((), ())
    assert (table.ssd, table.disk, table.size) == ("/dev/sdc", "/dev/sda", 1 << 30)
    assert table.mode == {"back": "writeback", "thru": "writethrough", "around": "writearound"}[mode]
    assert table.histogram == histogram
    # What both show is the same number.
    for words, key in (("reads", "reads"), ("read hits", "read_hits"), ("uncached writes", "uncached_writes"), ("ssd writes", "ssd_writes")):
        assert status[words] == statistics[key]
    # The SSD had 128 MiB.
    assert table.total == blocks_of(128 * MIB, table.block_size, table.associativity, table.metadata_block_size)


def superblock(state=output.CLEAN, version=4):
    return output._SUPERBLOCK.pack(32256, 8, 512, state, b"fc0", 262144, b"/dev/disk/by-id/wwn-0x5000", 2097152, version, 16, 256, 1)


def test_superblock_and_older_formats():
    found = output.parse_superblock(superblock().ljust(4096, b"\0"))
    assert (found.name, found.disk, found.blocks, found.block_size, found.ssd_size, found.disk_size) == (
        "fc0",
        "/dev/disk/by-id/wwn-0x5000",
        32256,
        4096,
        128 * MIB,
        1 << 30,
    )
    assert (found.clean, found.metadata_block_size, found.disk_associativity, found.write_only) == (True, 8192, 128 * 1024, True)
    assert not output.parse_superblock(superblock(output.RUNNING)).clean
    assert output.parse_superblock(superblock(version=1)).metadata_block_size == 512
    assert output.parse_superblock(superblock(version=2)).disk_associativity == 0
    assert not output.parse_superblock(superblock(version=3)).write_only
    assert output.parse_superblock(bytes(4096)) is None
    assert output.parse_superblock(superblock()[:100]) is None


@pytest.mark.parametrize(
    ("size", "block", "associativity", "metadata", "blocks"),
    [(128 * MIB, 4096, 512, None, 32768), (128 * MIB, 4096, 512, 4096, 32256), (MIB, 4096, 512, 4096, 0), (0, 4096, 512, 4096, 0)],
)
def test_block_count(size, block, associativity, metadata, blocks):
    assert blocks_of(size, block, associativity, metadata) == blocks


def test_memory_usage_is_5_5_mib_per_gib():
    assert memory_of(1 << 30, 4096) == 5767168


PARSERS = (output.parse_tables, output.parse_table, output.parse_status, output.parse_statistics, output.parse_histogram, output.parse_pid_lists)
CHARACTERS = "0123456789()=:, \n\t-flashcacheKMbWRITE_BACK\u0664\x00"


@given(st.text(alphabet=CHARACTERS, max_size=300), st.sampled_from(PARSERS))
@example("0 1 flashcache conf:\n\ttotal blocks(\u0664)", output.parse_table)
def test_arbitrary_text_raises_only_not_understood(text, parse):
    with contextlib.suppress(NotUnderstood):
        parse(text)


@given(st.sampled_from([BACK, OLD, STATUS, f"fc0: {BACK}fc1: {BACK}"]), st.integers(0, 2**32), st.sampled_from(PARSERS))
def test_corrupted_output_raises_only_not_understood(text, seed, parse):
    dice = random.Random(seed)
    characters = list(text)
    for _change in range(dice.randint(1, 12)):
        place = dice.randrange(len(characters))
        kind = dice.randrange(3)
        if kind == 0:
            del characters[place : place + dice.randint(1, 30)]
            characters = characters or [" "]
        elif kind == 1:
            characters[place] = dice.choice(CHARACTERS)
        else:
            characters.insert(place, dice.choice(CHARACTERS))
    with contextlib.suppress(NotUnderstood):
        parse("".join(characters))


@given(st.binary(max_size=400))
def test_arbitrary_superblock_bytes_raise_nothing(head):
    output.parse_superblock(head)


@given(st.binary(min_size=312, max_size=312), st.sampled_from(sorted(output.STATES)))
def test_any_superblock_with_valid_state_is_parsed(head, state):
    found = output.parse_superblock(head[:16] + state.to_bytes(4, "little") + head[20:])
    assert found is not None
    assert found.state_name
