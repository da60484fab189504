# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What every writer of udev rules, units, and files that a shell reads does with values that a hostile drive or user chose."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import boot_unit
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import udev_rules as bcache_rules
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import record as dm_cache_record
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.record import Record, Tools
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import boot as enhanceio_boot
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.spec import read_items as read_enhanceio
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import unit as flashcache_unit
from ansible_collections.cachefleet.storage.plugins.module_utils._core import config_values as written
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import replace_file
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev_rule
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.exports import AoeExport
from ansible_collections.cachefleet.storage.plugins.module_utils._device.queue import boot as queue_boot
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe import vblade_files
from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.vblade_files import VbladeFile
from ansible_collections.cachefleet.storage.plugins.module_utils._net.boot import ifupdown as boot_ifupdown

HOSTILE = {
    "double quote": 'S1", RUN+="/bin/sh -c id',
    "single quote": "S1'; id; '",
    "newline": 'S1\nACTION=="add", RUN+="/bin/id"',
    "newline at the end": "S1\n",
    "carriage return": "S1\rx",
    "dollar": "S1$env{PATH}",
    "percent": "S1%c",
    "backslash": "S1\\",
    "nul": "S1\0x",
    "star": "S*",
    "question mark": "S?",
    "bracket": "S[0-9]",
    "alternative": "S1|S2",
    "blank": "S 1",
    "semicolon": "S1;id",
    "backtick": "S1`id`",
    "very long": "S" * 5000,
    "not ASCII": "Sé",
    "not Unicode": "S\udcff",
    "empty": "",
}
everything = pytest.mark.parametrize("value", HOSTILE.values(), ids=list(HOSTILE))
#: What systemd cannot quote or escape.
unspeakable = pytest.mark.parametrize("name", ["newline", "newline at the end", "carriage return", "nul", "not Unicode"])
REFUSED = "cannot be written into a"


@everything
def test_udev_rule_rejects_unsafe_values(value):
    key = udev_rule.RuleKey("ID_SERIAL_SHORT", value)
    with pytest.raises(BadInput, match=REFUSED):
        udev_rule.rule_line(key, "sd*", "add", "x")
    if value == HOSTILE["blank"]:
        assert udev_rule.write_attribute("x/cache_type", "write back, no read (daft)") == 'ATTR{x/cache_type}="write back, no read (daft)"'
    else:
        with pytest.raises(BadInput, match=REFUSED):
            udev_rule.write_attribute("queue/scheduler", value)
    with pytest.raises(BadInput, match=REFUSED):
        udev_rule.run_program(f"/usr/sbin/{value}" if value else "", "-W0 $devnode", "sda")
    with pytest.raises(BadInput, match=r"no serial number|cannot be written safely"):
        udev_rule.choose_key({"ID_SERIAL_SHORT": value}, [], "/dev/sda")


@everything
def test_bcache_rule_rejects_unsafe_values(value):
    for rules in ({value: {"writeback_percent": "10"}}, {"0" * 8 + "-0000-0000-0000-" + "0" * 12: {"writeback_percent": value}}):
        with pytest.raises(BadInput, match=REFUSED):
            bcache_rules.render(rules)


@everything
def test_module_options_reject_unsafe_values(value):
    # An empty value is one, a parameter without it is not; a hyphen and the like are spelled so by people.
    entries = [{"module": value, "options": {"a": "1"}}, {"module": "scsi_mod", "options": {value: "1"}}]
    entries += [{"module": "scsi_mod", "options": {"a": value}}] if value and len(value) < 5000 else []
    for entry in entries if len(value) < 5000 else []:
        with pytest.raises(BadInput, match="cannot be written to a modprobe"):
            queue_boot.read_module_specs([entry])


@everything
def test_unit_name_rejects_unsafe_values(value):
    with pytest.raises(BadInput, match=REFUSED):
        boot_unit.unit_name("dm_cache", value)
    with pytest.raises(BadInput, match=REFUSED):
        boot_unit.unit_name("dm_cache", f"../{value}")


@unspeakable
@pytest.mark.parametrize("place", ["description", "absent", "note", "item", "start", "stop", "check"])
def test_no_line_can_be_injected_into_a_unit(name, place):
    value = HOSTILE[name]
    words = {"description": "d", "item": "i", "start": [["/bin/true"]], "devices": ["/dev/sda"]}
    words[place] = [["/bin/true", value]] if place in ("start", "stop", "check") else value
    with pytest.raises(BadInput, match="cannot be written into a systemd unit"):
        boot_unit.render(**words)


@pytest.mark.parametrize("place", ["description", "absent"])
def test_trailing_backslash_in_unit_is_rejected(place):
    with pytest.raises(BadInput, match="cannot be written into a systemd unit"):
        boot_unit.render(**{"description": "d", "devices": [], "start": [["/bin/true"]], "item": "i", place: "x\\"})


@everything
def test_argument_content_does_not_change_unit_structure(value):
    plain = boot_unit.render("d", ["/dev/sda"], [["/bin/echo", "plain"]], item="i").splitlines()
    try:
        text = boot_unit.render("d", [f"/dev/{value}"], [["/bin/echo", value]], item="i")
    except BadInput:
        return
    lines = text.splitlines()
    assert [line.partition("=")[0] for line in lines] == [line.partition("=")[0] for line in plain]
    line = next(line for line in lines if line.startswith("ExecStart="))
    assert line.replace("%%", "").replace("$$", "").count("%") + line.replace("$$", "").count("$") == 0
    assert not line.endswith("\\")


@unspeakable
def test_units_of_each_type_reject_paths_with_line_breaks(name):
    path = f"/dev/disk/by-id/{HOSTILE[name]}"
    places = flashcache_unit.Places({}, "flashcache")
    with pytest.raises(BadInput, match=REFUSED):
        flashcache_unit.render("c", path, "/dev/sda", ["/sbin/flashcache_load", path], {}, places)
    with pytest.raises(BadInput, match=REFUSED):
        dm_cache_record.render_unit(Record("c", path, 8), Tools("/sbin/dmsetup"))


@everything
def test_origin_hiding_rule_rejects_unsafe_paths(value):
    tools = {name: f"/sbin/{name}" for name in enhanceio_boot.TOOLS}
    with pytest.raises(BadInput, match=REFUSED):
        enhanceio_boot.needed_files("c", f"/dev/{value}" if value else "", "/dev/sdb", "writeback", "lru", 4096, {}, tools, "enhanceio")


@pytest.mark.parametrize("value", ["c\n", "c;id", 'c"', "c d"])
def test_enhanceio_cache_name_must_be_a_single_word(value):
    item = {"name": value, "origin": "/dev/disk/by-id/a", "cache_devices": ["/dev/disk/by-id/b"], "mode": "writethrough"}
    with pytest.raises(BadInput, match="name"):
        read_enhanceio([item])


@everything
def test_vblade_files_reject_unsafe_values(value):
    for export in (AoeExport(7, 1, value, "/dev/sda"), AoeExport(7, 1, "eth1", value or " "), AoeExport(7, 1, "eth1", "/dev/sda", macs=(value or '"',))):
        if value == HOSTILE["percent"] and export.interface != value:
            continue  # means nothing in a file of variables
        if value == HOSTILE["blank"] and export.macs:
            continue  # stands in quotes
        with pytest.raises(BadInput, match=REFUSED):
            vblade_files.render(export)


def test_priority_that_ends_the_quotes_is_rejected():
    found = VbladeFile("", {"ionice": "-c3'; id; '"})
    with pytest.raises(BadInput, match=REFUSED):
        vblade_files.render(AoeExport(7, 1, "eth1", "/dev/sda"), found)
    assert "ionice='-c 3 -n 7'\n" in vblade_files.render(AoeExport(7, 1, "eth1", "/dev/sda"), VbladeFile("", {"ionice": "-c 3 -n 7"}))


@pytest.mark.parametrize("name", ["eth0;id", "eth0$(id)", "eth0`id`", "eth0|id", "eth0'"])
def test_ifupdown_stanza_gets_no_injected_command(name):
    text = f"iface {name} inet dhcp\n"
    stanza = boot_ifupdown.read_stanzas("etc/network/interfaces", text)[0]
    with pytest.raises(BadInput, match=REFUSED):
        boot_ifupdown.with_mtu(text, stanza, 9000)


def test_values_of_real_drives_are_accepted():
    for value in ("S3Z8NB0K123456A", "naa.5000c500a1b2c3d4", "eui.0025385b71b0a1c2", "WD-WCC4N7ABCDEF", "INTEL_SSDSC2BB080G4_BTWL1234", "0x5000c500a1b2c3d4"):
        assert written.in_rule(value, "x") == value
        assert written.word_of_unit(value, "x") == value


def test_non_unicode_text_is_reported_and_leaves_no_file(tmp_path):
    with pytest.raises(CommandFailed, match="cannot be written: its text has characters that are not Unicode"):
        replace_file(tmp_path / "file", "x\udcff")
    assert list(tmp_path.iterdir()) == []
