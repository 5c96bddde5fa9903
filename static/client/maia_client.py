"""The Python client of MAIA Web: ask about a unit, wait for the answer, look at its images and figures.

One file that needs `requests`, and pandas for tables of observations. Copy it beside your script or notebook:

    from maia_client import Maia
    maia = Maia("https://maia.example.org", token="maia_…")  # or the variables MAIA_URL and MAIA_TOKEN
    run = maia.ask("What does unit 7 respond to?", model="toybox", layer="layer4", unit=7).wait()
    print(run.description, run.labels)
    run.images()        # in a notebook: the images; run.observations(): a table; run.check(): the figures of its labels

Everything that goes wrong is a MaiaError. Rows are dicts, with the names that the API has.
"""

from __future__ import annotations

import base64
import html
import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import requests

__version__ = "1.0.0"
__all__ = ["Maia", "MaiaError", "MaiaImages", "MaiaRun"]

Row = dict[str, Any]
TIMEOUT = (10.0, 60.0)
"""Seconds to connect, and between two pieces of an answer."""
MAX_SECONDS, MAX_BYTES = 300.0, 64 * 2**20
"""Of one answer."""
TRIES, MAX_PAUSE = 5, 120.0
"""How often a request is sent, and the longest pause, in seconds, that the server may ask for in between."""
PAGE_SIZE, MAX_REDIRECTS, BAR_WIDTH = 200, 5, 24
POLL_SECONDS = (0.5, 5.0)
"""Between two looks at what runs: the first, and the longest."""
FAILED = frozenset({"failed", "cancelled"})
ENDED = FAILED | {"concluded", "limit_reached"}
UNCHECKED = frozenset({"failed", "untestable"})
CHECKED = UNCHECKED | {"done", "unfinished"}
MEDIA_TYPES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"RIFF", "image/webp"), (b"\xff\xd8\xff", "image/jpeg"))
"""First bytes of what is shown as an image."""
COLUMNS = (
    *("id", "run", "experiment", "position", "model", "layer", "unit", "title", "activation", "claimed", "measured"),
    *("differs", "change", "origin", "prompt", "seed", "parameters", "image", "masked", "map", "original"),
)
"""Of a table of observations."""


class MaiaError(Exception):
    """What went wrong: `title` and `detail` in words, `errors` by field, `status` of the answer; 0 without one."""

    def __init__(
        self, title: str, detail: str = "", *, status: int = 0, errors: Mapping[str, str] | None = None
    ) -> None:
        self.title, self.detail, self.status, self.errors = _plain(title), _plain(detail), status, dict(errors or {})
        head = ": ".join(each for each in (self.title, self.detail) if each)
        lines = [f"  {_plain(field)}: {_plain(words)}" for field, words in self.errors.items()]
        super().__init__("\n".join([f"{head} ({status})" if status else head, *lines]))


class _Bearer(requests.auth.AuthBase):
    """Sends the token. It is kept out of headers and of what is printed; ~/.netrc is not read in its place."""

    __slots__ = ("_token",)

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request

    def hide(self, words: str) -> str:
        return words.replace(self._token, "…")


class _Connection:
    """Requests to one installation: timeouts, repetition, bounds, and errors in words."""

    def __init__(self, url: str, token: str) -> None:
        self.url = _parse_address(url)
        if not token.isascii() or not token.isprintable() or " " in token or not token:
            raise MaiaError("The token is odd", "Copy it whole from the page Settings, Tokens; or set MAIA_TOKEN.")
        self.auth = _Bearer(token)
        self.session = requests.Session()
        self.session.headers["User-Agent"] = f"maia-client/{__version__}"

    def get(self, path: str, **params: Any) -> Any:
        """The JSON under this path."""
        return self._parse(self.send("GET", path, {k: v for k, v in params.items() if v is not None}))

    def post(self, path: str, body: Any = None, key: str = "", *, repeatable: bool = True) -> Any:
        """The JSON that answers. `repeatable`: it may arrive twice and does the same as once."""
        return self._parse(self.send("POST", path, body=body, key=key, repeatable=repeatable))

    def pages(self, path: str, most: int | None = None, **params: Any) -> Iterator[Row]:
        """The items of a list, page by page as they are needed; at most so many."""
        left, cursor, known = most if most is not None else sys.maxsize, None, set()
        while left > 0 and cursor not in known:
            known.add(cursor)
            page = self.get(path, **params, cursor=cursor, limit=min(left, PAGE_SIZE))
            yield from page["items"][:left]
            left, cursor = left - len(page["items"]), page["next"]
            if cursor is None:
                return

    def send(
        self, method: str, path: str, params: Row | None = None, *, body: Any = None, key: str = "",
        repeatable: bool = True,
    ) -> bytes:  # fmt: skip
        """The answer's body. Sends again what may be sent twice, after a lost connection and when told to wait."""
        address = f"{self.url}/api/v1{path}"
        headers = {"Accept": "application/json", **({"Idempotency-Key": key} if key else {})}
        asked = {"params": params, "json": body, "headers": headers}
        for attempt in range(1, TRIES + 1):
            last = attempt == TRIES
            try:
                status, retry_after, data = self._exchange(method, address, asked)
            except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError) as error:
                is_certificate = isinstance(error, requests.exceptions.SSLError)
                if last or not repeatable or is_certificate:
                    raise self._unreachable(error) from None
                pause = 0.2 * 2**attempt
            except requests.RequestException as error:
                raise self._unreachable(error) from None
            else:
                if status < 400:
                    return data
                pause = _parse_pause(retry_after, 2.0**attempt)
                may_wait = status == 429 or (status == 503 and repeatable)
                if last or not may_wait or pause > MAX_PAUSE:
                    raise self._problem(status, data)
            time.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _exchange(self, method: str, address: str, asked: Row) -> tuple[int, str, bytes]:
        """Status, Retry-After and body of the answer; redirects are followed within this installation alone."""
        for _ in range(MAX_REDIRECTS):
            with self.session.request(
                method, address, auth=self.auth, timeout=TIMEOUT, allow_redirects=False, stream=True, **asked
            ) as answer:
                if not answer.is_redirect:
                    return answer.status_code, answer.headers.get("Retry-After", ""), self._read(answer)
                target = requests.compat.urljoin(address, answer.headers["Location"])
            if _origin(target) != _origin(self.url) or method != "GET":
                raise MaiaError(
                    "The server points elsewhere",
                    f"{self.url} sends on to {_origin(target)}, and the token stays here. If that is the address "
                    "of MAIA Web, give it to Maia(…) or MAIA_URL, with https:// where the server has it.",
                )
            address, asked = target, asked | {"params": None}
        raise MaiaError("The server goes in circles", f"{self.url} redirected {MAX_REDIRECTS} times.")

    def _read(self, answer: requests.Response) -> bytes:
        """The body, within bounds of size and time."""
        data, end = bytearray(), time.monotonic() + MAX_SECONDS
        for piece in answer.iter_content(64 * 1024):
            data += piece
            if len(data) > MAX_BYTES or time.monotonic() > end:
                bounds = f"{MAX_BYTES // 2**20} MiB or {MAX_SECONDS:.0f} s"
                raise MaiaError("The answer is too long", f"{self.url} sent over {bounds}; ask for less at a time.")
        return bytes(data)

    def _parse(self, data: bytes) -> Any:
        try:
            return json.loads(data)
        except ValueError:
            words = f"{self.url} answered no JSON. Is it the address of MAIA Web, as the API page shows it?"
            raise MaiaError("This is not MAIA Web", words) from None

    def _problem(self, status: int, data: bytes) -> MaiaError:
        """The problem of the answer, or what its status says where there is none."""
        try:
            found = json.loads(data)
            wrong = {str(each["field"]): self.auth.hide(str(each["message"])) for each in found.get("errors", ())}
            title, detail = str(found["title"]), self.auth.hide(str(found.get("detail", "")))
        except (ValueError, TypeError, KeyError, AttributeError):
            return MaiaError("The server refused", f"{self.url} answered without a reason.", status=status)
        return MaiaError(title, detail, status=status, errors=wrong)

    def _unreachable(self, error: Exception) -> MaiaError:
        if isinstance(error, requests.exceptions.SSLError):
            remedy = "its certificate is not trusted, or it speaks http:// alone. REQUESTS_CA_BUNDLE names your own CA."
        else:
            remedy = "is it running, and is the address the one of your browser, with https:// where it has that?"
        return MaiaError(f"{self.url} cannot be reached", f"{remedy} ({type(error).__name__})")


class Maia:
    """An installation of MAIA Web, by its address and a token of yours from the page Settings, Tokens."""

    def __init__(self, url: str = "", token: str = "") -> None:
        self._http = _Connection(url or os.environ.get("MAIA_URL", ""), token or os.environ.get("MAIA_TOKEN", ""))

    def __repr__(self) -> str:
        return f"Maia({self._http.url!r})"

    def ask(self, question: str, *, key: str = "", **fields: Any) -> MaiaRun:
        """Start a run: `model`, `layer`, `unit`, `backbone` and all else that POST /runs takes. Needs the scope to run.

        The same `key` with the same question makes one run, however often the script is executed within a day.
        """
        body = {"question": question, **{name: value for name, value in fields.items() if value is not None}}
        return MaiaRun(self, self._http.post("/runs", body, key or str(uuid.uuid4())))

    def run(self, number: int) -> MaiaRun:
        """A run by its number."""
        return MaiaRun(self, self._http.get(f"/runs/{int(number)}"))

    def runs(self, limit: int | None = None, **filters: Any) -> Iterator[MaiaRun]:
        """Runs, the newest first, by the filters of GET /runs: model, layer, unit, status, q, label, tag, …"""
        return (MaiaRun(self, row) for row in self._http.pages("/runs", limit, **filters))

    def units(self, limit: int | None = None, **filters: Any) -> Iterator[Row]:
        """Units that were asked about, by model, layer, number, label, labelled."""
        return self._http.pages("/units", limit, **filters)

    def observations(self, limit: int | None = None, **filters: Any) -> Iterator[Row]:
        """Images that runs logged, by the filters of GET /observations: run, origin, low, high, sort, …"""
        return self._http.pages("/observations", limit, **filters)

    def exemplars(self, model: str, layer: str, unit: int, dataset: str, *, timeout: float | None = None) -> MaiaImages:
        """The images of the dataset that activate the unit most. Measured first where they were not yet."""
        http, place = self._http, f"/layers/{self._find_layer(model, layer)}/units/{int(unit)}"

        def read() -> Row:
            profiles = http.get(place)["profiles"]
            return next((each for each in profiles if each["dataset"] == dataset), {})

        if not (found := read()).get("written"):
            found = http.post(f"{place}/exemplars", {"dataset": dataset})
            found = _wait(found, read, lambda row: bool(row["written"] or row["problem"]), _name_exemplars, timeout)
        if found["problem"]:
            raise MaiaError(f"Unit {unit} could not be measured", found["problem"])
        return MaiaImages(http, http.pages(f"{place}/exemplars", dataset=dataset))

    def _find_layer(self, model: str, layer: str) -> int:
        models = list(self._http.pages("/models", 1, name=model))
        layers = list(self._http.pages(f"/models/{int(models[0]['id'])}/layers")) if models else []
        for each in layers:
            if each["name"] == layer:
                return int(each["id"])
        there = ", ".join(each["name"] for each in layers) or "none; the page Units lists models"
        raise MaiaError(f"There is no layer {layer!r} of {model!r}", f"Layers there: {there}.")


class MaiaRun:
    """A run. Its fields are attributes, as `run.status`; `data` has all of them as they were when they were read."""

    def __init__(self, maia: Maia, data: Row) -> None:
        self._maia, self.data = maia, data
        self.id = int(data["id"])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self.__dict__.get("data", {}):
            raise AttributeError(f"A run has no field {name!r}.")
        return self.data[name]

    def __repr__(self) -> str:
        return f"<run {self.id} of {_plain(str(self.data['system']))}: {self.data['status']}>"

    @property
    def description(self) -> str:
        """What it concluded; empty before it has."""
        return str(self.data["conclusion"]["description"])

    @property
    def labels(self) -> list[str]:
        return list(self.data["conclusion"]["labels"])

    def refresh(self) -> MaiaRun:
        """Read it anew."""
        self.data = self._maia._http.get(f"/runs/{self.id}")
        return self

    def wait(self, timeout: float | None = None) -> MaiaRun:
        """Wait for its end, with a progress bar. Raises MaiaError if it failed, was cancelled, or after `timeout` s.

        Ctrl+C stops the waiting alone: the run goes on.
        """
        try:
            _wait(self.data, lambda: self.refresh().data, lambda row: row["status"] in ENDED, _draw_run, timeout)
        except KeyboardInterrupt:
            name = f"maia.run({self.id})"
            print(f"Run {self.id} goes on: {name}.wait() waits again, {name}.stop() ends it.", file=sys.stderr)
            raise
        if self.data["status"] in FAILED:
            reason = self.data["reason"] or "It gave no reason; its page tells what it did."
            raise MaiaError(f"Run {self.id} is {self.data['status']}", reason)
        return self

    def stop(self) -> MaiaRun:
        """Stop it, after the step under way."""
        self.data = self._maia._http.post(f"/runs/{self.id}/stop", repeatable=False)
        return self

    def experiments(self) -> list[Row]:
        """Its programs in their order: code, output, error, seconds."""
        return list(self._maia._http.pages("/experiments", run=self.id, order="oldest"))

    def observations(self, limit: int | None = None, **filters: Any) -> Any:
        """A pandas DataFrame of the images that it logged, with the API's names as columns."""
        try:
            import pandas
        except ImportError:
            remedy = "Install it, `pip install pandas`, or take dicts: maia.observations(run=…)."
            raise MaiaError("A table needs pandas", remedy) from None
        return pandas.DataFrame(list(self._maia.observations(limit, **filters, run=self.id)), columns=list(COLUMNS))

    def images(self, limit: int = 24, *, sort: str = "strongest", masked: bool = False) -> MaiaImages:
        """Images that it logged, with their activations; a notebook shows them. `masked`: what drives the unit."""
        return MaiaImages(self._maia._http, self._maia.observations(limit, run=self.id, sort=sort), masked=masked)

    def check(self, timeout: float | None = None) -> Row:
        """The figures of its labels on images that the agent never saw: pearson, auprc, with intervals. Waits for them.

        Raises MaiaError where there is no label to check, or it cannot be checked.
        """
        http = self._maia._http
        row = http.post("/checks", {"run": self.id})
        path = f"/checks/{int(row['id'])}"
        row = _wait(row, lambda: http.get(path), lambda row: row["status"] in CHECKED, _name_check, timeout)
        if row["status"] in UNCHECKED:
            raise MaiaError(f"The label check is {row['status']}", row["reason"])
        return row

    def checks(self) -> list[Row]:
        """All checks of what it concluded, the newest first; none is asked for."""
        return list(self._maia._http.pages("/checks", run=self.id))


class MaiaImages(Sequence[Row]):
    """Images with their activations: rows by index, files by `png` and `save`, and pictures where a notebook shows it."""

    def __init__(self, http: _Connection, rows: Iterator[Row], *, masked: bool = False) -> None:
        self._http, self._rows, self._field = http, list(rows), "masked" if masked else "image"

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __repr__(self) -> str:
        return f"<{len(self)} images>"

    def _key(self, row: Row) -> str:
        return str(row.get(self._field) or row["image"])

    def png(self, index: int) -> bytes:
        """The file of one."""
        return self._http.send("GET", f"/images/{quote(self._key(self._rows[index]), safe='')}/file")

    def save(self, folder: str | Path) -> list[Path]:
        """Write all as PNG, numbered in their order."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        paths = [place / f"{number:03}.png" for number in range(len(self))]
        for number, path in enumerate(paths):
            path.write_bytes(self.png(number))
        return paths

    def _repr_html_(self) -> str:
        """The images inline, for notebooks: nothing is loaded from elsewhere, and every word is escaped."""
        figures = "".join(self._figure(row) for row in self._rows)
        return f'<div style="display:flex;flex-wrap:wrap;gap:8px">{figures}</div>'

    def _figure(self, row: Row) -> str:
        words = html.escape(str(row.get("title") or row.get("prompt") or ""))
        data = self._http.send("GET", f"/images/{quote(self._key(row), safe='')}/thumbnail", {"size": 160})
        media = next((media for start, media in MEDIA_TYPES if data.startswith(start)), "")
        source = f"data:{media};base64,{base64.b64encode(data).decode()}"
        picture = f'<img width="160" alt="{words}" src="{source}">' if media else "<em>no image</em>"
        caption = f"<figcaption><b>{float(row['activation']):.3g}</b> {words}</figcaption>"
        return f'<figure style="margin:0;width:160px;font-size:12px">{picture}{caption}</figure>'


def _wait(
    row: Row, read: Callable[[], Row], ended: Callable[[Row], bool], draw: Callable[[Row], str], timeout: float | None
) -> Row:
    """The row once it has ended; how far it is stands on one line of stderr. Raises MaiaError when the time is up."""
    end = time.monotonic() + (timeout if timeout is not None else float("inf"))
    pause, drawn = POLL_SECONDS[0], ""
    try:
        while not ended(row):
            if (line := draw(row)) != drawn:
                print("\r" + line.ljust(len(drawn)), end="", file=sys.stderr, flush=True)
                drawn = line
            if time.monotonic() + pause > end:
                raise MaiaError("The time is up", f"It goes on by itself; wait again later. {line}")
            time.sleep(pause)
            pause = min(pause * 1.2, POLL_SECONDS[1])
            row = read()
        if drawn:
            print("\r" + draw(row).ljust(len(drawn)), end="", file=sys.stderr)
    finally:
        if drawn:
            print(file=sys.stderr, flush=True)
    return row


def _draw_run(row: Row) -> str:
    """One line: a bar of its rounds, and how it stands."""
    limit = (row.get("limits") or {}).get("rounds") or 0
    share = 1.0 if row["status"] in ENDED else min(row["rounds"] / limit, 1.0) if limit else 0.0
    bar = ("█" * round(share * BAR_WIDTH)).ljust(BAR_WIDTH, "░")
    rounds = f"{row['rounds']} of {limit:.0f} rounds" if limit else f"{row['rounds']} rounds"
    reason = f": {row['reason']}" if row["status"] in {"paused", "waiting"} and row["reason"] else ""
    done = f"{row['experiments']} experiments, {row['observations']} images"
    return _plain(f"Run {row['id']} {bar} {row['status']}, {rounds}, {done}{reason}")[:200]


def _name_check(row: Row) -> str:
    return _plain(f"Label check {row['id']}: {row['status']}")


def _name_exemplars(row: Row) -> str:
    return f"Exemplars: {'measured' if row.get('written') else 'being measured'}"


def _parse_address(url: str) -> str:
    """The address without what a browser shows after it. Raises MaiaError with the remedy for an odd one."""
    remedy = "Give the one of your browser, as https://maia.example.org, to Maia(…) or MAIA_URL."
    try:
        parts = urlsplit(url.strip())
        is_odd = parts.scheme not in {"http", "https"} or not parts.hostname or (parts.port or 1) < 1
    except ValueError:
        is_odd = True
    if is_odd:
        raise MaiaError(f"The address {url[:200]!r} is odd" if url else "No address is given", remedy)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise MaiaError("The address has more than a place", f"Leave out passwords, ? and #. {remedy}")
    return f"{parts.scheme}://{parts.netloc}{parts.path.partition('/api/v1')[0].rstrip('/')}"


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower()


def _parse_pause(retry_after: str, otherwise: float) -> float:
    """Seconds that the header asks to wait: a number or a date; `otherwise` where it is neither."""
    try:
        if retry_after.isdecimal():
            return float(retry_after)
        return max(0.0, (parsedate_to_datetime(retry_after) - datetime.now(timezone.utc)).total_seconds())
    except (ValueError, TypeError):
        return otherwise


def _plain(words: str) -> str:
    """On one line, without what would steer a terminal."""
    return "".join(each if each.isprintable() else " " for each in words)
