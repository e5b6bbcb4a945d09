// SPDX-License-Identifier: Apache-2.0
#include "kernel/unwind_tables.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/assert.h"

namespace clew::kernel {
namespace {

using abi::MachineUnwindKind;
using abi::MachineUnwindProcess;
using abi::MachineUnwindRule;
using abi::MachineUnwindSegment;
using target::UnwindKind;
using target::UnwindRule;

constexpr uint32_t kUnsupportedRule = 1;
constexpr uint32_t kClassMin = 4;  // 16 segments.

MachineUnwindKind packed_kind(UnwindKind kind) {
  switch (kind) {
    case UnwindKind::None:
      return MachineUnwindKind::None;
    case UnwindKind::End:
      return MachineUnwindKind::End;
    case UnwindKind::Unsupported:
      return MachineUnwindKind::Unsupported;
    case UnwindKind::Base:
      return MachineUnwindKind::Base;
    case UnwindKind::Plt:
      return MachineUnwindKind::Plt;
  }
  return MachineUnwindKind::Unsupported;
}

abi::MachineSaved packed_place(target::SavedAt at) {
  switch (at) {
    case target::SavedAt::Same:
      return abi::MachineSaved::Same;
    case target::SavedAt::Lost:
      return abi::MachineSaved::Lost;
    case target::SavedAt::Cfa:
      return abi::MachineSaved::AtCfa;
    case target::SavedAt::Sp:
      return abi::MachineSaved::AtSp;
    case target::SavedAt::Fp:
      return abi::MachineSaved::AtFp;
  }
  return abi::MachineSaved::Lost;
}

MachineUnwindRule packed(const UnwindRule& rule) {
  MachineUnwindRule packed{};
  packed.kind = packed_kind(rule.kind);
  packed.base = rule.base;
  packed.is_loaded = rule.is_loaded ? 1 : 0;
  packed.is_signal = rule.is_signal ? 1 : 0;
  packed.offset = rule.offset;
  packed.second_offset = rule.second_offset;
  packed.pc_saved = packed_place(rule.pc.at);
  packed.fp_saved = packed_place(rule.fp.at);
  packed.bx_saved = packed_place(rule.bx.at);
  packed.pc_offset = rule.pc.offset;
  packed.fp_offset = rule.fp.offset;
  packed.bx_offset = rule.bx.offset;
  return packed;
}

uint64_t hash_of(const MachineUnwindRule& rule) {
  return std::hash<std::string_view>{}({reinterpret_cast<const char*>(&rule), sizeof rule});
}

bool is_same(const MachineUnwindSegment& a, const MachineUnwindSegment& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace

Expected<UnwindTables> UnwindTables::make(size_t rows_max) {
  using abi::kMachineUnwindProcesses;
  using abi::kMachineUnwindRules;
  using abi::kMachineUnwindSegments;
  UnwindTables tables;
  tables.rows_max_ = std::max<size_t>(1, rows_max);
  Maps& maps = tables.maps_.emplace();
  maps.processes = CLEW_TRY(
      SharedArray::make("d_unwind_procs", kMachineUnwindProcesses * sizeof(MachineUnwindProcess)));
  maps.segments = CLEW_TRY(
      SharedArray::make("d_unwind_segs", kMachineUnwindSegments * sizeof(MachineUnwindSegment)));
  maps.files = CLEW_TRY(SharedArray::make(
      "d_unwind_files", abi::kMachineUnwindFiles * sizeof(abi::MachineUnwindFile)));
  maps.rows = CLEW_TRY(
      SharedArray::make("d_unwind_rows", tables.rows_max_ * sizeof(abi::MachineUnwindRow)));
  maps.rules = CLEW_TRY(
      SharedArray::make("d_unwind_rules", kMachineUnwindRules * sizeof(MachineUnwindRule)));
  tables.processes_ = maps.processes.as<MachineUnwindProcess>();
  tables.segments_ = maps.segments.as<MachineUnwindSegment>();
  tables.files_ = maps.files.as<abi::MachineUnwindFile>();
  tables.rows_ = maps.rows.as<abi::MachineUnwindRow>();
  tables.rules_ = maps.rules.as<MachineUnwindRule>();
  tables.begin_rules();
  return tables;
}

UnwindTables UnwindTables::make(size_t rows_max, std::span<uint8_t> memory) {
  CLEW_ASSERT(memory.size() >= size_bytes(rows_max));
  UnwindTables tables;
  tables.rows_max_ = rows_max;
  tables.processes_ =
      reinterpret_cast<MachineUnwindProcess*>(memory.data() + abi::kUnwindProcessesOffset);
  tables.segments_ =
      reinterpret_cast<MachineUnwindSegment*>(memory.data() + abi::kUnwindSegmentsOffset);
  tables.rules_ = reinterpret_cast<MachineUnwindRule*>(memory.data() + abi::kUnwindRulesOffset);
  tables.rows_ = reinterpret_cast<abi::MachineUnwindRow*>(memory.data() + abi::kUnwindRowsOffset);
  tables.begin_rules();
  return tables;
}

void UnwindTables::begin_rules() {
  rules_[0].kind = MachineUnwindKind::None;
  rules_[kUnsupportedRule].kind = MachineUnwindKind::Unsupported;
  rules_used_ = kUnsupportedRule + 1;
}

void UnwindTables::add_symbols(Symbols& symbols) const {
  const auto address = [&](const char* name, const SharedArray& array) {
    symbols[name] = {Symbol::Kind::MapAddress, static_cast<uint32_t>(array.map.get())};
  };
  address("d_unwind_processes", maps_->processes);
  address("d_unwind_segments", maps_->segments);
  address("d_unwind_files", maps_->files);
  address("d_unwind_rows", maps_->rows);
  address("d_unwind_rules", maps_->rules);
  symbols["d_n_unwind_rows"] = {Symbol::Kind::Number, rows_max_};
}

uint32_t UnwindTables::rule_index(const UnwindRule& rule) {
  if (rule.kind == UnwindKind::None) return 0;
  if (rule.kind == UnwindKind::Unsupported) return kUnsupportedRule;
  const MachineUnwindRule wanted = packed(rule);
  const uint64_t hash = hash_of(wanted);
  const auto [begin, end] = rules_by_hash_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (std::memcmp(&rules_[it->second], &wanted, sizeof wanted) == 0) return it->second;
  }
  if (rules_used_ == abi::kMachineUnwindRules) return kUnsupportedRule;
  rules_[rules_used_] = wanted;
  rules_by_hash_.emplace(hash, rules_used_);
  return rules_used_++;
}

UnwindTables::Place UnwindTables::add(const target::UnwindRows& rows) {
  if (rows.rows.empty() || rows.rows.size() > rows_max_ - rows_used_) return {};
  Place place{.base = rows.rows.front().address,
              .first = static_cast<uint32_t>(rows_used_),
              .count = static_cast<uint32_t>(rows.rows.size())};
  if (rows.rows.back().address - place.base > std::numeric_limits<uint32_t>::max()) return {};
  std::vector<uint32_t> indices;
  indices.reserve(rows.rules.size());
  for (const UnwindRule& rule : rows.rules)
    indices.push_back(rule_index(rule));
  abi::MachineUnwindRow* to = rows_ + rows_used_;
  for (const target::UnwindRow& row : rows.rows)
    *to++ = {static_cast<uint32_t>(row.address - place.base), indices[row.rule]};
  rows_used_ += rows.rows.size();
  return place;
}

void UnwindTables::add(const abi::MachineUnwindFile& file) {
  if (files_ == nullptr) return;
  for (uint64_t turn = 0; turn < abi::kMachineUnwindSlotsMax; ++turn) {
    abi::MachineUnwindFile& one =
        files_[abi::unwind_slot(file.inode, turn, abi::kMachineUnwindFiles)];
    if (one.inode == file.inode && one.device == file.device) return;
    if (one.inode != 0) continue;
    one.device = file.device;
    one.delta = file.delta;
    one.first_row = file.first_row;
    one.row_count = file.row_count;
    return abi::store_word(one.inode, file.inode);
  }
}

MachineUnwindProcess* UnwindTables::find(uint64_t pid) const {
  for (uint64_t turn = 0; turn < abi::kMachineUnwindSlotsMax; ++turn) {
    MachineUnwindProcess& one =
        processes_[abi::unwind_slot(pid, turn, abi::kMachineUnwindProcesses)];
    const uint64_t found = abi::load_word(one.pid);
    if (found == pid) return &one;
    if (found == 0) return nullptr;
  }
  return nullptr;
}

MachineUnwindProcess* UnwindTables::claim(uint64_t pid) const {
  MachineUnwindProcess* const known = find(pid);
  if (known != nullptr) return known;
  for (uint64_t turn = 0; turn < abi::kMachineUnwindSlotsMax; ++turn) {
    MachineUnwindProcess& one =
        processes_[abi::unwind_slot(pid, turn, abi::kMachineUnwindProcesses)];
    const uint64_t found = abi::load_word(one.pid);
    if (found != 0 && found != abi::kMachineUnwindRemoved) continue;
    if (abi::swap_word(one.pid, found, pid)) return &one;
  }
  return nullptr;
}

// Room for so many segments of the process; the old one if it is large enough.
bool UnwindTables::reserve(uint64_t pid, size_t count) {
  const auto wanted = std::max<uint32_t>(
      kClassMin, static_cast<uint32_t>(std::bit_width(std::max<size_t>(1, count) - 1)));
  const auto known = rooms_.find(pid);
  if (known != rooms_.end() && known->second.size_class >= wanted) return true;
  if (wanted >= kClasses) return false;
  Room room{.first = segments_used_, .size_class = wanted};
  if (!free_[wanted].empty()) {
    room.first = free_[wanted].back();
    free_[wanted].pop_back();
  } else if (segments_used_ + (1U << wanted) <= abi::kMachineUnwindSegments) {
    segments_used_ += 1U << wanted;
  } else {
    return false;
  }
  if (known != rooms_.end()) free_[known->second.size_class].push_back(known->second.first);
  rooms_[pid] = room;
  return true;
}

bool UnwindTables::put(uint64_t pid, uint64_t program,
                       const std::vector<MachineUnwindSegment>& segments) {
  MachineUnwindProcess* const process = claim(pid);
  if (process == nullptr) return false;
  MachineUnwindSegment* const all = segments_;
  const MachineUnwindSegment* old = all + process->first_segment;
  if (process->segment_count == segments.size() && process->program == program &&
      std::equal(segments.begin(), segments.end(), old, is_same)) {
    return false;
  }
  const uint64_t version = process->version;
  abi::store_word(process->version, version | 1);
  const bool has_room = reserve(pid, segments.size());
  process->segment_count = 0;
  process->program = program;
  if (has_room) {
    process->first_segment = rooms_[pid].first;
    std::copy(segments.begin(), segments.end(), all + process->first_segment);
    process->segment_count = static_cast<uint32_t>(segments.size());
  }
  abi::store_word(process->version, (version | 1) + 1);
  abi::store_word(process->asked, 0);
  return true;
}

void UnwindTables::remove(uint64_t pid) {
  MachineUnwindProcess* const process = find(pid);
  if (process == nullptr) return;
  const uint64_t version = process->version;
  abi::store_word(process->version, version | 1);
  process->segment_count = 0;
  abi::store_word(process->version, (version | 1) + 1);
  abi::store_word(process->pid, abi::kMachineUnwindRemoved);
  const auto room = rooms_.find(pid);
  if (room == rooms_.end()) return;
  free_[room->second.size_class].push_back(room->second.first);
  rooms_.erase(room);
}

void UnwindTables::allow_questions(uint64_t pid) {
  MachineUnwindProcess* const process = find(pid);
  if (process != nullptr) abi::store_word(process->asked, 0);
}

}  // namespace clew::kernel
