# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""RAID controllers as variables: with every simulated tool and model, what is described changes nothing."""

from __future__ import annotations

import contextlib
import copy
import typing as t

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.cachefleet.storage.plugins.filter.raid_settings import raid_settings
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._host.describe_raid import describe
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.layer import RaidCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.layer import RaidMaxCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.spec import parse_controllers as parse_maxcache
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import parse_controllers
from ansible_collections.cachefleet.storage.plugins.modules import raid_cache, raid_maxcache
from ansible_collections.cachefleet.storage.tests.simulators import arcconf, ssacli, storcli, storcli2
from ansible_collections.cachefleet.storage.tests.simulators.in_process.raid import SimulatedRunner

KINDS = (storcli.StorCli, storcli.PercCli, storcli2.StorCli2, storcli2.PercCli2, arcconf.Arcconf, ssacli.SsaCli)
MODELS = [pytest.param(kind, model, id=f"{kind.name}-{model}") for kind in KINDS for model in kind.models]
NONE = Devices(())


class Rig:
    """One simulated controller."""

    def __init__(self, kind, model, faults=None, **options):
        self.runner: t.Any = SimulatedRunner(kind)
        self.controller = self.runner.add(kind, model, **options)
        self.runner.states[kind.name]["faults"].update(faults or {})

    def describe(self, **more):
        return describe(self.runner, NONE, **more)[0]

    def entries(self, **more):
        return [entry.values for entry in self.describe(**more).entries]

    def run(self, controllers, *, check_mode=False):
        """As the role does: what it would do, and what it did."""
        outcomes = []
        for part, options, make in (("policies", raid_cache.argument_spec(), self._cache), ("ssd_cache", None, self._maxcache)):
            entries = raid_settings(copy.deepcopy(list(controllers)), part)
            spec = options or {"controllers": {"type": "list", "elements": "dict", "options": raid_maxcache.CONTROLLER}}
            validated = ArgumentSpecValidator(spec).validate({"controllers": entries})
            assert validated.error_messages == []
            if entries:
                outcomes.append(converge(make(validated.validated_parameters["controllers"]), check_mode=check_mode))
        return [step.action for outcome in outcomes for step in outcome.steps]

    def _cache(self, entries):
        return RaidCacheLayer.with_tools(self.runner, parse_controllers(entries))

    def _maxcache(self, entries):
        layer = RaidMaxCacheLayer.with_tools(self.runner, parse_maxcache(entries))
        layer.sleep = lambda seconds: None
        return layer


@pytest.mark.parametrize("every", [False, True], ids=["changed", "every"])
@pytest.mark.parametrize("kind, model", MODELS)
def test_what_is_described_changes_nothing(kind, model, every):
    rig = Rig(kind, model)
    entries = rig.entries(every=every)
    assert rig.run(entries, check_mode=True) == []


@pytest.mark.parametrize("fault", ["battery_failed", "battery_missing", "learn_cycle", "capacitor_charging"])
@pytest.mark.parametrize("kind, model", [pytest.param(storcli.StorCli, "MegaRAID 9361-8i", id="storcli")])
def test_what_is_not_in_effect_is_described_as_it_is_stored(kind, model, fault):
    rig = Rig(kind, model, {fault: True})
    (entry,) = rig.describe().entries
    assert entry.values["require_effective"] is False
    assert any("writethrough is in effect" in note or "is in effect" in note for note in entry.notes), entry.notes
    assert rig.run([entry.values], check_mode=True) == []


#: What an administrator sets first, of each part of an entry.
SAFER = (
    *(("volumes", {name: value}) for name, value in (("write", "writethrough"), ("read", "none"), ("io", "direct"), ("drive_cache", "disabled"))),
    ("drives", {"write_cache": "disabled"}),
    *(("drive_cache", {name: "disabled"}) for name in ("all", "configured", "unconfigured", "hba", "jbod")),
)


@pytest.mark.parametrize("kind, model", MODELS)
def test_policies_that_were_changed_are_brought_back(kind, model):
    rig = Rig(kind, model)
    before = rig.describe(every=True)
    for entry in rig.entries(every=True):
        identity = {key: entry[key] for key in ("provider", "serial")}
        for part, safer in SAFER:
            change = safer if part == "drive_cache" else [{"id" if part == "volumes" else "address": "all", **safer}]
            # What this controller cannot do is refused.
            with contextlib.suppress(StorageError):
                rig.run([{**identity, part: change, "require_effective": False}])
            rig.run([entry])
            assert rig.describe(every=True) == before, (part, safer)


def test_the_caches_of_drives_are_left_to_them_again():
    rig = Rig(storcli.StorCli, "MegaRAID 9361-8i")
    (entry,) = rig.entries(every=True)
    assert entry["volumes"][0]["drive_cache"] == "default"
    assert rig.run([{"provider": "storcli", "serial": entry["serial"], "volumes": [{"id": "all", "drive_cache": "disabled"}]}])
    assert any("drive_cache" in action for action in rig.run([entry]))


def test_volumes_and_controllers_are_named_by_what_lasts():
    (entry,) = Rig(storcli.StorCli, "MegaRAID 9361-8i").entries()
    assert "serial" in entry and "id" not in entry
    assert all("wwn" in volume for volume in entry["volumes"])


def test_a_policy_that_survives_no_power_cut_carries_its_permission():
    rig = Rig(storcli.StorCli, "MegaRAID 9361-8i")
    (entry,) = rig.entries()
    identity = {key: entry[key] for key in ("provider", "serial")}
    rig.run([{**identity, "volumes": [{**_who(entry["volumes"][0]), "write": "writeback_always", "allow_unprotected": True}]}])
    (found,) = rig.describe().entries
    assert found.values["volumes"][0]["allow_unprotected"] is True
    assert "allow_unprotected" not in found.values
    assert any("power failure" in note for note in found.notes)
    assert rig.run([found.values], check_mode=True) == []


def _who(volume):
    return {key: value for key, value in volume.items() if key in ("wwn", "name", "id")}


MAXCACHE = [
    pytest.param("Adaptec ASR-7805Q", {"raid_level": "1"}, "instant_writeback", id="container"),
    pytest.param("Adaptec ASR-81605ZQ", {"raid_level": "1"}, "writeback", id="container-8"),
    pytest.param("Adaptec SmartRAID 3154-8i", {"raid_level": "1", "size": "32G", "data_volume": "volume0"}, "writeback", id="smart"),
]


@pytest.mark.parametrize("model, cache, write", MAXCACHE)
def test_an_ssd_cache_is_described_beside_the_policies(model, cache, write):
    smart = "data_volume" in cache
    rig = Rig(arcconf.Arcconf, model, volumes=2, **({"ssds": 4} if smart else {"maxcache": False}))
    ssds = [f"{drive['channel']},{drive['device']}" for drive in rig.controller["drives"] if drive["ssd"]][:2]
    volume = {"name": "volume0", "maxcache": {"write": write, **({} if smart else {"read": True})}}
    if smart:
        rig.controller["volumes"][0]["caching"] = False
    rig.run([{"provider": "arcconf", "maxcache": {"cache_volumes": [{**cache, "drives": ssds}]}, "volumes": [volume]}])
    (entry,) = rig.entries()
    (found,) = entry["maxcache"]["cache_volumes"]
    assert (found["drives"], found["raid_level"]) == (ssds, "1")
    assert [one["maxcache"]["write"] for one in entry["volumes"] if "maxcache" in one] == [write]
    assert rig.run([entry], check_mode=True) == []


def test_drives_that_follow_a_class_are_notes_and_not_entries_without_a_setting():
    variable = Rig(arcconf.Arcconf, "Adaptec SmartRAID 3154-8i").describe()
    assert "drives" not in variable.entries[0].values
    assert "sets the cache of drives per class" in variable.notes[0]
    assert "Nothing was changed" not in variable.notes[0]
    assert variable.notes[1].startswith("3 more drives of ")


def test_a_pool_of_ssds_is_described():
    rig = Rig(arcconf.Arcconf, "Adaptec 6805Q", volumes=2)
    (entry,) = rig.entries()
    assert entry["maxcache"]["pool_drives"]
    assert rig.run([entry], check_mode=True) == []


def test_a_host_without_a_tool_says_that_its_controllers_could_not_be_read():
    runner: t.Any = SimulatedRunner()
    device = BlockDevice("sda", "/dev/sda", "8:0", transport="raid", driver="megaraid_sas")
    variable, controllers = describe(runner, Devices([device]))
    assert (variable.entries, controllers) == ((), ())
    assert variable.notes == ("The controllers of the driver megaraid_sas could not be read: no RAID tool of this host sees them.",)
    assert describe(runner, NONE)[0].notes == ()


def test_damaged_output_is_a_note():
    variable = Rig(storcli.StorCli, "MegaRAID 9361-8i", {"truncated": True}).describe()
    assert variable.entries == ()
    assert variable.notes


@pytest.mark.parametrize(
    ("kind", "model"),
    [(storcli.StorCli, "MegaRAID 9361-8i"), (arcconf.Arcconf, next(iter(arcconf.Arcconf.models))), (ssacli.SsaCli, next(iter(ssacli.SsaCli.models)))],
)
def test_a_tool_at_a_place_of_its_own_is_used_and_described_with_it(kind, model):
    rig, place = Rig(kind, model), "/srv/tools/of-the-vendor"
    rig.runner.kinds = {place: kind}
    assert rig.entries() == []

    entries = rig.entries(tool_paths={kind.name: place}, every=True)
    assert [(entry["provider"], entry["tool_path"]) for entry in entries] == [(kind.name, place)]
    assert rig.run(entries, check_mode=True) == []
    with pytest.raises(ToolMissing, match="/elsewhere does not exist"):
        rig.describe(tool_paths={kind.name: "/elsewhere"})
    # A provider that there is not is left to the layer, which refuses it.
    assert rig.entries(tool_paths={"megacli": place}) == []
