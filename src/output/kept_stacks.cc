// SPDX-License-Identifier: Apache-2.0
#include "output/kept_stacks.h"

namespace clew::output {

void KeptStacks::keep(std::span<const uint64_t> words, StackNames& names) {
  for (const StackAddress& at : names.addresses(words)) {
    const auto [place, is_new] = addresses_.try_emplace({at.process, at.address});
    Address& kept = place->second;
    if (is_new) kept.is_signal_return = names.is_signal_return(at);
    std::optional<StackNames::Frames>& frames = at.is_call ? kept.call : kept.code;
    if (!frames) frames = names.frames(at);
  }
}

aggregate::Stack KeptStacks::named(std::span<const uint64_t> words) const {
  aggregate::Stack stack;
  bool is_call = false;
  for (size_t i = 1; i < words.size() && words[i] != 0; ++i) {
    const auto found = addresses_.find({words[0], words[i]});
    const bool is_signal_return = found != addresses_.end() && found->second.is_signal_return;
    const bool takes_call = is_call && !is_signal_return;
    is_call = !is_signal_return;
    const std::optional<StackNames::Frames>* const frames = found == addresses_.end() ? nullptr
                                                            : takes_call ? &found->second.call
                                                                         : &found->second.code;
    if (frames == nullptr || !*frames) {
      stack.frames.push_back({.address = words[i]});
    } else {
      stack.frames.insert(stack.frames.end(), (*frames)->begin(), (*frames)->end());
    }
  }
  return stack;
}

}  // namespace clew::output
