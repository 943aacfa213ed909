"""Build the HTTP server of a gateway: health and metrics, and the page, webhooks and API of a process that
holds accounts."""

from __future__ import annotations

from functools import partial

from adapters.web.attempts import WrongTokens
from gateway.app.components import Foundation
from gateway.app.lifecycle import Gateway
from gateway.runtime.http_server import Server


def build_server(gateway: Gateway, base: Foundation) -> Server:
    """The server, not yet started."""
    edge = base.settings.cluster.is_edge
    page, api, posting = base.page.adapter, base.api, base.posting
    if not edge:
        page, api, posting = None, None, ()
    return Server(
        addresses=base.addresses,
        routes=page.routes() if page else (),
        webhooks=[
            *(page.upload_routes() if page else ()),
            *(route for one in posting for route in one.routes),
            *(api.routes() if api is not None else ()),
        ],
        channels=gateway.channel_lines,
        ready=lambda: gateway.ready,
        metrics=base.telemetry.exposition,
        token_check=base.check_metrics_token,
        wrong_tokens=WrongTokens(
            base.clock, "metrics", partial(base.telemetry.wrong_token, "metrics"), base.wrong_elsewhere
        ),
    )
