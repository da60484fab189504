# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The owner of a folder exchanges it, or what is in it, at every step of a run: nothing else is written, read or removed."""

from __future__ import annotations

import dataclasses
import errno
import os
import types
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotUnderstood, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.purge.held import Sameness
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, TargetFacts
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import host_verifier, host_writer, opened_target
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.background import BackgroundRun
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.opened_target import MadeTarget, make_file, make_folder
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.spec import RunSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.witness_log import LogFile, header_line
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import ScriptedRunner

RUN = "5a" * 16
BLOCK = 4096
REPLACED = r"^\S+ or one of its folders was replaced while the power-loss test used it: choose a folder in which only root may create files\.$"


class Place:
    """A folder of another user, and one of root with the same names in it."""

    def __init__(self, path):
        self.folder, self.moved, self.root_only = path / "d", path / "e", path / "root_only"
        for folder in (self.folder, self.root_only, self.root_only / "folder"):
            folder.mkdir()
        self.victims = [self.root_only / "file", self.root_only / "folder/block-00000001", self.root_only / "folder/data"]
        for victim in self.victims:
            victim.write_text("precious")

    def swap(self, how="link"):
        if self.moved.exists():
            return
        self.folder.rename(self.moved)
        if how == "link":
            self.folder.symlink_to(self.root_only)
        else:
            self.root_only.rename(self.folder)
            self.victims = [self.folder / victim.relative_to(self.root_only) for victim in self.victims]

    def require_whole(self):
        assert [victim.read_text() for victim in self.victims] == ["precious"] * 3


@pytest.fixture
def place(tmp_path):
    found = Place(tmp_path)
    yield found
    found.require_whole()


def spec_in(folder, layout):
    return RunSpec(str(folder / ("folder" if layout == "rename" else "file")), "file", None, 64 * BLOCK, direct=False, layout=layout)


def start(place, layout):
    """A run whose witness cannot be reached: it is prepared and removed again."""
    spec = spec_in(place.folder, layout)
    facts = TargetFacts(GuardTarget(spec.path, kind="file", size=spec.extent), spec.path, exists=False)
    host_writer.start(spec, facts, RUN, host_writer.WitnessAddress("127.0.0.1", 1, b"s" * 32), Runner(), place.folder.parent / "writer")


def swap_around(monkeypatch, module, name, place, how, *, after):
    real = getattr(module, name)

    def swapping(*args, **options):
        if not after:
            place.swap(how)
        found = real(*args, **options)
        place.swap(how)
        return found

    monkeypatch.setattr(module, name, swapping)


@pytest.mark.parametrize("layout", ["in_place", "append", "rename"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_folder_replaced_by_a_link_while_the_target_is_made_is_refused(place, monkeypatch, layout, after):
    for name in ("make_file", "make_folder"):
        swap_around(monkeypatch, opened_target, name, place, "link", after=after)
    with pytest.raises(StorageError, match=REPLACED):
        start(place, layout)


@pytest.mark.parametrize("layout", ["in_place", "rename"])
def test_folder_replaced_by_a_folder_after_the_target_was_made_is_refused(place, monkeypatch, layout):
    for name in ("make_file", "make_folder"):
        swap_around(monkeypatch, opened_target, name, place, "folder", after=True)
    with pytest.raises(StorageError) as caught:
        start(place, layout)
    assert "was replaced" in caught.value.message
    assert caught.value.message.endswith("is not what the power-loss test made: it is not removed.")
    # They were swapped by the background process.
    place.victims = [place.folder / victim.relative_to(place.root_only) for victim in place.victims]


def test_folder_replaced_while_zeros_are_written_is_refused(place, monkeypatch):
    swap_around(monkeypatch, host_writer, "_zero", place, "link", after=False)
    with pytest.raises(StorageError, match=REPLACED):
        start(place, "in_place")
    assert (place.moved / "file").stat().st_size == (64 + 64) * BLOCK


@pytest.mark.parametrize("layout", ["in_place", "rename"])
@pytest.mark.parametrize("call", ["_unlink", "_present"])
@pytest.mark.parametrize("how", ["link", "folder"])
def test_folder_replaced_while_the_target_is_removed_loses_nothing_else(place, monkeypatch, layout, call, how):
    spec = spec_in(place.folder, layout)
    made = []
    os.close(make_folder(Path(spec.path), made.append) if layout == "rename" else make_file(Path(spec.path), BLOCK, made.append))
    swap_around(monkeypatch, opened_target, call, place, how, after=False)
    if call == "_unlink":
        opened_target.remove(Path(spec.path), made[0], rebooted=False)
        assert os.listdir(place.moved) == []
    else:
        with pytest.raises(Refused, match=r"was replaced|not what the power-loss test made"):
            opened_target.remove(Path(spec.path), made[0], rebooted=False)


def test_folder_replaced_between_making_and_opening_it_is_not_taken(place, monkeypatch):
    def swapping(name, *args, **options):
        real(name, *args, **options)
        (place.folder / name).rename(place.folder / "own")
        (place.root_only / "folder").rename(place.folder / name)

    real = os.mkdir
    place.victims = [place.root_only / "file", place.folder / "folder/block-00000001", place.folder / "folder/data"]
    with monkeypatch.context() as patched, pytest.raises(Refused, match=REPLACED):
        patched.setattr(os, "mkdir", swapping)
        make_folder(place.folder / "folder")


def test_folder_with_files_of_others_is_kept(tmp_path):
    made = []
    os.close(make_folder(tmp_path / "folder", made.append))
    for name in ("block-00000001", ".block-00000002.new", "data"):
        (tmp_path / "folder" / name).write_text("x")
    with pytest.raises(Refused, match="has files that the power-loss test did not make"):
        opened_target.remove(tmp_path / "folder", made[0], rebooted=False)
    assert os.listdir(tmp_path / "folder") == ["data"]


def test_file_for_which_there_is_no_space_is_removed(place, monkeypatch):
    def full(*_args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(CommandFailed, match="cannot be made: No space left on device"):
        start(place, "in_place")
    assert os.listdir(place.folder) == []


def test_target_is_recognized_after_a_boot_by_its_mark(tmp_path):
    made = []
    descriptor = make_file(tmp_path / "file", BLOCK, made.append)
    if not made[0].mark:
        pytest.skip("this file system keeps no extended attributes")
    elsewhere = dataclasses.replace(made[0], device=made[0].device + 1)
    assert made[0].is_open_as(descriptor, rebooted=False)
    assert elsewhere.is_open_as(descriptor, rebooted=True)
    for other in (elsewhere, dataclasses.replace(made[0], mark="0" * 32), dataclasses.replace(made[0], inode=made[0].inode + 1)):
        assert not other.is_open_as(descriptor, rebooted=False)
    assert not dataclasses.replace(elsewhere, mark="").is_open_as(descriptor, rebooted=True)
    os.close(descriptor)


# -- the note of a run


@pytest.mark.parametrize("made", [17, {"inode": 17}, "x"])
def test_target_that_a_note_does_not_name_exactly_is_kept(place, made):
    spec = spec_in(place.root_only, "in_place")
    (place.folder.parent / "writer").mkdir()
    BackgroundRun(place.folder.parent / "writer", RUN).write({"run": RUN, "spec": spec.to_dict(), "made": made})
    with pytest.raises(CommandFailed, match="incomplete: remove its files by hand"):
        host_writer.remove(RUN, lambda: Devices([]), Runner(), place.folder.parent / "writer")


def test_note_that_others_can_write_is_not_used(tmp_path):
    BackgroundRun(tmp_path, RUN).write({"state": "writing"})
    (tmp_path / f"{RUN}.json").chmod(0o666)
    with pytest.raises(NotUnderstood, match="cannot be read: remove it by hand"):
        BackgroundRun(tmp_path, RUN).read()


# -- devices


def facts_of(path, number="7:99", stable_path=None):
    device = types.SimpleNamespace(number=number, stable_path=stable_path)
    return TargetFacts(GuardTarget(str(path)), "/dev/null", device=device)


def test_device_that_was_replaced_is_not_opened():
    facts = dataclasses.replace(facts_of("/dev/x"), sameness=Sameness("x", "x", {("/dev/x", "device number"): "7:99"}))
    with pytest.raises(Refused, match="/dev/x is not the device any more that was examined: it is gone; it was a block device and is none now"):
        opened_target.open_device(facts, os.O_WRONLY, ScriptedRunner({}))
    with pytest.raises(Refused, match="was not examined"):
        opened_target.open_device(facts_of("/dev/x"), os.O_WRONLY, ScriptedRunner({}))


def test_link_that_others_can_exchange_does_not_name_a_device(tmp_path):
    link = tmp_path / "link"
    link.symlink_to("/dev/null")
    assert host_writer.lasting_path(facts_of(link)) == str(link)
    assert host_writer.lasting_path(facts_of(link, stable_path="/dev/disk/by-id/x")) == "/dev/disk/by-id/x"
    tmp_path.chmod(0o777)
    assert host_writer.lasting_path(facts_of(link)) == "/dev/null"


# -- verification


def verify(place, layout, **greeting):
    spec = spec_in(place.folder, layout)
    log = LogFile(place.folder.parent / "log")
    log.append([header_line({"run": RUN, "boot_id": "another", "spec": spec.to_dict(), **greeting})])
    log.close()
    return host_verifier.verify(place.folder.parent / "log", RUN, lambda: Devices([]), Runner(), timeout=0)


@pytest.mark.parametrize("layout", ["in_place", "rename"])
def test_verification_does_not_follow_a_link(place, layout):
    place.swap()
    with pytest.raises(Refused, match=REPLACED):
        verify(place, layout)


@pytest.mark.parametrize("what", ["fifo", "folder", "file of another"])
def test_verification_reads_only_what_the_run_made(place, what):
    if what == "fifo":
        os.mkfifo(place.folder / "file")
    elif what == "folder":
        (place.folder / "file").mkdir()
    else:
        (place.folder / "file").write_text("x")
    with pytest.raises(Refused, match="is not what the power-loss test made: it is not read"):
        verify(place, "in_place", owner=os.geteuid() + 1 if what == "file of another" else os.geteuid())


def test_made_target_is_recorded_before_anything_else_fails(tmp_path):
    made = []
    with pytest.raises(CommandFailed, match="cannot be made: File exists"):
        (tmp_path / "file").write_text("data")
        make_file(tmp_path / "file", BLOCK, made.append)
    assert made == []
    os.close(make_file(tmp_path / "other", 0, made.append))
    status = (tmp_path / "other").stat()
    assert made == [MadeTarget(status.st_dev, status.st_ino, made[0].mark)]
