"""The cache of models: what is loaded stays within the budget, two threads never use one network, and memory that runs
out is found again or said plainly."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.support.cached_networks import KILO, loader, names, network, used
from workers.errors import MachineryError
from workers.model_cache import ModelCache, map_in_batches
from workers.weights import count_bytes, gigabytes, is_out_of_memory

pytestmark = pytest.mark.usefixtures("little_garbage")
OUT = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nDetails.")


@pytest.fixture
def budget() -> ModelCache:
    """Room for ten kilobytes."""
    return ModelCache(10 * KILO)


def test_it_loads_once_and_counts_what_is_loaded() -> None:
    loads = []
    cache = ModelCache()
    slot = cache.slot("net", lambda: loads.append(1) or network(3))
    assert cache.loaded() == []
    used(slot, slot)
    assert len(loads) == 1
    (found,) = cache.loaded()
    assert (found.name, found.bytes, found.busy) == ("net", 3 * KILO, False)
    assert 0 <= found.used < 60
    with slot:
        assert cache.loaded()[0].busy


def test_what_was_used_longest_ago_goes_first(budget: ModelCache) -> None:
    first, second, third = (budget.slot(name, loader(4)) for name in ("first", "second", "third"))
    used(first, second, first, third)
    assert names(budget) == ["third", "first"]
    used(second)
    assert names(budget) == ["second", "third"]


def test_room_is_made_before_loading_once_the_size_is_known(budget: ModelCache) -> None:
    seen: list[list[str]] = []
    other = budget.slot("other", loader(8))
    slot = budget.slot("slot", lambda: seen.append(names(budget)) or network(8))
    used(other, slot, other, slot)
    assert seen == [["other"], []]


def test_what_is_evict_is_gone(budget: ModelCache) -> None:
    slot = budget.slot("net", loader(8))
    with slot as module:
        trace = weakref.ref(module)
    del module
    used(budget.slot("other", loader(8)))
    gc.collect()
    assert trace() is None


def test_a_place_goes_with_the_plugin_that_made_it(budget: ModelCache) -> None:
    slot = budget.slot("net", loader(8))
    used(slot)
    del slot
    gc.collect()
    assert budget.loaded() == []


def test_busy_places_stay(budget: ModelCache, caplog: pytest.LogCaptureFixture) -> None:
    with budget.slot("busy", loader(8)) as module, budget.slot("inner", loader(8)):
        assert module is not None
        assert set(names(budget)) == {"busy", "inner"}
    assert "inner takes 0.00 GB beside 0.00 GB in use, more than the budget of 0.00 GB" in caplog.text


def test_what_is_larger_than_the_budget_works_alone(budget: ModelCache, caplog: pytest.LogCaptureFixture) -> None:
    small, large = budget.slot("small", loader(4)), budget.slot("large", loader(40))
    used(small)
    with large as module:
        assert module.in_features == 40 * 256
        assert names(budget) == ["large"]
    assert "large takes" in caplog.text
    assert "MAIA_MEMORY_GB" in caplog.text
    used(small)
    assert names(budget) == ["small"]


def test_without_a_budget_everything_stays() -> None:
    cache = ModelCache()
    slots = [cache.slot(f"net {n}", loader(100)) for n in range(5)]
    used(*slots)
    assert len(cache.loaded()) == 5


def test_on_a_device_that_is_not_there_nothing_is_limited() -> None:
    if torch.cuda.is_available():
        pytest.skip("a CUDA device is there")
    assert ModelCache(device="cuda").limit() == 0


@pytest.mark.parametrize("error", [OSError("No such file"), KeyboardInterrupt()])
def test_a_load_that_fails_leaves_the_shelf_as_it_was(budget: ModelCache, error: BaseException) -> None:
    def fail() -> torch.nn.Module:
        if failures:
            raise failures.pop()
        return network(2)

    failures = [error]
    other, slot = budget.slot("other", loader(2)), budget.slot("slot", fail)
    used(other)
    with pytest.raises(type(error)):
        used(slot)
    assert names(budget) == ["other"]
    used(slot)
    assert names(budget) == ["slot", "other"]


def test_an_error_inside_gives_the_place_back(budget: ModelCache) -> None:
    slot = budget.slot("net", loader(1))
    with pytest.raises(ValueError, match="oops"), slot:
        raise ValueError("oops")
    assert not budget.loaded()[0].busy


# --- memory that runs out -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        OUT,
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ],
)
def test_it_knows_when_memory_runs_out(error: Exception) -> None:
    assert is_out_of_memory(error)


@pytest.mark.parametrize("error", [RuntimeError("sizes do not match"), ValueError("out of memory"), None])
def test_other_errors_are_something_else(error: Exception | None) -> None:
    assert not is_out_of_memory(error)


def test_the_real_allocator_is_understood() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60)
    assert is_out_of_memory(caught.value)


def tight(cache: ModelCache, most: int) -> Callable[[], torch.nn.Module]:
    """Loads only while at most so many slots are there, as on a device that is nearly full."""

    def load() -> torch.nn.Module:
        if len(cache.loaded()) > most:
            raise OUT
        return network(1)

    return load


def test_when_memory_runs_out_while_loading_everything_idle_goes_and_it_is_tried_again() -> None:
    cache = ModelCache()
    others = [cache.slot(f"net {n}", loader(1)) for n in range(3)]
    used(*others)
    with others[0], cache.slot("slot", tight(cache, 1)):
        assert set(names(cache)) == {"net 0", "slot"}


def test_a_model_that_never_fits_is_named_with_what_to_do() -> None:
    cache = ModelCache(4 << 30, "cuda:1")
    busy = cache.slot("busy net", loader(1))
    with busy, pytest.raises(MachineryError) as caught:
        used(cache.slot("large net", tight(cache, 0)))
    said = str(caught.value)
    for part in ("large net", "busy net (0.00 GB)", "'cuda:1'", "4.00 GB", "MAIA_MEMORY_GB", "Tried to allocate 2.00"):
        assert part in said
    assert names(cache) == ["busy net"]


def test_memory_that_runs_out_inside_makes_room_for_the_next_attempt() -> None:
    cache = ModelCache()
    idle, slot = cache.slot("idle", loader(1)), cache.slot("slot", loader(1))
    used(idle)
    with pytest.raises(torch.OutOfMemoryError), slot:
        raise OUT
    assert names(cache) == ["slot"]
    used(idle)
    with pytest.raises(MachineryError), slot:
        map_in_batches([1], 1, fails_above(0))
    assert names(cache) == ["slot"]


def fails_above(most: int, sizes: list[int] | None = None) -> Callable[[Any], list[int]]:
    def work(batch: Any) -> list[int]:
        if sizes is not None:
            sizes.append(len(batch))
        if len(batch) > most:
            raise OUT
        return [-item for item in batch]

    return work


def test_batches_keep_their_order_and_their_size() -> None:
    sizes: list[int] = []
    assert map_in_batches(range(10), 4, fails_above(4, sizes)) == [-n for n in range(10)]
    assert sizes == [4, 4, 2]
    assert map_in_batches([], 4, fails_above(4)) == []
    assert map_in_batches([1, 2], 0, fails_above(4)) == [-1, -2]


def test_a_batch_is_halved_and_the_smaller_size_kept(caplog: pytest.LogCaptureFixture) -> None:
    sizes: list[int] = []
    assert map_in_batches(range(20), 16, fails_above(4, sizes)) == [-n for n in range(20)]
    assert sizes == [16, 8, 4, 4, 4, 4, 4]
    assert "half as many" in caplog.text


def test_a_single_item_that_is_too_much_is_said_plainly() -> None:
    sizes: list[int] = []
    with pytest.raises(MachineryError, match=r"single image .*Tried to allocate 2.00 GiB.*MAIA_MEMORY_GB"):
        map_in_batches(range(5), 5, fails_above(0, sizes))
    assert sizes == [5, 3, 2, 1]


def test_other_errors_of_a_batch_pass_through() -> None:
    def work(batch: Any) -> list[int]:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        map_in_batches([1, 2], 2, work)


def test_what_a_failed_batch_had_made_is_freed_before_the_next() -> None:
    alive: list[weakref.ref[torch.Tensor]] = []

    def work(batch: Any) -> list[int]:
        assert not any(trace() is not None for trace in alive)
        part = torch.zeros(8)
        alive.append(weakref.ref(part))
        if len(batch) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return list(batch)

    assert map_in_batches([1, 2], 2, work) == [1, 2]


# --- what weights take --------------------------------------------------------------------------------


def test_it_weighs_modules_wherever_they_are() -> None:
    net = torch.nn.Sequential(network(1), torch.nn.BatchNorm1d(1))
    own = 1 * KILO + 4 * 4 + 8  # weights, then scale, shift, two running means, and a count
    assert count_bytes(net) == own
    assert count_bytes([net, {"again": net}]) == own
    assert count_bytes(SimpleNamespace(components={"unet": net, "vae": network(2), "safety": None})) == own + 2 * KILO
    assert count_bytes(SimpleNamespace(name="eyes", net=net, threshold=torch.zeros(4))) == own + 16
    assert count_bytes(network(4).half()) == 2 * KILO
    assert count_bytes("nothing") == count_bytes(None) == 0


def test_tied_weights_count_once() -> None:
    net = torch.nn.Sequential(network(1), network(1))
    net[1].weight = net[0].weight
    assert count_bytes(net) == KILO


def test_a_pipeline_of_diffusers_is_weighed_by_its_parts() -> None:
    from diffusers import AutoencoderKL, DDIMScheduler, DiffusionPipeline

    class Small(DiffusionPipeline):
        def __init__(self, vae: AutoencoderKL, scheduler: DDIMScheduler) -> None:
            super().__init__()
            self.register_modules(vae=vae, scheduler=scheduler)

    vae = AutoencoderKL(block_out_channels=(4,), norm_num_groups=2, sample_size=8)
    expected = sum(each.numel() * 4 for each in [*vae.parameters(), *vae.buffers()])
    noise_levels = count_bytes(DDIMScheduler())
    assert count_bytes(Small(vae, DDIMScheduler())) == expected + noise_levels > noise_levels


def test_sizes_are_said_in_gigabytes() -> None:
    assert (gigabytes(0), gigabytes(3 << 29), gigabytes(12 << 30)) == ("0.00 GB", "1.50 GB", "12.0 GB")


def test_toyboxs_describer_is_on_the_shelf() -> None:
    from workers import registry
    from workers.protocols import LabSettings

    settings = LabSettings(Path("unused"))
    describer = registry.load(registry.DESCRIBERS, "toybox")(settings)
    (found,) = settings.model_cache.loaded()
    assert found.bytes > KILO
    assert describer.summarize([]) == "There are no images."
