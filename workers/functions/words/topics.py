"""Words by topic: what concepts are drawn from, and which words baselines try and answers are judged on."""

from __future__ import annotations

from collections.abc import Mapping

_LINES = """
sea: wave tide coral harbour sailor whale shrimp lighthouse reef dolphin anchor seaweed
mountains: summit glacier climber valley ridge avalanche cliff slope goat peak boulder alpine
music: violin melody concert drummer rhythm orchestra guitar singer piano chorus trumpet harmony
cooking: recipe oven saucepan simmer chef spice butter garlic frying kitchen stew whisk
sport: stadium referee goalkeeper sprint tournament racket coach medal football athlete tennis champion
medicine: surgeon vaccine hospital fever nurse pharmacy diagnosis bandage clinic doctor pill patient
law: judge lawyer verdict courtroom contract trial statute jury prosecutor appeal attorney lawsuit
war: soldier battle trench cannon army invasion general tank ambush troops missile siege
religion: prayer church monk temple priest scripture pilgrim hymn altar worship mosque prophet
space: planet astronaut telescope orbit comet galaxy rocket moon satellite asteroid nebula spacecraft
weather: thunder rain snowfall drizzle hurricane cloud frost forecast storm hail breeze fog
farming: tractor harvest barn plough wheat farmer cattle orchard hay seed scarecrow irrigation
money: bank loan dollar investor coin profit tax salary budget mortgage cash dividend
school: teacher pupil classroom homework exam chalkboard lesson textbook university lecture diploma student
computers: keyboard software programmer laptop database website internet algorithm download server browser password
clothing: jacket trousers scarf tailor shirt glove skirt sweater sock fabric button dress
birds: eagle sparrow feather nest owl penguin parrot beak crow falcon pigeon robin
insects: beetle ant mosquito butterfly bee wasp cricket moth ladybird larva hive termite
trees: oak pine maple birch bark branch willow forest leaf cedar root acorn
flowers: rose tulip daisy lily petal bouquet orchid blossom sunflower gardener pollen violet
fruit: apple banana cherry mango grape pear melon peach lemon strawberry plum fig
drinks: coffee beer juice tea wine lemonade milk cocktail whisky soda espresso cider
cars: engine steering wheel driver garage motorway brake tyre traffic windscreen petrol gearbox
trains: railway locomotive carriage platform conductor station timetable tunnel tram wagon rail signal
aviation: pilot airport runway helicopter propeller cockpit airline glider jet airplane parachute turbulence
houses: roof chimney bedroom ceiling window staircase cellar kitchen balcony door attic hallway
furniture: sofa table wardrobe bookshelf armchair desk drawer stool cupboard lamp cabinet mattress
tools: hammer screwdriver saw drill wrench pliers nail chisel ladder workshop axe toolbox
painting: canvas brush portrait easel palette gallery watercolour sketch mural artist fresco pigment
theatre: stage actor curtain audience rehearsal playwright drama costume script comedy applause opera
books: novel library author chapter poem publisher reader paragraph bookshop editor manuscript fiction
newspapers: journalist headline reporter column press interview magazine broadcast article correspondent scoop gossip
crime: thief burglar prison detective robbery murder handcuffs gangster smuggler kidnapper alibi forgery
family: mother uncle daughter grandfather cousin wedding baby sibling nephew parent aunt twin
emotions: joy anger grief fear jealousy delight sorrow pride shame love envy loneliness
sleep: dream pillow blanket nap insomnia snore lullaby pyjamas yawn midnight slumber nightmare
teeth: dentist toothpaste gum molar braces cavity brushing filling enamel crown incisor floss
chemistry: acid molecule laboratory beaker oxygen reaction catalyst compound carbon experiment solvent hydrogen
mathematics: equation fraction geometry theorem algebra triangle number calculus multiplication proof percentage decimal
politics: election parliament senator minister vote campaign president democracy mayor policy referendum candidate
dinosaurs: fossil raptor extinction jurassic skeleton reptile tyrannosaurus museum triceratops excavation herbivore egg
gold: jewel ring necklace treasure miner nugget ingot bracelet crown karat goldsmith bullion
fire: flame smoke firefighter ash candle spark ember arson bonfire matchstick burn furnace
time: clock hour calendar minute century watch deadline yesterday decade moment schedule second
"""
TOPICS: Mapping[str, tuple[str, ...]] = {
    name: tuple(words.split()) for name, _, words in (line.partition(": ") for line in _LINES.strip().splitlines())
}
"""Topic -> twelve words of it."""
HELD_OUT = 4
"""Of the twelve, the last, which answers are judged on and baselines never try."""


def list_tried() -> list[str]:
    """Return the words that a baseline tries, each once, in order."""
    # A word may belong to several topics: tried once
    return list(dict.fromkeys(word for words in TOPICS.values() for word in words[:-HELD_OUT]))


def list_held_out() -> list[str]:
    """Return the words that answers are judged on: none that a baseline tries."""
    # Words of another topic's first eight are tried, so they are not held out
    tried = set(list_tried())
    held = (word for words in TOPICS.values() for word in words[-HELD_OUT:])
    return [word for word in dict.fromkeys(held) if word not in tried]
