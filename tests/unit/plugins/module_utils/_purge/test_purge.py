# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import itertools
import json

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, NotEffective, NotUnderstood, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._device.purge.record import read_record
from ansible_collections.cachefleet.storage.plugins.module_utils._guard import examination
from ansible_collections.cachefleet.storage.plugins.module_utils._purge import layer as layer_module
from ansible_collections.cachefleet.storage.plugins.module_utils._purge.erase import PASSWORD
from ansible_collections.cachefleet.storage.plugins.module_utils._purge.layer import PurgeLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._purge.plan import read_drives
from ansible_collections.cachefleet.storage.tests.unit.support.fake_purge import NVME, SAS, SATA, SIZE, VOLUME, FakePurge, Killed
from ansible_collections.cachefleet.storage.tests.unit.support.file_system_faults import strike_everywhere


@pytest.fixture
def host(tmp_path, monkeypatch):
    fake = FakePurge(tmp_path)
    monkeypatch.setattr(layer_module, "read_devices", fake.devices)
    monkeypatch.setattr(examination, "examine", fake.examine)
    monkeypatch.setattr(examination, "examined_again", lambda facts, *_rest: fake.examine(None, facts.target))
    return fake


def drive(device=SATA, **further):
    name = device.rsplit("/", 1)[-1]
    permitted = {"allow_purge": True, "allow_data_loss": True, "identity": f"S-{name}"}
    return {"device": device, "method": "auto", **permitted, **further}


def run(host, *drives, once="", check_mode=False):
    layer = PurgeLayer(host, read_drives(drives, once), host.root, sleep=lambda _seconds: None, now=lambda: 1e9)
    outcome = converge(layer, check_mode=check_mode)
    return outcome, layer.facts(outcome.state)


def erased(host, name="sda"):
    return host.read(name) == bytes([host.fill]) * SIZE


@pytest.mark.parametrize("device", [SATA, NVME, SAS])
def test_full_or_read_only_file_system_at_any_change_is_completed_by_the_next_run(tmp_path, monkeypatch, device):
    numbers = itertools.count()

    def fresh():
        fake = FakePurge(tmp_path / str(next(numbers)))
        monkeypatch.setattr(layer_module, "read_devices", fake.devices)
        monkeypatch.setattr(examination, "examine", fake.examine)
        monkeypatch.setattr(examination, "examined_again", lambda facts, *_rest: fake.examine(None, facts.target))
        return fake

    def check(host):
        """A drive is not left with a password that nobody has recorded."""
        assert not host.security["enabled"] or read_record("S-sda", host.root) is not None

    strike_everywhere(fresh, lambda host: run(host, drive(device), once="campaign"), check)


# -- the drives before it took hours


def exchanged_after(host, command, change):
    """Change the host when a command has run."""
    really = host.run

    def run_and_change(argv, **how):
        completed = really(argv, **how)
        if tuple(map(str, argv[: len(command)])) == command:
            change()
        return completed

    host.run = run_and_change


def test_drive_exchanged_while_another_one_was_purged_is_not_erased(host):
    exchanged_after(host, ("sg_sanitize",), lambda: host.set_serial("sda", "S-ANOTHER"))
    before = host.read("sda")
    with pytest.raises(Refused, match="/dev/sda is not the device any more that was examined: the serial number was S-sda and is S-ANOTHER now"):
        run(host, drive(SAS), drive(SATA))
    assert erased(host, "sdb")
    assert host.read("sda") == before
    assert read_record("S-sda", host.root) is None


def test_drive_exchanged_after_its_claim_is_not_erased(host, monkeypatch):
    """While it is read, as a drive with bad blocks takes hours."""
    really = layer_module.contents.samples
    monkeypatch.setattr(layer_module.contents, "samples", lambda *arguments: (host.set_serial("sdb", "S-ANOTHER"), really(*arguments))[1])
    before = host.read("sdb")
    with pytest.raises(Refused, match="the serial number was S-sdb and is S-ANOTHER now"):
        run(host, drive(SAS))
    assert host.read("sdb") == before


def test_namespace_attached_meanwhile_is_not_erased_with_the_drive(host):
    host.nvme["fna"] = 0x7
    exchanged_after(host, ("sg_sanitize",), lambda: setattr(host, "namespaces", 2))
    before = host.read("nvme0n1")
    with pytest.raises(Refused, match="has 2 namespaces, and all of them would be erased"):
        run(host, drive(SAS), drive(NVME))
    assert host.read("nvme0n1") == before


def test_controller_that_has_another_name_by_now_is_the_one_that_is_sanitized(host):
    def rename():
        link = host.root / "sys/class/block/nvme0n1/device"
        (host.root / "sys/class/nvme/nvme1").mkdir()
        link.unlink()
        link.symlink_to(host.root / "sys/class/nvme/nvme1")

    exchanged_after(host, ("sg_sanitize",), rename)
    run(host, drive(SAS), drive(NVME, method="nvme_sanitize"))
    assert "nvme sanitize /dev/nvme1 --sanact=2" in host.changes


# -- each kind of drive


@pytest.mark.parametrize(
    ("device", "method", "changes"),
    [
        (
            SATA,
            "ata_secure_erase",
            [f"hdparm --user-master u --security-set-pass {PASSWORD} {SATA}", f"hdparm --user-master u --security-erase {PASSWORD} {SATA}"],
        ),
        (NVME, "nvme_format", [f"nvme format {NVME} --ses=1 --lbaf=1 --timeout=43200000 --force"]),
        (SAS, "scsi_sanitize", [f"sg_sanitize --block --quick {SAS}"]),
    ],
)
def test_each_kind_of_drive_is_purged_by_its_usual_method(host, device, method, changes):
    outcome, facts = run(host, drive(device))
    assert outcome.changed and host.changes == changes and erased(host, device.rsplit("/", 1)[-1])
    assert host.held == [True]
    [found] = facts["drives"]
    assert (found["purge"]["state"], found["purge"]["method"], found["purge"]["finished"]) == ("done", method, 1e9)
    assert found["purge"]["reads"] == "returns zeroes at all 3 places that were read"
    assert host.security["enabled"] is False


@pytest.mark.parametrize(
    ("device", "method", "words"),
    [
        (SATA, "ata_enhanced_erase", "--security-erase-enhanced"),
        (NVME, "nvme_crypto_format", "--ses=2"),
        (NVME, "nvme_sanitize", "nvme sanitize /dev/nvme0 --sanact=2"),
        (NVME, "nvme_crypto_sanitize", "nvme sanitize /dev/nvme0 --sanact=4"),
        (VOLUME, "discard", "blkdiscard /dev/sdc --force"),
    ],
)
def test_requested_methods(host, device, method, words):
    run(host, drive(device, method=method))
    assert words in host.changes[-1] and erased(host, device.rsplit("/", 1)[-1])
    assert host.held == [True]


def test_partitions_that_are_gone_are_forgotten(host):
    host.partitions = ("sda1",)
    run(host, drive())
    assert host.changes[-1] == "blockdev --rereadpt /dev/sda" and host.partitions == ()


def test_nvme_without_format_is_sanitized(host):
    host.nvme["oacs"] = 0
    assert run(host, drive(NVME))[1]["drives"][0]["purge"]["method"] == "nvme_sanitize"
    host.nvme["sanicap"] = 1
    assert run(host, drive(NVME))[1]["drives"][0]["purge"]["method"] == "nvme_crypto_sanitize"


@pytest.mark.parametrize(("device", "method", "name"), [(NVME, "auto", "nvme0n1"), (VOLUME, "discard", "sdc")])
def test_tools_without_the_force_option(host, device, method, name):
    host.knows_force = False
    run(host, drive(device, method=method))
    assert [("--force" in line) for line in host.changes] == [True, False] and erased(host, name) and host.held == [True]


def test_other_bytes_than_zeroes_are_reported(host):
    host.fill = 0xFF
    assert run(host, drive())[1]["drives"][0]["purge"]["reads"] == "returns the byte 0xff at all 3 places that were read"


def test_an_empty_drive_needs_no_permission_for_its_data_and_proves_nothing(host):
    host.write("sda", bytes(SIZE))
    _outcome, facts = run(host, {**drive(), "allow_data_loss": False, "identity": None})
    assert facts["drives"][0]["purge"]["reads"].endswith("where it had no data before")


# -- permissions


def test_check_mode_predicts_run_and_changes_nothing(host):
    predicted, _facts = run(host, drive(), drive(NVME), check_mode=True)
    assert [step.action for step in predicted.steps] == [
        "Purge /dev/sda (S-sda) by ATA SECURITY ERASE UNIT: everything on it is erased",
        "Purge /dev/nvme0n1 (S-nvme0n1) by NVMe Format NVM with user data erase: everything on it is erased",
    ]
    assert host.changes == [] and not erased(host) and read_record("S-sda", host.root) is None
    done, _facts = run(host, drive(), drive(NVME))
    assert done.to_dict() == predicted.to_dict()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"allow_purge": False}, "Set allow_purge: true on this drive"),
        ({"allow_data_loss": False}, 'The purge will not erase /dev/sda: .*set both allow_data_loss: true and identity: "S-sda"'),
        ({"identity": None}, "The purge will not erase /dev/sda: .*contains data"),
        ({"identity": "other"}, "does not have the identity other: it is S-sda"),
    ],
)
def test_every_permission_is_required(host, change, words):
    with pytest.raises(Refused, match=words):
        run(host, {**drive(), **change})
    assert host.changes == [] and not erased(host)


def test_a_drive_in_use_is_never_purged(host):
    host.mountpoints = ("/srv",)
    with pytest.raises(Refused, match=r"is mounted on /srv.*no variable overrules"):
        run(host, drive())


def test_one_refused_drive_refuses_all_of_them(host):
    with pytest.raises(Refused, match="/dev/nvme0n1 is not purged"):
        run(host, drive(), drive(NVME, allow_purge=False))
    assert host.changes == []


@pytest.mark.parametrize(
    ("device", "method", "change", "words"),
    [
        (SATA, "auto", {"security": {"frozen": True}}, "is frozen: .*Suspend the host to memory"),
        (SATA, "auto", {"security": {"supported": False}}, "no ATA security feature set"),
        (SATA, "auto", {"security": {"enabled": True}}, "password that this collection has not set"),
        (SATA, "auto", {"security": {"expired": True}}, "power-cycle it"),
        (SATA, "ata_enhanced_erase", {"security": {"enhanced": False}}, "does not support the enhanced erase"),
        (SATA, "nvme_format", {}, "is not an NVMe drive"),
        (NVME, "ata_secure_erase", {}, "no ATA security feature set"),
        (NVME, "nvme_format", {"nvme": {"oacs": 0}}, "does not support it"),
        (NVME, "nvme_crypto_format", {"nvme": {"fna": 0}}, "does not support it"),
        (NVME, "nvme_format", {"nvme": {"fna": 2}, "namespaces": 2}, "has 2 namespaces, and all of them would be erased"),
        (NVME, "nvme_sanitize", {"namespaces": 2}, "has 2 namespaces"),
        (SAS, "auto", {"rotational": True}, "is not an SSD"),
        (SAS, "discard", {}, "does not support discards"),
        (VOLUME, "auto", {}, "neither a SATA, SAS nor NVMe drive .*raid.*method: discard"),
    ],
)
def test_drives_that_cannot_be_purged_are_refused(host, device, method, change, words):
    for name, value in change.items():
        if isinstance(value, dict):
            getattr(host, name).update(value)
        else:
            setattr(host, name, value)
    with pytest.raises(Refused, match=words):
        run(host, drive(device, method=method))
    assert host.changes == []


def test_several_namespaces_are_formatted_one_by_one_where_the_drive_can(host):
    host.namespaces = 2
    assert run(host, drive(NVME))[0].changed


@pytest.mark.parametrize(
    ("rows", "words"),
    [([drive("sda")], "below /dev"), ([drive(), drive()], "listed twice")],
)
def test_invalid_lists(rows, words):
    with pytest.raises(BadInput, match=words):
        read_drives(rows)


def test_empty_list_reads_nothing(host):
    outcome, facts = run(host)
    assert (outcome.changed, facts, host.calls) == (False, {"drives": []}, [])


# -- once for a campaign


def test_a_drive_is_purged_once_for_the_same_thing(host):
    assert run(host, drive(), once="c/v/snia_iops")[0].changed
    host.write("sda", b"preconditioned" * SIZE)
    again, facts = run(host, drive(), once="c/v/snia_iops")
    assert not again.changed and host.read("sda").startswith(b"preconditioned")
    assert facts["drives"][0]["purge"]["once"] == "c/v/snia_iops"
    assert run(host, drive(), once="c/v/snia_latency")[0].changed
    assert run(host, drive())[0].changed, "without a name in every run"


# -- what goes wrong


def test_a_drive_that_keeps_its_data_is_a_failure(host):
    host.ignores = True
    for device in (SATA, NVME):
        with pytest.raises(NotEffective, match="returns the same data as before its purge at 3 of 3 places, the first at byte 0"):
            run(host, drive(device))
    assert read_record("S-sda", host.root).state == "failed"


def test_a_refused_erase_leaves_no_password(host):
    host.aborts = True
    with pytest.raises(CommandFailed, match="did not carry out the erase, and its password was removed again: SECURITY_ERASE: Input/output error"):
        run(host, drive())
    assert host.security["enabled"] is False and "Input/output error" in read_record("S-sda", host.root).message


def test_a_password_that_stays_is_told_with_the_command_that_removes_it(host):
    host.keeps_password = True
    with pytest.raises(
        NotEffective, match=f"locked from the next power cycle on until 'hdparm --user-master u --security-disable {PASSWORD} /dev/sda' succeeds"
    ):
        run(host, drive())


@pytest.mark.parametrize(("device", "error", "words"), [(NVME, CommandFailed, "was not formatted: NVMe status"), (SAS, CommandFailed, "Invalid opcode")])
def test_commands_that_fail(host, device, error, words):
    host.aborts = True
    with pytest.raises(error, match=words):
        run(host, drive(device))
    assert not erased(host, device.rsplit("/", 1)[-1])


def test_a_sanitize_that_fails_in_the_drive(host):
    host.sanitizes = [(2, 100), (3, 65535)]
    with pytest.raises(NotEffective, match="its sanitize is failed"):
        run(host, drive(NVME, method="nvme_sanitize"))


def test_a_sanitize_log_that_is_no_json(host, monkeypatch):
    monkeypatch.setattr(json, "loads", lambda *_arguments, loads=json.loads, **_options: loads(_arguments[0]) if "sprog" not in _arguments[0] else [])
    with pytest.raises(NotUnderstood, match="sanitize-log printed no JSON"):
        run(host, drive(NVME, method="nvme_sanitize"))


def test_a_missing_tool_is_reported_before_anything_is_erased(host):
    host.missing = {"hdparm"}
    with pytest.raises(ToolMissing, match="hdparm"):
        run(host, drive())


# -- killed


def test_a_purge_killed_after_the_password_is_set_is_told_and_done_again(host):
    host.kill = ("hdparm", "--user-master", "u", "--security-set-pass")
    with pytest.raises(Killed):
        run(host, drive(), once="c")
    assert read_record("S-sda", host.root).state == "running"
    host.power_cycle()
    assert host.security["locked"]
    outcome, facts = run(host, drive(), once="c")
    assert "A purge of /dev/sda by ATA SECURITY ERASE UNIT has begun and not ended" in outcome.warnings[0]
    assert f"hdparm --user-master u --security-unlock {PASSWORD} /dev/sda" in host.changes
    assert erased(host) and not host.security["enabled"] and facts["drives"][0]["purge"]["state"] == "done"
    assert run(host, drive(), once="c")[0].warnings == ()


def test_a_killed_purge_is_told_in_a_refusal_and_in_check_mode(host):
    host.kill = ("nvme", "format")
    with pytest.raises(Killed):
        run(host, drive(NVME))
    host.kill = ()
    assert "has begun and not ended" in run(host, drive(NVME), check_mode=True)[0].warnings[0]
    host.write("nvme0n1", b"data" * SIZE)
    with pytest.raises(Refused, match=r"contains data.*has begun and not ended"):
        run(host, drive(NVME, identity=None))


def test_a_sanitize_that_goes_on_after_a_kill_is_waited_for(host):
    host.kill = ("nvme", "sanitize", "/dev/nvme0")
    with pytest.raises(Killed):
        run(host, drive(NVME, method="nvme_sanitize"))
    host.kill, host.calls = (), []
    host.write("nvme0n1", bytes(SIZE))
    run(host, drive(NVME, method="nvme_sanitize"))
    assert host.changes == [], "the sanitize that runs in the drive is not started again"
