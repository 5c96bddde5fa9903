"""Store files in an S3 bucket, for machines that share no disk, with a local cache of files that were read.

Keys are derived from the content and what they hold never changes. So a file is written once (`If-None-Match: *`)
and read once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from boto3.exceptions import Boto3Error
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, NoCredentialsError, PartialCredentialsError
from botocore.exceptions import ConnectionError as NoConnection
from django.core.files import File
from storages.backends.s3 import S3Storage

from experiments.core.local_cache import LocalCache
from workers.errors import Outage

CONNECT_SECONDS = 5
READ_SECONDS = 20
"""Timeout for connecting to the store, and for each read from it, in seconds."""
_ATTEMPTS = 3
_CONNECTIONS = 16
_NOT_THERE = frozenset({"404", "NoSuchKey", "NotFound"})
_THERE = frozenset({"412", "409", "PreconditionFailed", "ConditionalRequestConflict"})
"""Error codes of a write to a key that is taken, or being written at this moment. It is the same content."""
_KEYS = frozenset({"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken"})
_REFUSED = frozenset({"403", "AccessDenied", "Forbidden", "AllAccessDisabled"})
_AGAIN = "Work resumes by itself once this is fixed."


class Bucket(S3Storage):
    """Storage of an installation's files in `bucket`, under `prefix`. Without keys, credentials are found as boto3
    does.

    Raises Outage, with the remedy, if the store is away, slow or refuses; FileNotFoundError as a folder does.
    """

    def __init__(
        self, bucket: str, prefix: str, *, endpoint: str, region: str, keys: tuple[str, str], cache: tuple[Path, int]
    ) -> None:
        """Connect to a bucket; `cache` is a folder and the maximum bytes it may hold, 0 for no cache."""
        self._cache = LocalCache(*cache) if cache[1] else None
        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"total_max_attempts": _ATTEMPTS, "mode": "standard"},
            max_pool_connections=_CONNECTIONS,
            # Stores other than AWS often have no host name for each bucket.
            s3={"addressing_style": "path" if endpoint else "auto"},
            # boto3 adds checksums by default, which some other stores refuse.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        given = {"access_key": keys[0], "secret_key": keys[1]} if keys[0] else {}
        super().__init__(
            bucket_name=bucket,
            location=prefix,
            endpoint_url=endpoint or None,
            region_name=region,
            client_config=config,
            **given,
        )

    # --- whole files, the interface of Django's storages ---

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:
        del mode
        return File(BytesIO(self._read(name)), name=name)

    def _read(self, name: str) -> bytes:
        """Read the whole file. A body that is cut off is an outage."""
        if self._cache and (kept := self._cache.read(name)) is not None:
            return kept
        with self._explaining(name):
            data: bytes = self._object(name).get()["Body"].read()
        if self._cache:
            self._cache.write(name, data)
        return data

    def _save(self, name: str, content: File[bytes]) -> str:
        """Write the file, unless the key is taken; then it holds the same content."""
        data = content.read()
        with self._explaining(name, refused_if_there=False):
            self._object(name).put(Body=data, IfNoneMatch="*", ContentType=_type_of(name))
        return name

    def get_available_name(self, name: str, max_length: int | None = None) -> str:  # noqa: ARG002 Django's signature
        return name

    def exists(self, name: str) -> bool:
        try:
            with self._explaining(name):
                self._object(name).load()
        except FileNotFoundError:
            return False
        return True

    def size(self, name: str) -> int:
        with self._explaining(name):
            return int(self._object(name).content_length)

    def delete(self, name: str) -> None:
        if self._cache:
            self._cache.remove(name)
        with self._explaining(name):
            self._object(name).delete()

    def list_names(self, under: str = "") -> Iterator[tuple[str, int, float]]:
        """Return the files under a folder: name, bytes, and when it was written, in seconds since 1970."""
        start = self._normalize_name(under)
        prefix = f"{start}/" if start and under else start
        lead = len(self.location) + 1 if self.location else 0
        with self._explaining(under):
            for each in self.bucket.objects.filter(Prefix=prefix):
                yield each.key[lead:], each.size, each.last_modified.timestamp()

    def listdir(self, name: str) -> tuple[list[str], list[str]]:
        with self._explaining(name):
            return super().listdir(name)

    def look_past_cache(self) -> None:
        """Make this process read the bucket itself from now on, without the cache."""
        self._cache = None

    # --- large files: never whole in memory, overwritten if they exist ---

    def upload(self, path: Path, name: str) -> None:
        with self._explaining(name):
            self._object(name).upload_file(str(path))

    def download(self, name: str, path: Path) -> None:
        with self._explaining(name):
            self._object(name).download_file(str(path))

    def stream(self, name: str) -> IO[bytes]:
        """Open a file to be read in pieces; the caller closes it."""
        with self._explaining(name):
            return self._object(name).get()["Body"]

    def ask(self) -> None:
        """Raise Outage if the bucket does not answer."""
        with self._explaining(""):
            self.connection.meta.client.head_bucket(Bucket=self.bucket_name)

    def _object(self, name: str) -> Any:
        return self.bucket.Object(self._normalize_name(name))

    @contextmanager
    def _explaining(self, name: str, *, refused_if_there: bool = True) -> Iterator[None]:
        """Turn errors of the store into errors that people understand."""
        try:
            yield
        except ClientError as error:
            told = error.response.get("Error", {})
            code = str(told.get("Code", ""))
            if code in _THERE and not refused_if_there:
                return
            # Without a name, the bucket itself is missing.
            if code in _NOT_THERE and name:
                raise FileNotFoundError(name) from None
            raise Outage(self._explain(code, str(told.get("Message", "")))) from error
        except (NoCredentialsError, PartialCredentialsError) as error:
            raise Outage(self._explain("InvalidAccessKeyId", "there is none")) from error
        except (NoConnection, HTTPClientError) as error:
            raise Outage(f"The store of images does not answer ({type(error).__name__}). {_AGAIN}") from error
        except (BotoCoreError, Boto3Error, OSError) as error:
            if isinstance(error, FileNotFoundError):
                raise
            if isinstance(said := error.__context__, ClientError):  # The error comes from an upload in parts.
                told = said.response.get("Error", {})
                raise Outage(self._explain(str(told.get("Code", "")), str(told.get("Message", "")))) from error
            raise Outage(f"The store of images broke off ({type(error).__name__}). {_AGAIN}") from error

    def _explain(self, code: str, said: str) -> str:
        if code in _KEYS:
            return (
                f"The store of images does not accept the installation's keys ({said or code}). "
                f"Set MAIA_S3_ACCESS_KEY and MAIA_S3_SECRET_KEY. {_AGAIN}"
            )
        if code in {"NoSuchBucket", *_NOT_THERE}:
            return (
                f"There is no bucket {self.bucket_name!r} in the store of images. Create it, or "
                f"name another in MAIA_STORAGE. {_AGAIN}"
            )
        if code in _REFUSED:
            return (
                f"The store of images refuses what was asked of bucket {self.bucket_name!r} ({said or code}). "
                f"Let the installation's keys read, write and list there. {_AGAIN}"
            )
        return f"The store of images says {code} ({said or 'no more'}). {_AGAIN}"


def _type_of(name: str) -> str:
    return {"png": "image/png", "webp": "image/webp"}.get(name.rpartition(".")[2], "application/octet-stream")
