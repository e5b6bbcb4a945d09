// SPDX-License-Identifier: Apache-2.0
#include "session/event_flow.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/assert.h"

namespace clew::session {

Expected<void> EventFlow::keep_in(const std::string& path, const collect::SpillStart& start) {
  writer_ =
      std::make_unique<collect::SpillWriter>(CLEW_TRY(collect::SpillWriter::create(path, start)));
  reader_ = std::make_unique<collect::SpillReader>(CLEW_TRY(collect::SpillReader::open(path)));
  return {};
}

Expected<void> EventFlow::finish_file(const collect::SpillWriter::NoteOf& note_of) {
  CLEW_ASSERT(writer_ != nullptr);
  return writer_->finish(note_of);
}

Expected<void> EventFlow::add(const collect::EventBatch& round, uint64_t start, bool is_last) {
  CLEW_ASSERT(&round != &ready_);
  merge_.add(round, start);
  collect::EventBatch complete = is_last ? merge_.take_all() : merge_.take_ready();
  if (writer_ != nullptr) return writer_->write(complete, start);
  add_in_order(std::move(complete));
  return {};
}

void EventFlow::add_in_order(collect::EventBatch round) {
  if (next_ < ready_.size()) return ready_.append(round);
  ready_ = std::move(round);
  next_ = 0;
}

Expected<bool> EventFlow::has_next() {
  while (next_ >= ready_.size()) {
    if (reader_ == nullptr) return false;
    std::optional<collect::SpillRound> round = CLEW_TRY(reader_->next());
    if (!round) return false;
    ready_ = std::move(round->batch);
    next_ = 0;
  }
  return true;
}

Expected<collect::EventRange> EventFlow::take(const Share& most) {
  if (!CLEW_TRY(has_next())) return collect::EventRange{};
  const uint32_t member = collect::member_of(ready_.at(next_));
  CLEW_ASSERT(most.events != 0);
  const size_t begin = next_;
  const size_t end = std::min(ready_.size(), begin + most.events);
  size_t words = 0;
  while (next_ < end) {
    const collect::Event event = ready_.at(next_);
    words += event.words.size();
    if (next_ != begin && (collect::member_of(event) != member || words > most.words)) break;
    ++next_;
  }
  CLEW_ASSERT(next_ > begin);  // Else nobody gets on.
  return collect::EventRange{.begin = begin, .end = next_};
}

}  // namespace clew::session
