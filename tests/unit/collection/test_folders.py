# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folders of the code are those of docs/architecture.md, and imports follow the order of its tables."""

from __future__ import annotations

import ast
import functools
import re
import zlib
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
ROOTS = ("module_utils", "plugin_utils")
PREFIX = "ansible_collections.cachefleet.storage.plugins."
MOST_FILES = 20
MOST_LINES = 700
#: KiB of compressed code that a call sends, without that of Ansible: benchmarks/payloads measures the whole.
MOST_SENT = {
    "cache_layers": 675,
    "sweep_step": 850,
    "sweep_journal": 840,
    "describe": 660,
    "cache_description_info": 660,
    "fio": 540,
    "fio_runner": 540,
    "power_loss_writer": 480,
}
MOST_SENT_BY_OTHERS = 425


def _tables():
    """The folders of each root, in the order of the page."""
    page = (TOP / "docs/architecture.md").read_text()
    parts = re.split(r"^`plugins/(module_utils|plugin_utils)`", page, flags=re.MULTILINE)
    return {
        root: re.findall(r"^\| `([\w./]+)` \|", text.split("\n`plugins/")[0].split("\n## ")[0], flags=re.MULTILINE)
        for root, text in zip(parts[1::2], parts[2::2])
    }


TABLES = _tables()


def _files(root):
    return sorted((TOP / "plugins" / root).rglob("*.py"))


def _folder(root, path):
    return str(path.parent.relative_to(TOP / "plugins" / root))


@functools.lru_cache(maxsize=None)
def _imported(path):
    """The files of the collection that a file imports, as paths without a suffix below ``plugins``."""
    return tuple(_imports_of(path))


def _imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PREFIX):
            module = Path(*node.module[len(PREFIX) :].split("."))
            if (TOP / "plugins" / module).with_suffix(".py").exists():
                yield module
            else:
                yield from (module / name.name for name in node.names)


@pytest.mark.parametrize("root", ROOTS)
def test_architecture_lists_every_folder_once(root):
    assert sorted(TABLES[root]) == sorted({_folder(root, path) for path in _files(root)})


@pytest.mark.parametrize("root", ROOTS)
def test_imports_follow_the_documented_order(root):
    rank = {folder: place for place, folder in enumerate(TABLES[root])}
    wrong = []
    for path in _files(root):
        for module in _imported(path):
            where, folder = module.parts[0], str(Path(*module.parts[1:-1]))
            upwards = where == root and rank[folder] > rank[_folder(root, path)]
            if upwards or (root, where) == ("module_utils", "plugin_utils"):
                wrong.append(f"{path.relative_to(TOP)} imports {module}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("root", ROOTS)
def test_folders_and_files_are_within_size_limits(root):
    files = _files(root)
    folders = {folder: sum(1 for path in files if _folder(root, path) == folder) for folder in TABLES[root]}
    lines = {str(path.relative_to(TOP)): len(path.read_text().splitlines()) for path in files}
    assert {folder: count for folder, count in folders.items() if count > MOST_FILES} == {}
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}


def _inside(folder):
    """The imports of each file below a folder from others below it."""
    files = {path.relative_to(TOP / "plugins").with_suffix(""): path for path in (TOP / "plugins" / folder).rglob("*.py")}
    return {module: {other for other in _imported(path) if other in files and other != module} for module, path in files.items()}


@pytest.mark.parametrize("folder", ["module_utils", "plugin_utils"])
def test_no_file_reaches_itself_through_others_of_its_folder(folder):
    reached = _inside(folder)
    before = None
    while reached != before:
        before = reached
        reached = {module: others.union(*(reached[other] for other in others)) for module, others in reached.items()}
    assert [str(module) for module, others in reached.items() if module in others] == []


def test_other_plugins_are_not_too_long_either():
    paths = [path for folder in ("action", "callback", "filter") for path in (TOP / "plugins" / folder).glob("*.py")]
    assert {path.name: count for path in paths if (count := len(path.read_text().splitlines())) > MOST_LINES} == {}


def _sent(path, known):
    """The files that Ansible sends with one, itself included."""
    if path not in known:
        known.add(path)
        for module in _imported(path):
            _sent((TOP / "plugins" / module).with_suffix(".py"), known)
    return known


def test_modules_do_not_send_too_much():
    sizes = {
        module.stem: sum(len(zlib.compress(path.read_bytes())) for path in _sent(module, set())) / 1024
        for module in sorted((TOP / "plugins/modules").glob("*.py"))
    }
    assert {name: round(size) for name, size in sizes.items() if size > MOST_SENT.get(name, MOST_SENT_BY_OTHERS)} == {}
