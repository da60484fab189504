# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The body of the module ``cache_health_info``: its options as questions, and its answers."""

from __future__ import annotations

import dataclasses
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.health import Address
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import DECLARATION_OPTIONS, checked_declarations
from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Limits
from ansible_collections.cachefleet.storage.plugins.module_utils._health.host import Questions, read_health
from ansible_collections.cachefleet.storage.plugins.module_utils._health.readings import from_dict, from_file

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

    from ansible_collections.cachefleet.storage.plugins.module_utils._health.readings import Readings

#: The limits as options of a module; the defaults are those of :class:`Limits`.
LIMIT_OPTIONS: dict[str, dict[str, t.Any]] = {one.name: {"type": "int", "default": one.default} for one in dataclasses.fields(Limits)}

_ROOT = Path("/")


def run_module(module: AnsibleModule) -> t.NoReturn:
    """Examine the host and return the findings."""
    try:
        questions, problems = read_questions(module.params, _ROOT)
        result = read_health(Runner(), questions, _ROOT).to_dict()
    except StorageError as error:
        module.fail_json(**error.to_dict())
    result["problems"] = [*problems, *result["problems"]]
    result["compared"] = questions.previous is not None
    module.exit_json(changed=False, **result)


def read_questions(params: t.Mapping[str, t.Any], root: Path) -> tuple[Questions, list[str]]:
    """The options of the module, and what is wrong with the readings that were kept.

    :raises BadInput: if an option is invalid.
    """
    limits = Limits(**{name: value for name, value in params["limits"].items() if value is not None})
    if params["interval"] < 0:
        raise BadInput("The interval between two readings must not be negative; set 0 for one reading.", item="interval")
    previous, problem = _previous(params, root)
    further = tuple(Address(row["device"], f"{row['device']} -d {row['type']}", row["type"]) for row in params["further_drives"])
    protected, flushed = (tuple(checked_declarations(params[name])) for name in DECLARATION_OPTIONS)
    return Questions(limits, params["interval"], previous, further, params["verdicts"], protected, flushed), [problem] if problem else []


def _previous(params: t.Mapping[str, t.Any], root: Path) -> tuple[Readings | None, str]:
    if params["previous_file"]:
        return from_file(params["previous_file"], root)
    if not params["previous"]:
        return None, ""
    try:
        return from_dict(params["previous"]), ""
    except ValueError as error:
        raise BadInput(f"previous holds no readings of an earlier run of this module ({error}): give what it returned in readings.", item="previous") from None
