// SPDX-License-Identifier: Apache-2.0
#include "recorder/imports.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "code/import_slot.h"

namespace clew::recorder {

namespace {

using code::Flow;
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

Expected<Imports> Imports::of(const target::ModuleImage& image) {
  std::map<std::string_view, uint64_t> own;
  for (const target::Function& function : image.functions()) {
    for (const target::FunctionName& name : function.names) {
      const bool is_exported = name.binding != target::SymbolBinding::Local;
      if (is_exported && !function.is_ifunc) own.emplace(name.linkage, function.address);
    }
  }
  Imports imports;
  for (const target::ImportSlot& slot : CLEW_TRY(image.import_slots())) {
    const auto known = own.find(slot.symbol);
    if (known != own.end()) {
      imports.known_.push_back({slot.slot_address, known->second});
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
