"""`python -m tests.faults --seconds 3600`: troubles an installation of its own; exits with 1 where it did not hold."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "maia_web.settings")
OF_ITS_OWN = "MAIA_TEST_MOUNTS"
"""Set once this process has a mount namespace of its own."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long faults begin")
    parser.add_argument("--units", type=int, default=12, help="of each sweep")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--laboratory", type=Path, help="a state folder with the toybox's scenes drawn; default: drawn now"
    )
    parser.add_argument("--folder", type=Path, help="where logs are left; default: removed afterwards")
    options = parser.parse_args()
    enter_namespace()

    from tests.faults.campaign import run_campaign
    from tests.support.quick_laboratory import draw_laboratory

    folder = options.folder or Path(tempfile.mkdtemp(prefix="maia-faults-"))
    folder.mkdir(parents=True, exist_ok=True)
    laboratory = options.laboratory
    if laboratory is None and not (laboratory := folder / "laboratory").exists():
        draw_laboratory(laboratory)
    report = run_campaign(
        folder, laboratory, options.seconds, options.seed, options.units, lambda line: print(line, flush=True)
    )
    print(report)
    if not options.folder:
        shutil.rmtree(folder, ignore_errors=True)
    return bool(report.violations)


def enter_namespace() -> None:
    """Start anew where this process may mount disks of its own, if the machine lets it."""
    if OF_ITS_OWN in os.environ or not (unshare := shutil.which("unshare")):
        return
    os.environ[OF_ITS_OWN] = "yes"
    inside = ["--mount", "--propagation", "private"]
    if os.geteuid() != 0:
        inside = ["--user", "--map-current-user", "--keep-caps", *inside]
    os.execv(unshare, [unshare, *inside, sys.executable, "-m", "tests.faults", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
