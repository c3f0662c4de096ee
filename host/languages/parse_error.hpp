// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the two small languages (axes, expr) answer: a value, or where the text is wrong. The caller
// puts the operator's name in front and makes a Status of it.

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace tenon::host {

struct ParseError {
  uint32_t column = 0;  // from 1, in bytes
  std::string expected;
  std::string got;

  std::string text() const {
    return "column " + std::to_string(column) + ": expected " + expected + ", got " + got;
  }
};

template <class T>
class [[nodiscard]] Parsed {
 public:
  Parsed(T value) : state_(std::move(value)) {}
  Parsed(ParseError error) : state_(std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() { return *std::get_if<0>(&state_); }
  const T& operator*() const { return *std::get_if<0>(&state_); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }
  const ParseError& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, ParseError> state_;
};

}  // namespace tenon::host
