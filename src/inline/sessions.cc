// SPDX-License-Identifier: Apache-2.0
// Which processes hold an arena, and cleaning up after tracers that are gone.
#include <algorithm>
#include <charconv>
#include <string>

#include <dirent.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "inline/attachment.h"
#include "inline/attachment_state.h"
#include "inline/changed_text.h"
#include "inline/checks.h"
#include "inline/program_counters.h"
#include "inline/removal.h"
#include "inline/text_repair.h"

namespace clew::inline_ {
namespace {

constexpr std::chrono::milliseconds kStopTimeout{2000};

// Names in a folder of /proc that are numbers.
std::vector<int> numbers_in(const std::string& folder) {
  std::vector<int> numbers;
  DIR* const listing = opendir(folder.c_str());
  if (listing == nullptr) return numbers;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is our own.
  while (const dirent* entry = readdir(listing)) {
    const std::string_view name = entry->d_name;
    int number = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
    if (parsed.ptr == name.data() + name.size()) numbers.push_back(number);
  }
  closedir(listing);
  return numbers;
}

}  // namespace

Expected<void> check_can_open(pid_t pid) {
  return check_process(pid);
}

Expected<TrialStop> try_stop(pid_t pid) {
  CLEW_TRY(check_process(pid));
  CLEW_TRY(check_tracer(pid, std::chrono::milliseconds(0)));
  std::optional<Arena> arena;
  if (const auto mapping = find_arena(CLEW_TRY(target::read_memory_map(pid)))) {
    arena = CLEW_TRY(Arena::join(pid, *mapping));
  }
  StoppedTarget target = CLEW_TRY(StoppedTarget::stop(pid, kStopTimeout));
  const TargetTraits traits = CLEW_TRY(check_threads(target, arena ? &*arena : nullptr));
  const auto threads = static_cast<uint32_t>(target.threads().size());
  target.resume();
  log_stop(target, "look at them");
  return TrialStop{.threads = threads,
                   .stood_still = target.stood_still(),
                   .keeps_self_pointer = traits.keeps_self_pointer,
                   .bases = traits.bases};
}

std::vector<int> forgotten_descriptors(pid_t pid) {
  std::vector<int> found;
  const auto maps = target::read_memory_map(pid);
  if (maps && traces_others(*maps)) return found;  // It needs them.
  const std::string folder = fmt::format("/proc/{}/fd", target::memory_holder(pid));
  for (const int fd : numbers_in(folder)) {
    std::string link(64, '\0');
    const ssize_t length = readlink(fmt::format("{}/{}", folder, fd).c_str(), link.data(), 64);
    if (length <= 0) continue;
    const std::string_view text(link.data(), static_cast<size_t>(length));
    if (text.starts_with(fmt::format("/memfd:{}", kArenaName))) found.push_back(fd);
  }
  return found;
}

Expected<void> close_forgotten(StoppedTarget& target, std::span<const int> descriptors) {
  for (const int fd : descriptors) {
    CLEW_TRY(target.checked_call("close",
                                 {.number = SYS_close, .arguments = {static_cast<uint64_t>(fd)}}));
  }
  return {};
}

bool is_unfinished(pid_t pid, const ArenaMapping& mapping) {
  const bool has_journal = mapping.mappings.size() > 1;
  if (mapping.low_address != 0 && !has_journal) return true;
  uint64_t magic = 1;
  const auto bytes = std::span(reinterpret_cast<uint8_t*>(&magic), sizeof magic);
  return mapping.low_address != 0 &&
         target::read_memory(pid, mapping.low_address + abi::kHeaderOffset, bytes) && magic == 0;
}

namespace {

std::vector<TextChange> only_jumps(std::vector<TextChange> changes) {
  std::erase_if(changes, [](const TextChange& change) { return !change.is_jump(); });
  return changes;
}

std::vector<TextChange> changes_without_arena(const ChangedText& text, pid_t pid) {
  const auto maps = target::read_memory_map(pid);
  if (!maps) return {};
  return text.find([&](uint64_t address) { return leads_nowhere(*maps, address); });
}

std::vector<TextChange> stray_jumps(const ChangedText& text, pid_t pid) {
  return only_jumps(changes_without_arena(text, pid));
}

// Jumps that lead nowhere: sessions left them, and no arena.
std::optional<ArenaInfo> info_by_text(pid_t pid) {
  const auto jumps = stray_jumps(ChangedText(pid), pid);
  if (jumps.empty()) return std::nullopt;
  // A session may have come since its map was read.
  const auto maps = target::read_memory_map(pid);
  if (!maps || find_arena(*maps)) return std::nullopt;
  return ArenaInfo{
      .pid = pid, .sessions = {}, .sites = static_cast<uint32_t>(jumps.size()), .residue = true};
}

}  // namespace

std::optional<ArenaInfo> look_at(pid_t pid) {
  const auto maps = target::read_memory_map(pid);
  if (!maps) return std::nullopt;
  const auto mapping = find_arena(*maps);
  // A tracer maps the file, too, but has no low block: that is the last part of a target to go.
  if (!mapping || mapping->low_address == 0) return info_by_text(pid);
  ArenaInfo info;
  info.pid = pid;
  info.residue = true;
  const auto arena = Arena::join(pid, *mapping);
  if (!arena) return info;
  const uint32_t live = live_sessions(*arena);
  for (uint32_t s = 0; s < abi::kSessionsMax; ++s) {
    const abi::SessionEntry entry = arena->session(s);
    if (entry.state == 0) continue;
    info.sessions.push_back({.session = s,
                             .tracer = static_cast<pid_t>(entry.tracer_pid),
                             .tracer_alive = (live >> s & 1) != 0});
  }
  // A forked child has the arena of its parent, whose tracers are not its own.
  info.residue = live == 0;
  const SiteJournal journal(*arena);
  for (const auto& [address, site] : journal.by_address()) {
    for (const uint32_t layer : journal.layers_of(site))
      info.sites += journal.layer(layer).point_count;
  }
  return info;
}

std::vector<ArenaInfo> ps() {
  const StepTime time;
  std::vector<ArenaInfo> found;
  for (const int pid : numbers_in("/proc")) {
    auto info = look_at(pid);
    if (!info) continue;
    log_detail(pid, "holds an arena or jumps: {} sessions, {} sites", info->sessions.size(),
               info->sites);
    found.push_back(std::move(*info));
  }
  log_step(0, "looked at all processes ({:.1f} ms)", time.ms());
  return found;
}

std::vector<PatchedText> patched_text(pid_t pid) {
  std::vector<PatchedText> found;
  const auto maps = target::read_memory_map(pid);
  const auto mapping = maps ? find_arena(*maps) : std::nullopt;
  if (!mapping || mapping->low_address == 0) return found;
  const auto arena = Arena::join(pid, *mapping);
  if (!arena) return found;
  const SiteJournal journal(*arena);
  for (const auto& [address, site] : journal.by_address()) {
    found.push_back({address, end_of(journal.site(site)) - address});
    for (const uint32_t layer : journal.layers_of(site)) {
      const abi::LayerRecord& record = journal.layer(layer);
      for (uint32_t i = 0; i < record.patch_count; ++i)
        found.push_back({record.patches[i].address, record.patches[i].size_bytes});
    }
  }
  return found;
}

void log_detached(pid_t pid, const DetachReport& report, size_t sites) {
  log_step(pid, "restored the text of {} sites", sites);
  log_step(pid,
           "compared the text with its files: {} jumps that no journal knew of, {} sites of "
           "others, {} sites gone with their modules, {} places not the files'",
           report.repaired, report.foreign_patches, report.vanished, report.left.size());
  for (const TextChange& change : report.left)
    log_detail(pid, "is not as its file: {}", describe(change));
  for (const LeftChild& child : report.children)
    log_step(child.pid, "is a forked child that keeps probes: {}", child.reason);
  if (report.residue) {
    log_step(pid, "keeps the arena: {}", report.residue_reason);
  } else if (report.left.empty()) {
    log_step(pid, "is left: the text is restored, nothing of the session remains");
  }
}

Expected<void> remove_unfinished(pid_t pid) {
  // Stopped first: a thread whose tracer died in a system call has finished that by then.
  StoppedTarget target = CLEW_TRY(stop_target(pid, kStopTimeout));
  CLEW_TRY(target.finish_calls_of_dead_tracers());
  const auto mapping = find_arena(CLEW_TRY(target::read_memory_map(pid)));
  if (mapping && !is_unfinished(pid, *mapping)) return {};  // Another tracer was faster.
  CLEW_TRY(close_forgotten(target, forgotten_descriptors(pid)));
  Expected<void> unmapped = Arena::unmap(target);
  target.resume();
  log_stop(target, "look for an arena that was not finished");
  return unmapped;
}

Expected<void> check_stray_jumps(pid_t pid) {
  const auto jumps = stray_jumps(ChangedText(pid), pid);
  if (jumps.empty()) return {};
  return fail(
      ErrorCode::Refused,
      fmt::format("process {0} has jumps of an earlier session in its text, the first is {1}; "
                  "clew detach {0} takes them out [residue]",
                  pid, describe(jumps.front())));
}

namespace {

// The file's bytes come back.
Expected<DetachReport> repair_stray_jumps(pid_t pid) {
  const ChangedText text(pid);
  DetachReport report;
  if (stray_jumps(text, pid).empty()) return report;
  const auto gadgets = find_gadgets(pid);
  const auto resting =
      gadgets ? find_resting_frames(pid, gadgets->restorer) : std::vector<uint64_t>();
  StoppedTarget target = CLEW_TRY(stop_target(pid, kStopTimeout));
  const auto maps = CLEW_TRY(target::read_memory_map(pid));
  TextRepair repair = CLEW_TRY(repair_text(target, maps, resting, stray_jumps(text, pid)));
  target.resume();
  log_stop(target, "take out jumps that no arena knows of");
  report.repaired = repair.repaired;
  report.left = std::move(repair.left);
  return report;
}

// What is not the files' when nothing of ours is in the process any more.
Expected<void> compare_without_arena(pid_t pid, DetachReport& report) {
  const DetachReport repair = CLEW_TRY(repair_stray_jumps(pid));
  report.repaired += repair.repaired;
  for (TextChange& change : changes_without_arena(ChangedText(pid), pid)) {
    const bool is_known =
        std::any_of(report.left.begin(), report.left.end(), [&](const TextChange& known) {
          return known.address < change.end() && change.address < known.end();
        });
    if (is_known) continue;
    (change.is_jump() ? report.left : report.strangers).push_back(std::move(change));
  }
  return {};
}

}  // namespace

Expected<DetachReport> clean_up(pid_t pid, bool force, const LockWait& wait) {
  ProcessLock process(pid, wait);
  const ProcessLock::Hold hold = CLEW_TRY(process.hold());
  log_step(pid, "is cleaned up: {}", force ? "all sessions" : "sessions of dead tracers");
  const auto maps = target::read_memory_map(pid);
  if (!maps) return tl::unexpected(maps.error());
  const auto mapping = find_arena(*maps);
  if (!mapping || is_unfinished(pid, *mapping)) {
    CLEW_TRY(remove_unfinished(pid));
    DetachReport report;
    CLEW_TRY(compare_without_arena(pid, report));
    log_detached(pid, report, 0);
    return report;
  }
  const Arena arena = CLEW_TRY(Arena::join(pid, *mapping));
  const ArenaLock lock = CLEW_TRY(ArenaLock::take(arena));
  SiteJournal journal(arena);
  const uint32_t live = live_sessions(arena);
  const bool everything = force || live == 0;
  const uint32_t leaving = everything ? ~uint32_t{0} : dead_sessions(arena);
  Removal removal(arena, journal, {.leaving = leaving, .everything = everything});
  const auto gadgets = find_gadgets(pid);
  if (gadgets) removal.look_for_resting_frames(pid, gadgets->restorer);
  removal.look_at_text(pid);
  StoppedTarget target = CLEW_TRY(stop_target(pid, kStopTimeout));
  CLEW_TRY(target.finish_calls_of_dead_tracers());
  if (gadgets) target.use_gadgets(*gadgets);
  DetachReport report = CLEW_TRY(removal.run(target));
  CLEW_TRY(close_forgotten(target, forgotten_descriptors(pid)));
  // A forked child shares header and journal with the process that the sessions trace.
  const bool is_first = arena.header().pid == static_cast<uint32_t>(pid);
  const bool keeps_copies = report.residue && removal.keeps_copies_alone();
  if (!is_first || (report.residue && !keeps_copies)) {
    target.resume();
    log_stop(target, "take out the jumps");
    if (!report.residue && everything) CLEW_TRY(compare_without_arena(pid, report));
    log_detached(pid, report, removal.sites());
    if (keeps_copies) report.residue = false;
    return report;
  }
  for (uint32_t s = 0; s < abi::kSessionsMax; ++s) {
    uint32_t* const state = &arena.header().sessions[s].state;
    if ((leaving >> s & 1) != 0) __atomic_store_n(state, 0U, __ATOMIC_RELEASE);
  }
  target.resume();
  log_stop(target, "take out the jumps");
  if (!keeps_copies) removal.forget();
  if (everything && !keeps_copies) CLEW_TRY(compare_without_arena(pid, report));
  log_detached(pid, report, removal.sites());
  if (keeps_copies) report.residue = false;  // The reason says what stays.
  return report;
}

}  // namespace clew::inline_
