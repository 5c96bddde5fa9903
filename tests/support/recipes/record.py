"""A kind of event: bookmarks that people set. A task: what silences a unit."""

from __future__ import annotations

from tests.support.recipes.recipe import Recipe

EVENT = Recipe(
    new={
        "templates/display/events/bookmark.html": """
            <article class="event bookmark" id="e{{ event.seq }}" data-seq="{{ event.seq }}" data-round="{{ payload.round }}" data-say="A bookmark.">
              <p><span class="tag">Bookmark</span> {{ payload.text }} by {{ payload.who }}{% if team %} <a class="permalink" href="{{ link }}">#{{ event.seq }}</a>{% endif %}</p>
            </article>
            """,  # noqa: E501
    },
    lines=(
        (
            "workers/record/events.py",
            "@dataclass(frozen=True)\nclass Unreadable(",
            '''\
@dataclass(frozen=True)
class Bookmarked(Payload):
    """A person found something worth coming back to."""

    round: int
    who: str
    text: str


''',
        ),
        (
            "workers/record/events.py",
            '    "forked": Kind(',
            '    "bookmark": Kind(Bookmarked, "bookmark", "person", people=("who",)),\n',
        ),
        (
            "experiments/core/projections.py",
            "PROJECTIONS: Mapping",
            """\
def _keep_bookmark(run: Run, bookmark: record.Bookmarked, _: Rows) -> None:
    run.reason = bookmark.text


""",
        ),
        ("experiments/core/projections.py", "    record.Ended: _", "    record.Bookmarked: _keep_bookmark,\n"),
    ),
    made=("workers/record/EVENTS.md",),
    test=(
        "tests/core/test_bookmark.py",
        '''
        """A bookmark is written, kept in step, and drawn for whoever may see it."""

        import pytest

        from experiments.core import transcript
        from experiments.display import events
        from experiments.exchange.run_html import Embedded
        from experiments.models import Run
        from experiments.exchange.redaction import redact
        from tests.support.builders import make_run
        from workers.jobs.console import format_event
        from workers.record.events import Audience, Bookmarked


        @pytest.fixture
        def event(owner):
            return transcript.append(make_run(owner).pk, "bookmark", Bookmarked(1, "Ada", "Odd reds."))


        def test_it_is_kept_and_drawn_for_the_team_a_link_a_file_and_a_terminal(event):
            run = Run.objects.get()
            assert run.reason == "Odd reds."
            assert "Odd reds. by Ada" in events.render_event(event, run)
            for audience in (Audience.LINK, Audience.FILE):
                shown = redact([event], audience, show_names=False)
                pictures = Embedded(lambda key: "")
                ((_, html),) = events.render_events(run, shown, audience=audience, pictures=pictures)
                assert "Odd reds. by a person" in html
                assert "href" not in html
            assert "Odd reds." in format_event(event.content, "bookmark")


        def test_scripts_are_told(as_owner, event):
            (told,) = as_owner.get(f"/api/v1/runs/{event.run_id}/events").json()["items"]
            assert (told["kind"], told["payload"]["text"]) == ("bookmark", "Odd reds.")
        ''',
    ),
    accepted=(
        "tests/display/test_events.py::test_every_template_of_an_event_is_of_a_kind_or_part_of_one",
        "tests/display/test_events.py::test_nothing_in_an_event_becomes_markup[bookmark]",
        "tests/display/test_events.py::test_an_event_is_one_element_with_an_id_and_a_permanent_link[bookmark]",
        "tests/house/test_contributing.py::test_the_table_of_events_is_that_of_the_code",
    ),
)

TASK = Recipe(
    new={
        "workers/agent/prompts/silence.md": """
            # Task: silence

            Find out what silences this system: $system.

            $question

            $budget

            Conclude in a reply without a program:

            [DESCRIPTION]: what silences it, and the figures behind that
            """,
    },
    lines=(
        (
            "workers/record/tasks.py",
            '    Task(\n        "free",',
            """\
    Task(
        "silence",
        "Find what silences it",
        "Which images keep the unit silent that should not? Ends in a description.",
        "What silences unit {unit} of {layer} in {model}?",
        "",
        "What silences this neuron?",
        ("description",),
        (("DESCRIPTION",),),
    ),
""",
        ),
    ),
    test=(
        "tests/agent/test_silence.py",
        '''
        """The task is offered, asked for by page and by script, and put to the agent in its own words."""

        from experiments.models import Layer, Run, VisionModelRow
        from tests.support.run_form import GOOD
        from workers.agent.loop import start
        from workers.record.limits import Limits
        from workers.record.systems import SystemSpec


        def test_the_form_offers_it_and_makes_runs_of_it(as_owner, redis_url):
            model = VisionModelRow.objects.create(name="toybox", revision="1")
            Layer.objects.create(model=model, position=0, name="layer4", path="layer4", kind="conv", units=16)
            page = as_owner.get("/query/?task=silence").content.decode()
            assert "Find what silences it" in page
            assert "What silences unit 0 of layer4 in toybox?" in page
            as_owner.post("/query/", GOOD | {"task": "silence"})
            assert Run.objects.get().task == "silence"


        def test_the_agent_is_told_what_to_find():
            spec = SystemSpec("unit", "toybox", "layer4", 7)
            said = {"backbone": "scripted", "limits": Limits(), "seed": 0, "reference": "", "versions": {}}
            first = start("Why?", "silence", spec, **said)
            assert "Find out what silences this system: unit 7 of layer4" in first.assignment
        ''',
    ),
    accepted=(
        "tests/record/test_tasks.py::test_a_row_makes_sense[silence]",
        "tests/record/test_tasks.py::test_form_and_api_offer_every_task",
    ),
)
