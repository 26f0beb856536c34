#pragma once
// Invariants that stay on in release builds. A broken invariant aborts: dying is a tested path
// (recovery at the next start), continuing with a broken state is not.

namespace aiq {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}  // namespace aiq

#define AIQ_CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::aiq::check_failed(#condition, __FILE__, __LINE__))
