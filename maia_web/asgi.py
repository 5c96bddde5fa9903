"""The ASGI application: HTTP by Django, /mcp by the MCP SDK, WebSockets by Channels."""

import os

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator, WebsocketDenier
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.urls import re_path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "maia_web.settings")
http = get_asgi_application()

from experiments.core.request_limits import Bounded  # noqa: E402 - needs Django to be set up
from experiments.mcp.door import McpDoor  # noqa: E402
from experiments.urls import websocket_urlpatterns  # noqa: E402
from maia_web.prefix import Prefixed  # noqa: E402

# Channels raises an error for a socket at an unknown path, unless the last route takes it.
routes = ProtocolTypeRouter(
    {
        "http": Bounded(McpDoor(http)),
        "websocket": AllowedHostsOriginValidator(
            AuthMiddlewareStack(URLRouter([*websocket_urlpatterns, re_path(r"", WebsocketDenier.as_asgi())]))
        ),
    }
)
application = Prefixed(routes, settings.PREFIX)
