# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import DeviceUse
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.operations import (
    ActivateUnused,
    Attach,
    CreatePhysicalVolume,
    CreateVolume,
    Detach,
    ExtendVolumeGroup,
    GoOn,
    LeaveCleaner,
    ProveClean,
    Refresh,
    RemoveVolume,
    SetMode,
    SetSetting,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.plan import plan, problems
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Signature
from ansible_collections.cachefleet.storage.tests.unit.support.fake_lvm import MIB, SSD, SSD1_PATH, SSD_PATH, FakeLvm, present

ITEM = {"name": "images", "origin": "vg/data", "cache_devices": [SSD_PATH]}
WRITEBACK = {"mode": "writeback", "allow_unmirrored_writeback": True}
MIRROR = {"mirror": True, "cache_devices": [SSD_PATH, SSD1_PATH]}


def steps(lvm, *, host=None, **fields):
    return plan(present(lvm, **(host or {})), read_items([{**ITEM, **fields}]))


def operations(*arguments, **fields):
    return [type(step.operation) for step in steps(*arguments, **fields)]


def refusal(error, lvm, *, host=None, **fields):
    with pytest.raises(error) as caught:
        steps(lvm, host=host, **fields)
    assert caught.value.item == "images"
    return caught.value.message


class TestAttach:
    def test_empty_device_is_added_to_volume_group_first(self):
        planned = steps(FakeLvm())
        assert [type(step.operation) for step in planned] == [CreatePhysicalVolume, ExtendVolumeGroup, CreateVolume, Attach]
        assert [step.attribute for step in planned] == ["physical_volume", "volume_group", "cache_volume", "cache"]
        assert all(step.before is None and step.item == "images" and step.layer == "lvm_cache" for step in planned)
        assert planned[2].action == f"Create cachepool vg/data_cache of 496 MiB on {SSD_PATH}"
        assert planned[3].after == {
            "kind": "cachepool",
            "volume": "data_cache",
            "size": 496 * MIB,
            "chunk_size": 65536,
            "devices": [SSD_PATH],
            "mirror": False,
            "mode": "writethrough",
            "settings": {},
        }

    def test_remains_of_interrupted_run_are_used(self):
        ours = {"data_cache": {"name": "data_cache", "kind": "cachepool", "size": 496 * MIB, "chunk": 65536, "tags": "cachefleet.storage"}}
        volume_of_no_group, in_the_group, with_cache_volume = FakeLvm(), FakeLvm(extended=True), FakeLvm(extended=True)
        volume_of_no_group.pvs["/dev/sdb"] = ""
        with_cache_volume.unattached.update(ours)
        assert [operations(lvm) for lvm in (volume_of_no_group, in_the_group, with_cache_volume)] == [
            [ExtendVolumeGroup, CreateVolume, Attach],
            [CreateVolume, Attach],
            [Attach],
        ]

    def test_foreign_volume_with_cache_name_is_not_touched(self):
        lvm = FakeLvm(extended=True)
        lvm.unattached["data_cache"] = {"name": "data_cache", "kind": "cachevol", "size": 496 * MIB, "chunk": 65536, "tags": ""}
        assert "that is not ours is already there: if nothing on it is needed, remove it with lvremove vg/data_cache" in refusal(Refused, lvm, kind="cachevol")

    @pytest.mark.parametrize("fields", [{"kind": "cachevol"}, {"size": "200M"}, {"chunk_size": "128k"}])
    def test_own_unsuitable_volume_is_replaced(self, fields):
        lvm = FakeLvm(extended=True)
        lvm.unattached["data_cache"] = {"name": "data_cache", "kind": "cachepool", "size": 496 * MIB, "chunk": 65536, "tags": "cachefleet.storage"}
        assert operations(lvm, **fields) == [RemoveVolume, CreateVolume, Attach]

    def test_two_caches_share_a_device(self):
        lvm = FakeLvm(extended=True)
        host = present(lvm)
        other = dataclasses.replace(host.volume("vg", "data"), name="other")
        host = dataclasses.replace(host, volumes=(*host.volumes, other))
        two = [{**ITEM, "size": "200M"}, {**ITEM, "name": "rest", "origin": "vg/other"}]
        created = [step.after["size"] for step in plan(host, read_items(two)) if isinstance(step.operation, CreateVolume)]
        # 512 MiB less 200, two metadata volumes and one spare of 8 MiB each.
        assert created == [200 * MIB, 288 * MIB]

    def test_second_cache_is_limited_to_remaining_space(self):
        host = present(FakeLvm(extended=True))
        host = dataclasses.replace(host, volumes=(*host.volumes, dataclasses.replace(host.volume("vg", "data"), name="other")))
        with pytest.raises(BadInput, match=r"rest: a cachepool needs .* has 0 B free"):
            plan(host, read_items([ITEM, {**ITEM, "name": "rest", "origin": "vg/other"}]))

    def test_cache_check_is_required_only_for_attaching(self):
        assert "thin-provisioning-tools" in refusal(ToolMissing, FakeLvm(missing=["cache_check"]))
        assert steps(FakeLvm(fast="cachepool", missing=["cache_check"])) == []

    def test_default_settings_are_omitted_at_attach(self):
        planned = steps(FakeLvm(extended=True), settings={"migration_threshold": "default"})
        assert planned[-1].operation.settings == {}


class TestTwoOnOneNewDevice:
    def plan(self, *others, host=None):
        host = host or present(FakeLvm())
        host = dataclasses.replace(host, volumes=(*host.volumes, dataclasses.replace(host.volume("vg", "data"), name="other")))
        return plan(host, read_items([{**ITEM, "size": "200M"}, *others]))

    def test_shared_device_is_prepared_once(self):
        planned = self.plan({**ITEM, "name": "rest", "origin": "vg/other"})
        assert [(step.item, type(step.operation)) for step in planned] == [
            ("images", CreatePhysicalVolume),
            ("images", ExtendVolumeGroup),
            ("images", CreateVolume),
            ("images", Attach),
            ("rest", CreateVolume),
            ("rest", Attach),
        ]

    def test_shared_device_under_other_link_or_as_free_pv_is_prepared_once(self):
        linked = present(FakeLvm(), ssd=dataclasses.replace(SSD, by_id=(SSD_PATH, "/dev/disk/by-id/wwn-0x5")))
        planned = self.plan({**ITEM, "name": "rest", "origin": "vg/other", "cache_devices": ["/dev/disk/by-id/wwn-0x5"]}, host=linked)
        assert [type(step.operation) for step in planned].count(CreatePhysicalVolume) == 1
        lvm = FakeLvm()
        lvm.pvs["/dev/sdb"] = ""
        planned = self.plan({**ITEM, "name": "rest", "origin": "vg/other"}, host=present(lvm))
        assert [type(step.operation) for step in planned].count(ExtendVolumeGroup) == 1

    def test_device_cannot_join_two_volume_groups(self):
        host = present(FakeLvm())
        slow = dataclasses.replace(host.physical[0], path="/dev/sdc", vg="vg2")
        host = dataclasses.replace(
            host,
            volumes=(*host.volumes, dataclasses.replace(host.volume("vg", "data"), vg="vg2", devices=("/dev/sdc",))),
            physical=(*host.physical, slow),
        )
        with pytest.raises(BadInput, match=r"rest: .* cannot be added to volume group vg2, because a cache before it in the list adds it to vg") as caught:
            self.plan({**ITEM, "name": "rest", "origin": "vg2/data"}, host=host)
        assert caught.value.item == "rest"


class TestOrigin:
    @pytest.mark.parametrize(
        ("error", "origin", "fields", "said"),
        [
            (DeviceMissing, {}, {"origin": "vg9/data"}, "there is no volume group vg9 on this host (there is vg)"),
            (DeviceMissing, {}, {"origin": "vg/dta"}, "volume group vg has no logical volume dta (it has data)"),
            (BadInput, {"attr": "swi-a-s---", "segtype": "linear", "role": "public,snapshot"}, {}, "is a snapshot"),
            (BadInput, {"attr": "Vwi-a-tz--", "segtype": "thin", "role": "public"}, {}, "whose cache serves all of them: name the pool"),
            (BadInput, {"attr": "mwi-a-m---", "segtype": "mirror", "role": "public"}, {}, "is of type mirror"),
            (BadInput, {"attr": "Vwi-a-tz--", "segtype": "thin", "role": "public,snapshot,thinsnapshot"}, {}, "is a snapshot"),
            (Refused, {"attr": "-wi-------"}, {}, "activate it with lvchange -ay vg/data first"),
        ],
    )
    def test_unsupported_origins_are_rejected(self, error, origin, fields, said):
        lvm = FakeLvm()
        lvm.origin.update(origin)
        assert said in refusal(error, lvm, **fields)

    @pytest.mark.parametrize("segtype", ["linear", "striped", "raid5", "raid5_ls", "raid6_zr", "raid10"])
    def test_supported_origins_are_accepted(self, segtype):
        lvm = FakeLvm(extended=True)
        lvm.origin = {"attr": "-wi-a-----", "segtype": segtype, "role": "public"}
        assert operations(lvm) == [CreateVolume, Attach]

    def test_internal_volume_is_rejected(self):
        assert "is an inner part of another volume" in refusal(BadInput, FakeLvm(fast="cachepool"), origin="vg/data_corig")


class TestCacheDevice:
    @pytest.mark.parametrize(
        ("host", "said"),
        [
            ({"ssd": dataclasses.replace(SSD, signature=Signature(usage="filesystem", type="ext4"))}, "carries a signature (ext4)"),
            ({"ssd": dataclasses.replace(SSD, signature=Signature(partition_table="gpt"))}, "carries a signature (gpt)"),
            ({"ssd": dataclasses.replace(SSD, signature=Signature(usage="raid", type="LVM2_member"))}, "carries a signature (LVM2_member)"),
            ({"ssd": dataclasses.replace(SSD, mountpoints=("/srv",))}, "is mounted on /srv"),
            ({"ssd": dataclasses.replace(SSD, swap=True)}, "is swap space"),
            ({"ssd": dataclasses.replace(SSD, holders=("dm-4",))}, "is used by dm-4"),
            ({"ssd": dataclasses.replace(SSD, partitions=("sdb1",))}, "has the partitions sdb1"),
            ({"ssd": dataclasses.replace(SSD, read_only=True)}, "is read-only"),
            ({"finding": DeviceUse(signatures=("ext4 (home)",))}, "carries a signature (ext4 (home))"),
            ({"finding": DeviceUse(users=("lies under /dev/loop0",))}, "lies under /dev/loop0"),
            ({"finding": DeviceUse(users=("cannot be opened exclusively (Device or resource busy)",))}, "cannot be opened exclusively"),
        ],
    )
    def test_non_empty_device_is_refused_and_never_wiped(self, host, said):
        message = refusal(Refused, FakeLvm(), host=host)
        assert said in message
        assert f"wipefs -a {SSD_PATH} manually" in message

    def test_signature_also_reported_by_udev_is_listed_once(self):
        ssd = dataclasses.replace(SSD, signature=Signature(usage="filesystem", type="ext4"))
        message = refusal(Refused, FakeLvm(), host={"ssd": ssd, "finding": DeviceUse(signatures=("ext4 (home)",))})
        assert message.count("ext4") == 1

    def test_unloaded_cache_is_refused_without_wipefs_advice(self):
        message = refusal(Refused, FakeLvm(), host={"finding": DeviceUse(cache_metadata=("EnhanceIO metadata",))})
        assert "carries EnhanceIO metadata, and may hold blocks that its origin does not have" in message
        assert "flush that cache with its own tools" in message
        assert "wipefs -a" not in message

    @pytest.mark.parametrize("lvm", [FakeLvm(), FakeLvm(extended=True), FakeLvm(fast="cachepool")])
    def test_drives_with_the_same_serial_are_reported_as_ambiguous(self, lvm):
        twin = dataclasses.replace(SSD, name="sdc", path="/dev/sdc", number="8:32")
        message = refusal(BadInput, lvm, host={"more": [twin]})
        assert f"{SSD_PATH} is claimed by /dev/sdb and by /dev/sdc" in message
        assert "/dev/disk/by-id/wwn-" in message
        assert "/dev/disk/by-path/" in message

    def test_multipath_device_shares_links_with_its_paths(self):
        paths = [
            dataclasses.replace(SSD, name=name, path=f"/dev/{name}", number=number, holders=("dm-0",)) for name, number in (("sdc", "8:32"), ("sdd", "8:48"))
        ]
        mapped = dataclasses.replace(SSD, name="dm-0", path="/dev/dm-0", kind="multipath", dm_name="mpatha", slaves=("sdc", "sdd"))
        assert isinstance(steps(FakeLvm(), host={"ssd": mapped, "more": paths})[-1].operation, Attach)

    @pytest.mark.parametrize(
        ("error", "device", "group", "said"),
        [
            (BadInput, "/dev/sdb", None, f"use {SSD_PATH}, which is the same device"),
            (DeviceMissing, "/dev/disk/by-id/ata-OTHER", None, "does not exist"),
            (BadInput, SSD_PATH, "vg2", f"{SSD_PATH} belongs to volume group vg2, and a cache must be in vg"),
            (BadInput, "/dev/disk/by-id/ata-HDD0", None, "is already on /dev/disk/by-id/ata-HDD0"),
        ],
    )
    def test_unsuitable_cache_devices_are_rejected(self, error, device, group, said):
        lvm = FakeLvm()
        if group:
            lvm.pvs["/dev/sdb"] = group
        assert said in refusal(error, lvm, cache_devices=[device])

    def test_non_allocatable_physical_volume_is_refused(self):
        host = present(FakeLvm(extended=True))
        host = dataclasses.replace(host, physical=tuple(dataclasses.replace(pv, attr="u--") for pv in host.physical))
        with pytest.raises(Refused, match="closed for allocation"):
            plan(host, read_items([ITEM]))


class TestWriteBack:
    def test_unmirrored_writeback_error_names_the_permission_option(self):
        for lvm in (FakeLvm(), FakeLvm(fast="cachepool"), FakeLvm(fast="cachepool", mode="writeback")):
            assert "set allow_unmirrored_writeback: true for this cache" in refusal(Refused, lvm, mode="writeback")

    def test_unmirrored_writeback_with_permission(self):
        assert steps(FakeLvm(), **WRITEBACK)[-1].after["mode"] == "writeback"

    def test_mirrored_md_array_requires_no_permission(self):
        md = BlockDevice(name="md0", path="/dev/md0", number="9:0", kind="md", size=513 * MIB, links=("/dev/md/fast",))
        found = steps(FakeLvm(), mode="writeback", cache_devices=["/dev/md/fast"], host={"more": [md], "redundant": frozenset({"md0"})})
        assert isinstance(found[-1].operation, Attach)

    MD = BlockDevice(name="md0", path="/dev/md0", number="9:0", kind="md", size=513 * MIB, links=("/dev/md/fast",))
    ON_DEGRADED = {"mode": "writeback", "cache_devices": ["/dev/md/fast"], "host": {"ssd": MD, "degraded": frozenset({"md0"})}}

    @pytest.mark.parametrize(
        "lvm",
        [
            FakeLvm(),
            FakeLvm(extended=True),
            FakeLvm(fast="cachepool"),
            FakeLvm(fast="cachepool", mode="passthrough"),
            # The kernel writes through: going back to write-back is a change.
            FakeLvm(fast="cachepool", mode="writeback", kernel_policy="cleaner"),
        ],
    )
    def test_degraded_mirror_counts_as_unmirrored(self, lvm):
        message = refusal(Refused, lvm, **self.ON_DEGRADED)
        assert "that mirror is degraded" in message
        assert "set allow_unmirrored_writeback: true for this cache" in message
        assert isinstance(steps(lvm, allow_unmirrored_writeback=True, **self.ON_DEGRADED)[-1].operation, (Attach, SetMode, LeaveCleaner))

    def test_stored_writeback_is_not_loaded_on_degraded_mirror(self):
        lvm = FakeLvm(fast="cachepool", mode="writeback")
        lvm.cache["kernel_mode"] = "writethrough"
        assert "that mirror is degraded" in refusal(Refused, lvm, **self.ON_DEGRADED)
        assert operations(lvm, allow_unmirrored_writeback=True, **self.ON_DEGRADED) == [Refresh]

    def test_writeback_on_later_degraded_mirror_is_kept_and_reported(self):
        lvm = FakeLvm(fast="cachepool", mode="writeback")
        assert steps(lvm, **self.ON_DEGRADED) == []
        (problem,) = problems(present(lvm, **self.ON_DEGRADED["host"]))
        assert "vg/data has a write-back cache on a mirror that is degraded" in problem
        assert "Take the failed member out of the machine before the next boot" in problem

    def test_degraded_writeback_cache_can_change_settings_and_leave_writeback(self):
        lvm = FakeLvm(fast="cachepool", mode="writeback")
        assert operations(lvm, settings={"migration_threshold": 16384}, **self.ON_DEGRADED) == [SetSetting]
        assert operations(lvm, **{**self.ON_DEGRADED, "mode": "writethrough"}) == [SetMode]

    @pytest.mark.parametrize(("mode", "host"), [("writeback", {"redundant": {"md0"}}), ("writeback", {}), ("writethrough", {"degraded": {"md0"}})])
    def test_no_problem_if_mirror_is_healthy_absent_or_cache_is_writethrough(self, mode, host):
        assert problems(present(FakeLvm(fast="cachepool", mode=mode), ssd=self.MD, **host)) == []

    @pytest.mark.parametrize("kind", ["cachepool", "cachevol"])
    def test_lvm_raid1_needing_refresh_counts_as_degraded(self, kind):
        lvm = FakeLvm(fast=kind, mirror=True)
        lvm.cache.update(leg_health="refresh needed")
        assert "that mirror is degraded" in refusal(Refused, lvm, mode="writeback", kind=kind, **MIRROR)
        lvm.cache["mode"] = "writeback"
        assert steps(lvm, mode="writeback", kind=kind, **MIRROR) == []
        assert len(problems(present(lvm))) == 1

    @pytest.mark.parametrize("kind", ["cachepool", "cachevol"])
    def test_lvm_mirrored_cache_requires_no_permission(self, kind):
        assert operations(FakeLvm(fast=kind, mirror=True), mode="writeback", kind=kind, **MIRROR) == [SetMode]

    def test_striped_cache_is_not_mirrored(self):
        lvm = FakeLvm(fast="cachepool")
        lvm.cache["legs"] = "raid0"
        assert "allow_unmirrored_writeback" in refusal(Refused, lvm, mode="writeback")


class TestConverged:
    @pytest.mark.parametrize("kind", ["cachepool", "cachevol"])
    @pytest.mark.parametrize("mode", ["writethrough", "writeback", "passthrough"])
    def test_converged_cache_plans_nothing(self, kind, mode):
        lvm = FakeLvm(fast=kind, mode=mode)
        assert steps(lvm, kind=kind, mode=mode, allow_unmirrored_writeback=True, size="200M", chunk_size="64k") == []

    def test_unknown_block_size_is_no_reason_to_replace_a_cache(self):
        lvm = FakeLvm(fast="writecache")
        lvm.lacking = {"writecache_block_size"}
        assert steps(lvm, kind="writecache", mode="writeback", allow_unmirrored_writeback=True, settings={"block_size": 512}) == []

    @pytest.mark.parametrize("present_mode", ["writethrough", "writeback", "passthrough"])
    @pytest.mark.parametrize("wanted_mode", ["writethrough", "writeback", "passthrough"])
    def test_mode_change_is_planned(self, present_mode, wanted_mode):
        planned = steps(FakeLvm(fast="cachepool", mode=present_mode), mode=wanted_mode, allow_unmirrored_writeback=True)
        assert [(step.attribute, step.before, step.after) for step in planned] == ([] if present_mode == wanted_mode else [("mode", present_mode, wanted_mode)])

    def test_leaving_writeback_action_mentions_flush(self):
        (step,) = steps(FakeLvm(fast="cachepool", mode="writeback"))
        assert step.action == "Switch the cache of vg/data from writeback to writethrough and flush it"

    def test_cachevol_policy_dirty_blocks_and_unset_settings_are_ignored(self):
        assert steps(FakeLvm(fast="cachevol", kernel_policy="mq"), kind="cachevol") == []
        assert steps(FakeLvm(fast="cachepool", settings="migration_threshold=16384")) == []
        for dirty in (0, 390, 1059):
            assert steps(FakeLvm(fast="cachepool", mode="writeback", dirty=dirty), **WRITEBACK) == []

    @pytest.mark.parametrize(
        ("stored", "requested", "expected"),
        [
            ("writeback", "writeback", [LeaveCleaner]),
            ("writeback", "writethrough", ["writethrough"]),
            ("writeback", "passthrough", ["passthrough"]),
            ("writethrough", "writethrough", [LeaveCleaner]),
            ("writethrough", "writeback", [LeaveCleaner, "writeback"]),
            ("passthrough", "passthrough", [LeaveCleaner]),
            ("passthrough", "writethrough", ["writethrough"]),
        ],
    )
    def test_cleaner_left_by_killed_flush_is_replaced_by_mode_change(self, stored, requested, expected):
        lvm = FakeLvm(fast="cachepool", mode=stored, kernel_policy="cleaner")
        planned = steps(lvm, mode=requested, allow_unmirrored_writeback=True)
        assert [getattr(step.operation, "mode", type(step.operation)) for step in planned] == expected

    def test_mode_in_kernel_takes_precedence_over_mode_stored_by_lvm(self):
        lvm = FakeLvm(fast="cachepool", mode="writethrough")
        lvm.cache["kernel_mode"] = "writeback"
        (step,) = steps(lvm)
        assert (type(step.operation), step.before, step.after) == (Refresh, "writeback", "writethrough")
        assert operations(lvm, state="absent") == [Refresh, ProveClean, Detach]

    @pytest.mark.parametrize("state", ["present", "absent"])
    def test_failed_cache_is_refused_because_lvm_skips_its_flush(self, state):
        lvm = FakeLvm(fast="cachepool", mode="writeback", dirty=None)
        assert "the kernel reports as failed" in refusal(Refused, lvm, state=state, **WRITEBACK)

    @pytest.mark.parametrize(
        ("stored", "requested", "expected"),
        [
            ("", 16384, [(None, 16384)]),
            ("migration_threshold=16384", 16384, []),
            ("migration_threshold=16384", 8192, [(16384, 8192)]),
            ("migration_threshold=16384", "default", [(16384, None)]),
            ("", "default", []),
            # The kernel raises 100 sectors to eight chunks of 64 KiB, whichever of the two LVM wrote down.
            ("migration_threshold=100", 100, []),
            ("migration_threshold=1024", 100, []),
        ],
    )
    def test_settings_are_compared_with_effective_kernel_values(self, stored, requested, expected):
        planned = steps(FakeLvm(fast="cachepool", settings=stored), settings={"migration_threshold": requested})
        assert [(step.before, step.after) for step in planned] == expected
        assert all(step.attribute == "settings.migration_threshold" for step in planned)

    def test_inactive_volume_is_accepted_unless_change_is_required(self):
        lvm = FakeLvm(fast="cachepool")
        lvm.origin["attr"] = "-wi-------"
        assert steps(lvm) == []
        assert "is not active" in refusal(Refused, lvm, mode="passthrough")
        assert "is not active" in refusal(Refused, lvm, state="absent")

    @pytest.mark.parametrize(
        ("fields", "then"),
        [({}, []), ({"mode": "passthrough"}, [SetMode]), ({"state": "flushed"}, [ProveClean]), ({"state": "absent"}, [ProveClean, Detach])],
    )
    def test_volume_whose_cache_was_never_used_is_activated_first(self, fields, then):
        lvm = FakeLvm(fast="cachepool")
        lvm.origin["attr"] = "-wi-------"
        state = dataclasses.replace(present(lvm), unused=frozenset({"vg/data"}))
        planned = plan(state, read_items([{**ITEM, **fields}]))
        assert [type(step.operation) for step in planned] == [ActivateUnused, *then]
        assert (planned[0].attribute, planned[0].before, planned[0].after) == ("active", False, True)
        assert planned[0].action.startswith("Activate vg/data without the check of its cache metadata, because ")

    @pytest.mark.parametrize("fields", [{"mode": "passthrough"}, {"state": "flushed"}, {"state": "absent"}])
    def test_suspended_volume_is_resumed_first_bottom_up(self, fields):
        lvm = FakeLvm(fast="cachepool")
        lvm.suspended = True
        first = steps(lvm, **fields)[0]
        assert isinstance(first.operation, GoOn)
        assert first.operation.names[-1] == "vg-data"
        assert "vg-data_cache_cpool_cmeta" in first.operation.names

    @pytest.mark.parametrize("state", ["present", "flushed", "absent"])
    @pytest.mark.parametrize("kind", ["cachepool", "cachevol", "writecache"])
    def test_missing_cache_device_requires_manual_decision(self, kind, state):
        lvm = FakeLvm(fast=kind, mode="writeback")
        lvm.gone.add("/dev/sdb")
        message = refusal(Refused, lvm, kind=kind, state=state, **WRITEBACK)
        assert "whose device is missing" in message
        assert "decide manually" in message

    def test_degraded_origin_must_be_repaired_before_cache_changes(self):
        host = present(FakeLvm(fast="cachepool"))
        degraded = [dataclasses.replace(volume, attr="Cwi-a-C-p-") if volume.name == "data" else volume for volume in host.volumes]
        host = dataclasses.replace(host, volumes=tuple(degraded))
        assert plan(host, read_items([ITEM])) == []
        with pytest.raises(Refused, match=r"misses a device under its cache.*lvconvert --repair vg/data_corig"):
            plan(host, read_items([{**ITEM, "mode": "passthrough"}]))

    @pytest.mark.parametrize(("kind", "reported"), [("cachepool", "lvconvert --repair vg/data_cache_cpool"), ("cachevol", "cannot be repaired")])
    @pytest.mark.parametrize("sign", [{"check": "check needed"}, {"kernel_check": "needs_check"}, {"metadata": "ro"}])
    def test_damaged_metadata_is_refused(self, kind, reported, sign):
        lvm = FakeLvm(fast=kind)
        lvm.cache.update(sign)
        assert reported in refusal(Refused, lvm, kind=kind)


class TestDetach:
    def test_writeback_is_flushed_and_verified_before_detach(self):
        planned = steps(FakeLvm(fast="cachepool", mode="writeback", dirty=839), state="absent")
        assert [(type(step.operation), step.attribute) for step in planned] == [(SetMode, "mode"), (ProveClean, "dirty"), (Detach, "cache")]
        assert planned[-1].before == {"kind": "cachepool", "volume": "data_cache", "size": 200 * MIB, "chunk_size": 65536}
        assert planned[-1].after is None

    def test_every_mode_is_verified_clean_before_detach(self):
        plans = [steps(FakeLvm(fast="cachepool", mode="writeback", dirty=dirty), state="absent") for dirty in (0, 839)]
        assert plans[0] == plans[1]
        for mode in ("writethrough", "passthrough"):
            assert operations(FakeLvm(fast="cachevol", mode=mode, dirty=7), state="absent") == [ProveClean, Detach]
        assert operations(FakeLvm(fast="cachepool"), state="absent", cache_devices=["/dev/disk/by-id/ata-GONE"]) == [ProveClean, Detach]

    def test_absent_without_cache_plans_nothing(self):
        assert steps(FakeLvm(), state="absent", origin="vg/data") == []

    @pytest.mark.parametrize("origin", ["vg/none", "vg9/data"])
    def test_absent_of_missing_volume_must_be_expected(self, origin):
        with pytest.raises(DeviceMissing, match=f"no lvm_cache of {origin} was found"):
            steps(FakeLvm(), state="absent", origin=origin)
        assert steps(FakeLvm(), state="absent", origin=origin, expect=["missing"]) == []

    @pytest.mark.parametrize(("tags", "expected"), [("cachefleet.storage", [RemoveVolume]), ("", [])])
    def test_only_own_remains_of_interrupted_detach_are_removed(self, tags, expected):
        lvm = FakeLvm(extended=True)
        lvm.unattached["data_cache"] = {"name": "data_cache", "kind": "cachepool", "size": 8 * MIB, "chunk": 65536, "tags": tags}
        assert operations(lvm, state="absent") == expected
