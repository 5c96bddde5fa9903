"""Bundles that lie, break or mean harm: each is refused with a reason, and nothing of it is kept."""

from __future__ import annotations

import hashlib
import io
import json
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.storage import default_storage
from PIL import Image as Pillow

from experiments.exchange import safe_zip
from experiments.exchange.safe_zip import ExchangeError
from experiments.models import Event, Image, ImportedRun, Label, Run, SearchText
from tests.support.bundles import Files, brought, bundled, forgotten, full_run, packed, put

pytestmark = pytest.mark.usefixtures("redis_url")


def refused(path: Path, by: User) -> str:
    """Why the file was not taken; nothing of it is here."""
    before = stored()
    with pytest.raises(ExchangeError) as caught:
        brought(path, by)
    for model in (Run, Event, Image, Label, ImportedRun, SearchText):
        assert not model.objects.exists(), model
    assert stored() == before, "no file of an image either"
    return str(caught.value)


def stored() -> set[Path]:
    return set(Path(default_storage.path("")).rglob("*.png"))


def changed(files: Files, name: str, change: Callable[[Any], Any]) -> Files:
    """With a field of run.json, or of a line of a .jsonl, changed."""
    data = files[name]
    if name.endswith(".json"):
        return files | {name: json.dumps(change(json.loads(data))).encode()}
    rows = change([json.loads(line) for line in data.splitlines()])
    return files | {name: b"".join(json.dumps(row).encode() + b"\n" for row in rows)}


def test_the_good_bundle_is_taken(files: Files, owner: User, tmp_path: Path) -> None:
    (taken,) = brought(packed(files, tmp_path / "x.zip"), owner)
    assert taken.run.experiment_count == 1


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "C:/x", "..\\x", "\\etc\\x", "images/../../x"])
def test_a_path_outside_is_refused(files: Files, owner: User, tmp_path: Path, name: str) -> None:
    says = refused(packed(files, tmp_path / "x.zip", lambda target: target.writestr(name, b"x")), owner)
    assert "path" in says or "no name" in says


def test_a_symbolic_link_is_refused(files: Files, owner: User, tmp_path: Path) -> None:
    info = zipfile.ZipInfo("images/link.png")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    says = refused(packed(files, tmp_path / "x.zip", lambda target: target.writestr(info, "/etc/passwd")), owner)
    assert says == "'images/link.png' is a symbolic link."


def test_a_bomb_is_refused_before_it_goes_off(files: Files, owner: User, tmp_path: Path) -> None:
    says = refused(packed(files | {"run.html": bytes(4 << 20)}, tmp_path / "x.zip"), owner)
    assert "'run.html' is over 200 times as large" in says


def test_a_bundle_that_holds_too_much_is_refused(
    files: Files, owner: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = packed(files, tmp_path / "x.zip")
    for name, value, words in (("UNPACKED", 200, "GB"), ("MEMBERS", 3, "members"), ("UPLOAD", 5, "MB")):
        with monkeypatch.context() as small:
            small.setattr(safe_zip, name, value)
            assert words in refused(path, owner)
    monkeypatch.setattr(safe_zip, "DIRECTORY", 50)
    assert "table of contents" in refused(path, owner)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_is_there_twice_is_refused(files: Files, owner: User, tmp_path: Path) -> None:
    says = refused(packed(files, tmp_path / "x.zip", lambda target: target.writestr("run.json", b"{}")), owner)
    assert says == "'run.json' is in the archive twice."


def test_an_encrypted_member_is_refused(files: Files, owner: User, tmp_path: Path) -> None:
    path = packed(files, tmp_path / "x.zip")
    data = bytearray(path.read_bytes())
    place = data.rindex(b"PK\x01\x02", 0, data.rindex(b"manifest.json"))
    data[place + 8] |= 1
    path.write_bytes(data)
    assert refused(path, owner).startswith("'manifest.json' is encrypted: unpack")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.99])
def test_an_import_cut_in_half_leaves_nothing(files: Files, owner: User, tmp_path: Path, share: float) -> None:
    path = packed(files, tmp_path / "x.zip")
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    assert "empty" in (says := refused(path, owner)) or "may be cut off" in says


def test_a_byte_that_changed_on_the_way_is_noticed(files: Files, owner: User, tmp_path: Path) -> None:
    path = packed(files, tmp_path / "x.zip")
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    for name in files:
        with zipfile.ZipFile(path, "w") as target:
            for other, data in files.items():
                target.writestr(other, data + b" " if other == name else data)
            target.writestr("manifest.json", json.dumps({"schema": 1, "files": hashes}))
        assert refused(path, owner).startswith(f"'{name}' is not what manifest.json says")


@pytest.mark.parametrize("missing", ["run.json", "events.jsonl", "images.jsonl", "an image"])
def test_a_missing_member_is_named(files: Files, owner: User, tmp_path: Path, missing: str) -> None:
    name = missing if missing in files else next(each for each in files if each.endswith(".png"))
    del files[name]
    says = refused(packed(files, tmp_path / "x.zip"), owner)
    assert name in says or "run.json" in says
    assert "missing" in says or "no run.json" in says


def test_a_stray_member_is_refused(files: Files, owner: User, tmp_path: Path) -> None:
    says = refused(packed(files, tmp_path / "x.zip", lambda target: target.writestr("odd.txt", b"x")), owner)
    assert says == "'odd.txt' is in the archive and not in manifest.json. Take it out, or export again."


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"{", "no JSON"),
        (b"[]", "no JSON object"),
        (b'{"schema": NaN}', "NaN is no number"),
        (b'{"schema": 1e999}', "1e999 is no number"),
        (b'{"schema": ' + b"9" * 5000 + b"}", "too large"),
        (b"[" * 200_000, "nested too deeply"),
        (b"\xff\xfe{", "not in UTF-8"),
        (b'{"schema": 7}', "schema 7"),
    ],
)
def test_wrong_json_is_refused(files: Files, owner: User, tmp_path: Path, data: bytes, says: str) -> None:
    assert says in refused(packed(files | {"run.json": data}, tmp_path / "x.zip"), owner)
    assert "run.json" in refused(packed(files | {"run.json": data}, tmp_path / "x.zip"), owner)


LABEL = {"text": "x", "source": "milan", "position": 1, "scores": {}}
FIRST = ("payload", "entries", 0, "observations", 0)


@pytest.mark.parametrize(
    ("member", "change", "says"),
    [
        ("run.json", put("run", "unit", value=-1), "run.json: unit is -1"),
        ("run.json", put("run", "unit", value=10**15), "run.json: unit is 1000000000000000"),
        ("run.json", put("run", "seed", value=[]), "run.json: seed is []"),
        ("run.json", put("run", "model", value="x" * 300), "run.json: model is 'xxx"),
        ("run.json", put("run", "question", value=None), "question"),
        ("run.json", put("run", "options", value=3), "run.json: options is 3"),
        ("run.json", put("run", "created", value="yesterday"), "run.json: created is 'yesterday'"),
        ("run.json", put("run", "ended", value="2026-01-01T00:00:00"), "run.json: run: ended is '2026"),
        ("run.json", put("identity", value="short"), "no identity"),
        ("run.json", put("owner", value=7), "run.json: owner is 7"),
        ("run.json", put("labels", value=[7]), "labels[0] is 7: Expected `object`"),
        ("run.json", put("number", value=-4), "run.json: number is -4"),
        ("run.json", put("tags", value=["x" * 99]), "is no tag"),
        ("run.json", put("tags", value=[f"tag {n}" for n in range(51)]), "51 tags, at most 50"),
        ("run.json", put("tags", value=["x"] * 100_000), "no list of at most 50 tags"),
        ("run.json", put("tags", value={"items": 1}), "run.json: tags is"),
        ("run.json", put("labels", value=[LABEL] * 1_001), "labels is a list of 1,001"),
        (
            "run.json",
            put("labels", value=[LABEL | {"scores": {"items": "x"}}]),
            "scores[...] is {'items': 'x'}: Expected `float`",
        ),
        ("run.json", put("labels", value=[LABEL | {"scores": []}]), "labels[0].scores is []"),
        ("run.json", put("labels", value=[LABEL | {"position": True}]), "position is True"),
        (
            "run.json",
            put("labels", value=[LABEL | {"units": [["toybox", 4, 7]]}]),
            "labels[0].units[0][1] is 4: Expected `str`",
        ),
        (
            "run.json",
            put("labels", value=[LABEL | {"units": [["toybox", "layer4", 7]] * 1_001}]),
            "labels[0].units is a list of 1,001",
        ),
        (
            "run.json",
            put("labels", value=[LABEL | {"units": [["toybox", "layer4", 7]] * 1_000}] * 11),
            "labels name 11,000 units, at most 10,000",
        ),
        ("run.json", put("run", "limits", value={"rounds": "many"}), "limits: rounds is 'many'"),
        ("run.json", put("run", "limits", value={"cost": -5}), "limits: cost is -5"),
        ("run.json", put("run", "limits", value={"seconds": [1]}), "limits: seconds is [1]"),
        ("run.json", put("run", "limits", value={"tokens": 10**15}), "limits: tokens is 1000000000000000"),
        (
            "run.json",
            put("run", "limits", value={"dataset": "x"}),
            "run.json: limits is {'dataset': 'x'}: Object contains unknown field `dataset`",
        ),
        ("run.json", put("run", "options", value={"dataset": 5}), "the option 'dataset' is 5"),
        ("run.json", put("run", "options", value={"dataset": {}}), "the option 'dataset' is {}"),
        ("run.json", put("run", "options", value={"x": "y" * 501}), "the option 'x' is 'yyy"),
        ("run.json", put("run", "question", value="x" * 4_001), "question has 4,001 characters"),
        ("run.json", put("run", "seconds", value="long"), "seconds is 'long'"),
        ("run.json", put("run", "seconds", value=-1), "run.seconds is -1: Expected `float` >= 0.0. Mend it"),
        ("run.json", put("parent", value={"identity": 5}), "parent: identity is 5: Expected `str`"),
        ("events.jsonl", put(0, "payload", "limits", "rounds", value=-1), "started: limits: rounds is -1"),
        ("events.jsonl", put(0, "payload", "system", "options", value={"dataset": []}), "option 'dataset' is []"),
        ("events.jsonl", put(5, "payload", "conclusion", "labels", value=["x"] * 101), "labels are over 100"),
        ("events.jsonl", put(1, "payload", "usage", "cost", value=-1.0), "cost is -1.0, and that is below 0"),
        ("events.jsonl", put(3, *FIRST, "activation", value=1e200), "activation is 1e+200"),
        ("images.jsonl", put(0, "scene", value=["x"]), "scene is no small JSON object"),
        ("events.jsonl", put(0, "kind", value="odd"), "events.jsonl, line 1, 'odd': there is no such kind"),
        ("events.jsonl", put(1, "seq", value=7), "events.jsonl, line 2: seq is 7 where 2 is wanted"),
        ("events.jsonl", put(1, "payload", "round", value="x"), "events.jsonl, line 2, 'reply': Expected `int`"),
        ("events.jsonl", put(1, "payload", "round", value=-2), "round is -2"),
        ("events.jsonl", put(1, "time", value=3), "events.jsonl, line 2: time is 3"),
        ("events.jsonl", put(3, "state", value="%%"), "events.jsonl, line 4"),
        ("events.jsonl", put(3, "payload", "number", value=9), "Event 4 does not fit"),
        ("events.jsonl", put(3, *FIRST, "image", value="0" * 64), "not in the bundle"),
        ("events.jsonl", lambda rows: [*rows, rows[-1] | {"seq": 7}], "Event 7 does not fit"),
        ("events.jsonl", lambda rows: [rows[0], rows[1], rows[1] | {"seq": 3}], "Event 3 does not fit"),
        ("images.jsonl", put(0, "key", value="../x"), "images.jsonl, line 1: key is '../x'"),
        ("images.jsonl", put(0, "origin", value="odd"), "images.jsonl, line 1: origin is 'odd'"),
        ("images.jsonl", put(0, "origin", value={"items": 1}), "origin is {'items': 1}"),
        ("images.jsonl", put(0, "seed", value=10**17 * 3.5), "seed"),
        ("images.jsonl", put(0, "raw", value="1" * 64), "was made from 111111111111"),
        ("images.jsonl", lambda rows: [*rows, rows[0]], "named before"),
        ("images.jsonl", lambda rows: rows[1:], "is not in images.jsonl"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    files: Files, owner: User, tmp_path: Path, member: str, change: Callable[[Any], Any], says: str
) -> None:
    assert says in refused(packed(changed(files, member, change), tmp_path / "x.zip"), owner)


def png(size: tuple[int, int]) -> bytes:
    buffer = io.BytesIO()
    Pillow.new("1", size).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"GIF89a<script>", "cannot be taken"),
        (b"", "cannot be taken"),
        (png((5000, 5000)), "too large"),
        (png((3, 3)), "shows other pixels"),
    ],
    ids=["no image", "empty", "enormous", "another"],
)
def test_an_image_that_is_none_is_refused(files: Files, owner: User, tmp_path: Path, data: bytes, says: str) -> None:
    name = next(each for each in files if each.endswith(".png"))
    text = refused(packed(files | {name: data}, tmp_path / "x.zip"), owner)
    assert says in text
    assert name in text


def test_images_of_too_many_pixels_in_all_are_refused(
    files: Files, owner: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = [Pillow.open(io.BytesIO(data)).size for name, data in files.items() if name.endswith(".png")]
    pixels = sum(width * height for width, height in sizes)
    monkeypatch.setattr(safe_zip, "PIXELS", pixels - 1)
    assert f"over {pixels - 1:,} pixels in all" in refused(packed(files, tmp_path / "x.zip"), owner)
    monkeypatch.setattr(safe_zip, "PIXELS", pixels)
    assert brought(packed(files, tmp_path / "y.zip"), owner)


def test_a_line_that_is_too_long_or_cut_off_is_refused(
    files: Files, owner: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = files | {"events.jsonl": files["events.jsonl"][:-1]}
    assert "ends in the middle of line 6" in refused(packed(cut, tmp_path / "x.zip"), owner)
    monkeypatch.setattr(safe_zip, "LINE", 2000)
    long = files | {"events.jsonl": b"x" * 200_000}
    assert "longer than" in (says := refused(packed(long, tmp_path / "x.zip"), owner)) or "larger than" in says


def test_of_several_runs_those_before_a_bad_one_stay_whole(owner: User, tmp_path: Path) -> None:
    first, second = full_run(owner, "first"), full_run(owner, "second")
    path = bundled(first, second, path=tmp_path / "both.zip")
    with zipfile.ZipFile(path) as source:
        members = {name: source.read(name) for name in source.namelist() if name != "manifest.json"}
    forgotten(first, second)
    bad = max((name for name in members if name.endswith("events.jsonl")), key=lambda name: (len(name), name))
    members = changed(members, bad, put(0, "kind", value="odd"))
    with pytest.raises(ExchangeError, match="those before run-"):
        brought(packed(members, tmp_path / "x.zip"), owner)
    assert [run.question for run in Run.objects.all()] == ["What? first"]


def test_a_bundle_of_an_earlier_version_is_read_with_the_names_of_today(
    files: Files, owner: User, tmp_path: Path
) -> None:
    former = files | {"events.jsonl": files["events.jsonl"].replace(b'"exemplar_mean"', b'"threshold"')}
    assert former != files
    brought(packed(former, tmp_path / "x.zip"), owner)
    assert Run.objects.get().exemplar_mean == 2.0
