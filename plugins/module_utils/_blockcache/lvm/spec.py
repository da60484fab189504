# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a user requests for one LVM cache, checked as far as it can be without reading the host."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import spec as common
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_settings import KIND_WRITECACHE, WRITECACHE_MODES, read_options
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

#: lvm(8), "VALID NAMES"; a leading hyphen would read as an option.
_NAME = re.compile(r"^[A-Za-z0-9_+.][A-Za-z0-9_+.-]*$")

KINDS = ("cachepool", "cachevol", KIND_WRITECACHE)
MODES = ("writethrough", "writeback", "passthrough")
#: Options of one cache, as a module takes them.
CACHE_OPTIONS: t.Mapping[str, t.Any] = {
    **common.COMMON_OPTIONS,
    "kind": {"type": "str", "choices": list(KINDS), "default": "cachepool"},
    "mode": {"type": "str", "choices": list(MODES)},
    "allow_boot_volume": {"type": "bool", "default": False},
}


@frozen
class LvmCacheSpec(common.CacheSpec):
    """One LVM cache of the volume ``vg/lv``. A setting of None is to be taken away, so that the kernel's own default applies.

    :param public: of a hidden volume the name that LVM accepts in its place: that of the thin pool or VDO pool that it is the data of.
    """

    vg: str = ""
    lv: str = ""
    public: str = ""
    allow_boot_volume: bool = False

    @property
    def full_name(self) -> str:
        """The name of the volume that is or will be cached; :attr:`origin` is what the user wrote."""
        return f"{self.vg}/{self.lv}"

    @property
    def volume(self) -> str:
        """The name of the fast volume while it is attached to nothing; LVM adds ``_cpool`` or ``_cvol`` when it is."""
        return f"{self.public or self.lv}_cache"

    @property
    def metadata_volume(self) -> str:
        """The name of what becomes the metadata of a mirrored cachepool, until it does."""
        return f"{self.volume}_meta"


def read_items(items: t.Sequence[t.Mapping[str, t.Any]]) -> list[LvmCacheSpec]:
    """The list a user wrote.

    :raises BadInput: naming the item and what to write instead.
    """
    specs = [_read_item(item) for item in items]
    common.require_unique(specs)
    return specs


def _read_item(item: t.Mapping[str, t.Any]) -> LvmCacheSpec:
    name = item["name"]
    fields = common.read_common(item, plain_name=False)
    fields["origin"], vg, lv = _origin(item["origin"], name)
    kind = item.get("kind") or "cachepool"
    modes = WRITECACHE_MODES if kind == KIND_WRITECACHE else MODES
    spec = LvmCacheSpec(
        **read_options(kind, item.get("settings") or {}, fields),
        vg=vg,
        lv=lv,
        allow_boot_volume=bool(item.get("allow_boot_volume")),
        kind=kind,
        mode=common.read_mode(item, modes, f"kind {kind}"),
    )
    _require_known_devices(spec)
    if spec.present and spec.mirror and kind == KIND_WRITECACHE:
        raise BadInput(
            f"{name}: LVM accepts only a linear volume as a writecache and cannot mirror it:"
            " leave mirror out and name one MD RAID1 device (/dev/md/NAME), which counts as mirrored, or use kind cachepool in mode writeback.",
            item=name,
        )
    return spec


def _origin(text: str, item: str) -> tuple[str, str, str]:
    words = (text[len("/dev/") :] if text.startswith("/dev/") else text).split("/")
    if text.startswith("/dev/mapper/"):
        # Hyphens inside the two names are doubled there. A hidden volume has no other path.
        words = [word.replace("--", "-") for word in re.split(r"(?<!-)-(?!-)", text[len("/dev/mapper/") :])]
    if len(words) != 2 or not all(_NAME.match(word) for word in words):
        raise BadInput(f"{item}: origin is '{text}': use it as volume group and logical volume, for example vg0/images.", item=item)
    return f"{words[0]}/{words[1]}", words[0], words[1]


def _require_known_devices(spec: LvmCacheSpec) -> None:
    if spec.release_devices and spec.state == "absent" and not spec.cache_devices:
        raise BadInput(f"{spec.name}: release_devices releases cache_devices, and cache_devices is empty: name them.", item=spec.name)
