// SPDX-License-Identifier: Apache-2.0
// The names that D knows, by kind. Each table has an enumeration's values in their order.
#include "query/d/functions.h"

#include <algorithm>
#include <array>

#include "base/assert.h"

namespace clew::query::d {
namespace {

constexpr std::array<std::string_view, 43> kBuiltins = {"",
                                                        "arg0",
                                                        "arg1",
                                                        "arg2",
                                                        "arg3",
                                                        "arg4",
                                                        "arg5",
                                                        "arg6",
                                                        "arg7",
                                                        "arg8",
                                                        "arg9",
                                                        "args",
                                                        "caller",
                                                        "cpu",
                                                        "curcpu",
                                                        "curlwpsinfo",
                                                        "curpsinfo",
                                                        "curthread",
                                                        "cwd",
                                                        "epid",
                                                        "errno",
                                                        "execargs",
                                                        "execname",
                                                        "fds",
                                                        "gid",
                                                        "id",
                                                        "ipl",
                                                        "pid",
                                                        "ppid",
                                                        "probefunc",
                                                        "probemod",
                                                        "probename",
                                                        "probeprov",
                                                        "root",
                                                        "stackdepth",
                                                        "tid",
                                                        "timestamp",
                                                        "ucaller",
                                                        "uid",
                                                        "uregs",
                                                        "ustackdepth",
                                                        "vtimestamp",
                                                        "walltimestamp"};
static_assert(kBuiltins.size() == static_cast<size_t>(Builtin::Walltimestamp) + 1);

constexpr std::array<std::string_view, 49> kSubroutines = {"",
                                                           "alloca",
                                                           "basename",
                                                           "bcopy",
                                                           "cleanpath",
                                                           "copyin",
                                                           "copyinstr",
                                                           "copyinto",
                                                           "d_path",
                                                           "ddi_pathname",
                                                           "dirname",
                                                           "getmajor",
                                                           "getminor",
                                                           "htonl",
                                                           "htonll",
                                                           "htons",
                                                           "index",
                                                           "inet_ntoa",
                                                           "inet_ntoa6",
                                                           "inet_ntop",
                                                           "json",
                                                           "link_ntop",
                                                           "lltostr",
                                                           "msgdsize",
                                                           "msgsize",
                                                           "mutex_owned",
                                                           "mutex_owner",
                                                           "mutex_type_adaptive",
                                                           "mutex_type_spin",
                                                           "ntohl",
                                                           "ntohll",
                                                           "ntohs",
                                                           "progenyof",
                                                           "rand",
                                                           "rindex",
                                                           "rw_iswriter",
                                                           "rw_read_held",
                                                           "rw_write_held",
                                                           "speculation",
                                                           "strchr",
                                                           "strjoin",
                                                           "strlen",
                                                           "strrchr",
                                                           "strstr",
                                                           "strtok",
                                                           "strtoll",
                                                           "substr",
                                                           "tolower",
                                                           "toupper"};
static_assert(kSubroutines.size() == static_cast<size_t>(Subroutine::Toupper) + 1);

constexpr std::array<std::string_view, 35> kActions = {
    "",           "breakpoint",  "chill",     "clear",  "commit",    "copyout",
    "copyoutstr", "denormalize", "discard",   "exit",   "freopen",   "ftruncate",
    "jstack",     "mod",         "normalize", "panic",  "pcap",      "print",
    "printa",     "printf",      "raise",     "setopt", "speculate", "stack",
    "stop",       "sym",         "system",    "trace",  "tracemem",  "trunc",
    "uaddr",      "ufunc",       "umod",      "ustack", "usym"};
static_assert(kActions.size() == static_cast<size_t>(Action::Usym) + 1);

template <typename Kind, size_t kCount>
std::optional<Kind> find(const std::array<std::string_view, kCount>& names, std::string_view name) {
  const auto hit = std::find(names.begin(), names.end(), name);
  if (name.empty() || hit == names.end()) return std::nullopt;
  return static_cast<Kind>(hit - names.begin());
}

}  // namespace

std::optional<Builtin> find_builtin(std::string_view name) {
  return find<Builtin>(kBuiltins, name);
}

std::optional<Subroutine> find_subroutine(std::string_view name) {
  return find<Subroutine>(kSubroutines, name);
}

// func() is what stack frames of the kernel were named with before sym().
std::optional<Action> find_action(std::string_view name) {
  return name == "func" ? Action::Sym : find<Action>(kActions, name);
}

std::optional<AggregateFunction> find_aggregate(std::string_view name) {
  for (uint32_t i = 0; i < abi::kAggregateFunctions; ++i) {
    const abi::AggregateRow& row = abi::kAggregateRows[i];
    if (row.d_prototype != nullptr && row.name == name) return static_cast<AggregateFunction>(i);
  }
  return std::nullopt;
}

bool is_d_function(std::string_view name) {
  return find_subroutine(name) || find_action(name) || find_aggregate(name);
}

std::string_view name_of(Builtin builtin) {
  return kBuiltins[static_cast<size_t>(builtin)];
}
std::string_view name_of(Subroutine subroutine) {
  return kSubroutines[static_cast<size_t>(subroutine)];
}
std::string_view name_of(Action action) {
  return kActions[static_cast<size_t>(action)];
}

}  // namespace clew::query::d
