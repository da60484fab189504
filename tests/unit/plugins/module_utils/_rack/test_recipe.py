# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import os
import stat
import subprocess
import sys
import zipfile

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._rack import recipe as recipes
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.recipe import (
    DEFAULT_PACKAGES,
    ESSENTIAL_SCRIPT,
    EXCLUDED_PATHS,
    GUEST_FILES,
    INIT_SCRIPT,
    INITRAMFS_SCRIPT,
    Recipe,
    customise_script,
    recipe_from_options,
)

OPTIONS = {"suite": "bookworm", "packages": None, "extra_packages": [], "size": "2500M"}
RECIPE = Recipe("bookworm", DEFAULT_PACKAGES, 2500 * 1024**2)


def test_hash_is_independent_of_package_order():
    assert dataclasses.replace(RECIPE, packages=tuple(reversed(DEFAULT_PACKAGES))).digest == RECIPE.digest


@pytest.mark.parametrize("change", [{"suite": "trixie"}, {"packages": (*DEFAULT_PACKAGES, "tcpdump")}, {"size": 3 * 1024**3}])
def test_hash_depends_on_every_option(change):
    assert dataclasses.replace(RECIPE, **change).digest != RECIPE.digest


def test_drivers_are_excluded_in_both_places_of_modules():
    assert {f"{lib}/modules/*/kernel/sound/*" for lib in ("/lib", "/usr/lib")} <= set(EXCLUDED_PATHS)


@pytest.mark.parametrize(
    ("constant", "value"),
    [
        ("GUEST_FILES", (*GUEST_FILES, ("/etc/motd", "0644", "hello\n"))),
        ("GUEST_LINKS", ()),
        ("GUEST_REMOVED", ("/etc/hostname",)),
        ("EXCLUDED_PATHS", ()),
        ("ESSENTIAL_SCRIPT", "#!/bin/sh\n"),
        ("INIT_SCRIPT", "#!/bin/sh\n"),
        ("INITRAMFS_SCRIPT", "#!/bin/sh\n"),
    ],
)
def test_hash_depends_on_every_guest_file(monkeypatch, constant, value):
    before = RECIPE.digest
    monkeypatch.setattr(recipes, constant, value)
    assert RECIPE.digest != before


@pytest.mark.parametrize(
    "script", [customise_script(), ESSENTIAL_SCRIPT, INIT_SCRIPT, INITRAMFS_SCRIPT, *(text for _path, _mode, text in GUEST_FILES if text.startswith("#!"))]
)
def test_guest_scripts_are_valid_shell(script):
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False, capture_output=True).stderr == ""


def test_customize_script_creates_the_guest_files(tmp_path):
    # Everything up to the part that needs the guest's own programs.
    script = customise_script().split("chroot ", maxsplit=1)[0]
    subprocess.run(["sh", "-s", str(tmp_path)], input=script, text=True, check=True)
    for path, mode, text in GUEST_FILES:
        file = tmp_path / path.lstrip("/")
        assert file.read_text() == text
        assert file.stat().st_mode & 0o777 == int(mode, 8)
    assert os.readlink(tmp_path / "etc/systemd/system/networking.service") == "/dev/null"


def test_recipe_contains_no_mirror_address():
    argv = RECIPE.bootstrap_arguments(tree="/t", essential="/e", customise="/c", sources=[])
    assert not [word for word in argv if "://" in word]
    assert argv[-2:] == ["bookworm", "/t"]
    assert RECIPE.bootstrap_arguments(tree="/t", essential="/e", customise="/c", sources=["deb x y z"])[-1] == "deb x y z"


def test_default_packages_are_the_complete_set():
    assert recipe_from_options(OPTIONS) == RECIPE
    assert recipe_from_options({**OPTIONS, "extra_packages": ["tcpdump"]}).packages == (*DEFAULT_PACKAGES, "tcpdump")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"suite": "--hook"}, "'--hook' is not the name"),
        ({"packages": ["Fio"]}, "'Fio' is not the name"),
        ({"extra_packages": ["fio,--setup-hook=x"]}, "is not the name"),
        ({"size": "big"}, "'big' is not a size"),
        ({"size": "100M"}, "too small"),
    ],
)
def test_invalid_recipes_are_rejected_in_one_sentence(options, words):
    with pytest.raises(BadInput, match=r".") as caught:
        recipe_from_options({**OPTIONS, **options})
    assert words in caught.value.message


def test_python_of_the_guest_compiles_a_file_of_an_archive_once(tmp_path):
    kept = tmp_path / "run/kept"
    (tmp_path / "rack_bytecode.py").write_text(recipes.KEEP_BYTECODE.replace("/run/rack-bytecode", str(kept)))
    program = (
        "import rack_bytecode, sys, traceback\n"
        "compiled = []\n"
        "rack_bytecode.recall.__defaults__ = (lambda path, source, real=rack_bytecode.recall.__defaults__[0]: compiled.append(path) or real(path, source),)\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "import in_archive\n"
        "print(len(compiled), in_archive.VALUE, in_archive.value.__code__.co_filename)\n"
    )
    printed = []
    for name, value in (("one.zip", 1), ("two.zip", 1), ("three.zip", 2)):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("in_archive.py", f"VALUE = {value}\ndef value():\n    return VALUE\n")
        run = subprocess.run([sys.executable, "-c", program, str(tmp_path / name)], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
        assert run.returncode == 0, run.stderr
        printed.append(run.stdout.strip())
    # Python reads a file twice, for its path and for its code. The path is that of the archive that was imported.
    assert printed == [f"1 1 {tmp_path}/one.zip/in_archive.py", f"0 1 {tmp_path}/two.zip/in_archive.py", f"1 2 {tmp_path}/three.zip/in_archive.py"]
    assert len(list(kept.iterdir())) == 2
    assert stat.S_IMODE(kept.stat().st_mode) == 0o700
