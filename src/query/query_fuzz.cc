// SPDX-License-Identifier: Apache-2.0
// Hostile text must give an error or a Query, never a crash; and what is printed must read back.
// Corpus: tests/golden/query/*.clew.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "query/fake_types.h"
#include "query/parse.h"
#include "query/print.h"
#include "query/vocabulary.h"

namespace {

using clew::query::Environment;
using clew::query::Query;

const clew::query::Vocabulary& vocabulary() {
  static const clew::query::Vocabulary made = [] {
    clew::query::Vocabulary result;
    const auto loaded = result.load_text("fuzz.toml", R"toml([[tracepoint]]
name = "libc.allocate"
function = "libc.so.6!malloc"
exports = { size = "arg0" }
[[tracepoint]]
name = "libc.allocate"
function = "libc.so.6!calloc"
exports = { size = "arg0 * arg1" }
[[tracepoint]]
name = "Disk"
function = "hdfs!read"
at = "return"
exports = { size = "entry.arg2", path = "str(entry.arg0)" }
)toml");
    if (!loaded) std::abort();
    return result;
  }();
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const clew::query::Text text{.name = "fuzz", .text = std::string(data, data + size)};
  clew::query::FakeTypes types;
  clew::query::FakeExtensions extensions;
  const Environment environment{
      .vocabulary = &vocabulary(), .types = &types, .extensions = &extensions};
  (void)clew::query::parse(text, environment);
  const auto query = clew::query::parse_any(text, environment);
  if (!query) return 0;
  const std::string printed = clew::query::print(*query);
  if (printed.size() > clew::query::kTextMaxBytes) return 0;
  const auto again = clew::query::parse_any({.name = "printed", .text = printed}, environment);
  // A printed query names each shared expression at each use, so it may pass a limit.
  if (!again) {
    const bool is_limit = again.error().message.find("nested deeper") != std::string::npos ||
                          again.error().message.find("more than") != std::string::npos ||
                          again.error().message.find("at most") != std::string::npos;
    if (!is_limit) std::abort();
    return 0;
  }
  if (!(*again == *query)) std::abort();
  return 0;
}
