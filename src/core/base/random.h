#pragma once
// Randomness behind one interface, so that tests can replay it from a seed.

#include <cstddef>
#include <cstdint>
#include <string>

namespace aiq {

class Random {
 public:
  virtual ~Random() = default;
  // 64 uniformly distributed bits.
  [[nodiscard]] virtual std::uint64_t next() = 0;

  // Uniform in [0, 1).
  [[nodiscard]] double unit();
  // Uniform in [0, bound); bound > 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound);
  // 32 lower-case hex digits (128 bits): lease tokens, batch ids, correlation ids.
  [[nodiscard]] std::string token();
};

// The kernel's generator (getrandom). Thread-safe.
Random& system_random();

// A deterministic stream (SplitMix64). Not thread-safe.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  [[nodiscard]] std::uint64_t next() override;

 private:
  std::uint64_t state_;
};

}  // namespace aiq
