"""URLs of the site."""

from django.urls import include, path

from experiments.admin import site
from experiments.api.interface import addresses

handler400 = "experiments.core.refusals.answer_bad_request"
handler500 = "experiments.core.outages.answer_failure"
urlpatterns = [
    path("admin/", site.urls),
    path("api/v1/", include((addresses(), "api"))),
    path("", include("experiments.urls")),
]
