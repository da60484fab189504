# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nothing that users write about a controller is lost between the two modules, and nothing reaches the wrong one."""

from __future__ import annotations

import re

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.cachefleet.storage.plugins.filter.raid_settings import FilterModule

raid_settings = FilterModule().filters()["raid_settings"]
CONTROLLER = {
    "provider": "arcconf",
    "id": 1,
    "cache_ratio": 10,
    "maxcache": {"flush_and_fetch_rate": 100, "cache_volumes": [{"state": "present", "drives": ["0,1"]}]},
    "volumes": [
        {"name": "archive", "write": "writeback", "allow_unprotected": True, "maxcache": {"read": True, "write": "instant_writeback"}},
        {"name": "os", "write": "writethrough"},
    ],
}


def test_policies_are_all_settings_except_the_ssd_cache():
    assert raid_settings([CONTROLLER], "policies") == [
        {
            "provider": "arcconf",
            "id": 1,
            "cache_ratio": 10,
            "volumes": [{"name": "archive", "write": "writeback", "allow_unprotected": True}, {"name": "os", "write": "writethrough"}],
        }
    ]


def test_ssd_cache_has_its_own_settings_and_volumes():
    assert raid_settings([CONTROLLER], "ssd_cache") == [
        {
            "provider": "arcconf",
            "id": 1,
            "flush_and_fetch_rate": 100,
            "cache_volumes": [{"state": "present", "drives": ["0,1"]}],
            "volumes": [{"name": "archive", "read": True, "write": "instant_writeback"}],
        }
    ]


def test_permissions_apply_only_to_their_own_module():
    mine = {"allow_unprotected": True, "volumes": [{"id": 0, "allow_unprotected": True, "maxcache": {"write": "writeback"}}]}
    assert raid_settings([mine], "ssd_cache") == [{"volumes": [{"id": 0, "write": "writeback"}]}]
    ssds = {"maxcache": {"allow_unprotected": True}, "volumes": [{"id": 0, "maxcache": {"allow_unprotected": True}}]}
    assert raid_settings([ssds], "policies") == [{"volumes": [{"id": 0}]}]


def test_only_absent_caches_are_removed_first():
    assert raid_settings([CONTROLLER], "removed_ssd_cache") == []
    gone = {"id": 1, "maxcache": {"dirty_page_threshold": 50, "flush_timeout": 60, "cache_volumes": [{"state": "absent", "data_volume": "a"}]}}
    assert raid_settings([gone], "removed_ssd_cache") == [{"id": 1, "flush_timeout": 60, "cache_volumes": [{"state": "absent", "data_volume": "a"}]}]


@pytest.mark.parametrize("present", [{"drives": ["0,1"]}, {"state": "present", "drives": ["0,1"], "data_volume": None}])
def test_cache_listed_as_present_and_absent_is_rejected(present):
    with pytest.raises(AnsibleFilterError, match="list it once"):
        raid_settings([{"maxcache": {"cache_volumes": [{"state": "absent"}, present]}}], "removed_ssd_cache")
    other = {"state": "absent", "data_volume": "b"}
    assert raid_settings([{"maxcache": {"cache_volumes": [other, present]}}], "removed_ssd_cache") == [{"cache_volumes": [other]}]


def test_pool_with_ssds_and_state_absent_is_one_error():
    mine = {"id": "0", "maxcache": {"cache_volumes": [{"state": "absent"}], "pool_drives": ["0,1"]}}
    assert raid_settings([mine], "removed_ssd_cache") == [{"id": "0", "cache_volumes": [{"state": "absent"}], "pool_drives": ["0,1"]}]


def test_controller_without_ssd_cache_is_omitted():
    assert raid_settings([{"id": 0, "volumes": [{"id": "all", "write": "writeback", "maxcache": None}]}], "ssd_cache") == []
    assert raid_settings([], "policies") == []


@pytest.mark.parametrize(("controllers", "part"), [({"id": 0}, "policies"), ("x", "policies"), ([1], "policies"), ([], "everything")])
def test_invalid_controller_list_is_rejected(controllers, part):
    with pytest.raises(AnsibleFilterError, match="raid_settings: "):
        raid_settings(controllers, part)


@pytest.mark.parametrize(
    ("controller", "sentence"),
    [
        ({"volumes": "all"}, "volumes must be a list of dictionaries: for example volumes: [{id: 0, write: writethrough}]"),
        ({"volumes": {"id": "all"}}, "volumes must be a list of dictionaries: for example volumes: [{id: 0, write: writethrough}]"),
        ({"volumes": [None]}, "volumes must be a list of dictionaries: for example volumes: [{id: 0, write: writethrough}]"),
        ({"volumes": [{"id": "all", "maxcache": "on"}]}, "maxcache must be a dictionary: for example maxcache: {read: true, write: writethrough}"),
        ({"maxcache": "on"}, "maxcache must be a dictionary: for example maxcache: {flush_and_fetch_rate: 200}"),
        ({"maxcache": {"cache_volumes": ["0,1"]}}, 'cache_volumes must be a list of dictionaries: for example cache_volumes: [{drives: ["0,1"]}]'),
    ],
)
def test_what_cannot_be_divided_is_one_sentence(controller, sentence):
    with pytest.raises(AnsibleFilterError, match=re.escape(f"raid_settings: controllers: {sentence}.")):
        for part in ("policies", "ssd_cache"):
            raid_settings([{"id": 0, **controller}], part)


def test_removal_is_listed_once():
    gone = {"id": 1, "maxcache": {"flush_timeout": 60, "cache_volumes": [{"state": "absent", "data_volume": "a"}]}}
    assert raid_settings([gone], "ssd_cache") == []
    other = {**gone, "maxcache": {**gone["maxcache"], "dirty_page_threshold": 50}}
    assert raid_settings([other], "ssd_cache") == [{"id": 1, "flush_timeout": 60, "dirty_page_threshold": 50, "volumes": []}]
