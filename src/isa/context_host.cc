// SPDX-License-Identifier: Apache-2.0
#include "isa/context_host.h"

#include <algorithm>
#include <utility>

#include "isa/accessor_host.h"

namespace clew::isa {
namespace {

// The words of the thread's context in the window.
class Context {
 public:
  Context(const abi::ContextLayout& layout, Window& window) : layout_(layout), window_(window) {}

  [[nodiscard]] uint64_t word(uint32_t index) const {
    return window_.load(layout_.offset + uint64_t{8} * index, 8);
  }
  void set(uint32_t index, uint64_t value) {
    window_.store(layout_.offset + uint64_t{8} * index, 8, value);
  }
  [[nodiscard]] std::vector<uint64_t> all() const {
    std::vector<uint64_t> words;
    for (uint32_t i = 0; i < layout_.words(); ++i)
      words.push_back(word(i));
    return words;
  }
  void set_all(const std::vector<uint64_t>& words) {
    for (uint32_t i = 0; i < words.size(); ++i)
      set(i, words[i]);
  }
  [[nodiscard]] uint64_t pointer() const {
    return word(abi::kContextRequest) == 0 ? 0 : layout_.offset;
  }
  void leave() { set(abi::kContextRequest, 0); }

  void begin(uint64_t request) {
    for (uint32_t i = abi::kContextNumber; i < layout_.words(); ++i)
      set(i, 0);
    set(abi::kContextRequest, request);
  }

  void join(const std::vector<uint64_t>& other, uint64_t most_recent) {
    if (other[abi::kContextRequest] != word(abi::kContextRequest)) return;
    set(abi::kContextNumber, std::max(word(abi::kContextNumber), other[abi::kContextNumber]));
    for (uint32_t bag = 0; bag < layout_.bags; ++bag) {
      const uint32_t at = abi::kContextBags + bag * layout_.bag_words;
      const auto own_place = std::pair(word(at), word(at + 1));
      const auto place = std::pair(other[at], other[at + 1]);
      const bool is_wanted =
          word(at) == 0 || ((most_recent >> bag & 1) != 0 ? place > own_place : place < own_place);
      if (other[at] == 0 || !is_wanted) continue;
      for (uint32_t i = at; i < at + layout_.bag_words; ++i)
        set(i, other[i]);
    }
  }

 private:
  const abi::ContextLayout& layout_;
  Window& window_;
};

Expected<void> check(const abi::ContextLayout& layout, const Window& window) {
  const bool is_there = layout.offset != 0 && layout.words() <= abi::kContextWordsMax &&
                        window.holds(layout.offset, uint64_t{8} * layout.words());
  if (is_there) return {};
  return fail(ErrorCode::Refused, "the contexts are outside the window");
}

}  // namespace

Expected<uint64_t> ContextHost::open(const abi::ContextLayout& layout, Window& window) const {
  CLEW_TRY(check(layout, window));
  return Context(layout, window).pointer();
}

Expected<uint64_t> ContextHost::act(const abi::ContextLayout& layout, const Arguments& arguments,
                                    Window& window) {
  CLEW_TRY(check(layout, window));
  const auto [act, object, most_recent, r4, r5] = arguments;
  Context own(layout, window);
  const bool is_in_one = own.pointer() != 0;
  const auto put = objects_.find(object);
  switch (static_cast<abi::ContextAct>(act)) {
    case abi::ContextAct::Begin:
      own.begin(++last_request_);
      return own.pointer();
    case abi::ContextAct::End:
      own.leave();
      return uint64_t{0};
    case abi::ContextAct::Put:
      if (is_in_one) {
        objects_[object] = own.all();
        return own.pointer();
      }
      [[fallthrough]];
    case abi::ContextAct::Forget:
      objects_.erase(object);
      return own.pointer();
    case abi::ContextAct::Join:
      if (is_in_one) {
        if (put != objects_.end()) own.join(put->second, most_recent);
        return own.pointer();
      }
      [[fallthrough]];
    case abi::ContextAct::Take:
      if (put == objects_.end()) {
        own.leave();
      } else {
        own.set_all(put->second);
      }
      return own.pointer();
    case abi::ContextAct::Lose:
      objects_.clear();
      own.leave();
      return uint64_t{0};
  }
  return fail(ErrorCode::Refused, "no such act on contexts");
}

}  // namespace clew::isa
