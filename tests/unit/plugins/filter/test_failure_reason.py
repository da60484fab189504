# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reason of a failed task: its message, and what a module that died wrote last."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.cachefleet.storage.plugins.filter.failure_reason import FilterModule

failure_reason = FilterModule().filters()["failure_reason"]


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ({"failed": True, "msg": "Task failed: /dev/sdb is mounted: unmount it."}, "/dev/sdb is mounted: unmount it."),
        ({"msg": "Task failed: Error while evaluating conditional: 'disks' is undefined"}, "'disks' is undefined"),
        (
            {"msg": "Task failed: Finalization of task args for 'a.b.c' failed: Error while resolving value for 'drives': 'disks' is undefined"},
            "'disks' is undefined",
        ),
        ({"failed": True}, "no reason was reported"),
        ({"failed": True, "msg": None, "module_stderr": None}, "no reason was reported"),
        (
            {"msg": "MODULE FAILURE\nSee stdout/stderr.", "module_stderr": "a\nKilled\n\n"},
            "MODULE FAILURE See stdout/stderr. The last line of stderr is 'Killed'.",
        ),
        # With become and a terminal both outputs are one.
        (
            {"msg": "no JSON", "module_stderr": "", "module_stdout": "bash: python3: not found\r\n"},
            "no JSON. The last line of the output is 'bash: python3: not found'.",
        ),
        ({"msg": "lvs failed: no such group", "stderr": "x\nno such group"}, "lvs failed: no such group"),
        ({"msg": "non-zero return code", "stderr": "\x1b[31mbad\x1b[0m\x07 disk"}, "non-zero return code. The last line of stderr is 'bad disk'."),
        (
            {"msg": "One or more items failed", "results": [{"msg": "ok"}, {"failed": True, "msg": "/dev/sdb is mounted."}, {"failed": True, "msg": "no"}]},
            "/dev/sdb is mounted.",
        ),
        ({"msg": "all failed", "results": ["x", None, {"failed": False, "msg": "fine"}]}, "all failed"),
    ],
)
def test_reason_is_one_line(result, reason):
    assert failure_reason(result) == reason


def test_reason_is_limited():
    assert len(failure_reason({"msg": "m" * 5000, "module_stderr": "s" * 5000})) < 1300


def test_result_that_is_no_dictionary_is_refused():
    with pytest.raises(AnsibleFilterError, match="must be a dictionary"):
        failure_reason("failed")
