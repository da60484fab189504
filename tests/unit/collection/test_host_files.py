# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of what the collection writes on a host knows every writer and every path of the code, and is that of ``docs/removal.md``."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._host.host_files import LEFT, TABLE, row_of

TOP = Path(__file__).resolve().parents[3]
CODE = TOP / "plugins/module_utils"
FILES = sorted(path for path in CODE.rglob("*.py") if "_rack" not in path.parts)
#: What writes a file, a folder or a link.
_CALLS = {"replace_file", "replacing", "make_folder", "WriteFile", "Journal", "JournalFile", "exclusive", "write_new", "append_line", "new_file"}
_CALLS |= {"mkdir", "makedirs", "mkdtemp", "write_text", "write_bytes", "symlink_to", "symlink", "O_CREAT"}
#: Modules that call these, and write nothing of their own on a host.
NOT_WRITERS = {
    "_core/files": "the functions that others call",
    "_core/own_files": "the functions that others call",
    "_core/journal": "the class that others use",
    "_core/operations": "the operation that others use",
    "_core/convergence": "takes the locks of _core/lock",
    "_host/converge": "takes the locks of _core/lock",
    "_net/storage_network/transaction": "takes the lock of _core/lock",
    "_blockcache/enhanceio/layer": "removes the rule of eio_cli",
    "_fio/runner/control": "writes to the spool",
    "_fio/runner/measuring": "writes to the spool",
    "_fio/runner/outcomes": "writes to the spool",
    "_fio/runner/preparation": "writes to a temporary folder that it removes",
    "_fio/runner/process": "writes to the spool",
    "_fio/observation/sampler": "writes to the spool",
    "_fio/observation/status": "writes to the spool",
    "_fio/handover/held": "makes the file that is measured, which _fio/handover/made_files records",
    "_trace/tracefs": "makes an instance of tracing in the kernel, which removes it again",
    "_power_loss/medium": "writes the target of the test",
    "_power_loss/opened_target": "makes the target of the test",
    "_power_loss/host_writer": "makes the target of the test",
}
#: Paths with the name of the collection that are no files of a host.
_NO_FILES = re.compile(r"dracut\.conf\.d")


def _name(path):
    return str(path.relative_to(CODE).with_suffix(""))


def _tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def _writes(tree):
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else node if isinstance(node, ast.Attribute) and node.attr == "O_CREAT" else None
        name = getattr(called, "attr", None) or getattr(called, "id", None)
        if name in _CALLS:
            yield name


def _paths(tree):
    """Texts that are a path of the collection below a folder of the system, with ``x`` for what is put in."""
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in parts:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = re.sub(r"\{\w*\}", "x", node.value)
        else:
            continue
        if re.fullmatch(r"/?(etc|run|var|usr|lib|opt|boot)/\S*cachefleet\S*", text) and not _NO_FILES.search(text):
            yield text.lstrip("/")


def test_every_module_that_writes_is_the_writer_of_a_row():
    found = {_name(path) for path in FILES if any(_writes(_tree(path)))}
    writers = {writer for row in TABLE for writer in row.writers if not writer.startswith("roles/")}
    assert found - writers - set(NOT_WRITERS) == set(), "add what it writes to the table of _host/host_files.py"
    assert writers - {_name(path) for path in FILES} == set()
    assert set(NOT_WRITERS) - found == set(), "these write nothing any more"


@pytest.mark.parametrize("path", [path for path in FILES if path.name != "host_files.py"], ids=_name)
def test_every_path_of_the_code_is_in_the_table(path):
    unknown = [text for text in _paths(_tree(path)) if text != "var/lib/cachefleet" and row_of(text) is None]
    # The beginning of a path to which a name is added.
    unknown = [text for text in unknown if not any(row.pattern.startswith(f"{text}/") for row in TABLE)]
    assert unknown == []


def test_paths_of_roles_are_in_the_table():
    text = "".join(path.read_text(encoding="utf-8") for path in (TOP / "roles").glob("*/defaults/main.yml"))
    paths = re.findall(r"/((?:etc|run|var)/\S*cachefleet\S*)", text)
    assert paths and [path for path in paths if row_of(path) is None] == []


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("etc/udev/rules.d/99-cachefleet-block-queue.rules", True),
        ("etc/udev/rules.d/99-cachefleet-other.rules", False),
        ("etc/systemd/system/cachefleet-dm_cache-images.service", True),
        ("etc/systemd/system/sysinit.target.wants/cachefleet-dm_cache-images.service", True),
        ("etc/systemd/system/cachefleet-dm_cache-images.service.d/own.conf", False),
        ("var/lib/cachefleet/spool/campaign/runner.json", True),
        ("var/lib/cachefleet", False),
        ("var/lib/cachefleet/other", False),
    ],
)
def test_row_of_a_path(path, known):
    assert (row_of(path) is not None) == known


def test_page_has_the_table():
    page = (TOP / "docs/removal.md").read_text(encoding="utf-8")
    rows = [f"| `/{row.pattern}` | {row.contents} | {row.needed or ''} |".replace(" |  |", " | |") for row in TABLE]
    rows += [f"| {what} | {how} |" for what, how in LEFT]
    assert [row for row in rows if row not in page] == []
    for link in ("README.md", "docs/first_hour.md", "docs/playbooks.md"):
        assert "removal.md" in (TOP / link).read_text(encoding="utf-8"), link
