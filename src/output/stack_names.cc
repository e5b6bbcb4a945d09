// SPDX-License-Identifier: Apache-2.0
#include "output/stack_names.h"

#include <utility>

namespace clew::output {

using aggregate::Frame;
using target::SymbolPlace;

std::vector<StackAddress> stack_addresses(const target::Symbolizer& symbols,
                                          std::span<const uint64_t> words) {
  std::vector<StackAddress> addresses;
  if (words.empty()) return addresses;
  const uint64_t process = words[0];
  bool is_call = false;
  for (const uint64_t address : words.subspan(1)) {
    if (address == 0) break;
    // What a handler returns to was not called, nor was what the signal interrupted.
    const bool is_signal_return = process != 0 && symbols.is_signal_return(process, address);
    addresses.push_back({process, address, is_call && !is_signal_return});
    is_call = !is_signal_return;
  }
  return addresses;
}

std::optional<SymbolPlace> place_of(const target::Symbolizer& symbols, const StackAddress& at) {
  const auto look_up = [&](uint64_t address) {
    return at.process == 0 ? symbols.kernel(address) : symbols.user(at.process, address);
  };
  std::optional<SymbolPlace> place = look_up(at.code());
  if (at.is_call && (!place || place->function.empty())) return look_up(at.address);
  if (place) place->offset_bytes += at.address - at.code();
  return place;
}

aggregate::Stack StackNames::named(std::span<const uint64_t> words) {
  aggregate::Stack stack;
  for (const StackAddress& at : addresses(words)) {
    const Frames some = frames(at);
    stack.frames.insert(stack.frames.end(), some.begin(), some.end());
  }
  return stack;
}

StackNames::Frames StackNames::frames(const StackAddress& at) {
  if (at.process == 0) {
    const auto [known, is_new] = in_kernel_.try_emplace({at.code(), at.is_call});
    if (is_new) known->second = made(at);
    return known->second;
  }
  const auto place = symbols_.code_at(at.process, at.code());
  if (!place) return made(at);  // Code that a compiler makes may be replaced.
  const auto [known, is_new] = known_.try_emplace({*place, at.is_call});
  if (is_new) known->second = made(at);
  return known->second;
}

namespace {

Frame frame_of(const std::optional<SymbolPlace>& place, uint64_t address) {
  Frame frame{.address = address};
  if (!place) return frame;
  frame.module = place->module;
  if (place->function.empty()) return frame;
  frame.symbol = place->function;
  frame.offset = place->offset_bytes;
  frame.address = 0;  // It differs from process to process, which would tell equal stacks apart.
  return frame;
}

}  // namespace

StackNames::Frames StackNames::made(const StackAddress& at) const {
  Frame outer = frame_of(place_of(symbols_, at), at.address);
  if (at.process == 0) return {outer};
  Frames frames;
  for (const target::SourceCall& call : symbols_.source(at.process, at.code())) {
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

}  // namespace clew::output
