"""Due work: jobs that outlive the process, and the reminders among them."""
