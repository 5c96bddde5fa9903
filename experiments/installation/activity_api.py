"""API of the team's weekly activity."""

from __future__ import annotations

from datetime import date

from django.http import HttpRequest
from ninja import Field, Schema

from experiments.api.auth import authorize
from experiments.core.access import role_of
from experiments.installation.activity import read_activity
from experiments.installation.api import router
from experiments.models import Role


class TallyOut(Schema):
    runs: int = Field(description="that came to a conclusion or to a limit")
    cost: float = Field(description="US dollars of all runs that ended, as far as prices are known")
    tokens: int
    reviews: int
    unpriced: int = Field(description="runs whose price is not known")


class WeekOut(TallyOut):
    start: date = Field(description="its Monday, UTC")


class PersonActivityOut(TallyOut):
    name: str


class ActivityOut(Schema):
    """Twelve weeks, the current one last."""

    weeks: list[WeekOut]
    people: list[PersonActivityOut] = Field(
        description="what each did in these weeks; researchers are told, viewers are not"
    )


@router.get("/activity", response=ActivityOut, summary="Read the team's activity")
def read_team_activity(request: HttpRequest) -> ActivityOut:
    """Runs, their cost and tokens, and reviews by week."""
    user = authorize(request)
    found = read_activity()
    told = (role_of(user) or Role.VIEWER) >= Role.RESEARCHER
    return ActivityOut(
        weeks=[
            WeekOut.model_validate({"start": start.date(), **vars(week)})
            for start, week in zip(found.starts, found.weeks, strict=True)
        ],
        people=[PersonActivityOut.model_validate({"name": name, **vars(done)}) for name, done in found.people.values()]
        if told
        else [],
    )
