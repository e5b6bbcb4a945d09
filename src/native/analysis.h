// SPDX-License-Identifier: Apache-2.0
// What is known before each operation of a program, on all paths: which BPF registers hold a
// constant, the context pointer, or an argument that still lies in its own x86 register; and which
// values somebody needs in a register of the body. An operation whose result is known, or needed by
// nobody, is not translated.
//
// The method is conditional constant propagation forward (a branch on constants reaches one side
// only), then liveness backward, both until nothing changes. Window pointers are plain numbers, so
// frame and cell addresses become constants here.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "abi/stub.h"
#include "native/code.h"
#include "native/operation.h"

namespace clew::native {

using abi::Register;

inline constexpr uint32_t kBpfRegisters = 11;

struct Value {
  enum class Kind : uint8_t {
    Unreached,  // No path has reached this place yet.
    Constant,
    Context,   // The pointer to abi::Context.
    Live,      // What `live` holds, a register that the body never writes.
    Register,  // Anything: it is in the register assigned to the BPF register.
  };
  Kind kind = Kind::Unreached;
  Register live = Register::Rax;
  uint64_t constant = 0;

  bool operator==(const Value&) const = default;
  [[nodiscard]] bool is_constant() const { return kind == Kind::Constant; }
  [[nodiscard]] bool is_register() const { return kind == Kind::Register; }
};

using Values = std::array<Value, kBpfRegisters>;

// A word of the program's frame whose content is a constant or a live register: a key that was
// stored for an accessor need not be loaded to be hashed and compared.
struct KnownWord {
  uint32_t place = 0;  // Window offset; 0 = none.
  Value value;

  bool operator==(const KnownWord&) const = default;
};
using KnownWords = std::array<KnownWord, 6>;

struct State {
  Values values;
  KnownWords words;
};

struct Facts {
  KnownWords words;         // Before the operation.
  Values values;            // Before the operation.
  uint16_t live_after = 0;  // BPF registers whose register is read later.
  bool reached = false;
  bool needed = false;        // It has an effect, or its result must be in a register.
  bool is_target = false;     // A reached, needed branch leads here.
  bool needs_label = false;   // Something other than the block before it leads here.
  bool is_loop_head = false;  // By a branch backward; src/native/layout.h decides what that is.
  bool always_taken = false;  // A branch whose condition is known and true.
  Value result;               // Of the destination, for operations that have one.
};

// One 8-byte word of abi::Context, as a body at `point` finds it.
struct ContextWord {
  enum class Where : uint8_t { Argument, Frame, Stack, SlotWord, Tid, Generation, Vector };
  Where where = Where::Argument;
  Register argument = Register::Rax;
  uint32_t offset_bytes = 0;  // Stack: above the words that the stub pushed. SlotWord: in the slot.
  uint8_t vector = 0;         // Of xmm.
};

// Nothing when the word does not exist at such a point.
std::optional<ContextWord> context_word(PointKind point, uint32_t offset_bytes);

// `clobbers`: the registers that the body writes; arguments in others stay live.
Expected<std::vector<Facts>> analyse(std::span<const Operation> operations, PointKind point,
                                     abi::RegisterSet clobbers);

// The BPF registers that `op` reads or writes through their assigned registers.
uint16_t register_reads(const Operation& op, const Facts& facts);
std::optional<uint8_t> result_register(const Operation& op);

}  // namespace clew::native
