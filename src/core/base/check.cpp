#include "core/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace aiq {

void check_failed(const char* condition, const char* file, int line) {
  (void)std::fprintf(stderr, "aiq: invariant broken: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace aiq
