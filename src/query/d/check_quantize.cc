// SPDX-License-Identifier: Apache-2.0
#include "query/d/check_quantize.h"

#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace clew::query::d::checking {
namespace {

constexpr int64_t kQuantityMax = std::numeric_limits<uint16_t>::max();  // 16-bit quantities.

struct ParameterName {
  std::string_view tag;
  std::string_view text;
};
constexpr ParameterName kLinear[] = {{"BASE", "base"}, {"LIM", "limit"}, {"STEP", "step"}};
constexpr ParameterName kLogLinear[] = {
    {"FACTOR", "factor"}, {"LOW", "low"}, {"HIGH", "high"}, {"STEP", "number of steps"}};

struct Call {
  Node& node;
  std::string prefix;  // "D_LQUANT_"
  std::span<const ParameterName> names;

  [[nodiscard]] Failure error(std::string_view tag, std::string message) const {
    return error_at(node, prefix + std::string(tag),
                    fmt::format("{}( ) {}", node.name, std::move(message)));
  }
};

Compiled<std::vector<int64_t>> constants(const Call& call) {
  std::vector<int64_t> found;
  for (size_t i = 0; i < call.names.size() && i + 1 < call.node.operands.size(); ++i) {
    const Node& operand = call.node.operands[i + 1];
    if (operand.kind != NodeKind::Integer) {
      return call.error(std::string(call.names[i].tag) + "TYPE",
                        fmt::format("argument #{} must be an integer constant", i + 1));
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
  if (step <= 0) {
    return call.error("STEPVAL", "step (argument #3) must be a non-zero positive 16-bit quantity");
  }
  if (step > kQuantityMax) {
    return call.error("STEPLARGE", "step (argument #3) too large: must be a 16-bit quantity");
  }
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

Compiled<void> check_log_linear(const Call& call, const std::vector<int64_t>& values) {
  const int64_t factor = values[0];
  const int64_t low = values[1];
  const int64_t high = values[2];
  const int64_t steps = values[3];
  const auto is_quantity = [](int64_t value) { return value >= 0 && value <= kQuantityMax; };
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_quantity(values[i])) continue;
    return call.error(std::string(call.names[i].tag) + "VAL",
                      fmt::format("argument #{} must be an unsigned 16-bit quantity", i + 1));
  }
  if (factor < 2) return call.error("FACTORSMALL", "factor (argument #1) must be two or more");
  if (low >= high) {
    return call.error("MAGRANGE",
                      "high magnitude (argument #3) must be greater than low magnitude "
                      "(argument #2)");
  }
  if (overflows(factor, high + 1)) {
    return call.error("MAGTOOBIG",
                      "factor (argument #1) raised to power of high magnitude "
                      "(argument #3) overflows 64-bits");
  }
  const bool divides = steps != 0 && (steps < factor ? factor % steps == 0 : steps % factor == 0);
  if (divides) return {};
  return call.error("STEPVAL",
                    "number of steps (argument #4) must divide the factor (argument #1) "
                    "or be a multiple of it");
}

Compiled<void> check_match(const Call& call, const std::vector<int64_t>& values,
                           const std::vector<int64_t>& known) {
  const bool is_linear = call.names.size() == 3;
  for (size_t i = 0; i < values.size() && i < known.size(); ++i) {
    if (values[i] == known[i]) continue;
    const std::string tag(call.names[i].tag);
    return call.error(is_linear ? "MATCH" + tag : tag + "MATCH",
                      fmt::format("{} (argument #{}) doesn't match previous declaration: {} is not "
                                  "{}",
                                  call.names[i].text, i + 1, values[i], known[i]));
  }
  return {};
}

}  // namespace

Compiled<std::vector<int64_t>> take_parameters(Node& call, AggregateKind kind,
                                               const std::vector<int64_t>* known) {
  const bool is_linear = kind == AggregateKind::LinearQuantize;
  if (!is_linear && kind != AggregateKind::LogLinearQuantize) return std::vector<int64_t>{};
  const Call place{call, is_linear ? "D_LQUANT_" : "D_LLQUANT_",
                   is_linear ? std::span<const ParameterName>(kLinear)
                             : std::span<const ParameterName>(kLogLinear)};
  std::vector<int64_t> values = CLEW_TRY(constants(place));
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
