# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The provider for ssacli against the simulator of ssacli: what it sends is understood, and is so when read back."""

from __future__ import annotations

import itertools
import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.ssacli.provider import SsaCli, parse
from ansible_collections.cachefleet.storage.tests.simulators.ssacli import SsaCli as Simulated

MODELS = sorted(Simulated.models)
OTHER_WORDS = (
    "ctrl all show",
    "ctrl all show status",
    "ctrl all show detail",
    "ctrl all show config",
    "ctrl slot=0 ld all show",
    "ctrl slot=0 ld all show detail",
    "ctrl slot=0 ld all show status",
    "ctrl slot=0 pd all show",
    "ctrl slot=0 pd all show detail",
    "ctrl slot=0 pd all show status",
    "ctrl slot=0 modify dwc=?",
    "ctrl slot=99 show",
    "version",
    "nonsense",
)


class Host:
    """Runs the simulator instead of a command, and counts."""

    def __init__(self, model: str, *faults: str, **options: t.Any) -> None:
        self.state = {"faults": dict.fromkeys(faults, True), "controllers": [Simulated.models[model](**options)]}
        self.calls: list[tuple[str, ...]] = []

    def run(self, argv: t.Sequence[str], **options: t.Any) -> Completed:
        self.calls.append(tuple(argv[1:]))
        given = Simulated(self.state).answer(list(argv[1:]), "")
        return Completed(tuple(argv), given.rc, given.stdout, given.stderr)


def provider(model: str, *faults: str, **options: t.Any) -> SsaCli:
    return SsaCli(Host(model, *faults, **options), "ssacli")


def read(tool: SsaCli) -> Controller:
    reading = tool.read()
    assert (reading.not_understood, reading.complete) == ((), True)
    return reading.controllers[0]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("fault", ["", *(fault for fault in Simulated.faults if fault != "no_controller")])
def test_every_state_is_parsed(model: str, fault: str) -> None:
    controller = read(provider(model, *([fault] if fault else [])))
    assert controller.id != "unknown"
    if fault == "hba_mode":
        assert (controller.mode, controller.volumes) == ("hba", ())
    if fault == "cable_error" and controller.cache.status != "unknown" and controller.mode != "hba":
        assert controller.protection.protects is None
    if fault == "battery_failed" and controller.cache.status == "temporarily_disabled":
        assert controller.protection.protects is not True
        assert all(volume.write.effective == "writethrough" for volume in controller.volumes)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("words", OTHER_WORDS)
def test_other_show_commands_are_parsed(model: str, words: str) -> None:
    reading = parse(Simulated(provider(model).runner.state).answer(words.split(), "").stdout)
    assert (reading.not_understood, reading.complete) == ((), True)


def test_no_controller() -> None:
    reading = provider(MODELS[0], "no_controller").read()
    assert (reading.controllers, reading.complete) == ((), True)


@pytest.mark.parametrize("model", MODELS)
def test_policies_are_applied_or_refused_beforehand(model: str) -> None:
    reads, writes = (None, "none", "read_ahead"), (None, "writethrough", "writeback", "writeback_always")
    for requested_read, requested_write in itertools.product(reads, writes):
        settings = {name: value for name, value in (("read", requested_read), ("write", requested_write)) if value}
        tool = provider(model)
        before = read(tool)
        possible = [volume for volume in before.volumes if tool.objection(before, volume, settings, {}) is None]
        for volume, (attribute, value) in itertools.product(possible, settings.items()):
            if not tool.agrees(before, volume, attribute, value):
                tool.send(tool.command(before, volume, attribute, value), volume.id)
        after = read(tool)
        now = {volume.id: volume for volume in after.volumes}
        for volume, (attribute, value) in itertools.product(possible, settings.items()):
            assert tool.agrees(after, now[volume.id], attribute, value), (settings, volume.id)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", ["all", "configured", "unconfigured", "hba"])
@pytest.mark.parametrize("value", ["enabled", "disabled", "default"])
def test_drive_cache_policies_are_applied_or_refused_beforehand(model: str, kind: str, value: str) -> None:
    tool, attribute = provider(model), f"drive_cache.{kind}"
    before = read(tool)
    if tool.objection(before, before, {attribute: value}, {}) is None:
        tool.send(tool.command(before, before, attribute, value), "controller")
        after = read(tool)
        assert tool.agrees(after, after, attribute, value)
    else:
        assert kind not in before.drive_cache or (kind == "all" and value == "default")


@pytest.mark.parametrize("value", ["enabled", "disabled"])
def test_no_battery_write_cache_makes_writeback_unconditional(value: str) -> None:
    tool = provider("HPE Smart Array P408i-a SR Gen10", no_battery_write_cache=value == "disabled")
    before = read(tool)
    tool.send(tool.command(before, before, "no_battery_write_cache", value), "controller")
    after = read(tool)
    assert after.no_battery_write_cache == value
    assert after.volumes[0].write.configured == ("writeback_always" if value == "enabled" else "writeback")


def test_ratio_is_applied_and_read_100_percent_means_writethrough() -> None:
    tool = provider("HPE Smart Array P408i-a SR Gen10")
    for ratio, effective in ((100, "writethrough"), (30, "writeback")):
        tool.send(tool.command(read(tool), read(tool), "cache_ratio", ratio), "controller")
        assert (read(tool).cache_ratio, read(tool).volumes[0].write.effective) == (ratio, effective)


@pytest.mark.parametrize("fault", ["refused_policy", "ignored_policy"])
def test_ignored_or_refused_policy_is_detected(fault: str) -> None:
    tool = provider("HPE Smart Array P408i-a SR Gen10", fault)
    before = read(tool)
    words = tool.command(before, before.volumes[0], "write", "writethrough")
    if fault == "refused_policy":
        # It exits 0 all the same.
        with pytest.raises(CommandFailed, match="not supported"):
            tool.send(words, "volume 1")
    else:
        tool.send(words, "volume 1")
    after = read(tool)
    assert not tool.agrees(after, after.volumes[0], "write", "writethrough")


def test_64_volumes_are_read_by_one_command() -> None:
    tool = provider("HPE Smart Array P408i-a SR Gen10", volumes=64, drives=64)
    assert len(read(tool).volumes) == 64
    assert tool.runner.calls == [("ctrl", "all", "show", "config", "detail")]


def test_write_ratio_of_cache_without_battery_is_refused() -> None:
    tool = provider("Smart Array P410i")
    before = read(tool)
    assert (before.protection.protects is True, before.no_battery_write_cache) == (False, "disabled")
    assert tool.objection(before, before, {"cache_ratio": 25}, {"cache_ratio": 25}) is None
    with pytest.raises(CommandFailed, match=r"controller: ssacli refused .*cacheratio=25/75.*This operation is not supported.*without a battery"):
        tool.send(tool.command(before, before, "cache_ratio", 25), "controller")
    tool.send(tool.command(before, before, "no_battery_write_cache", "enabled"), "controller")
    tool.send(tool.command(before, before, "cache_ratio", 25), "controller")
    assert read(tool).cache_ratio == 25
