"""Auto-encoders of other libraries: latents as each library computes them, and what is refused of files."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from tests.support import published_saes
from tests.support.published_saes import LATENTS, UNITS, K, draw, linear_tensors
from workers.errors import RequestError
from workers.sparse.autoencoder import SparseAutoencoder
from workers.sparse.published.canonical import build_network
from workers.sparse.published.formats import read_published
from workers.sparse.quality import measure_reconstruction

pytestmark = pytest.mark.usefixtures("one_thread")


def read(path: Path) -> SparseAutoencoder:
    return build_network(read_published(path))


# --- what each format computes ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", published_saes.ALL)
def test_latents_are_those_of_the_published_formula(tmp_path: Path, name: str) -> None:
    written = published_saes.ALL[name](tmp_path / "sae")
    points = 2 * torch.randn(200, UNITS, generator=torch.Generator().manual_seed(9)) + 1
    latents, rebuilt = written.formula(points)
    network = read(written.path)
    with torch.no_grad():
        assert torch.allclose(network.encode(points), latents, atol=1e-5, rtol=1e-5)
        found, again = network.reconstruct(points)
    assert torch.equal(found, network.encode(points))
    assert torch.allclose(again, rebuilt, atol=1e-4, rtol=1e-5)
    assert 0 < (latents != 0).float().mean() < 1


@pytest.mark.parametrize("name", ["openai_identity", "saev_topk"])
def test_negative_latents_are_kept_and_count_as_active(tmp_path: Path, name: str) -> None:
    written = published_saes.ALL[name](tmp_path / "sae")
    network = read(written.path)
    points = torch.randn(50, UNITS, generator=torch.Generator().manual_seed(9))
    assert (network.encode(points) < 0).any()
    assert measure_reconstruction(network, points).at_positions.tolist() == [network.k] * 50


@pytest.mark.parametrize("name", ["saelens_constant_norm", "saelens_layer_norm"])
def test_a_position_of_zeros_stays_finite(tmp_path: Path, name: str) -> None:
    """Layers after a ReLU have them; a norm of 0 would make them NaN."""
    network = read(published_saes.ALL[name](tmp_path / "sae").path)
    latents, rebuilt = network.reconstruct(torch.zeros(3, UNITS))
    assert latents.isfinite().all()
    assert torch.equal(rebuilt, torch.zeros(3, UNITS))


def test_half_precision_is_read(tmp_path: Path) -> None:
    folder = published_saes.saelens(tmp_path / "sae", {name: each.bfloat16() for name, each in draw().items()})
    assert torch.equal(read(folder).decoder, draw()["W_dec"].bfloat16().float())


def test_a_file_stands_for_its_folder(tmp_path: Path) -> None:
    folder = published_saes.saelens(tmp_path / "sae")
    assert torch.equal(read(folder / "sae_weights.safetensors").encoder, read(folder).encoder)


# --- what is refused ----------------------------------------------------------------------------------------


def spoil(**changes: torch.Tensor | None) -> dict[str, torch.Tensor]:
    """Weights of SAELens with others in their place; None leaves one out."""
    return {name: each for name, each in (draw() | changes).items() if each is not None}


class Sneaky:
    """A class that a pickle would have to build."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("made-by-a-pickle",)


def dictionary(kind: str = "BatchTopKSAE", /, left_out: str = "", **more: Any) -> Callable[[Path], Path]:
    tensors = linear_tensors(draw(), threshold=torch.tensor(1.0)) | more
    tensors.pop(left_out, None)
    return lambda folder: published_saes.dictionary(folder, kind, tensors)


def write_two(folder: Path) -> Path:
    published_saes.saelens(folder)
    return published_saes.sparsify(folder)


def write_empty(folder: Path) -> Path:
    folder.mkdir()
    (folder / "README.md").write_text("none")
    return folder


def write_text(name: str, content: bytes) -> Callable[[Path], Path]:
    """A folder of SAELens with another file in the place of one of its own."""

    def write(folder: Path) -> Path:
        (published_saes.saelens(folder) / name).write_bytes(content)
        return folder

    return write


def write_huge(folder: Path) -> Path:
    """A file of 9 GiB that takes no room on the disk."""
    with (published_saes.prisma(folder) / "weights.pt").open("r+b") as file:
        file.truncate(9 << 30)
    return folder


def without_config(folder: Path) -> Path:
    (published_saes.saelens(folder) / "cfg.json").unlink()
    return folder


def write_old_pickle(folder: Path) -> Path:
    (published_saes.prisma(folder) / "weights.pt").write_bytes(pickle.dumps({"cfg": Sneaky()}))
    return folder


def saelens(**config: Any) -> Callable[[Path], Path]:
    return lambda folder: published_saes.saelens(folder, **config)


def prisma(tensors: object = None, **config: Any) -> Callable[[Path], Path]:
    return lambda folder: published_saes.prisma(folder, tensors, **config)


def saev(activation: object, **more: Any) -> Callable[[Path], Path]:
    return lambda folder: published_saes.saev(folder, activation, **more)


def openai(**more: Any) -> Callable[[Path], Path]:
    return lambda folder: published_saes.openai(folder, **more)


REFUSED: dict[str, tuple[Callable[[Path], Path], str]] = {
    "no such place": (lambda folder: folder, "There is no folder or file .*sae"),
    "no layout": (write_empty, r"no auto-encoder in a known layout\. Known are: SAELens"),
    "several layouts": (write_two, "several files with weights: sae.safetensors, sae_weights.safetensors"),
    "no config": (without_config, "lacks cfg.json beside it"),
    "config is no JSON": (write_text("cfg.json", b"{"), "cfg.json holds no JSON that can be read"),
    "config is a list": (write_text("cfg.json", b"[]"), "cfg.json holds no JSON object"),
    "config is deep": (write_text("cfg.json", b"[" * 100_000), "cfg.json holds no JSON that can be read"),
    "config is long": (write_text("cfg.json", b" " * (1 << 20) + b"{}"), r"at most 1,048,576 can be read"),
    "weights are damaged": (write_text("sae_weights.safetensors", b"no tensors"), "safetensors cannot be read"),
    "gated": (saelens(architecture="gated"), 'architecture = "gated"; only standard, topk and jumprelu'),
    "transcoder": (saelens(architecture="transcoder"), 'architecture = "transcoder"'),
    "activation": (saelens(activation_fn_str="tanh-relu"), 'activation_fn_str = "tanh-relu"; only relu and topk'),
    "measured scale": (saelens(normalize_activations="expected_average_only_in"), "the factor.* is in no file"),
    "normalisation": (saelens(normalize_activations="batch_norm"), 'normalize_activations = "batch_norm"; only none'),
    "fine-tuned": (saelens(finetuning_scaling_factor=True), "finetuning_scaling_factor = true; only false"),
    "rescaled": (saelens(rescale_acts_by_decoder_norm=True), "only false for this architecture"),
    "flag": (saelens(apply_b_dec_to_input="no"), 'apply_b_dec_to_input = "no"; only true or false'),
    "k is missing": (saelens(architecture="topk"), "lacks k"),
    "k is no number": (saelens(architecture="topk", k=-1), "k = -1; only a whole number from 1 on"),
    "k is too large": (saelens(architecture="topk", k=21), "k is 21 with 20 latents"),
    "threshold is missing": (saelens(architecture="jumprelu"), "lacks 'threshold', .* it holds"),
    "widths contradict": (saelens(d_in=7), "W_enc in .* has the shape 6 x 20, and not 7 x 20"),
    "bias is missing": (saelens(tensors=spoil(b_enc=None)), "lacks 'b_enc'"),
    "shapes": (saelens(tensors=spoil(W_dec=torch.ones(19, 6))), "W_dec in .* has the shape 19 x 6, and not 20 x 6"),
    "not finite": (saelens(tensors=spoil(b_dec=torch.full((6,), torch.nan))), "b_dec in .* infinite or no numbers"),
    "another tensor": (saelens(tensors=spoil(W_skip=torch.ones(6, 6))), "also holds W_skip"),
    "row of zeros": (
        saelens(tensors=spoil(W_dec=torch.zeros(20, 6)), architecture="topk", k=2, rescale_acts_by_decoder_norm=True),
        "Latent 0 has a decoder row of zeros",
    ),
    "too large once multiplied": (
        saelens(
            tensors=spoil(W_enc=torch.full((6, 20), 1e38), b_dec=torch.full((6,), 1e38)), apply_b_dec_to_input=False
        ),
        "infinite once their parts are multiplied",
    ),
    "dictionary of another class": (dictionary("GatedAutoEncoder"), 'dict_class = "GatedAutoEncoder"; only AutoEnc'),
    "threshold of BatchTopK": (dictionary(left_out="threshold"), "lacks 'threshold'"),
    "two k": (dictionary(k=torch.tensor(5)), "k is 5 in .*ae.pt, and 4 in .*config.json"),
    "groups": (
        lambda folder: published_saes.dictionary(
            folder,
            "MatryoshkaBatchTopKSAE",
            {**draw(), "threshold": torch.tensor(1.0), "group_sizes": torch.tensor([5, 5])},
        ),
        "add up to 10, and there are 20 latents",
    ),
    "groupmax": (lambda folder: published_saes.sparsify(folder, activation="groupmax"), 'activation = "groupmax"'),
    "sparsify transcoder": (lambda folder: published_saes.sparsify(folder, transcode=True), "transcode = true"),
    "skip": (
        lambda folder: published_saes.sparsify(folder, {"W_skip": torch.ones(UNITS, UNITS)}),
        "also holds W_skip",
    ),
    "activation of OpenAI": (openai(activation="Identity"), 'activation = "Identity"; only ReLU and TopK'),
    "TopK of OpenAI": (openai(activation="TopK"), "lacks 'k'"),
    "fraction of k": (
        openai(activation="TopK", activation_state_dict={"k": 2.5, "postact_fn": "ReLU"}),
        "k in .* is 2.5, and no whole number",
    ),
    "after TopK": (
        openai(activation="TopK", activation_state_dict={"k": K, "postact_fn": "GELU"}),
        'postact_fn = "GELU"; only ReLU and Identity',
    ),
    "schema": (saev({"cls": "Relu", "params": {}}, schema=1), "schema = 1; only 2 to 5"),
    "activation of saev": (saev({"cls": "Gelu"}), 'cls = "Gelu"; only Relu, TopK, BatchTopK'),
    "k of saev": (saev({"cls": "TopK", "params": {}}), "top_k = null; only a whole number"),
    "threshold of saev": (saev({"cls": "BatchTopK", "params": {"top_k": 3}}), "lacks 'activation.threshold'"),
    "class in a file": (prisma({"cfg": Sneaky(), "state_dict": draw()}), r"needs posix\.mkdir.*save its tensors"),
    "old pickle": (write_old_pickle, "not saved by PyTorch 1.6 or later.*save its tensors"),
    "nested tensors": (prisma({"state_dict": draw()}), "in no known layout"),
    "no names": (prisma([1, 2]), "no tensors with names"),
    "gated Prisma": (prisma(architecture="gated"), 'architecture = "gated"; only standard'),
    "huge file": (write_huge, "9,663,676,416 bytes; at most 8,589,934,592"),
    "huge shape": (
        prisma(draw() | {"W_enc": torch.zeros(1).expand(1 << 20, 1 << 20)}),
        r"would take 4,096\.0 GiB; at most 8 GiB",
    ),
    "sparse tensor": (
        prisma(draw() | {"W_enc": torch.eye(UNITS, LATENTS).to_sparse()}),
        "W_enc in .* is no plain tensor",
    ),
    "text for a tensor": (prisma(draw() | {"W_enc": "weights"}), "W_enc in .* is no plain tensor"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_with_the_reason(tmp_path: Path, name: str) -> None:
    write, says = REFUSED[name]
    with pytest.raises(RequestError, match=says):
        read(write(tmp_path / "sae"))
    assert not Path("made-by-a-pickle").exists()


def test_a_long_first_line_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "sae.pt").write_bytes(b"{" + b" " * (2 << 20))
    with pytest.raises(RequestError, match="no line of under 1 MiB"):
        read(tmp_path)


def test_a_zip_that_unpacks_to_more_than_fits_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = published_saes.prisma(tmp_path / "sae")
    size = (folder / "weights.pt").stat().st_size
    (folder / "weights.pt").write_bytes(repack(folder / "weights.pt"))
    monkeypatch.setattr("workers.sparse.published.reading.MAX_BYTES", size)
    with pytest.raises(RequestError, match="it unpacks to over"):
        read(folder)


def repack(path: Path) -> bytes:
    """A zip of a megabyte of zeros in a kilobyte."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(1 << 20))
    return packed.getvalue()


def test_another_pt_without_config_is_named(tmp_path: Path) -> None:
    torch.save(draw(), tmp_path / "weights.pt")
    with pytest.raises(RequestError, match=r"weights\.pt is in no known layout"):
        read(tmp_path)


def test_a_folder_of_shards_is_refused(tmp_path: Path) -> None:
    save_file(draw(), tmp_path / "a.safetensors")
    save_file(draw(), tmp_path / "b.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({}))
    with pytest.raises(RequestError, match="Name one of them"):
        read(tmp_path)
