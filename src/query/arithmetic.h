// SPDX-License-Identifier: Apache-2.0
// Typed expressions are built here: C's promotions and conversions made explicit, constants folded.
#pragma once

#include "base/error.h"
#include "query/c_arithmetic.h"
#include "query/diagnostic.h"
#include "query/query.h"

namespace clew::query {

inline constexpr Type kInt32{.size_bytes = 4};
inline constexpr Type kInt64{};
inline constexpr Type kUint32{.size_bytes = 4, .is_signed = false};
inline constexpr Type kUint64{.is_signed = false};
inline constexpr Type kAddress{.is_signed = false, .unit = Unit::Address};
inline constexpr Type kFloat64{.kind = TypeKind::Float, .is_signed = false};

Type string_type(size_t capacity_bytes);
bool same_representation(const Type& a, const Type& b);  // Equal but for unit and enumeration.
bool is_integer(const Expression& expression);
bool is_number(const Expression& expression);  // Integer or Float.
bool is_constant(const Expression& expression);
bool reads_memory(const Expression& node);  // Of the traced program; itself, not its operands.

Expression integer_constant(int64_t value, Type type, Span span);
Expression float_constant(double value, Span span);
Expression string_constant(std::string text, Span span);
Expression field_expression(Field field, uint16_t index, uint16_t stream, Span span);
Expression call(Function function, Type type, std::vector<Expression> operands, Span span);

// To the kind, width and sign of `type`; its unit and enumeration stay unless the type names some.
// No node when nothing changes. Only between numbers.
Expression convert(Expression expression, Type type);
// Whether it is a number that is only called an address, as types do that a file of events has not.
bool is_word_as_address(const Expression& expression);

// The type that C's usual arithmetic conversions give (C 2011, 6.3.1.8), without a unit.
Type common_type(const Type& a, const Type& b);
Type promoted(Type type);

// Errors say what the operator cannot do with which types.
Expected<Expression> make_unary(const Reporter& report, UnaryOperator op, Expression operand,
                                Span span);
Expected<Expression> make_binary(const Reporter& report, BinaryOperator op,
                                 std::vector<Expression> operands, Span span);
Expected<Expression> make_conditional(const Reporter& report, std::vector<Expression> operands,
                                      Span span);

inline IntegerType integer_type(const Type& type) {
  return {type.size_bytes, type.is_signed};
}

// op(a, b) in `type`, an integer.
int64_t folded(BinaryOperator op, int64_t a, int64_t b, const Type& type);

}  // namespace clew::query
