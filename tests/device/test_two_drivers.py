"""Twenty thousand random operators on two drivers at once, byte by byte.

Each adapter is compared with SwiftShader, and SwiftShader, by other operators, with lavapipe.
"""

import json

import pytest
import two_drivers
from adapters import offer_also
from processes import python

OPERATORS = 20_000


@pytest.mark.slow
def test_two_drivers_agree(adapter, monkeypatch):
    against, first = "SwiftShader", 0
    if against in adapter.name:
        against, first = "llvmpipe", OPERATORS
    offer_also(against, monkeypatch)
    said = json.loads(python(two_drivers.__file__, adapter.name, against, first, OPERATORS))
    assert said["operators"] == OPERATORS
    assert said["adapters"][0] == adapter.name
    assert against in said["adapters"][1]
