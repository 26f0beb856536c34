// The part of duration.h that deals with dates.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "core/base/duration.h"

namespace aiq {
namespace {

constexpr UnixMs kFirst = 0;
constexpr UnixMs kLast = 253'402'300'799'999;      // 9999-12-31T23:59:59.999Z
constexpr UnixMs kYearZero = -62'167'219'200'000;  // 0000-01-01T00:00:00Z

constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::array<std::string_view, 7> kDays{"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                "Thursday", "Friday", "Saturday"};

struct Fields {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, ms = 0;
  int offset_minutes = 0;  // east of UTC
};

// Reads a text from its front. After a failed step all further ones fail.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  // Exactly `count` digits.
  int digits(int count) {
    int number = 0;
    for (; ok_ && count > 0; --count) {
      if (!at_digit()) return fail();
      number = number * 10 + (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    return number;
  }

  // One of the characters of `set`, or 0 on failure.
  char one_of(std::string_view set) {
    if (!ok_ || rest_.empty() || set.find(rest_.front()) == std::string_view::npos) {
      return static_cast<char>(fail());
    }
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  bool skip(std::string_view text) {
    if (!ok_ || !rest_.starts_with(text)) return fail() != 0;
    rest_.remove_prefix(text.size());
    return true;
  }

  // The index of the name that comes first; of each name only `length` bytes count, 0 = all.
  template <std::size_t N>
  int name(const std::array<std::string_view, N>& names, std::size_t length) {
    for (std::size_t i = 0; ok_ && i < N; ++i) {
      const std::string_view candidate = length > 0 ? names[i].substr(0, length) : names[i];
      if (rest_.starts_with(candidate)) {
        rest_.remove_prefix(candidate.size());
        return static_cast<int>(i);
      }
    }
    return fail();
  }

  [[nodiscard]] bool at(char c) const { return !rest_.empty() && rest_.front() == c; }
  [[nodiscard]] bool at_digit() const {
    return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9';
  }
  [[nodiscard]] bool finished() const { return ok_ && rest_.empty(); }

 private:
  int fail() {
    ok_ = false;
    return 0;
  }

  std::string_view rest_;
  bool ok_ = true;
};

void scan_clock(Scanner& in, Fields& f) {
  f.hour = in.digits(2);
  in.skip(":");
  f.minute = in.digits(2);
  in.skip(":");
  f.second = in.digits(2);
}

std::optional<UnixMs> to_unix(const Fields& f) {
  namespace ch = std::chrono;
  const ch::year_month_day date{ch::year{f.year}, ch::month{static_cast<unsigned>(f.month)},
                                ch::day{static_cast<unsigned>(f.day)}};
  if (!date.ok() || f.hour > 23 || f.minute > 59 || f.second > 60) return std::nullopt;
  const std::int64_t day = ch::sys_days{date}.time_since_epoch().count();
  const std::int64_t minutes = (day * 24 + f.hour) * 60 + f.minute - f.offset_minutes;
  // Leap seconds are inserted at the end of a day of UTC, nowhere else.
  if (f.second == 60 && (minutes + 1) % 1'440 != 0) return std::nullopt;
  const UnixMs at = (minutes * 60 + f.second) * 1'000 + f.ms;
  if (at < kFirst || at > kLast) return std::nullopt;
  return at;
}

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::optional<UnixMs> parse_imf_fixdate(Scanner in) {
  Fields f;
  in.name(kDays, 3);
  in.skip(", ");
  f.day = in.digits(2);
  in.skip(" ");
  f.month = in.name(kMonths, 3) + 1;
  in.skip(" ");
  f.year = in.digits(4);
  in.skip(" ");
  scan_clock(in, f);
  in.skip(" GMT");
  return in.finished() ? to_unix(f) : std::nullopt;
}

// "Sunday, 06-Nov-94 08:49:37 GMT"
std::optional<UnixMs> parse_rfc850(Scanner in) {
  Fields f;
  in.name(kDays, 0);
  in.skip(", ");
  f.day = in.digits(2);
  in.skip("-");
  f.month = in.name(kMonths, 3) + 1;
  in.skip("-");
  f.year = in.digits(2);
  f.year += f.year < 70 ? 2000 : 1900;
  in.skip(" ");
  scan_clock(in, f);
  in.skip(" GMT");
  return in.finished() ? to_unix(f) : std::nullopt;
}

// "Sun Nov  6 08:49:37 1994"
std::optional<UnixMs> parse_asctime(Scanner in) {
  Fields f;
  in.name(kDays, 3);
  in.skip(" ");
  f.month = in.name(kMonths, 3) + 1;
  in.skip(" ");
  const bool one_digit = in.at(' ');
  if (one_digit) in.skip(" ");
  f.day = in.digits(one_digit ? 1 : 2);
  in.skip(" ");
  scan_clock(in, f);
  in.skip(" ");
  f.year = in.digits(4);
  return in.finished() ? to_unix(f) : std::nullopt;
}

}  // namespace

std::optional<UnixMs> parse_rfc3339(std::string_view text) {
  Scanner in(text);
  Fields f;
  f.year = in.digits(4);
  in.skip("-");
  f.month = in.digits(2);
  in.skip("-");
  f.day = in.digits(2);
  in.one_of("Tt ");
  scan_clock(in, f);
  if (in.at('.')) {
    in.skip(".");
    f.ms = in.digits(1) * 100;
    if (in.at_digit()) f.ms += in.digits(1) * 10;
    if (in.at_digit()) f.ms += in.digits(1);
    while (in.at_digit())
      in.digits(1);  // finer than a millisecond: cut off
  }
  const char zone = in.one_of("Zz+-");
  if (zone == '+' || zone == '-') {
    const int hours = in.digits(2);
    in.skip(":");
    const int minutes = in.digits(2);
    if (hours > 23 || minutes > 59) return std::nullopt;
    f.offset_minutes = (hours * 60 + minutes) * (zone == '+' ? 1 : -1);
  }
  return in.finished() ? to_unix(f) : std::nullopt;
}

std::string format_rfc3339(UnixMs at) {
  namespace ch = std::chrono;
  const ch::sys_time<ch::milliseconds> time{ch::milliseconds{at < kYearZero ? kYearZero
                                                             : at > kLast   ? kLast
                                                                            : at}};
  const auto midnight = ch::floor<ch::days>(time);
  const ch::year_month_day date{midnight};
  const ch::hh_mm_ss clock{time - midnight};
  std::array<char, 40> buffer{};
  const int length = std::snprintf(
      buffer.data(), buffer.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
      static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
      static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
      static_cast<int>(clock.minutes().count()), static_cast<int>(clock.seconds().count()),
      static_cast<int>(clock.subseconds().count()));
  return {buffer.data(), static_cast<std::size_t>(length)};
}

std::optional<UnixMs> parse_http_date(std::string_view text) {
  const Scanner in(text);
  if (const auto at = parse_imf_fixdate(in)) return at;
  if (const auto at = parse_rfc850(in)) return at;
  return parse_asctime(in);
}

std::optional<UnixMs> parse_time_or_age(std::string_view text, UnixMs now) {
  if (const auto at = parse_rfc3339(text)) return at;
  if (const auto age = parse_duration(text)) return now - *age;
  return std::nullopt;
}

}  // namespace aiq
