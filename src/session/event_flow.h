// SPDX-License-Identifier: Apache-2.0
// The way of single events from the sources to the answer: put into the order of their times, kept
// in a file first if there is one, taken one by one as fast as the answer takes them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "collect/event_batch.h"
#include "collect/event_merge.h"
#include "collect/spill.h"

namespace clew::session {

class EventFlow {
 public:
  // From the first event on: they are written to this file and read from there, so that what is not
  // taken yet costs no memory. Errors: Io.
  Expected<void> keep_in(const std::string& path, const collect::SpillStart& start);
  [[nodiscard]] bool is_kept() const { return writer_ != nullptr; }
  // The file is complete. `note_of`: collect/spill.h.
  Expected<void> finish_file(const collect::SpillWriter::NoteOf& note_of);

  // Events that are in no file, since there was no room for them: nor are they taken.
  [[nodiscard]] uint64_t dropped() const { return writer_ == nullptr ? 0 : writer_->dropped(); }

  // The events of one round of reading; `start`: their clock before it. `is_last`: what was held
  // back is complete, too.
  Expected<void> add(const collect::EventBatch& round, uint64_t start, bool is_last);
  // Events that are in their order already.
  void add_in_order(collect::EventBatch round);

  // How many of them at once: so many, and no more of them than have so many words; at least one.
  struct Share {
    size_t events;
    size_t words;
  };
  // The next events of events() that are complete, all of one member; none when there are none yet.
  // Errors: Io, where the file is damaged.
  Expected<collect::EventRange> take(const Share& most);
  // How many came after later ones had been taken: they are out of order.
  [[nodiscard]] uint64_t late() const { return merge_.late(); }
  // Valid until take() or add() is called.
  [[nodiscard]] const collect::EventBatch& events() const { return ready_; }

 private:
  Expected<bool> has_next();

  collect::EventMerge merge_;
  collect::EventBatch ready_;
  size_t next_ = 0;  // In ready_.
  std::unique_ptr<collect::SpillWriter> writer_;
  std::unique_ptr<collect::SpillReader> reader_;
};

}  // namespace clew::session
