# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the parameters of raid_maxcache to wishes."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.spec import CacheVolumeSpec, parse_controllers
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.tools import TOOLS


def parse(**entry):
    return parse_controllers([entry])[0]


def test_only_given_options_are_requested():
    assert parse(id="1").empty
    parsed = parse(flush_and_fetch_rate=50, read_write_balance={"read": 3, "write": 1}, volumes=[{"id": 0, "read": False}])
    assert parsed.settings == {"flush_and_fetch_rate": 50, "read_write_balance": (3, 1)}
    assert parsed.volumes[0].settings == {"read": False}
    assert (parsed.id, parsed.named, parse(serial="X").named) == ("all", False, True)


def test_cache_volume_is_parsed():
    parsed = parse(cache_volumes=[{"drives": ["0, 4", "0 5"], "raid_level": "1", "size": "200G"}, {"state": "absent", "data_volume": "x", "size": "max"}])
    assert parsed.cache_volumes == (
        CacheVolumeSpec(drives=("0,4", "0,5"), raid_level="1", size=200 * 1024**3),
        CacheVolumeSpec(state="absent", data_volume="x"),
    )


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"drives": ["0,4"], "raid_level": "1"}, "exactly 2 SSDs, and drives has 1"),
        ({"drives": ["0,4", "0,5"], "raid_level": "simple"}, "exactly 1 SSDs"),
        ({"drives": ["0,4", "0,5"], "raid_level": "5"}, "at least 3 SSDs"),
        ({"drives": ["0,1", "0,2", "0,3", "0,4", "0,5"], "raid_level": "10"}, "an even number of at least 4"),
        ({"drives": ["0,4", "0,5"]}, "are required, except with state: absent"),
        ({"raid_level": "1"}, "are required, except with state: absent"),
        ({"drives": ["0,4", "0, 4"], "raid_level": "1"}, "drive 0,4 is there twice"),
        ({"drives": ["0,4", "252:1"], "raid_level": "1"}, "invalid drive address '252:1'"),
        ({"drives": ["0,4", "5"], "raid_level": "1"}, "invalid drive address '5'"),
        ({"drives": ["0,4", "0,5"], "raid_level": "1", "size": "big"}, "'big' is not a size"),
    ],
)
def test_invalid_cache_volumes_are_rejected(entry, reason):
    with pytest.raises(BadInput) as raised:
        parse(cache_volumes=[entry])
    assert reason in raised.value.message


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"tool_path": "/opt/arcconf"}, "set provider: arcconf in addition"),
        ({"flush_timeout": 0}, "flush_timeout must be a positive number of seconds, not 0"),
        ({"volumes": [{"read": True}]}, "exactly one of id, name, wwn; this one has none"),
        ({"volumes": [{"id": "1", "name": "x"}]}, "id and name"),
        ({"pool_drives": ["0,1", "0,1"]}, "pool_drives: drive 0,1 is there twice"),
    ],
)
def test_contradicting_options_are_rejected(entry, reason):
    with pytest.raises(BadInput) as raised:
        parse(**entry)
    assert reason in raised.value.message


def test_unsupported_tools_are_rejected_with_the_reason():
    without = {name: tool.without_maxcache for name, tool in TOOLS.items() if tool.without_maxcache}
    assert {*without, "arcconf"} == {*TOOLS}
    for name, reason in without.items():
        with pytest.raises(BadInput) as raised:
            parse(provider=name)
        assert reason in raised.value.message
