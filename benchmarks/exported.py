"""Networks as people export them: transformers, some of timm, and those of `benchmarks.modules`; random weights.

With them the transformer models that come with onnxscript, small in size and full in structure. Needs torch,
transformers, timm and onnxscript, which nothing else here needs: `python -m benchmarks.exported FOLDER` writes the
models.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

FIXED = ("swin", "albert", "gpt2", "qwen2", "tasnet", "style", "fastvit_t8")
"""Networks that torch does not export with a symbolic batch, or that are measured with one alone."""

SMALL = {"num_attention_heads": 4, "intermediate_size": 512, "hidden_size": 256}
"""Of language models whose size is not what is looked at."""


OF_TIMM = ("repvgg_a0", "mobileone_s0", "fastvit_t8", "edgenext_xx_small", "rexnet_100", "ghostnet_100")
"""Networks of timm: three in their training form, and mobile ones."""


def networks() -> dict[str, Callable[[], Any]]:
    """By name, what gives a module and its example inputs by name; true sizes, weights as they are initialized."""
    import torch
    import transformers as t

    from benchmarks import modules

    def of_timm(name: str) -> tuple[Any, dict[str, Any]]:
        import timm

        module = timm.create_model(name, pretrained=False)
        return module, {"x": torch.zeros(1, *module.default_cfg["input_size"])}

    def image(size: int = 224) -> dict[str, Any]:
        return {"pixel_values": torch.zeros(1, 3, size, size)}

    tokens = {
        "input_ids": torch.ones(1, 128, dtype=torch.int64),
        "attention_mask": torch.ones(1, 128, dtype=torch.int64),
    }
    short = {"input_ids": torch.ones(1, 64, dtype=torch.int64)}
    return {
        "bert": lambda: (t.BertModel(t.BertConfig()), tokens),
        "distilbert": lambda: (t.DistilBertModel(t.DistilBertConfig()), tokens),
        "vit": lambda: (t.ViTForImageClassification(t.ViTConfig()), image()),
        "swin": lambda: (t.SwinForImageClassification(t.SwinConfig(attn_implementation="eager")), image()),
        "segformer": lambda: (t.SegformerForSemanticSegmentation(t.SegformerConfig()), image(512)),
        "whisper": lambda: (
            t.models.whisper.modeling_whisper.WhisperEncoder(t.WhisperConfig()),
            {"input_features": torch.zeros(1, 80, 3000)},
        ),
        "albert": lambda: (t.AlbertModel(t.AlbertConfig(**SMALL, num_hidden_layers=4)), short),
        "gpt2": lambda: (t.GPT2Model(t.GPT2Config(n_layer=4, n_embd=256, n_head=4, use_cache=False)), short),
        "qwen2": lambda: (
            t.Qwen2Model(t.Qwen2Config(**SMALL, num_hidden_layers=3, num_key_value_heads=2, use_cache=False)),
            short,
        ),
        "unet": lambda: (modules.UNet(), {"x": torch.zeros(1, 3, 256, 256)}),
        "style": lambda: (modules.Style(), {"x": torch.zeros(1, 3, 128, 128)}),
        "tasnet": lambda: (modules.ConvTasNet(), {"x": torch.zeros(1, 1, 8000)}),
        **{name: partial(of_timm, name) for name in OF_TIMM},
    }


PACKAGED = ("bart_encoder", "phi2lm", "phi4lm", "smollm_1", "smollm_2", "whisper_decoder", "whisper_encoder")
"""The transformer models of onnxscript (`onnxscript.rewriter.models`)."""


def write_packaged(name: str, file: Path) -> None:
    """Write one of `PACKAGED` with its random weights.

    They are constants of its nodes, and messages of them (7 GB for phi4lm) would not fit the memory: they are taken out
    before there is a message, and put back as initializers.
    """
    import numpy as np
    import onnx_ir as ir
    from onnx_ir.passes.common import LiftConstantsToInitializersPass

    weights: dict[str, Any] = {}
    to_proto = ir.to_proto

    def without_weights(model: Any) -> Any:
        for node in model.graph:
            value = node.attributes.get("value") if node.op_type == "Constant" else None
            if value is not None and value.value.nbytes > 2**20:
                weights[node.outputs[0].name] = value.value
                node.attributes["value"] = ir.AttrTensor("value", ir.Tensor(np.zeros(1, np.float32)))
        return to_proto(model)

    vars(ir)["to_proto"] = without_weights
    module = importlib.import_module(f"onnxscript.rewriter.models._{name}")
    (made,) = (f for n, f in vars(module).items() if n.replace("_test", "") == name and callable(f))
    model = made().get_onnx_model()
    for node in model.graph:
        if node.outputs[0].name in weights:
            node.attributes["value"] = ir.AttrTensor("value", weights[node.outputs[0].name])
    model = LiftConstantsToInitializersPass(size_limit=1024)(model).model
    vars(ir)["to_proto"] = to_proto
    ir.save(model, file, external_data=f"{file.name}.data")


def main(folder: Path, names: list[str]) -> None:
    """Export each network by torch's exporter, with a symbolic batch where it can."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    for name in PACKAGED:
        if not names or name in names:
            write_packaged(name, folder / f"{name}.onnx")
            print(name, flush=True)
    for name, made in networks().items():
        if names and name not in names:
            continue
        torch.manual_seed(0)
        module, inputs = made()
        module.eval()
        batch = torch.export.Dim("batch", min=1, max=64)
        torch.onnx.export(
            module,
            kwargs=inputs,
            f=str(folder / f"{name}.onnx"),
            dynamo=True,
            external_data=True,
            verbose=False,
            dynamic_shapes=None if name in FIXED else {k: {0: batch} for k in inputs},
        )
        print(name, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
