// SPDX-License-Identifier: Apache-2.0
#include "stream/pane.h"

#include <limits>

#include "base/assert.h"

namespace clew::stream {
namespace {

__extension__ using Wide = __int128;

int64_t clamped(Wide value) {
  if (value < std::numeric_limits<int64_t>::min()) return std::numeric_limits<int64_t>::min();
  if (value > std::numeric_limits<int64_t>::max()) return std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(value);
}

}  // namespace

int64_t Panes::number_of(int64_t time_ns) const {
  CLEW_ASSERT(width_ns > 0);
  const Wide since = static_cast<Wide>(time_ns) - epoch_ns;
  const bool is_above = since % width_ns < 0;  // What / leaves out, it leaves out towards 0.
  return clamped(since / width_ns - (is_above ? 1 : 0));
}

int64_t Panes::begin(int64_t number) const {
  return clamped(epoch_ns + static_cast<Wide>(number) * width_ns);
}

int64_t Panes::end(int64_t number) const {
  return clamped(epoch_ns + (static_cast<Wide>(number) + 1) * width_ns);
}

}  // namespace clew::stream
