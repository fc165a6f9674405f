"""Networks of sequences: NasRNN (Zoph & Le 2017) and BERT-base's encoder (Devlin et al. 2019)."""

from __future__ import annotations

from benchmarks.published.layers import Layers
from benchmarks.sketch import attention, gelu

STEPS, HIDDEN = 5, 512
LAYERS, TOKENS, WIDTH, HEADS = 12, 512, 768, 12


def nasrnn(s: Layers, batch: int) -> str:
    """NasRNN: five steps, each with weights of its own, from a state that is given."""
    state = s.input("state", batch, HIDDEN)
    steps = [s.input(f"x{i}", batch, HIDDEN) for i in range(STEPS)]
    for x in steps:
        state = _step(s, state, x)
    return state


def _step(s: Layers, state: str, x: str) -> str:
    """Eight products each of the state and of what comes in, then a tree of bends, sums and products."""

    def product(x: str) -> str:
        return s("MatMul", x, s.draw(HIDDEN, HIDDEN, scale=HIDDEN**-0.5))

    bends = ("Relu", "Sigmoid", "Tanh", "Sigmoid", "Sigmoid", "Tanh", "Sigmoid", "Relu")
    t = [s(bend, s("Add", product(x), product(state))) for bend in bends]
    first, second = s("Add", t[0], t[3]), s("Add", t[1], t[2])
    third, fourth = s("Mul", t[4], t[5]), s("Mul", t[6], t[7])
    fifth = s("Add", s("Sigmoid", second), s("Tanh", third))
    sixth = s("Mul", s("Tanh", first), s("Tanh", fourth))
    return s("Tanh", s("Mul", s("Tanh", fifth), s("Tanh", sixth)))


def bert(s: Layers, batch: int) -> str:
    """BERT-base's twelve layers on 512 embedded tokens."""
    x = s.input("x", batch, TOKENS, WIDTH)

    def normed(x: str) -> str:
        scale = s.draw(WIDTH, scale=0.1, offset=1)
        return s("LayerNormalization", x, scale, s.draw(WIDTH, scale=0.1), axis=-1, epsilon=1e-12)

    for _ in range(LAYERS):
        x = normed(s("Add", attention(s, x, (batch, TOKENS, WIDTH), HEADS), x))
        x = normed(s("Add", s.linear(gelu(s, s.linear(x, WIDTH, 4 * WIDTH)), 4 * WIDTH, WIDTH), x))
    return x
