"""What every shipped channel shows: `parlour.testing.contract.replies`."""

from __future__ import annotations

import pytest

from parlour.testing.contract import Factory, ReplyContract
from tests.contracts.channel_cases import CASES


class TestReplies(ReplyContract):
    @pytest.fixture(params=CASES, ids=lambda factory: factory.__name__)
    def factory(self, request: pytest.FixtureRequest) -> Factory:
        opens: Factory = request.param
        return opens
