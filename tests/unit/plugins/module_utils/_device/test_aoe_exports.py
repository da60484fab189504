# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which devices running AoE targets serve."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import examine
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.exports import parse_arguments, running_exports, served_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._stack import readers
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner


@pytest.fixture
def host(tmp_path):
    host = FakeHost(tmp_path)
    host.disk("sda", serial="S0")
    host.disk("sdb", serial="S1")
    return host


def serve(host, *words, pid=4711):
    host.write(f"proc/{pid}/cmdline", "\0".join(words) + "\0")


def devices_of(host):
    return read_devices(ScriptedRunner({("udevadm",): host.udev_reply}), host.root)


def test_arguments_are_parsed_in_manual_and_debian_unit_order():
    first = parse_arguments(["-d", "-b", "64", "7", "1", "eth1", "/dev/sda"])
    assert first == parse_arguments(["7", "1", "eth1", "/dev/sda", "-b", "64", "-d"])
    assert (first.address, first.direct, first.sync, first.read_only, first.buffers) == ("e7.1", True, False, False, 64)
    last = parse_arguments(["7", "2", "eth1", "/dev/sda", "-s", "-r", "-m", "00:AA:00:00:00:01,00:aa:00:00:00:02", "-o", "8"])
    assert (last.sync, last.read_only, last.macs, last.other) == (True, True, ("00:aa:00:00:00:01", "00:aa:00:00:00:02"), (("-o", "8"),))


@pytest.mark.parametrize(
    "words", [[], ["7", "1", "eth1"], ["x", "1", "eth1", "/dev/sda"], ["-z", "7", "1", "eth1", "/dev/sda"], ["-b", "x", "7", "1", "e", "/f"]]
)
def test_arguments_that_start_no_target(words):
    assert parse_arguments(words) is None


def test_served_device_is_found_with_trailing_options(host):
    serve(host, "/usr/sbin/vblade", "7", "1", "eth1", "/dev/sda", "-d", "-s")
    serve(host, "/usr/bin/python3", "/x/vblade", "7", "2", "eth1", "/dev/sda", pid=4712)
    serve(host, "grep", "-r", "vblade", "/dev/sdb", pid=4713)
    served = served_devices(devices_of(host), host.root)
    assert {name: [one.address for one in exports] for name, exports in served.items()} == {"sda": ["e7.1", "e7.2"]}
    assert [one.pid for one in running_exports(host.root)] == [4711, 4712]


def test_relative_path_is_resolved_from_process_working_directory(host):
    serve(host, "vblade", "7", "1", "eth1", "sdb")
    (host.root / "proc/4711/cwd").symlink_to("/dev")
    assert list(served_devices(devices_of(host), host.root)) == ["sdb"]


def test_file_is_attributed_to_device_of_its_file_system(host, monkeypatch):
    image = host.write("srv/image", "")
    number = image.stat().st_dev
    host.write("sys/class/block/sdb/dev", f"{os.major(number)}:{os.minor(number)}\n")
    serve(host, "vblade", "7", "1", "eth1", "/srv/image")
    assert list(served_devices(devices_of(host), host.root)) == ["sdb"]


def test_served_device_is_found_through_links(host):
    host.link("/dev/disk/by-id/ata-X", "sda")
    serve(host, "vblade", "7", "1", "eth1", "/dev/disk/by-id/ata-X")
    found = served_devices(devices_of(host), host.root)
    assert {name: [one.address for one in exports] for name, exports in found.items()} == {"sda": ["e7.1"]}


def test_served_device_is_refused_as_cache_device(host):
    serve(host, "vblade", "7", "1", "eth1", "/dev/sda", "-r")
    runner = ScriptedRunner({("wipefs",): Reply(""), ("udevadm",): host.udev_reply})
    assert "is served to other hosts by vblade e7.1 on eth1" in examine(runner, "/dev/sda", host.root, lambda _seconds: None).reasons
    assert examine(runner, "/dev/sdb", host.root, lambda _seconds: None).reasons == []


def test_target_and_initiator_are_stack_layers(host):
    host.disk("etherd!e7.1", "virtual", write_cache="write through")
    for name, text in {"payload": "8704", "netif": "eth1", "state": "up", "mac": "2a177953084a"}.items():
        host.write(f"sys/devices/virtual/block/etherd!e7.1/{name}", text + "\n")
    host.write("sys/class/net/eth1/mtu", "9000\n")
    serve(host, "vblade", "7", "1", "eth1", "/dev/sda")
    devices = devices_of(host)
    ((name, facts),) = readers.read_exports(devices, None, host.root, ())
    assert (name, facts.layer, facts.volatile, facts.state["aoe_target"]) == ("sda", "memory", True, "e7.1")
    ((name, facts),) = readers.read_elsewhere(devices, None, host.root, ())
    assert (name, facts.state) == ("etherd!e7.1", {"interfaces": ["eth1"], "mtu": 9000, "payload": 8704, "target_state": "up"})


def opens(host, path, pid=4711):
    """The process has this open: a link to the file, as in proc."""
    folder = host.root / f"proc/{pid}/fd"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / str(3 + len(list(folder.iterdir())))).symlink_to(host.root / path.lstrip("/"))


def test_process_without_open_device_serves_nothing(host):
    host.write("dev/null", "")
    serve(host, "vblade", "7", "1", "eth1", "/dev/sda")
    opens(host, "/dev/null")
    serve(host, "vblade", "7", "2", "eth1", "/dev/sda", pid=4712)
    opens(host, "/dev/sdb", pid=4712)
    assert running_exports(host.root) == []
    assert served_devices(devices_of(host), host.root) == {}


def test_device_opened_by_another_path_is_served(host):
    host.link("/dev/disk/by-id/ata-X", "sda")
    serve(host, "vblade", "7", "1", "eth1", "/dev/disk/by-id/ata-X")
    opens(host, "/dev/sda")
    assert list(served_devices(devices_of(host), host.root)) == ["sda"]


def test_hard_linked_file_is_served_under_each_name(host):
    image = host.write("srv/image", "content")
    os.link(image, host.root / "srv/other")
    serve(host, "vblade", "7", "1", "eth1", "/srv/image")
    opens(host, "/srv/other")
    assert [one.path for one in running_exports(host.root)] == ["/srv/image"]


def test_unrelated_process_with_the_same_name_is_ignored(tmp_path):
    program = tmp_path / "vblade"
    program.write_text("import time\ntime.sleep(300)\n")
    (tmp_path / "image").write_text("")
    with subprocess.Popen([sys.executable, str(program), "7", "1", "lo", str(tmp_path / "image")]) as process:
        try:
            assert process.pid not in [one.pid for one in running_exports()]
        finally:
            process.kill()
    program.write_text("import sys, time\nopened = open(sys.argv[4])\nprint(flush=True)\ntime.sleep(300)\n")
    with subprocess.Popen([sys.executable, str(program), "7", "1", "lo", str(tmp_path / "image")], stdout=subprocess.PIPE) as process:
        try:
            process.stdout.readline()
            assert process.pid in [one.pid for one in running_exports()]
        finally:
            process.kill()
