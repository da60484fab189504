# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wait for flushes that run on a host in the background, and print their progress."""

from __future__ import annotations

import time
import typing as t

from ansible.errors import AnsibleConnectionFailure

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import TYPES
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size
from ansible_collections.cachefleet.storage.plugins.modules.wait_for_flush import argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import Verb
from ansible_collections.cachefleet.storage.plugins.plugin_utils._progress import Drain

Results = t.Dict[str, t.Any]

#: The modules whose flushes are waited for.
_FLUSHING = tuple(f"cachefleet.storage.{name}" for name in TYPES)
#: The note of a job outlives the job when the host is restarted, and reports permanently that it has not ended.
_RESTARTED = "{host} was restarted while it flushed: nothing is lost, run again, and the caches are read again."


class ActionModule(Verb):
    argument_spec = staticmethod(argument_spec)

    def answer(self, options: Results) -> Results:
        variables, host = self._variables, plain(self._host)
        jobs: list[str] = options["jobs"]
        started = last_answer = time.monotonic()
        ended: dict[str, Results] = {}
        drains: dict[str, Drain] = {}
        boot, away = self._boot(variables) if jobs else "", False
        while True:
            try:
                if away and self._boot(variables) != boot:
                    return {"failed": True, "changed": True, "msg": _RESTARTED.format(host=host), "error": "interrupted"}
                away = False
                for job in jobs:
                    if job not in ended:
                        status = self._status(job, variables)
                        if status.get("finished"):
                            ended[job] = status
                if len(ended) == len(jobs):
                    break
                self._tell(host, options["names"], drains, variables)
                last_answer = time.monotonic()
            except AnsibleConnectionFailure as error:
                if time.monotonic() - last_answer > options["patience"]:
                    raise
                away = True
                self._display.display(f"{host}: not reachable at the moment, the flush continues ({plain(str(error))[:120]})")
            time.sleep(options["interval"])
        return self._result([ended[job] for job in jobs], time.monotonic() - started)

    def _boot(self, variables: t.Mapping[str, t.Any]) -> str:
        """An identifier that changes with every boot of the host; empty if it cannot be read."""
        found = self._execute_module(module_name="ansible.builtin.slurp", module_args={"src": "/proc/sys/kernel/random/boot_id"}, task_vars=variables)
        return str(found.get("content", ""))

    def _status(self, job: str, variables: t.Mapping[str, t.Any]) -> Results:
        folder = self.get_shell_option("async_dir", default="~/.ansible_async")
        arguments = {"jid": job, "mode": "status", "_async_dir": folder}
        self._answering = _FLUSHING
        try:
            status = self._execute_module(module_name="ansible.builtin.async_status", module_args=arguments, task_vars=variables)
        finally:
            self._answering = ()
        if status.get("failed") and status.get("msg") == "could not find job":
            status["msg"] = (
                f"The host has no record of the flush {plain(job)}, for example because it was restarted: nothing is lost, run again, and the caches are"
                " read again."
            )
        return status

    def _tell(self, host: str, names: t.Sequence[str], drains: dict[str, Drain], variables: t.Mapping[str, t.Any]) -> None:
        """Print one line for each cache. A failed reading is not an error: the flush does not depend on it."""
        found = self._execute_module(
            module_name="cachefleet.storage.block_cache_info", module_args={"names": list(names), "types": [], "sample_seconds": 0}, task_vars=variables
        )
        now = time.monotonic()
        for cache in found.get("caches") or []:
            name = plain(str(cache.get("name", "")))
            dirty, size = cache.get("dirty"), cache.get("size")
            if not isinstance(dirty, int):
                continue
            drain = drains.setdefault(name, Drain())
            drain.note(now, dirty)
            of = f" of {format_size(size)}" if isinstance(size, int) and size else ""
            self._display.display(f"{host}: {name}: {format_size(dirty)}{of} dirty{drain.as_text()}")

    def _result(self, results: list[Results], seconds: float) -> Results:
        failed = next((result for result in results if result.get("failed")), None)
        common = {"changed": any(result.get("changed") for result in results), "results": results, "seconds": round(seconds, 1)}
        if failed is not None:
            # The message of the module that failed is the message of this task.
            return {**failed, **common, "failed": True}
        return common
