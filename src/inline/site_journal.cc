// SPDX-License-Identifier: Apache-2.0
// Index and upkeep of the journal's records. The chain of layers is explained in abi/journal.h.
#include "inline/site_journal.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include <fmt/format.h>

#include "base/assert.h"
#include "code/both_ways.h"
#include "code/decode.h"
#include "inline/arena_layout.h"
#include "inline/trampoline.h"

namespace clew::inline_ {
namespace {

// They follow each other from the window's first byte on.
// As relocate.cc takes a call for one: ff, and an operand.
bool is_indirect_call(const abi::SiteRecord& record, const abi::DisplacedRecord& one) {
  const auto bytes = std::span(record.original).subspan(one.offset, one.length);
  const unsigned opcode = code::opcode_offset(bytes);
  return opcode + 2 <= bytes.size() && bytes[opcode] == 0xff;
}

bool has_sound_instructions(const abi::SiteRecord& record) {
  if (record.instruction_count == 0 || record.instruction_count > abi::kWindowInstructionsMax) {
    return false;
  }
  uint32_t end = 0;
  for (uint32_t i = 0; i < record.instruction_count; ++i) {
    const abi::DisplacedRecord& one = record.instructions[i];
    if (one.form > static_cast<uint8_t>(code::Form::IndirectJump)) return false;
    if (one.length == 0 || one.offset != end) return false;
    end += one.length;
    if (end > sizeof record.original) return false;
    const auto form = static_cast<code::Form>(one.form);
    const bool is_call = form == code::Form::IndirectCall || form == code::Form::RipIndirectCall;
    if (is_call && !is_indirect_call(record, one)) return false;
  }
  return end <= record.size_bytes;
}

bool has_first_for_both(const abi::SiteRecord& record) {
  const auto first = code::decode(record.original);
  return first && first->length == record.instructions[0].length &&
         code::can_serve_both(record.original);
}

bool is_sound(const abi::SiteRecord& record) {
  return has_sound_instructions(record) && record.state != abi::SiteState::Free &&
         record.size_bytes != 0 && record.size_bytes <= code::kWindowSizeMax &&
         record.address < kUserEnd &&
         (record.kept_bytes == 0 || record.kept_bytes == record.instructions[0].length) &&
         record.kept_bytes < record.size_bytes &&
         (serves_both_ways(record)
              ? record.instruction_count >= 2 && record.kept_bytes == 0 &&
                    record.instruction_count < abi::kWindowInstructionsMax &&
                    has_first_for_both(record)
              : record.window_class <= static_cast<uint8_t>(code::WindowClass::ShortJump));
}

bool is_sound(const abi::PatchRecord& patch) {
  return patch.size_bytes != 0 && patch.size_bytes <= abi::kPatchSizeMax &&
         patch.address < kUserEnd;
}

bool is_sound(const abi::LayerRecord& record, const ArenaExtents& extents) {
  if (record.in_use == 0 || record.patch_count > abi::kPatchesMax ||
      record.session >= abi::kSessionsMax) {
    return false;
  }
  const bool has_jump = record.copy_jump != 0;
  if (record.copy_original >= kUserEnd || (has_jump && record.copy_jump >= record.size_bytes))
    return false;
  return extents.index_of(record.address, record.size_bytes) != extents.count &&
         std::all_of(record.patches, record.patches + record.patch_count,
                     [](const abi::PatchRecord& patch) { return is_sound(patch); });
}

uint32_t delta(uint64_t to, uint64_t from) {
  return static_cast<uint32_t>(to - from);
}

bool has(uint32_t bits, uint32_t bit) {
  return (bits >> bit & 1) != 0;
}

}  // namespace

SiteJournal::SiteJournal(const Arena& arena) : arena_(arena) {
  const abi::JournalHeader& log = arena.journal();
  const uint32_t site_count = __atomic_load_n(&log.site_count, __ATOMIC_ACQUIRE);
  const uint32_t layer_count = __atomic_load_n(&log.layer_count, __ATOMIC_ACQUIRE);
  const auto sites = arena.sites().first(std::min(site_count, abi::kSitesMax));
  const auto records = arena.layers().first(std::min(layer_count, abi::kLayersMax));
  sites_.assign(sites.begin(), sites.end());
  records_.assign(records.begin(), records.end());
  for (uint32_t i = 0; i < sites_.size(); ++i) {
    if (is_sound(sites_[i])) {
      by_address_[sites_[i].address] = i;
    } else {
      free_sites_.push_back(i);
    }
  }
  const ArenaExtents extents = arena.extents();
  for (uint32_t i = 0; i < records_.size(); ++i) {
    const uint32_t at = records_[i].site;
    if (!is_sound(records_[i], extents) || at >= sites_.size() || !is_sound(sites_[at])) {
      free_layers_.push_back(i);
      continue;
    }
    layers_[at].push_back(i);
    layer_by_address_[records_[i].address] = i;
  }
  for (auto& [index, layers] : layers_) {
    std::sort(layers.begin(), layers.end(),
              [&](uint32_t a, uint32_t b) { return layer(a).order < layer(b).order; });
  }
}

std::optional<uint32_t> SiteJournal::find(uint64_t address) const {
  const auto found = by_address_.find(address);
  if (found == by_address_.end()) return std::nullopt;
  return found->second;
}

bool SiteJournal::meets_other(uint64_t begin, uint64_t end) const {
  auto next = by_address_.lower_bound(begin);
  if (next != by_address_.begin()) {
    const auto& [address, index] = *std::prev(next);
    if (end_of(site(index)) > begin) return true;
  }
  if (next != by_address_.end() && next->first == begin) ++next;
  return next != by_address_.end() && next->first < end;
}

const std::vector<uint32_t>& SiteJournal::layers_of(uint32_t index) const {
  static const std::vector<uint32_t> kNone;
  const auto found = layers_.find(index);
  return found == layers_.end() ? kNone : found->second;
}

Expected<uint32_t> SiteJournal::add_site(const abi::SiteRecord& record) {
  uint32_t index = static_cast<uint32_t>(sites_.size());
  if (!free_sites_.empty()) {
    index = free_sites_.back();
    free_sites_.pop_back();
  } else if (index == abi::kSitesMax) {
    return fail(ErrorCode::Limit,
                fmt::format("a process has room for {} sites; name fewer functions, or their "
                            "entries and returns in sessions one after the other",
                            abi::kSitesMax));
  } else {
    sites_.emplace_back();
  }
  describe_site(index, record);
  if (index + 1 == sites_.size()) {
    __atomic_store_n(&arena_.journal().site_count, index + 1, __ATOMIC_RELEASE);
  }
  by_address_[record.address] = index;
  return index;
}

void SiteJournal::describe_site(uint32_t index, const abi::SiteRecord& record) {
  CLEW_ASSERT(index < sites_.size() && is_sound(record));
  sites_[index] = record;
  abi::SiteRecord copy = record;
  copy.state = abi::SiteState::Free;
  abi::SiteRecord& shared = arena_.sites()[index];
  shared = copy;
  std::atomic_ref(shared.state).store(record.state, std::memory_order_release);
}

void SiteJournal::set_patched(uint32_t index) {
  CLEW_ASSERT(index < sites_.size() && sites_[index].state != abi::SiteState::Free);
  sites_[index].state = abi::SiteState::Patched;
  std::atomic_ref(arena_.sites()[index].state)
      .store(abi::SiteState::Patched, std::memory_order_release);
}

Expected<uint32_t> SiteJournal::add_layer(const abi::LayerRecord& record) {
  abi::JournalHeader& log = arena_.journal();
  uint32_t index = static_cast<uint32_t>(records_.size());
  if (!free_layers_.empty()) {
    index = free_layers_.back();
    free_layers_.pop_back();
  } else if (index == abi::kLayersMax) {
    return fail(ErrorCode::Limit, "the arena has no room for more layers");
  } else {
    records_.emplace_back();
  }
  abi::LayerRecord& copy = records_[index];
  copy = record;
  copy.in_use = 0;
  copy.order = __atomic_fetch_add(&log.next_order, 1U, __ATOMIC_RELAXED);
  arena_.layers()[index] = copy;
  copy.in_use = 1;
  __atomic_store_n(&arena_.layers()[index].in_use, 1U, __ATOMIC_RELEASE);
  if (index + 1 == records_.size()) {
    __atomic_store_n(&log.layer_count, index + 1, __ATOMIC_RELEASE);
  }
  CLEW_ASSERT(record.site < sites_.size());
  layers_[record.site].push_back(index);
  layer_by_address_[record.address] = index;
  return index;
}

void SiteJournal::drop_layer(uint32_t index) {
  CLEW_ASSERT(index < records_.size() && records_[index].in_use != 0);
  abi::LayerRecord& record = records_[index];
  std::erase(layers_[record.site], index);
  layer_by_address_.erase(record.address);
  record.in_use = 0;
  __atomic_store_n(&arena_.layers()[index].in_use, 0U, __ATOMIC_RELEASE);
  free_layers_.push_back(index);
}

void SiteJournal::drop_site(uint32_t index) {
  CLEW_ASSERT(index < sites_.size());
  if (site(index).state == abi::SiteState::Free) return;  // Of two windows at one address.
  by_address_.erase(site(index).address);
  layers_.erase(index);
  sites_[index].state = abi::SiteState::Free;
  std::atomic_ref(arena_.sites()[index].state)
      .store(abi::SiteState::Free, std::memory_order_release);
  free_sites_.push_back(index);
}

void SiteJournal::drop_site_with_layers(uint32_t index) {
  const std::vector<uint32_t> layers = layers_of(index);
  for (const uint32_t layer : layers)
    drop_layer(layer);
  drop_site(index);
}

std::optional<uint32_t> SiteJournal::layer_at(uint64_t address) const {
  auto next = layer_by_address_.upper_bound(address);
  if (next == layer_by_address_.begin()) return std::nullopt;
  const auto& [start, index] = *std::prev(next);
  if (address - start >= layer(index).size_bytes) return std::nullopt;
  return index;
}

// In one store, of a whole word: a tracer that is killed leaves the old jump or the new one. Behind
// the code area our mapping goes on, so the word is there.
void SiteJournal::write_code(uint64_t address, std::span<const uint8_t> bytes) const {
  uint64_t word = 0;
  CLEW_ASSERT(bytes.size() <= sizeof word);
  uint8_t* const at = arena_.code_at(address, bytes.size());
  if (at == nullptr || std::equal(bytes.begin(), bytes.end(), at)) return;
  std::memcpy(&word, at, sizeof word);
  std::memcpy(&word, bytes.data(), bytes.size());
  std::memcpy(at, &word, sizeof word);
}

void SiteJournal::relink(std::span<const uint32_t> layers) const {
  if (layers.empty()) return;
  const abi::SiteRecord& record = site(layer(layers.front()).site);
  // Where both ways lead here, the way from behind the first one is the last.
  const uint32_t count = record.instruction_count + (serves_both_ways(record) ? 1U : 0U);
  restore_copies(layers, count);
  for (uint32_t i = 0; i < count; ++i)
    relink_instruction(layers, i);
}

// Of the instructions with a probe: jumps stand there alone, and the heads of others may cover the
// next probe.
void SiteJournal::restore_copies(std::span<const uint32_t> layers, uint32_t count) const {
  for (const uint32_t index : layers) {
    const abi::LayerRecord& record = layer(index);
    for (uint32_t i = 0; i < count; ++i) {
      if (!has(record.with_points, i)) continue;
      write_code(record.address + record.instructions[i].copy, record.copy_head[i]);
    }
  }
}

// Upwards: each layer's link slot leads to the next lower one that has a probe here, and that one's
// copy leads back behind the link slot.
void SiteJournal::relink_instruction(std::span<const uint32_t> layers, uint32_t instruction) const {
  uint32_t lower = UINT32_MAX;
  for (const uint32_t index : layers) {
    const abi::LayerRecord& record = layer(index);
    const abi::LayerInstruction& places = record.instructions[instruction];
    const uint64_t link = record.address + places.probe;
    if (has(record.with_links, instruction)) {
      const bool linked = lower != UINT32_MAX;
      const uint64_t target =
          linked ? layer(lower).address + layer(lower).instructions[instruction].probe : 0;
      write_code(link, link_bytes(link, target));
      if (linked) {
        const uint64_t copy = layer(lower).address + layer(lower).instructions[instruction].copy;
        write_code(copy, link_bytes(copy, link + kLinkSizeBytes));
      }
    }
    if (has(record.with_points, instruction)) lower = index;
  }
}

abi::SiteRecord record_of(const code::Window& window, uint64_t load_bias) {
  abi::SiteRecord record = {};
  record.address = window.address + load_bias;
  record.load_bias = load_bias;
  record.size_bytes = window.size_bytes;
  record.window_class = static_cast<uint8_t>(window.window_class);
  record.kept_bytes = window.kept_bytes;
  record.falls_through = window.falls_through ? 1 : 0;
  record.instruction_count = static_cast<uint8_t>(window.instructions.size());
  if (window.window_class == code::WindowClass::ShortJump) {
    record.hop_delta = static_cast<int32_t>(delta(window.hop_address, window.address));
    std::copy(window.hop_original.begin(), window.hop_original.end(), record.hop_original);
  }
  std::copy(window.original.begin(), window.original.end(), record.original);
  for (size_t i = 0; i < window.instructions.size() && i < abi::kWindowInstructionsMax; ++i) {
    const code::Displaced& from = window.instructions[i];
    record.instructions[i] = {
        .offset = from.offset,
        .length = from.length,
        .form = static_cast<uint8_t>(from.form),
        .field_offset = from.field_offset,
        .target_delta =
            from.target == 0 ? 0 : static_cast<int32_t>(delta(from.target, window.address))};
  }
  return record;
}

code::Window window_of(const abi::SiteRecord& record) {
  code::Window window;
  window.address = record.address - record.load_bias;
  window.size_bytes = record.size_bytes;
  window.window_class = static_cast<code::WindowClass>(record.window_class);
  window.kept_bytes = record.kept_bytes;
  window.falls_through = record.falls_through != 0;
  const auto far = [&](int32_t distance) {
    return window.address + static_cast<uint64_t>(int64_t{distance});
  };
  if (window.window_class == code::WindowClass::ShortJump)
    window.hop_address = far(record.hop_delta);
  std::copy_n(record.hop_original, window.hop_original.size(), window.hop_original.begin());
  std::copy_n(record.original, window.original.size(), window.original.begin());
  for (uint32_t i = 0; i < record.instruction_count; ++i) {
    const abi::DisplacedRecord& from = record.instructions[i];
    window.instructions.push_back({.offset = from.offset,
                                   .length = from.length,
                                   .form = static_cast<code::Form>(from.form),
                                   .field_offset = from.field_offset,
                                   .target = from.target_delta == 0 ? 0 : far(from.target_delta)});
  }
  return window;
}

const target::Mapping* mapping_at(std::span<const target::Mapping> maps, uint64_t address) {
  const auto map =
      std::upper_bound(maps.begin(), maps.end(), address,
                       [](uint64_t wanted, const target::Mapping& m) { return wanted < m.end; });
  return map == maps.end() || !map->contains(address) ? nullptr : &*map;
}

void record_mapping(const target::Mapping& mapping, abi::SiteRecord& site) {
  site.map_start = mapping.start;
  site.map_inode = mapping.inode;
  site.map_device = uint64_t{mapping.device_major} << 32 | mapping.device_minor;
  site.map_offset = mapping.file_offset;
}

bool is_mapped_as_recorded(std::span<const target::Mapping> maps, const abi::SiteRecord& site) {
  const target::Mapping* const map = mapping_at(maps, site.address);
  if (map == nullptr) return false;
  const uint64_t device = uint64_t{map->device_major} << 32 | map->device_minor;
  return map->inode == site.map_inode && device == site.map_device &&
         map->file_offset - map->start == site.map_offset - site.map_start;
}

uint64_t end_of(const abi::SiteRecord& record) {
  const unsigned written =
      serves_both_ways(record) ? code::kBothWaysSizeBytes : code::kJumpSizeBytes;
  return record.address + std::max<uint64_t>(record.size_bytes, written);
}

bool serves_both_ways(const abi::SiteRecord& record) {
  return record.window_class == static_cast<uint8_t>(code::WindowClass::BothWays);
}

size_t told_from(const abi::SiteRecord& record) {
  return serves_both_ways(record) ? code::kMarkSizeBytes : 0;
}

bool same_window(const abi::SiteRecord& record, const code::Window& window) {
  return record.size_bytes == window.size_bytes &&
         record.window_class == static_cast<uint8_t>(window.window_class) &&
         record.kept_bytes == window.kept_bytes &&
         record.instruction_count == window.instructions.size() &&
         std::equal(window.original.begin(), window.original.begin() + window.size_bytes,
                    record.original);
}

}  // namespace clew::inline_
