# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the running kernel has a module, known before anything is written that only this module can serve.

Sources: Documentation/ABI/stable/sysfs-module; modprobe(8) (``--dry-run`` ends with 0 for what is built in or installed for this kernel);
modprobe.d(5) (``install``); Documentation/admin-guide/sysctl/kernel.rst (``modules_disabled``); dmsetup(8) (``targets``); os-release(5).
"""

from __future__ import annotations

import os
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_bytes, read_file

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

#: Options of a kernel that has a module, and since when there is one.
_OPTIONS = {
    "aoe": "CONFIG_ATA_OVER_ETH",
    "bcache": "CONFIG_BCACHE",
    "dm-cache": "CONFIG_DM_CACHE",
    "dm-raid": "CONFIG_DM_RAID",
    "dm-writecache": "CONFIG_DM_WRITECACHE, Linux 4.18 or newer",
    "raid1": "CONFIG_MD_RAID1",
}
#: Targets of device-mapper by the module that registers them, which a kernel without loadable modules shows nowhere else.
_TARGETS = {"dm-cache": "cache", "dm-writecache": "writecache", "dm-raid": "raid"}
#: What a module shows that is built in: a file that is there, or has this word.
_SHOWN = {"bcache": ("sys/fs/bcache/register", ""), "raid1": ("proc/mdstat", "[raid1]")}
_RELEASE = "proc/sys/kernel/osrelease"
_CONFIGURATION = ("etc/modprobe.d", "run/modprobe.d", "usr/local/lib/modprobe.d", "usr/lib/modprobe.d", "lib/modprobe.d")
_LOCKED = "proc/sys/kernel/modules_disabled"


def kernel_release(root: Path = Path("/")) -> str:
    """The release of the running kernel."""
    return read_file(root / _RELEASE).strip() or os.uname().release


def modules_folder(root: Path = Path("/"), release: str = "") -> Path:
    """Where the modules of a kernel are; of the running one, unless another is named."""
    return root / "lib/modules" / (release or os.uname().release)


def built_in(root: Path = Path("/"), release: str = "") -> frozenset[str] | None:
    """The modules that are part of a kernel, with ``_`` for ``-``; ``None`` if nothing says what it has. Source: ``modules.builtin`` of kbuild."""
    try:
        text = read_bytes(modules_folder(root, release) / "modules.builtin").decode("utf-8", "replace")
    except (OSError, StorageError):
        return None
    return frozenset(os.path.basename(line).split(".ko", 1)[0].replace("-", "_") for line in text.split())


def is_loaded(name: str, root: Path = Path("/")) -> bool:
    """Whether a module is loaded, or built in and shown by what it serves."""
    plain = name.replace("-", "_")
    place, word = _SHOWN.get(name, ("", ""))
    if place and (root / place).exists() and (not word or word in read_file(root / place)):
        return True
    return (root / "sys/module" / plain).is_dir() or any(line.split(" ", 1)[0] == plain for line in read_file(root / "proc/modules").splitlines())


def is_available(runner: Runner, name: str, root: Path = Path("/")) -> bool:
    """Whether the kernel has a module, or would load it when it is used. Costs no command for one that is loaded."""
    return is_loaded(name, root) or (not _obstacle(name, root) and _is_installed(runner, name)) or _has_target(runner, name)


def missing_sentence(name: str, root: Path = Path("/")) -> str:
    """Why a module that is not available cannot be used, and what to do, as a sentence without its beginning."""
    obstacle = _obstacle(name, root)
    return f"the kernel module {name} is not available on kernel {kernel_release(root)}: {obstacle or _advice(name, root)}"


def _is_installed(runner: Runner, name: str) -> bool:
    return runner.has("modprobe") and runner.run(["modprobe", "--dry-run", "--quiet", name], ok=None).rc == 0


def _has_target(runner: Runner, name: str) -> bool:
    target = _TARGETS.get(name)
    if target is None or not runner.has("dmsetup"):
        return False
    return target in (line.split(" ", 1)[0] for line in runner.run(["dmsetup", "targets"], ok=None).stdout.splitlines())


def _obstacle(name: str, root: Path) -> str:
    """What keeps modules from being loaded on this host, as advice; empty if nothing does."""
    if read_file(root / _LOCKED).strip() == "1":
        return "no module can be loaded before the next boot (kernel.modules_disabled is 1): have it loaded at boot (/etc/modules-load.d)"
    # CIS benchmarks disable modules so.
    spelled = "[-_]".join(re.split("[-_]", name))
    pattern = re.compile(rf"^\s*install\s+{spelled}\s+\S*/(?:false|true)\s*$", re.MULTILINE)
    for folder in _CONFIGURATION:
        for place in sorted((root / folder).glob("*.conf")):
            if pattern.search(read_file(place)):
                return f"an install line in /{place.relative_to(root)} disables it: remove that line"
    return ""


def _advice(name: str, root: Path) -> str:
    """The package that has a module, by distribution."""
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.distributions import module_advice

    release = kernel_release(root)
    if not any((root / folder / release).is_dir() for folder in ("lib/modules", "usr/lib/modules")):
        return f"/lib/modules/{release} does not exist, as after an update that removed this kernel: restart the host with a kernel that is installed"
    return module_advice(name, release, root) or f"use a kernel that has it ({_OPTIONS.get(name, name)})"
