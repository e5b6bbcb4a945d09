// SPDX-License-Identifier: Apache-2.0
#include "collect/event_batch.h"

#include "base/assert.h"

namespace clew::collect {

void EventBatch::push(const Event& event) {
  times_.push_back(event.time);
  shapes_.push_back(event.shape);
  processes_.push_back(event.process);
  tids_.push_back(event.tid);
  words_.insert(words_.end(), event.words.begin(), event.words.end());
  word_ends_.push_back(words_.size());
  CLEW_ASSERT(word_ends_.size() == times_.size());
}

void EventBatch::clear() {
  times_.clear();
  shapes_.clear();
  processes_.clear();
  tids_.clear();
  word_ends_.clear();
  words_.clear();
}

void EventBatch::append(const EventBatch& other, uint32_t process_bits) {
  CLEW_ASSERT(&other != this);
  CLEW_ASSERT((process_bits & ((1U << kMemberShift) - 1)) == 0);  // A member's number alone.
  const auto add = [](auto& column, const auto& more) {
    column.insert(column.end(), more.begin(), more.end());
  };
  const uint64_t words_before = words_.size();
  add(times_, other.times_);
  add(shapes_, other.shapes_);
  add(tids_, other.tids_);
  add(words_, other.words_);
  for (const uint32_t process : other.processes_)
    processes_.push_back(process | process_bits);
  for (const uint64_t end : other.word_ends_)
    word_ends_.push_back(words_before + end);
  CLEW_ASSERT(word_ends_.size() == times_.size());
  CLEW_ASSERT(word_ends_.empty() || word_ends_.back() == words_.size());
}

Event EventBatch::at(size_t index) const {
  CLEW_ASSERT(index < size());
  const uint64_t begin = index == 0 ? 0 : word_ends_[index - 1];
  CLEW_ASSERT(begin <= word_ends_[index]);
  return {.shape = shapes_[index],
          .process = processes_[index],
          .tid = tids_[index],
          .time = times_[index],
          .words = std::span(words_).subspan(begin, word_ends_[index] - begin)};
}

}  // namespace clew::collect
