"""FIELD D, row by row, on the HTTP path."""

import pytest

pytest.register_assert_rewrite("tests.field.play", "tests.field.verdict")
