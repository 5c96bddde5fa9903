"""Grounding DINO and SAM as a detector: real classes, tiny random checkpoints saved to disk, loaded by folder."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from workers import registry
from workers.detectors.grounding_dino import PUBLISHED, DetectionSettings, GroundingDino, _Box, _Dino, _Sam
from workers.errors import MissingPart, UnknownName
from workers.protocols import Detection, Detector, LabSettings
from workers.vision_models.synthetic.model import SyntheticModel

pytestmark = pytest.mark.usefixtures("one_thread")

SETTINGS = LabSettings(Path("unused"), batch_size=2)
CONCEPTS = ["ball", "hand", "cone", "ball hand"]
Found = list[dict[str, list[Detection]]]


def photographs(*sizes: tuple[int, int]) -> list[Image.Image]:
    """Soft blots of colour, a different image for each (width, height)."""
    images = []
    for seed, size in enumerate(sizes):
        pixels = np.random.default_rng(seed).integers(0, 256, (12, 16, 3), dtype=np.uint8)
        images.append(Image.fromarray(pixels).resize(size))
    return images


IMAGES = photographs((100, 70), (64, 64), (60, 120))


def save_dino(folder: Path) -> None:
    """A Grounding DINO of a few thousand weights, with a vocabulary whose delimiters are numbered as in BERT."""
    from transformers import (
        BertConfig,
        BertTokenizer,
        GroundingDinoConfig,
        GroundingDinoForObjectDetection,
        GroundingDinoImageProcessorPil,
        SwinConfig,
    )

    folder.mkdir()
    words = ["[PAD]", *(f"[unused{n}]" for n in range(99)), "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words += [*(f"word{n}" for n in range(1012 - len(words))), ".", "ball", "cone", "hand"]
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    (folder / "vocab.txt").unlink()
    swin = SwinConfig(
        image_size=64, embed_dim=12, depths=[1] * 4, num_heads=[1, 1, 2, 2], window_size=4, out_indices=[2, 3, 4]
    )
    text = {"num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 64}
    bert = BertConfig(vocab_size=len(words), hidden_size=16, intermediate_size=16, **text)
    small = dict.fromkeys(["encoder_attention_heads", "decoder_attention_heads", "decoder_layers", "num_queries"], 2)
    config = GroundingDinoConfig(
        backbone_config=swin,
        text_config=bert,
        d_model=32,
        encoder_layers=1,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        **small,
    )
    torch.manual_seed(2)
    network = GroundingDinoForObjectDetection(config)
    last = network.model.decoder.layer_norm  # set so that words match on both sides of the thresholds
    last.weight.data, last.bias.data = 0.3 * last.weight.data, 0.3 * torch.randn(32)
    network.save_pretrained(folder)
    GroundingDinoImageProcessorPil(size={"shortest_edge": 72, "longest_edge": 120}).save_pretrained(folder)


def save_sam(folder: Path) -> None:
    from transformers import SamConfig, SamImageProcessorPil, SamModel

    vision = {"hidden_size": 16, "output_channels": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = SamConfig(
        vision_config={**vision, "image_size": 64, "mlp_dim": 16, "global_attn_indexes": [0], "num_pos_feats": 8},
        prompt_encoder_config={"hidden_size": 16, "image_size": 64, "mask_input_channels": 4},
        mask_decoder_config={"hidden_size": 16, "mlp_dim": 16, "num_attention_heads": 2, "iou_head_hidden_dim": 16},
    )
    torch.manual_seed(0)
    SamModel(config).save_pretrained(folder)
    sizes = {"size": {"longest_edge": 64}, "pad_size": {"height": 64, "width": 64}}
    SamImageProcessorPil(**sizes, mask_size={"longest_edge": 16}).save_pretrained(folder)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    root = tmp_path_factory.mktemp("checkpoints")
    save_dino(root / "dino")
    save_sam(root / "sam")
    return root / "dino", root / "sam"


def load(dino: Path, sam: Path, settings: LabSettings = SETTINGS) -> Detector:
    found: Detector = registry.load(registry.DETECTORS, f"grounding-dino:{dino},{sam}")(settings)
    return found


@pytest.fixture(scope="module")
def detector(folders: tuple[Path, Path]) -> Detector:
    return load(*folders)


@pytest.fixture(scope="module")
def found(detector: Detector) -> Found:
    return detector.detect(IMAGES, CONCEPTS)


def test_the_detectors_of_the_published_code_are_asked_as_there(folders: tuple[Path, Path], found: Found) -> None:
    """Squares of 224 pixels, and another threshold; the index of other thresholds is another."""
    ours, published = load(*folders), GroundingDino(*folders, SETTINGS, "paper", PUBLISHED)
    assert published.revision != ours.revision
    assert published.name == "grounding-dino:paper"
    told = registry.missing(registry.VISION_MODELS, "synthetic:grounding-dino:paper", SETTINGS)
    assert "hf download IDEA-Research/grounding-dino-tiny" in told
    assert "hf download facebook/sam-vit-huge" in told
    with published._dino as dino:
        square = IMAGES[0].convert("RGB").resize((224, 224), Image.Resampling.LANCZOS)
        sizes: set[tuple[int, ...]] = set()
        watching = dino.network.register_forward_pre_hook(
            lambda _, __, given: sizes.add(tuple(given["pixel_values"].shape[2:])), with_kwargs=True
        )
        boxes = dino.boxes(square, CONCEPTS, PUBLISHED)
        watching.remove()
        assert sizes == {(224, 224)}
        best = max(each.confidence for here in boxes for each in here)
        assert not any(dino.boxes(square, CONCEPTS, DetectionSettings(best, 0, 224)))
    seen = published.detect(IMAGES[:1], CONCEPTS)[0]
    assert [len(each) for each in seen.values()] == [len(each) for each in boxes]
    assert all(each.confidence > 0.25 for here in boxes for each in here)
    shapes = {each.mask.shape for here in seen.values() for each in here}
    assert all(height == width for height, width in shapes)


def test_loading_in_half_precision_changes_no_default_of_other_threads(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[torch.dtype] = []
    choose = torch.set_default_dtype
    monkeypatch.setattr(torch, "set_default_dtype", lambda dtype: (chosen.append(dtype), choose(dtype)))
    half = GroundingDino(*folders, LabSettings(Path("unused"), precision="bfloat16"), "half")
    with half._dino as dino, half._sam as sam:
        assert {dino.network.dtype, sam.network.dtype} == {torch.bfloat16}
    assert set(chosen) == {torch.float32}


# --- what is found --------------------------------------------------------------------------------------


def test_each_image_has_its_own_finds_of_each_concept(found: Found) -> None:
    assert [list(each) for each in found] == [CONCEPTS] * len(IMAGES)
    counts = [len(here) for each in found for here in each.values()]
    assert 0 in counts  # the checkpoint finds something of some concepts in some images
    assert max(counts) > 0
    for detection in itertools.chain(*(here for each in found for here in each.values())):
        assert 0.3 < detection.confidence <= 1
        assert detection.mask.dtype == bool
        assert detection.mask.any()


def test_boxes_are_those_of_the_library_on_the_bare_network(folders: tuple[Path, Path]) -> None:
    from transformers import (
        BertTokenizer,
        GroundingDinoForObjectDetection,
        GroundingDinoImageProcessorPil,
        GroundingDinoProcessor,
    )

    folder = folders[0]
    network = GroundingDinoForObjectDetection.from_pretrained(folder).eval()
    pixels, words = GroundingDinoImageProcessorPil.from_pretrained(folder), BertTokenizer.from_pretrained(folder)
    dino = _Dino.load(folder, SETTINGS)
    for image in IMAGES:
        for concept, boxes in zip(CONCEPTS, dino.boxes(image, CONCEPTS), strict=True):
            inputs = {**pixels(images=[image], return_tensors="pt"), **words([f"{concept}."], return_tensors="pt")}
            with torch.no_grad():
                outputs = network(**inputs)
            library = GroundingDinoProcessor.post_process_grounded_object_detection
            expected = library(DecodesOnly(words), outputs, inputs["input_ids"], threshold=0.3, text_threshold=0.25)[0]
            kept = [place for place, text in enumerate(expected["text_labels"]) if set(text.split()) - {".", "[SEP]"}]
            scores, corners = expected["scores"][kept], expected["boxes"][kept].clamp(0, 1)
            torch.testing.assert_close(torch.tensor([box.confidence for box in boxes]), scores, atol=1e-4, rtol=1e-3)
            if boxes:
                places = torch.tensor([box.corners for box in boxes])
                torch.testing.assert_close(places, corners, atol=1e-4, rtol=1e-3)


class DecodesOnly:
    """What the library's post-processing needs of a processor."""

    def __init__(self, tokenizer):
        self.batch_decode = lambda many: [tokenizer.decode([int(each) for each in ids]) for ids in many]


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: f"{image.width}x{image.height}")
def test_masks_are_those_of_the_library_without_the_padding(folders: tuple[Path, Path], image: Image.Image) -> None:
    from transformers import SamImageProcessorPil, SamModel, SamProcessor

    boxes = [_Box(0.9, (0.1, 0.1, 0.6, 0.7)), _Box(0.8, (0.5, 0.2, 1.0, 1.0))]
    masks = [each.mask for each in _Sam.load(folders[1], SETTINGS).detections(image, {"ball": boxes})["ball"]]

    processor = SamProcessor(SamImageProcessorPil.from_pretrained(folders[1]))
    width, height = image.size
    places = [[x0 * width, y0 * height, x1 * width, y1 * height] for x0, y0, x1, y1 in (box.corners for box in boxes)]
    inputs = processor(images=image, input_boxes=[places], return_tensors="pt")
    sizes = inputs.pop("original_sizes"), inputs.pop("reshaped_input_sizes")
    with torch.no_grad():
        outputs = SamModel.from_pretrained(folders[1]).eval()(
            pixel_values=inputs["pixel_values"], input_boxes=inputs["input_boxes"].float(), multimask_output=False
        )
    large = processor.post_process_masks(outputs.pred_masks, *sizes)[0][:, 0]  # (boxes, height, width) of the image
    rows, columns = masks[0].shape
    assert (masks == (outputs.pred_masks[0, :, 0, :rows, :columns].numpy() > 0)).mean() > 0.999
    for mask, expected in zip(masks, large.numpy(), strict=True):
        assert mask.shape[0] / mask.shape[1] == pytest.approx(height / width, rel=0.15)
        enlarged = np.asarray(Image.fromarray(mask).resize(image.size, Image.Resampling.NEAREST))
        assert (enlarged == expected).mean() > 0.7  # a mask of noise has many edges


def test_what_is_found_depends_on_the_image_and_the_concept_alone(detector: Detector, found: Found) -> None:
    for image, each in zip(IMAGES, found, strict=True):
        for concept in CONCEPTS:
            ((alone,),) = [list(one.values()) for one in detector.detect([image], [concept])]
            assert_same(alone, each[concept])
    backwards = detector.detect(IMAGES[::-1], CONCEPTS[::-1])
    for each, again in zip(found, backwards[::-1], strict=True):
        for concept in CONCEPTS:
            assert_same(again[concept], each[concept])


def assert_same(some: Sequence[Detection], others: Sequence[Detection]) -> None:
    assert [each.confidence for each in some] == pytest.approx([each.confidence for each in others], abs=1e-4)
    assert all((one.mask == other.mask).mean() > 0.98 for one, other in zip(some, others, strict=True))


def test_many_concepts_pass_in_several_batches(detector: Detector, found: Found) -> None:
    names = [f"word{number}" for number in range(9)]
    many = detector.detect(IMAGES[:1], [*names, "ball"])
    assert list(many[0]) == [*names, "ball"]
    assert_same(many[0]["ball"], found[0]["ball"])


def test_where_the_mask_is_empty_the_box_stands_in(folders: tuple[Path, Path], tmp_path: Path) -> None:
    from transformers import SamModel

    shutil.copytree(folders[1], tmp_path / "sam")
    network = SamModel.from_pretrained(folders[1])
    for head in network.mask_decoder.output_hypernetworks_mlps:
        head.proj_out.weight.data.zero_()
        head.proj_out.bias.data.zero_()  # every mask logit is 0, and so outside
    network.save_pretrained(tmp_path / "sam")
    sam = _Sam.load(tmp_path / "sam", SETTINGS)
    boxes = [_Box(0.9, (0.25, 0.5, 0.75, 1.0)), _Box(0.9, (0.3, 0.3, 0.3, 0.3)), _Box(0.9, (1.0, 1.0, 1.0, 1.0))]
    half, point, corner = sam.detections(IMAGES[1], {"ball": boxes})["ball"]
    assert half.mask.shape == (16, 16)
    assert half.mask[8:, 4:12].all()
    assert half.mask.sum() == 64
    assert point.mask.sum() == corner.mask.sum() == 1


def test_odd_images_are_looked_at(detector: Detector) -> None:
    for found in detector.detect([Image.new("RGB", size) for size in ((1, 1), (200, 40), (40, 200))], ["ball"]):
        assert all(each.mask.any() for each in found["ball"])
    assert detector.detect([], ["ball"]) == []
    assert detector.detect(IMAGES[:1], []) == [{}]


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_half_precision_still_gives_probabilities(folders: tuple[Path, Path], precision: str) -> None:
    for found in load(*folders, LabSettings(Path("unused"), precision=precision)).detect(IMAGES, CONCEPTS):
        assert all(0.3 < each.confidence <= 1 for each in itertools.chain(*found.values()))


# --- synthetic neurons on it ----------------------------------------------------------------------------


def test_the_neurons_of_the_paper_answer_on_it(folders: tuple[Path, Path], detector: Detector, found: Found) -> None:
    key = f"synthetic:grounding-dino:{folders[0]},{folders[1]}"
    assert registry.missing(registry.VISION_MODELS, key, SETTINGS) == ""
    model: SyntheticModel = registry.load(registry.VISION_MODELS, key)(SETTINGS)
    assert [layer.units for layer in model.layers()] == [45, 24, 19]
    names = model.layers()[2].names
    assert names[0] == "ball | hand"
    maps = model.unit_maps(IMAGES, "conditional", 0)
    expected = [
        np.mean([each.confidence for each in one["ball"]]) if one["ball"] and one["hand"] else 0 for one in found
    ]
    assert maps.amax((1, 2)).tolist() == pytest.approx(expected, abs=1e-4)


# --- what is missing or broken --------------------------------------------------------------------------


def test_what_is_not_there_is_named_with_the_commands_that_get_it() -> None:
    lack = registry.missing(registry.DETECTORS, "grounding-dino", SETTINGS)
    assert "hf download IDEA-Research/grounding-dino-base" in lack
    assert "hf download facebook/sam-vit-base" in lack
    assert registry.missing(registry.VISION_MODELS, "synthetic:grounding-dino", SETTINGS) == lack


def test_two_models_must_be_named() -> None:
    for names in ("only-one", "one,", ",two", "one,two,three"):
        with pytest.raises(UnknownName, match="does not name two models"):
            registry.load(registry.DETECTORS, f"grounding-dino:{names}")(SETTINGS)


def test_a_concept_must_be_words(detector: Detector) -> None:
    for concept in ("", " . ", "a cat. a dog", "cat " * 300):
        with pytest.raises(UnknownName, match="is not a concept"):
            detector.detect(IMAGES[:1], ["ball", concept])


def test_folders_without_a_whole_checkpoint_are_refused(folders: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(MissingPart, match=r"no config\.json"):
        load(tmp_path, folders[1])
    bare = Path(shutil.copytree(folders[0], tmp_path / "bare"))
    (bare / "model.safetensors").unlink()
    assert "has no model.safetensors" in registry.missing(registry.DETECTORS, f"grounding-dino:{bare},{bare}", SETTINGS)
    with pytest.raises(MissingPart, match=r"model\.safetensors"):
        load(bare, folders[1])


def test_damaged_weights_are_reported_when_they_are_loaded(folders: tuple[Path, Path], tmp_path: Path) -> None:
    torn = Path(shutil.copytree(folders[0], tmp_path / "torn"))
    whole = (torn / "model.safetensors").read_bytes()
    (torn / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(MissingPart, match="torn holds no GroundingDinoForObjectDetection that can be loaded"):
        load(torn, folders[1]).detect(IMAGES[:1], ["ball"])


def test_a_checkpoint_of_another_kind_is_refused(folders: tuple[Path, Path], tmp_path: Path) -> None:
    swapped = Path(shutil.copytree(folders[0], tmp_path / "swapped"))
    shutil.copy(folders[1] / "model.safetensors", swapped / "model.safetensors")
    with pytest.raises(MissingPart, match="of its weights are missing, such as"):
        load(swapped, folders[1]).detect(IMAGES[:1], ["ball"])


def test_a_network_that_gives_no_numbers_is_reported(folders: tuple[Path, Path], tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    broken = Path(shutil.copytree(folders[0], tmp_path / "broken"))
    tensors = load_file(broken / "model.safetensors")
    tensors["model.decoder.layer_norm.weight"].fill_(float("nan"))
    save_file(tensors, broken / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(MissingPart, match=r"broken gives no numbers \(NaN\)"):
        load(broken, folders[1]).detect(IMAGES[:1], ["ball"])


def test_the_revision_is_that_of_both_checkpoints(folders: tuple[Path, Path], tmp_path: Path) -> None:
    same = Path(shutil.copytree(folders[0], tmp_path / "dino"))
    assert load(same, folders[1]).revision == load(*folders).revision
    (same / "preprocessor_config.json").write_text("{}")
    assert load(same, folders[1]).revision != load(*folders).revision
