// SPDX-License-Identifier: Apache-2.0
#include "isa/inline_calls.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "isa/live_registers.h"
#include "isa/opcode.h"

namespace clew::isa {
namespace {

using Instructions = std::vector<Instruction>;

constexpr uint8_t kMove = 0xBF;
constexpr uint8_t kAddImmediate = 0x07;
constexpr uint8_t kLoadDouble = 0x79;
constexpr uint8_t kStoreDouble = 0x7B;
constexpr uint8_t kFrameRegister = 10;
constexpr uint8_t kFirstKept = 6;  // r6 to r9 are kept by calls.
constexpr uint8_t kLastKept = 9;
bool is_kept(uint8_t reg) {
  return reg >= kFirstKept && reg <= kLastKept;
}

bool branches(const Instruction& i) {
  const bool is_jump = class_of(i) == Class::Jump64 || class_of(i) == Class::Jump32;
  return is_jump && i.opcode != kCallOpcode && i.opcode != kExitOpcode;
}

bool loads(const Instruction& i) {
  return class_of(i) == Class::Ldx;
}
bool stores(const Instruction& i) {
  return class_of(i) == Class::St || class_of(i) == Class::Stx;
}

// Whether it reads or writes memory of the frame at its own offset.
bool is_in_frame(const Instruction& i) {
  return (loads(i) && i.source() == kFrameRegister) ||
         (stores(i) && i.destination() == kFrameRegister);
}

bool takes_frame(const Instruction& i) {
  return i.opcode == kMove && i.source() == kFrameRegister;
}

// The instruction that adds a constant to the frame's address which the one at `at` takes; in the
// same straight line.
std::optional<size_t> find_addition(const Instructions& code, size_t at) {
  const uint8_t to = code[at].destination();
  for (size_t next = at + 1; next < code.size() && !branches(code[next]); ++next) {
    const Instruction& i = code[next];
    if (i.opcode == kAddImmediate && i.destination() == to) return next;
    if (i.destination() == to || i.opcode == kCallOpcode || i.opcode == kExitOpcode)
      return std::nullopt;
  }
  return std::nullopt;
}

void move_frame(Instructions& code, int32_t bytes) {
  for (size_t at = 0; at < code.size(); ++at) {
    if (is_in_frame(code[at])) code[at].offset = static_cast<int16_t>(code[at].offset - bytes);
    if (takes_frame(code[at])) code[*find_addition(code, at)].immediate -= bytes;
  }
}

// A bit for each of r6 to r9 that is named at all.
uint32_t kept_registers(const Instructions& code) {
  uint32_t named = 0;
  for (const Instruction& i : code) {
    if (is_kept(i.destination())) named |= 1U << i.destination();
    if (is_kept(i.source())) named |= 1U << i.source();
  }
  return named;
}

constexpr uint8_t registers(uint8_t destination, uint8_t source) {
  return static_cast<uint8_t>(destination | source << 4);
}

class Inliner {
 public:
  Inliner(const Body& function, const FindBody& find,
          const std::function<bool(std::string_view)>& wants, const InlineLimits& limits)
      : function_(function), find_(find), wants_(wants), limits_(limits) {}

  Body make() {
    const std::optional<int32_t> frame = frame_bytes(function_.code);
    const int64_t calls = wanted_calls();
    if (!frame || calls == 0 || calls > limits_.calls_max) return function_;
    frame_ = *frame;
    live_ = live_behind(function_.code);
    for (size_t at = 0; at < function_.code.size(); ++at)
      at += put(at);
    places_.push_back(made_.code.size());
    if (!join_branches()) return function_;
    return std::move(made_);
  }

 private:
  [[nodiscard]] int64_t wanted_calls() const {
    return std::count_if(
        function_.references.begin(), function_.references.end(),
        [this](const Reference& one) { return one.is_call && wants_(one.symbol); });
  }

  [[nodiscard]] const Reference* reference(size_t at) const {
    const auto found = std::find_if(function_.references.begin(), function_.references.end(),
                                    [at](const Reference& one) { return one.instruction == at; });
    return found == function_.references.end() ? nullptr : &*found;
  }

  // Gives how many instructions it took beside the one at `at`.
  size_t put(size_t at) {
    places_.push_back(made_.code.size());
    const Reference* refers = reference(at);
    if (refers != nullptr && refers->is_call && wants_(refers->symbol) &&
        put_body(at, refers->symbol)) {
      return 0;
    }
    if (refers != nullptr) {
      made_.references.push_back(
          {static_cast<uint32_t>(made_.code.size()), refers->is_call, refers->symbol});
    }
    made_.code.push_back(function_.code[at]);
    if (function_.code[at].opcode != kLoad64Opcode) return 0;
    places_.push_back(made_.code.size());
    made_.code.push_back(function_.code[at + 1]);
    return 1;
  }

  bool put_body(size_t at, const std::string& name) {
    const Body* const found = find_(name);
    if (found == nullptr) return false;
    Body body = with_inlined_calls(*found, find_, wants_, limits_);
    const std::optional<int32_t> body_frame = frame_bytes(body.code);
    const uint32_t kept = kept_registers(body.code) & live_[at];
    const int32_t above = frame_ + 8 * __builtin_popcount(kept);
    if (!body_frame || above + *body_frame > limits_.frame_bytes_max) return false;
    move_frame(body.code, above);
    move_kept(kept, true);
    put_code(body);
    move_kept(kept, false);
    return true;
  }

  // To their places in the frame, or back.
  void move_kept(uint32_t kept, bool saves) {
    int32_t offset = -frame_;
    for (uint8_t reg = kFirstKept; reg <= kLastKept; ++reg) {
      if ((kept >> reg & 1) == 0) continue;
      offset -= 8;
      const auto place = static_cast<int16_t>(offset);
      made_.code.push_back(
          saves ? Instruction{kStoreDouble, registers(kFrameRegister, reg), place, 0}
                : Instruction{kLoadDouble, registers(reg, kFrameRegister), place, 0});
    }
  }

  void put_code(const Body& body) {
    const size_t begin = made_.code.size();
    for (const Reference& one : body.references) {
      made_.references.push_back(
          {static_cast<uint32_t>(begin) + one.instruction, one.is_call, one.symbol});
    }
    const size_t end = body.code.size() - (body.code.back().opcode == kExitOpcode ? 1 : 0);
    for (size_t at = 0; at < end; ++at) {
      Instruction i = body.code[at];
      if (i.opcode == kExitOpcode) i = {kJumpFarOpcode, 0, 0, static_cast<int32_t>(end - at - 1)};
      made_.code.push_back(i);
      if (i.opcode == kLoad64Opcode) made_.code.push_back(body.code[++at]);
    }
  }

  // Leads the function's own branches to where their targets are by now. False: one is too long.
  bool join_branches() {
    for (size_t at = 0; at < function_.code.size(); ++at) {
      const Instruction& i = function_.code[at];
      if (i.opcode == kLoad64Opcode) ++at;
      if (!branches(i)) continue;
      const int64_t over = i.opcode == kJumpFarOpcode ? i.immediate : i.offset;
      const auto target = static_cast<size_t>(static_cast<int64_t>(at) + 1 + over);
      const int64_t moved =
          static_cast<int64_t>(places_[target]) - static_cast<int64_t>(places_[at]) - 1;
      Instruction& branch = made_.code[places_[at]];
      if (i.opcode == kJumpOpcode) branch = {kJumpFarOpcode, 0, 0, 0};
      if (branch.opcode == kJumpFarOpcode) {
        branch.immediate = static_cast<int32_t>(moved);
        continue;
      }
      if (moved < std::numeric_limits<int16_t>::min() ||
          moved > std::numeric_limits<int16_t>::max()) {
        return false;
      }
      branch.offset = static_cast<int16_t>(moved);
    }
    return true;
  }

  const Body& function_;
  const FindBody& find_;
  const std::function<bool(std::string_view)>& wants_;
  const InlineLimits& limits_;
  int32_t frame_ = 0;
  std::vector<uint32_t> live_;  // By old instruction.
  Body made_;
  std::vector<size_t> places_;  // By old instruction, and one for the end.
};

}  // namespace

std::optional<int32_t> frame_bytes(const Instructions& code) {
  int32_t lowest = 0;
  for (size_t at = 0; at < code.size(); ++at) {
    if (is_in_frame(code[at])) lowest = std::min<int32_t>(lowest, code[at].offset);
    if (!takes_frame(code[at])) continue;
    const std::optional<size_t> addition = find_addition(code, at);
    if (!addition) return std::nullopt;
    lowest = std::min(lowest, code[*addition].immediate);
  }
  return (-lowest + 7) & ~7;
}

Body with_inlined_calls(const Body& body, const FindBody& find,
                        const std::function<bool(std::string_view)>& wants,
                        const InlineLimits& limits) {
  return Inliner(body, find, wants, limits).make();
}

}  // namespace clew::isa
