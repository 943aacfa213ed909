"""Process infrastructure without business rules: tasks, logs, metrics, HTTP server, data folder."""
