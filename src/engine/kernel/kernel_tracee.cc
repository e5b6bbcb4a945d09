// SPDX-License-Identifier: Apache-2.0
#include "engine/kernel/kernel_tracee.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#include "abi/query_window.h"
#include "base/clock_ns.h"
#include "engine/clock.h"
#include "engine/owners.h"
#include "engine/uprobe_locks.h"
#include "engine/uprobe_places.h"
#include "output/stack_names.h"
#include "plan/kernel_cells.h"
#include "target/live_symbolizer.h"
#include "target/node_name.h"
#include "target/process.h"

namespace clew::engine {
namespace {

constexpr uint64_t kRingBytesPerCpu = uint64_t{8} << 20;
constexpr uint64_t kTableBytesPerCpu = uint64_t{4} << 20;
constexpr uint64_t kBucketBytesPerCpu = uint64_t{12} << 20;  // With quantiles and distinct.
constexpr uint64_t kEntryBytes = uint64_t{8} << 20;          // Of open calls.
constexpr std::chrono::milliseconds kEventPeriod{20};
constexpr uint32_t kLaterMax = 1024;

bool has_ended(const FileDescriptor& process) {
  pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
  return poll(&ended, 1, 0) == 1;
}

}  // namespace

// What the words of its keys and events mean.
class KernelNames final : public answer::Names {
 public:
  KernelNames(const std::vector<plan::SiteNames>& enabled, const KernelScope& scope,
              std::function<std::string(uint64_t)> symbol)
      : enabled_(enabled), scope_(scope), symbol_(std::move(symbol)) {
    std::array<char, 256> host{};
    if (gethostname(host.data(), host.size() - 1) == 0) host_ = host.data();
  }

  std::string function(uint64_t index) override { return name_of(index).function; }
  std::string module(uint64_t index) override { return name_of(index).module; }
  std::string probe(uint64_t index) override { return name_of(index).probe; }
  int64_t pid(uint64_t process) override { return static_cast<int64_t>(process); }
  // Of open calls; in events such names are texts.
  std::string process_name(uint64_t process) override {
    const auto found = target::read_process(static_cast<pid_t>(process));
    if (!found) return "";
    return found->executable.empty() ? found->comm
                                     : found->executable.substr(found->executable.rfind('/') + 1);
  }
  std::string thread_name(uint64_t, uint64_t tid) override {
    const auto found = target::read_process(static_cast<pid_t>(tid));
    return found ? found->comm : "";
  }
  std::string host() override { return host_; }
  // Of open calls, as above.
  std::string node_name(uint64_t process) override {
    return target::node_name_of(static_cast<pid_t>(process));
  }

  const answer::Owner& owner(query::Field field, uint64_t word) override {
    const bool is_user = field == query::Field::User || field == query::Field::Uid;
    return is_user ? owners_.of_user(static_cast<uint32_t>(word)) : owners_.of_group(word);
  }
  uint64_t owner_word(query::Field field, uint64_t process) override {
    const auto pid = static_cast<pid_t>(process);
    const bool is_user = field == query::Field::User || field == query::Field::Uid;
    return is_user ? owners_.of_process(pid).uid : owners_.group_of(pid);
  }

  // Code of programs can be named when all events are of one process.
  [[nodiscard]] bool is_one() const { return scope_.pids.size() == 1 && !scope_.follows; }

  std::string symbol(uint64_t address) override {
    if (address == 0) return "";
    if (symbol_) return symbol_(address);
    const auto known = symbols_.find(address);
    if (known != symbols_.end()) return known->second;
    const bool is_kernel = static_cast<int64_t>(address) < 0;
    std::optional<target::SymbolPlace> place;
    if (is_kernel) place = live_.kernel(address);
    if (!is_kernel && is_one()) {
      place = live_.user(static_cast<uint64_t>(scope_.pids[0]), address);
    }
    return symbols_[address] = shown(address, place);
  }

  aggregate::Stack stack(std::span<const uint64_t> words) override { return stacks_.named(words); }

  // Looks at the process now, while it is there, and at the control groups.
  void keep(bool asks_for_groups) {
    if (asks_for_groups) owners_.keep_groups();
    // One that is gone already has no names.
    if (is_one()) (void)spaces_.look_at(scope_.pids[0]);
  }
  // Of the processes whose code is named.
  target::AddressSpaces& spaces() { return spaces_; }

 private:
  // "module!function": where in it differs from sample to sample, and is not asked for.
  static std::string shown(uint64_t address, const std::optional<target::SymbolPlace>& place) {
    if (!place) return fmt::format("{:#x}", address);
    if (place->function.empty()) return fmt::format("{}+{:#x}", place->module, place->offset_bytes);
    return fmt::format("{}!{}", place->module, place->function);
  }

  [[nodiscard]] const plan::SiteNames& name_of(uint64_t index) const {
    static const plan::SiteNames kNone;
    return index < enabled_.size() ? enabled_[index] : kNone;
  }

  const std::vector<plan::SiteNames>& enabled_;
  const KernelScope& scope_;
  std::function<std::string(uint64_t)> symbol_;  // Of processes; may be empty.
  std::string host_;
  Owners owners_;
  target::AddressSpaces spaces_;
  target::LiveSymbolizer live_{spaces_, 0, true};
  output::StackNames stacks_{live_};
  std::map<uint64_t, std::string> symbols_;
};

KernelTracee::KernelTracee() = default;
KernelTracee::~KernelTracee() = default;

Expected<std::unique_ptr<KernelTracee>> KernelTracee::make(const query::Query& query,
                                                           std::vector<KernelSite> sites,
                                                           const KernelScope& scope,
                                                           KernelInput input) {
  auto tracee = std::make_unique<KernelTracee>();
  tracee->sites_ = std::move(sites);
  tracee->scope_ = scope;
  tracee->fuel_ = input.fuel;
  tracee->query_ = query;
  tracee->plan_ = plan::make_kernel_plan(query);
  plan::KernelLowerInput lowering;
  lowering.pids.assign(scope.pids.begin(), scope.pids.end());
  lowering.tracer_pid = getpid();
  lowering.epoch_ns = input.epoch_ns;
  lowering.extensions = input.extensions;
  lowering.process_sources = input.process_sources;
  tracee->later_ = std::move(input.later);
  tracee->all_are_uprobes_ = input.all_are_uprobes;
  tracee->family_ = input.family;
  tracee->child_cause_ = input.child_cause;
  if (tracee->family_) lowering.family = &tracee->family_->family;
  tracee->lowered_ = CLEW_TRY(plan::lower_kernel(tracee->plan_, lowering));
  if (input.clock) {
    tracee->lowered_.root.clock = *input.clock;
    tracee->counter_.emplace(
        ClockSample{.ticks = input.clock->base_ticks,
                    .monotonic_ns = static_cast<int64_t>(input.clock->base_ns)});
  }
  tracee->group_sites();
  tracee->names_ =
      std::make_unique<KernelNames>(tracee->enabled_names_, tracee->scope_, input.symbol);
  tracee->intake_ = CLEW_TRY(answer::Intake::make(tracee->plan_, tracee->lowered_.root,
                                                  tracee->grouping_, *tracee->names_));
  return tracee;
}

// Leaves out what a filter by name removes.
void KernelTracee::group_sites() {
  std::vector<plan::SiteNames> names;
  names.reserve(sites_.size());
  for (const KernelSite& site : sites_)
    names.push_back(site.names);
  plan::group_sites(plan_, names, UINT32_MAX, grouping_);
  std::vector<KernelSite> kept;
  for (size_t i = 0; i < sites_.size(); ++i) {
    if (grouping_.group_of_site[i]) kept.push_back(std::move(sites_[i]));
  }
  sites_ = std::move(kept);
}

kernel::MachineExtensions KernelTracee::extensions() const {
  kernel::MachineExtensions result;
  for (const plan::KernelFunction& one : lowered_.functions)
    result.functions.push_back({one.name, one.parameters, one.code});
  for (const plan::KernelProgram& program : lowered_.programs) {
    auto& calls = result.calls.emplace_back();
    for (const isa::Reference& call : program.calls)
      calls.push_back({.instruction = call.instruction, .function = call.symbol});
  }
  result.variables_bytes = lowered_.function_bytes;
  for (const extension::InitialWord& word : lowered_.initial_words)
    result.initial_words.push_back({word.offset_bytes, word.value});
  result.fuel = fuel_;
  return result;
}

kernel::MachinePrograms KernelTracee::programs() const {
  kernel::MachinePrograms programs;
  programs.are_probes = true;
  for (const plan::KernelProgram& one : lowered_.programs)
    programs.clauses.push_back(one.program);
  programs.scratch_begin.assign(programs.clauses.size(), abi::kQueryEnd);
  programs.variables = lowered_.variables;
  programs.extensions = extensions();
  programs.aggregations = lowered_.aggregations;
  programs.principal_bytes = has_events() ? kRingBytesPerCpu : 4096;
  const auto& aggregates = plan_.query.aggregates;
  const bool has_buckets =
      std::any_of(aggregates.begin(), aggregates.end(), plan::has_kernel_buckets);
  programs.aggregation_bytes = has_buckets ? kBucketBytesPerCpu : kTableBytesPerCpu;
  programs.dynamic_bytes = kEntryBytes;
  programs.spaces = &names_->spaces();
  programs.target_pids.assign(scope_.pids.begin(), scope_.pids.end());
  if (later_ != nullptr) programs.later_enablings = kLaterMax;
  return programs;
}

bool KernelTracee::has_recorder(uint16_t source) const {
  return std::any_of(lowered_.programs.begin(), lowered_.programs.end(),
                     [source](const auto& one) { return one.source == source && one.is_recorder; });
}

// The probes, then those at the entries of their calls. All of a site have the same id.
std::vector<kernel::MachineEnabling> KernelTracee::enablings() {
  std::vector<kernel::MachineEnabling> enablings;
  for (uint32_t clause = 0; clause < lowered_.programs.size(); ++clause) {
    const plan::KernelProgram& program = lowered_.programs[clause];
    program_sources_.push_back(program.source);
    if (program.family) {
      enable_family(clause, enablings);
      continue;
    }
    for (size_t i = 0; i < sites_.size(); ++i) {
      const KernelSite& site = sites_[i];
      if (site.source != program.source) continue;
      std::vector<kernel::Probe> probes{program.is_recorder ? site.entry : site.probe};
      if (!program.is_recorder) probes.insert(probes.end(), site.more.begin(), site.more.end());
      for (kernel::Probe& probe : probes) {
        probe.id = kFirstProbe + static_cast<uint32_t>(i);
        probe.needs_frame = query::is_kernel_function(plan_.query.sources[site.source].kind) &&
                            has_recorder(site.source);
        probe.ignores_nested = plan_.query.sources[site.source].ignores_nested;
        if (!scope_.follows && scope_.pids.size() <= kernel::kMovesPidsMax)
          probe.moves.pids.assign(scope_.pids.begin(), scope_.pids.end());
        enable(std::move(probe), clause, i, enablings);
      }
    }
  }
  return enablings;
}

void KernelTracee::enable(kernel::Probe probe, uint32_t clause, size_t site,
                          std::vector<kernel::MachineEnabling>& enablings) {
  enablings.push_back({std::move(probe), {clause}});
  enabled_names_.push_back(sites_[site].names);
  enabled_sites_.push_back(site);
}

void KernelTracee::enable_family(uint32_t clause, std::vector<kernel::MachineEnabling>& enablings) {
  const bool begins = *lowered_.programs[clause].family == plan::FamilyEvent::Begins;
  const KernelSite& site = begins ? family_->begins : family_->ends;
  kernel::Probe probe = site.probe;
  probe.id = kFamilyProbe + (begins ? 0 : 1);
  // An end that is missed is no hit: its pid stays in the family, until the session's end.
  probe.ignores_nested = !begins;
  enablings.push_back({std::move(probe), {clause}});
  enabled_names_.push_back(site.names);
  enabled_sites_.push_back(SIZE_MAX);
}

Expected<void> KernelTracee::watch_processes() {
  for (const pid_t pid : scope_.pids) {
    const auto descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (descriptor < 0 && scope_.pids.size() > 1) {
      left_out_.push_back({pid, "it has ended before the session began"});
      continue;
    }
    if (descriptor < 0) {
      return fail(ErrorCode::NotFound, fmt::format("there is no process {}", pid));
    }
    descriptors_.emplace_back(descriptor);
  }
  return {};
}

Expected<void> KernelTracee::load() {
  CLEW_TRY(watch_processes());
  names_->keep(lowered_.asks_for_groups);
  wanted_ = enablings();
  Expected<kernel::MachineSession> session = kernel::MachineSession::load(programs(), wanted_);
  if (!session) return tl::unexpected(explain_rights(session.error()));
  session_.emplace(std::move(*session));
  return {};
}

Expected<void> KernelTracee::attach() {
  CLEW_TRY(load());
  const Expected<void> attached = session_->attach();
  if (!attached) return tl::unexpected(explain_rights(attached.error()));
  for (const uint32_t enabling : session_->functions_left_out())
    refused_.insert(enabled_sites_[enabling]);
  return {};
}

// A site is refused whole.
Expected<void> KernelTracee::refuse_barred() {
  for (const uint32_t enabling : barred_uprobes(wanted_))
    refused_.insert(enabled_sites_[enabling]);
  std::set<uint32_t> elsewhere;
  for (uint32_t i = 0; i < enabled_sites_.size(); ++i) {
    if (refused_.contains(enabled_sites_[i])) elsewhere.insert(i);
  }
  return session_->load_others(elsewhere);
}

// What is loaded needs time, in which others may come and go: so it is done before.
Expected<void> KernelTracee::attach_in_processes(const std::set<pid_t>& wanted,
                                                 inline_::LockWait wait) {
  std::erase_if(scope_.pids, [&](pid_t pid) { return !wanted.contains(pid); });
  std::erase_if(sites_, [&](const KernelSite& site) {
    return !wanted.contains(static_cast<pid_t>(site.probe.pid));
  });
  waiting_.set_wait(wait);
  UprobeLocks locks(std::move(wait));
  do {
    CLEW_TRY(load());
    CLEW_TRY(session_->load_others({}));
    CLEW_TRY(locks.hold(wanted_));
    CLEW_TRY(refuse_barred());
    CLEW_TRY(session_->attach());
    locks.let_go();
  } while (give_up_left_out());
  if (later_ == nullptr) return {};
  if (const auto started = later_->start(scope_.pids, sites_); !started)
    later_problem_ = started.error().message;
  return {};
}

// Sites that the kernel can set only in part are not there at all: then the others are set anew.
// Nothing has fired yet.
bool KernelTracee::give_up_left_out() {
  std::set<size_t> left_out;
  for (const uint32_t probe : session_->left_out())
    left_out.insert(probe - kFirstProbe);
  if (left_out.empty()) return false;
  session_.reset();
  std::vector<KernelSite> kept;
  for (size_t i = 0; i < sites_.size(); ++i) {
    if (left_out.contains(i)) {
      given_up_.push_back(refusal_of(sites_[i], "not-traceable"));
    } else {
      kept.push_back(std::move(sites_[i]));
    }
  }
  sites_ = std::move(kept);
  refused_.clear();
  enabled_names_.clear();
  enabled_sites_.clear();
  program_sources_.clear();
  descriptors_.clear();
  return true;
}

Expected<void> KernelTracee::start(uint64_t /*begin_ticks*/) {
  return session_->begin();
}

void KernelTracee::stop(uint64_t /*end_ticks*/) {
  if (!session_) return;
  session_->stop();
  note_end();
}

void KernelTracee::note_end() {
  if (!ended_) ended_ = sample_clock();
}

bool KernelTracee::gone() const {
  return !scope_.pids.empty() && std::all_of(descriptors_.begin(), descriptors_.end(), has_ended);
}

// One that has ended would wake the session again and again.
void KernelTracee::add_descriptors(std::vector<pollfd>& descriptors) {
  const int processes = session_ ? session_->process_descriptor() : -1;
  if (processes >= 0) descriptors.push_back({.fd = processes, .events = POLLIN, .revents = 0});
  if (later_ != nullptr) {
    for (const int descriptor : later_->descriptors())
      descriptors.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
  }
  for (const FileDescriptor& process : descriptors_) {
    if (has_ended(process)) continue;
    descriptors.push_back({.fd = process.get(), .events = POLLIN, .revents = 0});
  }
}

std::chrono::nanoseconds KernelTracee::patience() {
  return has_events() ? std::chrono::nanoseconds(kEventPeriod) : waiting_.patience();
}

// Processes whose stacks are asked for have changed; read_events() sees that itself.
Expected<void> KernelTracee::turn() {
  add_later();
  const bool has_stacks = session_ && session_->process_descriptor() >= 0;
  if (has_stacks && !has_events()) (void)session_->read([](auto) {});
  return {};
}

uint64_t KernelTracee::now() const {
  if (counter_) return __rdtsc();
  return static_cast<uint64_t>(clock_ns(CLOCK_MONOTONIC));
}

// --- events --------------------------------------------------------------------------------------

uint64_t KernelTracee::event_time(uint64_t time_ns) const {
  return counter_ ? counter_->ticks_at(static_cast<int64_t>(time_ns)) : time_ns;
}

void KernelTracee::take_record(std::span<const uint8_t> record, collect::EventBatch& round) {
  abi::MachineRecordHeader header{};
  if (record.size() < sizeof header) return;
  std::memcpy(&header, record.data(), sizeof header);
  if (header.kind != abi::MachineRecordKind::Data || header.clause >= program_sources_.size())
    return;
  collect::Event event;
  event.shape = program_sources_[header.clause];
  words_.resize(std::min<size_t>((record.size() - sizeof header) / 8,
                                 lowered_.root.event_words[event.shape].most));
  std::memcpy(words_.data(), record.data() + sizeof header, 8 * words_.size());
  event.process = number_ << collect::kMemberShift;
  event.time = event_time(header.time_ns);
  event.words = words_;
  round.push(event);
}

Expected<void> KernelTracee::read_events(collect::EventBatch& round) {
  if (!has_events() || !session_) return {};
  if (counter_) counter_->note(sample_clock());
  (void)session_->read([&](std::span<const uint8_t> record) { take_record(record, round); });
  return {};
}

// Of a query that counts: as many as it asks for.
void KernelTracee::take_events(const collect::EventBatch& events, collect::EventRange range,
                               answer::RowBatch& rows) {
  const std::optional<uint64_t> most = plan_.query.for_events;
  if (!most || plan_.query.shape != query::Shape::Groups) return intake_->take(events, range, rows);
  for (size_t i = range.begin; i < range.end && intake_->passed() < *most; ++i)
    intake_->take(events, {.begin = i, .end = i + 1}, rows);
}

void KernelTracee::fire(uint16_t source, int64_t monotonic_ns, answer::RowBatch& rows) {
  intake_->fire(source, monotonic_ns, rows);
}

// --- counts --------------------------------------------------------------------------------------

void KernelTracee::add_cells(size_t aggregate, const std::vector<kernel::MachineAggregate>& counted,
                             aggregate::Accumulator& cells) const {
  const query::Query& query = plan_.query;
  const aggregate::TableShape& table = lowered_.root.state.tables[0];
  aggregate::KeyedCells groups;
  for (const kernel::MachineAggregate& one : counted) {
    std::vector<uint64_t> key(one.key.size() / 8);
    std::memcpy(key.data(), one.key.data(), 8 * key.size());
    const uint64_t bucket = key.size() > table.key_words ? key.back() : 0;
    key.resize(table.key_words);
    std::vector<uint64_t>& words = groups[std::move(key)];
    if (aggregate == query.aggregates.size()) continue;
    const std::vector<uint64_t> own =
        plan::cells_of(query.aggregates[aggregate], one.cells, bucket);
    words.resize(own.size());
    aggregate::merge(table.group.cells[aggregate], words, own);
  }
  size_t first = 0;
  for (size_t i = 0; i < aggregate; ++i)
    first += aggregate::cell_words(table.group.cells[i]);
  for (const auto& [key, own] : groups) {
    std::vector<uint64_t> words(table.group.words());
    std::copy(own.begin(), own.end(), words.begin() + static_cast<ptrdiff_t>(first));
    cells.entry({}, 0, key, words);
  }
}

Expected<aggregate::Table> KernelTracee::counted(bool takes) {
  aggregate::Accumulator cells(lowered_.root.state);
  for (size_t table = 0; table < lowered_.aggregations.size(); ++table) {
    const auto number = static_cast<uint32_t>(table);
    const std::vector<kernel::MachineAggregate> rows =
        takes ? session_->take(number) : session_->aggregate(number);
    for (size_t i = 0; i < lowered_.table_of.size(); ++i) {
      if (lowered_.table_of[i] == table) add_cells(i, rows, cells);
    }
    if (lowered_.table_of.empty()) add_cells(0, rows, cells);
  }
  aggregate::Table table = intake_->table_of(cells);
  CLEW_TRY(table.merge(intake_->counted()));
  return table;
}

Expected<aggregate::Table> KernelTracee::total() {
  if (has_events()) return intake_->counted();
  return counted(false);
}

Expected<aggregate::Table> KernelTracee::interval() {
  aggregate::Table table = has_events() ? intake_->counted() : CLEW_TRY(counted(true));
  intake_->forget_counted();
  return table;
}

// --- the end -------------------------------------------------------------------------------------

Expected<void> KernelTracee::detach() {
  if (detached_ || !session_) return {};
  detached_ = true;
  meet_last();
  stop(0);
  return session_->end();
}

// What asked for a uprobe says nothing of why there is none.
collect::RefusedSite KernelTracee::refusal_of(const KernelSite& site, std::string_view why) const {
  collect::RefusedSite refused{
      .function = site.names.function, .kind = site.probe.name, .reason = std::string(why)};
  if (!site.refused) return refused;
  if (!all_are_uprobes()) return *site.refused;
  refused.function = site.refused->function;
  refused.kind = site.refused->kind;
  return refused;
}

std::vector<collect::RefusedSite> KernelTracee::refused_sites() const {
  std::vector<collect::RefusedSite> refused = given_up_;
  for (const KernelSite& site : sites_)
    refused.push_back(refusal_of(site, "not-traceable"));
  return refused;
}

collect::Losses KernelTracee::losses() {
  collect::Losses losses;
  losses.sites = armed();
  losses.left_out = left_out_;
  note_later(losses);
  losses.refused = given_up_;
  // Functions of the kernel are refused by itself, places in processes because of what is there.
  const std::string_view site_refusal = all_are_uprobes() ? "foreign-patch" : "not-traceable";
  for (const size_t site : refused_) {
    losses.refused.push_back(refusal_of(sites_[site], site_refusal));
  }
  for (size_t i = 0; i < sites_.size(); ++i) {
    if (refused_.contains(i)) continue;
    if (sites_[i].refused) losses.uprobes.push_back(*sites_[i].refused);
    if (sites_[i].is_timed_to_jump) losses.left_by_jump.push_back(sites_[i].names.function);
  }
  if (!session_) return losses;
  const abi::MachineLosses& lost = session_->shared().losses;
  uint64_t unpaired = 0;
  uint64_t unreadable = 0;
  uint64_t forks = 0;
  for (const abi::MachineWindow& window : session_->windows()) {
    abi::RegionHeader header{};
    const auto* bytes = reinterpret_cast<const uint8_t*>(&window);
    std::memcpy(&header, bytes + abi::kQueryRegionOffset, sizeof header);
    unpaired += header.missed_unpaired;
    unreadable += header.missed_unreadable;
    forks += header.forks;
  }
  uint64_t ring = 0;
  uint64_t table = 0;
  for (uint32_t cpu = 0; cpu < abi::kMachineCpusMax; ++cpu) {
    ring += lost.principal[cpu];
    table += lost.aggregation[cpu];
  }
  if (!scope_.follows) collect::count_cause(losses.missed, child_cause_, forks);
  collect::count_cause(losses.missed, collect::kMissedReentry, lost.nested);
  collect::count_cause(losses.missed, collect::kMissedFuel, lost.fuel);
  collect::count_cause(losses.missed, collect::kMissedUnpaired, unpaired);
  collect::count_cause(losses.missed, collect::kMissedUnreadable, unreadable);
  collect::count_cause(losses.missed, collect::kMissedRecords, lost.dynamic);
  collect::count_cause(losses.dropped, collect::kDroppedRing, ring);
  collect::count_cause(losses.dropped, collect::kDroppedTable, table);
  losses.open = open_;
  for (const auto& [cause, count] : open_missed_)
    collect::count_cause(losses.missed, cause, count);
  return losses;
}

}  // namespace clew::engine
