// SPDX-License-Identifier: Apache-2.0
// Records of calls that have not returned (abi/region.h, RecordLayout), as the tracer sees them.
#pragma once

#include <cstdint>
#include <vector>

namespace clew::collect {

struct OpenRecord {
  uint32_t process = 0;  // abi::SlotControl::process
  uint32_t tid = 0;      // As the target sees it; 0 = not known.
  uint64_t frame = 0;
  uint64_t function_number = 0;
  std::vector<uint64_t> payload{};
};

}  // namespace clew::collect
