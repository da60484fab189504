# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute, read_number, write_sysfs


def test_write_rejected_by_kernel_is_reported_in_one_sentence(tmp_path):
    with pytest.raises(CommandFailed, match="the kernel refused 'write back'"):
        write_sysfs(tmp_path / "missing" / "cache_type", "write back", "/dev/vdb")


def test_attribute_is_stripped_text_or_none(tmp_path):
    (tmp_path / "model").write_bytes(b"VIRTUAL SSD     \n")
    (tmp_path / "serial").write_bytes(b"S\xff\0\n")
    assert read_attribute(tmp_path / "model") == "VIRTUAL SSD"
    assert read_attribute(tmp_path / "serial") == "S\ufffd"
    assert read_attribute(tmp_path / "missing") is read_attribute(tmp_path) is read_attribute(tmp_path / "a\0b") is None


@pytest.mark.parametrize(("text", "number"), [("128\n", 128), ("-1\n", -1), ("\n", None), ("3 (2)\n", None)])
def test_number_is_an_integer_or_none(tmp_path, text, number):
    (tmp_path / "value").write_text(text)
    assert read_number(tmp_path / "value") == number
    assert read_number(tmp_path / "missing") is None
