# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel inside a kernel image: an emulated processor needs 3 seconds at each boot to uncompress what is uncompressed here once.

Sources: Documentation/arch/x86/boot.rst (setup header of a bzImage), elf(5), and include/xen/interface/elfnote.h: QEMU starts an uncompressed kernel
that has the note ``XEN_ELFNOTE_PHYS32_ENTRY``.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib

#: Where the setup header of a kernel image has its fields.
_SETUP_SECTORS, _MAGIC, _VERSION, _PAYLOAD = 0x1F1, 0x202, 0x206, 0x248
#: The first version of the boot protocol whose header says where the payload is.
_WITH_PAYLOAD = 0x208

_NOTES, _PHYS32_ENTRY = 4, 18


def uncompressed(image: bytes) -> bytes:
    """What a kernel image carries, if QEMU can start that; otherwise the image itself, which it can start in any case."""
    try:
        payload = _payload(image)
        kernel = _expand(payload)
        # All of it: the payload ends with the length of what it expands to.
        whole = kernel is not None and len(kernel) == struct.unpack("<I", payload[-4:])[0]
        return kernel if kernel is not None and whole and _has_entry(kernel) else image
    except (struct.error, EOFError, OSError, lzma.LZMAError, zlib.error):
        return image


def _payload(image: bytes) -> bytes:
    """The compressed kernel, with the length of the uncompressed one behind it; nothing if the image has no payload."""
    if image[_MAGIC : _MAGIC + 4] != b"HdrS" or struct.unpack_from("<H", image, _VERSION)[0] < _WITH_PAYLOAD:
        return b""
    offset, length = struct.unpack_from("<II", image, _PAYLOAD)
    begins = ((image[_SETUP_SECTORS] or 4) + 1) * 512 + offset
    return image[begins : begins + length]


def _expand(payload: bytes) -> bytes | None:
    """``None`` if it is compressed in a way that Python cannot read."""
    if payload.startswith((b"\xfd7zXZ\0", b"\x5d\0\0")):
        return lzma.LZMADecompressor().decompress(payload)
    if payload.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(wbits=31).decompress(payload)
    if payload.startswith(b"BZh"):
        return bz2.BZ2Decompressor().decompress(payload)
    return None


def _has_entry(kernel: bytes) -> bool:
    """Whether an ELF file of 64 bits has the note with the address at which QEMU starts it."""
    if kernel[:6] != b"\x7fELF\x02\x01":
        return False
    table = struct.unpack_from("<Q", kernel, 32)[0]
    size, count = struct.unpack_from("<HH", kernel, 54)
    for number in range(count):
        kind, _flags, offset, _virtual, _physical, length = struct.unpack_from("<IIQQQQ", kernel, table + number * size)
        if kind == _NOTES and _has_note(kernel[offset : offset + length]):
            return True
    return False


def _has_note(notes: bytes) -> bool:
    place = 0
    while place + 12 <= len(notes):
        name, content, kind = struct.unpack_from("<III", notes, place)
        place += 12
        if kind == _PHYS32_ENTRY and notes[place : place + name] == b"Xen\0":
            return True
        place += (name + 3) // 4 * 4 + (content + 3) // 4 * 4
    return False
