# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decisions about maxCache that no simulated controller brings about: silence, contradictions, states between two states."""

from __future__ import annotations

import dataclasses
import json
import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, NotUnderstood, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf import text as arcconf_text
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.commands import SendCommand
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    CacheModule,
    CacheVolume,
    Controller,
    Drive,
    MaxCache,
    Policy,
    Protection,
    Reading,
    Volume,
    VolumeMaxCache,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache import rules as maxcache_rules
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.caches import WaitForClean, flush_state
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.plan import plan, warnings
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.spec import parse_controllers
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import RaidState, Seen, Source
from ansible_collections.cachefleet.storage.tests.simulators.in_process.provider import FakeTool

ON, OFF, SILENT = Policy("enabled", "enabled"), Policy("disabled", "disabled"), Policy()
GIB = 1024**3
CONTAINER = CacheVolume(id="100", raid_level="1", status="optimal", size=100 * GIB, dirty="clean", members=("0,4", "0,5"))


def host(*controllers, **reading):
    tool = FakeTool(*controllers, tool="/opt/arcconf", name="arcconf")
    source = Source(tool, Reading(controllers, **reading))
    return RaidState((source,), tuple(Seen(controller, source) for controller in controllers))


def volume(number=0, **cached):
    used = VolumeMaxCache(**{"read": ON, "write": OFF, **cached})
    return Volume(id=str(number), name=f"volume{number}", size=1000 * GIB, status="optimal", members=(f"0,{number}",), maxcache=used)


def controller(*volumes, **changes):
    plain = Controller(
        provider="arcconf",
        id="1",
        model="MODEL",
        serial="SERIAL",
        cache=CacheModule("ok"),
        protection=Protection("capacitor", "healthy"),
        volumes=volumes or (volume(0),),
        drives=tuple(Drive(f"0,{number}", media="ssd" if number > 3 else "hdd", usage="unconfigured", size=200 * GIB) for number in range(8)),
        maxcache=MaxCache("container", (CONTAINER,), flush_and_fetch_rate=100),
    )
    return dataclasses.replace(plain, **changes)


def with_cache(one, **changes):
    """The controller with a changed cache volume."""
    cache = dataclasses.replace(CONTAINER, **changes)
    return dataclasses.replace(one, maxcache=dataclasses.replace(one.maxcache, volumes=(cache,)))


def planned(one, **entry):
    return plan(host(one), parse_controllers([entry]))


def refused(one, kind=BadInput, **entry):
    with pytest.raises(kind) as raised:
        planned(one, **entry)
    assert "Nothing was changed" in raised.value.message
    return raised.value.message


ABSENT: dict[str, t.Any] = {"cache_volumes": [{"state": "absent"}]}


def test_steps_are_serializable_and_planning_has_no_side_effects():
    one = controller(volume(0, write=ON, write_policy="writeback", dirty="dirty"))
    steps, left_out = planned(one, **ABSENT)
    assert json.loads(json.dumps([dataclasses.asdict(step) for step in steps]))
    assert (planned(one, **ABSENT), left_out) == ((steps, []), [])


# -- dirtiness


@pytest.mark.parametrize(
    ("cache", "volumes", "expected"),
    [
        ("clean", [{"dirty": "clean"}], "clean"),
        ("clean", [{}], "clean"),
        ("clean", [{"dirty": "dirty"}], "dirty"),
        ("dirty", [{"dirty": "clean"}], "dirty"),
        ("dirty", [{}], "dirty"),
        ("clean", [{"write": ON}], "unknown"),
        ("clean", [{"write": SILENT}], "unknown"),
        ("clean", [{"write": Policy("disabled", "enabled")}], "dirty"),
        ("unknown", [{"dirty": "clean"}], "clean"),
        ("unknown", [{"dirty": "clean"}, {}], "unknown"),
        ("unknown", [{}], "unknown"),
        ("unknown", [], "unknown"),
        ("clean", [], "clean"),
    ],
)
def test_only_caches_reported_clean_are_clean(cache, volumes, expected):
    there = dataclasses.replace(CONTAINER, dirty=cache)
    made = [volume(number, **cached) for number, cached in enumerate(volumes)]
    assert maxcache_rules.dirtiness("container", there, made) == expected


def test_volume_without_max_cache_status_is_not_clean():
    silent = Volume(id="1", name="silent")
    assert maxcache_rules.dirtiness("container", CONTAINER, [volume(0, dirty="clean"), silent]) == "unknown"
    assert maxcache_rules.dirtiness("pool", None, [volume(0, dirty="clean"), silent]) == "unknown"
    one = controller(volume(0, dirty="clean"), silent)
    assert "does not report whether its writes are cached" in refused(one, Refused, **ABSENT)
    rebuilt = {"cache_volumes": [{"drives": ["0,4", "0,6"], "raid_level": "1"}]}
    assert "does not report whether its writes are cached" in refused(one, Refused, **rebuilt)
    pool = dataclasses.replace(one, maxcache=MaxCache("pool", pool=("0,4",), assigned=1))
    assert "does not report whether its maxCache pool is clean" in refused(pool, Refused, **ABSENT)


def test_clean_pool_volume_with_unknown_write_caching_is_not_accepted():
    pool = dataclasses.replace(controller(volume(0, write=SILENT, dirty="clean")), maxcache=MaxCache("pool", pool=("0,4",), assigned=1))
    assert "does not report whether its writes are cached" in refused(pool, Refused, **ABSENT)


def test_pool_dirtiness_is_determined_by_its_volumes():
    assert maxcache_rules.dirtiness("pool", None, [volume(0, dirty="clean")]) == "clean"
    assert maxcache_rules.dirtiness("pool", None, [volume(0)]) == "unknown"
    assert maxcache_rules.dirtiness("pool", None, []) == "unknown"


def test_cache_with_unreported_dirtiness_is_not_removed():
    assert "does not report whether its maxCache volume 100 is clean" in refused(with_cache(controller(), dirty="unknown"), Refused, **ABSENT)


def test_volume_with_unreported_write_caching_keeps_its_cache():
    assert "does not report whether its writes are cached" in refused(controller(volume(0, write=SILENT)), Refused, **ABSENT)


@pytest.mark.parametrize("clean", ["clean", "dirty"])
def test_removal_always_waits_for_clean(clean):
    steps, _left_out = planned(with_cache(controller(), dirty=clean), **ABSENT)
    assert [type(step.operation) for step in steps] == [WaitForClean, SendCommand]
    assert (steps[0].before, steps[0].after) == (clean, "clean")


def test_flush_is_not_complete_while_controller_or_volume_is_missing():
    one = controller(volume(0, write=ON, write_policy="writeback", dirty="dirty"))
    waiting = next(step for step in planned(one, **ABSENT)[0] if isinstance(step.operation, WaitForClean)).operation
    flushed = controller(volume(0, dirty="clean"))
    assert flush_state(flushed, waiting) == ("clean", [])
    assert flush_state(dataclasses.replace(flushed, volumes=()), waiting) == ("unknown", [])
    assert flush_state(dataclasses.replace(flushed, maxcache=None), waiting) == ("unknown", [])
    assert flush_state(one, waiting) == ("dirty", ["volume0"])
    assert flush_state(controller(volume(0, write=Policy("disabled", "enabled"), dirty="clean")), waiting) == ("dirty", [])


def test_flush_is_not_complete_while_a_new_volume_is_written_through_cache():
    waiting = next(step for step in planned(controller(), **ABSENT)[0] if isinstance(step.operation, WaitForClean)).operation
    assert flush_state(controller(volume(0), volume(7)), waiting) == ("clean", [])
    assert flush_state(controller(volume(0), volume(7, write=ON, dirty="dirty")), waiting) == ("dirty", [])
    assert flush_state(controller(volume(0), volume(7, write=ON)), waiting) == ("unknown", [])


# -- what could not be read

LOST = "line 40: the heading 'Logical De' of a volume"


@pytest.mark.parametrize(
    "entry",
    [
        ABSENT,
        {"cache_volumes": [{"drives": ["0,4", "0,6"], "raid_level": "1"}]},
        {"volumes": [{"id": "all", "read": True}]},
        {"volumes": [{"id": "0", "read": True}, {"id": "all", "write": "disabled"}]},
    ],
)
def test_incomplete_reading_prevents_changes_to_the_whole_cache(entry):
    wanted = parse_controllers([{"id": "1", **entry}])
    plan(host(controller()), wanted)
    with pytest.raises(NotUnderstood, match="did not report everything") as raised:
        plan(host(controller(), lost=(LOST,)), wanted)
    assert (LOST in raised.value.message, raised.value.message.endswith("Nothing was changed.")) == (True, True)


def test_incomplete_reading_does_not_prove_absence_of_a_cache():
    none = dataclasses.replace(controller(), maxcache=MaxCache("container"))
    assert plan(host(none), parse_controllers([{"id": "1", **ABSENT}])) == ([], [])
    with pytest.raises(NotUnderstood):
        plan(host(none, lost=(LOST,)), parse_controllers([{"id": "1", **ABSENT}]))


def test_incomplete_reading_keeps_the_pool():
    pool = dataclasses.replace(controller(volume(0, dirty="clean")), maxcache=MaxCache("pool", pool=("0,4",), assigned=1))
    for entry in (ABSENT, {"pool_drives": ["0,5"]}, {"pool_drives": ["0,4", "0,5"]}):
        wanted = parse_controllers([{"id": "1", **entry}])
        assert plan(host(pool), wanted)[0]
        with pytest.raises(NotUnderstood):
            plan(host(pool, lost=(LOST,)), wanted)


def test_incomplete_reading_allows_changes_to_named_items():
    wanted = parse_controllers([{"id": "1", "flush_and_fetch_rate": 7, "volumes": [{"id": "0", "read": False}]}])
    assert plan(host(controller(), lost=(LOST,)), wanted) == plan(host(controller()), wanted)
    assert len(plan(host(controller(), lost=(LOST,)), wanted)[0]) == 2


# -- silence


def test_unreported_members_or_level_are_not_compared():
    requested = {"cache_volumes": [{"drives": ["0,4", "0,5"], "raid_level": "1"}]}
    for changes in ({"members": ()}, {"raid_level": "unknown"}):
        assert "does not report the SSDs" in refused(with_cache(controller(), **changes), NotUnderstood, **requested)
    assert planned(controller(), **requested) == ([], [])


def test_unreported_setting_is_not_changed():
    one = controller(volume(0, write=SILENT), volume(1))
    assert "does not report its maxCache write cache" in refused(one, volumes=[{"id": "0", "write": "writeback"}])
    steps, left_out = planned(one, volumes=[{"id": "all", "write": "writeback"}])
    assert [step.item for step in steps] == ["arcconf controller 1 volume 1"]
    assert left_out == ["Unchanged: volume volume0 of controller 1 (MODEL, arcconf) does not report its maxCache write cache, "
                        "so that a change could not be verified (arcconf prints none)."]  # fmt: skip
    assert "does not report its maxCache read/write balance" in refused(one, read_write_balance={"read": 1, "write": 1})


def test_all_volumes_requires_at_least_one_supported_volume():
    one = controller(volume(0, write=SILENT), volume(1, write=SILENT))
    assert "does not report" in refused(one, volumes=[{"id": "all", "write": "writeback"}])


def test_unreported_policy_is_set_again():
    one = controller(volume(0, write=ON, write_policy="unknown"))
    steps, _left_out = planned(one, volumes=[{"id": "0", "write": "writeback"}])
    assert [step.operation.words[2:] for step in steps] == [("LOGICALDRIVE", "0", "WRITECACHE", "ENABLE", "MAXCACHEWRITEPOLICY", "WB")]


def test_settings_that_cannot_be_restored_are_reported():
    one = controller(volume(0, write=ON, write_policy="writeback_with_writethrough", dirty="dirty"))
    requested = {"cache_volumes": [{"drives": ["0,4", "0,6"], "raid_level": "1"}]}
    assert "could not be set back afterwards (writeback_with_writethrough)" in refused(one, **requested)
    steps, _left_out = planned(one, **requested, volumes=[{"id": "0", "write": "writethrough"}])
    assert steps[-1].after == "writethrough"


def test_unknown_raid_level_is_not_redundant():
    one = with_cache(controller(), raid_level="unknown")
    assert "does not report its RAID level" in refused(one, Refused, volumes=[{"id": "0", "write": "writeback"}])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"maxcache": None}, "reports no pool"),
        ({"maxcache": MaxCache("pool", limit=0)}, "it allows 0 SSDs"),
        ({"maxcache": None, "traits": {"maxcache_version": "Not Applicable"}}, "maxCache Version: Not Applicable"),
        ({"mode": "hba"}, "is in HBA mode"),
        ({"maxcache": MaxCache()}, "does not report which maxCache it has"),
    ],
)
def test_reasons_for_missing_max_cache(changes, reason):
    assert reason in refused(controller(**changes), flush_and_fetch_rate=50)


# -- who is meant


def test_entries_without_settings_plan_nothing():
    assert planned(controller(maxcache=None), id="1") == ([], [])


def test_controller_listed_twice_is_rejected():
    with pytest.raises(BadInput, match="Two entries are for arcconf controller 1 maxcache"):
        plan(host(controller()), parse_controllers([{"id": "1", "flush_and_fetch_rate": 50}, {"id": "all", "flush_and_fetch_rate": 60}]))


def test_missing_volume_or_controller_is_reported():
    with pytest.raises(DeviceMissing, match="has no volume with id 7"):
        planned(controller(), volumes=[{"id": "7", "read": True}])
    with pytest.raises(DeviceMissing, match="controller 3"):
        planned(controller(), id="3", flush_and_fetch_rate=50)


def test_damaged_reading_is_rejected():
    source = Source(FakeTool(name="arcconf"), Reading((controller(),), ("line 3: 'x'",), complete=False))
    with pytest.raises(NotUnderstood, match="is damaged"):
        plan(RaidState((source,), (Seen(controller(), source),)), parse_controllers([ABSENT]))


# -- drives


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"media": "unknown"}, "does not show that it is an SSD"),
        ({"media": "hdd"}, "it is not an SSD"),
        ({"maxcache_capable": False}, "not maxCache capable"),
        ({"usage": "configured"}, "is part of a volume"),
        ({"usage": "cache"}, "in an SSD cache already"),
        ({"usage": "unknown", "state": "failed"}, "does not show it free (state: failed)"),
    ],
)
def test_unusable_ssds_are_refused(changes, reason):
    plain = controller()
    drives = tuple(dataclasses.replace(drive, **changes) if drive.address == "0,6" else drive for drive in plain.drives)
    one = dataclasses.replace(plain, drives=drives)
    assert reason in refused(one, cache_volumes=[{"drives": ["0,4", "0,6"], "raid_level": "1"}])


def test_members_of_a_deleted_cache_are_available_for_a_new_one():
    plain = controller()
    drives = tuple(dataclasses.replace(drive, usage="configured") if drive.address in CONTAINER.members else drive for drive in plain.drives)
    steps, _left_out = planned(dataclasses.replace(plain, drives=drives), cache_volumes=[{"drives": ["0, 5", "0 4", "0,6"], "raid_level": "5"}])
    words = [getattr(step.operation, "words", ["WAIT"])[0] for step in steps]
    assert words == ["WAIT", "DELETE", "CREATE", "SETMAXCACHE"]
    # Whether the volume still reads through it is not known: it is told, and reading back decides.
    assert (steps[-1].attribute, steps[-1].operation.must_succeed) == ("maxcache_read", False)


def test_pool_with_unlisted_ssds_is_not_touched():
    one = dataclasses.replace(controller(volume(0, dirty="clean")), maxcache=MaxCache("pool", assigned=1, limit=8))
    assert "reports 1 SSDs in its maxCache pool, and lists 0" in refused(one, NotUnderstood, pool_drives=["0,4"])
    assert planned(one, volumes=[{"id": "0", "read": True}]) == ([], [])


def test_ssd_limit_includes_existing_ssds():
    one = dataclasses.replace(controller(), maxcache=MaxCache("container", (CONTAINER,), limit=1))
    assert "allows 1 SSDs" in refused(one, cache_volumes=[{"drives": ["0,4", "0,5"], "raid_level": "1"}])


def test_size_within_one_percent_is_equal():
    requested = {"drives": ["0,4", "0,5"], "raid_level": "1"}
    assert planned(controller(), cache_volumes=[{**requested, "size": "100.5G"}])[0] == []
    assert len(planned(controller(), cache_volumes=[{**requested, "size": "150G"}])[0]) == 4
    assert "these SSDs give 200 GiB" in refused(controller(), cache_volumes=[{**requested, "size": "300G"}])


@pytest.mark.parametrize(("level", "count", "size"), [("simple", 1, 200), ("0", 2, 400), ("1", 2, 200), ("1E", 3, 300), ("5", 3, 400), ("10", 4, 400)])
def test_usable_size_of_ssds(level, count, size):
    requested = parse_controllers([{"cache_volumes": [{"drives": [f"0,{number}" for number in range(count)], "raid_level": level}]}])[0].cache_volumes[0]
    assert maxcache_rules.usable_size(controller(), requested) == size * GIB


def test_warnings_name_settings_that_are_not_in_effect():
    one = controller(volume(0, read=Policy("enabled", "disabled")))
    found = warnings(host(one), parse_controllers([{"volumes": [{"id": "0", "read": True}]}]))
    assert found == [
        "volume volume0 of controller 1 (MODEL, arcconf): maxCache read caching is set to enabled, but disabled is in effect: the tool reports no reason."
    ]


# -- maxCache 4


def smart(**changes):
    plain = controller(dataclasses.replace(volume(0), maxcache=None, acceleration="none"), maxcache=MaxCache("smart"))
    return dataclasses.replace(plain, **changes)


SMART_WISH = {"data_volume": "volume0", "drives": ["0,4", "0,5"], "raid_level": "1", "size": "100G"}


def test_max_cache_4_volume_is_created_as_requested():
    steps, _left_out = planned(smart(), cache_volumes=[SMART_WISH])
    assert steps[0].operation.words[:6] == ("CREATE", "1", "MAXCACHE", "Wcache", "WT", "DataLD")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"cache": CacheModule("temporarily_disabled", "Charge level of capacitor is low")}, "temporarily disabled (Charge level of capacitor is low)"),
        ({"cache": CacheModule()}, "its Cache Status is unknown"),
        ({"protection": Protection("capacitor", "charging", raw="Not Fully Charged")}, "its capacitor is charging (Not Fully Charged)"),
        ({"protection": Protection("none", "missing")}, "it has no capacitor"),
        ({"protection": Protection()}, "its capacitor is unknown"),
    ],
)
def test_max_cache_4_is_created_only_with_protection(changes, reason):
    assert reason in refused(smart(**changes), cache_volumes=[SMART_WISH])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"acceleration": "controller_cache"}, "it uses the cache of the controller"),
        ({"acceleration": "unknown"}, "does not report what accelerates it"),
        ({"acceleration": "io_bypass"}, "SSD I/O bypass"),
    ],
)
def test_conflicts_with_max_cache_4(changes, reason):
    one = smart(volumes=(dataclasses.replace(smart().volumes[0], **changes),))
    assert reason in refused(one, cache_volumes=[SMART_WISH])


def test_total_size_of_cache_volumes_is_limited_by_line_size():
    large = dataclasses.replace(smart().volumes[0], size=20000 * GIB)
    drives = tuple(dataclasses.replace(drive, size=10000 * GIB) for drive in smart().drives)
    one = smart(volumes=(large,), drives=drives)
    assert "cache lines of 64 KiB" in refused(one, cache_volumes=[{**SMART_WISH, "size": "2T"}])
    assert len(planned(one, cache_volumes=[{**SMART_WISH, "size": "2T", "line_size": 256}])[0]) == 1


def test_ambiguous_volume_name_is_rejected():
    first = smart().volumes[0]
    one = smart(volumes=(first, dataclasses.replace(first, id="volume0", name="other")))
    assert "2 volumes that are called volume0" in refused(one, cache_volumes=[SMART_WISH])


# -- captured outputs


def test_captured_container_is_converged_and_can_be_removed(shared_corpus):
    text = (shared_corpus / "arcconf" / "getconfig-al_asr7805q_maxcache3-wbb.txt").read_text(encoding="utf-8", errors="replace")
    one = dataclasses.replace(arcconf_text.parse(text).controllers[0], id="1")
    assert planned(one, cache_volumes=[{"drives": ["0,17", "0,18"], "raid_level": "1"}], volumes=[{"id": "2", "read": True, "write": "writeback"}]) == ([], [])
    steps, _left_out = planned(one, **ABSENT)
    assert [(step.item.rpartition("1 ")[2], step.before, step.after) for step in steps[:2]] == [
        ("volume 2", "writeback", "disabled"),
        ("maxcache", "dirty", "clean"),
    ]
    assert steps[2].before == {"drives": ["0,17", "0,18"], "raid_level": "1"}


def test_captured_pool_is_converged_and_does_not_report_dirtiness(shared_corpus):
    text = (shared_corpus / "arcconf" / "getconfig-al_adaptec-6805q_maxcache2-drives-wb.txt").read_text(encoding="utf-8", errors="replace")
    one = dataclasses.replace(arcconf_text.parse(text).controllers[0], id="1")
    assert planned(one, pool_drives=["0,0"], volumes=[{"id": "all", "read": True}]) == ([], [])
    assert "does not report its maxCache write cache" in refused(one, volumes=[{"id": "0", "write": "writeback"}])
