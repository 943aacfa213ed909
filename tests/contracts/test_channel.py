"""Every shipped channel keeps the contract of `parlour.testing`: its name, capabilities, lifecycle, errors.

Inbound items are in `test_channel_inbound`, replies in `test_channel_replies`. A new channel adds one case to
`channel_cases`.
"""

from __future__ import annotations

import pytest

from parlour.testing.contract import Factory, LifecycleContract
from tests.contracts.channel_cases import CASES


class TestLifecycle(LifecycleContract):
    @pytest.fixture(params=CASES, ids=lambda factory: factory.__name__)
    def factory(self, request: pytest.FixtureRequest) -> Factory:
        opens: Factory = request.param
        return opens
