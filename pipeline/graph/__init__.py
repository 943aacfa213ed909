"""The graph engine: nodes, edges, decisions and the loop that walks them. Knows no model and no chat."""
