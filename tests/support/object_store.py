"""A real store of objects on loopback that speaks S3: SeaweedFS, with a bucket and keys of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import boto3
import psutil
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tests.support.installation import free_port

KEYS = ("maia-tests", "of-the-tests-alone")
READER = ("maia-reader", "may-only-read")
_PORTS = ("s3.port", "s3.port.grpc", "master.port", "master.port.grpc", "volume.port", "volume.port.grpc")
_PORTS += ("filer.port", "filer.port.grpc")


class ObjectStore:
    """A context, or started and ended by whoever makes it. `KEYS` may do everything, `READER` may read and list."""

    def __init__(self, folder: Path, bucket: str = "maia-images") -> None:
        self.folder, self.bucket = folder, bucket
        (folder / "data").mkdir(parents=True)
        ports = {name: free_port() for name in _PORTS}
        self.port = ports["s3.port"]
        self.endpoint = f"http://127.0.0.1:{self.port}"
        people = folder / "identities.json"
        known = [_person("all", KEYS, "Admin"), _person("reader", READER, "Read", "List")]
        people.write_text(json.dumps({"identities": known}))
        self.command = [
            str(Path(sys.executable).with_name("weed")),
            "server",
            f"-dir={folder / 'data'}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            "-s3",
            f"-s3.config={people}",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            "-s3.autoCreateBucket=false",
            "-master.telemetry=false",
            "-master.volumeSizeLimitMB=64",
            "-volume.max=20",
            *(f"-{name}={port}" for name, port in ports.items()),
        ]
        self.process: subprocess.Popen[bytes] | None = None

    def environment(self, keys: tuple[str, str] = KEYS) -> dict[str, str]:
        """The settings of an installation that keeps its images there."""
        return {
            "MAIA_STORAGE": f"s3://{self.bucket}/kept",
            "MAIA_S3_ENDPOINT": self.endpoint,
            "MAIA_S3_ACCESS_KEY": keys[0],
            "MAIA_S3_SECRET_KEY": keys[1],
        }

    def start(self) -> None:
        """Start, also after a kill, and wait until it holds its bucket."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        until = time.monotonic() + 90
        while True:
            with suppress(BotoCoreError, ClientError):
                client = self.client()
                if self.bucket not in {each["Name"] for each in client.list_buckets()["Buckets"]}:
                    client.create_bucket(Bucket=self.bucket)
                client.put_object(Bucket=self.bucket, Key="ready", Body=b"yes")
                return
            assert self.process.poll() is None, (self.folder / "log").read_text(errors="replace")[-3000:]
            assert time.monotonic() < until, (self.folder / "log").read_text(errors="replace")[-3000:]
            time.sleep(0.2)

    def client(self, endpoint: str = "") -> Any:
        config = Config(retries={"total_max_attempts": 1}, read_timeout=10, s3={"addressing_style": "path"})
        return boto3.client(
            "s3",
            endpoint_url=endpoint or self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=KEYS[0],
            aws_secret_access_key=KEYS[1],
            config=config,
        )

    def signal(self, number: signal.Signals) -> None:
        if self.process:
            with suppress(psutil.NoSuchProcess):
                self.process.send_signal(number)

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()

    def end(self) -> None:
        self.signal(signal.SIGCONT)
        self.kill()

    def __enter__(self) -> ObjectStore:
        try:
            self.start()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.end()


def _person(name: str, keys: tuple[str, str], *actions: str) -> dict[str, Any]:
    return {"name": name, "credentials": [{"accessKey": keys[0], "secretKey": keys[1]}], "actions": list(actions)}
