# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of RAID tools: what derives from it, and that the code of a tool is imported only where the tool is."""

from __future__ import annotations

import subprocess
import sys
import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import spec as raid_spec
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache import spec as maxcache_spec
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import RaidState, find_tool, is_twin, read_host
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.tools import TOOLS, TOOLS_OF_DRIVER

_IMPORTED = """
import sys
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import layer, registry, spec
class Host(Runner):
    def has(self, name):
        return name in sys.argv[1:]
    def find(self, name):
        return "/usr/sbin/" + name
found = [provider.name for provider in registry.find_tools(Host())]
print(found, sorted({name.split(".")[-2] for name in sys.modules if name.endswith("provider") and "_raid" in name}))
"""


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_each_tool_has_its_own_code(name):
    assert TOOLS[name].provider().name == name


def test_options_and_messages_know_every_tool():
    choices = [raid_spec.argument_spec()["controllers"]["options"], raid_spec.TOOL_OPTIONS, maxcache_spec.CONTROLLER]
    assert [sorted(options["provider"]["choices"]) for options in choices] == [sorted(("auto", *TOOLS))] * 3
    with pytest.raises(DeviceMissing, match=", ".join([*TOOLS][:-1]) + f" or {[*TOOLS][-1]}"):
        raid_spec.choose_controllers(RaidState(), raid_spec.ControllerSpec())
    for name, tool in TOOLS.items():
        runner = t.cast("t.Any", type("Runner", (), {"has": lambda *_: False}))()
        with pytest.raises(ToolMissing, match=f"{tool.commands[0]} is missing .* in PATH and in {', '.join(tool.folders)}; set tool_path"):
            find_tool(runner, name)


def test_drivers_lead_to_the_tools_that_a_message_names():
    for driver, words in TOOLS_OF_DRIVER.items():
        tools = [name for name, tool in TOOLS.items() if tool.drivers.get(driver)]
        assert tools
        assert all(any(word.startswith(name) for word in words.split(" or ")) for name in tools)
    assert TOOLS_OF_DRIVER["megaraid_sas"] == "storcli (Broadcom) or perccli (Dell)"
    assert TOOLS_OF_DRIVER["mpt3sas"] == "storcli (Broadcom)"
    assert TOOLS_OF_DRIVER["smartpqi"] == "arcconf (Microchip) or ssacli (HPE)"


@pytest.mark.parametrize(
    ("one", "other", "twins"),
    [
        (("storcli", "0"), ("perccli", "0"), True),
        (("storcli", "0"), ("perccli", "1"), False),
        (("storcli2", "0"), ("perccli2", "0"), True),
        (("storcli", "0"), ("storcli2", "0"), False),
        # They do not count alike, so only a serial number or an address could tell.
        (("arcconf", "1"), ("ssacli", "1"), False),
        (("storcli", "0"), ("storcli", "0"), False),
        (("storcli", "0"), ("a tool of its own", "0"), False),
    ],
)
def test_a_controller_that_two_tools_of_one_family_report_is_one(one, other, twins):
    assert is_twin(Controller(*one), Controller(*other)) is twins
    names = {one[0], other[0]}
    assert is_twin(Controller(*one, serial="S"), Controller(*other, serial="S")) is (
        names in ({"storcli", "perccli"}, {"storcli2", "perccli2"}, {"arcconf", "ssacli"})
    )


def test_evidence_of_a_reading_is_the_last_command_of_its_provider():
    """Whatever the runner of processes remembers."""
    runner = t.cast("t.Any", type("Runner", (), {"run": lambda _self, argv, **_how: Completed(tuple(argv), 0, "cut", "")})())
    (source,) = read_host([TOOLS["ssacli"].provider()(runner, "ssacli")]).sources
    assert source.evidence is not None
    assert source.evidence.command_line == "ssacli ctrl all show config detail"


@pytest.mark.parametrize(
    ("tools", "expected"),
    [([], "[] ['controller']"), (["storcli64", "ssacli"], "['storcli', 'ssacli'] ['controller', 'ssacli', 'storcli']")],
)
def test_only_tools_of_the_host_are_imported(tools, expected):
    found = subprocess.run([sys.executable, "-c", _IMPORTED, *tools], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == expected
