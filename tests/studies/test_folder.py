"""A study as a folder: its files, what they leave out, and the two ways to have it written."""

from __future__ import annotations

import html
import re
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.test import Client

from experiments.core.thumbnails import SIZES
from experiments.models import Export, Image, Run, Study
from experiments.studies.folder import FolderSink, write_study
from tests.support import blind_runs
from tests.support.api_world import KEY, Script
from tests.support.people import member
from tests.support.studies import make_study
from workers.errors import Cancelled
from workers.jobs import exchange

ADDRESS = re.compile(r'(?:href|src)="([^"]*)"')


def written(study: Study, path: Path, **options: Any) -> dict[str, str]:
    """Name -> text of each file, of images empty."""
    write_study(study, FolderSink(path), lambda *_: None, **options)
    files = [each for each in path.rglob("*") if each.is_file()]
    texts = {".html", ".css"}
    return {str(each.relative_to(path)): each.read_text() if each.suffix in texts else "" for each in files}


def test_every_address_is_a_file_of_the_folder(study: Study, tmp_path: Path) -> None:
    files = written(study, tmp_path)
    run = study.items.get(number=None).run_id
    assert {"index.html", f"runs/{run}.html", "style.css", "icon.svg"} < files.keys()
    shown = set()
    for name in ("index.html", f"runs/{run}.html"):
        for address in ADDRESS.findall(files[name]):
            if not address.startswith("#"):
                path = (tmp_path / name).parent / address.partition("#")[0]
                assert path.is_file(), address
                shown.add(path.resolve())
        assert "<script" not in files[name]
        assert "default-src 'none'" in html.unescape(files[name])
    assert set(tmp_path.glob("images/*")) <= shown
    assert re.findall(r"url\((?!.#heat-colours)|@import", files["style.css"]) == []


def test_a_small_version_is_taken_where_there_is_one(study: Study, tmp_path: Path) -> None:
    run = Run.objects.get(study_items__study=study)
    key = run.observations.exclude(masked=None).earliest("pk").masked_id
    assert key is not None
    for size in SIZES:
        default_storage.delete(Image.thumbnail_of(key, size))
    assert f"images/{key}.png" in written(study, tmp_path / "whole")
    default_storage.save(Image.thumbnail_of(key, 160), ContentFile(b"small"))
    names = written(study, tmp_path / "small")
    assert (tmp_path / f"small/images/{key}.webp").read_bytes() == b"small"
    assert f"images/{key}.png" not in names


def test_an_image_that_is_lost_is_left_out(study: Study, tmp_path: Path) -> None:
    run = Run.objects.get(study_items__study=study)
    key = run.observations.earliest("pk").image_id
    for path in (Image.path_of(key), *(Image.thumbnail_of(key, size) for size in SIZES)):
        default_storage.delete(path)
    assert not [name for name in written(study, tmp_path) if key in name]


def test_names_come_only_if_they_are_asked_for(study: Study, owner: User, tmp_path: Path) -> None:
    owner.first_name, owner.last_name = "Grace", "Hopper"
    owner.save()
    for names in (False, True):
        files = written(study, tmp_path / str(names), show_names=names)
        pages = [text for name, text in files.items() if name.endswith(".html")]
        assert [("Grace Hopper" in text) for text in pages] == [names, names]


def test_what_somebody_is_still_to_judge_is_not_named(study: Study, owner: User, tmp_path: Path) -> None:
    Image.objects.create(key=KEY, width=8, height=8, origin="generated")
    blind = blind_runs.blind_run(owner)
    study.items.create(position=3, run=blind)
    blind_runs.queued(blind, member("judge", "REVIEWER"))
    assert [name for name, text in written(study, tmp_path).items() if blind_runs.TOLD in text] == []


def test_hostile_words_are_words(hostile: Study, tmp_path: Path) -> None:
    for text in written(hostile, tmp_path).values():
        assert "<script" not in text
        assert "<img src=http:" not in text


def test_a_worker_writes_it_and_its_asker_fetches_it(as_owner: Client, study: Study, redis_url: str) -> None:
    asked = as_owner.post("/exports/make/", {"what": "study", "format": "zip", "study": study.pk, "names": "yes"})
    assert asked["Location"] == "/exports/"
    row = Export.objects.get()
    assert (row.format, row.query) == ("zip", f"names=yes&study={study.pk}")
    assert exchange.write_export(row.job, lambda *_: None) == "1 study"
    assert "Study" in as_owner.get("/exports/").content.decode()
    response = as_owner.get(f"/exports/{row.pk}/file/")
    with zipfile.ZipFile(BytesIO(b"".join(response.streaming_content))) as packed:
        assert packed.testzip() is None
        assert f"study-{study.pk}/index.html" in packed.namelist()


def test_a_script_asks_for_it(study: Study, owner: User, redis_url: str) -> None:
    script = Script(owner)
    assert script.post("/exports", {"what": "study", "query": f"study={study.pk}"}).status_code == 202
    for query in ("study=99", "study=x", "", f"study={study.pk}&names=no", f"study={study.pk}&unit=1"):
        assert script.post("/exports", {"what": "study", "query": query}).status_code == 422, query


def test_the_command_writes_it_whole_or_not_at_all(study: Study, tmp_path: Path, capsys: Any) -> None:
    target = tmp_path / "study"
    call_command("export_study", str(study.pk), str(target))
    assert "open index.html" in capsys.readouterr().out
    assert target.stat().st_mode & 0o777 == 0o755
    assert {each.stat().st_mode & 0o777 for each in target.rglob("*") if each.is_file()} == {0o644}
    with pytest.raises(CommandError, match="not empty"):
        call_command("export_study", str(study.pk), str(target))
    with pytest.raises(CommandError, match="no study 99"):
        call_command("export_study", "99", str(tmp_path / "other"))
    assert [each.name for each in tmp_path.iterdir()] == ["study"]


def test_it_can_be_stopped_between_two_runs(owner: User, study: Study, tmp_path: Path) -> None:
    def stop(what: str, done: int, total: int) -> None:
        if done:
            raise Cancelled("Stopped.")

    with pytest.raises(Cancelled):
        write_study(study, FolderSink(tmp_path), stop)
    assert [each.name for each in tmp_path.iterdir()] == ["index.html"]


def test_an_empty_study_is_a_page(owner: User, tmp_path: Path) -> None:
    assert "Nothing is in it yet" in written(make_study(owner), tmp_path)["index.html"]
