"""ONNX models in and out: the only package that imports onnx and onnx_ir (and onnxruntime, for single nodes)."""

from superopt.onnx_io.bodies import bodies, is_loop
from superopt.onnx_io.branches import lifted
from superopt.onnx_io.chance import left_to_chance
from superopt.onnx_io.choices import Branch, Choice, choices, counting
from superopt.onnx_io.copying import copy_model
from superopt.onnx_io.drawn_weights import DrawnWeights, random_weights
from superopt.onnx_io.embedded import held
from superopt.onnx_io.emit import changed_values, rewritten
from superopt.onnx_io.external import working_copy
from superopt.onnx_io.facts import ModelFacts, facts
from superopt.onnx_io.files import LARGE, Model, check, load, weight_files
from superopt.onnx_io.floored import floored, is_masking
from superopt.onnx_io.hidden import hidden_constants
from superopt.onnx_io.importer import understand
from superopt.onnx_io.index_limits import Limit, index_limits
from superopt.onnx_io.logistic import LOGISTIC_ERROR, logistic_outputs
from superopt.onnx_io.opsets import highest_opset, needed_opset, outdated
from superopt.onnx_io.otherwise.quantized.bytes import saturates_elsewhere
from superopt.onnx_io.passed_on import to_proto
from superopt.onnx_io.probes import neighbours, save_nudged, save_showing
from superopt.onnx_io.program import Program, Step, Summary
from superopt.onnx_io.samples import demand_inputs, load_inputs
from superopt.onnx_io.saving import gone_after, may_hold_weights, save
from superopt.onnx_io.skeleton import fingerprint, opset_of
from superopt.onnx_io.splicing import spliced
from superopt.onnx_io.standalone import op_types, standalone, standalone_apart
from superopt.onnx_io.turns.apart import apart
from superopt.onnx_io.turns.choosing import batch_size
from superopt.onnx_io.turns.row_by_row import row_by_row
from superopt.onnx_io.widened import is_rounding, widened

__all__ = [
    "LARGE",
    "LOGISTIC_ERROR",
    "Branch",
    "Choice",
    "DrawnWeights",
    "Limit",
    "Model",
    "ModelFacts",
    "Program",
    "Step",
    "Summary",
    "apart",
    "batch_size",
    "bodies",
    "changed_values",
    "check",
    "choices",
    "copy_model",
    "counting",
    "demand_inputs",
    "facts",
    "fingerprint",
    "floored",
    "gone_after",
    "held",
    "hidden_constants",
    "highest_opset",
    "index_limits",
    "is_loop",
    "is_masking",
    "is_rounding",
    "left_to_chance",
    "lifted",
    "load",
    "load_inputs",
    "logistic_outputs",
    "may_hold_weights",
    "needed_opset",
    "neighbours",
    "op_types",
    "opset_of",
    "outdated",
    "random_weights",
    "rewritten",
    "row_by_row",
    "saturates_elsewhere",
    "save",
    "save_nudged",
    "save_showing",
    "spliced",
    "standalone",
    "standalone_apart",
    "to_proto",
    "understand",
    "weight_files",
    "widened",
    "working_copy",
]
