"""The paper's Table A4, row by row. Its text speaks of 85 neurons; the table prints these 88: 45, 24 and 19."""

from __future__ import annotations

from workers.vision_models.synthetic_neurons.neuron import build_table

TABLE_A4 = build_table(
    mono="""
        arch, bird, blue, boat, brick, bridge, bug, building, button, car window, circle, dog, eyes, feathers, flame,
        frog, grass, hair, hands, handle, hat, jeans, jigsaw, legs, light, neck, orange, paws, pencil, pizza, roof,
        shirt, shoes, sky, snake, spiral, stripes, sunglasses, tail, text, tires, tractor, vehicle, wing, yarn
    """,
    either="""
        animal or door, animal or ship, baby or dog, bird or dog, blue or yellow, bookshelf or building, cup or road,
        dog or car, dog or horse, dog or instrument, fire or fur, firework or whisker, hand or ear, necklace or flower,
        people or building, people or wood, red or purple, shoe or boat, sink or pool, skirt or water,
        stairs or fruit, temple or playground, truck or train, window or wheel
    """,
    conditional="""
        ball | hand, beach | people, bird | tree, bridge | sky, building | sky, cup | handle, dog | leash,
        fence | animal, fish | water, grass | dog, horse | grass, instrument | hand, skyline | water, sky | bird,
        snow | road, suit | tie, tent | mountain, water | blue, wheel | racecar
    """,
)
