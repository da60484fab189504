# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host that measures, as a report names it: processors, memory, vendor and product. What cannot be read is ``None``.

Sources: proc(5), ``/proc/cpuinfo`` and ``/proc/meminfo``; Documentation/ABI/testing/sysfs-class-dmi.
"""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute

_LONGEST = 200
#: ARM processors have no model name, only that of the machine.
_CPU = re.compile(r"^model name\s*:\s*(.+)$", re.MULTILINE)
_PROCESSOR = re.compile(r"^processor\s*:", re.MULTILINE)
_MEMORY, _AVAILABLE = (re.compile(rf"^{name}:\s*(\d+) kB", re.MULTILINE) for name in ("MemTotal", "MemAvailable"))


def describe_machine(root: Path = Path("/")) -> dict[str, t.Any]:
    """``cpu``, ``cpus`` (logical), ``memory`` in bytes, ``vendor`` and ``product``."""
    processors, memory = _text(root / "proc/cpuinfo"), _MEMORY.search(_text(root / "proc/meminfo"))
    model = _CPU.search(processors)
    dmi = root / "sys/class/dmi/id"
    return {
        "cpu": " ".join(model.group(1).split())[:_LONGEST] if model else None,
        "cpus": len(_PROCESSOR.findall(processors)) or None,
        "memory": int(memory.group(1)) * KIB if memory else None,
        "vendor": (read_attribute(dmi / "sys_vendor") or "")[:_LONGEST] or None,
        "product": (read_attribute(dmi / "product_name") or "")[:_LONGEST] or None,
    }


def available_memory(root: Path = Path("/")) -> int | None:
    """Bytes that can be used without swapping (MemAvailable); ``None`` where the kernel does not report it."""
    found = _AVAILABLE.search(_text(root / "proc/meminfo"))
    return int(found.group(1)) * KIB if found else None


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
