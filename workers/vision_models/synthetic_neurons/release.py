"""The neurons of MAIA's published code, under its numbers: 47, 18 and 20, where the paper's text counts 85.

They are those of its folder of labels, in that order, which published exemplars and transcripts go by. The paper's own
Table A4 prints others and sorts them. What the code calls "and" is the paper's conditional neuron.
"""

from __future__ import annotations

from workers.vision_models.synthetic_neurons.neuron import NeuronTable, build_table

_TABLE = build_table(
    mono="""
        stripes, bridge, jigsaw, handle, sunglasses, bird, arch, boat, feathers, tail, bug, text, pink, blue, dog,
        hands, tractor, frog, shirt, hat, roof, wing, hair, shoulders, circle, grass, orange, neck, flame, pizza,
        button, tires, building, eyes, paws, brick, legs, shoes, car window, pencil, light, snake, yarn, vehicle,
        jeans, sky, spiral
    """,
    either="""
        people or building, shoe or boat, window or wheel, truck or train, hand or ear, temple or playground,
        baby or dog, necklace or flower, dog or horse, dog or car, cup or road, blue or yellow, fire or fur,
        sink or pool, dog or bird, train or instrument, red or purple, people or wood
    """,
    conditional="""
        building | sky, cup | handle, horse | grass, grass | dog, red | orange, water | blue, dog | leash,
        snow | road, fish | water, sky | bird, beach | people, fence | animal, instrument | hand, skyline | water,
        tent | mountain, bird | tree, ball | hand, bridge | sky, suit | tie, wheel | racecar
    """,
)
RELEASED_NEURONS: NeuronTable = {"mono": _TABLE["mono"], "or": _TABLE["or"], "and": _TABLE["conditional"]}
