"""The form that asks for a run, filled in."""

from __future__ import annotations

GOOD = {
    "question": "What excites it?",
    "task": "describe",
    "model": "toybox",
    "layer": "layer4",
    "unit": "7",
    "dataset": "toybox",
    "toolset": "toybox",
    "backbone": "scripted",
    "backbone_model": "",
    "rounds": "3",
    "tokens": "",
    "cost": "0.5",
    "seconds": "60",
    "seed": "",
}
