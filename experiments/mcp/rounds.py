"""Tools that change: start a run, take it over, play its rounds, and conclude it.

A round works like one that a person writes on the run's page: draft, send, worker, limits of the run. If the client
disconnects, its run waits; a program that was sent is still executed.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

from experiments.core.compatibility import PERSON
from experiments.mcp import conversation, entry
from experiments.mcp.content import format_data, format_parts
from experiments.mcp.operations import Operations, admit
from experiments.mcp.reading import Content, RowNumber
from experiments.mcp.waiting import MAX_WAIT, Standing, read_standing, wait_for
from experiments.models import Role, TokenScope
from workers.record import tasks

HOW_TO_REPLY = (
    "You are the experimenter of this run. What follows was written for an agent that replies with tags; you reply by "
    "the tools run_experiment and conclude, whose arguments take the place of the tags."
)
Ctx = Context[Any, Any]


class StatedHypothesis(BaseModel):
    """A line of the list. It keeps its number from round to round."""

    number: int
    text: str
    status: Literal["open", "supported", "refuted"] = "open"
    reason: str = Field("", description="the figure that decides it")


async def ask(
    model: str,
    layer: str,
    unit: int | str,
    ctx: Ctx,
    question: str = "",
    task: Annotated[str, Field(json_schema_extra={"enum": list(tasks.TASKS)})] = tasks.DEFAULT_TASK,
    backbone: Annotated[str, Field(description="who writes the replies; `person`: you")] = PERSON,
    backbone_model: str = "",
    rounds: Annotated[int | None, Field(description="limit; left out: the default")] = None,
    dataset: str = "",
    toolset: str = "",
    seed: int = 0,
) -> Content:
    """Start a run: a question about one unit, answered by experiments. With the backbone `person` you are the
    experimenter: the answer has instructions and the reference of the tools that programs may call; continue with
    run_experiment. With another backbone an agent works: use wait_for_run to wait for it. Example: {"model": "toybox",
    "layer": "layer4", "unit": 7}."""
    api = await admit(TokenScope.RUN, Role.RESEARCHER)
    about = f"unit {unit} of {layer} of {model}"
    body: dict[str, Any] = {
        "question": question or f"What does {about} respond to?",
        "limits": {} if rounds is None else {"rounds": rounds},
        "model": model,
        "layer": layer,
        "unit": unit,
        "task": task,
        "backbone": backbone,
        "seed": seed,
        "backbone_model": backbone_model,
        "dataset": dataset,
    }
    # An empty toolset would be refused; a missing one gets the model's default.
    run = (await api.send("POST", "/runs", body | ({"toolset": toolset} if toolset else {}))).data["id"]
    if backbone != PERSON:
        return [format_data((await entry.run_in_thread(read_standing, run)).facts)]
    return await _begin(api, ctx, run)


async def take_over_run(run: RowNumber, ctx: Ctx) -> Content:
    """Become the experimenter of any run, also of one that an agent began; a reply in progress is finished first. The
    answer has instructions, the rounds so far, and the latest result with its images. Works for your own run too.
    Example: {"run": 12}."""
    api = await admit(TokenScope.RUN, Role.RESEARCHER)
    standing = await entry.run_in_thread(read_standing, run)
    # A run that is the caller's own already needs no handing over.
    if standing.facts["backbone"] != PERSON:
        await api.send("POST", f"/runs/{run}/hand-over", {"backbone": PERSON})
    return await _begin(api, ctx, run)


async def run_experiment(
    run: RowNumber,
    program: Annotated[str, Field(description="Python that defines run_experiment(system, tools), or a script")],
    ctx: Ctx,
    hypotheses: Annotated[
        list[StatedHypothesis] | None, Field(description="the whole list; left out: as before")
    ] = None,
    prose: Annotated[str, Field(description="what you make of the evidence so far")] = "",
) -> Content:
    """Play the next round of your run: a worker runs the program in its sandbox. Returns what it logged (each image
    with title and activation), figures, and printed text or the error. Counts as a round of the run's limits.
    Example: {"run": 12, "program":
    "p = ['a red ball', 'a cube']\\na, i = system.neuron(tools.text2image(p))\\ntools.log_experiment(a, i, p)"}."""
    api = await admit(TokenScope.RUN, Role.RESEARCHER)
    written: dict[str, Any] = {"what": "experiment", "program": program, "prose": prose}
    return await _reply(api, ctx, run, written, hypotheses)


async def conclude(
    run: RowNumber,
    description: str,
    labels: Annotated[list[str], Field(description="short phrases, the best first")],
    ctx: Ctx,
    reasoning: str = "",
    bias: Annotated[str, Field(description="biases found, for tasks that ask for them")] = "",
    hypotheses: list[StatedHypothesis] | None = None,
) -> Content:
    """End your run with what its unit responds to. Example: {"run": 12, "description": "It responds to red balls on
    grass.", "labels": ["red ball"]}."""
    api = await admit(TokenScope.RUN, Role.RESEARCHER)
    answer = {"description": description, "labels": labels, "reasoning": reasoning, "bias": bias}
    return await _reply(api, ctx, run, {"what": "conclusion", **answer}, hypotheses)


async def wait_for_run(run: RowNumber, ctx: Ctx, seconds: Annotated[int, Field(ge=1, le=MAX_WAIT)] = 120) -> Content:
    """Wait at most `seconds` until a run ends, pauses or waits for a reply, then return what was said since its last
    reply. Example: {"run": 12}."""
    api = await admit()
    return await _format_update(api, run, await wait_for(api, ctx, run, seconds))


async def _begin(api: Operations, ctx: Ctx, run: int) -> Content:
    """Wait until the run needs a reply, and return what its experimenter must know."""
    standing = await wait_for(api, ctx, run)
    if not standing.awaits_reply:
        return await _format_update(api, run, standing)
    found = await conversation.read(api, run)
    return [
        format_data(standing.facts),
        # The last round comes as news, with its images.
        *await format_parts([HOW_TO_REPLY, *found.beginning, *found.rounds[:-1], *found.news]),
    ]


async def _reply(
    api: Operations, ctx: Ctx, run: int, written: dict[str, Any], hypotheses: list[StatedHypothesis] | None
) -> Content:
    """Save and send the draft, each with the version that was read, so that one of two simultaneous calls is refused;
    then wait for the result."""
    # 1. The draft with its version.
    draft = await api.send("GET", f"/runs/{run}/reply")
    if not draft.data["waiting_for_person"]:
        standing = await entry.run_in_thread(read_standing, run)
        raise ToolError(
            f"Run {run} does not wait for your reply: {standing.words}. If another round is in progress, "
            "wait_for_run waits for it; if an agent writes the replies, take_over_run makes you the experimenter."
        )
    # Left out means unchanged, not empty
    kept = draft.data["hypotheses"] if hypotheses is None else [each.model_dump() for each in hypotheses]
    saved = await api.send("PUT", f"/runs/{run}/reply", written | {"hypotheses": kept}, if_match=draft.etag)
    # Another call may have saved a draft in between
    again = await api.send("GET", f"/runs/{run}/reply")
    if again.data["version"] != saved.data["version"]:
        raise ToolError(
            f"Another call of yours has changed the draft of round {saved.data['round']}. Send one at a time."
        )
    # 3. Send it, and wait for the worker.
    await api.send("POST", f"/runs/{run}/reply/send", if_match=again.etag)
    return await _format_update(api, run, await wait_for(api, ctx, run))


async def _format_update(api: Operations, run: int, standing: Standing) -> Content:
    """Return the state of the run, and everything since its last reply."""
    facts: dict[str, Any] = dict(standing.facts)
    if standing.is_moving:
        facts["note"] = "The run continues. Call wait_for_run for its result."
    elif not standing.awaits_reply:
        facts["conclusion"] = (await api.get(f"/runs/{run}"))["conclusion"]
    return [format_data(facts), *await format_parts((await conversation.read(api, run)).news)]
