"""The Django app. Its rows are in `models`; modules that register themselves are imported here."""

from django.apps import AppConfig


class ExperimentsConfig(AppConfig):
    name = "experiments"
    verbose_name = "Experiments"

    def ready(self) -> None:
        from experiments import system_checks  # noqa: F401 - they register themselves
        from experiments.accounts import sign_in_signals  # noqa: F401 - it registers itself
        from experiments.core import code_version, notifications, outbox, schema_version  # noqa: F401 - they register themselves
        from experiments.core.search_index import opinions  # noqa: F401 - questions are found as soon as they are asked
        from experiments.management import sandbox_check  # noqa: F401 - it registers itself
