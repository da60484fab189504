# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import sys
import textwrap

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import report as lvm_report
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.shell import PROFILE, LvmRunner, line_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, TimedOut

#: Answers as lvm does: by itself when it is given a command, else line by line. What it was asked is in the file "asked".
LVM = """\
#!{python}
import json, os, sys, time
here = os.path.dirname(os.path.abspath(__file__))
def note(what):
    with open(os.path.join(here, "asked"), "a") as file:
        file.write(what + "\\n")
name = os.path.basename(sys.argv[0])
if name == "lvchange" or sys.argv[1:]:
    note("started: " + " ".join([name, *sys.argv[1:]]))
    print(json.dumps({{"report": []}}) if name == "lvm" else "  Logical volume changed.")
    sys.exit(0)
note("shell " + os.environ["LVM_COMMAND_PROFILE"] + " " + os.environ["HOME"])
out = os.fdopen(int(os.environ["LVM_REPORT_FD"]), "w")
def status(code):
    return {{"log_seq_num": "1", "log_type": "status", "log_context": "shell", "log_ret_code": str(code)}}
last = []
def message(kind, text):
    last.append({{"log_seq_num": "2", "log_type": kind, "log_context": "processing", "log_message": text, "log_ret_code": "0"}})
for line in sys.stdin:
    if line.rstrip() == "lastlog -S log_seq_num>0":
        out.write(json.dumps({{"log": last}}) + "\\n"); out.flush()
        continue
    last = []
    note("line: " + line.rstrip())
    if "mc/dies" in line:
        print("  Internal error", file=sys.stderr, flush=True)
        os._exit(3)
    if "mc/slow" in line:
        time.sleep(60)
    if "mc/odd" in line:
        out.write(json.dumps({{"strange": 1}}) + "\\n"); out.flush()
        continue
    if "mc/fails" in line:
        message("warn", "WARNING: a device is missing.")
        message("error", "Failed to find logical volume mc/fails")
        message("status", "failure")
        out.write(json.dumps({{"log": [status(5)]}}, indent=4) + "\\n"); out.flush()
        continue
    if "lacks" in line:
        out.write(json.dumps({{"report": [], "log": [status(5)]}}) + "\\n"); out.flush()
        continue
    if "mc/unwritten" in line:
        message("error", "/etc/lvm/backup/mc.tmp: write error failed: No space left on device")
        message("error", "Backup of volume group mc metadata failed.")
    if line.startswith("lvchange"):
        message("print", "Logical volume changed.")
    report = {{"report": [{{"vg": [{{"vg_name": "x" * 200000}}], "lv": []}}]}} if line.startswith("fullreport") else {{}}
    text = json.dumps({{**report, "log": [{{"log_type": "print", "log_ret_code": "0"}}, status(1)]}}, indent=4)
    # In two pieces: a pipe holds only so much.
    out.write(text[: len(text) // 2]); out.flush()
    time.sleep(0.05)
    out.write(text[len(text) // 2 :] + "\\n"); out.flush()
"""


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A folder with the commands, put first on PATH; LVM's profile is there."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "lvm").write_text(textwrap.dedent(LVM).format(python=sys.executable))
    (tools / "lvm").chmod(0o755)
    (tools / "lvchange").symlink_to("lvm")
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    (tmp_path / PROFILE).parent.mkdir(parents=True)
    (tmp_path / PROFILE).write_text("")
    return tmp_path


@pytest.fixture
def runner(host):
    made = LvmRunner(host)
    yield made
    made.forget_devices()


def requested(host):
    return (host / "tools/asked").read_text().splitlines()


def test_report_and_change_use_one_lvm_process_without_history(host, runner):
    first = runner.run(list(lvm_report.REPORT))
    change = runner.run(["lvchange", "--yes", "--cachesettings", "a=1 b=2", "mc/o"])
    runner.run(list(lvm_report.REPORT))
    assert lvm_report.parse_report(first.stdout).volumes == ()
    assert (change.rc, change.stdout) == (0, "  Logical volume changed.\n")
    message = requested(host)
    assert message[0] == "shell lvmdbusd /nonexistent"
    assert [line.split()[1] for line in message[1:]] == ["fullreport", "lvchange", "fullreport"]
    assert message[2] == "line: lvchange --yes --cachesettings 'a=1 b=2' mc/o"
    assert [completed.rc for completed in runner.history] == [0, 0, 0]


def test_failed_command_raises_with_lvm_message(host, runner):
    with pytest.raises(CommandFailed, match="exit status 5: Failed to find logical volume mc/fails"):
        runner.run(["lvchange", "--yes", "mc/fails"])
    assert runner.run(["lvchange", "--yes", "mc/o"]).rc == 0
    assert len([line for line in requested(host) if line.startswith("shell")]) == 1


def test_messages_about_a_volume_are_read_from_the_log(host, runner):
    """LVM 2.03.16 writes them to no other stream, and its profile leaves them out of the answer."""
    failed = runner.run(["lvchange", "--yes", "mc/fails"], ok=None)
    assert (failed.rc, failed.stderr) == (5, "  WARNING: a device is missing.\n  Failed to find logical volume mc/fails\n")
    done = runner.run(["lvchange", "--yes", "mc/unwritten"])
    assert (done.rc, done.unwritten) == (0, "/etc/lvm/backup/mc.tmp: write error failed: No space left on device")
    assert runner.run(["lvchange", "--yes", "mc/o"]).stderr == ""


def test_report_that_fails_is_made_by_a_process_which_says_why(host, runner):
    assert runner.run(["lvm", "fullreport", "-o", "lacks"]).rc == 0
    runner.run(["lvchange", "--yes", "mc/o"])
    assert requested(host)[1:] == ["line: fullreport -o lacks", "started: lvm fullreport -o lacks", "line: lvchange --yes mc/o"]


def test_missing_profile_starts_a_process_for_every_command(host, runner):
    (host / PROFILE).unlink()
    runner.run(["lvm", "fullreport"])
    runner.run(["lvchange", "--yes", "mc/o"])
    assert requested(host) == ["started: lvm fullreport", "started: lvchange --yes mc/o"]


def test_changed_devices_start_a_process_for_every_command(host, runner):
    runner.run(["lvm", "fullreport"])
    runner.forget_devices()
    runner.run(["lvm", "fullreport"])
    assert requested(host)[1:] == ["line: fullreport", "started: lvm fullreport"]


@pytest.mark.parametrize("name", ["dies", "odd"])
def test_change_without_response_fails_and_is_not_repeated(host, runner, name):
    runner.run(["lvm", "fullreport"])
    completed = runner.run(["lvchange", "--yes", f"mc/{name}"], ok=None)
    assert completed.rc == -1
    assert completed.stderr == ("  Internal error\n" if name == "dies" else "")
    runner.run(["lvm", "fullreport"])
    assert requested(host)[1:] == ["line: fullreport", f"line: lvchange --yes mc/{name}", "started: lvm fullreport"]


@pytest.mark.parametrize("name", ["dies", "odd"])
def test_report_without_response_is_repeated(host, runner, name):
    assert runner.run(["lvm", "fullreport", f"mc/{name}"]).rc == 0
    assert requested(host)[1:] == [f"line: fullreport mc/{name}", f"started: lvm fullreport mc/{name}"]


def test_command_exceeding_timeout_is_stopped(host, runner):
    with pytest.raises(TimedOut, match=r"lvchange --yes mc/slow did not end within 0\.5 seconds and was stopped"):
        runner.run(["lvchange", "--yes", "mc/slow"], timeout=0.5)
    assert runner.run(["lvm", "fullreport"]).stdout == '{"report": []}\n'


def test_watch_is_called_while_command_runs_and_can_stop_it(host, runner):
    calls = []

    def watch():
        calls.append(1)
        if len(calls) == 3:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        runner.run(["lvchange", "--yes", "mc/slow"], timeout=30, watch=watch, interval=0.02)
    assert len(calls) == 3


@pytest.mark.parametrize(
    "words",
    [
        ["lvcreate", "--yes", "mc"],
        ["lvm", "lvs"],
        ["lvm"],
        ["lvchange", "--addtag", 'a"b', "mc/o"],
        ["lvchange", "it's", "mc/o"],
        ["lvchange", "a\nlvremove", "mc/o"],
        ["lvchange", "", "mc/o"],
        ["lvchange", "a;b", "mc/o"],
    ],
)
def test_commands_unsupported_by_the_shell(words):
    assert line_of(words) is None


def test_reports_reach_the_shell_without_their_format():
    words = ["/sbin/lvm", "fullreport", "--reportformat", "json", "--units", "b", "--configreport", "vg", "-o", "vg_name"]
    assert line_of(words) == "fullreport --units b --configreport vg -o vg_name"
