// SPDX-License-Identifier: Apache-2.0
#include "cluster/pane_set.h"

#include <bit>

namespace clew::cluster {
namespace {

constexpr uint64_t kBits = 64;

}  // namespace

// Of one above the mark; numbers may be anybody's.
bool PaneSet::is_near(Pane pane) const {
  return static_cast<uint64_t>(pane) - static_cast<uint64_t>(mark_) <= kBits;
}

bool PaneSet::has(Pane pane) const {
  if (pane <= mark_) return true;
  if (mark_ == kNone || !is_near(pane)) return false;
  return (bits_ >> (pane - mark_ - 1) & 1) != 0;
}

// Of the first one it is not known whether others were before it.
PaneSet::Added PaneSet::add(Pane pane) {
  if (mark_ == kNone) mark_ = pane - 1;
  if (has(pane)) return Added::Known;
  if (!is_near(pane)) return Added::TooFar;
  bits_ |= uint64_t{1} << (pane - mark_ - 1);
  settle();
  return Added::New;
}

void PaneSet::close(Pane pane) {
  if (mark_ == kNone) {
    mark_ = pane;
  } else if (pane > mark_) {
    bits_ = !is_near(pane) || pane - mark_ == Pane{kBits} ? 0 : bits_ >> (pane - mark_);
    mark_ = pane;
  }
  settle();
}

void PaneSet::settle() {
  const int ones = std::countr_one(bits_);
  bits_ = ones == int{kBits} ? 0 : bits_ >> ones;
  mark_ += ones;
}

}  // namespace clew::cluster
