// A move-only std::function (C++23 has move_only_function; we build as C++20).
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace wherry {

template <class Signature>
class UniqueFunction;

template <class R, class... Args>
class UniqueFunction<R(Args...)> {
public:
  UniqueFunction() = default;
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, UniqueFunction>)
  // NOLINTNEXTLINE(google-explicit-constructor): implicit, as std::function's
  UniqueFunction(F&& f)
      : target_(std::make_unique<Target<std::remove_cvref_t<F>>>(std::forward<F>(f))) {}

  R operator()(Args... args) { return target_->call(std::forward<Args>(args)...); }
  explicit operator bool() const { return target_ != nullptr; }

private:
  struct Base {
    virtual ~Base() = default;
    virtual R call(Args... args) = 0;
  };
  template <class F>
  struct Target final : Base {
    explicit Target(F f) : function(std::move(f)) {}
    R call(Args... args) override { return function(std::forward<Args>(args)...); }
    F function;
  };
  std::unique_ptr<Base> target_;
};

} // namespace wherry
