# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The script for a volunteer, on a host that is made of files: what differs from the table is named, and nothing is written."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core import distributions, kernel_modules

SCRIPT = Path(__file__).resolve().parents[3] / "scripts/try-on-this-host"


@pytest.fixture
def script(monkeypatch):
    loader = importlib.machinery.SourceFileLoader("try_on_this_host", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    # A Rocky 9 on which everything is as in the table.
    module.answers = {
        ("/usr/bin/python3", "-c"): "3.9",
        ("systemctl", "is-active", "NetworkManager.service"): "active",
        ("/usr/sbin/lvmconfig",): "use_devicesfile=1",
    }
    module.commands = {name for commands, _names in distributions.PACKAGES for name in commands.split()} | {"dracut", "rpm"}
    monkeypatch.setattr(module, "output", lambda *argv: next((text for words, text in module.answers.items() if argv[: len(words)] == words), ""))
    monkeypatch.setattr(module, "which", lambda name: f"/usr/sbin/{name}" if name in module.commands else None)
    monkeypatch.setattr(module, "owner_of", lambda path: distributions.packages_of(Path(path).name)[distributions.RHEL])
    return module


ROW = next(row for row in distributions.DISTRIBUTIONS if row.title.endswith("9") and row.family == distributions.RHEL)


def run(script, capsys):
    script.check_python(ROW)
    script.check_services(ROW)
    script.check_commands(distributions, distributions.RHEL)
    return [line for line in capsys.readouterr().out.splitlines() if line.startswith("differs: ") and "security modules" not in line]


def test_host_like_its_row_has_no_differences(script, capsys):
    assert run(script, capsys) == []


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ({("/usr/bin/python3", "-c"): "3.6"}, "/usr/bin/python3 is Python 3.6 here, 3.9 in the table"),
        ({("/usr/sbin/lvmconfig",): "use_devicesfile=0"}, "LVM has use_devicesfile=0 here, use_devicesfile=1 in the table"),
        ({("systemctl", "is-active"): ""}, "the network is configured by none of the known services here, by networkmanager in the table"),
    ],
)
def test_difference_is_named(script, capsys, answers, sentence):
    script.answers = {**answers, **{words: text for words, text in script.answers.items() if words not in answers}}
    assert f"differs: {sentence}" in run(script, capsys)


def test_command_of_another_package_is_named(script, capsys, monkeypatch):
    monkeypatch.setattr(
        script, "owner_of", lambda path: "util-linux-core" if path.endswith("/wipefs") else distributions.packages_of(Path(path).name)[ROW.family]
    )
    assert run(script, capsys) == ["differs: /usr/sbin/wipefs belongs to util-linux-core here, to util-linux in the table"]


def test_module_that_no_kernel_should_have_is_named(script, capsys, monkeypatch):
    monkeypatch.setattr(kernel_modules, "is_loaded", lambda name: name == "bcache")
    script.commands = set()
    script.check_kernel(distributions, kernel_modules, ROW.family)
    assert "has bcache, which no kernel of Enterprise Linux has in the table" in capsys.readouterr().out
