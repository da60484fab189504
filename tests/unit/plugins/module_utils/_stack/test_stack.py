# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey.host_caches import Survey
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._stack import readers
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import read_stack
from ansible_collections.cachefleet.storage.tests.simulators.in_process.raid import SimulatedRunner
from ansible_collections.cachefleet.storage.tests.simulators.storcli import StorCli
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

_LVM = "LVM-uuid"
_HDPARM_ON = "\n/dev/{0}:\n write-caching =  1 (on)\n"
_HDPARM_OFF = "\n/dev/{0}:\n write-caching =  0 (off)\n"
_CACHED = CacheState("lvm_cache", "vg/data", "cachepool", "/dev/vg/data", "dm-2", "/dev/vg/data", "dm-0", ("/dev/sdb",), ("sdb",), "writeback", dirty=65536)


class _WithRaidTools:
    """Simulated RAID tools beside scripted commands."""

    def __init__(self, scripted, tools):
        self.scripted, self.tools = scripted, tools

    def _of(self, name):
        return self.tools if name in _NoRaidTool() else self.scripted

    def find(self, name):
        return self._of(name).find(name)

    def has(self, name):
        return self._of(name).has(name)

    def run(self, argv, **options):
        return self._of(argv[0]).run(argv, **options)


class Rack:
    """A host in the making: disks with what hdparm says about them, and the volumes on top."""

    def __init__(self, root):
        self.host = FakeHost(root)
        self.hdparm = {}
        self.table = ""
        self.status = ""
        self.survey = Survey()

    def sata(self, name, cache="on", kernel=None, **options):
        self.host.disk(name, "sata", write_cache=kernel or ("write back" if cache == "on" else "write through"), **options)
        self.hdparm[name] = {"on": _HDPARM_ON, "off": _HDPARM_OFF, "silent": "\n/dev/{0}:\n write-caching = not supported\n"}[cache].format(name)

    def volume(self, name, dm_name, slaves, write_cache="write back", target="linear", uuid=_LVM):
        self.host.disk(name, "virtual", dm_name=dm_name, dm_uuid=uuid, slaves=slaves, write_cache=write_cache)
        self.table += f"{dm_name}: 0 2048 {target} 8:0 0\n"

    def stack(self, missing=(), tools=None, **options):
        def hdparm(words):
            return Reply("".join(self.hdparm[word.rsplit("/", 1)[-1]] for word in words if "/dev/" in word))

        replies = {
            ("udevadm", "info"): self.host.udev_reply,
            ("dmsetup", "table"): Reply(self.table),
            ("dmsetup", "status"): Reply(self.status),
            ("hdparm",): hdparm,
        }
        runner = ScriptedRunner(replies, missing=missing)
        return read_stack(_WithRaidTools(runner, tools) if tools else runner, self.host.root, **options)


@pytest.fixture
def rack(tmp_path, monkeypatch):
    made = Rack(tmp_path)
    monkeypatch.setattr(readers, "read_caches", lambda devices, runner, root: made.survey)
    return made


def _ruling(stack, name):
    verdict = stack.verdict(stack.devices.get(name))
    return verdict.verdict, verdict.unflushed, verdict.reason


def test_enabled_drive_cache_is_durable_only_for_flushed_writes(rack):
    rack.sata("sda")
    assert _ruling(rack.stack(), "sda") == ("durable", "may_be_lost", "/dev/sda has its volatile write cache on, and every flush reaches it.")


def test_disabled_drive_cache_keeps_every_write(rack):
    rack.sata("sda", cache="off")
    assert _ruling(rack.stack(), "sda") == ("durable", "kept", "/dev/sda has its write cache off.")


def test_kernel_setting_does_not_change_the_drive_cache(rack):
    rack.sata("sda", cache="on", kernel="write through")
    verdict, unflushed, reason = _ruling(rack.stack(), "sda")
    assert (verdict, unflushed) == ("at_risk", "may_be_lost")
    assert reason == (
        "/dev/sda has its volatile write cache on, and the kernel believes it has none, so no flush is sent to it"
        " (echo 'write back' > /sys/block/sda/queue/write_cache ends that)."
    )


@pytest.mark.parametrize("cache", ["on", "off"])
def test_virtual_disk_is_unknown_unless_its_flushes_are_declared_to_reach_media(rack, cache):
    rack.sata("sda", serial="V1", cache=cache)
    (rack.host.root / "proc").mkdir(exist_ok=True)
    (rack.host.root / "proc/cpuinfo").write_text("flags : fpu hypervisor\n")
    for words in ({}, {"flushed": ["OTHER"]}, {"protected": ["V1"]}):
        verdict, unflushed, reason = _ruling(rack.stack(**words), "sda")
        assert (verdict, unflushed) == ("unknown", "unknown") and "storage_flushed_virtual_disks" in reason
    for declared in ("V1", "TESTDISK"):
        assert _ruling(rack.stack(flushed=[declared]), "sda")[:2] == ("durable", "kept" if cache == "off" else "may_be_lost")
    with pytest.raises(BadInput, match="nearly every drive"):
        rack.stack(flushed=["*"])


def test_cache_declared_protected_is_safe(rack):
    rack.sata("sda", serial="PLP1")
    assert _ruling(rack.stack(protected=["PLP1"]), "sda") == ("durable", "kept", "/dev/sda is declared to survive power failures.")
    assert _ruling(rack.stack(protected=["TESTDISK"]), "sda")[0:2] == ("durable", "kept")
    assert _ruling(rack.stack(protected=["OTHER"]), "sda")[1] == "may_be_lost"


def test_unreported_drive_cache_without_kernel_flushes_is_unknown(rack):
    rack.sata("sda", cache="silent", kernel="write through")
    verdict, unflushed, reason = _ruling(rack.stack(), "sda")
    assert (verdict, unflushed) == ("unknown", "unknown")
    assert "does not report whether its write cache is on" in reason


def test_flush_passes_through_a_logical_volume(rack):
    rack.sata("sda")
    rack.volume("dm-0", "vg-data", ["sda"])
    assert _ruling(rack.stack(), "dm-0")[0] == "durable"


def test_layer_ignoring_flushes_over_volatile_cache_is_at_risk(rack):
    rack.sata("sda")
    rack.volume("dm-0", "cachedev", ["sda"], write_cache="write through", target="flashcache", uuid="")
    rack.survey = Survey((CacheState("flashcache", "cachedev", "flashcache", None, "dm-0", None, "sda", mode="writethrough", sends_flushes=False),))
    verdict, unflushed, reason = _ruling(rack.stack(), "dm-0")
    assert (verdict, unflushed) == ("at_risk", "may_be_lost")
    assert reason == "/dev/sda has its volatile write cache on, and /dev/dm-0 (flashcache) passes no flush down."


def test_layer_ignoring_flushes_over_drives_without_cache_is_durable(rack):
    rack.sata("sda", cache="off")
    rack.volume("dm-0", "vg-data", ["sda"], write_cache="write through")
    assert _ruling(rack.stack(), "dm-0")[:2] == ("durable", "kept")


def test_writeback_cache_has_the_verdict_of_its_worst_medium(rack):
    rack.sata("sda", cache="off", rotational=True)
    rack.sata("sdb", cache="on")
    rack.volume("dm-0", "vg-data_corig", ["sda"], write_cache="write through")
    rack.volume("dm-1", "vg-fast_cpool-cdata", ["sdb"])
    rack.volume("dm-2", "vg-data", ["dm-0", "dm-1"], target="cache")
    rack.survey = Survey((_CACHED,))
    stack = rack.stack()
    assert _ruling(stack, "dm-2")[:2] == ("durable", "may_be_lost")
    layers = stack.describe("dm-2")["layers"]
    assert [layer["name"] for layer in layers] == ["dm-2", "dm-0", "dm-1", "sda", "sdb"]
    cache = layers[0]["caches"][0]
    assert (cache["layer"], cache["type"], cache["mode"], cache["dirty"]) == ("block_cache", "lvm_cache", "writeback", 65536)
    assert [cache["drive"] for layer in layers for cache in layer["caches"] if cache["layer"] == "drive"] == ["disabled", "enabled"]


def test_mirror_is_at_risk_if_one_half_is(rack):
    rack.sata("sda")
    rack.sata("sdb", kernel="write through")
    rack.host.disk("md0", "virtual", slaves=["sda", "sdb"])
    assert _ruling(rack.stack(), "md0")[0] == "at_risk"


def test_suspended_device_is_reported_once(rack):
    rack.sata("sda", cache="off")
    rack.volume("dm-0", "vg-data", ["sda"])
    rack.host.write("sys/class/block/dm-0/dm/suspended", "1\n")
    (message,) = rack.stack().problems
    assert "/dev/vg/data is suspended" in message


def test_unreadable_cache_is_unknown_and_others_are_reported(rack):
    rack.sata("sda", cache="off")
    rack.volume("dm-0", "vg-data", ["sda"], target="cache")
    rack.survey = Survey((), ("The caches of type lvm_cache could not be read: lvs failed.",))
    stack = rack.stack()
    assert _ruling(stack, "dm-0")[0] == "unknown"
    assert "is a cache device whose cache could not be read" in _ruling(stack, "dm-0")[2]
    assert _ruling(stack, "sda")[0] == "durable"
    assert stack.problems == list(rack.survey.problems)


def test_cache_below_a_snapshot_is_found(rack):
    rack.sata("sda", cache="off")
    rack.sata("sdb", cache="off")
    rack.volume("dm-0", "vg-data_corig", ["sda"], write_cache="write through")
    rack.volume("dm-1", "vg-data-real", ["dm-0", "sdb"], target="cache", write_cache="write through")
    rack.volume("dm-2", "vg-data", ["dm-1"], target="snapshot-origin", write_cache="write through")
    rack.survey = Survey((_CACHED,))
    stack = rack.stack()
    assert _ruling(stack, "dm-2")[0] == "durable"
    assert "if /dev/sdb fails" in _ruling(stack, "dm-2")[2]


def test_redundancy_of_multi_device_mapping_is_unknown_without_dmsetup(rack):
    rack.sata("sda")
    rack.sata("sdb")
    rack.volume("dm-0", "vg-data", ["sda", "sdb"])
    rack.volume("dm-1", "vg-plain", ["sda"])
    stack = rack.stack(missing={"dmsetup"})
    verdicts = [stack.verdict(stack.devices.get(name)) for name in ("dm-0", "dm-1")]
    assert [(verdict.verdict, verdict.device_loss) for verdict in verdicts] == [("durable", "unknown"), ("durable", "loses")]


@pytest.mark.parametrize(
    ("state", "dirty", "expected"),
    [("inactive", 4096, "unknown"), ("inactive", None, "unknown"), ("inactive", 0, "durable"), ("cache_missing", None, "at_risk")],
)
def test_origin_of_a_stopped_cache_may_be_stale(rack, state, dirty, expected):
    rack.sata("sda", cache="off")
    rack.survey = Survey(
        (CacheState("flashcache", "images", "flashcache", None, None, None, "sda", mode="writeback", dirty=dirty, state=state, problem="Load it first."),)
    )
    verdict, _unflushed, reason = _ruling(rack.stack(), "sda")
    assert verdict == expected
    assert (dirty == 0) != ("is the origin of the cache images, which does not run and may hold newer data: Load it first." in reason)


class _NoRaidTool:
    def __contains__(self, name):
        return "cli" in name or "arcconf" in name


def test_raid_volume_without_controller_tool_is_unknown(rack):
    rack.host.disk("sda", "raid")
    verdict, _unflushed, reason = _ruling(rack.stack(missing=_NoRaidTool()), "sda")
    assert verdict == "unknown"
    assert "megaraid_sas" in reason
    assert "storcli (Broadcom) or perccli (Dell)" in reason


def _behind_a_controller(rack, model="MegaRAID 9361-8i", faults=(), write="WB", drive_cache="Off"):
    """The stack of a host with one volume of a simulated controller, known by its WWN."""
    tools = SimulatedRunner(StorCli)
    wwn = "6" * 32
    rack.host.disk("sda", "raid", wwn=f"0x{wwn[:16]}", ID_WWN_WITH_EXTENSION=f"0x{wwn}")
    state = tools.add(StorCli, model, volumes=1, drives=2, os_devices=[{"path": "/dev/sda", "wwn": wwn, "size": 8 << 20}])
    for volume in state["volumes"]:
        volume.update(write=write, disk_cache=drive_cache)
    tools.states["storcli"]["faults"].update(dict.fromkeys(faults, True))
    return rack.stack(tools=tools), tools


@pytest.mark.parametrize(
    ("write", "faults", "drive_cache", "verdict", "words"),
    [
        ("WB", (), "Off", "durable", "protected cache"),
        ("WB", ("battery_failed",), "Off", "durable", "writes through"),
        ("AWB", ("battery_failed",), "Off", "at_risk", "no working protection"),
        ("WT", (), "Off", "durable", "writes through"),
        ("WT", (), "On", "at_risk", "caches of its drives, which are on"),
        ("WT", (), "Default", "unknown", "default"),
    ],
)
def test_raid_volume_verdict_depends_on_its_controller(rack, write, faults, drive_cache, verdict, words):
    stack, tools = _behind_a_controller(rack, faults=faults, write=write, drive_cache=drive_cache)
    found, _unflushed, reason = _ruling(stack, "sda")
    assert (found, words in reason) == (verdict, True), reason
    assert [cache["layer"] for cache in stack.describe("sda")["layers"][0]["caches"]] == ["controller"]
    # A fourth asks what is wrong with a battery or capacitor that is not well.
    assert len(tools.calls) <= 4


def test_invalid_raid_tool_output_makes_volumes_unknown_and_is_reported(rack):
    stack, _tools = _behind_a_controller(rack, faults=("truncated",))
    assert _ruling(stack, "sda")[0] == "unknown"
    assert len(stack.problems) == 1


def test_no_raid_tool_runs_without_a_controller(rack):
    rack.sata("sda")
    tools = SimulatedRunner(StorCli)
    rack.stack(tools=tools)
    assert tools.calls == []


def test_lvm_array_is_read_with_one_command(rack):
    rack.sata("sda")
    rack.sata("sdb")
    for number, disk in enumerate(("sda", "sdb")):
        rack.volume(f"dm-{number}", f"vg-data_rimage_{number}", [disk], uuid="LVM-abc-part")
    rack.volume("dm-2", "vg-data", ["dm-0", "dm-1"], target="raid")
    rack.status = "vg-data: 0 2097152 raid raid1 2 AA 2097152/2097152 idle 0 0 -\nvg-data_rimage_0: 0 2097152 linear \n"
    stack = rack.stack()
    verdict = stack.verdict(stack.devices.get("dm-2"))
    assert (verdict.verdict, verdict.device_loss) == ("durable", "survives")
    rack.status = ""
    stack = rack.stack()
    assert stack.verdict(stack.devices.get("dm-2")).device_loss == "unknown"


def test_main_memory_is_at_risk_and_remote_storage_unknown(rack):
    rack.host.disk("zram0", "virtual")
    rack.host.disk("nbd0", "virtual")
    rack.host.disk("bcache0", "virtual")
    stack = rack.stack()
    assert [_ruling(stack, name)[0] for name in ("zram0", "nbd0", "bcache0")] == ["at_risk", "unknown", "unknown"]


def test_missing_tool_affects_only_its_own_layer(rack):
    rack.sata("sda")
    rack.host.disk("zram0", "virtual")
    stack = rack.stack(missing={"hdparm"})
    # The kernel still knows that the drive reports a cache, and sends flushes.
    assert _ruling(stack, "sda")[0] == "durable"
    assert _ruling(stack, "zram0")[0] == "at_risk"


@pytest.mark.parametrize(
    ("level", "degraded", "action", "policy", "expected"),
    [
        ("raid5", "1", "idle", "resync", "at_risk"),
        ("raid6", "0", "resync", "bitmap", "at_risk"),
        ("raid5", "1", "idle", "ppl", "durable"),
        ("raid5", "0", "idle", "bitmap", "durable"),
        ("raid5", "0", "check", "bitmap", "durable"),
        ("raid1", "1", "idle", "bitmap", "durable"),
    ],
)
def test_degraded_parity_array_can_lose_flushed_data(rack, level, degraded, action, policy, expected):
    rack.sata("sda", cache="off")
    place = rack.host.disk("md0", "virtual", slaves=["sda"])
    for name, word in {"level": level, "degraded": degraded, "sync_action": action, "consistency_policy": policy}.items():
        rack.host.write(str((place / "md" / name).relative_to(rack.host.root)), word + "\n")
    assert _ruling(rack.stack(), "md0")[0] == expected


@pytest.mark.parametrize("name", ["zd0", "drbd0", "nullb0"])
def test_unknown_driver_is_unknown(rack, name):
    rack.host.disk(name, "virtual", write_cache="write back")
    stack = rack.stack(missing={"zpool"})
    verdict, _unflushed, reason = _ruling(stack, name)
    assert verdict == "unknown"
    assert "cannot be read from this host" in reason
    assert stack.verdict(stack.devices.get(name)).device_loss == "unknown"


def test_unknown_medium_is_not_safe_through_layers_above(rack):
    rack.host.disk("dm-0", "virtual", dm_name="mpatha", dm_uuid="mpath-1")
    rack.table += "mpatha: 0 2048 multipath 0 0 0 0\n"
    rack.volume("dm-1", "vg-data", ["dm-0"])
    assert _ruling(rack.stack(), "dm-1")[0] == "unknown"


def test_network_nvme_namespace_is_unknown(rack):
    place = rack.host.disk("nvme0n1", "nvme")
    (place / "device/transport").write_text("tcp\n")
    verdict, _unflushed, reason = _ruling(rack.stack(), "nvme0n1")
    assert verdict == "unknown"
    assert "on a network" in reason


def test_lower_layers_do_not_use_the_volume_name(rack):
    rack.sata("sda")
    rack.volume("dm-0", "vg0-data", ["sda"], uuid="LVM-abc")
    rack.volume("dm-1", "vg0-data-real", ["sda"], uuid="LVM-abc-real")
    devices = rack.stack().as_devices()
    assert set(devices) == {"sda", "vg0/data", "dm-1"}
    assert devices["vg0/data"]["name"] == "dm-0"


def test_partition_has_the_verdict_of_its_disk(rack):
    rack.sata("sda", kernel="write through")
    rack.host.partition("sda", 1)
    assert _ruling(rack.stack(), "sda1")[0] == "at_risk"


def test_vanished_device_is_unknown(rack):
    rack.sata("sda")
    assert rack.stack().describe("sdz")["verdict"] == "unknown"


def test_devices_are_keyed_by_their_common_name(rack):
    rack.sata("sda", serial="S1")
    rack.volume("dm-0", "vg-data", ["sda"])
    rack.host.disk("loop0", "virtual", size=0)
    stack = rack.stack()
    assert set(stack.as_devices()) == {"sda", "vg/data"}
    assert set(stack.as_devices(empty=True)) == {"sda", "vg/data", "loop0"}
    disk = stack.as_devices()["sda"]
    assert disk["write_cache"] == {"drive": "enabled", "kernel": "write back", "kernel_agrees": True, "provider": "ata"}
    assert (disk["identity"], disk["verdict"], disk["holders"]) == ("S1", "durable", ("dm-0",))


def test_command_count_is_independent_of_number_of_disks(tmp_path):
    calls = []
    for count in (2, 12):
        rack = Rack(tmp_path / str(count))
        for letter in "abcdefghijkl"[:count]:
            rack.sata(f"sd{letter}")
        stack_runner = ScriptedRunner(
            {
                ("udevadm", "info"): rack.host.udev_reply,
                ("hdparm",): lambda words: Reply("".join(_HDPARM_ON.format(word[5:]) for word in words if word.startswith("/dev/"))),
            }
        )
        read_stack(stack_runner, rack.host.root)
        calls.append(len(stack_runner.calls))
    assert calls[0] == calls[1]


@pytest.mark.parametrize("declared", ["INTEL SSDSC2BB080G4", "INTEL_SSDSC2BB080G4", "INTEL SSDSC2BB08", "*SSDSC2BB???G4"])
def test_sata_drive_is_declared_by_its_whole_model(rack, declared):
    """sysfs has 16 characters of it."""
    rack.sata("sda", model="INTEL SSDSC2BB08", ID_MODEL="INTEL_SSDSC2BB080G4", ID_ATA="1")
    assert _ruling(rack.stack(protected=[declared]), "sda")[0:2] == ("durable", "kept")


def test_part_of_a_model_declares_nothing(rack):
    rack.sata("sda", model="INTEL SSDSC2BB08", ID_MODEL="INTEL_SSDSC2BB080G4")
    assert _ruling(rack.stack(protected=["SSDSC2BB080G4"]), "sda")[1] == "may_be_lost"


def test_cache_declared_protected_by_a_pattern_is_safe(rack):
    rack.sata("sda", serial="PLP1")
    assert _ruling(rack.stack(protected=["TEST*"]), "sda")[0:2] == ("durable", "kept")
    with pytest.raises(BadInput, match="nearly every drive"):
        rack.stack(protected=["*"])
