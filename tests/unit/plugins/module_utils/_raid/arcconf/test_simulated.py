# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The provider against the simulator of arcconf: what it may set is taken, what the tool refuses it had refused before."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf import maxcache_output as commands
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.provider import ArcConf
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import UNKNOWN, Controller
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import (
    CONTROLLER_ATTRIBUTES,
    DRIVE_ATTRIBUTES,
    VOLUME_ATTRIBUTES,
    Subject,
    configured,
)
from ansible_collections.cachefleet.storage.tests.simulators.arcconf import Arcconf
from ansible_collections.cachefleet.storage.tests.simulators.arcconf_models import MODELS

HBA = "Adaptec HBA 1100-16i"
CONTAINER_MODELS = ("Adaptec ASR-7805Q", "Adaptec ASR-81605ZQ")


class Simulated:
    """A runner whose only command is the simulator."""

    def __init__(self, *models: str, volumes: int = 2, **faults: t.Any) -> None:
        made = [MODELS[model]() if model == HBA else MODELS[model](volumes=volumes) for model in models]
        self.state = {"faults": faults, "controllers": made}
        self.calls: list[tuple[str, ...]] = []

    def run(self, argv: t.Sequence[str], **unused: t.Any) -> Completed:
        self.calls.append(tuple(argv[1:]))
        answer = Arcconf(self.state).answer(list(argv[1:]), "")
        return Completed(tuple(argv), answer.rc, answer.stdout, answer.stderr)

    @property
    def provider(self) -> ArcConf:
        return ArcConf(t.cast("t.Any", self), "arcconf")

    def read(self) -> Controller:
        reading = self.provider.read()
        assert reading.not_understood == ()
        return reading.controllers[0]


def same(controller: Controller, subject: Subject) -> Subject:
    """The subject in a later reading."""
    if isinstance(subject, Controller):
        return controller
    things: tuple[t.Any, ...] = (*controller.volumes, *controller.drives)
    return next(
        one
        for one in things
        if type(one) is type(subject) and getattr(one, "id", getattr(one, "address", None)) == getattr(subject, "id", getattr(subject, "address", None))
    )


def settings() -> t.Iterator[tuple[str, str, t.Any]]:
    for kind, attributes in (("controller", CONTROLLER_ATTRIBUTES), ("volume", VOLUME_ATTRIBUTES), ("drive", DRIVE_ATTRIBUTES)):
        for attribute, values in attributes.items():
            for value in values if values is not None else (25, 100):
                yield kind, attribute, value


def subjects(controller: Controller, kind: str) -> t.Sequence[Subject]:
    if kind == "controller":
        return (controller,)
    return (controller.volumes[:1]) if kind == "volume" else (*controller.drives[:1], *controller.drives[-1:])


@pytest.mark.parametrize("model", MODELS)
def test_settings_without_objection_are_applied_and_read_back(model: str) -> None:
    taken = 0
    for kind, attribute, value in settings():
        simulated = Simulated(model)
        controller = simulated.read()
        for subject in subjects(controller, kind):
            provider = simulated.provider
            own = {attribute: value} if kind == "controller" else {}
            if provider.objection(controller, subject, {attribute: value}, own) or configured(subject, attribute) in (None, UNKNOWN):
                continue
            if controller.protection.health == UNKNOWN and kind == "volume" and value in ("writeback", "read_ahead") and model == "Adaptec SmartRAID 3204-8i":
                # This card tells of no unit, so only the tool can say that there is none.
                with pytest.raises(CommandFailed, match="battery status is not Ok"):
                    provider.send(provider.command(controller, subject, attribute, value), "volume")
                continue
            if not provider.agrees(controller, subject, attribute, value):
                provider.send(provider.command(controller, subject, attribute, value), "item")
                taken += 1
            after = simulated.read()
            assert provider.agrees(after, same(after, subject), attribute, value), (attribute, value)
    assert taken >= 1


@pytest.mark.parametrize("model", MODELS)
def test_repeating_a_setting_is_no_failure(model: str) -> None:
    for kind, attribute, value in settings():
        simulated = Simulated(model)
        controller, provider = simulated.read(), simulated.provider
        for subject in subjects(controller, kind):
            if configured(subject, attribute) == value and provider.objection(controller, subject, {attribute: value}, {}) is None:
                sent = provider.send(provider.command(controller, subject, attribute, value), "item") if not _would_be_refused(controller, subject) else None
                assert sent is None or sent.rc == 2


def _would_be_refused(controller: Controller, subject: Subject) -> bool:
    """Whether the tool refuses even what is so: one drive under a policy for all, a drive of the pool."""
    return getattr(subject, "usage", "") == "cache" or (hasattr(subject, "write_cache") and controller.drive_cache.get("all", "per_drive") != "per_drive")


@pytest.mark.parametrize("volumes", [1, 64])
def test_command_count_is_independent_of_number_of_volumes(volumes: int) -> None:
    simulated = Simulated("Adaptec ASR-81605ZQ", "Adaptec SmartRAID 3154-8i", volumes=volumes)
    reading = simulated.provider.read()
    assert [len(one.volumes) for one in reading.controllers] == [volumes, volumes]
    assert simulated.calls == [("LIST",), ("GETCONFIG", "1", "AL", "nologs"), ("GETCONFIG", "2", "AL", "nologs")]


@pytest.mark.parametrize("fault", ["battery_failed", "learn_cycle", "capacitor_charging"])
@pytest.mark.parametrize("model", ["Adaptec ASR-6805", "Adaptec ASR-81605ZQ", "IBM ServeRAID 8k", "Adaptec SmartRAID 3154-8i"])
def test_protected_writeback_falls_back_and_stays_configured(model: str, fault: str) -> None:
    healthy = Simulated(model).read()
    assert (healthy.volumes[0].write.configured, healthy.volumes[0].write.effective, healthy.protection.protects) == ("writeback", "writeback", True)
    ill = Simulated(model, **{fault: True}).read()
    assert (ill.volumes[0].write.configured, ill.volumes[0].write.effective, ill.protection.protects) == ("writeback", "writethrough", False)
    assert ill.protection.raw


def test_build_of_2010_is_read_and_set_without_nologs() -> None:
    simulated = Simulated("Adaptec ASR-6805", old_build=True)
    controller = simulated.read()
    provider = simulated.provider
    provider.send(provider.command(controller, controller.volumes[0], "write", "writethrough"), "volume")
    assert simulated.read().volumes[0].write.configured == "writethrough"
    assert all("nologs" not in words for words in simulated.calls if words[0] == "SETCACHE")


def test_hba_mode_has_no_volumes_and_keeps_drive_policies() -> None:
    controller = Simulated("Adaptec SmartRAID 3154-8i", hba_mode=True).read()
    assert (controller.mode, controller.volumes) == ("hba", ())
    assert {drive.usage for drive in controller.drives} == {"hba"}


def test_ignored_policy_acknowledged_with_success_is_detected() -> None:
    simulated = Simulated("Adaptec ASR-6805", refused_policy=True)
    controller, provider = simulated.read(), simulated.provider
    provider.send(provider.command(controller, controller.volumes[0], "write", "writethrough"), "volume")
    assert not provider.agrees(simulated.read(), simulated.read().volumes[0], "write", "writethrough")


def test_no_controller() -> None:
    reading = Simulated("Adaptec ASR-6805", no_controller=True).provider.read()
    assert (reading.controllers, reading.not_understood, reading.complete) == ((), (), True)


def test_unreported_drive_cache_is_unknown() -> None:
    for value in (True, "unknown"):
        assert {drive.write_cache for drive in Simulated("Adaptec SmartRAID 3154-8i", drive_write_cache_unknown=value).read().drives} == {UNKNOWN}


def series8(policy: str) -> Simulated:
    """A card of series 8 as arcconf 2.x and 3.x print it: the policy for all drives is below Cache Properties."""
    simulated = Simulated()
    made = MODELS["Adaptec ASR-8805"](build="new")
    simulated.state["controllers"] = [{**made, "global_drive_cache": policy}]
    return simulated


def test_new_build_on_series_8_is_parsed_like_the_old_one() -> None:
    old, new = Simulated("Adaptec ASR-8805", volumes=1).read(), series8("drivespecific").read()
    assert new.drive_cache == {"all": "per_drive"}
    assert new == old


def test_policy_for_all_drives_can_be_set_with_new_build_on_series_8() -> None:
    simulated = series8("drivespecific")
    controller, provider = simulated.read(), simulated.provider
    assert provider.objection(controller, controller, {"drive_cache.all": "disabled"}, {"drive_cache.all": "disabled"}) is None
    provider.send(provider.command(controller, controller, "drive_cache.all", "disabled"), "policy")
    after = simulated.read()
    assert after.drive_cache == {"all": "disabled"}
    assert {drive.write_cache for drive in after.drives} == {"disabled"}


def test_single_drive_setting_against_the_policy_for_all_is_refused() -> None:
    simulated = series8("enable")
    controller, provider = simulated.read(), simulated.provider
    drive = controller.drives[0]
    reason = provider.objection(controller, drive, {"write_cache": "disabled"}, {})
    assert reason is not None
    assert "the policy for all drives is enabled" in reason
    with pytest.raises(CommandFailed, match="Drivespecific"):
        provider.send(provider.command(controller, drive, "write_cache", "disabled"), "drive")


@pytest.mark.parametrize("model", CONTAINER_MODELS)
def test_max_cache_container_settings_are_applied(model: str) -> None:
    simulated = Simulated(model)
    controller, provider = simulated.read(), simulated.provider
    for words in (
        commands.read_cache(controller, ["0"], True),
        commands.write_cache(controller, ["0"], True, "instant_writeback"),
        commands.flush_and_fetch_rate(controller, 50),
        commands.read_write_balance(controller, 2, 7),
        commands.dirty_page_threshold(controller, 30),
    ):
        provider.send(words, "maxCache")
    after = simulated.read()
    uses = after.volumes[0].maxcache
    assert after.maxcache is not None
    assert uses is not None
    assert (uses.read.configured, uses.write.configured, uses.write_policy) == ("enabled", "enabled", "instant_writeback")
    assert (after.maxcache.flush_and_fetch_rate, after.maxcache.read_write_balance, after.maxcache.dirty_page_threshold) == (50, (2, 7), 30)


def test_max_cache_pool_is_emptied_and_filled() -> None:
    simulated = Simulated("Adaptec 6805Q")
    controller, provider = simulated.read(), simulated.provider
    assert controller.maxcache is not None
    (ssd,) = controller.maxcache.pool
    provider.send(commands.remove_from_pool(controller, [ssd]), "maxCache")
    empty = simulated.read().maxcache
    assert empty is not None
    assert (empty.pool, empty.assigned) == ((), 0)
    provider.send(commands.add_to_pool(controller, [ssd]), "maxCache")
    filled = simulated.read().maxcache
    assert filled is not None
    assert filled.pool == (ssd,)


def test_max_cache_4_volume_is_created_and_deleted() -> None:
    simulated = Simulated("Adaptec SmartRAID 3154-8i")
    controller, provider = simulated.read(), simulated.provider
    provider.send(provider.command(controller, controller.volumes[0], "write", "writethrough"), "volume")
    ssds = [drive.address for drive in controller.drives if drive.media == "ssd"]
    provider.send(commands.create(controller, ssds, "1", size=16 * 2**30, data_volume="0", policy="writethrough"), "maxCache")
    created = simulated.read()
    assert created.maxcache is not None
    (cache,) = created.maxcache.volumes
    uses = created.volumes[0].maxcache
    assert uses is not None
    assert (cache.data_volume, set(cache.members), uses.cache_volume, uses.write_policy) == ("0", set(ssds), cache.id, "writethrough")
    assert "maxCache is enabled on the logical drive" in (provider.objection(created, created.volumes[0], {"write": "writeback"}, {}) or "")
    provider.send(commands.delete(created, cache.id), "maxCache")
    deleted = simulated.read().maxcache
    assert deleted is not None
    assert deleted.volumes == ()


def test_ratio_of_unused_cache_is_set_after_the_first_volume_is_cached() -> None:
    simulated = Simulated("Adaptec SmartRAID 3154-8i")
    for volume in simulated.state["controllers"][0]["volumes"]:
        volume["caching"] = False
    controller, provider = simulated.read(), simulated.provider
    assert (controller.cache_ratio, controller.cache.status) == (None, "not_configured")
    assert provider.objection(controller, controller, {"cache_ratio": 25}, {"cache_ratio": 25})
    with pytest.raises(CommandFailed, match="cache is not configured"):
        provider.send(provider.command(controller, controller, "cache_ratio", 25), "ratio")
    assert provider.objection(controller, controller, {"cache_ratio": 25}, {"cache_ratio": 25, "caching": True}) is None
    provider.send(provider.command(controller, controller.volumes[0], "write", "writeback"), "volume")
    provider.send(provider.command(controller, controller, "cache_ratio", 25), "ratio")
    assert simulated.read().cache_ratio == 25
