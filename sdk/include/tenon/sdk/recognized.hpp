// SPDX-License-Identifier: Apache-2.0
#pragma once
// Components that their plugin recognizes when it gets them as the value of an option: it then has
// the object itself. A table does not show whose it is, as the host hands out copies.

#include "tenon/sdk/component.hpp"
#include "tenon/sdk/plugin.hpp"

namespace tenon {

// For TENON_COMPONENT_, in place of the role's class.
template <class Role>
struct Recognized : Role {};

inline constexpr std::string_view kOwnObject = "tenon.sdk.own_object/1";
// Its address differs between plugins and between classes.
template <class T>
inline constexpr char kOwnTag = 0;

template <class Role>
struct ComponentOf<Recognized<Role>> : ComponentOf<Role> {
  static const void* get_interface(void* self, std::string_view id) {
    if (id == kOwnObject) return &kOwnTag<typename Role::Object>;
    return ComponentOf<Role>::get_interface(self, id);
  }
};

// The object of a component that this plugin made as a Recognized one of class T; else NULL.
template <class T>
const T* own_object(const Component& component) {
  void* self = nullptr;
  const void* tag = services.component->get_interface(component.raw(), str(kOwnObject), &self);
  return tag == &kOwnTag<T> ? &object_of<T>(self) : nullptr;
}

}  // namespace tenon
