// SPDX-License-Identifier: Apache-2.0
// C source or a BPF object -> Extension: functions in the probe ISA that queries call by name, and
// the static state that they share (Fay, 4.3).
//
// A file is compiled by clang for BPF; read() takes the object apart. Every function comes out
// whole: what it calls stands in its place, so there is no recursion and no call but those of
// accessors. Its variables are bytes of the window: each thread has its own copy, which begins as
// the file says when the thread first needs it. Nothing here is trusted: as everything else that
// runs in a process the code is masked, given fuel and verified (docs/soundness.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "isa/program.h"

namespace clew::extension {

inline constexpr uint32_t kParametersMax = 5;      // What BPF passes in registers.
inline constexpr uint32_t kInitialWordsMax = 512;  // Words of state that do not begin as zero.
inline constexpr uint32_t kStateBytesMax = 32U << 20;
// Instructions that one hit may spend, if its user does not say another number: 30 to 60 us.
inline constexpr uint64_t kFuel = 100'000;
inline constexpr uint64_t kFuelMin = 1'000;
inline constexpr uint64_t kFuelMax = 10'000'000;
inline constexpr uint32_t kFrameBytesMax = 384;  // Of the 512 that a program has.

// A parameter or a result: an integer, or an address of the traced program.
struct ValueType {
  uint8_t size_bytes = 8;
  bool is_signed = false;
  bool is_pointer = false;
  bool operator==(const ValueType&) const = default;
};

struct Parameter {
  std::string name;
  ValueType type;
  bool operator==(const Parameter&) const = default;
};

struct Function {
  std::string name;
  ValueType result;
  std::vector<Parameter> parameters;
  // Why a query cannot call it ("its parameter p is a struct"); then the rest is not set.
  std::string refusal;
  // r1 to r5 are the parameters, r0 the result. An LDDW of kind Window has an offset in the state.
  std::vector<isa::Instruction> code;
  bool has_loops = false;
};

// Eight bytes of the state that do not begin as zero.
struct InitialWord {
  uint32_t offset_bytes = 0;  // A multiple of 8.
  uint64_t value = 0;
  bool operator==(const InitialWord&) const = default;
};

struct Extension {
  std::string name;  // Of the file, without folders and suffix.
  std::vector<Function> functions;
  uint32_t state_bytes = 0;  // Begins at a multiple of 64 bytes.
  std::vector<InitialWord> initial_words;

  [[nodiscard]] const Function* find(std::string_view function) const;
};

// A BPF object file, as clang makes it with -g. `name` is for messages, which name the line of C
// where the object says which. Errors: InvalidQuery for what no extension may do (recursion, calls
// of what is not there, pointers to functions, floating point), Limit, Refused when it is no such
// object.
Expected<Extension> read(std::span<const uint8_t> object, std::string name);

// Where to look for the extensions that come with Clew, and for the header that all include.
struct Library {
  std::string folder;
};

// `what`: a file of C (*.c), an object (*.o), or the name of an extension that comes with Clew.
// Errors: as read(), NotFound (with the nearest name), and those of the compiler, in its own words.
Expected<Extension> load(const std::string& what, const Library& library);

// The names of the extensions that come with Clew, sorted.
std::vector<std::string> names_in(const Library& library);

}  // namespace clew::extension
