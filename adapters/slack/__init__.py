"""The Slack channel: Socket Mode or signed HTTP in, the Web API out, through slack-bolt and slack-sdk."""
