// SPDX-License-Identifier: Apache-2.0
// ModuleImage: one ELF file, read once: its functions by every name, its unwind entries with
// landing pads, its restartable sequences, and the pointers into its code. It is what a module is
// before any process is looked at, so everything can be analysed offline and cached by its bytes.
//
// Addresses are the file's own virtual addresses; add a ProcessModule's load bias for a process's.
//
// Functions come from .symtab, .dynsym, .gnu_debugdata (symbols that Fedora and others leave in
// stripped files), a separate debug file (by build-id or .gnu_debuglink), and from .eh_frame for
// code that no symbol names; the last are called `module+0x1234`. Symbols at one address are one
// function with several names. `.cold` parts belong to their function. The PLT is left out.
//
// The file is read with pread and never mapped, so that someone who truncates it gives us an error
// and not a SIGBUS. Everything in it is hostile: sizes and offsets are checked before use and
// counts have limits; a corrupt part is either an error of read() (no usable ELF header, wrong
// machine) or is left out and named in problems() (a broken .eh_frame does not hide the symbols).
//
// An image is immutable once read, and safe to use from several threads. Views and spans live as
// long as the image (also when it is moved).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "target/file_identity.h"

namespace clew::target {

struct AddressRange {
  uint64_t address = 0;
  uint64_t size_bytes = 0;

  [[nodiscard]] uint64_t end() const { return address + size_bytes; }
  [[nodiscard]] bool contains(uint64_t at) const { return at - address < size_bytes; }
  bool operator==(const AddressRange&) const = default;
};

// A part of the file that is loaded. When the file has no section headers the loadable segments
// stand for them, named "LOAD0", "LOAD1", …
struct Section {
  std::string_view name;
  uint64_t address = 0;
  uint64_t size_bytes = 0;  // In memory.
  uint64_t file_offset = 0;
  uint64_t file_size_bytes = 0;  // 0 for .bss.
  bool executable = false;
  bool writable = false;
  bool is_plt = false;  // Linker-made stubs (.plt, .plt.got, .plt.sec, .iplt): no functions here.

  [[nodiscard]] uint64_t end() const { return address + size_bytes; }
  [[nodiscard]] bool contains(uint64_t at) const { return at - address < size_bytes; }
};

enum class FunctionOrigin : uint8_t {
  SymbolTable,     // .symtab of the file
  DynamicSymbols,  // .dynsym
  MiniDebugInfo,   // .gnu_debugdata
  DebugFile,       // a separate debug file
  UnwindEntry,     // .eh_frame only: the name is made up, and it may be a cold part of another
};

// As the symbol table has it; the earlier ones come first in D's names of a function.
enum class SymbolBinding : uint8_t { Global, Weak, Local };

// One of the names of a function.
struct FunctionName {
  std::string_view plain;      // `ns::C::f`: no parameters, return type or clone suffix.
  std::string_view demangled;  // `int ns::C::f(long) const [clone .isra.0]`; equals linkage for C.
  std::string_view linkage;    // `_ZN2ns1C1fEl.isra.0`, without the symbol version.
  SymbolBinding binding = SymbolBinding::Global;
};

struct Function {
  std::string_view name;                // names[0].plain, the best name: what a user calls it.
  std::string_view demangled;           // names[0].demangled
  std::span<const FunctionName> names;  // All, the best first; at least one.
  uint64_t address = 0;
  uint64_t size_bytes = 0;  // Of the main part. From the symbol, else the unwind entry, else up to
                            // the next function. Never 0, and never beyond the section.
  std::span<const AddressRange> cold;  // Further parts, ascending: their exits count, their starts
                                       // are no entries.
  FunctionOrigin origin = FunctionOrigin::SymbolTable;
  bool is_ifunc = false;  // `address` is the resolver: Catalog::ifunc_targets has what it chose.

  [[nodiscard]] AddressRange range() const { return {address, size_bytes}; }
};

// A frame description entry of .eh_frame. One is usually one function or one cold part.
struct Fde {
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  // At its first instruction the frame's canonical address is rsp + 8, as right after a call. False
  // for cold parts that are entered in mid-frame, and for signal frames.
  bool cfa_at_start_is_rsp_plus_8 = false;
  bool has_lsda = false;
  std::span<const uint64_t> landing_pads;  // Absolute, ascending, each once.

  [[nodiscard]] uint64_t end() const { return address + size_bytes; }
};

// A restartable sequence (rseq(2)): the kernel sends a thread that is preempted in
// [start, start + size) to the abort address.
struct RestartableSequence {
  uint64_t start = 0;
  uint64_t size_bytes = 0;
  uint64_t abort_address = 0;
};

// A word that the loader fills with the address that an IFUNC resolver returns.
struct IfuncSlot {
  uint64_t slot_address = 0;
  uint64_t resolver_address = 0;
};

// A word that the loader fills with the address of a symbol, by name.
struct ImportSlot {
  uint64_t slot_address = 0;
  std::string symbol;
};

// A word that the loader fills with an address in the module's own code.
struct CodePointerSlot {
  uint64_t slot_address = 0;
  uint64_t value = 0;
};

struct ReadOptions {
  // Where separate debug files are looked for; empty = nowhere.
  std::string debug_directory = "/usr/lib/debug";
  // Where images are cached (see symbol_cache.h); empty = no cache.
  std::string cache_directory;
  // What the module is called in made-up names; empty = the file name of the path.
  std::string name;
  // Files smaller than this are read faster than their cache entry is checked.
  uint64_t cache_from_bytes = uint64_t{8} << 20;
};

class ModuleImage {
 public:
  // Errors: NotFound (no such file), Io, Refused (not an x86-64 ELF program or library).
  static Expected<ModuleImage> read(const std::string& path, const ReadOptions& options = {});

  ModuleImage(ModuleImage&&) noexcept;
  ModuleImage& operator=(ModuleImage&&) noexcept;
  ModuleImage(const ModuleImage&) = delete;
  ModuleImage& operator=(const ModuleImage&) = delete;
  ~ModuleImage();

  [[nodiscard]] const std::string& path() const;  // As given to read().
  [[nodiscard]] std::string_view name() const;    // ReadOptions::name or the path's file name.
  [[nodiscard]] std::string_view soname() const;  // Empty when there is none.
  [[nodiscard]] const FileIdentity& identity() const;
  [[nodiscard]] std::string_view build_id() const;  // Lower-case hex; empty when there is none.
  // The separate debug file that was used; empty when none was.
  [[nodiscard]] std::string_view debug_file() const;
  [[nodiscard]] bool is_position_independent() const;  // ET_DYN: may have a load bias.
  [[nodiscard]] uint64_t entry_address() const;

  // What was left out because it is corrupt or too much, one sentence each.
  [[nodiscard]] std::span<const std::string> problems() const;

  [[nodiscard]] std::span<const Section> sections() const;  // By address.
  [[nodiscard]] const Section* section_at(uint64_t address) const;
  // The file's bytes of a section of this image, file_size_bytes of them (.bss gives none). Read at
  // the first call and kept. Io when the file was truncated since.
  [[nodiscard]] Expected<std::span<const uint8_t>> bytes(const Section& section) const;

  // By address; no two have the same address.
  [[nodiscard]] std::span<const Function> functions() const;
  // Null when none starts there.
  [[nodiscard]] const Function* function_at(uint64_t address) const;
  // The innermost function that covers the address in its main part or a cold part; else null.
  [[nodiscard]] const Function* function_covering(uint64_t address) const;

  [[nodiscard]] std::span<const Fde> fdes() const;  // By address; may overlap in a broken file.
  [[nodiscard]] std::span<const RestartableSequence> restartable_sequences() const;
  // Every address in an executable section that is stored in data, as the file shows it: relocation
  // addends, .init_array and kin, and in a program that is not position-independent every aligned
  // word of its data that looks like one. Ascending, each once. Entries of the symbol table are not
  // among them.
  [[nodiscard]] std::span<const uint64_t> code_pointers() const;

  [[nodiscard]] std::span<const IfuncSlot> ifunc_slots() const;
  // The slots for one symbol name (JUMP_SLOT, GLOB_DAT, 64). Reads the file.
  [[nodiscard]] Expected<std::vector<ImportSlot>> import_slots(std::string_view symbol) const;
  // The slots of all names.
  [[nodiscard]] Expected<std::vector<ImportSlot>> import_slots() const;
  // The words that hold code_pointers() in position-independent files, by relocation. Ascending by
  // slot. Reads the file.
  [[nodiscard]] std::vector<CodePointerSlot> code_pointer_slots() const;

 private:
  struct Data;
  explicit ModuleImage(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data_;
};

}  // namespace clew::target
