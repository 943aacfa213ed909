"""Accept inbound items: authorise, deduplicate, enqueue, acknowledge."""
