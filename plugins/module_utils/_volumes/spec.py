# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the user describes: test volumes, each on devices of its own. Pure."""

from __future__ import annotations

import os
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.spec import read_size
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, MIB, format_size, parse_size

TYPES = ("linear", "striped", "thin", "raid1", "raid10")
FILE_SYSTEMS = ("ext4", "xfs")
#: Of a new volume group, in bytes.
EXTENT = 4 * MIB

#: With ``any:test_`` before it, it must fit into the 32 bytes of the name in an MD superblock.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,21}\Z")

VOLUME_OPTIONS: t.Mapping[str, t.Mapping[str, t.Any]] = {
    "name": {"type": "str", "required": True},
    "devices": {"type": "list", "elements": "path", "required": True},
    "type": {"type": "str", "choices": list(TYPES), "default": "linear"},
    "stripes": {"type": "int"},
    "stripe_size": {"type": "str"},
    "size": {"type": "str"},
    "filesystem": {"type": "str", "choices": list(FILE_SYSTEMS)},
    "mount": {"type": "path"},
    "mount_options": {"type": "str", "default": "defaults,nofail"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "allow_data_loss": {"type": "bool", "default": False},
}


@frozen
class VolumeSpec:
    """One volume. Sizes in bytes; ``size`` is None for ``share`` of the volume group; ``stripes`` is 1 where nothing is striped."""

    name: str
    devices: tuple[str, ...]
    type: str = "linear"
    stripes: int = 1
    stripe_size: int = 0
    size: int | None = None
    share: float = 1.0
    filesystem: str | None = None
    mount: str | None = None
    mount_options: str = "defaults,nofail"
    state: str = "present"
    allow_data_loss: bool = False

    @property
    def label(self) -> str:
        """The name of the volume group or of the array."""
        return f"test_{self.name}"

    @property
    def is_array(self) -> bool:
        return self.type in ("raid1", "raid10")

    @property
    def path(self) -> str:
        """Persistent path of the volume."""
        return f"/dev/md/{self.label}" if self.is_array else f"/dev/{self.label}/{self.name}"


def read_volumes(items: t.Iterable[t.Mapping[str, t.Any]]) -> tuple[VolumeSpec, ...]:
    """The specifications of a list.

    :raises BadInput: naming the volume and what contradicts.
    """
    specs = tuple(_read(item) for item in items)
    for attribute in ("name", "mount"):
        seen: set[str] = set()
        for spec in specs:
            value = getattr(spec, attribute)
            if value in seen:
                raise BadInput(f"Two volumes have the {attribute} {value}: each {attribute} may be listed only once.", item=spec.name)
            if value is not None:
                seen.add(value)
    return specs


def _read(item: t.Mapping[str, t.Any]) -> VolumeSpec:
    name, kind = item["name"], item["type"]
    if not _NAME.match(name):
        raise BadInput(f"Invalid volume name '{name}': use up to 22 letters, digits and '_', beginning with a letter.", item=name)
    devices = tuple(item["devices"])
    if not devices or len(set(devices)) != len(devices):
        raise BadInput(f"{name}: devices must list at least one device, each once.", item=name)
    stripes, stripe_size = _stripes(item, devices)
    size, share = _size(item)
    mount = _mount(item)
    if kind in ("raid1", "raid10") and len(devices) < 2:
        raise BadInput(f"{name}: type {kind} needs at least two devices.", item=name)
    return VolumeSpec(
        name=name,
        devices=devices,
        type=kind,
        stripes=stripes,
        stripe_size=stripe_size,
        size=size,
        share=share,
        filesystem=item["filesystem"],
        mount=mount,
        mount_options=item["mount_options"],
        state=item["state"],
        allow_data_loss=item["allow_data_loss"],
    )


def _stripes(item: t.Mapping[str, t.Any], devices: t.Sequence[str]) -> tuple[int, int]:
    name, kind = item["name"], item["type"]
    if item["stripes"] is not None and kind != "striped":
        raise BadInput(f"{name}: stripes is not supported for type {kind}.", item=name)
    if kind not in ("striped", "raid10"):
        if item["stripe_size"] is not None:
            raise BadInput(f"{name}: stripe_size is not supported for type {kind}.", item=name)
        return 1, 0
    stripes = (len(devices) if item["stripes"] is None else item["stripes"]) if kind == "striped" else 1
    if kind == "striped" and not 2 <= stripes <= len(devices):
        raise BadInput(f"{name}: stripes must be between 2 and the number of devices, which is {len(devices)}.", item=name)
    size = parse_size(item["stripe_size"] or "1M", name, "stripe_size")
    if not 4 * KIB <= size <= EXTENT or size & (size - 1):
        raise BadInput(f"{name}: stripe_size must be a power of two between 4K and {format_size(EXTENT)}.", item=name)
    return stripes, size


def _size(item: t.Mapping[str, t.Any]) -> tuple[int | None, float]:
    name, kind = item["name"], item["type"]
    if kind in ("raid1", "raid10") and item["size"] is not None:
        raise BadInput(f"{name}: size is not supported for type {kind}, which uses its devices completely.", item=name)
    size, share = read_size(item["size"], name)
    if kind == "thin" and size is None:
        raise BadInput(f"{name}: type thin needs a size in bytes, such as 100G, because a thin volume may be larger than its devices.", item=name)
    if size is None and round(share * 100) / 100 != share:
        raise BadInput(f"{name}: size must be a whole percentage.", item=name)
    return size, share


def _mount(item: t.Mapping[str, t.Any]) -> str | None:
    name, mount = item["name"], item["mount"]
    if mount is None:
        return None
    if item["filesystem"] is None and item["state"] == "present":
        raise BadInput(f"{name}: mount needs a filesystem.", item=name)
    if not mount.startswith("/") or os.path.normpath(mount) == "/" or re.search(r"[\s\\#]", mount):
        raise BadInput(f"{name}: mount must be an absolute path without spaces, other than /.", item=name)
    if re.search(r"[\s\\#]", item["mount_options"]) or not item["mount_options"]:
        raise BadInput(f"{name}: mount_options must be options separated by commas, without spaces.", item=name)
    return os.path.normpath(mount)
