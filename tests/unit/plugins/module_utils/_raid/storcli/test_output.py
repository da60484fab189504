# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON and plain text of storcli and its relatives as plain data."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.output import read_output, salvage, section, table_rows

DOCUMENT = {
    "Controllers": [
        {
            "Command Status": {"CLI Version": "007.1616.0000.0000 Dec 24, 2020", "Controller": 0, "Status": "Success", "Description": "None"},
            "Response Data": {
                "VD LIST": [{"DG/VD": "0/239", "Cache": "RWTD"}],
                "Number": 12,
                "Rate": -1.5,
                "Known": True,
                "Nothing": None,
                'a "quoted" name': "\u00e9",
            },
        },
        {"Command Status": {"Controller": 1, "Status": "Failure", "Description": "Un-supported Command"}},
    ]
}

PLAIN = """Generating detailed summary of the adapter, it may take a while to complete.

CLI Version = 007.1211.0000.0000 Nov 07, 2019
Operating system = Linux 5.10
Controller = 0
Status = Success
Description = None

Product Name = Simulated
SAS Address =  5cc167e972c89c80
BatteryFRU =
Drive Groups = 2

PD LIST :
=======

------------------------------------------------------------------------------
EID:Slt DID State DG       Size Intf Med SED PI SeSz Model            Sp Type
------------------------------------------------------------------------------
134:1    16 Onln   1 371.597 GB SAS  SSD N   N  4 KB AB 12   X        U  -
 :10      7 UGood  -   2.181 TB SAS  HDD N   N  512B CD               D  -
------------------------------------------------------------------------------
------------------------------------------------------------------------------

EID=Enclosure Device ID|Slt=Slot No.|DID=Device ID|DG=DriveGroup

VD0 Properties :
==============
Write Cache(initial setting) = WriteBack
RAID Level Supported = RAID0, RAID1,
RAID60

CLI Version = 007.1211.0000.0000 Nov 07, 2019
Operating system = Linux 5.10
Controller = 1
Status = Failure
Description = None

Detailed Status :
===============

------------------------------------------------------
Ctrl Status Property ErrMsg                      ErrCd
------------------------------------------------------
   1 Failed -        Battery is absent, it seems    34
------------------------------------------------------
"""


@pytest.mark.parametrize(
    "written",
    [
        json.dumps(DOCUMENT),
        json.dumps(DOCUMENT, indent="\t", separators=(",", " : ")),
        json.dumps(DOCUMENT, indent=1).replace("\n", "\r\n"),
        "\n\n" + json.dumps(DOCUMENT) + "\n \n",
        "Generating detailed summary of the adapter, it may take a while to complete.\n\n" + json.dumps(DOCUMENT, indent=4),
        "C:\\Tools>storcli.exe /call show all J\n" + json.dumps(DOCUMENT, indent=4),
    ],
    ids=["minified", "tabs", "crlf", "blank lines", "notice", "prompt"],
)
def test_json_formatting_does_not_matter(written):
    output = read_output(written)
    assert output.complete
    assert list(output.not_understood) == []
    assert [dict(answer.status) for answer in output.answers] == [block["Command Status"] for block in DOCUMENT["Controllers"]]
    assert output.answers[0].data == DOCUMENT["Controllers"][0]["Response Data"]
    assert output.version == "007.1616.0000.0000"


def test_control_characters_in_a_string_are_tolerated():
    output = read_output(json.dumps(DOCUMENT).replace("RWTD", "RW\x00\x1bTD"))
    assert output.complete
    assert output.answers[0].data["VD LIST"][0]["Cache"] == "RW  TD"


def test_damaged_label_is_reported():
    output = read_output(json.dumps(DOCUMENT, indent=1).replace("VD LIST", "VD \ufffd LIST"))
    assert not output.complete
    assert any("VD \ufffd LIST" in problem and problem.startswith("line ") for problem in output.not_understood)


def test_data_before_truncation_is_kept():
    written = json.dumps(DOCUMENT, indent=1)
    output = read_output(written[: written.index('"Number"') + 12])
    assert not output.complete
    assert output.answers[0].data == {"VD LIST": [{"DG/VD": "0/239", "Cache": "RWTD"}]}
    assert "line" in output.not_understood[0]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_truncation_is_detected_without_inventing_data(data):
    written = json.dumps(DOCUMENT, indent=data.draw(st.sampled_from((None, 1))))
    kept = data.draw(st.integers(1, len(written) - 1))
    assert not read_output(written[:kept]).complete
    found, _position = salvage(written[:kept], 0)
    assert contained(found, DOCUMENT)


def contained(found, whole):
    """Whether a value is the beginning of another."""
    if found is None:
        return True
    if isinstance(found, dict):
        return isinstance(whole, dict) and all(key in whole and contained(value, whole[key]) for key, value in found.items())
    if isinstance(found, list):
        return isinstance(whole, list) and len(found) <= len(whole) and all(contained(one, other) for one, other in zip(found, whole))
    return found == whole


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "printed nothing"),
        ("   \n\t\n", "printed nothing"),
        ("bash: storcli64: command not found\n", "line 1: 'bash: storcli64: command not found'"),
        ('\n\n{"lvm": []}', "line 3"),
        ('{"Controllers": 3}', "no list of controllers"),
        ('{"Controllers": [3]}', "no command status"),
        (json.dumps(DOCUMENT) + "\ntrailing words", "line 2: 'trailing words'"),
        ("some words\n" + json.dumps(DOCUMENT), "line 1: 'some words'"),
    ],
)
def test_invalid_output_is_reported(text, message):
    output = read_output(text)
    assert any(message in problem for problem in output.not_understood)


def test_help_output_has_no_controllers():
    output = read_output("\n     Storage Command Line Tool  Ver 007.2707\n\n help - lists all the commands with their usage.\nstorcli /cx show\n")
    assert output.complete
    assert list(output.answers) == []
    assert list(output.not_understood) == []


@pytest.mark.parametrize(
    "text",
    [
        "syntax error, unexpected TOKEN_UNKNOWN, expecting $end\nstorcli /cx show\n",
        "CLI Version = 008.0005\nOperating system = Linux\nStatus = Failure\nDescription = syntax error, unexpected TOKEN_UNKNOWN, expecting $end\n\n",
    ],
)
def test_syntax_error_is_a_refusal(text):
    (answer,) = read_output(text).answers
    assert answer.refused
    assert list(answer.reasons) == ["syntax error, unexpected TOKEN_UNKNOWN, expecting $end"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_plain_text_is_parsed_into_the_json_structure(newline):
    output = read_output(PLAIN.replace("\n", newline))
    assert output.complete
    assert list(output.not_understood) == []
    first, second = output.answers
    assert first.status["Controller"] == "0"
    assert first.data["Product Name"] == "Simulated"
    assert first.data["SAS Address"] == "5cc167e972c89c80"
    assert first.data["BatteryFRU"] == ""
    drives = first.data["PD LIST"]
    assert [(row["EID:Slt"], row["DID"], row["Size"], row["SeSz"], row["Model"], row["Sp"]) for row in drives] == [
        ("134:1", "16", "371.597 GB", "4 KB", "AB 12 X", "U"),
        (":10", "7", "2.181 TB", "512B", "CD", "D"),
    ]
    assert first.data["VD0 Properties"]["Write Cache(initial setting)"] == "WriteBack"
    assert second.refused
    assert list(second.reasons) == ["Battery is absent, it seems"]
    assert second.details[0]["ErrCd"] == "34"


def test_truncated_table_is_reported():
    output = read_output(PLAIN[: PLAIN.index("512B CD")])
    assert not output.complete
    assert any("table at line 17 is cut" in problem for problem in output.not_understood)


def test_empty_cell_does_not_shift_columns():
    header = "DG/VD TYPE  State Cache       Size Name"
    assert table_rows(header, ["0/0   RAID1 Optl        557.861 GB"]) == [
        {"DG/VD": "0/0", "TYPE": "RAID1", "State": "Optl", "Cache": "", "Size": "557.861 GB", "Name": ""}
    ]


def test_property_tables_are_sections():
    assert section([{"Property": "State ", "Value": "Optimal"}, {"Property": "Type"}, 3, {"Value": 1}]) == {"State ".strip(): "Optimal"}
    assert section({" A ": 1}) == {"A": 1}
    assert section(None) == {}


def test_refusal_does_not_require_a_failed_status():
    text = json.dumps(
        {
            "Controllers": [
                {"Command Status": {"Status": "Success", "Detailed Status": [{"VD": 0, "Status": "Failed", "ErrMsg": "SSD Pd is present", "ErrCd": 255}]}}
            ]
        }
    )
    (answer,) = read_output(text).answers
    assert answer.succeeded
    assert answer.refused
    assert list(answer.reasons) == ["SSD Pd is present"]
