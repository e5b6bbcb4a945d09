// SPDX-License-Identifier: Apache-2.0
#include "stream/window.h"

#include <utility>

#include "stream/hopping.h"
#include "stream/sessions.h"
#include "stream/time.h"

namespace clew::stream {

std::unique_ptr<Windows> Windows::make(const WindowShape& shape, aggregate::TableSchema schema) {
  if (shape.kind == WindowShape::Kind::Session)
    return std::make_unique<Sessions>(shape, std::move(schema));
  return std::make_unique<Hopping>(shape, std::move(schema));
}

std::vector<Given> Windows::advance(int64_t time_ns) {
  if (time_ns <= watermark_ns_) return {};
  watermark_ns_ = time_ns;
  return give();
}

bool Windows::is_closed(int64_t end_ns) const {
  return plus(end_ns, shape_.late_ns) <= watermark_ns_;
}

}  // namespace clew::stream
