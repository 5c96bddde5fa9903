"""A feature: a journal of what everybody did last."""

from __future__ import annotations

from tests.support.recipes.recipe import Recipe

FEATURE = Recipe(
    new={
        "experiments/journal/__init__.py": "",
        "experiments/journal/README.md": """
            # experiments/journal: the latest event of each run

            - `lists.py`: find the latest events
            - `pages.py`: the page Journal
            - `api.py`: the same for scripts
            - `urls.py`: URLs of the journal
            """,
        "experiments/journal/lists.py": '''
            """Which events the journal shows."""

            from __future__ import annotations

            from django.db.models import F, QuerySet

            from experiments.models import Event


            def latest() -> QuerySet[Event]:
                """The last event of each run, newest first."""
                return Event.objects.filter(seq=F("run__last_seq")).select_related("run").order_by("-time", "-pk")
            ''',
        "experiments/journal/pages.py": '''
            """The journal."""

            from __future__ import annotations

            from django.http import HttpRequest, HttpResponse
            from django.shortcuts import render
            from django.views.decorators.http import require_safe

            from experiments.core import access
            from experiments.journal import lists


            @require_safe
            def index(request: HttpRequest) -> HttpResponse:
                """The latest event of each run."""
                access.require(request)
                return render(request, "journal/index.html", {"events": lists.latest()[:50]})
            ''',
        "experiments/journal/api.py": '''
            """The journal, for scripts."""

            from __future__ import annotations

            from django.http import HttpRequest
            from ninja import Router, Schema

            from experiments.api.auth import authorize
            from experiments.journal import lists

            router = Router(tags=["Journal"])


            class Line(Schema):
                run: int
                kind: str


            @router.get("/journal", response=list[Line], summary="List the latest event of each run")
            def list_journal(request: HttpRequest) -> list[Line]:
                """Newest first, at most 50."""
                authorize(request)
                return [Line(run=event.run_id, kind=event.kind) for event in lists.latest()[:50]]
            ''',
        "experiments/journal/urls.py": '''
            """The address of the journal."""

            from __future__ import annotations

            from django.urls import URLPattern, path

            from experiments.journal import pages

            urlpatterns: list[URLPattern] = [path("journal/", pages.index, name="journal")]
            ''',
        "templates/journal/index.html": """
            {% extends "base.html" %}
            {% block title %}Journal · MAIA Web{% endblock %}
            {% block main %}
            <div class="page"><h1>Journal</h1>
              <ul>{% for event in events %}<li><a href="{{ event.run.get_absolute_url }}">{{ event.run.question }}</a> {{ event.kind }}</li>{% endfor %}</ul>
            </div>
            {% endblock %}
            """,  # noqa: E501
    },
    lines=(
        ("experiments/urls.py", '    "pairwise",', '    "journal",\n'),
        ("experiments/api/interface.py", '    *("reviews.api", "pairwise.api"', '    "journal.api",\n'),
        ("experiments/display/layout.py", '    MenuEntry("compare"', '    MenuEntry("journal", "Journal", "j"),\n'),
        ("CONTRIBUTING.md", "◄─ maintenance ◄─ management", "◄─ journal "),
        (
            "README.md",
            "  api/                      what all",
            "  journal/                  the latest event of each run\n",
        ),
        ("tests/support/addresses.py", '    "run-events": "/runs', '    "journal": "/journal/",\n'),
        ("tests/api/test_parity.py", '    "compare": "compare_runs",', '    "journal": "list_journal",\n'),
    ),
    test=(
        "tests/journal/test_journal.py",
        '''
        """The page and the operation show the same, to members alone."""

        from experiments.core import transcript
        from tests.support.builders import make_run
        from workers.record.events import Note


        def test_page_and_script_see_the_latest_event_of_each_run(as_owner, owner):
            transcript.append(make_run(owner).pk, "note", Note(1, "Ada", "Look."))
            page = as_owner.get("/journal/").content.decode()
            assert "What does it respond to?" in page
            assert 'href="/journal/"' in page
            assert as_owner.get("/api/v1/journal").json() == [{"run": 1, "kind": "note"}]


        def test_a_stranger_finds_nothing(client, stranger):
            client.force_login(stranger)
            assert client.get("/journal/").status_code == 404
        ''',
    ),
    accepted=(
        "tests/api/test_access.py::test_access_is_asked_in_the_first_line[-list_journal]",
        "tests/api/test_access.py::test_a_stranger_finds_nothing",
        "tests/api/test_parity.py",
        "tests/house/test_access.py::test_every_address_is_in_a_table_here",
        "tests/house/test_access.py::test_an_anonymous_reader_is_sent_to_the_sign_in_page",
        "tests/house/test_access.py::test_a_stranger_finds_nothing",
        "tests/house/test_imports.py::test_a_room_imports_only_what_stands_before_it",
        "tests/house/test_templates.py::test_a_template_compiles_and_keeps_to_the_policy[journal/index.html]",
    ),
)
