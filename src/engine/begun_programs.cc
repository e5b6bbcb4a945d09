// SPDX-License-Identifier: Apache-2.0
#include "engine/begun_programs.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/clock_ns.h"
#include "engine/memory_need.h"
#include "inline/loader.h"
#include "plan/lowering.h"
#include "target/process.h"

namespace clew::engine {
namespace {

constexpr size_t kWaitingMax = 10'000;
// One without a loader, and one whose loader keeps no record, is looked at then.
constexpr std::chrono::milliseconds kWithoutLoader{20};
constexpr std::chrono::milliseconds kWithoutRecord{1000};
constexpr size_t kNameMax = 15;  // TASK_COMM_LEN, without the zero.

std::chrono::nanoseconds since(const BegunProgram& program) {
  const int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
  return std::chrono::nanoseconds(
      std::max<int64_t>(0, now_ns - static_cast<int64_t>(program.time_ns)));
}

// Of a source that names one file, which is no library: as the kernel names threads.
std::optional<std::string> program_of(const query::Source& source) {
  const std::string& module = source.module;
  const bool is_glob = module.find_first_of("*?[/") != std::string::npos;
  const bool is_library = module.starts_with("lib") || module.find(".so") != std::string::npos;
  if (module.empty() || is_glob || is_library) return std::nullopt;
  return module.substr(0, kNameMax);
}

std::optional<std::vector<std::string>> programs_of(const query::Query& query) {
  std::vector<std::string> names;
  for (const query::Source& source : query.sources) {
    if (!query::is_process_source(source.kind)) continue;
    auto name = program_of(source);
    if (!name) return std::nullopt;
    names.push_back(std::move(*name));
  }
  return names;
}

}  // namespace

BegunPrograms::BegunPrograms(Session session)
    : session_(std::move(session)), only_(programs_of(session_.plan.query)) {}

// By its name alone.
bool BegunPrograms::may_match(const BegunProgram& program) const {
  const bool is_named = program.has_module || !only_ ||
                        std::find(only_->begin(), only_->end(), program.name) != only_->end();
  return is_named && program.may_be_meant;
}

void BegunPrograms::note_ended(const BegunProgram& program) {
  if (may_match(program)) ++ended_;
}

void BegunPrograms::end() {
  for (BegunProgram& program : waiting_) {
    if (!may_match(program)) continue;
    ++(readiness_of(program) == Readiness::Gone ? ended_ : unlooked_);
  }
  waiting_.clear();
}

void BegunPrograms::add(std::vector<BegunProgram> programs) {
  for (BegunProgram& program : programs) {
    program.may_be_meant = !session_.is_meant || session_.is_meant(program.pid);
    // One that begins another one at once: only that is there.
    const auto before = std::find_if(waiting_.begin(), waiting_.end(),
                                     [&](const auto& one) { return one.pid == program.pid; });
    if (before != waiting_.end() && program.has_module) {
      before->has_module = true;
      continue;
    }
    if (before != waiting_.end()) {
      note_ended(*before);
      waiting_.erase(before);
    }
    if (waiting_.size() < kWaitingMax) {
      waiting_.push_back(std::move(program));
    } else {
      note_refused({ErrorCode::Limit, "too many begin at once"});
    }
  }
}

Readiness readiness_of(BegunProgram& program) {
  const auto life = target::read_life(program.pid);
  if (life && !program.life) program.life = life->incarnation;
  const bool is_there = life && life->incarnation == program.life;
  if (!is_there) return Readiness::Gone;
  const bool is_over = life->state == 'Z' || life->state == 'X';  // Of its first thread.
  if (is_over && target::memory_holder(program.pid) == program.pid) return Readiness::Gone;
  const auto values = inline_::read_auxiliary(program.pid);
  if (!values) return Readiness::Gone;
  if (values->entry == 0) return Readiness::Early;
  const auto loader = inline_::read_loader_state(program.pid);
  if (loader && loader->notice_address != 0 && loader->consistent) return Readiness::Ready;
  const bool is_late =
      since(program) > (values->loader_base != 0 ? kWithoutRecord : kWithoutLoader);
  return is_late ? Readiness::Ready : Readiness::Early;
}

// Null when nothing in it matches, or when it is about to begin the next program.
Expected<std::unique_ptr<Tracee>> BegunPrograms::arm(BegunProgram& program,
                                                     const inline_::LockWait& wait) {
  const pid_t pid = program.pid;
  auto tracee = CLEW_TRY(Tracee::of_process(pid, session_.shared));
  CLEW_TRY(tracee->find_sites(session_.plan.query, true));
  if (tracee->sites().sites.empty() || readiness_of(program) != Readiness::Ready) return nullptr;
  if (session_.checks_memory) {
    CLEW_TRY(check_memory(std::span(&pid, 1), session_.lowered.layout));
  }
  tracee->group_sites(session_.plan, session_.lowered, session_.grouping, 0);
  tracee->set_wait(wait);
  tracee->set_may_end();
  CLEW_TRY(tracee->attach(session_.plan, session_.lowered, session_.grouping, true));
  return tracee;
}

void BegunPrograms::arm_ready(const inline_::LockWait& wait, const Takers& takers) {
  for (auto program = waiting_.begin(); program != waiting_.end();) {
    const Readiness now = readiness_of(*program);
    if (now == Readiness::Early) {
      ++program;
      continue;
    }
    BegunProgram begun = std::move(*program);
    program = waiting_.erase(program);
    if (now == Readiness::Gone) {
      note_ended(begun);
      continue;
    }
    // Whose it is may have changed since it was seen.
    if (takers.is_traced(begun.pid) || (session_.is_meant && !session_.is_meant(begun.pid)))
      continue;
    if (takers.room() == 0) {
      note_refused({ErrorCode::Limit, "the session traces no more processes"});
      continue;
    }
    arm_one(begun, wait, takers);
  }
}

void BegunPrograms::arm_one(BegunProgram& begun, const inline_::LockWait& wait,
                            const Takers& takers) {
  auto tracee = arm(begun, wait);
  // What is about to end, or to begin the next program, has no modules any more in which anything
  // could match.
  const bool has_none = !tracee || *tracee == nullptr;
  const bool has_left = has_none && readiness_of(begun) != Readiness::Ready;
  if (has_left || (!tracee && tracee.error().code == ErrorCode::NotFound)) {
    note_ended(begun);
  } else if (!tracee) {
    note_refused(tracee.error());
  } else if (*tracee != nullptr) {
    note_armed(begun);
    takers.take(std::move(*tracee));
  }
}

void BegunPrograms::note_armed(const BegunProgram& program) {
  ++armed_;
  shortest_ = std::min(shortest_, since(program));
  longest_ = std::max(longest_, since(program));
}

void BegunPrograms::note_refused(const Error& error) {
  if (refused_++ == 0) first_reason_ = error.message;
}

std::vector<std::string> BegunPrograms::told() const {
  // A module is looked for on the whole machine where somebody says which processes are meant.
  const bool is_machine = session_.is_meant != nullptr;
  const auto programs = [is_machine](uint64_t count) {
    const char* const plural = count == 1 ? "" : "s";
    return is_machine ? fmt::format("{} process{} that got the module during the session", count,
                                    count == 1 ? "" : "es")
                      : fmt::format("{} program{} that processes began by exec", count, plural);
  };
  const auto delay = [this] {
    const auto ms = [](auto time) {
      return std::chrono::duration<double, std::milli>(time).count();
    };
    if (armed_ == 1) return fmt::format("{:.1f} ms", ms(longest_));
    return fmt::format("{:.1f} to {:.1f} ms", ms(shortest_), ms(longest_));
  };
  std::vector<std::string> all;
  if (armed_ != 0) {
    all.push_back(fmt::format("{} had probes only after {}: what was called before is missing",
                              programs(armed_), delay()));
  }
  if (ended_ != 0) {
    all.push_back(fmt::format("{} ended before anybody could look: what matches in them is missing",
                              programs(ended_)));
  }
  if (unlooked_ != 0) {
    all.push_back(
        fmt::format("{} had no probes yet when the session ended: what matches in them is missing",
                    programs(unlooked_)));
  }
  if (refused_ != 0) {
    all.push_back(fmt::format("{} could not be traced: {}", programs(refused_), first_reason_));
  }
  return all;
}

}  // namespace clew::engine
