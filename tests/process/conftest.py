import support

import pytest


@pytest.fixture
def serve(tmp_path):
    """Starts owners that end with the test: serve(RANGE..., options...)."""
    with support.owners(tmp_path) as start:
        yield start
