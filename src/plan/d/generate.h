// SPDX-License-Identifier: Apache-2.0
// Script -> Generated: one probe program per clause, the layout of what it records, and the
// descriptors of the state that it uses. The programs see one window per firing
// (abi/machine/window.h) and call the D accessors; the engine that runs them, in the kernel or in a
// process, is none of their business.
//
// A value is one register: an integer extended by its own type's sign, an address for pointers,
// arrays and structs, a window offset for strings (0 = NULL). Expressions leave theirs in r0;
// r6 is left to the engine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "abi/machine/window.h"
#include "isa/program.h"
#include "plan/d/extensions.h"
#include "plan/d/private_variables.h"
#include "query/d/record.h"
#include "query/d/script.h"
#include "query/d/source.h"

namespace clew::plan::d {

// One field of a key that is the same in all firings of a probe in one process.
struct KeyPart {
  enum class Kind : uint8_t {
    Number,
    ProbeName,  // What MachineAccessor::ProbeName gives for the MachineBuiltin `value`.
    Pid,
  };
  Kind kind = Kind::Number;
  uint64_t value = 0;
};

// An update of an aggregation with such a key: its cells may be words of the thread's own.
struct CellUpdate {
  uint32_t aggregation = 0;
  std::vector<KeyPart> key;  // By field; each is one word.
};

// A clause for an engine that has such cells. They are words of the window: one that counts
// updates, changed last, and those that the table's entries have. All of them only grow, so that
// sums over threads, and differences in time, are what was counted.
struct CellClause {
  isa::Program program;
  std::vector<CellUpdate> updates;
  std::vector<ExtensionCall> calls{};
};

// The site constants of a CellClause: what a tick of the processor's counter (abi::Accessor::Time)
// has in nanoseconds, times 2^kTickShift; and the window pointer to the cells of updates[i]. The
// shift is the largest for counters of 1 GHz and more (scale_ticks).
inline constexpr uint32_t kTickConstant = 0;
inline constexpr uint32_t kTickShift = 30;
constexpr uint32_t cells_constant(uint32_t update) {
  return 1 + update;
}

// The words of private variables in a window. They are those of one thread: where another one has
// the window now, the firing clears them.
struct PrivateArea {
  // The word of the thread's id, that of the firing's time (0: nobody has asked), then one for each
  // variable.
  uint32_t begin = 0;
  uint32_t variables = 0;

  static constexpr uint32_t kOwnWords = 2;
  [[nodiscard]] uint32_t time_word() const { return begin + 8; }
  [[nodiscard]] uint32_t word(uint32_t number) const { return begin + 8 * (kOwnWords + number); }
  [[nodiscard]] uint32_t end() const { return variables == 0 ? begin : word(variables); }
  [[nodiscard]] bool contains(uint32_t offset) const { return offset >= begin && offset < end(); }
};

struct Generated {
  std::vector<isa::Program> clauses;              // By clause of the script.
  std::vector<std::vector<ExtensionCall>> calls;  // In these.
  std::vector<CellClause> cell_clauses;           // By clause.
  // By clause, with `privates` as words of the window; none when there are no such variables. Only
  // for a process where all probes of the clauses that name one of these are inline.
  std::vector<CellClause> private_clauses;
  PrivateVariables privates;
  std::vector<query::d::RecordLayout> records;        // By clause.
  std::vector<uint32_t> scratch_begin;                // By clause: the first byte for alloca().
  std::vector<abi::MachineVariable> variables;        // Thread-local and associative ones.
  std::vector<abi::MachineAggregation> aggregations;  // By aggregation of the script.
  std::vector<query::d::KeyLayout> keys;              // By aggregation.
  std::vector<uint8_t> globals;                       // All zero: nothing is stored yet.
  std::vector<uint8_t> literals;                      // At abi::kMachineLocalOffset of each window.
  uint32_t local_begin = 0;  // this-> variables, zeroed before each firing.
  uint32_t local_bytes = 0;
  PrivateArea private_area;
  ExtensionState extensions;
};

// `extensions` have what the script calls. Errors are those that only the machine's limits cause:
// too many variables, a clause that needs more room than a window has.
query::d::Compiled<Generated> generate(const query::d::Script& script,
                                       std::span<const extension::Extension> extensions = {});

}  // namespace clew::plan::d
