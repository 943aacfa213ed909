"""What a graph is: nodes, edges, conditions, channels, and the checks when it is built."""
