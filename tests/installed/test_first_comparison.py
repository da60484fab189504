# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The comparison of ``docs/first_hour.md``, as it is written there, with a small file and a short runtime."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

for library in ("numpy", "scipy", "ruptures", "duckdb", "plotly"):
    pytest.importorskip(library, reason=f"needs {library}: pip install -r requirements.txt")
if not shutil.which("fio"):
    pytest.skip("fio is not installed on this machine", allow_module_level=True)

_BIN = Path(sys.executable).parent
_PAGE = Path(__file__).resolve().parents[2] / "docs/first_hour.md"


def _lines():
    """The block of its section."""
    return re.findall(r"```console\n(.*?)```", _PAGE.read_text().partition("### Only compare")[2], flags=re.DOTALL)[0].splitlines()


def test_first_comparison_has_at_most_ten_lines():
    assert len(_lines()) <= 10


def test_first_comparison_ends_with_an_answer(tmp_path):
    lines = _lines()
    first = lines.index("$ cat > first.yml <<END")
    variables = yaml.safe_load("\n".join(lines[first + 1 : lines.index("END")]))
    assert Path(variables.pop("fio_benchmark_file")).is_absolute()
    small = {"file": str(tmp_path / "first.fio"), "size": "16m"}
    (tmp_path / "first.yml").write_text(json.dumps({**variables, "fio_benchmark_targets": [small]}))
    short = {
        "ansible_become": False,
        "ansible_python_interpreter": sys.executable,
        "fio_benchmark_runtime": 1,
        "fio_benchmark_spool": str(tmp_path / "spool"),
        "fio_benchmark_timing": {"gap": 1, "poll": 2},
    }
    environment = {**os.environ, "PWD": str(tmp_path), "ANSIBLE_NOCOLOR": "1", "PATH": f"{_BIN}:{os.environ['PATH']}"}
    commands = [shlex.split(line.removeprefix("$ "), comments=True) for line in lines if line.startswith("$ ansible-playbook ")]
    assert len(commands) == 3
    for command in commands:
        played = subprocess.run([*command, "-e", json.dumps(short)], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1800, check=False)
        assert played.returncode == 0, played.stdout + played.stderr
    for variant in ("before", "after"):
        repeats = tmp_path / f"results/first/localhost/{variant}/randwrite-4k-fdatasync"
        assert sorted(path.name for path in repeats.iterdir()) == ["1", "2", "3", "4", "5"]
    answer = " ".join(played.stdout.partition("Answer:")[2].split())
    # Whatever the result is on this machine, it is a judgement, and not that there are too few repeats.
    assert re.search(r"Use after|Keep before|No difference is shown between before|No difference that matters", answer), played.stdout
    assert "this is no proof" not in answer
    assert (tmp_path / "results/first/reports/report.html").stat().st_size > 0
