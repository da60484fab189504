# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a device contains, read from the device itself: udev's database can miss a signature that was just written."""

from __future__ import annotations

import contextlib
import json
import re
import struct
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Signature

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

#: Metadata of block caches that libblkid does not support: name, offset, struct format, values.
#: Sources: drivers/md/dm-cache-metadata.c, dm-thin-metadata.c (the magic follows csum, flags, block number and UUID),
#: dm-writecache.c, flashcache.h and eio.h (the state follows size, block size and associativity; EnhanceIO leaves the
#: first 128 sectors of its device alone, where its first releases had the superblock).
CACHE_METADATA: tuple[tuple[str, int, str, frozenset[int]], ...] = (
    ("dm-cache metadata", 32, "<Q", frozenset({0o6142003})),
    ("dm-thin metadata", 32, "<Q", frozenset({27022010})),
    ("dm-writecache metadata", 0, "<I", frozenset({0x23489321})),
    ("flashcache metadata", 16, "<I", frozenset({0xDEADBEEF, 0xFACECAFE, 0xCAFEFEED, 0xC8249756})),
    ("EnhanceIO metadata", 16, "<I", frozenset({0x55DADDEE, 0xACCEDED1, 0xCAFEBABF, 0xDEADDEEE})),
    ("EnhanceIO metadata", 128 * 512 + 16, "<I", frozenset({0x55DADDEE, 0xACCEDED1, 0xCAFEBABF, 0xDEADDEEE})),
)
#: Bytes at the beginning of a device in which all of them lie.
_HEAD = 128 * 512 + 4096


def read_signatures(runner: Runner, path: str) -> tuple[str, ...]:
    """What ``wipefs`` or, where it cannot decide, ``blkid`` finds on a device, as ``type (label or UUID)``.

    Source: wipefs(8), ``--json`` since util-linux 2.31; blkid(8), low-level probing: exit status 2 means that there is
    nothing, 8 that there is more than one thing.

    :raises ToolMissing: if the host has neither: without them it cannot be determined that a device is empty.
    """
    if runner.has("wipefs"):
        completed = runner.run(["wipefs", "--no-act", "--json", path], ok=None, item=path)
        if completed.rc == 0:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                rows = json.loads(completed.stdout)["signatures"] if completed.stdout.strip() else []
                return tuple(dict.fromkeys(_described(row["type"], row.get("label") or row.get("uuid")) for row in rows))
    elif not runner.has("blkid"):
        raise ToolMissing("Neither wipefs nor blkid is on this host, so nothing can show that a device is empty: install the package util-linux.", item=path)
    completed = runner.run(["blkid", "--probe", "--output", "export", path], ok=(0, 2, 8), item=path)
    if completed.rc == 2:
        return ()
    if completed.rc == 8:
        return ("several signatures",)
    values = dict(line.split("=", 1) for line in completed.stdout.splitlines() if "=" in line)
    found = [_described(values[key], values.get("LABEL") or values.get("UUID")) for key in ("TYPE", "PTTYPE") if values.get(key)]
    return tuple(found) or ("an unnamed signature",)


def read_tags(runner: Runner, path: str) -> Signature | None:
    """UUID and label of what stands on a device, by low-level probing; None where blkid finds nothing, or finds several things."""
    completed = runner.run(["blkid", "--probe", "--output", "export", path], ok=None, item=path) if runner.has("blkid") else None
    if completed is None or completed.rc:
        return None
    values = {key: re.sub(r"\\(.)", r"\1", value) for key, equals, value in (line.partition("=") for line in completed.stdout.splitlines()) if equals}
    return Signature(values.get("USAGE"), values.get("TYPE"), values.get("UUID"), values.get("LABEL"))


def _described(kind: str, name: str | None) -> str:
    return f"{kind} ({name})" if name else kind


def read_cache_metadata(path: Path) -> tuple[str, ...]:
    """Superblocks of block caches at the beginning of a device, which libblkid does not support; each name once."""
    try:
        with open(path, "rb") as device:
            head = device.read(_HEAD)
    except OSError:
        return ()
    found = [
        name
        for name, offset, form, values in CACHE_METADATA
        if len(head) >= offset + struct.calcsize(form) and struct.unpack_from(form, head, offset)[0] in values
    ]
    return tuple(dict.fromkeys(found))
