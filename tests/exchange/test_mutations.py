"""Whatever a bundle holds: it is refused with a sentence, or every page and answer about it is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.support.bundles import Files, forgotten, full_run
from tests.support.mutations import addresses, broken

pytestmark = pytest.mark.usefixtures("redis_url")


def test_a_bundle_with_an_odd_field_breaks_no_page(files: Files, owner: User, as_owner: Client, tmp_path: Path) -> None:
    as_owner.raise_request_exception = False
    run = full_run(owner)
    assert len(addresses(run)) > 20
    forgotten(run)
    assert [each for seed in range(24) for each in broken(files, seed, owner, as_owner, tmp_path)] == []
