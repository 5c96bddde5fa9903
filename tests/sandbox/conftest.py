"""What tests of the sandbox share: one zygote a module, a laboratory that answers, and what runs a program in them."""

from __future__ import annotations

import pytest

from tests.support.sandbox_lab import Lab, runner


@pytest.fixture
def lab():
    return Lab()


@pytest.fixture
def run(sandbox, lab):
    return runner(sandbox, lab)
