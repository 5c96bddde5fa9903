"""How long the search page takes with ten thousand and with a million passages, on SQLite and on PostgreSQL.

The texts are English words as often as they are in Python's documentation, so that trigrams are as rare and as common
as in real text. Run as a script, with a number of passages, it fills the database of the environment and measures.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics
from typing import TYPE_CHECKING, Any

import pytest

from tests import ROOT

if TYPE_CHECKING:
    from experiments.models import Run, SearchText


SIZES = (10_000, 1_000_000)
GOAL, RATIO = 100, 1.5
RARE, CHINESE = "quokka", "\N{CJK UNIFIED IDEOGRAPH-9F99}"
SPECIAL, SPECIAL_WORDS = 20, f"{RARE} {CHINESE}\N{CJK UNIFIED IDEOGRAPH-5728}"
"""Passages with rare words, as many in a large database as in a small one."""
PAGES = {
    "a rare word": f"/search/?q={RARE}",
    "a common word": "/search/?q=the",
    "a word now and then": "/search/?q=exception",
    "two words": "/search/?q=object+module",
    "a phrase": '/search/?q="of+the"',
    "one letter": "/search/?q=e",
    "one Chinese character": f"/search/?q={CHINESE}",
    "nothing": "/search/?q=zyzzyva",
    "a common word in one unit": "/search/?q=the&model=toybox&layer=layer1&unit=100",
    "a common word in labels": "/search/?q=the&kind=label",
    "Ctrl+K, a common word": "/jump/?q=the",
    "Ctrl+K, a rare word": f"/jump/?q={RARE}",
}
TIMES = 25
PER_RUN = 60


@pytest.mark.bench
@pytest.mark.parametrize("kind", ["SQLite", "PostgreSQL"])
def test_how_long_a_search_takes(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    found = {size: measured(size, place(kind, size, tmp_path, request), tmp_path) for size in SIZES}
    print(f"\nSearch page on {kind}: server time, 95th percentile of {TIMES}; goal {GOAL} ms, at most {RATIO}x")
    few, many = SIZES
    for name in PAGES:
        small, large = found[few][name], found[many][name]
        print(f"{name:34}{small:9.0f} ms{large:9.0f} ms{large / small:8.2f}x")
    print(f"{'writing, for each passage':34}{found[few]['writing']:9.2f} ms{found[many]['writing']:9.2f} ms")


def place(kind: str, size: int, folder: Path, request: pytest.FixtureRequest) -> str:
    """The address of a fresh database."""
    if kind == "SQLite":
        return f"sqlite:///{folder}/{size}.sqlite3"
    return str(request.getfixturevalue("postgres").create(f"size{size}"))


def measured(size: int, address: str, folder: Path) -> dict[str, float]:
    """Milliseconds by query, of a process of its own on this database."""
    environment = {**os.environ, "MAIA_DATABASE_URL": address, "MAIA_STATE": str(folder)}
    environment |= {"DJANGO_SETTINGS_MODULE": "maia_web.settings", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "ignore", __file__, str(size)]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    figures = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(figures, dict)
    return figures


def main(size: int) -> None:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    print(json.dumps({"writing": fill(size)} | times()))


def fill(size: int) -> float:
    """Runs with as many passages; milliseconds for each."""
    from django.contrib.auth.models import User
    from django.db import connection, transaction

    from experiments.core.search_index import texts
    from experiments.models import Member, Run

    owner = User.objects.create_user("owner")
    Member.objects.create(user=owner, role=1)
    runs = Run.objects.bulk_create(run(owner, number) for number in range(size // PER_RUN))
    passages = texts(runs)
    began = time.perf_counter()
    texts.keep_questions(runs)
    while some := list(itertools.islice(passages, 5000)):
        with transaction.atomic():
            texts.write(some)
    took = time.perf_counter() - began
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")
    return 1000 * took / size


def run(owner: Any, number: int) -> Run:
    from experiments.models import Run

    model = "toybox" if number % 5 == 0 else "hf:microsoft/resnet-152"
    system = {"model": model, "layer": f"layer{number % 4 + 1}", "unit": number % 500}
    return Run(owner=owner, question="What does it respond to?", task="describe", backbone="scripted", **system)


def texts(runs: list[Run]) -> Iterator[SearchText]:
    """What an ordinary run leaves: many titles of images, and a few of everything else. A few runs have rare words."""
    from experiments.core.search_index.texts import passage_of

    drawn = random.Random(0)
    known = re.findall(r"[a-z]+", " ".join(topics.values()).lower())

    def words(count: int) -> str:
        return " ".join(drawn.choices(known, k=count))

    special = {round((number + 0.5) * len(runs) / SPECIAL) for number in range(SPECIAL)}
    for number, each in enumerate(runs):
        for turn in range(1, 5):
            yield passage_of(each, ("reply", turn, words(60)), seq=3 * turn)
            yield passage_of(each, ("hypothesis", turn, words(8)), seq=3 * turn)
            yield passage_of(each, ("code", turn, words(70)), seq=3 * turn + 1)
            yield from (passage_of(each, ("title", None, words(9)), seq=3 * turn + 2) for _ in range(11))
        yield passage_of(each, ("description", None, f"{words(50)} {SPECIAL_WORDS * (number in special)}"), seq=15)
        yield from (passage_of(each, ("label", None, words(3)), seq=15) for _ in range(2))


def times() -> dict[str, float]:
    """The 95th percentile by query, without the client's part: the page is drawn and thrown away."""
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.test import Client

    settings.ALLOWED_HOSTS = ["testserver"]
    client = Client()
    client.force_login(User.objects.get())
    found = {}
    for name, address in PAGES.items():
        took = []
        for _ in range(TIMES + 1):
            began = time.perf_counter()
            assert client.get(address).status_code == 200
            took.append(1000 * (time.perf_counter() - began))
        found[name] = statistics.quantiles(took[1:], n=20)[-1]
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]))
