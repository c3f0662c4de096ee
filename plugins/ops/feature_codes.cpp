// SPDX-License-Identifier: Apache-2.0
// What prepares features in ai.onnx.ml: Normalizer, Imputer, FeatureVectorizer, LabelEncoder
// and OneHotEncoder.
#include <algorithm>
#include <cmath>

#include "cells.hpp"
#include "cost.hpp"
#include "dims.hpp"
#include "forest.hpp"
#include "numbers.hpp"
#include "sampling.hpp"
#include "stated.hpp"

namespace tenon::ops {
namespace {

constexpr const char* kDomain = "ai.onnx.ml";

Status refuse_texts(Node node, std::initializer_list<const char*> attributes) {
  for (const char* name : attributes)
    if (!texts_of(node.attr(name)).empty())
      return unsupported(cat(name,
                             ": there are no tensors of texts: number the categories, as "
                             "OrdinalEncoder of scikit-learn does, before the model is exported"));
  return {};
}

// A constant of the type of what it stands beside.
Value numbers(Builder& b, const std::vector<double>& values, uint32_t dtype) {
  const std::vector<int64_t> dims{std::ssize(values)};
  return b.cast(b.take(b.edit().constant<double>(TN_F64, dims, values)), dtype);
}

// ---- Normalizer

Status normalizer_shape(EditView edit, Node node) {
  Type type = node.input(0).type();
  type.dtype = TN_F32;
  return set_output(edit, node, 0, type);
}
Result<std::vector<Value>> normalizer_decompose(EditView edit, Node node) {
  Builder b(edit);
  const std::string_view norm = node.attr_text("norm", "MAX");
  const char* how = norm == "MAX" ? "ReduceMax" : norm == "L1" ? "ReduceL1" : "ReduceL2";
  if (norm != "MAX" && norm != "L1" && norm != "L2")
    return invalid(cat("norm: expected MAX, L1 or L2, got '", norm, "'"));
  Value x = b.cast(node.input(0), TN_F32);
  Value size = b.op(how, {norm == "MAX" ? b.op("Abs", {x}) : x, b.ints({-1})});
  // Rows of zeros stay.
  Value is_zero = b.op("Equal", {size, b.number(0, TN_F32)});
  Value y = b.div(x, b.op("Where", {is_zero, b.number(1, TN_F32), size}));
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}
Result<Node> normalizer_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_F32, random.shape(1, 2)));
  constexpr std::string_view kNorms[] = {"MAX", "L1", "L2"};
  return edit.add({.type = "Normalizer",
                   .inputs = {x},
                   .attrs = {{"norm", kNorms[random.integer(0, 2)]}},
                   .domain = kDomain});
}

// ---- Imputer

Status imputer_shape(EditView edit, Node node) {
  return set_output(edit, node, 0, node.input(0).type());
}
Result<std::vector<Value>> imputer_decompose(EditView edit, Node node) {
  Builder b(edit);
  Value x = node.input(0);
  const bool is_real = is_float(x.dtype());
  const char* name = is_real ? "imputed_value_floats" : "imputed_value_int64s";
  const std::vector<double> values = floats_of(node.attr(name));
  Type type = b.ranked(x, "Imputer");
  TN_CHECK(b.status());
  const int64_t features = type.rank() > 0 ? type.dims.back() : 1, n = std::ssize(values);
  if (n == 0 || (n > 1 && features >= 0 && n != features))
    return invalid(
        cat(name, ": expected 1 number, or one for each of ", features, " features, got ", n));
  const double replaced = is_real ? node.attr_float("replaced_value_float", 0)
                                  : static_cast<double>(node.attr_int("replaced_value_int64", 0));
  Value is_missing =
      std::isnan(replaced) ? b.op("IsNaN", {x}) : b.op("Equal", {x, b.number(replaced, x.dtype())});
  Value y = b.op("Where", {is_missing, numbers(b, values, x.dtype()), x});
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}
Result<Node> imputer_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  const bool is_real = random.coin();
  TN_TRY(x, random.input(is_real ? TN_F32 : TN_I64, {random.integer(1, 4), 3}));
  const std::vector<double> floats{0.5, -1, 2};
  const std::vector<int64_t> ints{7};
  if (is_real)
    return edit.add(
        {.type = "Imputer",
         .inputs = {x},
         .attrs = {{"imputed_value_floats", any_floats(floats)}, {"replaced_value_float", 0.0}},
         .domain = kDomain});
  return edit.add({.type = "Imputer",
                   .inputs = {x},
                   .attrs = {{"imputed_value_int64s", ints}, {"replaced_value_int64", 1}},
                   .domain = kDomain});
}

// ---- FeatureVectorizer

Status vectorizer_shape(EditView edit, Node node) {
  const std::vector<int64_t> sizes = node.attr_ints("inputdimensions");
  if (sizes.size() != node.n_inputs())
    return invalid(cat("inputdimensions: expected one for each of ", node.n_inputs(),
                       " inputs, got ", sizes.size()));
  TN_CHECK(expect_moderate("inputdimensions", sizes, 0));
  int64_t all = 0;
  Dim rows;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Type type = node.input(i).type();
    if (type.ranked && type.rank() != 1 && type.rank() != 2)
      return invalid(cat("input ", i, ": expected 1 or 2 axes, got ", type.rank()));
    const int64_t own = !type.ranked ? -1 : type.rank() == 1 ? 1 : type.dims.back();
    if (own >= 0 && own != sizes[i])
      return invalid(cat("inputdimensions: expected ", own, " for input ", i, ", got ", sizes[i]));
    if (type.ranked && !rows.known()) rows = dims_of(type)[0];
    all += sizes[i];
  }
  return set_output(edit, node, 0, TN_F32, {rows, all});
}
Result<std::vector<Value>> vectorizer_decompose(EditView edit, Node node) {
  Builder b(edit);
  const std::vector<int64_t> sizes = node.attr_ints("inputdimensions");
  std::vector<Value> parts;
  for (size_t i = 0; i < sizes.size(); ++i)
    parts.push_back(b.reshape(b.cast(node.input(i), TN_F32), {-1, sizes[i]}));
  Value y = b.op("Concat", parts, {{"axis", 1}});
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}
Result<Node> vectorizer_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  const std::vector<int64_t> sizes{2, 1, 3};
  const int64_t rows = random.integer(1, 4);
  TN_TRY(x, random.input(TN_F32, {rows, 2}));
  TN_TRY(y, random.input(TN_F32, {rows}));
  TN_TRY(z, random.input(TN_I64, {rows, 3}));
  return edit.add({.type = "FeatureVectorizer",
                   .inputs = {x, y, z},
                   .attrs = {{"inputdimensions", sizes}},
                   .domain = kDomain});
}

// ---- LabelEncoder

struct Codes {
  std::vector<double> keys, values;
  double other = 0;  // of what is no key
  uint32_t dtype = TN_I64;
};
// Integers of more than 53 bits are no codes.
Result<Codes> codes_of(Node node) {
  TN_CHECK(refuse_texts(node, {"keys_strings", "values_strings"}));
  Codes out;
  for (const char* name : {"keys_int64s", "keys_floats"})
    if (out.keys.empty()) out.keys = floats_of(node.attr(name));
  if (out.keys.empty()) out.keys = forest::tensor_numbers(node, "keys_tensor");
  const std::vector<double> stored = forest::tensor_numbers(node, "values_tensor"),
                            other = forest::tensor_numbers(node, "default_tensor");
  const std::vector<double> ints = floats_of(node.attr("values_int64s")),
                            floats = floats_of(node.attr("values_floats"));
  out.values = !ints.empty() ? ints : !floats.empty() ? floats : stored;
  if (!ints.empty()) {
    out.other = static_cast<double>(node.attr_int("default_int64", -1));
  } else if (!floats.empty()) {
    out.dtype = TN_F32;
    out.other = node.attr_float("default_float", -0.0);
  } else if (!stored.empty()) {
    Tensor held =
        Tensor::share(static_cast<tn_tensor*>(const_cast<void*>(node.attr("values_tensor").v.p)));
    out.dtype = dtype_of(held.dl());
    out.other = !other.empty() ? other[0] : is_float(out.dtype) ? -0.0 : -1;
  }
  if (out.keys.empty() || out.keys.size() != out.values.size())
    return invalid(cat("keys and values: expected equal numbers of them, got ", out.keys.size(),
                       " and ", out.values.size()));
  return Result<Codes>(std::move(out));
}
Status label_shape(EditView edit, Node node) {
  TN_TRY(codes, codes_of(node));
  Type type = node.input(0).type();
  type.dtype = codes.dtype;
  return set_output(edit, node, 0, type);
}
// x beside all keys: [.., keys].
Value beside(Builder& b, Value x, const std::vector<double>& keys) {
  Value key = numbers(b, keys, x.dtype());
  Value column = b.op("Unsqueeze", {x, b.ints({-1})});
  Value same = b.op("Equal", {column, key});
  if (std::ranges::none_of(keys, [](double one) { return std::isnan(one); })) return same;
  return b.op("Or", {same, b.op("And", {b.op("IsNaN", {column}), b.op("IsNaN", {key})})});
}
Result<std::vector<Value>> label_decompose(EditView edit, Node node) {
  Builder b(edit);
  TN_TRY(codes, codes_of(node));
  Value found = b.cast(beside(b, node.input(0), codes.keys), TN_I32);
  Value at = b.op("ArgMax", {found}, {{"axis", -1}, {"keepdims", 0}});
  Value value = b.op("Gather", {numbers(b, codes.values, codes.dtype), at});
  Value is_key = b.cast(b.op("ReduceMax", {found, b.ints({-1})}, {{"keepdims", 0}}), TN_BOOL);
  Value y = b.op("Where", {is_key, value, b.number(codes.other, codes.dtype)});
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}
Result<Node> label_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(random.coin() ? TN_I64 : TN_F32, random.shape(1, 3)));
  const std::vector<int64_t> keys{0, 1, -2}, values{5, 6, 7};
  return edit.add(
      {.type = "LabelEncoder",
       .inputs = {x},
       .attrs = {{"keys_int64s", keys}, {"values_int64s", values}, {"default_int64", 9}},
       .domain = kDomain});
}

// ---- OneHotEncoder

Status one_hot_shape(EditView edit, Node node) {
  TN_CHECK(refuse_texts(node, {"cats_strings"}));
  const int64_t n = std::ssize(node.attr_ints("cats_int64s"));
  if (n == 0) return invalid("cats_int64s: expected categories, got none");
  Type x = node.input(0).type();
  if (!x.ranked) return set_output(edit, node, 0, unranked(TN_F32));
  Dims dims = dims_of(x);
  dims.emplace_back(n);
  return set_output(edit, node, 0, TN_F32, dims);
}
Status one_hot_ref(const Call& call) {
  const std::vector<int64_t> categories = call.node().attr_ints("cats_int64s");
  const bool takes_others = call.node().attr_int("zeros", 1) != 0;
  std::vector<int64_t> shape = to_vector(call.shape(0));
  const int64_t count = element_count(shape), n = std::ssize(categories);
  shape.push_back(n);
  TN_TRY(out, call.out(0, TN_F32, shape));
  std::fill_n(data_of<float>(out), count * n, 0.0f);
  for (int64_t i = 0; i < count; ++i) {
    const auto x = static_cast<int64_t>(load_number(call.data<char>(0), call.dtype(0), i));
    const auto found = std::ranges::find(categories, x);
    if (found != categories.end())
      data_of<float>(out)[i * n + (found - categories.begin())] = 1;
    else if (!takes_others)
      return {TN_OUT_OF_RANGE, cat("x: expected one of the categories (zeros is 0), got ", x)};
  }
  return {};
}
Result<std::vector<Value>> one_hot_decompose(EditView edit, Node node) {
  if (node.attr_int("zeros", 1) == 0)
    return unsupported("decomposed only where other categories are zeros");
  Builder b(edit);
  Value x = b.op("Unsqueeze", {b.cast(node.input(0), TN_I64), b.ints({-1})});
  Value y = b.cast(b.op("Equal", {x, b.ints(node.attr_ints("cats_int64s"))}), TN_F32);
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}
Result<Node> one_hot_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  TN_TRY(x, random.input(TN_I64, random.shape(1, 2)));
  const std::vector<int64_t> categories{0, 1, -2};
  return edit.add({.type = "OneHotEncoder",
                   .inputs = {x},
                   .attrs = {{"cats_int64s", categories}},
                   .domain = kDomain});
}

constexpr tn_op kNormalizer =
    op_row({.type = "Normalizer",
            .since = 1,
            .domain = kDomain,
            .attributes = R"([{"name": "norm", "type": "string", "default": "MAX"}])",
            .shape = shape<normalizer_shape, "x: number">,
            .decompose = decompose<normalizer_decompose>,
            .sample = sample<normalizer_sample>});
constexpr tn_op kImputer =
    op_row({.type = "Imputer",
            .since = 1,
            .domain = kDomain,
            .attributes = R"([{"name": "imputed_value_floats", "type": "floats"},
                              {"name": "imputed_value_int64s", "type": "ints"},
                              {"name": "replaced_value_float", "type": "float", "default": 0.0},
                              {"name": "replaced_value_int64", "type": "int", "default": 0}])",
            .shape = shape<imputer_shape, "x: number">,
            .decompose = decompose<imputer_decompose>,
            .sample = sample<imputer_sample>});
constexpr tn_op kVectorizer =
    op_row({.type = "FeatureVectorizer",
            .since = 1,
            .domain = kDomain,
            .attributes = R"([{"name": "inputdimensions", "type": "ints"}])",
            .shape = shape<vectorizer_shape, "x: number...">,
            .decompose = decompose<vectorizer_decompose>,
            .sample = sample<vectorizer_sample>});
constexpr tn_op kLabel =
    op_row({.type = "LabelEncoder",
            .since = 2,
            .domain = kDomain,
            .attributes = R"([{"name": "default_float", "type": "float", "default": -0.0},
                              {"name": "default_int64", "type": "int", "default": -1},
                              {"name": "default_string", "type": "string", "default": "_Unused"},
                              {"name": "default_tensor", "type": "tensor"},
                              {"name": "keys_floats", "type": "floats"},
                              {"name": "keys_int64s", "type": "ints"},
                              {"name": "keys_strings", "type": "strings"},
                              {"name": "keys_tensor", "type": "tensor"},
                              {"name": "values_floats", "type": "floats"},
                              {"name": "values_int64s", "type": "ints"},
                              {"name": "values_strings", "type": "strings"},
                              {"name": "values_tensor", "type": "tensor"}])",
            .shape = shape<label_shape, "x: number">,
            .decompose = decompose<label_decompose>,
            .sample = sample<label_sample>});
constexpr tn_op kOneHot = op_row({.type = "OneHotEncoder",
                                  .since = 1,
                                  .domain = kDomain,
                                  .attributes = R"([{"name": "cats_int64s", "type": "ints"},
                              {"name": "cats_strings", "type": "strings"},
                              {"name": "zeros", "type": "int", "default": 1}])",
                                  .shape = shape<one_hot_shape, "x: number">,
                                  .decompose = decompose<one_hot_decompose>,
                                  .cost = cost<move_cost>,
                                  .ref = ref<one_hot_ref>,
                                  .sample = sample<one_hot_sample>});

}  // namespace

TENON_OPS(feature_codes, &kNormalizer, &kImputer, &kVectorizer, &kLabel, &kOneHot)

}  // namespace tenon::ops
