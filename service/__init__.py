"""The HTTP service: one model in, an equivalent faster one out. `service.app` is the way in."""
