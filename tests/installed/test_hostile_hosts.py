# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host whose Python answers what it likes, under the default settings of Ansible: it sets no variable, starts no process, and is not evaluated.

``hostile/python`` runs the modules that Ansible sends, on this machine, and adds to their results what an attacker would.
"""

from __future__ import annotations

import json

import pytest
import yaml

#: All ways in which Ansible begins a template, with delimiters of one's own among them.
_TEMPLATES = [
    "{{{{ {0} }}}}",
    "{{% if {0} %}}{{% endif %}}",
    "{{#}}{{{{ {0} }}}}",
    "#jinja2:variable_start_string:'[[', variable_end_string:']]'\n[[ {0} ]]",
    "#jinja2:variable_start_string:'[[', variable_end_string:']]'\n[[ {0} ]] {{{{ {0} }}}}",
    "#jinja2: block_start_string:'<%', block_end_string:'%>'\n<% if {0} %><% endif %>",
    "#jinja2:line_statement_prefix:'%%'\n%% if {0}\n%% endif",
    "#jinja2:variable_start_string:'[[' # [[ {0} }}}}",
    "x\u2028{{{{ {0} }}}}",
]


@pytest.fixture
def attack(attack):
    attack.plan["add"] = attack.additions
    return attack


def _cleaned(text):
    """What a terminal would get from the host: everything but what Ansible prints of built-in modules."""
    return [line for line in text.splitlines() if "\x1b" in line or "\u202e" in line]


def test_no_module_carries_facts_keys_or_escapes(attack):
    names = sorted({*attack.facts} - {"ansible_facts", "ansible_connection", "fio_benchmark_spool"})
    surplus = sorted({*attack.additions} - {"deprecations", "warnings"})
    entries = yaml.safe_load((attack.collection / "meta/runtime.yml").read_text())["plugin_routing"]["modules"]
    routed = [name for name, entry in entries.items() if entry.get("action_plugin")]
    tasks = [{f"cachefleet.storage.{module}": {}, "ignore_errors": True, "register": f"answer_{module}"} for module in routed]
    keys = f"{{{{ [{', '.join(f'answer_{module}.keys() | list' for module in routed)}] | flatten | intersect({json.dumps(surplus)}) }}}}"
    variables = f"{{{{ {json.dumps(names)} | select('in', query('ansible.builtin.varnames', '.')) | list }}}}"
    shown = {"ansible.builtin.debug": {"msg": f"KEYS={keys} VARIABLES={variables} FACTS={{{{ ansible_facts | list }}}}"}}
    done = attack.play(plays=[{"hosts": "bad", "gather_facts": False, "tasks": [*tasks, shown]}])
    assert attack.given == len(routed), done.stdout
    assert "KEYS=[] VARIABLES=[] FACTS=[]" in done.stdout, done.stdout
    assert _cleaned(done.stdout + done.stderr) == []


_HEALTH = {
    "changed": False,
    "worst": "critical",
    "healthy": False,
    "compared": True,
    "prometheus": "",
    "worse_keys": ["x"],
    "problems": [],
    "findings": [{"severity": "critical", "message": "x"}],
    "worse": [{"severity": "critical", "message": "x"}],
    "readings": {"problems": ["x"]},
}


@pytest.mark.parametrize("playbook", ["health", "site", "plan", "describe", "benchmark", "sweep", "test_volumes", "replace_cache_device", "power_loss"])
def test_no_playbook_acts_on_what_a_host_sets(attack, playbook):
    attack.plan["instead"] = {"plugins.modules.cache_health_info": _HEALTH}
    attack.variables = {
        "fio_benchmark_suite": "tiny",
        "fio_benchmark_suites": {
            "tiny": {"cells": [{"name": "write", "job": {"rw": "randwrite", "bs": "4k", "ioengine": "psync", "runtime": 1, "time_based": 1}}]}
        },
        "fio_benchmark_targets": [{"file": str(attack.folder / "{{ inventory_hostname }}.bin"), "size": "16m"}],
        "fio_benchmark_timing": {"patience": 20, "barrier_timeout": 20},
        "cache_health_remember": False,
        "drive_write_cache_drives": [{"device": "/dev/disk/by-id/ata-GONE", "write_cache": "disabled"}],
        "sweep_variants": [{"name": "off", "drive_write_cache_drives": [{"device": "/dev/disk/by-id/ata-GONE", "write_cache": "disabled"}]}],
        "test_volumes_volumes": [{"name": "v", "size": "1g", "devices": ["/dev/disk/by-id/ata-GONE"], "filesystem": "xfs", "mount": "/srv/x"}],
        "block_cache_caches": [{"name": "c", "type": "lvm_cache", "origin": "vg/lv", "cache_devices": ["/dev/disk/by-id/ata-GONE"], "mode": "writethrough"}],
        "power_loss_test_target": {"file": str(attack.folder / "{{ inventory_hostname }}.loss"), "size": "16m"},
        "power_loss_test_witness_address": "127.0.0.1",
        "power_loss_test_witness_hosts": ["127.0.0.1"],
        **{f"power_loss_test_{name}": 0 for name in ("countdown", "off_seconds", "seconds")},
        **{f"power_loss_test_{name}": 1 for name in ("cuts", "writes", "boot_timeout")},
    }
    given = {"__sweep_folder": str(attack.folder / "sweep"), "replace_cache_device_old": "/dev/disk/by-id/ata-GONE", "replace_cache_device_new": "X"}
    done = attack.play(f"cachefleet.storage.{playbook}", "-e", json.dumps(given))
    assert "PLAY RECAP" in done.stdout, done.stdout + done.stderr
    assert attack.given > 0, done.stdout
    # What built-in modules answer on a host is printed by Ansible itself: the playbooks refuse the host after it.
    refused = "contain variables that only the inventory may set" in done.stdout
    assert refused or _cleaned(done.stdout) == [], done.stdout


def test_every_role_refuses_a_host_that_has_set_its_variables(attack):
    roles = [role for role in attack.roles if role != "virtual_rack"]
    tasks = []
    for role in roles:
        used = {"name": f"Use {role}", "ansible.builtin.include_role": {"name": f"cachefleet.storage.{role}"}}
        tasks.append({"block": [used], "rescue": [{"ansible.builtin.debug": {"msg": f"ROLE {role}: {{{{ ansible_failed_result.msg }}}}"}}]})
    attack.variables = {"drive_write_cache_drives": [{"device": "/dev/disk/by-id/ata-GONE", "write_cache": "disabled"}]}
    attack.variables |= {"power_loss_test_target": {"file": str(attack.folder / "target.bin"), "size": "16m"}}
    # Only what no role verifies by its type: a role whose arguments are invalid would fail before.
    attack.plan["add"]["ansible_facts"] = {
        name: value for name, value in attack.facts.items() if name.startswith("__") or name == "cache_health_notify_command"
    }
    done = attack.play(plays=[{"hosts": "bad", "gather_facts": True, "tasks": tasks}])
    for role in roles:
        assert f"ROLE {role}: The facts of this host contain variables that only the inventory may set (" in done.stdout.replace("Task failed: ", ""), (
            role,
            done.stdout,
        )


def test_a_fact_cache_of_last_week_is_refused(attack):
    cache = {"ANSIBLE_CACHE_PLUGIN": "ansible.builtin.jsonfile", "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(attack.folder / "cache")}
    attack.plan["add"]["ansible_facts"] = {"cache_health_notify_command": ["touch", str(attack.marker)]}
    attack.play(plays=[{"hosts": "bad", "gather_facts": True, "tasks": []}], **cache)
    attack.plan["add"] = {}
    attack.plan["instead"] = {"plugins.modules.cache_health_info": _HEALTH}
    done = attack.play("cachefleet.storage.health", "-e", "cache_health_remember=false", **cache)
    assert done.stdout.count("The facts of this host contain variables that only the inventory may set (cache_health_notify_command)") >= 1, done.stdout


def test_a_host_cannot_take_the_name_of_another(attack):
    """Ansible lets a fact replace inventory_hostname, by which results and descriptions are filed."""
    attack.plan["add"]["ansible_facts"] = {"inventory_hostname": "good"}
    described = {"changed": False, "variables": [], "controllers": []}
    attack.plan["instead"] = {"plugins.modules.cache_description_info": described}
    play = {"hosts": "bad", "gather_facts": True, "tasks": [{"cachefleet.storage.describe": {"path": str(attack.folder / "described")}}]}
    done = attack.play(plays=[play])
    assert "only the inventory may set (inventory_hostname)" in done.stdout, done.stdout
    assert not (attack.folder / "described").exists()


def test_a_machine_of_the_virtual_rack_does_not_describe_itself(attack):
    """A description has commands that run on the controller."""
    attack.variables = {"virtual_rack_machine": {"memory": "512M"}, "virtual_rack_group": "all", "virtual_rack_install": False}
    attack.plan["add"]["ansible_facts"] = {"virtual_rack_machine": {"processes": [["touch", str(attack.marker)]]}}
    role = {"ansible.builtin.include_role": {"name": "cachefleet.storage.virtual_rack"}}
    rack = {"hosts": "localhost", "connection": "local", "gather_facts": False, "check_mode": True, "tasks": [role]}
    done = attack.play("-e", "virtual_rack_group=all", plays=[{"hosts": "bad", "gather_facts": True, "tasks": []}, rack])
    assert "facts with the name virtual_rack_machine, which would replace the descriptions, were returned by bad" in done.stdout, done.stdout


def test_an_answer_without_end_is_not_read(attack):
    attack.plan = {**attack.plan, "add": {}, "instead": {"plugins.modules.cache_stack_info": {"msg": "x" * 20 * 1024**2}}}
    done = attack.play("--limit", "bad", plays=[{"hosts": "all", "gather_facts": False, "tasks": [{"cachefleet.storage.cache_stack_info": {}}]}])
    assert done.returncode != 0 and len(done.stdout) < 10_000
    assert "Host bad answered with more than 16 MiB" in done.stdout, done.stdout


def test_the_configured_command_runs_and_no_other(attack):
    """What is fixed before the first contact is used, also when a built-in module of the same role has answered in between."""
    attack.plan["instead"] = {"plugins.modules.cache_health_info": {**_HEALTH, "compared": False}}
    attack.variables = {"cache_health_notify_command": ["touch", str(attack.folder / "configured")]}
    attack.variables |= {"cache_health_readings_file": str(attack.folder / "readings/file.json")}
    attack.play("cachefleet.storage.health", "--limit", "bad")
    attack.plan["add"] = {}
    attack.play("cachefleet.storage.health", "--limit", "bad")
    assert (attack.folder / "configured").exists()


def test_described_texts_are_not_evaluated(attack):
    texts = [template.format(attack.template) for template in _TEMPLATES]
    entries = [{"values": {"device": text, "write_cache": "enabled"}, "notes": [text]} for text in texts if text.isprintable()]
    described = {"changed": False, "variables": [{"name": "drive_write_cache_drives", "entries": entries, "notes": texts}], "controllers": []}
    attack.plan = {**attack.plan, "add": {}, "instead": {"plugins.modules.cache_description_info": described}}
    attack.play("cachefleet.storage.describe", "--limit", "bad")
    path = attack.folder / "described/host_vars/bad.yml"
    show = [{"hosts": "localhost", "gather_facts": False, "tasks": [{"ansible.builtin.debug": {"var": "drive_write_cache_drives"}}]}]
    shown = attack.play("-e", f"@{path}", plays=show)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert shown.stdout.count("lookup(") == len(entries)

    path.unlink()
    broken = [text for text in texts if not text.isprintable()]
    for text in broken:
        entries[0]["values"]["device"] = text
        done = attack.play("cachefleet.storage.describe", "--limit", "bad")
        assert "not printable" in done.stdout and not path.exists(), done.stdout
        break
    assert broken
