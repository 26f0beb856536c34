#include <doctest/doctest.h>

#include "cli/text.h"

using namespace aiq::cli;

TEST_CASE("display width: combining marks take none, wide characters two columns") {
  CHECK(display_width("") == 0);
  CHECK(display_width("queue") == 5);
  CHECK(display_width("caf\u00e9") == 4);
  CHECK(display_width("cafe\u0301") == 4);
  CHECK(display_width("\u65e5\u672c") == 4);
  CHECK(display_width("\U0001F600") == 2);
  CHECK(display_width("\xff\xfe") == 2);  // not UTF-8: a column per byte
}

TEST_CASE("cut: what fits stays, what does not ends in an ellipsis") {
  CHECK(cut("tenant", 6) == "tenant");
  CHECK(cut("tenant-name", 7) == "tenant…");
  CHECK(cut("abc", 1) == "…");
  CHECK(cut("abc", 0).empty());
}

TEST_CASE("cut: characters stay whole") {
  CHECK(cut("caf\u00e9s!", 5) == "caf\u00e9…");
  CHECK(cut("cafe\u0301s!", 5) == "cafe\u0301…");    // the mark stays with its letter
  CHECK(cut("\u65e5\u672c\u8a9e", 4) == "\u65e5…");  // the second one would take columns 3 and 4
  CHECK(display_width(cut("\u65e5\u672c\u8a9e", 5)) == 5);
}

TEST_CASE("cut: a number is never cut in two") {
  CHECK(cut("gpt-4-1106-preview", 9) == "gpt-4-…");
  CHECK(cut("gpt-4-1106-preview", 11) == "gpt-4-1106…");
  CHECK(cut("123456", 4) == "…");
}

TEST_CASE("printable: a terminal obeys nothing in it") {
  CHECK(printable("a\x1b[31mb\nc\x7f") == "a [31mb c ");
  CHECK(printable("a\u202e"
                  "b") == "a b");  // right-to-left override
  CHECK(printable("caf\u00e9 \xff") == "caf\u00e9 \ufffd");
}

TEST_CASE("wrap: lines break at spaces and long words stay whole") {
  CHECK(wrap("one two three", 7) == std::vector<std::string>{"one two", "three"});
  CHECK(wrap("a verylongword b", 6) == std::vector<std::string>{"a", "verylongword", "b"});
  CHECK(wrap("", 10) == std::vector<std::string>{""});
}

TEST_CASE("short age: one unit, rounded down") {
  CHECK(short_age(-5) == "0s");
  CHECK(short_age(59'999) == "59s");
  CHECK(short_age(60'000) == "1m");
  CHECK(short_age(3'600'000) == "1h");
  CHECK(short_age(47 * 3'600'000LL) == "47h");
  CHECK(short_age(48 * 3'600'000LL) == "2d");
}

TEST_CASE("time for people: without the fraction, and nothing else is touched") {
  CHECK(without_fraction("2026-03-01T00:00:00.123Z") == "2026-03-01T00:00:00Z");
  CHECK(without_fraction("gpt-4.1") == "gpt-4.1");
  CHECK(without_fraction("a-model-named-like-1.5-Z") == "a-model-named-like-1.5-Z");
}

TEST_CASE("bytes for people: three digits at most, then the unit") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1536) == "1.5 KiB");
  CHECK(human_bytes(16 << 20) == "16 MiB");
}

TEST_CASE("text: counts agree with their noun") {
  CHECK(counted(0, "entry", "entries") == "0 entries");
  CHECK(counted(1, "entry", "entries") == "1 entry");
  CHECK(counted(2, "entry", "entries") == "2 entries");
}
