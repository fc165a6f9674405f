"""What turns of a loop, or networks of one make, compute alike, computed of all at once: along one more axis."""
