# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Certificates of drives and hosts, whatever hosts report, and whatever became of the files."""

from __future__ import annotations

import json
import math
import os
import re
import statistics
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept import certificate
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.context import context_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import ResultsError
from ansible_collections.cachefleet.storage.tests.unit.support.judged import POWER, context, device, judgement, measured
from ansible_collections.cachefleet.storage.tests.unit.support.report_rows import measurement

HOSTILE = ("../../x", "/etc/passwd", "..", "a\0b", "\x1b[31mred\n", "S" * 10_000, "S\ud800", "*+?", "é", "-rf", ".hidden")


def write(folder: Path, *judgements, **changes):
    return certificate.write(folder, judgements or (judgement(),), context(*changes.pop("devices", ()), **changes))


def rewritten(path, **changes):
    """The file with other values and the right hash of them."""
    data = {**json.loads(path.read_text()), **changes}
    data.pop("sha256")
    path.write_text(certificate._canonical({**data, "sha256": certificate._hash_of(data)}))


def test_host_and_drive_have_certificates_with_everything(tmp_path):
    found = write(tmp_path, judgement(), judgement(target="", requirement=POWER, value=None, low=None, high=None))
    assert [str(path.relative_to(tmp_path)) for path in found] == ["certificates/host-node1.json", "certificates/drive-S1.json"]
    host, drive = map(certificate.read, found)
    assert (drive.kind, drive.name, drive.host, drive.when, drive.campaign) == ("drive", "S1", "node1", "2026-11-29T12:00:00Z", "accept1")
    assert (drive.campaign_sha256, drive.results_sha256, drive.notes) == ("a" * 64, "b" * 64, ())
    assert drive.devices == (device(),) and drive.measured == (measured(),) and drive.verdicts == (judgement(),)
    assert [one.requirement.name for one in host.verdicts] == ["wal_fsync", "power"]


def test_file_is_canonical(tmp_path):
    (path, _drive) = write(tmp_path, judgement(reason="é"))
    text = path.read_text(encoding="utf-8")
    assert text == json.dumps(json.loads(text), sort_keys=True, ensure_ascii=False) + "\n" and "é" in text
    assert path.stat().st_mode & 0o777 == 0o644
    before = path.stat().st_ino
    assert write(tmp_path, judgement(reason="é"))[0].stat().st_ino == before
    assert sorted(os.listdir(path.parent)) == ["drive-S1.json", "host-node1.json"]


def test_signature_of_another_content_is_removed(tmp_path):
    (path, _drive) = write(tmp_path)
    signature = path.with_name(f"{path.name}.sig")
    signature.write_text("x")
    write(tmp_path)
    assert signature.exists()
    write(tmp_path, judgement(state="fail"))
    assert not signature.exists()


def test_hostile_serial_numbers_become_plain_file_names(tmp_path):
    devices = [device(serial=serial, target=f"/dev/sd{number}") for number, serial in enumerate(HOSTILE)]
    found = write(tmp_path / "in", devices=devices)
    assert len(set(found)) == len(HOSTILE) + 1
    assert {path.parent for path in found} == {tmp_path / "in/certificates"} and os.listdir(tmp_path) == ["in"]
    for path in found:
        assert re.fullmatch(r"(?:host|drive)-[A-Za-z0-9._-]{0,64}(?:\+[0-9a-f]{12})?\.json", path.name), path.name
        assert certificate.read(path).name.isprintable()


def test_hostile_host_name_stays_in_the_folder(tmp_path):
    (path, _drive) = write(tmp_path, judgement("../x"), devices=[device("../x")])
    assert path.parent == tmp_path / "certificates" and path.name.startswith("host-.._x+")


@pytest.mark.parametrize("serial", ["", " ", "\n"])
def test_drive_without_serial_number_is_noted(tmp_path, serial):
    (path,) = write(tmp_path, devices=[device(serial=serial)])
    assert certificate.read(path).notes == ("There is no certificate of a drive for /dev/sda: the serial number of a single drive is not known.",)


@pytest.mark.parametrize("other", ["S1", "s1"])
def test_hosts_with_the_same_serial_number_do_not_overwrite_each_other(tmp_path, other):
    found = write(tmp_path, judgement("a"), judgement("b", "fail"), devices=[device("a"), device("b", other)])
    drives = [certificate.read(path) for path in found if path.name.startswith("drive")]
    assert len(set(found)) == 4 and [(one.host, one.verdicts[0].state) for one in drives] == [("a", "pass"), ("b", "fail")]
    assert all(re.fullmatch(r"drive-[Ss]1\+[0-9a-f]{12}\.json", path.name) for path in found if path.name.startswith("drive"))
    notes = [one.notes for one in drives]
    assert notes == ([("This serial number is also reported by b.",), ("This serial number is also reported by a.",)] if other == "S1" else [(), ()])


def test_drives_of_one_host_with_the_same_serial_number_are_noted(tmp_path):
    found = write(tmp_path, devices=[device(), device(target="/dev/sdb"), device(target="/dev/sdc", model="SSD B")])
    drive = certificate.read(found[1])
    assert len(found) == 2 and [one.target for one in drive.devices] == ["/dev/sda", "/dev/sdb", "/dev/sdc"]
    assert drive.notes == ("Drives of several models report this serial number: SSD A and SSD B.",)


def test_drive_has_only_what_is_its_own(tmp_path):
    devices = [device(), device(serial="S2", target="/dev/sdb")]
    found = write(tmp_path, judgement(), judgement(target="/dev/sdb", state="fail"), devices=devices)
    other = certificate.read(found[2])
    assert (other.name, [one.state for one in other.verdicts], [one.target for one in other.measured]) == ("S2", ["fail"], ["/dev/sdb"])


def test_values_that_json_does_not_have_are_unknown(tmp_path):
    (path, _drive) = write(tmp_path, judgement(value=math.nan, high=math.inf, reason="\x1b[31mx"))
    (one,) = certificate.read(path).verdicts
    assert (one.value, one.high, one.reason) == (None, None, "x")


def test_unwritable_folder_is_one_sentence(tmp_path):
    (tmp_path / "certificates").write_text("")
    with pytest.raises(ResultsError, match=r"cannot be written by .*File exists, while writing certificates"):
        write(tmp_path)


def damaged(change):
    def made(path):
        path.write_bytes(change(path.read_bytes()))

    return made


DAMAGES = {
    "changed": (damaged(lambda content: content.replace(b'"state": "pass"', b'"state": "fail"')), "it was changed after it was written"),
    "truncated": (damaged(lambda content: content[:-30]), "it is not JSON"),
    "empty": (damaged(lambda _content: b""), "it is not JSON"),
    "list": (damaged(lambda _content: b"[]"), "it is not a JSON object"),
    "other file": (damaged(lambda _content: b"{}"), "it is not a certificate of this collection"),
    "not UTF-8": (damaged(lambda content: content.replace(b"SSD", b"\xff")), "it is not UTF-8"),
    "large": (lambda path: os.truncate(path, 10**9), "is larger than"),
    "link": (lambda path: (path.rename(path.with_name("x")), path.symlink_to(path.with_name("x"))), "could not be read"),
    "pipe": (lambda path: (path.unlink(), os.mkfifo(path)), "it is not JSON"),
    "deep": (damaged(lambda _content: b"[" * 10_000), "nested deeper"),
    "newer": (lambda path: rewritten(path, schema=2), "it has version 2, and this version of the collection reads version 1"),
    "boolean version": (lambda path: rewritten(path, schema=True), "it is not a certificate"),
    "number for text": (lambda path: rewritten(path, host=5), "host is not what a certificate has there"),
    "boolean for number": (lambda path: rewritten(path, verdicts=[verdict(value=True)]), "value is not what"),
    "text in numbers": (lambda path: rewritten(path, verdicts=[verdict(looks="3")]), "looks is not what"),
    "object for list": (lambda path: rewritten(path, devices={}), "devices is not what"),
    "list for object": (lambda path: rewritten(path, measured=[[]]), "measured is not what"),
    "more names": (lambda path: rewritten(path, extra=1), "it is not what"),
    "unknown state": (lambda path: rewritten(path, verdicts=[verdict(state="great")]), "a kind or a state that does not exist"),
    "unknown kind": (lambda path: rewritten(path, kind="rack"), "a kind or a state that does not exist"),
}


def verdict(**changes):
    return {**certificate.dataclasses.asdict(judgement()), **changes}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_certificate_is_one_sentence(tmp_path, damage):
    (path, _drive) = write(tmp_path)
    change, expected = DAMAGES[damage]
    change(path)
    with pytest.raises(ResultsError) as failure:
        certificate.read(path)
    assert expected in failure.value.message and failure.value.message.startswith("The certificate ") and "\n" not in failure.value.message


def test_missing_certificate_is_one_sentence(tmp_path):
    with pytest.raises(ResultsError, match="No such file"):
        certificate.read(tmp_path / "x")


def runs(*p99, **changes):
    return [measurement(repeat=number, target="/dev/sda", drive="S1", stack_after="s", p99_ns=value, **changes) for number, value in enumerate(p99, 1)]


def test_context_has_named_fields_only(tmp_path):
    settings = {("node1", "s"): [("sda", "drive", "drive", "enabled"), ("sda", "drive", "password", "secret"), ("sda", "other", "mode", "x")]}
    found = context_of(tmp_path, "now", [*runs(2e6), measurement(repeat=2, state="failed", target="/dev/sdb")], settings)
    (one,) = found.devices
    assert (one.serial, one.settings, one.model, one.kernel) == ("S1", {"drive write cache": "enabled"}, "SSD A", "6.1.0")
    assert "secret" not in repr(found) and found.campaign == tmp_path.name
    (what,) = found.measured
    assert (what.workload, what.direction, what.conditions["bs"], what.conditions["ioengine"]) == ("randwrite-4k", "write", "4k", "libaio")
    assert what.figures["p99"] == certificate.Figure(pytest.approx(2.0), None, None, 1) and what.figures["iops"].value == pytest.approx(1000.0)


def test_interval_of_repeats_is_that_of_student(tmp_path):
    values = [1e6, 2e6, 4e6]
    (what,) = context_of(tmp_path, "now", runs(*values), {}).measured
    one = what.figures["p99"]
    # The 97.5 % point of Student's distribution with two degrees of freedom, from a table.
    half = 4.30265 * statistics.stdev(map(math.log, values)) / math.sqrt(3)
    assert (one.value, one.repeats) == (pytest.approx(2.0), 3)
    assert (one.low, one.high) == (pytest.approx(2 * math.exp(-half), rel=1e-4), pytest.approx(2 * math.exp(half), rel=1e-4))


def test_metric_that_a_repeat_does_not_have_is_left_out(tmp_path):
    (what,) = context_of(tmp_path, "now", runs(1e6, None), {}).measured
    assert "p99" not in what.figures and what.figures["mean"].repeats == 2


def test_repeats_under_other_conditions_have_both(tmp_path):
    (what,) = context_of(tmp_path, "now", [*runs(1e6), *runs(1e6, kernel="6.12")], {}).measured
    assert what.conditions["kernel"] == "6.1.0, 6.12"


def test_hash_changes_with_the_results(tmp_path):
    meta = tmp_path / "node1/none/randwrite-4k/1/meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text("{}")
    before = context_of(tmp_path, "now", runs(1e6), {})
    meta.write_text("{ }")
    after = context_of(tmp_path, "now", runs(1e6), {})
    assert before.results_sha256["node1"] != after.results_sha256["node1"] and before.campaign_sha256 != after.campaign_sha256
