// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/inline_sites.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <sys/stat.h>

#include "code/refusal.h"
#include "code/window_builder.h"
#include "engine/probe_reads.h"
#include "kernel/attach.h"

namespace clew::engine {

using code::RequestKind;
using kernel::AttachKind;
using plan::d::FiringConstant;
using plan::d::FiringPoint;

namespace {

std::optional<RequestKind> request_kind(AttachKind kind) {
  switch (kind) {
    case AttachKind::UserEntry:
      return RequestKind::Entry;
    case AttachKind::UserReturn:
      return RequestKind::Exits;
    case AttachKind::UserOffset:
    case AttachKind::Usdt:
      return RequestKind::Offset;
    case AttachKind::UserExit:
    case AttachKind::Host:
    case AttachKind::RawTracepoint:
    case AttachKind::TraceEvent:
    case AttachKind::CallMoves:
    case AttachKind::LockReturn:
    case AttachKind::LockWait:
    case AttachKind::SyscallEntry:
    case AttachKind::SyscallReturn:
    case AttachKind::Profile:
    case AttachKind::Tick:
    case AttachKind::FunctionEntry:
    case AttachKind::FunctionReturn:
      return std::nullopt;
  }
  return std::nullopt;
}

FiringPoint firing_point(RequestKind kind) {
  switch (kind) {
    case RequestKind::Entry:
      return FiringPoint::Entry;
    case RequestKind::Exits:
      return FiringPoint::Return;
    case RequestKind::Offset:
      return FiringPoint::Offset;
  }
  return FiringPoint::Offset;
}

// By its name, or by what it leads to: a probe of all processes has a path of its own.
bool is_same_file(const std::string& a, const std::string& b) {
  if (a == b) return true;
  struct stat first = {};
  struct stat second = {};
  return stat(a.c_str(), &first) == 0 && stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

// Whether its arguments are the function's, in each firing.
bool is_plain(const kernel::Probe& probe) {
  return probe.argument_map.empty() && probe.filter_mask == 0 && probe.more_filters.empty() &&
         !probe.is_first_thread_only && !probe.is_everywhere;
}

std::optional<uint64_t> address_in(const target::ModuleImage& image, uint64_t file_offset) {
  for (const target::Section& section : image.sections()) {
    const uint64_t distance = file_offset - section.file_offset;
    if (file_offset >= section.file_offset && distance < section.file_size_bytes) {
      return section.address + distance;
    }
  }
  return std::nullopt;
}

bool has_between(const std::set<uint64_t>& addresses, uint64_t begin, uint64_t end) {
  const auto next = addresses.lower_bound(begin);
  return next != addresses.end() && *next < end;
}

}  // namespace

void InlineSitePlanner::leave_out(uint32_t enabling, const std::string& reason) {
  left_out_.emplace(enabling, reason);
  places_.erase(enabling);
}

void InlineSitePlanner::leave_out_module(size_t module, const std::string& reason) {
  const Places places = places_;
  for (const auto& [enabling, place] : places) {
    if (place.module == module) leave_out(enabling, reason);
  }
}

std::optional<InlineSitePlanner::Place> InlineSitePlanner::place_of(const kernel::Probe& probe) {
  const auto kind = request_kind(probe.kind);
  const auto modules = catalog_.modules();
  for (size_t i = 0; kind && i < modules.size(); ++i) {
    if (!modules[i].is_loaded || modules[i].file.open_path != probe.path) continue;
    const auto image = catalog_.image(i);
    const auto address = image ? address_in(**image, probe.offset_bytes) : std::nullopt;
    if (!address) return std::nullopt;
    return Place{.module = i, .address = *address, .kind = *kind};
  }
  return std::nullopt;
}

void InlineSitePlanner::find_places() {
  for (uint32_t i = 0; i < compiled_.enablings.size(); ++i) {
    const kernel::Probe& probe = enabling_of(i).probe;
    if (left_out_.contains(i) || places_.contains(i)) continue;
    if (probe.pid != catalog_.pid() || !request_kind(probe.kind)) continue;
    const auto place = place_of(probe);
    if (!place || !is_plain(probe)) {
      leave_out(i, "not-inline");
    } else if (!has_program(enabling_of(i))) {
      leave_out(i, "kernel-clause");
    } else {
      places_.emplace(i, *place);
    }
  }
}

// One that machine code can be made of, too.
bool InlineSitePlanner::has_program(const kernel::MachineEnabling& enabling) {
  const auto kind = request_kind(enabling.probe.kind);
  return kind && firings_.can_run(enabling.clauses) &&
         firings_.find(firing_point(*kind), enabling.clauses, enabling.probe.usdt_arguments,
                       FiringForm::Shared) != nullptr;
}

// Its other forms (FiringForm) read no more.
code::ProbeReads InlineSitePlanner::reads_of(uint32_t index, RequestKind kind) {
  const kernel::MachineEnabling& enabling = enabling_of(index);
  const plan::d::Firing* const firing = firings_.find(
      firing_point(kind), enabling.clauses, enabling.probe.usdt_arguments, FiringForm::Shared);
  if (firing == nullptr) return code::kReadsEverything;
  const auto known = reads_.find(firing);
  if (known != reads_.end()) return known->second;
  return reads_.emplace(firing, probe_reads(firing->program)).first->second;
}

InlineModule InlineSitePlanner::plan_module(size_t module, const code::ModuleCode& code) {
  InlineModule planned;
  planned.module = module;
  std::vector<code::Request> requests;
  for (const auto& [enabling, place] : places_) {
    if (place.module != module) continue;
    requests.push_back({.kind = place.kind,
                        .address = place.address,
                        .reads = reads_of(enabling, place.kind),
                        .may_serve_both = false});  // A uprobe loses no hit.
    planned.enablings.push_back(enabling);
  }
  // At a static probe a program of the kernel could not read what the program has not touched yet.
  planned.plan =
      codes_.plan(code, requests, installed_[module], code::LateUprobeDanger::AtStaticProbes);
  return planned;
}

void InlineSitePlanner::drop_refused(const InlineModule& planned) {
  for (const code::Refusal& refusal : planned.plan.refusals) {
    leave_out(planned.enablings[refusal.request], std::string(code::name(refusal.reason)));
  }
}

// A function that leaves by a jump to another one has no result yet. What the accessors find of the
// program's registers has no room for flags that must be kept.
void InlineSitePlanner::drop_unfit(const InlineModule& planned) {
  for (const code::Point& point : planned.plan.points) {
    const uint32_t enabling = planned.enablings[point.request];
    if (point.tail_call && firings_.reads_result(enabling_of(enabling).clauses)) {
      leave_out(enabling, "tail-call-result");
    }
    if (point.keeps_flags) leave_out(enabling, "keeps-flags");
  }
}

// Where the kernel has or will have a breakpoint in the process, as link-time addresses.
std::set<uint64_t> InlineSitePlanner::uprobes_in(size_t module) {
  std::set<uint64_t> addresses;
  const auto image = catalog_.image(module);
  for (uint32_t i = 0; image && i < compiled_.enablings.size(); ++i) {
    const kernel::Probe& probe = enabling_of(i).probe;
    const bool is_here =
        kernel::needs_uprobe(probe.kind) && (probe.pid == catalog_.pid() || probe.pid == 0);
    if (!is_here || places_.contains(i)) continue;
    if (!is_same_file(probe.path, catalog_.modules()[module].file.open_path)) continue;
    const auto address = address_in(**image, probe.offset_bytes);
    if (address) addresses.insert(*address);
  }
  return addresses;
}

void InlineSitePlanner::drop_beside_uprobes(const InlineModule& planned) {
  const std::set<uint64_t> uprobes = uprobes_in(planned.module);
  for (const code::Point& point : planned.plan.points) {
    const code::Window& window = planned.plan.windows[point.window];
    const uint64_t size = code::end_of(window) - window.address;
    const bool beside =
        has_between(uprobes, window.address, window.address + size) ||
        has_between(uprobes, point.tail_address(), point.tail_address() + point.tail.size_bytes);
    if (beside) leave_out(planned.enablings[point.request], "beside-a-uprobe");
  }
}

bool InlineSitePlanner::is_of_one_file(size_t module, size_t other) {
  if (module == other) return true;
  const target::ProcessModule& one = catalog_.modules()[module].file;
  const target::ProcessModule& two = catalog_.modules()[other].file;
  const bool has_same_numbers = one.inode == two.inode && one.device_major == two.device_major &&
                                one.device_minor == two.device_minor;
  if (!has_same_numbers) return false;
  const auto first = catalog_.image(module);
  const auto second = catalog_.image(other);
  return first && second && (*first)->identity() == (*second)->identity();
}

bool InlineSitePlanner::has_probes_of(size_t module) {
  return std::any_of(places_.begin(), places_.end(), [&](const auto& place) {
    return is_of_one_file(place.second.module, module);
  });
}

bool InlineSitePlanner::has_probes_of_name(size_t module) const {
  const auto modules = catalog_.modules();
  return std::any_of(places_.begin(), places_.end(), [&](const auto& place) {
    return modules[place.second.module].file.path == modules[module].file.path;
  });
}

// The windows of one module's probes that can have some; the places of the others are dropped.
std::optional<InlineModule> InlineSitePlanner::plan_fitting(size_t module) {
  const auto code = codes_.code(catalog_, module);
  if (!code) leave_out_module(module, "not-code");
  for (size_t before = places_.size() + 1; code && places_.size() != before;) {
    before = places_.size();
    InlineModule planned = plan_module(module, **code);
    drop_refused(planned);
    drop_unfit(planned);
    drop_beside_uprobes(planned);
    if (places_.size() == before) return planned;
  }
  return std::nullopt;
}

// What cannot be there this time may be there the next.
LateModule InlineSitePlanner::plan_again(size_t module, InstalledWindows installed) {
  installed_[module] = std::move(installed);
  for (auto& [enabling, place] : places_) {
    if (is_of_one_file(place.module, module)) place.module = module;
  }
  const Places places = places_;
  LateModule late;
  late.planned = plan_fitting(module).value_or(InlineModule{module, {}, {}});
  for (const auto& [enabling, place] : places) {
    if (places_.contains(enabling)) continue;
    ++late.refusals[left_out_.at(enabling)];
    left_out_.erase(enabling);
  }
  places_ = places;
  return late;
}

// What is dropped may drop more: its uprobe may stand in a window.
InlineSites InlineSitePlanner::plan() {
  find_places();
  InlineSites sites;
  for (size_t before = places_.size() + 1; places_.size() != before;) {
    before = places_.size();
    sites.modules.clear();
    std::set<size_t> modules;
    for (const auto& [enabling, place] : places_)
      modules.insert(place.module);
    for (const size_t module : modules) {
      const auto code = codes_.code(catalog_, module);
      if (!code) {
        leave_out_module(module, "not-code");
        continue;
      }
      sites.modules.push_back(plan_module(module, **code));
      drop_refused(sites.modules.back());
      drop_unfit(sites.modules.back());
    }
    for (const InlineModule& planned : sites.modules)
      drop_beside_uprobes(planned);
  }
  for (const auto& [enabling, place] : places_)
    sites.enablings.insert(enabling);
  for (const auto& [enabling, reason] : left_out_)
    ++sites.refusals[reason];
  return sites;
}

void InlineSitePlanner::add_semaphores(size_t module, std::set<uint64_t>& addresses) {
  const auto image = catalog_.image(module);
  for (const auto& [enabling, place] : places_) {
    const kernel::Probe& probe = enabling_of(enabling).probe;
    if (!image || place.module != module || probe.semaphore_offset_bytes == 0) continue;
    const auto address = address_in(**image, probe.semaphore_offset_bytes);
    if (address) addresses.insert(catalog_.runtime_address(module, *address));
  }
}

std::vector<uint64_t> InlineSitePlanner::semaphores() {
  std::set<size_t> modules;
  for (const auto& [enabling, place] : places_)
    modules.insert(place.module);
  std::set<uint64_t> addresses;
  for (const size_t module : modules)
    add_semaphores(module, addresses);
  return {addresses.begin(), addresses.end()};
}

void InlineSitePlanner::choose_form(const InlineSites& sites, InlineCells& cells,
                                    std::span<const abi::MachineEnabled> names, bool has_counter) {
  form_ = FiringForm::Cells;
  const plan::d::PrivateVariables& privates = compiled_.generated.privates;
  // Probes that match nothing yet may come.
  const bool is_open = compiled_.script.options.is_set("zdefs");
  if (!may_be_private_ || is_open || (!has_counter && !privates.times.empty())) return;
  bool has_any = false;
  for (uint32_t i = 0; i < compiled_.enablings.size(); ++i) {
    const kernel::MachineEnabling& enabling = enabling_of(i);
    const bool is_here = enabling.probe.pid == catalog_.pid();
    if (!is_here || !firings_.names_privates(enabling.clauses)) continue;
    std::vector<uint64_t> places;
    const bool can_be = sites.enablings.contains(i) &&
                        find_in_form(i, FiringForm::Private, cells, names, places) != nullptr;
    if (!can_be) return;
    has_any = true;
  }
  if (has_any) form_ = FiringForm::Private;
}

// Null when there is no room for its updates: `places` of these.
const plan::d::Firing* InlineSitePlanner::find_in_form(uint32_t index, FiringForm form,
                                                       InlineCells& cells,
                                                       std::span<const abi::MachineEnabled> names,
                                                       std::vector<uint64_t>& places) {
  const kernel::MachineEnabling& enabling = enabling_of(index);
  const FiringPoint point = firing_point(places_.at(index).kind);
  const plan::d::Firing* const firing =
      firings_.find(point, enabling.clauses, enabling.probe.usdt_arguments, form);
  places.clear();
  for (size_t i = 0; firing != nullptr && i < firing->updates.size(); ++i) {
    const auto place = cells.place(firing->updates[i], names[index]);
    if (!place) return nullptr;
    places.push_back(*place);
  }
  return firing;
}

const plan::d::Firing* InlineSitePlanner::find_firing(uint32_t index, InlineCells& cells,
                                                      std::span<const abi::MachineEnabled> names,
                                                      std::vector<uint64_t>& places) {
  const bool has_privates = firings_.names_privates(enabling_of(index).clauses);
  const FiringForm form = has_privates ? form_ : FiringForm::Cells;
  const plan::d::Firing* const firing = find_in_form(index, form, cells, names, places);
  if (firing != nullptr || form == FiringForm::Private) return firing;
  return find_in_form(index, FiringForm::Shared, cells, names, places);
}

std::string InlineSitePlanner::name_of(uint32_t enabling) const {
  const kernel::Probe& probe = enabling_of(enabling).probe;
  return fmt::format("{}:{}:{}:{}", probe.provider, probe.module, probe.function, probe.name);
}

std::pair<std::string, std::string> InlineSitePlanner::function_of(uint32_t enabling) const {
  const kernel::Probe& probe = enabling_of(enabling).probe;
  return {probe.module, probe.function};
}

Expected<ModulePoints> InlineSitePlanner::points_of(const InlineModule& module, InlineCells& cells,
                                                    std::span<const abi::MachineEnabled> names) {
  ModulePoints points;
  const target::ProcessModule& file = catalog_.modules()[module.module].file;
  points.plan = &module.plan;
  points.load_bias = file.load_bias;
  points.text = file.executable_ranges;
  for (const code::Point& point : module.plan.points) {
    const uint32_t index = module.enablings[point.request];
    const Place& place = places_.at(index);
    const kernel::MachineEnabling& enabling = enabling_of(index);
    std::vector<uint64_t> cell_places;
    const plan::d::Firing* const firing = find_firing(index, cells, names, cell_places);
    if (firing == nullptr) return fail(ErrorCode::InvalidQuery, "clauses without a program");
    PointProgram& program = points.programs.emplace_back();
    program.program = &firing->program;
    program.constants.resize(static_cast<size_t>(FiringConstant::Count));
    const auto set = [&](FiringConstant which, uint64_t value) {
      program.constants[static_cast<size_t>(which)] = value;
    };
    set(FiringConstant::Cookie, kernel::cookie_of(enabling.probe.id, index));
    const std::optional<uint32_t> fuel_place = cells.fuel_place(index);
    if (fuel_place) program.fuel_counts = {.of_thread = *fuel_place};
    program.fuel = compiled_.generated.extensions.fuel;
    set(FiringConstant::Fuel, fuel_place.value_or(0));
    if (form_ == FiringForm::Private) set(FiringConstant::Tick, firings_.tick());
    set(FiringConstant::ProgramCounter, point.address + points.load_bias);
    set(FiringConstant::ReturnOffset, point.address - place.address);
    program.constants.insert(program.constants.end(), cell_places.begin(), cell_places.end());
    if (firing->wants_registers) program.saved = abi::kAllSaved;
  }
  return points;
}

}  // namespace clew::engine
