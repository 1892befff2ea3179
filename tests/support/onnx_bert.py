"""The weights of a BERT encoder that was published as a quantised ONNX graph: float32, by their published names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tensors = dict[str, NDArray[np.float32]]


def read_onnx_bert(path: Path) -> Tensors:
    """Every weight and bias. The exporter names a weight by the place where it is used, not by its own name."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    stored: dict[str, NDArray[Any]] = {item.name: numpy_helper.to_array(item) for item in graph.initializer}
    tensors = {name: array for name, array in stored.items() if name.endswith((".weight", ".bias"))}
    for name in stored:
        if name.endswith(".weight_quantized"):
            tensors[name.removesuffix("_quantized")] = _dequantised(stored, name)
    for node in graph.node:
        place = re.fullmatch(r"/(.+?)/(?:Gemm_)?MatMul_quant", node.name)
        if node.op_type == "MatMulInteger" and place:
            # Multiplied from the right there, published as the layer's own matrix.
            tensors[f"{place[1].replace('/', '.')}.weight"] = _dequantised(stored, node.input[1]).T
    return {name.removeprefix("bert."): np.ascontiguousarray(array, np.float32) for name, array in tensors.items()}


def _dequantised(stored: dict[str, NDArray[Any]], name: str) -> NDArray[np.float32]:
    base = name.removesuffix("_quantized")
    whole: NDArray[np.float32] = stored[name].astype(np.float32) - stored[f"{base}_zero_point"].astype(np.float32)
    return whole * stored[f"{base}_scale"]
