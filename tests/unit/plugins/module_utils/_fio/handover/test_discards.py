# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A job that discards is refused before anything runs where its target takes no discards."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import MeasuredHost, read_cell
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover import checks
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.checks import guard_all
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import parse
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.run import Run, decide
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

TRIM = {"rw": "trim", "bs": "64m", "ioengine": "libaio", "direct": 1}


@pytest.fixture
def root(tmp_path):
    (tmp_path / "dev").mkdir()
    for name, size in (("sdb", 2**30), ("sdb1", 2**29)):
        (tmp_path / "dev" / name).touch()
        os.truncate(tmp_path / "dev" / name, size)
    return tmp_path


def takes(root, largest, name="sdb"):
    queue = root / f"sys/class/block/{name}/queue"
    queue.mkdir(parents=True)
    (queue / "discard_max_bytes").write_text(f"{largest}\n")


def look(root, *jobs, target=None):
    disks = [BlockDevice("sdb", "/dev/sdb", "8:16", size=2**30), BlockDevice("sdb1", "/dev/sdb1", "8:17", size=2**29, parent="sdb", kind="partition")]
    runner = ScriptedRunner({("wipefs",): Reply(json.dumps({"signatures": []}))})
    host = MeasuredHost(runner, lambda _devices: None, root, lambda runner, root: Devices(disks, root))
    cells = [read_cell("v", {"name": f"c{number}", "target": target or {"device": "/dev/sdb"}, "job": job}) for number, job in enumerate(jobs)]
    return guard_all(cells, host, host.devices())


def test_device_with_discard_support_is_accepted(root):
    takes(root, 2147450880)
    assert look(root, TRIM)


@pytest.mark.parametrize("mode", ["trim", "randtrim", "trimwrite", "randtrim:4"])
def test_device_without_discard_support_is_refused_with_cell_name(root, mode):
    takes(root, 0)
    with pytest.raises(Refused, match=r"fio will not discard on /dev/sdb for the cell c1: the device takes no discards .* Leave the cell out"):
        look(root, {"rw": "randwrite"}, {**TRIM, "rw": mode})


def test_writing_job_requires_no_discard_support(root):
    takes(root, 0)
    assert look(root, {"rw": "randwrite"})


def test_partition_uses_the_queue_of_its_disk(root):
    takes(root, 0)
    with pytest.raises(Refused, match="takes no discards"):
        look(root, TRIM, target={"device": "/dev/sdb1"})


def test_kernel_without_discard_attribute_is_accepted(root):
    assert look(root, TRIM)


def test_discard_on_file_is_refused(root):
    (root / "srv").mkdir()
    with pytest.raises(Refused, match="it is a file, and fio discards only on block devices"):
        look(root, TRIM, target={"file": "/srv/x", "size": 4096})


@pytest.fixture
def loop(tmp_path):
    if os.geteuid() != 0 or not shutil.which("losetup") or not shutil.which("fio"):
        pytest.skip("a discard on a real device needs root, losetup and fio")
    image = tmp_path / "image"
    image.write_bytes(b"\1" * 2**22)
    found = subprocess.run(["losetup", "--find", "--show", str(image)], capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip("this machine has no free loop device")
    device = found.stdout.strip()
    yield device, image
    subprocess.run(["losetup", "--detach", device], check=False)


def test_fio_discards_a_whole_real_device(loop, tmp_path):
    device, image = loop
    cell = read_cell("v", {"name": "discard", "target": {"device": device}, "job": {**TRIM, "bs": "1m"}})
    words = [f"--{name}={value}" for name, value in {**TRIM, "bs": "1m"}.items()]
    report = tmp_path / "fio.json"
    done = subprocess.run(
        ["fio", "--name=discard", f"--filename={device}", *words, "--output-format=json+", f"--output={report}"], capture_output=True, check=False
    )
    text = report.read_bytes()
    run = Run(type("Completed", (), {"rc": done.returncode, "stdout": done.stdout.decode(), "stderr": done.stderr.decode()}), text, 0.0, 1.0)
    assert decide(cell.job, run, parse(text.decode())).state == "ok"
    assert image.read_bytes() == b"\0" * 2**22
    assert checks.discards(cell.job)
