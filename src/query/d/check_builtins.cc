// SPDX-License-Identifier: Apache-2.0
#include "query/d/check_builtins.h"

#include <string_view>

#include "query/d/check_conversion.h"

namespace clew::query::d {
namespace {

std::string_view type_text(Builtin builtin) {
  switch (builtin) {
    case Builtin::Arg0:
    case Builtin::Arg1:
    case Builtin::Arg2:
    case Builtin::Arg3:
    case Builtin::Arg4:
    case Builtin::Arg5:
    case Builtin::Arg6:
    case Builtin::Arg7:
    case Builtin::Arg8:
    case Builtin::Arg9:
      return "int64_t";
    case Builtin::Caller:
      return "uintptr_t";
    case Builtin::Cpu:
      return "processorid_t";
    case Builtin::None:
    case Builtin::Args:
    case Builtin::Fds:
    case Builtin::Curcpu:
    case Builtin::Curlwpsinfo:
    case Builtin::Curpsinfo:
      return "void";
    case Builtin::Curthread:
      return "struct task_struct *";
    case Builtin::Cwd:
    case Builtin::Execargs:
    case Builtin::Execname:
    case Builtin::Probefunc:
    case Builtin::Probemod:
    case Builtin::Probename:
    case Builtin::Probeprov:
    case Builtin::Root:
      return "string";
    case Builtin::Epid:
      return "uint_t";
    case Builtin::Errno:
      return "int";
    case Builtin::Gid:
      return "gid_t";
    case Builtin::Id:
    case Builtin::Ipl:
      return "uint_t";
    case Builtin::Pid:
    case Builtin::Ppid:
      return "pid_t";
    case Builtin::Stackdepth:
    case Builtin::Ustackdepth:
      return "uint32_t";
    case Builtin::Tid:
      return "id_t";
    case Builtin::Timestamp:
    case Builtin::Ucaller:
    case Builtin::Uregs:
    case Builtin::Vtimestamp:
      return "uint64_t";
    case Builtin::Uid:
      return "uid_t";
    case Builtin::Walltimestamp:
      return "int64_t";
  }
  return "void";
}

}  // namespace

TypeId type_of(TypeTable& types, Builtin builtin) {
  return checking::named_type(types, type_text(builtin));
}

bool is_array(Builtin builtin) {
  return builtin == Builtin::Args || builtin == Builtin::Fds || builtin == Builtin::Uregs;
}

}  // namespace clew::query::d
