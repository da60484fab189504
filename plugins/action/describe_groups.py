# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verb describe_groups: files of variables for groups of hosts that are alike."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.modules.describe_groups import argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import Verb
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description import files
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.groups import Group, find_groups
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.read import read_description
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.text import render_group


class ActionModule(Verb):
    _requires_connection = False

    argument_spec = staticmethod(argument_spec)

    def answer(self, options: dict[str, t.Any]) -> dict[str, t.Any]:
        folder = Path(options["path"]).absolute()
        groups = find_groups(read_description(str(host), found) for host, found in options["descriptions"].items())
        written = [self._write(folder, group, options["force"]) for group in groups]
        return {"changed": any(changed for changed, _group in written), "groups": [group for _changed, group in written]}

    def _write(self, folder: Path, group: Group, force: bool) -> tuple[bool, dict[str, t.Any]]:
        path = files.file_of(folder, "group_vars", group.name)
        text = files.sealed(render_group(group.name, group.hosts, group.contents))
        changed = files.write(path, text, force=force, check_mode=self._task.check_mode)
        return changed, {"name": group.name, "hosts": list(group.hosts), "variables": list(group.contents), "path": str(path)}
