// SPDX-License-Identifier: Apache-2.0
#include "engine/stack_names.h"

#include <optional>
#include <utility>

namespace clew::engine {

using aggregate::Frame;

aggregate::Stack StackNames::named(std::span<const uint64_t> words) {
  aggregate::Stack stack;
  if (words.empty()) return stack;
  const uint64_t process = words[0];
  bool is_call = false;
  for (const uint64_t address : words.subspan(1)) {
    if (address == 0) break;
    // What a handler returns to was not called, nor was what the signal interrupted.
    const bool is_return = process != 0 && symbols_.is_signal_return(process, address);
    const Frames some = frames({process, address, is_call && !is_return});
    stack.frames.insert(stack.frames.end(), some.begin(), some.end());
    is_call = !is_return;
  }
  return stack;
}

StackNames::Frames StackNames::frames(const Address& of) {
  const uint64_t code = of.is_call ? of.address - 1 : of.address;
  if (of.process == 0) {
    const auto [known, is_new] = in_kernel_.try_emplace({code, of.is_call});
    if (is_new) known->second = made_in_kernel(of);
    return known->second;
  }
  const auto place = symbols_.code_at(of.process, code);
  if (!place) return made(of);  // Code that a compiler makes may be replaced.
  const auto [known, is_new] = known_.try_emplace({*place, of.is_call});
  if (is_new) known->second = made(of);
  return known->second;
}

namespace {

Frame frame_of(const std::optional<target::SymbolPlace>& place, uint64_t address, uint64_t code) {
  Frame frame{.address = address};
  if (!place) return frame;
  frame.symbol = place->function;
  frame.module = place->module;
  frame.offset = place->offset_bytes + (address - code);
  // It differs from process to process, which would tell equal stacks apart.
  if (!frame.symbol.empty()) frame.address = 0;
  return frame;
}

}  // namespace

StackNames::Frames StackNames::made_in_kernel(const Address& of) const {
  const uint64_t code = of.is_call ? of.address - 1 : of.address;
  return {frame_of(symbols_.kernel(code), of.address, code)};
}

StackNames::Frames StackNames::made(const Address& of) const {
  const uint64_t code = of.is_call ? of.address - 1 : of.address;
  Frame outer = frame_of(symbols_.user(of.process, code), of.address, code);
  Frames frames;
  for (const target::SourceCall& call : symbols_.source(of.process, code)) {
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
