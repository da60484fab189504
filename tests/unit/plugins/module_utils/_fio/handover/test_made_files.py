# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that the collection made for fio: who may write them again, and who may not any more."""

from __future__ import annotations

import json
import os
import time

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.made_files import MadeFiles
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import Spool


def campaign(tmp_path, name):
    """What a runner of that campaign knows when it starts."""
    return MadeFiles(Spool(tmp_path / "home", name), tmp_path)


@pytest.fixture
def left(tmp_path):
    """A file that campaign c made, wrote and left."""
    (tmp_path / "home").mkdir()
    made = campaign(tmp_path, "c")
    os.close(made.make("/f"))
    (tmp_path / "f").write_bytes(b"fio")
    made.leave([("/f", True)])
    if not campaign(tmp_path, "c").paths():
        pytest.skip("this file system keeps no extended attributes")
    return tmp_path / "f"


def test_created_files_are_recognized_by_their_mark(tmp_path):
    (tmp_path / "home").mkdir()
    made = MadeFiles(Spool(tmp_path / "home", "c"), tmp_path)
    os.close(made.make("/f"))
    assert made.paths() == {"/f"}
    again = MadeFiles(Spool(tmp_path / "home", "c"), tmp_path)
    if not again.paths():
        pytest.skip("this file system keeps no extended attributes")
    assert MadeFiles(Spool(tmp_path / "home", "d"), tmp_path).paths() == frozenset(), "another campaign may not overwrite it, for fio is not done with it"
    (tmp_path / "f").unlink()
    (tmp_path / "f").write_text("somebody else's")
    assert made.paths() == again.paths() == MadeFiles(Spool(tmp_path / "home", "c"), tmp_path).paths() == frozenset()
    with pytest.raises(CommandFailed, match="/f cannot be made on this host: File exists"):
        again.make("/f")
    (tmp_path / "home/.made_files.json").write_text("[]")
    assert MadeFiles(Spool(tmp_path / "home", "c"), tmp_path).paths() == frozenset()


def test_file_released_by_one_campaign_is_writable_by_another(tmp_path, left):
    other = campaign(tmp_path, "d")
    assert other.paths() == {"/f"}
    other.take_over("/f")
    left.write_bytes(b"other")
    assert other.paths() == campaign(tmp_path, "d").paths() == {"/f"}, "its own, also after its runner was killed"
    assert campaign(tmp_path, "c").paths() == frozenset(), "and of no other campaign until fio has ended"
    other.leave([("/f", True)])
    assert campaign(tmp_path, "c").paths() == campaign(tmp_path, "e").paths() == {"/f"}


@pytest.mark.parametrize("how", ["longer", "as long", "in its place", "mark", "gone", "link"])
def test_changed_file_is_not_written_by_another_campaign(tmp_path, left, how):
    before = left.stat()
    # The clock of a file system goes by ticks.
    time.sleep(0.05)
    if how == "longer":
        left.write_bytes(b"data of somebody")
        os.utime(left, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif how == "as long":
        left.write_bytes(b"foo")
        os.utime(left, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif how == "in its place":
        left.unlink()
        left.write_bytes(b"fio")
        os.utime(left, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif how == "mark":
        os.setxattr(left, "user.cachefleet.storage", b"0" * 32)
    else:
        left.rename(tmp_path / "elsewhere")
        if how == "link":
            left.symlink_to(tmp_path / "elsewhere")
    other = campaign(tmp_path, "d")
    assert other.paths() == frozenset()
    other.take_over("/f")
    assert other.paths() == frozenset()


def test_file_that_was_only_read_is_not_taken_over(tmp_path, left):
    time.sleep(0.05)
    left.write_bytes(b"data of somebody")
    reading = campaign(tmp_path, "c")
    reading.leave([("/f", False)])
    assert campaign(tmp_path, "d").paths() == frozenset()
    reading.leave([("/f", True)])
    assert campaign(tmp_path, "d").paths() == {"/f"}


def test_file_preallocated_for_reading_is_recorded(tmp_path):
    (tmp_path / "home").mkdir()
    made = campaign(tmp_path, "c")
    os.close(made.make("/f"))
    (tmp_path / "f").write_bytes(b"fio")
    made.leave([("/f", False)])
    assert campaign(tmp_path, "d").paths() == campaign(tmp_path, "c").paths()


def test_only_the_current_campaign_releases_a_file(tmp_path, left):
    other = campaign(tmp_path, "d")
    other.take_over("/f")
    left.write_bytes(b"somebody else's by now")
    campaign(tmp_path, "e").leave([("/f", True), ("/never", True)])
    assert campaign(tmp_path, "e").paths() == frozenset()


def test_records_that_are_none_are_ignored_and_the_others_kept(tmp_path, left):
    mark = os.getxattr(left, "user.cachefleet.storage").decode()
    own = {"campaign": "c", "mark": mark}
    odd = {"c": {"/f": mark, "/g": 5}, "x": [], "y": "z", "/h": {"mark": mark, "colour": 1}, "/i": {"campaign": 5, "mark": mark}}
    (tmp_path / "home/.made_files.json").write_text(json.dumps({**odd, "/f": own}))
    assert campaign(tmp_path, "c").paths() == {"/f"}
    assert campaign(tmp_path, "d").paths() == frozenset()


def test_unwritable_folder_fails_before_fio_starts_and_is_ignored_after(tmp_path, left):
    other = campaign(tmp_path, "d")
    (tmp_path / "home/.made_files.json").unlink()
    (tmp_path / "home/.made_files.json").mkdir()
    with pytest.raises(CommandFailed, match=r"made_files\.json cannot be written: Is a directory"):
        other.take_over("/f")
    other.leave([("/f", True)])
