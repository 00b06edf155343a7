"""
Reports in a browser: clicks, keyboard, filter, contrast, and what assistive technology reads.

They need playwright, and a Chromium of the system: nothing is downloaded.
"""

import os
import shutil

import pytest
from report_support import HOSTILE, handbook, hostile
from test_report_windows import allocation, fitted

from budgeteer import pack

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
CHROMIUM = os.environ.get("BUDGETEER_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="has no Chromium")

CONTRASTS = """() => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d", {willReadFrequently: true});
  const over = (colour, below) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = `rgb(${below.join(" ")})`;
    context.fillRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((of) => {
      const part = of / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const back = (element) => {
    const line = [];
    for (let of = element; of; of = of.parentElement) line.unshift(of);
    const scheme = matchMedia("(prefers-color-scheme: dark)").matches;
    return line.reduce(
      (below, of) => over(getComputedStyle(of).backgroundColor, below),
      scheme ? [18, 18, 18] : [255, 255, 255],
    );
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim()) continue;
    if (element.closest("script, style, title, option")) continue;
    if (!element.checkVisibility({contentVisibilityAuto: true})) continue;
    const below = back(element);
    const style = getComputedStyle(element);
    const ink = element.closest("svg") ? style.fill : style.color;
    const [a, b] = [light(over(ink, below)), light(below)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    found.push([walker.currentNode.data.trim().slice(0, 40), ratio]);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as tools:
        started = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Open a report as a file; every message of its console, and every request, is an error."""
    contexts = []

    def opened(text, *, strict=True, **options):
        path = tmp_path / f"report-{len(contexts)}.html"
        path.write_text(text, encoding="utf-8")
        context = browser.new_context(**{"viewport": {"width": 1100, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.told = []
        page.on("console", lambda message: page.told.append(message.text))
        page.on("pageerror", lambda error: page.told.append(str(error)))
        page.on("dialog", lambda dialog: page.told.append(dialog.message))
        page.on("request", lambda request: page.told.append(request.url))
        page.goto(path.as_uri())
        assert path.as_uri() == page.told.pop(0)
        assert not (strict and page.told)
        return page

    yield opened
    for context in contexts:
        assert [[]] * len(context.pages) == [page.told for page in context.pages]
        context.close()


def shown_rows(page):
    return page.locator("#chunks tbody tr:visible").count()


def wait_for(page, words):
    """Wait until the filter says that; a policy of the page forbids to poll by a function."""
    playwright.expect(page.locator("output")).to_have_text(words)


def test_filter(opened):
    """The search and the choice of an outcome narrow the rows, and the count is said."""
    packing = handbook(30, 200)
    page = opened(packing.report())
    wait_for(page, "30 of 30 chunks")
    assert 30 == shown_rows(page)

    page.get_by_label("Show", exact=True).select_option("kept")
    kept = len(packing.kept)
    wait_for(page, f"{kept} of 30 chunks")
    assert kept == shown_rows(page)

    page.get_by_role("button", name="Show all").click()
    wait_for(page, "30 of 30 chunks")
    assert 30 == shown_rows(page)

    page.get_by_label("Search in names, texts and reasons").fill("PAGE-3.md  section")
    expected = sum(i % 7 == 3 for i in range(29))
    wait_for(page, f"{expected} of 30 chunks")
    assert expected == shown_rows(page)


def test_the_count_is_announced(opened):
    """What the filter finds is said politely to those who do not see it."""
    page = opened(handbook().report())
    assert "polite" == page.locator("output").get_attribute("aria-live")
    assert "search" == page.locator("form").get_attribute("role")


def test_keyboard(opened):
    """Everything can be reached and used with the keyboard, and the focus is seen."""
    page = opened(handbook(9, 60).report())
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        found = page.evaluate(
            """() => {
              const at = document.activeElement;
              const style = getComputedStyle(at);
              const box = at.getBoundingClientRect();
              return [at.tagName, at.className, style.outlineStyle, parseFloat(style.outlineWidth),
                      box.width > 1 && box.height > 1];
            }"""
        )
        if found[0] == "BODY":
            break
        seen.append(found)
    assert "skip" == seen[0][1]
    assert {"A", "INPUT", "SELECT", "BUTTON", "SUMMARY", "DIV"} <= {tag for tag, *_ in seen}
    assert all(style != "none" and width >= 2 for _, _, style, width, _ in seen)
    assert all(is_seen for *_, is_seen in seen)


def test_keyboard_use(opened):
    """The skip link leads to the chunks; a text opens, and the filter works, without a mouse."""
    page = opened(handbook(9, 60).report())
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**#chunks")
    page.keyboard.press("Tab")
    page.keyboard.type("copy.md")
    wait_for(page, "1 of 9 chunks")

    summary = page.locator("#chunks tbody tr:visible summary").first
    summary.focus()
    before = page.evaluate("document.activeElement.parentElement.open")
    page.keyboard.press("Enter")
    assert before != page.evaluate("document.activeElement.parentElement.open")


def test_a_link_to_a_duplicate(opened):
    """The link of a duplicate leads to its chunk, even where the filter hides that."""
    page = opened(pack("tea", ["Green tea.", "Rye.", "Green tea."], 20).report())
    page.get_by_label("Show", exact=True).select_option("dropped")
    wait_for(page, "1 of 3 chunks")
    assert page.locator("#chunk-0").is_hidden()
    page.locator("#chunk-2 a").first.click()
    wait_for(page, "3 of 3 chunks")

    assert page.locator("#chunk-0").is_visible()
    assert page.url.endswith("#chunk-0")


@pytest.mark.parametrize("name", ["Other budgets", "The text, as it is sent"])
def test_places(opened, name):
    """What stands behind thousands of rows can be reached from the top, without scrolling."""
    page = opened(handbook(2_000, 800).report())
    places = page.get_by_role("navigation").get_by_role("link")
    assert [*page.locator("h2").all_inner_texts()] == places.all_inner_texts()

    heading = page.get_by_role("heading", name=name)
    playwright.expect(heading).not_to_be_in_viewport()
    places.get_by_text(name).click()
    playwright.expect(heading).to_be_in_viewport()


def test_a_link_from_the_curve(opened):
    """The figures of the curve lead to the chunks that a budget would have admitted."""
    page = opened(handbook(9, 60).report())
    page.get_by_text("What each budget adds, in figures").click()
    link = page.locator("section[aria-labelledby=budgets] td a").last
    link.click()
    more = page.locator(f"#chunk-{link.inner_text()} details").first
    playwright.expect(more).to_have_attribute("open", "")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1100])
@pytest.mark.parametrize("made", [hostile, lambda: handbook(9, 60, overflow="truncate_end")])
def test_contrast(opened, scheme, width, made):
    """Every text has a contrast of 4.5 or more, in light and dark, opened and pointed at."""
    page = opened(
        made().report(), color_scheme=scheme, viewport={"width": width, "height": 20_000}
    )
    page.evaluate("for (const more of document.querySelectorAll('details')) more.open = true")
    for target in ("", "#chunk-0"):
        page.evaluate(f"location.hash = '{target}'")
        found = page.evaluate(CONTRASTS)
        assert len(found) > 40
        assert [] == [(text, ratio) for text, ratio in found if ratio < 4.5]


def test_the_measure_of_contrast(opened):
    """What has too little contrast is found: the test above can fail."""
    page = opened(handbook().report())
    page.evaluate("document.querySelector('h1').style.color = '#888'")
    worst = min(page.evaluate(CONTRASTS), key=lambda pair: pair[1])

    assert worst[0].startswith("Why is this chunk")
    assert abs(worst[1] - 3.54) < 0.01


@pytest.mark.parametrize("width", [320, 390, 768, 1400])
def test_no_sideways_scrolling(opened, width):
    """The page is as wide as the window, however narrow, with long words in it too."""
    page = opened(
        pack("tea", ["tea " + "x" * 3_000, "y" * 3_000], 50, overflow="truncate_end").report(),
        viewport={"width": width, "height": 900},
    )
    page.evaluate("for (const more of document.querySelectorAll('details')) more.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_hostile_texts(opened):
    """No script runs, no style applies, and each text can be read."""
    page = opened(hostile().report())

    assert "Why is this chunk in the context?" == page.title()
    assert page.locator("h1").is_visible()
    text = page.locator("#chunks").text_content()
    for hostile_text in HOSTILE[:3]:
        assert hostile_text in text
    assert "U+202E" in text


def test_a_script_that_got_through(opened):
    """Were a text not escaped, the page's policy would still keep its script from running."""
    text = handbook().report()
    foreign = "<script>document.title = 'hacked'</script><style>h1 { display: none }</style>"
    page = opened(text.replace("</main>", f"{foreign}</main>"), strict=False)

    assert "Why is this chunk in the context?" == page.title()
    assert page.locator("h1").is_visible()
    assert 2 == sum("Content Security Policy" in line for line in page.told)
    page.told.clear()


def test_what_assistive_technology_reads(opened):
    """Rows, cells and headings, landmarks and pictures have their roles and names."""
    page = opened(handbook().report())
    table = page.locator("#chunks table").aria_snapshot()

    assert 'columnheader "Outcome"' in table
    assert table.count('rowheader "Chunk ') == 5
    assert 6 == page.locator("#chunks").get_by_role("row").count()
    assert 5 * 5 + 5 == page.locator("#chunks").get_by_role("cell").count()
    for role in ("main", "banner", "contentinfo", "search"):
        assert 1 == page.get_by_role(role).count(), role
    pictures = page.get_by_role("img").all()
    names = [picture.get_attribute("aria-label") for picture in pictures]
    assert len(names) == 2
    assert names[0].startswith("chunks ")
    assert names[1].startswith("Chunks kept by budget: ")


def test_without_scripts(opened):
    """Without scripts everything can be read; what needs them is not shown."""
    page = opened(handbook(9, 60).report(), java_script_enabled=False)

    assert not page.locator("form").is_visible()
    assert 9 == shown_rows(page)
    more = page.locator("#chunks .dropped details").first
    more.locator("summary").click()
    assert more.locator("pre").is_visible()


def test_print(opened):
    """On paper there are all rows, in dark ink, and no controls."""
    page = opened(handbook(60, 60).report(), color_scheme="dark")
    page.emulate_media(media="print")

    assert not page.locator("form").is_visible()
    last = page.locator("#chunks tbody tr").last
    assert "visible" == last.evaluate("at => getComputedStyle(at).contentVisibility")
    assert "rgb(0, 0, 0)" == page.evaluate("getComputedStyle(document.body).color")
    assert page.pdf().startswith(b"%PDF")


def test_motion(opened):
    """Nothing moves for those who ask for less motion."""
    text = handbook().report()
    for motion, expected in (("reduce", "auto"), ("no-preference", "smooth")):
        page = opened(text, reduced_motion=motion)
        found = page.evaluate("getComputedStyle(document.documentElement).scrollBehavior")
        assert expected == found


def test_many_chunks(opened):
    """Of 5,000 chunks only those in sight are laid out, and the filter finds all."""
    page = opened(handbook(5_000, 8_000).report())
    in_sight = page.evaluate(
        """[...document.querySelectorAll("#chunks tbody .text")]
             .filter((cell) => cell.checkVisibility({contentVisibilityAuto: true})).length"""
    )
    assert 0 < in_sight < 200
    wait_for(page, "5,000 of 5,000 chunks")

    page.get_by_label("Search in names, texts and reasons").fill("page-3.md")
    expected = sum(i % 7 == 3 for i in range(4_999))
    wait_for(page, f"{expected} of 5,000 chunks")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1100])
@pytest.mark.parametrize("made", ["allocation", "request"])
def test_windows(opened, scheme, width, made):
    """The pages of layouts and requests have the contrast, fit the window and have their names."""
    text = allocation().report() if made == "allocation" else fitted().report.to_html()
    page = opened(text, color_scheme=scheme, viewport={"width": width, "height": 4_000})
    found = page.evaluate(CONTRASTS)

    assert len(found) > 20
    assert [] == [(words, ratio) for words, ratio in found if ratio < 4.5]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    narrowest = page.evaluate(
        """Math.min(...[...document.querySelectorAll(".figures tbody td")]
             .filter((cell) => cell.textContent.length > 30)
             .map((cell) => cell.getBoundingClientRect().width))"""
    )
    assert narrowest > 180, "a long note is a column of single words"
    assert 1 == page.get_by_role("img").count()
    assert page.get_by_role("rowheader").count() >= 5
