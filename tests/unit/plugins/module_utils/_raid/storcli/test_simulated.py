# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The providers against the simulated tools: what is set is read back, what cannot be set is refused before."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller, Policy, Reading
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import VOLUME_ATTRIBUTES, configured
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.provider import PercCli, StorCli
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.storcli2 import PercCli2, StorCli2
from ansible_collections.cachefleet.storage.tests.simulators import simulator
from ansible_collections.cachefleet.storage.tests.simulators import storcli as first
from ansible_collections.cachefleet.storage.tests.simulators import storcli2 as second

KINDS = ((StorCli, first.StorCli), (PercCli, first.PercCli), (StorCli2, second.StorCli2), (PercCli2, second.PercCli2))
MODELS = [pytest.param(kind, tool, model, id=f"{kind.name}-{model}") for kind, tool in KINDS for model in tool.models]


class SimulatedRunner:
    """Runs a simulated tool inside this process."""

    def __init__(self, tool: simulator.Simulator) -> None:
        self.tool = tool
        self.calls: list[list[str]] = []

    def run(self, argv: t.Sequence[str], **_how: t.Any) -> Completed:
        self.calls.append(list(argv[1:]))
        answer = self.tool.answer(list(argv[1:]), "")
        stdout = simulator.spoiled(answer.stdout.encode(), self.tool.state.get("faults", {})).decode(errors="replace")
        return Completed(tuple(argv), answer.rc, stdout, answer.stderr)


def provider(kind: type[StorCli], tool: type[simulator.Simulator], model: str, **faults: t.Any) -> StorCli:
    return kind(SimulatedRunner(tool({"faults": faults, "controllers": [tool.models[model]()]})), "/tool")  # type: ignore[arg-type]


def read(one: StorCli) -> Controller:
    reading = one.read()
    assert (reading.complete, reading.not_understood) == (True, ())
    (controller,) = reading.controllers
    return controller


@pytest.mark.parametrize("kind, tool, model", MODELS)
def test_every_value_is_applied_or_refused(kind: type[StorCli], tool: type[simulator.Simulator], model: str) -> None:
    one = provider(kind, tool, model)
    taken = 0
    for number in range(len(read(one).volumes)):
        for attribute, values in VOLUME_ATTRIBUTES.items():
            for value in (*values, *reversed(values)):
                controller = read(one)
                volume = controller.volumes[number]
                if one.agrees(controller, volume, attribute, value) or one.objection(controller, volume, {attribute: value}, {}) is not None:
                    continue
                one.send(one.command(controller, volume, attribute, value), "a volume")
                assert configured(read(one).volumes[number], attribute) == value
                taken += 1
    assert taken > 0 or model.startswith(("HBA", "LSI3008"))


@pytest.mark.parametrize("kind, tool, model", MODELS)
def test_read_runs_three_commands(kind: type[StorCli], tool: type[simulator.Simulator], model: str) -> None:
    one = provider(kind, tool, model)
    read(one)
    # Its drives have no enclosure.
    assert len(t.cast("SimulatedRunner", one.runner).calls) == (4 if model == "LSI3008-IR" else 3)


@pytest.mark.parametrize("model", ["MegaRAID 9361-8i", "ServeRAID M5015"])
@pytest.mark.parametrize(
    "fault, health", [("battery_failed", "failed"), ("battery_missing", "missing"), ("learn_cycle", "learning"), ("capacitor_charging", "charging")]
)
def test_protection_fault_disables_writeback(model: str, fault: str, health: str) -> None:
    controller = read(provider(StorCli, first.StorCli, model, **{fault: True}))
    assert controller.protection.health == health
    assert Policy("writeback", "writethrough") in [volume.write for volume in controller.volumes]


@pytest.mark.parametrize(
    "fault, health", [("battery_failed", "failed"), ("learn_cycle", "learning"), ("capacitor_charging", "charging"), ("pack_missing", "missing")]
)
def test_energy_pack_fault_disables_writeback(fault: str, health: str) -> None:
    controller = read(provider(StorCli2, second.StorCli2, "MegaRAID 9660-16i", **{fault: True}))
    assert controller.protection.health == health
    assert {volume.write for volume in controller.volumes} == {Policy("writeback", "writethrough")}


@pytest.mark.parametrize("kind, tool, model", [(StorCli, first.StorCli, "MegaRAID 9560-8i"), (StorCli2, second.StorCli2, "MegaRAID 9660-16i")])
def test_refusal_with_exit_status_0_is_detected(kind: type[StorCli], tool: type[simulator.Simulator], model: str) -> None:
    one = provider(kind, tool, model, refused_policy=True)
    controller = read(one)
    with pytest.raises(CommandFailed, match="refused"):
        one.send(one.command(controller, controller.volumes[0], "write", "writethrough"), "a volume")


@pytest.mark.parametrize("kind, tool, model", [(StorCli, first.StorCli, "MegaRAID 9560-8i"), (StorCli2, second.StorCli2, "MegaRAID 9660-16i")])
@pytest.mark.parametrize("fault", ["truncated", "garbage", "empty"])
def test_damaged_response_is_detected(kind: type[StorCli], tool: type[simulator.Simulator], model: str, fault: str) -> None:
    reading: Reading = provider(kind, tool, model, **{fault: True}).read()
    assert not reading.complete
    assert reading.not_understood != ()


def test_no_card_is_a_valid_response() -> None:
    one = StorCli(SimulatedRunner(first.StorCli({"faults": {"no_controller": True}, "controllers": []})), "/tool")  # type: ignore[arg-type]
    assert one.read() == Reading()
    one = StorCli2(SimulatedRunner(second.StorCli2({"faults": {}, "controllers": []})), "/tool")  # type: ignore[arg-type]
    assert one.read() == Reading()
