"""The Django app of what people see and keep."""

from django.apps import AppConfig


class ExperimentsConfig(AppConfig):
    name = "experiments"
    verbose_name = "Experiments"

    def ready(self) -> None:
        from experiments import checks, notifications, sign_ins  # noqa: F401 - they register themselves
        from experiments.search import signals  # noqa: F401 - questions are found as soon as they are asked
