#include "core/base/sha256.h"

#include <doctest/doctest.h>

#include <string>

using namespace aiq;

TEST_CASE("sha256: known digests") {
  // NIST example values for FIPS 180-4, and the empty message of the NIST CAVP short vectors.
  struct Row {
    std::string text;
    std::string digest;
  };
  const Row rows[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1'000'000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  for (const Row& row : rows)
    CHECK(sha256_hex(row.text) == row.digest);
}

TEST_CASE("sha256: pieces add up") {
  Sha256 hash;
  hash.update("a");
  hash.update("");
  hash.update("bc");
  CHECK(hash.hex() == sha256_hex("abc"));
}

TEST_CASE("sha256: a field is its length in 8 bytes, big-endian, and its bytes") {
  using namespace std::string_literals;
  Sha256 hash;
  hash.update_field("abc");
  hash.update_field(std::string(258, 'x'));
  CHECK(hash.hex() ==
        sha256_hex("\0\0\0\0\0\0\0\3abc"s + "\0\0\0\0\0\0\1\2"s + std::string(258, 'x')));
}

TEST_CASE("sha256: fields don't run into each other") {
  const auto of = [](std::string_view a, std::string_view b) {
    Sha256 hash;
    hash.update_field(a);
    hash.update_field(b);
    return hash.hex();
  };
  CHECK(of("ab", "c") != of("a", "bc"));
  CHECK(of("", "x") != of("x", ""));
}
