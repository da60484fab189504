# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection has put on a host is removed, whole, or nothing of it if some of it is still needed."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core import background_process
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.made_files import MARK, MadeFiles
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import Spool
from ansible_collections.cachefleet.storage.plugins.module_utils._host import host_files
from ansible_collections.cachefleet.storage.plugins.module_utils._sweep.host_files import HostFilesLayer

SPOOL = "var/lib/cachefleet/spool"
UNIT = "etc/systemd/system/cachefleet-dm_cache-images.service"
LINK = "etc/systemd/system/sysinit.target.wants/cachefleet-dm_cache-images.service"
ALIVE = {"pid": os.getpid(), "pid_started": background_process.started_of(os.getpid()), "boot_id": background_process.boot_id()}


class Runner:
    def __init__(self):
        self.calls = []

    def has(self, name):
        return name != "systemctl"

    def run(self, words, **_how):
        self.calls.append(list(words))


class Host:
    def __init__(self, root):
        self.root, self.runner = root, Runner()

    def write(self, path, content="# x\n"):
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content if isinstance(content, str) else json.dumps(content))
        return place

    def run(self, *, check_mode=False, spool=f"/{SPOOL}"):
        return converge(HostFilesLayer(self.runner, spool, self.root), check_mode=check_mode)

    def files(self):
        return {str(path.relative_to(self.root)): path.read_bytes() if path.is_file() else b"" for path in self.root.rglob("*")}

    def refused(self, text, error=Refused, **how):
        before = self.files()
        for check_mode in (True, False):
            with pytest.raises(error, match=text) as caught:
                self.run(check_mode=check_mode, **how)
            assert "\n" not in caught.value.message
        assert (self.files(), self.runner.calls) == (before, [])
        return caught.value.message


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def _example(pattern):
    return pattern.replace("*", "x") + ("file" if pattern.endswith("/") else "")


def _removable():
    return [row for row in host_files.TABLE if not row.needed]


def test_everything_is_removed_and_the_second_run_changes_nothing(host):
    others = ["etc/udev/rules.d/99-own.rules", "etc/modprobe.d/own.conf", "var/lib/other/x", "etc/vblade.conf.d/own.conf"]
    for path in [*others, *(_example(row.pattern) for row in _removable())]:
        host.write(path)
    host.write("etc/netplan/.cachefleet-abc.tmp")
    predicted = host.run(check_mode=True)
    assert len(host.files()) > len(others)
    outcome = host.run()
    assert outcome.to_dict() == predicted.to_dict() and outcome.changed and outcome.warnings == ()
    left = [path for path in host.files() if (host.root / path).is_file()]
    assert sorted(left) == sorted(others)
    # Nor is a folder left that only the collection has.
    assert not any("cachefleet" in path or path.endswith("x.d") for path in host.files() if not path.startswith("etc/udev"))
    assert host.runner.calls == [["udevadm", "control", "--reload"]]
    again = host.run()
    assert (again.changed, len(host.runner.calls)) == (False, 1)


@pytest.mark.parametrize("row", _removable(), ids=lambda row: row.pattern)
def test_every_row_is_removed_alone(host, row):
    host.write(_example(row.pattern))
    (step, *_rest) = host.run(check_mode=True).steps
    assert step.item == "/" + (row.pattern.rstrip("/").replace("*", "x"))
    host.run()
    assert not (host.root / _example(row.pattern)).exists()


@pytest.mark.parametrize("row", [row for row in host_files.TABLE if row.needed], ids=lambda row: row.pattern)
def test_what_is_needed_is_refused_before_anything_is_removed(host, row):
    host.write(_removable()[0].pattern)
    path = _example(row.pattern) + (".json" if row.pattern.endswith("/") else "")
    host.write(path, '# Written by cachefleet.storage.x\n{"a": {}}')
    message = host.refused("Nothing was removed")
    assert row.needed in message and f"/{row.pattern.rstrip('/').replace('*', 'x')} " in message


def test_a_record_without_an_entry_is_not_needed(host):
    host.write("run/cachefleet.storage/bcache-flush.json", "{}\n")
    (host.root / "var/lib/cachefleet/sweep").mkdir(parents=True)
    assert host.run().changed and host.files() == dict.fromkeys(("run", "var", "var/lib"), b"")


def test_a_target_of_another_is_not_ours(host):
    host.write("etc/vblade.conf.d/own.conf", "shelf=7\n")
    assert not host.run().changed


def test_a_link_that_enables_a_unit_which_is_gone_is_refused(host):
    (host.root / LINK).parent.mkdir(parents=True)
    (host.root / LINK).symlink_to("/nowhere")
    host.refused("brings its cache up at boot")


def test_a_running_cache_without_its_unit_is_refused(host):
    host.write("etc/udev/rules.d/09-cachefleet-dm-cache.rules")
    host.write("sys/block/dm-3/dm/uuid", "CACHEFLEET-META-images")
    host.write("sys/block/dm-3/dm/name", "cachefleet-images-meta\n")
    host.refused("The device cachefleet-images-meta of a cache of dm_cache is in use")


@pytest.mark.parametrize("spool", [SPOOL, "srv/spool"])
def test_a_measurement_that_runs_is_refused(host, spool):
    place = host.write(f"{spool}/c1/runner.json", ALIVE)
    host.refused("The measurement c1 runs on this host: wait for its end, or stop it", spool=f"/{spool}")
    place.write_text(json.dumps({**ALIVE, "boot_id": "another"}))
    assert host.run(spool=f"/{spool}").changed and not (host.root / spool).exists()


STOPPED = {**ALIVE, "boot_id": "another"}
FOREIGN = ("etc/passwd", "home/x/notes", "order/order.json", "app/runner.json", "a/b/c/d/meta.json", "c1.tar.gz", ".lock")


@pytest.mark.parametrize("folder", ["", "srv", "srv/data/"])
def test_only_campaigns_are_removed_from_a_spool_that_is_used_for_something_else_too(host, folder):
    base = host.root / folder
    for name in FOREIGN:
        host.write(base / name, "x")
    os.symlink(base / "home", base / "link")
    for name, status in {"c1/runner.json": STOPPED, "c2/order.json": {"order_sha256": "x"}, "c3/progress.json": {"variant": "v"}}.items():
        host.write(base / name, status)
    host.write(base / "c1/runner.log")
    host.write(base / "c1.tar")
    outcome = host.run(spool=f"/{folder}")
    above = "/" + folder.strip("/")
    assert {step.item for step in outcome.steps} == {str(Path(above, name)) for name in ("c1", "c1.tar", "c2", "c3", ".lock")}
    assert sorted(warning.split(" ")[0] for warning in outcome.warnings) == [str(Path(above, name)) for name in ("app", "order")]
    kept = {str(path.relative_to(base)) for path in base.rglob("*") if path.is_file()}
    assert kept == set(FOREIGN) - {".lock"} and (base / "link").is_symlink()
    assert not host.run(spool=f"/{folder}").changed


def test_spool_without_a_campaign_is_not_touched(host):
    host.write("srv/.lock", "")
    host.write("srv/x/notes")
    before = host.files()
    assert not host.run(spool="/srv").changed and host.files() == before


def test_cells_that_were_not_collected_are_refused(host):
    host.write(f"{SPOOL}/c1/before/read/1/meta.json", "{}")
    host.refused("has 1 measured cell that was not collected: collect it .the playbook benchmark with fio_benchmark_campaign=c1")


def test_a_trace_that_is_recorded_or_was_not_fetched_is_refused(host):
    place = host.write("var/lib/cachefleet/traces/monday/runner.json", ALIVE)
    host.refused("The trace monday is being recorded on this host: wait for its end, or stop it")
    place.write_text(json.dumps(STOPPED))
    host.refused("has a trace that was not fetched: fetch it .the playbook io_trace with io_trace_name=monday.")
    # Of a start that was interrupted.
    place.rename(place.with_name("order.json"))
    assert host.run().changed and not (host.root / "var/lib/cachefleet/traces").exists()


def test_a_held_spool_is_refused(host):
    with open(host.write(f"{SPOOL}/.lock", ""), "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        host.refused("A measurement holds the spool")
    assert host.run().changed


def test_a_status_that_is_damaged_is_an_error(host):
    host.write(f"{SPOOL}/c1/runner.json", "{")
    host.refused("cannot be used", StorageError)


def test_a_run_that_changes_the_host_is_refused(host):
    with open(host.write("run/cachefleet.storage/lvm_cache.lock", ""), "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        host.refused("Another run is changing lvm_cache on this host: wait for its end.")
    assert host.run().changed


def test_a_purge_that_was_interrupted_is_refused(host):
    place = host.write("var/lib/cachefleet/purges/x.json", {"state": "running", "device": "/dev/sdx"})
    host.refused("is of a purge of /dev/sdx that runs or was interrupted")
    place.write_text(json.dumps({"state": "done", "device": "/dev/sdx"}))
    assert host.run().changed


def test_a_change_of_the_network_that_is_not_confirmed_is_refused(host):
    place = host.write("var/lib/cachefleet/storage_network/journal.json", {"token": "x"})
    host.refused("is of a change of the network that is not confirmed")
    place.unlink()
    host.write("var/lib/cachefleet/storage_network/last.json", {})
    assert host.run().changed


def test_a_spool_in_a_folder_of_another_user_is_refused(host):
    host.write("home/spool/x/runner.json", {})
    os.chown(host.root / "home", 4321, 4321)
    host.refused("belongs to the user with UID 4321", spool="/home/spool")


def _made(host, path, *, changed):
    """A file that a measurement has made and left, and that was changed since or not."""
    spool = Spool(host.root / SPOOL, "c1")
    spool.make()
    place = host.root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    files = MadeFiles(spool, host.root)
    os.close(files.make(f"/{path}"))
    try:
        os.getxattr(place, MARK)
    except OSError:
        pytest.skip("This file system keeps no extended attributes.")
    place.write_bytes(b"x" * 512)
    files.leave([(f"/{path}", True)])
    if changed:
        os.truncate(place, 1024)
    return place


@pytest.mark.parametrize("changed", [False, True])
def test_files_of_measurements_are_removed_unless_changed(host, changed):
    place = _made(host, "srv/target.bin", changed=changed)
    outcome = host.run()
    assert (place.exists(), (host.root / SPOOL).exists()) == (changed, False)
    assert bool(outcome.warnings) == changed
    assert not changed or outcome.warnings[0].startswith("/srv/target.bin was made for a measurement and changed since, so that it is left")
    assert outcome.steps[0].action.startswith("Remove /srv/target.bin, which was made for measurements") != changed
    assert not host.run().changed


def test_what_the_collection_does_not_write_is_left_and_named(host):
    host.write("var/lib/cachefleet/notes.txt")
    host.write("var/lib/cachefleet/released/x.json", "{}")
    outcome = host.run()
    assert outcome.warnings == (
        "/var/lib/cachefleet/notes.txt is where this collection keeps files and is none of them, so that it is left: remove it by hand if it is not needed.",
    )
    assert [path for path in host.files() if path.endswith(("txt", "json"))] == ["var/lib/cachefleet/notes.txt"]


def test_the_difference_has_the_text_of_a_file(host):
    host.write("etc/modprobe.d/cachefleet-block-queue.conf", "options nvme poll_queues=2\n")
    diff = host.run(check_mode=True).to_dict()["diff"]
    assert diff["before"]["/etc/modprobe.d/cachefleet-block-queue.conf"] == {"file": "options nvme poll_queues=2\n"}
    assert diff["after"]["/etc/modprobe.d/cachefleet-block-queue.conf"] == {"file": None}


def test_a_file_that_cannot_be_removed_is_one_sentence(host, monkeypatch):
    host.write("etc/modprobe.d/cachefleet-block-queue.conf")

    def fails(self, *_args, **_how):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "unlink", fails)
    with pytest.raises(CommandFailed, match=r"cachefleet-block-queue.conf cannot be removed: Read-only file system\.$") as caught:
        host.run()
    assert caught.value.facts["broke_off"].startswith("Remove ")
