"""Writes `model.onnx` for a BERT sentence-embedding model from its `model.safetensors`.

    python3 make_onnx.py MODEL_FOLDER OUTPUT_FOLDER

The output folder becomes a whole model folder: the ONNX file, and a copy of the small files. Needs
the packages onnx, safetensors and numpy. Opset 20 brings `Gelu`.
"""

import json
import pathlib
import shutil
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file


def network(config, weights):
    """The graph: three inputs of shape [batch, tokens], `last_hidden_state` out."""
    nodes, constants = [], {}

    def constant(name, value):
        constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def node(kind, *inputs, **attributes):
        output = f"{kind}_{len(nodes)}"
        nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def weight(name):
        return constant(name, weights[name].astype(np.float32))

    def dense(x, name):
        matrix = constant(f"{name}.matrix", weights[f"{name}.weight"].astype(np.float32).T)
        return node("Add", node("MatMul", x, matrix), weight(f"{name}.bias"))

    def norm(x, name):
        scale, bias = weight(f"{name}.weight"), weight(f"{name}.bias")
        return node("LayerNormalization", x, scale, bias, axis=-1, epsilon=config["layer_norm_eps"])

    ints = lambda name, *values: constant(name, np.array(values, dtype=np.int64))
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    zero, one, axes = ints("zero", 0), ints("one", 1), ints("axes", 1, 2)
    shape = ints("shape", 0, 0, heads, hidden // heads)
    together = ints("together", 0, 0, hidden)
    root = constant("root", np.float32(np.sqrt(hidden // heads)))

    words = node("Gather", weight("embeddings.word_embeddings.weight"), "input_ids")
    kinds = node("Gather", weight("embeddings.token_type_embeddings.weight"), "token_type_ids")
    tokens = node("Slice", node("Shape", "input_ids"), one, ints("two", 2), zero)
    places = node("Slice", weight("embeddings.position_embeddings.weight"), zero, tokens, zero)
    x = node("Add", node("Add", words, kinds), places)
    x = norm(x, "embeddings.LayerNorm")
    mask = node("Unsqueeze", node("Cast", "attention_mask", to=TensorProto.FLOAT), axes)
    mask = node("Sub", mask, constant("unit", np.float32(1)))
    mask = node("Mul", mask, constant("far", np.float32(1e9)))
    for number in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"

        def head(part, order):
            split = node("Reshape", dense(x, f"{layer}.attention.self.{part}"), shape)
            return node("Transpose", split, perm=order)

        query, key = head("query", [0, 2, 1, 3]), head("key", [0, 2, 3, 1])
        scores = node("Add", node("Div", node("MatMul", query, key), root), mask)
        seen = node("MatMul", node("Softmax", scores, axis=-1), head("value", [0, 2, 1, 3]))
        seen = node("Reshape", node("Transpose", seen, perm=[0, 2, 1, 3]), together)
        seen = dense(seen, f"{layer}.attention.output.dense")
        x = norm(node("Add", x, seen), f"{layer}.attention.output.LayerNorm")
        inner = node("Gelu", dense(x, f"{layer}.intermediate.dense"))
        x = norm(node("Add", x, dense(inner, f"{layer}.output.dense")), f"{layer}.output.LayerNorm")
    nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"]))
    names = ["input_ids", "attention_mask", "token_type_ids"]
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, ["b", "t"]) for n in names]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["b", "t", hidden])
    return helper.make_graph(nodes, "bert", inputs, [output], list(constants.values()))


def main():
    source, target = map(pathlib.Path, sys.argv[1:3])
    config = json.loads((source / "config.json").read_text())
    weights = load_file(source / "model.safetensors")
    opset = [helper.make_opsetid("", 20)]
    model = helper.make_model(network(config, weights), opset_imports=opset, ir_version=10)
    onnx.checker.check_model(model)
    shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.safetensors"))
    # The name comes last, so that a folder that has the file is whole.
    onnx.save(model, target / "model.partial")
    (target / "model.partial").rename(target / "model.onnx")


if __name__ == "__main__":
    main()
