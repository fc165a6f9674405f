"""The carriers that operators are evaluated in: a prime field, small ordered integers, and 64-bit floats.

Every operator has a meaning in every carrier. Where a carrier cannot express a function, it takes a *keyed hash* of the
arguments in its place: equal arguments give equal values and nothing more is known, so two terms that agree there agree
whatever the function is.
"""
