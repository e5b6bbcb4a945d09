// SPDX-License-Identifier: Apache-2.0
#include "engine/uprobe_sites.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "inline/refusal.h"
#include "kernel/features.h"
#include "kernel/uprobe_place.h"
#include "plan/uprobe_form.h"

namespace clew::engine {
namespace {

using inline_::RefusalReason;
using query::SourceKind;

// Why there is no jump, while a breakpoint does no harm there and its hits are calls.
bool is_of_code(RefusalReason reason) {
  switch (reason) {
    case RefusalReason::TooShort:
    case RefusalReason::BranchIntoWindow:
    case RefusalReason::IndirectJump:
    case RefusalReason::CrossesFunction:
    case RefusalReason::NoRoomForExit:
    case RefusalReason::SyscallInWindow:
    case RefusalReason::UnsupportedInstruction:
    case RefusalReason::FallsThrough:
    case RefusalReason::UnbalancedExit:
    case RefusalReason::SharedTail:
    case RefusalReason::LaterUprobe:
      return true;
    case RefusalReason::EntryIsLoopHead:  // Hits would not be calls.
    case RefusalReason::ColdPart:
    case RefusalReason::NotCode:
    case RefusalReason::NotAnInstruction:
    case RefusalReason::NotAFunction:
    case RefusalReason::Undecodable:
    case RefusalReason::Rseq:        // A trap aborts the sequence.
    case RefusalReason::DataInText:  // The program would read the trap.
    case RefusalReason::WindowInUse:
    case RefusalReason::ForeignPatch:
    case RefusalReason::NoNearMemory:
    case RefusalReason::WrongTrampoline:
      return false;
  }
  return false;
}

// As far as its reason says.
bool would_be_uprobe(const collect::RefusedSite& site, UprobePolicy policy) {
  for (unsigned i = 0; i < inline_::kRefusalReasons; ++i) {
    const auto reason = static_cast<RefusalReason>(i);
    if (site.reason == inline_::name(reason)) return takes_uprobe(reason, policy);
  }
  return false;
}

class Taker {
 public:
  Taker(Tracee& tracee, const query::Query& query) : tracee_(tracee), query_(query) {}

  // Nothing where a uprobe would not mean the same.
  Expected<std::optional<KernelSite>> site_of(const Site& site);

 private:
  [[nodiscard]] Expected<bool> is_call(const Site& site, const target::ModuleImage& image) const;
  [[nodiscard]] kernel::Probe probe_of(const Site& site, kernel::AttachKind kind,
                                       uint64_t file_offset) const;

  Tracee& tracee_;
  const query::Query& query_;
};

// Whether each pass through the function's first instruction is a call, and a return from it one.
Expected<bool> Taker::is_call(const Site& site, const target::ModuleImage& image) const {
  const bool is_return = query_.sources[site.source].kind == SourceKind::Return;
  const target::Function* const function = image.function_covering(site.address);
  if (function == nullptr || function->address != site.address) return false;
  const inline_::ModuleCode* const code = CLEW_TRY(tracee_.code(site.module));
  return code->loop_heads_at(site.address).empty() &&
         kernel::is_entered_by_call(image, *function, function->name) &&
         (!is_return || kernel::return_problem(image, *function).empty());
}

// At an offset, registers are read as at an entry.
kernel::Probe Taker::probe_of(const Site& site, kernel::AttachKind kind,
                              uint64_t file_offset) const {
  const plan::SiteNames& names = tracee_.sites().names[site.names];
  kernel::Probe probe;
  probe.provider = "pid";
  probe.module = names.module;
  probe.function = names.function;
  probe.name = names.probe;
  probe.kind = kind;
  probe.path = tracee_.catalog().modules()[site.module].file.open_path;
  probe.offset_bytes = file_offset;
  probe.pid = tracee_.pid();
  return probe;
}

Expected<std::optional<KernelSite>> Taker::site_of(const Site& site) {
  const query::Source& source = query_.sources[site.source];
  const target::ModuleImage* const image = CLEW_TRY(tracee_.catalog().image(site.module));
  const auto offset = kernel::file_offset(*image, site.address);
  const bool is_of_function = source.kind == SourceKind::Entry || source.kind == SourceKind::Return;
  if (!offset || !plan::can_be_uprobe(query_, source)) return std::nullopt;
  if (is_of_function && !CLEW_TRY(is_call(site, *image))) return std::nullopt;
  const bool is_return = source.kind == SourceKind::Return;
  KernelSite result;
  result.source = site.source;
  result.entry = probe_of(site, kernel::AttachKind::UserEntry, *offset);
  result.probe = is_return ? probe_of(site, kernel::AttachKind::UserReturn, *offset) : result.entry;
  result.names = tracee_.sites().names[site.names];
  return result;
}

}  // namespace

bool may_set_uprobes() {
  constexpr std::string_view kFirst = "pid:[4026531836]";  // PROC_PID_INIT_INO
  std::error_code error;
  const auto name_space = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  return name_space == kFirst && kernel::error_of_programs() == 0 &&
         kernel::error_of_user_probes() == 0;
}

bool takes_uprobe(RefusalReason reason, UprobePolicy policy) {
  switch (policy) {
    case UprobePolicy::Never:
      return false;
    case UprobePolicy::WhereLate:
      return reason == RefusalReason::LaterUprobe;
    case UprobePolicy::WhereRefused:
      return is_of_code(reason);
  }
  return false;
}

Expected<std::vector<KernelSite>> take_uprobe_sites(Tracee& tracee, const query::Query& query,
                                                    UprobePolicy policy) {
  std::vector<KernelSite> taken;
  Taker taker(tracee, query);
  SiteSet& set = tracee.sites();
  for (const auto& [index, refused] : set.refused_sites) {
    if (!takes_uprobe(refused.reason, policy)) continue;
    std::optional<KernelSite> site = CLEW_TRY(taker.site_of(set.sites[index]));
    if (!site) continue;
    site->refused = set.refused[refused.place];
    set.sites[index].group.reset();
    taken.push_back(std::move(*site));
  }
  return taken;
}

std::string way_out(const collect::RefusedSite& site, UprobePolicy policy) {
  std::string text;
  if (would_be_uprobe(site, policy) && !may_set_uprobes()) {
    text = "; root would have a uprobe there";
  } else if (policy == UprobePolicy::WhereLate &&
             would_be_uprobe(site, UprobePolicy::WhereRefused)) {
    text = "; --uprobes may have a uprobe there";
  }
  if (site.reason == inline_::name(RefusalReason::LaterUprobe)) {
    return text +
           "; its count may be possible, and --allow-late-uprobe-danger takes it all the same";
  }
  return site.kind == "exit" ? text + "; its entry may be possible: clew list --sites" : text;
}

std::string uprobes_of_root(const std::vector<collect::RefusedSite>& refused, UprobePolicy policy) {
  const auto count = std::count_if(
      refused.begin(), refused.end(),
      [policy](const collect::RefusedSite& site) { return would_be_uprobe(site, policy); });
  if (count == 0 || may_set_uprobes()) return "";
  return fmt::format("root would have uprobes at {} that {} refused",
                     count == 1 ? "1 site" : fmt::format("{} sites", count),
                     count == 1 ? "is" : "are");
}

}  // namespace clew::engine
