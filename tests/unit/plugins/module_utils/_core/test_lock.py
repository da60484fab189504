# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lock that cannot be made: become is advised to others than root only."""

from __future__ import annotations

import errno
import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core import lock
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed


@pytest.mark.parametrize(("user", "advice", "other"), [(0, "Root may not either: ", "become"), (1000, "Does the task run as root (become: true)?", "Root may")])
def test_advice_is_for_the_user_of_the_task(tmp_path, monkeypatch, user, advice, other):
    def refuse(*_arguments, **_options):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(lock.os, "geteuid", lambda: user)
    monkeypatch.setattr(lock.os, "open", refuse)
    with pytest.raises(CommandFailed) as caught, lock.exclusive("x", tmp_path):
        pass
    assert advice in str(caught.value) and other not in str(caught.value)
