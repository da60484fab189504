# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import bz2
import gzip
import lzma
import struct

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._rack.kernel import uncompressed

PHYS32_ENTRY = 18
_NAMES = {"xen": b"Xen\0", "gnu": b"GNU\0"}


def note(kind, name="xen", content=b"\0" * 6):
    padded = content + b"\0" * (-len(content) % 4)
    return struct.pack("<III", 4, len(content), kind) + _NAMES[name] + padded


def elf(notes, kind=4):
    """A file with one program header, for a segment with these notes."""
    header = b"\x7fELF\x02\x01".ljust(16, b"\0") + struct.pack("<HHIQQQIHHH", 2, 62, 1, 0, 64, 0, 0, 64, 56, 1)
    header = header.ljust(64, b"\0")
    return header + struct.pack("<IIQQQQQQ", kind, 0, 120, 0, 0, len(notes), len(notes), 4) + notes + b"code" * 300


def image(payload, size, version=0x20F, sectors=3, magic=b"HdrS"):
    """A kernel image: sectors of setup code, what uncompresses, the payload and the size of what is in it."""
    text = bytearray(b"\x90" * 512 * (sectors + 1))
    text[0x1F1] = sectors
    text[0x202:0x206] = magic
    struct.pack_into("<H", text, 0x206, version)
    struct.pack_into("<II", text, 0x248, 100, len(payload) + 4)
    return bytes(text) + b"\x90" * 100 + payload + struct.pack("<I", size) + b"checksum"


KERNEL = elf(note(1, "gnu") + note(6, content=b"12345") + note(PHYS32_ENTRY))


@pytest.mark.parametrize("compress", [lzma.compress, lambda data: lzma.compress(data, lzma.FORMAT_ALONE), bz2.compress])
def test_kernel_is_taken_out(compress):
    assert uncompressed(image(compress(KERNEL), len(KERNEL))) == KERNEL


def test_length_behind_gzip_is_that_of_gzip():
    packed = gzip.compress(KERNEL)
    assert uncompressed(image(packed[:-4], len(KERNEL))) == KERNEL


def test_no_sectors_of_setup_code_mean_four():
    whole = bytearray(image(lzma.compress(KERNEL), len(KERNEL), sectors=4))
    whole[0x1F1] = 0
    assert uncompressed(bytes(whole)) == KERNEL


@pytest.mark.parametrize(
    "kept",
    [
        b"",
        b"not a kernel",
        image(lzma.compress(KERNEL), len(KERNEL), version=0x207),
        image(lzma.compress(KERNEL), len(KERNEL), magic=b"none"),
        # Compressed with something else.
        image(b"\x28\xb5\x2f\xfd" + KERNEL, len(KERNEL)),
        # Damaged, or cut off: what is there expands, and ends early.
        image(lzma.compress(KERNEL)[:-30] + b"\0" * 30, len(KERNEL)),
        image(lzma.compress(KERNEL)[:60], len(KERNEL)),
        image(gzip.compress(KERNEL)[:-20], len(KERNEL)),
        image(lzma.compress(KERNEL), len(KERNEL) + 1),
        # QEMU does not find an address to start it at.
        image(lzma.compress(elf(note(6))), len(elf(note(6)))),
        image(lzma.compress(elf(note(PHYS32_ENTRY, "gnu"))), len(elf(note(PHYS32_ENTRY, "gnu")))),
        image(lzma.compress(elf(note(PHYS32_ENTRY), kind=1)), len(elf(note(PHYS32_ENTRY)))),
        image(lzma.compress(b"\x7fELF\x01" + KERNEL[5:]), len(KERNEL)),
        image(lzma.compress(KERNEL[:80]), 80),
    ],
)
def test_any_other_image_is_kept_as_it_is(kept):
    assert uncompressed(kept) == kept
