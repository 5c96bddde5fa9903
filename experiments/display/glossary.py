"""Define the words that pages, API and commands share: the glossary behind "?" and its page."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.text import slugify


@dataclass(frozen=True)
class GlossaryWord:
    """A word, its meaning, and the name of the URL where users find such things."""

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
            GlossaryWord(
                "Latent", "A unit of a sparse auto-encoder (SAE) that was trained on a layer.", "settings-autoencoders"
            ),
            GlossaryWord("Circuit", "A named set of units and latents of one network.", "circuits"),
            GlossaryWord(
                "Circuit graph",
                "The effect of each member of a circuit on a class and on members of later layers: how much these fall "
                "if only this member is held at its mean.",
                "circuits",
            ),
            GlossaryWord(
                "Study",
                "Chosen units and runs with a title, a text and captions, to be published by link or as files.",
                "studies",
            ),
            GlossaryWord("Class logit", "The output of a model for one class, before it becomes a probability."),
            GlossaryWord("Synthetic neuron", "A unit that responds to a known concept, so that answers can be graded."),
            GlossaryWord("System", "What a run studies. For images it returns activations and masked images."),
            GlossaryWord("Dataset", "The images that exemplars come from.", "settings-datasets"),
            GlossaryWord("Dead unit", "A unit that no image of the dataset activates."),
            GlossaryWord("Similar units", "Units that respond to nearly the same images."),
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
            GlossaryWord("Masked image", "An image in which only the region that activates the unit stays bright."),
            GlossaryWord(
                "Mask threshold",
                "The quantile of a unit's activations above which a region stays bright in a masked image.",
            ),
            GlossaryWord("Observation", "One image that an experiment logged, with its activation.", "experiments"),
            GlossaryWord(
                "Causal check",
                "Units are ablated (removed) or scaled, and the model's output is compared with the unchanged one: "
                "which classes fall and rise.",
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
            GlossaryWord(
                "Tools", "Functions that a program can call besides the system: generate, edit and describe images."
            ),
            GlossaryWord("Toolset", "The generator, editor and describer behind the tools."),
            GlossaryWord("Round", "One reply of the agent and its results."),
            GlossaryWord(
                "Experiment",
                "One program, written by the agent or a person, that was run in the sandbox.",
                "experiments",
            ),
            GlossaryWord("Hypothesis", "One line of the agent's list in a round: open, supported or refuted."),
            GlossaryWord("Message to agent", "What a person tells the agent during a run; also called a note."),
            GlossaryWord("Fork", "A run that continues from an earlier round of another run."),
            GlossaryWord(
                "Limits",
                "The rounds, tokens, cost and time that a run can use. At a limit, the agent is asked to conclude.",
            ),
            GlossaryWord("Reflection", "If a label fails its check, the agent gets the result and tries again."),
            GlossaryWord("Seed", "The number that random choices start from; the same seed gives the same choices."),
        ),
    ),
    GlossarySection(
        "How good an answer is",
        (
            GlossaryWord("Conclusion", "The final description and labels of a run."),
            GlossaryWord("Label", "A short phrase for what a unit responds to, from any source."),
            GlossaryWord(
                "Label check",
                "A test of a label on images that the agent never saw: r is the correlation of the activations with "
                "the presence of the label's concept.",
                "evaluations",
            ),
            GlossaryWord(
                "AUPRC", "Area under the precision-recall curve: how well a label ranks images that activate a unit."
            ),
            GlossaryWord(
                "Floor",
                "The score of labels of other units, or of random units, on the images of a label check. "
                "Label less floor is how far a label is above it.",
            ),
            GlossaryWord(
                "r, corrected",
                "Estimate of r without the judge's errors, from its error rate on images with known truth.",
            ),
            GlossaryWord(
                "Krippendorff's alpha",
                "Agreement corrected for chance: 1 is full agreement, 0 is what chance would give.",
            ),
            GlossaryWord(
                "Detection",
                "A test of a label: does it separate images that activate a unit from others? It is shown by decile of "
                "activation: a label that fits only the strongest images falls off.",
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
                "A test of a label: the correlation of the activation predicted from the label with the measured one.",
            ),
            GlossaryWord("Evaluation", "A measurement of the accuracy of labels over many units.", "evaluations"),
            GlossaryWord("Pairwise trial", "Two labels of one unit, shown blind and side by side.", "pairwise"),
            GlossaryWord("Vote", "The choice of a judge in a pairwise trial."),
            GlossaryWord("Judge", "Who grades an answer: a person or a model."),
            GlossaryWord("Comparison", "Runs side by side.", "compare"),
            GlossaryWord("Review", "One person's answers to the rubric about a run.", "review"),
            GlossaryWord("Verdict", "The outcome of the reviews of a run: accept, revise, reject, or split.", "review"),
        ),
    ),
    GlossarySection(
        "How it works",
        (
            GlossaryWord("Worker", "The process that holds models and runs rounds.", "settings-workers"),
            GlossaryWord("Job", "One piece of a worker's work. Task alone always means the research task."),
            GlossaryWord(
                "Event", "Something that happened in a run. Events are ordered, and all pages derive from them."
            ),
        ),
    ),
)
"""Every entry has a different key, which links carry."""
ENTRIES = {entry.key: entry for section in SECTIONS for entry in section.entries}
