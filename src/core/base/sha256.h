#pragma once
// SHA-256 (FIPS 180-4) by OpenSSL's libcrypto.

#include <memory>
#include <string>
#include <string_view>

namespace aiq {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  // Adds raw bytes.
  void update(std::string_view bytes);
  // Adds a field so that fields can't run into each other: its length as 8 bytes (big-endian), then
  // its bytes.
  void update_field(std::string_view bytes);
  // 64 lower-case hex digits; ends this hash, call once.
  [[nodiscard]] std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] std::string sha256_hex(std::string_view bytes);

}  // namespace aiq
