"""A history that MAIA wrote."""

from __future__ import annotations

import base64
import io
from typing import Any

from PIL import Image as Pillow

PROGRAM = "[CODE]:\n```python\ndef execute_command(system, tools):\n    pass\n```"


def url(shade: int) -> dict[str, Any]:
    buffer = io.BytesIO()
    Pillow.new("RGB", (20, 20), (shade, 0, 0)).save(buffer, "JPEG")
    return {
        "type": "image_url",
        "image_url": {"url": f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"},
    }


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


HISTORY = [
    {"role": "system", "content": "You are an agent."},
    {"role": "user", "content": [text("Your task:"), text("describe the neuron")]},
    {"role": "assistant", "content": f"[HYPOTHESIS LIST]:\nHypothesis_1: dogs <b>\nHypothesis_2: cats\n{PROGRAM}"},
    {
        "role": "user",
        "content": [
            text('"a dog on grass", activation: 3.2'),
            url(1),
            text("a cat\nactivation: -0.5"),
            url(2),
            text("Overall dogs win."),
        ],
    },
    {"role": "assistant", "content": "I see."},
    {"role": "user", "content": "Go on."},
    {"role": "assistant", "content": [text("[DESCRIPTION]: It likes dogs.\n[LABEL]: dogs\n")]},
]
