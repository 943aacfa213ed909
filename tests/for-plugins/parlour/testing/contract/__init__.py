"""The channel contract: tests that every channel passes. Needs pytest and pytest-asyncio.

    class TestIrc(ChannelContract):
        @pytest.fixture
        def factory(self) -> Factory:
            return open_case

docs/guides/add-a-channel.md says what a case is.
"""

import pytest

# Before the modules are imported: a failed assert then shows its values.
pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in ("inbound", "lifecycle", "replies")))

from parlour.testing.contract.fixtures import Factory  # noqa: E402 - after the line above
from parlour.testing.contract.inbound import InboundContract  # noqa: E402 - as above
from parlour.testing.contract.lifecycle import LifecycleContract  # noqa: E402 - as above
from parlour.testing.contract.replies import ReplyContract  # noqa: E402 - as above

__all__ = ["ChannelContract", "Factory", "InboundContract", "LifecycleContract", "ReplyContract"]


class ChannelContract(LifecycleContract, InboundContract, ReplyContract):
    """The whole contract. Override the fixture `factory`."""
