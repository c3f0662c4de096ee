// SPDX-License-Identifier: Apache-2.0
#pragma once
// Primitives that are what their description says, in memory that the plan gives them.
//
// oneDNN keeps primitives in a cache, by a key in which axes of one element have no strides. Its
// choice of a kernel looks at those strides, so that two equal keys may stand for two kernels, with
// packed weights and scratchpads of their own: the cache then hands out the other one, which reads
// weights in a layout that nobody has given it (oneDNN 3.2).

#include <mutex>

#include <oneapi/dnnl/dnnl.hpp>

namespace tenon::onednn {

// Of a new description. Its primitive works in memory that is given to it, or would allocate its
// own for as long as it lives.
inline dnnl::primitive_attr new_attr() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

// Whether it runs the kernel of the description, on memory of the same layouts.
bool is_made_from(const dnnl::primitive& primitive, const dnnl::primitive_desc_base& description);

// The CPU. The first one limits oneDNN's cache of primitives, which would keep a thousand of them:
// where lengths grow, those of lengths that do not come back, 60 MB for a decoder of eight layers.
// The variable ONEDNN_PRIMITIVE_CACHE_CAPACITY has precedence.
dnnl::engine new_engine();

// While one lives, oneDNN's cache hands nothing out. It loses what it had.
class WithoutCache {
 public:
  WithoutCache();
  WithoutCache(const WithoutCache&) = delete;
  ~WithoutCache();

 private:
  std::lock_guard<std::mutex> lock_;  // one at a time knows what the capacity was
  int capacity_;
};

template <class Primitive>
Primitive made_from(const typename Primitive::primitive_desc& description) {
  Primitive primitive(description);
  if (is_made_from(primitive, description)) return primitive;
  WithoutCache without_cache;
  return Primitive(description);
}

}  // namespace tenon::onednn
