# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The devices of running EnhanceIO caches, which have no device of their own, no holder and no link in sysfs.

Source: ``/proc/enhanceio/NAME/config`` (eio_procfs.c), as the fork elmystico prints it on Linux 5.10.
"""

from __future__ import annotations

import re
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute

_DEVICE = re.compile(r"^(src_name|ssd_name)\s+(/\S+)\s*$", re.MULTILINE)


def read_enhanceio_devices(root: Path = Path("/")) -> dict[str, dict[str, str]]:
    """The paths of the origin (``src_name``) and of the cache device (``ssd_name``) by the name of the cache; a key is missing where it cannot be read."""
    configs = sorted((root / "proc/enhanceio").glob("*/config"))
    return {config.parent.name: dict(_DEVICE.findall(read_attribute(config) or "")) for config in configs}
