"""Events as HTML: one renderer, and nothing in an event can become more than text."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from experiments.core import transcript
from experiments.core.projections import PROJECTIONS
from experiments.display import events as rendering
from experiments.display import rounds
from experiments.exchange.redaction import redact
from experiments.exchange.run_html import Embedded
from experiments.models import Event, Run
from tests import ROOT
from tests.support.builders import as_json, experiment, make_run, replied, started
from tests.support.pictures import logged, seen, stored
from workers.record.decoding import read
from workers.record.events import (
    KINDS,
    Audience,
    Ended,
    Forked,
    Kind,
    LimitsChanged,
    Payload,
    Reminder,
    Retrying,
)
from workers.record.experiments import Observation, ToolCall
from workers.record.limits import Limits, Usage
from workers.record.replies import Conclusion, Hypothesis

pytestmark = pytest.mark.django_db
HOSTILE = "</p></pre><script>alert(1)</script><img src=x onerror=alert(1)>\"'><b style=x>{{ 7 }}"


@pytest.fixture
def run(owner: User) -> Run:
    return make_run(owner)


def drawn(run: Run, kind: str, payload: Payload) -> str:
    event = transcript.append(run.pk, kind, payload)
    return rendering.render_event(event, Run.objects.get(pk=run.pk))


def hostile(value: Any) -> Any:
    """The same payload with every text replaced by an attack; keys of images and names stay."""
    if is_dataclass(value) and not isinstance(value, type):
        kept = {"image", "masked", "original", "status", "task", "origin", "direction"}
        kept |= {"reason"} if isinstance(value, Reminder) else set()
        changes = {f.name: hostile(getattr(value, f.name)) for f in fields(value) if f.name not in kept}
        return replace(value, **changes)
    if isinstance(value, tuple):
        return tuple(hostile(each) for each in value)
    if isinstance(value, dict):
        return {f"{name}{HOSTILE}": hostile(each) for name, each in value.items()}
    if isinstance(value, str):
        return HOSTILE
    return value


class Markup(HTMLParser):
    """What a browser would make of a piece of HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.sources += [value or "" for name, value in attrs if name == "src"]

    def handle_data(self, data: str) -> None:
        self.text += data


def of_every_kind() -> dict[str, Payload]:
    """A payload of each kind: those with parts of their own as written here, of the others each text is its name."""
    conclusion = Conclusion("words", ("label",), "reasoning", "bias")
    result = logged(
        seen("title", 3.0, "red"), text="text", output="output", error="error", calls=(ToolCall("n", "a", 1.0),)
    )
    reply = replied(hypotheses=(Hypothesis(1, "text", "open", "why"),), code="code", conclusion=conclusion)
    ends = {kind: Ended("reason", conclusion) for kind, row in KINDS.items() if row.payload is Ended}
    steps: dict[str, Payload] = {"started": started(), "reply": reply, "experiment": experiment(), "result": result}
    steps |= {"limits": LimitsChanged(1, "who", "why", Limits(30), Limits(25))}
    steps |= {"forked": Forked(1, "who", 1, {"question": "words"})}
    return {kind: plain(kind) for kind in KINDS} | steps | ends


def plain(kind: str) -> Payload:
    """What reading makes of fields that hold their own names, or 1; those of other types are empty."""
    return read(kind, {each.name: 1 if each.type == "int" else each.name for each in fields(KINDS[kind].payload)})[0]


TEMPLATES = ROOT / "templates/display/events"


@pytest.mark.parametrize(("kind", "row"), KINDS.items())
def test_a_kind_of_event_is_whole(kind: str, row: Kind) -> None:
    named = {each.name for each in fields(row.payload)}
    assert (TEMPLATES / f"{row.template}.html").is_file()
    assert {*row.people, *(name for hidden in row.hidden.values() for name in hidden)} <= named
    assert len(kind) <= Event._meta.get_field("kind").max_length


def test_every_projection_is_of_a_kind() -> None:
    assert set(PROJECTIONS) <= {row.payload for row in KINDS.values()}


def test_every_template_of_an_event_is_of_a_kind_or_part_of_one() -> None:
    drawn = {row.template for row in KINDS.values()} | {"unreadable"}
    assert {path.stem for path in TEMPLATES.glob("*.html")} == drawn


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("audience", [Audience.LINK, Audience.FILE])
def test_outside_an_event_has_no_script_and_no_way_into_the_site(run: Run, kind: str, audience: Audience) -> None:
    event = Event(run=run, seq=1, kind=kind, payload=as_json(of_every_kind()[kind]))
    shown = redact([event], audience, show_names=False)
    ((_, html),) = rendering.render_events(
        run, shown, audience=audience, pictures=Embedded(lambda key: ""), folded=False
    )
    assert not re.search(r"<(?:a|button|script|form)\b", html)
    if "reason" in KINDS[kind].hidden.get(Audience.LINK, ()):
        assert ("reason</p>" in html or "</span> reason" in html) == (audience == Audience.FILE)


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"waiting_for_person"}))  # which holds no text
def test_nothing_in_an_event_becomes_markup(run: Run, kind: str) -> None:
    payload = of_every_kind()[kind]
    if kind == "result":
        transcript.append(run.pk, "experiment", hostile(experiment()))
    html = drawn(run, kind, hostile(payload))
    page = Markup()
    page.feed(html)
    assert "alert" in page.text
    assert "script" not in page.tags
    assert not [name for name in page.attributes if name == "style" or name.startswith("on")]
    assert all(source.startswith("/images/") for source in page.sources)


@pytest.mark.parametrize("kind", KINDS)
def test_an_event_is_one_element_with_an_id_and_a_permanent_link(run: Run, kind: str) -> None:
    if kind == "result":
        transcript.append(run.pk, "experiment", experiment())
    html = drawn(run, kind, of_every_kind()[kind]).strip()
    seq = Run.objects.get(pk=run.pk).last_seq
    assert re.match(r'<article class="[^"]*" id="(e|experiment-)\d+" data-seq="\d+" data-round=', html)
    assert html.endswith("</article>")
    assert html.count("<article") == 1
    assert f'id="e{seq}"' in html
    assert f'href="#e{seq}"' in html


def test_a_result_takes_the_place_of_its_experiment(run: Run) -> None:
    running = drawn(run, "experiment", experiment())
    ended = drawn(run, "result", logged(seen("a red ball", 38.4, "red")))
    assert 'id="experiment-1"' in running
    assert 'id="experiment-1"' in ended
    assert "running" in running
    assert "tools" in ended, "the program stays on the card"
    events = list(Event.objects.filter(run=run))
    assert [event.kind for event, _ in rendering.render_events(run, events)] == ["result"]


def test_an_experiment_whose_result_came_after_the_run_was_read_stays(run: Run) -> None:
    """Whoever reads on is sent the result; until then the page shows what it had."""
    transcript.append(run.pk, "experiment", experiment())
    seen_before = Run.objects.get(pk=run.pk)
    events = list(Event.objects.filter(run=run))
    transcript.append(run.pk, "result", logged(seen("a red ball", 38.4, "red")))
    assert [event.kind for event, _ in rendering.render_events(seen_before, events)] == ["experiment"]
    after = Run.objects.get(pk=run.pk)
    assert rendering.render_events(after, events) == [], "its result stands in the next part of the transcript"


def test_the_first_load_and_the_stream_draw_the_same(run: Run) -> None:
    drawn(run, "started", started())
    drawn(run, "reply", replied())
    run.refresh_from_db()
    events = list(Event.objects.filter(run=run))
    together = [html for _, html in rendering.render_events(run, events)]
    assert together == [rendering.render_event(event, run) for event in events]


def test_an_edit_stands_beside_its_original_with_the_change_between_them(run: Run) -> None:
    transcript.append(run.pk, "experiment", experiment())
    before = seen("a red ball", 37.7, "red")
    after = seen("make the ball green", 2.24, "green", original=before.image)
    alone = seen("a snowman", 1.0, "gray")
    html = drawn(run, "result", logged(before, after, alone))
    assert html.count('class="edits single"') == 1
    assert "<b>−35.5</b>" in html  # noqa: RUF001 - a real minus sign
    assert html.count("<figure") == 3
    assert html.index("a red ball") < html.index("−35.5") < html.index("make the ball green")  # noqa: RUF001


def test_an_edit_of_an_image_of_an_earlier_experiment_stands_beside_it(run: Run) -> None:
    transcript.append(run.pk, "experiment", experiment())
    before = seen("a red ball", 37.7, "red")
    drawn(run, "result", logged(before))
    transcript.append(run.pk, "experiment", experiment(2))
    html = drawn(run, "result", logged(seen("make it green", 2.0, "green", original=before.image), number=2))
    assert html.count('class="edits single"') == 1
    assert "a red ball" in html


def test_an_edit_of_an_image_that_nobody_logged_stands_alone(run: Run) -> None:
    transcript.append(run.pk, "experiment", experiment())
    html = drawn(run, "result", logged(seen("make it green", 2.0, "green", original=stored("red"))))
    assert 'class="edits ' not in html
    assert html.count("<figure") == 1


def test_several_edits_of_one_image_stand_in_a_row_with_it(run: Run) -> None:
    transcript.append(run.pk, "experiment", experiment())
    before = seen("a red ball", 30.0, "red")
    changes = {"green": 1.0, "blue": 30.02, "orange": 35.0}
    edits = [seen(f"make it {colour}", value, colour, original=before.image) for colour, value in changes.items()]
    html = drawn(run, "result", logged(before, *edits))
    assert html.count("<figure") == 4
    assert "3 edits of 1 image" in html
    assert re.findall(r'class="edit-head change (\w+)"', html) == ["down", "same", "up"]


def test_images_are_masked_with_the_raw_one_at_hand(run: Run) -> None:
    transcript.append(run.pk, "experiment", experiment())
    card = seen("a red ball", 38.4, "red")
    html = drawn(run, "result", logged(card, Observation("bare", 1.0, card.image)))
    assert f'<img class="masked" src="/images/{card.masked}/thumb-' in html
    assert f'<img class="raw" src="/images/{card.image}/thumb-' in html
    assert f'<img src="/images/{card.image}/thumb-' in html, "an image without a mask is shown as it is"


def test_bars_hold_absolute_activations_on_the_scale_of_the_run(run: Run) -> None:
    transcript.append(run.pk, "experiment", experiment())
    html = drawn(run, "result", logged(seen("a", 30.0, "red"), seen("b", 3.0, "blue"), exemplar_mean=20.0))
    assert html.count('viewBox="0 0 30 1"') == 2
    assert 'width="3"' in html
    assert 'class="tick" x1="20"' in html


def test_of_many_images_the_strongest_come_first_and_the_others_are_folded(run: Run) -> None:
    transcript.append(run.pk, "experiment", experiment())
    html = drawn(run, "result", logged(*[seen(f"n{n:02}", float(n), "red") for n in range(50)]))
    assert "50 images, mean 24.50, strongest first" in html
    assert "40 more images" in html
    assert re.findall(r'title="n(\d+)"', html) == [f"{n:02}" for n in range(49, -1, -1)]


def test_few_images_keep_the_order_of_the_program(run: Run) -> None:
    transcript.append(run.pk, "experiment", experiment())
    html = drawn(run, "result", logged(*[seen(f"n{n:02}", float(n), "red") for n in range(15)]))
    assert re.findall(r'title="n(\d+)"', html) == [f"{n:02}" for n in range(15)]
    assert "more image" not in html


@pytest.mark.parametrize(("text", "tag"), [("near misses", "h4"), ("a long summary " * 9, "div")])
def test_a_short_text_is_the_heading_of_its_images(run: Run, text: str, tag: str) -> None:
    transcript.append(run.pk, "experiment", experiment())
    html = drawn(run, "result", logged(seen("a", 1.0, "red"), text=text))
    assert re.search(rf"<{tag} class=\"(entry|log-text)\"\s*>(<p>)?{text.strip()}", html)


@pytest.mark.parametrize(
    ("captions", "words"),
    [
        (12, "12 earlier images were replaced by their titles and activations: the conversation outgrew"),
        (1, "1 earlier image was replaced by its title and activation: the conversation outgrew"),
    ],
)
def test_a_reply_says_how_many_images_gave_way(run: Run, captions: int, words: str) -> None:
    assert words in drawn(run, "reply", replied(captions=captions))
    assert "outgrew" not in drawn(run, "reply", replied())
    few = drawn(run, "reply", replied(captions=captions, captions_reason="the provider takes at most 14 images"))
    assert words.replace("the conversation outgrew", "the provider takes at most 14 images.") in few


def test_a_reply_says_how_it_was_read_where_that_was_not_plain(run: Run) -> None:
    html = drawn(run, "reply", replied(readings=("2 fences were run together, in order, as one program.",)))
    assert "sent to the agent: 2 fences were run together" in html
    assert "read-as" not in drawn(run, "reply", replied())


def test_what_describing_took_stands_on_the_experiment(run: Run) -> None:
    transcript.append(run.pk, "experiment", experiment())
    assert "descriptions 3.3k tokens, $0.01" in drawn(run, "result", logged(usage=Usage(3_100, 220, 0.0123)))
    assert "descriptions" not in rendering.render_event(Event(seq=9, kind="result", payload=as_json(logged())), run)


def test_what_a_run_is_made_with_is_named_parts_first(run: Run) -> None:
    versions = {"torch": "2.13", "numpy": "2.4", "editor": "pix2pix 3", "backbone": "gpt-4o", "model": "toybox 1"}
    versions["dataset"] = "toybox"
    html = drawn(run, "started", replace(started(), versions=versions))
    assert re.findall(r"<dt>([^<]+)</dt>", html) == ["backbone", "model", "dataset", "editor", "numpy", "torch"]
    side = rendering.side(Run.objects.get(pk=run.pk))
    assert "<dd>gpt-4o</dd>" in side
    assert "<dd>Toybox: rendered toy scenes</dd>" in side


def test_what_cannot_be_read_says_so_and_keeps_its_place(run: Run) -> None:
    event = transcript.append(run.pk, "reminder", Reminder(1, "continue", "Go on."))
    Event.objects.filter(pk=event.pk).update(payload={"round": "x"})
    drawn = rendering.render_event(Event.objects.get(pk=event.pk), run)
    assert "Unreadable" in drawn
    assert f'id="e{event.seq}"' in drawn


def test_trouble_says_whose_it_is(run: Run) -> None:
    assert "Retrying" in drawn(run, "retrying", Retrying(1, 1, "disk full"))


def test_cut_output_says_so(run: Run) -> None:
    transcript.append(run.pk, "experiment", experiment())
    assert "only the first 6 characters were kept" in drawn(
        run, "result", logged(output="printe", output_truncated=True)
    )


def test_the_side_tells_the_last_word_on_each_hypothesis(run: Run) -> None:
    drawn(run, "reply", replied(1, hypotheses=(Hypothesis(1, "red"), Hypothesis(2, "round"))))
    drawn(run, "reply", replied(2, hypotheses=(Hypothesis(1, "red", "supported"), Hypothesis(2, "round", "refuted"))))
    side = rendering.side(Run.objects.get(pk=run.pk))
    assert side.count("<li>") == 2
    assert "supported" in side
    assert "refuted" in side


def test_the_outline_names_each_round_with_its_best_activation(run: Run) -> None:
    drawn(run, "reply", replied(prose="**Start** from the exemplars. Then go on."))
    transcript.append(run.pk, "experiment", experiment())
    drawn(run, "result", logged(seen("a", 36.92, "red"), seen("b", 1.0, "blue")))
    outline = rendering.outline(Run.objects.get(pk=run.pk))
    assert "Start from the exemplars</span>" in outline
    assert "36.9" in outline


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (replied(prose="", code="x"), "Experiment"),
        (replied(prose="", conclusion=Conclusion("d")), "Conclusion"),
        (replied(prose=""), "Reply"),
        (replied(prose="word " * 40), "word word word word word word word word word word word…"),
    ],
)
def test_a_round_always_has_a_headline(reply: Payload, words: str) -> None:
    assert rounds.headline(reply) == words


def test_the_head_shows_what_is_used_of_each_limit(run: Run) -> None:
    run.limits = {"rounds": 25, "tokens": None, "cost": 2.0, "seconds": 3600}
    run.rounds, run.prompt_tokens, run.cost, run.seconds = 4, 18_200, 0.06, 48.0
    head = " ".join(rendering.head(run).split())
    for words in ("<b>4</b> of 25", "<b>18.2k</b></dd>", "<b>$0.06</b> of $2.00", ">0:48</b> of 1:00:00"):
        assert words in head
    assert head.count('class="gauge') == 3


def test_the_head_of_a_run_under_way_counts_the_step_that_is_not_recorded_yet(run: Run) -> None:
    run.seconds, run.taken = 13.0, timezone.now() - timedelta(minutes=5)
    assert ">0:13</b>" in rendering.head(run), "nobody works on it"
    run.lease_expires = timezone.now() + timedelta(minutes=1)
    run.events.update(time=run.taken - timedelta(hours=1))
    assert 313 <= rendering.seconds_of_work(run) < 400
    transcript.append(run.pk, "reply", replied())
    assert rendering.seconds_of_work(run) < 200, "what was recorded is not counted twice"


def test_the_tail_says_how_many_runs_are_ahead(run: Run, owner: User) -> None:
    second = make_run(owner)
    assert "1 run ahead" in rendering.tail(second)
    assert "ahead" not in rendering.tail(run)


def test_an_end_is_the_end_also_where_the_run_was_read_a_moment_before(run: Run) -> None:
    event = transcript.append(run.pk, "cancelled", Ended("Stopped."))
    assert run.last_seq < event.seq
    assert 'id="end"' in rendering.render_event(event, run)
    transcript.resume(run.pk, "owner")
    assert 'id="end"' not in rendering.render_event(event, Run.objects.get(pk=run.pk))
