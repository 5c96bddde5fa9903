"""From what a person writes to a key: families, folders of each kind, paths made full."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.errors import UnknownName
from workers.jobs import plugin_keys


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("toybox", "toybox"),
        (" hf:microsoft/resnet-50 ", "hf:microsoft/resnet-50"),
        ("microsoft/resnet-50", "hf:microsoft/resnet-50"),
        ("clip-rn50:a/b", "clip-rn50:a/b"),
    ],
)
def test_a_hub_id_without_a_family_is_one_of_transformers(written: str, key: str) -> None:
    assert plugin_keys.model_key(written) == key


@pytest.mark.parametrize("written", ["", "  ", "resnet", "hf:", "a/" + "b" * 200, "a/b\nc"])
def test_what_names_no_model_is_refused(written: str) -> None:
    with pytest.raises(UnknownName):
        plugin_keys.model_key(written)


@pytest.mark.parametrize(
    ("inside", "family"),
    [
        ("dataset_info.json", "saved"),
        ("images.npy", "published"),
        ("layer4/images.npy", "published"),
        ("a.jpg", "folder"),
    ],
)
def test_the_kind_of_a_folder_is_found_out(tmp_path: Path, inside: str, family: str) -> None:
    (tmp_path / "set" / inside).parent.mkdir(parents=True)
    (tmp_path / "set" / inside).touch()
    assert plugin_keys.dataset_key(str(tmp_path / "set")) == f"{family}:{tmp_path / 'set'}"
    assert plugin_keys.dataset_key(f"{tmp_path / 'set'}#test") == f"{family}:{tmp_path / 'set'}#test"


def test_links_are_followed_where_somebody_says_so_in_folders_of_images_alone(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "state.json").touch()
    key = f"links:{tmp_path / 'images'}"
    assert plugin_keys.dataset_key(str(tmp_path / "images"), follow_links=True) == key
    assert plugin_keys.dataset_key(key) == plugin_keys.dataset_key(key, follow_links=True) == key
    with pytest.raises(UnknownName, match="is not a folder of images, so there are no links to follow"):
        plugin_keys.dataset_key(str(tmp_path / "saved"), follow_links=True)


def test_a_path_is_made_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own#1").mkdir()
    monkeypatch.chdir(tmp_path)
    assert plugin_keys.model_key("own#1") == f"hf:{tmp_path}/own#1"
    assert plugin_keys.dataset_key("own#1") == f"folder:{tmp_path}/own#1"
    assert plugin_keys.dataset_key("folder:own#1") == f"folder:{tmp_path}/own#1"
    assert plugin_keys.make_absolute("hf:microsoft/resnet-50") == "hf:microsoft/resnet-50"
