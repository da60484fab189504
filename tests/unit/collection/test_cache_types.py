# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Adding a type of SSD caches touches few places: its name is written nowhere else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey.host_caches import READERS
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import CACHE_TYPES, TYPES
from ansible_collections.cachefleet.storage.plugins.module_utils._host import cache_types

TOP = Path(__file__).resolve().parents[3]
UTILS = "plugins/module_utils/"
#: The table, what reads its caches, what configures them, and which have a model. Besides its folder, its module, and what documents it.
CODE = {UTILS + name for name in ("_blockcache/types.py", "_blockcache/survey/host_caches.py", "_host/cache_types.py")} | {
    "plugins/plugin_utils/_trace/types.py"
}
#: Written by scripts/role-specs, but for one sentence about each type; and the modules that every collection lists.
DOCUMENTS = {"roles/block_cache/meta/argument_specs.yml", "meta/runtime.yml"}
#: Here the same words are names of the kernel: of a module, a target of device-mapper, a kind of block devices, a signature.
OF_THE_KERNEL = {f"roles/{role}/meta/argument_specs.yml" for role in ("block_queue", "drive_write_cache", "over_provisioning")} | {
    UTILS + name
    for name in (
        "_core/distributions.py",
        "_core/kernel_modules.py",
        "_device/discovery.py",
        "_device/drive_cache/above.py",
        "_device/drive_cache/drives.py",
        "_device/match.py",
        "_device/queue/sysfs.py",
        "_guard/description.py",
        "_guard/examination.py",
        "_blockcache/starters.py",
        "_stack/power_cut.py",
    )
}
#: A type with its own tools also has variables with their places.
OF_TOOLS = {
    "roles/block_cache/defaults/main.yml",
    "roles/block_cache/tasks/configure.yml",
    "roles/cache_layers/tasks/call.yml",
    "roles/cache_layers/vars/main.yml",
    "plugins/modules/cache_layers.py",
}


def _own(path):
    """The names that a file may have, being in the folder of a type or its module. Both types that use dm-cache choose its chunks alike."""
    in_folder = re.match(rf"{UTILS}_blockcache/(\w+)/|plugins/modules/(\w+)\.py", path)
    name = (in_folder[1] or in_folder[2]) if in_folder else ""
    return {"lvm", "lvm_cache"} if name in ("lvm", "lvm_cache") else {name, "lvm"} if name == "dm_cache" else {name}


def _names(path):
    """The types whose names are literals of a file of Python, and those whose code it imports; in YAML, names that are a value or a part of one."""
    text = path.read_text()
    if path.suffix != ".py":
        # Comments and what is documented are not code.
        code = "\n".join(line for line in text.splitlines() if not re.match(r"\s*(#|- module: |- [A-Z(])", line))
        return {name for name in TYPES if re.search(rf"(?<![\w/.]){name}(?![\w/])|\.{name}:|_{name}_", code)}
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and node.value in TYPES:
            found.add(node.value)
        if isinstance(node, ast.ImportFrom):
            found |= {part for part in (node.module or "").split(".") if part in TYPES or part == "lvm"}
            found |= {"lvm" for name in node.names if name.name == "lvm"} | {name.name for name in node.names if name.name in TYPES}
    return found


def test_name_of_a_type_is_written_only_where_a_type_is_added():
    files = [path for folder in ("plugins", "roles", "meta") for path in (TOP / folder).rglob("*") if path.suffix in (".py", ".yml")]
    paths = {str(path.relative_to(TOP)): path for path in files}
    naming = {path for path, file in paths.items() if _names(file) - _own(path)}
    assert naming - CODE - DOCUMENTS - OF_THE_KERNEL - OF_TOOLS == set()
    # None of them is exempt for nothing.
    assert (CODE | DOCUMENTS | OF_THE_KERNEL) - naming == set()


def test_each_place_has_every_type():
    assert tuple(READERS) == TYPES
    assert tuple(cache_types._CODE) == TYPES
    assert all(name == kind.name for name, kind in CACHE_TYPES.items())


@pytest.mark.parametrize("kind", TYPES)
def test_code_of_a_type_has_one_shape(kind):
    code = cache_types.code_of(kind)
    assert code.layer.name == kind
    assert {"name", "origin", "cache_devices", "settings", "state", "expect"} <= set(code.spec.CACHE_OPTIONS)
    assert list(code.spec.read_items([])) == []
