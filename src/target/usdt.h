// SPDX-License-Identifier: Apache-2.0
// The static probes of an ELF file (USDT): what the macros of <sys/sdt.h> left in the section
// .note.stapsdt. Each is a nop in the code with a provider, a name, a text that says where its
// arguments are, and perhaps a semaphore: a counter that must not be 0 while somebody listens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace clew::target {

struct StaticProbe {
  std::string provider;
  std::string name;
  std::string arguments;          // "8@%rdi -4@-20(%rbp)"; empty: none. Of a variable
                                  // ("4@name(%rip)"), its distance from the nop is in the name's
                                  // place where the file's symbols have it.
  uint64_t address = 0;           // Of the nop, as the file counts addresses.
  uint64_t file_offset = 0;       // The same place in the file.
  uint64_t semaphore_offset = 0;  // In the file; 0: there is none.
  uint64_t semaphore_address = 0;

  // What `clew dtrace -h` and `-G` add in notes of the owner clewdt, type 1, in .note.clewdt:
  // provider, name, then for each of args[] which of the probe's own arguments it is made of, that
  // one's type and its own, all of it texts with a NUL. Where a file has it, `arguments` are in the
  // order of args[].
  struct Typed {
    std::string native_type;
    std::string translated_type;
  };
  std::vector<Typed> types;
  // In notes of type 2: provider, and how stable its probes and their arguments are, as D writes
  // it ("Evolving/Evolving/Common"). Empty where the provider's file does not say it.
  struct Stability {
    std::string probes;
    std::string arguments;
  };
  Stability stability;
};

// In the order of the file; empty when it has none. Notes that are damaged, or that point outside
// the file, are left out. Errors as of ElfFile::open.
Expected<std::vector<StaticProbe>> read_static_probes(const std::string& path);

// How D writes a name: query-start for query__start.
std::string d_name_of(std::string_view note_name);

// One argument of a probe's text: its size, what it is, and where (the text behind the `@`).
struct StaticArgument {
  uint8_t size_bytes = 8;  // 1, 2, 4 or 8
  bool is_signed = false;
  bool is_float = false;
  std::string_view place;  // "%rdi", "$5", "-20(%rbp)", "8(%rax,%rbx,4)", "symbol(%rip)"
};
// Arguments whose text is of no known form stop the list.
std::vector<StaticArgument> parse_static_arguments(std::string_view text);
// Those of any form.
size_t count_static_arguments(std::string_view text);

}  // namespace clew::target
