# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verb describe: what is there on a host, as a file of variables for the inventory."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible.errors import AnsibleError

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.modules.describe import argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import Verb
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description import drift, files
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.read import Description, read_description, tool_paths_in
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.text import render
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.variables_text import plain_of

Results = t.Dict[str, t.Any]


class ActionModule(Verb):
    argument_spec = staticmethod(argument_spec)

    def answer(self, options: Results) -> Results:
        path = files.file_of(Path(options["path"]).absolute(), "host_vars", self._host)
        inventory = self._inventory(self._variables)
        returned = self._read(options, self._variables, inventory)
        if returned.get("failed") or returned.get("unreachable"):
            return returned
        return self._write(path, read_description(self._host, returned), inventory, options["force"])

    def _read(self, options: t.Mapping[str, t.Any], variables: dict[str, t.Any], inventory: t.Mapping[str, t.Any]) -> Results:
        arguments = {"layers": options["layers"], "all_settings": options["all_settings"], "by_match": True}
        arguments["tool_paths"] = tool_paths_in(inventory.get("raid_cache_controllers"))
        found: Results = self._execute_module("cachefleet.storage.cache_description_info", module_args=arguments, task_vars=variables)
        return found

    def _write(self, path: Path, description: Description, inventory: t.Mapping[str, t.Any], force: bool) -> Results:
        differing = drift.drift(inventory, description)
        shown = differing if self._task.diff else []
        before, after = drift.texts(inventory, description)
        headers = (f"inventory of {description.host}", f"found on {description.host}")
        changed = False
        try:
            changed = files.write(path, files.sealed(render(description)), force=force, check_mode=self._task.check_mode)
        finally:
            # Ansible prints the difference of a task that changed something; what was found is of interest in any case.
            if shown and not changed:
                self._display.display(drift.unified(before, after, headers))
        diff = {"before": before, "after": after, "before_header": headers[0], "after_header": headers[1]}
        notes = [note for variable in description.variables for note in variable.notes]
        result = {"changed": changed, "path": str(path), "description": _plain(description), "notes": notes, "differing": differing}
        return {**result, "diff": diff} if shown and changed else result

    def _inventory(self, variables: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
        """The variables of the inventory, with their templates evaluated.

        :raises BadInput: if a template fails.
        """
        found = {}
        for name in drift.COMPARED:
            if name in variables:
                try:
                    found[name] = plain_of(self._templar.template(variables[name]))
                except AnsibleError as error:
                    raise BadInput(f"{name} of the inventory could not be evaluated: {error}", item=name) from None
        return found


def _plain(description: Description) -> Results:
    """What the groups are made from, without comments."""
    variables = [{"name": name, "entries": [], "value": value, "notes": [], "commented": False} for name, value in description.contents().items()]
    return {"variables": variables, "controllers": [{**vars(one), "volumes": [dict(volume) for volume in one.volumes]} for one in description.controllers]}
