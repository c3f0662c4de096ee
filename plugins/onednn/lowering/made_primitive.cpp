// SPDX-License-Identifier: Apache-2.0
#include "made_primitive.hpp"

#include <cstdlib>
#include <string_view>

namespace tenon::onednn {
namespace {

std::mutex cache_mutex;

const_dnnl_primitive_desc_t description_of(const dnnl::primitive& primitive) {
  const_dnnl_primitive_desc_t out = nullptr;
  dnnl::error::wrap_c_api(dnnl_primitive_get_primitive_desc(primitive.get(), &out),
                          "cannot ask a primitive what it was made from");
  return out;
}

std::string_view kernel_of(const_dnnl_primitive_desc_t description) {
  const char* name = nullptr;
  dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, &name);
  return name ? name : "";
}

bool have_same_layouts(const_dnnl_primitive_desc_t a, const_dnnl_primitive_desc_t b) {
  constexpr dnnl_query_t kMemory[] = {dnnl_query_src_md,       dnnl_query_diff_src_md,
                                      dnnl_query_weights_md,   dnnl_query_diff_weights_md,
                                      dnnl_query_dst_md,       dnnl_query_diff_dst_md,
                                      dnnl_query_workspace_md, dnnl_query_scratchpad_md};
  constexpr int kMost = 3;  // weights of a layer, of its state, its bias
  for (dnnl_query_t what : kMemory)
    for (int i = 0; i < kMost; ++i) {
      const_dnnl_memory_desc_t x = dnnl_primitive_desc_query_md(a, what, i);
      const_dnnl_memory_desc_t y = dnnl_primitive_desc_query_md(b, what, i);
      const bool is_same = x && y ? dnnl_memory_desc_equal(x, y) != 0 : x == y;
      if (!is_same) return false;
    }
  return true;
}

}  // namespace

bool is_made_from(const dnnl::primitive& primitive, const dnnl::primitive_desc_base& description) {
  const_dnnl_primitive_desc_t made = description_of(primitive);
  const_dnnl_primitive_desc_t asked = description.get();
  return kernel_of(made) == kernel_of(asked) && have_same_layouts(made, asked);
}

dnnl::engine new_engine() {
  constexpr int kMostPrimitives = 256;
  static std::once_flag once;
  std::call_once(once, [] {
    const std::lock_guard<std::mutex> lock(cache_mutex);
    if (std::getenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY") == nullptr)
      dnnl::set_primitive_cache_capacity(kMostPrimitives);
  });
  return {dnnl::engine::kind::cpu, 0};
}

WithoutCache::WithoutCache() : lock_(cache_mutex), capacity_(dnnl::get_primitive_cache_capacity()) {
  dnnl::set_primitive_cache_capacity(0);
}
WithoutCache::~WithoutCache() {
  dnnl::set_primitive_cache_capacity(capacity_);
}

}  // namespace tenon::onednn
