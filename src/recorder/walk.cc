// SPDX-License-Identifier: Apache-2.0
#include "recorder/walk.h"

#include <algorithm>
#include <utility>

namespace clew::recorder {

namespace {

struct Activation {
  uint32_t function = kNone;
  uint32_t call = kNone;  // The block whose call is in progress; kNone: none, or not known which.
};

// What the next record is expected to be.
enum class Expected : uint8_t {
  Head,   // Of the innermost activation: the block `place_`.
  Entry,  // Of the function `place_`.
  Any,    // Control is in code that is not copied.
  Lost,   // Nothing is known.
};

class Walker {
 public:
  Walker(const ModulePaths& module, const ThreadRecords& records)
      : module_(module), records_(records) {}

  Walk run() {
    const auto& words = records_.words;
    std::optional<DagName> name = words.empty() ? std::nullopt : name_of(words[0]);
    for (size_t i = 0; i < words.size() && !walk_.is_cut; ++i) {
      const bool is_last = i + 1 == words.size();
      const std::optional<DagName> next = is_last ? std::nullopt : name_of(words[i + 1]);
      if (name) {
        behind_ = {next, is_last ? records_.stopped_at : std::nullopt};
        record(*name, abi::path_bits(words[i]));
      } else {
        ++walk_.gaps;
        pending_ |= kGap;
        expected_ = Expected::Lost;
      }
      name = next;
    }
    return std::move(walk_);
  }

 private:
  [[nodiscard]] std::optional<DagName> name_of(uint32_t word) const {
    if (!abi::is_dag_record(word) || abi::dag_id(word) < records_.first_id) return std::nullopt;
    return module_.name_of(abi::dag_id(word) - records_.first_id);
  }

  void record(const DagName& name, uint32_t bits) {
    ++walk_.records;
    const Paths& paths = module_.of(name.function);
    const uint32_t head = paths.head_of(name.dag);
    place(name, head);
    Path path = paths.behind_head(name.dag, bits, behind_);
    if (path.end == PathEnd::Stopped) check_stop(paths.behind_head(name.dag, bits, {}));
    if (path.end == PathEnd::Misfit) {
      return misfit(paths.behind_head(name.dag, bits, {}));
    }
    if (path.end == PathEnd::Violation) {
      ++walk_.violations;
      pending_ |= kViolation;
      path.blocks = {head};
    }
    add(path);
    go_on(path);
  }

  // What comes behind a path is not what is there. It is as if nothing were.
  void misfit(const Path& path) {
    const bool is_stop = behind_.stopped_at.has_value();
    add(path);
    // Control may have stopped further out, or outside.
    if (is_stop) return go_on(path);
    ++walk_.misfits;
    walk_.end = path.end;
    lose();
  }

  void lose() {
    expected_ = Expected::Lost;
    if (!stack_.empty()) stack_.back().call = kNone;
  }

  void add(const Path& path) {
    if (path.is_ambiguous) ++walk_.ambiguous;
    for (const uint32_t block : path.blocks) {
      if (walk_.steps.size() == kStepsMax) {
        walk_.is_cut = true;
        return;
      }
      const auto depth = base_ + static_cast<int32_t>(stack_.size());
      walk_.steps.push_back({stack_.back().function, block, depth, std::exchange(pending_, 0)});
    }
  }

  void expect(Expected what, uint32_t place = kNone) {
    expected_ = what;
    place_ = place;
  }

  // Where control went behind a path of the innermost activation, whose blocks were added.
  void go_on(Path path) {
    while (true) {
      walk_.end = path.end;
      switch (path.end) {
        case PathEnd::Head:
          return expect(Expected::Head, path.to);
        case PathEnd::Call:
          stack_.back().call = path.blocks.back();
          return expect(Expected::Entry, path.to);
        case PathEnd::CallOut:
        case PathEnd::Trap:
          stack_.back().call = path.blocks.back();
          return expect(Expected::Any);
        case PathEnd::Tail:
          stack_.pop_back();
          return expect(Expected::Entry, path.to);
        case PathEnd::TailOut:
          stack_.pop_back();
          return expect(Expected::Any);
        case PathEnd::Return:
          stack_.pop_back();
          if (!come_back(path)) return;
          continue;
        case PathEnd::Stopped:
        case PathEnd::Open:
        case PathEnd::Misfit:
        case PathEnd::Violation:
          return lose();
      }
    }
  }

  // The callee of the innermost activation has returned. True: it went on without a record, and
  // `path` says how.
  bool come_back(Path& path) {
    expect(Expected::Any);
    if (stack_.empty() || walk_.is_cut) return false;
    Activation& caller = stack_.back();
    const Paths& paths = module_.of(caller.function);
    if (caller.call == kNone) {
      lose();
      return false;
    }
    const Node& node = paths.flow().nodes()[caller.call];
    if (node.call != CallKind::Copied) return false;  // It called back, and may do so again.
    caller.call = kNone;
    if (node.behind == kNone || paths.dag_of(node.behind) != kNone) {
      expect(node.behind == kNone ? Expected::Lost : Expected::Head, node.behind);
      return false;
    }
    path = paths.behind_call(node.behind, behind_);
    if (path.end == PathEnd::Stopped) check_stop(paths.behind_call(node.behind, {}));
    if (path.end != PathEnd::Misfit) {
      add(path);
      return true;
    }
    path = paths.behind_call(node.behind, {});
    add(path);
    if (behind_.stopped_at) return true;
    ++walk_.misfits;
    lose();
    return false;
  }

  // Control is at the stop now, on a path of the innermost activation. Had that one returned, could
  // it be at the same instruction in one further out, also without a record?
  void check_stop(const Path& whole) {
    Path path = whole;
    for (size_t i = stack_.size(); path.end == PathEnd::Return && i > 1; --i) {
      if (stack_.size() - i == kUnwindMax) return;
      const Activation& caller = stack_[i - 2];
      if (caller.call == kNone) return;
      const Paths& paths = module_.of(caller.function);
      const uint32_t behind = paths.flow().nodes()[caller.call].behind;
      if (behind == kNone || paths.dag_of(behind) != kNone) return;
      if (paths.behind_call(behind, behind_).end == PathEnd::Stopped) {
        ++walk_.ambiguous;
        return;
      }
      path = paths.behind_call(behind, {});
    }
  }

  // Makes the record's activation the innermost one.
  void place(const DagName& name, uint32_t head) {
    switch (std::exchange(expected_, Expected::Lost)) {
      case Expected::Head:
        if (!stack_.empty() && stack_.back().function == name.function && head == place_) return;
        break;
      case Expected::Entry:
        if (name.is_entry && name.function == place_)
          return stack_.push_back({.function = name.function});
        break;
      case Expected::Any:
        if (!stack_.empty() && goes_on_at(stack_.back(), name, head)) {
          stack_.back().call = kNone;
          return;
        }
        if (name.is_entry && !stack_.empty()) {
          return stack_.push_back({.function = name.function});
        }
        break;
      case Expected::Lost:
        break;
    }
    find_place(name, head);
  }

  [[nodiscard]] bool goes_on_at(const Activation& one, const DagName& name, uint32_t head) const {
    if (one.function != name.function || one.call == kNone) return false;
    return module_.of(one.function).flow().nodes()[one.call].behind == head;
  }

  [[nodiscard]] bool may_go_on_at(const Activation& one, const DagName& name, uint32_t head) const {
    if (one.function != name.function || name.is_entry) return false;
    if (one.call == kNone || goes_on_at(one, name, head)) return true;
    const Flow& flow = module_.of(one.function).flow();
    return may_land_at(flow, one.call, head) ||
           std::binary_search(flow.resumes().begin(), flow.resumes().end(), head);
  }

  static bool may_land_at(const Flow& flow, uint32_t call, uint32_t head) {
    const Node& node = flow.nodes()[call];
    if (!node.may_land_anywhere) return node.landing == head;
    return std::binary_search(flow.landing_pads().begin(), flow.landing_pads().end(), head);
  }

  void find_place(const DagName& name, uint32_t head) {
    const size_t last = stack_.size() > kUnwindMax ? stack_.size() - kUnwindMax : 0;
    for (size_t i = stack_.size(); i > last; --i) {
      if (!may_go_on_at(stack_[i - 1], name, head)) continue;
      const bool is_unwound = stack_[i - 1].call != kNone;
      (is_unwound ? walk_.unwound : walk_.uncertain) += 1;
      pending_ |= is_unwound ? kUnwound : kUncertain;
      stack_.resize(i);
      stack_.back().call = kNone;
      return;
    }
    // The first record of all is where nothing is known before.
    if (walk_.records > 1 || pending_ != 0) {
      pending_ |= kUncertain;
      ++walk_.uncertain;
    }
    if (!name.is_entry && walk_.records > 1) {
      stack_.clear();
      --base_;
    }
    stack_.push_back({.function = name.function});
  }

  const ModulePaths& module_;
  const ThreadRecords& records_;
  Walk walk_;
  std::vector<Activation> stack_;  // The innermost last.
  int32_t base_ = -1;              // The depth of who called the first of them.
  Expected expected_ = Expected::Lost;
  uint32_t place_ = kNone;
  uint8_t pending_ = 0;  // Marks of the next step.
  Behind behind_;        // What is known behind the record.
};

}  // namespace

Walk walk(const ModulePaths& module, const ThreadRecords& records) {
  return Walker(module, records).run();
}

ModulePaths::ModulePaths(const copy::Facts& facts, const copy::ModuleProof& proof,
                         const Copied& copied, const ModuleTiling& tiling)
    : tiling_(tiling) {
  paths_.reserve(proof.proved.size());
  for (size_t i = 0; i < proof.proved.size(); ++i) {
    flows_.push_back(std::make_unique<Flow>(facts, proof.proved[i], copied));
    paths_.emplace_back(proof.proved[i].blocks, *flows_.back(), tiling.functions[i]);
  }
}

std::optional<DagName> ModulePaths::name_of(uint32_t dag) const {
  if (dag >= tiling_.dag_count) return std::nullopt;
  const auto& first = tiling_.first_dag;
  const auto behind = std::upper_bound(first.begin(), first.end(), dag);
  const auto function = static_cast<uint32_t>(behind - first.begin()) - 1;
  const uint32_t number = dag - first[function];
  return DagName{function, number, number == paths_[function].entry_dag()};
}

}  // namespace clew::recorder
