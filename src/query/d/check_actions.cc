// SPDX-License-Identifier: Apache-2.0
// Actions against their prototypes, and the functions of dynamic type: stack() and sym() with kin.
#include <algorithm>
#include <cstdlib>
#include <span>

#include <fmt/format.h>

#include "query/d/check_conversion.h"
#include "query/d/check_expression.h"
#include "query/d/check_prototypes.h"
#include "query/d/check_statement.h"

namespace clew::query::d::checking {
namespace {

constexpr uint64_t kStackFramesDefault = 20;
constexpr uint64_t kUserStackFramesDefault = 100;

Compiled<void> check_values(Context& context, Node& call) {
  for (Node& argument : call.operands)
    CLEW_TRY(check_value(context, argument));
  return {};
}

Compiled<void> check_prototype(Context& context, Node& call, Action action) {
  const Prototype prototype = parse_prototype(context.types(), prototype_of(action));
  return check_arguments(context, call, {call.name, false}, prototype, call.operands);
}

// trace() takes what has a value.
Compiled<void> check_traced(Context& context, Node& call) {
  TypeTable& types = context.types();
  const Node& value = call.operands[0];
  const auto refused = [&](std::string_view reason, std::string_view kind) {
    return error_at(value, "D_TRACE_" + std::string(reason),
                    fmt::format("trace( ) may not be applied to {} expression", kind));
  };
  if (value.kind == NodeKind::Aggregation || is_dynamic(types, value.type))
    return refused("DYN", "a dynamic");
  if (is_void(types, value.type)) return refused("VOID", "a void");
  return {};
}

// print() takes what has a size.
Compiled<void> check_printed(Context& context, const Node& call) {
  const TypeTable& types = context.types();
  const Node& value = call.operands[0];
  const bool is_shown = value.kind != NodeKind::Aggregation && !is_dynamic(types, value.type);
  if (!is_shown) {
    return error_at(value, "D_PROTO_ARG",
                    "print( ) argument #1 is incompatible with prototype:\n\tprototype: "
                    "<any type>\n\t argument: " +
                        shown_type(types, value));
  }
  const TypeId target = pointee(types, value.type);
  const TypeId shown = target == kNoType ? value.type : target;
  const TypeKind kind = types.stripped(shown).kind;
  if (kind != TypeKind::Forward && !is_void(types, value.type)) return {};
  return error_at(value, "D_PRINT_SIZE",
                  fmt::format("print( ) argument #1 reference has type '{}' with size 0; cannot "
                              "print( ) it.",
                              types.name_of(shown)));
}

bool is_positive_constant(const TypeTable& types, const Node& node) {
  return node.kind == NodeKind::Integer && types.is_integer(node.type) &&
         static_cast<int64_t>(node.integer) > 0;
}

// 0 is one, too.
bool is_size_constant(const TypeTable& types, const Node& node) {
  return node.kind == NodeKind::Integer && types.is_integer(node.type) &&
         (!types.is_signed(node.type) || static_cast<int64_t>(node.integer) >= 0);
}

Compiled<void> check_tracemem(Context& context, Node& call) {
  TypeTable& types = context.types();
  if (call.operands.size() < 2 || call.operands.size() > 3) {
    const size_t count = call.operands.size();
    return error_at(
        call, "D_PROTO_LEN",
        fmt::format("tracemem( ) prototype mismatch: {} arg{} passed, {} expected", count,
                    count == 1 ? "" : "s", count < 2 ? "at least 2" : "at most 3"));
  }
  Node& address = call.operands[0];
  const bool is_address = address.kind != NodeKind::Aggregation &&
                          (is_scalar(types, address.type) || types.is_pointer(address.type));
  if (!is_address) {
    return error_at(address, "D_TRACEMEM_ADDR",
                    "tracemem( ) argument #1 is incompatible with prototype:\n\tprototype: "
                    "pointer or integer\n\t argument: " +
                        shown_type(types, address));
  }
  decay(types, address);
  if (!is_positive_constant(types, call.operands[1])) {
    return error_at(call.operands[1], "D_TRACEMEM_SIZE",
                    "tracemem( ) argument #2 must be a non-zero positive integral constant "
                    "expression");
  }
  if (call.operands.size() < 3) return {};
  Node& dynamic_size = call.operands[2];
  if (!types.is_integer(dynamic_size.type)) {
    return error_at(dynamic_size, "D_PROTO_ARG",
                    "tracemem( ) argument #3 is incompatible with prototype:\n\tprototype: "
                    "size_t\n\t argument: " +
                        shown_type(types, dynamic_size));
  }
  convert(types, dynamic_size, types.integer(8, true));
  return {};
}

// What would be wrong anywhere; here nothing is right.
Compiled<void> check_pcap(Context& context, Node& call) {
  const TypeTable& types = context.types();
  CLEW_TRY(check_values(context, call));
  const Prototype prototype = parse_prototype(context.types(), "void(@, @)");
  CLEW_TRY(check_arguments(context, call, {call.name, false}, prototype, call.operands));
  const Node& packet = call.operands[0];
  const Node& protocol = call.operands[1];
  const auto refused = [&](const Node& argument, size_t number, std::string_view wanted) {
    return error_at(
        argument, number == 1 ? "D_PCAP_ADDR" : "D_PCAP_PROTO",
        fmt::format("pcap( ) argument #{} is incompatible with prototype:\n\tprototype: "
                    "{}\n\t argument: {}",
                    number, wanted, shown_type(types, argument)));
  };
  const bool is_address = packet.kind != NodeKind::Aggregation && is_scalar(types, packet.type);
  if (!is_address) return refused(packet, 1, "pointer or integer");
  if (!types.is_integer(protocol.type)) return refused(protocol, 2, "integer");
  return {};
}

uint64_t frames_option(const Context& context, std::string_view name, uint64_t otherwise) {
  const auto& values = context.script.options.values;
  const auto option = values.find(name);
  if (option == values.end()) return otherwise;
  const uint64_t frames = std::strtoull(option->second.c_str(), nullptr, 0);
  return frames == 0 ? otherwise : frames;
}

uint64_t default_frames(const Context& context, Action action) {
  if (action == Action::Stack) return frames_option(context, "stackframes", kStackFramesDefault);
  const std::string_view name = action == Action::Jstack ? "jstackframes" : "ustackframes";
  return frames_option(context, name, kUserStackFramesDefault);
}

Compiled<void> check_stack(Context& context, Node& node, Action action) {
  TypeTable& types = context.types();
  const bool is_user = action != Action::Stack;
  const std::string tag = is_user ? "D_USTACK_" : "D_STACK_";
  const bool has_frames = !node.operands.empty() && is_positive_constant(types, node.operands[0]);
  const bool has_size = node.operands.size() != 2 || is_size_constant(types, node.operands[1]);
  CLEW_TRY(check_prototype(context, node, action));
  if (!node.operands.empty() && !has_frames) {
    return error_at(
        node.operands[0], tag + (is_user ? "FRAMES" : "SIZE"),
        fmt::format("{}( ) argument #1 must be a non-zero positive integer constant", node.name));
  }
  if (!has_size) {
    return error_at(
        node.operands[1], tag + "STRSIZE",
        fmt::format("{}( ) argument #2 must be a positive integer constant", node.name));
  }
  if (node.operands.empty()) {
    const uint64_t frames = default_frames(context, action);
    node.operands.push_back(integer_node(node, frames, types.integer(8, true)));
  }
  return {};
}

Compiled<void> check_symbol_function(Context& context, Node& node, Action action) {
  TypeTable& types = context.types();
  // The prototype wants an integer; pointers are what these functions are for.
  if (node.operands.size() == 1) {
    Node& address = node.operands[0];
    decay(types, address);
    if (pointee(types, address.type) != kNoType) convert(types, address, types.integer(8, false));
  }
  return check_prototype(context, node, action);
}

Compiled<void> check_plain_action(Context& context, Statement& statement, Action action) {
  Node& call = statement.expression;
  CLEW_TRY(check_values(context, call));
  for (Node& argument : call.operands) {  // What print() and tracemem() read themselves.
    argument.is_userland =
        argument.is_userland || points_to_userland(context.types(), argument.type);
  }
  if (action == Action::Tracemem) return check_tracemem(context, call);
  CLEW_TRY(check_prototype(context, call, action));
  if (action == Action::Trace) return check_traced(context, call);
  if (action == Action::Print) return check_printed(context, call);
  return {};
}

constexpr Action kFormatted[] = {Action::Printf, Action::System, Action::Freopen};
constexpr Action kOnAggregations[] = {Action::Clear, Action::Trunc, Action::Normalize,
                                      Action::Denormalize};
constexpr Action kDynamic[] = {Action::Stack, Action::Ustack, Action::Jstack,
                               Action::Sym,   Action::Mod,    Action::Uaddr,
                               Action::Ufunc, Action::Umod,   Action::Usym};
constexpr Action kDestructive[] = {Action::Chill,   Action::Copyout,   Action::Copyoutstr,
                                   Action::Freopen, Action::Ftruncate, Action::Raise,
                                   Action::Stop,    Action::System};
// What no program of the kernel's can do.
constexpr Action kImpossible[] = {Action::Breakpoint, Action::Panic, Action::Pcap};
// Besides those of dynamic type.
constexpr Action kRecording[] = {Action::Exit,   Action::Freopen, Action::Ftruncate,
                                 Action::Print,  Action::Printa,  Action::Printf,
                                 Action::System, Action::Trace,   Action::Tracemem};

bool is_among(std::span<const Action> actions, Action action) {
  return std::find(actions.begin(), actions.end(), action) != actions.end();
}

Compiled<void> check_by_kind(Context& context, Statement& statement, Action action) {
  if (action == Action::Pcap) CLEW_TRY(check_pcap(context, statement.expression));
  if (is_among(kImpossible, action)) {
    return error_at(statement.expression, "D_UNKNOWN",
                    fmt::format("{}() is not implemented (yet)", statement.expression.name));
  }
  if (is_among(kFormatted, action)) return check_printf(context, statement);
  if (action == Action::Printa) return check_printa(context, statement);
  if (is_among(kOnAggregations, action)) return check_aggregation_action(context, statement);
  if (!is_dynamic_function(action)) return check_plain_action(context, statement, action);
  return check_dynamic_function(context, statement.expression, action);
}

}  // namespace

bool is_dynamic_function(Action action) {
  return is_among(kDynamic, action);
}

bool is_destructive(Action action) {
  return is_among(kDestructive, action);
}

bool is_data_recording(Action action) {
  return is_among(kRecording, action) || is_dynamic_function(action);
}

Compiled<void> check_dynamic_function(Context& context, Node& node, Action action) {
  CLEW_TRY(check_values(context, node));
  const bool is_stack =
      action == Action::Stack || action == Action::Ustack || action == Action::Jstack;
  if (is_stack) {
    CLEW_TRY(check_stack(context, node, action));
  } else {
    CLEW_TRY(check_symbol_function(context, node, action));
  }
  node.type = context.types().dynamic_type();
  return {};
}

Compiled<void> check_action(Context& context, Statement& statement, Action action) {
  statement.kind = StatementKind::Action;
  statement.action = action;
  CLEW_TRY(check_by_kind(context, statement, action));
  if (!is_dynamic_function(action)) statement.expression.type = context.types().void_type();
  if (is_destructive(action)) context.script.is_destructive = true;
  return note_action(context, statement);
}

}  // namespace clew::query::d::checking
