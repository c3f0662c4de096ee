// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the rows of ONNX Runtime's domain share, and what three of its attentions stand for: heads,
// masks in its forms, products.

#include "dims.hpp"
#include "sampling.hpp"

namespace tenon::ops::fused {

inline constexpr const char* kDomain = "com.microsoft";

struct Operands {
  Value q, k, v;                         // [b, s, heads*d], or [b, heads, s, d]
  Value past_key = {}, past_value = {};  // [b, heads, p, d], or none
  Value mask = {};                       // in a form of ONNX Runtime's, or none
  Value bias = {};                       // added to the scores, or none
};
struct Attended {
  Value y;           // [b, s, heads*d]
  Value key, value;  // [b, heads, t, d], with the past
};
// By the attributes of `node`, in operators of ONNX's first opsets that every runtime has: not its
// Attention, for which all sizes must be known, and whose mask some runtimes do not broadcast.
Attended attend(Builder& b, Node node, const Operands& x);

bool is_read(Node node, uint64_t output);
Status expect_unread(Node node, uint64_t output, std::string_view name);
Status expect_heads(Node node);
Status expect_absent(Node node, uint64_t input, std::string_view name);
// Attributes that must be 0, as what they ask for is not there.
Status expect_zero(Node node, std::initializer_list<const char*> attributes);

// The one result of a decomposition.
Result<std::vector<Value>> made(Builder& b, Value y);
// The size of an axis, as one int64.
Value dim_of(Builder& b, Value x, int64_t axis);
// 0 ... length-1; length: one int64.
Value positions(Builder& b, Value length, uint32_t dtype);

// A mask [rows, keys] that leaves each row a key.
Result<Value> random_mask(Sampler& random, int64_t rows, int64_t keys);

// The attributes of all three.
#define TENON_HEADS_ATTRIBUTES                                                     \
  "{\"name\": \"num_heads\", \"type\": \"int\"},"                                  \
  "{\"name\": \"scale\", \"type\": \"float\"},"                                    \
  "{\"name\": \"mask_filter_value\", \"type\": \"float\", \"default\": -10000.0}," \
  "{\"name\": \"unidirectional\", \"type\": \"int\", \"default\": 0}"

}  // namespace tenon::ops::fused
