#include "core/base/time_zone.h"

#include <doctest/doctest.h>

#include <string>

#include "core/base/duration.h"
#include "core/base/random.h"

using namespace aiq;

namespace {

UnixMs at(const char* text) {
  return parse_rfc3339(text).value();
}

std::string show(const Span& span) {
  return format_rfc3339(span.start) + " " + format_rfc3339(span.end);
}

}  // namespace

TEST_CASE("time zone: days and hours of places") {
  struct Row {
    const char* zone;
    Calendar unit;
    const char* time;
    const char* span;
  };
  const Row rows[] = {
      {"UTC", Calendar::hour, "2026-03-01T10:59:59.999Z",
       "2026-03-01T10:00:00.000Z 2026-03-01T11:00:00.000Z"},
      {"UTC", Calendar::month, "2024-02-29T10:00:00Z",
       "2024-02-01T00:00:00.000Z 2024-03-01T00:00:00.000Z"},
      {"Asia/Kolkata", Calendar::day, "2026-03-01T18:29:59.999Z",
       "2026-02-28T18:30:00.000Z 2026-03-01T18:30:00.000Z"},
      {"Asia/Kolkata", Calendar::hour, "2026-03-01T18:30:00Z",
       "2026-03-01T18:30:00.000Z 2026-03-01T19:30:00.000Z"},
      {"Asia/Kolkata", Calendar::month, "2026-02-28T18:30:00Z",
       "2026-02-28T18:30:00.000Z 2026-03-31T18:30:00.000Z"},
      // 23 and 25 hours long.
      {"Europe/Berlin", Calendar::day, "2026-03-29T12:00:00Z",
       "2026-03-28T23:00:00.000Z 2026-03-29T22:00:00.000Z"},
      {"Europe/Berlin", Calendar::day, "2026-10-25T12:00:00Z",
       "2026-10-24T22:00:00.000Z 2026-10-25T23:00:00.000Z"},
      // 02:30 twice: two hours.
      {"Europe/Berlin", Calendar::hour, "2026-10-25T00:30:00Z",
       "2026-10-25T00:00:00.000Z 2026-10-25T01:00:00.000Z"},
      {"Europe/Berlin", Calendar::hour, "2026-10-25T01:30:00Z",
       "2026-10-25T01:00:00.000Z 2026-10-25T02:00:00.000Z"},
      // Clocks go back by half an hour, at 15:00 UTC.
      {"Australia/Lord_Howe", Calendar::hour, "2026-04-04T14:59:00Z",
       "2026-04-04T14:00:00.000Z 2026-04-04T15:00:00.000Z"},
      {"Australia/Lord_Howe", Calendar::hour, "2026-04-04T15:10:00Z",
       "2026-04-04T15:00:00.000Z 2026-04-04T15:30:00.000Z"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.zone);
    CAPTURE(row.time);
    const auto zone = TimeZone::find(row.zone);
    REQUIRE(zone.has_value());
    CHECK(show(zone->span(row.unit, at(row.time))) == row.span);
  }
  CHECK_FALSE(TimeZone::find("Mars/Olympus").has_value());
  CHECK_FALSE(TimeZone::find("").has_value());
}

TEST_CASE("time zone: spans cover all time without gap or overlap") {
  constexpr std::uint64_t kSeed = 20260301;
  CAPTURE(kSeed);
  SeededRandom random(kSeed);
  const char* const zones[] = {"UTC",
                               "Asia/Kolkata",
                               "Europe/Berlin",
                               "Pacific/Apia",
                               "Asia/Kathmandu",
                               "Australia/Lord_Howe",
                               "America/Sao_Paulo",
                               "America/St_Johns"};
  for (const char* name : zones) {
    CAPTURE(name);
    const auto zone = TimeZone::find(name);
    REQUIRE(zone.has_value());
    for (int i = 0; i < 500; ++i) {
      const auto time = static_cast<UnixMs>(random.below(2'500'000'000'000));
      for (const Calendar unit : {Calendar::hour, Calendar::day, Calendar::month}) {
        const Span span = zone->span(unit, time);
        CAPTURE(time);
        CHECK(span.start <= time);
        CHECK(time < span.end);
        CHECK(zone->span(unit, span.start) == span);
        CHECK(zone->span(unit, span.end - 1) == span);
        CHECK(zone->span(unit, span.end).start == span.end);
      }
    }
  }
}
