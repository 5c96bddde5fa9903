"""Small checkpoints with random weights, saved to disk by the real classes of transformers.

They are loaded by folder through the registry, exactly as `microsoft/resnet-152` is by its id.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file, save_file

from workers import registry
from workers.protocols import LabSettings

CLASSES = ("cat", "dog", "crane (bird)", "teapot", "zebra")
LABELS = {"id2label": dict(enumerate(CLASSES)), "label2id": {name: at for at, name in enumerate(CLASSES)}}
BLOCKS = {"num_hidden_layers": 2, "hidden_size": 12, "num_attention_heads": 2, "intermediate_size": 20}
FLAT = {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.25, 0.3]}
SQUARE = transformers.ViTImageProcessorPil(size={"height": 32, "width": 32}, **FLAT)
CROPPED = transformers.ConvNextImageProcessorPil(size={"shortest_edge": 56}, crop_pct=0.875, **FLAT)
CLIPPED = transformers.CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}, **FLAT)


def resnet(folder: Path, seed: int = 0) -> Path:
    """A ResNet of bottlenecks, four stages; sees the central 56 of 64 pixels."""
    config = transformers.ResNetConfig(depths=[1, 2, 1, 1], hidden_sizes=[16, 24, 32, 40], embedding_size=8, **LABELS)
    return saved(transformers.ResNetForImageClassification, config, CROPPED, folder, seed)


def resnet_152(folder: Path) -> Path:
    """The shape of microsoft/resnet-152, as it is at the start of training."""
    config = transformers.ResNetConfig(depths=[3, 8, 36, 3], layer_type="bottleneck", num_labels=1000)
    processor = transformers.ConvNextImageProcessorPil(size={"shortest_edge": 224}, crop_pct=0.875)
    return saved(transformers.ResNetForImageClassification, config, processor, folder, spread=0)


def vit_base(folder: Path) -> Path:
    """The shape of google/vit-base-patch16-224, as it is at the start of training."""
    processor = transformers.ViTImageProcessorPil(size={"height": 224, "width": 224})
    return saved(
        transformers.ViTForImageClassification, transformers.ViTConfig(num_labels=1000), processor, folder, spread=0
    )


def dino(folder: Path, seed: int = 0) -> Path:
    """A ViT without a pooler, 4 x 4 patches, as facebook/dino-vits8 is one."""
    config = transformers.ViTConfig(**BLOCKS, image_size=32, patch_size=8)
    return saved(transformers.ViTModel, config, SQUARE, folder, seed, add_pooling_layer=False)


def wide_dino(folder: Path) -> Path:
    """The same for images twice as wide as high."""
    config = transformers.ViTConfig(**BLOCKS, image_size=[32, 64], patch_size=8)
    processor = transformers.ViTImageProcessorPil(size={"height": 32, "width": 64}, **FLAT)
    return saved(transformers.ViTModel, config, processor, folder, add_pooling_layer=False)


def vit(folder: Path) -> Path:
    config = transformers.ViTConfig(**BLOCKS, image_size=32, patch_size=8, **LABELS)
    return saved(transformers.ViTForImageClassification, config, SQUARE, folder)


def distilled(folder: Path) -> Path:
    """A DeiT: a class token and a distillation token in front."""
    config = transformers.DeiTConfig(**BLOCKS, image_size=32, patch_size=8, **LABELS)
    return saved(transformers.DeiTForImageClassificationWithTeacher, config, SQUARE, folder)


def dinov2(folder: Path) -> Path:
    """DINOv2 with registers, trained on larger images than its processor gives."""
    sizes = {"num_hidden_layers": 2, "hidden_size": 12, "num_attention_heads": 2, "mlp_ratio": 2}
    config = transformers.Dinov2WithRegistersConfig(**sizes, image_size=64, patch_size=8, **LABELS)
    return saved(transformers.Dinov2WithRegistersForImageClassification, config, SQUARE, folder)


def clip(folder: Path) -> Path:
    """Both towers of a CLIP model."""
    side = transformers.CLIPVisionConfig(**BLOCKS, image_size=32, patch_size=8)
    text = transformers.CLIPTextConfig(**BLOCKS, vocab_size=20)
    config = transformers.CLIPConfig(text_config=text.to_dict(), vision_config=side.to_dict())
    return saved(transformers.CLIPModel, config, CLIPPED, folder)


def clip_classifier(folder: Path) -> Path:
    """A head of classes on the image side of CLIP, which its configuration keeps inside another."""
    side = transformers.CLIPVisionConfig(**BLOCKS, image_size=32, patch_size=8)
    config = transformers.CLIPConfig(vision_config=side.to_dict(), **LABELS)
    return saved(transformers.CLIPForImageClassification, config, CLIPPED, folder)


def siglip_classifier(folder: Path) -> Path:
    """The same of SigLIP."""
    side = transformers.SiglipVisionConfig(**BLOCKS, image_size=32, patch_size=8)
    config = transformers.SiglipConfig(vision_config=side.to_dict(), **LABELS)
    return saved(transformers.SiglipForImageClassification, config, SQUARE, folder)


def clip_judge(folder: Path, vocabulary: Sequence[str]) -> Path:
    """CLIP that reads these words too, by a tokenizer of whole words."""
    side = transformers.CLIPVisionConfig(**BLOCKS, image_size=32, patch_size=8)
    text = transformers.CLIPTextConfig(
        **BLOCKS, vocab_size=len(vocabulary) + 4, max_position_embeddings=16, bos_token_id=2, eos_token_id=3
    )
    config = transformers.CLIPConfig(text_config=text.to_dict(), vision_config=side.to_dict(), projection_dim=12)
    _save_words(vocabulary, folder)
    return saved(transformers.CLIPModel, config, CLIPPED, folder)


def siglip_judge(folder: Path, vocabulary: Sequence[str]) -> Path:
    """The same of SigLIP."""
    side = transformers.SiglipVisionConfig(**BLOCKS, image_size=32, patch_size=8)
    text = transformers.SiglipTextConfig(**BLOCKS, vocab_size=len(vocabulary) + 4, max_position_embeddings=16)
    config = transformers.SiglipConfig(text_config=text.to_dict(), vision_config=side.to_dict())
    _save_words(vocabulary, folder)
    processor = transformers.SiglipImageProcessorPil(size={"height": 32, "width": 32}, **FLAT)
    return saved(transformers.SiglipModel, config, processor, folder)


def _save_words(vocabulary: Sequence[str], folder: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    numbers = {word: at for at, word in enumerate(["<pad>", "<unk>", "<s>", "</s>", *vocabulary])}
    words = Tokenizer(models.WordLevel(numbers, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 2), ("</s>", 3)])
    found = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    found.save_pretrained(folder)


def mae(folder: Path) -> Path:
    """A ViT-MAE as it was trained: it hides most patches at random, and shuffles the rest."""
    config = transformers.ViTMAEConfig(
        **BLOCKS, image_size=32, patch_size=8, decoder_hidden_size=8, decoder_num_hidden_layers=1,
        decoder_num_attention_heads=2, decoder_intermediate_size=8,
    )  # fmt: skip
    return saved(transformers.ViTMAEForPreTraining, config, SQUARE, folder)


def mobilenet(folder: Path) -> Path:
    config = transformers.MobileNetV2Config(image_size=32, depth_multiplier=0.25, **LABELS)
    return saved(transformers.MobileNetV2ForImageClassification, config, SQUARE, folder, spread=0.01)


def dinov3_convnext(folder: Path) -> Path:
    config = transformers.DINOv3ConvNextConfig(hidden_sizes=[8, 12, 16, 20], depths=[1, 1, 1, 1], image_size=64)
    processor = transformers.ViTImageProcessorPil(size={"height": 64, "width": 64}, **FLAT)
    return saved(transformers.DINOv3ConvNextModel, config, processor, folder)


def convnext(folder: Path) -> Path:
    config = transformers.ConvNextConfig(depths=[1, 1, 1, 1], hidden_sizes=[8, 12, 16, 20], **LABELS)
    processor = transformers.ConvNextImageProcessorPil(size={"shortest_edge": 64}, crop_pct=1.0, **FLAT)
    return saved(transformers.ConvNextForImageClassification, config, processor, folder)


def swin(folder: Path) -> Path:
    sizes = {"depths": [1, 1], "num_heads": [2, 2], "embed_dim": 8, "image_size": 32, "patch_size": 4, "window_size": 4}
    return saved(transformers.SwinForImageClassification, transformers.SwinConfig(**sizes, **LABELS), SQUARE, folder)


def poolformer(folder: Path) -> Path:
    config = transformers.PoolFormerConfig(depths=[1, 1, 1, 1], hidden_sizes=[8, 12, 16, 20], **LABELS)
    processor = transformers.PoolFormerImageProcessorPil(
        size={"shortest_edge": 64}, crop_pct=0.9, crop_size={"height": 64, "width": 64}, **FLAT
    )
    return saved(transformers.PoolFormerForImageClassification, config, processor, folder)


def pvt(folder: Path, side: int = 64) -> Path:
    """The first PVT: four stages, a class token in the last; it takes images of its own size alone."""
    sizes = {"depths": [1, 2, 1, 1], "hidden_sizes": [8, 12, 16, 20], "num_attention_heads": [1, 2, 2, 2]}
    config = transformers.PvtConfig(**sizes, image_size=side, num_labels=len(CLASSES), **LABELS)
    processor = transformers.ViTImageProcessorPil(size={"height": side, "width": side}, **FLAT)
    return saved(transformers.PvtForImageClassification, config, processor, folder)


def swiftformer(folder: Path) -> Path:
    """An architecture without names for its layers."""
    config = transformers.SwiftFormerConfig(image_size=64, depths=[1] * 4, embed_dims=[8, 12, 16, 20], **LABELS)
    processor = transformers.ViTImageProcessorPil(size={"height": 64, "width": 64}, **FLAT)
    return saved(transformers.SwiftFormerForImageClassification, config, processor, folder)


def dinov3(folder: Path) -> Path:
    """DINOv3, whose own processor needs torchvision, which is not there: its config is written as published."""
    config = transformers.DINOv3ViTConfig(
        **{**BLOCKS, "hidden_size": 16}, image_size=32, patch_size=8, num_register_tokens=4
    )
    saved(transformers.DINOv3ViTModel, config, SQUARE, folder)
    path = folder / "preprocessor_config.json"
    path.write_text(path.read_text().replace("ViTImageProcessor", "DINOv3ViTImageProcessorFast"))
    return folder


def language(folder: Path) -> Path:
    """No image model."""
    config = transformers.BertConfig(**BLOCKS, vocab_size=20)
    return saved(transformers.BertModel, config, SQUARE, folder)


def saved(
    kind: Any, config: Any, processor: Any, folder: Path, seed: int = 0, spread: float = 0.1, **options: Any
) -> Path:
    """Write a network with random weights, spread wider than at the start of training, and its processor."""
    torch.manual_seed(seed)
    network = kind(config, **options)
    with torch.no_grad():
        for weight in network.parameters():
            weight += spread * torch.randn_like(weight)
    network.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def alter(folder: Path, name: str, change: Any) -> None:
    """Replace a tensor of a checkpoint by `change(tensor)`; None removes it."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    new = change(tensors.pop(name))
    save_file(tensors if new is None else {**tensors, name: new}, path, metadata={"format": "pt"})


def configure(folder: Path, **changes: Any) -> None:
    """Change the config of a checkpoint."""
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def model(folder: Path | str, **settings: Any) -> Any:
    """The model in a folder, as the laboratory gets it."""
    return registry.load(registry.VISION_MODELS, f"hf:{folder}")(LabSettings(Path("unused"), **settings))


def noise(count: int, seed: int = 0, size: tuple[int, int] = (48, 48)) -> list[Image.Image]:
    """Images of `size` (width, height), coarse enough to survive being scaled."""
    pixels = np.random.default_rng(seed).integers(0, 256, (count, 6, 6, 3), dtype=np.uint8)
    return [Image.fromarray(each).resize(size, Image.Resampling.BILINEAR) for each in pixels]


def yolos(folder: Path, detections: int = 3) -> Path:
    """A class token in front and tokens of detections behind."""
    config = transformers.YolosConfig(**BLOCKS, image_size=[32, 32], patch_size=8, num_detection_tokens=detections)
    return saved(transformers.YolosForObjectDetection, config, SQUARE, folder)


def beit(folder: Path) -> Path:
    config = transformers.BeitConfig(**BLOCKS, image_size=32, patch_size=8, use_relative_position_bias=True, **LABELS)
    return saved(transformers.BeitForImageClassification, config, SQUARE, folder)


def segformer(folder: Path) -> Path:
    """Four stages without a class token."""
    config = transformers.SegformerConfig(
        depths=[1] * 4, hidden_sizes=[8, 12, 16, 20], num_attention_heads=[1, 2, 2, 2], decoder_hidden_size=8, **LABELS
    )
    return saved(transformers.SegformerForImageClassification, config, SQUARE, folder)


def see(folder: Path, height: int, width: int) -> Path:
    """Have a checkpoint's processor squeeze images into another size."""
    transformers.ViTImageProcessorPil(size={"height": height, "width": width}, **FLAT).save_pretrained(folder)
    return folder
