"""The page in a real browser: it opens, reads, prints, and lets nothing in or out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sample_page import ESCAPE, HOSTILE
from watching import let_it_draw, wait_until, watched_page

from video2pde.report.document import Page as Document

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page


def chart_of(page: Page, title: str) -> Locator:
    return page.locator("figure.chart", has=page.get_by_role("heading", name=title, exact=True))


def test_it_shows_every_section_and_the_law(opened: Page, document: Document) -> None:
    assert opened.title() == "Report on dye-07.mp4"
    assert opened.locator("main > section > h2").all_inner_texts() == [section.title for section in document.sections]
    assert opened.locator(".contents a").count() == len(document.sections) + 1
    assert "One law explains this recording" in opened.locator(".verdict").inner_text()
    law = opened.locator(".law math[display=block]")
    assert law.locator("msup").count() == 1
    box = law.bounding_box()
    assert box is not None
    assert box["height"] > 20
    assert "9.006" in opened.locator(".coefficients").inner_text()
    assert "[8.951, 9.061]" in opened.locator(".coefficients").inner_text()


def test_hostile_names_are_inert(opened: Page) -> None:
    text = opened.locator("body").inner_text()
    assert HOSTILE in text
    assert ESCAPE in text
    assert opened.locator("img[src=x]").count() == 0
    assert opened.evaluate("window.hacked") is None
    assert opened.locator("script:not([type])").count() == 1


def test_injected_markup_cannot_run(browser: Browser, report: Path) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(report.as_uri())
    outcome = page.evaluate("""() => { try { document.body.innerHTML = '<b>x</b>'; return 'parsed' }
                               catch (error) { return error.name } }""")
    assert outcome == "TypeError"
    outcome = page.evaluate("""() => { try { document.body.setAttribute('onclick', 'window.hacked = 1'); return 'set' }
                               catch (error) { return error.name } }""")
    page.evaluate("document.body.click()")
    assert page.evaluate("window.hacked") is None
    assert outcome == "TypeError"
    assert page.evaluate("fetch('data:text/plain,x').then(() => 'fetched', () => 'refused')") == "refused"
    context.close()


@pytest.mark.parametrize("width", [375, 768, 1366])
def test_no_sideways_scrolling(browser: Browser, report: Path, width: int) -> None:
    with watched_page(browser, report, viewport={"width": width, "height": 800}) as page:
        for fold in page.locator("main details").all():
            fold.evaluate("element => { element.open = true }")
        let_it_draw(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        wide = page.evaluate(
            """() => [...document.querySelectorAll('main > *, figure, .tiles > *')]
               .filter(e => e.getBoundingClientRect().right > innerWidth + 1).length"""
        )
        assert wide == 0


def test_dark_follows_the_system_and_the_button(browser: Browser, report: Path) -> None:
    def brightness(page: Page) -> float:
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3])) / 765

    with watched_page(browser, report, color_scheme="dark") as page:
        assert brightness(page) < 0.15
        page.get_by_role("button", name="Colours: auto").click()
        assert brightness(page) > 0.9
        page.get_by_role("button", name="Colours: light").click()
        assert brightness(page) < 0.15
        page.get_by_role("button", name="Colours: dark").click()
        page.emulate_media(color_scheme="light")
        wait_until(lambda: brightness(page) > 0.9)


def test_legend_hides_a_series(opened: Page) -> None:
    chart = chart_of(opened, "Drift velocity")
    assert chart.locator(".series").count() == 2
    before = chart.locator(".axes text").all_inner_texts()
    button = chart.get_by_role("button", name="v_y")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert chart.locator(".series").count() == 1
    assert chart.locator(".axes text").all_inner_texts() != before
    button.click()
    assert chart.locator(".axes text").all_inner_texts() == before


def test_hovering_a_chart_tells_its_values(opened: Page) -> None:
    chart = chart_of(opened, "Condition number by library")
    chart.scroll_into_view_if_needed()
    box = chart.locator(".series rect").nth(2).bounding_box()
    assert box is not None
    opened.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    read = chart.locator(".tooltip")
    wait_until(lambda: read.inner_text().split("\n") == ["C", "raw", "41", "normalised", "5.2"])
    opened.mouse.move(2, 2)
    read.wait_for(state="hidden")


def test_a_drag_zooms_and_resets(opened: Page) -> None:
    chart = chart_of(opened, "Drift velocity")
    chart.scroll_into_view_if_needed()
    before = chart.locator(".axes text").all_inner_texts()
    box = chart.locator("svg[role=img]").bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    opened.mouse.move(box["x"] + 0.4 * box["width"], y)
    opened.mouse.down()
    opened.mouse.move(box["x"] + 0.5 * box["width"], y + 2)
    opened.mouse.move(box["x"] + 0.6 * box["width"], y + 2)
    chart.locator(".zoom-box").wait_for()
    opened.mouse.up()
    wait_until(lambda: chart.locator(".axes text").all_inner_texts() != before)
    assert "0" not in chart.locator(".axes text").all_inner_texts()
    chart.get_by_role("button", name="Reset zoom").click()
    assert chart.locator(".axes text").all_inner_texts() == before


def test_the_keyboard_reads_and_zooms_a_chart(opened: Page) -> None:
    chart = chart_of(opened, "Coefficients along the threshold sweep")
    chart.locator(".plot").focus()
    opened.keyboard.press("ArrowRight")
    assert chart.locator(".tooltip").inner_text().split("\n")[:3] == ["threshold 0.0001", "|∇u|²", "9"]
    opened.keyboard.press("ArrowDown")
    before = chart.locator(".axes text").all_inner_texts()
    opened.keyboard.press("+")
    assert chart.locator(".axes text").all_inner_texts() != before
    opened.keyboard.press("Escape")
    assert chart.locator(".axes text").all_inner_texts() == before


def test_a_heat_map_reads_its_cells(opened: Page) -> None:
    plot = chart_of(opened, "Library A").locator(".plot")
    plot.focus()
    opened.keyboard.press("ArrowDown")
    opened.keyboard.press("ArrowDown")
    opened.keyboard.press("ArrowRight")
    assert plot.locator(".tooltip").inner_text().split("\n") == ["u × u", "correlation", "1"]


def test_tables_sort_and_mark_in_words(opened: Page) -> None:
    table = opened.locator("#selection table")
    assert table.locator(".check.fail").first.inner_text() == "✗fail"
    heading = table.get_by_role("button", name="rRMSE")
    heading.click()
    heading.click()
    assert table.locator("tbody tr td:first-child").all_inner_texts() == ["Full", "A", "C-alt", "C"]
    assert table.locator("th[aria-sort=descending]").count() == 1


def test_everything_can_be_reached_and_is_named(opened: Page) -> None:
    unnamed = opened.evaluate(
        """() => [...document.querySelectorAll('button, select, input, [role=img], img, [tabindex="0"]')]
           .filter(e => !(e.getAttribute('aria-label') || e.getAttribute('alt')))
           .filter(e => !(e.labels?.length || e.textContent.trim()))
           .map(e => e.outerHTML.slice(0, 90))"""
    )
    assert unnamed == []
    opened.keyboard.press("Tab")
    assert opened.evaluate("document.activeElement.textContent") == "Skip to the report"
    opened.keyboard.press("Tab")
    outline = opened.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_a_link_opens_its_folded_section(opened: Page) -> None:
    assert not opened.locator("#settings table").is_visible()
    opened.locator(".contents a", has_text="Settings").click()
    opened.locator("#settings table").wait_for()  # the browser tells of the new address a little later


def test_it_prints_with_folds_open_and_without_controls(browser: Browser, report: Path, tmp_path: Path) -> None:
    with watched_page(browser, report, color_scheme="dark") as page:
        page.evaluate(
            """() => addEventListener('beforeprint', () => {
                 window.drawn = document.querySelector('#bootstrap details svg[role=img]').childElementCount })"""
        )
        pdf = page.pdf(path=tmp_path / "report.pdf", print_background=True)
        assert page.evaluate("window.drawn") > 0
        wait_until(lambda: page.locator("#settings details").get_attribute("open") is None)
        page.emulate_media(media="print")
        assert page.locator(".transport").is_hidden()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert pdf.startswith(b"%PDF")
    assert 4 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 14


def test_without_scripts_the_law_can_be_read(browser: Browser, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert "a |∇u|² + β Δu" in page.locator("body").inner_text()
    context.close()
