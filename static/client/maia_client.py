"""The Python client of MAIA Web: ask about a unit, wait for the answer, look at its images and figures.

One file that needs `requests`, and pandas for tables of observations. Copy it beside your script or notebook:

    from maia_client import Maia
    maia = Maia("https://maia.example.org", token="maia_…")  # or the variables MAIA_URL and MAIA_TOKEN
    run = maia.ask("What does unit 7 respond to?", model="toybox", layer="layer4", unit=7).wait()
    print(run.description, run.labels)
    run.images()        # in a notebook: the images; run.observations(): a table; run.check(): the figures of its labels

Refused requests and lost connections raise MaiaError. Rows are dicts, with the API's names.
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
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

import requests

__version__ = "1.0.0"
__all__ = ["Maia", "MaiaError", "MaiaImages", "MaiaRun"]

Row = dict[str, Any]
TIMEOUT, MAX_BYTES = (10.0, 60.0), 64 * 2**20
"""Seconds to connect and between two pieces of a response; and maximum length of a response."""
TRIES, MAX_PAUSE = 5, 120.0
"""How often a request is sent, and the longest pause in seconds that the server may ask for in between."""
PAGE_SIZE, BAR_WIDTH, MAX_SHOWN = 200, 24, 60
LOST = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
"""Errors after which the same request may succeed."""
POLL_SECONDS = (0.5, 5.0)
"""Pause between two polls in seconds: the first, and the longest."""
FAILED = frozenset({"failed", "cancelled", "untestable"})
ENDED = FAILED | {"concluded", "limit_reached", "done", "unfinished"}
"""Final statuses of runs and label checks."""
MEDIA_TYPES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"RIFF", "image/webp"), (b"\xff\xd8\xff", "image/jpeg"))
"""First bytes of files that are shown as images."""
COLUMNS = (
    *("id", "run", "experiment", "position", "model", "layer", "unit", "title", "activation", "claimed", "measured"),
    *("differs", "change", "origin", "prompt", "seed", "parameters", "image", "masked", "map", "original"),
)
"""Columns of a table of observations."""


class MaiaError(Exception):
    """An error: `title` and `detail` in words, `errors` by field, and `status` of the response, 0 without one."""

    def __init__(self, title: str, detail: str = "", status: int = 0, errors: Mapping[str, str] = {}) -> None:
        self.title, self.detail, self.status, self.errors = _plain(title), _plain(detail), status, dict(errors)
        head = ": ".join(each for each in (self.title, self.detail) if each)
        lines = [f"  {_plain(field)}: {_plain(words)}" for field, words in self.errors.items()]
        super().__init__("\n".join([f"{head} ({status})" if status else head, *lines]))


class _Bearer(requests.auth.AuthBase):
    """Send the token. It is not in the session's headers, is never printed, and ~/.netrc does not replace it."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request

    def hide(self, words: str) -> str:
        return words.replace(self._token, "…")


class _Connection:
    """Requests to one installation, with timeouts, retries, size limits, and readable errors."""

    def __init__(self, url: str, token: str) -> None:
        self.url = _parse_address(url)
        if not token.isascii() or not token.isprintable() or " " in token or not token:
            raise MaiaError("The token is odd", "Copy it whole from the page Settings, Tokens; or set MAIA_TOKEN.")
        self.auth = _Bearer(token)
        self.session = requests.Session()
        self.session.headers["User-Agent"] = f"maia-client/{__version__}"

    def get(self, path: str, **params: Any) -> Any:
        """Return the JSON at this path."""
        return self._parse(self.send("GET", path, {k: v for k, v in params.items() if v is not None}))

    def post(self, path: str, body: Any = None, key: str = "") -> Any:
        """Return the JSON response. Only for requests that are safe to repeat, such as with an idempotency key."""
        return self._parse(self.send("POST", path, None, body, key))

    def pages(self, path: str, most: int | None = None, **params: Any) -> Iterator[Row]:
        """Yield the items of a list, page by page as needed, at most `most`."""
        left, cursor = sys.maxsize if most is None else most, None
        while left > 0:
            page = self.get(path, **params, cursor=cursor, limit=min(left, PAGE_SIZE))
            yield from page["items"][:left]
            left, cursor = left - len(page["items"]), page["next"]
            if cursor is None:
                return

    def send(self, method: str, path: str, params: Row | None = None, body: Any = None, key: str = "") -> bytes:
        """Return the body of the response. Retries after a lost connection or when told to wait. Raises MaiaError."""
        headers = {"Accept": "application/json", **({"Idempotency-Key": key} if key else {})}
        for attempt in range(1, TRIES + 1):
            try:
                status, retry_after, data = self._exchange(method, path, params=params, json=body, headers=headers)
                if status < 400:
                    return data
                pause, error = _parse_pause(retry_after, 2.0**attempt), self._make_problem(status, data)
                is_last = status not in {429, 503}
            except requests.RequestException as lost:
                pause, error = 0.2 * 2**attempt, self._make_outage(lost)
                is_last = not isinstance(lost, LOST) or isinstance(lost, requests.exceptions.SSLError)
            if is_last or attempt == TRIES or pause > MAX_PAUSE:
                raise error
            time.sleep(pause)
        raise AssertionError

    def _exchange(self, method: str, path: str, **asked: Any) -> tuple[int, str, bytes]:
        """Return status, Retry-After and body of one response. Raises MaiaError for a redirect, which gets no token."""
        address = f"{self.url}/api/v1{path}"
        asked |= {"auth": self.auth, "timeout": TIMEOUT, "allow_redirects": False, "stream": True}
        with self.session.request(method, address, **asked) as answer:
            if not answer.is_redirect:
                return answer.status_code, answer.headers.get("Retry-After", ""), self._read(answer)
            target = urlsplit(urljoin(address, answer.headers["Location"]))
        there = f"{target.scheme}://{target.netloc.rpartition('@')[2]}"
        words = f"{self.url} sends on to {there}, and the token stays here. If MAIA Web is there, give that address."
        raise MaiaError("The server points elsewhere", words, answer.status_code)

    def _read(self, answer: requests.Response) -> bytes:
        """Return the body. Raises MaiaError if it is too long."""
        data = bytearray()
        for piece in answer.iter_content(64 * 1024):
            data += piece
            if len(data) > MAX_BYTES:
                words = f"{self.url} sent over {MAX_BYTES // 2**20} MiB; ask for less at a time."
                raise MaiaError("The answer is too long", words, answer.status_code)
        return bytes(data)

    def _parse(self, data: bytes) -> Any:
        try:
            return json.loads(data)
        except ValueError:
            words = f"{self.url} answered no JSON. Is it the address of MAIA Web, as the API page shows it?"
            raise MaiaError("This is not MAIA Web", words) from None

    def _make_problem(self, status: int, data: bytes) -> MaiaError:
        """Return the error that the response describes, or one made from its status."""
        try:
            found = json.loads(self.auth.hide(data.decode("utf-8", "replace")))
            wrong = {str(each["field"]): str(each["message"]) for each in found.get("errors", ())}
            title, detail = str(found["title"]), str(found.get("detail", ""))
        except (ValueError, TypeError, KeyError, AttributeError):
            return MaiaError("The server refused", f"{self.url} answered without a reason.", status)
        return MaiaError(title, detail, status, wrong)

    def _make_outage(self, error: Exception) -> MaiaError:
        remedy = "is it running, and is the address the one of your browser, with https:// where it has that?"
        if isinstance(error, requests.exceptions.SSLError):
            remedy = "its certificate is not trusted, or it speaks http:// alone. REQUESTS_CA_BUNDLE names your own CA."
        return MaiaError(f"{self.url} cannot be reached", f"{remedy} ({type(error).__name__})")


class Maia:
    """An installation of MAIA Web, by its URL and a token from the page Settings, Tokens."""

    def __init__(self, url: str = "", token: str = "") -> None:
        self._http = _Connection(url or os.environ.get("MAIA_URL", ""), token or os.environ.get("MAIA_TOKEN", ""))

    def __repr__(self) -> str:
        return f"Maia({self._http.url!r})"

    def ask(self, question: str, *, key: str = "", **fields: Any) -> MaiaRun:
        """Start a run with `model`, `layer`, `unit` and more of POST /runs. A repeated `key` starts no second run."""
        body = {"question": question, **{name: value for name, value in fields.items() if value is not None}}
        return MaiaRun(self, self._http.post("/runs", body, key or str(uuid.uuid4())))

    def run(self, number: int) -> MaiaRun:
        """Return a run by its number."""
        return MaiaRun(self, self._http.get(f"/runs/{int(number)}"))

    def runs(self, limit: int | None = None, **filters: Any) -> Iterator[MaiaRun]:
        """Yield runs, newest first, by the filters of GET /runs: model, layer, unit, status, q, label, tag, …"""
        return (MaiaRun(self, row) for row in self._http.pages("/runs", limit, **filters))

    def units(self, limit: int | None = None, **filters: Any) -> Iterator[Row]:
        """Yield units that runs asked about, by model, layer, number, label, labelled."""
        return self._http.pages("/units", limit, **filters)

    def observations(self, limit: int | None = None, **filters: Any) -> Iterator[Row]:
        """Yield images that runs logged, by the filters of GET /observations: run, origin, low, high, sort, …"""
        return self._http.pages("/observations", limit, **filters)

    def exemplars(self, model: str, layer: str, unit: int, dataset: str, *, timeout: float | None = None) -> MaiaImages:
        """Return the images of the dataset that activate the unit most. If needed, waits until they are measured."""
        http, place = self._http, f"/layers/{self._find_layer(model, layer)}/units/{int(unit)}"

        def read() -> Row:
            found: Row = next((each for each in http.get(place)["profiles"] if each["dataset"] == dataset), {})
            status = "done" if found.get("written") else "failed" if found.get("problem") else "being measured"
            return {"status": status, "reason": found.get("problem")}

        if read()["status"] != "done":
            http.post(f"{place}/exemplars", {"dataset": dataset})
            _wait(f"Exemplars of unit {unit}", read, timeout)
        return MaiaImages(http, http.pages(f"{place}/exemplars", dataset=dataset))

    def _find_layer(self, model: str, layer: str) -> int:
        pages = self._http.pages
        models = [f"/models/{row['id']}/layers" for row in pages("/models", 1, name=model)]
        layers = {each["name"]: each["id"] for path in models for each in pages(path)}
        if layer in layers:
            return int(layers[layer])
        there = ", ".join(layers) or "none; the page Units lists models"
        raise MaiaError(f"There is no layer {layer!r} of {model!r}", f"Layers there: {there}.")


class MaiaRun:
    """A run. Its fields are attributes, such as `run.status`. `data` has all of them as last read."""

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
        return str(self.data["conclusion"]["description"])

    @property
    def labels(self) -> list[str]:
        return list(self.data["conclusion"]["labels"])

    def refresh(self) -> MaiaRun:
        self.data = self._maia._http.get(f"/runs/{self.id}")
        return self

    def wait(self, timeout: float | None = None) -> MaiaRun:
        """Wait for its end, at most `timeout` seconds. Raises MaiaError if it fails. Ctrl+C ends only the waiting."""
        try:
            _wait(f"Run {self.id}", lambda: self.refresh().data, timeout)
        except KeyboardInterrupt:
            name = f"maia.run({self.id})"
            print(f"Run {self.id} continues: {name}.wait() waits again, {name}.stop() ends it.", file=sys.stderr)
            raise
        return self

    def stop(self) -> MaiaRun:
        """Stop it after its current step."""
        self.data = self._maia._http.post(f"/runs/{self.id}/stop")
        return self

    def experiments(self) -> list[Row]:
        """Return its programs in order: code, output, error, seconds."""
        return list(self._maia._http.pages("/experiments", run=self.id, order="oldest"))

    def observations(self, limit: int | None = None, **filters: Any) -> Any:
        """Return a pandas DataFrame of the images that it logged. Columns are named as in the API."""
        try:
            import pandas as pd
        except ImportError:
            remedy = "Install it, `pip install pandas`, or take dicts: maia.observations(run=…)."
            raise MaiaError("A table needs pandas", remedy) from None
        return pd.DataFrame(list(self._maia.observations(limit, **filters, run=self.id)), columns=list(COLUMNS))

    def images(self, limit: int = 24, *, sort: str = "strongest", masked: bool = False) -> MaiaImages:
        """Return images that it logged, with activations. `masked` shows only what activates the unit."""
        return MaiaImages(self._maia._http, self._maia.observations(limit, run=self.id, sort=sort), masked=masked)

    def check(self, timeout: float | None = None) -> Row:
        """Return the figures of its labels on unseen images, such as pearson. Raises MaiaError if there are none."""
        http = self._maia._http
        number = int(http.post("/checks", {"run": self.id})["id"])
        return _wait(f"Label check {number}", lambda: http.get(f"/checks/{number}"), timeout)

    def checks(self) -> list[Row]:
        """Return all checks of its conclusion, newest first. Starts none."""
        return list(self._maia._http.pages("/checks", run=self.id))


class MaiaImages(Sequence[Row]):
    """Images with their activations: rows by index, files by `png`, pictures in a notebook."""

    def __init__(self, http: _Connection, rows: Iterator[Row], *, masked: bool = False) -> None:
        self._http, self._rows, self._field = http, list(rows), "masked" if masked else "image"

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __repr__(self) -> str:
        return f"<{len(self)} images>"

    def png(self, index: int) -> bytes:
        return self._fetch(self._rows[index], "file")

    def _fetch(self, row: Row, what: str) -> bytes:
        key = quote(str(row.get(self._field) or row["image"]), safe="")
        return self._http.send("GET", f"/images/{key}/{what}")

    def _repr_html_(self) -> str:
        """Return the images inline for notebooks. Nothing is loaded from elsewhere, and all text is escaped."""
        figures = "".join(self._figure(row) for row in self._rows[:MAX_SHOWN])
        more = f"<p>and {len(self) - MAX_SHOWN} more</p>" if len(self) > MAX_SHOWN else ""
        return f'<div style="display:flex;flex-wrap:wrap;gap:8px">{figures}</div>{more}'

    def _figure(self, row: Row) -> str:
        words = html.escape(str(row.get("title") or row.get("prompt") or ""))
        try:
            data = self._fetch(row, "thumbnail")
        except MaiaError:
            data = b""
        media = next((media for start, media in MEDIA_TYPES if data.startswith(start)), "")
        source = f"data:{media};base64,{base64.b64encode(data).decode()}"
        picture = f'<img width="160" alt="{words}" src="{source}">' if media else "<em>no image</em>"
        caption = f"<figcaption><b>{float(row['activation']):.3g}</b> {words}</figcaption>"
        return f'<figure style="margin:0;width:160px;font-size:12px">{picture}{caption}</figure>'


def _wait(what: str, read: Callable[[], Row], timeout: float | None) -> Row:
    """Poll the row until it has ended and show its progress on one line of stderr. Raises MaiaError as `wait` does."""
    end = time.monotonic() + (timeout if timeout is not None else float("inf"))
    pause, drawn = POLL_SECONDS[0], ""
    try:
        while (row := read())["status"] not in ENDED or drawn:
            if (line := _draw(what, row)) != drawn:
                print("\r" + line.ljust(len(drawn)), end="", file=sys.stderr, flush=True)
                drawn = line
            if row["status"] in ENDED:
                break
            if time.monotonic() + pause > end:
                raise MaiaError("The time is up", f"It continues; wait again later. {line}")
            time.sleep(pause)
            pause = min(pause * 1.2, POLL_SECONDS[1])
    finally:
        if drawn:
            print(file=sys.stderr, flush=True)
    if row["status"] in FAILED:
        raise MaiaError(f"{what} is {row['status']}", row["reason"] or "It gave no reason.")
    return row


def _draw(what: str, row: Row) -> str:
    """Return one line with the status, and for a run a bar of its rounds."""
    status = f"{row['status']}: {row['reason']}" if row["reason"] else row["status"]
    if "rounds" not in row:
        return _plain(f"{what}: {status}")
    limit = row["limits"].get("rounds") or 0
    share = 1.0 if row["status"] in ENDED else min(row["rounds"] / limit, 1.0) if limit else 0.0
    bar = ("█" * round(share * BAR_WIDTH)).ljust(BAR_WIDTH, "░")
    rounds = f"{row['rounds']} of {limit} rounds" if limit else f"{row['rounds']} rounds"
    words = f"{what} {bar} {rounds}, {row['experiments']} experiments, {row['observations']} images, {status}"
    return _plain(words)[:200]


def _parse_address(url: str) -> str:
    """Return the URL of the site, without the API's path. Raises MaiaError with the remedy for an invalid one."""
    remedy = "Give the one of your browser, as https://maia.example.org, to Maia(…) or MAIA_URL."
    try:
        parts = urlsplit(url.strip())
        is_odd = parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0
    except ValueError:
        is_odd = True
    if is_odd:  # it may be a token by mistake, so only its beginning is shown
        raise MaiaError(f"The address {url[:9]!r}… is odd" if url else "No address is given", remedy)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise MaiaError("The address has more than a place", f"Leave out passwords, ? and #. {remedy}")
    return f"{parts.scheme}://{parts.netloc}{parts.path.partition('/api/v1')[0].rstrip('/')}"


def _parse_pause(retry_after: str, otherwise: float) -> float:
    """Return the seconds that the header asks to wait, as a number or a date; `otherwise` if it is neither."""
    try:
        if retry_after.isdecimal():
            return float(retry_after)
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, TypeError):
        return otherwise


def _plain(words: str) -> str:
    """Return the words on one line, without characters that control a terminal."""
    return "".join(each if each.isprintable() else " " for each in words)
