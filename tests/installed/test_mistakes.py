# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mistakes of a new user: none exits with status 0, and each is one sentence that names what to write."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

_BIN = Path(sys.executable).parent

_FILE = {"file": "/tmp/cachefleet-not-there", "size": "16m"}

_LOCALHOST = ["-i", "localhost,", "-c", "local"]

#: Playbook, arguments besides the inventory, variables, and what the first error has.
MISTAKES = {
    "no inventory": ("benchmark", [], {}, "The inventory has no host: give one with -i"),
    "group that is not there": ("benchmark", [*_LOCALHOST, "-e", "storage_hosts=rack9"], {}, "No host of the inventory matches rack9"),
    "hosts of an undefined variable": (
        "site",
        [*_LOCALHOST, "--check"],
        {"storage_hosts": "{{ my_rack }}"},
        "storage_hosts could not be evaluated: 'my_rack' is undefined",
    ),
    "no targets": ("benchmark", _LOCALHOST, {}, "Nothing was measured: no host has fio_benchmark_file or fio_benchmark_targets"),
    "mistyped variable": ("benchmark", _LOCALHOST, {"fio_benchmark_target": [_FILE]}, "did you mean fio_benchmark_targets?"),
    "dictionary as list": ("benchmark", _LOCALHOST, {"fio_benchmark_targets": _FILE}, "fio_benchmark_targets must be a list of dictionaries, for example [{"),
    "text as list": ("benchmark", _LOCALHOST, {"fio_benchmark_targets": "/dev/sda"}, "fio_benchmark_targets must be a list of dictionaries"),
    "mistyped key": ("benchmark", _LOCALHOST, {"fio_benchmark_targets": [{"fille": "x"}]}, "there is no key fille: did you mean file?"),
    "mistyped timing": ("benchmark", _LOCALHOST, {"fio_benchmark_timing": {"gapp": 1}}, "fio_benchmark_timing: there is no key gapp: did you mean gap?"),
    "unknown suite": ("benchmark", _LOCALHOST, {"fio_benchmark_targets": [_FILE], "fio_benchmark_suite": "quik"}, "set fio_benchmark_suite to one of"),
    "size without a unit": ("benchmark", _LOCALHOST, {"fio_benchmark_targets": [{"file": "x", "size": "16q"}]}, "size '16q' is not a size: use a number with"),
    "file without a size": (
        "benchmark",
        _LOCALHOST,
        {"fio_benchmark_targets": [{"file": "/tmp/cachefleet-not-there"}]},
        "Set size on this target, for example size: 1G.",
    ),
    "relative path": ("benchmark", _LOCALHOST, {"fio_benchmark_file": "srv/test"}, "fio_benchmark_file is 'srv/test': set the absolute path of a file"),
    "file and targets": (
        "benchmark",
        _LOCALHOST,
        {"fio_benchmark_file": "/srv/test", "fio_benchmark_targets": [_FILE]},
        "fio_benchmark_file (/srv/test) and fio_benchmark_targets are both set",
    ),
    "text as number": ("benchmark", _LOCALHOST, {"fio_benchmark_repeats": "four"}, "fio_benchmark_repeats must be a whole number"),
    "cell that is not there": ("benchmark", _LOCALHOST, {"fio_benchmark_targets": [_FILE], "fio_benchmark_only": ["x*"]}, "none of its cells is called x*"),
    "directory as file": ("benchmark", _LOCALHOST, {"fio_benchmark_targets": [{"file": "/tmp", "size": "16m"}]}, "/tmp is neither a plain file nor new."),
    "device that is not there": (
        "benchmark",
        _LOCALHOST,
        {"fio_benchmark_targets": [{"device": "/dev/disk/by-id/x"}]},
        "check the name, for example with lsblk",
    ),
    "no campaign": ("report", [], {}, "No campaign is named: set report_campaign to"),
    "campaign that is not there": ("report", [], {"report_campaign": "x"}, "There is no campaign x: set report_campaign to"),
    "comparison of nothing": ("compare", [], {}, "No campaign is named: set compare_baseline to"),
    "unknown operation": ("results", [], {"results_campaign": "x/y", "results_operation": "ingest"}, "value of operation must be one of: rebuild,"),
    "unknown choice": (
        "site",
        _LOCALHOST,
        {"drive_write_cache_drives": [{"device": "/dev/x", "write_cache": "of"}]},
        "must be one of: enabled, disabled, got: of",
    ),
    "unknown type of cache": ("site", _LOCALHOST, {"block_cache_caches": [{"name": "x", "type": "lvmcache"}]}, "set type to one of lvm_cache,"),
    "mistyped key of site": (
        "site",
        _LOCALHOST,
        {"drive_write_cache_drives": [{"device": "/dev/x", "write_cahce": "disabled"}]},
        "there is no key write_cahce: did you mean write_cache?",
    ),
    "text as dictionary": (
        "site",
        _LOCALHOST,
        {"storage_network_aoe_interfaces": ["eth9"], "storage_network_aoe_options": "max_sectors"},
        "storage_network_aoe_options must be a dictionary, not 'max_sectors'",
    ),
    "undefined variable in an option": (
        "site",
        _LOCALHOST,
        {"drive_write_cache_drives": [{"device": "/dev/x", "write_cache": "disabled"}], "storage_protected_drives": "{{ my_protected_drives }}"},
        "'my_protected_drives' is undefined",
    ),
    "undefined variable": ("site", _LOCALHOST, {"drive_write_cache_drives": "{{ my_drives }}"}, "'my_drives' is undefined"),
    "text as number of a link": ("site", _LOCALHOST, {"storage_network_links": [{"interface": "eth1", "mtu": "9k"}]}, "mtu must be a whole number, not '9k'"),
    "text as match": ("site", _LOCALHOST, {"block_queue_devices": [{"match": "text"}]}, "devices, entry 1: match must be a dictionary, not 'text': for"),
    "missing key": ("site", _LOCALHOST, {"drive_write_cache_drives": [{"write_cache": "enabled"}]}, "missing required arguments: device"),
    "mistyped tag": ("site", [*_LOCALHOST, "--tags", "block_cahce"], {}, "No task has the tag block_cahce: did you mean block_cache?"),
    "tag of no layer": ("site", [*_LOCALHOST, "--tags", "raid"], {}, "No task has the tag raid, and nothing was done: the tags of"),
    "nothing described": ("site", _LOCALHOST, {"write_cache_drives": []}, "did you mean drive_write_cache_drives, in place of write_cache_drives of"),
    "nothing selected": ("plan", [*_LOCALHOST, "--tags", "raid_cache"], {"block_queue_devices": []}, "no host of this play (localhost) has raid_cache_contr"),
    "launcher as Python": ("describe", _LOCALHOST, {"ansible_python_interpreter": "/opt/shims/python3"}, "set ansible_python_interpreter to a"),
    "empty answer of a survey": ("benchmark", _LOCALHOST, {"fio_benchmark_repeats": ""}, "fio_benchmark_repeats is empty: set a whole number, or leave it"),
    "no variants": ("sweep", _LOCALHOST, {}, "There is no variant: set sweep_variants or sweep_axes."),
    "mistyped state of site": ("site", _LOCALHOST, {"site_state": "absnt"}, "site_state is 'absnt', and nothing was done: set it to present or absent."),
    "removal of one layer": (
        "plan",
        [*_LOCALHOST, "--tags", "block_queue"],
        {"site_state": "absent"},
        "site_state=absent removes what all layers have put on a host, and nothing was done: run it without the tag block_queue.",
    ),
    "unknown severity": ("health", _LOCALHOST, {"cache_health_fail_on": "always"}, "must be one of: critical, warning, never, got: always"),
}


# The second core of CI repeats some of them.
@pytest.mark.parametrize("mistake", list(MISTAKES)[:: 5 if os.environ.get("CORE_SHARE") == "ansible" and not os.environ.get("CACHEFLEET_LONG") else 1])
def test_mistake_fails_with_what_to_write(tmp_path, mistake):
    playbook, arguments, variables, expected = MISTAKES[mistake]
    more = {"ansible_python_interpreter": sys.executable, "fio_benchmark_spool": str(tmp_path / "spool"), **variables}
    environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "PATH": f"{_BIN}:{os.environ['PATH']}"}
    command = [str(_BIN / "ansible-playbook"), *arguments, "-e", json.dumps(more), f"cachefleet.storage.{playbook}"]
    played = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=1800, check=False)
    assert played.returncode != 0, played.stdout
    errors = re.findall(r"^(?:\[ERROR\]: |fatal: ).*(?:\n\S.*)?", played.stderr + played.stdout, re.MULTILINE)
    assert errors, played.stdout + played.stderr
    assert expected in " ".join(errors[0].split()), errors
    assert "Traceback" not in played.stdout + played.stderr
