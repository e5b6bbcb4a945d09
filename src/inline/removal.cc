// SPDX-License-Identifier: Apache-2.0
// The steps of a removal. Each may be the last one: the text of a site is either as it was or leads
// to complete code.
#include "inline/removal.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "inline/program_counters.h"
#include "inline/text_image.h"

namespace clew::inline_ {
namespace {

constexpr unsigned kDrainRoundsMax = 200;

class Removal {
 public:
  Removal(StoppedTarget& target, const Arena& arena, SiteJournal& journal,
          const RemovalRequest& request)
      : target_(target),
        arena_(arena),
        journal_(journal),
        leaving_(request.leaving),
        everything_(request.everything),
        keep_journal_(request.keep_journal) {}

  Expected<DetachReport> run();

 private:
  struct Change {
    uint32_t site = 0;
    std::vector<uint32_t> staying;  // Layers, lowest first.
    std::vector<uint32_t> leaving;
  };

  void list_changes();
  Expected<void> restore_text();
  void restore_site(TextImage& text, const Change& change);
  [[nodiscard]] bool is_ours(const TextImage& text, const Change& change, uint32_t patch) const;
  Expected<bool> drain();
  [[nodiscard]] std::vector<AddressInterval> leaving_code() const;
  [[nodiscard]] std::optional<uint64_t> way_out(uint64_t pc) const;
  [[nodiscard]] std::optional<uint64_t> way_out_of(const abi::LayerRecord& layer,
                                                   uint64_t pc) const;
  [[nodiscard]] std::optional<uint64_t> continue_at(const abi::LayerRecord& layer,
                                                    uint32_t instruction) const;
  void reset_gs();
  void forget();

  StoppedTarget& target_;
  const Arena& arena_;
  SiteJournal& journal_;
  uint32_t leaving_;
  bool everything_;
  bool keep_journal_;
  std::vector<Change> changes_;
  std::vector<target::Mapping> maps_;
  DetachReport report_;
};

Expected<DetachReport> Removal::run() {
  maps_ = CLEW_TRY(target::read_memory_map(target_.pid()));
  list_changes();
  CLEW_TRY(restore_text());
  const bool empty = CLEW_TRY(drain());
  if (!empty) {
    report_.residue = true;
    report_.residue_reason = "a thread or a signal handler is still inside a probe";
  }
  const bool unmap = everything_ && empty && report_.foreign_patches == 0;
  if (everything_ && report_.foreign_patches != 0) {
    report_.residue = true;
    report_.residue_reason = "somebody else changed text that Clew had patched";
  }
  // With residue the journal stays as it is, for the next one who cleans up.
  if (report_.residue && everything_) return report_;
  if (unmap) {
    reset_gs();
    CLEW_TRY(Arena::unmap(target_));
  }
  if (!keep_journal_) forget();
  return report_;
}

void Removal::list_changes() {
  for (const auto& [address, site] : journal_.by_address()) {
    Change change;
    change.site = site;
    for (const uint32_t layer : journal_.layers_of(site)) {
      const bool leaves = everything_ || (leaving_ >> journal_.layer(layer).session & 1) != 0;
      (leaves ? change.leaving : change.staying).push_back(layer);
    }
    const bool nothing = change.leaving.empty() && !change.staying.empty();
    if (!nothing) changes_.push_back(std::move(change));
  }
}

Expected<void> Removal::restore_text() {
  std::vector<TextImage::Range> ranges;
  for (const Change& change : changes_) {
    for (const uint32_t layer : change.leaving) {
      const abi::LayerRecord& record = journal_.layer(layer);
      for (uint32_t i = 0; i < record.patch_count; ++i) {
        ranges.push_back({record.patches[i].address, record.patches[i].size_bytes});
      }
    }
  }
  TextImage text(target_, ranges);
  for (const Change& change : changes_)
    restore_site(text, change);
  return text.flush(target_);
}

bool is_same_mapping(const target::Mapping& map, const abi::SiteRecord& site) {
  const uint64_t device = uint64_t{map.device_major} << 32 | map.device_minor;
  return map.inode == site.map_inode && device == site.map_device &&
         map.file_offset - map.start == site.map_offset - site.map_start;
}

std::span<const uint8_t> original(const abi::PatchRecord& patch) {
  return {patch.original, patch.size_bytes};
}
std::span<const uint8_t> written(const abi::PatchRecord& patch) {
  return {patch.written, patch.size_bytes};
}

// The text holds what one of the layers wrote, or a part of it, or the original bytes.
void Removal::restore_site(TextImage& text, const Change& change) {
  const abi::SiteRecord& site = journal_.site(change.site);
  const auto map = std::find_if(maps_.begin(), maps_.end(),
                                [&](const target::Mapping& m) { return m.contains(site.address); });
  if (map == maps_.end() || !is_same_mapping(*map, site)) {
    ++report_.vanished;
    return;
  }
  if (change.leaving.empty()) return;
  journal_.relink(change.staying);
  const abi::LayerRecord* const top =
      change.staying.empty() ? nullptr : &journal_.layer(change.staying.back());
  const abi::LayerRecord& any = journal_.layer(change.leaving.front());
  bool foreign = false;
  for (uint32_t i = 0; i < any.patch_count; ++i) {
    const abi::PatchRecord& patch = any.patches[i];
    const auto wanted = top == nullptr ? original(patch) : written(top->patches[i]);
    if (text.equals(patch.address, wanted)) continue;
    if (is_ours(text, change, i)) {
      text.change(patch.address, wanted);
    } else {
      foreign = true;
    }
  }
  if (foreign) ++report_.foreign_patches;
}

// A write of one of the layers that go, or a part of it.
bool Removal::is_ours(const TextImage& text, const Change& change, uint32_t patch) const {
  return std::any_of(change.leaving.begin(), change.leaving.end(), [&](uint32_t index) {
    const abi::LayerRecord& layer = journal_.layer(index);
    const abi::PatchRecord& record = layer.patches[patch];
    return patch < layer.patch_count &&
           text.is_mix_of(record.address, original(record), written(record));
  });
}

std::vector<AddressInterval> Removal::leaving_code() const {
  std::vector<AddressInterval> intervals;
  if (everything_) {
    for (uint32_t i = 0; i < arena_.journal().extent_count; ++i) {
      const abi::ExtentRecord& extent = arena_.journal().extents[i];
      intervals.push_back({extent.address, extent.address + extent.size_bytes});
    }
  } else {
    for (const Change& change : changes_) {
      for (const uint32_t index : change.leaving) {
        const abi::LayerRecord& layer = journal_.layer(index);
        intervals.push_back({layer.address, layer.address + layer.size_bytes});
      }
    }
  }
  std::sort(intervals.begin(), intervals.end(),
            [](const AddressInterval& a, const AddressInterval& b) { return a.begin < b.begin; });
  return intervals;
}

// Moves threads that stand between two instructions of the program, lets the others run on until
// they do, too. True when none is left inside.
Expected<bool> Removal::drain() {
  const std::vector<AddressInterval> inside = leaving_code();
  for (unsigned round = 0; round < kDrainRoundsMax; ++round) {
    std::vector<size_t> running;
    bool in_frames = false;
    for (const ProgramCounter& counter : find_program_counters(target_, inside)) {
      const auto out = way_out(counter.value);
      if (out) {
        CLEW_TRY(set_program_counter(target_, counter, *out));
      } else if (counter.saved_at == 0) {
        running.push_back(counter.thread);
      } else {
        in_frames = true;
      }
    }
    if (running.empty()) return !in_frames;
    CLEW_TRY(target_.run_briefly(running));
  }
  return false;
}

std::optional<uint64_t> Removal::way_out(uint64_t pc) const {
  const auto index = journal_.layer_at(pc);
  if (!index) return std::nullopt;
  return way_out_of(journal_.layer(*index), pc);
}

std::optional<uint64_t> Removal::way_out_of(const abi::LayerRecord& layer, uint64_t pc) const {
  const abi::SiteRecord& site = journal_.site(layer.site);
  if (pc == layer.address) return site.address;  // Nothing has run yet.
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
    const abi::LayerRecord& other = journal_.layer(index);
    const bool leaves = everything_ || (leaving_ >> other.session & 1) != 0;
    if (!leaves) top = &other;
  }
  if (top == nullptr) return site.address + site.instructions[instruction].offset;
  if (top->order > layer.order) return std::nullopt;
  return top->address + top->instructions[instruction].copy;
}

void Removal::reset_gs() {
  for (StoppedThread& thread : target_.threads()) {
    if (thread.registers.gs_base == 0 || !arena_.contains_slot(thread.registers.gs_base)) continue;
    thread.registers.gs_base = 0;
    thread.registers_changed = true;
  }
}

void Removal::forget() {
  for (const Change& change : changes_) {
    for (const uint32_t layer : change.leaving)
      journal_.drop_layer(layer);
    if (change.staying.empty()) journal_.drop_site(change.site);
  }
}

}  // namespace

Expected<DetachReport> remove_sessions(StoppedTarget& target, const Arena& arena,
                                       SiteJournal& journal, const RemovalRequest& request) {
  return Removal(target, arena, journal, request).run();
}

}  // namespace clew::inline_
