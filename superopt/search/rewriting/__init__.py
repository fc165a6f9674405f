"""What a search may do to a graph, and where: proved rules, definitions both ways, and what is looked for by itself."""
