// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small models with their roundings, and "quantizer.integers" beside them on `reference`.
#include <functional>

#include "plugins/quantizer/text_models.hpp"

namespace tenon::test {

class IntegersBesideQdq : public TextModels {
 protected:
  using Body = std::function<Value(EditView, Value)>;

  template <class T>
  Value known(EditView edit, uint32_t dtype, std::vector<int64_t> dims, std::vector<T> numbers) {
    auto made = edit.constant<T>(dtype, dims, numbers);
    EXPECT_TRUE(made.ok());
    return made.ok() ? *made : Value{};
  }
  Value floats(EditView edit, std::vector<int64_t> dims, Floats numbers) {
    return known<float>(edit, TN_F32, std::move(dims), std::move(numbers));
  }
  Value ints(EditView edit, std::vector<int64_t> numbers) {
    const auto n = static_cast<int64_t>(numbers.size());
    return known<int64_t>(edit, TN_I64, {n}, std::move(numbers));
  }
  Value stored(EditView edit, Value x, float scale, uint8_t zero = 0, uint32_t dtype = TN_I8) {
    Value step = floats(edit, {}, {scale}), point = known<uint8_t>(edit, dtype, {}, {zero});
    Value q = node(edit, "QuantizeLinear", {x, step, point}, cat("stored", ++made_));
    return node(edit, "DequantizeLinear", {q, step, point}, cat("read", ++made_));
  }
  // int8 weights of [in, out] behind a DequantizeLinear.
  Value weights(EditView edit, int64_t in, const Floats& scale, uint64_t seed) {
    const auto out = static_cast<int64_t>(scale.size());
    std::vector<int8_t> codes;
    for (float x : random(static_cast<size_t>(in * out), seed, 40))
      codes.push_back(static_cast<int8_t>(std::clamp(x, -127.0F, 127.0F)));
    return node(edit, "DequantizeLinear",
                {known<int8_t>(edit, TN_I8, {in, out}, codes), floats(edit, {out}, scale)},
                cat("weight", ++made_), {{"axis", 1}});
  }
  Value op(EditView edit, std::string_view type, std::vector<Value> in, std::vector<Attr> a = {}) {
    return node(edit, type, std::move(in), cat("n", ++made_), std::move(a));
  }
  void make(const std::vector<int64_t>& shape, const Body& body) {
    tn_graph* raw = nullptr;
    ASSERT_EQ(text_of(Status(services.graph->create(ctx_, &raw))), "");
    model_ = OwnedGraph::take(raw);
    build([&](EditView edit) {
      ASSERT_EQ(text_of(edit.output("y", body(edit, input(edit, "x", shape)))), "");
    });
  }
  // The largest distance to the model that it was made of, in steps; negative: refused.
  double apart(const std::vector<int64_t>& shape, const Floats& x, float step, const Body& body) {
    make(shape, body);
    const Floats stated = run(model_, shape, x);
    refused_ = apply("quantizer.integers", json::object());
    if (!refused_.empty()) return -1;
    const Floats got = run(result_, shape, x);
    EXPECT_EQ(got.size(), stated.size());
    EXPECT_FALSE(got.empty());
    double most = got.size() == stated.size() ? 0 : 1e9;
    for (size_t i = 0; i < std::min(got.size(), stated.size()); ++i)
      most = std::max(most, std::abs(double{got[i]} - double{stated[i]}) / double{step});
    return most;
  }

  static constexpr double kOneStep = 1.001;
  int made_ = 0;
  std::string refused_;
};

}  // namespace tenon::test
