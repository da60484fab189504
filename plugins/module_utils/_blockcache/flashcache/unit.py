# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The systemd unit of one flashcache device: brings it up with its sysctls at boot, and takes it down before the power goes.

A write-back cache is loaded from its SSD. The other modes keep nothing over a reboot and are made again with all their
options, and no mode keeps a sysctl. doc/flashcache-sa-guide.txt: a device that is not removed before a halt makes the kernel panic.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import boot_unit
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.output import folder_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

_DESCRIPTION = re.compile(r"^Description=flashcache (?P<name>\S+) of (?P<disk>\S+) on (?P<ssd>\S+)$", re.MULTILINE)
#: ``$1`` is the node of the cache, the rest a command that would fail where it runs already.
_UNLESS_THERE = '[ -e "$1" ] || { shift; exec "$@"; }'
#: A shell, because nothing else writes a file that is called like this in every release of systemd; it parses neither value.
_WRITE = 'echo "$1" >"$2" && read -r found <"$2" && [ "$found" = "$1" ] || { echo "$2 could not be set to $1" >&2; exit 1; }'


@frozen
class Places:
    """Absolute paths of the commands in a unit: by their names, as far as they are on the host."""

    tools: t.Mapping[str, str]
    kernel_module: str

    def __getitem__(self, name: str) -> str:
        return self.tools.get(name, f"/sbin/{name}")


def render(name: str, ssd: str, disk: str, make: t.Sequence[str], numbers: t.Mapping[str, int], places: Places) -> str:
    """The text of the unit.

    :param make: the command that loads or makes the cache.
    :param numbers: sysctls that are not at their defaults.
    """
    start = [
        [places["modprobe"], places.kernel_module],
        ["/bin/sh", "-c", _UNLESS_THERE, "unless-there", f"/dev/mapper/{name}", *make],
        # A sysctl that cannot be set is in the journal and does not fail the unit: one that failed does not take the cache down before a halt.
        *(["-/bin/sh", "-c", _WRITE, "write", str(value), f"{sysctl_folder(ssd, disk)}/{key}"] for key, value in sorted(numbers.items())),
    ]
    return boot_unit.render(
        f"flashcache {name} of {disk} on {ssd}",
        [ssd, disk],
        start,
        [[places["dmsetup"], "remove", "--retry", name]],
        # What an earlier read has left in the page cache would be taken for the superblock.
        check=[[places["blockdev"], "--flushbufs", ssd]],
        # What writes through begins empty.
        late=True,
        item=name,
    )


def sysctl_folder(ssd: str, disk: str) -> str:
    """The folder of the sysctls. Names with dots in them are no names for sysctl(8)."""
    return f"/proc/sys/dev/flashcache/{folder_of(ssd, disk)}"


def ssd_of(text: str) -> str:
    """The path of the SSD in a unit of ours; empty if there is none."""
    match = _DESCRIPTION.search(text)
    return match.group("ssd").replace("%%", "%") if match else ""


def loads(text: str) -> bool:
    """Whether a unit of ours loads a write-back cache, and does not make one that writes through."""
    return "flashcache_load " in text
