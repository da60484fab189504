# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services that set queues and write caches after udev has."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._device.overrides import read_overrides

TUNED = {"run/tuned/tuned.pid": "1\n", "etc/tuned/active_profile": "mine\n"}
SAPTUNE = {"etc/sysconfig/saptune": 'TUNE_FOR_NOTES="1984787"\nNOTE_APPLY_ORDER="1984787 own"\n'}


def read(tmp_path, files):
    for path, text in files.items():
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return read_overrides(tmp_path)


def settings(found, name, **known):
    return {(one.setting, one.value) for one in found if one.concerns(name, **known)}


def test_host_without_services_has_none(tmp_path):
    assert read(tmp_path, {"etc/tuned/active_profile": "mine\n", "etc/tuned/mine/tuned.conf": "[disk]\nreadahead=1\n", **SAPTUNE}) == ()


def test_instances_of_tuned_are_for_their_devices(tmp_path):
    profile = (
        "[main]\ninclude=base\n[hdd]\ntype=disk\ndevices=sd*,!sda\nreadahead=>8192\n[flash]\ntype=disk\ndevices=nvme0n1; nvme1n1\nelevator=none\n"
        "[off]\ntype=disk\nenabled=false\nreadahead=1\n[any]\ntype=disk\ndevices_udev_regex=(ID_MODEL=X)\nreadahead=64\n[net]\ndevices=eth0\nreadahead=3\n"
        "[sysfs]\n/sys/block/vd*/queue/nr_requests=64\n/sys/class/block/sdb/queue/scheduler=bfq\n/sys/module/x/parameters/y=1\n"
    )
    base = "[disk]\nreadahead=128\n[hdd]\nreadahead=1\nelevator=mq-deadline\n"
    found = read(tmp_path, {**TUNED, "etc/tuned/mine/tuned.conf": profile, "usr/lib/tuned/base/tuned.conf": base})
    everywhere = {("read_ahead_kb", "128"), ("read_ahead_kb", "64")}
    assert settings(found, "sda") == everywhere
    assert settings(found, "sdb") == everywhere | {("read_ahead_kb", ">8192"), ("scheduler", "mq-deadline"), ("scheduler", "bfq")}
    assert settings(found, "nvme1n1") == everywhere | {("scheduler", "none")}
    assert settings(found, "vda") == everywhere | {("nr_requests", "64")}
    (line,) = {one.line for one in found if one.value == "mq-deadline"}
    assert line == "elevator=mq-deadline of its profile base"


def test_script_of_a_tuned_profile_that_sets_write_caches(tmp_path):
    script = "#!/bin/sh\n# hdparm -W0 /dev/sdz\nfor disk in /dev/sd?; do hdparm -q -W1 $disk; done\n"
    files = {**TUNED, "etc/tuned/mine/tuned.conf": "[script]\nscript=${i:PROFILE_DIR}/go.sh\n", "etc/tuned/mine/go.sh": script}
    assert settings(read(tmp_path, files), "sda") == {("write_cache", "enabled")}


def test_notes_of_saptune_and_their_overrides(tmp_path):
    place = tmp_path / "etc/systemd/system/multi-user.target.wants/saptune.service"
    place.parent.mkdir(parents=True)
    place.symlink_to("/usr/lib/systemd/system/saptune.service")
    files = {
        "usr/share/saptune/notes/1984787": "[version]\n# x\n[block]\nIO_SCHEDULER=none, noop\nNRREQ=1024\n[sysctl]\nREAD_AHEAD_KB=9\n",
        "etc/saptune/override/1984787": "[block]\nNRREQ=\n",
        "etc/saptune/extra/own.conf": "[block:blkpat=sd*]\nREAD_AHEAD_KB=512\n",
        "usr/share/saptune/notes/other": "[block]\nMAX_SECTORS_KB=64\n",
    }
    found = read(tmp_path, {**SAPTUNE, **files})
    assert settings(found, "sda") == {("scheduler", "none, noop"), ("read_ahead_kb", "512")}
    sentence = found[0].sentence("X", "kyber")
    assert sentence.startswith(
        "saptune sets scheduler of X when it starts, after udev has: remove IO_SCHEDULER=none, noop of note 1984787 (/usr/share/saptune/notes/"
    )
    assert sentence.endswith("or a boot may leave another scheduler than the requested one (kyber).")


@pytest.mark.parametrize(("word", "value"), [("true", "enabled"), ("false", "disabled")])
def test_udisks_sets_the_drive_of_the_file_only(tmp_path, word, value):
    files = {
        "etc/udisks2/udisks2.conf": "[udisks2]\nmodules=*\n",
        "etc/udisks2/INTEL-SSDSC2KB960G8-BTYF0001.conf": f"# x\n[ATA]\nStandbyTimeout=0\nWriteCacheEnabled={word}\n",
    }
    found = read(tmp_path, files)
    assert settings(found, "sda", serials=["BTYF0001"]) == {("write_cache", value)}
    assert settings(found, "sda", serials=["BTYF0002"]) == settings(found, "sda", serials=[""]) == set()


def test_smartd_sets_write_caches(tmp_path):
    found = read(
        tmp_path,
        {"etc/smartd.conf": "# DEVICESCAN -e wcache,on\n/dev/sda -a -e wcache,off -m root\nDEVICESCAN -a -e lookahead,on\n/dev/sdb -e wcache,on # x\n"},
    )
    assert settings(found, "sda") == {("write_cache", "disabled")}
    assert settings(found, "sdb") == {("write_cache", "enabled")}
    assert settings(found, "sdc", paths=["/dev/disk/by-id/x"]) == set()
    assert settings(read(tmp_path, {"etc/smartd.conf": "DEVICESCAN -a -e wcache,on\n"}), "sdc") == {("write_cache", "enabled")}
