#include "core/vendor/vendor.h"

#include "core/base/check.h"
#include "core/vendor/adapters.h"

namespace aiq {

VendorReply Vendor::answer(const VendorCall&) const {
  AIQ_CHECK(!"only a vendor that is in_process() answers by itself");
  return {};
}

const Vendor* find_vendor(std::string_view api) {
  if (api == "openai") return &openai_vendor();
  if (api == "anthropic") return &anthropic_vendor();
  if (api == "echo") return &echo_vendor();
  return nullptr;
}

}  // namespace aiq
