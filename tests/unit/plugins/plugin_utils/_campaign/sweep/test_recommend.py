# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of a recommendation, from the answer of a campaign whose right answer is known."""

from __future__ import annotations

import hashlib

import pytest
import yaml

pytest.importorskip("numpy", reason="statistics need numpy: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.answer import answer_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import points_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep import recommend
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.recommend import recommendations, write
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.state import HostState
from ansible_collections.cachefleet.storage.tests.unit.support import planted_flows
from ansible_collections.cachefleet.storage.tests.unit.support.report_rows import measurement

SLOW, FAST = (149, 150, 148, 151), (1420, 1400, 1430, 1410)


def repeats(variant, *rates, host="node1"):
    started = {"baseline": 1e9, "off": 1e9 + 1e4}[variant]
    return [measurement(host, variant, "randwrite-4k-fdatasync", number, iops=rate, fdatasync=1, started=started) for number, rate in enumerate(rates, 1)]


def state(host, device):
    entries = {word: [{"device": device, "write_cache": word, "persistent": False}] for word in ("enabled", "disabled")}
    variables = {
        "baseline": {"drive_write_cache_drives": entries["enabled"]},
        "off": {"drive_write_cache_drives": entries["disabled"], "block_cache_caches": []},
    }
    return HostState(host, "", "", {}, {}, variables)


def files(measurements, *hosts):
    answer = answer_of(Rows("c", measurements, settings={}), points_of(measurements))
    return recommendations(answer, hosts, "night")


def notes(measurements, *hosts):
    answer = answer_of(Rows("c", measurements, settings={}), points_of(measurements))
    said = []
    assert recommendations(answer, hosts, "night", without=said.append) == {}
    return said


def test_the_recommended_variant_becomes_variables_with_its_proof(tmp_path):
    [path], note = write(tmp_path, files(repeats("baseline", *SLOW) + repeats("off", *FAST), state("node1", "/dev/disk/by-id/a")))
    assert note == ""

    text = (tmp_path / "recommended/node1.yml").read_text()
    assert path == str(tmp_path / "recommended/node1.yml")
    # A boot rule is written, as by default.
    assert yaml.safe_load(text) == {"drive_write_cache_drives": [{"device": "/dev/disk/by-id/a", "write_cache": "disabled"}]}
    use = "Use off: 1,420 durable random 4 KiB writes per second, 9.46 times as many as baseline (150 IOPS) (ratio 9.27 to 9.66, at least 97 %"
    assert use in comments(text)
    # No line is broken where it is read.
    assert max(map(len, text.splitlines())) <= 80


def test_the_file_says_why_and_how_long_it_lasts():
    rows = planted_flows.demo()
    variables = {name: {"block_cache_caches": [{"name": "images", "mode": name}]} for name in rows.variants}
    found = recommendations(answer_of(rows, rows.points()), [HostState("node1", "", "", {}, {}, variables)], "night")
    said = str(found).replace("\\n# ", " ")
    assert ", because no flush reaches the slow disk sda (bare-disk_on sends it 92.5 per second" in said
    assert "This is a burst: at this rate the cache (1 GB) is full after 2 min" in said


def test_what_an_earlier_end_recommended_is_removed_unless_it_was_edited(tmp_path):
    folder = tmp_path / "recommended"
    write(tmp_path, {"node1.yml": "a: 1\n", "rack.yml": "b: 1\n", "rack/host_vars/node1.yml": "c: 1\n"})
    (folder / "rack.yml").write_text("b: 2\n")
    (folder / "own.yml").write_text("of the user\n")
    written, note = write(tmp_path, {"node1.yml": "a: 3\n"})
    assert written == [str(folder / "node1.yml")]
    assert note == f"Not recommended any more, and kept because it was edited: {folder / 'rack.yml'}."
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*.yml")) == ["node1.yml", "own.yml", "rack.yml"]
    assert (folder / "node1.yml").read_text() == "a: 3\n"
    assert write(tmp_path, {"node1.yml": "a: 3\n"})[1] == ""


def test_files_of_an_end_that_was_interrupted_are_removed_by_the_next_one(tmp_path, monkeypatch):
    folder = tmp_path / "recommended"
    write(tmp_path, {"first.yml": "a: 1\n"})
    real = recommend.write_text

    def full(path, text):
        if path.name == "third.yml":
            raise OSError(28, "No space left on device")
        real(path, text)

    monkeypatch.setattr(recommend, "write_text", full)
    with pytest.raises(ResultsError, match="became full while writing third"):
        write(tmp_path, {"second.yml": "b: 1\n", "third.yml": "c: 1\n"})
    monkeypatch.undo()
    assert write(tmp_path, {"fourth.yml": "d: 1\n"}) == ([str(folder / "fourth.yml")], "")
    assert [path.name for path in folder.glob("*.yml")] == ["fourth.yml"]


@pytest.mark.parametrize("text", ["", "[]", '{"../outside.yml": "HASH", "/etc/x": "HASH", "n.yml": 1}'])
def test_hashes_that_were_edited_remove_nothing_outside(tmp_path, text):
    outside = tmp_path / "outside.yml"
    outside.write_text("keep\n")
    (tmp_path / "recommended").mkdir()
    (tmp_path / "recommended/.written.json").write_text(text.replace("HASH", hashlib.sha256(b"keep\n").hexdigest()))
    assert write(tmp_path, {"node1.yml": "a: 1\n"})[1] == ""
    assert outside.exists()


def test_the_baseline_is_recommended_if_nothing_is_shown_to_be_better():
    found = files(repeats("baseline", *FAST) + repeats("off", *SLOW), state("node1", "/dev/disk/by-id/a"))
    assert len(found) == 1
    text = next(iter(found.values()))

    assert yaml.safe_load(text)["drive_write_cache_drives"][0]["write_cache"] == "enabled"
    assert "# Keep baseline" in text
    assert "# Nothing is shown to be better than baseline for node1" in text


def empty(host):
    return HostState(host, "", "", {}, {}, {"baseline": {}, "off": {"block_cache_caches": []}})


def one_of(found):
    """The only file, with its path."""
    assert len(found) == 1
    return next(iter(found.items()))


def test_a_variant_that_changes_nothing_is_no_file_and_said():
    measured = repeats("baseline", *SLOW) + repeats("off", *FAST)
    assert notes(measured, empty("node1")) == ["There is no recommended file for node1: off changes nothing there."]
    assert notes(measured) == ["There is no recommended file for node1: off was not swept there."]


def test_only_hosts_with_something_to_set_have_a_file():
    measured = [one for host in ("node1", "node2") for one in (*repeats("baseline", *SLOW, host=host), *repeats("off", *FAST, host=host))]
    found = files(measured, state("node1", "/dev/md0"), empty("node2"))
    path, text = one_of(found)
    assert path.endswith("/host_vars/node1.yml") and "Use off: " in comments(text)


def test_hosts_with_different_devices_have_a_file_each():
    measured = [one for host in ("node1", "node2") for one in (*repeats("baseline", *SLOW, host=host), *repeats("off", *FAST, host=host))]
    found = files(measured, state("node1", "/dev/disk/by-id/a"), state("node2", "/dev/disk/by-id/b"))

    assert [path.partition("/")[2] for path in found] == ["host_vars/node1.yml", "host_vars/node2.yml"]
    for text, device in zip(found.values(), "ab", strict=True):
        assert yaml.safe_load(text)["drive_write_cache_drives"][0]["device"] == f"/dev/disk/by-id/{device}"
        assert "Use off: " in comments(text) and "There is a file for each host: copy them to host_vars" in comments(text)


def comments(text):
    return " ".join(line.removeprefix("#").strip() for line in text.splitlines() if line.startswith("#"))


def test_a_file_is_applied_to_the_hosts_of_its_class_only():
    measured = [one for host in ("node1", "node2") for one in (*repeats("baseline", *SLOW, host=host), *repeats("off", *FAST, host=host))]
    found = files(measured, state("node1", "/dev/md0"), state("node2", "/dev/md0"))
    assert len(found) == 1
    assert "Apply it with: ansible-playbook cachefleet.storage.site -e @FILE --limit node1,node2" in comments(next(iter(found.values())))


@pytest.mark.parametrize("known", [True, False])
def test_a_host_on_which_the_variant_is_refused_does_not_get_the_devices_of_another(known):
    measured = [one for host in ("node1", "node2") for one in repeats("baseline", *SLOW, host=host)] + repeats("off", *FAST)
    other = state("node2", "/dev/disk/by-id/b")
    other.refused["off"] = "it has no cache"
    if not known:
        del other.variables["off"]
    found = files(measured, state("node1", "/dev/disk/by-id/a"), other)

    path, text = one_of(found)
    assert path.endswith("/host_vars/node1.yml")
    assert "There is no file for node2: off is refused there, or was not swept." in comments(text)


def test_what_is_known_of_the_field_is_in_the_file():
    measured = repeats("baseline", *SLOW) + repeats("off", *FAST)
    host = state("node1", "/dev/disk/by-id/a")
    host.variables["off"] = {"raid_cache_controllers": [{"serial": "S", "volumes": [{"id": "0", "write": "writethrough", "drive_cache": "enabled"}]}]}
    text = next(iter(files(measured, host).values()))
    assert "# off enables the caches of drives behind a controller that writes through." in text


def test_too_few_repeats_are_added_with_the_variable_of_the_sweep():
    measured = repeats("baseline", *SLOW[:2]) + repeats("off", *FAST[:2])
    text = " ".join(next(iter(files(measured, state("node1", "/dev/disk/by-id/a")).values())).replace("#", "").split())
    assert "Repeat at least 4 times: -e sweep_repeats=4." in text
