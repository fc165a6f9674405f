"""Maps that are looked up at computed places: what is made of what is found there, for all places at once."""
