"""The graph engine: nodes, edges, decisions and the loop that runs them. Independent of models and chats."""
