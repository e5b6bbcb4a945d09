// SPDX-License-Identifier: Apache-2.0
#include "cluster/pane_set.h"

#include <bit>

namespace clew::cluster {
namespace {

constexpr Pane kBits = 64;

}  // namespace

bool PaneSet::has(Pane pane) const {
  if (pane <= mark_) return true;
  return mark_ != kNone && pane - mark_ <= kBits && (bits_ >> (pane - mark_ - 1) & 1) != 0;
}

// Of the first one it is not known whether others were before it.
PaneSet::Added PaneSet::add(Pane pane) {
  if (mark_ == kNone) mark_ = pane - 1;
  if (has(pane)) return Added::Known;
  if (pane - mark_ > kBits) return Added::TooFar;
  bits_ |= uint64_t{1} << (pane - mark_ - 1);
  settle();
  return Added::New;
}

void PaneSet::close(Pane pane) {
  if (mark_ == kNone) {
    mark_ = pane;
  } else if (pane > mark_) {
    const Pane by = pane - mark_;
    bits_ = by >= kBits ? 0 : bits_ >> by;
    mark_ = pane;
  }
  settle();
}

void PaneSet::settle() {
  const int ones = std::countr_one(bits_);
  bits_ = ones == kBits ? 0 : bits_ >> ones;
  mark_ += ones;
}

}  // namespace clew::cluster
