# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The transaction of a storage network: what a failure, a kill or silence at any point leaves behind."""

from __future__ import annotations

import argparse
import contextlib
import errno
import itertools
import json
import os
import time

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotEffective
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot import provider
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links import layer as link_layer
from ansible_collections.cachefleet.storage.plugins.module_utils._net.links.spec import read_specs
from ansible_collections.cachefleet.storage.plugins.module_utils._net.storage_network import rollback_program
from ansible_collections.cachefleet.storage.plugins.module_utils._net.storage_network import rollback_timer as timer
from ansible_collections.cachefleet.storage.plugins.module_utils._net.storage_network.rollback_timer import FOLDER, RollbackTimer
from ansible_collections.cachefleet.storage.plugins.module_utils._net.storage_network.transaction import NetworkSpec, Part, StorageNetworkLayer, Transaction
from ansible_collections.cachefleet.storage.tests.unit.support.file_system_faults import Faults, strike_everywhere
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

MAC = "52:54:00:00:00:02"
INTERFACES = "auto eth1\niface eth1 inet static\n  address 192.0.2.1/24\n"


class Host:
    """A host with one card and a VLAN on it, configured by ifupdown, whose MTUs live in files and are set by a scripted ip."""

    def __init__(self, root, monkeypatch):
        self.root = root
        self.stubborn = {}
        self.write("etc/network/interfaces", INTERFACES + "iface eth1.5 inet manual\n")
        for name, index in (("eth1", 2), ("eth1.5", 3)):
            self.write(f"sys/class/net/{name}/mtu", "1500\n")
            self.write(f"sys/class/net/{name}/ifindex", f"{index}\n")
            self.write(f"sys/class/net/{name}/flags", "0x1003\n")
        self.runner = ScriptedRunner(
            {("ip", "-details"): self._show, ("ip", "link", "set"): self._set, ("ip", "-4", "route"): Reply("192.0.2.0/24 scope link\n")},
            missing=("networkctl", "nmcli", "netplan"),
        )
        self.started = []

        def start(switch, argv, token):
            self._start(switch, argv, token)

        monkeypatch.setattr(timer.RollbackTimer, "_start", start)
        monkeypatch.setattr(rollback_program, "_read", self._read)
        monkeypatch.setattr(rollback_program, "_run", self._command)
        listed = os.listdir
        monkeypatch.setattr(rollback_program.os, "listdir", lambda path: ["eth1", "eth1.5"] if path == "/sys/class/net" else listed(path))
        monkeypatch.setattr(rollback_program.time, "sleep", lambda seconds: None)
        original = rollback_program._change_back
        monkeypatch.setattr(rollback_program, "_change_back", lambda change, message: original(self._below_root(change), message))

    def _below_root(self, change):
        return {**change, "files": [{**file, "path": f"{self.root}{file['path']}"} for file in change["files"]]}

    def write(self, path, text):
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def _read(self, name, attribute):
        place = self.root / "sys/class/net" / name / attribute
        return place.read_text().strip() if place.exists() else ""

    def _show(self, words):
        card = {"ifname": "eth1", "ifindex": 2, "mtu": self.mtu("eth1"), "max_mtu": 9216, "flags": ["UP"], "address": MAC}
        vlan = {"ifname": "eth1.5", "ifindex": 3, "mtu": self.mtu("eth1.5"), "flags": ["UP"], "address": MAC, "link": "eth1", "linkinfo": {"info_kind": "vlan"}}
        return Reply(json.dumps([card, vlan]))

    def _set(self, words):
        name, mtu = words[4], words[6]
        if self.stubborn.get(name) == mtu:
            return Reply(rc=2, stderr="RTNETLINK answers: Invalid argument")
        self.write(f"sys/class/net/{name}/mtu", f"{mtu}\n")
        return Reply()

    def _command(self, argv):
        reply = self._set(("ip", *argv[1:])) if argv[1:3] == ["link", "set"] and "mtu" in argv else Reply()
        return "" if reply.rc == 0 else "failed"

    def _start(self, switch, argv, token):
        try:
            self.write(f"run/systemd/transient/{token}.service", "")
        except OSError:
            # As systemd 252 says it of a full /run, and of a read-only one.
            raise CommandFailed(f"Failed to start transient service unit: Unit {token}.service not found.") from None
        self.started.append((token, [(entry["name"], entry["mtu"]) for entry in switch.armed()["live"]]))
        self.write(f"{FOLDER}/watching.json", json.dumps({"token": token, "pid": os.getpid()}))

    def mtu(self, name):
        return int(self._read(name, "mtu"))

    @property
    def boot(self):
        return (self.root / "etc/network/interfaces").read_text()

    @property
    def switch(self):
        return RollbackTimer(self.runner, self.root)

    def transaction(self, *entries, direction="all", parts=()):
        wish = NetworkSpec(read_specs(entries), parts, direction, ())
        return Transaction(StorageNetworkLayer(self.runner, wish, self.root), self.switch, 60, self.root)


@pytest.fixture
def host(tmp_path, monkeypatch):
    return Host(tmp_path, monkeypatch)


VLAN = {"interface": "eth1.5", "mtu": 9000}


def test_rollback_timer_precedes_mtus_and_boot_files_follow_confirmation(host):
    report = host.transaction(VLAN).run("t1")
    assert report.pending["changes"] == [{"interface": "eth1", "before": 1500, "after": 9000}, {"interface": "eth1.5", "before": 1500, "after": 9000}]
    assert host.started == [("t1", [("eth1.5", 1500), ("eth1", 1500)])], "put back from the top down"
    assert (host.mtu("eth1"), host.mtu("eth1.5")) == (9000, 9000)
    assert "mtu" not in host.boot
    report = host.transaction(VLAN).confirm("t1")
    assert [step.attribute for step in report.steps] == ["boot_mtu", "boot_mtu"]
    assert host.boot.count("mtu 9000") == 2, "two changes of one file"
    assert not host.switch.armed()
    again = host.transaction(VLAN).run("t2")
    assert (again.steps, len(host.started)) == ((), 1)


class Follow(Operation):
    """Know of the MTU."""


class Follower(Layer):
    """What lies on eth1 and needs a step for another MTU than the one that it knows."""

    name = "follower"

    def __init__(self, known, requested=9000):
        super().__init__(None, requested)
        self.known = known
        self.reads = 0

    def read(self):
        self.reads += 1
        return self.known

    def plan(self, state):
        return [Step(self.name, "follower", "mtu", state, self.spec, "Follow", Follow())] if state != self.spec else []

    def carry_out(self, operation, step):
        self.known = step.after

    def facts(self, state):
        return {}


def test_consequences_of_another_mtu_are_predicted(host):
    def needs(layer):
        transaction = host.transaction({"interface": "eth1", "mtu": 9000}, parts=(Part(layer, lambda state, mtus, untold: mtus.get("eth1", state)),))
        return transaction.layer.directions(transaction.layer.read())

    class Restarted(Follower):
        def plan(self, state):
            return [Step(self.name, "follower", "restart", 1500, state, "Restart", Follow())] if state != 1500 else []

    assert needs(Restarted(1500)) == ["raise", "other"]
    assert needs(Follower(9000)) == ["raise"]


def test_only_what_lies_on_drives_is_read_with_what_is_planned_for_them(host):
    class Served(Follower):
        name = "served"

        def read(self, drives):
            return drives

    transaction = host.transaction({"interface": "eth1", "mtu": 1500}, parts=(Part(Served(None), over_drives=True), Part(Follower(1500))))
    state = transaction.predict({"sda": "disabled"}).state
    assert (state["served"], state["follower"]) == ({"sda": "disabled"}, 1500)


def test_dependent_layer_is_read_once_before_and_once_after_the_change(host):
    layer = Follower(1500)
    link = {"interface": "eth1", "mtu": 9000}
    host.transaction(link, parts=(Part(layer),)).run("t1")
    assert layer.reads == 1
    report = host.transaction(link, parts=(Part(layer),)).confirm("t1")
    assert [step.attribute for step in report.steps] == ["boot_mtu", "mtu"]
    assert layer.reads == 3, "to plan and to verify"
    assert host.transaction(link, parts=(Part(layer),)).run("t2").steps == ()
    assert layer.reads == 4, "a host that is as described is looked at once"


def test_single_direction_also_keeps_its_boot_setting(host):
    host.transaction(VLAN, direction="raise").run("t1")
    report = host.transaction(VLAN, direction="raise").confirm("t1")
    assert [step.attribute for step in report.steps] == ["boot_mtu", "boot_mtu"]
    assert host.transaction(VLAN).run("t2").steps == ()


def test_run_without_token_completes_in_one_call(host):
    report = host.transaction(VLAN).run()
    assert [step.attribute for step in report.steps] == ["mtu", "mtu", "boot_mtu", "boot_mtu"]
    assert not host.switch.armed()


def test_missing_confirmation_restores_everything_and_late_one_fails(host):
    host.transaction(VLAN).run("t1")
    host.switch.put_back("no confirmation")
    assert (host.mtu("eth1"), host.mtu("eth1.5"), host.boot.count("mtu")) == (1500, 1500, 0)
    with pytest.raises(NotEffective, match="were reverted") as caught:
        host.transaction(VLAN).confirm("t1")
    assert caught.value.facts["links_before"] == [{"interface": "eth1.5", "mtu": 1500}, {"interface": "eth1", "mtu": 1500}]
    assert host.boot.count("mtu") == 0


def test_full_or_read_only_file_system_at_any_change_keeps_or_reverts_everything(tmp_path, monkeypatch):
    numbers = itertools.count()

    def fresh():
        # What one host has replaced must not replace it for the next.
        monkeypatch.undo()
        monkeypatch.setattr(timer, "_START", 0.0)
        host = Host(tmp_path / str(next(numbers)), monkeypatch)
        start = timer.RollbackTimer._start

        def started(switch, argv, token):
            # A process that cannot write its file ends.
            with contextlib.suppress(OSError):
                start(switch, argv, token)

        monkeypatch.setattr(timer.RollbackTimer, "_start", started)
        return host

    def carry_out(host):
        report = host.transaction(VLAN).run("t1")
        if report.pending:
            report = host.transaction(VLAN).confirm("t1")
        return argparse.Namespace(changed=bool(report.steps))

    def check(host):
        if host.switch.armed():
            # The rollback timer, once the file system takes its record again.
            host.switch.put_back("no confirmation")
        assert (host.mtu("eth1.5"), host.boot.count("mtu 9000")) in ((1500, 0), (9000, 2))

    strike_everywhere(fresh, carry_out, check)


def test_confirmation_of_another_run_is_rejected(host):
    host.transaction(VLAN).run("t1")
    with pytest.raises(NotEffective):
        host.transaction(VLAN).confirm("other")
    assert host.switch.armed()["token"] == "t1"


def test_partial_failure_is_rolled_back_immediately(host):
    host.stubborn["eth1.5"] = "9000"
    with pytest.raises(CommandFailed) as caught:
        host.transaction(VLAN).run("t1")
    assert (host.mtu("eth1"), host.mtu("eth1.5")) == (1500, 1500)
    assert (caught.value.facts["changed"], not host.switch.armed()) == (False, True)
    assert "eth1 has its MTU of 1500" in caught.value.facts["put_back"]


def test_kill_while_writing_boot_settings_rolls_back_written_files(host, monkeypatch):
    host.transaction(VLAN).run("t1")
    original = link_layer.LinkLayer.apply
    count = []

    def killed(layer, step):
        count.append(step)
        if len(count) == 2:
            raise KeyboardInterrupt
        original(layer, step)

    monkeypatch.setattr(link_layer.LinkLayer, "apply", killed)
    with contextlib.suppress(KeyboardInterrupt):
        host.transaction(VLAN).confirm("t1")
    assert host.boot.count("mtu 9000") == 1
    host.switch.put_back("no confirmation")
    assert (host.mtu("eth1"), "mtu" in host.boot) == (1500, False)


def test_file_changed_by_another_program_is_not_restored(host):
    host.transaction(VLAN).run("t1")
    with host.switch.held("t1"):
        host.switch.note(provider.PROVIDERS["ifupdown"](host.runner, None, host.root).change(_place(host), 9000))
    host.write("etc/network/interfaces", "iface eth1 inet manual\n")
    assert any("was changed by another program" in line for line in host.switch.put_back("x"))
    assert host.boot == "iface eth1 inet manual\n"


def _place(host):
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot.provider import find_places
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.interfaces import read_links

    return find_places(host.runner, read_links(host.runner), {"eth1": "auto"}, host.root)["eth1"]


def test_mtu_reset_by_another_program_is_not_confirmed(host):
    host.transaction(VLAN).run("t1")
    host.write("sys/class/net/eth1.5/mtu", "1500\n")
    with pytest.raises(NotEffective, match=r"eth1.5: mtu should be 9000 and is 1500 again"):
        host.transaction(VLAN).confirm("t1")
    assert (host.mtu("eth1"), "mtu" in host.boot, not host.switch.armed()) == (1500, False, True)


def test_what_a_read_only_file_system_kept_from_being_reverted_is_reverted_by_the_next_run(host, monkeypatch):
    host.transaction(VLAN).run("t1")
    with host.switch.held("t1"):
        change = provider.PROVIDERS["ifupdown"](host.runner, None, host.root).change(_place(host), 9000)
        host.switch.note(change)
    changed = change.files[0]["after"]
    host.write("etc/network/interfaces", changed)

    def read_only(path, text, mode=0o600):
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(rollback_program, "write_text", read_only)
        assert any(line.endswith("interfaces could not be restored: Read-only file system") for line in host.switch.put_back("no confirmation"))
        assert host.switch.armed()["token"] == "t1"
        with pytest.raises(CommandFailed, match=r"An earlier run could not be reverted: .*interfaces could not be restored: Read-only file system"):
            host.transaction(VLAN).run("t2")
    assert host.boot == changed
    host.transaction({"interface": "eth1", "mtu": 1500, "persistent": False}).run("t2")
    assert ("mtu" in host.boot, host.switch.armed()) == (False, {})


def test_confirmation_that_cannot_be_recorded_reverts_at_once(host, monkeypatch):
    host.transaction(VLAN).run("t1")

    def read_only(path):
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(rollback_program, "remove", read_only)
        with pytest.raises(CommandFailed, match=r"journal\.json cannot be removed: Read-only file system"):
            host.transaction(VLAN).confirm("t1")
    assert (host.mtu("eth1"), host.mtu("eth1.5"), host.boot.count("mtu")) == (1500, 1500, 0)


@pytest.mark.parametrize("stale", ["another boot", "dead process"])
def test_remains_of_interrupted_run_are_rolled_back_before_the_next(host, stale):
    host.transaction(VLAN).run("t1")
    journal = host.switch.armed()
    if stale == "another boot":
        journal["boot"] = "another"
    else:
        host.write(f"{FOLDER}/watching.json", json.dumps({"token": "t1", "pid": 2**22 + 1}))
    host.write(f"{FOLDER}/journal.json", json.dumps(journal))
    predicted = host.transaction({"interface": "eth1", "mtu": 4000, "persistent": False}).predict()
    assert "without confirming" in predicted.warnings[0]
    assert [(step.item, step.before, step.after) for step in predicted.steps] == [("eth1", 1500, 4000)]
    assert host.mtu("eth1") == 9000, "check mode changes nothing"
    report = host.transaction({"interface": "eth1", "mtu": 4000, "persistent": False}).run("t2")
    assert [(step.item, step.before, step.after) for step in report.steps] == [("eth1", 1500, 4000)]


def test_rollback_timer_that_does_not_start_prevents_any_change(host, monkeypatch):
    def fails(switch, argv, token):
        raise CommandFailed("systemd-run failed")

    monkeypatch.setattr(timer.RollbackTimer, "_start", fails)
    with pytest.raises(CommandFailed, match="systemd-run"):
        host.transaction(VLAN).run("t1")
    assert (host.mtu("eth1"), not host.switch.armed()) == (1500, True)


def test_full_run_is_said_where_systemd_finds_no_unit_of_the_rollback_timer(host, monkeypatch):
    (host.root / "run/udev").mkdir(parents=True)
    with contextlib.ExitStack() as full:

        def fails(switch, argv, token):
            full.enter_context(Faults(host, "run", errno.ENOSPC, at=1))
            raise CommandFailed("Failed to start transient service unit: Unit t1.service not found.")

        monkeypatch.setattr(timer.RollbackTimer, "_start", fails)
        with pytest.raises(CommandFailed, match=r"run/udev cannot be written: No space left on device"):
            host.transaction(VLAN).run("t1")
    assert (host.mtu("eth1"), not host.switch.armed()) == (1500, True)


def test_rollback_timer_exits_after_confirmation_and_acts_without_it(host, tmp_path):
    folder = tmp_path / FOLDER
    host.transaction(VLAN).run("t1")
    rollback_program.watch(str(folder), "another")
    assert host.mtu("eth1") == 9000
    journal = host.switch.armed()
    journal["deadline"] = time.monotonic() - 1
    host.write(f"{FOLDER}/journal.json", json.dumps(journal))
    rollback_program.watch(str(folder), "t1")
    assert (host.mtu("eth1"), host.switch.last()["token"]) == (1500, "t1")
    assert "no confirmation was received within 60 seconds" in (folder / "log").read_text()


def test_interface_set_down_during_rollback_gets_its_routes_again(host, monkeypatch):
    host.transaction(VLAN).run("t1")
    host.write("sys/class/net/eth1/flags", "0x1002\n")
    ran = []
    monkeypatch.setattr(rollback_program, "_run", lambda argv: ran.append(argv) or host._command(argv))
    host.switch.put_back("x")
    assert ["ip", "link", "set", "dev", "eth1", "up"] in ran
    assert ["ip", "route", "replace", "192.0.2.0/24", "scope", "link", "dev", "eth1"] in ran


def test_rollback_program_does_not_depend_on_the_collection():
    import inspect

    assert "ansible" not in inspect.getsource(rollback_program).replace("ansible-bad-function", "")
