"""What a graph costs to run: measured kernel by kernel, or estimated where nothing can be measured."""
