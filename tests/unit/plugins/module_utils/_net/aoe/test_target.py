# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""AoE targets: files and units of vblade, what is refused, and when one is started again."""

from __future__ import annotations

import itertools
import shlex

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, NotEffective, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.target import AoeTargetLayer, read_spec
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost
from ansible_collections.cachefleet.storage.tests.unit.support.file_system_faults import strike_everywhere
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

HDD = "/dev/disk/by-id/ata-HDD"
ONE = {"shelf": 7, "slot": 1, "interface": "eth1", "device": HDD}
ITEM = "e7.1 on eth1"
FILE = "etc/vblade.conf.d/e7.1.eth1.conf"


class Host:
    """A host whose systemd starts vblade as its file says; the drive's cache is off unless said otherwise."""

    def __init__(self, root, write_cache="write through"):
        self.host = FakeHost(root)
        self.root = root
        self.host.disk("vda", "virtio", write_cache=write_cache, DEVLINKS=HDD)
        self.host.disk("vdb", "virtio", DEVLINKS="/dev/disk/by-id/ata-OTHER")
        self.host.write("sys/class/net/eth1/mtu", "9000\n")
        self.host.write("proc/sys/net/core/rmem_max", "212992\n")
        self.host.write("lib/systemd/system/vblade@.service", "")
        self.enabled, self.pids, self.sockets, self.last_pid, self.broken = set(), {}, {}, 100, False
        self.runner = ScriptedRunner(
            {
                ("udevadm",): self.host.udev_reply,
                ("systemctl", "show"): self.show,
                ("systemctl", "enable"): self.enable,
                ("systemctl", "disable"): self.disable,
                ("systemctl", "restart"): self.restart,
                ("systemctl", "daemon-reload"): Reply(),
                ("sysctl",): self.sysctl,
                ("ss",): self.ss,
            }
        )

    def show(self, words):
        blocks = []
        for unit in words[3:]:
            running = unit in self.pids
            state = "enabled" if unit in self.enabled else "disabled"
            blocks.append(f"Id={unit}\nActiveState={'active' if running else 'inactive'}\nMainPID={self.pids.get(unit, 0)}\nUnitFileState={state}\n")
        return Reply("\n".join(blocks))

    def enable(self, words):
        self.enabled.add(words[2])
        return Reply()

    def disable(self, words):
        self.enabled.discard(words[3])
        self.end(words[3])
        return Reply()

    def end(self, unit):
        pid = self.pids.pop(unit, None)
        if pid:
            (self.root / f"proc/{pid}/cmdline").unlink()

    def restart(self, words):
        unit = words[2]
        self.end(unit)
        if self.broken:
            return Reply()
        text = (self.root / "etc/vblade.conf.d" / f"{unit[len('vblade@') : -len('.service')]}.conf").read_text()
        values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
        options = shlex.split(values["options"].strip("'"))
        self.pids[unit] = self.serve(values["shelf"], values["slot"], values["netif"], values["filename"], *options)
        mtu = int((self.root / "sys/class/net/eth1/mtu").read_text())
        buffers = int(options[options.index("-b") + 1]) if "-b" in options else 16
        self.sockets[self.pids[unit]] = 2 * min(buffers * mtu, int((self.root / "proc/sys/net/core/rmem_max").read_text()))
        return Reply()

    def serve(self, *words):
        self.last_pid += 1
        self.host.write(f"proc/{self.last_pid}/cmdline", "\0".join(("/usr/sbin/vblade", *words)) + "\0")
        return self.last_pid

    def ss(self, _words):
        return Reply("".join(f'p_raw users:(("vblade",pid={pid},fd=4)) skmem:(r0,rb{size},t0)\n' for pid, size in self.sockets.items()))

    def sysctl(self, words):
        self.host.write("proc/sys/net/core/rmem_max", words[-1].split("=")[1] + "\n")
        return Reply()

    def layer(self, *entries, buffer=None, protected=()):
        spec = read_spec(entries, buffer)
        clock = iter(range(10000))
        return AoeTargetLayer(self.runner, spec, self.root, protected=protected, clock=lambda: next(clock), sleep=lambda _seconds: None)

    def converge(self, *entries, check_mode=False, **more):
        return converge(self.layer(*entries, **more), check_mode=check_mode)

    def restarts(self):
        return [call for call in self.runner.calls if call[:2] == ("systemctl", "restart")]


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def attributes(outcome):
    return [step.attribute for step in outcome.steps]


def test_no_target_runs_no_commands(host):
    assert host.converge().changed is False
    assert host.runner.calls == []


def test_target_is_served_now_and_after_boot(host):
    outcome = host.converge(ONE)
    assert attributes(outcome) == ["configuration", "boot", "running"]
    assert (host.root / FILE).read_text().splitlines()[1:] == ["shelf=7", "slot=1", "netif=eth1", f"filename={HDD}", "options='-d'"]
    assert host.enabled == {"vblade@e7.1.eth1.service"}
    again = host.converge(ONE)
    assert (again.changed, again.warnings) == (False, ())
    assert len(host.restarts()) == 1
    layer = host.layer(ONE)
    (target,) = layer.facts(layer.read())["aoe_targets"]
    assert (target["running"], target["device"], target["direct"], target["sync"], target["socket"]) == (True, HDD, True, False, 288000)


@pytest.mark.parametrize(("before", "after"), [((), (ONE,)), ((ONE,), ({**ONE, "slot": 2},)), ((ONE,), ({**ONE, "state": "absent"},))])
def test_full_or_read_only_file_system_at_any_change_leaves_no_half_file(tmp_path, before, after):
    numbers = itertools.count()

    def fresh():
        host = Host(tmp_path / str(next(numbers)))
        host.converge(*before)
        return host

    strike_everywhere(fresh, lambda host: host.converge(*after, buffer=1 << 20 if "state" not in after[0] else None))


def test_check_mode_starts_nothing(host):
    assert attributes(host.converge(ONE, check_mode=True)) == ["configuration", "boot", "running"]
    assert not (host.root / FILE).exists()
    assert host.restarts() == []


def test_all_options_are_passed_to_vblade(host):
    entry = {**ONE, "direct": False, "sync": True, "buffers": 64, "macs": ["00:AA:bb:cc:dd:01", "00:aa:bb:cc:dd:02"]}
    host.converge(entry, buffer=1 << 20)
    assert "options='-s -b 64 -m 00:aa:bb:cc:dd:01,00:aa:bb:cc:dd:02'" in (host.root / FILE).read_text()
    assert host.converge(entry, buffer=1 << 20).changed is False


def test_changed_option_restarts_target_and_reports_io_pause(host):
    host.converge(ONE)
    outcome = host.converge({**ONE, "sync": True})
    assert attributes(outcome) == ["configuration", "running"]
    assert "I/O of its initiators pauses" in outcome.steps[1].action
    assert len(host.restarts()) == 2


def test_manually_named_file_is_kept_with_its_priority(host):
    host.host.write("etc/vblade.conf.d/my-images.conf", f"shelf=7\nslot=1\nnetif=eth1\nfilename={HDD}\noptions='-d'\nionice='--class idle'\n")
    host.converge(ONE, check_mode=True)
    layer = host.layer(ONE)
    steps = layer.plan(layer.read())
    assert steps[0].operation.path == "etc/vblade.conf.d/my-images.conf"
    assert "ionice='--class idle'" in steps[0].after
    assert ("systemctl", "show", "--property=Id,ActiveState,MainPID,UnitFileState", "vblade@my\\x2dimages.service") in host.runner.calls


def test_target_is_removed(host):
    host.converge(ONE)
    outcome = host.converge({**ONE, "state": "absent"})
    assert attributes(outcome) == ["configuration"]
    assert not (host.root / FILE).exists()
    assert (host.enabled, host.pids) == (set(), {})
    assert host.converge({**ONE, "state": "absent"}).changed is False


@pytest.mark.parametrize(("mtu", "restarted"), [(8700, False), (1500, False), (9000, False), (12000, True)])
def test_target_is_restarted_only_if_its_socket_is_too_small_for_the_mtu(host, mtu, restarted):
    host.converge(ONE)
    layer = host.layer(ONE)
    steps = layer.plan(layer.read().after_links({"eth1": mtu, "eth5": 9000}, layer.spec))
    assert [step.attribute for step in steps] == (["socket"] if restarted else [])


def test_target_started_with_small_mtu_is_restarted(host):
    host.host.write("sys/class/net/eth1/mtu", "1500\n")
    host.converge(ONE)
    host.host.write("sys/class/net/eth1/mtu", "9000\n")
    outcome = host.converge(ONE)
    assert [(step.attribute, step.before, step.after) for step in outcome.steps] == [("socket", 48000, 288000)]
    assert host.converge(ONE).changed is False


def test_socket_buffer_limit_is_raised_and_never_lowered(host):
    entry = {**ONE, "buffers": 64}
    outcome = host.converge(entry)
    assert "holds 23 frames of the MTU 9000 and not 64" in outcome.warnings[0]
    outcome = host.converge(entry, buffer=576000)
    assert attributes(outcome)[:2] == ["boot_value", "value"]
    assert (host.root / "etc/sysctl.d/90-cachefleet-aoe-target.conf").read_text().endswith("net.core.rmem_max = 576000\n")
    host.host.write("proc/sys/net/core/rmem_max", "9999999\n")
    assert "value" not in attributes(host.converge(entry, buffer=576000))


# What is refused


@pytest.mark.parametrize(
    ("write_cache", "options", "says"),
    [
        ("write back", {}, "reports a volatile write cache|write cache on"),
        ("write through", {"direct": False}, "page cache of this host"),
        ("write back", {"direct": False}, "page cache of this host"),
    ],
)
def test_target_that_could_lose_synced_writes_is_refused_unless_allowed(tmp_path, write_cache, options, says):
    host = Host(tmp_path, write_cache)
    with pytest.raises(Refused, match=rf"{ITEM}: a power failure .*({says}).*sync: true.*allow_ignored_flushes: true"):
        host.converge({**ONE, **options})
    assert host.restarts() == []
    assert not (tmp_path / FILE).exists()
    assert host.converge({**ONE, **options, "allow_ignored_flushes": True}).changed


def test_target_over_a_drive_whose_cache_will_be_off_is_planned(tmp_path):
    layer = Host(tmp_path, "write back").layer(ONE)
    assert layer.plan(layer.read({"vda": "disabled"}))
    with pytest.raises(Refused, match="power failure"):
        layer.plan(layer.read({"vdb": "disabled"}))


@pytest.mark.parametrize("options", [{"sync": True}, {"sync": True, "direct": False}, {"read_only": True}])
def test_safe_target_over_volatile_cache_is_accepted(tmp_path, options):
    host = Host(tmp_path, "write back")
    assert host.converge({**ONE, **options}).changed
    assert host.converge({**ONE, **options}).warnings == ()


def test_drive_declared_safe_may_keep_its_cache_enabled(tmp_path):
    host = Host(tmp_path, "write back")
    assert host.converge(ONE, protected=["TESTDISK"]).changed


def test_cache_enabled_since_then_is_reported(host):
    host.converge(ONE)
    for place in ("queue/write_cache", "cache_type"):
        next((host.root / "sys/devices").rglob(f"vda/{place}")).write_text("write back\n")
    outcome = host.converge(ONE)
    assert outcome.changed is False
    assert "a power failure would lose acknowledged writes" in outcome.warnings[0]


@pytest.mark.parametrize("use", ["mounted", "swap", "holder", "partition"])
def test_device_in_use_is_not_served(host, use):
    if use == "mounted":
        host.host.mount("vda", "/srv")
    elif use == "swap":
        host.host.swap_on("vda")
    elif use == "holder":
        host.host.disk("dm-0", "virtual", dm_name="vg-lv", dm_uuid="LVM-1-2", slaves=["vda"])
        host.runner.missing = ("lvm",)
        host.runner.replies[("dmsetup",)] = Reply("vg-lv: 0 100 linear 8:0 0\n")
    else:
        host.host.mount(host.host.partition("vda", 1), "/srv")
    host.runner.replies[("udevadm",)] = host.host.udev_reply
    with pytest.raises(Refused, match=f"{ITEM}: {HDD} .*(mounted|swap|used by).*no option allows it"):
        host.converge(ONE)


def test_unused_partition_may_be_exported_with_its_disk(host):
    host.host.partition("vda", 1)
    host.runner.replies[("udevadm",)] = host.host.udev_reply
    assert host.converge(ONE).changed


@pytest.mark.parametrize("state", ["present", "absent"])
def test_foreign_process_with_the_same_address_is_refused(host, state):
    host.serve("7", "1", "eth1", "/dev/vdb")
    with pytest.raises(Refused, match=r"process 101 serves e7\.1 on eth1"):
        host.converge({**ONE, "state": state})
    assert host.converge({**ONE, "slot": 2}).changed


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ([{**ONE, "device": None}], "name the device"),
        ([{**ONE, "device": "/dev/sd a"}], "cannot be written"),
        ([{**ONE, "device": "/dev/x';reboot;'"}], "cannot be written"),
        ([{**ONE, "interface": "eth1;x"}], "not the name of a network interface"),
        ([{**ONE, "shelf": 65535}], "from 0 to 65534"),
        ([{**ONE, "slot": 255}], "from 0 to 254"),
        ([{**ONE, "buffers": 0}], "buffers is a number"),
        ([{**ONE, "macs": ["x"]}], "and not x"),
        ([ONE, ONE], "listed twice"),
        ([ONE, {**ONE, "interface": "eth2", "device": "/dev/disk/by-id/ata-OTHER"}], "cannot be both"),
    ],
)
def test_invalid_options_are_rejected(entries, says):
    with pytest.raises(BadInput, match=says):
        read_spec(entries)


def test_one_address_on_two_interfaces_is_one_target_with_two_paths(host):
    host.host.write("sys/class/net/eth2/mtu", "9000\n")
    both = [ONE, {**ONE, "interface": "eth2"}]
    host.converge(*both)
    assert host.converge(*both).changed is False
    assert set(host.pids) == {"vblade@e7.1.eth1.service", "vblade@e7.1.eth2.service"}


@pytest.mark.parametrize(
    ("entry", "error", "says"),
    [
        ({**ONE, "device": "/dev/vda"}, BadInput, f"use {HDD}"),
        ({**ONE, "interface": "eth9"}, BadInput, "no interface eth9"),
        ({**ONE, "device": "/dev/disk/by-id/gone"}, DeviceMissing, "does not exist"),
    ],
)
def test_missing_device_or_interface_is_reported(host, entry, error, says):
    with pytest.raises(error, match=says):
        host.converge(entry)


def test_missing_vblade_error_names_the_package(host):
    (host.root / "lib/systemd/system/vblade@.service").unlink()
    with pytest.raises(ToolMissing, match="install the package vblade"):
        host.converge(ONE)


def test_vblade_that_exits_is_a_failure(host):
    host.broken = True
    with pytest.raises(NotEffective, match=ITEM):
        host.converge(ONE)
