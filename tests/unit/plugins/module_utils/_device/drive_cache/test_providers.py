# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What drives and their tools print, as captured from real machines."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotUnderstood, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache import providers as dc
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

DATA = pathlib.Path(__file__).resolve().parents[4] / "data" / "drive_cache"


def captured(name: str) -> str:
    return (DATA / name).read_text()


def drive(name: str, transport: str, **more: object) -> BlockDevice:
    return BlockDevice(name=name, path=f"/dev/{name}", number="8:0", transport=transport, **more)


def test_hdparm_of_several_drives_is_read_section_by_section() -> None:
    assert dc.parse_hdparm(captured("hdparm-get.txt")) == {
        "/dev/sda": None,
        "/dev/sdb": None,
        "/dev/sdc": "enabled",
        "/dev/sdd": "enabled",
        "/dev/sde": "enabled",
        "/dev/sdf": None,
        "/dev/nvme0n1": None,
        "/dev/vdb": None,
    }


def test_hdparm_set_counts_the_value_read_back_not_the_announcement() -> None:
    assert dc.parse_hdparm(captured("hdparm-off.txt")) == {"/dev/sdc": "disabled"}


def test_hdparm_that_announces_off_and_reads_back_on_is_on() -> None:
    text = "\n/dev/sdc:\n setting drive write-caching to 0 (off)\n write-caching =  1 (on)\n"
    assert dc.parse_hdparm(text) == {"/dev/sdc": "enabled"}


@pytest.mark.parametrize("name, device", [("hdparm-off-unsupported.txt", "/dev/sdb"), ("hdparm-off-nvme.txt", "/dev/nvme0n1")])
def test_hdparm_not_supported_or_nothing_printed_is_no_value(name: str, device: str) -> None:
    assert dc.parse_hdparm(captured(name)) == {device: None}


def test_hdparm_understands_drive_names_beyond_the_alphabet() -> None:
    assert dc.parse_hdparm("\n/dev/sdaa:\n write-caching =  0 (off)\n") == {"/dev/sdaa": "disabled"}


def test_hdparm_garbage_holds_no_drive() -> None:
    assert dc.parse_hdparm(" write-caching =  1 (on)\n\0\nhello:\n") == {}


def test_hdparm_samples(shared_samples: pathlib.Path) -> None:
    expected = {"sda": "enabled", "sdb": "enabled", "sdc": "disabled", "sdd": None, "sde": None, "vdb": None, "nvme0n1": None}
    for name, value in expected.items():
        text = (shared_samples / "cache" / f"hdparm-W-get.{name}.txt").read_text()
        assert dc.parse_hdparm(text) == {f"/dev/{name}": value}


def test_sdparm_of_several_drives() -> None:
    pages = dc.parse_sdparm(captured("sdparm-get.txt"))
    assert {device: page.enabled for device, page in pages.items()} == {
        "/dev/sdb": True,
        "/dev/sdc": False,
        "/dev/sdd": True,
        "/dev/sde": True,
        "/dev/sdf": True,
    }
    assert pages["/dev/sdb"] == dc.CachingPage(enabled=True, changeable=True, default=True, saved=None)


@pytest.mark.parametrize(
    "line, page",
    [
        ("WCE           1  [cha: y, def:  1, sav:  0]", dc.CachingPage(True, True, True, False)),
        ("WCE           1  [cha: y, def:  1, sav:  1]", dc.CachingPage(True, True, True, True)),
        ("WCE           0  [cha: n, def:  0, sav: n]", dc.CachingPage(False, False, False, None)),
        ("WCE           1", dc.CachingPage(True, True, None, None)),
    ],
)
def test_sdparm_changeable_default_and_saved(line: str, page: dc.CachingPage) -> None:
    assert dc.parse_sdparm(f"    /dev/sdaa: SEAGATE   ST600MM0006       0003\n{line}\n") == {"/dev/sdaa": page}


def test_sdparm_without_a_caching_page_has_no_entry() -> None:
    assert dc.parse_sdparm("    /dev/sdb: QEMU      QEMU HARDDISK     2.5+\n") == {}


def test_nvme_controller_and_its_cache() -> None:
    assert dc.parse_nvme_controller(captured("nvme-id-ctrl.json")) is True


@pytest.mark.parametrize("vwc, present", [(0, False), (1, True), (6, False), (7, True)])
def test_nvme_only_bit_0_of_vwc_speaks_of_a_cache(vwc: int, present: bool) -> None:
    assert dc.parse_nvme_controller(f'{{"vwc":{vwc}}}') is present


@pytest.mark.parametrize("text", ["", "nvme: error\n", "[]", "{}", '{"vwc":"?"}'])
def test_nvme_controller_without_vwc_is_not_understood(text: str) -> None:
    with pytest.raises(NotUnderstood):
        dc.parse_nvme_controller(text)


@pytest.mark.parametrize("form", ["", "-verbose"])
def test_nvme_feature_off_is_printed_without_0x(form: str) -> None:
    assert dc.parse_nvme_feature(captured(f"nvme-feature-off{form}.txt")) is False
    assert dc.parse_nvme_feature(captured(f"nvme-feature-on{form}.txt")) is True


def test_nvme_feature_of_older_tools_and_of_the_verbose_form_alone() -> None:
    assert dc.parse_nvme_feature("get-feature:0x6 (Volatile Write Cache), Current value:0x000001\n") is True
    assert dc.parse_nvme_feature("\tVolatile Write Cache Enable (WCE): Disabled\n") is False


def test_nvme_feature_that_failed_is_not_understood() -> None:
    with pytest.raises(NotUnderstood, match="Not Namespace"):
        dc.parse_nvme_feature(captured("nvme-namespace-refused.err"))


@pytest.mark.parametrize(
    "word, state",
    [("write back\n", "enabled"), ("write through\n", "disabled"), ("none", "disabled"), ("write back, no read (daft)", "enabled")],
)
def test_kernel_words(word: str, state: str) -> None:
    assert dc.parse_cache_type(word) == state


def test_unknown_kernel_word_is_not_understood() -> None:
    with pytest.raises(NotUnderstood, match="sideways"):
        dc.parse_cache_type("sideways")


@pytest.mark.parametrize("present", ["write through", "none", "write back", "write back, no read (daft)", None])
@pytest.mark.parametrize("wanted", ["enabled", "disabled"])
def test_cache_type_to_write_keeps_the_read_cache_and_is_never_temporary(wanted: str, present: str | None) -> None:
    text = dc.cache_type_for(wanted, present)
    assert not text.startswith("temporary")
    assert dc.parse_cache_type(text) == wanted
    assert (text in ("none", "write back, no read (daft)")) == (present in ("none", "write back, no read (daft)"))


@pytest.mark.parametrize(
    "provider, says, kernel, agrees",
    [
        ("ata", "enabled", "write back", True),
        ("ata", "enabled", "write through", False),
        ("ata", "disabled", "write back", False),
        ("scsi", "enabled", "write back, write through", False),
        ("nvme", "disabled", "write back", True),  # the driver looks only at the presence of a cache
        ("nvme", "enabled", "write through", False),
        ("nvme", "absent", "write through", True),
        ("virtio", "disabled", None, True),
    ],
)
def test_when_the_kernel_agrees_with_the_drive(provider: str, says: str, kernel: str | None, agrees: bool) -> None:
    assert dc.kernel_agrees(provider, says, kernel) is agrees
    assert dc.DriveCache("x", provider, says, kernel).kernel_agrees is agrees


@pytest.mark.parametrize(
    "name, transport, provider",
    [
        ("sda", "sata", "ata"),
        ("sdaa", "sata", "ata"),
        ("sda", "sas", "scsi"),
        ("sda", "scsi", "scsi"),
        ("sda", "usb", "scsi"),
        ("nvme0n1", "nvme", "nvme"),
        ("vda", "virtio", "virtio"),
    ],
)
def test_auto_chooses_by_transport(name: str, transport: str, provider: str) -> None:
    assert dc.choose_provider(drive(name, transport)) == provider


def test_auto_takes_ata_for_a_usb_bridge_that_passes_ata_commands() -> None:
    assert dc.choose_provider(drive("sda", "usb", properties={"ID_BUS": "ata"})) == "ata"


def test_a_volume_of_a_raid_controller_belongs_to_the_controller() -> None:
    with pytest.raises(BadInput, match=r"belongs to the RAID controller \(megaraid_sas\).*raid_cache_controllers"):
        dc.choose_provider(drive("sda", "raid", driver="megaraid_sas"))


def test_a_disk_of_unknown_kind_is_refused() -> None:
    with pytest.raises(BadInput, match="no kind whose write cache can be set"):
        dc.choose_provider(drive("pmem0", "unknown"))


def test_all_ata_drives_are_read_by_one_command() -> None:
    runner = ScriptedRunner({("hdparm",): Reply(captured("hdparm-get.txt"))})
    found = dc.read_drive_caches(runner, [drive(name, "sata") for name in ("sdc", "sdd", "sde")])
    assert runner.calls == [("hdparm", "-W", "/dev/sdc", "/dev/sdd", "/dev/sde")]
    assert {name: state.drive for name, state in found.items()} == dict.fromkeys(("sdc", "sdd", "sde"), "enabled")


def test_all_scsi_drives_are_read_by_one_command_whose_exit_status_5_is_no_failure() -> None:
    runner = ScriptedRunner({("sdparm",): Reply(captured("sdparm-get.txt"), rc=5)})
    found = dc.read_drive_caches(runner, [drive("sdb", "sas"), drive("sdf", "usb")])
    assert runner.calls == [("sdparm", "--get=WCE", "/dev/sdb", "/dev/sdf")]
    assert [found[name].drive for name in ("sdb", "sdf")] == ["enabled", "enabled"]


def test_hdparm_exit_status_0_with_not_supported_is_no_state() -> None:
    runner = ScriptedRunner({("hdparm",): Reply(captured("hdparm-get.txt"))})
    found = dc.read_drive_caches(runner, [drive("sdf", "usb"), drive("sdc", "sata")], providers={"sdf": "ata"})
    assert found["sdf"].drive is None
    assert "not supported" in (found["sdf"].reason or "")
    assert found["sdc"].drive == "enabled"


def test_hdparm_stops_at_a_missing_node_and_the_other_drives_are_read_all_the_same() -> None:
    missing = Reply(rc=2, stderr=captured("hdparm-missing.err"))
    runner = ScriptedRunner({("hdparm", "-W", "/dev/nothere"): missing, ("hdparm", "-W", "/dev/sdc"): Reply("\n/dev/sdc:\n write-caching =  1 (on)\n")})
    found = dc.read_drive_caches(runner, [drive("nothere", "sata"), drive("sdc", "sata")])
    assert "No such file" in (found["nothere"].reason or "")
    assert found["sdc"].drive == "enabled"


def test_sdparm_on_a_device_that_is_no_scsi_drive_gives_the_reason() -> None:
    runner = ScriptedRunner({("sdparm",): Reply(rc=75, stderr=captured("sdparm-get-virtio.err"))})
    found = dc.query_drives(runner, [drive("vdb", "virtio")], providers={"vdb": "scsi"})
    assert isinstance(found["vdb"], NotUnderstood)
    assert "INQUIRY command failed" in str(found["vdb"])


def test_a_missing_tool_concerns_only_the_drives_that_need_it() -> None:
    runner = ScriptedRunner({("hdparm",): Reply(captured("hdparm-get.txt"))}, missing={"nvme"})
    found = dc.query_drives(runner, [drive("sdc", "sata"), drive("nvme0n1", "nvme")])
    assert isinstance(found["nvme0n1"], ToolMissing)
    assert "install the package nvme-cli" in str(found["nvme0n1"])
    assert isinstance(found["sdc"], dc.DriveCache)


def test_nvme_is_asked_for_the_controller_and_not_for_a_namespace() -> None:
    runner = ScriptedRunner(
        {("nvme", "id-ctrl"): Reply(captured("nvme-id-ctrl.json")), ("nvme", "get-feature"): Reply(captured("nvme-feature-off.txt"))},
    )
    found = dc.read_drive_caches(runner, [drive("nvme0n1", "nvme")])
    assert found["nvme0n1"].drive == "disabled"
    assert runner.calls[1] == ("nvme", "get-feature", "/dev/nvme0n1", "--namespace-id=0xffffffff", "--feature-id=6")


def test_nvme_without_a_volatile_cache_is_absent_and_feature_6_is_not_asked_for() -> None:
    runner = ScriptedRunner({("nvme", "id-ctrl"): Reply('{"vwc":6}')})
    assert dc.read_drive_caches(runner, [drive("nvme0n1", "nvme")])["nvme0n1"].drive == "absent"
    assert len(runner.calls) == 1


@pytest.mark.parametrize("save, expected", [(True, ["--save", None]), (False, [None])])
def test_nvme_not_saveable_falls_back_to_a_set_without_save(save: bool, expected: list[str | None]) -> None:
    refused = Reply(rc=1, stderr=captured("nvme-save-refused.err"))
    runner = ScriptedRunner({("nvme",): lambda words: refused if "--save" in words else Reply(captured("nvme-set.txt"))})
    completed = dc.NvmeProvider(runner).set(dc.DriveCacheSetting("nvme0n1", "/dev/nvme0n1", "disabled", "x", save))
    assert completed is not None
    assert completed.rc == 0
    plain = ("nvme", "set-feature", "/dev/nvme0n1", "--namespace-id=0xffffffff", "--feature-id=6", "--value=0")
    assert runner.calls == [(*plain, word) if word else plain for word in expected]


@pytest.mark.parametrize("wanted, change", [("disabled", "--clear=WCE"), ("enabled", "--set=WCE")])
def test_sdparm_not_saveable_exit_status_97_falls_back_to_a_set_without_save(wanted: str, change: str) -> None:
    refused = Reply(captured("sdparm-save-refused.txt"), rc=97, stderr=captured("sdparm-save-refused.err"))
    runner = ScriptedRunner({("sdparm",): lambda words: refused if "--save" in words else Reply()})
    dc.ScsiProvider(runner).set(dc.DriveCacheSetting("sdb", "/dev/sdb", wanted, "x", save=True))
    assert runner.calls == [("sdparm", change, "--save", "/dev/sdb"), ("sdparm", change, "/dev/sdb")]


def test_sdparm_that_can_save_is_asked_once() -> None:
    runner = ScriptedRunner({("sdparm",): Reply()})
    dc.ScsiProvider(runner).set(dc.DriveCacheSetting("sdb", "/dev/sdb", "disabled", "x", save=True))
    assert runner.calls == [("sdparm", "--clear=WCE", "--save", "/dev/sdb")]


def test_virtio_without_a_cache_type_gives_the_reason(tmp_path: pathlib.Path) -> None:
    found = dc.read_drive_caches(ScriptedRunner({}), [drive("vdb", "virtio")], tmp_path)
    assert found["vdb"].drive is None
    assert "has no cache_type" in (found["vdb"].reason or "")


def test_a_kernel_that_refuses_a_value_is_one_sentence(tmp_path: pathlib.Path) -> None:
    with pytest.raises(dc.CommandFailed, match="the kernel refused 'write back'"):
        dc.write_sysfs(tmp_path / "missing" / "cache_type", "write back", "/dev/vdb")


def test_an_unknown_word_of_the_kernel_is_shown_as_it_is(tmp_path: pathlib.Path) -> None:
    place = tmp_path / "sys/class/block/sda/queue"
    place.mkdir(parents=True)
    (place / "write_cache").write_text("sideways\n")
    assert dc.read_kernel("sda", tmp_path) == "sideways"
