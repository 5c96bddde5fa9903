"""A hole in the sandbox is on every page, in the worker's own words."""

from __future__ import annotations

from django.test import Client

from experiments.core import worker_status


def test_every_page_warns_of_a_sandbox_with_holes(as_owner: Client, redis_url: str) -> None:
    worker_status.publish_sandbox("No program runs <b>here</b>.", 4, 5)
    for address in ("/runs/", "/query/"):
        assert "No program runs &lt;b&gt;here&lt;/b&gt;." in as_owner.get(address).content.decode()


def test_no_page_warns_where_all_layers_stand(as_owner: Client, redis_url: str) -> None:
    worker_status.publish_sandbox("", 5, 5)
    assert 'class="banner"' not in as_owner.get("/runs/").content.decode()
