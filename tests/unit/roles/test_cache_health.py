# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The role cache_health: the command for worse findings, and the timer on the controller with a systemctl that only remembers."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import yaml

TOP = pathlib.Path(__file__).resolve().parents[3]
ROLE = TOP / "roles/cache_health"
CONTRIB = TOP / "contrib/systemd"

_SYSTEMCTL = """\
#!/bin/sh
cd "$(dirname "$0")"
echo "$*" >> calls
case "$1" in
show) printf 'LoadState=loaded\\nUnitFileState=x\\nActiveState=%s\\n' "$([ -e active ] && echo active || echo inactive)" ;;
is-enabled) [ -e enabled ] && echo enabled || { echo disabled; exit 1; } ;;
enable) touch enabled ;;
disable) rm -f enabled ;;
start | restart) touch active ;;
stop) rm -f active ;;
esac
"""
FINDING = {"severity": "critical", "check": "drive_wear", "subject": "sda", "message": "sda: replace it", "value": 91, "limit": 90}
FOUND = {
    "worst": "critical",
    "healthy": False,
    "compared": True,
    "findings": [FINDING],
    "worse": [FINDING],
    "worse_keys": ["critical drive_wear sda"],
    "problems": ["x cannot be read"],
    "readings": {"version": 1, "problems": ["critical drive_wear sda", "warning old sdb"]},
    "prometheus": "",
}


def play(folder, playbook, inventory, *arguments, roles=None, **variables):
    environment = {
        **os.environ,
        "PATH": f"{folder}/bin:{os.environ['PATH']}",
        "ANSIBLE_CONFIG": str(TOP / "ansible.cfg"),
        "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"),
        "ANSIBLE_NOCOLOR": "1",
        **({"ANSIBLE_ROLES_PATH": str(roles)} if roles else {}),
    }
    extra = {"ansible_become": False, "ansible_python_interpreter": sys.executable, **variables}
    command = [str(pathlib.Path(sys.executable).with_name("ansible-playbook")), "-i", str(inventory), str(playbook), "-e", json.dumps(extra)]
    played = subprocess.run([*command, *arguments], env=environment, cwd=folder, capture_output=True, text=True, timeout=900, check=False)
    return played.returncode, " ".join(played.stdout.split()) + played.stderr


def script(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_worse_findings_reach_the_command_and_its_failure_is_reported(tmp_path):
    """All hosts in one run: a run of Ansible takes seconds."""
    shutil.copytree(ROLE, tmp_path / "roles/copied")
    tasks = yaml.safe_load((ROLE / "tasks/check.yml").read_text())
    assert tasks[0]["register"] == "cache_health_found"
    # What the module would return is in the inventory.
    (tmp_path / "roles/copied/tasks/check.yml").write_text(yaml.safe_dump(tasks[1:]))
    (tmp_path / "play.yml").write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "roles": [{"role": "copied"}]}]))
    keep = script(tmp_path / "bin/keep", f'#!/bin/sh\ncat > "{tmp_path}/$1"\n')
    fail = script(tmp_path / "bin/fail", "#!/bin/sh\ncat > /dev/null\necho secret >&2\nexit 3\n")
    commands = {
        "told": [keep, "told.json; touch shell"],
        "failing": [fail, "secret"],
        "gone": [f"{tmp_path}/bin/gone"],
        "same": [keep, "same.json"],
        "without": [],
    }
    hosts = {
        name: {
            "ansible_connection": "local",
            "cache_health_found": {**FOUND, **({"worse": [], "worse_keys": []} if name == "same" else {})},
            "cache_health_notify_command": command,
            "cache_health_readings_file": str(tmp_path / f"readings/{name}.json"),
            "cache_health_fail_on": "critical" if name == "failing" else "never",
        }
        for name, command in commands.items()
    }
    (tmp_path / "readings").mkdir()
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    code, output = play(tmp_path, tmp_path / "play.yml", tmp_path / "hosts.yml", roles=tmp_path / "roles")
    # Only the finding itself fails a host.
    assert code == 2, output
    assert output.count("failed=1") == 1 and output.count("failed=0") == 4, output
    # No shell has seen the argument.
    event = json.loads((tmp_path / "told.json; touch shell").read_text())
    assert event == {"host": "told", "worst": "critical", "worse": [FINDING], "findings": [FINDING], "problems": ["x cannot be read"]}
    assert not (tmp_path / "same.json").exists()
    assert "cache_health_notify_command failed for failing (exit status 3)" in output
    assert "cache_health_notify_command failed for gone" in output
    assert "secret" not in output
    # What was not reported is new again in the next run.
    kept = {name: set(json.loads((tmp_path / f"readings/{name}.json").read_text())["problems"]) for name in hosts}
    assert kept["failing"] == kept["gone"] == {"warning old sdb"}
    assert kept["told"] == kept["same"] == kept["without"] == set(FOUND["readings"]["problems"])


@pytest.fixture
def controller(tmp_path):
    """A controller on which the timer can be set up by anyone. Its hosts do not exist: a task that is not for the controller would fail."""
    script(tmp_path / "bin/systemctl", _SYSTEMCTL)
    script(tmp_path / "bin/ansible-playbook-of-test", "#!/bin/sh\n")
    (tmp_path / "units").mkdir()
    (tmp_path / "play.yml").write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "roles": [{"role": "cachefleet.storage.cache_health"}]}]))

    def run(*arguments, **timer):
        settings = {
            "unit_directory": str(tmp_path / "units"),
            "command": str(tmp_path / "bin/ansible-playbook-of-test"),
            "user": "ansible",
            "inventory": ["/etc/cachefleet/inventory"],
            "directory": "/etc/cachefleet",
            "collections_path": "/usr/share/ansible/collections",
            **timer,
        }
        given = {"cache_health_timer": settings if timer.get("settings", True) else {}}
        return play(tmp_path, tmp_path / "play.yml", "first,second,", "--tags", "cache_health_timer", *arguments, **given)

    run.folder = tmp_path
    return run


def calls(folder):
    path = folder / "bin/calls"
    text = path.read_text() if path.exists() else ""
    path.unlink(missing_ok=True)
    return [line for line in text.splitlines() if not line.startswith(("show", "is-enabled"))]


needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze, with which the calendar is verified, is not installed")


def without_comments(text):
    return [line for line in text.splitlines() if not line.startswith("#")]


@needs_systemd
def test_timer_is_set_up_kept_and_removed(controller):
    units = controller.folder / "units"
    code, output = controller("--check")
    assert (code, sorted(units.iterdir()), calls(controller.folder)) == (0, [], []), output
    code, output = controller()
    assert code == 0, output
    assert calls(controller.folder) == ["daemon-reload", "enable cachefleet-health.timer", "start cachefleet-health.timer"]
    # The files for those who install it by hand are the same.
    for kind in ("service", "timer"):
        written = (units / f"cachefleet-health.{kind}").read_text().replace(f"{controller.folder}/bin/ansible-playbook-of-test", "/usr/bin/ansible-playbook")
        assert without_comments(written) == without_comments((CONTRIB / f"cachefleet-health.{kind}").read_text())
    code, output = controller()
    assert code == 0 and "changed=0" in output and "changed=1" not in output, output
    assert calls(controller.folder) == []
    code, output = controller(state="absent")
    assert (code, list(units.iterdir())) == (0, []), output
    assert calls(controller.folder) == ["disable cachefleet-health.timer", "stop cachefleet-health.timer", "daemon-reload"]


@needs_systemd
def test_special_characters_reach_the_command_unchanged(controller):
    folder = controller.folder
    arguments = ["-e", "{'a': \"50% $HOME\"}", "back\\slash"]
    code, output = controller(arguments=arguments, calendar="*:0/30", name="own", collections_path="")
    assert code == 0, output
    text = (folder / "units/own.service").read_text()
    start = next(line for line in text.splitlines() if line.startswith("ExecStart="))
    assert start.endswith('"cachefleet.storage.health" "-e" "{\'a\': \\"50%% $$HOME\\"}" "back\\\\slash"')
    assert "Environment" not in text
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(folder / "units/own.service")], capture_output=True, text=True, timeout=900, check=False
    )
    assert "ExecStart" not in verified.stderr and "own.service" not in verified.stderr, verified.stderr


@needs_systemd
@pytest.mark.parametrize(
    ("timer", "message"),
    [
        ({"calendar": "sometimes"}, "cache_health_timer.calendar 'sometimes' is invalid: see systemd.time(7), for example hourly"),
        ({"random_delay": "soon"}, "cache_health_timer.random_delay 'soon' is invalid"),
        ({"name": "../etc"}, "Invalid cache_health_timer.name '../etc': use only letters"),
        ({"arguments": ["a\nExecStartPost=/bin/sh"]}, "cache_health_timer.arguments must not contain line breaks"),
        ({"command": "/nowhere/ansible-playbook"}, "/nowhere/ansible-playbook does not exist on the controller: set cache_health_timer.command"),
        ({"settings": False}, "Set cache_health_timer, for example to"),
    ],
)
def test_invalid_timers_are_rejected_and_nothing_is_written(controller, timer, message):
    code, output = controller(**timer)
    assert code != 0 and message in output, output
    assert list((controller.folder / "units").iterdir()) == [] and calls(controller.folder) == []
