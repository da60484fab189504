# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which campaign is meant by a folder, a name or latest."""

from __future__ import annotations

import json

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.campaigns import campaigns_in, find_campaign


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "results"
    for name, created in (("old", "2026-11-01T09:00:00.000000Z"), ("new", "2026-11-25T09:00:00.000000Z"), ("between", "2026-11-20T09:00:00.000000Z")):
        (folder / name).mkdir(parents=True)
        (folder / name / "campaign.json").write_text(json.dumps({"campaign": name, "created": created}))
    (folder / "no-campaign").mkdir()
    return folder


def test_campaign_by_folder_name_or_latest(results, tmp_path):
    assert find_campaign("results/old", "v") == results / "old"
    assert find_campaign(str(results / "old"), "v") == results / "old"
    assert find_campaign("old", "v") == results / "old"
    assert find_campaign("latest", "v") == results / "new"
    assert find_campaign("old", "v", str(results)) == results / "old"
    # A path that does not exist is named by what reads it.
    assert find_campaign("elsewhere/x", "v") == tmp_path / "elsewhere/x"


def test_damaged_campaign_is_the_oldest(results):
    (results / "new/campaign.json").write_text("{")
    assert [path.name for path in campaigns_in(results)] == ["between", "old", "new"]


@pytest.mark.parametrize(("text", "what"), [("", "No campaign is named"), ("nwe", "There is no campaign nwe")])
def test_campaigns_are_listed_if_none_is_found(results, text, what):
    with pytest.raises(BadInput) as caught:
        find_campaign(text, "report_campaign")
    assert caught.value.message == (
        f"{what}: set report_campaign to a folder, to a name in the results folder, or to latest. {results} has, the latest first: new, between, old."
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "No campaign is named: set v to a folder, to a name in the results folder, or to latest. {results} has none."),
        ("latest", "There is no campaign in {results}: run the playbook benchmark first, or set v to the folder of a campaign."),
    ],
)
def test_results_folder_without_campaigns(tmp_path, text, message):
    with pytest.raises(BadInput) as caught:
        find_campaign(text, "v", str(tmp_path / "none"))
    assert caught.value.message == message.format(results=tmp_path / "none")
