// SPDX-License-Identifier: Apache-2.0
#include "engine/sites.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "base/log.h"
#include "code/image_text.h"
#include "code/refusal.h"
#include "engine/probe_reads.h"
#include "engine/type_source.h"
#include "engine/usdt_sites.h"
#include "query/fields.h"
#include "query/print.h"

namespace clew::engine {

using query::SourceKind;

namespace {

constexpr std::string_view kRaise = "_Unwind_RaiseException";

// Collects the sites of all sources.
class Finder {
 public:
  // `explains`: an error says what is near, for which all names are looked at.
  Finder(const query::Query& query, target::Catalog& catalog, const std::vector<size_t>& modules,
         bool explains, SiteSet& set)
      : query_(query), catalog_(catalog), modules_(modules), explains_(explains), set_(set) {}

  Expected<void> add(uint16_t source);

 private:
  Expected<void> add_functions(uint16_t source);
  Expected<void> add_function(uint16_t source, target::FunctionMatch match);
  Expected<void> add_lines(uint16_t source);
  Expected<void> add_static(uint16_t source);
  void push(uint16_t source, target::FunctionMatch match, uint64_t address);
  // Also where nobody knows the function: null then.
  void push(uint16_t source, size_t module, const target::Function* function, uint64_t address);

  const query::Query& query_;
  target::Catalog& catalog_;
  const std::vector<size_t>& modules_;
  bool explains_;
  SiteSet& set_;
  std::set<std::tuple<uint16_t, size_t, uint64_t>> places_;
  bool matched_ = false;
  std::optional<Error> beyond_;  // The last function that is too short for the offset.
};

void Finder::push(uint16_t source, target::FunctionMatch match, uint64_t address) {
  matched_ = true;
  const bool wanted = modules_.empty() ||
                      std::find(modules_.begin(), modules_.end(), match.module) != modules_.end();
  if (!wanted || !catalog_.modules()[match.module].is_loaded) return;
  const target::ModuleImage* image = *catalog_.image(match.module);
  push(source, match.module, &image->functions()[match.function], address);
}

void Finder::push(uint16_t source, size_t module, const target::Function* function,
                  uint64_t address) {
  // Two names of a pattern can lead to one place: an IFUNC and the implementation it chose.
  if (!places_.emplace(source, module, address).second) return;
  const query::Source& from = query_.sources[source];
  auto& numbers = set_.function_numbers;
  const uint64_t begin = function == nullptr ? address : function->address;
  const auto number = numbers.emplace(std::tuple(source, module, begin), numbers.size());
  set_.names.push_back({.source = source,
                        .function = function == nullptr ? "" : std::string(function->name),
                        .module = catalog_.modules()[module].display_name,
                        .probe = from.label.empty() ? query::print(from) : from.label});
  set_.sites.push_back({.source = source,
                        .module = module,
                        .address = address,
                        .function_number = number.first->second,
                        .names = set_.names.size() - 1,
                        .group = std::nullopt});
}

Expected<void> Finder::add_function(uint16_t source, target::FunctionMatch match) {
  const target::ModuleImage* image = CLEW_TRY(catalog_.image(match.module));
  const target::Function& function = image->functions()[match.function];
  const uint64_t offset = query_.sources[source].offset_bytes;
  if (offset != 0 && function.size_bytes != 0 && offset >= function.size_bytes) {
    beyond_ = {ErrorCode::NotFound, fmt::format("offset {:#x} is beyond '{}', which has {} bytes",
                                                offset, function.name, function.size_bytes)};
    return {};
  }
  if (!function.is_ifunc) {
    push(source, match, function.address + offset);
    return {};
  }
  const target::Catalog::IfuncTargets chosen = CLEW_TRY(catalog_.ifunc_targets(match));
  if (chosen.functions.empty()) {
    beyond_ = {ErrorCode::NotFound,
               fmt::format("'{}' is chosen when it is first called (IFUNC), and what may be chosen "
                           "cannot be told; name the implementation, or attach later",
                           function.name)};
  }
  for (const target::FunctionMatch& target : chosen.functions) {
    const target::ModuleImage* implementation = CLEW_TRY(catalog_.image(target.module));
    push(source, target, implementation->functions()[target.function].address);
  }
  return {};
}

Expected<void> Finder::add_functions(uint16_t source) {
  const std::string pattern = pattern_of(query_.sources[source]);
  const std::vector<target::FunctionMatch> matches = CLEW_TRY(catalog_.find(pattern));
  if (matches.empty()) {
    return explains_ ? tl::unexpected(catalog_.explain_no_match(pattern))
                     : fail(ErrorCode::NotFound, "nothing matches");
  }
  for (const target::FunctionMatch& match : matches) {
    CLEW_TRY(add_function(source, match));
  }
  if (!matched_ && beyond_) return tl::unexpected(*beyond_);
  return {};
}

Expected<void> Finder::add_lines(uint16_t source) {
  const query::Source& from = query_.sources[source];
  const std::vector<size_t> modules =
      CLEW_TRY(catalog_.find_modules(from.module.empty() ? "*" : from.module));
  Error problem{ErrorCode::NotFound, fmt::format("no line information for {}", from.file)};
  for (const size_t module : modules) {
    Expected<target::DebugInfo*> debug = catalog_.debug_info(module);
    if (!debug) continue;
    Expected<std::vector<target::LineAddress>> lines = (*debug)->find_line(from.file, from.line);
    if (!lines) {
      // That one module has the file, but no such line, says more than that others have no file.
      if (problem.code == ErrorCode::NotFound) problem = lines.error();
      continue;
    }
    const target::ModuleImage* image = CLEW_TRY(catalog_.image(module));
    for (const target::LineAddress& line : *lines) {
      const target::Function* function = image->function_covering(line.address);
      if (function == nullptr) continue;
      const auto index = static_cast<size_t>(function - image->functions().data());
      push(source, {.module = module, .function = index}, line.address);
    }
  }
  if (!matched_) return tl::unexpected(problem);
  return {};
}

Expected<void> Finder::add_static(uint16_t source) {
  for (const StaticSite& found :
       CLEW_TRY(find_static_sites(query_.sources[source], catalog_, modules_))) {
    const target::ModuleImage* const image = CLEW_TRY(catalog_.image(found.module));
    const size_t before = set_.sites.size();
    push(source, found.module, image->function_covering(found.probe->address),
         found.probe->address);
    if (set_.sites.size() != before) set_.sites.back().static_probe = found.probe;
  }
  return {};
}

Expected<void> Finder::add(uint16_t source) {
  matched_ = false;
  beyond_.reset();
  switch (query_.sources[source].kind) {
    case SourceKind::Entry:
    case SourceKind::Return:
    case SourceKind::Offset:
    case SourceKind::Exception:
      return add_functions(source);
    case SourceKind::Line:
      return add_lines(source);
    case SourceKind::Usdt:
      return add_static(source);
    case SourceKind::Tick:  // In the tracer.
    case SourceKind::Begin:
    case SourceKind::End:
    case SourceKind::Syscall:  // In the kernel (kernel/kernel_sources.h).
    case SourceKind::SyscallReturn:
    case SourceKind::Tracepoint:
    case SourceKind::Profile:
    case SourceKind::Recording:  // It is asked without processes (recording/ask_recording.h).
      return {};
    case SourceKind::Kernel:
    case SourceKind::KernelReturn:
      break;  // query::parse has refused them.
  }
  return fail(ErrorCode::Refused, "a kind of source is not part of this version");
}

code::RequestKind request_kind(const plan::ProbeProgram& program) {
  switch (program.point) {
    case plan::ProgramPoint::Entry:
      return code::RequestKind::Entry;
    case plan::ProgramPoint::Exit:
      return code::RequestKind::Exits;
    case plan::ProgramPoint::Offset:
    case plan::ProgramPoint::Landing:
    case plan::ProgramPoint::Jump:
      return code::RequestKind::Offset;
    case plan::ProgramPoint::UnwindStart:
      return code::RequestKind::Entry;
  }
  return code::RequestKind::Entry;
}

// Plans one module; drops sites with a refused request and plans again until none is refused.
class ModulePlanner {
 public:
  ModulePlanner(SiteSet& set, const target::Catalog& catalog, CodeCache& codes,
                const WindowRequest& request)
      : set_(set),
        catalog_(catalog),
        codes_(codes),
        first_(request.first),
        programs_(request.programs),
        query_(request.query),
        danger_(request.danger) {
    for (const plan::ProbeProgram& program : programs_)
      reads_.push_back(probe_reads(program.program));
  }

  ModulePlan plan(size_t module, const code::ModuleCode& code, const InstalledWindows& installed);

 private:
  void request(size_t module, ModulePlan& result, std::vector<code::Request>& requests);
  void unite_reads(std::vector<code::Request>& requests) const;
  void request_unwinders(const code::ModuleCode& code, ModulePlan& result,
                         std::vector<code::Request>& requests);
  bool note_trapped(const ModulePlan& plan, const InstalledWindows& installed);
  void refuse(const code::Refusal& refusal, const ModulePlan& plan);
  void refuse_unwinder(size_t unwinder, std::string_view reason);

  SiteSet& set_;
  const target::Catalog& catalog_;
  CodeCache& codes_;
  size_t first_;
  const std::vector<plan::ProbeProgram>& programs_;
  const query::Query& query_;
  code::LateUprobeDanger danger_;
  std::vector<code::ProbeReads> reads_;            // By program.
  std::set<std::pair<size_t, uint64_t>> trapped_;  // Modules, and functions of them.
  std::set<size_t> dropped_;
  std::set<size_t> dropped_unwinders_;
};

void ModulePlanner::request(size_t module, ModulePlan& result,
                            std::vector<code::Request>& requests) {
  for (size_t s = first_; s < set_.sites.size(); ++s) {
    const Site& site = set_.sites[s];
    if (site.module != module || !site.group || dropped_.contains(s)) continue;
    for (size_t p = 0; p < programs_.size(); ++p) {
      if (programs_[p].source != site.source || is_at_unwinder(programs_[p].point)) continue;
      requests.push_back({.kind = request_kind(programs_[p]),
                          .address = site.address,
                          .reads = reads_[p],
                          .may_serve_both = !trapped_.contains({module, site.address})});
      result.requests.push_back({.site = s, .program = p});
    }
  }
}

// Programs at one entry run one after the other, in the order of their sources: a request that
// begins there begins in front of the event. So all stand where those can that read most.
void ModulePlanner::unite_reads(std::vector<code::Request>& requests) const {
  std::map<uint64_t, code::ProbeReads> united;
  for (const code::Request& each : requests) {
    if (each.kind != code::RequestKind::Entry) continue;
    code::ProbeReads& all = united[each.address];
    all.registers =
        abi::RegisterSet(static_cast<uint16_t>(all.registers.bits() | each.reads.registers.bits()));
    all.vectors |= each.reads.vectors;
    all.stack |= each.reads.stack;
    all.memory |= each.reads.memory;
  }
  for (code::Request& each : requests) {
    if (each.kind == code::RequestKind::Entry) each.reads = united[each.address];
  }
}

// Where the module's unwinder begins, and where it lands.
void ModulePlanner::request_unwinders(const code::ModuleCode& code, ModulePlan& result,
                                      std::vector<code::Request>& requests) {
  for (size_t u = 0; u < set_.unwinders.size(); ++u) {
    const UnwinderFunction& function = set_.unwinders[u];
    const bool wanted =
        function.module == result.module && !function.is_armed && !dropped_unwinders_.contains(u);
    if (!wanted) continue;
    const Landings landings = landings_of(code, function.address);
    if (landings.empty()) {  // The C library's _Unwind_Resume passes on to the real one.
      if (function.name == kRaise) refuse_unwinder(u, "no-landing");
      continue;
    }
    for (size_t p = 0; p < programs_.size(); ++p) {
      if (!is_at_unwinder(programs_[p].point)) continue;
      if (programs_[p].point == plan::ProgramPoint::UnwindStart) {
        requests.push_back(
            {.kind = code::RequestKind::Entry,
             .address = function.address,
             .reads = reads_[p],
             .may_serve_both = false});  // A lost hit would be an open call for ever.
      }
      for (const auto& [point, request] : landings) {
        if (point == programs_[p].point) requests.push_back(request);
      }
      result.requests.resize(requests.size(), {.site = u, .program = p});
    }
  }
}

void ModulePlanner::refuse_unwinder(size_t unwinder, std::string_view reason) {
  if (!dropped_unwinders_.insert(unwinder).second) return;
  set_.refused.push_back({.function = set_.unwinders[unwinder].name,
                          .kind = "unwinder",
                          .reason = std::string(reason)});
}

// Bytes that serve both ways are of no use where a trap of somebody is there before: each hit would
// be lost. True when there are more such places than were known.
bool ModulePlanner::note_trapped(const ModulePlan& plan, const InstalledWindows& installed) {
  constexpr uint8_t kTrap = 0xcc;
  const size_t known = trapped_.size();
  const uint64_t bias = catalog_.modules()[plan.module].file.load_bias;
  for (const code::Window& window : plan.plan.windows) {
    if (window.window_class != code::WindowClass::BothWays) continue;
    const bool is_there =
        std::any_of(installed.begin(), installed.end(),
                    [&](const code::Window& one) { return one.address == window.address; });
    uint8_t first = 0;
    const bool is_read =
        !is_there && target::read_memory(catalog_.pid(), window.address + bias, {&first, 1});
    if (is_read && first == kTrap) trapped_.insert({plan.module, window.address});
  }
  return trapped_.size() != known;
}

void ModulePlanner::refuse(const code::Refusal& refusal, const ModulePlan& plan) {
  const size_t s = plan.requests[refusal.request].site;
  if (is_at_unwinder(programs_[plan.requests[refusal.request].program].point)) {
    return refuse_unwinder(s, code::name(refusal.reason));
  }
  const bool is_new = dropped_.insert(s).second;
  if (is_new) set_.refused_sites[s].place = set_.refused.size();
  set_.refused_sites[s].reasons.insert(refusal.reason);
  if (!is_new) return;
  const Site& site = set_.sites[s];
  set_.refused.push_back({.function = shown_name(set_, site),
                          .kind = kind_name(query_.sources[site.source].kind),
                          .reason = std::string(code::name(refusal.reason))});
}

ModulePlan ModulePlanner::plan(size_t module, const code::ModuleCode& code,
                               const InstalledWindows& installed) {
  constexpr int kRoundsMax = 8;
  ModulePlan result;
  for (int round = 0; round < kRoundsMax; ++round) {
    std::vector<code::Request> requests;
    result = ModulePlan{.module = module, .requests = {}, .plan = {}};
    request(module, result, requests);
    unite_reads(requests);
    request_unwinders(code, result, requests);
    result.plan = codes_.plan(code, requests, installed, danger_);
    if (note_trapped(result, installed)) continue;
    if (result.plan.refusals.empty()) break;
    const bool has_partners = programs_.size() > 1;
    for (const code::Refusal& refusal : result.plan.refusals) {
      refuse(refusal, result);
    }
    if (!has_partners) break;  // Nobody else depends on what was refused.
  }
  return result;
}

bool has_landing(const SiteSet& set, const std::vector<plan::ProbeProgram>& programs) {
  const auto is_landing = [&](const PlannedRequest& request) {
    return programs[request.program].point == plan::ProgramPoint::Landing;
  };
  return std::any_of(set.modules.begin(), set.modules.end(), [&](const ModulePlan& module) {
    return std::any_of(module.requests.begin(), module.requests.end(), is_landing);
  });
}

// An unwinder without a landing, or one that cannot be taken, would look like a program that never
// throws. Where there is none at all, nothing throws until a library brings one.
Expected<void> check_landings(SiteSet& set, const std::vector<plan::ProbeProgram>& programs) {
  set.has_landing = set.has_landing || has_landing(set, programs);
  const bool armed = std::any_of(set.unwinders.begin(), set.unwinders.end(),
                                 [](const UnwinderFunction& u) { return u.is_armed; });
  if (!set.needs_landing || armed || set.has_landing) return {};
  const auto refused = std::find_if(set.refused.begin(), set.refused.end(),
                                    [](const auto& r) { return r.kind == "unwinder"; });
  if (refused == set.refused.end()) return {};
  return fail(ErrorCode::Refused,
              fmt::format("no call can be seen to be left by an exception: the unwinder's {} is "
                          "refused ({})",
                          refused->function, refused->reason));
}

}  // namespace

std::string kind_name(SourceKind kind) {
  return kind == SourceKind::Return ? "exit" : std::string(query::name_of(kind));
}

std::string shown_name(const SiteSet& set, const Site& site) {
  return site.static_probe == nullptr ? set.names[site.names].function
                                      : target::d_name_of(site.static_probe->name);
}

Expected<void> find_sites(const query::Query& query, target::Catalog& catalog, bool allow_missing,
                          const std::vector<size_t>& modules, SiteSet& set) {
  Finder finder(query, catalog, modules, !allow_missing, set);
  for (size_t source = 0; source < query.sources.size(); ++source) {
    Expected<void> added = finder.add(static_cast<uint16_t>(source));
    const bool missing = !added && added.error().code == ErrorCode::NotFound;
    set.source_at_fault = static_cast<uint16_t>(source);
    if (!added && !(missing && allow_missing)) return tl::unexpected(added.error());
  }
  if (!has_exception_source(query)) return {};
  const std::vector<UnwinderFunction> unwinders = CLEW_TRY(find_unwinders(catalog, modules));
  set.unwinders.insert(set.unwinders.end(), unwinders.begin(), unwinders.end());
  if (modules.empty()) set.needs_landing = !allow_missing;
  return {};
}

std::vector<std::string> unmatched_sources(const query::Query& query, bool in_kernel,
                                           const std::set<uint16_t>& matched) {
  std::vector<std::string> told;
  for (size_t i = 0; i < query.sources.size(); ++i) {
    const query::Source& source = query.sources[i];
    const bool has_sites = source.kind != SourceKind::Tick && source.kind != SourceKind::Begin &&
                           source.kind != SourceKind::End;
    const bool is_wanted = has_sites && query::is_kernel_source(source.kind) == in_kernel;
    if (!is_wanted || source.may_miss || matched.contains(static_cast<uint16_t>(i))) continue;
    const std::string name = source.label.empty() ? query::print(source) : source.label;
    told.push_back(fmt::format("{} matched nothing in {}", name,
                               in_kernel ? "the kernel" : "any program that was traced"));
  }
  return told;
}

namespace {

std::vector<uint64_t> places_of(std::span<const target::StaticProbe> probes) {
  std::vector<uint64_t> places;
  for (const target::StaticProbe& probe : probes)
    places.push_back(probe.address);
  std::sort(places.begin(), places.end());
  return places;
}

}  // namespace

Expected<const code::ModuleCode*> CodeCache::code(target::Catalog& catalog, size_t module) {
  const target::ModuleImage* image = CLEW_TRY(catalog.image(module));
  auto& entry = codes_[image];
  if (!entry) {
    const StepTime time;
    const code::ModuleText text = CLEW_TRY(code::text_of(*image));
    entry = std::make_unique<code::ModuleCode>(kept_.analyse(text));
    entry->set_probe_places(places_of(catalog.static_probes(module)));
    log_detail(0, "analysed the code of {}: {} functions ({:.1f} ms)", image->path(),
               entry->functions().size(), time.ms());
  }
  return entry.get();
}

code::Plan CodeCache::plan(const code::ModuleCode& code, std::span<const code::Request> requests,
                           std::span<const code::Window> installed, code::LateUprobeDanger danger) {
  code::FlagValues& flags = flags_.try_emplace(&code, code).first->second;
  return code::plan_windows(code, flags, requests, installed, danger);
}

Expected<void> plan_windows(SiteSet& set, target::Catalog& catalog, CodeCache& codes,
                            const WindowRequest& request) {
  std::set<size_t> modules;
  for (size_t s = request.first; s < set.sites.size(); ++s) {
    if (set.sites[s].group) modules.insert(set.sites[s].module);
  }
  for (const UnwinderFunction& function : set.unwinders) {
    if (!function.is_armed) modules.insert(function.module);
  }
  set.modules.clear();
  ModulePlanner planner(set, catalog, codes, request);
  for (const size_t module : modules) {
    const code::ModuleCode* code = CLEW_TRY(codes.code(catalog, module));
    const auto found = request.installed.find(module);
    const bool is_free = found == request.installed.end();
    set.modules.push_back(
        planner.plan(module, *code, is_free ? InstalledWindows{} : found->second));
  }
  return check_landings(set, request.programs);
}

}  // namespace clew::engine
