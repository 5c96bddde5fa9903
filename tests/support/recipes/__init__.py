"""What somebody writes who follows the recipes of CONTRIBUTING.md to the letter. A test follows them in a copy of the
tree; who looks for an example of one finds it here."""

from tests.support.recipes.evaluation import EVALUATION
from tests.support.recipes.feature import FEATURE
from tests.support.recipes.filter import FILTER
from tests.support.recipes.laboratory import BACKBONE, MODEL, TOOL
from tests.support.recipes.recipe import Recipe
from tests.support.recipes.record import EVENT, TASK

RECIPES: dict[str, Recipe] = {
    "A tool": TOOL,
    "A task": TASK,
    "A filter": FILTER,
    "An evaluation": EVALUATION,
    "A kind of event": EVENT,
    "A model": MODEL,
    "A backbone": BACKBONE,
    "A feature": FEATURE,
}
"""Heading of the recipe -> what follows it."""
