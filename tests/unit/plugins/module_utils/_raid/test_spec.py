# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What users may write, and to which volumes and drives it applies."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import spec as raid_spec
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import RaidState, Seen, Source, read_host
from ansible_collections.cachefleet.storage.tests.simulators.in_process.provider import FakeTool, controller, volume


def _one(**entry):
    return raid_spec.parse_controllers([entry])[0]


def test_only_given_options_are_requested():
    requested = _one(id=0, volumes=[{"name": "a", "write": "writeback", "read": None}], drive_cache={"jbod": "disabled", "all": None}, cache_ratio=10)
    assert requested.settings == {"drive_cache.jbod": "disabled", "cache_ratio": 10}
    assert requested.volumes[0].settings == {"write": "writeback"}
    assert (requested.id, requested.provider, requested.require_effective) == ("0", "auto", True)


@pytest.mark.parametrize("entry", [{}, {"id": "0", "name": "a"}, {"id": None}])
def test_volume_requires_exactly_one_selector(entry):
    with pytest.raises(BadInput, match="exactly one of id, name, wwn"):
        _one(volumes=[entry])


@pytest.mark.parametrize("ratio", [-1, 101])
def test_cache_ratio_must_be_a_percentage(ratio):
    with pytest.raises(BadInput, match="must be between 0 and 100"):
        _one(cache_ratio=ratio)


def test_tool_path_without_provider_is_rejected():
    with pytest.raises(BadInput, match="tool_path /opt/x requires provider"):
        _one(tool_path="/opt/x")


def test_volume_entry_overrides_all_per_setting_with_its_own_permission():
    requested = _one(
        volumes=[
            {"id": "all", "write": "writeback", "read": "none", "allow_unprotected": True},
            {"name": "volume1", "read": "read_ahead"},
        ]
    )
    pairs = raid_spec.expand_volumes(controller(), requested.volumes)
    assert [(one.id, dict(own.settings), own.allow_unprotected) for one, own in pairs] == [
        ("0", {"write": "writeback", "read": "none"}, True),
        ("1", {"write": "writeback", "read": "read_ahead"}, False),
    ]


_WWN = "600000000000000000000000000000"


@pytest.mark.parametrize("text", [f"{_WWN}01", f"0x{_WWN}01", f"wwn-0x{_WWN}01", f"NAA.{_WWN}01", f"/dev/disk/by-id/wwn-0x{_WWN}01"])
def test_wwn_spellings_are_accepted(text):
    found = raid_spec.expand_volumes(controller(), _one(volumes=[{"wwn": text, "read": "none"}]).volumes)
    assert [one.id for one, _own in found] == ["1"]


@pytest.mark.parametrize(("written", "there"), [("0 5", "0,5"), ("0, 5", "0,5"), ("/e252/s3", "252:3"), ("252:3", "252:3"), ("1i:1:2", "1I:1:2")])
def test_drive_address_spellings_are_equivalent(written, there):
    assert raid_spec.plain_address(written) == raid_spec.plain_address(there)


def test_missing_volume_error_lists_existing_volumes():
    with pytest.raises(DeviceMissing, match=r"no volume with name archive; it has: 0 \(volume0\); 1 \(volume1\)"):
        raid_spec.expand_volumes(controller(), _one(volumes=[{"name": "archive"}]).volumes)


def test_ambiguous_volume_name_is_rejected():
    twins = controller(volumes=(volume(0, name="data"), volume(1, name="data")))
    with pytest.raises(BadInput, match="has 2 volumes with name data: name it by id"):
        raid_spec.expand_volumes(twins, _one(volumes=[{"name": "data"}]).volumes)


def test_volume_listed_twice_is_rejected():
    with pytest.raises(BadInput, match="id 1 and name volume1 are the same volume"):
        raid_spec.expand_volumes(controller(), _one(volumes=[{"id": "1"}, {"name": "volume1"}]).volumes)
    with pytest.raises(BadInput, match="two entries are for all drives"):
        raid_spec.expand_drives(controller(), _one(drives=[{"address": "all"}, {"address": "all"}]).drives)


def test_controllers_are_selected_by_number_serial_or_all():
    host = FakeTool(controller("0"), controller("1")).as_host()
    assert [one.controller.id for one in raid_spec.choose_controllers(host, _one())] == ["0", "1"]
    assert [one.controller.id for one in raid_spec.choose_controllers(host, _one(id="1"))] == ["1"]
    assert [one.controller.id for one in raid_spec.choose_controllers(host, _one(serial="SERIAL1"))] == ["1"]
    assert [one.controller.id for one in raid_spec.choose_controllers(host, _one(provider="storcli", tool_path="/opt/storcli64"))] == ["0", "1"]
    with pytest.raises(DeviceMissing, match=r"controller 7 \(provider auto\) is not on this host; .* can see: controller 0 "):
        raid_spec.choose_controllers(host, _one(id="7"))
    with pytest.raises(DeviceMissing, match="can see: none"):
        raid_spec.choose_controllers(host, _one(provider="arcconf"))


def test_controller_number_reported_by_two_tools_is_ambiguous():
    other = FakeTool(dataclasses.replace(controller("0"), provider="ssacli"), name="ssacli")
    first = FakeTool(controller("0"))
    sources = tuple(Source(tool, tool.read()) for tool in (first, other))
    host = RaidState(sources, tuple(Seen(one, source) for source in sources for one in source.reading.controllers))
    with pytest.raises(BadInput, match="controller 0 is ambiguous: ssacli and storcli each have one"):
        raid_spec.choose_controllers(host, _one(id="0"))
    assert len(raid_spec.choose_controllers(host, _one(id="0", provider="ssacli"))) == 1
    assert len(raid_spec.choose_controllers(host, _one())) == 2


def test_host_without_tool_is_reported():
    with pytest.raises(DeviceMissing, match="no RAID tool on this host"):
        raid_spec.choose_controllers(RaidState(), _one())


def test_damaged_output_prevents_changes():
    tool = FakeTool()
    tool.reading = {"complete": False, "not_understood": ("line 3: 'x'",)}
    with pytest.raises(NotUnderstood, match=r"damaged, or it is not storcli \(line 3"):
        raid_spec.choose_controllers(tool.as_host(), _one())
    # A tool that is not asked may print what it likes.
    with pytest.raises(DeviceMissing):
        raid_spec.choose_controllers(tool.as_host(), _one(provider="arcconf"))


def test_address_parsed_as_number_by_yaml_is_explained():
    with pytest.raises(DeviceMissing, match=r'no drive with 15123; it has: 252:0; 252:1. Write addresses in quotes, for example "252:3"'):
        raid_spec.expand_drives(controller(), _one(drives=[{"address": 15123}]).drives)


def test_user_without_root_is_reported(monkeypatch):
    monkeypatch.setattr(raid_spec.os, "geteuid", lambda: 1000)
    with pytest.raises(DeviceMissing, match="This ran as user 1000, and these tools need root: set become: true"):
        raid_spec.choose_controllers(FakeTool().as_host(), _one(provider="storcli"))


def test_entry_with_provider_uses_that_tool():
    """Although another one sees the same controller, and comes first."""
    twins = [FakeTool(controller("0")), FakeTool(dataclasses.replace(controller("0"), provider="perccli"), name="perccli", tool="/opt/perccli64")]
    host = read_host(twins)
    assert [one.controller.provider for one in host.controllers] == ["storcli"]
    chosen = raid_spec.choose_controllers(host, _one(provider="perccli"))
    assert [one.controller.provider for one in chosen] == ["perccli"]
    assert raid_spec.is_same(chosen[0], host.controllers[0])
