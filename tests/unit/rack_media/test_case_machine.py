# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine of case A: what its inventory describes is what the processes serve and the simulated tool has."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
import yaml
from media import rows
from media.clock import Clock
from media.server import Rig

from ansible_collections.cachefleet.storage.plugins.module_utils._rack.machine import describe_machines
from ansible_collections.cachefleet.storage.tests.simulators.arcconf import Arcconf

CASES = Path(rows.__file__).parents[1] / "cases"
attached = runpy.run_path(str(CASES / "attached.py"), run_name="attached")


@pytest.fixture
def variables(tmp_path):
    text = (CASES / "host_vars/node1.yml").read_text().replace("{{ case_folder }}", str(tmp_path))
    return yaml.safe_load(text)


def test_every_disk_is_served_by_one_process_and_every_drive_is_one_of_the_tool(tmp_path, variables):
    (machine,) = describe_machines("case-a", [{"name": "node1", **variables["virtual_rack_machine"]}])
    for disk in machine.disks:
        (tmp_path / disk.file).write_bytes(bytes(disk.size))
    described = {command[2]: attached["description"](command[2], Path(command[3])) for command in machine.processes}
    served = {volume["socket"] for one in described.values() for volume in one["volumes"].values()}
    assert served == {disk.nbd for disk in machine.disks}
    assert machine.serial_ports[0].socket == described["adaptec"]["control"]
    states = {name: Rig(Clock(), one).state() for name, one in described.items()}
    simulated = Arcconf.models[variables["case_model"]](**variables["case_options"])
    raid = [name for name, volume in states["adaptec"]["volumes"].items() if volume["level"] != "jbod"]
    assert len(simulated["volumes"]) == len(raid) == 3
    assert len(simulated["drives"]) == len(states["adaptec"]["drives"]) == 6
    assert {f"wwn-{disk.wwn}" for disk in machine.disks if disk.wwn} == {Path(one["device"]).name for one in variables["case_targets"]["raid"]}
    assert set(variables["case_passed"]) == set(states["adaptec"]["drives"]) - set(raid)
