# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes that the host boots from, and whether its initramfs images can activate them with a cache.

An initramfs activates the root file system itself. Without the module of the cache, or without the checker that LVM runs before it
activates one, the host does not boot. A boot loader that reads ``/boot`` from a logical volume reads past its cache.

Sources: lsinitramfs(8), update-initramfs(8), lsinitrd(1), dracut(8), modules.builtin (Documentation/kbuild/kbuild.rst), lvmdevices(8),
lvm.conf(5) (``global/cache_check_executable``), dracut.cmdline(7) (``rd.lvm.lv``).
"""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import starters
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import BootVolume
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import volume_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.kernel_modules import built_in
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import LvmCacheSpec
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

_MOUNTED_EARLY = ("/", "/usr", "/boot")
#: Systemd mounts it, and the initramfs has nothing to do with it.
_BY_BOOT_LOADER = "is mounted on /boot"
_DEVICES_FILE = "etc/lvm/devices/system.devices"


@frozen
class Tool:
    """How a distribution shows and makes an initramfs.

    :param maker: what makes it, as :data:`distributions.DISTRIBUTIONS` calls it.
    :param show: the command that lists the files of an image.
    :param image: where the image of a kernel is.
    """

    maker: str
    show: str
    image: str


TOOLS = (
    Tool("initramfs-tools", "lsinitramfs", "boot/initrd.img-{kernel}"),
    Tool("dracut", "lsinitrd", "boot/initramfs-{kernel}.img"),
    Tool("dracut", "lsinitrd", "boot/initrd-{kernel}"),
    Tool("dracut", "lsinitrd", "boot/initrd.img-{kernel}"),
)
#: How drivers get into an image, and the command that makes it, by what makes it; and the command that only a host with it has.
_WAYS = {
    "initramfs-tools": "add {modules} to /etc/initramfs-tools/modules and run update-initramfs -u -k all",
    "dracut": 'write add_drivers+=" {modules} " to /etc/dracut.conf.d/cachefleet.conf and run dracut -f --regenerate-all',
}
_COMMANDS = {"initramfs-tools": "mkinitramfs", "dracut": "dracut"}
#: What makes the image of a new kernel in the Debian family, where parts of both can be installed.
_HOOKS = "etc/kernel/postinst.d"


def read_boot_volumes(runner: Runner, devices: Devices, specs: t.Iterable[LvmCacheSpec], root: Path = Path("/")) -> dict[str, BootVolume]:
    """The origins of caches that should be there and that the host boots from, by ``vg/lv``. Only these cost a command for each image."""
    found = {}
    for spec in specs:
        # A hidden volume, and what a snapshot leaves of one, has no name that a user could mount.
        layers = [one for one in devices if volume_of(one) == spec.full_name]
        roles = _roles(devices, layers, spec.full_name, root) if spec.present else ()
        if roles:
            needed = _needed(spec)
            lacking, way = _lacking(runner, root, needed) if set(roles) != {_BY_BOOT_LOADER} else ("", "")
            found[spec.full_name] = BootVolume(roles, lacking, way)
    return found


def _needed(spec: LvmCacheSpec) -> tuple[str, ...]:
    return ("dm-writecache",) if spec.kind == "writecache" else ("dm-cache", "dm-cache-smq", "cache_check")


def _roles(devices: Devices, layers: t.Sequence[BlockDevice], full_name: str, root: Path) -> tuple[str, ...]:
    above = list({one.name: one for layer in layers for one in (layer, *devices.children(layer))}.values())
    roles = [f"is mounted on {place}" for place in _MOUNTED_EARLY if any(place in one.mountpoints for one in above)]
    roles += [f"is named by {title}" for one in above for title in starters.early_titles(one, root)]
    names = {full_name, *(one.logical_volume for one in above)}
    if any(f"rd.lvm.lv={name}" in read_file(root / "proc/cmdline").split() for name in names):
        roles.append("is activated by the initramfs (rd.lvm.lv in /proc/cmdline)")
    return tuple(dict.fromkeys(roles))


def _lacking(runner: Runner, root: Path, needed: t.Sequence[str]) -> tuple[str, str]:
    """What the images of the installed kernels lack, and the way; a kernel without an image boots without one, or not at all."""
    modules = " ".join(one for one in needed if one != "cache_check")
    unknown = "look whether the initramfs has " + ", ".join(needed)
    maker = _maker(runner, root)
    for tool in sorted(TOOLS, key=lambda one: one.maker != maker) if maker else TOOLS:
        kernels = [place.name for place in sorted((root / "lib/modules").glob("*")) if (root / tool.image.format(kernel=place.name)).exists()]
        if not kernels or not runner.has(tool.show):
            continue
        # A tool may show the image that the other one makes.
        way = _WAYS[maker or tool.maker].format(modules=modules)
        for kernel in kernels:
            image = tool.image.format(kernel=kernel)
            shown = runner.run([tool.show, f"/{image}"], ok=None)
            if shown.rc or not shown.stdout.strip():
                return f"/{image} could not be read by {tool.show}", unknown
            within = built_in(root, kernel) or frozenset()
            missing = [one for one in needed if one.replace("-", "_") not in within and not _has(shown.stdout, one)]
            if missing:
                checker = " (install the package of cache_check first)" if "cache_check" in missing and not runner.has("cache_check") else ""
                return f"/{image} has no {', '.join(missing)}", way + checker
            if not _knows_devices(runner, tool, image, shown.stdout, root):
                return f"the devices file in /{image} is not that of the host (/{_DEVICES_FILE})", way
        return "", ""
    return "no initramfs image of an installed kernel could be examined (lsinitramfs, lsinitrd)", unknown


def _maker(runner: Runner, root: Path) -> str:
    """What makes the images of this host: by its hooks, else by the commands that are there, else by its distribution; empty if that is not known."""
    by_hooks = [maker for maker in _WAYS if (root / _HOOKS / maker).exists()]
    by_commands = [maker for maker, command in _COMMANDS.items() if runner.has(command)]
    for found in (by_hooks, by_commands):
        if len(found) == 1:
            return found[0]
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.distributions import distribution_of, os_release

    row = distribution_of(os_release(root))
    return row.initramfs[0] if row else ""


def _has(listing: str, name: str) -> bool:
    if name == "cache_check":
        return re.search(r"s?bin/cache_check(?:\s|$)", listing) is not None
    pattern = name.replace("-", "[-_]")
    return re.search(rf"/{pattern}\.ko(?:\.\w+)?(?:\s|$)", listing) is not None


def _knows_devices(runner: Runner, tool: Tool, image: str, listing: str, root: Path) -> bool:
    """Whether LVM in the image may use the devices that it may use on the host: with a devices file it uses no other (Enterprise Linux 9)."""
    if _DEVICES_FILE not in listing:
        return True
    if tool.show != "lsinitrd":
        return False
    inside = runner.run([tool.show, "--file", _DEVICES_FILE, f"/{image}"], ok=None).stdout
    return _entries(read_file(root / _DEVICES_FILE)) <= _entries(inside)


def _entries(text: str) -> set[tuple[str, ...]]:
    """What identifies each device; its name and the time of the last change do not."""
    lines = (line.split() for line in text.splitlines() if line.startswith("IDTYPE="))
    return {tuple(word for word in words if word.startswith(("IDTYPE=", "IDNAME="))) for words in lines}
