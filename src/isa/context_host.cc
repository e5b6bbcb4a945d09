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
    for (uint32_t i = abi::kContextLost; i < words.size(); ++i)
      set(i, words[i]);
  }
  [[nodiscard]] uint64_t pointer() const {
    return word(abi::kContextRequest) == 0 ? 0 : layout_.offset;
  }
  [[nodiscard]] bool is_in_doubt() const {
    return pointer() == 0 && word(abi::kContextNumber) == abi::kContextInDoubt;
  }
  void leave() {
    set(abi::kContextRequest, 0);
    set(abi::kContextNumber, 0);
  }
  void doubt() {
    set(abi::kContextRequest, 0);
    set(abi::kContextNumber, abi::kContextInDoubt);
  }

  void begin(uint64_t request) {
    for (uint32_t i = abi::kContextNumber; i < layout_.words(); ++i)
      set(i, 0);
    set(abi::kContextRequest, request);
  }

  abi::ContextOutcome join(const std::vector<uint64_t>& other, uint64_t kinds) {
    if (other[abi::kContextRequest] != word(abi::kContextRequest))
      return abi::ContextOutcome::Other;
    set(abi::kContextNumber, std::max(word(abi::kContextNumber), other[abi::kContextNumber]));
    for (uint32_t bag = 0; bag < layout_.bags; ++bag) {
      const uint32_t at = abi::kContextBags + bag * layout_.bag_words;
      const abi::BagKind kind = abi::bag_kind(kinds, bag);
      const bool is_same = kind == abi::BagKind::Cells && word(at + 1) == other[at + 1];
      if (other[at] == 0 || (word(at) != 0 && is_same)) continue;
      if (word(at) != 0 && kind == abi::BagKind::Cells) {
        doubt();
        return abi::ContextOutcome::Overlap;
      }
      if (word(at) != 0 && !is_better(other, at, kind)) continue;
      for (uint32_t i = at; i < at + layout_.bag_words; ++i)
        set(i, other[i]);
    }
    return abi::ContextOutcome::Done;
  }

 private:
  [[nodiscard]] bool is_better(const std::vector<uint64_t>& other, uint32_t at,
                               abi::BagKind kind) const {
    const auto own_place = std::pair(word(at), word(at + 1));
    const auto place = std::pair(other[at], other[at + 1]);
    return kind == abi::BagKind::MostRecent ? place > own_place : place < own_place;
  }

  const abi::ContextLayout& layout_;
  Window& window_;
};

using Objects = std::map<uint64_t, std::vector<uint64_t>>;

// Takes, or joins, what was put; of what is in doubt there are no words.
abi::ContextOutcome come_to(Context& own, const Objects& objects, const Arguments& arguments) {
  const auto [act, object, kinds, r4, r5] = arguments;
  const bool is_join = static_cast<abi::ContextAct>(act) == abi::ContextAct::Join;
  if (is_join && own.is_in_doubt()) return abi::ContextOutcome::InDoubt;
  const bool joins = is_join && own.pointer() != 0;
  const auto put = objects.find(object);
  const bool is_there = put != objects.end() && !put->second.empty();
  if (is_there && joins) return own.join(put->second, kinds);
  if (is_there) {
    own.set_all(put->second);
    return abi::ContextOutcome::Done;
  }
  if (put != objects.end()) {
    own.doubt();
  } else if (!joins) {
    own.leave();
  }
  return abi::ContextOutcome::Nothing;
}

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
  using abi::ContextAct;
  using abi::ContextOutcome;
  const auto [act, object, kinds, r4, r5] = arguments;
  Context own(layout, window);
  const bool is_in_one = own.pointer() != 0;
  auto outcome = ContextOutcome::Done;
  switch (static_cast<ContextAct>(act)) {
    case ContextAct::Begin:
      own.begin(++last_request_);
      return static_cast<uint64_t>(outcome);
    case ContextAct::End:
      own.leave();
      return static_cast<uint64_t>(outcome);
    case ContextAct::Put:
      if (is_in_one || own.is_in_doubt()) {
        objects_[object] = is_in_one ? own.all() : std::vector<uint64_t>{};
      } else {
        objects_.erase(object);
      }
      return static_cast<uint64_t>(outcome);
    case ContextAct::Doubt:
      objects_[object] = {};
      return static_cast<uint64_t>(outcome);
    case ContextAct::Take:
    case ContextAct::Join:
      outcome = come_to(own, objects_, arguments);
      return static_cast<uint64_t>(outcome);
    case ContextAct::Lose:
      objects_.clear();
      own.leave();
      return static_cast<uint64_t>(outcome);
  }
  return fail(ErrorCode::Refused, "no such act on contexts");
}

}  // namespace clew::isa
