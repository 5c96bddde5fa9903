"""The longer walk over mutated bundles: see test_transfer_mutations."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.support.bundles import good_files
from tests.support.mutations import broken

pytestmark = [pytest.mark.bench, pytest.mark.usefixtures("redis_url")]


def test_hundreds_of_odd_fields_break_no_page(owner: User, as_owner: Client, tmp_path: Path) -> None:
    as_owner.raise_request_exception = False
    files = good_files(owner, tmp_path)
    assert [each for seed in range(1_000, 1_400) for each in broken(files, seed, owner, as_owner, tmp_path)] == []
