# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever writes to a device or erases it refuses what it cannot see the users of: one real device, every caller of the guard."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

#: What each caller says of a device.
_CALLERS = """
import json, sys
from pathlib import Path
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import cache_device
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.fast_device import read_host_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.purge.held import read_sameness
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import unit_of
from ansible_collections.cachefleet.storage.plugins.module_utils._guard import examination, judge
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, TargetFacts
from ansible_collections.cachefleet.storage.plugins.module_utils._health.over_provisioning import OverProvisioningLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._health.over_provisioning import DiscardDrive
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import host_writer
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.spec import RunSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._purge.layer import PurgeLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._purge.plan import read_drives
from ansible_collections.cachefleet.storage.plugins.module_utils._volumes.spec import VolumeSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._volumes.state import HostReader

path, folder = sys.argv[1:]
runner, root, devices = Runner(), Path("/"), read_devices(Runner())
still = lambda seconds: None

def fio():
    facts = examination.examine(devices, GuardTarget(path), runner, pause=still)
    judge.require(facts, writing=True)

def fio_before_a_cell():
    device = devices.resolve(path)
    facts = TargetFacts(GuardTarget(path), path, size=device.size, device=device, unit=unit_of(path), sameness=read_sameness(device.name, runner))
    judge.require_unchanged(facts, runner)

def cache_device_alone():
    return cache_device.examine(runner, path, root, still).reasons

def cache_origin():
    return cache_device.examine(runner, path, root, still, empty=False).reasons

def cache_devices_of_a_list():
    return [finding.reasons for finding in read_host_devices(runner, devices, [path], sleep=still).findings.values()]

def over_provisioning():
    OverProvisioningLayer(runner, [], sleep=still).carry_out(DiscardDrive(), Step("over_provisioning", path, "x", "", "", "x", DiscardDrive()))

def purge():
    drives = read_drives([{"device": path, "identity": None, "allow_data_loss": True, "allow_purge": True, "method": "auto"}], None)
    return [state.refusal for state in PurgeLayer(runner, drives, sleep=still).read().values()]

def volumes():
    reader = HostReader(runner, Path(folder))
    return [one.text for one in reader._judge(VolumeSpec("v", (path,)), path)]

def power_loss_writer():
    host_writer.examine(GuardTarget(path), RunSpec(path, "device", None, 2**20), devices, runner)

said = {}
for caller in (fio, fio_before_a_cell, cache_device_alone, cache_origin, cache_devices_of_a_list, over_provisioning, purge, volumes, power_loss_writer):
    try:
        said[caller.__name__] = str(caller() or "")
    except StorageError as error:
        said[caller.__name__] = error.message
print(json.dumps(said))
"""

_IN_FLIGHT = (
    "import array, os, socket; one, other = socket.socketpair(); f = os.open({path!r}, os.O_RDWR);"
    " one.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [f]))]); os.close(f); print(1, flush=True); input()"
)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="loop devices and namespaces require root")


@pytest.fixture
def loop(tmp_path):
    image = tmp_path / "image"
    with open(image, "wb") as stream:
        stream.truncate(4 * 1024**2)
    made = subprocess.run(["losetup", "--find", "--show", str(image)], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no loop device: {made.stderr.strip()}")
    yield made.stdout.strip()
    subprocess.run(["losetup", "--detach", made.stdout.strip()], check=True)


def callers(loop, folder, *prefix):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    completed = subprocess.run([*prefix, sys.executable, "-c", _CALLERS, loop, str(folder)], capture_output=True, text=True, check=False, env=environment)
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


def test_every_caller_refuses_in_another_pid_namespace(loop, tmp_path):
    said = callers(loop, tmp_path, "unshare", "--mount", "--pid", "--fork", "--mount-proc")
    assert len(said) == 9
    assert {name: text for name, text in said.items() if "PID namespace" not in text} == {}


@pytest.mark.skipif(not os.environ.get("CACHEFLEET_LONG"), reason="other tests that examine this host would be refused meanwhile")
def test_every_caller_refuses_while_a_descriptor_is_in_flight(loop, tmp_path):
    with subprocess.Popen([sys.executable, "-c", _IN_FLIGHT.format(path=loop)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        said = callers(loop, tmp_path)
        process.communicate(b"\n")
    assert {name: text for name, text in said.items() if "has been sent a file descriptor over a socket" not in text} == {}


def test_no_caller_says_so_otherwise(loop, tmp_path):
    said = callers(loop, tmp_path)
    assert {name: text for name, text in said.items() if "may be in use" in text and "open files of" not in text} == {}
