# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What holds for every simulated RAID tool and each of its models, whatever it prints: read by the provider of the tool."""

from __future__ import annotations

import copy
import json
import pathlib
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._raid import registry
from ansible_collections.cachefleet.storage.tests.simulators import templates
from ansible_collections.cachefleet.storage.tests.simulators.arcconf import Arcconf
from ansible_collections.cachefleet.storage.tests.simulators.in_process.raid import SimulatedRunner
from ansible_collections.cachefleet.storage.tests.simulators.simulator import Answer, Simulator, State
from ansible_collections.cachefleet.storage.tests.simulators.ssacli import SsaCli
from ansible_collections.cachefleet.storage.tests.simulators.storcli import PercCli, StorCli
from ansible_collections.cachefleet.storage.tests.simulators.storcli2 import PercCli2, StorCli2
from ansible_collections.cachefleet.storage.tests.simulators.storcli_grammar import CONTROLLER_WORDS, VOLUME_WORDS
from ansible_collections.cachefleet.storage.tests.simulators.templates import entries, filled, names

KINDS: tuple[type[Simulator], ...] = (StorCli, PercCli, StorCli2, PercCli2, Arcconf, SsaCli)
EVERY_MODEL = [pytest.param(kind, model, id=f"{kind.name}-{model}") for kind in KINDS for model in kind.models]
#: Faults with which nothing can be read, or not everything.
UNREADABLE = ("no_controller", "plain_text_error", "lost_rows", "incomplete_foreign", "drive_write_cache_unknown", "old_build")
DISKS = [
    {"path": "/dev/sdx", "wwn": "600508b1001c00000000000000000abc", "size": 10 << 30},
    {"path": "/dev/sdy", "wwn": "600508b1001c00000000000000000def", "size": 20 << 30},
]


def read(kind: type[Simulator], state: State) -> t.Any:
    runner = SimulatedRunner(*KINDS)
    runner.states[kind.name] = state
    return registry.find_tool(runner, kind.name).read()


@pytest.mark.parametrize("tool", ["storcli", "storcli2", "arcconf", "ssacli"])
def test_every_template_has_a_name_of_its_own_and_entries(tool):
    text = (pathlib.Path(templates.__file__).parent / "templates" / f"{tool}.txt").read_text(encoding="utf-8")
    assert names(tool) == [line[3:] for line in text.splitlines() if line.startswith("== ")]
    for name in names(tool):
        assert all(entries(tool, name)), name


def test_template_values_keep_their_types_and_blanks():
    assert filled("storcli2", "path row", {"address": "0x5", "pid": 7, "connector": None}) == {
        "SASAddress": "0x5",
        "DevicePID": 7,
        "Path": "Primary",
        "Negotiated Speed": "12.0Gb/s",
        "Num Phys/Lanes used": 1,
    }
    assert filled("storcli2", "section: Scheduled Tasks", {})["Patrol Read Execution Frequency(hours)"] == "168"
    assert entries("storcli", "cachevault: Design_Info")[-3] == "scapPCBversionNo =  G"
    assert entries("arcconf", "volume battery")[:2] == ("Logical device name", "RAID level")


@pytest.mark.parametrize(("kind", "model"), EVERY_MODEL)
@pytest.mark.parametrize("options", [{}, {"volumes": 0, "drives": 3}, {"volumes": 1}, {"volumes": 2, "drives": 5}, {"volumes": 64}], ids=str)
def test_every_model_is_plain_data_that_is_read_completely(kind, model, options):
    made = kind.models[model](**options)
    assert made == json.loads(json.dumps(made)) == kind.models[model](**options)
    before = copy.deepcopy(made)
    reading = read(kind, {"faults": {}, "controllers": [made]})
    assert (reading.complete, reading.not_understood) == (True, ())
    (controller,) = reading.controllers
    assert controller.id != "unknown"
    assert controller.model
    assert len(controller.volumes) == len(made["volumes"])
    assert len(made["volumes"]) in (options.get("volumes", len(made["volumes"])), 0)
    assert made == before


@pytest.mark.parametrize(("kind", "model"), EVERY_MODEL)
def test_every_line_is_understood_with_every_fault(kind, model):
    for fault in set(kind.faults) - set(UNREADABLE):
        reading = read(kind, {"faults": {fault: True}, "controllers": [kind.models[model]()]})
        assert (len(reading.controllers), reading.not_understood, reading.complete) == (1, (), True), fault


@pytest.mark.parametrize(("kind", "model"), EVERY_MODEL)
def test_volumes_map_to_disks_of_the_host(kind, model):
    made = kind.models[model](volumes=2, os_devices=DISKS)
    (controller,) = read(kind, {"faults": {}, "controllers": [made]}).controllers
    for volume, disk in zip(sorted(controller.volumes, key=lambda one: one.size or 0), DISKS):
        assert volume.os_device in (disk["path"], None)
        assert disk["wwn"].endswith(volume.wwn or "")
        assert made.get("ir") or abs((volume.size or disk["size"]) - disk["size"]) < 1 << 26
    if made["volumes"] and kind is not Arcconf and not made.get("ir"):
        assert {volume.os_device for volume in controller.volumes} == {"/dev/sdx", "/dev/sdy"}


def _storcli(answer: Answer, unchanged: bool) -> bool:
    blocks = json.loads(answer.stdout)["Controllers"] if answer.stdout.startswith("{") else []
    return 0 <= answer.rc <= 255 and answer.stdout.endswith("\n") and all("Command Status" in block for block in blocks)


def _storcli2(answer: Answer, unchanged: bool) -> bool:
    return bool(json.loads(answer.stdout)["Controllers"]) if answer.stdout.startswith("{") else "CLI Version = " in answer.stdout


def _arcconf(answer: Answer, unchanged: bool) -> bool:
    return answer.rc in (0, 2, 3, 6) and (answer.rc == 0 or unchanged)


def _ssacli(answer: Answer, unchanged: bool) -> bool:
    return answer.rc == 0 or (answer.rc == 1 and answer.stdout.startswith("\nError: "))


_ASSIGNMENTS = [f"{name}={word}" for name, words in {**VOLUME_WORDS, **CONTROLLER_WORDS}.items() for word in words]
_STORCLI = f"""
/c0 /c1 /call /c0,1 /c0-1 /c9 /cx /c /c99999999 /vall /v0 /v239 /v0-300 /v1,0 /eall/sall /e252/s0 /sall /bbu /cv /d0 /v // /c0/vall /c0/v0 /c0/v239
/c0/eall/sall /c0/cv /c1/vall show all set J nolog delete
{" ".join((*CONTROLLER_WORDS, *_ASSIGNMENTS))}
"""
_STORCLI2 = """
show all /c0 /c0/v1 /c0/vall /call /c0/eall/sall /v1 set wrcache=WT rdcache=RA pdcache=On J nolog delete /c1-0 /c0/v1- /c0/s0 jbod = /
/c99999999999999999999
"""
_ARCCONF = """
LIST GETVERSION GETSTATUS GETCONFIG SETCACHE SETMAXCACHE CREATE DELETE
0 1 2 3 8 9 10 12 13 64 100 20480 -1 99999999999999999999
AD LD PD AR MC AL LOGICALDRIVE DEVICE DEVICEALL DRIVEWRITECACHEPOLICY CACHERATIO NOBATTERYWRITECACHE
ron roff wt wb wbb con coff All enable disable drivespecific Configured Unconfigured HBA
READCACHE WRITECACHE MAXCACHEWRITEPOLICY INSTWB ADDTOPOOL REMOVEFROMPOOL FLUSHANDFETCHRATE RWBALANCE DIRTYPAGETHRESHOLD
MAXCACHE MAX Wcache CacheLineSize DataLD 1E simple_volume noprompt nologs ALL
"""
_SSACLI = """
ctrl all slot=0 slot=1 show config detail ld array 1 A modify forced dwc=enable usage=hba usage=configured nbwc=enable
cacheratio=10/90 caching=disable ssdsmartpath=enable ssdsmartpath=disable = slot= aa=enable
"""
#: Words, how commands often begin, and what holds for every answer.
LANGUAGES: dict[type[Simulator], tuple[str, tuple[str, ...], t.Callable[[Answer, bool], bool]]] = {
    StorCli: (_STORCLI, ("", "/c0", "/c0/vall set"), _storcli),
    StorCli2: (_STORCLI2, ("", "/c0", "/c0/vall set"), _storcli2),
    Arcconf: (
        _ARCCONF,
        ("", "SETCACHE 1", "SETMAXCACHE 1", "CREATE 1 MAXCACHE", "DELETE 1 MAXCACHE", "GETCONFIG 1", "SETCACHE 1 DRIVEWRITECACHEPOLICY"),
        _arcconf,
    ),
    SsaCli: (_SSACLI, ("", "ctrl all", "ctrl slot=0 modify"), _ssacli),
}


@pytest.mark.parametrize("kind", LANGUAGES, ids=lambda kind: kind.name)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_arbitrary_arguments_are_handled(kind, data):
    vocabulary, beginnings, holds = LANGUAGES[kind]
    words = st.lists(st.sampled_from(vocabulary.split()) | st.text(max_size=8), max_size=8)
    models = data.draw(st.lists(st.sampled_from(sorted(kind.models)), max_size=2))
    state = {"faults": dict.fromkeys(data.draw(st.sets(st.sampled_from(sorted(kind.faults)))), True), "controllers": [kind.models[name]() for name in models]}
    calls = st.builds(lambda beginning, rest: [*beginning.split(), *rest], st.sampled_from(beginnings), words)
    for call in data.draw(st.lists(calls, max_size=4)):
        before = json.dumps(state)
        answer = kind(state).answer(call, "")
        assert holds(answer, json.dumps(state) == before), answer
