"""Readers of the published file layouts, for tests: nothing here knows how Rivulet writes them.

safetensors: 8 bytes of little-endian header length, a JSON header (dtype, shape, data_offsets), the data.
GGUF: magic, version, counts, key-value pairs, tensor table, the tensors, aligned.
"""
import json
import os
import struct

import numpy as np


def widen_bf16(raw):
    return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)


def read_numbers(raw, dtype):
    if dtype == "BF16":
        return widen_bf16(raw)
    return np.frombuffer(raw, {"F32": "<f4", "F16": "<f2"}[dtype]).astype(np.float32)


def read_safetensors(path):
    """{name: array}, metadata, {name: dtype}"""
    data = open(path, "rb").read()
    (n,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + n])
    metadata = header.pop("__metadata__", {})
    body = data[8 + n :]
    tensors, dtypes, covered = {}, {}, 0
    for name, t in sorted(header.items(), key=lambda kv: kv[1]["data_offsets"]):
        begin, end = t["data_offsets"]
        assert begin == covered, f"{name}: hole or overlap at {begin}"
        covered = end
        tensors[name] = read_numbers(body[begin:end], t["dtype"]).reshape(t["shape"])
        dtypes[name] = t["dtype"]
    assert covered == len(body), "data after the last tensor"
    return tensors, metadata, dtypes


def read_directory(path):
    """config, {name: array}, dtypes, of a Hugging Face directory"""
    config = json.load(open(os.path.join(path, "config.json")))
    index = os.path.join(path, "model.safetensors.index.json")
    if not os.path.exists(index):
        tensors, _, dtypes = read_safetensors(os.path.join(path, "model.safetensors"))
        return config, tensors, dtypes
    weight_map = json.load(open(index))["weight_map"]
    tensors, dtypes = {}, {}
    for name in sorted(set(weight_map.values())):
        part, metadata, part_dtypes = read_safetensors(os.path.join(path, name))
        assert metadata["format"] == "pt"
        for tensor in part:
            assert weight_map[tensor] == name and tensor not in tensors, tensor
        tensors.update(part)
        dtypes.update(part_dtypes)
    assert set(tensors) == set(weight_map)
    return config, tensors, dtypes


GGUF_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
GGUF_STRING, GGUF_ARRAY = 8, 9
GGML_TYPES = {0: ("F32", 4), 1: ("F16", 2), 30: ("BF16", 2)}


class GgufCursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def scalar(self, layout):
        (value,) = struct.unpack_from(layout, self.data, self.at)
        self.at += struct.calcsize(layout)
        return value

    def string(self):
        n = self.scalar("<Q")
        self.at += n
        return self.data[self.at - n : self.at].decode("utf-8")

    def value(self, kind):
        if kind == GGUF_STRING:
            return self.string()
        if kind == GGUF_ARRAY:
            inner = self.scalar("<I")
            return [self.value(inner) for _ in range(self.scalar("<Q"))]
        return self.scalar(GGUF_SCALARS[kind])


def read_gguf(path):
    """metadata, {name: (array, dtype)}; arrays with their rows first, as numpy has them"""
    data = open(path, "rb").read()
    c = GgufCursor(data)
    assert data[:4] == b"GGUF"
    c.at = 4
    version, n_tensors, n_pairs = c.scalar("<I"), c.scalar("<Q"), c.scalar("<Q")
    assert version == 3
    metadata = {}
    for _ in range(n_pairs):
        key = c.string()
        assert key not in metadata and key.isascii(), key
        metadata[key] = c.value(c.scalar("<I"))
    table = []
    for _ in range(n_tensors):
        name = c.string()
        dims = [c.scalar("<Q") for _ in range(c.scalar("<I"))]
        kind, offset = c.scalar("<I"), c.scalar("<Q")
        table.append((name, dims, kind, offset))
    alignment = metadata.get("general.alignment", 32)
    begin = (c.at + alignment - 1) // alignment * alignment
    assert not any(data[c.at : begin]), "padding before the tensors is not zero"
    tensors, end = {}, 0
    for name, dims, kind, offset in table:
        dtype, size = GGML_TYPES[kind]
        n = int(np.prod(dims)) * size
        assert len(name) <= 64 and name not in tensors and offset % alignment == 0 and offset >= end, name
        raw = data[begin + offset : begin + offset + n]
        assert len(raw) == n, f"{name}: cut short"
        end = offset + n
        tensors[name] = (read_numbers(raw, dtype).reshape(dims[::-1]), dtype)
    assert len(data) == begin + (end + alignment - 1) // alignment * alignment, "bytes after the last tensor"
    return metadata, tensors
