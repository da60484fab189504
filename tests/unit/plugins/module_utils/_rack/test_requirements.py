# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.cachefleet.storage.plugins.module_utils._rack import requirements


def test_available_memory_is_read_in_bytes(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal:       24684408 kB\nMemAvailable:   23814000 kB\n")
    assert requirements.available_memory(tmp_path) == 23814000 * 1024
