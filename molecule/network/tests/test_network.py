# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is true of both machines after their MTUs went up and down, and what the runs of the role did."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

_RECORD = Path(os.environ["CACHEFLEET_RECORD"])
_MODULE = "cachefleet.storage.storage_network"
#: The task of the role that only compares.
_COMPARISON = "Determine the differences"


@pytest.fixture(scope="module")
def name(host):
    return host.ansible.get_variables()["inventory_hostname"] if host.backend.NAME == "ansible" else host.check_output("hostname")


def _runs(check, playbook="converge"):
    runs = [json.loads(path.read_text()) for path in sorted(_RECORD.glob("*.json"))]
    return [run["results"] for run in runs if (run["scenario"], run["playbook"], run["check"]) == ("network", playbook, check)]


def _calls(results, name):
    return [result for result in results if result["host"] == name and result["module"] == _MODULE]


def _compared(result):
    return result["task"].endswith(_COMPARISON)


def _frames(mtu):
    return json.loads((_RECORD / f"network-{mtu}.frames").read_text())


def test_check_mode_predicts_the_first_run(name):
    (predicted,) = _calls(_runs(True)[0], name)
    calls = _calls(_runs(False)[0], name)
    done = [action for call in calls if not _compared(call) for action in call["actions"]]
    assert predicted["changed"]
    # A driver that is loaded already finds the new target by itself, with the frames that its interface carries by then.
    spared = [
        action for action in predicted["actions"] if action not in done and action.startswith(("Discover the target ", "Renegotiate the frames of e7.1 "))
    ]
    assert sorted([*done, *spared]) == sorted(predicted["actions"])
    assert len(done) >= 2


def _calls_of_the_role(results, name, role):
    """What a role ran on a machine: everything but the checks of arguments and facts, which run on the controller."""
    own = [result for result in results if result["host"] == name and (result["role"] or "").endswith(role)]
    return [result for result in own if result["module"] not in ("ansible.builtin.validate_argument_spec", "cachefleet.storage.verify_host")]


def test_no_change_on_second_run_with_one_call(name):
    (call,) = _calls_of_the_role(_runs(False)[1], name, "storage_network")
    assert (call["module"], _compared(call), call["changed"], call["actions"], call["diff"]) == (_MODULE, True, False, [], {"before": {}, "after": {}})


def test_queues_take_one_call_and_no_change_on_second_run(name):
    if name != "node2":
        pytest.skip("the queues of this machine are left alone")
    first, second = _calls_of_the_role(_runs(False, "side_effect")[-1], name, "block_queue")
    assert first["module"] == second["module"] == "cachefleet.storage.block_queue"
    assert (first["changed"], second["changed"], second["actions"]) == (True, False, [])


def _changed_by_the_role(results, words):
    calls = [result for result in results if result["module"] == _MODULE and result["role"] and not _compared(result)]
    return [call["host"] for call in calls if any(action.startswith(words) for action in call["actions"] or [])]


def test_mtu_is_raised_on_targets_first_and_lowered_on_initiators_first():
    assert _changed_by_the_role(_runs(False)[0], "Raise the MTU of eth1") == ["node1", "node2"]
    # The sweep of the long form then lowers it on node2 alone.
    assert _changed_by_the_role(_runs(False, "side_effect")[-1], "Lower the MTU of eth1")[:2] == ["node2", "node1"]


def test_interface_has_the_mtu_at_runtime(host):
    # The last step before this set it to 1500 and had the tool of the interface do what it does at boot.
    assert host.file("/sys/class/net/eth1/mtu").content_string.strip() == "8700"


def test_interface_has_the_mtu_in_its_boot_configuration(host, name):
    if name == "node1":
        drop_in = host.file("/etc/systemd/network/20-storage.network.d/50-cachefleet-mtu.conf")
        assert drop_in.mode == 0o644
        assert "[Link]\nMTUBytes=8700\n" in drop_in.content_string
    else:
        # One line more, and every other byte as it was.
        lines = host.file("/etc/network/interfaces").content_string.splitlines(keepends=True)
        assert [line.strip() for line in lines].count("mtu 8700") == 1
        before = host.file("/var/lib/cachefleet-network/interfaces.prepared").content_string
        assert "".join(line for line in lines if line.strip() != "mtu 8700") == before


def test_payload_is_two_blocks(host, name):
    if name != "node2":
        pytest.skip("this machine serves")
    assert host.file("/sys/block/etherd!e7.1/payload").content_string.strip() == "8192"
    assert host.file("/sys/block/etherd!e7.1/state").content_string.strip() == "up"


def test_initiator_uses_one_interface_at_runtime_and_at_boot(host, name):
    if name != "node2":
        pytest.skip("this machine serves")
    assert host.file("/sys/module/aoe/parameters/aoe_iflist").content_string.strip() == "eth1"
    assert "options aoe aoe_iflist=eth1\n" in host.file("/etc/modprobe.d/cachefleet-aoe.conf").content_string
    assert "aoe\n" in host.file("/etc/modules-load.d/cachefleet-aoe.conf").content_string


def test_target_uses_direct_io_at_runtime_and_at_boot(host, name):
    if name != "node1":
        pytest.skip("this machine uses")
    assert host.check_output("pgrep --count --full '^[^ ]*vblade .*-d'") == "1"
    assert "options='-d" in host.file("/etc/vblade.conf.d/e7.1.eth1.conf").content_string


def test_requests_are_split_at_mtu_9000_and_whole_blocks_at_8700():
    before, after = _frames(9000)["frames"], _frames(8700)["frames"]
    # 17 sectors in a full frame: two blocks and a stub; 64 KiB are seven of them and one of nine.
    assert before["whole_percent"] < 100
    assert before["sectors"]["17"] > before["sectors"]["9"] > 0
    assert after["whole_percent"] == 100
    assert "17" not in after["sectors"]
    assert before["dropped"] == after["dropped"] == 0


def test_health_finding_names_the_interface_and_both_mtus():
    (finding,) = _frames(9000)["findings"]
    assert all(word in finding["message"] for word in ("e7.1", "8704", "eth1 (MTU 9000)", "set the MTU 8700 on eth1"))
    assert _frames(8700)["findings"] == []


def test_management_interface_is_unchanged_at_runtime_and_at_boot(host):
    assert host.file("/sys/class/net/eth0/mtu").content_string.strip() == "1500"
    assert not host.file("/etc/systemd/network/00-cachefleet-mtu-eth0.link").exists
    assert not host.file("/var/lib/cachefleet/storage_network/journal.json").exists


@pytest.mark.skipif(not os.environ.get("CACHEFLEET_LONG"), reason="part of the long form")
def test_a_sweep_has_measured_smaller_frames_and_refused_larger_ones(host, name):
    if name != "node2":
        pytest.skip("targets are not swept")
    campaign = Path(os.environ["CACHEFLEET_RESULTS"]) / "mtu"
    state = json.loads((campaign / "sweep/node2.json").read_text())
    assert state["restored"] and {key: step["state"] for key, step in state["steps"].items()} == dict.fromkeys(
        ("baseline/1", "mtu_1500/1", "mtu_4200/1"), "done"
    )
    assert "The MTU of eth1 is 8700, and a variant can only lower it" in state["refused"]["mtu_9000"]
    payloads = {variant: (campaign / f"node2/{variant}/randread-4k/1/stack.json").read_text() for variant in ("baseline", "mtu_1500", "mtu_4200")}
    assert [f'"payload": {size}' in payloads[variant] for variant, size in (("baseline", 8192), ("mtu_1500", 1024), ("mtu_4200", 4096))] == [True] * 3
    assert host.file("/sys/class/net/eth1/mtu").content_string.strip() == "8700"
