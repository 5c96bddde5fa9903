"""people.json as typed records, decoded and bounded before anything is saved. Raises `Refused` naming the field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.exchange import run_decoding
from experiments.exchange.opinions import SCORES, Said, Tagged
from experiments.exchange.run_decoding import every, shown, time_of, whole
from experiments.exchange.safe_zip import Refused
from experiments.models.comment import NEARBY_CHARS, NEEDS, QUOTE_CHARS, TEXT_CHARS
from experiments.models.review import LABEL_CHARS, NOTE_CHARS, ReviewVerdict
from experiments.reviews import rubric

MOST_THREADS, MOST_COMMENTS, MOST_WORDINGS, MOST_MENTIONS = 2_000, 500, 100, 20
MOST_SAID = 10_000
"""Comments of all threads together: search keeps a row of each."""
MOST_REVIEWS, MOST_TAGGED = 1_000, 10_000
NAME_CHARS = 310

Json = Mapping[str, Any]


def decoded(data: Json) -> Said:
    """Raises Refused."""
    found = every(data.get("tags", []), tagged, "tags", MOST_TAGGED)
    if (count := sum(len(each.tags) for each in found)) > MOST_TAGGED:
        raise Refused(
            f"people.json puts {count:,} tags to experiments and images, at most {MOST_TAGGED:,} are possible."
        )
    threads = every(data.get("threads", []), thread, "threads", MOST_THREADS)
    if (count := sum(len(each["comments"]) for each in threads)) > MOST_SAID:
        raise Refused(f"people.json holds {count:,} comments, at most {MOST_SAID:,} are possible.")
    return Said(
        threads,
        every(data.get("reviews", []), review, "reviews", MOST_REVIEWS),
        every(data.get("finals", []), final, "finals", MOST_REVIEWS),
        found,
    )


def thread(given: Any) -> dict[str, Any]:
    place = fields(given, "a thread")
    on = place.get("on")
    if not isinstance(on, str) or on not in NEEDS:
        raise Refused(f"people.json: a thread is on {shown(on)}: choose from {', '.join(NEEDS)}.")
    numbers = {name: number(place, name) for name in ("seq", "experiment", "position")}
    resolved = time(place, "resolved")
    return numbers | {
        "on": on,
        "quote": text(place, "quote", QUOTE_CHARS),
        "before": text(place, "before", NEARBY_CHARS),
        "after": text(place, "after", NEARBY_CHARS),
        "place": whole(place.get("place"), "place of a thread"),
        "created": needed(place, "created"),
        "resolved": resolved,
        "resolved_by": text(place, "resolved_by", NAME_CHARS) if resolved else "",
        "comments": every(place.get("comments"), comment, "comments of a thread", MOST_COMMENTS),
    }


def comment(given: Any) -> dict[str, Any]:
    said = fields(given, "a comment")
    return {
        "author": text(said, "author", NAME_CHARS),
        "text": text(said, "text", TEXT_CHARS),
        "created": needed(said, "created"),
        "edited": time(said, "edited"),
        "deleted": time(said, "deleted"),
        "mentions": every(said.get("mentions"), name, "mentions of a comment", MOST_MENTIONS),
        "wordings": every(said.get("wordings"), wording, "wordings of a comment", MOST_WORDINGS),
    }


def wording(given: Any) -> dict[str, Any]:
    said = fields(given, "a wording")
    return {"text": text(said, "text", TEXT_CHARS), "replaced": needed(said, "replaced")}


def review(given: Any) -> dict[str, Any]:
    said = fields(given, "a review")
    scores = fields(said.get("scores"), "the scores of a review")
    return {
        "queue": text(said, "queue", NAME_CHARS),
        "blind": said.get("blind") is True,
        "reviewer": text(said, "reviewer", NAME_CHARS),
        "additional": said.get("additional") is True,
        "scores": {name: score(scores.get(name), name) for name in SCORES},
        "verdict": verdict(said),
        "corrected_label": text(said, "corrected_label", LABEL_CHARS),
        "note": text(said, "note", NOTE_CHARS),
        "submitted": time(said, "submitted"),
    }


def final(given: Any) -> dict[str, Any]:
    said = fields(given, "a final verdict")
    return {
        "queue": text(said, "queue", NAME_CHARS),
        "adjudicator": text(said, "adjudicator", NAME_CHARS),
        "verdict": verdict(said),
        "corrected_label": text(said, "corrected_label", LABEL_CHARS),
        "reason": text(said, "reason", NOTE_CHARS),
        "created": needed(said, "created"),
    }


def verdict(said: Json) -> str:
    found = said.get("verdict")
    if not isinstance(found, str) or found not in ReviewVerdict.values:
        raise Refused(f"people.json: a verdict is {shown(found)}: choose from {', '.join(ReviewVerdict.values)}.")
    return found


def score(given: Any, what: str) -> int | None:
    if given is not None and (isinstance(given, bool | float) or given not in rubric.SCORES):
        raise Refused(f"people.json: {what} is {shown(given)}, and that is no score from 1 to 5.")
    return given


def tagged(given: Any) -> Tagged:
    said = fields(given, "tags")
    experiment = whole(said.get("experiment"), "the experiment of tags")
    return Tagged(experiment, number(said, "position"), run_decoding.tags(said.get("tags"), "people.json"))


# --- fields -----------------------------------------------------------------------------------------------


def fields(given: Any, what: str) -> Json:
    if not isinstance(given, dict):
        raise Refused(f"people.json: {shown(given)} is not {what}.")
    return given


def text(said: Json, key: str, most: int) -> str:
    found = said.get(key)
    if not isinstance(found, str) or len(found) > most:
        raise Refused(f"people.json: {key} is {shown(found)}, and that is no text of at most {most:,} characters.")
    return found


def name(given: Any) -> str:
    return text({"a name": given}, "a name", NAME_CHARS)


def number(said: Json, key: str) -> int | None:
    return None if said.get(key) is None else whole(said[key], key)


def time(said: Json, key: str) -> str | None:
    return None if said.get(key) is None else needed(said, key)


def needed(said: Json, key: str) -> str:
    """A time, as it was written."""
    time_of(said.get(key), f"people.json: {key}")
    return str(said[key])
