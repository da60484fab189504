# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Targets as users write them."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.suites import Suite
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.targets import (
    ASSUMED_IOPS,
    ASSUMED_RATE,
    matches_of,
    read_targets,
    with_devices,
)

SUITE = Suite("mine", "", ())
DISK = {"device": "/dev/disk/by-id/ata-A"}


def one(target, suite=SUITE):
    return read_targets([target], suite)[0]


def test_options_sent_to_the_host():
    target = one(
        {**DISK, "name": "fast", "allow_data_loss": True, "identity": "S1", "size": None, "capacity": "480g", "write_rate": "500m", "endurance": "150TB"}
    )
    assert target.given == {**DISK, "allow_data_loss": True, "identity": "S1"}
    assert (target.label, target.path, target.region) == ("fast", DISK["device"], 480 * 1024**3)
    assert (target.write_rate, target.write_iops, target.assumed) == (500 * 1024**2, ASSUMED_IOPS, ("write_iops",))


@pytest.mark.parametrize(("reported", "count"), [("150TB", 150 * 10**12), (150, 150 * 10**12), ("1.2 PBW", 12 * 10**14), ("800g", 8 * 10**11)])
def test_endurance_is_decimal_as_in_data_sheets(reported, count):
    assert one({**DISK, "endurance": reported}).endurance == count


def test_target_without_values_uses_assumptions():
    target = one(DISK)
    assert (target.region, target.write_rate, target.write_iops, target.endurance) == (None, ASSUMED_RATE, ASSUMED_IOPS, None)


def test_target_without_size_uses_that_of_the_suite():
    suite = Suite("mine", "", (), size=1 << 30)
    assert one({"file": "/srv/x"}, suite).given == {"file": "/srv/x", "size": 1 << 30}
    assert one({"file": "/srv/x", "size": "2g"}, suite).given == {"file": "/srv/x", "size": "2g"}


@pytest.mark.parametrize(("size_of_suite", "size"), [(None, "1g"), (32 << 30, 32 << 30)])
def test_file_alone_is_a_target_without_permission(size_of_suite, size):
    (target,) = read_targets([], Suite("s", "", (), size=size_of_suite), "/srv/test")
    assert (target.label, target.is_file, target.given) == ("", True, {"file": "/srv/test", "size": size})


def test_targets_are_labelled_by_their_last_path_component():
    assert [target.label for target in read_targets([{"device": "/dev/vg0/scratch"}, {"file": "/srv/x y.bin"}], SUITE)] == ["scratch", "x-y-bin"]


@pytest.mark.parametrize(("value", "allowed"), [("no", False), ("false", False), (0, False), ("yes", True), (True, True)])
def test_permission_must_be_a_boolean(value, allowed):
    assert one({**DISK, "allow_data_loss": value}).given["allow_data_loss"] is allowed


def test_numeric_serial_is_converted_to_text():
    assert one({**DISK, "identity": 12345}).given["identity"] == "12345"


def test_share_of_a_target():
    assert one({**DISK, "size": "10m"}).share(70, "a").given == {**DISK, "size": 7 * 1024**2}
    whole = one({**DISK, "capacity": "1000"}).share(70, "a")
    assert (whole.given, whole.region) == (DISK, 700)
    assert one(DISK).share(70, "a").region is None
    with pytest.raises(BadInput, match=r"a: it uses 70 % of a file, so the target /srv/x needs a 'size'"):
        one({"file": "/srv/x"}).share(70, "a")
    with pytest.raises(BadInput, match="less than 1 MiB"):
        one({**DISK, "size": "1m"}).share(50, "a")


@pytest.mark.parametrize(
    ("targets", "sentence"),
    [
        ([{}], "exactly one of 'device', 'file' and 'directory'"),
        ([{"device": "/dev/a", "file": "/b"}], "exactly one of 'device', 'file' and 'directory'"),
        ([{"device": "/dev/a", "serial": "x"}], "'serial' is not supported"),
        (["/dev/a"], "target 1 must be a dictionary"),
        ([{"device": "/dev/a/x"}, {"device": "/dev/b/x"}], "a 'name' of its own"),
        ([{"device": "/dev/a", "name": "a/b"}], "cannot be the name of a target"),
        ([{"device": ["/dev/a"]}], "'device' must be a text"),
        ([{"device": "/dev/a", "identity": {"serial": 1}}], "'identity' must be a text"),
        ([{"device": "/dev/a", "allow_data_loss": "perhaps"}], "'allow_data_loss' must be true or false"),
        ([{"device": "/dev/a", "allow_data_loss": []}], "'allow_data_loss' must be true or false"),
        ([{"device": "/dev/a", "allow_purge": "perhaps"}], "'allow_purge' must be true or false"),
        ([{"file": "/srv/x", "allow_purge": True}], "'allow_purge' is for a 'device'"),
        ([{"device": "/dev/a", "allow_purge": True, "purge_method": "nvme_formt"}], "nearest is nvme_format"),
        ([{"device": "/dev/a", "size": "much"}], "size 'much' is not a size"),
        ([{"device": "/dev/a", "write_rate": "fast"}], "write_rate 'fast' is not a size"),
        ([{"device": "/dev/a", "write_iops": True}], "'write_iops' must be a number"),
        ([{"device": "/dev/a", "endurance": "long"}], "'endurance' must be what its data sheet calls TBW"),
        ([{"device": "/dev/a", "endurance": True}], "'endurance' must be"),
        ([{"device": "/dev/a", "endurance": 0}], "'endurance' must be"),
    ],
)
def test_invalid_target_is_rejected_in_one_sentence(targets, sentence):
    with pytest.raises(BadInput) as caught:
        read_targets(targets, SUITE)
    assert sentence in caught.value.message


@pytest.mark.parametrize(
    ("targets", "file", "sentence"),
    [
        ([DISK], "/srv/test", "fio_benchmark_file (/srv/test) and fio_benchmark_targets are both set"),
        ([], "srv/test", "fio_benchmark_file is 'srv/test': set the absolute path"),
    ],
)
def test_invalid_file_is_rejected_in_one_sentence(targets, file, sentence):
    with pytest.raises(BadInput) as caught:
        read_targets(targets, SUITE, file)
    assert sentence in caught.value.message


@pytest.mark.parametrize(
    ("requires", "target", "sentence"),
    [("file", DISK, "give the target a 'file' instead of a 'device'"), ("device", {"file": "/srv/x"}, "give the target a 'device' instead of a 'file'")],
)
def test_suite_can_require_a_file_or_a_device(requires, target, sentence):
    with pytest.raises(BadInput, match=sentence):
        read_targets([target], Suite("mine", "", (), requires=requires))


SSDS = {"match": {"model": "INTEL*", "transport": "sata"}}


def test_each_device_of_a_match_is_a_target_with_a_number():
    targets = [{**SSDS, "name": "ssd", "size": "4g"}, DISK]
    assert matches_of(targets) == [{"model": ["INTEL*"], "transport": ["sata"]}]
    assert matches_of([{"match": matches_of(targets)[0]}]) == matches_of(targets), "the host checks what was checked"
    found, empty = with_devices(targets, [["/dev/disk/by-id/ata-I1", "/dev/disk/by-id/ata-I2"]])
    assert [(target.label, target.given) for target in read_targets(found, SUITE)] == [
        ("ssd1", {"device": "/dev/disk/by-id/ata-I1", "size": "4g"}),
        ("ssd2", {"device": "/dev/disk/by-id/ata-I2", "size": "4g"}),
        ("ata-A", DISK),
    ]
    assert not empty


@pytest.mark.parametrize(("name", "label"), [({}, ""), ({"name": "ssd"}, "ssd")])
def test_only_device_of_a_match_is_named_like_one_that_is_named(name, label):
    found, _empty = with_devices([{**SSDS, **name}], [["/dev/disk/by-id/ata-I1"]])
    assert [target.label for target in read_targets(found, SUITE)] == [label]


def test_devices_of_a_match_without_a_name_are_numbered_drives():
    found, _empty = with_devices([SSDS], [["/dev/a", "/dev/b"]])
    assert [target.label for target in read_targets(found, SUITE)] == ["drive1", "drive2"]


def test_match_without_a_device_is_said_and_leaves_the_others():
    assert with_devices([SSDS, DISK], [[]]) == ([DISK], ["fio_benchmark_targets: target 1 matches no device of this host."])


@pytest.mark.parametrize("answer", [[], ["/dev/sda"], [[1]], [[{"device": "/dev/sda"}]], [["/dev/a"] * 1001]])
def test_answer_that_is_none_is_refused(answer):
    with pytest.raises(BadInput, match="did not answer which devices target 1 matches"):
        with_devices([SSDS], answer)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({**SSDS, "allow_data_loss": True}, "entry 1 has allow_data_loss and match, but a permission is for one device"),
        ({**SSDS, "allow_purge": True}, "entry 1 has allow_purge and match, but a permission is for one device"),
        ({**SSDS, **DISK}, "entry 1 has device and match: set one of them"),
        ({**SSDS, "file": "/srv/x"}, "target 1 has match and file: set one of them"),
        ({**SSDS, "identity": "S1"}, "target 1 has match and identity: name the device that has it"),
        ({"match": "INTEL*"}, "target 1: match must be a dictionary, for example match: .model: 'INTEL SSDSC2"),
        ({"match": {"modell": "INTEL*"}}, "target 1: match: .*modell: did you mean model?"),
        ({"match": {"rotational": "maybe"}}, "target 1: match: rotational must be"),
        ({"match": {"transport": "sta"}}, "target 1: match: .*transport"),
    ],
)
def test_what_is_for_one_device_and_what_is_no_match_is_refused(target, message):
    with pytest.raises(BadInput, match=message):
        matches_of([target])


def test_match_that_nothing_has_resolved_is_refused():
    with pytest.raises(BadInput, match="match is for the playbook benchmark: a sweep measures devices that are named"):
        read_targets([SSDS], SUITE)
