"""The report in a browser, from a file: sort, filter, search, links, keyboard; hostile text; 100,000 records."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.report.write import write_report
from proctor.run_folder.run import open_run
from serving.files import read_jsonl
from tests.fixtures.chromium import Visit, started
from tests.proctor.scripted import do, rewrite, scripted

HOSTILE = {
    "script": "</div></script><script>document.title='broken'</script>",
    "image": "<img src=x onerror=\"document.title='broken'\">",
    "braces": "{{ 7*7 }} {% raw %} ${7*7}",
    "ansi": "\x1b[31mred\x1b[0m \x07",
    "right_to_left": "abc \u202e fed \u2066 \u200f end",
    "separators": "a\u2028b\u2029c",
    "comment": "<!-- <script> -->",
}


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    yield from started()


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    stages = ["exam", "kieval.one", "kieval.two", "static.one", "detect.base", "detect.one"]
    run = do(tmp_path_factory.mktemp("browser"), scripted(), *stages)
    rows = read_jsonl(run / "stages" / "kieval.one" / "records.jsonl")
    rows[0]["rounds"][0]["question"] = "\n".join(HOSTILE.values())
    rows[0]["rounds"][0]["reply"] = "x" * 1_000_000 + "THE END"
    rows[1]["rounds"][0]["reply"] = "zebra crossing"
    rewrite(run, "kieval.one", rows)
    write_report(open_run(run), run / "report")
    return run / "report" / "index.html"


@pytest.fixture
def visit(chrome: Any, page_file: Path) -> Iterator[Visit]:
    found = Visit(chrome, page_file)
    yield found
    found.close()


def until(page: Any, expression: str) -> None:
    """Waits until it is true. The page's own policy forbids Playwright's ``wait_for_function``: it evaluates text."""
    end = time.monotonic() + 15
    while not page.evaluate(expression):
        assert time.monotonic() < end, (expression, page.inner_text("#count"))
        time.sleep(0.05)


def texts(page: Any, selector: str) -> list[str]:
    found: list[str] = page.locator(selector).all_inner_texts()
    return [text.strip() for text in found]


def test_tables_sort_and_filter(visit: Visit, page_file: Path) -> None:
    page = visit.open(page_file)
    names = "#table-detectors tbody th"
    heading = page.locator("#table-detectors thead th").first
    before = texts(page, names)
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    ascending = texts(page, names)
    assert sorted(before) == sorted(ascending)
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert texts(page, names) == ascending[::-1]
    page.fill("input[data-filter=table-detectors]", "zlib/answer")
    assert texts(page, names + ":visible") == ["zlib/answer"]


def test_transcripts_are_filtered_and_searched(visit: Visit, page_file: Path) -> None:
    page = visit.open(page_file)
    page.wait_for_selector("#list tbody tr")
    page.select_option("#f-exam", label="kieval")
    page.select_option("#f-candidate", label="two")
    until(page, "document.querySelector('#count').textContent.startsWith('4 of')")  # 2 items a half
    assert set(texts(page, "#list tbody td:nth-child(3)")) == {"two"}
    page.fill("#f-low", "5")
    until(page, "document.querySelector('#count').textContent.startsWith('0 of')")
    page.click("button[type=reset]")
    until(page, "!document.querySelector('#count').textContent.includes(' of ')")
    item = texts(page, "#list tbody a")[3]
    page.fill("#f-text", item)
    until(page, "document.querySelector('#count').textContent.includes(' of ')")
    assert set(texts(page, "#list tbody a")) == {item}
    page.fill("#f-text", "zebra crossing")  # nobody asked it, one said it
    until(page, "document.querySelector('#count').textContent.startsWith('0 of')")
    page.check("#f-deep")
    until(page, "document.querySelector('#count').textContent.startsWith('1 of')")


def test_a_permanent_link_opens_its_transcript(visit: Visit, page_file: Path) -> None:
    rows = read_jsonl(page_file.parent.parent / "stages" / "kieval.one" / "records.jsonl")
    page = visit.open(page_file, f"#t/kieval/one/{rows[1]['item_id']}")
    page.wait_for_selector("#transcript:not([hidden])")
    assert rows[1]["item_id"] in page.inner_text("#transcript h3")
    assert "zebra crossing" in texts(page, "#transcript .block.candidate .said")
    link = page.get_attribute("#transcript a", "href")
    page.click("#transcript button:has-text('Close')")
    page.wait_for_selector("#transcript", state="hidden")
    page.evaluate("hash => { location.hash = hash; }", link)
    page.wait_for_selector("#transcript:not([hidden])")
    page.goto(page_file.as_uri() + "#t/kieval/one/nobody")
    page.reload()
    until(page, "document.querySelector('#count').textContent.includes('There is no transcript')")


def test_keyboard_alone(visit: Visit, page_file: Path) -> None:
    page = visit.open(page_file)
    page.wait_for_selector("#list tbody tr")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus("#list tbody a")
    page.keyboard.press("Enter")
    page.wait_for_selector("#transcript:not([hidden])")
    assert page.evaluate("document.activeElement.id") == "transcript"
    page.keyboard.press("Tab")  # Previous is disabled: Next is the first to reach
    assert page.evaluate("document.activeElement.textContent") == "Next"
    page.keyboard.press("Enter")
    until(page, "document.querySelectorAll('#list tr')[2].getAttribute('aria-current') === 'true'")
    page.keyboard.press("Escape")
    page.wait_for_selector("#transcript", state="hidden")
    assert page.evaluate("document.activeElement.tagName") == "A"
    page.focus("#table-detectors thead button")
    page.keyboard.press("Enter")
    assert page.get_attribute("#table-detectors thead th", "aria-sort") == "ascending"


def test_hostile_text_is_shown_as_text(visit: Visit, page_file: Path) -> None:
    rows = read_jsonl(page_file.parent.parent / "stages" / "kieval.one" / "records.jsonl")
    page = visit.open(page_file, f"#t/kieval/one/{rows[0]['item_id']}")
    page.wait_for_selector("#transcript:not([hidden])")
    shown = page.inner_text("#transcript .block.interactor .said")
    for text in (HOSTILE["script"], HOSTILE["image"], HOSTILE["braces"], HOSTILE["comment"]):
        assert text in shown
    assert "ESC[31mred" in shown
    assert "U+202E fed U+2066 U+200F" in shown
    assert "aU+2028bU+2029c" in shown
    assert page.title() == "scripted - Proctor"
    assert page.locator("#transcript img, #transcript script").count() == 0
    page.click("button:has-text('Show all 1,000,007 characters')")
    assert page.inner_text("#transcript .block.candidate .said >> nth=1").endswith("THE END")


def test_dark_narrow_and_without_script(chrome: Any, page_file: Path) -> None:
    seen = Visit(chrome, page_file, color_scheme="dark")
    page = seen.open(page_file)
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(colour)
    assert sum(map(int, dark[4:-1].split(", "))) < 150
    page.click("#theme")  # light
    assert page.evaluate(colour) == "rgb(255, 255, 255)"
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400  # only tables scroll, in their own boxes
    controls = "[...document.querySelectorAll('input, select, button')]"
    assert page.evaluate(f"{controls}.filter(n => !n.closest('label') && !n.textContent).length") == 0
    seen.close()
    plain = Visit(chrome, page_file, java_script_enabled=False)
    page = plain.open(page_file)
    assert "They are shown by this page's script" in page.inner_text("#noscript")
    assert page.locator("#table-contamination tbody tr").count() == 3  # two candidates and the control
    plain.close()


def test_100_000_records(chrome: Any, tmp_path: Path) -> None:
    value = scripted(exams={"static": {"protocol": "static"}}, detection=None)
    run = do(tmp_path, value, "exam", "static.one", "static.two")
    for name in ("one", "two"):
        rows = read_jsonl(run / "stages" / f"static.{name}" / "records.jsonl")
        rewrite(run, f"static.{name}", [rows[i % len(rows)] for i in range(50_000)])
    write_report(open_run(run), run / "report")
    file = run / "report" / "index.html"
    visit = Visit(chrome, file)
    began = time.monotonic()
    page = visit.open(file)
    page.wait_for_selector("#list tbody tr")
    took = time.monotonic() - began
    read = [Path(url.removeprefix("file://").partition("#")[0]) for url in visit.requests]
    size = sum(path.stat().st_size for path in read)
    print(f"{took:.2f} s, {size / 1e6:.2f} MB in {len(read)} files")
    assert size < 5_000_000
    assert page.inner_text("#count").startswith("100000 records")
    item = texts(page, "#list tbody a")[5]
    page.goto(file.as_uri() + f"#t/static/two/{item}/4000")  # its 4000th time, far back
    page.wait_for_selector("#transcript:not([hidden])")
    assert item in page.inner_text("#transcript h3")
    page.select_option("#f-candidate", label="two")
    until(page, "document.querySelector('#count').textContent.startsWith('50000 of 100000')")
    visit.close()


def test_pages_with_groups_builds_and_analyses(chrome: Any, tmp_path: Path) -> None:
    from tests.proctor import test_analyses, test_groups

    for name, value in (("groups", test_groups.value()), ("analyses", test_analyses.value(analyses={}))):
        (tmp_path / name).mkdir()
        file = do(tmp_path / name, value) / "report" / "index.html"
        visit = Visit(chrome, file)
        page = visit.open(file)
        page.wait_for_load_state()
        assert page.evaluate("document.querySelectorAll('svg image').length") == 0  # the policy would load none
        assert page.evaluate("[...document.querySelectorAll('img')].every(i => i.naturalWidth > 0)")
        charts = page.evaluate("[...document.querySelectorAll('.chart svg')].map(s => s.getBoundingClientRect().width)")
        assert all(width > 100 for width in charts)
        assert len(charts) >= (6 if name == "groups" else 0)
        visit.close()  # no console error, no request that leaves the folder
