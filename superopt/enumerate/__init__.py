"""Finding candidate equations: grow terms, fingerprint, pair, generalize, prune."""
