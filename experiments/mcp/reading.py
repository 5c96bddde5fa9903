"""Tools that read: available models, runs and experiments, units, labels, evaluations, search."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ContentBlock
from pydantic import Field

from experiments.core.params import MAX_INTEGER
from experiments.mcp import conversation, entry
from experiments.mcp.content import format_data, format_parts
from experiments.mcp.operations import admit
from experiments.models import Layer
from workers.protocols import ImagePart

RowNumber = Annotated[int, Field(ge=1, le=MAX_INTEGER)]
Limit = Annotated[int, Field(ge=1, le=50)]
Cursor = Annotated[str, Field(description="`next` of the answer before")]
Content = list[ContentBlock]

OF_RUNS = ("id", "question", "system", "status", "rounds", "backbone", "backbone_model", "owner", "created")
OF_A_RUN = (
    *OF_RUNS,
    *("model", "layer", "unit", "task", "dataset", "toolset", "reason", "experiments", "limits", "seconds", "cost"),
    *("exemplar_mean", "best_activation", "conclusion", "score", "biases", "recounted", "verdict", "tags", "url"),
)
OF_EVALUATIONS = (
    "id",
    "kind",
    "name",
    "created",
    "backbone",
    "status",
    "all_items",
    "done_items",
    "failed_items",
    "said",
)
MAX_TRANSCRIPT = 60_000
"""Maximum characters of rounds in an answer, the latest ones."""


async def list_models() -> Content:
    """List what you can ask about: models with their layers and units, datasets, and the backbones of agents."""
    api = await admit()
    models = (await api.get("/models", available="true", limit=50))["items"]
    for each in models:
        layers = (await api.get(f"/models/{each['id']}/layers", limit=200))["items"]
        # Name and size alone: that is what a question needs.
        each["layers"] = {layer["name"]: layer["units"] for layer in layers}
    parts = {name: (await api.get(f"/{name}", limit=50))["items"] for name in ("datasets", "backbones", "toolsets")}
    told = {name: [each["key"] for each in rows if each["available"]] for name, rows in parts.items()}
    return [format_data({"models": [_pick(each, "name", "layers") for each in models], **told})]


async def search(words: str, kind: str = "", limit: Limit = 10, cursor: Cursor = "") -> Content:
    """Search all texts: questions, hypotheses, programs, outputs, conclusions, labels, comments. Every word and "quoted
    phrase" must occur. `kind` narrows the search, for example label or hypothesis. Example: {"words": "red ball"}."""
    api = await admit()
    return [format_data(await api.get("/search", q=words, kind=kind, limit=limit, cursor=cursor))]


async def list_runs(
    words: Annotated[str, Field(description="of question, description and labels")] = "",
    model: str = "",
    layer: str = "",
    unit: int | None = None,
    status: Annotated[str, Field(description="as active, waiting, concluded")] = "",
    owner: str = "",
    limit: Limit = 10,
    cursor: Cursor = "",
) -> Content:
    """List runs, newest first. Example: {"model": "toybox", "layer": "layer4", "unit": 7}."""
    api = await admit()
    filters = {"q": words, "model": model, "layer": layer, "unit": unit, "status": status, "owner": owner}
    found = await api.get("/runs", limit=limit, cursor=cursor, **filters)
    rows = [{**_pick(each, *OF_RUNS), "labels": each["conclusion"]["labels"]} for each in found["items"]]
    return [format_data({"runs": rows, "next": found["next"]})]


async def read_run(
    run: RowNumber,
    transcript: Annotated[bool, Field(description="include all rounds: replies, programs and results")] = False,
) -> Content:
    """Read a run: question, state, limits, hypotheses, conclusion, reviews. Example: {"run": 12}."""
    api = await admit()
    found = _pick(await api.get(f"/runs/{run}"), *OF_A_RUN)
    lines = (await api.get(f"/runs/{run}/hypotheses", limit=200))["items"]
    # The list is repeated in each round; only the latest counts
    newest = max((each["round"] for each in lines), default=0)
    found["hypotheses"] = [each for each in lines if each["round"] == newest]
    if not transcript:
        return [format_data(found)]
    text = "\n\n".join(str(part) for part in (await conversation.read(api, run)).rounds)
    # The latest rounds are kept: they have the conclusion.
    cut = f"[The first {len(text) - MAX_TRANSCRIPT:,} characters are left out.]\n" * (len(text) > MAX_TRANSCRIPT)
    return [format_data(found), *await format_parts([cut + text[-MAX_TRANSCRIPT:]])]


async def read_experiment(run: RowNumber, number: RowNumber) -> Content:
    """Read one experiment of a run: its program, and the results its experimenter saw, with images. Example: {"run":
    12, "number": 1}."""
    api = await admit()
    found = await conversation.read(api, run)
    if number not in found.programs:
        raise ToolError(f"Run {run} has no experiment {number}: it has {len(found.programs)}, counted from 1.")
    parts = found.results.get(number, ("The program is running.",))
    return await format_parts([f"```python\n{found.programs[number]}\n```", *parts])


async def read_unit(
    model: str,
    layer: str,
    unit: Annotated[int, Field(ge=0)],
    dataset: Annotated[str, Field(description="its key; left out: any")] = "",
    exemplars: Annotated[int, Field(ge=0, le=20, description="images to show")] = 5,
) -> Content:
    """Read a unit: its labels and their sources, its figures over a dataset, and the masked images that activate it
    most. Example: {"model": "toybox", "layer": "layer4", "unit": 7}."""
    api = await admit()
    place = f"/layers/{await entry.run_in_thread(_find_layer, model, layer)}/units/{unit}"
    found = await api.get(place)
    labels = await api.get("/labels", model=model, layer=layer, unit=unit, limit=50)
    # The unit's own answer has labels without their sources.
    found["labels"] = [_pick(each, "text", "source", "run", "scores") for each in labels["items"]]
    for each in found["profiles"]:
        # Hundreds of numbers would cost tokens
        del each["histogram"]
    shown = (await api.get(f"{place}/exemplars", dataset=dataset, limit=exemplars))["items"] if exemplars else []
    parts: list[str | ImagePart] = []
    for each in shown:
        line = f"Exemplar {each['rank']} of {each['dataset']} — activation {each['activation']:.3f}"
        parts += [line, ImagePart(each["masked"], line)]
    if exemplars and not shown:
        parts = ["No worker has measured this unit yet: a run on it does, or its page."]
    return [format_data(found), *await format_parts(parts)]


async def find_labels(
    words: str = "",
    model: str = "",
    layer: str = "",
    source: Annotated[str, Field(description="run, person, or import:NAME")] = "",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Content:
    """Find labels of units from any source, newest first. Example: {"words": "ball", "model": "toybox"}."""
    api = await admit()
    filters = {"q": words, "model": model, "layer": layer, "source": source}
    return [format_data(await api.get("/labels", limit=limit, cursor=cursor, **filters))]


async def read_evaluation(
    evaluation: Annotated[int, Field(ge=0, description="0: list those that there are")] = 0,
    items: Annotated[bool, Field(description="with its first 50 items")] = False,
) -> Content:
    """Read an evaluation: figures with 95 % intervals, notes, items. Example: {"evaluation": 3}."""
    api = await admit()
    if not evaluation:
        rows = (await api.get("/evaluations", limit=50))["items"]
        return [format_data({"evaluations": [_pick(each, *OF_EVALUATIONS) for each in rows]})]
    found = await api.get(f"/evaluations/{evaluation}")
    told = {**_pick(found["evaluation"], *OF_EVALUATIONS), **_pick(found, "figures", "notes", "caveat")}
    if items:
        rows = (await api.get(f"/evaluations/{evaluation}/items", limit=50))["items"]
        told["items"] = [_pick(each, "source", "unit", "status", "reason", "run", "label", "score") for each in rows]
    return [format_data(told)]


def _pick(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names}


def _find_layer(model: str, layer: str) -> int:
    """Return the key of a layer's row. Raises ToolError with the known layers."""
    layers = dict(Layer.objects.filter(model__name=model).order_by("position").values_list("name", "pk"))
    if layer not in layers:
        known = ", ".join(layers) or "none: list_models names the models"
        raise ToolError(f"There is no layer {layer!r} of {model!r} here. Layers: {known}.")
    return int(layers[layer])
