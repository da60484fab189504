# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``scripts/build-docs``: every link of a guide leads to a page of the web site, or to a file of the repository."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os.path
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

TOP = Path(__file__).resolve().parents[3]
SCRIPT = TOP / "scripts/build-docs"
SOURCES = yaml.safe_load((TOP / "galaxy.yml").read_text())["repository"]

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the scripts of the repository are not part of a built collection")


@pytest.fixture(scope="module")
def script():
    loader = importlib.machinery.SourceFileLoader("build_docs", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("build_docs", loader))
    loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("page", "link", "place"),
    [
        ("README.md", f"{SOURCES}/blob/main/docs/plan.md", "guides/plan.md"),
        ("README.md", f"{SOURCES}/blob/main/docs/first_hour.md#9-undo", "guides/first_hour.md#9-undo"),
        ("docs/plan.md", "../README.md#principles", "../index.md#principles"),
        ("docs/cases/a.md", "../sweep.md", "../sweep.md"),
        ("docs/report.md", "pictures/report_answer.png", "pictures/report_answer.png"),
        ("README.md", f"{SOURCES}/raw/main/docs/pictures/report_answer.png", "guides/pictures/report_answer.png"),
        ("docs/plan.md", "../plugins/modules/plan.py", f"{SOURCES}/blob/main/plugins/modules/plan.py"),
        ("README.md", f"{SOURCES}/tree/main/inventories/example_rack", f"{SOURCES}/tree/main/inventories/example_rack"),
        ("README.md", "https://docs.ansible.com/x", "https://docs.ansible.com/x"),
        ("README.md", "#principles", "#principles"),
    ],
)
def test_links_are_those_of_the_site(script, page, link, place):
    assert script.with_links(f"a [b]({link}) c", TOP / page) == f"a [b]({place}) c"


def test_link_to_nowhere_is_an_error_that_names_it(script):
    with pytest.raises(script.BrokenLink, match=r"docs/plan\.md: the link plans\.md leads to a file that does not exist"):
        script.with_links("[x](plans.md#a)", TOP / "docs/plan.md")


def test_links_of_all_guides_lead_somewhere(script):
    pages = [TOP / "README.md", *(TOP / "docs").rglob("*.md")]
    assert len(pages) > 25
    for page in pages:
        script.with_links(page.read_text(), page)


def test_links_of_the_readme_are_absolute(script):
    """Galaxy shows it without the other files."""
    links = re.findall(r"\]\(([^)\s]+)\)", (TOP / "README.md").read_text())
    assert len(links) > 30
    assert not [link for link in links if not link.startswith(("https://", "#"))]
    assert script.SOURCES == SOURCES
    # A misspelt kind of link would lead nowhere, and nothing else would notice.
    files = [link for link in links if link.startswith(f"{SOURCES}/") and not re.match(rf"{SOURCES}/(?:issues|actions/.*)$", link)]
    for link in files:
        kind, path = re.fullmatch(rf"{SOURCES}/(blob|tree|raw)/main/([^#]+)(?:#.*)?", link).groups()
        assert (kind == "tree") == (TOP / path).is_dir(), link
        assert (kind == "raw") == path.endswith(".png"), link


def _linked_pages(script, page):
    text = script.relative(page.read_text(), page)
    return {Path(os.path.normpath(page.parent / link)) for link in re.findall(r"\]\(([^)#\s:]+\.md)(?:#[^)\s]*)?\)", text)}


def test_every_page_is_reached_in_two_clicks(script):
    first = _linked_pages(script, TOP / "README.md")
    reached = first.union(*(_linked_pages(script, page) for page in first if page.is_relative_to(TOP / "docs")))
    assert not set((TOP / "docs").rglob("*.md")) - reached


def test_navigation_has_every_page_once_in_the_order_of_the_readme(script):
    pages = re.findall(r"^((?:guides|reference)/\S+)$", script.contents(), re.MULTILINE)
    assert sorted(pages) == sorted([*(str(script.page_of(page).with_suffix("")) for page in (TOP / "docs").rglob("*.md")), "reference/index"])
    life = ["first_hour", "describe", "plan", "drive_write_cache", "block_cache", "cache_health", "benchmark", "report", "architecture"]
    assert [page for page in pages if Path(page).name in life] == [f"guides/{name}" for name in life]
    assert pages[0] == "guides/first_hour"
    assert pages[-1] == "reference/index"


def test_no_guide_links_to_what_the_built_collection_leaves_out():
    excluded = yaml.safe_load((TOP / "galaxy.yml").read_text())["build_ignore"]
    for page in [TOP / "README.md", *(TOP / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#\s:]+)(?:#[^)\s]*)?\)", page.read_text()):
            first = os.path.relpath(page.parent / link, TOP).split("/", 1)[0]
            assert not any(fnmatch(first, pattern) for pattern in excluded), (page, link)


def test_paths_in_the_text_of_guides_exist():
    folders = "benchmarks|contrib|docs|inventories|molecule|playbooks|plugins|roles|scripts|tests"
    for page in [TOP / "README.md", TOP / "CONTRIBUTING.md", TOP / "SECURITY.md", *(TOP / "docs").rglob("*.md")]:
        for path in re.findall(rf"(?:`|\$ |sudo )((?:{folders})/[\w./{{}},*-]+)", page.read_text()):
            pattern = re.sub(r"\{([^}]*)\}", "*", path).rstrip(".,:")
            assert any(TOP.glob(pattern)), f"{page.relative_to(TOP)}: there is no {path}"


def test_files_of_the_code_that_the_architecture_names_exist():
    named = re.findall(r"`((?:_\w+|modules|action|filter|plugin_utils)/[\w/]+\.py)`", (TOP / "docs/architecture.md").read_text())
    assert named
    for path in named:
        assert any((TOP / "plugins" / folder / path).exists() for folder in ("", "module_utils", "plugin_utils")), f"there is no {path}"


def test_commands_in_the_text_of_guides_exist():
    targets = set(re.findall(r"^([a-z-]+):", (TOP / "Makefile").read_text(), flags=re.MULTILINE))
    plugins = {path.stem for folder in ("plugins/modules", "plugins/callback", "playbooks") for path in (TOP / folder).iterdir()}
    plugins |= {path.name for path in (TOP / "roles").iterdir()}
    for page in [TOP / "README.md", TOP / "CONTRIBUTING.md", TOP / "SECURITY.md", *(TOP / "docs").rglob("*.md")]:
        text = page.read_text()
        for target in re.findall(r"(?:`|\$ )make ([a-z-]+)", text):
            assert target in targets, f"{page.relative_to(TOP)}: there is no make {target}"
        for name in re.findall(r"\bcachefleet\.storage\.([a-z_]+)\b(?!\.)", text):
            assert name in plugins, f"{page.relative_to(TOP)}: there is no cachefleet.storage.{name}"


def test_pictures_are_small(script):
    sizes = {path.name: path.stat().st_size for path in (TOP / "docs/pictures").iterdir()}
    assert sizes
    assert max(sizes.values()) <= 60_000, sizes
