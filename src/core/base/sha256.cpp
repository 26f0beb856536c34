#include "core/base/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <cstdint>

#include "core/base/check.h"

namespace aiq {
namespace {

// Looked up once: EVP_sha256() makes OpenSSL 3 search its providers at each use.
const EVP_MD* algorithm() {
  static const EVP_MD* const fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  AIQ_CHECK(fetched != nullptr);
  return fetched;
}

}  // namespace

struct Sha256::State {
  State() : context(EVP_MD_CTX_new()) {}
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  EVP_MD_CTX* context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  AIQ_CHECK(state_->context != nullptr);
  AIQ_CHECK(EVP_DigestInit_ex2(state_->context, algorithm(), nullptr) == 1);
}

Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) {
  AIQ_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

void Sha256::update_field(std::string_view bytes) {
  std::array<char, 8> length{};
  std::uint64_t rest = bytes.size();
  for (auto byte = length.rbegin(); byte != length.rend(); ++byte, rest >>= 8U) {
    *byte = static_cast<char>(rest & 0xFFU);
  }
  update({length.data(), length.size()});
  update(bytes);
}

std::string Sha256::hex() {
  static constexpr char kHex[] = "0123456789abcdef";
  std::array<unsigned char, 32> digest{};
  AIQ_CHECK(EVP_DigestFinal_ex(state_->context, digest.data(), nullptr) == 1);
  std::string out;
  out.reserve(2 * digest.size());
  for (const unsigned char byte : digest) {
    out += kHex[byte >> 4U];
    out += kHex[byte & 0xFU];
  }
  return out;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

}  // namespace aiq
