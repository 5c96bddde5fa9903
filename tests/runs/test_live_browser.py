"""A run under way in a real browser: what is written shows what it will be, pictures come first, nothing leaps."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page, expect

from experiments.core import notify, transcript
from experiments.models import Run
from tests import ROOT
from tests.support.browser import aside, needs_chromium, new_page, open_browser, open_page
from tests.support.builders import make_run, replied, started
from tests.support.pictures import logged, seen
from tests.support.served import served
from workers.record.events import Ended, ExperimentStarted
from workers.record.replies import Conclusion, Hypothesis

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume"),  # WhiteNoise reads its files at once
    needs_chromium,
]
PROSE = "Four of five exemplars hold a red ball.\n\n"
LISTED = (
    "[HYPOTHESIS LIST]:\nHypothesis_1: red balls [supported: 9 of 9]\n"
    "Hypothesis_2: <img src=x onerror=alert(1)> [open]\nHypothesis_3: round thi"
)
CODE = 'def run_experiment(system, tools):\n    """Step refine: colour or shape?"""\n' + "    print('and on')\n" * 60
LEAPS = """() => { // what is read falls by half a line, or the page gets shorter, between two frames
  window.leaps = [];
  let [height, read, top] = [document.documentElement.scrollHeight, null, 0];
  const look = () => {
    const tall = document.documentElement.scrollHeight;
    const moved = read?.isConnected ? top - read.getBoundingClientRect().top : 0;
    if (moved < -9 || tall < height - 9) window.leaps.push([moved, height, tall]);
    height = tall;
    read = document.querySelector("#events > :last-child");
    top = read?.getBoundingClientRect().top ?? 0;
    requestAnimationFrame(look);
  };
  look();
}"""
LENGTHS = """() => {
  window.lengths = [];
  const words = document.getElementById("draft-words");
  new MutationObserver(() => lengths.push(words.textContent.length)).observe(words, { childList: true, subtree: true });
}"""
DRAWN = "() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
BOX_HEIGHT = "document.querySelector('#draft .program-box').offsetHeight"
TOP = "(box) => box.getBoundingClientRect().top"


def test_a_run_under_way_is_watched_without_a_leap(redis_url: str, owner: User, client: Client) -> None:
    client.force_login(owner)
    run = make_run(owner, exemplar_mean=30.0)
    transcript.append(run.pk, "started", started())
    errors: list[str] = []
    with open_browser() as browser, served() as url:
        page = new_page(browser, url, client, errors, viewport={"width": 1280, "height": 700})
        page.goto(f"{url}{run.get_absolute_url()}")
        expect(page.locator("#connection")).to_contain_text("Connected")
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        page.evaluate(DRAWN)
        page.evaluate(LEAPS)
        for number in (1, 2):
            words_show_what_they_will_be(page, run)
            the_reply_takes_their_place(page, run, number)
            pictures_come_before_their_program(page, run, number)
        assert page.evaluate("leaps") == []
        rounds_have_titles_and_pictures(page)
        the_answer_fills_up_and_moves_no_reader(page, run)
        browser.close()
    assert errors == []


def test_a_reply_that_comes_at_once_is_typed_and_the_run_waits_for_nobody(
    redis_url: str, owner: User, client: Client
) -> None:
    client.force_login(owner)
    run = make_run(owner)
    transcript.append(run.pk, "started", started())
    prose = " ".join(f"word{number}" for number in range(300))
    with open_browser() as browser, served() as url:
        for motion in ("no-preference", "reduce"):
            page = new_page(browser, url, client, reduced_motion=motion)
            page.goto(f"{url}{run.get_absolute_url()}")
            expect(page.locator("#connection")).to_contain_text("Connected")
            page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
            page.evaluate(DRAWN)
            page.evaluate(LENGTHS)
            number = 1 if motion == "no-preference" else 2
            say(run, prose)
            expect(page.locator("#draft-words")).not_to_be_empty()  # a look at the database may come before the bell
            tell(run, "reply", replied(number, prose=prose, text=prose))
            expect(page.locator(f"#round-{number}")).to_be_visible()
            expect(page.locator("#draft")).to_be_hidden()
            typed = [length for length in page.evaluate("lengths") if length]
            assert typed == sorted(typed)
            assert typed[-1] > 0.9 * len(prose), "all words come before the reply takes their place"
        browser.close()


PACED = """async (source) => {
  const { Pace } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
  const [frames, taken] = [[], []];
  let [now, typed, follows] = [0, 0, true];
  performance.now = () => now;
  window.requestAnimationFrame = (step) => frames.push(step);
  const take = (message) => {
    if (message.type === "draft") typed = message.offset + message.text.length;
    taken.push(message.type === "draft" ? typed : message.type);
  };
  const pace = new Pace(take, () => typed, () => follows);
  const run = (milliseconds) => {
    for (const end = now + milliseconds; now < end; ) { now += 50; frames.splice(0).forEach((step) => step(now)); }
  };
  pace.push({ type: "draft", offset: 0, text: "x".repeat(100) });
  run(100);
  const [early] = [typed];
  pace.push({ type: "draft", offset: 100, text: "x".repeat(9900) });
  run(100);
  pace.push({ type: "event" });
  run(1000);
  const late = [typed, taken.includes("event")];
  run(1500);
  const ended = [typed, taken.at(-1)];
  pace.push({ type: "draft", offset: 10000, text: "x".repeat(50) });
  pace.push({ type: "end" });
  follows = false;
  run(50);
  return { early, late, ended, left: [typed, taken.at(-1)] };
}"""


def test_words_are_typed_and_the_page_is_never_far_behind_the_run() -> None:
    with open_page() as page:
        found = page.evaluate(PACED, (ROOT / "static/js/runs/pace.js").read_text())
    assert 30 <= found["early"] <= 60, "400 characters a second"
    typed, ended = found["late"]
    assert 3_000 < typed < 9_000
    assert not ended, "what follows the words waits for them"
    assert found["ended"] == [10_000, "event"], "2.5 s after they came"
    assert found["left"] == [10_050, "end"], "nobody reads its end"


def say(run: Run, text: str) -> None:
    aside(lambda: notify.draft(run.pk, text, 0))


def tell(run: Run, kind: str, payload: Any) -> None:
    aside(lambda: transcript.append(run.pk, kind, payload))


def words_show_what_they_will_be(page: Page, run: Run) -> None:
    draft = page.locator("#draft")
    say(run, PROSE + LISTED)
    expect(draft.locator(".hypotheses li")).to_have_count(3)
    expect(draft.locator(".hypotheses .supported")).to_have_text("supported · 9 of 9")
    expect(draft.locator(".hypotheses li").nth(1)).to_contain_text("<img src=x onerror=alert(1)>")
    heights = []
    for lines in (3, 60):
        code = "\n".join(CODE.splitlines()[:lines])
        say(run, f"{PROSE}{LISTED}ngs [refuted]\n\n[CODE]:\n```python\n{code}")
        expect(draft.locator(".program-box p")).to_have_text(f"Program{lines} lines")
        heights.append(page.evaluate(BOX_HEIGHT))  # at once: words that are typed draw the box anew
    assert heights[0] == heights[1]
    expect(draft).not_to_contain_text("[CODE]")
    expect(draft).not_to_contain_text("Hypothesis_1")


def the_reply_takes_their_place(page: Page, run: Run, number: int) -> None:
    listed = (Hypothesis(1, "red balls", "supported", "9 of 9"), Hypothesis(2, "round things", "open"))
    tell(run, "reply", replied(number, prose=PROSE, text=PROSE, code=CODE, hypotheses=listed))
    expect(page.locator("#draft")).to_be_hidden()
    expect(page.locator(f"#round-{number} h2")).to_have_text(f"Round {number} Colour or shape?")


def pictures_come_before_their_program(page: Page, run: Run, number: int) -> None:
    card = page.locator(f"#experiment-{number}")
    tell(run, "experiment", ExperimentStarted(number, number, CODE))
    expect(card.locator("details.program[open]")).to_be_visible()
    images = aside(lambda: [seen(f"a {colour} ball", 10.0, colour) for colour in ("red", "blue", "green")])
    tell(run, "result", logged(*images, number=number))
    expect(card.locator(".image-card")).to_have_count(3)
    expect(card.locator("details.program:not([open])")).to_be_visible()
    assert card.locator(".grid").evaluate(TOP) < card.locator("details.program").evaluate(TOP)


def rounds_have_titles_and_pictures(page: Page) -> None:
    for line in (page.locator("#outline li").nth(2), page.locator(".round-strip li").nth(1)):
        expect(line.locator(".text-block")).to_have_text("Colour or shape?")
        expect(line.locator("img")).to_have_count(1)


def the_answer_fills_up_and_moves_no_reader(page: Page, run: Run) -> None:
    answer, read = page.locator("#answer"), page.locator("#round-2")
    expect(answer.locator(".sentence").first).to_contain_text("red balls")
    read.scroll_into_view_if_needed()
    page.evaluate("scrollBy({ top: -120, behavior: 'instant' })")
    page.evaluate(DRAWN)
    top = read.evaluate(TOP)
    tell(run, "concluded", Ended("", Conclusion("It responds to red balls.", ("red balls",))))
    expect(answer.locator(".label")).to_have_text("red balls")
    expect(page.locator("#end")).to_be_attached()
    assert abs(read.evaluate(TOP) - top) <= 2
