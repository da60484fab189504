# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A measurement that starts once all layers of a host are as specified, in the same call."""

from __future__ import annotations

import math
import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, StorageError, failing
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.request import RUNNER_OPTIONS, RequestedRun
from ansible_collections.cachefleet.storage.plugins.module_utils._host.converge import HostOutcome, run_host
from ansible_collections.cachefleet.storage.plugins.module_utils._host.request import argument_spec, checked

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule


class Measurement:
    """What is started after the layers.

    :param options: those of the module ``fio_runner``.
    :param settle: seconds to wait before, if any layer was changed.
    :raises BadInput: naming the option or the step and what is wrong.
    """

    def __init__(self, options: t.Mapping[str, t.Any], settle: float, sleep: t.Callable[[float], None] = time.sleep) -> None:
        if not 0 <= settle < math.inf:
            raise BadInput(f"settle must be a number of seconds, at least 0, not {settle:g}.", item="settle")
        required = {name: {**RUNNER_OPTIONS[name], "required": True} for name in ("host", "steps")}
        self._run = RequestedRun(checked("benchmark", {**RUNNER_OPTIONS, **required}, options))
        self._settle = settle
        self._sleep = sleep

    def start(self, outcome: HostOutcome, *, check_mode: bool) -> dict[str, t.Any]:
        """``started``, and either what ``fio_runner`` returns or the ``reason``."""
        reason = self._obstacle(outcome, check_mode=check_mode)
        if reason:
            return {"started": False, "reason": reason}
        if outcome.steps:
            self._sleep(self._settle)
        try:
            return {"started": True, **self._run.start(check_mode=False)}
        except StorageError as error:
            return {"started": False, "reason": error.message}

    @staticmethod
    def _obstacle(outcome: HostOutcome, *, check_mode: bool) -> str:
        if check_mode:
            return "Nothing is started in check mode."
        left = [*outcome.pending, *outcome.waiting]
        if left:
            return f"{' and '.join(left)} must be configured before."
        return " ".join(outcome.not_running)


def run_host_and_measure(module: AnsibleModule) -> t.NoReturn:
    """The body of the module ``sweep_step``: converge all layers of the host, start the measurement, and exit with both results."""
    with failing(module):
        params = checked("layers", argument_spec(), module.params["layers"])
        measurement = Measurement(module.params["benchmark"], module.params["settle"])
    run_host(module, params, lambda outcome: {"benchmark": measurement.start(outcome, check_mode=module.check_mode)})
