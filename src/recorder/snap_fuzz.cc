// SPDX-License-Identifier: Apache-2.0
// Any bytes are a snap to someone: parsing them, and the same behind a header that is right, gives
// a snap or an error. What was parsed comes back from its own bytes.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/assert.h"
#include "recorder/snap.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace recorder = clew::recorder;
  (void)recorder::parse_snap({data, size});
  if (size == 0) return 0;
  const std::vector<uint8_t> rest(data + 1, data + size);
  const auto snap = recorder::parse_snap(recorder::with_header(data[0] % 8, rest));
  if (!snap) return 0;
  const auto again = recorder::parse_snap(recorder::snap_bytes(*snap));
  CLEW_ASSERT(again && again->threads.size() == snap->threads.size());
  CLEW_ASSERT(again->scripts == snap->scripts || snap->scripts.interpreters.empty());
  CLEW_ASSERT(again->modules.size() == snap->modules.size() && again->pid == snap->pid);
  return 0;
}
