"""Small pipelines with random weights, made with the real classes and saved to disk as a hub's snapshot lies there.

The tokenizers know single letters only, so a letter is a token.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import torch
from diffusers import (
    AutoencoderKL,
    EulerAncestralDiscreteScheduler,
    FlowMatchEulerDiscreteScheduler,
    FluxKontextPipeline,
    FluxPipeline,
    FluxTransformer2DModel,
    PNDMScheduler,
    StableDiffusionInstructPix2PixPipeline,
    StableDiffusionPipeline,
    UNet2DConditionModel,
)
from diffusers.pipelines.stable_diffusion.safety_checker import StableDiffusionSafetyChecker
from safetensors.torch import load_file, save_file
from transformers import (
    CLIPConfig,
    CLIPImageProcessorPil,
    CLIPTextConfig,
    CLIPTextModel,
    CLIPTokenizer,
    T5Config,
    T5EncoderModel,
    T5TokenizerFast,
)

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,'!?-"
OLD_ARRAYS = "__array__ implementation doesn't accept a copy keyword"
"""Begins a warning of NumPy's about a scheduler of diffusers."""
SIDE = 32
"""Side in pixels of the images that these draw."""


def stable_diffusion(
    folder: Path, *, threshold: float | None = None, width: int = 8, latent: int = 8, blocks: int = 3
) -> Path:
    """A StableDiffusionPipeline. Its safety checker withholds what is nearer to its concepts than the threshold."""
    torch.manual_seed(0)
    pipeline = StableDiffusionPipeline(
        vae=autoencoder(blocks),
        text_encoder=text_encoder(),
        tokenizer=tokenizer(),
        unet=unet(4, width, latent),
        scheduler=PNDMScheduler(skip_prk_steps=True, steps_offset=1),
        safety_checker=None if threshold is None else safety_checker(threshold),
        feature_extractor=None if threshold is None else CLIPImageProcessorPil(size=16, crop_size=16),
        requires_safety_checker=threshold is not None,
    )
    pipeline.save_pretrained(folder)
    return folder


def pix2pix(folder: Path, *, threshold: float | None = None) -> Path:
    """A StableDiffusionInstructPix2PixPipeline, with the scheduler of the published one; see `stable_diffusion`."""
    torch.manual_seed(1)
    pipeline = StableDiffusionInstructPix2PixPipeline(
        vae=autoencoder(),
        text_encoder=text_encoder(),
        tokenizer=tokenizer(),
        unet=unet(8, 8, 8),
        scheduler=EulerAncestralDiscreteScheduler(),
        safety_checker=None if threshold is None else safety_checker(threshold),
        feature_extractor=None if threshold is None else CLIPImageProcessorPil(size=16, crop_size=16),
        requires_safety_checker=threshold is not None,
    )
    pipeline.save_pretrained(folder)
    return folder


def published(folder: Path, *, edits: bool = False) -> Path:
    """The shapes of Stable Diffusion 1.5, or of InstructPix2Pix, with random weights in half precision: 2 GB.

    Made where PyTorch makes tensors by default, which is much faster on a GPU.
    """
    torch.manual_seed(3)
    kind = StableDiffusionInstructPix2PixPipeline if edits else StableDiffusionPipeline
    pipeline = kind(
        **published_networks(8 if edits else 4),
        tokenizer=tokenizer(),
        scheduler=EulerAncestralDiscreteScheduler() if edits else PNDMScheduler(skip_prk_steps=True, steps_offset=1),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    pipeline.to(dtype=torch.float16).save_pretrained(folder)
    return folder


def published_networks(channels: int) -> dict[str, torch.nn.Module]:
    """Networks of the shapes that Stable Diffusion 1.5 has; its U-Net takes so many channels."""
    stages = (128, 256, 512, 512)
    words = CLIPTextConfig(
        hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12, projection_dim=768,
        bos_token_id=0, eos_token_id=1, pad_token_id=1,
    )  # fmt: skip
    return {
        "unet": UNet2DConditionModel(sample_size=64, in_channels=channels, cross_attention_dim=768),
        "vae": AutoencoderKL(
            block_out_channels=stages,
            down_block_types=("DownEncoderBlock2D",) * len(stages),
            up_block_types=("UpDecoderBlock2D",) * len(stages),
            layers_per_block=2,
            sample_size=512,
        ),
        "text_encoder": CLIPTextModel(words),
    }


def flux(folder: Path, *, kontext: bool = False) -> Path:
    """A FluxPipeline or a FluxKontextPipeline."""
    torch.manual_seed(2)
    kind = FluxKontextPipeline if kontext else FluxPipeline
    pipeline = kind(
        scheduler=FlowMatchEulerDiscreteScheduler(),
        vae=autoencoder(blocks=4 if kontext else 3),
        text_encoder=text_encoder(),
        tokenizer=tokenizer(),
        text_encoder_2=t5(),
        tokenizer_2=T5TokenizerFast(
            vocab=[("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0), *((each, -3.0) for each in LETTERS)],
            extra_ids=0,
            model_max_length=512,
        ),
        transformer=FluxTransformer2DModel(
            in_channels=16,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=32,
            pooled_projection_dim=32,
            axes_dims_rope=[4, 4, 8],
            guidance_embeds=True,
        ),
    )
    pipeline.save_pretrained(folder)
    return folder


def changed(folder: Path, copy: Path, part: str, change: Callable[[str, torch.Tensor], torch.Tensor | None]) -> Path:
    """A copy of a pipeline with other weights in one part; those for which `change` gives None are left out."""
    shutil.copytree(folder, copy)
    (path,) = (copy / part).glob("*.safetensors")
    weights = {name: change(name, value) for name, value in load_file(path).items()}
    save_file({name: value for name, value in weights.items() if value is not None}, path, {"format": "pt"})
    return copy


def unet(channels: int, width: int, latent: int) -> UNet2DConditionModel:
    return UNet2DConditionModel(
        sample_size=latent,
        in_channels=channels,
        out_channels=4,
        block_out_channels=(width, width * 2),
        layers_per_block=1,
        norm_num_groups=2,
        cross_attention_dim=32,
        attention_head_dim=4,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )


def autoencoder(blocks: int = 3) -> AutoencoderKL:
    return AutoencoderKL(
        block_out_channels=(4,) * blocks,
        down_block_types=("DownEncoderBlock2D",) * blocks,
        up_block_types=("UpDecoderBlock2D",) * blocks,
        latent_channels=4,
        norm_num_groups=2,
        shift_factor=0.1,
        mid_block_add_attention=False,
    )


def text_encoder() -> CLIPTextModel:
    return CLIPTextModel(
        CLIPTextConfig(
            vocab_size=2 + 2 * len(LETTERS),
            hidden_size=32,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            projection_dim=32,
            bos_token_id=0,
            eos_token_id=1,
            pad_token_id=1,
        )
    )


def tokenizer() -> CLIPTokenizer:
    words = ["<|startoftext|>", "<|endoftext|>", *LETTERS, *(f"{each}</w>" for each in LETTERS)]
    return CLIPTokenizer(vocab={word: at for at, word in enumerate(words)}, merges=[], model_max_length=77)


def t5() -> T5EncoderModel:
    return T5EncoderModel(T5Config(vocab_size=4 + len(LETTERS), d_model=32, d_kv=8, d_ff=32, num_layers=1, num_heads=2))


def safety_checker(threshold: float) -> StableDiffusionSafetyChecker:
    tiny = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    checker = StableDiffusionSafetyChecker(
        CLIPConfig(text_config=tiny, vision_config={**tiny, "image_size": 16, "patch_size": 8}, projection_dim=32)
    )
    checker.concept_embeds_weights.data.fill_(threshold)
    checker.special_care_embeds_weights.data.fill_(2.0)  # no image is as near as that
    return checker
