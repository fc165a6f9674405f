"""All pieces of a model solved: equal ones once, alike ones alike, joined over their cuts, and remembered."""
