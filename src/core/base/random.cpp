#include "core/base/random.h"

#include <sys/random.h>

#include <cerrno>

#include "core/base/check.h"

namespace aiq {
namespace {

// Not buffered: a buffer would be copied by fork(), and two processes would hand out equal tokens.
class SystemRandom final : public Random {
 public:
  [[nodiscard]] std::uint64_t next() override {
    std::uint64_t bits = 0;
    ssize_t got = 0;
    do {
      got = getrandom(&bits, sizeof bits, 0);
    } while (got < 0 && errno == EINTR);
    // Up to 256 bytes are never cut short.
    AIQ_CHECK(got == static_cast<ssize_t>(sizeof bits));
    return bits;
  }
};

}  // namespace

double Random::unit() {
  // 53 bits, as many as a double holds, so 1.0 is never reached by rounding.
  return static_cast<double>(next() >> 11U) * 0x1p-53;
}

std::uint64_t Random::below(std::uint64_t bound) {
  AIQ_CHECK(bound > 0);
  // The lowest 2^64 mod bound values are drawn again; what is left is a multiple of bound.
  const std::uint64_t rejected = (0 - bound) % bound;
  std::uint64_t bits = next();
  while (bits < rejected)
    bits = next();
  return bits % bound;
}

std::string Random::token() {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(32);
  for (int half = 0; half < 2; ++half) {
    const std::uint64_t bits = next();
    for (unsigned shift = 64; shift > 0; shift -= 4)
      out += kHex[(bits >> (shift - 4U)) & 0xFU];
  }
  return out;
}

Random& system_random() {
  static SystemRandom random;
  return random;
}

std::uint64_t SeededRandom::next() {
  // SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
  state_ += 0x9E3779B97F4A7C15U;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

}  // namespace aiq
