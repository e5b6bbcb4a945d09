// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/late_probes.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

namespace clew::engine {
namespace {

constexpr size_t kSeenFilesMax = size_t{1} << 16;  // Seen ones are forgotten then.
constexpr size_t kLooksMax = 256;                  // Files of one turn.

bool names_many(std::string_view text) {
  return text.find_first_of("*?[") != std::string_view::npos;
}

// "python123" -> 123; 0 when no number ends it.
pid_t pid_of(std::string_view provider) {
  size_t begin = provider.size();
  while (begin > 0 && provider[begin - 1] >= '0' && provider[begin - 1] <= '9')
    --begin;
  pid_t pid = 0;
  (void)std::from_chars(provider.data() + begin, provider.data() + provider.size(), pid);
  return pid;
}

bool looks_into_processes(const query::d::ProbeDescription& description) {
  const std::string& provider = description.provider;
  if (description.id || provider.empty() || provider == "*") return false;
  return names_many(provider) || pid_of(provider) != 0;
}

}  // namespace

bool LateProbes::may_come(const CompiledScript& compiled) {
  const auto& clauses = compiled.script.clauses;
  return std::any_of(clauses.begin(), clauses.end(), [](const query::d::Clause& clause) {
    return std::any_of(clause.probes.begin(), clause.probes.end(), looks_into_processes);
  });
}

LateProbes::LateProbes(const CompiledScript& compiled, kernel::Catalogue& catalogue,
                       kernel::MachineSession& session, const InlineProbes& inline_probes,
                       DtraceConsole& console)
    : catalogue_(catalogue), session_(session), inline_probes_(inline_probes), console_(console) {
  for (uint32_t i = 0; i < compiled.script.clauses.size(); ++i) {
    for (const auto& description : compiled.script.clauses[i].probes) {
      if (!looks_into_processes(description)) continue;
      follow(description, {.clause = i, .is_for_process = compiled.wants_process(i)});
    }
  }
  for (const kernel::MachineEnabling& enabling : compiled.enablings)
    enabled_.insert(enabling.probe.id);
  remember_inline(compiled);
}

void LateProbes::remember_inline(const CompiledScript& compiled) {
  for (const uint32_t index : inline_probes_.enablings()) {
    const kernel::Probe& probe = compiled.enablings[index].probe;
    const bool is_followed = inline_probes_.follows(static_cast<pid_t>(probe.pid));
    struct stat file = {};
    if (is_followed || stat(probe.path.c_str(), &file) != 0) continue;
    inline_files_.emplace(static_cast<pid_t>(probe.pid), file.st_ino);
  }
}

// A file that has been closed meanwhile took its inline probes along; a second copy of it never had
// any.
void LateProbes::tell_loaded_again(const kernel::ProcessNotice& notice) {
  const target::Mapping& mapping = notice.mapping;
  if (inline_files_.erase({notice.pid, mapping.inode}) == 0) return;
  console_.message(
      fmt::format("warning: process {} has loaded {} again: its probes, which were inline, are "
                  "missing there (-x useruprobes)",
                  notice.pid, mapping.path));
}

void LateProbes::follow(const query::d::ProbeDescription& description, Followed followed) {
  followed.pattern = {.provider = description.provider,
                      .module = description.module,
                      .function = description.function,
                      .name = description.name};
  const bool is_for_many = names_many(description.provider);
  followed.pid = is_for_many ? 0 : pid_of(description.provider);
  if (!is_for_many) named_.insert(followed.pid);
  has_globs_ = has_globs_ || is_for_many;
  followed_.push_back(std::move(followed));
}

void LateProbes::start() {
  auto notices = kernel::ProcessNotices::open(kernel::ProcessNotices::Wanted::Mappings);
  if (!notices) {
    return console_.message(
        fmt::format("warning: probes of programs and libraries that come later "
                    "will be missing: {}",
                    notices.error().message));
  }
  notices_.emplace(std::move(*notices));
  look_again();  // At what came since the descriptions were matched.
}

void LateProbes::add_descriptors(std::vector<pollfd>& descriptors) {
  if (!notices_) return;
  for (const int descriptor : notices_->descriptors())
    descriptors.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
}

std::chrono::nanoseconds LateProbes::patience() {
  return waiting_.patience();
}

Expected<void> LateProbes::turn() {
  if (!notices_) return {};
  enable_waiting();
  look();
  return {};
}

void LateProbes::look() {
  if (seen_.size() > kSeenFilesMax) seen_.clear();
  std::set<pid_t> changed;
  std::vector<kernel::MappedFile> files;
  bool is_lossy = false;
  for (const kernel::ProcessNotice& notice : notices_->read(is_lossy)) {
    const target::Mapping& mapping = notice.mapping;
    if (mapping.inode == 0) continue;  // Of the kernel: the vdso, and what uprobes bring.
    if (named_.count(notice.pid) != 0) changed.insert(notice.pid);
    tell_loaded_again(notice);
    if (!has_globs_ || mapping.is_deleted) continue;
    if (!seen_.insert({mapping.device_major, mapping.device_minor, mapping.inode}).second) continue;
    files.push_back({.pid = notice.pid,
                     .device_major = mapping.device_major,
                     .device_minor = mapping.device_minor,
                     .inode = mapping.inode,
                     .path = mapping.path});
  }
  if (is_lossy || files.size() > kLooksMax) {
    seen_.clear();  // Not all of them are looked at now.
    return look_again();
  }
  for (const pid_t pid : changed)
    look_at(pid);
  for (const kernel::MappedFile& file : files)
    look_at(file);
}

// At all processes.
void LateProbes::look_again() {
  std::vector<std::pair<uint32_t, const Followed*>> found;
  for (const Followed& one : followed_) {
    const auto ids = catalogue_.match(one.pattern);
    if (!ids) continue;  // The process is gone.
    for (const uint32_t id : *ids)
      found.emplace_back(id, &one);
  }
  enable(found);
}

void LateProbes::look_at(pid_t pid) {
  std::vector<std::pair<uint32_t, const Followed*>> found;
  for (const Followed& one : followed_) {
    if (one.pid != pid) continue;
    const auto ids = catalogue_.match_process(one.pattern, pid);
    if (!ids) continue;
    for (const uint32_t id : *ids)
      found.emplace_back(id, &one);
  }
  enable(found);
}

void LateProbes::look_at(const kernel::MappedFile& file) {
  std::vector<std::pair<uint32_t, const Followed*>> found;
  for (const Followed& one : followed_) {
    if (one.pid != 0) continue;
    const auto ids = catalogue_.match_file(one.pattern, file);
    if (!ids) continue;
    for (const uint32_t id : *ids)
      found.emplace_back(id, &one);
  }
  enable(found);
}

// Whether the clause runs nowhere but in processes that are there from the start; tells so.
bool LateProbes::stays_behind(const kernel::Probe& probe, const Followed& followed) {
  if (followed.is_for_process) {
    tell_missing("a function of an extension runs in processes that are there from the start");
    return true;
  }
  if (!inline_probes_.keeps(static_cast<pid_t>(probe.pid), followed.clause)) return false;
  tell_missing(fmt::format(
      "those of {} have clauses whose self-> variables are the threads' own (-x useruprobes, or a "
      "glob for the module, shares them)",
      probe.path));
  return true;
}

void LateProbes::enable(const std::vector<std::pair<uint32_t, const Followed*>>& found) {
  std::map<uint32_t, kernel::MachineEnabling> added;
  for (const auto& [id, followed] : found) {
    const kernel::Probe& probe = *catalogue_.find(id);
    if (enabled_.count(id) != 0 || stays_behind(probe, *followed)) continue;
    kernel::MachineEnabling& enabling = added[id];
    enabling.probe = probe;
    // Descriptions come in the order of their clauses.
    auto& clauses = enabling.clauses;
    if (clauses.empty() || clauses.back() != followed->clause) clauses.push_back(followed->clause);
  }
  std::vector<kernel::MachineEnabling> enablings;
  for (auto& [id, enabling] : added) {
    enabled_.insert(id);
    enablings.push_back(std::move(enabling));
  }
  waiting_.add(std::move(enablings));
  enable_waiting();
}

void LateProbes::enable_waiting() {
  if (const auto done = waiting_.set(session_); !done) tell_missing(done.error().message);
}

// Once.
void LateProbes::tell_missing(std::string_view why) {
  if (has_told_) return;
  has_told_ = true;
  console_.message(fmt::format("warning: probes that came later are missing: {}", why));
}

}  // namespace clew::engine
