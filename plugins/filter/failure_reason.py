# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that makes of a failed result the reason, as one line."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.cachefleet.storage.plugins.plugin_utils._failure import failure_reason as reason_of


def failure_reason(result: t.Any) -> str:
    if not isinstance(result, t.Mapping):
        raise AnsibleFilterError("failure_reason: the result must be a dictionary, as a task registers it.")
    return reason_of(result)


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"failure_reason": failure_reason}
