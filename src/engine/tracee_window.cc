// SPDX-License-Identifier: Apache-2.0
// Where one window of time begins and ends in a process that counts before and after it.
//
// Cells that only grow are read at both moments and subtracted. Others (min, max, sketches) have
// two generations: the beginning sends the probes to the other one and forgets the first, the end
// sends them back, and what they count from then on is not read. Events have times.
#include <chrono>

#include "engine/tracee.h"

namespace clew::engine {
namespace {

// A thread that got no processor inside of a probe is waited for: what it keeps would count.
constexpr std::chrono::milliseconds kBeginWaitMax{1000};

}  // namespace

void Tracee::begin_window() {
  reader_->add_losses(lost_before_);
  if (!counts_in_cells()) return;
  if (lowered_->layout.generations == 2) {
    reader_->send_to_other_generation();
    return;
  }
  before_ = std::make_unique<aggregate::Accumulator>(lowered_->state);
  reader_->read_cells(*before_);
  before_->merge(*drained_);
}

void Tracee::settle_window() {
  if (!counts_in_cells() || lowered_->layout.generations != 2) return;
  aggregate::Accumulator forgotten(lowered_->state);
  (void)reader_->drain_left_generation(forgotten, kBeginWaitMax);
  drained_->clear();
}

void Tracee::end_window() {
  lost_at_end_.emplace();
  if (counts_in_cells()) {
    meet_children();
    if (lowered_->layout.generations == 2) {
      reader_->close_generation(*drained_);
    } else {
      reader_->read_cells(*drained_);
    }
  }
  reader_->add_losses(*lost_at_end_);
}

// What is not in drained_ yet.
void Tracee::read_cells(aggregate::Accumulator& into) {
  if (!lost_at_end_) return reader_->read_cells(into);
  if (lowered_->layout.generations == 2) reader_->read_closed(into);
}

}  // namespace clew::engine
