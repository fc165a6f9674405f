"""Laws, which all proofs rest on: those that declarations write, and those that follow from what these state."""
