#pragma once
// What was spent, by time and by group.
//
// By tenant and UTC the answer comes from the summaries, else from the ledger itself, row by row by
// the time of use: hours of UTC can't be put together to days of a zone that is half an hour off.
// Corrections count at the time of the use that they correct, credits at the start of their hour.
// By posting period (`billed`) what was posted into a later hour counts at the start of that hour.

#include <string>
#include <vector>

#include "core/base/time_zone.h"
#include "core/store/cost_ledger.h"
#include "core/store/store.h"

namespace aiq {

enum class CostBy { hour, day, month, total };
enum class CostGroup { tenant, model, vendor, meter, label };

struct CostQuery {
  std::string tenant, currency;    // "" = any
  std::optional<UnixMs> from, to;  // half-open
  CostBy by = CostBy::hour;
  CostGroup group = CostGroup::tenant;
  std::string label_key;  // of group label
  TimeZone zone;
  bool billed = false;
};

struct CostLine {
  std::string group;  // a tenant, a model, ...; "" = none
  Span span;
  std::string currency;
  Int128 usage = 0, credit = 0, correction = 0;
  std::int64_t ledger_rows = 0, events = 0;
  bool stale = false;  // something is not posted, or not in the summary yet

  [[nodiscard]] Int128 amount() const { return usage + credit + correction; }
};

// In order of group, time, currency.
[[nodiscard]] std::vector<CostLine> cost_lines(Reader& reader, const CostQuery& query);

}  // namespace aiq
