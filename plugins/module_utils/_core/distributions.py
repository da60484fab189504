# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What distributions call things: the one table behind messages, ``docs/distributions.md``, role metadata and ``scripts/try-on-this-host``.

Imported where a message is made, so that a call without problems does not read it.

Sources: os-release(5); "Configuring and managing logical volumes" of RHEL (the devices file is used by default from RHEL 9 on); "Key differences between
SUSE Linux Enterprise 15 and 16" (wicked is removed, SELinux is the default); the Proxmox VE administration guide (network configuration). Names of packages
of Enterprise Linux and SUSE, and what their kernels have, are common knowledge that was not checked on such hosts: ``scripts/try-on-this-host`` does so.
"""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

DEBIAN, RHEL, SUSE = FAMILIES = ("Debian, Ubuntu", "Enterprise Linux", "SUSE")

#: Words of ``ID`` and ``ID_LIKE`` in os-release.
_WORDS = {
    DEBIAN: ("debian", "ubuntu", "proxmox"),
    RHEL: ("rhel", "centos", "fedora", "almalinux", "rocky", "ol"),
    SUSE: ("suse", "opensuse", "sles", "sles_sap", "opensuse-leap", "opensuse-tumbleweed"),
}

#: Commands, and the packages that have them in the order of :data:`FAMILIES`; one name if all call it the same, "-" if there is none.
PACKAGES = (
    ("bcache-super-show make-bcache", ("bcache-tools", "-", "bcache-tools")),
    ("blkdiscard blkid blockdev setpriv wipefs", ("util-linux",)),
    ("sfdisk", ("fdisk", "util-linux", "util-linux")),
    ("mount umount", ("mount", "util-linux", "util-linux")),
    ("cache_check cache_dump", ("thin-provisioning-tools", "device-mapper-persistent-data", "thin-provisioning-tools")),
    ("dmsetup", ("dmsetup", "device-mapper", "device-mapper")),
    ("lvchange lvconvert lvcreate lvm lvmconfig lvremove lvs pvcreate pvremove pvs vgcreate vgextend vgreduce vgs", ("lvm2",)),
    ("mdadm", ("mdadm",)),
    ("hdparm", ("hdparm",)),
    ("sdparm", ("sdparm",)),
    ("sg_sanitize", ("sg3-utils", "sg3_utils", "sg3_utils")),
    ("nvme", ("nvme-cli",)),
    ("smartctl", ("smartmontools",)),
    ("fio", ("fio",)),
    ("mke2fs mkfs.ext4", ("e2fsprogs",)),
    ("mkfs.xfs", ("xfsprogs",)),
    ("modprobe", ("kmod",)),
    ("sync", ("coreutils",)),
    ("sysctl", ("procps", "procps-ng", "procps")),
    ("systemctl systemd-run busctl", ("systemd",)),
    ("udevadm", ("udev", "systemd-udev", "udev")),
    ("ip ss", ("iproute2", "iproute", "iproute2")),
    ("nmcli", ("network-manager", "NetworkManager", "NetworkManager")),
    ("netplan", ("netplan.io", "-", "-")),
    ("wicked", ("-", "-", "wicked")),
)

#: Drivers that no distribution has, and where their commands come from.
_OF_DRIVERS = ("eio_cli", "flashcache_create", "flashcache_destroy", "flashcache_load", "flashcache_setioctl")

#: Modules that no kernel of a family has, and what serves instead. Fedora builds them.
NOT_BUILT = {
    (RHEL, "bcache"): "use type lvm_cache or dm_cache, or a kernel with CONFIG_BCACHE",
    (RHEL, "aoe"): "use a kernel with CONFIG_ATA_OVER_ETH, or attach the devices in another way",
}
_INSTALL = {DEBIAN: "apt install", RHEL: "dnf install", SUSE: "zypper install"}


@frozen
class Distribution:
    """A row of the table.

    :param ids: ``ID`` in os-release.
    :param versions: what ``VERSION_ID`` begins with.
    :param python: the version of its ``python3``.
    :param interpreter: a newer one for ``ansible_python_interpreter`` if the collection does not run with ``python``; its file name is that of its package.
    :param initramfs: what makes it; another one where several can be installed.
    :param network: where the MTU at boot is, most frequent first; names of ``provider``.
    :param devices_file: whether LVM uses its devices file unless told otherwise.
    :param tuners: what else sets queues and drive caches if it is installed.
    :param security: the security module in force after installation.
    """

    title: str
    family: str
    ids: tuple[str, ...]
    versions: tuple[str, ...]
    python: str
    initramfs: tuple[str, ...]
    network: tuple[str, ...]
    security: str
    interpreter: str = ""
    devices_file: bool = False
    tuners: tuple[str, ...] = ("tuned", "udisks2")


_EL = ("rhel", "almalinux", "rocky", "centos", "ol")
_SLES = ("sles", "sles_sap")
_UBUNTU = ("netplan", "systemd_networkd", "networkmanager")
_DEBIAN_NET = ("ifupdown", "networkmanager", "systemd_networkd")
_SUSE_TUNERS = ("tuned", "saptune", "udisks2")

DISTRIBUTIONS = (
    Distribution("RHEL, Alma, Rocky 8", RHEL, _EL, ("8",), "3.6", ("dracut",), ("networkmanager",), "SELinux", interpreter="/usr/bin/python3.11"),
    Distribution("RHEL, Alma, Rocky 9", RHEL, _EL, ("9",), "3.9", ("dracut",), ("networkmanager",), "SELinux", devices_file=True),
    Distribution("RHEL, Alma, Rocky 10", RHEL, _EL, ("10",), "3.12", ("dracut",), ("networkmanager",), "SELinux", devices_file=True),
    Distribution("Ubuntu 22.04", DEBIAN, ("ubuntu",), ("22.04",), "3.10", ("initramfs-tools",), _UBUNTU, "AppArmor"),
    Distribution("Ubuntu 24.04", DEBIAN, ("ubuntu",), ("24.04",), "3.12", ("initramfs-tools",), _UBUNTU, "AppArmor"),
    Distribution("Ubuntu 26.04", DEBIAN, ("ubuntu",), ("26.04",), "3.14", ("dracut", "initramfs-tools"), _UBUNTU, "AppArmor"),
    Distribution("SLES 15", SUSE, _SLES, ("15",), "3.6", ("dracut",), ("wicked", "networkmanager"), "AppArmor", "/usr/bin/python3.11", tuners=_SUSE_TUNERS),
    Distribution("openSUSE Leap 15", SUSE, ("opensuse-leap",), ("15",), "3.6", ("dracut",), ("wicked", "networkmanager"), "AppArmor", "/usr/bin/python3.11"),
    Distribution("SLES 16", SUSE, _SLES, ("16",), "3.13", ("dracut",), ("networkmanager",), "SELinux", tuners=_SUSE_TUNERS),
    Distribution("openSUSE Leap 16", SUSE, ("opensuse-leap",), ("16",), "3.13", ("dracut",), ("networkmanager",), "SELinux"),
    Distribution("Debian 11", DEBIAN, ("debian",), ("11",), "3.9", ("initramfs-tools",), _DEBIAN_NET, "AppArmor"),
    Distribution("Debian 12, Proxmox VE 8", DEBIAN, ("debian",), ("12",), "3.11", ("initramfs-tools",), _DEBIAN_NET, "AppArmor"),
    Distribution("Debian 13, Proxmox VE 9", DEBIAN, ("debian",), ("13",), "3.13", ("initramfs-tools",), _DEBIAN_NET, "AppArmor"),
)


def os_release(root: Path = Path("/")) -> dict[str, str]:
    """The fields of os-release(5); empty if a host has none."""
    text = read_file(root / "etc/os-release") or read_file(root / "usr/lib/os-release")
    return {key: value.strip().strip("\"'") for key, value in re.findall(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE)}


def family_of(fields: t.Mapping[str, str]) -> str:
    """One of :data:`FAMILIES`, by os-release; empty for another one."""
    words = [fields.get("ID", ""), *fields.get("ID_LIKE", "").split()]
    return next((family for word in words for family, names in _WORDS.items() if word in names), "")


def distribution_of(fields: t.Mapping[str, str]) -> Distribution | None:
    """The row of a host, by os-release; None for one that is not in the table."""
    version = fields.get("VERSION_ID", "")
    for row in DISTRIBUTIONS:
        if fields.get("ID") in row.ids and any(version == one or version.startswith(f"{one}.") for one in row.versions):
            return row
    return None


def packages_of(command: str) -> dict[str, str]:
    """The package of a command by family, ``-`` if a family has none. A command that is not in the table has its own name."""
    names = next((names for commands, names in PACKAGES if command in commands.split()), (command,))
    return dict(zip(FAMILIES, names * len(FAMILIES) if len(names) == 1 else names))


def package_advice(command: str, root: Path = Path("/")) -> str:
    """What to do about a missing command on this host, as a sentence without its beginning and its end."""
    if command in _OF_DRIVERS:
        return "install it with its driver, or name its folder in tool_dirs"
    fields, packages = os_release(root), packages_of(command)
    package = packages.get(family_of(fields), "")
    if package == "-":
        return f"{fields.get('NAME') or fields['ID']} has no package with it ({_listed(packages)})"
    return f"install the package {package or _listed(packages)}"


def _listed(packages: t.Mapping[str, str]) -> str:
    names = dict.fromkeys(packages.values())
    if len(names) == 1:
        return next(iter(names))
    return "; ".join(f"{name} on {', '.join(family for family, one in packages.items() if one == name)}" for name in names if name != "-")


def module_advice(name: str, release: str, root: Path = Path("/")) -> str:
    """The package that has a kernel module on this host, or that its kernels do not have it; empty where nothing is known."""
    fields = os_release(root)
    family, own = family_of(fields), fields.get("ID", "")
    if (family, name) in NOT_BUILT and own != "fedora":
        return f"{family} has no {name} in its kernels: {NOT_BUILT[family, name]}"
    if family == RHEL:
        prefix = "kernel-uek" if "uek" in release else "kernel"
        return f"install the package {prefix}-modules-{release}, or {prefix}-modules-extra-{release} if it is not in there"
    if family == SUSE:
        return "start the host with the kernel of the package kernel-default, in place of kernel-default-base"
    if family == DEBIAN and "pve" not in release:
        if "ubuntu" in (own, *fields.get("ID_LIKE", "").split()):
            return f"install the package linux-modules-extra-{release}"
        if "cloud" in release:
            return f"start the host with the kernel of the package linux-image-{release.rsplit('-', 1)[-1]}, in place of that for clouds"
    return ""


def newer_python_command(row: Distribution) -> str:
    """What installs the interpreter of a row; empty if its own Python will do."""
    package = row.interpreter.rpartition("/")[2]
    # SUSE names the package without the point.
    return f"{_INSTALL[row.family]} {package.replace('.', '') if row.family == SUSE else package}" if package else ""
