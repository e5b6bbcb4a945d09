// SPDX-License-Identifier: Apache-2.0
#include "kernel/short_accessors.h"

#include <algorithm>
#include <iterator>

namespace clew::kernel {
namespace {

constexpr std::string_view kShortAccessors[] = {
    "d_aggregate",          "d_builtin_argument",      "d_builtin_cpu",     "d_builtin_epid",
    "d_builtin_errno",      "d_builtin_execname",      "d_builtin_gid",     "d_builtin_id",
    "d_builtin_pid",        "d_builtin_ppid",          "d_builtin_task",    "d_builtin_tid",
    "d_builtin_uid",        "d_builtin_timestamp",     "d_probe_name",      "d_query_time",
    "d_builtin_vtimestamp", "d_builtin_walltimestamp", "d_variable_delete", "d_variable_load",
    "d_variable_store"};

}  // namespace

bool is_short_accessor(std::string_view name) {
  return std::find(std::begin(kShortAccessors), std::end(kShortAccessors), name) !=
         std::end(kShortAccessors);
}

}  // namespace clew::kernel
