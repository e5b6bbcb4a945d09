// SPDX-License-Identifier: Apache-2.0
#include "engine/stack_names.h"

#include <utility>

namespace clew::engine {

using aggregate::Frame;

aggregate::Stack StackNames::named(std::span<const uint64_t> words) {
  aggregate::Stack stack;
  if (words.empty()) return stack;
  for (const uint64_t address : words.subspan(1)) {
    if (address == 0) break;
    const Frames& some = frames(words[0], address, !stack.frames.empty());
    stack.frames.insert(stack.frames.end(), some.begin(), some.end());
  }
  return stack;
}

const StackNames::Frames& StackNames::frames(uint64_t process, uint64_t address, bool is_call) {
  const auto [known, is_new] = known_.try_emplace({process, address, is_call});
  if (is_new) known->second = made(process, address, is_call);
  return known->second;
}

StackNames::Frames StackNames::made(uint64_t process, uint64_t address, bool is_call) const {
  const uint64_t code = is_call ? address - 1 : address;
  const bool is_kernel = process == 0;
  Frame outer{.address = address};
  const auto place = is_kernel ? symbols_.kernel(code) : symbols_.user(process, code);
  if (place) {
    outer.symbol = place->function;
    outer.module = place->module;
    outer.offset = place->offset_bytes + (address - code);
  }
  Frames frames;
  const std::vector<target::SourceCall> calls =
      is_kernel ? std::vector<target::SourceCall>() : symbols_.source(process, code);
  for (const target::SourceCall& call : calls) {
    Frame frame = outer;
    frame.file = call.place.file;
    frame.line = call.place.line;
    frame.inlined = call.is_inlined;
    if (call.is_inlined) {
      frame.symbol = call.function;
      frame.offset = 0;
    }
    frames.push_back(std::move(frame));
  }
  // Debug information without the function itself.
  if (frames.empty() || frames.back().inlined) frames.push_back(std::move(outer));
  return frames;
}

}  // namespace clew::engine
