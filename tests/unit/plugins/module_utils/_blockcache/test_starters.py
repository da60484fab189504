# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a boot starts from a bare origin: one table, and the same question for every type of cache that leaves its origin visible."""

from __future__ import annotations

import dataclasses
import json

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import starters
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.spec import read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import users_past
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices, Signature
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

HDD = "/dev/disk/by-id/ata-HDD0"
ORIGIN = BlockDevice(
    name="sda",
    path="/dev/sda",
    number="8:0",
    by_id=(HDD,),
    links=("/dev/disk/by-path/pci-0-ata-1",),
    signature=Signature("filesystem", "ext4", "7d6f-11", "images"),
)
CACHED = BlockDevice(name="dm-3", path="/dev/dm-3", number="253:3", kind="dm", dm_name="images", slaves=("sda",))
#: As LVM 2.03.16 of Debian 12 prints it, of a device that global_filter, filter or the devices file rejects.
NOT_FOUND = Reply("", 5, '  Failed to find device "/dev/sda".\n')
SEEN = Reply("  /dev/sda\n")
FILTERED = Reply('global_filter=["a|^/dev/mapper/|","r|.*|"]\nfilter=["a|.*|"]\nuse_devicesfile=0\n')
DEVICES_FILE = Reply('global_filter=["a|.*|"]\nfilter=["a|.*|"]\nuse_devicesfile=1\n')
DEFAULT = Reply('global_filter=["a|.*|"]\nfilter=["a|.*|"]\nuse_devicesfile=0\n')
BEFORE_DEVICES_FILE = Reply('global_filter="r|.*|"\nfilter=["a|.*|"]\n', 5, "  Configuration node devices/use_devicesfile not found\n")


def host(tmp_path, origin=ORIGIN, *others, found="", lvm=SEEN, config=DEFAULT, missing=(), tags=None):
    (tmp_path / "dev/disk/by-id").mkdir(parents=True, exist_ok=True)
    (tmp_path / "dev/sda").touch()
    if not (tmp_path / HDD.lstrip("/")).is_symlink():
        (tmp_path / HDD.lstrip("/")).symlink_to("../../sda")
    signatures = json.dumps({"signatures": [{"type": found}]}) if found else ""
    replies = {("wipefs",): Reply(signatures), ("pvs",): lvm, ("lvmconfig",): config, ("blkid",): tags or Reply("", 2)}
    runner = ScriptedRunner(replies, missing)
    return runner, Devices([origin, *others], tmp_path)


def read(tmp_path, runner, devices, *, mode="writeback", hides=False, running=()):
    items = read_items([{"name": "images", "origin": HDD, "cache_devices": ["/dev/disk/by-id/ata-SSD0"], "mode": mode}])
    return starters.read_starters(runner, devices, items, tmp_path, running=running, hides=hides)


TAGS = Reply("DEVNAME=/dev/dm-3\nUUID=7d6f-11\nLABEL=my\\ images\nTYPE=ext4\nUSAGE=filesystem\n")


@pytest.mark.parametrize("source", ["UUID=7d6f-11", "LABEL=my\\040images", "/dev/disk/by-uuid/7d6f-11", "/dev/disk/by-label/my\\x20images"])
@pytest.mark.parametrize("runs", [True, False])
def test_line_of_what_udev_does_not_know(tmp_path, source, runs):
    """A file system that was just made on the cached device: udev probes the origin only when something happens to it."""
    bare = dataclasses.replace(ORIGIN, signature=None)
    runner, devices = host(tmp_path, bare, *([CACHED] if runs else []), tags=TAGS)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/fstab").write_text(f"UUID=1234 / ext4\n{source} /srv ext4\n")
    (found,) = read(tmp_path, runner, devices, running=("images",) if runs else ())
    assert found.text.startswith("Line 2 of /etc/fstab") and "instead" in found.text
    assert [words[-1] for words in runner.calls if words[0] == "blkid"] == ["/dev/dm-3" if runs else "/dev/sda"]
    runner, devices = host(tmp_path, bare, CACHED, tags=Reply("UUID=9999\n"))
    assert read(tmp_path, runner, devices) == ()


def test_lines_that_other_devices_explain_cost_nothing(tmp_path):
    root = BlockDevice("sdz1", "/dev/sdz1", "8:9", signature=Signature("filesystem", "ext4", "1234", "root"))
    runner, devices = host(tmp_path, ORIGIN, CACHED, root, tags=TAGS)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/fstab").write_text("UUID=1234 / ext4\nLABEL=root /x ext4\n/dev/mapper/images /srv ext4\n")
    assert read(tmp_path, runner, devices, running=("images",)) == ()
    assert not [words for words in runner.calls if words[0] == "blkid"]


LINK = HDD[len("/dev/") :]
RULE = f'ACTION!="remove", SUBSYSTEM=="block", SYMLINK=="{LINK}", ENV{{ID_FS_TYPE}}="hidden", ENV{{SYSTEMD_READY}}="0"\n'
BY_EVENTS, BY_SCAN = Reply("event_activation=1\n"), Reply("event_activation=0\n")


@pytest.mark.parametrize(
    ("name", "text", "shown", "events", "accepted"),
    [
        ("62-mine.rules", RULE, "hidden", BY_EVENTS, True),
        ("62-mine.rules", "# why\n" + RULE.replace(", ENV", ", \\\n  ENV", 1), "hidden", BY_EVENTS, True),
        ("62-mine.rules", RULE.replace(f'SYMLINK=="{LINK}"', 'ENV{ID_SERIAL_SHORT}=="S1"'), "hidden", BY_EVENTS, True),
        ("62-mine.rules", RULE.replace('"hidden"', '""'), None, BY_EVENTS, True),
        # udev does not show it, or still shows what it was.
        ("62-mine.rules", RULE, None, BY_EVENTS, False),
        ("62-mine.rules", RULE, "LVM2_member", BY_EVENTS, False),
        # No rule, one too early or too late, of another device, by a name that changes, or under conditions.
        ("62-mine.conf", RULE, "hidden", BY_EVENTS, False),
        ("50-mine.rules", RULE, "hidden", BY_EVENTS, False),
        ("70-mine.rules", RULE, "hidden", BY_EVENTS, False),
        ("62-mine.rules", RULE.replace(LINK, "disk/by-id/ata-OTHER"), "hidden", BY_EVENTS, False),
        ("62-mine.rules", RULE.replace(f'SYMLINK=="{LINK}"', 'KERNEL=="sda"'), "hidden", BY_EVENTS, False),
        ("62-mine.rules", RULE.replace("ENV{ID", 'TEST=="/run/x", ENV{ID', 1), "hidden", BY_EVENTS, False),
        ("62-mine.rules", RULE.replace("ENV{ID", 'PROGRAM="/bin/x", ENV{ID', 1), "hidden", BY_EVENTS, False),
        ("62-mine.rules", 'ACTION=="x", GOTO="end"\n' + RULE + 'LABEL="end"\n', "hidden", BY_EVENTS, False),
        ("62-mine.rules", "#" + RULE, "hidden", BY_EVENTS, False),
        ("62-mine.rules", RULE.replace('FS_TYPE}="', 'FS_TYPE}=="'), "hidden", BY_EVENTS, False),
        # LVM that scans at boot asks no rule.
        ("62-mine.rules", RULE, "hidden", BY_SCAN, False),
        # A command of LVM rewrites the devices file while the mapping is not there, unless it must not search for what it has only by name.
        ("62-mine.rules", RULE, "hidden", Reply(BY_EVENTS.stdout + 'use_devicesfile=1\nsearch_for_devnames="all"\n'), False),
        ("62-mine.rules", RULE, "hidden", Reply(BY_EVENTS.stdout + 'use_devicesfile=1\nsearch_for_devnames="none"\n'), True),
        ("62-mine.rules", RULE, "hidden", Reply(BY_EVENTS.stdout + 'use_devicesfile=0\nsearch_for_devnames="all"\n'), True),
    ],
)
def test_rule_of_the_user_that_hides_the_origin(tmp_path, name, text, shown, events, accepted):
    origin = dataclasses.replace(ORIGIN, signature=Signature("other", shown) if shown else None, properties={"ID_SERIAL_SHORT": "S1"})
    runner, devices = host(tmp_path, origin, found="LVM2_member")
    runner.replies[("lvmconfig", "--typeconfig", "full", "global/event_activation")] = events
    (tmp_path / "etc/udev/rules.d").mkdir(parents=True)
    (tmp_path / "etc/udev/rules.d" / name).write_text(text)
    assert (read(tmp_path, runner, devices) == ()) is accepted


def test_rule_of_the_user_without_an_entry_of_udev_proves_nothing(tmp_path):
    runner, devices = host(tmp_path, dataclasses.replace(ORIGIN, signature=None), found="linux_raid_member")
    (tmp_path / "etc/udev/rules.d").mkdir(parents=True)
    (tmp_path / "etc/udev/rules.d/62-mine.rules").write_text(RULE.replace('"hidden"', '""'))
    assert read(tmp_path, runner, devices) != ()
    known = dataclasses.replace(ORIGIN, signature=None, properties={"ID_SERIAL_SHORT": "S1"})
    runner, devices = host(tmp_path, known, found="linux_raid_member")
    assert read(tmp_path, runner, devices) == ()
    runner, devices = host(tmp_path, known, found="zfs_member")
    assert read(tmp_path, runner, devices) != ()


def typed(kind):
    return dataclasses.replace(ORIGIN, signature=Signature("raid", kind, "7d6f-11"))


@pytest.mark.parametrize(
    "kind",
    [
        "LVM2_member",
        "linux_raid_member",
        "isw_raid_member",
        "ddf_raid_member",
        "mpath_member",
        "zfs_member",
        "bcache",
        "stratis",
        "swsuspend",
    ],
)
@pytest.mark.parametrize("where", ["udev", "device", "cached", "partition"])
def test_content_that_starts_by_itself_is_refused_for_writeback(tmp_path, kind, where):
    there = {
        "udev": (typed(kind),),
        "device": (ORIGIN,),
        "cached": (ORIGIN, dataclasses.replace(CACHED, signature=Signature("raid", kind))),
        "partition": (
            dataclasses.replace(ORIGIN, partitions=("sda1",)),
            BlockDevice("sda1", "/dev/sda1", "8:1", kind="partition", signature=Signature("raid", kind)),
        ),
    }[where]
    runner, devices = host(tmp_path, *there, found=kind if where == "device" else "")
    found = read(tmp_path, runner, devices)
    assert [(one.item, one.early) for one in found] == [("images", True)]
    with pytest.raises(Refused, match=f"^images: {HDD}, the origin of /dev/mapper/images, carries {kind}: at boot .* without waiting for the cache"):
        starters.require_kept_away(found, "images")
    starters.require_kept_away(found, "other")


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "crypto_LUKS", "swap", "vfat", None])
def test_content_that_only_a_line_of_a_file_starts_is_not_refused(tmp_path, kind):
    runner, devices = host(tmp_path, typed(kind) if kind else dataclasses.replace(ORIGIN, signature=None), CACHED, found=kind or "")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/fstab").write_text("/dev/sdz / ext4\n/dev/mapper/images /srv xfs\n")
    (tmp_path / "etc/crypttab").write_text("plain /dev/mapper/images none luks\nother UUID=8888 none\n")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cmdline").write_text("BOOT_IMAGE=/vmlinuz root=UUID=1234 ro resume=/dev/sdz2 quiet\n")
    assert read(tmp_path, runner, devices) == ()
    assert not [words for words in runner.calls if words[0] in ("pvs", "lvmconfig")]


@pytest.mark.parametrize(
    ("answer", "config", "kept"),
    [
        (NOT_FOUND, FILTERED, True),
        # Seen on the rack: udev starts LVM before there are links, and the name of the kernel may be another one at the next boot.
        (NOT_FOUND, Reply('global_filter=["r|^/dev/disk/by-id/ata-HDD0$|"]\nfilter=["a|.*|"]\nuse_devicesfile=0\n'), False),
        (NOT_FOUND, Reply('global_filter=["r|^/dev/sda$|"]\nfilter=["a|.*|"]\nuse_devicesfile=0\n'), False),
        (NOT_FOUND, Reply('global_filter=["a|.*|"]\nfilter=["a|^/dev/mapper/|","r|^/dev/sd|"]\nuse_devicesfile=0\n'), True),
        (NOT_FOUND, Reply('global_filter=["r|(|"]\nfilter=["a|.*|"]\nuse_devicesfile=0\n'), False),
        (NOT_FOUND, BEFORE_DEVICES_FILE, True),
        # Seen on the rack: the devices file has a mapping only by its name, for which LVM takes the origin at boot; filters are ignored then.
        (NOT_FOUND, DEVICES_FILE, False),
        (Reply("", 5, "  Cannot use /dev/sda: device is not in devices file\n"), DEVICES_FILE, False),
        (NOT_FOUND, Reply(FILTERED.stdout.replace("file=0", "file=1")), False),
        (Reply("", 5, "  Cannot use /dev/sda: device is rejected by filter config\n"), FILTERED, True),
        (SEEN, DEVICES_FILE, False),
        (NOT_FOUND, DEFAULT, False),
        (NOT_FOUND, Reply("", 5, "  Failed to parse config"), False),
        (Reply("", 5, "  Cannot use device /dev/sda with duplicates.\n"), FILTERED, False),
        (Reply("", 5, "  /run/lock/lvm/P_global:aux: open failed: No space left on device\n"), FILTERED, False),
        (Reply("", 5, "  Cannot use /dev/sda: device is a multipath component\n"), FILTERED, False),
    ],
)
def test_lvm_is_kept_away_only_if_its_configuration_rejects_the_origin(tmp_path, answer, config, kept):
    runner, devices = host(tmp_path, typed("LVM2_member"), lvm=answer, config=config)
    assert (read(tmp_path, runner, devices) == ()) is kept


def test_lvm_is_asked_for_the_place_that_a_boot_would_use(tmp_path):
    """A physical volume in a partition of the cached device is one in a partition of the origin, and rejecting the whole disk does not reject it."""
    top = dataclasses.replace(CACHED, partitions=("dm-4",))
    part = BlockDevice("dm-4", "/dev/dm-4", "253:4", kind="dm", dm_uuid="part1-CACHEFLEET-TOP-images", signature=Signature("raid", "LVM2_member"))
    runner, devices = host(tmp_path, ORIGIN, top, part, lvm=NOT_FOUND, config=FILTERED)
    assert len(read(tmp_path, runner, devices, running={"images"})) == 1, "no partition of the origin is there that LVM could be asked for"
    origin = dataclasses.replace(ORIGIN, partitions=("sda1",))
    below = BlockDevice("sda1", "/dev/sda1", "8:1", kind="partition")
    for answer, count in ((NOT_FOUND, 0), (SEEN, 1)):
        runner, devices = host(tmp_path, origin, below, top, part, lvm=answer, config=FILTERED)
        assert len(read(tmp_path, runner, devices, running={"images"})) == count
        assert [words[-1] for words in runner.calls if words[0] == "pvs"] == ["/dev/sda1"]


@pytest.mark.parametrize(("kind", "early"), [("ceph_bluestore", False), ("btrfs", False), ("zfs_member", True)])
def test_what_waits_for_units_is_a_warning(tmp_path, kind, early):
    other = BlockDevice("sdb", "/dev/sdb", "8:16", signature=Signature("filesystem", kind, "7d6f-11"))
    runner, devices = host(tmp_path, typed(kind), other)
    (found,) = read(tmp_path, runner, devices)
    assert found.early is early
    if not early:
        starters.require_kept_away([found], "images")


def test_refusal_names_what_keeps_lvm_away(tmp_path):
    runner, devices = host(tmp_path, typed("LVM2_member"))
    (found,) = read(tmp_path, runner, devices)
    assert f"keep LVM from {HDD} in lvm.conf, with use_devicesfile = 0" in found.text and f"takes {HDD} for /dev/mapper/images" in found.text
    assert "global_filter" in found.text and "update-initramfs -u or dracut -f" in found.text


def test_host_without_lvm_activates_nothing(tmp_path):
    runner, devices = host(tmp_path, typed("LVM2_member"), missing=("pvs",))
    assert read(tmp_path, runner, devices) == ()


@pytest.mark.parametrize(
    ("file", "text", "early", "begin"),
    [
        ("etc/fstab", f"{HDD} /srv ext4\n", False, f"Line 1 of /etc/fstab ({HDD} on /srv)"),
        ("etc/fstab", "UUID=7d6f-11 none swap sw\n", False, "Line 1 of /etc/fstab (UUID=7d6f-11 on none)"),
        ("etc/fstab", "LABEL=images / ext4\n", True, "Line 1 of /etc/fstab (LABEL=images on /)"),
        ("etc/fstab", f"{HDD} /usr ext4\n", True, f"Line 1 of /etc/fstab ({HDD} on /usr)"),
        ("etc/fstab", f"{HDD} /opt ext4 x-initrd.mount\n", True, f"Line 1 of /etc/fstab ({HDD} on /opt)"),
        ("etc/crypttab", "# c\nplain UUID=7d6f-11 none luks,discard\n", True, "Line 2 of /etc/crypttab (plain)"),
        ("proc/cmdline", "ro resume=UUID=7d6f-11 quiet", True, "resume= in /proc/cmdline (UUID=7d6f-11)"),
        ("proc/cmdline", "root=/dev/sda ro", True, "root= in /proc/cmdline (/dev/sda)"),
        ("etc/initramfs-tools/conf.d/resume", "RESUME=UUID=7d6f-11\n", True, "RESUME= in /etc/initramfs-tools/conf.d/resume"),
        ("etc/drbd.d/r0.res", f'resource r0 {{\n  on a {{\n    disk "{HDD}";\n  }}\n}}\n', False, f"disk in /etc/drbd.d/r0.res ({HDD})"),
        ("etc/systemd/system/srv.mount", f"[Mount]\nWhat={HDD}\nWhere=/srv\n", False, f"The unit srv.mount ({HDD})"),
        ("etc/systemd/system/srv.swap", "[Swap]\nWhat=/dev/disk/by-path/pci-0-ata-1\n", False, "The unit srv.swap"),
    ],
)
def test_places_that_name_the_origin(tmp_path, file, text, early, begin):
    runner, devices = host(tmp_path)
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    (found,) = read(tmp_path, runner, devices)
    assert found.text.startswith(begin)
    assert f"means {HDD}, the origin of /dev/mapper/images" in found.text and found.text.endswith("write /dev/mapper/images instead.")
    assert found.early is early


def test_noauto_line_of_crypttab_starts_nothing(tmp_path):
    runner, devices = host(tmp_path)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/crypttab").write_text(f"plain {HDD} none luks,noauto\n")
    assert read(tmp_path, runner, devices) == ()


def test_tag_of_the_cached_device_is_one_of_its_origin(tmp_path):
    """A file system made through the cache has its UUID on the origin, which udev does not probe before the next boot."""
    top = dataclasses.replace(CACHED, links=("/dev/disk/by-uuid/9a-1",), signature=Signature("filesystem", "xfs", "9a-1", "new"))
    runner, devices = host(tmp_path, dataclasses.replace(ORIGIN, signature=None), top)
    (tmp_path / "etc").mkdir()
    for source in ("UUID=9a-1", "LABEL=new", "/dev/disk/by-uuid/9a-1"):
        (tmp_path / "etc/fstab").write_text(f"{source} /srv xfs\n")
        assert len(read(tmp_path, runner, devices, running={"images"})) == 1
    (tmp_path / "etc/fstab").write_text("/dev/mapper/images /srv xfs\n/dev/dm-3 /b xfs\n")
    assert read(tmp_path, runner, devices, running={"images"}) == ()


def test_hidden_origin_is_only_started_by_what_does_not_go_by_udev(tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/fstab").write_text(f"{HDD} /srv ext4\n")
    for kind, count in {"LVM2_member": 0, "linux_raid_member": 0, "bcache": 0, "zfs_member": 1, "mpath_member": 1, "swsuspend": 1}.items():
        runner, devices = host(tmp_path, typed(kind))
        assert len(read(tmp_path, runner, devices, hides=True)) == count, kind


def test_users_past_a_cache():
    volume = BlockDevice("dm-5", "/dev/dm-5", "253:5", kind="lvm", dm_name="vg-data")
    origin = dataclasses.replace(ORIGIN, holders=("dm-3", "dm-5"), partitions=("sda1",))
    part = BlockDevice("sda1", "/dev/sda1", "8:1", kind="partition", mountpoints=("/mnt",))
    found = users_past(Devices([origin, CACHED, volume, part]), "sda", {"dm-3"})
    assert found == ("is used by dm-5 (vg-data)", "has the partition sda1, which is mounted on /mnt")
    assert users_past(Devices([dataclasses.replace(ORIGIN, holders=("dm-3",)), CACHED]), "sda", {"dm-3"}) == ()
    assert users_past(Devices([CACHED]), "sda", {"dm-3"}) == ()


def test_partitions_that_kpartx_has_mapped_are_users_only_if_they_are_used():
    origin = dataclasses.replace(ORIGIN, holders=("dm-3", "dm-6"))
    part = BlockDevice("dm-6", "/dev/dm-6", "253:6", kind="dm", dm_name="mpatha-part1", dm_uuid="part1-mpath-3600", slaves=("sda",))
    assert users_past(Devices([origin, CACHED, part]), "sda", {"dm-3"}) == ()
    used = dataclasses.replace(part, mountpoints=("/mnt",))
    assert users_past(Devices([origin, CACHED, used]), "sda", {"dm-3"}) == ("has the partition dm-6, which is mounted on /mnt",)
