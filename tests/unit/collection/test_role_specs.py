# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``scripts/role-specs`` writes what a module documents into the argument specification of the role."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

TOP = Path(__file__).resolve().parents[3]
RAID_TOOLS = "plugins/module_utils/_raid/tools.py"


@pytest.fixture
def copy(tmp_path):
    if not (TOP / "scripts/role-specs").exists():
        pytest.skip("the scripts of the repository are not part of a built collection")
    for folder in ("meta", "scripts", "plugins/action", "plugins/modules", "plugins/doc_fragments", "plugins/module_utils", "roles"):
        shutil.copytree(TOP / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def run(copy, *arguments):
    return subprocess.run([sys.executable, str(copy / "scripts/role-specs"), *arguments], capture_output=True, text=True, timeout=900, check=False)


def replace(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def options(copy, role):
    return yaml.safe_load((copy / f"roles/{role}/meta/argument_specs.yml").read_text())["argument_specs"]["main"]["options"]


def test_a_new_module_is_in_the_runtime_of_the_collection(copy):
    shutil.copy(copy / "plugins/modules/bcache.py", copy / "plugins/modules/open_cas.py")
    assert "meta/runtime.yml differs from the modules: run scripts/role-specs" in run(copy, "--check").stdout
    run(copy)
    written = yaml.safe_load((copy / "meta/runtime.yml").read_text())
    assert "open_cas" in written["action_groups"]["storage"] and "open_cas" in written["plugin_routing"]["modules"]
    assert written["requires_ansible"] == ">=2.16.0"


def test_changed_module_is_reported_and_then_written(copy):
    replace(copy / "plugins/modules/block_queue.py", "description: The maximum size.", "description: The maximum size, see O(devices[].match.size_min).")
    replace(copy / "plugins/module_utils/_blockcache/flashcache/flashcache.yml", "default: 512", "default: 1024")
    failed = run(copy, "--check")
    assert (failed.returncode, failed.stdout.splitlines()) == (
        1,
        [
            f"roles/{role}/meta/argument_specs.yml differs from the documentation of the modules: run scripts/role-specs"
            for role in ("block_cache", "block_queue")
        ],
    )
    assert run(copy).returncode == 0
    assert (run(copy, "--check").stdout, run(copy, "--check").returncode) == ("", 0)
    match = options(copy, "block_queue")["block_queue_devices"]["options"]["match"]["options"]
    assert match["size_max"]["description"] == "The maximum size, see O(block_queue_devices[].match.size_min)."
    assert options(copy, "block_cache")["block_cache_caches"]["options"]["associativity"]["default"] == 1024


def test_another_raid_tool_is_written_into_the_documentation_of_modules_and_roles(copy):
    replace(copy / RAID_TOOLS, '        Tool("storcli2", ', '        Tool("megacli", _storcli, ("megacli",), (), {}, "megaraid"),\n        Tool("storcli2", ')
    modules = ["plugins/modules/raid_cache.py", "plugins/modules/raid_cache_info.py", "plugins/modules/raid_maxcache.py"]
    assert run(copy, "--check").stdout.splitlines() == [f"{module} differs from the table of RAID tools: run scripts/role-specs" for module in modules]
    assert run(copy).returncode == 0
    assert all("choices: [auto, megacli, storcli2, perccli2, " in (copy / module).read_text() for module in modules)
    controllers = options(copy, "raid_cache")["raid_cache_controllers"]["options"]
    assert controllers["provider"]["choices"][:2] == ["auto", "megacli"]


def test_every_role_has_the_example_of_its_readme(copy):
    for role in (copy / "roles").iterdir():
        main = yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]["main"]
        assert f"```yaml\n{main['examples'].rstrip()}\n```" in (role / "README.md").read_text()
    replace(copy / "scripts/role-readmes.yml", "Cache a slow volume on an SSD", "Cache a volume on an SSD")
    assert "roles/block_cache/meta/argument_specs.yml differs" in run(copy, "--check").stdout
    assert run(copy).returncode == 0
    assert "Cache a volume on an SSD" in (copy / "roles/block_cache/meta/argument_specs.yml").read_text()


def test_options_of_two_modules_are_referenced_by_role_path(copy):
    controller = options(copy, "raid_cache")["raid_cache_controllers"]["options"]
    (text,) = controller["maxcache"]["options"]["allow_unprotected"]["description"]
    assert "O(raid_cache_controllers[].volumes[].maxcache.allow_unprotected)" in text
    assert "O(raid_cache_controllers[].volumes[].allow_unprotected)" in controller["volumes"]["options"]["io"]["description"][0]


def test_text_shared_by_several_modules_is_written_once_with_its_types(copy):
    cache = options(copy, "block_cache")["block_cache_caches"]["options"]
    assert "V(passthrough) serves all I/O from the origin and invalidates written blocks in the cache." in cache["mode"]["description"]
    assert any(text.startswith("V(passthrough) is for V(lvm_cache) and V(dm_cache) only.") for text in cache["mode"]["description"])
    assert cache["origin"]["description"][0].startswith("For V(lvm_cache). ")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("block_queue.devices", "block_queue.disks", "the module block_queue has no option disks"),
        ("CACHE_TYPE.caches", "[lvm_cache.caches, fio.cells]", "the type of block_cache_caches[].name is not the same"),
    ],
)
def test_invalid_list_entry_is_reported_in_one_sentence(copy, old, new, words):
    replace(copy / "scripts/role-specs.yml", old, new)
    if "fio.cells" in new:
        replace(
            copy / "plugins/modules/fio.py", "The name of the cell. Letters, digits, C(.), C(_) and C(-).\n        type: str", "The cell.\n        type: int"
        )
    failed = run(copy)
    assert (failed.returncode, len(failed.stderr.splitlines())) == (1, 1)
    assert words in failed.stderr


def test_manual_description_may_reference_only_role_options(copy):
    replace(copy / "roles/fio_benchmark/meta/argument_specs.yml", "or of O(fio_benchmark_suites).", "or of O(fio_benchmark_suite_list).")
    assert "refers to fio_benchmark_suite_list, which the role does not have" in run(copy).stderr


def test_every_variable_of_a_role_is_in_a_guide():
    guides = "\n".join(path.read_text() for path in (*(TOP / "docs").rglob("*.md"), TOP / "README.md"))
    specs = {path.parts[-3]: yaml.safe_load(path.read_text())["argument_specs"] for path in (TOP / "roles").glob("*/meta/argument_specs.yml")}
    missing = [name for entries in specs.values() for entry in entries.values() for name in entry.get("options", {}) if not re.search(rf"\b{name}\b", guides)]
    assert missing == []
