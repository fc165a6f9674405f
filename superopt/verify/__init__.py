"""Proofs of rules from laws, refutation by example, and rule files that may be trusted."""
