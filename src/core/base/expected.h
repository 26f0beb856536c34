#pragma once
// A value or the reason why there is none, with the names of C++23's std::expected.

#include <type_traits>
#include <utility>
#include <variant>

#include "core/base/check.h"

namespace aiq {

template <class E>
struct Unexpected {
  E error;
};
template <class E>
Unexpected(E) -> Unexpected<E>;

template <class T, class E>
class [[nodiscard]] Expected {
 public:
  Expected(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  template <class G>
  requires std::is_convertible_v<G, E> Expected(Unexpected<G> u)
      : state_(std::in_place_index<1>, E(std::move(u.error))) {}

  [[nodiscard]] bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  // Aborts when there is no value (error): callers test first.
  [[nodiscard]] T& value() & { return AIQ_CHECK(has_value()), std::get<0>(state_); }
  [[nodiscard]] const T& value() const& { return AIQ_CHECK(has_value()), std::get<0>(state_); }
  [[nodiscard]] T&& value() && { return AIQ_CHECK(has_value()), std::get<0>(std::move(state_)); }
  [[nodiscard]] const E& error() const& { return AIQ_CHECK(!has_value()), std::get<1>(state_); }
  [[nodiscard]] E&& error() && { return AIQ_CHECK(!has_value()), std::get<1>(std::move(state_)); }

  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] const T& operator*() const& { return value(); }
  [[nodiscard]] T&& operator*() && { return std::move(*this).value(); }
  [[nodiscard]] T* operator->() { return &value(); }
  [[nodiscard]] const T* operator->() const { return &value(); }

 private:
  std::variant<T, E> state_;
};

// Success without a value.
struct Done {};

}  // namespace aiq
