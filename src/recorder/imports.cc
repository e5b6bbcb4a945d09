// SPDX-License-Identifier: Apache-2.0
#include "recorder/imports.h"

#include <algorithm>
#include <array>
#include <optional>

#include "code/import_slot.h"

namespace clew::recorder {

namespace {

using code::Instruction;
using code::ModuleCode;

// glibc's functions, and what -D_FORTIFY_SOURCE makes of them.
constexpr auto kNames = std::to_array<std::string_view>({
    "__ctype_b_loc",
    "__ctype_tolower_loc",
    "__ctype_toupper_loc",
    "__errno_location",
    "__memcpy_chk",
    "__memmove_chk",
    "__memset_chk",
    "__stpcpy_chk",
    "__strcat_chk",
    "__strcpy_chk",
    "__strdup",
    "__strncat_chk",
    "__strncpy_chk",
    "abs",
    "atoi",
    "atol",
    "atoll",
    "calloc",
    "ceil",
    "clock",
    "clock_gettime",
    "cos",
    "exp",
    "floor",
    "fmod",
    "free",
    "frexp",
    "getegid",
    "getenv",
    "geteuid",
    "getgid",
    "getpid",
    "getppid",
    "gettimeofday",
    "getuid",
    "isalnum",
    "isalpha",
    "isdigit",
    "isspace",
    "labs",
    "ldexp",
    "llabs",
    "llround",
    "log",
    "log10",
    "log2",
    "lround",
    "malloc",
    "malloc_usable_size",
    "memchr",
    "memcmp",
    "memcpy",
    "memmem",
    "memmove",
    "mempcpy",
    "memrchr",
    "memset",
    "modf",
    "posix_memalign",
    "pow",
    "pthread_equal",
    "pthread_getspecific",
    "pthread_mutex_lock",
    "pthread_mutex_trylock",
    "pthread_mutex_unlock",
    "pthread_self",
    "pthread_setspecific",
    "rawmemchr",
    "realloc",
    "reallocarray",
    "sched_yield",
    "sin",
    "sqrt",
    "stpcpy",
    "strcasecmp",
    "strcat",
    "strchr",
    "strchrnul",
    "strcmp",
    "strcoll",
    "strcpy",
    "strcspn",
    "strdup",
    "strlen",
    "strncasecmp",
    "strncat",
    "strncmp",
    "strncpy",
    "strndup",
    "strnlen",
    "strpbrk",
    "strrchr",
    "strspn",
    "strstr",
    "strtod",
    "strtok_r",
    "strtol",
    "strtold",
    "strtoll",
    "strtoul",
    "strtoull",
    "sysconf",
    "tan",
    "time",
    "tolower",
    "toupper",
});
static_assert(std::is_sorted(kNames.begin(), kNames.end()));

}  // namespace

std::span<const std::string_view> silent_names() {
  return kNames;
}

Imports Imports::of(const target::LinkedNames& names) {
  Imports imports;
  for (const target::ImportSlot& slot : names.imports) {
    const auto own = std::lower_bound(names.exports.begin(), names.exports.end(), slot.symbol,
                                      [](const target::ExportedFunction& one,
                                         const std::string& name) { return one.name < name; });
    const bool is_own = own != names.exports.end() && own->name == slot.symbol;
    if (is_own && own->address != 0) {
      imports.known_.push_back({slot.slot_address, own->address});
    } else if (is_own) {
      continue;
    } else if (std::binary_search(kNames.begin(), kNames.end(), slot.symbol)) {
      imports.known_.push_back({slot.slot_address, 0});
    }
  }
  std::sort(imports.known_.begin(), imports.known_.end(),
            [](const auto& a, const auto& b) { return a.slot < b.slot; });
  return imports;
}

const KnownImport* Imports::behind(const ModuleCode& code, const Instruction& branch) const {
  if (known_.empty()) return nullptr;
  const auto word = code::import_slot(code, branch);
  if (!word) return nullptr;
  const auto found =
      std::lower_bound(known_.begin(), known_.end(), *word,
                       [](const KnownImport& one, uint64_t slot) { return one.slot < slot; });
  return found != known_.end() && found->slot == *word ? &*found : nullptr;
}

}  // namespace clew::recorder
