// SPDX-License-Identifier: Apache-2.0
#include "query/d/check_alloca.h"

#include <algorithm>

#include <fmt/format.h>

#include "query/d/check_conversion.h"
#include "query/d/check_options.h"

namespace clew::query::d::checking {
namespace {

// Half of what a firing has for itself (abi/machine/window.h).
constexpr uint64_t kScratchBytesMax = 0x2000;

PointerSource united(PointerSource a, PointerSource b) {
  return a == PointerSource::Unknown ? b : a;
}

PointerSource source_of_name(const Context& context, const Node& node) {
  if (node.storage == Storage::Builtin || node.storage == Storage::Argument)
    return PointerSource::Other;
  if (node.storage == Storage::Memory) return PointerSource::Other;  // A symbol of the kernel.
  if (node.storage != Storage::Variable) return PointerSource::Unknown;
  const auto known = context.pointer_sources.find(node.index);
  return known == context.pointer_sources.end() ? PointerSource::Unknown : known->second;
}

// Of the address of a place: that of the pointer by which it is reached.
PointerSource source_of_place(const Context& context, const Node& place) {
  if (place.kind == NodeKind::Identifier) return source_of_name(context, place);
  return place.operands.empty() ? PointerSource::Unknown : source_of(context, place.operands[0]);
}

PointerSource source_of_unary(const Context& context, const Node& node) {
  if (node.unary == UnaryOperator::AddressOf) return source_of_place(context, node.operands[0]);
  return is_increment(node) ? source_of(context, node.operands[0]) : PointerSource::Unknown;
}

PointerSource source_of_call(const Node& node) {
  const bool is_scratch =
      node.subroutine == Subroutine::Alloca || node.subroutine == Subroutine::Copyin;
  return is_scratch ? PointerSource::Alloca : PointerSource::Unknown;
}

}  // namespace

PointerSource source_of(const Context& context, const Node& node) {
  switch (node.kind) {
    case NodeKind::Integer:
      return is_null_constant(node) ? PointerSource::Unknown : PointerSource::Other;
    case NodeKind::Identifier:
      return source_of_name(context, node);
    case NodeKind::Call:
      return source_of_call(node);
    case NodeKind::Unary:
      return source_of_unary(context, node);
    case NodeKind::Cast:
      return source_of(context, node.operands[0]);
    case NodeKind::Comma:
    case NodeKind::Assign:
      return source_of(context, node.operands.back());
    case NodeKind::Conditional:
      return united(source_of(context, node.operands[1]), source_of(context, node.operands[2]));
    case NodeKind::Binary: {
      const bool is_left = context.script.types.is_pointer(node.operands[0].type);
      return source_of(context, node.operands[is_left ? 0 : 1]);
    }
    case NodeKind::Index:
    case NodeKind::Member:
    case NodeKind::Arrow:
    case NodeKind::String:
    case NodeKind::Aggregation:
    case NodeKind::SizeOf:
    case NodeKind::OffsetOf:
    case NodeKind::StringOf:
    case NodeKind::Translate:
      return PointerSource::Unknown;
  }
  return PointerSource::Unknown;
}

Compiled<void> check_alloca_size(const Context& context, const Node& call) {
  const Node& size = call.operands[0];
  if (size.kind != NodeKind::Integer) return {};
  if (static_cast<int64_t>(size.integer) < 0)
    return error_at(size, "D_ALLOCA_SIZE", "alloca( ) argument #1 must not be negative");
  const auto& options = context.script.options.values;
  const auto option = options.find("scratchsize");
  const uint64_t wanted = option == options.end()
                              ? kScratchBytesMax
                              : option_bytes(option->second).value_or(kScratchBytesMax);
  const uint64_t limit = std::min(wanted, kScratchBytesMax);
  if (size.integer <= limit) return {};
  return error_at(size, "D_ALLOCA_SIZE",
                  fmt::format("alloca({}) size larger than scratchsize {}", size.integer, limit));
}

Compiled<void> check_alloca_choice(const Context& context, const Node& node) {
  const TypeTable& types = context.script.types;
  const bool is_pointer = types.is_pointer(node.operands[1].type) ||  //
                          types.is_pointer(node.operands[2].type);
  const PointerSource a = source_of(context, node.operands[1]);
  const PointerSource b = source_of(context, node.operands[2]);
  const bool is_known = a != PointerSource::Unknown && b != PointerSource::Unknown;
  if (!is_pointer || !is_known || a == b) return {};
  return error_at(node, "D_ALLOCA_INCOMPAT",
                  "operator ?: operands must both be allocated by alloca( ) or neither");
}

Compiled<void> note_pointer_source(Context& context, const Node& assign) {
  const Node& target = assign.operands[0];
  const bool is_variable =
      target.kind == NodeKind::Identifier && target.storage == Storage::Variable;
  if (!is_variable || !context.types().is_pointer(target.type)) return {};
  const PointerSource source = source_of(context, assign.operands[1]);
  if (source == PointerSource::Unknown) return {};
  const auto [known, is_new] = context.pointer_sources.try_emplace(target.index, source);
  if (is_new || known->second == source) return {};
  return error_at(assign, "D_ALLOCA_INCOMPAT",
                  fmt::format("{}: cannot reuse the same identifier for both alloca and non-alloca "
                              "allocations",
                              target.name));
}

}  // namespace clew::query::d::checking
