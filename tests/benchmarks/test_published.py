"""The published networks: as large as published, and lively enough that comparing their outputs says something."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest

from benchmarks.published import BATCHES, PUBLISHED, counted, write
from benchmarks.published.layers import Layers
from superopt.cost.ort import OnnxRuntime

PARAMETERS = {
    "resnet18": 11_689_512,
    "resnet50": 25_557_032,
    "resnext50": 25_028_904,
    "nasrnn": 5 * 8 * 2 * 512 * 512,
    "bert": 12 * (12 * 768**2 + 13 * 768),
    "squeezenet": 1_235_496,
    "vgg19": 143_667_240,
    "inception_v3": 23_834_568,
    "csrnet": 16_263_489,
    "resnet3d18": 33_371_472,
}
"""As torchvision states them, CSRNet's and the sequences' from their papers; of NasNet-A none is published."""
NORMALIZED = ("resnet18", "resnet50", "resnext50", "inception_v3", "resnet3d18")
ROOT = Path(__file__).parents[2]
QUICK = ("squeezenet", "nasrnn")


def biases(layers: Layers) -> int:
    """How many numbers all convolutions add; a normalization that was not folded would have as many more."""
    sizes = {w.name: w.dims for w in layers.weights}
    return sum(sizes[n.input[2]][0] for n in layers.nodes if n.op_type == "Conv")


@cache
def written(name: str, folder: Path) -> Path:
    return write(name, 1, folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("published")


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_network_has_as_many_parameters_as_published(name: str) -> None:
    layers, _ = counted(name)
    assert layers.parameters + (biases(layers) if name in NORMALIZED else 0) == PARAMETERS[name]


def test_nasnet_ends_in_the_map_of_the_third_reduction() -> None:
    _, model = counted("nasnet_a")
    assert [d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim] == [1, 5 * 1024, 7, 7]


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_batch_changes_the_first_size_of_inputs_and_outputs_alone(name: str) -> None:
    one, many = (counted(name, batch) for batch in BATCHES)
    for (layers, model), batch in zip((one, many), BATCHES, strict=True):
        ends = (*model.graph.input, *model.graph.output)
        assert {v.type.tensor_type.shape.dim[0].dim_value for v in ends} == {batch}
        assert layers.parameters == one[0].parameters
    assert one[0].nodes == many[0].nodes


@pytest.mark.parametrize("name", QUICK)
def test_outputs_are_finite_and_tell_inputs_apart(name: str, folder: Path) -> None:
    runtime = OnnxRuntime(1)
    session = runtime.session(written(name, folder))
    one, two = (runtime.run(session, runtime.feeds(session, seed))[0] for seed in range(2))
    assert np.isfinite(one).all()
    assert one.std() > 0.01
    assert np.abs(one - two).mean() > 0.1 * one.std()


@pytest.mark.parametrize("name", QUICK)
def test_what_is_written_is_a_valid_model_whose_weights_lie_beside_it(name: str, folder: Path) -> None:
    path = written(name, folder)
    onnx.checker.check_model(path, full_check=True)
    assert path.with_suffix(".onnx.data").stat().st_size == 4 * PARAMETERS[name]
    assert not list(folder.glob("*.part.*"))


def test_weights_are_those_of_the_seed_for_every_batch(folder: Path, tmp_path: Path) -> None:
    def weights(batch: int, seed: int) -> bytes:
        (tmp_path / f"{seed}").mkdir(exist_ok=True)
        return write("squeezenet", batch, tmp_path / f"{seed}", seed).with_suffix(".onnx.data").read_bytes()

    first = written("squeezenet", folder).with_suffix(".onnx.data").read_bytes()
    assert weights(2, seed=0) == first
    assert weights(1, seed=1) != first


def test_the_command_keeps_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "squeezenet-1.onnx").write_bytes(b"mine")
    command = [sys.executable, "-m", "benchmarks.published", str(tmp_path), "squeezenet", "--batch", "1", "3"]
    said = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    assert said.split() == [str(tmp_path / f"squeezenet-{batch}.onnx") for batch in (1, 3)]
    assert (tmp_path / "squeezenet-1.onnx").read_bytes() == b"mine"
    assert (tmp_path / "squeezenet-3.onnx.data").exists()
