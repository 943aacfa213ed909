"""What the gateway records about crisis responses."""
