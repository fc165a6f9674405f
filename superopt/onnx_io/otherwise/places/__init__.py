"""Parts of values that are taken, put, chosen, counted or joined one by one: whole rows of them at once."""
