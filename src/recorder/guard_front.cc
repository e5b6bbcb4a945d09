// SPDX-License-Identifier: Apache-2.0
#include "recorder/guard_front.h"

#include <numeric>
#include <utility>

namespace clew::recorder {

namespace {

class NextFinder {
 public:
  NextFinder(std::span<const GuardPaths* const> modules, const GuardFront& front,
             const GuardCallee* callee, uint32_t stop)
      : modules_(modules),
        front_(front),
        callee_(callee),
        stop_(stop),
        paths_(*modules[front.module]),
        flow_(paths_.flow(front.function)),
        seen_(flow_.nodes().size()) {}

  GuardNext run() {
    if (front_.is_unknown) return anything();
    if (!front_.callee) {
      add(front_.behind ? flow_.nodes()[*front_.behind].behind : flow_.entry());
    } else {
      next_.may_unwind = true;
      for (const uint32_t call : front_.calls) {
        if (may_enter_again(call)) next_.calls.push_back(call);
        for (const uint32_t block : paths_.behind_call(front_.function, call))
          add(block);
      }
    }
    while (!pending_.empty()) {
      const uint32_t block = pending_.back();
      pending_.pop_back();
      look_at(block);
    }
    return std::move(next_);
  }

 private:
  [[nodiscard]] GuardNext anything() const {
    GuardNext next{.may_end = true, .may_unwind = true, .may_stop = stop_ != kNone};
    if (callee_ == nullptr) return next;
    next.calls.resize(flow_.nodes().size());
    std::iota(next.calls.begin(), next.calls.end(), 0U);
    return next;
  }

  void add(uint32_t block) {
    if (block == kNone || seen_[block]) return;
    seen_[block] = true;
    pending_.push_back(block);
  }

  void look_at(uint32_t block) {
    next_.may_stop |= block == stop_;
    if (paths_.is_site(front_.function, block)) return;
    for (const uint32_t twice : paths_.resumes(front_.function))
      add(twice);
    if (flow_.nodes()[block].call == CallKind::None) {
      for (const Way& way : flow_.ways_of(block)) {
        next_.may_end |= way.kind != WayKind::Block;
        if (way.kind == WayKind::Block) add(way.block);
      }
      return;
    }
    if (callee_ != nullptr && may_enter(block)) next_.calls.push_back(block);
    if (paths_.is_told(front_.function, block)) return;
    next_.may_unwind = true;
    for (const uint32_t behind : paths_.behind_call(front_.function, block))
      add(behind);
  }

  [[nodiscard]] bool may_enter(uint32_t block) const {
    const auto frame = paths_.callee_frame(front_.function, block, front_.frame);
    const bool has_both = frame && callee_->frame;
    if (!paths_.is_told(front_.function, block)) return !has_both || *callee_->frame <= *frame;
    return callee_->module == front_.module && callee_->function == flow_.nodes()[block].callee &&
           (!has_both || *callee_->frame == *frame);
  }

  // What the call has led to has called once more, or its last callee has jumped.
  [[nodiscard]] bool may_enter_again(uint32_t block) const {
    if (callee_ == nullptr) return false;
    if (!paths_.is_told(front_.function, block)) return may_enter(block);
    const auto frame = paths_.callee_frame(front_.function, block, front_.frame);
    if (frame && callee_->frame && *callee_->frame > *frame) return false;
    return modules_[front_.callee->module]->may_tail(front_.callee->function);
  }

  std::span<const GuardPaths* const> modules_;
  const GuardFront& front_;
  const GuardCallee* callee_;
  uint32_t stop_;
  const GuardPaths& paths_;
  const Flow& flow_;
  std::vector<bool> seen_;
  std::vector<uint32_t> pending_;
  GuardNext next_;
};

}  // namespace

GuardNext next_of(std::span<const GuardPaths* const> modules, const GuardFront& front,
                  const GuardCallee* callee, uint32_t stop) {
  return NextFinder(modules, front, callee, stop).run();
}

}  // namespace clew::recorder
