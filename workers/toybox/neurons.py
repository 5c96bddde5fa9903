"""Neurons of toybox-eyes: each toy, and pairs of toys that stand together in over 35 of the 3,000 validation scenes."""

from __future__ import annotations

from workers.toybox.scenes import NOUNS
from workers.vision_models.synthetic_neurons.neuron import build_table

TOYS = build_table(
    mono=", ".join(NOUNS),
    either="""
        ball or cone, cube or pyramid, cylinder or ring, car or train, boat or rocket, house or tree,
        mushroom or snowman, duck or cup, chair or table, star or robot, cone or rocket, table or cup
    """,
    conditional="""
        ball | boat, cube | table, pyramid | train, star | cube, car | house, boat | tree, rocket | robot,
        house | mushroom, snowman | ring, duck | cube, cup | table, chair | car
    """,
)
