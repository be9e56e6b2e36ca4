// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// An option's value, and the members of structs that it goes into.
#pragma once

#include <doorbell/config.hpp>

#include <algorithm>
#include <concepts>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <variant>
#include <vector>

namespace doorbell::options {

/// One item of a list option.
struct ListItem {
  std::string kind;
  double value = 0;
};

/// A choice such as "sample=0.1": the name, its place among the option's choices, and the number after '='.
struct ChoiceValue {
  std::string text;
  u32 place = 0;
  std::optional<double> number = {};
};

using Value =
    std::variant<std::monostate, bool, u64, double, std::string, ChoiceValue, std::vector<ListItem>>;

/// The kind of value that a T is made from.
template <typename T>
struct Source {
  using Type = std::conditional_t<std::is_enum_v<T>, ChoiceValue,
                                  std::conditional_t<std::is_floating_point_v<T>, double, T>>;
};
template <std::integral T>
struct Source<T> {
  using Type = u64;
};
template <>
struct Source<bool> {
  using Type = bool;
};
template <>
struct Source<std::string_view> {
  using Type = std::string;
};

/// The part of a value that a T is made from; null if the value has none. A T that is made from no value does
/// not compile.
template <typename T>
[[nodiscard]] auto part_of(const Value& value) {
  using From = typename Source<T>::Type;
  const ChoiceValue* const choice = std::get_if<ChoiceValue>(&value);
  if constexpr (std::is_same_v<From, ChoiceValue>) return choice != nullptr ? &choice->place : nullptr;
  else if constexpr (!std::is_same_v<From, std::string>) return std::get_if<From>(&value);
  else return choice != nullptr ? &choice->text : std::get_if<From>(&value);
}

/// A function, or an object with one, of one parameter list.
template <typename F>
concept Converter = requires(F f) {
  std::function(f);
};

/// The members that Options::read_into() sets to an option's value.
class Into {
 public:
  Into() = default;
  /// Members of the value's type, or optional ones. Of a choice: its text, or an enumeration whose values are
  /// in the order of the choices, from 0 on.
  template <typename M, typename S, typename... MoreM, typename... MoreS>
  Into(M S::*member, MoreM MoreS::*... more) {  // NOLINT(google-explicit-constructor): `.into = &S::member`
    add_plain(member);
    (add_plain(more), ...);
  }
  /// Members that are true if the choice is `word`.
  template <typename... S>
  Into(const char* word, bool S::*... members)
      : Into([word = std::string(word)](const std::string& text) { return text == word; }, members...) {}
  /// Members that get what a function makes of a number, a text or a list. It may throw Error.
  template <Converter Convert, typename M, typename S, typename... MoreM, typename... MoreS>
  Into(Convert convert, M S::*member, MoreM MoreS::*... more) {
    add_converted(std::function(convert), member);
    (add_converted(std::function(convert), more), ...);
  }

  template <typename S>
  void set(const Value& value, S& object) const {
    for (const Member& m : members_)
      if (*m.owner == typeid(S)) m.set(value, &object);
  }
  /// True if a member of this very struct is among them.
  template <typename S>
  [[nodiscard]] bool belongs_to() const {
    return std::ranges::any_of(members_, [](const Member& m) { return *m.owner == typeid(S); });
  }
  /// A value such as the members are made from; none without members.
  [[nodiscard]] Value example() const { return members_.empty() ? Value() : members_.front().example; }
  /// True if all members can be made from such a value, and whole ones hold numbers up to `most`.
  [[nodiscard]] bool takes(const Value& value, u64 most) const {
    for (const Member& m : members_)
      if (!m.set(value, nullptr) || most > m.most) return false;
    return true;
  }

 private:
  struct Member {
    const std::type_info* owner;
    Value example;
    /// False for a value of another kind. Without an object nothing is set.
    std::function<bool(const Value&, void* object)> set;
    u64 most = std::numeric_limits<u64>::max();
  };

  template <typename T>
  struct Bare {
    using Type = T;
  };
  template <typename T>
  struct Bare<std::optional<T>> {
    using Type = T;
  };

  template <typename M, typename S>
  void add_plain(M S::*member) {
    using T = typename Bare<M>::Type;
    add<T>([](const auto& part) { return static_cast<T>(part); }, member);
    if constexpr (std::is_integral_v<T>) members_.back().most = u64{std::numeric_limits<T>::max()};
  }
  template <typename R, typename A, typename M, typename S>
  void add_converted(const std::function<R(A)>& convert, M S::*member) {
    add<std::remove_cvref_t<A>>(convert, member);
  }
  template <typename T, typename Convert, typename M, typename S>
  void add(Convert convert, M S::*member) {
    const auto set = [convert, member](const Value& value, void* object) {
      const auto* const part = part_of<T>(value);
      if (part != nullptr && object != nullptr) static_cast<S*>(object)->*member = convert(*part);
      return part != nullptr;
    };
    members_.push_back({&typeid(S), typename Source<T>::Type{}, set});
  }

  std::vector<Member> members_;
};

}  // namespace doorbell::options
