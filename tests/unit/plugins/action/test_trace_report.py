# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verb trace_report, on folders as io_trace leaves them."""

from __future__ import annotations

import types
import typing as t
from pathlib import Path

import pytest

for library in ("numpy", "scipy", "plotly"):
    pytest.importorskip(library, reason=f"needs {library}: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.plugins.action.trace_report import ActionModule
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import read_trace
from ansible_collections.cachefleet.storage.tests.unit.support.recorded_loads import LOADS, write


def run(check_mode: bool = False, **args: t.Any) -> tuple[dict[str, t.Any], str]:
    action = object.__new__(ActionModule)
    printed: list[str] = []
    task = types.SimpleNamespace(args=args, check_mode=check_mode, async_val=0, diff=False, action="cachefleet.storage.trace_report")
    connection = types.SimpleNamespace(_shell=types.SimpleNamespace(tmpdir=None), become=None)
    others = dict.fromkeys(("_play_context", "_loader", "_templar"))
    vars(action).update(
        _display=types.SimpleNamespace(display=printed.append, warning=printed.append), _task=task, _connection=connection, _cleanup_remote_tmp=False, **others
    )
    return action.run(task_vars={"inventory_hostname": "localhost"}), "\n".join(printed)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "monday"
    for host in ("db1", "db2"):
        write(path / host, LOADS["hot and cold"](3000), host=host)
    return path


def test_each_host_has_a_report_in_its_folder(folder: Path) -> None:
    result, printed = run(path=str(folder), sizes=["1M", "4M"], prices={"per_gb": 0.1, "drive_writes": 1})
    assert result["changed"] and [one["host"] for one in result["reports"]] == ["db1", "db2"]
    for one in result["reports"]:
        assert one["files"]["report.html"] == str(folder / one["host"] / "report.html") and Path(one["files"]["report.html"]).is_file()
        assert set(one["files"]) >= {"report.md", "report.json", "curves.csv", "fitted_suite.yml", "replay-0.log.gz", "replay_suite.yml"}
        assert all(sentence in printed for sentence in one["sentences"])
    assert "Load of db2: monday:" in printed and "it needs no network" in printed


def test_another_folder_and_a_copy_for_others(folder: Path, tmp_path: Path) -> None:
    result, _printed = run(path=str(folder / "db1"), sizes=["1M"], output=str(tmp_path / "out"), key="a key")
    assert Path(result["reports"][0]["files"]["shared/trace.json"]) == tmp_path / "out/shared/trace.json"
    copied = read_trace(tmp_path / "out/shared")
    assert copied.scrambled == 1.0 and len(copied.accesses(4096)) == len(read_trace(folder / "db1").accesses(4096))
    stale = [tmp_path / "out/shared" / name for name in ("replay-0.log.gz", "replay_suite.yml", "recommended_cache.yml")]
    for path in stale:
        path.write_text("of an earlier report")
    again, printed = run(path=str(tmp_path / "out/shared"), sizes=["1M"])
    assert "replay-0.log.gz" not in again["reports"][0]["files"], "of renamed regions nothing can be replayed"
    assert "No log for a replay: device-0 cannot be replayed" in printed and not any(path.exists() for path in stale[:2])
    assert not stale[1].exists() or "earlier" not in stale[1].read_text()
    several, _printed = run(path=str(folder), sizes=["1M"], output=str(tmp_path / "all"))
    assert [Path(one["files"]["report.md"]).parent.name for one in several["reports"]] == ["db1", "db2"]


def test_nothing_is_written_in_check_mode(folder: Path, tmp_path: Path) -> None:
    result, printed = run(check_mode=True, path=str(folder / "db1"), sizes=["1M"], output=str(tmp_path / "out"))
    assert (result["changed"], result["reports"][0]["files"]) == (False, {}) and "Load of db1" in printed
    assert not (tmp_path / "out").exists()


def test_failures_are_one_sentence(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for args, message in (
        ({"path": str(tmp_path / "none")}, "There is no trace in"),
        ({"path": str(folder), "sizes": ["many"]}, "is not a size"),
        ({"path": str(folder), "sizes": ["0"]}, "above 0 bytes"),
        ({"path": str(folder / "db1"), "output": str(tmp_path / "file/x"), "sizes": ["1M"]}, "Not a directory"),
        ({"path": str(write(tmp_path / "bad", LOADS["uniform"](100), schema=9))}, "has schema 9"),
    ):
        result, _printed = run(**args)
        assert result["failed"] and message in result["msg"], result
