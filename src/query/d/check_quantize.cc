// SPDX-License-Identifier: Apache-2.0
#include "query/d/check_quantize.h"

#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "query/d/check_conversion.h"

namespace clew::query::d::checking {
namespace {

constexpr int64_t kQuantityMax = std::numeric_limits<uint16_t>::max();  // 16-bit quantities.

struct ParameterName {
  std::string_view tag;
  std::string_view text;
};
constexpr ParameterName kLinear[] = {{"BASE", "base"}, {"LIM", "limit"}, {"STEP", "step"}};
constexpr ParameterName kLogLinear[] = {
    {"FACTOR", "factor"}, {"LMAG", "lmag"}, {"HMAG", "hmag"}, {"STEP", "steps"}};

struct Call {
  Node& node;
  std::string prefix;  // "D_LQUANT_"
  std::span<const ParameterName> names;

  [[nodiscard]] Failure error(std::string_view tag, std::string message) const {
    return error_at(node, prefix + std::string(tag),
                    fmt::format("{}( ) {}", node.name, std::move(message)));
  }
};

Compiled<std::vector<int64_t>> constants(const TypeTable& types, const Call& call) {
  std::vector<int64_t> found;
  for (size_t i = 0; i < call.names.size() && i + 1 < call.node.operands.size(); ++i) {
    const Node& operand = call.node.operands[i + 1];
    if (operand.kind == NodeKind::Aggregation || !types.is_integer(operand.type)) {
      return error_at(
          operand, "D_PROTO_ARG",
          fmt::format("{}( ) argument #{} is incompatible with prototype:\n\tprototype: "
                      "int32_t\n\t argument: {}",
                      call.node.name, i + 2, shown_type(types, operand)));
    }
    if (operand.kind != NodeKind::Integer) {
      const bool is_step = i + 1 == call.names.size();
      return call.error(std::string(call.names[i].tag) + "TYPE",
                        fmt::format("argument #{} must be {} constant", i + 1,
                                    is_step ? "a non-zero positive integer" : "an integer"));
    }
    found.push_back(static_cast<int64_t>(operand.integer));
  }
  return found;
}

bool is_32_bit(int64_t value) {
  return value >= std::numeric_limits<int32_t>::min() &&
         value <= std::numeric_limits<int32_t>::max();
}

Compiled<void> check_linear(const Call& call, const std::vector<int64_t>& values) {
  const int64_t base = values[0];
  const int64_t limit = values[1];
  const int64_t step = values[2];
  if (!is_32_bit(base)) return call.error("BASEVAL", "argument #1 must be a 32-bit quantity");
  if (!is_32_bit(limit)) return call.error("LIMVAL", "argument #2 must be a 32-bit quantity");
  if (limit <= base) {
    return call.error("MISMATCH", "base (argument #1) must be less than limit (argument #2)");
  }
  if (step <= 0)
    return call.error("STEPTYPE", "argument #3 must be a non-zero positive integer constant");
  if (step > kQuantityMax) return call.error("STEPVAL", "argument #3 must be a 16-bit quantity");
  const int64_t levels = (limit - base) / step;
  if (levels == 0) {
    return call.error("STEPLARGE",
                      "step (argument #3) too large: must have at least one quantization level");
  }
  if (levels <= kQuantityMax) return {};
  return call.error("STEPSMALL",
                    "step (argument #3) too small: number of quantization levels must "
                    "be a 16-bit quantity");
}

bool overflows(int64_t factor, int64_t exponent) {
  int64_t value = 1;
  for (int64_t i = 0; i < exponent; ++i) {
    if (__builtin_mul_overflow(value, factor, &value)) return true;
  }
  return false;
}

int64_t power(int64_t base, int64_t exponent) {
  int64_t value = 1;
  for (int64_t i = 0; i < exponent; ++i)
    value *= base;
  return value;
}

// Each step is a whole number of values, in the lowest magnitude too.
Compiled<void> check_steps(const Call& call, const std::vector<int64_t>& values) {
  const int64_t factor = values[0];
  const int64_t low = values[1];
  const int64_t steps = values[3];
  const auto fail = [&](std::string_view rule) {
    return error_at(call.node, "D_LLQUANT_STEPVAL",
                    fmt::format("llquantize() argument #4 (steps) must {}", rule));
  };
  if (steps < factor && factor % steps != 0)
    return fail("evenly divide argument #1 (factor) when steps<factor");
  if (steps <= factor) return {};
  if (steps % factor != 0) return fail("be a multiple of argument #1 (factor) when steps>factor");
  if (low == 0 && (factor * factor) % steps != 0) {
    return fail("evenly divide the square of argument #1 (factor) when steps>factor and lmag==0");
  }
  if (low == 0 || power(factor, low + 1) % steps == 0) return {};
  return fail(
      "evenly divide pow(argument #1 (factor), lmag (argument #2) + 1) when steps>factor and "
      "lmag>0");
}

Compiled<void> check_log_linear(const Call& call, const std::vector<int64_t>& values) {
  const int64_t factor = values[0];
  const int64_t low = values[1];
  const int64_t high = values[2];
  const int64_t steps = values[3];
  const auto is_quantity = [](int64_t value) { return value >= 0 && value <= kQuantityMax; };
  if (!is_quantity(factor) || factor < 2) {
    return call.error("FACTORVAL",
                      "argument #1 must be an unsigned 16-bit quantity greater than or equal to 2");
  }
  if (!is_quantity(low))
    return call.error("LMAGVAL", "argument #2 must be an unsigned 16-bit quantity");
  if (!is_quantity(high))
    return call.error("HMAGVAL", "argument #3 must be an unsigned 16-bit quantity");
  if (low > high) {
    return call.error("HMAGVAL",
                      "argument #3 (high magnitude) must be at least argument #2 (low magnitude)");
  }
  if (overflows(factor, high + 1)) {
    return call.error("HMAGVAL", "argument #3 (high magnitude) will cause overflow of 64 bits");
  }
  if (steps <= 0)
    return call.error("STEPTYPE", "argument #4 must be a non-zero positive integer constant");
  if (!is_quantity(steps))
    return call.error("STEPVAL", "argument #4 must be an unsigned 16-bit quantity");
  return check_steps(call, values);
}

Compiled<void> check_match(const Call& call, const std::vector<int64_t>& values,
                           const std::vector<int64_t>& known) {
  const bool is_linear = call.names.size() == 3;
  for (size_t i = 0; i < values.size() && i < known.size(); ++i) {
    if (values[i] == known[i]) continue;
    const bool is_steps = !is_linear && i == 3;
    return error_at(
        call.node, call.prefix + "MATCH" + std::string(call.names[i].tag) + (is_steps ? "S" : ""),
        call.node.name + (is_linear ? "( ) " : "() ") +
            fmt::format("{} (argument #{}) doesn't match previous declaration: expected {}, "
                        "found {}",
                        call.names[i].text, i + 1, known[i], values[i]));
  }
  return {};
}

}  // namespace

Compiled<std::vector<int64_t>> take_parameters(const TypeTable& types, Node& call,
                                               AggregateFunction kind,
                                               const std::vector<int64_t>* known) {
  const bool is_linear = kind == AggregateFunction::Lquantize;
  if (!is_linear && kind != AggregateFunction::Llquantize) return std::vector<int64_t>{};
  const Call place{call, is_linear ? "D_LQUANT_" : "D_LLQUANT_",
                   is_linear ? std::span<const ParameterName>(kLinear)
                             : std::span<const ParameterName>(kLogLinear)};
  std::vector<int64_t> values = CLEW_TRY(constants(types, place));
  const auto taken = static_cast<std::ptrdiff_t>(values.size());
  if (is_linear) values.resize(std::size(kLinear), 1);  // The step may be left out.
  if (is_linear) {
    CLEW_TRY(check_linear(place, values));
  } else {
    CLEW_TRY(check_log_linear(place, values));
  }
  if (known != nullptr) CLEW_TRY(check_match(place, values, *known));
  call.operands.erase(call.operands.begin() + 1, call.operands.begin() + 1 + taken);
  return values;
}

}  // namespace clew::query::d::checking
