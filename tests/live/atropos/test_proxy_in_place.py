"""The tests of Atropos' own proxy, as its wheel brings them, with ours in its place: all of them, without vLLM."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.live.consumers.installed import HOME, python

pytestmark = pytest.mark.live
THEIRS = "atroposlib.tests.test_managed_server_proxy"
COUNT = 26


def test_atropos_own_proxy_tests_pass_with_ours(tmp_path: Path) -> None:
    ours = ("-p", "no:cacheprovider", "-p", "tests.live.atropos.proxy_in_place")
    run = subprocess.run(
        [python("atropos"), "-m", "pytest", "-q", *ours, "--pyargs", THEIRS],
        cwd=tmp_path,
        env={"HOME": str(HOME / "atropos"), "PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert re.search(rf"^{COUNT} passed in", run.stdout, re.MULTILINE), run.stdout[-4000:] + run.stderr[-2000:]
