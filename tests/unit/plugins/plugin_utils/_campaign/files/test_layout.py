# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import datetime
import re

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import cell_key
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import layout
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import escaped

NOON = datetime.datetime(2026, 11, 21, 14, 3, 55, tzinfo=datetime.timezone.utc)


@pytest.mark.parametrize("name", ["node1", "node-1.example.com", "2026-11-21T1403Z", "a" * 128, "A_b"])
def test_valid_path_components_are_accepted(name):
    assert cell_key.component(name, "host") == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        ".hidden",
        "-x",
        "_x",
        "a/b",
        "a..b",
        "a\\b",
        "a b",
        "a\n",
        "a\0",
        "é",
        "a" * 129,
        "a@b",
        "fe80::1",
        "tables",
        "plan.json",
        "campaign.json",
        None,
        7,
        ["a"],
    ],
)
def test_invalid_path_components_are_rejected(name):
    with pytest.raises(BadInput, match="cannot be the name of a variant"):
        cell_key.component(name, "variant")


def test_invalid_host_folder_name_is_rejected_with_advice():
    with pytest.raises(BadInput, match="ansible_host"):
        cell_key.component("fe80::1", "host")


@pytest.mark.parametrize(("text", "number"), [("1", 1), (12, 12), ("9999", 9999)])
def test_repeats(text, number):
    assert cell_key.repeat_number(text) == number


@pytest.mark.parametrize("text", ["0", "01", "-1", "1\n", "1e3", "10000", True, None, 1.0, "¹"])
def test_invalid_repeats_are_rejected(text):
    with pytest.raises(BadInput, match="not the number of a repeat"):
        cell_key.repeat_number(text)


@pytest.mark.parametrize("name", ["job.fio", "fio.json.gz", "fio.stderr.gz", "device-stats.json", "stack.json", "meta.json", "lat.1.log.gz"])
def test_cell_files(name):
    assert layout.is_cell_file(name)


@pytest.mark.parametrize("name", ["", "x.sh", "meta.json\n", "meta.jsonx", ".log.gz", "../a.log.gz", "plan.json", "job.fio.bak", "a/b.log.gz"])
def test_unexpected_cell_files(name):
    assert not layout.is_cell_file(name)


def test_default_campaign_name_is_the_controller_time():
    assert layout.default_campaign_name(NOON) == "2026-11-21T1403Z"
    assert layout.default_campaign_name(NOON, "fw-4.2") == "2026-11-21T1403Z-fw-4.2"
    with pytest.raises(BadInput, match="campaign"):
        layout.default_campaign_name(NOON, "../../etc")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("one\ntwo\r\x00three", "one two three"),
        ("right\u202eleft", "right left"),
        ("\x9b31mx", "31mx"),
        (None, "None"),
    ],
)
def test_control_characters_are_removed_from_foreign_text(text, shown):
    assert plain(text) == shown


def test_foreign_text_is_truncated():
    assert plain("x" * 1000, 10) == "xxxxxxx..."


#: What GitHub makes a link of: GitHub Flavored Markdown, 6.9; scheme and www. as they stand, mail addresses after escapes are resolved.
_BARE_LINK = re.compile(r"(?i:https?|ftp)://|(?i:www)\.[\w-]")
_BARE_MAIL = re.compile(r"[A-Za-z0-9.+_-]@[A-Za-z0-9_-]")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://evil.example/x", "https\\://evil.example/x"),
        ("see HTTP://EVIL.example and ftp://a.b", "see HTTP\\://EVIL.example and ftp\\://a.b"),
        ("www.evil.example (WWW.a.b)", "www\\.evil.example (WWW\\.a.b)"),
        ("me@evil.example", "me`@`evil.example"),
        ("mailto:a.b+c_d@evil.example, xmpp:x@y.z/w", "mailto:a.b+c\\_d`@`evil.example, xmpp:x`@`y.z/w"),
        ("a@@b @c d@", "a`@@`b @c d@"),
        ("[x](https://evil.example)", "\\[x\\](https\\://evil.example)"),
        ("a\nb: 10.0.0.1:/srv", "a b: 10.0.0.1:/srv"),
    ],
)
def test_markdown_has_no_links_of_its_own(text, shown):
    assert escaped(text) == shown
    assert not _BARE_LINK.search(escaped(text))
    assert not _BARE_MAIL.search(re.sub(r"\\(.)", r"\1", escaped(text)))
