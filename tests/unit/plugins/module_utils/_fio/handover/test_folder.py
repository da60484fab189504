# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A directory as a target: real files, and what others could put in their place."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, DeviceMissing, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import unit_of
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import extent, room
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import job as fio_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import Cell, is_read_only, read_cell, time_before, what_was_measured
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover import held
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.held import handed_over
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.made_files import MARK, MadeFiles
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import CellKey, Spool
from ansible_collections.cachefleet.storage.plugins.module_utils._guard import examination, judge
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, TargetFacts

READ = {"rw": "randread", "bs": "4k", "nrfiles": 3, "filesize": "4k-12k", "numjobs": 2}


def job_of(**options):
    return fio_job.read_job({**READ, **options}, "c")


class Host:
    """A host whose root is a folder of the test."""

    def __init__(self, root):
        self.root = root
        self.spool = Spool(root / "spool", "c1")
        (root / "srv").mkdir()
        (root / "spool").mkdir(mode=0o700)
        (root / "proc").mkdir()
        self.place = root / "srv/files"
        self.target = GuardTarget("/srv/files", kind="directory")

    def made(self, campaign="c1"):
        return MadeFiles(Spool(self.root / "spool", campaign), self.root)

    def examine(self, campaign="c1", target=None):
        return examination.examine(Devices([], self.root), target or self.target, Runner(), self.root, created=self.made(campaign).paths())

    def use(self, job, facts=None, campaign="c1"):
        """What fio would get."""
        made = self.made(campaign)
        facts = facts or self.examine(campaign)
        with handed_over(facts, job, made, self.root) as given:
            names = sorted(os.listdir(given.facts.path))
        made.leave([(facts.path, job.writes)])
        return given, names


@pytest.fixture
def host(tmp_path):
    try:
        os.setxattr(tmp_path, MARK, b"x")
    except OSError:
        pytest.skip("the file system of the test keeps no extended attributes")
    return Host(tmp_path)


def test_folder_and_files_are_made_with_contents_and_found_again(host):
    facts = host.examine()
    assert (facts.exists, facts.size) == (False, 0)
    given, names = host.use(job_of(), facts)
    assert given.facts.path.startswith("/proc/self/fd/") and given.facts.path.endswith("/.")
    assert names == ["s0.0.0", "s0.0.1", "s0.0.2", "s0.1.0", "s0.1.1", "s0.1.2"]
    assert [os.path.getsize(host.place / name) for name in names] == [4096, 8192, 12288] * 2
    assert all(any((host.place / name).read_bytes()[-4096:]) for name in names)
    assert (host.place.stat().st_mode & 0o777, {(host.place / name).stat().st_mode & 0o777 for name in names}) == (0o700, {0o600})
    assert given.units == {unit_of(host.place / name) for name in names}
    assert given.note == f"; fio got the open folder as directory={given.facts.path}"
    before = {name: (host.place / name).stat().st_ino for name in names}
    found = host.examine()
    assert (found.exists, found.size, found.files["s0.1.2"]) == (True, 49152, 12288)
    # A job that writes gets the same files, and one that needs more of them gets more.
    _given, names = host.use(job_of(rw="randwrite", nrfiles=4, filesize="8k"))
    assert len(names) == 8 and {name: (host.place / name).stat().st_ino for name in before} == before
    assert [os.path.getsize(host.place / name) for name in names] == [8192, 8192, 12288, 8192] * 2


@pytest.mark.parametrize("how", ["file", "link", "folder", "hard link", "other name", "fifo"])
def test_anything_else_in_it_is_refused(host, how):
    host.use(job_of())
    (host.root / "victim").write_text("data")
    place = host.place / "s0.7.7"
    if how == "file":
        (host.place / "mine").write_text("x")
    elif how == "link":
        os.symlink("../../victim", place)
    elif how == "folder":
        place.mkdir()
    elif how == "hard link":
        os.link(host.root / "victim", place)
    elif how == "other name":
        os.rename(host.place / "s0.0.0", host.place / "s0.0.0.old")
    else:
        os.mkfifo(place)
    with pytest.raises(Refused, match=r"fio will not write in /srv/files: it contains \S+, which the collection did not make there"):
        host.examine()
    assert (host.root / "victim").read_text() == "data"


def test_folder_of_a_user_is_refused(host):
    host.place.mkdir(mode=0o700)
    with pytest.raises(Refused, match="the collection did not make this directory"):
        host.examine()
    # Neither does a mark that was copied, nor a permission.
    os.setxattr(host.place, MARK, b"made up")
    with pytest.raises(Refused, match="the collection did not make this directory"):
        host.examine()
    with pytest.raises(BadInput, match="allow_data_loss is not supported for a directory"):
        read_cell("v", {"name": "c", "target": {"directory": "/srv/files", "allow_data_loss": True}, "job": READ})


def test_links_files_and_missing_parents_are_refused(host):
    host.use(job_of())
    os.symlink("files", host.root / "srv/link")
    (host.root / "srv/plain").write_text("x")
    for path, error, words in (
        ("/srv/link", Refused, "is a symbolic link"),
        ("/srv/plain", DeviceMissing, "is not a directory"),
        ("/srv/none/files", DeviceMissing, "does not exist on this host: create it first"),
        ("/proc/files", Refused, "is in proc"),
        ("/", Refused, "collection did not make this directory|cannot"),
    ):
        with pytest.raises(error, match=words):
            host.examine(target=GuardTarget(path, kind="directory"))


def test_folder_that_others_can_use_is_refused(host):
    host.use(job_of())
    host.place.chmod(0o750)
    with pytest.raises(Refused, match="other users can use this directory now"):
        host.examine()


@pytest.mark.parametrize("how", ["link", "other folder", "gone", "unmarked"])
def test_folder_that_was_exchanged_after_its_examination_is_refused(host, how):
    host.use(job_of())
    facts = host.examine()
    victim = host.root / "victim"
    victim.mkdir(mode=0o700)
    if how == "unmarked":
        os.removexattr(host.place, MARK)
    else:
        os.rename(host.place, host.root / "away")
    if how == "link":
        os.symlink(victim, host.place)
    elif how == "other folder":
        os.rename(victim, host.place)
        victim = host.place
    with pytest.raises(Refused, match="is no longer the directory that was examined"):
        host.use(job_of(), facts)
    assert not victim.exists() or os.listdir(victim) == [] or how == "unmarked"


def test_file_that_was_put_there_after_the_examination_is_refused(host):
    host.use(job_of())
    facts = host.examine()
    (host.root / "victim").write_text("data")
    os.unlink(host.place / "s0.0.1")
    os.symlink("../../victim", host.place / "s0.0.1")
    with pytest.raises(Refused, match=r"it contains s0\.0\.1"):
        host.use(job_of(rw="randwrite"), facts)
    assert (host.root / "victim").read_text() == "data"


def test_new_folder_that_another_process_made_first_is_not_used(host):
    facts = host.examine()
    host.place.mkdir()
    with pytest.raises(CommandFailed, match="/srv/files cannot be made on this host: File exists"):
        host.use(job_of(), facts)
    assert os.listdir(host.place) == []


def test_next_campaign_uses_it_until_something_in_it_is_changed(host):
    host.use(job_of())
    assert len(host.use(job_of(), campaign="c2")[1]) == 6
    with open(host.place / "s0.0.0", "r+") as file:
        file.write("changed")
    with pytest.raises(Refused, match="or it was changed since"):
        host.examine("c3")
    assert host.examine("c2").exists


def test_run_that_was_killed_while_files_were_made_goes_on(host, monkeypatch):
    real, count = held.os.open, []

    def killed(name, flags, *more, **where):
        if str(name).startswith("s0."):
            count.append(name)
            if len(count) == 4:
                raise KeyboardInterrupt
        return real(name, flags, *more, **where)

    monkeypatch.setattr(held.os, "open", killed)
    with pytest.raises(KeyboardInterrupt):
        host.use(job_of())
    monkeypatch.undo()
    assert len(os.listdir(host.place)) == 3
    os.truncate(host.place / "s0.0.2", 100)
    with pytest.raises(Refused, match="the collection did not make this directory"):
        host.examine("c2")
    assert len(host.use(job_of())[1]) == 6
    assert os.path.getsize(host.place / "s0.0.2") == 12288


def test_file_system_without_marks_is_refused_and_nothing_stays(host, monkeypatch):
    def refused(*_args, **_more):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "setxattr", refused)
    with pytest.raises(CommandFailed, match=r"/srv/files is not made on this host: its file system keeps no extended attributes"):
        host.use(job_of())
    assert not host.place.exists()
    monkeypatch.undo()
    shutil.rmtree(host.root / "spool")
    with pytest.raises(CommandFailed, match=r"made_files\.json cannot be written: No such file or directory"):
        host.use(job_of(), TargetFacts(host.target, path="/srv/files", exists=False))
    assert not host.place.exists()


def test_space_and_inodes_are_those_of_all_cells_together():
    target = GuardTarget("/srv/files", kind="directory")
    cells = [Cell(CellKey("v", name, 1), target, job_of(**more)) for name, more in (("a", {"filesize": "1m"}), ("b", {"nrfiles": 5, "filesize": "5000"}))]
    facts = TargetFacts(target=target, path="/srv/files", exists=True, free=2**30, inodes=100, files={"s0.0.0": 2**20, "s0.0.1": 100})
    # Four of six files of 1 MiB grow whole, one but for its 100 bytes, and four of 5000 bytes take two blocks each.
    needed = 5 * 2**20 - 100 + 4 * 8192
    assert room.growth(cells[0], facts) == 5 * 2**20 - 100
    with pytest.raises(Refused, match=rf"{needed + needed // 1024 + 2**20} bytes\) more on one file system, and .* are free"):
        room.require_room((cell, TargetFacts(target=target, path="/srv/files", free=2**20, files=facts.files)) for cell in cells)
    room.require_room((cell, facts) for cell in cells)
    with pytest.raises(Refused, match="8 more files are needed, and its file system has inodes for 7"):
        room.require_room((cell, TargetFacts(target=target, path="/srv/files", free=2**30, inodes=7, files=facts.files)) for cell in cells)


def test_thin_pool_below_must_have_room_for_what_is_added(monkeypatch):
    class Pool:
        def problem(self, high, grows):
            return None if grows <= 4096 else f"the pool lacks room for {grows}"

    facts = TargetFacts(GuardTarget("/srv/files", kind="directory"), path="/srv/files", rooms=(Pool(),))
    judge.require(facts, writing=False, extent=4096)
    with pytest.raises(Refused, match="the pool lacks room for 8192"):
        judge.require(facts, writing=False, extent=8192)


def test_open_files_are_in_use(host):
    facts = TargetFacts(GuardTarget("/srv/files", kind="directory"), path="/srv/files", writers=("dd (7)",), readers=("tar (8)",))
    with pytest.raises(Refused, match=r"open for writing in dd \(7\); /srv/files is open for reading in tar \(8\)"):
        judge.require(facts, writing=False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nrfiles": 1000000}, "nrfiles of all processes together is 2000000, and at most 65536 files are made"),
        ({"nrfiles": 0}, "must be"),
        ({"nrfiles": "many"}, "must be"),
        ({"filesize": "600k"}, r"its 6 files have 3.516 MiB \(3686400 bytes\) together, but the target has a size of 1048576 bytes"),
        ({"filesize": None}, "sets? how large its files are|not set how large its files are"),
        ({"filesize": None, "size": "50%"}, "does not set how large its files are"),
        ({"offset": "4k"}, "offset is not supported in a directory"),
        ({"fill_device": 1}, "fill_device is not supported in a directory"),
        ({"zonemode": "strided", "zonesize": "4k"}, "zonemode is not supported in a directory"),
        ({"rw": "trim"}, "is not supported in a directory"),
        ({"ioengine": "sg"}, "is not supported in a directory"),
    ],
)
def test_jobs_without_a_known_number_of_bytes_are_rejected(options, words):
    job = {key: value for key, value in {**READ, **options}.items() if value is not None}
    with pytest.raises(BadInput, match=words):
        read_cell("v", {"name": "c", "target": {"directory": "/srv/files", "size": 2**20}, "job": job})


def test_files_of_a_job():
    assert extent.files_of(job_of(numjobs=1, nrfiles=3, filesize="5000-6000")) == {"s0.0.0": 5000, "s0.0.1": 5500, "s0.0.2": 6000}
    by_size = fio_job.read_job({**{key: value for key, value in READ.items() if key != "filesize"}, "numjobs": 1, "size": "100k", "bs": "8k"}, "c")
    assert extent.files_of(by_size) == dict.fromkeys(("s0.0.0", "s0.0.1", "s0.0.2"), 40960)
    two = fio_job.read_job(
        {"jobs": [{"name": "b", **READ, "numjobs": 1, "nrfiles": 1}, {"name": "a", **READ, "numjobs": 1, "nrfiles": 1, "filesize": "1k"}]}, "c"
    )
    assert extent.files_of(two) == {"s0.0.0": 4096, "s1.0.0": 1024}
    text = fio_job.render(two, TargetFacts(GuardTarget("/srv/files", kind="directory"), path="/proc/self/fd/7/."))
    assert "directory=/proc/self/fd/7/." in text and "allow_file_create=0" in text and "filename=" not in text and "\nsize=" not in text
    assert text.count("filename_format=s0.$jobnum.$filenum") == text.count("filename_format=s1.$jobnum.$filenum") == 1


def test_open_files_of_one_process():
    assert extent.open_at_once(job_of()) == 3
    assert extent.open_at_once(job_of(openfiles=2)) == 2
    assert extent.open_at_once(job_of(thread=True)) == 6


def test_limit_of_open_files_is_raised_as_far_as_the_host_allows(monkeypatch):
    limits = []
    monkeypatch.setattr(held.resource, "getrlimit", lambda _which: (1024, 4096))
    monkeypatch.setattr(held.resource, "setrlimit", lambda _which, both: limits.append(both))
    held.require_descriptors(job_of(nrfiles=900), "/srv/files")
    assert limits == []
    held.require_descriptors(job_of(nrfiles=2000), "/srv/files")
    assert limits == [(4096, 4096)]
    with pytest.raises(Refused, match=r"would have 5064 files open in /srv/files at once, and this host allows 4096 \(ulimit -Hn\): set openfiles"):
        held.require_descriptors(job_of(nrfiles=5000), "/srv/files")


@pytest.mark.parametrize("option", ["nrfiles", "openfiles"])
@pytest.mark.parametrize("target", [{"device": "/dev/sdb"}, {"file": "/srv/f", "size": 4096}])
def test_several_files_need_a_directory(option, target):
    with pytest.raises(BadInput, match=f"{option} needs a target that is a 'directory'"):
        read_cell("v", {"name": "c", "target": target, "job": {"rw": "read", option: 4}})


def test_what_was_measured_is_the_directory_whatever_lies_in_it_already():
    one, other = ({"kind": "directory", "identity": "/srv/files", "size": size, "used_size": None} for size in (0, 49152))
    assert what_was_measured(one) == what_was_measured(other)
    facts = TargetFacts(GuardTarget("/srv/files", kind="directory"), path="/srv/files", exists=False)
    cell = Cell(CellKey("v", "c", 1), facts.target, job_of())
    assert is_read_only(cell, facts)
    assert time_before(cell.job, facts) > 0


@pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio")
@pytest.mark.parametrize(
    "options", [{}, {"rw": "randrw"}, {"filesize": "10k"}, {"size": "100k"}, {"bsrange": "1k-8k"}, {"file_service_type": "random"}, {"openfiles": 1}]
)
def test_fio_uses_the_files_and_makes_none(host, options):
    sizes = {"filesize": None} if "size" in options else {}
    job = fio_job.read_job({key: value for key, value in {**READ, **options, **sizes}.items() if value is not None}, "c")
    facts = host.examine()
    with handed_over(facts, job, host.made(), host.root) as given:
        before = {name: (os.stat(host.place / name).st_ino, os.path.getsize(host.place / name)) for name in os.listdir(host.place)}
        (host.root / "job.fio").write_text(fio_job.render(job, given.facts))
        done = folder_run(host.root, given.descriptors)
        assert done.returncode == 0, done.stderr
        assert {name: (os.stat(host.place / name).st_ino, os.path.getsize(host.place / name)) for name in os.listdir(host.place)} == before
        os.unlink(host.place / "s0.0.1")
        done = folder_run(host.root, given.descriptors)
        assert done.returncode != 0 and not (host.place / "s0.0.1").exists()


def folder_run(root, descriptors):
    return subprocess.run(["fio", "job.fio"], cwd=root, pass_fds=descriptors, capture_output=True, text=True, timeout=60, check=False)
