"""A filter: runs by their toolset, on the page, in the API and in exports."""

from __future__ import annotations

from tests.support.recipes.recipe import Recipe

FILTER = Recipe(
    lines=(
        (
            "experiments/runs/filters.py",
            '    Filter("tag", ',
            '    Filter("toolset", "Toolset", equal("toolset"), Words, "what the agent may use", hint="full"),\n',
        ),
    ),
    test=(
        "tests/runs/test_toolset_filter.py",
        '''
        """Runs are filtered by toolset on the page, in the API and in exports."""

        from experiments.exchange import export_query, export_words
        from experiments.models import ExportSubject
        from experiments.runs.filter_words import describe_filter
        from tests.support.builders import make_run


        def test_page_api_and_exports_find_the_same_runs(as_owner, owner):
            wanted = make_run(owner, toolset="exemplars")
            make_run(owner, toolset="full")
            page = as_owner.get("/runs/?toolset=exemplars")
            assert 'name="toolset"' in page.content.decode()
            assert page.context["rows"] == [wanted]
            answer = as_owner.get("/api/v1/runs?toolset=exemplars").json()
            assert [each["id"] for each in answer["items"]] == [wanted.pk]
            assert list(export_query.select_rows(ExportSubject.RUNS, "toolset=exemplars")) == [wanted]
            field = export_words.ExportForm(ExportSubject.RUNS, "csv", "")["toolset"]
            assert (field.label, field.field.widget.attrs["placeholder"]) == ("Toolset", "full")
            assert describe_filter("runs", {"toolset": "exemplars"}) == "Runs with toolset “exemplars”"
        ''',
    ),
    accepted=("tests/api/test_filters.py",),
)
