// SPDX-License-Identifier: Apache-2.0
#include "inline/permission.h"

#include <fstream>

#include <fmt/format.h>

#include "inline/is_recorded.h"

namespace clew::inline_ {
namespace {

enum YamaScope { Classic, Children, Privileged, Nobody };

// Classic when the kernel has no Yama.
int yama_scope() {
  std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
  int scope = Classic;
  file >> scope;
  return scope;
}

std::string_view way_out(int scope) {
  switch (scope) {
    case Classic:
      return "it belongs to another user or changed its privileges; run as root";
    case Children:
      return "run as root, start the command with -c, or set it to 0";
    case Privileged:
      return "run as root, or set it to 0";
    default:
      return "nobody may, until the next boot";
  }
}

}  // namespace

tl::unexpected<Error> no_permission(std::string_view what) {
  const int scope = yama_scope();
  const std::string setting =
      scope == Classic ? "" : fmt::format("kernel.yama.ptrace_scope is {}; ", scope);
  return fail(ErrorCode::Refused, fmt::format("no permission to trace {}: {}{} [no-permission]",
                                              what, setting, way_out(scope)));
}

tl::unexpected<Error> traced_by(pid_t pid, pid_t tracer) {
  // A session of ours holds a process for a moment, too.
  if (is_recorded(pid)) {
    return fail(ErrorCode::Refused,
                fmt::format("process {} is recorded by process {}; end that one first [recorded]",
                            pid, tracer));
  }
  return fail(ErrorCode::Refused,
              fmt::format("process {} is traced by process {} (a debugger?); end that one first "
                          "[already-traced]",
                          pid, tracer));
}

}  // namespace clew::inline_
