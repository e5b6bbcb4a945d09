// SPDX-License-Identifier: Apache-2.0
#include "engine/compile.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>

#include <fmt/format.h>
#include <unistd.h>

#include "abi/region.h"
#include "base/log.h"
#include "engine/causes.h"
#include "engine/chosen.h"
#include "engine/compiler.h"
#include "engine/extensions.h"
#include "engine/first_process.h"
#include "engine/kernel/event_types.h"
#include "engine/panes.h"
#include "engine/query_ends.h"
#include "engine/type_source.h"
#include "engine/usdt_sites.h"
#include "plan/spread.h"
#include "plan/uprobe_form.h"
#include "query/check_sources.h"
#include "query/diagnostic.h"
#include "query/parse.h"
#include "query/vocabulary.h"
#include "query/window.h"
#include "session/request_recorder.h"
#include "target/process.h"

namespace clew::engine {
namespace {

std::string too_many(size_t count) {
  return fmt::format(
      "the query matches {} functions, more than {}; narrow the pattern, or add "
      "--yes to trace them all",
      count, kSitesMax);
}

// The source with the largest number; 0 when there is none.
uint16_t largest_of(const std::map<uint16_t, size_t>& counts) {
  const auto largest =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return largest == counts.end() ? uint16_t{0} : largest->first;
}

// A reason without the process that it names: of several with the same one it is told once.
std::string shared_reason(const collect::LeftOut& one) {
  const std::string own = fmt::format(" in process {}", one.process);
  return one.reason.substr(0, one.reason.size() - (one.reason.ends_with(own) ? own.size() : 0));
}

// Where there is one, the error says it.
bool has_several_reasons(std::span<const collect::LeftOut> all) {
  return std::any_of(all.begin(), all.end(), [&all](const collect::LeftOut& one) {
    return shared_reason(one) != shared_reason(all.front());
  });
}

}  // namespace

Expected<std::vector<pid_t>> Compiler::wanted_pids() {
  Chosen chosen = request_.processes;
  chosen.modules = places_.everywhere;
  chosen.may_miss = request_.allow_missing;
  // Of all that belong there, those that have what is asked for.
  const bool have_modules =
      std::find(places_.modules.begin(), places_.modules.end(), "") == places_.modules.end();
  if (chosen.says_whose_alone() && have_modules && !places_.kernel)
    chosen.modules = places_.modules;
  std::vector<pid_t> pids = CLEW_TRY(find_or_wait(chosen));
  if (request_.allowed_names) {
    const std::string others = CLEW_TRY(leave_out_others(pids, *request_.allowed_names));
    if (!others.empty()) notices_.warning("left out: " + others);
    if (!others.empty()) result_.lost.push_back("what happened in " + others);
  }
  if (!request_.command.empty()) {
    const inline_::LaunchOptions options{.command = request_.command};
    // Samples and stacks of a program are read by what is mapped when they begin.
    const bool from_exec = !places_.process && !places_.profile && !places_.stacks;
    if (!from_exec && asks_kernel_) {
      result_.lost.emplace_back(
          "what the command did before its main program began is not in the answer");
    }
    result_.launched = CLEW_TRY(from_exec ? inline_::Launched::start_before_exec(options)
                                          : inline_::Launched::start(options));
    pids.push_back(result_.launched->pid());
    std::sort(pids.begin(), pids.end());
  }
  if (pids.empty() && places_.process) {
    return fail(ErrorCode::NotFound, no_process(request_));
  }
  looked_at_.insert(pids.begin(), pids.end());
  if (pids.size() > kProcessesMax) {
    return fail(ErrorCode::Limit,
                fmt::format("{} processes match, {} are possible", pids.size(), kProcessesMax));
  }
  return pids;
}

Expected<std::vector<pid_t>> Compiler::find_or_wait(const Chosen& chosen) {
  auto found = find_chosen(chosen);
  const bool may_wait = stop_descriptor_ && request_.panes == nullptr && !chosen.says_who() &&
                        request_.command.empty() && !places_.everywhere.empty();
  if (!found && found.error().code == ErrorCode::NotFound && may_wait) {
    return fail(ErrorCode::NotFound,
                found.error().message + "; --allow-missing waits for one that has");
  }
  std::vector<pid_t> pids = CLEW_TRY(std::move(found));
  const bool waits = may_wait && pids.empty() && request_.allow_missing;
  if (!waits) return pids;
  notices_.warning(fmt::format("waiting for a process that has '{}' mapped",
                               fmt::join(places_.everywhere, "' or '")));
  pids = CLEW_TRY(wait_for_first(chosen, *stop_descriptor_,
                                 request_.for_ns ? std::optional(std::chrono::nanoseconds(
                                                       static_cast<int64_t>(*request_.for_ns)))
                                                 : std::nullopt));
  result_.started = std::chrono::steady_clock::now();
  has_waited_ = true;
  return pids;
}

Expected<void> Compiler::find_processes() {
  for (const std::string& path : request_.vocabulary_paths)
    CLEW_TRY(vocabulary_.load(path));
  CLEW_TRY(query::check_sources(request_.text, vocabulary_));
  places_ = CLEW_TRY(query::places_of_sources(request_.text, &vocabulary_));
  const bool names_processes = request_.processes.names_some() || !request_.command.empty();
  places_.process = places_.process || !places_.kernel || (places_.joins && names_processes);
  // Whoever may: threads and processes that a thread begins are of its request.
  watches_threads_ = places_.joins && places_.process && !places_.stacks &&
                     request_.spill_path.empty() && !request_.in_place && may_set_uprobes();
  asks_kernel_ = places_.kernel;
  places_.kernel = asks_kernel_ || watches_threads_;
  if (places_.kernel && !request_.spill_path.empty()) {
    return fail(ErrorCode::InvalidQuery,
                "--spill of events of the kernel is not part of this version yet");
  }
  notices_.progress("reading processes and symbols");
  const std::vector<pid_t> pids = CLEW_TRY(wanted_pids());
  shared_.danger = request_.late_uprobe_danger;
  shared_.wants_copies = request_.copies;
  std::optional<Error> first;
  for (const pid_t pid : pids) {
    const bool is_command = result_.launched && result_.launched->pid() == pid;
    if (places_.process) {
      Expected<std::unique_ptr<Tracee>> tracee = Tracee::of_process(pid, shared_);
      if (!tracee && (is_command || pids.size() == 1)) return tl::unexpected(tracee.error());
      if (!tracee) {
        first = first.value_or(tracee.error());
        note_left_out(pid, tracee.error());
        continue;
      }
      if (is_command) (*tracee)->set_command();
      result_.tracees.push_back(std::move(*tracee));
    }
    if (places_.kernel) scope_.pids.push_back(pid);
  }
  if (ended_ != 0) {
    result_.lost.push_back(
        fmt::format("{} process{} that had the module ended before anybody could look: what "
                    "matches in {} is missing",
                    ended_, ended_ == 1 ? "" : "es", ended_ == 1 ? "it" : "them"));
  }
  const bool has_none = first && result_.tracees.empty();
  if (!has_none || has_several_reasons(result_.left_out)) tell_left_out();
  if (has_none) return tl::unexpected(*first);
  return {};
}

// On a whole machine some always end while others are looked at.
void Compiler::note_left_out(pid_t pid, const Error& error) {
  if (places_.everywhere.empty() || error.code != ErrorCode::NotFound) {
    leave_out(pid, error.message);
  } else {
    ++ended_;
  }
}

void Compiler::leave_out(pid_t pid, const std::string& reason) {
  log_step(pid, "is left out: {}", reason);
  result_.left_out.push_back({.process = pid, .reason = reason});
}

// Those that were not told yet: a line for each reason.
void Compiler::tell_left_out() {
  constexpr size_t kNamed = 3;
  std::map<std::string, std::vector<pid_t>> by_reason;
  for (; left_out_told_ < result_.left_out.size(); ++left_out_told_) {
    const auto& one = result_.left_out[left_out_told_];
    by_reason[shared_reason(one)].push_back(one.process);
  }
  for (auto& [reason, pids] : by_reason) {
    if (pids.size() == 1) {
      notices_.warning(fmt::format("process {} is left out: {}", pids[0], reason));
      continue;
    }
    const size_t count = pids.size();
    pids.resize(std::min(count, kNamed));
    notices_.warning(fmt::format("{} processes are left out ({}{}): {}", count,
                                 fmt::join(pids, ", "), count > kNamed ? ", …" : "", reason));
  }
}

Expected<query::Query> Compiler::parse() {
  std::optional<CatalogTypes> program;
  if (!result_.tracees.empty()) program.emplace(result_.tracees[0]->catalog());
  EventTypes types(catalogue_, events_, program ? &*program : nullptr, places_.kernel);
  extensions_ =
      CLEW_TRY(Extensions::load(request_.extensions, {.folder = request_.extension_folder},
                                {"the query language", query::is_language_function}));
  query::Query query = CLEW_TRY(query::parse(
      request_.text, {.vocabulary = &vocabulary_, .types = &types, .extensions = &*extensions_}));
  if (request_.check_query) CLEW_TRY(request_.check_query(query));
  CLEW_TRY(set_ends(request_, query));
  return query;
}

// Where a program says, or a vocabulary of it, what becomes of messages. A program may have types
// with the names of the kernel's.
std::vector<query::Carrier> Compiler::carriers_of_sockets(causal::EdgeClass least) {
  result_.programs = std::make_unique<Programs>(vocabulary_.programs(), least);
  if (!watches_threads_) return {};
  EventTypes types(catalogue_, events_, nullptr, true);
  return carriers_of_messages(*result_.programs, result_.tracees, request_.follow_forks, types,
                              notices_);
}

// What is traced. Each of its sources is in some of the processes, and need not be in all.
Expected<query::Query> Compiler::separate(const query::Query& query) {
  std::optional<CatalogTypes> program;
  if (!result_.tracees.empty()) program.emplace(result_.tracees[0]->catalog());
  EventTypes types(catalogue_, events_, program ? &*program : nullptr, places_.kernel);
  const query::Reporter report(request_.text);
  if (query::joins_by_time(query)) {
    result_.joined = CLEW_TRY(plan::separate(query, {}, report));
    return result_.joined->events;
  }
  result_.joined = CLEW_TRY(separate_causes(
      query,
      {.vocabulary = vocabulary_,
       .types = &types,
       .report = report,
       .watches_threads = watches_threads_,
       .sockets = carriers_of_sockets(query::least_cause(query)),
       .guessed = watches_threads_ ? guessed_programs(*result_.programs, result_.tracees)
                                   : std::vector<std::string>{},
       .in_place = request_.in_place,
       .allow_missing = request_.allow_missing || request_.follow_forks,
       .also = request_.graph ? session::RequestRecorder::fields() : std::vector<query::Field>{}},
      result_.tracees));
  if (!request_.in_place) return result_.joined->events;
  plan::InPlace made = CLEW_TRY(plan::in_place(*result_.joined, report));
  contexts_ = std::move(made.contexts);
  contexts_.are_counted = static_cast<bool>(request_.account);
  result_.in_place = true;
  return std::move(made.query);
}

Expected<void> Compiler::find_sites(const query::Query& query) {
  size_t count = 0;
  std::vector<std::unique_ptr<Tracee>> found;
  tl::unexpected<Error> first{Error{}};
  for (auto& tracee : result_.tracees) {
    const bool may_miss =
        request_.allow_missing || result_.joined.has_value() || !places_.everywhere.empty();
    const Expected<void> sites = tracee->find_sites(query, may_miss);
    if (sites) {
      count += tracee->sites().sites.size();
      found.push_back(std::move(tracee));
      continue;
    }
    const uint16_t source = tracee->sites().source_at_fault;
    const std::string way = way_to_wait(*tracee, query.sources[source], sites.error());
    const tl::unexpected<Error> error = at_source(query, source, sites.error().message + way);
    if (result_.tracees.size() == 1 || tracee->is_command()) return error;
    if (first.value().message.empty()) first = error;
    leave_out(tracee->pid(), sites.error().message);
  }
  result_.tracees = std::move(found);
  const bool has_none = result_.tracees.empty();
  const std::span untold = std::span(result_.left_out).subspan(left_out_told_);
  if (!has_none || has_several_reasons(untold)) tell_left_out();
  if (has_none) return first;
  if (result_.joined || !places_.everywhere.empty()) CLEW_TRY(check_streams(query));
  if (count > kSitesMax && !request_.is_sure) {
    return at_source(query, largest_source(), too_many(count));
  }
  return {};
}

// Each is somewhere, and no two at one place. The nearest name is that of the first process.
Expected<void> Compiler::check_streams(const query::Query& query) {
  std::set<uint16_t> matched;
  for (const auto& tracee : result_.tracees) {
    if (result_.joined)
      CLEW_TRY(check_places(*result_.joined, query::Reporter(request_.text), *tracee));
    for (const Site& site : tracee->sites().sites)
      matched.insert(site.source);
  }
  if (request_.allow_missing) return {};
  const auto count = static_cast<uint16_t>(query.sources.size());
  for (uint16_t source = 0; source < count; ++source) {
    const bool is_in_process = query::is_process_source(query.sources[source].kind);
    const bool is_stream = !result_.joined || result_.joined->is_stream(source);
    if (!is_in_process || !is_stream || matched.contains(source)) continue;
    query::Query alone;
    alone.sources.push_back(query.sources[source]);
    SiteSet sites;
    const auto found = engine::find_sites(alone, result_.tracees[0]->catalog(), false, {}, sites);
    if (found) continue;
    return at_source(
        query, source,
        found.error().message +
            (result_.tracees.size() == 1 ? "" : ", nor in the others that are traced") +
            way_to_wait(*result_.tracees[0], query.sources[source], found.error()));
  }
  return {};
}

// How to go on without what may come later: with a program that is begun, or by itself.
std::string Compiler::way_to_wait(Tracee& tracee, const query::Source& source,
                                  const Error& error) const {
  if (error.code != ErrorCode::NotFound) return "";
  if (request_.follow_forks) return "; --allow-missing waits for a program that has it";
  if (source.module.empty()) return "";
  const auto modules = tracee.catalog().find_modules(source.module);
  return modules && modules->empty() ? "; --allow-missing waits until it is loaded" : "";
}

// The message with the source's place in the query.
tl::unexpected<Error> Compiler::at_source(const query::Query& query, uint16_t source,
                                          const std::string& message) const {
  return query::Reporter(request_.text).fail(query.sources[source].span, message);
}

uint16_t Compiler::largest_source() const {
  std::map<uint16_t, size_t> counts;
  for (const auto& tracee : result_.tracees) {
    for (const Site& site : tracee->sites().sites)
      ++counts[site.source];
  }
  return largest_of(counts);
}

// Open calls are told apart by 17 bits of function and source (abi/region.h).
Expected<void> Compiler::check_function_ids() const {
  if (result_.lowered.layout.records.payload_words == 0) return {};
  for (const auto& tracee : result_.tracees) {
    const size_t functions = tracee->sites().function_numbers.size();
    if (functions <= abi::kFunctionIdsMax) continue;
    return at_source(result_.plan.query, largest_source(),
                     fmt::format("the query pairs calls and returns of {} functions, {} are "
                                 "possible; narrow the pattern, or leave out elapsed and entry",
                                 functions, abi::kFunctionIdsMax));
  }
  return {};
}

// Joins by cause are of programs that are known before.
Expected<void> Compiler::find_later() {
  if (places_.everywhere.empty() || result_.joined || request_.copies) return {};
  Chosen chosen = request_.processes;
  chosen.modules = places_.everywhere;
  result_.later = CLEW_TRY(choose_later(chosen, request_.allowed_names));
  result_.later->known = looked_at_;
  return {};
}

uint32_t Compiler::spare_groups() const {
  const bool follow = request_.follow_forks || result_.later ||
                      std::any_of(result_.tracees.begin(), result_.tracees.end(),
                                  [](const auto& tracee) { return tracee->follows_modules(); });
  return follow && !result_.plan.query.values.empty() ? kSpareGroups : 0;
}

Expected<void> Compiler::compile() {
  query::Query query = CLEW_TRY(parse());
  notices_.progress("finding sites");
  result_.query = query;
  if (request_.panes != nullptr) {
    // Panes are intervals, whatever the text says of those.
    if (!query.window) query.every_ns = request_.pane_clock.panes.width_ns;
    prepare_for_panes(query, epoch_ns_);
  }
  query::set_panes(query, epoch_ns_);
  CLEW_TRY(check_graph(request_, query::joins_by_cause(query)));
  CLEW_TRY(check_in_place(request_, query::joins_by_cause(query)));
  const query::Query whole = query;
  if (!query.joins.empty()) query = CLEW_TRY(separate(query));
  if (request_.panes != nullptr) {
    result_.joins_elsewhere = plan::joins_between_hosts(whole);
    result_.events = event_layout(whole, result_.joined ? &*result_.joined : nullptr, epoch_ns_);
  }
  if (plan::reads_stack(query) && !plan::can_walk_in_processes(query)) {
    kernels_reason_ = query.including_open
                          ? "stacks of a query with 'including open' are walked by the kernel"
                          : "stacks beside sources of the kernel are walked by the kernel";
  }
  if (reads_usdt_arguments(query))
    kernels_reason_ = "arguments of USDT probes are read by the kernel";
  is_kernels_ = places_.process && !kernels_reason_.empty();
  if (is_kernels_) CLEW_TRY(compile_as_uprobes(query));
  if (places_.process && !is_kernels_) CLEW_TRY(compile_processes(query));
  if (places_.kernel) CLEW_TRY(compile_kernel(query));
  if (may_have_uprobes()) CLEW_TRY(compile_uprobes(query));
  return {};
}

KernelInput Compiler::kernel_input() const {
  KernelInput input{
      .clock = std::nullopt, .extensions = extensions_->all(), .fuel = request_.extension_fuel};
  input.epoch_ns = epoch_ns_;
  if (places_.process && !is_kernels_) input.clock = result_.lowered.clock;
  return input;
}

Expected<KernelFamilySites> Compiler::find_children(bool follows) {
  EventTypes types(catalogue_, events_, nullptr, true);
  return find_family({.catalogue = catalogue_, .events = events_, .types = types}, follows);
}

Expected<void> Compiler::compile_kernel(const query::Query& query) {
  auto sites = find_kernel_sites(query, catalogue_, events_, request_.allow_missing);
  if (!sites) return at_source(query, sites.error().source, sites.error().error.message);
  if (sites->size() > kSitesMax && !request_.is_sure) {
    std::map<uint16_t, size_t> counts;
    for (const KernelSite& site : *sites)
      ++counts[site.source];
    return at_source(query, largest_of(counts), too_many(sites->size()));
  }
  note_unmatched(query, true, *sites);
  KernelInput input = kernel_input();
  if (!scope_.pids.empty()) {
    scope_.follows = request_.follow_forks;
    input.family = CLEW_TRY(find_children(scope_.follows));
  }
  result_.kernel = CLEW_TRY(KernelTracee::make(query, std::move(*sites), scope_, std::move(input)));
  if (places_.process) return {};  // The plan is theirs.
  result_.plan = result_.kernel->plan();
  result_.lowered = result_.kernel->lowered().root;
  return {};
}

Expected<void> Compiler::compile_processes(query::Query query) {
  CLEW_TRY(find_sites(query));
  CLEW_TRY(find_later());
  result_.plan = plan::make(std::move(query));
  result_.plan.contexts = std::move(contexts_);
  CLEW_TRY(plan::check_in_place(result_.plan, query::Reporter(request_.text)));
  std::vector<plan::SiteNames> names;
  for (const auto& tracee : result_.tracees) {
    const auto& some = tracee->sites().names;
    names.insert(names.end(), some.begin(), some.end());
  }
  plan::group_sites(result_.plan, names, UINT32_MAX, result_.grouping);
  if (result_.grouping.keys.empty()) {
    result_.grouping.keys.emplace_back(result_.plan.query.values.size());
  }
  size_t at = 0;
  for (const auto& tracee : result_.tracees) {
    for (Site& site : tracee->sites().sites) {
      site.group = result_.grouping.group_of_site[at++];
    }
  }
  return lower();
}

Expected<void> Compiler::lower() {
  if (!clock_) clock_.emplace(clock_start_);
  result_.lowered = CLEW_TRY(plan::lower(
      result_.plan,
      {.tick_multiplier = clock_->multiplier(),
       .tick_shift = kTickShift,
       .base_ticks = clock_start_.ticks,
       .base_ns = static_cast<uint64_t>(clock_start_.monotonic_ns),
       .epoch_ns = epoch_ns_,
       .group_count = static_cast<uint32_t>(result_.grouping.keys.size()) + spare_groups(),
       .branch_guards = request_.branch_guards,
       .extension_fuel = request_.extension_fuel,
       .extensions = extensions_->all(),
       .begins_later = result_.tracees.size() > 1 || places_.kernel || result_.uprobes ||
                       result_.in_place || result_.later}));
  return check_function_ids();
}

Expected<Compiled> compile(const Request& request, Notices& notices,
                           std::optional<int> stop_descriptor) {
  const StepTime time;
  CLEW_TRY(query::check_syntax(request.text));  // Before anything is started or looked at.
  while (true) {
    Compiler compiler(request, notices, stop_descriptor);
    auto done = compiler.find_processes();
    if (done) done = compiler.compile();
    // The first process that was waited for may have been a brief one.
    const bool may_come_again = !done && compiler.has_waited() && is_any_over(compiler.looked_at());
    if (may_come_again) continue;
    CLEW_TRY(done);
    log_step(0, "compiled the query ({:.1f} ms)", time.ms());
    Compiled compiled = compiler.take();
    compiled.has_waited = compiler.has_waited();
    return compiled;
  }
}

}  // namespace clew::engine
