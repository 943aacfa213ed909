"""The HTTP API for other programs: start workflow runs, follow and answer them; inbound webhooks."""
