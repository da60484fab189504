# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page as people open it: from a disk, without a network, on a phone and on a screen, light and dark, and on paper."""

from __future__ import annotations

import pytest

pytest.importorskip("plotly", reason="the page needs plotly: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page import page
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import analysis, costs
from ansible_collections.cachefleet.storage.tests.report import harsh
from ansible_collections.cachefleet.storage.tests.report.legible import BROKEN, CLIPPED
from ansible_collections.cachefleet.storage.tests.unit.support import planted_flows, report_rows

#: Pixels of the CSS; of A4 without its margins.
PHONE, SCREEN, PAPER = 390, 1440, 688

#: Elements whose box goes past the right edge, but for those that scroll in a box of their own.
OUTSIDE = """() => [...document.querySelectorAll('header *, nav *, main *, footer *')].filter(one => {
  const box = one.getBoundingClientRect();
  return box.width > 0 && box.right > innerWidth + 1 && !one.closest('.scroll, pre, svg');
}).map(one => one.outerHTML.slice(0, 200))"""

#: Text that is wider than what it stands in and is cut off there.
CUT = """() => [...document.querySelectorAll('h1, h2, h3, p, li, td, th, summary, label, a')].filter(one =>
  one.clientWidth > 0 && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX !== 'visible').map(one => one.outerHTML.slice(0, 200))"""


def wait_for(page, expression):
    """Until it is true. The page's policy does not let Playwright poll in the page, which evaluates text there."""
    for _try in range(1200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"never true: {expression}")


def write(folder, hosts):
    rows, series, bands = report_rows.campaign(hosts, repeats=4 if hosts < 50 else 1)
    options = analysis.Options(prices=costs.read_prices([{"price": 1493, "capacity_tb": 4}]), currency="USD")
    path = folder / f"report-{hosts}.html"
    rows.aggregates = report_rows.sums(rows)
    rows.flows = {(one.host, one.variant, one.cell, one.repeat): planted_flows.layers(one.variant) for one in rows.measurements}
    if hosts == 6:
        rows.measurements.append(report_rows.rounds(rows.hosts[-1]))
    found = analysis.analyse(rows, series, len(series), bands, folder, options, distributions=report_rows.distributions(rows))
    path.write_text(page.render(found, "results/x"))
    return path


@pytest.fixture(scope="session")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return {**{hosts: write(folder, hosts) for hosts in (1, 6, 200)}, "harsh": harsh.write(folder / "harsh.html")}


class Opened:
    """A page, with what it said and asked for."""

    def __init__(self, browser, path, width=SCREEN, scheme="light"):
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
        self.page = self.context.new_page()
        self.reported, self.requests = [], []
        self.page.on("console", lambda message: self.reported.append(message.text))
        self.page.on("pageerror", lambda error: self.reported.append(str(error)))
        self.page.on("dialog", lambda dialog: self.reported.append(f"dialog: {dialog.message}"))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def see_all(self):
        """Open every part, scroll over all of it, and wait for what is drawn then."""
        self.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        height = self.page.evaluate("document.documentElement.scrollHeight")
        for top in range(0, height + 900, 450):
            self.page.evaluate(f"window.scrollTo(0, {top})")
            self.page.wait_for_timeout(20)
        wait_for(self.page, "[...document.querySelectorAll('.chart')].every(one => one.dataset.drawn === 'yes')")


@pytest.fixture
def opened(browser, reports):
    pages = []

    def open_page(hosts=6, **how):
        pages.append(Opened(browser, reports[hosts], **how))
        return pages[-1]

    yield open_page
    for one in pages:
        one.context.close()


@pytest.mark.parametrize("hosts", [1, 6, 200])
def test_everything_is_drawn_without_network_access_and_errors(opened, hosts):
    one = opened(hosts)
    one.see_all()
    assert one.reported == []
    assert [url for url in one.requests if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in one.requests if url.startswith("file:")]) == 1
    assert one.page.locator(".chart").count() > 5
    marks = one.page.evaluate(
        "[...document.querySelectorAll('.chart')].map(one => one.querySelectorAll('path.point, path.js-line, .scatterlayer path').length)"
    )
    assert all(marks), marks


@pytest.mark.parametrize("width", [PHONE, SCREEN])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("hosts", [6, 200])
def test_no_text_overflows(opened, width, scheme, hosts):
    one = opened(hosts, width=width, scheme=scheme)
    one.see_all()
    assert one.page.evaluate("document.documentElement.scrollWidth") <= width
    assert one.page.evaluate(OUTSIDE) == []
    assert one.page.evaluate(CUT) == []


def test_color_scheme_follows_the_browser_preference(opened):
    background = "getComputedStyle(document.body).backgroundColor"
    assert opened(scheme="light").page.evaluate(background) == "rgb(255, 255, 255)"
    assert opened(scheme="dark").page.evaluate(background) == "rgb(20, 23, 27)"


def test_host_names_are_escaped_in_tables_and_charts(opened):
    one = opened()
    one.see_all()
    assert one.page.evaluate("window.broken") is None
    assert one.page.locator("#host-rows td", has_text=report_rows.SCRIPT).count() == 1
    assert one.page.locator("b[onmouseover]").count() == 0
    assert one.page.evaluate("document.querySelectorAll('script').length") == 3


def test_answer_is_at_the_top(opened):
    one = opened()
    lines = one.page.locator(".answer p")
    assert "writethrough is shown to be better in 16 of 16 workloads" in lines.first.inner_text()
    assert lines.first.bounding_box()["y"] < 300
    seen = [line for line in lines.all() if line.is_visible()]
    assert len(seen) == 6, "the others open on demand"
    assert all(": Use writethrough: " in line.inner_text() for line in seen[1:])
    rows = one.page.locator("#answer tbody tr")
    assert rows.count() == 3 * 16
    assert one.page.locator("#answer th.best").count() == 16


def test_table_filters_work(opened):
    one = opened()
    shown = one.page.locator("#comparison-table tbody tr:visible")
    assert shown.count() == 18
    one.page.fill("form[data-filters] input[name=text]", "randwrite-4k")
    assert shown.count() == 3
    assert one.page.inner_text("form[data-filters] output") == "3 of 18 rows"
    one.page.fill("form[data-filters] input[name=text]", "")
    one.page.select_option("form[data-filters] select[name=direction]", "read")
    assert shown.count() == 9


def test_hosts_are_drawn_by_cell_and_by_name(opened):
    one = opened(200)
    one.page.locator("#strips").scroll_into_view_if_needed()
    wait_for(one.page, "document.getElementById('strips').dataset.drawn === 'yes'")
    points = one.page.locator("#strips path.point")
    assert points.count() == 600
    one.page.fill("#strip-host", "node19")
    wait_for(one.page, "document.querySelectorAll('#strips path.point').length === 30")
    one.page.fill("#strip-host", "")
    before = one.page.inner_text("#strips-title")
    one.page.select_option("#strip-cell", index=3)
    assert one.page.inner_text("#strips-title") != before


def test_host_list_can_be_searched(opened):
    one = opened(200)
    one.page.locator("summary", has_text="All hosts").click()
    one.page.locator("#host-find").scroll_into_view_if_needed()
    wait_for(one.page, "document.querySelectorAll('#host-rows tr').length === 100")
    assert one.page.inner_text("#host-rows tr:first-child td:first-child") == "node003"
    one.page.fill("#host-find", "node19")
    wait_for(one.page, "document.querySelectorAll('#host-rows tr').length === 10")


def test_selected_cell_is_drawn_over_its_run(opened):
    one = opened()
    one.page.locator("#bands").scroll_into_view_if_needed()
    wait_for(one.page, "document.getElementById('bands').dataset.drawn === 'yes'")
    assert "randwrite-4k-1 (write)" in one.page.inner_text("#bands-title")


def laid_out(opened, report, width):
    """A page with everything on it, on a screen or, with the width of paper, printed."""
    one = opened(report, width=width)
    if width == PAPER:
        one.page.emulate_media(media="print")
        one.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    else:
        one.see_all()
    return one


@pytest.mark.parametrize("width", [PHONE, SCREEN, PAPER])
@pytest.mark.parametrize("report", [6, "harsh"])
def test_no_figure_is_broken_and_no_label_is_cut_off(opened, report, width):
    one = laid_out(opened, report, width)
    assert one.page.evaluate(BROKEN) == []
    assert one.page.evaluate(CLIPPED) == []
    assert one.page.evaluate("document.documentElement.scrollWidth") <= width
    assert one.reported == []


#: What a page without care has: a figure in a narrow cell, a figure that its unit leaves at the end of a line, a label at the edge of a picture.
PLANTED = {
    "anywhere": (BROKEN, "one => { one.textContent = '0.3125'; one.style.cssText = 'display: block; width: 1.6em; overflow-wrap: anywhere'; }", "0.3125 in: "),
    "unit": (BROKEN, "cell => { cell.textContent = 'about 9.83 MB/s'; cell.style.cssText = 'display: block; width: 4em'; }", "9.83 MB/s in: about "),
    "spans": (BROKEN, "cell => { cell.innerHTML = '12,<wbr><b>345</b>'; cell.style.cssText = 'display: block; width: 1em'; }", "12,345 in: "),
    "label": (
        CLIPPED,
        """() => { const text = document.querySelector('.chart[data-chart=answer-0] svg.main-svg text'); text.textContent = '0.98 x noisy';
           text.setAttribute('transform', 'translate(' + text.closest('.chart').clientWidth + ',0)'); }""",
        "0.98 x noisy in answer-0",
    ),
    "box": (CLIPPED, """() => { document.querySelector('#answer h2').style.cssText = 'width: 40px; overflow: hidden; white-space: nowrap'; }""", "<h2"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_what_cannot_be_read_is_found(opened, name):
    one = opened(1, width=SCREEN)
    one.page.locator("[data-chart=answer-0]").scroll_into_view_if_needed()
    wait_for(one.page, "document.querySelector('[data-chart=answer-0]').dataset.drawn === 'yes'")
    look, plant, found = PLANTED[name]
    assert one.page.evaluate(look) == []
    one.page.locator("#answer td").first.evaluate(plant)
    assert any(said.startswith(found) for said in one.page.evaluate(look))


#: How wide each chart is by its part of the page, how wide its drawing is by the chart, and whether anything is drawn in it.
PRINTED = """() => [...document.querySelectorAll('.chart')].map(one => {
  const box = one.getBoundingClientRect(), svg = one.querySelector('svg.main-svg');
  return [box.width / one.parentElement.getBoundingClientRect().width, svg ? svg.getBoundingClientRect().width / box.width : 0,
    one.querySelectorAll('path.point, path.js-line, .scatterlayer path').length];
})"""


def test_every_chart_and_every_warning_is_printed_at_full_width(opened):
    one = opened(width=700)
    one.page.emulate_media(media="print", color_scheme="dark")
    choices = one.page.evaluate("Object.values(JSON.parse(document.getElementById('data').textContent).choices).map(list => list.length)")
    strips = one.page.evaluate("JSON.parse(document.getElementById('data').textContent).strips.length")
    placed = one.page.locator(".chart[data-chart]").count()
    one.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    found = one.page.evaluate(PRINTED)
    assert len(found) == placed + sum(choices) + strips
    assert strips == 18
    for of_page, of_chart, marks in found:
        assert of_page > 0.99 and of_chart == pytest.approx(1, abs=0.01) and marks
    assert one.page.evaluate("[...document.querySelectorAll('.warning, ul.problems li')].every(one => one.getBoundingClientRect().height > 0)")
    assert [text.split(" were " if "interleaved" in text else ",")[0] for text in one.page.locator(".warning").all_inner_texts()] == [
        "none, writethrough and writeback",
        "The CPU may have been the limit",
    ]
    assert one.page.evaluate("[...document.querySelectorAll('table, .chart')].filter(one => one.getBoundingClientRect().right > innerWidth + 1).length") == 0
    one.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert one.page.locator(".printed").count() == 0
    assert one.page.evaluate("document.querySelectorAll('details[open]').length") == 1


def test_page_is_printable(opened):
    one = opened()
    one.page.emulate_media(media="print", color_scheme="dark")
    assert one.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert one.page.locator("nav").is_hidden()
    one.page.evaluate("window.printed = 0; window.addEventListener('beforeprint', () => { window.printed = document.querySelectorAll('.printed').length; })")
    pdf = one.page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert one.page.evaluate("window.printed") == 17, "Chromium opens what is folded before it prints: 18 cells of hosts, one of which is chosen"
    assert one.reported == []


def test_a_phone_shows_the_ratio_without_scrolling_sideways(opened):
    one = opened(width=PHONE)
    for table, ratio in (("#answer-table", "1.29 x"), ("#comparison-table", "1.29 x")):
        cell = one.page.locator(f"{table} td.ratio", has_text=ratio).first
        box = cell.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE
        assert one.page.evaluate(
            "selector => { const box = document.querySelector(selector).closest('.scroll'); return box.scrollWidth <= box.clientWidth; }", table
        )
    assert one.page.evaluate("document.documentElement.scrollWidth") <= PHONE


@pytest.mark.parametrize("report", [6, "harsh"])
def test_the_tables_of_six_variants_fit_a_screen(opened, report):
    one = opened(report)
    wide = "[...document.querySelectorAll('#comparison .scroll, #stacks > .scroll')].filter(one => one.scrollWidth > one.clientWidth).length"
    assert one.page.evaluate(wide) == 0


def test_pickers_open_on_the_cell_of_the_answer(opened):
    one = opened()
    lead = one.page.locator(".answer p").nth(1).inner_text().partition(":")[0]
    assert one.page.locator("#strip-cell option:checked").inner_text().startswith(f"{lead} (")
    assert one.page.inner_text("#strips-title").startswith(f"{lead} (")


def test_titles_of_pictures_are_those_of_their_data(opened):
    """What is drawn says what is written: the ratios of the picture of the answer, and who leads each curve."""
    one = opened()
    data = one.page.evaluate("JSON.parse(document.getElementById('data').textContent)")
    picture = data["charts"]["answer-0"]
    bars = next(trace for trace in picture["data"] if trace["type"] == "bar" and trace["name"] == "writethrough")["x"]
    title = one.page.get_attribute("[data-chart=answer-0]", "aria-label")
    assert title == f"writethrough is better in 12 of these 12 workloads, {min(bars):.2f} to {max(bars):.2f} times as fast as none"
    for name, chart in data["charts"].items():
        if name.startswith("curve-"):
            rates = {trace["name"]: trace["x"] for trace in chart["data"]}
            leaders = {max(rates, key=lambda variant: rates[variant][place]) for place in range(3)}
            assert f"{leaders.pop()} has the most IOPS at every load" in one.page.get_attribute(f"[data-chart={name}]", "aria-label")
            assert not leaders
            assert [trace["text"] for trace in chart["data"]] == [["1", "4", "16"]] * 3
