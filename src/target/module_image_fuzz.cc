// SPDX-License-Identifier: Apache-2.0
// Any bytes are an ELF file to someone: reading them gives an image or an error, and everything
// that an image offers can be used. Also the other readers of foreign bytes: memory maps, names,
// cache entries' tables.
#include <algorithm>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "target/demangle.h"
#include "target/elf_file.h"
#include "target/file_memory.h"
#include "target/image_tables.h"
#include "target/pattern.h"
#include "target/process.h"
#include "target/relocations.h"
#include "target/symbol_cache.h"

namespace clew::target {
namespace {

void read_as_image(std::span<const uint8_t> bytes) {
  Buffer copy(bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.data());
  auto file = ElfFile::from_buffer(std::move(copy));
  if (!file) return;
  ReadOptions options;
  options.debug_directory = "";
  options.name = "fuzz";
  auto tables = read_tables(*file, "/nowhere/fuzz", options);
  if (!tables) return;
  CLEW_ASSERT(is_consistent(*tables));
  (void)find_import_slots(*file, read_dynamic_table(*file), "strlen");
}

void read_as_text(std::string_view text) {
  (void)parse_memory_map(text);
  Demangler demangler;
  const Demangled name = demangler.demangle(text.substr(0, 300));
  (void)plain_name(text);
  (void)clone_kind(text);
  const size_t half = text.size() / 2;
  const auto pattern = Pattern::compile(text.substr(0, std::min<size_t>(half, 64)));
  if (pattern) (void)pattern->matches(text.substr(half));
  CLEW_ASSERT(name.plain.size() <= name.text.size());
}

}  // namespace
}  // namespace clew::target

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  clew::target::read_as_image({data, size});
  clew::target::read_as_text({reinterpret_cast<const char*>(data), size});
  return 0;
}
