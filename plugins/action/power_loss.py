# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verb power_loss: the journal of a power-loss test and its result; on the controller only."""

from __future__ import annotations

import datetime
import json
import os
import secrets
import socket
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import replace_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import component
from ansible_collections.cachefleet.storage.plugins.modules.power_loss import argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import Verb
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import default_campaign_name, results_folder
from ansible_collections.cachefleet.storage.plugins.plugin_utils._power_loss import journal, result

Results = t.Dict[str, t.Any]

#: What cuts the power by the BMC of a host, and can reset it too.
_BMCS = ("ipmi", "redfish")


class ActionModule(Verb):
    _requires_connection = False

    argument_spec = staticmethod(argument_spec)

    def answer(self, options: Results) -> Results:
        # Texts of Ansible know their origin; plain ones can be compared and written.
        options = json.loads(json.dumps(options, default=str))
        if options["operation"] == "validate":
            _require_usable(options, self._variables.get("ansible_play_hosts_all") or ())
            return {"changed": False}
        if self._task.check_mode:
            return {"changed": False, "skipped": True, "msg": "A power-loss test has no check mode: nothing was done."}
        done: Results = getattr(self, f"_{options['operation']}")(options, self._host)
        return {"changed": False, **done}

    @staticmethod
    def _create(options: Results, _host: str) -> Results:
        name = options["name"] or default_campaign_name(datetime.datetime.now(datetime.timezone.utc))
        folder = results_folder(options["results"]) / component(name, "power-loss test")
        try:
            new = not folder.is_dir()
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CommandFailed(f"The folder {folder} cannot be made on the controller: {error.strerror}.") from None
        return {"changed": new, "path": str(folder), "name": name}

    @staticmethod
    def _open(options: Results, host: str) -> Results:
        folder = Path(options["path"])
        found = journal.load(folder, host)
        pid = os.getppid()
        controller = {"host": socket.gethostname(), "pid": pid, "start": journal.start_of(pid)}
        journal.require_alone(found, controller)
        journal.require_same(found, options["settings"])
        wanted = options["cuts"]
        if wanted < 1:
            raise BadInput("power_loss_test_cuts must be at least 1.")
        journal.append(folder, host, journal.OPENED, settings=options["settings"], controller=controller, time=_now())
        pending = found.pending()
        due = max(0, wanted - len(found.verified()))
        if pending is None:
            return {"due": due, "pending": {}}
        facts = {"run": pending.run, "cut": pending.number, "state": pending.state, "boot_id": pending.boot_id, "announced": pending.announced}
        return {"due": due, "pending": facts}

    @staticmethod
    def _begin(options: Results, host: str) -> Results:
        folder = Path(options["path"])
        found = journal.load(folder, host)
        run = secrets.token_hex(16)
        number = len(found.verified()) + 1
        journal.append(folder, host, journal.BEGUN, cut=number, run=run, time=_now())
        return {"changed": True, "run": run, "cut": number, "secret": secrets.token_hex(32)}

    def _note(self, options: Results, host: str) -> Results:
        facts: Results = {"run": options["run"], "time": _now()}
        if options["event"] == journal.WRITING:
            found = options["found"]
            facts.update(boot_id=str(found.get("boot_id") or ""), target=_dictionary(found, "target"), stack=_dictionary(found, "stack"))
        elif options["event"] == journal.VERIFIED:
            facts["verification"] = _dictionary(options["found"], "verification")
            verdict, reason = (plain(facts["verification"].get(key), 500) for key in ("verdict", "reason"))
            self._display.display(f"{host}: {verdict}: {reason}")
        elif options["reason"]:
            facts["reason"] = plain(options["reason"], 1000)
        journal.append(Path(options["path"]), host, options["event"], **facts)
        return {"changed": True}

    def _finish(self, options: Results, _host: str) -> Results:
        folder = Path(options["path"])
        results = [result.host_result(found) for found in journal.load_all(folder)]
        problems = {str(host): str(reason) for host, reason in options["problems"].items()}
        files = [str(folder / name) for name in ("power_loss.json", "power_loss.md")]
        data = {"schema": result.SCHEMA, "name": folder.name, "hosts": results, "problems": problems}
        replace_file(Path(files[0]), json.dumps(data, indent=2, sort_keys=True) + "\n")
        replace_file(Path(files[1]), result.markdown(folder.name, results))
        text = result.text_of(results, problems)
        self._display.display("\n".join(["", text, f"Results: {folder}", ""]))
        return {"changed": True, "hosts": results, "text": text, "files": files}


def _require_usable(options: t.Mapping[str, t.Any], hosts: t.Collection[str]) -> None:
    """:raises BadInput: for variables of the role that cannot be used together."""
    witness, settings = options["witness"], options["settings"]
    cutter = settings["cutter"]
    conditions = {
        "Set power_loss_test_target to a device or a file on this host that the power-loss test may write to.": settings["target"],
        f"Set power_loss_test_witness_address to the IP address at which this host reaches the witness on {witness}, or power_loss_test_tunnel to true if it"
        " reaches the controller only through SSH.": options["tunnel"] or options["witness_address"],
        "power_loss_test_tunnel needs the witness on the controller. Set power_loss_test_witness to localhost.": not options["tunnel"]
        or witness == "localhost",
        f"The witness {witness} is one of the hosts whose power is cut. Choose another host, or the controller.": witness not in hosts,
        "power_loss_test_how can only be reset if power_loss_test_cutter is ipmi or redfish.": settings["how"] == "power_cut" or cutter in _BMCS,
        "Set power_loss_test_command_off and power_loss_test_command_on to the commands that switch the power of this host off and on."
        if cutter == "command"
        else f"Set power_loss_test_{cutter} to the address and the credentials of the BMC of this host.": options["described"],
    }
    for message, is_met in conditions.items():
        if not is_met:
            raise BadInput(message)


def _dictionary(found: t.Mapping[str, t.Any], name: str) -> dict[str, t.Any]:
    value = found.get(name)
    return value if isinstance(value, dict) else {}


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
