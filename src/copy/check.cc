// SPDX-License-Identifier: Apache-2.0
#include "copy/check.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "code/decode.h"
#include "code/full_decode.h"
#include "code/opcodes.h"

namespace clew::copy {

namespace {

using code::Block;
using code::Flow;
using code::Instruction;

using code::kInt3;
using code::kJumpRel32;
using code::kJumpRel8;

class Checker {
 public:
  Checker(const Facts& facts, std::span<const Proved> proved, const Insertions& insertions,
          const ModuleCopy& copy)
      : code_(facts.code), proved_(proved), insertions_(insertions), copy_(copy) {}

  Expected<void> run() {
    CLEW_TRY(check_shape());
    note_originals();
    CLEW_TRY(note_copies());
    for (const Proved& one : proved_) {
      names_ = &one.switches;
      carries_ = insertions_.carriers.contains(code_.functions()[one.function].address);
      for (const Block& block : one.blocks.blocks())
        CLEW_TRY(check_block(one, block));
    }
    CLEW_TRY(check_glue());
    for (const Proved& one : proved_)
      CLEW_TRY(check_tables(one.switches));
    const auto by_copy = [](const ClonedTable& a, const ClonedTable& b) { return a.copy < b.copy; };
    if (tables_.size() != copy_.tables.size() ||
        !std::is_sorted(copy_.tables.begin(), copy_.tables.end(), by_copy)) {
      return differs(0, "its list of tables");
    }
    CLEW_TRY(check_functions());
    CLEW_TRY(check_fixups());
    return check_rest();
  }

 private:
  [[nodiscard]] tl::unexpected<Error> differs(uint64_t original, std::string_view what) const {
    return fail(ErrorCode::Refused,
                fmt::format("the copy of the instruction at {:#x} is wrong: {}", original, what));
  }

  // So that no later step reads outside.
  Expected<void> check_shape() const {
    if (copy_.code_size > copy_.bytes.size()) return differs(0, "the code is cut");
    for (const code::FunctionRange& range : code_.functions()) {
      const bool is_apart =
          range.address >= copy_.end() || range.address + range.size_bytes <= copy_.address;
      if (copy_.address > copy_.end() || !is_apart) return differs(range.address, "it is in it");
    }
    uint64_t next = 0;
    for (const CopiedPc& pc : copy_.pcs) {
      if (pc.offset < next || pc.offset >= copy_.code_size)
        return differs(pc.original, "its place");
      next = uint64_t{pc.offset} + 1;
    }
    for (const Fixup& fixup : copy_.fixups) {
      const uint64_t size = fixup.kind == FixupKind::Absolute64 ? 8 : 4;
      if (fixup.offset + size > copy_.bytes.size()) return differs(0, "a fix-up is outside");
    }
    return {};
  }

  // Of what is written from there on.
  void note_bytes(uint64_t offset, uint64_t end) { written_.push_back({offset, end}); }

  void note_originals() {
    for (const Proved& one : proved_) {
      for (const Block& block : one.blocks.blocks()) {
        for (auto at = code_.at(block.begin); at && at->address < block.end;
             at = code_.at(at->end())) {
          reached_.emplace(at->address, UINT32_MAX);
        }
      }
    }
  }

  Expected<void> note_copies() {
    size_t found = 0;
    for (const CopiedPc& pc : copy_.pcs) {
      if (pc.kind != PcKind::Instruction) {
        (pc.kind == PcKind::RunsOn ? glue_ : inserted_).emplace(pc.offset, pc.original);
        continue;
      }
      const auto at = reached_.find(pc.original);
      if (at == reached_.end()) return differs(pc.original, "nothing gets there");
      if (at->second != UINT32_MAX) return differs(pc.original, "it is there twice");
      at->second = pc.offset;
      ++found;
    }
    if (found != reached_.size()) return differs(0, "some are missing");
    for (const auto& [original, bytes] : insertions_.before) {
      const auto at = reached_.find(original);
      if (at == reached_.end()) return differs(original, "what is inserted is nowhere");
      if (at->second < bytes.size()) return differs(original, "what is in front of it");
      CLEW_TRY(take_inserted(original, static_cast<uint32_t>(at->second - bytes.size()), bytes));
    }
    for (const auto& [original, bytes] : insertions_.entry) {
      if (!reached_.contains(original)) return differs(original, "an entry is nowhere");
      const uint64_t behind = image_of(original, Past::Entry) - copy_.address;
      if (behind < bytes.size()) return differs(original, "what is in front of it");
      CLEW_TRY(take_inserted(original, behind - bytes.size(), bytes));
    }
    return {};
  }

  // Are these bytes there, and a whole entry of the map of places?
  Expected<void> take_inserted(uint64_t original, uint64_t offset,
                               const std::vector<uint8_t>& bytes) {
    const auto at = inserted_.find(static_cast<uint32_t>(offset));
    const bool is_there = at != inserted_.end() && offset + bytes.size() <= copy_.code_size &&
                          std::equal(bytes.begin(), bytes.end(), bytes_at(offset).begin());
    if (!is_there) return differs(original, "what is inserted there");
    inserted_.erase(at);
    note_bytes(offset, offset + bytes.size());
    return {};
  }

  // Where the copy of what the original leads to is, with what is inserted in front of it.
  [[nodiscard]] uint64_t image_of(uint64_t original, Past past) const {
    const auto at = reached_.find(original);
    if (at == reached_.end()) return original;
    uint64_t size = 0;
    if (past != Past::Everything) size += size_in(insertions_.before, original);
    if (past == Past::Nothing) size += size_in(insertions_.entry, original);
    return copy_.address + at->second - size;
  }

  // Of the function that is looked at, on a way that is in neither of these.
  [[nodiscard]] Past past_of(const std::unordered_set<uint64_t>& over, uint64_t from) const {
    if (over.contains(from)) return Past::Everything;
    return carries_ ? Past::Entry : Past::Nothing;
  }

  static uint64_t size_in(const std::unordered_map<uint64_t, std::vector<uint8_t>>& inserted,
                          uint64_t original) {
    const auto found = inserted.find(original);
    return found == inserted.end() ? 0 : found->second.size();
  }

  [[nodiscard]] std::span<const uint8_t> bytes_at(uint64_t offset) const {
    const std::span<const uint8_t> code = std::span(copy_.bytes).first(copy_.code_size);
    return code.subspan(std::min<uint64_t>(offset, code.size()));
  }

  Expected<void> check_block(const Proved& owner, const Block& block) {
    uint64_t end = 0;  // Behind the last one, in the copy.
    for (auto at = code_.at(block.begin); at && at->address < block.end; at = code_.at(at->end())) {
      const uint32_t offset = reached_.at(at->address);
      if (at->address != block.begin && image_of(at->address, Past::Entry) != end) {
        return differs(at->address, "it does not follow");
      }
      end = CLEW_TRY(check_instruction(*at, offset));
      note_bytes(offset, end - copy_.address);
    }
    return check_run_on(owner, block, end);
  }

  // The end of the copy.
  Expected<uint64_t> check_instruction(const Instruction& at, uint32_t offset) {
    const std::span<const uint8_t> original = code_.text_from(at.address).first(at.length);
    const bool is_direct =
        at.flow == Flow::Call || at.flow == Flow::Jump || at.flow == Flow::Conditional;
    if (is_direct) return check_branch(at, original, offset);
    const std::span<const uint8_t> copied = bytes_at(offset);
    if (copied.size() < at.length) return differs(at.address, "it is cut");
    const auto decoded = code::decode_with_zydis(original);
    if (!decoded || decoded->length != at.length) return differs(at.address, "the original");
    const auto name = name_at(at.address);
    const bool has_field = decoded->rip_relative || name;
    const unsigned field = decoded->displacement_offset;
    for (unsigned i = 0; i < at.length; ++i) {
      const bool in_field = has_field && i >= field && i < field + 4;
      if (!in_field && copied[i] != original[i]) return differs(at.address, "its bytes");
    }
    if (has_field) CLEW_TRY(check_field(at, offset, field, name));
    return copy_.address + offset + at.length;
  }

  Expected<void> check_field(const Instruction& at, uint32_t offset, unsigned field,
                             const std::optional<TableName>& name) {
    const auto was =
        static_cast<uint64_t>(code::signed_field(code_.text_from(at.address), field, 4));
    const auto now = static_cast<uint64_t>(code::signed_field(bytes_at(offset), field, 4));
    const uint64_t here = copy_.address + offset + at.length;
    if (!name) {
      wanted_.push_back({offset + field, FixupKind::Outward, false});
      if (here + now != at.end() + was) return differs(at.address, "its address");
      return {};
    }
    const uint64_t table = name->is_absolute ? was : at.end() + was;
    const uint64_t clone = name->is_absolute ? now : here + now;
    if (name->is_absolute) wanted_.push_back({offset + field, FixupKind::Absolute32, false});
    const ClonedTable* known = clone_at(clone);
    if (known == nullptr || known->original != table) return differs(at.address, "its table");
    return {};
  }

  Expected<uint64_t> check_branch(const Instruction& at, std::span<const uint8_t> original,
                                  uint32_t offset) {
    const auto was = code::decode_full(original);
    const auto now = code::decode_full(bytes_at(offset));
    const unsigned in_front = code::opcode_offset(original);
    if (!was || !now || was->instruction.mnemonic != now->instruction.mnemonic ||
        now->all[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
        code::opcode_offset(bytes_at(offset).first(now->instruction.length)) != in_front ||
        !std::equal(original.begin(), original.begin() + in_front, bytes_at(offset).begin())) {
      return differs(at.address, "it is another branch");
    }
    uint64_t end = copy_.address + offset + now->instruction.length;
    uint64_t target = end + static_cast<uint64_t>(now->all[0].imm.value.s);
    const uint64_t wanted = CLEW_TRY(way_of(at, target));
    unsigned bits = now->instruction.raw.imm[0].size;
    if (target != wanted && at.flow == Flow::Conditional && now->instruction.raw.imm[0].size == 8) {
      // loop taken ; jmp over ; taken: jmp target ; over:
      const uint64_t taken = end + 2;
      const auto over = jump_at(end - copy_.address);
      const auto far = jump_at(taken - copy_.address);
      if (!over || !far || target != taken || over->end != taken || over->target != far->end) {
        return differs(at.address, "its target");
      }
      end = far->end;
      target = far->target;
      bits = far->bits;
    }
    if (target != wanted) return differs(at.address, "its target");
    if (is_outward(wanted) && bits != 32) return differs(at.address, "it cannot be moved");
    note_outward(wanted, end);
    return end;
  }

  // Where a branch that leads there must lead: to the image of its target, or to the stub there,
  // which goes on to it.
  Expected<uint64_t> way_of(const Instruction& at, uint64_t target) {
    const uint64_t meant = insertions_.target_of(at.address, code::branch_target(code_, at));
    const uint64_t image = image_of(meant, past_of(insertions_.leaping, at.address));
    const auto taken = insertions_.taken.find(at.address);
    if (taken == insertions_.taken.end()) return image;
    // A loop that is far leads to a jump behind it first.
    uint64_t stub = target;
    const auto first = jump_at(stub - copy_.address);
    if (first && inserted_.find(static_cast<uint32_t>(stub - copy_.address)) == inserted_.end()) {
      stub = first->target;
    }
    CLEW_TRY(take_inserted(at.address, stub - copy_.address, taken->second));
    const uint64_t behind = stub + taken->second.size();
    const auto jump = jump_at(behind - copy_.address);
    const bool leads_on = jump && jump->target == image && jump->bits == 32 &&
                          glue_.erase(static_cast<uint32_t>(behind - copy_.address)) == 1;
    if (!leads_on) return differs(at.address, "the way behind what is inserted");
    note_outward(image, jump->end);
    note_bytes(behind - copy_.address, jump->end - copy_.address);
    return stub;
  }

  // Of a branch that ends there with a displacement of 4 bytes.
  void note_outward(uint64_t target, uint64_t end) {
    if (!is_outward(target)) return;
    wanted_.push_back({static_cast<uint32_t>(end - copy_.address - 4), FixupKind::Outward, false});
  }

  [[nodiscard]] bool is_outward(uint64_t target) const {
    return target - copy_.address >= copy_.code_size;
  }

  // A jmp of the copier's own.
  struct GlueJump {
    uint64_t end = 0;
    uint64_t target = 0;
    unsigned bits = 0;  // Of its displacement.
  };
  [[nodiscard]] std::optional<GlueJump> jump_at(uint64_t offset) const {
    if (offset >= copy_.code_size) return std::nullopt;
    const std::span<const uint8_t> bytes = bytes_at(offset);
    const unsigned size = bytes[0] == kJumpRel8 ? 1 : 4;
    if ((bytes[0] != kJumpRel8 && bytes[0] != kJumpRel32) || bytes.size() < 1 + size) {
      return std::nullopt;
    }
    const uint64_t end = copy_.address + offset + 1 + size;
    return GlueJump{.end = end,
                    .target = end + static_cast<uint64_t>(code::signed_field(bytes, 1, size)),
                    .bits = 8 * size};
  }

  Expected<void> check_run_on(const Proved& owner, const Block& block, uint64_t end) {
    const auto last = code_.at(block.last);
    const auto edges = owner.blocks.edges_of(block);
    const bool calls = last->flow == Flow::Call || last->flow == Flow::IndirectCall;
    std::optional<uint64_t> next;
    if (calls) {
      next = edges.empty() ? block.end : edges.front().target;
    } else if (last->flow == Flow::Conditional) {
      next = edges.back().target;
    } else if (last->flow == Flow::Next || last->flow == Flow::Nop) {
      next = edges.front().target;
    }
    if (const auto passed = insertions_.passed.find(block.last);
        passed != insertions_.passed.end()) {
      CLEW_TRY(take_inserted(block.last, end - copy_.address, passed->second));
      end += passed->second.size();
    }
    if (!next) return {};
    const uint64_t image = image_of(*next, past_of(insertions_.running_over, block.last));
    if (end == image) return {};
    const auto glue = glue_.find(static_cast<uint32_t>(end - copy_.address));
    if (glue == glue_.end()) return differs(block.last, "what it runs on to");
    const auto jump = jump_at(glue->first);
    if (!jump || glue->second != block.end) return differs(block.last, "the jump behind it");
    if (jump->target != image || (is_outward(jump->target) && jump->bits != 32)) {
      return differs(block.last, "where it runs on to");
    }
    note_outward(jump->target, jump->end);
    note_bytes(glue->first, jump->end - copy_.address);
    glue_.erase(glue);
    return {};
  }

  // Nothing is left that nobody runs on to.
  Expected<void> check_glue() const {
    if (!glue_.empty()) return differs(glue_.begin()->second, "nothing leads to it");
    if (!inserted_.empty()) return differs(inserted_.begin()->second, "nobody wanted it");
    return {};
  }

  Expected<void> check_tables(const Switches& switches) {
    for (const SwitchTable& table : switches.tables) {
      const auto clone =
          std::find_if(copy_.tables.begin(), copy_.tables.end(),
                       [&](const ClonedTable& one) { return one.original == table.address; });
      if (clone == copy_.tables.end() || clone->kind != table.kind ||
          clone->entries != table.targets.size()) {
        return differs(table.address, "its table is not there");
      }
      const bool is_new = tables_.insert(table.address).second;
      if (!is_new) continue;
      for (size_t i = 0; i < table.targets.size(); ++i)
        CLEW_TRY(check_entry(*clone, i, image_of(table.targets[i], Past::Nothing)));
    }
    return {};
  }

  Expected<void> check_entry(const ClonedTable& clone, size_t index, uint64_t wanted) {
    const bool is_offset = clone.kind == TableKind::Offsets;
    const unsigned size = is_offset ? 4 : 8;
    const uint64_t place = clone.copy - copy_.address + index * size;
    if (place < copy_.code_size || place + size > copy_.bytes.size()) {
      return differs(clone.original, "its table is outside");
    }
    const auto word =
        static_cast<uint64_t>(code::signed_field(std::span(copy_.bytes).subspan(place), 0, size));
    const bool is_inside = wanted - copy_.address < copy_.code_size;
    const auto field = static_cast<uint32_t>(place);
    note_bytes(place, place + size);
    if (!is_offset) {
      wanted_.push_back({field, FixupKind::Absolute64, !is_inside});
    } else if (!is_inside) {
      wanted_.push_back({field, FixupKind::Outward, false});
    }
    if ((is_offset ? clone.copy + word : word) != wanted) {
      return differs(clone.original, "an entry of its table");
    }
    return {};
  }

  Expected<void> check_functions() const {
    uint64_t next = 0;  // They are by original, each once.
    for (const CopiedFunction& one : copy_.functions) {
      if (one.function >= code_.functions().size() || one.original < next ||
          one.original != code_.functions()[one.function].address ||
          one.copy != image_of(one.original, Past::Nothing) || one.copy == one.original) {
        return differs(one.original, "where its function begins");
      }
      next = one.original + 1;
    }
    if (copy_.functions.size() != proved_.size()) return differs(0, "a function is missing");
    return {};
  }

  Expected<void> check_fixups() {
    std::sort(wanted_.begin(), wanted_.end(),
              [](const Fixup& a, const Fixup& b) { return a.offset < b.offset; });
    const auto same = [](const Fixup& a, const Fixup& b) {
      return a.offset == b.offset && a.kind == b.kind && a.is_in_module == b.is_in_module;
    };
    if (!std::equal(copy_.fixups.begin(), copy_.fixups.end(), wanted_.begin(), wanted_.end(),
                    same)) {
      return differs(0, "its fix-ups");
    }
    return {};
  }

  // No two share a byte; where none is, nobody gets, and who does all the same is stopped.
  Expected<void> check_rest() {
    std::sort(written_.begin(), written_.end(),
              [](const Written& a, const Written& b) { return a.offset < b.offset; });
    uint64_t next = 0;
    for (const Written& one : written_) {
      if (one.offset < next || !is_filler(next, one.offset)) return differs(0, "what is between");
      next = one.end;
    }
    if (next != copy_.bytes.size()) return differs(0, "what is behind all");
    const auto in_code = [this](const Written& one) { return one.offset < copy_.code_size; };
    const auto tables = std::partition_point(written_.begin(), written_.end(), in_code);
    const uint64_t code_end = tables == written_.begin() ? 0 : (tables - 1)->end;
    if (code_end != copy_.code_size) return differs(0, "where its code ends");
    return {};
  }

  [[nodiscard]] bool is_filler(uint64_t from, uint64_t end) const {
    for (uint64_t i = from; i < end; ++i) {
      if (copy_.bytes[i] != (i < copy_.code_size ? kInt3 : 0)) return false;
    }
    return true;
  }

  [[nodiscard]] std::optional<TableName> name_at(uint64_t address) const {
    for (const TableName& name : names_->names) {
      if (name.instruction == address) return name;
    }
    return std::nullopt;
  }

  [[nodiscard]] const ClonedTable* clone_at(uint64_t address) const {
    for (const ClonedTable& table : copy_.tables) {
      if (table.copy == address) return &table;
    }
    return nullptr;
  }

  const code::ModuleCode& code_;
  std::span<const Proved> proved_;
  const Insertions& insertions_;
  const ModuleCopy& copy_;
  std::unordered_map<uint64_t, uint32_t> reached_;  // Original to offset.
  // By offset, and so is the next one: what nothing has led to yet.
  std::unordered_map<uint32_t, uint64_t> glue_;
  std::unordered_map<uint32_t, uint64_t> inserted_;
  const Switches* names_ = nullptr;  // Of the function that is looked at, and so is the next one.
  bool carries_ = false;
  std::vector<Fixup> wanted_;
  std::unordered_set<uint64_t> tables_;  // Of which there is a clone, by original.
  // Bytes of the copy that are an instruction or an entry of a table.
  struct Written {
    uint64_t offset = 0;
    uint64_t end = 0;
  };
  std::vector<Written> written_;
};

}  // namespace

Expected<CheckedCopy> check(const Facts& facts, std::span<const Proved> proved,
                            const Insertions& insertions, ModuleCopy copy) {
  CLEW_TRY(Checker(facts, proved, insertions, copy).run());
  return CheckedCopy(std::move(copy));
}

Expected<void> CheckedCopy::move_to(uint64_t load_bias, uint64_t shift) {
  const uint64_t apart = load_bias - shift;  // How much further the module is from the copy.
  for (const Fixup& fixup : copy_.fixups) {
    uint8_t* field = copy_.bytes.data() + fixup.offset;
    if (fixup.kind == FixupKind::Absolute64) {
      uint64_t word = 0;
      std::memcpy(&word, field, sizeof(word));
      word += fixup.is_in_module ? load_bias : shift;
      std::memcpy(field, &word, sizeof(word));
      continue;
    }
    int32_t word = 0;
    std::memcpy(&word, field, sizeof(word));
    const auto moved = static_cast<int64_t>(static_cast<uint64_t>(int64_t{word}) +
                                            (fixup.kind == FixupKind::Absolute32 ? shift : apart));
    if (moved < INT32_MIN || moved > INT32_MAX) {
      return fail(ErrorCode::Limit, "the copies of the module's functions are too far from it");
    }
    word = static_cast<int32_t>(moved);
    std::memcpy(field, &word, sizeof(word));
  }
  copy_.address += shift;
  for (CopiedFunction& function : copy_.functions)
    function.copy += shift;
  for (ClonedTable& table : copy_.tables)
    table.copy += shift;
  return {};
}

void CheckedCopy::add_to_words(std::span<const uint32_t> offsets, uint32_t value) {
  for (const uint32_t offset : offsets) {
    CLEW_ASSERT(offset <= copy_.bytes.size() && sizeof(uint32_t) <= copy_.bytes.size() - offset);
    uint32_t word = 0;
    std::memcpy(&word, copy_.bytes.data() + offset, sizeof(word));
    word += value;
    std::memcpy(copy_.bytes.data() + offset, &word, sizeof(word));
  }
}

void CheckedCopy::forget_places() {
  copy_.functions = {};
  copy_.pcs = {};
  copy_.tables = {};
}

}  // namespace clew::copy
