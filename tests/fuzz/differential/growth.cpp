// SPDX-License-Identifier: Apache-2.0
#include "growth.hpp"

#include <algorithm>

#include "tenon/role/op.h"

#include "network_builder.hpp"
#include "stored.hpp"

namespace tenon::fuzz {
namespace {

constexpr uint64_t kSamples = 200;       // seeds of a row
constexpr size_t kTries = 6;             // samples that are looked at for one that fits
constexpr int64_t kMostElements = 4096;  // of one value

bool is_number(uint32_t dtype) {
  uint32_t code = TN_DTYPE_CODE(dtype);
  bool is_plain = is_float(dtype) || code == kDLInt || code == kDLUInt || code == kDLBool;
  return is_plain && TN_DTYPE_BITS(dtype) >= 8;
}
bool can_be_read(const Type& type) {
  return type.kind == TN_KIND_TENSOR && type.is_static() && is_number(type.dtype) &&
         type.elements() > 0 && type.elements() <= kMostElements;
}

// The value in 8 bits and back, in [-2, 2]; what is not float32 stays as it is.
Result<Value> quantized(EditView edit, Value value, Random& random) {
  if (value.dtype() != TN_F32) return value;
  TN_TRY(scale, edit.constant<float>(TN_F32, {}, {2.0f / 127}));
  uint32_t dtype = value.is_constant() || random.one_in(2) ? TN_I8 : TN_U8;
  TN_TRY(zero, dtype == TN_I8 ? edit.constant<int8_t>(TN_I8, {}, {0})
                              : edit.constant<uint8_t>(TN_U8, {}, {128}));
  TN_TRY(integers, edit.op("QuantizeLinear", {value, scale, zero}));
  return edit.op("DequantizeLinear", {integers, scale, zero});
}

// One row's sample in a graph of its own, its results as outputs.
struct Sample {
  OwnedGraph graph;
  bool computes = false;  // has int8 forms
};

Result<Sample> sample_of(tn_ctx* ctx, const tn_op* row, uint64_t seed) {
  tn_graph* raw = nullptr;
  TN_CHECK(services.graph->create(ctx, &raw));
  Sample out{OwnedGraph::take(raw), view(row->quant).starts_with("compute")};
  TN_TRY(edit, Edit::begin(raw));
  tn_node_id id = 0;
  TN_CHECK(row->sample(row->self, edit.raw, seed, &id));
  std::vector<Value> outputs = edit.node(id).outputs();
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) TN_CHECK(edit.output("y" + std::to_string(i), outputs[i]));
  TN_CHECK(edit.commit());
  return Result<Sample>(std::move(out));
}

class RowGraph {
 public:
  RowGraph(const Recipe& recipe, EditView edit, Random& random)
      : recipe_(recipe), edit_(edit), random_(random) {}

  Status add(const tn_op* row) {
    Result<Sample> chosen = sample_of(recipe_.ctx, row, 1 + random_.below(kSamples));
    for (size_t i = 0; i < kTries && !(chosen.ok() && fits(*chosen)); ++i)
      chosen = sample_of(recipe_.ctx, row, 1 + random_.below(kSamples));
    if (!chosen.ok()) return std::move(chosen).status();
    std::vector<std::pair<tn_value_id, tn_value_id>> map;
    for (Value input : chosen->graph.view().inputs()) {
      TN_TRY(ours, source(input.type(), chosen->computes));
      map.emplace_back(input.id, ours.id);
    }
    for (Value output : chosen->graph.view().outputs())
      map.emplace_back(output.id, 0);
    TN_CHECK(
        services.edit->splice(edit_.raw, chosen->graph.get(), str(""), &map[0].first, map.size()));
    for (size_t i = chosen->graph.view().inputs().size(); i < map.size(); ++i) {
      Value value = edit_.value(map[i].second);
      made_.push_back(value);
      if (can_be_read(value.type())) pool_.push_back(value);
    }
    return {};
  }

  Status finish() {
    size_t n = 0;
    for (Value value : made_)
      if (value.consumer_count() == 0 || random_.one_in(6))
        TN_CHECK(edit_.output("out" + std::to_string(n++), value));
    return {};
  }

 private:
  std::vector<Value> alike(const Type& type) const {
    std::vector<Value> out;
    std::copy_if(pool_.begin(), pool_.end(), std::back_inserter(out), [&](Value value) {
      return value.dtype() == type.dtype && value.type().dims == type.dims;
    });
    return out;
  }
  bool fits(const Sample& sample) const {
    std::vector<Value> inputs = sample.graph.view().inputs();
    return std::any_of(inputs.begin(), inputs.end(),
                       [&](Value input) { return !alike(input.type()).empty(); });
  }

  // Something of this type for a sample to read.
  Result<Value> source(const Type& type, bool is_computed) {
    bool can_be_made = can_be_read(type) && !pool_.empty();
    if (!can_be_made || random_.one_in(5)) return fresh(type, is_computed);
    std::vector<Value> same = alike(type);
    Value from = !same.empty() && !random_.one_in(4) ? random_.one_of(same) : random_.one_of(pool_);
    TN_TRY(tame,
           random_.one_in(2) || from.dtype() != type.dtype ? tamed(from) : Result<Value>(from));
    TN_TRY(cast, as_type(tame, type.dtype));
    TN_TRY(shaped, as_shape(cast, type));
    return recipe_.quantize && is_computed ? quantized(edit_, shaped, random_)
                                           : Result<Value>(shaped);
  }

  Result<Value> fresh(const Type& type, bool is_computed) {
    if (type.kind != TN_KIND_TENSOR || !type.is_static() || !random_.one_in(3))
      return edit_.input("x" + std::to_string(n_inputs_++), type);
    TN_TRY(tensor, filled(recipe_.ctx, type, random_));
    TN_TRY(constant, edit_.constant(tensor));
    if (recipe_.quantize && is_computed) return quantized(edit_, constant, random_);
    if (type.dtype != TN_F32 || type.elements() == 0 || !random_.one_in(3)) return constant;
    constexpr uint32_t kTypes[] = {TN_I8, TN_U8, TN_I32};
    TN_TRY(kept, stored(edit_, constant, kTypes[random_.below(3)], random_));
    return kept.value;
  }

  // Numbers of [-2, 2] instead of any, none of them NaN: what samples allow.
  Result<Value> tamed(Value value) {
    uint32_t dtype = value.dtype();
    if (dtype == TN_BOOL || !is_float(dtype)) return value;
    TN_TRY(wide, as_type(value, TN_F32));
    TN_TRY(small, edit_.op("Tanh", {wide}));
    TN_TRY(is_nan, edit_.op("IsNaN", {small}));
    TN_TRY(half, edit_.constant<float>(TN_F32, {}, {0.5f}));
    TN_TRY(number, edit_.op("Where", {is_nan, half, small}));
    TN_TRY(two, edit_.constant<float>(TN_F32, {}, {2.0f}));
    return edit_.op("Mul", {number, two});
  }

  Result<Value> as_type(Value value, uint32_t dtype) {
    if (value.dtype() == dtype) return value;
    bool is_whole = !is_float(dtype) && dtype != TN_BOOL;
    if (is_whole && value.dtype() != TN_BOOL) {  // 0, 1 or 2, whatever it was
      TN_TRY(wide, edit_.op("Cast", {value}, {{"to", any_dtype(TN_F32)}}));
      TN_TRY(size, edit_.op("Abs", {wide}));
      TN_TRY(most, edit_.constant<float>(TN_F32, {}, {2.0f}));
      TN_TRY(small, edit_.op("Min", {size, most}));
      return edit_.op("Cast", {small}, {{"to", any_dtype(dtype)}});
    }
    return edit_.op("Cast", {value}, {{"to", any_dtype(dtype)}});
  }

  Result<Value> as_shape(Value value, const Type& type) {
    if (value.type().dims == type.dims) return value;
    int64_t have = value.type().elements(), want = type.elements();
    Value flat = value;
    if (have != want) {
      TN_TRY(all, edit_.ints({-1}));
      TN_TRY(row, edit_.op("Reshape", {value, all}));
      flat = row;
    }
    if (have < want) {
      TN_TRY(times, edit_.ints({(want + have - 1) / have}));
      TN_TRY(tiled, edit_.op("Tile", {flat, times}));
      flat = tiled;
    }
    if (flat.type().elements() != want) {
      TN_TRY(from, edit_.ints({0}));
      TN_TRY(to, edit_.ints({want}));
      TN_TRY(part, edit_.op("Slice", {flat, from, to}));
      flat = part;
    }
    TN_TRY(dims, edit_.ints(type.dims));
    return edit_.op("Reshape", {flat, dims});
  }

  const Recipe& recipe_;
  EditView edit_;
  Random& random_;
  std::vector<Value> pool_, made_;
  size_t n_inputs_ = 0;
};

}  // namespace

std::vector<const tn_op*> some_of(const std::vector<const tn_op*>& rows, Random& random) {
  if (random.one_in(2)) return rows;
  std::vector<const tn_op*> out(2 + random.below(6));
  std::generate(out.begin(), out.end(), [&] { return random.one_of(rows); });
  return out;
}

Result<OwnedGraph> grow(const Recipe& recipe,
                        size_t n_nodes,
                        Random& random,
                        std::map<std::string, uint64_t>& used) {
  tn_graph* raw = nullptr;
  TN_CHECK(services.graph->create(recipe.ctx, &raw));
  OwnedGraph graph = OwnedGraph::take(raw);
  TN_TRY(edit, Edit::begin(raw));
  RowGraph rows(recipe, edit, random);
  while (edit.graph().n_nodes() < n_nodes) {
    const tn_op* row = random.one_of(recipe.rows);
    TN_CHECK(rows.add(row));
    ++used[std::string(view(row->type))];
  }
  TN_CHECK(rows.finish());
  TN_CHECK(edit.commit());
  return Result<OwnedGraph>(std::move(graph));
}

Result<std::vector<Tensor>> numbers_for(tn_ctx* ctx, Graph graph, Random& random) {
  std::vector<Tensor> out;
  for (Value input : graph.inputs()) {
    const bool is_weight = input.name().starts_with(kWeight);
    TN_TRY(tensor, is_weight ? filled_weight(ctx, input.type(), random)
                             : filled(ctx, input.type(), random));
    out.push_back(tensor);
  }
  return Result<std::vector<Tensor>>(std::move(out));
}

}  // namespace tenon::fuzz
