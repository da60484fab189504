# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole life of a maxCache on simulated controllers of the three generations."""

from __future__ import annotations

import copy
import dataclasses
import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import (
    BadInput,
    CommandFailed,
    NotEffective,
    NotUnderstood,
    Refused,
    StorageError,
    TimedOut,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.provider import ArcConf
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.commands import SendCommand
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.caches import Interrupted, WaitForClean
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.layer import RaidMaxCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.spec import parse_controllers
from ansible_collections.cachefleet.storage.tests.simulators.arcconf import Arcconf
from ansible_collections.cachefleet.storage.tests.simulators.in_process.raid import SimulatedRunner

SERIES7, SERIES8, SERIES6, SMART = "Adaptec ASR-7805Q", "Adaptec ASR-81605ZQ", "Adaptec 6805Q", "Adaptec SmartRAID 3154-8i"
CHANGING = ("SETMAXCACHE", "CREATE", "DELETE", "SETCACHE")
REMOVED = {"cache_volumes": [{"state": "absent"}]}


class Rig:
    """A simulated controller, and runs of the layer against it in a time of its own."""

    def __init__(self, model, **options):
        self.runner = SimulatedRunner(Arcconf)
        self.controller = self.runner.add(Arcconf, model, **{"volumes": 2, **options})
        self.now = 0.0
        self.slept: list[float] = []
        self.on_sleep: t.Callable[[], None] | None = None
        self.read: t.Callable[[ArcConf], t.Any] = ArcConf.read

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds
        assert self.now < 86400, "it waits for ever"
        if self.on_sleep is not None:
            self.on_sleep()

    def layer(self, *entries):
        runner = t.cast("t.Any", self.runner)
        provider = ArcConf(runner, Arcconf.paths[0])
        return RaidMaxCacheLayer(runner, parse_controllers(list(entries)), [provider], clock=lambda: self.now, sleep=self.sleep)

    def run(self, check_mode=False, **entry):
        self.last = self.layer(entry)
        return converge(self.last, check_mode=check_mode)

    def settle(self, **entry):
        """As check mode predicts, then for real, then once more without a change."""
        before = copy.deepcopy(self.runner.states)
        predicted = self.run(check_mode=True, **entry)
        assert self.changes == []
        assert without_time(self.runner.states) == without_time(before)
        done = self.run(**entry)
        assert done.steps == predicted.steps
        self.first_progress = self.last.progress
        changes = list(self.changes)
        again = self.run(**entry)
        assert [step.action for step in again.steps] == []
        assert self.changes == changes
        return done

    def refuses(self, kind=BadInput, **entry):
        """The sentence; nothing may have been sent."""
        sent = list(self.changes)
        with pytest.raises(kind) as raised:
            self.run(**entry)
        assert self.changes == sent
        assert raised.value.message.endswith(".")
        return raised.value.message

    @property
    def changes(self):
        return [call[1:] for call in self.runner.calls if call[1] in CHANGING]

    @property
    def readings(self):
        return sum(call[1] == "GETCONFIG" for call in self.runner.calls)

    @property
    def ssds(self):
        return [f"{drive['channel']},{drive['device']}" for drive in self.controller["drives"] if drive["ssd"]]

    @property
    def containers(self):
        return self.controller["maxcache"]["containers"]

    def settings(self, number=0):
        return {name: self.controller["volumes"][number]["maxcache"][name] for name in ("read", "write", "policy")}


def without_time(states):
    """A reading lets a flush go on, and nothing else."""
    copied = copy.deepcopy(dict(states))
    for controller in copied["arcconf"]["controllers"]:
        for volume in controller["volumes"]:
            volume["maxcache"].pop("flush_left")
    return copied


def writing(model, **options):
    """A controller whose first volume caches writes."""
    rig = Rig(model, **options)
    rig.run(volumes=[{"id": "0", "read": True, "write": "writeback"}])
    rig.runner.calls.clear()
    return rig


# -- maxCache 3.0: one container


@pytest.mark.parametrize("model", [SERIES7, SERIES8])
def test_container_is_created_and_used_by_a_volume(model):
    rig = Rig(model, maxcache=False)
    rig.settle(
        cache_volumes=[{"drives": rig.ssds, "raid_level": "1"}],
        flush_and_fetch_rate=200,
        dirty_page_threshold=60,
        read_write_balance={"read": 5, "write": 4},
        volumes=[{"name": "volume0", "read": True, "write": "instant_writeback"}],
    )
    assert [change[0] for change in rig.changes] == ["CREATE", *["SETMAXCACHE"] * 5]
    assert (rig.containers[0]["raid"], rig.settings()) == ("1", {"read": True, "write": True, "policy": "INSTWB"})
    assert (rig.controller["maxcache"]["flush_rate"], rig.controller["maxcache"]["threshold"], rig.controller["maxcache"]["balance"]) == (200, 60, [5, 4])
    assert rig.settings(1)["write"] is False


@pytest.mark.parametrize("policy", ["writethrough", "writeback", "instant_writeback", "disabled"])
def test_every_write_policy_transition(policy):
    for start in ("writethrough", "writeback", "instant_writeback", "disabled"):
        rig = Rig(SERIES8)
        rig.run(volumes=[{"id": "0", "write": start}])
        rig.runner.calls.clear()
        rig.settle(volumes=[{"id": "0", "write": policy}])
        assert len(rig.changes) == (start != policy)


def test_converged_host_is_read_once_with_64_volumes():
    rig = Rig(SERIES8, volumes=64)
    entry = {"volumes": [{"id": "all", "read": True, "write": "writeback"}]}
    rig.run(**entry)
    assert (rig.readings, len(rig.changes)) == (2, 128)
    rig.runner.calls.clear()
    assert not rig.run(**entry).changed
    assert [call[1] for call in rig.runner.calls] == ["LIST", "GETCONFIG"]


def test_delete_disables_writeback_waits_and_deletes():
    rig = writing(SERIES7)
    outcome = rig.settle(**REMOVED)
    assert [type(step.operation) for step in outcome.steps] == [SendCommand, WaitForClean, SendCommand]
    assert [change[:2] for change in rig.changes] == [("SETMAXCACHE", "1"), ("DELETE", "1")]
    assert rig.containers == []
    assert "still dirty" in rig.first_progress[0]
    assert "clean after" in rig.first_progress[-1]
    assert rig.slept == sorted(rig.slept) != []


def test_long_flush_is_polled_less_often_without_deadline():
    rig = writing(SERIES8, flush_reads=400)
    rig.run(**REMOVED)
    assert rig.slept[:6] == [2, 4, 8, 16, 30, 30]
    assert max(rig.slept) == 30
    assert rig.now > 3 * 3600
    assert rig.containers == []


def test_changed_members_or_level_rebuild_container_and_restore_settings():
    rig = writing(SERIES8, ssds=3)
    rig.run(volumes=[{"id": "1", "read": True}])
    rig.runner.calls.clear()
    outcome = rig.settle(cache_volumes=[{"drives": rig.ssds, "raid_level": "5"}])
    assert [change[0] for change in rig.changes] == ["SETMAXCACHE", "DELETE", "CREATE", *["SETMAXCACHE"] * 3]
    assert rig.containers[0]["raid"] == "5"
    assert (rig.settings(0), rig.settings(1)["read"]) == ({"read": True, "write": True, "policy": "WB"}, True)
    assert outcome.to_dict()["diff"]["after"]["arcconf controller 1 maxcache"]["cache_volume"]["raid_level"] == "5"


def test_explicit_size_is_kept_and_changed_size_rebuilds():
    rig = Rig(SERIES7, maxcache=False)
    entry = {"drives": rig.ssds, "raid_level": "1"}
    rig.settle(cache_volumes=[{**entry, "size": "100G"}])
    assert not rig.run(cache_volumes=[entry]).changed
    rig.runner.calls.clear()
    rig.settle(cache_volumes=[{**entry, "size": "50G"}])
    assert [change[0] for change in rig.changes] == ["DELETE", "CREATE"]


def test_wait_timeout_reports_completed_steps_and_next_run_continues():
    rig = writing(SERIES7, flush_reads=50)
    with pytest.raises(TimedOut) as raised:
        rig.run(**REMOVED, flush_timeout=20)
    assert "write caching was disabled for volume0, and the cache was not removed" in raised.value.message
    assert raised.value.facts["broke_off"].startswith("Wait until")
    assert len(raised.value.facts["actions"]) == 1
    assert len(rig.containers) == 1
    assert rig.now == 20
    outcome = rig.run(**REMOVED)
    assert [type(step.operation) for step in outcome.steps] == [WaitForClean, SendCommand]
    assert rig.containers == []


def test_interrupted_wait_keeps_the_cache():
    rig = writing(SERIES7)

    def interrupt():
        raise KeyboardInterrupt

    rig.on_sleep = interrupt
    with pytest.raises(Interrupted) as raised:
        rig.run(**REMOVED)
    assert (raised.value.kind, len(rig.containers)) == ("interrupted", 1)
    assert raised.value.facts["progress"] == ["arcconf controller 1 maxcache: still dirty after 0 s"]


def test_write_caching_reenabled_during_wait_ends_the_wait():
    rig = writing(SERIES7)
    rig.on_sleep = lambda: rig.controller["volumes"][0]["maxcache"].update(write=True)
    with pytest.raises(NotEffective, match="write caching of volume0 is still enabled"):
        rig.run(**REMOVED)
    assert len(rig.containers) == 1


def test_controller_that_stops_reporting_ends_the_wait():
    rig = writing(SERIES7)
    rig.on_sleep = rig.containers.clear
    with pytest.raises(NotUnderstood, match="does not report any more whether its maxCache is clean: write caching was disabled for volume0"):
        rig.run(**REMOVED)
    assert rig.changes[-1][0] == "SETMAXCACHE"


@pytest.mark.parametrize("fault", ["truncated", "empty"])
def test_damaged_reading_is_repeated_and_permanent_damage_ends_the_wait(fault):
    rig = writing(SERIES8)
    faults = rig.runner.states["arcconf"]["faults"]
    rig.on_sleep = lambda: faults.update({fault: not faults.get(fault)})
    rig.run(**REMOVED)
    assert rig.containers == []

    rig = writing(SERIES8)
    lasting = rig.runner.states["arcconf"]["faults"]
    rig.on_sleep = lambda: lasting.update({fault: True})
    with pytest.raises(StorageError, match="Run again to continue"):
        rig.run(**REMOVED)
    assert len(rig.containers) == 1


def lose_after(rig, number):
    """From some reading on, a part of what is there is lost."""
    real = ArcConf.read
    readings = 0

    def read(provider):
        nonlocal readings
        readings += 1
        reading = real(provider)
        return dataclasses.replace(reading, lost=("line 9: a volume",)) if readings > number else reading

    rig.read = read


def test_incomplete_reading_is_repeated_and_finally_ends_the_wait(monkeypatch):
    rig = writing(SERIES8)
    lose_after(rig, 2)
    monkeypatch.setattr(ArcConf, "read", rig.read)
    with pytest.raises(NotUnderstood, match=r"did not report everything .*, 3 times in a row: write caching was disabled for volume0"):
        rig.run(id="1", **REMOVED)
    assert len(rig.containers) == 1


def test_incomplete_verification_reading_proves_nothing(monkeypatch):
    rig = Rig(SERIES8)
    lose_after(rig, 1)
    monkeypatch.setattr(ArcConf, "read", rig.read)
    with pytest.raises(NotUnderstood, match="what was read back does not prove it") as raised:
        rig.run(id="1", volumes=[{"id": "all", "read": True}])
    assert "Nothing was changed" not in raised.value.message
    assert raised.value.facts["changed"] is True


def test_unverifiable_state_is_not_reported_as_unchanged():
    rig = Rig(SERIES8)
    real = rig.runner.run

    def lose(argv, **rest):
        completed = real(argv, **rest)
        if argv[1] == "SETMAXCACHE":
            rig.controller["maxcache"]["containers"].clear()
        return completed

    rig.runner.run = lose
    with pytest.raises(NotEffective, match="what was read back does not agree") as raised:
        rig.run(volumes=[{"id": "0", "read": True}])
    assert "Nothing was changed" not in raised.value.message


def test_rejected_command_ends_the_run():
    rig = Rig(SERIES8, maxcache=False)
    real = rig.runner.run

    def taken_meanwhile(argv, **rest):
        if argv[1] == "CREATE":
            for drive in rig.controller["drives"]:
                drive["state"] = "Online"
        return real(argv, **rest)

    rig.runner.run = taken_meanwhile
    with pytest.raises(CommandFailed, match="already in use"):
        rig.run(cache_volumes=[{"drives": rig.ssds, "raid_level": "1"}])


def test_acknowledged_and_ignored_setting_is_detected():
    rig = Rig(SERIES8)
    real = rig.runner.run

    def deaf(argv, **rest):
        kept = copy.deepcopy(rig.controller["maxcache"])
        completed = real(argv, **rest)
        rig.controller["maxcache"].update(kept)
        return completed

    rig.runner.run = deaf
    with pytest.raises(NotEffective, match=r"flush_and_fetch_rate should be 500 and is 100, although .*FLUSHANDFETCHRATE 500") as raised:
        rig.run(flush_and_fetch_rate=500)
    assert raised.value.facts["changed"] is True


# -- what is refused with maxCache 3.0


def test_only_one_container_is_supported():
    rig = Rig(SERIES8, ssds=4)
    entry = {"raid_level": "1"}
    reported = rig.refuses(cache_volumes=[{**entry, "drives": rig.ssds[:2]}, {**entry, "drives": rig.ssds[2:]}])
    assert "one maxCache volume at most" in reported


@pytest.mark.parametrize(("level", "count"), [("simple", 1), ("0", 2)])
def test_write_caching_on_non_redundant_ssds_is_refused(level, count):
    rig = Rig(SERIES8, ssds=2, maxcache=False)
    requested = {"cache_volumes": [{"drives": rig.ssds[:count], "raid_level": level}]}
    for allowed in (False, True):
        reported = rig.refuses(**requested, volumes=[{"id": "0", "write": "writeback", "allow_unprotected": allowed}])
        assert "maxCache 3.0 caches writes only on a redundant one" in reported
    rig.settle(**requested, volumes=[{"id": "0", "read": True}])


def test_non_redundant_rebuild_is_refused_while_a_volume_caches_writes():
    rig = writing(SERIES8)
    assert "only on a redundant one" in rig.refuses(cache_volumes=[{"drives": rig.ssds, "raid_level": "0"}], volumes=[{"id": "0", "write": "writeback"}])


def test_non_redundant_rebuild_is_refused_for_unlisted_volumes():
    rig = writing(SERIES8)
    assert "only on a redundant one" in rig.refuses(cache_volumes=[{"drives": rig.ssds, "raid_level": "0"}], allow_unprotected=True)


@pytest.mark.parametrize(
    ("drives", "reason"),
    [
        (["0,8", "0,9"], "drive 0,8 for maxCache: it is not an SSD"),
        (["0,77", "0,78"], "has no drive 0,77; it has:"),
    ],
)
def test_unusable_drives_are_refused(drives, reason):
    rig = Rig(SERIES8, maxcache=False)
    assert reason in rig.refuses(cache_volumes=[{"drives": drives, "raid_level": "1"}])


def test_spare_or_raw_ssd_is_refused():
    rig = Rig(SERIES8, maxcache=False)
    for state, reason in (("Global Hot-Spare", "is a hot spare"), ("Raw (Pass Through)", "is given to the host as it is"), ("Failed", "does not show it free")):
        next(drive for drive in rig.controller["drives"] if drive["ssd"])["state"] = state
        assert reason in rig.refuses(cache_volumes=[{"drives": rig.ssds, "raid_level": "1"}])


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"pool_drives": ["0,8"]}, "has no pool of SSDs (maxCache 3.0)"),
        ({"flush_and_fetch_rate": 2000}, "1 to 1000"),
        ({"dirty_page_threshold": 0}, "1 to 100 percent"),
        ({"read_write_balance": {"read": 11, "write": 1}}, "two weights from 1 to 10"),
        ({"cache_volumes": [{"drives": ["0,12", "0,13"], "raid_level": "1", "size": "2T"}]}, "at most 1 TiB"),
        ({"cache_volumes": [{"drives": ["0,12", "0,13"], "raid_level": "1", "data_volume": "0"}]}, "no data_volume of its own"),
    ],
)
def test_settings_unsupported_for_containers_are_refused(entry, reason):
    assert reason in Rig(SERIES8, maxcache=False).refuses(**entry)


def test_caching_without_cache_volume_is_refused_and_disabling_is_accepted():
    rig = Rig(SERIES8, maxcache=False)
    assert "no SSDs in a maxCache volume" in rig.refuses(volumes=[{"id": "0", "read": True}])
    assert "no SSDs in a maxCache volume" in rig.refuses(**REMOVED, volumes=[{"id": "all", "write": "writeback"}])
    rig.settle(**REMOVED, volumes=[{"id": "all", "read": False, "write": "disabled"}])


def test_reading_is_disabled_together_with_the_cache_volume():
    rig = writing(SERIES8)
    rig.settle(**REMOVED, volumes=[{"id": "0", "read": False, "write": "disabled"}])


@pytest.mark.parametrize("model", ["Adaptec ASR-8805", "Adaptec SmartRAID 3204-8i", "Adaptec HBA 1100-16i"])
def test_controllers_without_maxcache(model):
    rig = Rig(model, **({"volumes": 0} if "HBA" in model else {}))
    reported = rig.refuses(**REMOVED)
    assert "has no maxCache" in reported or "HBA mode" in reported


def test_all_skips_controllers_without_max_cache():
    rig = Rig(SERIES8)
    rig.runner.add(Arcconf, "Adaptec ASR-8805", volumes=1)
    outcome = rig.run(flush_and_fetch_rate=300)
    assert [step.item for step in outcome.steps] == ["arcconf controller 1 maxcache"]
    assert any("Unchanged: controller 2" in concern for concern in outcome.warnings)
    assert "has no maxCache" in rig.refuses(id="2", flush_and_fetch_rate=300)


def test_degraded_cache_refuses_new_write_caching_and_warns_of_existing():
    rig = writing(SERIES8)
    rig.containers[0]["status"] = "Degraded"
    outcome = rig.run(volumes=[{"id": "0", "write": "writeback"}])
    assert any("is degraded and has the newest data of volume0" in concern for concern in outcome.warnings)
    assert "is degraded now" in rig.refuses(Refused, volumes=[{"id": "1", "write": "writeback"}])
    assert rig.run(volumes=[{"id": "1", "write": "writeback", "allow_unprotected": True}]).changed


# -- maxCache 1 and 2: a pool


def test_ssds_are_added_to_and_removed_from_the_pool():
    rig = Rig(SERIES6, ssds=3, maxcache=False)
    rig.settle(pool_drives=rig.ssds[:2], volumes=[{"id": "all", "read": True}])
    assert [change[0] + " " + change[2] for change in rig.changes] == ["SETMAXCACHE ADDTOPOOL", *["SETMAXCACHE LOGICALDRIVE"] * 2]
    assert rig.settings(1)["read"] is True


def test_pool_with_unreported_dirtiness_keeps_its_ssds():
    rig = Rig(SERIES6, ssds=2)
    assert "does not report whether its maxCache pool is clean" in rig.refuses(Refused, pool_drives=rig.ssds[:1])


def test_pool_writeback_requires_permission_and_flush_before_ssd_removal():
    rig = Rig(SERIES6, ssds=2)
    rig.controller["maxcache"]["write_feature"] = True
    requested = {"id": "all", "write": "writeback"}
    assert "pool of SSDs that does not report any redundancy" in rig.refuses(Refused, volumes=[requested])
    rig.settle(volumes=[{**requested, "allow_unprotected": True}])
    rig.runner.calls.clear()
    rig.settle(pool_drives=rig.ssds[:1], volumes=[{**requested, "allow_unprotected": True}])
    words = [" ".join(change[2:]) for change in rig.changes]
    assert [word.split()[0] for word in words] == ["LOGICALDRIVE", "LOGICALDRIVE", "REMOVEFROMPOOL", "LOGICALDRIVE", "LOGICALDRIVE"]
    assert rig.settings()["write"] is True


def test_absent_pool_is_flushed_and_emptied():
    rig = Rig(SERIES6, ssds=2)
    rig.controller["maxcache"]["write_feature"] = True
    rig.run(volumes=[{"id": "all", "write": "writeback", "allow_unprotected": True}])
    rig.runner.calls.clear()
    rig.settle(**REMOVED)
    assert [change[2] for change in rig.changes] == ["LOGICALDRIVE", "LOGICALDRIVE", "REMOVEFROMPOOL"]
    assert not any(drive["pool"] for drive in rig.controller["drives"])
    assert "use one of them" in rig.refuses(**REMOVED, pool_drives=rig.ssds)


def test_pool_without_write_cache_report_refuses_write_caching():
    assert "does not report its maxCache write cache" in Rig(SERIES6).refuses(volumes=[{"id": "0", "write": "writeback", "allow_unprotected": True}])


def test_pool_has_no_cache_volumes_and_is_limited():
    rig = Rig(SERIES6, ssds=10, maxcache=False)
    assert "set pool_drives instead" in rig.refuses(cache_volumes=[{"drives": rig.ssds[:2], "raid_level": "1"}])
    assert "allows 8 SSDs in its maxCache, and 10 are wanted" in rig.refuses(pool_drives=rig.ssds)
    assert "no SSDs in its maxCache pool" in rig.refuses(volumes=[{"id": "0", "read": True}])


# -- maxCache 4: one cache volume per volume


def smart(**options):
    """Controller caching is off for the second volume."""
    rig = Rig(SMART, **{"ssds": 4, **options})
    rig.controller["volumes"][1]["caching"] = False
    return rig


def smart_spec(rig, **changes):
    return {"data_volume": "volume1", "drives": rig.ssds[:2], "raid_level": "1", "size": "64G", **changes}


def test_lifecycle_of_a_dedicated_cache_volume():
    rig = smart()
    rig.settle(cache_volumes=[smart_spec(rig, write="writeback", line_size=256)])
    assert [change[:7] for change in rig.changes] == [("CREATE", "1", "MAXCACHE", "Wcache", "WB", "CacheLineSize", "256")]
    rig.runner.calls.clear()
    rig.settle(volumes=[{"name": "volume1", "write": "writethrough"}])
    assert [change[0] for change in rig.changes] == ["SETMAXCACHE"]
    rig.run(volumes=[{"name": "volume1", "write": "writeback"}])
    rig.runner.calls.clear()
    outcome = rig.settle(cache_volumes=[smart_spec(rig, raid_level="10", drives=rig.ssds)])
    assert [change[0] for change in rig.changes] == ["SETMAXCACHE", "DELETE", "CREATE"]
    assert "with write: writeback" in outcome.steps[-1].action
    rig.runner.calls.clear()
    rig.settle(cache_volumes=[{"state": "absent", "data_volume": "volume1"}])
    assert [change[0] for change in rig.changes] == ["SETMAXCACHE", "DELETE"]
    assert rig.containers == []


def test_default_write_policy_is_writethrough():
    rig = smart()
    rig.settle(cache_volumes=[smart_spec(rig)])
    assert rig.settings(1)["policy"] == "WT"


def test_ssds_are_moved_between_two_cache_volumes():
    rig = smart()
    rig.controller["volumes"][0]["caching"] = False
    first = smart_spec(rig, data_volume="volume0")
    second = smart_spec(rig, drives=rig.ssds[2:])
    rig.settle(cache_volumes=[first, second])
    rig.runner.calls.clear()
    rig.settle(cache_volumes=[{**first, "drives": second["drives"]}, {**second, "drives": first["drives"]}])
    assert [change[0] for change in rig.changes] == ["DELETE", "DELETE", "CREATE", "CREATE"]


def test_non_redundant_writeback_requires_permission():
    rig = smart()
    entry = smart_spec(rig, raid_level="simple", drives=rig.ssds[:1], write="writeback")
    assert "its maxCache is RAID 0" in rig.refuses(Refused, cache_volumes=[entry])
    predicted = rig.run(check_mode=True, cache_volumes=[entry], allow_unprotected=True)
    assert predicted.steps[0].operation.words[3:5] == ("Wcache", "WB")
    rig.settle(cache_volumes=[{**entry, "write": "writethrough"}])


def test_cache_volume_permission_does_not_apply_to_separate_volume_entries():
    rig = smart()
    entry = {"cache_volumes": [smart_spec(rig, raid_level="0", write="writeback")], "allow_unprotected": True}
    assert rig.run(check_mode=True, **entry).changed
    named = {"name": "volume1", "write": "writeback"}
    assert "its maxCache is RAID 0" in rig.refuses(Refused, **entry, volumes=[named])
    assert rig.run(check_mode=True, **entry, volumes=[{**named, "allow_unprotected": True}]).changed


def test_writeback_of_unlisted_volume_is_restored_only_with_permission():
    rig = smart()
    rig.run(cache_volumes=[smart_spec(rig, write="writeback")])
    weaker = {"cache_volumes": [smart_spec(rig, raid_level="0")]}
    assert "its maxCache is RAID 0" in rig.refuses(Refused, **weaker)
    assert rig.run(check_mode=True, **weaker, allow_unprotected=True).steps[-1].operation.words[3:5] == ("Wcache", "WB")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"data_volume": "volume0"}, "it uses the cache of the controller"),
        ({"data_volume": None}, "set the data_volume"),
        ({"size": "max"}, "needs a size"),
        ({"size": "1G"}, "at least 16 GiB"),
        ({"size": "900T"}, "no maxCache larger than its volume"),
        ({"raid_level": "1E", "drives": ["0,20", "0,21", "0,22"]}, "cannot have maxCache create 1E"),
    ],
)
def test_rules_for_dedicated_cache_volumes(changes, reason):
    rig = smart()
    assert reason in rig.refuses(cache_volumes=[smart_spec(rig, **changes)])


@pytest.mark.parametrize("fault", ["capacitor_charging", "battery_failed"])
def test_creation_requires_a_charged_capacitor(fault):
    rig = smart()
    rig.runner.states["arcconf"]["faults"][fault] = True
    assert "only with a healthy cache module and a full capacitor" in rig.refuses(cache_volumes=[smart_spec(rig)])


def test_io_bypass_conflicts_with_cache_volume():
    rig = smart()
    rig.controller["volumes"][1]["ssd_bypass"] = True
    assert "SSD I/O bypass is enabled" in rig.refuses(cache_volumes=[smart_spec(rig)])


@pytest.mark.parametrize("settings", [{"read": True}, {"write": "disabled"}, {"write": "instant_writeback"}])
def test_unsupported_switches_of_dedicated_cache_volumes_are_refused(settings):
    rig = smart()
    rig.run(cache_volumes=[smart_spec(rig)])
    assert "volume1" in rig.refuses(volumes=[{"name": "volume1", **settings}])


def test_contradicting_policies_for_one_volume_are_refused():
    rig = smart()
    reported = rig.refuses(cache_volumes=[smart_spec(rig, write="writeback")], volumes=[{"name": "volume1", "write": "writethrough"}])
    assert "list it once" in reported


def test_ssd_used_by_two_cache_volumes_is_refused():
    rig = smart()
    rig.controller["volumes"][0]["caching"] = False
    assert "to two cache volumes" in rig.refuses(cache_volumes=[smart_spec(rig), smart_spec(rig, data_volume="volume0")])
