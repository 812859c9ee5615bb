"""Atropos' own tests, of a module, with ours in place of theirs by a plugin: both are named. Says what pytest says."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[4] / "src"), str(HERE.parent)]
os.chdir(sys.prefix)  # out of this project, whose tests have a configuration of their own
module, plugin = sys.argv[1:]
sys.exit(pytest.main(["-q", "-p", plugin, "-p", "no:cacheprovider", "--pyargs", module]))
