"""What goes compressed, and what is left as it is."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import brotli
import pytest
from django.contrib.auth.models import User
from django.test import Client

from experiments.core.compression import pack_padded
from experiments.models import Image
from tests.support.builders import make_run

pytestmark = pytest.mark.django_db
TAKES = {"Accept-Encoding": "gzip, deflate, br"}
UNPACK = {"gzip": gzip.decompress, "br": brotli.decompress}
ASKING = {"gzip, deflate, br": "br", "gzip, deflate": "gzip", "gzip, br;q=0": "gzip", "identity": ""}


@pytest.mark.parametrize(("takes", "encoding"), ASKING.items())
def test_pages_and_json_go_compressed_to_whoever_takes_it(
    as_owner: Client, owner: User, takes: str, encoding: str
) -> None:
    make_run(owner)
    for address in ("/runs/", "/api/v1/runs", "/api/v1/openapi.json"):
        packed, plain = as_owner.get(address, headers={"Accept-Encoding": takes}), as_owner.get(address)
        assert packed.get("Content-Encoding", "") == encoding, address
        assert "Accept-Encoding" in packed["Vary"], address
        assert "Accept-Encoding" in plain["Vary"], address
        assert "Content-Encoding" not in plain, address
        if encoding:
            assert len(UNPACK[encoding](packed.content)) > len(packed.content), address
            assert int(packed["Content-Length"]) == len(packed.content), address


@pytest.mark.parametrize("encoding", UNPACK)
def test_the_length_of_an_answer_tells_little(as_owner: Client, encoding: str) -> None:
    asked = [as_owner.get("/api/v1/openapi.json", headers={"Accept-Encoding": encoding}).content for _ in range(8)]
    assert len({UNPACK[encoding](each) for each in asked}) == 1
    assert len({len(each) for each in asked}) > 1


@pytest.mark.parametrize("plain", [b"", b"a", bytes(range(256)) * 999])
def test_whatever_is_packed_with_padding_comes_out_the_same(plain: bytes) -> None:
    assert {brotli.decompress(pack_padded(plain, most)) for most in (1, 100, 256) for _ in range(40)} == {plain}


@pytest.mark.parametrize("encoding", UNPACK)
def test_an_etag_is_the_same_however_it_comes(as_owner: Client, owner: User, encoding: str) -> None:
    address, takes = f"/api/v1/runs/{make_run(owner).pk}", {"Accept-Encoding": encoding}
    packed, plain = as_owner.get(address, headers=takes), as_owner.get(address)
    assert packed["Content-Encoding"] == encoding
    assert packed["ETag"] == plain["ETag"]
    assert json.loads(UNPACK[encoding](packed.content)) == plain.json()
    again = as_owner.get(address, headers=takes | {"If-None-Match": packed["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_images_and_streams_are_left_as_they_are(as_owner: Client, owner: User, settings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path
    path = tmp_path / Image.path_of("ab" * 32)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"pixels " * 1000)
    for address in (f"/images/{'ab' * 32}.png", f"/runs/{make_run(owner).pk}/events.jsonl"):
        assert "Content-Encoding" not in as_owner.get(address, headers=TAKES), address
