// SPDX-License-Identifier: Apache-2.0
// The linear sweep, and the look-ups in what it found.
#include "code/module_code.h"

#include <algorithm>
#include <array>

#include "base/assert.h"
#include "code/decode.h"
#include "code/jump_tables.h"
#include "code/opcodes.h"
#include "code/parts.h"

namespace clew::code {

namespace {

bool test_bit(const std::vector<uint64_t>& bits, uint64_t index) {
  return ((bits[index / 64] >> (index % 64)) & 1) != 0;
}

void set_bit(std::vector<uint64_t>& bits, uint64_t index) {
  bits[index / 64] |= uint64_t{1} << (index % 64);
}

template <typename T>
void sort_unique(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

// Drops sections that wrap around the address space or overlap an earlier one.
std::vector<Section> sorted_sections(const ModuleText& text, bool executable) {
  std::vector<Section> sections;
  for (const Section& section : text.sections) {
    const bool wraps = section.bytes.size() > UINT64_MAX - section.address;
    if (section.executable == executable && !section.bytes.empty() && !wraps) {
      sections.push_back(section);
    }
  }
  std::sort(sections.begin(), sections.end(),
            [](const Section& a, const Section& b) { return a.address < b.address; });
  std::vector<Section> kept;
  for (const Section& section : sections) {
    if (kept.empty() || kept.back().address + kept.back().bytes.size() <= section.address) {
      kept.push_back(section);
    }
  }
  return kept;
}

}  // namespace

ModuleCode ModuleCode::of_sections(const ModuleText& text) {
  ModuleCode code;
  for (const Section& section : sorted_sections(text, true)) {
    const size_t size = section.bytes.size();
    TextMap& map = code.texts_.emplace_back();
    map.section = section;
    map.map.resize(size);
    map.targets.resize(size / 64 + 1);
    map.foreign_targets.resize(size / 64 + 1);
  }
  std::stable_sort(code.texts_.begin(), code.texts_.end(),
                   [](const auto& a, const auto& b) { return a.map.size() > b.map.size(); });
  code.data_ = sorted_sections(text, false);
  return code;
}

// Builds a ModuleCode; lives only during analyse().
class Analyser {
 public:
  explicit Analyser(const ModuleText& text) : text_(text) {}

  ModuleCode run() {
    code_ = ModuleCode::of_sections(text_);
    code_.rseq_ = text_.rseq;
    add_functions();
    mark_known_pointers();
    for (ModuleCode::TextMap& text : code_.texts_)
      sweep(text);
    attach_parts();
    const auto by_target = [](const LoopHead& a, const LoopHead& b) {
      return a.address != b.address ? a.address < b.address : a.branch < b.branch;
    };
    std::sort(code_.loop_heads_.begin(), code_.loop_heads_.end(), by_target);
    mark_tables();
    return std::move(code_);
  }

 private:
  // Parts in stripped files are found by the jumps that the sweep met.
  void attach_parts() {
    std::vector<bool> has_callers(code_.functions_.size());
    const auto note_caller = [&](uint64_t target) {
      if (const auto range = code_.range_starting_at(target)) has_callers[*range] = true;
    };
    for (const uint64_t target : call_targets_)
      note_caller(target);
    for (const uint64_t target : code_.code_pointers_)
      note_caller(target);
    const std::vector<uint32_t> owners =
        find_owners(code_, {cross_jumps_, text_.part_links, has_callers});
    for (uint32_t i = 0; i < owners.size(); ++i)
      code_.functions_[i].owner = owners[i];
    index_parts();
    for (const CrossJump& jump : cross_jumps_)
      note_loop_from_part(jump);
    find_side_entries();
  }

  void find_side_entries() {
    for (const CrossJump& jump : cross_jumps_)
      note_side_entry(jump.to, code_.range_at(jump.from));
    // What looks like a jump there may be data.
    for (const uint64_t target : stray_jumps_) {
      if (code_.at(target)) note_side_entry(target, std::nullopt);
    }
    for (const uint64_t target : call_targets_) {
      // `call next ; pop` calls nothing.
      if (!pops(target)) note_side_entry(target, std::nullopt);
    }
    sort_unique(code_.side_entries_);
  }

  void note_side_entry(uint64_t to, std::optional<uint32_t> from) {
    const auto range = code_.range_at(to);
    if (!range) return;
    const uint32_t function = code_.owner_of(*range);
    if (from && code_.owner_of(*from) == function) return;
    const uint64_t start = code_.functions_[function].address;
    if (to != start && to != start + kEndbr64.size()) code_.side_entries_.push_back(to);
  }

  [[nodiscard]] bool pops(uint64_t address) const {
    const std::span<const uint8_t> text = code_.text_from(address);
    const size_t at = !text.empty() && text[0] == 0x41 ? 1 : 0;
    return text.size() > at && (text[at] & 0xf8) == 0x58;
  }

  void index_parts() {
    code_.cold_.clear();
    for (uint32_t i = 0; i < code_.functions_.size(); ++i) {
      if (code_.functions_[i].owner < kUnknownOwner) code_.cold_.push_back(i);
    }
    std::stable_sort(code_.cold_.begin(), code_.cold_.end(), [this](uint32_t a, uint32_t b) {
      return code_.functions_[a].owner < code_.functions_[b].owner;
    });
  }

  void note_loop_from_part(const CrossJump& jump) {
    const auto from = code_.range_at(jump.from);
    const auto to = code_.range_at(jump.to);
    if (from && to && code_.owner_of(*from) == code_.owner_of(*to)) {
      note_loop(jump.from, jump.to, code_.owner_of(*to));
    }
  }

  void note_loop(uint64_t from, uint64_t to, uint32_t function) {
    const uint64_t start = code_.functions_[function].address;
    if (to == start || to == start + kEndbr64.size()) code_.loop_heads_.push_back({to, from});
  }

  void add_functions() {
    std::vector<FunctionRange> functions;
    for (FunctionRange range : text_.functions) {
      const std::span<const uint8_t> room = code_.text_from(range.address);
      range.size_bytes = std::min<uint64_t>(range.size_bytes, room.size());
      if (range.owner < kUnknownOwner && range.owner >= text_.functions.size()) {
        range.owner = kUnknownOwner;
      }
      if (range.size_bytes != 0) functions.push_back(range);
    }
    std::sort(functions.begin(), functions.end(),
              [](const FunctionRange& a, const FunctionRange& b) {
                if (a.address != b.address) return a.address < b.address;
                if ((a.owner == kNoOwner) != (b.owner == kNoOwner)) return a.owner == kNoOwner;
                return a.size_bytes > b.size_bytes;
              });
    const auto same_start = [](const FunctionRange& a, const FunctionRange& b) {
      return a.address == b.address;
    };
    functions.erase(std::unique(functions.begin(), functions.end(), same_start), functions.end());
    code_.functions_ = std::move(functions);
    resolve_owners();
    find_enclosing();
    code_.unsafe_.resize(code_.functions_.size());
  }

  // Owners are indices in the input; after sorting they are indices in functions().
  void resolve_owners() {
    for (FunctionRange& range : code_.functions_) {
      if (range.owner >= kUnknownOwner) continue;
      range.owner =
          code_.function_starting_at(text_.functions[range.owner].address).value_or(kUnknownOwner);
    }
  }

  void find_enclosing() {
    std::vector<uint32_t> open;
    for (uint32_t i = 0; i < code_.functions_.size(); ++i) {
      const uint64_t start = code_.functions_[i].address;
      const auto ended = [&](uint32_t range) {
        return code_.functions_[range].address + code_.functions_[range].size_bytes <= start;
      };
      while (!open.empty() && ended(open.back()))
        open.pop_back();
      code_.enclosing_.push_back(open.empty() ? kNoOwner : open.back());
      open.push_back(i);
    }
  }

  void mark_known_pointers() {
    for (const uint64_t address : text_.landing_pads)
      mark(address, true);
    for (const uint64_t address : text_.code_pointers)
      mark(address, true);
    for (const FunctionRange& range : code_.functions_) {
      mark(range.address, true);
      if (is_bottom_of_stack(range.address)) mark(range.address + 1, true);
    }
    code_.code_pointers_ = text_.code_pointers;
    sort_unique(code_.code_pointers_);
  }

  // A goroutine's first function returns to the second byte of runtime.goexit, which nobody calls:
  // it is a nop of one byte and a call.
  [[nodiscard]] bool is_bottom_of_stack(uint64_t function) const {
    constexpr uint8_t kCall = 0xe8;
    const std::span<const uint8_t> text = code_.text_from(function);
    return text.size() >= 2 && text[0] == kNop && text[1] == kCall;
  }

  void mark(uint64_t address, bool foreign) {
    if (last_marked_ == nullptr ||
        address - last_marked_->section.address >= last_marked_->map.size()) {
      // text_at is const because look-ups are; the analyser owns the object.
      auto* text = const_cast<ModuleCode::TextMap*>(code_.text_at(address));
      if (text == nullptr) return;
      last_marked_ = text;
    }
    const uint64_t offset = address - last_marked_->section.address;
    set_bit(last_marked_->targets, offset);
    if (foreign) set_bit(last_marked_->foreign_targets, offset);
  }

  // Decodes from each start or end of a range to the next.
  void sweep(ModuleCode::TextMap& text) {
    const uint64_t begin = text.section.address;
    const uint64_t end = begin + text.section.bytes.size();
    std::vector<uint64_t> stops = {begin, end};
    for (const FunctionRange& range : code_.functions_) {
      if (range.address < begin || range.address >= end) continue;
      stops.push_back(range.address);
      stops.push_back(range.address + range.size_bytes);
    }
    sort_unique(stops);
    for (size_t i = 0; i + 1 < stops.size(); ++i)
      sweep_run(text, stops[i], stops[i + 1]);
  }

  void sweep_run(ModuleCode::TextMap& text, uint64_t begin, uint64_t end) {
    range_ = code_.range_at(begin);
    range_bounds_ = {};
    if (range_) {
      const FunctionRange& range = code_.functions_[*range_];
      range_bounds_ = {range.address, range.address + range.size_bytes};
      has_inner_ = *range_ + 1 < code_.functions_.size() &&
                   code_.functions_[*range_ + 1].address < range_bounds_.end;
    }
    const uint64_t base = text.section.address;
    const std::span<const uint8_t> bytes = text.section.bytes.first(end - base);
    for (uint64_t address = begin; address < end;) {
      // The decoder may look behind the run, not read an instruction over its end.
      const std::optional<Decoded> decoded = decode(text.section.bytes.subspan(address - base));
      const bool fits = decoded && decoded->length <= end - address;
      const Flow flow = fits ? decoded->flow : Flow::Bad;
      const unsigned length = fits ? decoded->length : 1;
      text.map[address - base] = static_cast<uint8_t>(length | static_cast<unsigned>(flow) << 4);
      if (fits) {
        note(address, *decoded, bytes.subspan(address - base));
      } else {
        mark_unsafe();
      }
      address += length;
    }
  }

  void mark_unsafe() {
    for (uint32_t range = range_.value_or(kNoOwner); range != kNoOwner;
         range = code_.enclosing_[range]) {
      code_.unsafe_[range] = true;
    }
  }

  void note(uint64_t address, const Decoded& decoded, std::span<const uint8_t> bytes) {
    const uint64_t next = address + decoded.length;
    if (decoded.rip_relative) {
      mark(next + static_cast<uint64_t>(signed_field(bytes, decoded.displacement_offset, 4)), true);
    }
    if (text_.position_dependent) note_absolute(decoded, bytes);
    if (decoded.flow == Flow::IndirectJump) code_.indirect_jumps_.push_back(address);
    if (decoded.immediate_size == 0) return;
    const bool relative = decoded.flow == Flow::Jump || decoded.flow == Flow::Conditional ||
                          decoded.flow == Flow::Call || decoded.flow == Flow::System;
    if (!relative) return;
    const uint64_t target = next + static_cast<uint64_t>(signed_field(
                                       bytes, decoded.immediate_offset, decoded.immediate_size));
    const bool is_jump = decoded.flow == Flow::Jump || decoded.flow == Flow::Conditional;
    if (is_jump) {
      note_jump(address, target);
    } else {
      mark(target, true);
      if (decoded.flow == Flow::Call) call_targets_.push_back(target);
    }
  }

  // A program that is not position-independent has addresses in immediates and displacements.
  void note_absolute(const Decoded& decoded, std::span<const uint8_t> bytes) {
    if (decoded.displacement_size >= 4 && !decoded.rip_relative) {
      mark(static_cast<uint64_t>(
               signed_field(bytes, decoded.displacement_offset, decoded.displacement_size)),
           true);
    }
    if (decoded.immediate_size >= 4) {
      mark(static_cast<uint64_t>(
               signed_field(bytes, decoded.immediate_offset, decoded.immediate_size)),
           true);
    }
  }

  void note_jump(uint64_t address, uint64_t target) {
    bool own = target - range_bounds_.begin < range_bounds_.end - range_bounds_.begin;
    if (own && has_inner_) own = code_.range_at(target) == range_;
    mark(target, !own);
    if (own) {
      note_loop(address, target, code_.owner_of(*range_));
    } else if (range_) {
      cross_jumps_.push_back({address, target});
    } else {
      stray_jumps_.push_back(target);
    }
  }

  void mark_tables() {
    std::sort(code_.indirect_jumps_.begin(), code_.indirect_jumps_.end());
    JumpTables tables(code_);
    for (const uint64_t jump : code_.indirect_jumps_) {
      const std::vector<uint64_t>& targets = tables.targets_of(jump);
      if (targets.empty()) continue;
      if (code_.table_lists_.empty() || code_.table_lists_.back() != targets) {
        for (const uint64_t target : targets)
          mark(target, true);
        code_.table_lists_.push_back(targets);
      }
      code_.table_jumps_.push_back({jump, code_.table_lists_.size() - 1});
    }
  }

  const ModuleText& text_;
  ModuleCode code_;
  ModuleCode::TextMap* last_marked_ = nullptr;
  std::optional<uint32_t> range_;  // Of the run being swept.
  AddressRange range_bounds_;
  bool has_inner_ = false;  // Another range lies in it.
  std::vector<CrossJump> cross_jumps_;
  std::vector<uint64_t> stray_jumps_;  // From outside of functions: their targets.
  std::vector<uint64_t> call_targets_;
};

ModuleCode analyse(const ModuleText& text) {
  return Analyser(text).run();
}

const ModuleCode::TextMap* ModuleCode::text_at(uint64_t address) const {
  for (const TextMap& text : texts_) {
    if (address - text.section.address < text.map.size()) return &text;
  }
  return nullptr;
}

std::optional<Instruction> ModuleCode::at(uint64_t address) const {
  const TextMap* text = text_at(address);
  if (text == nullptr) return std::nullopt;
  const uint8_t entry = text->map[address - text->section.address];
  if (entry == 0) return std::nullopt;
  return Instruction{address, static_cast<uint8_t>(entry & 15), static_cast<Flow>(entry >> 4)};
}

std::optional<Instruction> ModuleCode::before(uint64_t address) const {
  for (unsigned length = 1; length <= kInstructionSizeMax && length <= address; ++length) {
    const auto instruction = at(address - length);
    if (!instruction) continue;
    if (instruction->length == length) return instruction;
    return std::nullopt;
  }
  return std::nullopt;
}

bool ModuleCode::is_target(uint64_t address) const {
  const TextMap* text = text_at(address);
  return text != nullptr && test_bit(text->targets, address - text->section.address);
}

bool ModuleCode::is_foreign_target(uint64_t address) const {
  const TextMap* text = text_at(address);
  return text != nullptr && test_bit(text->foreign_targets, address - text->section.address);
}

bool ModuleCode::overlaps_rseq(uint64_t begin, uint64_t end) const {
  return std::any_of(rseq_.begin(), rseq_.end(), [&](const AddressRange& range) {
    return range.begin < end && begin < range.end;
  });
}

std::span<const uint8_t> ModuleCode::text_from(uint64_t address) const {
  const TextMap* text = text_at(address);
  if (text == nullptr) return {};
  return text->section.bytes.subspan(address - text->section.address);
}

Section ModuleCode::text_section(uint64_t address) const {
  const TextMap* text = text_at(address);
  return text == nullptr ? Section{} : text->section;
}

std::span<const uint8_t> ModuleCode::data_at(uint64_t address, uint64_t size) const {
  const auto after =
      std::upper_bound(data_.begin(), data_.end(), address,
                       [](uint64_t value, const Section& data) { return value < data.address; });
  if (after == data_.begin()) return {};
  const Section& data = *(after - 1);
  const uint64_t offset = address - data.address;
  if (offset >= data.bytes.size() || data.bytes.size() - offset < size) return {};
  return data.bytes.subspan(offset, size);
}

std::optional<uint32_t> ModuleCode::range_at(uint64_t address) const {
  const auto after = std::upper_bound(
      functions_.begin(), functions_.end(), address,
      [](uint64_t value, const FunctionRange& range) { return value < range.address; });
  if (after == functions_.begin()) return std::nullopt;
  auto index = static_cast<uint32_t>(after - functions_.begin() - 1);
  while (index != kNoOwner) {
    if (address - functions_[index].address < functions_[index].size_bytes) return index;
    index = enclosing_[index];
  }
  return std::nullopt;
}

uint64_t ModuleCode::run_end(uint64_t address) const {
  const auto range = range_at(address);
  if (!range) return address;
  const uint64_t end = functions_[*range].address + functions_[*range].size_bytes;
  const auto next = std::upper_bound(
      functions_.begin() + *range, functions_.end(), address,
      [](uint64_t value, const FunctionRange& other) { return value < other.address; });
  return next == functions_.end() ? end : std::min(end, next->address);
}

std::optional<uint32_t> ModuleCode::range_starting_at(uint64_t address) const {
  const auto found = std::lower_bound(
      functions_.begin(), functions_.end(), address,
      [](const FunctionRange& range, uint64_t value) { return range.address < value; });
  if (found == functions_.end() || found->address != address) return std::nullopt;
  return static_cast<uint32_t>(found - functions_.begin());
}

std::optional<uint32_t> ModuleCode::function_starting_at(uint64_t address) const {
  const auto range = range_starting_at(address);
  return range && functions_[*range].owner == kNoOwner ? range : std::nullopt;
}

uint32_t ModuleCode::owner_of(uint32_t range) const {
  const uint32_t owner = functions_[range].owner;
  return owner >= kUnknownOwner ? range : owner;
}

std::vector<AddressRange> ModuleCode::parts_of(uint32_t function) const {
  const auto bounds = [this](uint32_t range) {
    const FunctionRange& r = functions_[range];
    return AddressRange{r.address, r.address + r.size_bytes};
  };
  std::vector<AddressRange> parts = {bounds(function)};
  auto cold = std::lower_bound(
      cold_.begin(), cold_.end(), function,
      [this](uint32_t range, uint32_t owner) { return functions_[range].owner < owner; });
  for (; cold != cold_.end() && functions_[*cold].owner == function; ++cold) {
    parts.push_back(bounds(*cold));
  }
  return parts;
}

std::span<const LoopHead> ModuleCode::loop_heads_at(uint64_t address) const {
  const auto first =
      std::lower_bound(loop_heads_.begin(), loop_heads_.end(), address,
                       [](const LoopHead& head, uint64_t value) { return head.address < value; });
  const auto last =
      std::upper_bound(loop_heads_.begin(), loop_heads_.end(), address,
                       [](uint64_t value, const LoopHead& head) { return value < head.address; });
  return {first, last};
}

std::span<const uint64_t> ModuleCode::table_targets(uint64_t jump) const {
  const auto found = std::lower_bound(
      table_jumps_.begin(), table_jumps_.end(), jump,
      [](const TableJump& table, uint64_t value) { return table.address < value; });
  if (found == table_jumps_.end() || found->address != jump) return {};
  return table_lists_[found->list];
}

bool ModuleCode::has_inner_pointers(const AddressRange& range) const {
  const auto first = std::upper_bound(code_pointers_.begin(), code_pointers_.end(), range.begin);
  return first != code_pointers_.end() && *first < range.end;
}

std::span<const uint64_t> ModuleCode::side_entries(const AddressRange& range) const {
  const auto first = std::lower_bound(side_entries_.begin(), side_entries_.end(), range.begin);
  return {first, std::lower_bound(first, side_entries_.end(), range.end)};
}

void ModuleCode::each_call(const std::function<void(const Instruction&)>& visit) const {
  for (const TextMap& text : texts_) {
    for (size_t offset = 0; offset < text.map.size(); ++offset) {
      const uint8_t entry = text.map[offset];
      const auto flow = static_cast<Flow>(entry >> 4);
      if (flow != Flow::Call && flow != Flow::IndirectCall) continue;
      visit({text.section.address + offset, static_cast<uint8_t>(entry & 15), flow});
    }
  }
}

uint64_t branch_target(const ModuleCode& code, const Instruction& branch) {
  const std::span<const uint8_t> bytes = code.text_from(branch.address);
  // The short forms are most of all branches.
  if (branch.length == 2) return branch.end() + static_cast<uint64_t>(signed_field(bytes, 1, 1));
  if (branch.length == 5 && (bytes[0] & 0xfe) == 0xe8)
    return branch.end() + static_cast<uint64_t>(signed_field(bytes, 1, 4));
  const std::optional<Decoded> decoded = decode(bytes);
  CLEW_ASSERT(decoded && decoded->immediate_size != 0);
  return branch.end() + static_cast<uint64_t>(signed_field(bytes, decoded->immediate_offset,
                                                           decoded->immediate_size));
}

uint64_t padding_end(const ModuleCode& code, uint64_t address) {
  while (true) {
    const std::optional<Instruction> instruction = code.at(address);
    if (!instruction || code.is_target(address)) return address;
    if (instruction->flow != Flow::Nop && instruction->flow != Flow::Int3) return address;
    for (uint64_t inside = address + 1; inside < instruction->end(); ++inside) {
      if (code.is_target(inside)) return address;
    }
    address = instruction->end();
  }
}

}  // namespace clew::code
