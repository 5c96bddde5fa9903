"""All settings, from the environment. Safe defaults; a bad value stops the start with a sentence that names it.

Every variable is listed in the README's table (a test compares the two).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from django.core.management.utils import get_random_secret_key

from maia_web.addresses import database, endpoint, hosts, issuer, origins, redis
from maia_web.environment import choice, device, number, prefix, secret, switch, text, words
from maia_web.state import umask_for

BASE_DIR = Path(__file__).resolve().parent.parent


def price_file(name: str, default: Path) -> Path:
    """Return the path of a file of prices, which need not exist yet."""
    raw = text(name, str(default))
    if "=" in raw and not raw.endswith(".toml"):
        raise ImproperlyConfigured(
            f"{name}={raw!r} is no file. Prices stand in a file: put a line such as "
            f'"gpt-4o" = {{ prompt = 2.5, completion = 10 }} under [models] in {default}, or name another.'
        )
    return Path(raw).expanduser().resolve()


def storage(url: str, cache: Path) -> dict[str, object]:
    """Return where images and files of exports and imports are stored: the state folder, or the bucket of
    `s3://bucket/prefix`."""
    if not url:
        return {"BACKEND": "experiments.core.storage.WholeFileStorage"}
    parts = urlsplit(url)
    if parts.scheme != "s3" or not re.fullmatch(r"[a-z0-9][a-z0-9.-]{2,62}", parts.netloc):
        raise ImproperlyConfigured(
            f"MAIA_STORAGE={url!r} is no bucket: write s3://bucket or s3://bucket/prefix, or unset it to use the state "
            "folder."
        )
    keys = text("MAIA_S3_ACCESS_KEY"), secret("MAIA_S3_SECRET_KEY")
    if bool(keys[0]) != bool(keys[1]):
        raise ImproperlyConfigured("Set MAIA_S3_ACCESS_KEY and MAIA_S3_SECRET_KEY both, or neither.")
    options = {
        "bucket": parts.netloc,
        "prefix": parts.path.strip("/"),
        "endpoint": endpoint(text("MAIA_S3_ENDPOINT")),
        "region": text("MAIA_S3_REGION", "us-east-1"),
        "keys": keys,
        "cache": (cache, int(number("MAIA_CACHE_GB", 5) * 2**30)),
    }
    return {"BACKEND": "experiments.core.bucket.Bucket", "OPTIONS": options}


def secret_key(state: Path) -> str:
    """Return the key from the environment, else one created once and kept in the state folder, readable only by its
    owner."""
    if given := secret("MAIA_SECRET_KEY"):
        return given
    path = state / "secret_key"
    try:
        if not path.exists():
            # Two processes may start at once: the key of the first is kept
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh = path.with_suffix(f".{os.getpid()}")
            fresh.touch(mode=0o600)
            fresh.write_text(get_random_secret_key())
            try:
                os.link(fresh, path)
            except FileExistsError:
                pass
            finally:
                fresh.unlink()
        return path.read_text()
    except OSError as error:
        raise ImproperlyConfigured(
            f"MAIA_STATE={state}: the state folder cannot be used ({error.strerror}: {error.filename}). "
            "Name a folder that this user may write to."
        ) from None


# --- the installation -------------------------------------------------------------------------------

STATE = Path(text("MAIA_STATE", str(BASE_DIR / "var"))).resolve()
os.umask(umask_for(STATE))
DEBUG = switch("MAIA_DEBUG", default=False)
SECRET_KEY = secret_key(STATE)
ALLOWED_HOSTS = hosts("MAIA_HOSTS", "127.0.0.1,localhost,[::1]")
CSRF_TRUSTED_ORIGINS = origins("MAIA_ORIGINS")
HTTPS = switch("MAIA_HTTPS", default=False)
PREFIX = prefix("MAIA_PREFIX")
TRUSTED_PROXIES = int(number("MAIA_TRUSTED_PROXIES", 0))
WEBHOOK_PRIVATE = switch("MAIA_WEBHOOK_PRIVATE", default=False)

# Sign-in and its duration; single sign-on if there is an issuer.
SESSION_COOKIE_AGE = int(number("MAIA_SESSION_IDLE_HOURS", 168) * 3600)
SESSION_LENGTH = int(number("MAIA_SESSION_DAYS", 30) * 86400)
OIDC_CLIENT_ID = text("MAIA_OIDC_CLIENT_ID")
OIDC_CLIENT_SECRET = secret("MAIA_OIDC_CLIENT_SECRET")
OIDC_ISSUER = issuer(text("MAIA_OIDC_ISSUER"), OIDC_CLIENT_ID)
OIDC_NAME = text("MAIA_OIDC_NAME", "single sign-on")
OIDC_ROLE = choice("MAIA_OIDC_ROLE", "none", ("none", "viewer", "researcher", "reviewer"))
OIDC_DOMAINS = words("MAIA_OIDC_DOMAINS")

DATABASES = {
    "default": database(
        secret("MAIA_DATABASE_URL") or f"sqlite:///{STATE / 'maia.sqlite3'}", secret("MAIA_DATABASE_PASSWORD")
    )
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# `redis://host:port/0` or `unix:///path/to/socket`; commands find the one that `manage.py up` has started.
OWN_REDIS = STATE / "redis" / "redis.sock"
REDIS_URL = redis(
    "MAIA_REDIS_URL", f"unix://{OWN_REDIS.resolve()}" if OWN_REDIS.is_socket() else "redis://127.0.0.1:6379/0"
)

# --- the laboratory: read by `workers.jobs.laboratory` alone -----------------------------------------

LAB_DEVICE = device("MAIA_DEVICE", "auto")
LAB_PRECISION = choice("MAIA_PRECISION", "float32", ("float32", "float16", "bfloat16"))
LAB_MEMORY_GB = number("MAIA_MEMORY_GB", 0)
LAB_BATCH_SIZE = int(number("MAIA_BATCH_SIZE", 64, least=1))
LAB_DATASET_IMAGES = int(number("MAIA_DATASET_IMAGES", 0))
LAB_SURROUNDINGS = choice("MAIA_SURROUNDINGS", "dim", ("dim", "dark", "weighted"))
LAB_DATASET = text("MAIA_DATASET", "toybox")
LAB_GENERATOR = text("MAIA_GENERATOR", "stable-diffusion-v1-5/stable-diffusion-v1-5")
LAB_EDITOR = text("MAIA_EDITOR", "timbrooks/instruct-pix2pix")
LAB_IMAGE_BATCH = int(number("MAIA_IMAGE_BATCH", 4, least=1))
LAB_IMAGE_STEPS = int(number("MAIA_IMAGE_STEPS", 0))
LAB_IMAGE_GUIDANCE = number("MAIA_IMAGE_GUIDANCE", 0)
LAB_IMAGE_SIZE = int(number("MAIA_IMAGE_SIZE", 0))
LAB_EDIT_STEPS = int(number("MAIA_EDIT_STEPS", 0))
LAB_EDIT_GUIDANCE = number("MAIA_EDIT_GUIDANCE", 0)
LAB_EDIT_SIZE = int(number("MAIA_EDIT_SIZE", 0))
LAB_WORDS_PER_SECOND = number("MAIA_WORDS_PER_SECOND", 0)
LAB_PRESENCE_JUDGE = text("MAIA_PRESENCE_JUDGE")
LAB_SENTENCES = text("MAIA_SENTENCES")
LAB_GAME_MODELS = text("MAIA_GAME_MODELS")
PLUGINS = words("MAIA_PLUGINS")
PLUGIN_SECONDS = number("MAIA_PLUGIN_SECONDS", 60, least=1)
LABEL_CHECK = switch("MAIA_LABEL_CHECK", default=True)
LABEL_CHECK_COST = number("MAIA_LABEL_CHECK_COST", 0.5)
WORKERS = int(number("MAIA_WORKERS", 0))
WORKER_THREADS = int(number("MAIA_WORKER_THREADS", 4, least=1))
LONG_THREADS = int(number("MAIA_LONG_THREADS", 2, least=1))

# A provider of vision-language models. `manage.py up` hands the key to the worker alone.
OPENAI_API_KEY = secret("OPENAI_API_KEY")
OPENAI_BASE_URL = text("OPENAI_BASE_URL")
OPENAI_MODELS = words("MAIA_OPENAI_MODELS", "gpt-4o")
OPENAI_PRICES = price_file("MAIA_OPENAI_PRICES", STATE / "prices.toml")
OPENAI_CONTEXT_TOKENS = int(number("MAIA_OPENAI_CONTEXT_TOKENS", 128000, least=1))
OPENAI_ATTEMPTS = int(number("MAIA_OPENAI_ATTEMPTS", 8, least=1))
OPENAI_SILENCE = number("MAIA_OPENAI_SILENCE", 300, least=1)
OPENAI_REASONING_EFFORT = text("MAIA_OPENAI_REASONING_EFFORT")
OPENAI_IMAGE_DETAIL = text("MAIA_OPENAI_IMAGE_DETAIL")
OPENAI_CACHE = choice("MAIA_OPENAI_CACHE", "auto", ("auto", "marks", "key", "none"))
OPENAI_RETURN_REASONING = choice("MAIA_OPENAI_RETURN_REASONING", "auto", ("auto", "yes", "no"))
OPENAI_TOOLS = choice("MAIA_OPENAI_TOOLS", "auto", ("auto", "yes", "no"))

# Programs run even without a required layer of their sandbox; every page says so.
SANDBOX_OVERRIDE = switch("MAIA_SANDBOX_OVERRIDE", default=False)

# --- Django ------------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.forms",
    "django_htmx",
    "experiments",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    # Before sessions and sign-in: style sheets and scripts contain nothing private.
    "experiments.display.bundles.Bundles",
    "experiments.core.compression.Compression",
    "experiments.core.request_id.RequestId",
    "experiments.core.security.ContentSecurityPolicy",
    # Before anything that reads the body, such as the check of the CSRF token.
    "experiments.core.request_limits.BodyMiddleware",
    "experiments.core.security.WithoutNul",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "experiments.accounts.sign_in_signals.Seen",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "maia_web.urls"
FORCE_SCRIPT_NAME = PREFIX or None
ASGI_APPLICATION = "maia_web.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "OPTIONS": {
            "loaders": [
                (
                    "django.template.loaders.cached.Loader",
                    [
                        ("experiments.display.template_loader.Loader", [BASE_DIR / "templates"]),
                        "django.template.loaders.app_directories.Loader",
                    ],
                )
            ],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "experiments.display.layout.frame",
            ],
            "libraries": {
                **{name: f"experiments.display.tags.{name}" for name in ("checks", "frame", "maia", "people", "units")},
                **{
                    name: f"experiments.{name}.tags"
                    for name in (
                        "circuits",
                        "comments",
                        "evaluations",
                        "exchange",
                        "gallery",
                        "judging",
                        "reviews",
                        "runs",
                        "studies",
                    )
                },
            },
        },
    }
]
# Fields of forms are drawn by templates/django/forms/field.html
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "overview"
LOGOUT_REDIRECT_URL = "sign-in"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]
SESSION_ENGINE = "experiments.core.sessions"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
# Another site may run on the same host
SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = PREFIX or "/"
CSRF_FAILURE_VIEW = "experiments.core.refusals.answer_refused_form"
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1 << 20
DATA_UPLOAD_MAX_NUMBER_FILES = 200  # the Imports page takes fewer, and says so

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = f"{PREFIX}/static/"
STATIC_ROOT = STATE / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
MEDIA_ROOT = STATE / "images"
STORAGES = {
    "default": storage(text("MAIA_STORAGE"), STATE / "cache"),
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

# --- Channels: a bell, never the store ---------------------------------------------------------------

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.core.RedisChannelLayer",
        # Viewers wait for the bell 5 s at a time: a shorter read timeout would miss it.
        "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_timeout": 8, "socket_connect_timeout": 2}], "expiry": 30},
    }
}

# --- Celery: carries ids only -------------------------------------------------------------------------

CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://")
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_POOL = "threads"  # CUDA does not survive a fork
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_ACKS_LATE = False  # the database and the recovery job bring lost jobs back
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # rounds run without Redis; a worker does not stop for it
# A request never hangs on a dead Redis: the recovery job enqueues again. Both settings are needed: one is for messages,
# the other for the connection that they need first. Workers and beat wait for their connection regardless.
CELERY_TASK_PUBLISH_RETRY = False
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_connect_timeout": 2,
    "socket_timeout": 30,
    "health_check_interval": 10,
    "max_retries": 0,
}
CELERY_TASK_ROUTES = {
    "workers.jobs.long.*": {"queue": "long"},
    "workers.jobs.recovery.*": {"queue": "recovery"},
}
CELERY_BEAT_SCHEDULE: dict[str, dict[str, object]] = {
    "recovery": {"task": "workers.jobs.recovery.recover", "schedule": 20.0}
}
KEEP_UNUSED_DAYS = number("MAIA_KEEP_UNUSED_DAYS", 0)
if KEEP_UNUSED_DAYS:
    CELERY_BEAT_SCHEDULE["pruning"] = {"task": "workers.jobs.long.prune", "schedule": 24 * 3600.0}
CELERY_WORKER_HIJACK_ROOT_LOGGER = False

LOG_LEVEL = choice("MAIA_LOG_LEVEL", "WARNING", ("DEBUG", "INFO", "WARNING", "ERROR"))
LOG_FORMAT = choice("MAIA_LOG_FORMAT", "plain", ("plain", "json"))
METRICS_TOKEN = secret("MAIA_METRICS_TOKEN")

# A collector of spans, such as Phoenix or Langfuse: by OpenTelemetry's own variables. Nothing of it is loaded without.
OTEL_ENDPOINT = endpoint(
    text("OTEL_EXPORTER_OTLP_ENDPOINT"), "OTEL_EXPORTER_OTLP_ENDPOINT", "a collector of spans", "to send none"
)
OTEL_HEADERS = secret("OTEL_EXPORTER_OTLP_HEADERS")
OTEL_RESOURCE = text("OTEL_RESOURCE_ATTRIBUTES")
OTEL_CONTENT = switch("MAIA_OTEL_CONTENT", default=False)

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {
            "class": "experiments.core.logs.Plain",
            "format": "{asctime} {levelname} {name}: {message}",
            "style": "{",
        },
        "json": {"class": "experiments.core.logs.Json"},
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT}},
    "loggers": {
        "uvicorn": {"handlers": ["console"], "level": LOG_LEVEL, "propagate": False},  # it has its own before
        "authlib": {"level": "WARNING"},  # at DEBUG it names the secret that only the browser's session knows (PKCE)
        # They name Django's settings, which users do not set: experiments/core/refusals.py reports the same with ours
        "django.security.DisallowedHost": {"level": "CRITICAL"},
        "django.security.csrf": {"level": "CRITICAL"},
    },
    "root": {"handlers": ["console"], "level": LOG_LEVEL},
}
