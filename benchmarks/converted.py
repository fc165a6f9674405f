"""Models as converters write them: pipelines of scikit-learn by skl2onnx, networks of Keras by tf2onnx.

Needs scikit-learn and skl2onnx, or tensorflow and tf2onnx, which nothing else here needs: `python -m
benchmarks.converted FOLDER [NAME ...]` writes those whose libraries are there. Pipelines take any number of rows, so
give one: `superopt optimize FOLDER/stack.onnx --shape X:256,40`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

ROWS, COLUMNS = 600, 40
"""What pipelines are trained on."""


def pipelines() -> dict[str, tuple[Any, bool]]:
    """Pipelines that are linear but for their ends, by name, and whether they tell classes."""
    import sklearn.compose as compose
    import sklearn.linear_model as linear
    import sklearn.preprocessing as scale
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.ensemble import BaggingRegressor, StackingRegressor
    from sklearn.feature_selection import SelectKBest, f_regression
    from sklearn.impute import SimpleImputer
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline as steps
    from sklearn.pipeline import make_union

    classes, standard = linear.LogisticRegression, scale.StandardScaler
    halves = compose.make_column_transformer(
        (standard(), list(range(COLUMNS // 2))), (scale.MinMaxScaler(), list(range(COLUMNS // 2, COLUMNS)))
    )
    parts = [("ridge", linear.Ridge()), ("lasso", steps(standard(), linear.Lasso(alpha=0.1)))]
    return {
        "logistic": (steps(standard(), classes()), True),
        "imputed": (steps(SimpleImputer(), standard(), classes()), True),
        "normalized": (steps(scale.Normalizer(), standard(), classes()), True),
        "components": (steps(standard(), PCA(10), classes()), True),
        "discriminant": (steps(standard(), LinearDiscriminantAnalysis()), True),
        "halves": (steps(halves, classes()), True),
        "union": (steps(make_union(standard(), PCA(5), scale.MinMaxScaler()), classes()), True),
        "layers": (steps(standard(), MLPClassifier((64, 64), max_iter=500, random_state=0)), True),
        "clusters": (steps(standard(), KMeans(8, random_state=0)), True),
        "ridge": (steps(scale.MinMaxScaler(), linear.Ridge()), False),
        "selected": (steps(SelectKBest(f_regression, k=10), standard(), linear.LinearRegression()), False),
        "bag": (BaggingRegressor(linear.Ridge(), n_estimators=10, random_state=0), False),
        "stack": (StackingRegressor(parts, final_estimator=linear.Ridge()), False),
    }


def write_pipeline(made: tuple[Any, bool], file: Path) -> None:
    """Train a pipeline on random numbers, and write it."""
    from skl2onnx import to_onnx

    rng = np.random.default_rng(0)
    x = rng.normal(1, 2, (ROWS, COLUMNS)).astype(np.float32)
    score = (x @ rng.normal(size=COLUMNS)).astype(np.float32)
    model, tells_classes = made
    model.fit(x, np.digitize(score, np.quantile(score, (1 / 3, 2 / 3))) if tells_classes else score)
    file.write_bytes(to_onnx(model, x[:1]).SerializeToString())


NETWORKS = ("NASNetMobile", "DenseNet121", "ResNet50V2", "InceptionV3", "MobileNetV2", "MobileNetV3Small", "Xception")
"""Of `keras.applications`, with random weights."""


def write_network(name: str, file: Path) -> None:
    """Write a network of Keras for single images, with statistics as training leaves them: neither 0 nor 1."""
    import keras
    import tensorflow as tf
    import tf2onnx

    keras.utils.set_random_seed(0)
    module, rng = getattr(keras.applications, name)(weights=None), np.random.default_rng(0)
    for v in module.variables:
        if v.path.endswith(("moving_variance", "gamma")):
            v.assign(rng.uniform(0.5, 1.5, v.shape))
        elif v.path.endswith("moving_mean"):
            v.assign(rng.normal(0, 0.1, v.shape))
    (image,) = module.inputs
    taken = [tf.TensorSpec((1, *image.shape[1:]), image.dtype, name=image.name)]
    run = tf.function(lambda x: module(x, training=False), input_signature=taken)
    tf2onnx.convert.from_function(run, input_signature=taken, opset=17, output_path=str(file))


def main(folder: Path, names: list[str]) -> None:
    """Write the models that are named, or all for which there are libraries."""
    folder.mkdir(parents=True, exist_ok=True)
    writers: dict[str, Callable[[Path], None]] = {}
    if find_spec("skl2onnx"):
        writers |= {n: partial(write_pipeline, made) for n, made in pipelines().items()}
    if find_spec("tf2onnx"):
        writers |= {n.lower(): partial(write_network, n) for n in NETWORKS}
    if unknown := set(names) - set(writers):
        sys.exit(f"no such model, or its libraries are not installed: {', '.join(sorted(unknown))}")
    for name in names or writers:
        writers[name](folder / f"{name}.onnx")
        print(name, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
