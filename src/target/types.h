// SPDX-License-Identifier: Apache-2.0
// DebugInfo: what DWARF says about one module: parameters and their registers, types, members,
// enumerators, lines both ways, and how often a function was inlined. It is read from the file
// itself or its separate debug file (with dwz's supplementary file), on demand and piece by piece:
// opening one reads no DWARF at all.
//
// Types are handles into a table that the DebugInfo grows. All addresses are the file's.
//
// Not thread-safe: questions fill caches. Answers are values and outlive nothing but handles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "target/module_image.h"
#include "target/type_description.h"

namespace clew::target {

// Where an argument is at the function's first instruction.
enum class ArgumentPlace : uint8_t {
  IntegerRegister,  // index 0..5: rdi rsi rdx rcx r8 r9
  Stack,            // index 0..: the 8-byte words above the return address
  VectorRegister,   // index 0..7: xmm0..xmm7
  IntegerPair,      // A record in two integer registers: index and index + 1.
  Unavailable,      // `problem` says why: optimised out, a record in memory or in mixed registers.
};

struct Parameter {
  std::string name;  // Empty when the source gave none; `this` for C++'s.
  TypeId type = kVoidType;
  ArgumentPlace place = ArgumentPlace::Unavailable;
  uint16_t index = 0;
  std::string problem;
};

struct Signature {
  std::vector<Parameter> parameters;
  TypeId return_type = kVoidType;
  // What rax holds at return: false for void, floating point and records in vector registers.
  bool returns_in_rax = false;
  bool is_variadic = false;
};

struct SourceLine {
  std::string file;  // As the compiler wrote it, joined with its directory.
  uint32_t line = 0;
  uint32_t column = 0;
};

struct LineAddress {
  uint64_t address = 0;  // The start of a statement.
  SourceLine source;
};

// A function of the source, and the line in it that is reached.
struct SourceCall {
  std::string function;  // As the image calls functions.
  SourceLine place;      // Without a file where none is known.
  bool is_inlined = false;
};

class DebugInfo final : public TypeReader {
 public:
  // Finds the DWARF of an image; reads none. NotFound when there is none: the message says what
  // would help. The image need not outlive it.
  static Expected<DebugInfo> open(const ModuleImage& image, const ReadOptions& options = {});

  DebugInfo(DebugInfo&&) noexcept;
  DebugInfo& operator=(DebugInfo&&) noexcept;
  ~DebugInfo() override;

  // NotFound when DWARF does not describe a function that starts at the address.
  Expected<Signature> signature(uint64_t function_address);

  // Pointers are allowed, too ("struct client *").
  TypeId find_type(std::string_view name) override;
  // A record that is only declared where it is named is looked up in the whole module.
  TypeDescription describe(TypeId type) override;
  std::vector<TypeMember> members(TypeId record) override;
  // NotFound with the nearest name.
  Expected<TypeMember> member(TypeId record, std::string_view name);
  std::vector<TypeEnumerator> enumerators(TypeId enumeration) override;
  // Also enumerators of enumerations without a name. Nothing when no enumeration has it.
  std::optional<TypeEnumerator> find_enumerator(std::string_view name);

  // Where the statements of `file:line` start, ascending, at most one for each inlined or cloned
  // copy. `file` matches from the right at a '/' ("server.c", "src/server.c"). Lines without code
  // give those of the nearest following line that has code, at most kLineSearchMax further.
  // NotFound: no such file (with the nearest); InvalidQuery: the file has no code there.
  Expected<std::vector<LineAddress>> find_line(std::string_view file, uint32_t line);
  std::optional<SourceLine> line_of(uint64_t address);
  // The function at an address, and in front of it what was inlined there, the innermost first.
  // Empty when DWARF describes no function there.
  std::vector<SourceCall> calls_at(uint64_t address);
  // Where the compiler ran that made the code at an address: relative paths of files are from
  // there. Empty when it is not known.
  std::string directory_at(uint64_t address);

  // Inlined copies of the function that starts at the address: hits there are not seen by a probe
  // on its entry. Reads all of the module's DWARF at the first call.
  Expected<uint64_t> inlined_copies(uint64_t function_address);

 private:
  struct Data;
  explicit DebugInfo(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data_;
};

inline constexpr uint32_t kLineSearchMax = 20;

}  // namespace clew::target
