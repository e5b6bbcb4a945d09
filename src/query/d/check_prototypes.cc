// SPDX-License-Identifier: Apache-2.0
#include "query/d/check_prototypes.h"

#include <array>

#include <fmt/format.h>

#include "query/d/check_conversion.h"
#include "query/d/trimmed.h"

namespace clew::query::d::checking {
namespace {

struct SubroutinePrototype {
  Subroutine subroutine;
  std::string_view text;
};

constexpr std::array<SubroutinePrototype, 48> kSubroutinePrototypes = {{
    {Subroutine::Alloca, "void *(size_t)"},
    {Subroutine::Basename, "string(const char *)"},
    {Subroutine::Bcopy, "void(void *, void *, size_t)"},
    {Subroutine::Cleanpath, "string(const char *)"},
    {Subroutine::Copyin, "void *(uintptr_t, size_t)"},
    {Subroutine::Copyinstr, "string(uintptr_t, [size_t])"},
    {Subroutine::Copyinto, "void(uintptr_t, size_t, void *)"},
    {Subroutine::DPath, "string(struct path *)"},
    {Subroutine::DdiPathname, "string(void *, int64_t)"},
    {Subroutine::Dirname, "string(const char *)"},
    {Subroutine::Getmajor, "uint_t(dev_t)"},
    {Subroutine::Getminor, "uint_t(dev_t)"},
    {Subroutine::Htonl, "uint32_t(uint32_t)"},
    {Subroutine::Htonll, "uint64_t(uint64_t)"},
    {Subroutine::Htons, "uint16_t(uint16_t)"},
    {Subroutine::Index, "int(const char *, const char *, [int])"},
    {Subroutine::InetNtoa, "string(ipaddr_t *)"},
    {Subroutine::InetNtoa6, "string(struct in6_addr *, [int])"},
    {Subroutine::InetNtop, "string(int, void *)"},
    {Subroutine::Json, "string(const char *, const char *)"},
    {Subroutine::LinkNtop, "string(int, void *)"},
    {Subroutine::Lltostr, "string(int64_t, [int])"},
    {Subroutine::Msgdsize, "size_t(void *)"},
    {Subroutine::Msgsize, "size_t(void *)"},
    {Subroutine::MutexOwned, "int(struct mutex *)"},
    {Subroutine::MutexOwner, "struct task_struct *(struct mutex *)"},
    {Subroutine::MutexTypeAdaptive, "int(struct mutex *)"},
    {Subroutine::MutexTypeSpin, "int(struct mutex *)"},
    {Subroutine::Ntohl, "uint32_t(uint32_t)"},
    {Subroutine::Ntohll, "uint64_t(uint64_t)"},
    {Subroutine::Ntohs, "uint16_t(uint16_t)"},
    {Subroutine::Progenyof, "int(pid_t)"},
    {Subroutine::Rand, "int()"},
    {Subroutine::Rindex, "int(const char *, const char *, [int])"},
    {Subroutine::RwIswriter, "int(void *)"},
    {Subroutine::RwReadHeld, "int(void *)"},
    {Subroutine::RwWriteHeld, "int(void *)"},
    {Subroutine::Speculation, "int()"},
    {Subroutine::Strchr, "string(const char *, char)"},
    {Subroutine::Strjoin, "string(const char *, const char *)"},
    {Subroutine::Strlen, "size_t(const char *)"},
    {Subroutine::Strrchr, "string(const char *, char)"},
    {Subroutine::Strstr, "string(const char *, const char *)"},
    {Subroutine::Strtok, "string(const char *, const char *)"},
    {Subroutine::Strtoll, "int64_t(const char *, [int])"},
    {Subroutine::Substr, "string(const char *, int, [int])"},
    {Subroutine::Tolower, "string(const char *)"},
    {Subroutine::Toupper, "string(const char *)"},
}};

struct ActionPrototype {
  Action action;
  std::string_view text;
};

constexpr std::array<ActionPrototype, 34> kActionPrototypes = {{
    {Action::Breakpoint, "void()"},
    {Action::Chill, "void(int64_t)"},
    {Action::Clear, "void(@)"},
    {Action::Commit, "void(int)"},
    {Action::Copyout, "void(void *, uintptr_t, size_t)"},
    {Action::Copyoutstr, "void(char *, uintptr_t, [size_t])"},
    {Action::Denormalize, "void(@)"},
    {Action::Discard, "void(int)"},
    {Action::Exit, "void(int)"},
    {Action::Freopen, "void(@, ...)"},
    {Action::Ftruncate, "void()"},
    {Action::Jstack, "dynamic([uint32_t], [uint32_t])"},
    {Action::Mod, "dynamic(uintptr_t)"},
    {Action::Normalize, "void(@, uint64_t)"},
    {Action::Panic, "void()"},
    {Action::Pcap, "void(void *, int)"},
    {Action::Print, "void(@)"},
    {Action::Printa, "void(@, ...)"},
    {Action::Printf, "void(@, ...)"},
    {Action::Raise, "void(int)"},
    {Action::Setopt, "void(const char *, [const char *])"},
    {Action::Speculate, "void(int)"},
    {Action::Stack, "dynamic([uint32_t])"},
    {Action::Stop, "void()"},
    {Action::Sym, "dynamic(uintptr_t)"},
    {Action::System, "void(@, ...)"},
    {Action::Trace, "void(@)"},
    {Action::Tracemem, "void(@, @, ...)"},
    {Action::Trunc, "void(@, [uint64_t])"},
    {Action::Uaddr, "dynamic(uintptr_t)"},
    {Action::Ufunc, "dynamic(uintptr_t)"},
    {Action::Umod, "dynamic(uintptr_t)"},
    {Action::Ustack, "dynamic([uint32_t], [uint32_t])"},
    {Action::Usym, "dynamic(uintptr_t)"},
}};

void add_parameter(TypeTable& types, Prototype& prototype, std::string_view text) {
  if (text == "...") {
    prototype.is_variadic = true;
    return;
  }
  const bool is_optional = text.starts_with('[');
  if (is_optional) text = text.substr(1, text.size() - 2);
  if (!is_optional) ++prototype.required;
  const TypeId type = text == "@" ? kNoType : named_type(types, text);
  prototype.parameters.push_back({std::string(text), type});
}

std::string called_text(const Called& called) {
  return called.name + (called.is_array ? "[ ]" : "( )");
}

Compiled<void> check_count(const Node& place, const Called& called, const Prototype& prototype,
                           size_t count) {
  const size_t most = prototype.parameters.size();
  if (count >= prototype.required && (prototype.is_variadic || count <= most)) return {};
  const bool is_open = prototype.is_variadic || prototype.required != most;
  const bool is_short = count < prototype.required;
  const std::string_view bound = !is_open ? "" : is_short ? "at least " : "at most ";
  return error_at(place, "D_PROTO_LEN",
                  fmt::format("{} prototype mismatch: {} {}{} passed, {}{} expected",
                              called_text(called), count, called.is_array ? "key" : "arg",
                              count == 1 ? "" : "s", bound, is_short ? prototype.required : most));
}

Failure incompatible(Context& context, const Node& argument, const Called& called, size_t number,
                     std::string_view wanted) {
  if (wanted.starts_with("const ")) wanted.remove_prefix(6);  // As types are shown.
  const char* const word = called.is_array ? "key" : "argument";
  return error_at(argument, "D_PROTO_ARG",
                  fmt::format("{} {} #{} is incompatible with prototype:\n\tprototype: {}\n"
                              "\t{:>9}: {}",
                              called_text(called), word, number, wanted, word,
                              shown_type(context.types(), argument)));
}

}  // namespace

Prototype parse_prototype(TypeTable& types, std::string_view text) {
  Prototype prototype;
  const size_t open = text.find('(');
  prototype.result = named_type(types, text.substr(0, open));
  std::string_view rest = text.substr(open + 1, text.size() - open - 2);
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    add_parameter(types, prototype, trimmed(rest.substr(0, comma)));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return prototype;
}

std::string_view prototype_of(Subroutine subroutine) {
  for (const SubroutinePrototype& each : kSubroutinePrototypes) {
    if (each.subroutine == subroutine) return each.text;
  }
  return "void()";
}

std::string_view prototype_of(Action action) {
  for (const ActionPrototype& each : kActionPrototypes) {
    if (each.action == action) return each.text;
  }
  return "void()";
}

std::string_view prototype_of(AggregateFunction kind) {
  return row_of(kind).d_prototype;
}

Compiled<void> check_arguments(Context& context, const Node& place, const Called& called,
                               const Prototype& prototype, std::span<Node> arguments) {
  TypeTable& types = context.types();
  CLEW_TRY(check_count(place, called, prototype, arguments.size()));
  for (size_t i = 0; i < arguments.size() && i < prototype.parameters.size(); ++i) {
    const Prototype::Parameter& parameter = prototype.parameters[i];
    if (parameter.text == "@") continue;
    const bool may_be_text = i == 0 && called.name == "bcopy";
    if (may_be_text && types.is_string(arguments[i].type)) {
      convert(types, arguments[i], parameter.type);
      continue;
    }
    if (!is_argument_compatible(types, parameter.type, arguments[i])) {
      return incompatible(context, arguments[i], called, i + 1, parameter.text);
    }
    const bool wants_string = parameter.text == "const char *";
    convert_for(types, arguments[i], wants_string ? types.string_type() : parameter.type);
  }
  return {};
}

}  // namespace clew::query::d::checking
