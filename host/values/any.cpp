// SPDX-License-Identifier: Apache-2.0
#include "values/any.hpp"

#include <cstdio>
#include <utility>

#include "tenon/host/component.h"
#include "tenon/host/graph.h"

#include "services/session.hpp"
#include "values/dtype.hpp"
#include "values/tensor.hpp"

namespace tenon::host {
namespace {

// Objects are counted through their services, so that this file knows no more about them.
template <class Table>
const Table* service(std::string_view id) {
  return static_cast<const Table*>(find_service(id));
}

template <class Table, class Object>
void count(std::string_view id, const void* object, bool up) {
  const Table* table = service<Table>(id);
  auto* held = static_cast<Object*>(const_cast<void*>(object));
  if (table) (up ? table->retain : table->release)(held);
}

void count_object(const tn_any& value, bool up) {
  switch (value.tag) {
    case TN_ANY_TENSOR:
      return count<tn_host_tensor, tn_tensor>("tenon.host.tensor/1", value.v.p, up);
    case TN_ANY_GRAPH:
      return count<tn_host_graph, tn_graph>("tenon.host.graph/1", value.v.p, up);
    case TN_ANY_COMPONENT:
      return count<tn_host_component, tn_component_ref>("tenon.host.component/1", value.v.p, up);
    default:
      return;
  }
}

bool is_object(uint32_t tag) {
  return tag == TN_ANY_TENSOR || tag == TN_ANY_GRAPH || tag == TN_ANY_COMPONENT;
}

template <class T>
std::vector<T> list_of(const tn_any& value) {
  const T* first = static_cast<const T*>(value.v.p);
  return value.len ? std::vector<T>(first, first + value.len) : std::vector<T>();
}

template <class T, class Print>
std::string list_text(const tn_any& value, Print print) {
  std::string text = "[";
  const T* items = static_cast<const T*>(value.v.p);
  for (uint64_t i = 0; i < value.len; ++i) {
    if (i == 8) {
      text += ", ...";
      break;
    }
    text += (i ? ", " : "") + print(items[i]);
  }
  return text + "]";
}

std::string quoted(tn_str text) {
  return cat("'", view(text).substr(0, 200), text.len > 200 ? "..." : "", "'");
}

}  // namespace

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.12g", value);
  return text;
}

Any::Any(tn_any value, Storage storage) : value_(value), storage_(std::move(storage)) {
  if (const auto* items = std::get_if<std::vector<std::string>>(&storage_))
    for (const std::string& item : *items)
      views_.push_back(str(item));
}

Any::Any(const Any& other) : Any(other.value_, other.storage_) {
  count_object(value_, true);
}

Any::Any(Any&& other) noexcept {
  swap(other);
}

Any& Any::operator=(Any other) noexcept {
  swap(other);
  return *this;
}

Any::~Any() {
  count_object(value_, false);
}

// The texts of a list keep their addresses when the vector that holds them is moved.
void Any::swap(Any& other) noexcept {
  std::swap(value_, other.value_);
  std::swap(storage_, other.storage_);
  std::swap(views_, other.views_);
}

Result<Any> Any::copy_of(const tn_any& value) {
  bool is_list = value.tag >= TN_ANY_TEXT && value.tag <= TN_ANY_TEXTS;
  if ((is_list && value.len > 0 && !value.v.p) || (is_object(value.tag) && !value.v.p))
    return invalid("value: expected something to point at, got NULL");
  switch (value.tag) {
    case TN_ANY_TEXT:
      return text(std::string(static_cast<const char*>(value.len ? value.v.p : ""), value.len));
    case TN_ANY_I64S:
      return i64s(list_of<int64_t>(value));
    case TN_ANY_F64S:
      return f64s(list_of<double>(value));
    case TN_ANY_TEXTS: {
      std::vector<std::string> items;
      for (tn_str item : list_of<tn_str>(value))
        items.emplace_back(view(item));
      return texts(std::move(items));
    }
    case TN_ANY_BOOL:
      return boolean(value.v.i != 0);
    case TN_ANY_TENSOR: {
      TN_TRY(dense, dense_tensor(static_cast<tn_tensor*>(const_cast<void*>(value.v.p))));
      return Any({TN_ANY_TENSOR, 0, 1, {.p = dense.release()}});
    }
    case TN_ANY_NONE:
    case TN_ANY_I64:
    case TN_ANY_F64:
    case TN_ANY_DTYPE:
    case TN_ANY_GRAPH:
    case TN_ANY_COMPONENT:
      count_object(value, true);
      return Any({value.tag, 0, value.tag == TN_ANY_NONE ? 0u : 1u, value.v});
    default:
      return invalid(cat("value: expected a tag up to ", TN_ANY_COMPONENT, ", got ", value.tag));
  }
}

Any Any::i64(int64_t value) {
  return Any({TN_ANY_I64, 0, 1, {.i = value}});
}

Any Any::f64(double value) {
  return Any({TN_ANY_F64, 0, 1, {.f = value}});
}

Any Any::boolean(bool value) {
  return Any({TN_ANY_BOOL, 0, 1, {.i = value}});
}

Any Any::text(std::string value) {
  tn_any header{TN_ANY_TEXT, 0, value.size(), {}};
  return Any(header, std::move(value));
}

Any Any::i64s(std::vector<int64_t> values) {
  tn_any header{TN_ANY_I64S, 0, values.size(), {}};
  return Any(header, std::move(values));
}

Any Any::f64s(std::vector<double> values) {
  tn_any header{TN_ANY_F64S, 0, values.size(), {}};
  return Any(header, std::move(values));
}

Any Any::texts(std::vector<std::string> values) {
  tn_any header{TN_ANY_TEXTS, 0, values.size(), {}};
  return Any(header, std::move(values));
}

tn_any Any::get() const {
  tn_any out = value_;
  auto point = [&out](const auto& held) {
    if constexpr (requires { held.data(); }) out.v.p = held.data();
  };
  std::visit(point, storage_);
  if (value_.tag == TN_ANY_TEXTS) out.v.p = views_.data();
  return out;
}

std::string any_text(const tn_any& value) {
  auto i64_text = [](int64_t item) { return std::to_string(item); };
  switch (value.tag) {
    case TN_ANY_NONE:
      return "nothing";
    case TN_ANY_I64:
      return i64_text(value.v.i);
    case TN_ANY_F64:
      return number_text(value.v.f);
    case TN_ANY_BOOL:
      return value.v.i ? "true" : "false";
    case TN_ANY_TEXT:
      return quoted({static_cast<const char*>(value.v.p), value.len});
    case TN_ANY_I64S:
      return list_text<int64_t>(value, i64_text);
    case TN_ANY_F64S:
      return list_text<double>(value, number_text);
    case TN_ANY_TEXTS:
      return list_text<tn_str>(value, quoted);
    case TN_ANY_TENSOR:
      return "a tensor";
    case TN_ANY_DTYPE:
      return dtype_name(static_cast<uint32_t>(value.v.u));
    case TN_ANY_GRAPH:
      return "a graph";
    case TN_ANY_COMPONENT:
      return "a component";
    default:
      return cat("a value of tag ", value.tag);
  }
}

}  // namespace tenon::host
