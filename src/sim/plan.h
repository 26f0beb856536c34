#pragma once
// What the simulator decided to do with one request, before a byte of the answer is sent.

#include <cstdint>
#include <string>

#include "core/base/duration.h"
#include "sim/message.h"
#include "sim/rules.h"

namespace aiq::sim {

struct Plan {
  int status = 200;
  Headers headers;
  std::string body;

  bool hold = false;          // nothing is sent before a release
  std::string rule;           // name of the rule that decided; "" = none
  DurationMs delay = 0;       // before the first byte
  DurationMs body_delay = 0;  // after half of the body
  Ending ending = Ending::complete;
  std::size_t cut_at = 0;  // bytes of the body that are sent, for cut and cut_chunked

  bool in_flight = false;    // counts as in flight until the exchange ends
  std::string journal_line;  // "" = not a vendor call: not in the journal
};

}  // namespace aiq::sim
