"""Process plumbing without business rules: tasks, logs, metrics, the HTTP server, the data folder."""
