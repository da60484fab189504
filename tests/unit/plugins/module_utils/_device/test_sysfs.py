# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import write_sysfs


def test_a_kernel_that_refuses_a_value_is_one_sentence(tmp_path: pathlib.Path) -> None:
    with pytest.raises(CommandFailed, match="the kernel refused 'write back'"):
        write_sysfs(tmp_path / "missing" / "cache_type", "write back", "/dev/vdb")
