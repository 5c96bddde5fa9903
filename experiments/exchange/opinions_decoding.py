"""Decode people.json into typed records and check their limits before anything is saved. Errors are `ExchangeError`s
that name the field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.exchange import run_decoding
from experiments.exchange.opinions import SCORES, Said, Tagged
from experiments.exchange.run_decoding import check_count, check_time, decode_list, shorten_value, unlike
from experiments.exchange.safe_zip import ExchangeError
from experiments.models.comment import NEARBY_CHARS, NEEDS, QUOTE_CHARS, TEXT_CHARS
from experiments.models.review import LABEL_CHARS, NOTE_CHARS, ReviewVerdict
from experiments.reviews import rubric

MAX_THREADS, MAX_COMMENTS, MAX_WORDINGS, MAX_MENTIONS = 2_000, 500, 100, 20
MAX_SAID = 10_000
"""Maximum number of comments in all threads: search stores a row for each."""
MAX_REVIEWS, MAX_TAGGED = 1_000, 10_000
NAME_CHARS = 310

Json = Mapping[str, Any]


def decode_opinions(data: Json) -> Said:
    """Decode the whole file. Raises ExchangeError."""
    found = decode_list(data.get("tags", []), _decode_tagged, "people.json: tags", MAX_TAGGED)
    if (count := sum(len(each.tags) for each in found)) > MAX_TAGGED:
        raise ExchangeError(
            f"people.json puts {count:,} tags to experiments and images, at most {MAX_TAGGED:,} are possible."
        )
    threads = decode_list(data.get("threads", []), thread, "people.json: threads", MAX_THREADS)
    if (count := sum(len(each["comments"]) for each in threads)) > MAX_SAID:
        raise ExchangeError(f"people.json holds {count:,} comments, at most {MAX_SAID:,} are possible.")
    return Said(
        threads,
        decode_list(data.get("reviews", []), review, "people.json: reviews", MAX_REVIEWS),
        decode_list(data.get("finals", []), final, "people.json: finals", MAX_REVIEWS),
        found,
    )


def thread(given: Any) -> dict[str, Any]:
    place = fields(given, "a thread")
    on = place.get("on")
    if not isinstance(on, str) or on not in NEEDS:
        raise ExchangeError(f"people.json: a thread is on {shorten_value(on)}: choose from {', '.join(NEEDS)}.")
    numbers = {name: number(place, name) for name in ("seq", "experiment", "position")}
    resolved = time(place, "resolved")
    return {
        **numbers,
        **texts(place, quote=QUOTE_CHARS, before=NEARBY_CHARS, after=NEARBY_CHARS),
        "on": on,
        "place": check_count(place.get("place"), "people.json: place of a thread"),
        "created": _require_time(place, "created"),
        "resolved": resolved,
        "resolved_by": text(place, "resolved_by", NAME_CHARS) if resolved else "",
        "comments": decode_list(place.get("comments"), comment, "people.json: comments of a thread", MAX_COMMENTS),
    }


def comment(given: Any) -> dict[str, Any]:
    said = fields(given, "a comment")
    return {
        **texts(said, author=NAME_CHARS, text=TEXT_CHARS),
        "created": _require_time(said, "created"),
        "edited": time(said, "edited"),
        "deleted": time(said, "deleted"),
        "mentions": decode_list(said.get("mentions"), name, "people.json: mentions of a comment", MAX_MENTIONS),
        "wordings": decode_list(said.get("wordings"), wording, "people.json: wordings of a comment", MAX_WORDINGS),
    }


def wording(given: Any) -> dict[str, Any]:
    said = fields(given, "a wording")
    return {"text": text(said, "text", TEXT_CHARS), "replaced": _require_time(said, "replaced")}


def review(given: Any) -> dict[str, Any]:
    said = fields(given, "a review")
    scores = fields(said.get("scores"), "the scores of a review")
    return {
        **texts(said, queue=NAME_CHARS, reviewer=NAME_CHARS, corrected_label=LABEL_CHARS, note=NOTE_CHARS),
        "blind": said.get("blind") is True,
        "additional": said.get("additional") is True,
        "scores": {name: score(scores.get(name), name) for name in SCORES},
        "verdict": verdict(said),
        "submitted": time(said, "submitted"),
    }


def final(given: Any) -> dict[str, Any]:
    said = fields(given, "a final verdict")
    return {
        **texts(said, queue=NAME_CHARS, adjudicator=NAME_CHARS, corrected_label=LABEL_CHARS, reason=NOTE_CHARS),
        "verdict": verdict(said),
        "created": _require_time(said, "created"),
    }


def verdict(said: Json) -> str:
    found = said.get("verdict")
    if not isinstance(found, str) or found not in ReviewVerdict.values:
        raise ExchangeError(
            f"people.json: a verdict is {shorten_value(found)}: choose from {', '.join(ReviewVerdict.values)}."
        )
    return found


def score(given: Any, what: str) -> int | None:
    if given is not None and (isinstance(given, bool | float) or given not in rubric.SCORES):
        raise unlike(f"people.json: {what}", given, "no score from 1 to 5")
    return given


def _decode_tagged(given: Any) -> Tagged:
    said = fields(given, "tags")
    experiment = check_count(said.get("experiment"), "people.json: the experiment of tags")
    return Tagged(experiment, number(said, "position"), run_decoding.tags(said.get("tags"), "people.json"))


# --- fields -----------------------------------------------------------------------------------------------


def fields(given: Any, what: str) -> Json:
    if not isinstance(given, dict):
        raise ExchangeError(f"people.json: {shorten_value(given)} is not {what}.")
    return given


def texts(said: Json, **most: int) -> dict[str, str]:
    """Return several texts by name, each with its maximum length."""
    return {key: text(said, key, longest) for key, longest in most.items()}


def text(said: Json, key: str, most: int) -> str:
    found = said.get(key)
    if not isinstance(found, str) or len(found) > most:
        raise unlike(f"people.json: {key}", found, f"no text of at most {most:,} characters")
    return found


def name(given: Any) -> str:
    return text({"a name": given}, "a name", NAME_CHARS)


def number(said: Json, key: str) -> int | None:
    return None if said.get(key) is None else check_count(said[key], f"people.json: {key}")


def time(said: Json, key: str) -> str | None:
    return None if said.get(key) is None else _require_time(said, key)


def _require_time(said: Json, key: str) -> str:
    """Check a time and return it as written."""
    check_time(said.get(key), f"people.json: {key}")
    return str(said[key])
