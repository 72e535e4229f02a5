# ONNX Runtime: a model with kernels of the runtime's library and of rocBLAS. With the argument `compare`, the results are
# compared with those that the runtime computes on the processor.
import sys

import numpy
import onnxruntime

FLOAT, INT64, INT, INTS = 1, 7, 2, 7  # of onnx.proto: types of tensors and of attributes


def varint(number):
    text = bytearray()
    while number > 127:
        text.append(number & 127 | 128)
        number >>= 7
    return bytes(text) + bytes([number])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(name, value):
    kind, number, values = (INTS, 8, value) if isinstance(value, list) else (INT, 3, [value])
    return field(5, field(1, name) + b"".join(field(number, one) for one in values) + field(20, kind))


def node(kind, inputs, outputs, **attributes):
    text = b"".join(field(1, name) for name in inputs.split()) + b"".join(field(2, name) for name in outputs.split())
    return field(1, text + field(4, kind) + b"".join(attribute(*pair) for pair in attributes.items()))


def tensor(name, array):
    kind = INT64 if array.dtype == numpy.int64 else FLOAT
    dimensions = b"".join(field(1, size) for size in array.shape)
    return field(5, dimensions + field(2, kind) + field(8, name) + field(9, array.tobytes()))


def value(place, name, kind, shape=None):
    dimensions = b"".join(field(1, field(1, size)) for size in shape or ())
    tensor_type = field(1, kind) + (field(2, dimensions) if shape else b"")
    return field(place, field(1, name) + field(2, field(1, tensor_type)))


random = numpy.random.default_rng(1)
weights, bias = (random.standard_normal(shape, numpy.float32) for shape in ((32, 48), (48,)))
graph = b"".join(
    [
        node("MatMul", "x W", "product"),
        node("Add", "product bias", "sum"),
        node("Erf", "sum", "curve"),
        node("Transpose", "curve", "turned", perm=[1, 0]),
        node("TopK", "turned three", "best places", axis=-1),
        node("CumSum", "turned one", "running"),
        node("ReduceSum", "running", "total", keepdims=0),
        field(2, "graph"),
        tensor("W", weights),
        tensor("bias", bias),
        tensor("three", numpy.array([3])),
        tensor("one", numpy.array(1)),
        value(11, "x", FLOAT, (16, 32)),
        *(value(12, name, FLOAT) for name in ("curve", "best", "running", "total")),
        value(12, "places", INT64),
    ]
)
model = field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 13))
feeds = {"x": random.standard_normal((16, 32), numpy.float32)}

settings = onnxruntime.SessionOptions()
settings.log_severity_level = 3
session = onnxruntime.InferenceSession(model, settings, providers=["ROCMExecutionProvider"])
assert session.get_providers()[0] == "ROCMExecutionProvider"
results = session.run(None, feeds)
if sys.argv[1:] == ["compare"]:
    reference = onnxruntime.InferenceSession(model, settings, providers=["CPUExecutionProvider"]).run(None, feeds)
    for one, other in zip(results, reference):
        assert one.shape == other.shape and numpy.allclose(one, other, 1e-5, 1e-4), (one, other)
    print("the same as on the processor")
