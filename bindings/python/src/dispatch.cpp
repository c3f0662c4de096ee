// SPDX-License-Identifier: Apache-2.0
// Functions that are compiled when they are called: a bounded cache from the types and shapes of
// the arguments to plans, and the short way of a call that finds its plan there.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <unordered_map>
#include <utility>

#include <pybind11/stl.h>

#include "call_arguments.hpp"
#include "model.hpp"

namespace tenon::python {
namespace {

constexpr uint64_t kRecycledBytes = 64 << 10;  // below, NumPy's allocator is as fast
constexpr size_t kRecycledArrays = 2;          // x = f(...) holds one while the next is made
// A run that takes less cannot be worth interrupting, and preparing to be costs as much.
constexpr std::chrono::microseconds kInterruptible{500};

// How many functions this thread is tracing, one inside the other.
thread_local int traces = 0;

struct Result {
  uint32_t dtype = TN_DTYPE_NONE;
  bool is_static = false;
  uint64_t bytes = 0;
  std::vector<int64_t> dims, strides;
  std::vector<py::array> made;  // large ones, taken again once nobody else holds them
};

struct Entry {
  Handle<tn_plan> plan;
  std::vector<Result> results;
  py::object rebuild;  // what the function gives, from a list of arrays; None: the one array
  uint64_t last_used = 0;
  bool interruptible = true;
  Entry() = default;
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
};

Result read_result(const py::tuple& port) {
  Result result;
  if (port[1].is_none() || port[2].is_none()) return result;
  result.dtype = dtype_of(port[1].cast<std::string>());
  result.is_static = !is_packed(result.dtype);
  for (py::handle dim : port[2]) {
    if (!py::isinstance<py::int_>(dim)) {
      result.is_static = false;
      return result;
    }
    result.dims.push_back(dim.cast<int64_t>());
  }
  result.strides.resize(result.dims.size());
  int64_t stride = 1;
  for (size_t i = result.dims.size(); i-- > 0; stride *= result.dims[i])
    result.strides[i] = stride;
  result.bytes = static_cast<uint64_t>(stride) * TN_DTYPE_BITS(result.dtype) / 8;
  return result;
}

// Whoever held an array may have changed its shape, its type or its flags in place.
bool is_as_made(const py::array& array, const Result& result) {
  return array.writeable() && dtype_of(array.dtype()) == result.dtype &&
         std::equal(array.shape(), array.shape() + array.ndim(), result.dims.begin(),
                    result.dims.end());
}

py::array take_array(Result& result) {
  std::erase_if(result.made, [&](const py::array& array) {
    return array.ref_count() == 1 && !is_as_made(array, result);
  });
  for (py::array& array : result.made) {
    if (array.ref_count() == 1) return array;
  }
  std::vector<py::ssize_t> dims(result.dims.begin(), result.dims.end());
  py::array array(numpy_dtype(result.dtype), dims);
  if (result.bytes < kRecycledBytes) return array;
  // When all are in use for long, the oldest is let go.
  if (result.made.size() == kRecycledArrays) result.made.erase(result.made.begin());
  result.made.push_back(array);
  return array;
}

// Memory for the results of one run: arrays of NumPy where the shape is known beforehand.
class ResultArrays {
 public:
  ResultArrays(const SessionPtr& session, Entry& entry)
      : others_(session, entry.results.size()), entry_(entry), arrays_(entry.results.size()) {
    data_.resize(entry.results.size());
    for (size_t i = 0; i < data_.size(); ++i) {
      if (!entry.results[i].is_static) continue;
      arrays_[i] = take_array(entry.results[i]);
      data_[i] = arrays_[i].mutable_data();
    }
  }
  ResultArrays(const ResultArrays&) = delete;
  ResultArrays& operator=(const ResultArrays&) = delete;
  const tn_outputs* get() const { return &outputs_; }
  py::list take() {
    py::list arrays;
    std::vector<TensorPtr> tensors = others_.take();
    for (size_t i = 0; i < arrays_.size(); ++i)
      arrays.append(tensors[i] ? to_numpy(tensors[i], true) : std::move(arrays_[i]));
    return arrays;
  }

 private:
  static tn_status* TN_CALL provide(void* ctx, uint64_t i, const DLTensor* proto, DLTensor* out) {
    auto& self = *static_cast<ResultArrays*>(ctx);
    if (i >= self.data_.size() || !self.fits(i, *proto))
      return self.others_.get()->get(self.others_.get()->ctx, i, proto, out);
    Result& result = self.entry_.results[i];
    *out = {self.data_[i],
            {kDLCPU, 0},
            proto->ndim,
            proto->dtype,
            result.dims.data(),
            result.strides.data(),
            0};
    return nullptr;
  }
  bool fits(uint64_t i, const DLTensor& proto) const {
    const Result& result = entry_.results[i];
    size_t size = result.dims.size() * sizeof(int64_t);
    return data_[i] && dtype_of(proto.dtype) == result.dtype &&
           static_cast<size_t>(proto.ndim) == result.dims.size() &&
           proto.device.device_type == kDLCPU &&
           (size == 0 || std::memcmp(proto.shape, result.dims.data(), size) == 0) &&
           (size == 0 || !proto.strides ||
            std::memcmp(proto.strides, result.strides.data(), size) == 0);
  }
  Results others_;
  Entry& entry_;
  std::vector<py::array> arrays_;
  std::vector<void*> data_;
  tn_outputs outputs_{this, provide};
};

class Dispatch {
 public:
  Dispatch(const SessionPtr& session,
           py::object traced,
           std::vector<size_t> static_arguments,
           std::vector<std::string> static_names,
           std::vector<int> batch_axes,
           size_t limit)
      : session_(session),
        traced_(std::move(traced)),
        static_arguments_(std::move(static_arguments)),
        static_names_(std::move(static_names)),
        batch_axes_(std::move(batch_axes)),
        limit_(limit) {}

  py::object call(const py::object& self, const py::args& args, const py::kwargs& named) {
    if (traces > 0) return self.attr("_inline")(*args, **named);
    CallArguments given(session_, traced_, statics_);
    read(args, named, given);
    if (given.has_traced()) return self.attr("_inline")(*args, **named);
    std::shared_ptr<Entry> entry;
    if (auto found = entries_.find(given.key()); found != entries_.end()) {
      ++hits_;
      entry = found->second;
    } else {
      entry = compile(self, args, named, given.key());
    }
    entry->last_used = ++clock_;
    return run(*entry, given);
  }
  py::tuple stats() const { return py::make_tuple(compiles_, hits_, entries_.size()); }
  void clear() { auto forgotten = std::exchange(entries_, {}); }
  // Of the plan last used.
  std::string describe() const {
    std::shared_ptr<const Entry> last;  // another thread may make the cache forget it meanwhile
    for (const auto& [key, entry] : entries_) {
      if (!last || entry->last_used > last->last_used) last = entry;
    }
    if (!last) throw Error(TN_FAILED_PRECONDITION, "the function was not called yet");
    TextSink text;
    session_->check(
        without_gil([&] { return session_->eval->describe(last->plan.get(), text.get()); }));
    return text.text();
  }

 private:
  void read(const py::args& args, const py::kwargs& named, CallArguments& given) const {
    for (size_t i = 0; i < args.size(); ++i) {
      bool fixed = std::find(static_arguments_.begin(), static_arguments_.end(), i) !=
                   static_arguments_.end();
      int batch = i < batch_axes_.size() ? batch_axes_[i] : CallArguments::kNoBatch;
      PyObject* object = PyTuple_GET_ITEM(args.ptr(), static_cast<Py_ssize_t>(i));
      fixed ? given.add_static(object) : given.add(object, batch);
    }
    for (auto [name, object] : named) {
      given.add_name(name);
      is_static(name) ? given.add_static(object) : given.add(object);
    }
  }

  // Most functions have no static arguments.
  bool is_static(py::handle name) const {
    return !static_names_.empty() && std::find(static_names_.begin(), static_names_.end(),
                                               name.cast<std::string>()) != static_names_.end();
  }

  std::shared_ptr<Entry> compile(const py::object& self,
                                 const py::args& args,
                                 const py::kwargs& named,
                                 const std::string& key) {
    auto made = self.attr("_compile")(args, named).cast<py::tuple>();
    const auto& model = made[0].cast<const Model&>();
    auto options = made[1].cast<std::string>();
    auto entry = std::make_shared<Entry>();
    entry->rebuild = made[2];
    for (py::handle port : made[0].attr("outputs")())
      entry->results.push_back(read_result(py::reinterpret_borrow<py::tuple>(port)));
    tn_plan* raw = nullptr;
    session_->check(without_gil([&] {
      return session_->eval->compile(session_->ctx(), model.get(), nullptr, 0, str(options), &raw);
    }));
    entry->plan = Handle<tn_plan>(session_, raw, session_->eval->release);
    ++compiles_;
    // A plan ends without the GIL: behind a change of the cache, never within it.
    std::shared_ptr<Entry> forgotten, replaced;
    if (entries_.size() >= limit_) forgotten = std::move(entries_.extract(oldest()).mapped());
    replaced = std::exchange(entries_[key], entry);  // by another thread, for the same arguments
    return entry;
  }

  std::unordered_map<std::string, std::shared_ptr<Entry>>::iterator oldest() {
    auto older = [](const auto& a, const auto& b) {
      return a.second->last_used < b.second->last_used;
    };
    return std::min_element(entries_.begin(), entries_.end(), older);
  }

  py::object run(Entry& entry, CallArguments& given) const {
    std::vector<const DLTensor*> views = given.views();
    ResultArrays results(session_, entry);
    auto body = [&](const tn_cancel* cancel) {
      return session_->eval->run(entry.plan.get(), views.data(), views.size(), results.get(),
                                 cancel);
    };
    auto start = std::chrono::steady_clock::now();
    if (entry.interruptible) {
      run_interruptible<PlainCall>(session_, body);
    } else {
      session_->check(without_gil<PlainCall>([&] { return body(nullptr); }));
    }
    entry.interruptible = std::chrono::steady_clock::now() - start > kInterruptible;
    py::list arrays = results.take();
    return entry.rebuild.is_none() ? py::object(arrays[0]) : entry.rebuild(arrays);
  }

  SessionPtr session_;
  py::object traced_;
  std::vector<size_t> static_arguments_;
  std::vector<std::string> static_names_;
  std::vector<int> batch_axes_;
  size_t limit_;
  py::dict statics_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;
  uint64_t clock_ = 0, compiles_ = 0, hits_ = 0;
};

}  // namespace

void bind_dispatch(py::module_& module) {
  module.def("count_traces", [](int change) { traces += change; });
  module.attr("NO_BATCH") = CallArguments::kNoBatch;
  py::class_<Dispatch>(module, "Dispatch")
      .def(py::init<const SessionPtr&, py::object, std::vector<size_t>, std::vector<std::string>,
                    std::vector<int>, size_t>())
      .def("__call__",
           [](const py::object& self, const py::args& args, const py::kwargs& named) {
             return self.cast<Dispatch&>().call(self, args, named);
           })
      .def("counts", &Dispatch::stats)
      .def("clear", &Dispatch::clear)
      .def("_describe", &Dispatch::describe);
}

}  // namespace tenon::python
