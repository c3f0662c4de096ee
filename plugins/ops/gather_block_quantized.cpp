// SPDX-License-Identifier: Apache-2.0
// GatherBlockQuantized of ONNX Runtime's domain: rows of an embedding that is stored in blocks of
// 2, 4 or 8 bits, which quantizers of language models write.
#include "dims.hpp"
#include "fused.hpp"

namespace tenon::ops {
namespace {

enum Input : uint64_t { kData, kIndices, kScales, kZeros };

struct Form {
  int64_t rank, gather, quantize, block, bits;
  int64_t in_byte;  // values in an element of the data, the lowest bits first
};
Result<Form> form_of(Node node) {
  Type data = node.input(kData).type();
  TN_TRY(gather, axis_in(node.attr_int("gather_axis"), data.rank(), "gather_axis"));
  TN_TRY(quantize, axis_in(node.attr_int("quantize_axis", 1), data.rank(), "quantize_axis"));
  Form form{.rank = static_cast<int64_t>(data.rank()),
            .gather = gather,
            .quantize = quantize,
            .block = node.attr_int("block_size", 128),
            .bits = node.attr_int("bits", 4),
            .in_byte = 1};
  if (form.block < 16 || (form.block & (form.block - 1)) != 0)
    return invalid(cat("block_size: expected a power of two from 16, got ", form.block));
  if (form.gather == form.quantize)
    return invalid("quantize_axis: expected another axis than gather_axis");
  if (data.dtype != TN_U8) return form;
  if (form.bits != 2 && form.bits != 4 && form.bits != 8)
    return unsupported(cat("bits: expected 2, 4 or 8, got ", form.bits));
  form.in_byte = 8 / form.bits;
  if (form.gather != 0 || (form.in_byte > 1 && form.quantize != form.rank - 1))
    return invalid(
        "8-bit data: expected gather_axis 0, and quantize_axis last where bits is below 8");
  return form;
}

// Scales and zero points: as many rows as the data have, save along the axis of the blocks.
Status expect_rows(Node node, uint64_t input, const char* name, const Form& form) {
  Type data = node.input(kData).type(), type = node.input(input).type();
  if (!node.input(input) || !type.ranked) return {};
  bool fits = type.rank() == data.rank();
  for (size_t i = 0; fits && i < data.rank(); ++i)
    fits = static_cast<int64_t>(i) == form.quantize || data.dims[i] < 0 || type.dims[i] < 0 ||
           data.dims[i] == type.dims[i];
  if (fits) return {};
  return invalid(
      cat(name, ": expected the rows of data, ", type_text(data), ", got ", type_text(type)));
}

Status gather_shape(EditView edit, Node node) {
  Type data = node.input(kData).type(), indices = node.input(kIndices).type();
  const uint32_t dtype = node.input(kScales).dtype();
  if (!data.ranked || !indices.ranked) return set_output(edit, node, 0, unranked(dtype));
  TN_TRY(form, form_of(node));
  TN_CHECK(expect_rows(node, kScales, "scales", form));
  TN_CHECK(expect_rows(node, kZeros, "zero_points", form));
  Dims rows = dims_of(data), out = dims_of(indices);
  rows.back() = rows.back() * Dim(form.in_byte);
  const auto at = static_cast<std::ptrdiff_t>(form.gather);
  out.insert(out.begin(), rows.begin(), rows.begin() + at);
  out.insert(out.end(), rows.begin() + at + 1, rows.end());
  return set_output(edit, node, 0, dtype, out);
}

// [.., n] bytes of several values each as [.., n * in_byte] of one.
Value unpacked(Builder& b, Value bytes, const Form& form) {
  const auto byte = [&](int64_t number) {
    return b.cast(b.number(static_cast<double>(number), TN_I64), TN_U8);
  };
  Value last = b.ints({-1}), mask = byte((1 << form.bits) - 1);
  std::vector<Value> values;
  for (int64_t i = 0; i < form.in_byte; ++i) {
    Value low = b.op("BitShift", {bytes, byte(i * form.bits)}, {{"direction", "RIGHT"}});
    values.push_back(b.op("Unsqueeze", {b.op("BitwiseAnd", {low, mask}), last}));
  }
  std::vector<int64_t> dims(b.ranked(bytes, "GatherBlockQuantized").rank(), 0);
  if (!dims.empty()) dims.back() = -1;
  return b.op("Reshape", {b.op("Concat", values, {{"axis", -1}}), b.ints(dims)});
}
Result<std::vector<Value>> gather_decompose(EditView edit, Node node) {
  Builder b(edit);
  Type data = b.ranked(node.input(kData), node.type());
  Type indices = b.ranked(node.input(kIndices), node.type());
  Type scales = b.ranked(node.input(kScales), node.type());
  TN_CHECK(b.status());
  TN_TRY(form, form_of(node));
  auto rows = [&](uint64_t input) {
    return b.op("Gather", {node.input(input), node.input(kIndices)}, {{"axis", form.gather}});
  };
  Value values = rows(kData), scale = rows(kScales);
  Value zero = node.input(kZeros) ? rows(kZeros) : Value();
  if (form.in_byte > 1) {
    values = unpacked(b, values, form);
    if (zero) {
      // The last byte of zero points may have bits that stand for none.
      if (scales.dims.back() < 0) return unsupported("scales: expected a known number of blocks");
      zero = b.op("Slice", {unpacked(b, zero, form), b.ints({0}), b.ints({scales.dims.back()}),
                            b.ints({-1})});
    }
  }
  if (!zero && data.dtype == TN_U8)
    zero = b.expand_like(b.cast(b.number(static_cast<double>(1 << (form.bits - 1)), TN_I64), TN_U8),
                         scale);
  std::vector<Value> inputs{values, scale};
  if (zero) inputs.push_back(zero);
  const int64_t moved = form.quantize > form.gather ? static_cast<int64_t>(indices.rank()) - 1 : 0;
  Value y = b.op("DequantizeLinear", inputs,
                 {{"axis", form.quantize + moved}, {"block_size", form.block}});
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

Result<Node> gather_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  const int64_t rows = random.integer(2, 4), blocks = random.integer(1, 3);
  TN_TRY(data, random.input(TN_U8, {rows, blocks * 8}));
  TN_TRY(ids, edit.constant<int64_t>(TN_I64, {2}, std::vector<int64_t>{1, 0}));
  TN_TRY(scales, random.input(TN_F32, {rows, blocks}));
  return edit.add({.type = "GatherBlockQuantized",
                   .inputs = {data, ids, scales},
                   .attrs = {{"block_size", 16}},
                   .domain = fused::kDomain});
}

constexpr tn_op kGather =
    op_row({.type = "GatherBlockQuantized",
            .domain = fused::kDomain,
            .attributes = R"([{"name": "bits", "type": "int", "default": 4},
                       {"name": "block_size", "type": "int", "default": 128},
                       {"name": "gather_axis", "type": "int", "default": 0},
                       {"name": "quantize_axis", "type": "int", "default": 1}])",
            .shape = shape<gather_shape, "data: T, indices: index, scales: float, zero_points: T?">,
            .decompose = decompose<gather_decompose>,
            .sample = sample<gather_sample>});

}  // namespace

TENON_OPS(gather_block_quantized, &kGather)

}  // namespace tenon::ops
