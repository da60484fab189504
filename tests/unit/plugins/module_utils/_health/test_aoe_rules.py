# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Field case C, found by the host itself: frames of ATA over Ethernet that do not fit the blocks of a cache."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey.host_caches import Survey
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.frames import payload
from ansible_collections.cachefleet.storage.plugins.module_utils._health.host import Questions, read_health
from ansible_collections.cachefleet.storage.plugins.module_utils._health.readings import from_dict
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost
from ansible_collections.cachefleet.storage.tests.unit.support.health import CASE_C, FLASHCACHE, cache
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import ScriptedRunner

OVER_TARGET = dataclasses.replace(FLASHCACHE, origin_name="etherd!e7.1", device_name="dm-0", redundancy="mirrored")
SERVED = dataclasses.replace(FLASHCACHE, origin_name="sdb", device_name="dm-0", redundancy="mirrored")
LVM_OVER_TARGET = cache(origin_name="dm-0", device_name="dm-0")


@pytest.fixture
def host(tmp_path):
    fake = FakeHost(tmp_path)
    fake.write("proc/sys/kernel/random/boot_id", "b1\n")
    fake.disk("sdb", "virtual", size=64 << 20)
    return fake


def link(host, mtu, name="eth1"):
    host.write(f"sys/class/net/{name}/mtu", f"{mtu}\n")


def target(host, mtu, carried=None):
    """A target on the initiator, and a device-mapper device over it."""
    link(host, mtu)
    if not (host.root / "sys/block/etherd!e7.1").exists():
        host.disk("etherd!e7.1", "virtual", write_cache="write through")
    for name, text in {"payload": carried or payload(mtu), "netif": "eth1", "state": "up", "mac": "2a177953084a"}.items():
        host.write(f"sys/devices/virtual/block/etherd!e7.1/{name}", f"{text}\n")


def mapped(host, *below):
    host.disk("dm-0", "virtual", dm_name="images", dm_uuid="", slaves=below)


def serve(host, mtu, device="/dev/dm-0"):
    link(host, mtu)
    host.write("proc/4711/cmdline", "\0".join(("/usr/sbin/vblade", "7", "1", "eth1", device, "-d")) + "\0")


def look(host, *caches, previous=None):
    runner = ScriptedRunner({("udevadm", "info"): host.udev_reply, ("dmsetup",): host.udev_reply}, missing=("smartctl", "hdparm", "vgs", "dmsetup"))
    survey = Survey(caches, ())
    now = 1000.0 if previous is None else 1060.0
    return read_health(runner, Questions(previous=previous), host.root, read_caches=lambda *_: survey, tools=lambda _runner: [], clock=lambda: now)


def frames(health):
    return [finding for finding in health.findings if finding.check == "aoe_frames"]


def test_cache_over_aoe_target_is_one_complete_finding(host):
    target(host, 9000)
    mapped(host, "etherd!e7.1")
    health = look(host, OVER_TARGET)
    (found,) = frames(health)
    assert (found.severity, found.subject, found.value, found.limit) == ("warning", "images", 8704, 4096)
    for words in (
        "e7.1",
        "8704 bytes over eth1 (MTU 9000)",
        "blocks of 4 KiB",
        "92.7% of 573034428 requests",
        "set the MTU 8700 on eth1",
        "other side",
        "8718",
    ):
        assert words in found.message
    assert "\n" not in found.message
    # The histogram tells of the same fault without knowing the interface.
    assert [one.check for one in health.findings if one.subject == "images" and one.severity == "warning"] == ["aoe_frames"]


def test_finding_disappears_after_the_mtu_is_set(host):
    target(host, 9000)
    mapped(host, "etherd!e7.1")
    first = look(host, OVER_TARGET)
    target(host, 8700)
    after = dataclasses.replace(OVER_TARGET, histogram={**CASE_C, 4096: CASE_C[4096] + 5000})
    health = look(host, after, previous=from_dict(first.readings.to_dict()))
    assert frames(health) == []
    assert [one for one in health.findings if one.check == "cache_uncacheable"] == []


def test_served_cache_is_reported_on_the_target(host):
    mapped(host, "sdb")
    serve(host, 9000)
    (found,) = frames(look(host, SERVED))
    assert (found.severity, found.value) == ("warning", 8704)
    assert "served as e7.1 in frames of up to 8704 bytes over eth1 (MTU 9000)" in found.message
    serve(host, 8700)
    assert frames(look(host, SERVED)) == []


def test_frame_sizes_unused_by_initiators_are_only_a_note(host):
    mapped(host, "sdb")
    serve(host, 9000)
    first = look(host, SERVED)
    after = dataclasses.replace(SERVED, histogram={**CASE_C, 4096: CASE_C[4096] + 5000})
    (found,) = frames(look(host, after, previous=from_dict(first.readings.to_dict())))
    assert found.severity == "info"


def test_served_device_without_cache_is_no_finding(host):
    serve(host, 9000, "/dev/sdb")
    assert frames(look(host)) == []


@pytest.mark.parametrize(("mtu", "severity"), [(1500, "info"), (4200, None), (8700, None), (9000, "info")])
def test_target_without_cache_is_a_note(host, mtu, severity):
    target(host, mtu)
    health = look(host)
    assert [found.severity for found in frames(health)] == ([severity] if severity else [])
    assert health.to_dict()["healthy"] is True


@pytest.mark.parametrize(("mtu", "found"), [(8700, 0), (4200, 0), (9000, 1), (1500, 1)])
def test_cache_with_large_blocks_requires_page_aligned_frames(host, mtu, found):
    target(host, mtu)
    mapped(host, "etherd!e7.1")
    messages = [one.message for one in frames(look(host, LVM_OVER_TARGET))]
    assert len(messages) == found
    assert all("no multiple of 4 KiB, the page" in message for message in messages)


def test_cache_with_sector_blocks_accepts_every_frame_and_target_is_noted(host):
    target(host, 9000)
    mapped(host, "etherd!e7.1")
    (found,) = frames(look(host, dataclasses.replace(LVM_OVER_TARGET, type="bcache", block_size=512)))
    assert (found.severity, found.subject) == ("info", "e7.1")
    assert "set the MTU 8700" in found.message


def test_block_too_large_for_any_frame_is_reported(host):
    target(host, 9000)
    mapped(host, "etherd!e7.1")
    (found,) = frames(look(host, dataclasses.replace(OVER_TARGET, block_size=16384)))
    assert "no MTU up to 9000 carries such a block, so make the cache with blocks of 4 KiB" in found.message
    assert "cannot be determined" not in found.message


def test_negotiated_frame_size_is_used_if_target_limits_frames(host):
    target(host, 9000, carried=8192)
    mapped(host, "etherd!e7.1")
    assert frames(look(host, OVER_TARGET)) == []
