// SPDX-License-Identifier: Apache-2.0
// install. Everything that takes time is done while the target runs: code is written to the arena,
// records to the journal. Stopped, only text is compared and changed, and threads that stand inside
// a window are moved.
#include <algorithm>
#include <cstring>
#include <string>

#include <fmt/format.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>

#include "base/assert.h"
#include "base/log.h"
#include "code/opcodes.h"
#include "inline/attachment_state.h"
#include "inline/copy_way.h"
#include "inline/exceptions_pass.h"
#include "inline/program_counters.h"
#include "inline/segment_bases.h"
#include "inline/text_image.h"

namespace clew::inline_ {
namespace {

using code::kInt3;

class Installer {
 public:
  Installer(Attachment::State& state, std::vector<PlannedWindow>& windows)
      : state_(state), windows_(windows), refused_(windows.size()) {}

  Expected<InstallReport> run() {
    CLEW_TRY(write_code());
    CLEW_TRY(check_code());
    CLEW_TRY(record());
    list_ranges();
    note_copies();
    TextImage text(ranges_);
    resting_ = find_resting_frames(state_.pid, state_.gadgets.restorer);
    auto stopped = stop_target(state_.pid, state_.options);
    if (!stopped || !has_arena(state_.pid, state_.arena)) {
      for (size_t i = 0; i < windows_.size(); ++i)
        drop(windows_[i], layers_[i]);
      if (!stopped) return tl::unexpected(stopped.error());
      return fail(ErrorCode::NotFound,
                  fmt::format("process {} runs another program now", state_.pid));
    }
    StoppedTarget& target = *stopped;
    target.use_gadgets(state_.gadgets);
    maps_ = CLEW_TRY(target::read_memory_map(state_.pid));
    CLEW_TRY(change_target(target, text));
    CLEW_ASSERT(layers_.size() == windows_.size() && refused_.size() == windows_.size());
    report_.threads = static_cast<uint32_t>(target.threads().size());
    target.resume();
    state_.note_stop(target);
    log_stop(target, "write jumps");
    finish();
    log_installed();
    return report_;
  }

 private:
  Expected<void> write_code() {
    for (const PlannedWindow& window : windows_) {
      const std::vector<uint8_t>& bytes = window.trampoline.bytes;
      uint8_t* const at = state_.arena.code_at(window.trampoline.layer.address, bytes.size());
      if (at == nullptr) {
        return fail(ErrorCode::Refused,
                    fmt::format("process {} holds a damaged arena", state_.pid));
      }
      std::memcpy(at, bytes.data(), bytes.size());
    }
    return {};
  }

  // What the process sees at these addresses is what was written, and so what was verified: its
  // program may have mapped something over its arena. A process that cannot be read is left to the
  // stop, which knows why.
  Expected<void> check_code() {
    std::vector<uint8_t> seen;
    for (const PlannedWindow& window : windows_) {
      const std::vector<uint8_t>& bytes = window.trampoline.bytes;
      seen.resize(bytes.size());
      if (!target::read_memory(state_.pid, window.trampoline.layer.address, seen)) return {};
      if (seen == bytes) continue;
      return fail(ErrorCode::Refused,
                  fmt::format("process {} holds other code than its arena", state_.pid));
    }
    return {};
  }

  void list_ranges() {
    for (const PlannedWindow& window : windows_) {
      const uint64_t begin = window.site.address;
      ranges_.push_back({begin, static_cast<uint32_t>(end_of(window.site) - begin)});
      for (const code::Patch& patch : window.trampoline.patches)
        ranges_.push_back({patch.address, patch.size_bytes});
      for (const TailText& copied : window.tails)
        ranges_.push_back({copied.address, copied.tail.size_bytes});
      order_.push_back(order_.size());
    }
    std::sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return windows_[a].site.address < windows_[b].site.address;
    });
    for (const size_t i : order_) {
      const abi::SiteRecord& site = windows_[i].site;
      insides_.push_back({site.address + 1, site.address + site.size_bytes});
    }
  }

  Expected<void> change_target(StoppedTarget& target, TextImage& text) {
    text.load(target);
    for (size_t i = 0; i < windows_.size(); ++i)
      refused_[i] = examine(text, windows_[i]);
    check_counters(target);
    for (size_t i = 0; i < windows_.size(); ++i) {
      if (refused_[i]) {
        leave_copy(state_.arena, windows_[i].trampoline.layer);
        continue;
      }
      if (windows_[i].existing) {
        state_.journal->relink(state_.journal->layers_of(windows_[i].trampoline.layer.site));
      }
      change_text(text, windows_[i]);
    }
    // Threads first: their copies lead back to text that may still be as it was, but nobody may
    // stand in the middle of a jump.
    CLEW_TRY(move_threads(target));
    give_slots(target, state_.arena, has_copies() ? SlotsFor::All : SlotsFor::Helpless);
    state_.arena.journal().copied_modules |= copied_;
    if (has_copies() && !all_have_slots(target)) leave_copies();
    CLEW_TRY(target.write_registers());
    CLEW_TRY(text.flush(target));
    (void)target.call(
        {.number = SYS_membarrier, .arguments = {MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE}});
    return {};
  }

  // What was planned for may be gone by now, with something else in its place.
  std::optional<code::RefusalReason> examine(const TextImage& text, const PlannedWindow& window) {
    if (!has_module(window)) return code::RefusalReason::ModuleGone;
    if (text_is_expected(text, window)) return std::nullopt;
    const bool is_anew = window.existing && window_is_expected(text, window.site);
    return is_anew ? code::RefusalReason::ModuleGone : code::RefusalReason::ForeignPatch;
  }

  bool has_module(const PlannedWindow& window) {
    const target::Mapping* const mapping = mapping_at(maps_, window.site.address);
    if (mapping == nullptr || !mapping->executable) return false;
    abi::SiteRecord site = state_.journal->site(window.trampoline.layer.site);
    if (site.map_start != 0) return is_mapped_as_recorded(maps_, site);
    record_mapping(*mapping, site);
    state_.journal->describe_site(window.trampoline.layer.site, site);
    return true;
  }

  // New sites: the whole window and all that is written over equal the file. Others: our jump. What
  // is copied equals the file, too.
  [[nodiscard]] bool text_is_expected(const TextImage& text, const PlannedWindow& window) const {
    const bool same_tails =
        std::all_of(window.tails.begin(), window.tails.end(), [&](const TailText& copied) {
          return text.equals(copied.address, {copied.tail.bytes.data(), copied.tail.size_bytes});
        });
    if (!same_tails) return false;
    if (window.existing) {
      const std::vector<uint32_t> lower = layers_below(window);
      if (lower.empty()) return false;
      const abi::LayerRecord& top = state_.journal->layer(lower.back());
      for (uint32_t i = 0; i < top.patch_count; ++i) {
        const abi::PatchRecord& patch = top.patches[i];
        if (!holds(text, patch, serves_both_ways(window.site))) return false;
      }
      return true;
    }
    if (!window_is_expected(text, window.site)) return false;
    return std::all_of(
        window.trampoline.patches.begin(), window.trampoline.patches.end(),
        [&](const code::Patch& patch) {
          return text.equals(patch.address, {patch.original.data(), patch.size_bytes});
        });
  }

  // What serves both ways may have a trap at its first byte, or the file's, of a uprobe that was
  // there.
  static bool holds(const TextImage& text, const abi::PatchRecord& patch, bool serves_both) {
    const bool other_first =
        serves_both && (text.equals(patch.address, {&kInt3, 1}) ||
                        text.equals(patch.address, std::span(patch.original).first(1)));
    const size_t from = other_first ? 1 : 0;
    return text.equals(patch.address + from,
                       std::span(patch.written).subspan(from, patch.size_bytes - from));
  }

  // Where the first instruction stays, a uprobe or a breakpoint may stand on it: whoever takes the
  // trap does the instruction and goes on behind it.
  static bool window_is_expected(const TextImage& text, const abi::SiteRecord& site) {
    const std::span<const uint8_t> original(site.original, site.size_bytes);
    const bool trapped = site.kept_bytes != 0 && text.equals(site.address, {&kInt3, 1});
    const size_t from = trapped ? 1 : 0;
    return text.equals(site.address + from, original.subspan(from));
  }

  // Offset in the window of the instruction at which a program counter stands.
  static std::optional<uint32_t> instruction_at(const PlannedWindow& window, uint64_t pc) {
    for (uint32_t i = 0; i < window.site.instruction_count; ++i) {
      if (window.site.address + window.site.instructions[i].offset == pc) return i;
    }
    return std::nullopt;
  }

  static bool stands_at_jump(const PlannedWindow& window, uint64_t pc) {
    const abi::SiteRecord& site = window.site;
    if (!serves_both_ways(site)) return pc == site.address + site.kept_bytes;
    return pc == site.address + site.instructions[0].length ||
           pc == site.address + code::kMarkSizeBytes;
  }

  // Finds who stands inside the windows (behind the first instruction), and gives up windows where
  // a program counter cannot be explained.
  void check_counters(StoppedTarget& target) {
    for (const ProgramCounter& counter : find_program_counters(target, maps_, insides_, resting_)) {
      const auto found = std::find_if(order_.begin(), order_.end(), [&](size_t i) {
        const abi::SiteRecord& site = windows_[i].site;
        return counter.value > site.address && counter.value < site.address + site.size_bytes;
      });
      CLEW_ASSERT(found != order_.end());  // It was looked for in these places alone.
      // In front of a jump that is there, behind an instruction that stays, nobody is in the way.
      if (windows_[*found].existing && stands_at_jump(windows_[*found], counter.value)) continue;
      if (instruction_at(windows_[*found], counter.value)) {
        moves_.push_back({counter, *found});
      } else {
        refused_[*found] = refused_[*found].value_or(code::RefusalReason::ThreadInside);
      }
    }
    check_layers_below(target);
  }

  // A layer on top overwrites the heads of copies below: nobody may stand inside those bytes.
  void check_layers_below(StoppedTarget& target) {
    std::vector<AddressInterval> intervals;
    for (size_t w = 0; w < windows_.size(); ++w) {
      if (!windows_[w].existing || refused_[w]) continue;
      for (const uint32_t index : layers_below(windows_[w])) {
        const abi::LayerRecord& layer = state_.journal->layer(index);
        intervals.push_back({layer.address, layer.address + layer.size_bytes});
      }
    }
    std::sort(intervals.begin(), intervals.end(),
              [](const AddressInterval& a, const AddressInterval& b) { return a.begin < b.begin; });
    for (const ProgramCounter& counter :
         find_program_counters(target, maps_, intervals, resting_)) {
      for (size_t w = 0; w < windows_.size(); ++w) {
        if (windows_[w].existing && !refused_[w] && stands_in_head(windows_[w], counter.value)) {
          refused_[w] = code::RefusalReason::ThreadInside;
        }
      }
    }
  }

  // Without the new one.
  [[nodiscard]] std::vector<uint32_t> layers_below(const PlannedWindow& window) const {
    std::vector<uint32_t> layers = state_.journal->layers_of(window.trampoline.layer.site);
    CLEW_ASSERT(!layers.empty());  // record() has added one.
    layers.pop_back();
    return layers;
  }

  [[nodiscard]] bool stands_in_head(const PlannedWindow& window, uint64_t pc) const {
    for (const uint32_t index : layers_below(window)) {
      const abi::LayerRecord& layer = state_.journal->layer(index);
      CLEW_ASSERT(window.site.instruction_count <= std::size(layer.instructions));
      for (uint32_t i = 0; i < window.site.instruction_count; ++i) {
        const uint64_t copy = layer.address + layer.instructions[i].copy;
        if (pc > copy && pc < copy + abi::kCopyHeadBytes) return true;
      }
    }
    return false;
  }

  // The journal, before the text. What is not taken after all is dropped by finish().
  Expected<void> record() {
    layers_.assign(windows_.size(), UINT32_MAX);
    for (size_t i = 0; i < windows_.size(); ++i) {
      PlannedWindow& window = windows_[i];
      auto site = state_.journal->find(window.site.address);
      if (!site) {
        window.site.state = abi::SiteState::Prepared;
        site = CLEW_TRY(state_.journal->add_site(window.site));
      }
      window.trampoline.layer.in_use = 1;
      window.trampoline.layer.session = state_.geometry.session;
      window.trampoline.layer.site = *site;
      window.trampoline.layer.point_count = window.wanted_count();
      layers_[i] = CLEW_TRY(state_.journal->add_layer(window.trampoline.layer));
    }
    return {};
  }

  static void change_text(TextImage& text, const PlannedWindow& window) {
    for (const code::Patch& patch : window.trampoline.patches) {
      const auto bytes = std::span(patch.replacement).first(patch.size_bytes);
      if (serves_both_ways(window.site)) {
        text.change_but_traps(patch.address, patch.original, bytes);
      } else {
        text.change(patch.address, bytes);
      }
    }
  }

  Expected<void> move_threads(StoppedTarget& target) {
    for (const auto& [counter, index] : moves_) {
      if (refused_[index]) continue;
      const PlannedWindow& window = windows_[index];
      const auto instruction = instruction_at(window, counter.value);
      CLEW_ASSERT(instruction.has_value());
      const abi::LayerRecord& layer = window.trampoline.layer;
      CLEW_TRY(set_program_counter(target, counter,
                                   layer.address + layer.instructions[*instruction].probe));
    }
    return {};
  }

  // Who has none could come to a copy by what another thread has left there, a coroutine say, and
  // probes in copies do not ask.
  [[nodiscard]] bool all_have_slots(StoppedTarget& target) const {
    const auto threads = target.threads();
    return std::all_of(threads.begin(), threads.end(), [this](const StoppedThread& thread) {
      return state_.arena.contains_slot(thread.registers.gs_base);
    });
  }
  void leave_copies() const {
    for (const PlannedWindow& window : windows_)
      leave_copy(state_.arena, window.trampoline.layer);
  }

  // For the journal: what is to be known of the copies when they are left.
  void note_copies() {
    const bool is_on_copies = std::any_of(
        windows_.begin(), windows_.end(),
        [](const PlannedWindow& window) { return window.trampoline.layer.copy_jump != 0; });
    if (!is_on_copies) return;
    copied_ = exceptions_pass(state_.pid) ? kQueryCopies | kExceptionsPass : kQueryCopies;
  }
  [[nodiscard]] bool has_copies() const { return copied_ != 0; }

  void finish() {
    for (size_t i = 0; i < windows_.size(); ++i) {
      const PlannedWindow& window = windows_[i];
      if (!refused_[i]) {
        state_.journal->set_patched(window.trampoline.layer.site);
        ++report_.windows;
        report_.points += window.wanted_count();
        continue;
      }
      drop(window, layers_[i]);
      for (uint32_t p = 0; p < window.point_count; ++p) {
        if (window.left_out[p]) continue;
        report_.refusals.push_back({window.module, window.first_point + p, *refused_[i]});
      }
    }
  }

  void log_installed() const {
    const pid_t pid = state_.pid;
    log_step(pid,
             "wrote the jumps of {} windows for {} probes, moved {} threads, refused {} windows",
             report_.windows, report_.points, moves_.size(), windows_.size() - report_.windows);
    for (size_t i = 0; i < windows_.size(); ++i) {
      const abi::SiteRecord& site = windows_[i].site;
      if (refused_[i]) {
        log_detail(pid, "site {:#x} is refused: {}", site.address, code::name(*refused_[i]));
      } else {
        log_detail(pid, "site {:#x}: jump over {} bytes to {:#x}", site.address, site.size_bytes,
                   windows_[i].trampoline.layer.address);
      }
    }
  }

  void drop(const PlannedWindow& window, uint32_t layer) {
    state_.journal->drop_layer(layer);
    if (!window.existing) state_.journal->drop_site(window.trampoline.layer.site);
  }

  struct Move {
    ProgramCounter counter;
    size_t window;
  };

  Attachment::State& state_;
  std::vector<PlannedWindow>& windows_;
  std::vector<std::optional<code::RefusalReason>> refused_;  // By window.
  std::vector<uint32_t> layers_;
  std::vector<TextImage::Range> ranges_;
  std::vector<size_t> order_;             // Windows by address,
  std::vector<AddressInterval> insides_;  // and their bytes but the first.
  std::vector<Move> moves_;
  std::vector<uint64_t> resting_;
  std::vector<target::Mapping> maps_;
  uint32_t copied_ = 0;
  InstallReport report_;
};

}  // namespace

namespace {

// Also of windows that are given up: no journal has a layer at their addresses.
void note_bodies(Attachment::State& state, const Layout::State& layout,
                 std::span<const Body> bodies) {
  for (const Body& body : bodies) {
    const PlannedWindow& window =
        layout.windows[layout.window_of_point.at({body.module, body.point})];
    const auto size = static_cast<uint32_t>(body.code.bytes().size());
    state.bodies[window.trampoline.layer.address].push_back(
        {.address = body.code.address(), .size_bytes = size});
  }
}

}  // namespace

Expected<InstallReport> Attachment::install(Layout&& layout, std::span<const Body> bodies) {
  const std::unique_ptr<Layout::State> taken = std::move(layout.state_);
  std::vector<uint32_t> missing;
  for (const PlannedWindow& window : taken->windows)
    missing.push_back(window.wanted_count());
  for (const Body& body : bodies) {
    const auto found = taken->window_of_point.find({body.module, body.point});
    CLEW_ASSERT(found != taken->window_of_point.end());
    PlannedWindow& window = taken->windows[found->second];
    Trampoline& trampoline = window.trampoline;
    const uint32_t offset = trampoline.body_offsets[body.point - window.first_point];
    // The body fills its gap, so that it ends where the stub goes on, and the stub saved what it
    // writes: the verifier has seen the body, not the stub.
    const BodyShape& shape = trampoline.bodies[body.point - window.first_point];
    CLEW_ASSERT(body.code.address() == trampoline.layer.address + offset);
    CLEW_ASSERT(body.code.bytes().size() == shape.size_bytes);
    CLEW_ASSERT(body.code.clobbers() == shape.clobbers);
    std::copy(body.code.bytes().begin(), body.code.bytes().end(),
              trampoline.bytes.begin() + offset);
    --missing[found->second];
  }
  note_bodies(*state_, *taken, bodies);
  std::vector<PlannedWindow> complete;
  complete.reserve(taken->windows.size());
  for (size_t i = 0; i < taken->windows.size(); ++i) {
    if (missing[i] == 0) complete.push_back(std::move(taken->windows[i]));
  }
  InstallReport report = CLEW_TRY(install_windows(*state_, complete));
  report.refusals.insert(report.refusals.begin(), taken->refusals.begin(), taken->refusals.end());
  return report;
}

Expected<InstallReport> install_windows(Attachment::State& state,
                                        std::vector<PlannedWindow>& windows) {
  return Installer(state, windows).run();
}

}  // namespace clew::inline_
