// SPDX-License-Identifier: Apache-2.0
#include "output/kept_stacks.h"

namespace clew::output {
namespace {

bool is_known(const KeptStacks::Frames& frames) {
  return frames.size() != 1 || !frames[0].symbol.empty() || !frames[0].module.empty();
}

size_t text_bytes(const KeptStacks::Frames& frames) {
  constexpr size_t kNumbersBytes = 64;  // Of a frame, as a file has them.
  size_t bytes = 0;
  for (const aggregate::Frame& frame : frames)
    bytes += frame.symbol.size() + frame.module.size() + frame.file.size() + kNumbersBytes;
  return bytes;
}

}  // namespace

bool KeptStacks::put(const Place& place, const Frames& frames, bool is_signal_return) {
  const auto known = numbers_.find(frames);
  const size_t bytes = known == numbers_.end() ? text_bytes(frames) : 0;
  if (places_.size() >= kAddressesMax || text_bytes_ + bytes > kTextBytesMax ||
      frames.size() > kFramesMax) {
    return false;
  }
  size_t number = all_frames_.size();
  if (known == numbers_.end()) {
    numbers_.emplace(frames, number);
    all_frames_.push_back(frames);
    text_bytes_ += bytes;
  } else {
    number = known->second;
  }
  places_[place] = {.frames = number, .is_signal_return = is_signal_return};
  return true;
}

aggregate::Stack KeptStacks::named_now(std::span<const uint64_t> words, StackNames& names) {
  aggregate::Stack stack;
  for (const StackAddress& at : names.addresses(words)) {
    const Frames frames = names.frames(at);
    stack.frames.insert(stack.frames.end(), frames.begin(), frames.end());
    const Place place{at.process, at.address, at.is_call};
    const auto kept = places_.find(place);
    if (kept != places_.end() && is_known(all_frames_[kept->second.frames])) continue;
    if (!put(place, frames, names.is_signal_return(at))) ++left_out_;
  }
  return stack;
}

aggregate::Stack KeptStacks::named(std::span<const uint64_t> words) const {
  aggregate::Stack stack;
  bool is_call = false;
  for (size_t i = 1; i < words.size() && words[i] != 0; ++i) {
    // What a handler of a signal returns to is no call's.
    auto found = places_.find({words[0], words[i], is_call});
    if (found == places_.end() && is_call) found = places_.find({words[0], words[i], false});
    const bool is_there = found != places_.end();
    is_call = !is_there || !found->second.is_signal_return;
    if (!is_there) {
      stack.frames.push_back({.address = words[i]});
      continue;
    }
    const Frames& frames = all_frames_[found->second.frames];
    stack.frames.insert(stack.frames.end(), frames.begin(), frames.end());
  }
  return stack;
}

}  // namespace clew::output
