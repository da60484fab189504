# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of distributions, on hosts that consist of the files of each of them, and in what is made of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ansible_collections.cachefleet.storage.plugins.module_utils._core import distributions
from ansible_collections.cachefleet.storage.plugins.module_utils._core.distributions import (
    DISTRIBUTIONS,
    FAMILIES,
    PACKAGES,
    distribution_of,
    module_advice,
    newer_python_command,
    os_release,
    package_advice,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.provider import PROVIDERS

ROOT = Path(__file__).resolve().parents[5]
PAGE = (ROOT / "docs/distributions.md").read_text(encoding="utf-8")

#: The fields of /etc/os-release as the distributions have them (os-release(5); the files of base images of each), by row of the table.
OS_RELEASE = {
    "RHEL, Alma, Rocky 8": 'NAME="Rocky Linux"\nVERSION_ID="8.10"\nID="rocky"\nID_LIKE="rhel centos fedora"\n',
    "RHEL, Alma, Rocky 9": 'NAME="AlmaLinux"\nVERSION_ID="9.6"\nID="almalinux"\nID_LIKE="rhel centos fedora"\n',
    "RHEL, Alma, Rocky 10": 'NAME="Red Hat Enterprise Linux"\nVERSION_ID="10.0"\nID="rhel"\nID_LIKE="centos fedora"\n',
    "Ubuntu 22.04": 'NAME="Ubuntu"\nVERSION_ID="22.04"\nID=ubuntu\nID_LIKE=debian\n',
    "Ubuntu 24.04": 'NAME="Ubuntu"\nVERSION_ID="24.04"\nID=ubuntu\nID_LIKE=debian\n',
    "Ubuntu 26.04": 'NAME="Ubuntu"\nVERSION_ID="26.04"\nID=ubuntu\nID_LIKE=debian\n',
    "SLES 15": 'NAME="SLES"\nVERSION_ID="15.6"\nID="sles"\nID_LIKE="suse"\n',
    "openSUSE Leap 15": 'NAME="openSUSE Leap"\nVERSION_ID="15.6"\nID="opensuse-leap"\nID_LIKE="suse opensuse"\n',
    "SLES 16": 'NAME="SLES"\nVERSION_ID="16.0"\nID="sles"\nID_LIKE="suse"\n',
    "openSUSE Leap 16": 'NAME="openSUSE Leap"\nVERSION_ID="16.0"\nID="opensuse-leap"\nID_LIKE="suse opensuse"\n',
    "Debian 11": 'NAME="Debian GNU/Linux"\nVERSION_ID="11"\nID=debian\n',
    "Debian 12, Proxmox VE 8": 'NAME="Debian GNU/Linux"\nVERSION_ID="12"\nID=debian\n',
    "Debian 13, Proxmox VE 9": 'NAME="Debian GNU/Linux"\nVERSION_ID="13"\nID=debian\n',
}


def host(folder, text, release="6.1.0-1-test"):
    """The root of a host of this distribution, with an installed kernel."""
    (folder / "etc").mkdir(parents=True)
    (folder / "etc/os-release").write_text(text)
    (folder / "lib/modules" / release).mkdir(parents=True)
    return folder


@pytest.mark.parametrize("row", DISTRIBUTIONS, ids=lambda row: row.title)
def test_host_is_found_in_the_table(tmp_path, row):
    root = host(tmp_path, OS_RELEASE[row.title])
    assert distribution_of(os_release(root)) is row
    assert package_advice("cache_check", root) == f"install the package {dict(zip(FAMILIES, PACKAGES[4][1]))[row.family]}"
    assert set(row.network) <= set(PROVIDERS)


@pytest.mark.parametrize("text", ["", "ID=debian\n", "ID=debian\nVERSION_ID=120\n", "ID=arch\nVERSION_ID=9\n", "ID=ubuntu\nVERSION_ID=22.10\n"])
def test_host_that_is_not_in_the_table_is_no_other(tmp_path, text):
    assert distribution_of(os_release(host(tmp_path, text))) is None


@pytest.mark.parametrize(
    ("title", "command", "advice"),
    [
        ("RHEL, Alma, Rocky 8", "dmsetup", "install the package device-mapper"),
        ("RHEL, Alma, Rocky 9", "make-bcache", "AlmaLinux has no package with it (bcache-tools on Debian, Ubuntu, SUSE)"),
        ("SLES 15", "sg_sanitize", "install the package sg3_utils"),
        ("Ubuntu 24.04", "sfdisk", "install the package fdisk"),
        ("Debian 13, Proxmox VE 9", "nvme", "install the package nvme-cli"),
        ("Debian 11", "flashcache_create", "install it with its driver, or name its folder in tool_dirs"),
        ("Debian 11", "no-such-command", "install the package no-such-command"),
    ],
)
def test_missing_command_names_the_package_of_the_distribution(tmp_path, title, command, advice):
    assert package_advice(command, host(tmp_path, OS_RELEASE[title])) == advice


def test_unknown_distribution_gets_the_names_of_all(tmp_path):
    root = host(tmp_path, "ID=arch\n")
    assert package_advice("lvs", root) == "install the package lvm2"
    assert package_advice("dmsetup", root) == "install the package dmsetup on Debian, Ubuntu; device-mapper on Enterprise Linux, SUSE"


@pytest.mark.parametrize(
    ("title", "name", "release", "advice"),
    [
        ("RHEL, Alma, Rocky 8", "aoe", "4.18.0-553.el8_10.x86_64", "Enterprise Linux has no aoe in its kernels: use a kernel with CONFIG_ATA_OVER_ETH"),
        ("RHEL, Alma, Rocky 10", "bcache", "6.12.0-55.el10.x86_64", "Enterprise Linux has no bcache in its kernels: use type lvm_cache or dm_cache"),
        ("RHEL, Alma, Rocky 10", "dm-cache", "6.12.0-55.el10.x86_64", "install the package kernel-modules-6.12.0-55.el10.x86_64, or kernel-modules-extra-"),
        ("Ubuntu 24.04", "bcache", "6.8.0-1013-azure", "install the package linux-modules-extra-6.8.0-1013-azure"),
        ("openSUSE Leap 15", "dm-cache", "6.4.0-150600.23-default", "the package kernel-default"),
        ("Debian 12, Proxmox VE 8", "bcache", "6.8.12-4-pve", ""),
    ],
)
def test_missing_module_names_what_brings_it(tmp_path, title, name, release, advice):
    found = module_advice(name, release, host(tmp_path, OS_RELEASE[title], release))
    assert advice in found and bool(advice) == bool(found)


def test_every_python_of_the_table_runs_the_collection():
    for row in DISTRIBUTIONS:
        major, minor = row.python.split(".")
        assert bool(row.interpreter) == ((int(major), int(minor)) < (3, 8)), row.title
    commands = {row.title: newer_python_command(row) for row in DISTRIBUTIONS if row.interpreter}
    assert commands["RHEL, Alma, Rocky 8"] == "dnf install python3.11"
    assert commands["SLES 15"] == commands["openSUSE Leap 15"] == "zypper install python311"


def test_page_has_every_row_of_the_table():
    for row in DISTRIBUTIONS:
        python = f"{row.python}; set `{row.interpreter}`" if row.interpreter else row.python
        cells = (row.title, python, ", ".join(row.network), ", ".join(row.initramfs), "yes" if row.devices_file else "no", row.security, ", ".join(row.tuners))
        assert f"| {' | '.join(cells)} |" in PAGE
    for commands, names in PACKAGES:
        cells = (" ".join(f"`{one}`" for one in commands.split()), *(names * len(FAMILIES) if len(names) == 1 else names))
        assert f"| {' | '.join(cells)} |" in PAGE
    for (family, name), advice in distributions.NOT_BUILT.items():
        assert f"| {name} | {family}: {advice} |" in PAGE


#: The same as Galaxy names it, which does not know the releases of Leap.
GALAXY = {
    "Debian": ["bullseye", "bookworm", "trixie"],
    "EL": ["8", "9", "10"],
    "SLES": ["15", "16"],
    "Ubuntu": ["jammy", "noble", "resolute"],
    "opensuse": ["all"],
}


def test_metadata_of_roles_names_the_distributions_of_the_table():
    for path in ROOT.glob("roles/*/meta/main.yml"):
        platforms = {one["name"]: one["versions"] for one in yaml.safe_load(path.read_text())["galaxy_info"]["platforms"]}
        if path.parent.parent.name == "virtual_rack":
            assert set(platforms) == {"Debian", "Ubuntu"}
        else:
            assert platforms == GALAXY, path
    counted = {name: len([row for row in DISTRIBUTIONS if row.title.startswith(name)]) for name in ("Debian", "RHEL", "SLES", "Ubuntu")}
    assert list(counted.values()) == [len(GALAXY[name]) for name in ("Debian", "EL", "SLES", "Ubuntu")]
