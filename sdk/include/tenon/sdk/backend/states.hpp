// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the plans of one model keep from run to run, by the name of each state's input, and the
// functions of a backend's table for it.

#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "tenon/sdk/backend/graph.hpp"
#include "tenon/sdk/role/backend.hpp"

namespace tenon::backend {

// Anything by name. One state is used by one call at a time, and stays where it is once it is
// there; the lock is the table's.
template <class Kept>
class StateTable {
 public:
  Kept* find(std::string_view name) {
    std::lock_guard lock(mutex_);
    auto found = kept_.find(name);
    return found == kept_.end() ? nullptr : &found->second;
  }
  // The state of this name, made (a Result) where there is none.
  template <class Make>
  Result<Kept*> get(std::string_view name, Make&& make) {
    if (Kept* found = find(name)) return found;
    TN_TRY(made, make());
    std::lock_guard lock(mutex_);
    return &kept_.emplace(std::string(name), std::move(made)).first->second;
  }
  void set(std::string_view name, Kept value) {
    std::lock_guard lock(mutex_);
    kept_.insert_or_assign(std::string(name), std::move(value));
  }
  static Status unknown(std::string_view name) { return {TN_NOT_FOUND, cat("no state ", name)}; }

 private:
  std::mutex mutex_;
  std::map<std::string, Kept, std::less<>> kept_;
};

// Dense memory to dense memory, in another order of axes: for stores whose plans lay states out.
inline void copy_strided(const DLTensor& like,
                         const void* from,
                         const Dims& from_strides,
                         void* to,
                         const Dims& to_strides) {
  auto unit = static_cast<int64_t>(bytes_of(dtype_of(like), 1));
  Dims at(static_cast<size_t>(like.ndim), 0);
  int64_t source = 0, target = 0;
  for (int64_t i = 0, n = element_count(like); i < n; ++i) {
    std::memcpy(static_cast<char*>(to) + target * unit,
                static_cast<const char*>(from) + source * unit, static_cast<size_t>(unit));
    for (size_t axis = at.size(); axis-- > 0;) {
      source += from_strides[axis];
      target += to_strides[axis];
      if (++at[axis] < like.shape[axis]) break;
      source -= at[axis] * from_strides[axis];
      target -= at[axis] * to_strides[axis];
      at[axis] = 0;
    }
  }
}

// In CPU memory: one tensor for each state, in the layout that its last plan wanted. Executables
// write new values in the place of the old ones; whoever sets or reads a state from outside sees it
// row-major.
class StateStore {
 public:
  using Copy = decltype(&copy_strided);
  explicit StateStore(tn_ctx* ctx, Copy copy = copy_strided) : ctx_(ctx), copy_(copy) {}

  // Where the state lies, dense and with these strides; zeros when it is new. One that lies
  // otherwise is laid out again, so what an earlier call answered for this name may be gone.
  Result<void*> place(const std::string& name, const DLTensor& like, const Dims& strides) {
    TN_TRY(kept, states_.get(name, [&]() -> Result<Kept> {
      TN_TRY(made, Tensor::zeros(ctx_, dtype_of(like), shape_of(like)));
      return Kept{std::move(made), strides};
    }));
    DLTensor before = kept->tensor.dl();
    if (!std::ranges::equal(shape_of(before), shape_of(like)))
      return invalid(cat("state ", name, ": its shape is not the compiled one"));
    if (!lies_as(like, kept->strides, strides)) {
      TN_TRY(made, Tensor::zeros(ctx_, dtype_of(before), shape_of(before)));
      move(before, data_of<const void>(before), kept->strides, made.data<char>(), strides);
      *kept = {std::move(made), strides};
    }
    return static_cast<void*>(kept->tensor.data<char>());
  }
  Status set(const std::string& name, const DLTensor& value) {
    TN_TRY(made, Tensor::copy_of(ctx_, value));
    states_.set(name, Kept{std::move(made), strides_of(value)});
    return {};
  }
  // TN_NOT_FOUND when it was neither set nor run with.
  Status get(const std::string& name, DLTensor* out) {
    const Kept* kept = states_.find(name);
    if (!kept) return StateTable<Kept>::unknown(name);
    DLTensor inside = kept->tensor.dl();
    move(inside, data_of<const void>(inside), kept->strides, data_of<char>(*out),
         strides_of(inside));
    return {};
  }

 private:
  struct Kept {
    Tensor tensor;  // its header says row-major; `strides` are the truth
    Dims strides;
  };
  static Dims strides_of(const DLTensor& tensor) {
    return row_major_strides({tensor.shape, tensor.shape + tensor.ndim});
  }
  // For each run of each state: it allocates nothing.
  static bool lies_as(const DLTensor& tensor, const Dims& strides, const Dims& wanted) {
    for (size_t i = 0; i < strides.size(); ++i)
      if (tensor.shape[i] != 1 && strides[i] != wanted[i]) return false;
    return true;
  }
  void move(const DLTensor& like, const void* from, const Dims& has, void* to, const Dims& wants) {
    if (lies_as(like, has, wants)) {
      std::memcpy(to, from, bytes_of(dtype_of(like), element_count(like)));
    } else {
      copy_(like, from, has, to, wants);
    }
  }

  tn_ctx* ctx_;
  Copy copy_;
  StateTable<Kept> states_;
};

// Fills in the table's functions. T, the backend, has `State* new_state(int32_t device)`; State has
// set(name, const DLTensor&) and get(name, DLTensor*), each with a Status.
template <class T, class State>
void add_states(tn_backend& t) {
  t.state_new = [](void* self, int32_t device, void** out) -> tn_status* {
    *out = nullptr;
    return guard([&]() -> Status {
      TN_TRY(made, object_of<T>(self).new_state(device));
      *out = made;
      return {};
    });
  };
  t.state_set = [](void*, void* state, tn_str name, const DLTensor* value) -> tn_status* {
    return guard([&] { return static_cast<State*>(state)->set(std::string(view(name)), *value); });
  };
  t.state_get = [](void*, void* state, tn_str name, DLTensor* out) -> tn_status* {
    return guard([&] { return static_cast<State*>(state)->get(std::string(view(name)), out); });
  };
  t.state_free = [](void*, void* state) { delete static_cast<State*>(state); };
}

}  // namespace tenon::backend
