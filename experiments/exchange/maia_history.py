"""Convert published MAIA transcripts (history.json, in OpenAI's message format) to runs.

Messages before the first reply are the agent's instructions. Each reply is parsed by the agent's own grammar. Messages
after a reply with a program are its result: images with the activation that the neighbouring text names. Such files
have no times, seeds and costs; these stay empty. The form gives model, layer and unit.
"""

from __future__ import annotations

import hashlib
import tempfile
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils import timezone

from experiments.core.transcript import ImportedEvent, strip_unstorable
from experiments.exchange import import_bundle, run_record
from experiments.exchange.decoding import shorten_value
from experiments.exchange.image_services import ImageServices, Progress, ignore_progress
from experiments.exchange.import_bundle import ImportSource, Taken
from experiments.exchange.match_captions import pair_images
from experiments.exchange.safe_zip import IMAGE, ExchangeError, check_pixels, check_size, parse_json
from experiments.exchange.validate_bundle import list_image_keys
from experiments.models import Image, ImportedRun, ImportKind, Layer, Run
from workers import registry
from workers.record import tasks
from workers.record.decoding import decode
from workers.record.limits import QUESTION_CHARS
from workers.record.origins import Origin
from workers.record.statuses import Status

MAX_TRANSCRIPT_BYTES = 256 << 20
"""Maximum bytes of a transcript, which is read at once."""
MESSAGES = 2_000
ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
BACKBONE = "published"
Json = Mapping[str, Any]


@dataclass(frozen=True)
class HistoryMessage:
    """A message: texts and keys of images in reading order."""

    role: str
    parts: Sequence[tuple[str, str]]
    """("text", words) or ("image", key)."""

    @property
    def text(self) -> str:
        return "\n".join(words for kind, words in self.parts if kind == "text").strip()


@dataclass
class HistoryImages:
    """Images of the file, each decoded once. They wait in a folder until the run is saved."""

    laboratory: ImageServices
    waiting: Path
    rows: dict[str, Image] = field(default_factory=dict)
    pixels: int = 0

    def key(self, url: Any, where: str) -> str:
        """Decode an image and return its key. Raises ExchangeError if it is not an inline image."""
        head, comma, data = url.partition(",") if isinstance(url, str) else ("", "", "")
        if not head.startswith("data:image/") or not head.endswith(";base64") or not comma:
            raise ExchangeError(
                f"{where}: the image is {shorten_value(url)}. Only those within the file, as data URLs, are read."
            )
        # Before decoding, which would allocate the memory; base64 uses 4 characters for 3 bytes
        if len(data) > IMAGE * 4 // 3:
            raise ExchangeError(f"{where}: the image is larger than {IMAGE >> 20} MB.")
        try:
            decoded = self.laboratory.decode(b64decode(data, validate=True))
        except ValueError as error:
            raise ExchangeError(f"{where}: the image cannot be taken: {error}") from None
        self.pixels += decoded.width * decoded.height
        check_pixels(self.pixels)
        (self.waiting / decoded.key).write_bytes(decoded.png)
        self.rows[decoded.key] = Image(
            key=decoded.key, width=decoded.width, height=decoded.height, origin=Origin.EXTERNAL
        )
        return decoded.key


def import_history(
    path: Path, source: ImportSource, options: Json, laboratory: ImageServices, progress: Progress = ignore_progress
) -> Taken:
    """Import the run of a transcript, or return the one imported from this file before. Raises ExchangeError, after
    which nothing is saved."""
    check_size(path)
    if path.stat().st_size > MAX_TRANSCRIPT_BYTES:
        raise ExchangeError(f"A transcript may have {MAX_TRANSCRIPT_BYTES >> 20} MB.")
    data = path.read_bytes()
    about = {name: str(options.get(name, "")) for name in ("model", "layer", "unit")}
    # The same transcript may describe another unit, so model, layer and unit are part of its identity
    identity = hashlib.sha256(run_record.dump_json(about) + data).hexdigest()
    if imported_run := ImportedRun.objects.select_related("run").filter(identity=identity).first():
        return Taken(imported_run.run, known=True)
    with tempfile.TemporaryDirectory(prefix="maia-import-") as waiting:
        pictures = HistoryImages(laboratory, Path(waiting))
        turns = list(_turns_of(strip_unstorable(parse_json(data, source.name)), pictures, progress))
        run = run_of(turns, source, options)
        steps = list(_steps_of(turns, run, laboratory))
        rows = list(pictures.rows.values())
        save_events = import_bundle.replay_events(run, iter(steps))
        with import_bundle.store_images(rows, Path(waiting)), transaction.atomic():
            import_bundle.save_images(rows)
            import_bundle.save(run, save_events)
            ImportedRun.objects.create(
                run=run, upload=source.row, kind=ImportKind.HISTORY, name=source.name[:200], identity=identity
            )
    return Taken(run, known=False, left=describe_left_out(turns, steps))


def describe_left_out(turns: Sequence[HistoryMessage], steps: Sequence[ImportedEvent]) -> str:
    """Describe the images that the run lacks, "" if it has all."""
    there = sum(kind == "image" for turn in turns for kind, _ in turn.parts)
    kept = sum(len(list_image_keys(step.payload)) for step in steps)
    if there == kept:
        return ""
    return f"Of its {there:,} images {there - kept:,} are left out: the transcript tells no activation of them."


def _turns_of(data: Any, pictures: HistoryImages, progress: Progress) -> Iterator[HistoryMessage]:
    """Yield the messages of a file. Raises ExchangeError naming the bad message."""
    messages = data.get("messages", data.get("history")) if isinstance(data, dict) else data
    if not isinstance(messages, list) or not messages:
        hint = " If it holds labels of units, import it as labels." if isinstance(data, dict) else ""
        raise ExchangeError(f"A transcript is a list of messages, each with a role and a content.{hint}")
    if len(messages) > MESSAGES:
        raise ExchangeError(f"The transcript has {len(messages):,} messages, at most {MESSAGES:,} are possible.")
    for number, message in enumerate(messages, 1):
        progress("Reading messages", number, len(messages) + 1)
        where = f"Message {number}"
        if not isinstance(message, dict) or message.get("role") not in list(ROLES):
            raise ExchangeError(f"{where} has no role such as user or assistant.")
        yield HistoryMessage(message["role"], list(_parts_of(message.get("content"), where, pictures)))


def _parts_of(content: Any, where: str, pictures: HistoryImages) -> Iterator[tuple[str, str]]:
    if content is None or isinstance(content, str):
        yield "text", content or ""
        return
    if not isinstance(content, list):
        raise ExchangeError(f"{where}: its content is neither text nor a list of parts.")
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else "text" if isinstance(part, str) else None
        if kind in ("text", "input_text", "output_text"):
            text = part if isinstance(part, str) else part.get("text")
            if not isinstance(text, str):
                raise ExchangeError(f"{where}: a text is {shorten_value(text)}.")
            yield "text", text
        elif kind in ("image_url", "input_image"):
            url = part.get("image_url")
            yield "image", pictures.key(url.get("url") if isinstance(url, dict) else url, where)
        else:
            raise ExchangeError(
                f"{where}: {shorten_value(kind)} is no kind of part that is read: text and image_url are."
            )


def run_of(turns: Sequence[HistoryMessage], source: ImportSource, options: Json) -> Run:
    """Return the unsaved row. Raises ExchangeError for an invalid system or a transcript without a reply."""
    if not any(turn.role == "assistant" for turn in turns):
        raise ExchangeError("No message is the assistant's: there is no run in this file.")
    system = {name: options.get(name, "") for name in ("model", "layer", "unit")}
    # Transcripts do not contain the question
    asked = str(options.get("question") or "").strip() or f"Imported from {source.name}"
    # The kind of system follows from the layer; a plain unit if the layer is unknown
    known = Layer.objects.filter(model__name=system["model"], name=system["layer"]).first()
    fields = (
        dict.fromkeys(run_record.ASKED)
        | system
        | {
            "question": asked[:QUESTION_CHARS],
            "task": str(options.get("task") or tasks.DEFAULT_TASK),
            "system_kind": (registry.system_of(known.kind) if known else "unit"),
            "options": {},
            "limits": {},
            "toolset": BACKBONE,
            "backbone": BACKBONE,
            "backbone_model": str(options.get("backbone_model") or "")[:200],
            "seed": 0,
        }
    )
    run = run_record.run_from({"run": fields}, source.by)
    run.created, run.status = timezone.now(), Status.QUEUED
    return run


def _steps_of(turns: Sequence[HistoryMessage], run: Run, laboratory: ImageServices) -> Iterator[ImportedEvent]:
    """Yield the events of the transcript."""
    first = next(place for place, turn in enumerate(turns) if turn.role == "assistant")
    now, number, replies = run.created, 0, 0
    open_program, conclusion = False, None

    def step(kind: str, **payload: Any) -> ImportedEvent:
        return ImportedEvent(kind, decode(kind, payload), now)

    yield step("started", **_make_start(turns[:first], run))
    # Consecutive messages of one side belong together: replies, then the results of their last program
    for of_agent, some in groupby(turns[first:], key=lambda turn: turn.role == "assistant"):
        group = list(some)
        for turn in group if of_agent else ():
            replies += 1
            said = laboratory.parse(turn.text)
            author = run.backbone_model or "Agent of the MAIA transcript"
            yield step("reply", round=replies, author=author, text=turn.text, **said)
            open_program, conclusion = said["code"] is not None, said["conclusion"]
            if open_program:
                number += 1
                yield step("experiment", round=replies, number=number, code=said["code"])
        if not of_agent and open_program:
            yield step("result", **result(group, replies, number))
            open_program = False
        elif not of_agent:
            for turn in group:
                if turn.text:
                    yield step("reminder", round=replies, reason="continue", text=turn.text)
    if conclusion and not open_program:
        yield step("concluded", conclusion=conclusion)
    else:
        why = "with a program whose result is not in it" if open_program else "without a conclusion"
        yield step("cancelled", reason=f"The transcript ends {why}.")


def _make_start(turns: Sequence[HistoryMessage], run: Run) -> dict[str, Any]:
    """Return what the agent was told before its first reply."""
    system = {"kind": run.system_kind, "model": run.model, "layer": run.layer, "unit": run.unit}
    texts = {"instructions": "\n\n".join(turn.text for turn in turns if turn.role in {"system", "developer"})}
    texts["assignment"] = "\n\n".join(turn.text for turn in turns if turn.role in {"user", "tool"})
    asked = {"question": run.question, "task": run.task, "system": system, "backbone": run.backbone, "seed": 0}
    limits = dict.fromkeys(("rounds", "tokens", "cost", "seconds"))
    return {**asked, **texts, "limits": limits, "reference": "", "versions": {}}


def result(turns: Sequence[HistoryMessage], round_number: int, number: int) -> dict[str, Any]:
    """Return the result of a program: images with an activation, and the remaining text."""
    observations, words = pair_images([turn.parts for turn in turns])
    # Transcripts record a failed program only by its printed traceback
    failed = "Traceback (most recent call last)" in words
    entries = [{"observations": observations, "text": "" if failed else words}] if observations or words else []
    status = "program_error" if failed else "ok"
    ended = {"round": round_number, "number": number, "status": status, "entries": entries}
    return ended | {"error": words if failed else ""}
