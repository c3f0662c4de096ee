// SPDX-License-Identifier: Apache-2.0
#pragma once
// A collective is a class with
//   static Result<T> create(tn_ctx*, const Options&);
//   uint32_t rank() const;  uint32_t ranks() const;
//   Status all_reduce(std::string_view tag, uint32_t how, const DLTensor& in, const DLTensor& out,
//                     const Cancel&);
//   Status broadcast(std::string_view tag, uint32_t root, const DLTensor& buffer, const Cancel&);
//   Status all_gather(std::string_view tag, const DLTensor& in, const DLTensor& out, const
//   Cancel&);

#include "tenon/role/collective.h"

#include "tenon/sdk/plugin.hpp"
#include "tenon/sdk/run.hpp"

namespace tenon {

template <class T>
struct CollectiveRole {
  using Object = T;
  static constexpr std::string_view kId = "tenon.collective/1";
  static const tn_collective* table() {
    static const tn_collective table{sizeof table, 1, rank, all_reduce, broadcast, all_gather};
    return &table;
  }
  static tn_status* rank(void* self, uint32_t* out_rank, uint32_t* out_ranks) {
    *out_rank = object_of<T>(self).rank();
    *out_ranks = object_of<T>(self).ranks();
    return nullptr;
  }
  static tn_status* all_reduce(void* self,
                               tn_str tag,
                               uint32_t how,
                               const DLTensor* in,
                               DLTensor* out,
                               const tn_cancel* cancel) {
    return guard(
        [&] { return object_of<T>(self).all_reduce(view(tag), how, *in, *out, Cancel(cancel)); });
  }
  static tn_status* broadcast(
      void* self, tn_str tag, uint32_t root, DLTensor* buffer, const tn_cancel* cancel) {
    return guard(
        [&] { return object_of<T>(self).broadcast(view(tag), root, *buffer, Cancel(cancel)); });
  }
  static tn_status* all_gather(
      void* self, tn_str tag, const DLTensor* in, DLTensor* out, const tn_cancel* cancel) {
    return guard(
        [&] { return object_of<T>(self).all_gather(view(tag), *in, *out, Cancel(cancel)); });
  }
};

}  // namespace tenon

#define TENON_COLLECTIVE(word, Class, id, summary, schema) \
  TENON_COMPONENT_(word, tenon::CollectiveRole<Class>, "tenon.collective/1", id, summary, schema, 0)
