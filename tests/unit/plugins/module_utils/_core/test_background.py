# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import threading

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Background


def test_caller_continues_before_the_result_is_available():
    go = threading.Event()
    # It would wait for ever if the caller had to wait for it.
    requested = Background(lambda: go.wait(60) and "answer")
    go.set()
    assert requested.answer() == "answer"
    assert requested.answer() == "answer"


def test_exception_is_raised_when_the_result_is_read():
    def fail():
        raise CommandFailed("lvm failed.", item="vg0")

    requested = Background(fail)
    with pytest.raises(CommandFailed, match="lvm failed"):
        requested.answer()


def test_none_is_a_valid_result():
    assert Background(lambda: None).answer() is None
