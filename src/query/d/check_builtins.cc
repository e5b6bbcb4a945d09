// SPDX-License-Identifier: Apache-2.0
#include "query/d/check_builtins.h"

#include <string_view>

#include "query/d/check_conversion.h"

namespace clew::query::d {
namespace {

std::string_view type_text(Builtin builtin) {
  switch (builtin) {
    case Builtin::None:
      return "void";
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
    case Builtin::Args:
      return "void";
    case Builtin::Caller:
      return "uintptr_t";
    case Builtin::Cpu:
      return "processorid_t";
    case Builtin::Curcpu:
    case Builtin::Curlwpsinfo:
    case Builtin::Curpsinfo:
      return "void";
    case Builtin::Curthread:
      return "struct task_struct *";
    case Builtin::Cwd:
      return "string";
    case Builtin::Epid:
      return "uint_t";
    case Builtin::Errno:
      return "int";
    case Builtin::Execargs:
    case Builtin::Execname:
      return "string";
    case Builtin::Fds:
      return "void";
    case Builtin::Gid:
      return "gid_t";
    case Builtin::Id:
    case Builtin::Ipl:
      return "uint_t";
    case Builtin::Pid:
    case Builtin::Ppid:
      return "pid_t";
    case Builtin::Probefunc:
    case Builtin::Probemod:
    case Builtin::Probename:
    case Builtin::Probeprov:
    case Builtin::Root:
      return "string";
    case Builtin::Stackdepth:
      return "uint32_t";
    case Builtin::Tid:
      return "id_t";
    case Builtin::Timestamp:
      return "uint64_t";
    case Builtin::Ucaller:
      return "uint64_t";
    case Builtin::Uid:
      return "uid_t";
    case Builtin::Uregs:
      return "uint64_t";
    case Builtin::Ustackdepth:
      return "uint32_t";
    case Builtin::Vtimestamp:
      return "uint64_t";
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
