"""The words that pages, API and commands share, each in a line: the glossary behind "?" and its page."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.text import slugify


@dataclass(frozen=True)
class GlossaryWord:
    """A word, what it means, and the name of the address where there is more of it."""

    word: str
    meaning: str
    address: str = ""

    @property
    def key(self) -> str:
        return slugify(self.word)


@dataclass(frozen=True)
class GlossarySection:
    title: str
    entries: tuple[GlossaryWord, ...]


SECTIONS = (
    GlossarySection(
        "What is studied",
        (
            GlossaryWord("Model", "A trained network whose units are studied.", "units"),
            GlossaryWord("Layer", "A named place in a model, with a number of units.", "units"),
            GlossaryWord(
                "Unit", "One channel of a layer, or one neuron, class logit, latent or synthetic neuron.", "units"
            ),
            GlossaryWord("Latent", "A unit of a sparse auto-encoder (SAE) laid over a layer.", "settings-autoencoders"),
            GlossaryWord("Circuit", "A named set of units and latents of one network.", "circuits"),
            GlossaryWord(
                "Circuit graph",
                "What each member of a circuit does to a class and to the members of later layers: how much these fall "
                "when it alone is held at its mean.",
                "circuits",
            ),
            GlossaryWord(
                "Study",
                "Chosen units and runs with a title, a text and captions, to be published by link or as files.",
                "studies",
            ),
            GlossaryWord("Class logit", "The output of a model for one class, before it becomes a probability."),
            GlossaryWord(
                "Synthetic neuron", "A unit built to respond to a known concept, so that answers can be graded."
            ),
            GlossaryWord("System", "What a run studies: it answers images with activations and masked images."),
            GlossaryWord("Dataset", "The images that exemplars come from.", "settings-datasets"),
            GlossaryWord("Dead unit", "A unit that no image of the dataset activates."),
            GlossaryWord("Similar units", "Units that respond to much the same images."),
        ),
    ),
    GlossarySection(
        "What is measured",
        (
            GlossaryWord(
                "Activation",
                "How strongly a unit responds to an image: the highest value anywhere in it. Measured: returned by the "
                "system. Claimed: logged by the program.",
            ),
            GlossaryWord("Activation frequency", "The share of the dataset's images that activate a unit."),
            GlossaryWord("Exemplar", "An image of the dataset that activates a unit most."),
            GlossaryWord(
                "Exemplar threshold", "The mean activation of a unit's exemplars: what counts as a strong response."
            ),
            GlossaryWord(
                "Masked image", "An image with the region that drives the unit left bright and the rest darkened."
            ),
            GlossaryWord(
                "Mask threshold", "The quantile of a unit's activations from which a region counts as driving it."
            ),
            GlossaryWord("Observation", "One image that an experiment logged, with its activation.", "experiments"),
            GlossaryWord(
                "Causal check",
                "Units are ablated (taken out) or scaled, and the model's output is compared with its own: classes "
                "fall and rise.",
                "units",
            ),
            GlossaryWord("Origin", "Where an image comes from: exemplar, generated, edited, original or external."),
        ),
    ),
    GlossarySection(
        "How an answer is found",
        (
            GlossaryWord(
                "Task", "The kind of research question: describe a neuron, find a bias, find spurious features."
            ),
            GlossaryWord("Query", "Question, task, system and settings: what a run is started with.", "query"),
            GlossaryWord("Run", "One execution of the agent on a query.", "runs"),
            GlossaryWord("Sweep", "One question asked of many units, each in a run of its own.", "sweeps"),
            GlossaryWord("Preset", "A named set of settings that a new run can start from.", "query"),
            GlossaryWord("Agent", "The loop of rounds that experiments and concludes."),
            GlossaryWord(
                "Backbone", "What writes the agent's replies: a vision-language model, a person, or the scripted one."
            ),
            GlossaryWord("Scripted scientist", "The built-in backbone: a program with fixed rules. It needs no key."),
            GlossaryWord("Tools", "What a program may call beside the system: generate, edit and describe images."),
            GlossaryWord("Toolset", "The generator, editor and describer behind the tools."),
            GlossaryWord("Round", "One reply of the agent and what came of it."),
            GlossaryWord("Experiment", "One program that the agent or a person wrote and we executed.", "experiments"),
            GlossaryWord("Hypothesis", "One line of the agent's list in a round: open, supported or refuted."),
            GlossaryWord("Message to agent", "What a person tells the agent during a run; also called a note."),
            GlossaryWord("Fork", "A run that goes on from an earlier round of another."),
            GlossaryWord(
                "Limits", "What a run may use: rounds, tokens, cost, time. At a limit it is asked to conclude."
            ),
            GlossaryWord("Reflection", "A label that failed its check goes back to the agent for another try."),
            GlossaryWord("Seed", "The number that random choices start from; the same seed gives the same choices."),
        ),
    ),
    GlossarySection(
        "How good an answer is",
        (
            GlossaryWord("Conclusion", "The final description and labels of a run."),
            GlossaryWord("Label", "A short phrase for what a unit responds to, whoever gave it."),
            GlossaryWord(
                "Label check",
                "A label tested on images that the agent never saw: r is the correlation of activations with "
                "what the label says of the images.",
                "evaluations",
            ),
            GlossaryWord(
                "AUPRC", "Area under the precision-recall curve: how well a label ranks images that activate a unit."
            ),
            GlossaryWord(
                "Floor",
                "What labels of other units, or random units, get on the images of a label check. "
                "Label less floor says how far a label is above them.",
            ),
            GlossaryWord(
                "r, corrected",
                "The r that a judge without errors would give, by how often it errs on images whose truth is known.",
            ),
            GlossaryWord(
                "Krippendorff's alpha",
                "Agreement corrected for chance: 1 is full agreement, 0 is what chance would give.",
            ),
            GlossaryWord(
                "Detection",
                "A test of a label: does it tell images that activate a unit from others? Shown by tenth of the "
                "activating images, where a label that fits the strongest alone falls off.",
            ),
            GlossaryWord(
                "Intruder test",
                "A test of a label: of four images that activate a unit and one that does not, which fits it least?",
            ),
            GlossaryWord(
                "Hard negatives",
                "Detection where the other images are hard to tell: they look like the top images, or activate units "
                "that respond with this one, and hardly activate it.",
            ),
            GlossaryWord(
                "Fuzzing",
                "A test of a label: is what it says shown in the part of an image where a unit responds, and not "
                "elsewhere?",
            ),
            GlossaryWord(
                "Simulation score",
                "A test of a label: how far the activation that it lets expect goes with the activation itself.",
            ),
            GlossaryWord("Evaluation", "A measurement of how right labels are, with runs behind it.", "evaluations"),
            GlossaryWord("Pairwise trial", "Two labels of one unit, shown blind and side by side.", "pairwise"),
            GlossaryWord("Vote", "What somebody chose in a pairwise trial."),
            GlossaryWord("Judge", "Who grades an answer: a person or a model."),
            GlossaryWord("Comparison", "Runs side by side.", "compare"),
            GlossaryWord("Review", "One person's answers to the rubric about a run.", "review"),
            GlossaryWord("Verdict", "What the reviews of a run come to: accept, revise, reject, or split.", "review"),
        ),
    ),
    GlossarySection(
        "How it works",
        (
            GlossaryWord("Worker", "The process that holds models and plays rounds.", "settings-workers"),
            GlossaryWord("Job", "One piece of a worker's work. Task alone always means the research task."),
            GlossaryWord("Event", "What happened in a run, in order; everything shown derives from these."),
        ),
    ),
)
"""Every entry has a key of its own, which links carry."""
ENTRIES = {entry.key: entry for section in SECTIONS for entry in section.entries}
