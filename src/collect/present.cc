// SPDX-License-Identifier: Apache-2.0
#include "collect/present.h"

#include <algorithm>

#include <unistd.h>

#include "base/assert.h"

namespace clew::collect {
namespace {

// A program that touches every other page of its slots could make more ranges than are worth
// asking for: what follows then counts as data.
constexpr size_t kRangesMax = 65536;

}  // namespace

PresentPages::PresentPages(int file, uint64_t file_offset, uint64_t size_bytes)
    : file_(file), file_offset_(file_offset), size_bytes_(size_bytes) {
  ranges_.push_back({.begin = 0, .end = size_bytes});
}

void PresentPages::refresh() {
  if (file_ < 0) return;
  ranges_.clear();
  uint64_t at = 0;
  while (at < size_bytes_) {
    const off_t data = lseek(file_, static_cast<off_t>(file_offset_ + at), SEEK_DATA);
    if (data < 0) return;  // ENXIO: only a hole follows.
    const off_t hole = lseek(file_, data, SEEK_HOLE);
    const uint64_t begin = std::max(static_cast<uint64_t>(data), file_offset_) - file_offset_;
    const bool unknown = hole <= data || ranges_.size() + 1 >= kRangesMax;
    const uint64_t end = unknown ? size_bytes_ : static_cast<uint64_t>(hole) - file_offset_;
    if (begin >= size_bytes_) return;
    ranges_.push_back({.begin = begin, .end = std::min(end, size_bytes_)});
    at = end;
  }
}

bool PresentPages::any(uint64_t begin, uint64_t end) const {
  CLEW_ASSERT(begin <= end);
  CLEW_ASSERT(end <= size_bytes_);
  const auto first =
      std::upper_bound(ranges_.begin(), ranges_.end(), begin,
                       [](uint64_t at, const PageRange& range) { return at < range.end; });
  return first != ranges_.end() && first->begin < end;
}

std::vector<PageRange> PresentPages::within(uint64_t begin, uint64_t end) const {
  CLEW_ASSERT(begin <= end);
  CLEW_ASSERT(end <= size_bytes_);
  std::vector<PageRange> result;
  auto range =
      std::upper_bound(ranges_.begin(), ranges_.end(), begin,
                       [](uint64_t at, const PageRange& candidate) { return at < candidate.end; });
  for (; range != ranges_.end() && range->begin < end; ++range) {
    result.push_back({.begin = std::max(begin, range->begin), .end = std::min(end, range->end)});
  }
  return result;
}

}  // namespace clew::collect
