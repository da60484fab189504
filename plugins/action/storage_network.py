# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Change interfaces that the connection may depend on, and verify over a new connection that the host is still reachable."""

from __future__ import annotations

import base64
import os
import time
import typing as t
import uuid

from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import TooMuchOutput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import StorageAction
from ansible_collections.cachefleet.storage.plugins.plugin_utils._limited_answer import COMMAND_ANSWER, limited_answer, require_short

Results = t.Dict[str, t.Any]

_MODULE = "cachefleet.storage.storage_network"
#: Bytes that must go through in each direction: some frames of the largest usual MTU, and nothing that a compressing connection makes small.
_PROOF = 65536
#: Seconds beyond revert_after until a host must be back: putting back, and the connection noticing it.
_GRACE = 90
_PAUSE = 2
#: Connections that are no network connection to the host.
_LOCAL = ("local", "ansible.builtin.local")


class ActionModule(StorageAction):
    _supports_check_mode = True
    _supports_async = False
    _for_action = frozenset({"pending", "padding"})

    def run(self, tmp: t.Any = None, task_vars: dict[str, t.Any] | None = None) -> Results:
        super().run(tmp, task_vars)
        variables = task_vars or {}
        options = {name: value for name, value in self._task.args.items() if not name.startswith("_")}
        if self._connection.transport in _LOCAL:
            return self._call(options, {"step": "local"}, variables)
        if self._task.check_mode:
            return self._call(options, None, variables)
        token = uuid.uuid4().hex
        try:
            begun = self._call(options, {"step": "begin", "token": token}, variables)
        except AnsibleConnectionFailure as error:
            # Cut off in the middle: only the host can report whether anything was changed.
            self._display.display(f"{plain(self._host)}: the connection was lost ({plain(str(error))[:120]}), trying a new one")
            begun = {}
        if begun.get("failed"):
            return self._explained(begun, options)
        if begun and not begun.get("pending"):
            return begun
        confirmed = self._confirm(options, token, variables)
        return self._joined(begun, confirmed, options)

    def _call(self, options: t.Mapping[str, t.Any], transaction: Results | None, variables: t.Mapping[str, t.Any]) -> Results:
        arguments = {**options, "transaction": transaction}
        result: Results = self._execute_module(module_name=_MODULE, module_args=arguments, task_vars=variables)
        if transaction:
            (result.get("invocation") or {}).get("module_args", {}).pop("transaction", None)
        return result

    def _confirm(self, options: t.Mapping[str, t.Any], token: str, variables: t.Mapping[str, t.Any]) -> Results:
        """Reach the host over a new connection, with large packets in both directions, and only then confirm.

        :raises AnsibleConnectionFailure: if the host does not become reachable.
        """
        patience = _seconds(options) + _GRACE
        end = time.monotonic() + patience
        while True:
            try:
                self._renew()
                failed = self._prove(options, variables)
                if failed:
                    return failed
                return self._call(options, {"step": "confirm", "token": token}, variables)
            except AnsibleConnectionFailure as error:
                if time.monotonic() > end:
                    raise AnsibleConnectionFailure(
                        f"{plain(self._host)} could not be reached for {patience} seconds after its MTU was changed, although it was to be reverted after"
                        f" {_seconds(options)}: {plain(str(error))[:200]}"
                    ) from error
                self._display.vv(f"{plain(self._host)}: not reachable ({plain(str(error))[:120]})")
                time.sleep(_PAUSE)

    def _prove(self, options: t.Mapping[str, t.Any], variables: t.Mapping[str, t.Any]) -> Results:
        """Send large packets to the host and back; empty if they arrived.

        Uses a plain command if the connection supports one with input: a module takes some seconds on a slow host, while the timer is running.
        """
        padding = base64.b64encode(os.urandom(_PROOF * 3 // 4)).decode()
        try:
            with limited_answer(self._host, COMMAND_ANSWER):
                answer = self._low_level_execute_command("cat", sudoable=False, in_data=padding.encode())
            require_short(answer, self._host, COMMAND_ANSWER)
        except AnsibleConnectionFailure:
            raise
        except TooMuchOutput as error:
            return {"failed": True, **error.to_dict()}
        except AnsibleError:
            answer = {}
        if answer.get("rc") == 0 and str(answer.get("stdout", "")).strip() == padding:
            return {}
        result = self._call(options, {"step": "prove", "padding": padding}, variables)
        return result if result.get("failed") else {}

    def _renew(self) -> None:
        """Close a persistent connection, so that a new one is established."""
        try:
            self._connection.reset()
        except (AnsibleConnectionFailure, NotImplementedError):
            raise
        except AnsibleError as error:
            self._display.vv(f"The connection could not be closed: {plain(str(error))[:120]}")

    def _joined(self, begun: Results, confirmed: Results, options: t.Mapping[str, t.Any]) -> Results:
        pending = begun.pop("pending", {})
        if confirmed.get("failed"):
            return self._not_kept(pending, confirmed, options)
        diff = {
            side: {
                item: {**begun.get("diff", {}).get(side, {}).get(item, {}), **confirmed.get("diff", {}).get(side, {}).get(item, {})}
                for item in [*begun.get("diff", {}).get(side, {}), *confirmed.get("diff", {}).get(side, {})]
            }
            for side in ("before", "after")
        }
        joined = {**confirmed, "changed": True, "actions": [*begun.get("actions", []), *confirmed.get("actions", [])], "diff": diff}
        warnings = [*begun.get("warnings", []), *confirmed.get("warnings", [])]
        return {**joined, "warnings": warnings} if warnings else joined

    def _not_kept(self, pending: Results, confirmed: Results, options: t.Mapping[str, t.Any]) -> Results:
        if "links_before" not in confirmed:
            return self._explained(confirmed, options)
        before = {link["interface"]: link["mtu"] for link in confirmed["links_before"]}
        requested = {change["interface"]: change["after"] for change in pending.get("changes", [])}
        parts = []
        for name, mtu in before.items():
            new = f"MTU {requested[name]}" if name in requested else "the new MTU"
            parts.append(f"with {new} on {plain(str(name))}; it was reverted to {plain(str(mtu))}")
        reason = (
            f"The host was not reachable {', and '.join(parts)} after {_seconds(options)} seconds. Check that all switches and hosts on the path take that MTU"
            " (and a switch 18 bytes more), or give it more time with revert_after."
            if parts
            else str(confirmed.get("msg", ""))
        )
        return {**confirmed, "msg": reason, "changed": False}

    def _explained(self, result: Results, options: t.Mapping[str, t.Any]) -> Results:
        """Add to the message of a module that ended without reporting its changes."""
        if result.get("_ansible_parsed") is False:
            result["msg"] = f"{result.get('msg')} The module ended before it answered: its changes are reverted within {_seconds(options)} seconds."
        return result


def _seconds(options: t.Mapping[str, t.Any]) -> int:
    try:
        return int(options.get("revert_after", 60))
    except (TypeError, ValueError):
        return 60
