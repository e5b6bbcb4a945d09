// SPDX-License-Identifier: Apache-2.0
// The steps of a removal. Each may be the last one: the text of a site is either as it was or leads
// to complete code.
#include "inline/removal.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sys/syscall.h>

#include "code/both_ways.h"
#include "inline/attachment_state.h"
#include "inline/copy_way.h"
#include "inline/reading_way.h"
#include "inline/shared_parts.h"
#include "inline/text_repair.h"
#include "runtime/blob.h"

namespace clew::inline_ {
namespace {

// A drain ends after 0.5 s at most: thread states that last are residue.
constexpr unsigned kDrainRoundsMax = 56;
constexpr std::chrono::microseconds kRunTime{50};
constexpr std::chrono::microseconds kRunTimeMax{10'000};

std::span<const uint8_t> original(const abi::PatchRecord& patch) {
  return {patch.original, patch.size_bytes};
}
// Does the patch lie in code of a module that is the process's own copy?
bool is_private_code(std::span<const target::Mapping> maps, const abi::PatchRecord& patch) {
  const uint64_t last = patch.address + patch.size_bytes - 1;
  return std::any_of(maps.begin(), maps.end(), [&](const target::Mapping& map) {
    return map.executable && !map.shared && map.contains(patch.address) && map.contains(last);
  });
}

bool is_semaphore(const abi::SharedRecord& part) {
  return part.kind == abi::SharedKind::Semaphore || part.kind == abi::SharedKind::SemaphoreChanging;
}

std::span<const uint8_t> written(const abi::PatchRecord& patch) {
  return {patch.written, patch.size_bytes};
}

bool has_jumps_left(const DetachReport& report) {
  return std::any_of(report.left.begin(), report.left.end(),
                     [](const TextChange& change) { return change.is_jump(); });
}

bool is_of_c_library(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  return file.starts_with("libc.so") || file.starts_with("ld-linux");
}

// Has the change a byte of one of the intervals (ascending)?
bool meets(std::span<const AddressInterval> intervals, const TextChange& change) {
  const auto next = std::upper_bound(
      intervals.begin(), intervals.end(), change.address,
      [](uint64_t wanted, const AddressInterval& one) { return wanted < one.end; });
  return next != intervals.end() && next->begin < change.end();
}

}  // namespace

Removal::Removal(const Arena& arena, SiteJournal& journal, const RemovalRequest& request)
    : arena_(arena), journal_(journal), request_(request) {
  list_changes();
  list_hops();
  list_code();
}

bool Removal::leaves(uint32_t session) const {
  return request_.everything || (request_.leaving >> (session % abi::kSessionsMax) & 1) != 0;
}

bool Removal::leaves_layer(uint32_t index) const {
  return leaves(journal_.layer(index).session) || request_.layers.contains(index);
}

void Removal::list_changes() {
  for (const auto& [address, site] : journal_.by_address()) {
    Change change;
    change.site = site;
    for (const uint32_t layer : journal_.layers_of(site)) {
      (leaves_layer(layer) ? change.leaving : change.staying).push_back(layer);
    }
    const bool nothing = change.leaving.empty() && !change.staying.empty();
    if (!nothing) changes_.push_back(std::move(change));
  }
}

// What leaving sessions share is called by code that others may be in, too: the runtime. With such
// a session, nobody may be in any of it.
bool Removal::takes_memory() const {
  const auto parts = arena_.shared_parts();
  return std::any_of(parts.begin(), parts.end(),
                     [&](const auto& part) { return leaves(part.second.session); });
}

// Padding, which leads into the next function once the jump there is gone: nobody may stand before
// it.
void Removal::list_hops() {
  for (const Change& change : changes_) {
    if (!change.staying.empty()) continue;
    for (const uint32_t index : change.leaving) {
      const abi::LayerRecord& layer = journal_.layer(index);
      for (uint32_t i = 0; i < layer.patch_count; ++i) {
        const uint64_t jump = layer.patches[i].address;
        const abi::SiteRecord& site = journal_.site(change.site);
        const bool is_inside = jump - site.address < site.size_bytes;
        if (!is_inside) hops_[jump] = change.site;
      }
    }
  }
}

// What the runtime calls, in the process's vDSO.
void Removal::list_load() {
  const abi::LoadRecord record = arena_.journal().load;
  load_.reset();
  if (record.load == 0 || !is_in_vdso(record, maps_)) return;
  load_ = record;
  const bool is_listed = std::any_of(code_.begin(), code_.end(), [&](const AddressInterval& one) {
    return one.begin == record.load;
  });
  if (is_listed || !(request_.everything || takes_memory())) return;
  code_.push_back({record.load, record.load + kLoadCode.size()});
  code_.push_back({record.landing, record.landing + kLandingCode.size()});
  sort_code();
}

void Removal::list_code() {
  for (const auto& [address, site] : hops_)
    code_.push_back({address, address + 1});
  if (request_.everything || takes_memory()) {
    const ArenaExtents extents = arena_.extents();
    for (uint32_t i = 0; i < extents.count; ++i) {
      const abi::ExtentRecord& extent = extents.records[i];
      code_.push_back({extent.address, extent.address + extent.size_bytes});
    }
  } else {
    for (const Change& change : changes_) {
      for (const uint32_t index : change.leaving) {
        const abi::LayerRecord& layer = journal_.layer(index);
        code_.push_back({layer.address, layer.address + layer.size_bytes});
      }
    }
  }
  sort_code();
}

void Removal::sort_code() {
  std::sort(code_.begin(), code_.end(),
            [](const AddressInterval& a, const AddressInterval& b) { return a.begin < b.begin; });
}

void Removal::look_at_text(pid_t pid) {
  texts_.emplace(pid, ChangedText(pid));
}

void Removal::look_for_resting_frames(pid_t pid, uint64_t restorer) {
  restorer_ = restorer;
  resting_of_[pid] = find_resting_frames(pid, restorer);
}

// Of a process whose threads ran on: their handlers may have switched away.
Expected<void> Removal::look_again(const StoppedTarget& target) {
  maps_ = CLEW_TRY(target::read_memory_map(target.pid()));
  for (const uint64_t frame : find_resting_frames(target.pid(), restorer_)) {
    if (std::find(resting_.begin(), resting_.end(), frame) == resting_.end())
      resting_.push_back(frame);
  }
  threads_ran_ = false;
  return {};
}

Expected<DetachReport> Removal::run(StoppedTarget& target) {
  report_ = {};
  keeps_copies_alone_ = false;
  if (has_copies()) {
    CLEW_TRY(take_out_of_text(target));
    CLEW_TRY(compare_text(target));
    report_.residue = true;
    report_.residue_reason = "its functions run on copies, to which return addresses lead";
    return report_;
  }
  const auto known = resting_of_.find(target.pid());
  resting_ =
      known != resting_of_.end() ? known->second : find_resting_frames(target.pid(), restorer_);
  maps_ = CLEW_TRY(target::read_memory_map(target.pid()));
  list_load();
  CLEW_TRY(restore_text(target));
  if (!has_query_copies()) CLEW_TRY(compare_text(target));
  report_.residue = !CLEW_TRY(drain(target)) || keeps_copies();
  if (has_query_copies()) CLEW_TRY(compare_text(target));
  if (!report_.residue) report_.residue_reason.clear();
  if (request_.everything && report_.foreign_patches != 0) {
    report_.residue = true;
    keeps_copies_alone_ = false;
    report_.residue_reason = "somebody else changed text that Clew had patched";
  }
  if (request_.everything && has_jumps_left(report_)) {
    report_.residue = true;
    keeps_copies_alone_ = false;
    report_.residue_reason = "jumps of sessions stay in its text";
  }
  // With residue the journal stays as it is, for the next one who cleans up.
  if (report_.residue) return report_;
  if (request_.everything) reset_gs(target);
  // Nobody is sent out of code that is gone already, or whose data is.
  CLEW_TRY(target.write_registers());
  CLEW_TRY(unmap_shared_parts(target));
  if (request_.everything && load_) {
    stop_loads(arena_);  // Should memory stay, nobody is led there.
    CLEW_TRY(remove_load(target, *load_));
  }
  if (request_.everything) CLEW_TRY(Arena::unmap(target));
  return report_;
}

Expected<void> Removal::take_out_of_text(StoppedTarget& target) {
  resting_ = find_resting_frames(target.pid(), restorer_);
  maps_ = CLEW_TRY(target::read_memory_map(target.pid()));
  CLEW_TRY(restore_text(target));
  (void)CLEW_TRY(move_out(target));
  return target.write_registers();
}

std::vector<TextImage::Range> Removal::text_ranges() const {
  std::vector<TextImage::Range> ranges;
  for (const Change& change : changes_) {
    for (const uint32_t layer : change.leaving) {
      const abi::LayerRecord& record = journal_.layer(layer);
      for (uint32_t i = 0; i < record.patch_count; ++i) {
        ranges.push_back({record.patches[i].address, record.patches[i].size_bytes});
      }
    }
  }
  return ranges;
}

Expected<void> Removal::restore_text(StoppedTarget& target) {
  TextImage text(text_ranges());
  text.load(target);
  CLEW_TRY(leave_both_ways(target, text));
  for (const Change& change : changes_)
    restore_site(text, change);
  CLEW_TRY(text.flush(target));
  leave_copies();
  return {};
}

// Behind the text: nobody comes in any more, and who is in a copy goes on in originals.
void Removal::leave_copies() const {
  for (const Change& change : changes_) {
    for (const uint32_t layer : change.leaving)
      leave_copy(arena_, journal_.layer(layer));
  }
}

bool Removal::has_copies() const {
  return (arena_.journal().copied_modules & kRecordersCopies) != 0;
}

bool Removal::has_query_copies() const {
  return (arena_.journal().copied_modules & kQueryCopies) != 0;
}

// Return addresses lead to copies until their functions have returned, and what coroutines,
// contexts and setjmp(3) have kept leads there at any time.
bool Removal::keeps_copies() {
  if (!request_.everything || !has_query_copies()) return false;
  keeps_copies_alone_ = true;
  report_.residue_reason = fmt::format(
      "{} KiB of code stay, as functions that were called during the session may return to copies",
      code_kib());
  return true;
}

uint64_t Removal::code_kib() const {
  const ArenaExtents extents = arena_.extents();
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < extents.count; ++i)
    bytes += extents.records[i].used_bytes;
  return (bytes + 1023) / 1024;
}

// Bytes that serve both ways are two instructions, of which the second is a jump that any of the
// layers may have written. Who stands in front of it has flags that say how to go on.
Expected<void> Removal::leave_both_ways(StoppedTarget& target, const TextImage& text) {
  std::map<uint64_t, uint32_t> sites;  // By where the jump is, ascending.
  for (const Change& change : changes_) {
    const abi::SiteRecord& site = journal_.site(change.site);
    const bool ends = !change.leaving.empty() && change.staying.empty() && serves_both_ways(site) &&
                      is_mapped_as_recorded(maps_, site);
    if (!ends) continue;
    const uint64_t at = site.address + code::kMarkSizeBytes;
    const bool is_there =
        std::any_of(change.leaving.begin(), change.leaving.end(), [&](uint32_t index) {
          const auto written = std::span(journal_.layer(index).patches[0].written);
          return text.equals(at, written.subspan(code::kMarkSizeBytes, code::kJumpSizeBytes));
        });
    if (is_there) sites[at] = change.site;
  }
  if (sites.empty()) return {};
  std::vector<AddressInterval> places;
  places.reserve(sites.size());
  for (const auto& [at, site] : sites)
    places.push_back({at, at + 1});
  for (const ProgramCounter& counter : find_program_counters(target, maps_, places, resting_)) {
    const auto out = way_of_flags(target, counter, journal_.site(sites.at(counter.value)));
    if (!out) return fail(ErrorCode::Io, "a thread in front of a probe has no flags");
    CLEW_TRY(set_program_counter(target, counter, *out));
  }
  return target.write_registers();  // Before the text: we may be killed.
}

// Of a thread at the jump, or in front of the trampoline's first instruction.
std::optional<uint64_t> Removal::way_of_flags(StoppedTarget& target, const ProgramCounter& counter,
                                              const abi::SiteRecord& site) {
  const auto flags = flags_of(target, counter);
  if (!flags) return std::nullopt;
  return site.address + (code::has_done_first(*flags) ? site.instructions[0].length : 0);
}

std::vector<AddressInterval> Removal::patches_of(bool leaving) const {
  std::vector<AddressInterval> found;
  for (const auto& [address, site] : journal_.by_address()) {
    for (const uint32_t index : journal_.layers_of(site)) {
      const abi::LayerRecord& layer = journal_.layer(index);
      for (uint32_t i = 0; i < layer.patch_count && leaves_layer(index) == leaving; ++i) {
        const abi::PatchRecord& patch = layer.patches[i];
        found.push_back({patch.address, patch.address + patch.size_bytes});
      }
    }
  }
  std::sort(found.begin(), found.end(), [](const AddressInterval& a, const AddressInterval& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  return found;
}

// The last look, when sessions leave: at all copies of pages that the process has, whatever the
// journal says of them. Jumps of ours that it does not know go; that it knows a place where other
// bytes are is for the user to hear. A trap is somebody's who writes back the file's byte.
Expected<void> Removal::compare_text(StoppedTarget& target) {
  if (request_.leaving == 0 && !request_.everything) return {};
  const auto known = texts_.find(target.pid());
  const ChangedText& text =
      known != texts_.end() ? known->second
                            : texts_.emplace(target.pid(), ChangedText(target.pid())).first->second;
  const auto leads_to_ours = [&](uint64_t address) { return arena_.contains_code(address); };
  const std::vector<AddressInterval> staying = patches_of(false);
  const std::vector<AddressInterval> left = patches_of(true);
  std::vector<TextChange> jumps;
  for (TextChange& change : text.find(leads_to_ours)) {
    // Exceptions may go through copies, of which the C library is asked (inline/answers.h).
    const bool may_throw = (arena_.journal().copied_modules & kExceptionsPass) != 0;
    const bool answers = (has_copies() || may_throw) && is_of_c_library(change.path);
    if (meets(staying, change) || answers) continue;
    if (change.is_jump()) {
      jumps.push_back(std::move(change));
    } else if (change.kind == ChangeKind::Other && meets(left, change)) {
      report_.left.push_back(std::move(change));
    }
  }
  TextRepair repair = CLEW_TRY(repair_text(target, maps_, resting_, jumps));
  // What unwinders were asked by: the session's own.
  const auto own = std::count_if(jumps.begin(), jumps.end(), [this](const TextChange& change) {
    return has_query_copies() && is_of_c_library(change.path);
  });
  repair.repaired -= std::min(repair.repaired, static_cast<uint32_t>(own));
  report_.repaired = repaired_ += repair.repaired;
  report_.left.insert(report_.left.end(), repair.left.begin(), repair.left.end());
  return {};
}

// The text holds what one of the layers wrote, or a part of it (also of one that stays, where a
// uprobe has been), or the original bytes.
void Removal::restore_site(TextImage& text, const Change& change) {
  if (!is_mapped_as_recorded(maps_, journal_.site(change.site))) {
    ++report_.vanished;
    return;
  }
  if (change.leaving.empty()) return;
  journal_.relink(change.staying);
  const abi::LayerRecord* const top =
      change.staying.empty() ? nullptr : &journal_.layer(change.staying.back());
  const abi::LayerRecord& any = journal_.layer(change.leaving.front());
  bool foreign = false;
  // The jump to a hop goes before what it leads to.
  for (uint32_t i = any.patch_count; i-- > 0;) {
    const abi::PatchRecord& patch = any.patches[i];
    const auto wanted = top == nullptr ? original(patch) : written(top->patches[i]);
    // Records that do not fit each other were not written by us.
    const bool fits = wanted.size() == patch.size_bytes && is_private_code(maps_, patch) &&
                      (top == nullptr || top->patches[i].address == patch.address);
    if (fits && text.equals(patch.address, wanted)) continue;
    if (fits &&
        (is_ours(text, change, i) || text.is_mix_of(patch.address, original(patch), wanted))) {
      text.change_but_traps(patch.address, original(patch), wanted);
    } else {
      foreign = true;
    }
  }
  if (foreign) ++report_.foreign_patches;
}

// A write of one of the layers that go, or a part of it; breakpoints may stand on it.
bool Removal::is_ours(const TextImage& text, const Change& change, uint32_t patch) const {
  return std::any_of(change.leaving.begin(), change.leaving.end(), [&](uint32_t index) {
    const abi::LayerRecord& layer = journal_.layer(index);
    const abi::PatchRecord& record = layer.patches[patch];
    const abi::PatchRecord& wanted = journal_.layer(change.leaving.front()).patches[patch];
    return patch < layer.patch_count && record.address == wanted.address &&
           record.size_bytes == wanted.size_bytes &&
           text.is_mix_of(record.address, original(record), written(record));
  });
}

// Moves threads that stand between two instructions of the program. The others, which must run on;
// nothing when nobody can say when one will.
Expected<std::optional<std::vector<size_t>>> Removal::move_out(StoppedTarget& target) {
  // Also threads in a handler that interrupted a probe: most handlers soon return.
  std::vector<size_t> running;
  for (const ProgramCounter& counter : find_program_counters(target, maps_, code_, resting_)) {
    if (const auto out = way_out(target, counter)) {
      CLEW_TRY(set_program_counter(target, counter, *out));
      continue;
    }
    if (is_in_copy(counter.value)) continue;
    report_.residue_reason = who_stays(target, counter);
    if (counter.thread == kNoThread) return std::nullopt;
    const bool known = std::find(running.begin(), running.end(), counter.thread) != running.end();
    if (!known) running.push_back(counter.thread);
  }
  return running;
}

// Of a function, or in what unwinders are answered by: nobody has to come out, as it stays then.
bool Removal::is_in_copy(uint64_t pc) const {
  if (!has_query_copies() || journal_.layer_at(pc)) return false;
  const ArenaExtents extents = arena_.extents();
  const uint32_t extent = extents.index_of(pc, 1);
  return extent != extents.count &&
         pc - extents.records[extent].address >= runtime::runtime_blob().bytes.size();
}

std::string Removal::who_stays(StoppedTarget& target, const ProgramCounter& counter) const {
  const auto layer = journal_.layer_at(counter.value);
  const std::string place = layer ? fmt::format("the probe at {:#x}, byte {}",
                                                journal_.site(journal_.layer(*layer).site).address,
                                                counter.value - journal_.layer(*layer).address)
                                  : fmt::format("code that probes share ({:#x})", counter.value);
  if (counter.thread == kNoThread) {
    return fmt::format("a signal handler that nobody runs has interrupted {}", place);
  }
  const pid_t tid = target.threads()[counter.thread].tid;
  return counter.saved_at == 0
             ? fmt::format("thread {} is still in {}", tid, place)
             : fmt::format("a signal handler of thread {} has interrupted {}", tid, place);
}

// Moves threads out, lets those that cannot be moved run on until they can. True when none is left
// inside.
Expected<bool> Removal::drain(StoppedTarget& target) {
  std::chrono::microseconds time = kRunTime;
  for (unsigned round = 0; round < kDrainRoundsMax; ++round) {
    const std::optional<std::vector<size_t>> running = CLEW_TRY(move_out(target));
    thread_is_inside_ = running && !running->empty();
    if (!running) return false;
    if (running->empty()) {
      if (!threads_ran_) return true;
      CLEW_TRY(look_again(target));
      continue;
    }
    CLEW_TRY(target.run_briefly(*running, time));
    threads_ran_ = true;
    // On a busy machine it takes a while until a thread gets a processor.
    time = std::min(2 * time, kRunTimeMax);
  }
  return false;
}

std::optional<uint64_t> Removal::way_out(StoppedTarget& target,
                                         const ProgramCounter& counter) const {
  const uint64_t pc = counter.value;
  const auto hop = hops_.find(pc);
  if (hop != hops_.end()) {
    const abi::SiteRecord& site = journal_.site(hop->second);
    return is_mapped_as_recorded(maps_, site) ? site.address : pc;
  }
  const auto index = journal_.layer_at(pc);
  if (!index) return std::nullopt;
  const abi::LayerRecord& layer = journal_.layer(*index);
  const abi::SiteRecord& site = journal_.site(layer.site);
  if (pc == layer.address && serves_both_ways(site)) return way_of_flags(target, counter, site);
  return way_out_of(layer, pc);
}

std::optional<uint64_t> Removal::way_out_of(const abi::LayerRecord& layer, uint64_t pc) const {
  const abi::SiteRecord& site = journal_.site(layer.site);
  if (pc == layer.address) return site.address + site.kept_bytes;  // Nothing has run yet.
  for (uint32_t i = 0; i < site.instruction_count; ++i) {
    if (pc == layer.address + layer.instructions[i].copy) return continue_at(layer, i);
  }
  if (layer.back_offset != 0 && pc == layer.address + layer.back_offset) {
    return site.address + site.size_bytes;
  }
  return std::nullopt;
}

// Where instruction `i` of the layer's window is executed once the layer is gone; none when probes
// of layers above, which stay, have to run first: the thread finds its way there.
std::optional<uint64_t> Removal::continue_at(const abi::LayerRecord& layer,
                                             uint32_t instruction) const {
  const abi::SiteRecord& site = journal_.site(layer.site);
  const abi::LayerRecord* top = nullptr;
  for (const uint32_t index : journal_.layers_of(layer.site)) {
    if (!leaves_layer(index)) top = &journal_.layer(index);
  }
  if (top == nullptr) return site.address + site.instructions[instruction].offset;
  if (top->order > layer.order) return std::nullopt;
  return top->address + top->instructions[instruction].copy;
}

Expected<void> Removal::unmap_inside(StoppedTarget& target, std::span<const target::Mapping> maps,
                                     const abi::SharedRecord& part) {
  for (const target::Mapping& map : maps) {
    const bool inside = map.start >= part.address && map.start - part.address < part.size_bytes &&
                        map.end - part.address <= part.size_bytes;
    if (!inside || !is_shared_part(map)) continue;
    CLEW_TRY(target.checked_call(
        "munmap", {.number = SYS_munmap, .arguments = {map.start, map.size_bytes()}}));
  }
  return {};
}

// What dead tracers did not come to close.
Expected<void> Removal::close_left_behind(StoppedTarget& target) {
  const uint32_t dead = dead_sessions(arena_);
  std::vector<abi::SharedRecord> of_dead;
  for (const auto& [index, record] : arena_.shared_parts()) {
    if ((dead >> (record.session % abi::kSessionsMax) & 1) != 0) of_dead.push_back(record);
  }
  if (of_dead.empty()) return {};
  return close_forgotten(target, descriptors_left(target.pid(), of_dead));
}

// No body of a session that leaves runs any more, and none will. Forked children share the journal:
// what is unmapped in one of them is still to be found in the others.
Expected<void> Removal::unmap_shared_parts(StoppedTarget& target) {
  const auto records = arena_.shared_parts();
  if (records.empty()) return {};
  const auto maps = CLEW_TRY(target::read_memory_map(target.pid()));
  const bool is_first = arena_.header().pid == static_cast<uint32_t>(target.pid());
  CLEW_TRY(close_left_behind(target));
  for (const auto& [index, record] : records) {
    if (!leaves(record.session)) continue;
    abi::SharedRecord* const journaled = is_first ? &arena_.journal().shared[index] : nullptr;
    if (record.kind == abi::SharedKind::Memory) {
      CLEW_TRY(unmap_inside(target, maps, record));
    } else if (is_semaphore(record) && is_there(maps, record)) {
      CLEW_TRY(lower_semaphore(target, record, journaled));
    }
    if (is_first && !request_.everything) *journaled = {};
  }
  return {};
}

void Removal::reset_gs(StoppedTarget& target) const {
  for (StoppedThread& thread : target.threads()) {
    if (thread.registers.gs_base == 0 || !arena_.has_given(thread.registers.gs_base)) continue;
    thread.registers.gs_base = 0;
    thread.registers_changed = true;
  }
}

void Removal::forget_all() {
  for (const Change& change : changes_) {
    for (const uint32_t layer : change.leaving)
      journal_.drop_layer(layer);
    journal_.drop_site(change.site);
  }
}

void Removal::forget() {
  // Children that nobody found may still need the records to be rid of their jumps.
  if (request_.everything) return;
  for (const Change& change : changes_) {
    for (const uint32_t layer : change.leaving)
      journal_.drop_layer(layer);
    if (change.staying.empty()) journal_.drop_site(change.site);
  }
}

}  // namespace clew::inline_
