# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A run of the runner as modules are asked for it: their options, checked before anything is done."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import DECLARATION_OPTIONS
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import supplied_logs
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import MeasuredHost
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import control
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.order import read_order
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import MEASUREMENT_OPTIONS
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import read_stack

_STEP: t.Mapping[str, t.Any] = {
    "number": {"type": "int"},
    "kind": {"type": "str", "choices": ["cells", "search", "rounds"], "default": "cells"},
    "barrier": {"type": "bool", "default": False},
    "offset": {"type": "float"},
    "pause": {"type": "dict"},
    "cells": {"type": "list", "elements": "dict"},
    "cell": {"type": "dict"},
    "search": {"type": "dict"},
    "rounds": {"type": "dict"},
    "done": {"type": "dict"},
}

#: The options that describe a run, as the argument specification of a module. ``host`` and ``steps`` are required to start one.
RUNNER_OPTIONS: t.Mapping[str, t.Mapping[str, t.Any]] = {
    **MEASUREMENT_OPTIONS,
    "host": {"type": "str"},
    "steps": {"type": "list", "elements": "dict", "options": _STEP},
    "series": {"type": "bool", "default": True},
    "sample_interval": {"type": "float", "default": 5},
    "replace": {"type": "bool", "default": False},
    "barrier_timeout": {"type": "float", "default": 900},
    **DECLARATION_OPTIONS,
}


class RequestedRun:
    """A run that can be started on this host.

    :param options: values of :data:`RUNNER_OPTIONS`.
    :raises BadInput: naming the step and the cell and what is wrong.
    """

    def __init__(self, options: t.Mapping[str, t.Any]) -> None:
        self._declared = {"protected": options["protected_drives"], "flushed": options["flushed_virtual_disks"]}
        self._spool = control.spool_of(options["spool"], options["campaign"])
        self._order = read_order(options)

    def start(self, *, check_mode: bool) -> dict[str, t.Any]:
        """Start the runner, unless it is running already; the result of the module ``fio_runner``.

        :raises StorageError: if anything is refused, or if something else is being measured; nothing was started then.
        """
        return control.start(self._order, self._spool, self._host(), check_mode=check_mode)

    def examine(self, caches: t.Sequence[str]) -> dict[str, t.Any]:
        """What the guard refuses of its targets; the result of the module ``fio_runner``."""
        return control.examine(self._order, self._spool, self._host(), caches)

    def supply(self, files: t.Mapping[str, str], *, check_mode: bool) -> dict[str, t.Any]:
        """Take copied logs into the spool; the result of the module ``fio_runner``."""
        return supplied_logs.supply(self._order.jobs, self._spool, {} if check_mode else files)

    def _host(self) -> MeasuredHost:
        runner = Runner()
        return MeasuredHost(runner, lambda devices: read_stack(runner, devices=devices, **self._declared))
