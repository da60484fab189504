# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands of arcconf for maxCache, in its three generations."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf import maxcache_output as commands
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller, MaxCache


def controller(generation, nologs=True):
    maxcache = None if generation is None else MaxCache(generation)
    return Controller("arcconf", id="1", model="ASR", maxcache=maxcache, traits={"nologs": nologs})


POOL, CONTAINER, SMART = controller("pool"), controller("container"), controller("smart")


@pytest.mark.parametrize(
    ("words", "requested"),
    [
        (commands.read_cache(POOL, ["0", "2"], True), "SETMAXCACHE 1 LOGICALDRIVE 0 2 READCACHE ENABLE nologs"),
        (commands.write_cache(CONTAINER, ["0"], False), "SETMAXCACHE 1 LOGICALDRIVE 0 WRITECACHE DISABLE nologs"),
        (commands.write_cache(CONTAINER, ["0"], False, "writeback"), "SETMAXCACHE 1 LOGICALDRIVE 0 WRITECACHE DISABLE nologs"),
        (
            commands.write_cache(CONTAINER, ["0"], True, "instant_writeback"),
            "SETMAXCACHE 1 LOGICALDRIVE 0 WRITECACHE ENABLE MAXCACHEWRITEPOLICY INSTWB nologs",
        ),
        (commands.write_policy(CONTAINER, ["0"], "writethrough"), "SETMAXCACHE 1 LOGICALDRIVE 0 MAXCACHEWRITEPOLICY WT nologs"),
        (commands.write_policy(SMART, ["4"], "writeback"), "SETMAXCACHE 1 LOGICALDRIVE 4 MAXCACHEWRITEPOLICY WB nologs"),
        (commands.whole(POOL, "flush_and_fetch_rate", 50), "SETMAXCACHE 1 FLUSHANDFETCHRATE 50 nologs"),
        (commands.whole(POOL, "read_write_balance", (3, 1)), "SETMAXCACHE 1 RWBALANCE 3 1 nologs"),
        (commands.whole(CONTAINER, "dirty_page_threshold", 75), "SETMAXCACHE 1 DIRTYPAGETHRESHOLD 75 nologs"),
        (commands.pool(POOL, ["0,4", "0,17"], add=True), "SETMAXCACHE 1 ADDTOPOOL 0 4 0 17 nologs"),
        (commands.pool(POOL, ["0,4"], add=False), "SETMAXCACHE 1 REMOVEFROMPOOL 0 4 nologs"),
        (commands.create(CONTAINER, ["0,4", "0,5"], "1"), "CREATE 1 MAXCACHE MAX 1 0 4 0 5 noprompt"),
        (commands.create(CONTAINER, ["0,4"], "simple_volume", size=2**30), "CREATE 1 MAXCACHE 1024 simple_volume 0 4 noprompt"),
        (
            commands.create(SMART, ["0,12", "0,13"], "1", size=16 * 2**30, data_volume="0", policy="writethrough", cache_line_size=256),
            "CREATE 1 MAXCACHE Wcache WT CacheLineSize 256 DataLD 0 16384 1 0 12 0 13 noprompt",
        ),
        (commands.delete(CONTAINER, "100"), "DELETE 1 MAXCACHE"),
        (commands.delete(SMART, "1"), "DELETE 1 MAXCACHE 1 noprompt"),
        (commands.whole(controller("pool", nologs=False), "flush_and_fetch_rate", 1), "SETMAXCACHE 1 FLUSHANDFETCHRATE 1"),
    ],
)
def test_commands(words, requested):
    assert words == requested.split()


@pytest.mark.parametrize(
    "command",
    [
        lambda: commands.read_cache(SMART, ["0"], True),
        lambda: commands.write_cache(SMART, ["0"], True),
        lambda: commands.write_policy(SMART, ["0"], "instant_writeback"),
        lambda: commands.whole(SMART, "flush_and_fetch_rate", 1),
        lambda: commands.whole(POOL, "flush_and_fetch_rate", 0),
        lambda: commands.whole(POOL, "flush_and_fetch_rate", 1001),
        lambda: commands.whole(POOL, "read_write_balance", (0, 1)),
        lambda: commands.whole(CONTAINER, "dirty_page_threshold", 101),
        lambda: commands.pool(CONTAINER, ["0,4"], add=True),
        lambda: commands.create(POOL, ["0,4"], "1"),
        lambda: commands.create(CONTAINER, ["0,4"], "6"),
        lambda: commands.create(CONTAINER, ["0,4"], "1", data_volume="0"),
        lambda: commands.create(SMART, ["0,4"], "1", size=2**30),
        lambda: commands.create(SMART, ["0,4"], "1", data_volume="0"),
        lambda: commands.create(SMART, ["0,4"], "1", data_volume="0", size=2**30, cache_line_size=128),
        lambda: commands.delete(POOL, "0"),
        lambda: commands.read_cache(controller(None), ["0"], True),
    ],
)
def test_unsupported_command_of_a_generation_raises(command):
    with pytest.raises(ValueError, match=r"maxCache"):
        command()


@pytest.mark.parametrize(
    ("one", "setting", "value", "reason"),
    [
        (SMART, "flush_and_fetch_rate", 100, "the firmware decides"),
        (SMART, "write_policy", "instant_writeback", "only writeback, writethrough"),
        (SMART, "write_policy", "writeback", None),
        (CONTAINER, "pool", None, "when the cache volume is created"),
        (POOL, "create", "1", "assigned to the pool"),
        (CONTAINER, "create", "6", "RAID level simple_volume, 0, 1, 1E, 5"),
        (CONTAINER, "read_write_balance", (3, 1), None),
        (CONTAINER, "read_write_balance", (3, 11), "two weights"),
        (controller(None), "read_cache", None, "no maxCache"),
    ],
)
def test_objections(one, setting, value, reason):
    found = commands.objection(one, setting, value)
    assert (found is None) is (reason is None)
    assert reason is None or (found is not None and reason in found)
