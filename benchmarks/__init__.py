"""The networks that superopt is measured on, and the measuring."""
