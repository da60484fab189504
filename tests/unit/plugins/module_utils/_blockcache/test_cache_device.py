# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import DeviceUse, examine
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import ScriptedRunner


def test_suspended_device_is_not_read(tmp_path):
    """Reads wait until it is resumed: no command may be run, and none is scripted."""
    (tmp_path / "sys/class/block/dm-3/dm").mkdir(parents=True)
    (tmp_path / "sys/class/block/dm-3/dm/suspended").write_text("1\n")
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/dm-3").write_bytes(bytes(4096))
    found = examine(ScriptedRunner({}), "/dev/dm-3", tmp_path, sleep=lambda seconds: None)
    assert found.users == ("is suspended, or lies on what is (/dev/dm-3; dmsetup resume ends that)",)
    assert found.reasons


def test_udev_signatures_are_used_only_if_device_was_not_examined():
    assert DeviceUse().with_signatures("LVM2_member").signatures == ("LVM2_member",)
    assert DeviceUse(examined=True).with_signatures("LVM2_member").signatures == ()
