"""Rules from word to word, as tables: what relations are drawn from. Parts of a table can be left out of a rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """`words`: the rule in words, such as "the capital of the country"; `inputs`: what it takes; `parts`: name of a
    group of inputs -> its pairs, input and output."""

    words: str
    inputs: str
    parts: Mapping[str, Mapping[str, str]]

    @property
    def pairs(self) -> dict[str, str]:
        """All pairs of all parts."""
        return {given: said for part in self.parts.values() for given, said in part.items()}


def _read(words: str, inputs: str, parts: str) -> Rule:
    """Parse parts "name: input output, input output", where _ is a space in a word.

    A line that is indented further continues the part before.
    """
    # A continued line belongs to the part before, so the break is removed before lines are split
    listed = [line.partition(":") for line in parts.strip().replace("\n      ", " ").splitlines()]
    return Rule(words, inputs, {name.strip(): _read_pairs(pairs) for name, _, pairs in listed})


def _read_pairs(text: str) -> dict[str, str]:
    pairs = (pair.split() for pair in text.split(",") if pair.strip())
    return {given.replace("_", " "): said.replace("_", " ") for given, said in pairs}


RULES = (
    _read(
        "the capital of the country",
        "countries",
        """
    countries of Europe: France Paris, Germany Berlin, Spain Madrid, Italy Rome, Norway Oslo, Poland Warsaw,
      Greece Athens, Portugal Lisbon, Austria Vienna, Sweden Stockholm, Hungary Budapest, Ireland Dublin
    countries of Asia: Japan Tokyo, China Beijing, India New_Delhi, Thailand Bangkok, Vietnam Hanoi, Nepal
      Kathmandu, Iran Tehran, Iraq Baghdad, Mongolia Ulaanbaatar, Indonesia Jakarta
    countries of Africa: Egypt Cairo, Kenya Nairobi, Ghana Accra, Senegal Dakar, Morocco Rabat, Ethiopia
      Addis_Ababa, Nigeria Abuja, Tunisia Tunis, Uganda Kampala, Angola Luanda
    countries of the Americas: Canada Ottawa, Mexico Mexico_City, Cuba Havana, Peru Lima, Chile Santiago,
      Argentina Buenos_Aires, Brazil Brasília, Colombia Bogotá, Ecuador Quito, Venezuela Caracas
    """,
    ),
    _read(
        "the language that most people of the country speak",
        "countries",
        """
    countries of Europe: France French, Germany German, Spain Spanish, Italy Italian, Norway Norwegian, Poland
      Polish, Greece Greek, Portugal Portuguese, Sweden Swedish, Hungary Hungarian, Denmark Danish, Iceland
      Icelandic
    countries of Asia: Japan Japanese, China Mandarin, Thailand Thai, Vietnam Vietnamese, Nepal Nepali, Iran
      Persian, Korea Korean, Mongolia Mongolian, Turkey Turkish
    countries of the Americas: Mexico Spanish, Cuba Spanish, Peru Spanish, Brazil Portuguese, Jamaica English,
      Haiti Creole
    """,
    ),
    _read(
        "the young of the animal",
        "animals",
        """
    farm animals: cow calf, sheep lamb, horse foal, pig piglet, goat kid, hen chick, duck duckling, goose
      gosling, donkey foal
    wild animals: bear cub, lion cub, deer fawn, kangaroo joey, elephant calf, wolf pup, swan cygnet, frog
      tadpole, owl owlet, eagle eaglet, fox kit, tiger cub
    pets: cat kitten, dog puppy, rabbit bunny
    """,
    ),
    _read(
        "the sound that the animal makes",
        "animals",
        """
    farm animals: cow moo, sheep baa, horse neigh, pig oink, hen cluck, duck quack, rooster crow, donkey bray,
      turkey gobble
    wild animals: lion roar, wolf howl, owl hoot, snake hiss, bee buzz, frog croak, elephant trumpet, crow caw,
      mouse squeak
    pets: cat meow, dog bark, canary chirp
    """,
    ),
    _read(
        "the opposite",
        "adjectives and other words that have one",
        """
    words of size: big small, tall short, wide narrow, thick thin, long short, deep shallow, huge tiny, heavy
      light
    words of touch and taste: hot cold, wet dry, soft hard, sweet bitter, smooth rough, sharp blunt, warm cool
    words of character: brave cowardly, happy sad, kind cruel, lazy diligent, polite rude, honest dishonest,
      generous stingy, calm nervous, strong weak
    other words: early late, fast slow, full empty, open closed, new old, rich poor, light dark, true false, day
      night, up down, north south, begin end, win lose, love hate
    """,
    ),
    _read(
        "the past tense of the verb",
        "verbs",
        """
    verbs of motion: go went, run ran, fly flew, swim swam, ride rode, drive drove, fall fell, come came, leave
      left, climb climbed, jump jumped, walk walked
    verbs of speech: say said, tell told, speak spoke, sing sang, swear swore, shout shouted, whisper whispered,
      ask asked
    other verbs: eat ate, drink drank, sleep slept, buy bought, think thought, write wrote, build built, break
      broke, catch caught, give gave, take took, see saw, know knew, paint painted, cook cooked
    """,
    ),
    _read(
        "the plural of the noun",
        "nouns",
        """
    living things: man men, woman women, child children, mouse mice, goose geese, ox oxen, wolf wolves, fox
      foxes, dog dogs, cat cats, bird birds, tree trees
    things: knife knives, shelf shelves, box boxes, watch watches, book books, chair chairs, leaf leaves, loaf
      loaves, brush brushes, city cities, story stories, house houses, car cars
    parts of the body: foot feet, tooth teeth, hand hands, eye eyes, ear ears, finger fingers, leg legs
    """,
    ),
    _read(
        "the colour of the thing",
        "things of one colour",
        """
    food: banana yellow, tomato red, cucumber green, carrot orange, blueberry blue, milk white, chocolate brown,
      aubergine purple, spinach green, lemon yellow, cherry red
    things of nature: sky blue, grass green, snow white, coal black, sun yellow, blood red, soil brown, flamingo
      pink, crow black, swan white, emerald green, ruby red
    """,
    ),
    _read(
        "the next one in its order",
        "days, months, numbers and letters",
        """
    days: Monday Tuesday, Tuesday Wednesday, Wednesday Thursday, Thursday Friday, Friday Saturday, Saturday
      Sunday, Sunday Monday
    months: January February, February March, March April, April May, May June, June July, July August, August
      September, September October, October November, November December, December January
    numbers: one two, two three, three four, four five, five six, six seven, seven eight, eight nine, nine ten,
      ten eleven, eleven twelve
    letters: a b, b c, c d, d e, e f, f g, g h, m n, x y, y z
    """,
    ),
    _read(
        "the tool that the person works with",
        "professions",
        """
    people who make things: carpenter saw, tailor needle, baker oven, blacksmith anvil, painter brush, potter
      wheel, mason trowel, cobbler awl, cook pan
    other people: surgeon scalpel, farmer plough, photographer camera, writer pen, astronomer telescope,
      fisherman net, gardener spade, hairdresser scissors, barber razor, drummer drumstick, archer bow
    """,
    ),
    _read(
        "the place where the person works",
        "professions",
        """
    people who help: doctor hospital, teacher school, firefighter fire_station, judge court, librarian library,
      pharmacist pharmacy, priest church
    other people: actor theatre, pilot cockpit, sailor ship, farmer farm, chef kitchen, scientist laboratory,
      miner mine, waiter restaurant, mechanic garage, banker bank, baker bakery, miller mill, astronaut
      spaceship
    """,
    ),
    _read(
        "the material that the thing is made of",
        "things",
        """
    clothing: sweater wool, jeans denim, shoe leather, shirt cotton, raincoat rubber, tie silk
    other things: window glass, tyre rubber, book paper, coin metal, candle wax, brick clay, ring gold, bottle
      glass, table wood, sword steel, pencil wood, can aluminium, vase porcelain, sail canvas
    """,
    ),
    _read(
        "the sense organ or part of the body that does it",
        "verbs",
        """
    things that the head does: see eye, hear ear, smell nose, taste tongue, think brain, bite tooth, blink
      eyelid, smile mouth, chew jaw
    other things that bodies do: kick foot, touch finger, hold hand, breathe lung, beat heart, digest stomach,
      kneel knee, shrug shoulder, hug arm, walk leg
    """,
    ),
    _read(
        "the chemical symbol of the element",
        "elements",
        """
    metals: iron Fe, gold Au, silver Ag, copper Cu, lead Pb, tin Sn, mercury Hg, sodium Na, potassium K, zinc
      Zn, aluminium Al, calcium Ca, magnesium Mg, nickel Ni
    gases: hydrogen H, helium He, oxygen O, nitrogen N, neon Ne, argon Ar, chlorine Cl, fluorine F, krypton Kr
    other elements: carbon C, sulphur S, phosphorus P, silicon Si, iodine I, boron B
    """,
    ),
    _read(
        "the home of the animal",
        "animals",
        """
    animals that people keep: dog kennel, horse stable, hen coop, bee hive, pig sty, fish aquarium, canary cage,
      sheep fold
    wild animals: bird nest, lion den, spider web, bear cave, rabbit burrow, beaver lodge, ant anthill, fox
      earth, eagle eyrie, snail shell
    """,
    ),
)
