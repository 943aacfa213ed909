"""What every shipped channel brings in: `parlour.testing.contract.inbound`."""

from __future__ import annotations

import pytest

from parlour.testing.contract import Factory, InboundContract
from tests.contracts.channel_cases import CASES


class TestInbound(InboundContract):
    @pytest.fixture(params=CASES, ids=lambda factory: factory.__name__)
    def factory(self, request: pytest.FixtureRequest) -> Factory:
        opens: Factory = request.param
        return opens
