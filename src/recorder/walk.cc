// SPDX-License-Identifier: Apache-2.0
#include "recorder/walk.h"

#include <algorithm>
#include <utility>

#include "recorder/signal_records.h"

namespace clew::recorder {

namespace {

// A DAG of one of the modules.
struct Name {
  uint32_t module = 0;
  DagName dag;
};

struct Activation {
  uint32_t module = 0;
  uint32_t function = kNone;
  uint32_t call = kNone;  // The block whose call is in progress; kNone: none, or not known which.
  // A handler has interrupted it, and what it sets later goes into the handler's last record,
  bool sets_later = false;
  // or into its own. So many blocks of that path were added; 0: it is not interrupted so.
  size_t added = 0;
  uint32_t dag = kNone;
  uint32_t bits = 0;
  uint64_t interrupted_at = 0;
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
  Walker(std::span<const WalkedModule> modules, const ThreadRecords& records)
      : modules_(modules), records_(records) {}

  Walk run() {
    const std::vector<Record> all = parse_records(records_.words);
    const size_t left_out = records_.words.size() - words_in(all);
    walk_.begins.assign(left_out, 0);
    for (size_t i = 0; i < all.size() && !walk_.is_cut; ++i) {
      walk_.begins.insert(walk_.begins.end(), all[i].words, walk_.steps.size());
      is_last_ = i + 1 == all.size();
      look_behind(is_last_ ? nullptr : &all[i + 1]);
      const std::optional<Name> name = name_of(all[i]);
      if (name) {
        record(*name, abi::path_bits(all[i].word));
      } else if (all[i].kind == RecordKind::Signal) {
        interrupt(all[i]);
      } else {
        ++walk_.gaps;
        pending_ |= kGap;
        expected_ = Expected::Lost;
        walk_.end = PathEnd::Open;
      }
    }
    return std::move(walk_);
  }

 private:
  [[nodiscard]] std::optional<Name> name_of(const Record& record) const {
    if (record.kind != RecordKind::Dag) return std::nullopt;
    const uint32_t word = record.word;
    for (uint32_t i = 0; i < modules_.size(); ++i) {
      if (abi::dag_id(word) < modules_[i].first_id) continue;
      const auto dag = modules_[i].paths->name_of(abi::dag_id(word) - modules_[i].first_id);
      if (dag) return Name{i, *dag};
    }
    return std::nullopt;
  }

  [[nodiscard]] const Paths& paths_of(const Activation& one) const {
    return modules_[one.module].paths->of(one.function);
  }

  // Null: nothing is behind the record.
  void look_behind(const Record* next) {
    next_ = next == nullptr ? std::nullopt : name_of(*next);
    interrupted_at_.reset();
    if (next != nullptr && next->kind == RecordKind::Signal) interrupted_at_ = place_of(*next);
  }

  [[nodiscard]] std::optional<WalkedPlace> place_of(const Record& signal) const {
    if (signal.place == 0 || !records_.place_of) return std::nullopt;
    return records_.place_of(signal.place);
  }

  // What is known behind the record, as far as an activation's module can say it. A record of
  // another module is none of this one's DAGs.
  [[nodiscard]] Behind behind(const Activation& one) const {
    Behind known;
    if (next_) known.next = next_->module == one.module ? next_->dag : DagName{};
    if (is_last_ && records_.stopped_in == one.module) known.stopped_at = records_.stopped_at;
    if (interrupted_at_ && interrupted_at_->module == one.module) {
      known.stopped_at = interrupted_at_->address;
      known.is_interrupted = true;
    }
    return known;
  }

  void record(const Name& name, uint32_t bits) {
    ++walk_.records;
    const Paths& paths = modules_[name.module].paths->of(name.dag.function);
    const uint32_t head = paths.head_of(name.dag.dag);
    place(name, head);
    if (!is_entry_) pending_ &= static_cast<uint8_t>(~kHandler);
    Activation& top = stack_.back();
    top.sets_later = false;
    top.added = 0;
    const Behind known = behind(stack_.back());
    Path path = paths.behind_head(name.dag.dag, bits, known);
    if (bits != 0 && may_have_others_bits(path)) return leave_open(head);
    if (path.end == PathEnd::Stopped) check_stop(paths.behind_head(name.dag.dag, bits, {}));
    if (path.end == PathEnd::Misfit) {
      return misfit(paths.behind_head(name.dag.dag, bits, {}), known.stopped_at.has_value());
    }
    if (path.end == PathEnd::Violation) {
      ++walk_.violations;
      pending_ |= kViolation;
      path.blocks = {head};
    }
    add(path);
    if (known.is_interrupted && path.end == PathEnd::Stopped) {
      top.added = path.blocks.size();
      top.dag = name.dag.dag;
      top.bits = bits;
      top.interrupted_at = *known.stopped_at;
    }
    go_on(path);
  }

  // Bits that an activation below has set when the handler had returned to it.
  [[nodiscard]] bool may_have_others_bits(const Path& path) const {
    switch (path.end) {
      case PathEnd::Head:
      case PathEnd::Call:
      case PathEnd::Tail:
      case PathEnd::Stopped:
        return false;
      case PathEnd::Return:
      case PathEnd::CallOut:
      case PathEnd::TailOut:
      case PathEnd::Trap:
      case PathEnd::Open:
      case PathEnd::Misfit:
      case PathEnd::Violation:
        break;
    }
    const size_t last = stack_.size() > kUnwindMax ? stack_.size() - kUnwindMax : 0;
    for (size_t i = stack_.size(); i > last; --i) {
      const Activation& one = stack_[i - 1];
      if (one.sets_later) return true;
      if (next_ && is_of(one, *next_) && !next_->dag.is_entry) return false;
    }
    return false;
  }

  // Of a record whose bits say nothing.
  void leave_open(uint32_t head) {
    add({.blocks = {head}});
    ++walk_.uncertain;
    pending_ |= kUncertain;
    walk_.end = PathEnd::Open;
    lose();
  }

  // A handler begins.
  void interrupt(const Record& signal) {
    const auto place = place_of(signal);
    const bool is_there = std::exchange(walk_.end, PathEnd::Open) == PathEnd::Stopped && place &&
                          !stack_.empty() && stack_.back().module == place->module;
    if (!is_there && expected_ != Expected::Any) {
      ++walk_.uncertain;
      pending_ |= kUncertain;
    }
    pending_ |= kHandler;
    expect(Expected::Any);
    if (!is_there || walk_.steps.empty()) return;
    walk_.parts.push_back({walk_.steps.size() - 1, place->address});
    Activation& top = stack_.back();
    top.sets_later = signal.is_in_memory();
    if (top.sets_later) top.added = 0;
    const uint32_t block = walk_.steps.back().block;
    const CallKind call = paths_of(top).flow().nodes()[block].call;
    if (call != CallKind::None && call != CallKind::Copied) top.call = block;
  }

  // What comes behind a path is not what is there. It is as if nothing were. Where a handler has
  // interrupted it, control may not have come to its end.
  void misfit(Path path, bool is_stop) {
    if (!is_stop && path.sure < path.blocks.size()) path.blocks.resize(path.sure);
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
      const Activation& at = stack_.back();
      walk_.steps.push_back({.module = at.module,
                             .function = at.function,
                             .block = block,
                             .depth = depth,
                             .marks = std::exchange(pending_, uint8_t{0}),
                             .is_entry = std::exchange(is_entry_, false)});
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
      place_in_ = stack_.back().module;
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
          expect(Expected::Any);
          if (stack_.empty() || !goes_on_to_stop(stack_.back(), path)) return;
          continue;
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
    const Paths& paths = paths_of(caller);
    if (caller.call == kNone) {
      if (goes_on_to_stop(caller, path)) return true;
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
    const Behind known = behind(caller);
    path = paths.behind_call(node.behind, known);
    if (path.end == PathEnd::Stopped) check_stop(paths.behind_call(node.behind, {}));
    if (path.end != PathEnd::Misfit) {
      add(path);
      return true;
    }
    path = paths.behind_call(node.behind, {});
    add(path);
    if (known.stopped_at) return true;
    ++walk_.misfits;
    lose();
    return false;
  }

  // A handler has returned to the activation, which has not come to its next record.
  bool goes_on_to_stop(Activation& one, Path& path) {
    const size_t added = std::exchange(one.added, 0);
    const Behind known = behind(one);
    if (added == 0 || !known.stopped_at || known.is_interrupted) return false;
    path = paths_of(one).behind_head(one.dag, one.bits, known);
    if (path.end != PathEnd::Stopped || path.blocks.size() < added) return false;
    // In the same call yet.
    const Node& last = paths_of(one).flow().nodes()[path.blocks.back()];
    if (*known.stopped_at == one.interrupted_at && last.call != CallKind::None) return false;
    path.blocks.erase(path.blocks.begin(), path.blocks.begin() + static_cast<ptrdiff_t>(added - 1));
    walk_.parts.push_back({walk_.steps.size(), one.interrupted_at, true});
    add(path);
    return true;
  }

  // Control is at the stop now, on a path of the innermost activation. Had that one returned, could
  // it be at the same instruction in one further out, also without a record?
  void check_stop(const Path& whole) {
    Path path = whole;
    for (size_t i = stack_.size(); path.end == PathEnd::Return && i > 1; --i) {
      if (stack_.size() - i == kUnwindMax) return;
      const Activation& caller = stack_[i - 2];
      if (caller.call == kNone) return;
      const Paths& paths = paths_of(caller);
      const uint32_t block = paths.flow().nodes()[caller.call].behind;
      if (block == kNone || paths.dag_of(block) != kNone) return;
      if (paths.behind_call(block, behind(caller)).end == PathEnd::Stopped) {
        ++walk_.ambiguous;
        return;
      }
      path = paths.behind_call(block, {});
    }
  }

  // Makes the record's activation the innermost one.
  void place(const Name& name, uint32_t head) {
    switch (std::exchange(expected_, Expected::Lost)) {
      case Expected::Head:
        if (!stack_.empty() && is_of(stack_.back(), name) && head == place_) return;
        break;
      case Expected::Entry:
        if (name.dag.is_entry && name.dag.function == place_ && name.module == place_in_)
          return enter(name);
        break;
      case Expected::Any:
        if (!stack_.empty() && goes_on_at(stack_.back(), name, head)) {
          stack_.back().call = kNone;
          return;
        }
        if (name.dag.is_entry && !stack_.empty()) return enter(name);
        break;
      case Expected::Lost:
        break;
    }
    find_place(name, head);
  }

  void enter(const Name& name) {
    is_entry_ = name.dag.is_entry;
    stack_.push_back({.module = name.module, .function = name.dag.function});
  }

  static bool is_of(const Activation& one, const Name& name) {
    return one.function == name.dag.function && one.module == name.module;
  }

  [[nodiscard]] bool goes_on_at(const Activation& one, const Name& name, uint32_t head) const {
    if (!is_of(one, name) || one.call == kNone) return false;
    return paths_of(one).flow().nodes()[one.call].behind == head;
  }

  [[nodiscard]] bool may_go_on_at(const Activation& one, const Name& name, uint32_t head) const {
    if (!is_of(one, name) || name.dag.is_entry) return false;
    if (one.call == kNone || goes_on_at(one, name, head)) return true;
    const Flow& flow = paths_of(one).flow();
    return may_land_at(flow, one.call, head) ||
           std::binary_search(flow.resumes().begin(), flow.resumes().end(), head);
  }

  static bool may_land_at(const Flow& flow, uint32_t call, uint32_t head) {
    const Node& node = flow.nodes()[call];
    if (!node.may_land_anywhere) return node.landing == head;
    return std::binary_search(flow.landing_pads().begin(), flow.landing_pads().end(), head);
  }

  void find_place(const Name& name, uint32_t head) {
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
    if (!name.dag.is_entry && walk_.records > 1) {
      stack_.clear();
      --base_;
    }
    enter(name);
  }

  std::span<const WalkedModule> modules_;
  const ThreadRecords& records_;
  Walk walk_;
  std::vector<Activation> stack_;  // The innermost last.
  int32_t base_ = -1;              // The depth of who called the first of them.
  Expected expected_ = Expected::Lost;
  uint32_t place_ = kNone;
  uint32_t place_in_ = 0;                      // The module of place_.
  uint8_t pending_ = 0;                        // Marks of the next step.
  bool is_entry_ = false;                      // The next step is the first of its activation.
  bool is_last_ = false;                       // No word is behind the record.
  std::optional<Name> next_;                   // What is behind it.
  std::optional<WalkedPlace> interrupted_at_;  // If that is a signal, whose place is known.
};

}  // namespace

Walk walk(std::span<const WalkedModule> modules, const ThreadRecords& records) {
  return Walker(modules, records).run();
}

Walk walk(const ModulePaths& module, const ThreadRecords& records) {
  const WalkedModule alone{.paths = &module};
  return walk(std::span(&alone, 1), records);
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
