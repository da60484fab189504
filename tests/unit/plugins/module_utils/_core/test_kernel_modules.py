# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a kernel has a module, and what is advised where it has not."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.kernel_modules import built_in, is_available, missing_sentence
from ansible_collections.cachefleet.storage.tests.unit.support.made_files import write
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

TARGETS = "striped          v1.6.0\nlinear           v1.4.0\n"


def runner(installed=(), targets=TARGETS, missing=()):
    return ScriptedRunner({("modprobe", "--dry-run"): lambda words: Reply(rc=int(words[-1] not in installed)), ("dmsetup", "targets"): Reply(targets)}, missing)


def test_loaded_module_costs_no_command(tmp_path):
    commands = runner()
    (tmp_path / "sys/module/dm_cache").mkdir(parents=True)
    write(tmp_path, "proc/modules", "dm_writecache 45056 0 - Live 0x0\n")
    assert is_available(commands, "dm-cache", tmp_path)
    assert is_available(commands, "dm-writecache", tmp_path)
    assert commands.calls == []


@pytest.mark.parametrize(
    ("name", "path", "text"),
    [("bcache", "sys/fs/bcache/register", ""), ("raid1", "proc/mdstat", "Personalities : [raid10] [raid1] \nunused devices: <none>\n")],
)
def test_built_in_module_is_known_by_what_it_serves(tmp_path, name, path, text):
    assert not is_available(runner(), name, tmp_path)
    write(tmp_path, path, text)
    assert is_available(runner(), name, tmp_path)


def test_kernel_without_loadable_modules_shows_its_targets(tmp_path):
    targets = TARGETS + "writecache       v1.0.0\n"
    assert is_available(runner(targets=targets, missing=("modprobe",)), "dm-writecache", tmp_path)
    assert not is_available(runner(targets=targets, missing=("modprobe",)), "dm-cache", tmp_path)


def test_what_nothing_shows_is_not_available(tmp_path):
    assert is_available(runner(installed=("dm-cache",)), "dm-cache", tmp_path)
    assert not is_available(runner(), "dm-cache", tmp_path)
    assert not is_available(runner(missing=("modprobe", "dmsetup")), "dm-cache", tmp_path)


@pytest.mark.parametrize("line", ["install dm-cache /bin/false", "  install dm_cache   /usr/bin/true  "])
def test_disabled_module_is_not_available(tmp_path, line):
    write(tmp_path, "etc/modprobe.d/cis.conf", f"# hardening\n{line}\n")
    assert not is_available(runner(installed=("dm-cache",)), "dm-cache", tmp_path)
    assert "an install line in /etc/modprobe.d/cis.conf disables it" in missing_sentence("dm-cache", tmp_path)
    assert is_available(runner(installed=("dm-writecache",)), "dm-writecache", tmp_path)


def test_locked_kernel_loads_nothing(tmp_path):
    write(tmp_path, "proc/sys/kernel/modules_disabled", "1\n")
    assert not is_available(runner(installed=("bcache",)), "bcache", tmp_path)
    assert "kernel.modules_disabled is 1" in missing_sentence("bcache", tmp_path)


@pytest.mark.parametrize(
    ("release", "system", "name", "advice"),
    [
        ("5.14.0-427.13.1.el9_4.x86_64", 'ID="rocky"\nID_LIKE="rhel centos fedora"\n', "bcache", "Enterprise Linux has no bcache"),
        ("5.14.0-427.el9.x86_64", 'ID="rhel"\nID_LIKE="fedora"\n', "dm-writecache", "package kernel-modules-5.14.0-427.el9.x86_64, or kernel-modules-extra-"),
        ("5.15.0-205.el9uek.x86_64", 'ID="ol"\nID_LIKE="fedora"\n', "dm-cache", "kernel-uek-modules-5.15.0-205.el9uek.x86_64"),
        ("6.8.5-301.fc40.x86_64", "ID=fedora\n", "bcache", "the package kernel-modules-6.8.5-301.fc40.x86_64"),
        ("6.8.0-1013-aws", 'ID=ubuntu\nID_LIKE=debian\n', "bcache", "install the package linux-modules-extra-6.8.0-1013-aws"),
        ("6.1.0-25-cloud-amd64", "ID=debian\n", "bcache", "the kernel of the package linux-image-amd64"),
        ("5.14.21-150500.55-default", 'ID="sles"\nID_LIKE="suse"\n', "dm-cache", "the package kernel-default"),
        ("5.4.224", "ID=arch\n", "dm-cache", "CONFIG_DM_CACHE"),
    ],
)  # fmt: skip
def test_package_that_brings_the_module_is_named(tmp_path, release, system, name, advice):
    write(tmp_path, "proc/sys/kernel/osrelease", release + "\n")
    write(tmp_path, "etc/os-release", system)
    assert "does not exist, as after an update that removed this kernel: restart the host" in missing_sentence(name, tmp_path)
    (tmp_path / "lib/modules" / release).mkdir(parents=True)
    sentence = missing_sentence(name, tmp_path)
    assert f"the kernel module {name} is not available on kernel {release}: " in sentence
    assert advice in sentence


def test_built_in_modules_of_a_kernel(tmp_path):
    assert built_in(tmp_path, "6.1") is None
    write(tmp_path, "lib/modules/6.1/modules.builtin", "kernel/drivers/md/md-mod.ko\nkernel/block/kyber-iosched.ko\n")
    assert built_in(tmp_path, "6.1") == {"md_mod", "kyber_iosched"}
