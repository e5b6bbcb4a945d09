// SPDX-License-Identifier: Apache-2.0
#include "engine/uprobe_sites.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "code/exits.h"
#include "code/refusal.h"
#include "engine/usdt_sites.h"
#include "kernel/features.h"
#include "kernel/uprobe_place.h"
#include "plan/uprobe_form.h"

namespace clew::engine {
namespace {

using code::RefusalReason;
using query::SourceKind;

// Why there is no jump, while a breakpoint may do no harm there and its hits be what is asked for.
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
    case RefusalReason::ModuleGone:
    case RefusalReason::ThreadInside:
      return false;
  }
  return false;
}

UprobePolicy policy_at(std::string_view kind, UprobePolicy policy) {
  const bool is_static = kind == kind_name(SourceKind::Usdt);
  return is_static && policy == UprobePolicy::WhereLate ? UprobePolicy::WhereRefused : policy;
}

// Whether programs of the kernel can serve a source of this kind.
bool can_be_uprobe(const query::Query& query, std::string_view kind) {
  return std::any_of(query.sources.begin(), query.sources.end(), [&](const query::Source& source) {
    return kind_name(source.kind) == kind && plan::can_be_uprobe(query, source);
  });
}

// As far as its reason and the query say.
bool would_be_uprobe(const collect::RefusedSite& site, const query::Query& query,
                     UprobePolicy asked) {
  if (!can_be_uprobe(query, site.kind)) return false;
  const UprobePolicy policy = policy_at(site.kind, asked);
  for (unsigned i = 0; i < code::kRefusalReasons; ++i) {
    const auto reason = static_cast<RefusalReason>(i);
    if (site.reason == code::name(reason)) return takes_uprobe(reason, policy);
  }
  return false;
}

class Taker {
 public:
  Taker(Tracee& tracee, const query::Query& query) : tracee_(tracee), query_(query) {}

  // Nothing where uprobes would not mean the same.
  Expected<std::optional<KernelSite>> site_of(const Site& site);

 private:
  [[nodiscard]] bool is_called(const Site& site) const;
  bool add_exits(const Site& site, KernelSite& result) const;
  [[nodiscard]] std::optional<kernel::Probe> probe_at(const Site& site, uint64_t address,
                                                      kernel::AttachKind kind) const;

  Tracee& tracee_;
  const query::Query& query_;
  const target::ModuleImage* image_ = nullptr;  // Of the site's module.
  const code::ModuleCode* code_ = nullptr;
};

// Whether each pass through the function's first instruction is a call.
bool Taker::is_called(const Site& site) const {
  const target::Function* const function = image_->function_covering(site.address);
  return function != nullptr && function->address == site.address &&
         code_->loop_heads_at(site.address).empty() &&
         kernel::is_entered_by_call(*image_, *function, function->name);
}

std::optional<kernel::Probe> Taker::probe_at(const Site& site, uint64_t address,
                                             kernel::AttachKind kind) const {
  const auto offset = kernel::file_offset(*image_, address);
  const auto instruction = code_->at(address);
  if (!offset || !instruction || code_->overlaps_rseq(address, instruction->end())) {
    return std::nullopt;
  }
  const plan::SiteNames& names = tracee_.sites().names[site.names];
  kernel::Probe probe;
  probe.provider = "pid";
  probe.module = names.module;
  probe.function = names.function;
  probe.name = names.probe;
  probe.kind = kind;
  probe.path = tracee_.catalog().modules()[site.module].file.open_path;
  probe.offset_bytes = *offset;
  probe.pid = tracee_.pid();
  return probe;
}

// False when calls leave where no uprobe can tell: behind a jump that may not be taken, or with a
// result that is another function's.
bool Taker::add_exits(const Site& site, KernelSite& result) const {
  const auto function = code_->function_starting_at(site.address);
  if (!function) return false;
  const auto exits = code::find_exits(*code_, *function);
  if (!exits || exits->empty()) return false;
  const bool has_result = plan::reads_result(query_, query_.sources[site.source]);
  const bool is_timed = plan::reads_elapsed(query_, query_.sources[site.source]);
  for (const code::Exit& exit : *exits) {
    auto probe = probe_at(site, exit.address, kernel::AttachKind::UserExit);
    if (!probe || exit.side != code::Side::Before || (exit.tail_call && has_result)) {
      return false;
    }
    result.more.push_back(std::move(*probe));
    result.is_timed_to_jump |= exit.tail_call && is_timed;
  }
  result.probe = std::move(result.more.back());
  result.more.pop_back();
  return true;
}

// At an offset, registers are read as at an entry.
Expected<std::optional<KernelSite>> Taker::site_of(const Site& site) {
  const query::Source& source = query_.sources[site.source];
  if (!plan::can_be_uprobe(query_, source)) return std::nullopt;
  if (site.static_probe != nullptr) {
    return static_site(tracee_.catalog(), tracee_.sites(), site);
  }
  image_ = CLEW_TRY(tracee_.catalog().image(site.module));
  code_ = CLEW_TRY(tracee_.code(site.module));
  const bool is_return = source.kind == SourceKind::Return;
  const auto entry = probe_at(site, site.address, kernel::AttachKind::UserEntry);
  if (!entry) return std::nullopt;
  if ((is_return || source.kind == SourceKind::Entry) && !is_called(site)) return std::nullopt;
  KernelSite result;
  result.source = site.source;
  result.entry = *entry;
  result.probe = *entry;
  result.names = tracee_.sites().names[site.names];
  if (is_return && !add_exits(site, result)) return std::nullopt;
  return result;
}

}  // namespace

bool may_set_uprobes() {
  return kernel::has_kernels_pids(getpid()) && kernel::error_of_programs() == 0 &&
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

Expected<std::vector<UprobeSite>> find_uprobe_sites(Tracee& tracee, const query::Query& query,
                                                    UprobePolicy policy) {
  std::vector<UprobeSite> found;
  if (!kernel::has_kernels_pids(tracee.pid())) return found;
  Taker taker(tracee, query);
  const SiteSet& set = tracee.sites();
  for (const auto& [index, refused] : set.refused_sites) {
    const UprobePolicy here = policy_at(set.refused[refused.place].kind, policy);
    const bool is_taken =
        std::all_of(refused.reasons.begin(), refused.reasons.end(),
                    [here](RefusalReason reason) { return takes_uprobe(reason, here); });
    if (!is_taken) continue;
    std::optional<KernelSite> site = CLEW_TRY(taker.site_of(set.sites[index]));
    if (!site) continue;
    site->refused = set.refused[refused.place];
    found.push_back({.tracee = &tracee, .index = index, .probe = std::move(*site)});
  }
  return found;
}

Expected<std::vector<UprobeSite>> find_as_uprobes(Tracee& tracee, const query::Query& query,
                                                  std::string_view reason,
                                                  std::vector<collect::RefusedSite>& refused) {
  std::vector<UprobeSite> found;
  Taker taker(tracee, query);
  const SiteSet& set = tracee.sites();
  for (size_t i = 0; i < set.sites.size(); ++i) {
    const Site& site = set.sites[i];
    const collect::RefusedSite name{.function = shown_name(set, site),
                                    .kind = kind_name(query.sources[site.source].kind),
                                    .reason = std::string(reason)};
    std::optional<KernelSite> probe = CLEW_TRY(taker.site_of(site));
    if (!probe) {
      refused.push_back(name);
      continue;
    }
    probe->refused = name;
    found.push_back({.tracee = &tracee, .index = i, .probe = std::move(*probe)});
  }
  return found;
}

void set_everywhere(KernelSite& site) {
  for (kernel::Probe* const probe : {&site.probe, &site.entry})
    probe->is_everywhere = true;
  for (kernel::Probe& probe : site.more)
    probe.is_everywhere = true;
}

Expected<void> check_one_each(const std::vector<KernelSite>& everywhere) {
  using File = std::pair<dev_t, ino_t>;
  std::map<std::pair<off_t, std::string>, File> files;  // By size and name.
  for (const KernelSite& site : everywhere) {
    struct stat file {};
    struct statfs system {};
    const char* const path = site.probe.path.c_str();
    const bool is_on_overlay = stat(path, &file) == 0 && statfs(path, &system) == 0 &&
                               system.f_type == OVERLAYFS_SUPER_MAGIC;
    if (!is_on_overlay) continue;
    const File own = {file.st_dev, file.st_ino};
    const auto [known, is_new] = files.try_emplace({file.st_size, site.names.module}, own);
    if (is_new || known->second == own) continue;
    return fail(
        ErrorCode::InvalidQuery,
        fmt::format("{} of several containers may be one file, whose hits would count twice "
                    "with --follow; trace one of them, or leave out --follow",
                    site.names.module));
  }
  return {};
}

std::string way_out(const collect::RefusedSite& site, const query::Query& query,
                    UprobePolicy policy) {
  std::string text;
  if (would_be_uprobe(site, query, policy)) {
    if (!may_set_uprobes()) {
      text = geteuid() == 0 ? "; a uprobe may not be set here" : "; root would have a uprobe there";
    }
  } else if (policy_at(site.kind, policy) == UprobePolicy::WhereLate &&
             would_be_uprobe(site, query, UprobePolicy::WhereRefused)) {
    text = "; --uprobes may have a uprobe there";
  }
  if (site.reason == code::name(RefusalReason::LaterUprobe)) {
    return text + "; ask for its count alone, or put a jump there with --allow-late-uprobe-danger";
  }
  return site.kind == "exit" ? text + "; its entry may be possible: clew list --sites" : text;
}

std::string uprobes_of_root(const std::vector<collect::RefusedSite>& refused,
                            const query::Query& query, UprobePolicy policy) {
  const auto count = std::count_if(
      refused.begin(), refused.end(),
      [&](const collect::RefusedSite& site) { return would_be_uprobe(site, query, policy); });
  if (count == 0 || geteuid() == 0) return "";
  return fmt::format("root would have uprobes at {} that {} refused",
                     count == 1 ? "1 site" : fmt::format("{} sites", count),
                     count == 1 ? "is" : "are");
}

void drop_shared_places(const query::Query& query, std::vector<UprobeSite>& sites) {
  using Place = std::tuple<const Tracee*, size_t, uint64_t, query::SourceKind>;
  const auto place_of = [&query](const UprobeSite& each) {
    const Site& site = each.tracee->sites().sites[each.index];
    return Place{each.tracee, site.module, site.address, query.sources[site.source].kind};
  };
  std::map<Place, size_t> counts;
  for (const UprobeSite& each : sites)
    ++counts[place_of(each)];
  std::erase_if(sites, [&](const UprobeSite& each) { return counts[place_of(each)] > 1; });
}

}  // namespace clew::engine
