// SPDX-License-Identifier: Apache-2.0
#include "plan/update.h"

#include <cstdint>

namespace clew::plan {

using abi::AggregateFunction;
using aggregate::AggregateSpec;
using isa::Alu;
using isa::Builder;
using isa::Jump;
using isa::Label;
using isa::Register;
using isa::Size;

namespace {

aggregate::Unit unit_of(query::Unit unit) {
  return unit == query::Unit::Nanoseconds ? aggregate::Unit::Nanoseconds : aggregate::Unit::None;
}

// Writes one update; r0 holds the value, r9 the cells, `at` the offset of this one.
class Update {
 public:
  Update(Coder& coder, const AggregateSpec& spec, uint32_t offset_bytes)
      : coder_(coder),
        builder_(coder.builder()),
        spec_(spec),
        at_(static_cast<int32_t>(offset_bytes)) {}

  Expected<void> write();

 private:
  void add_word(uint32_t word, Register value);
  void add_one(uint32_t word);
  void extreme();
  void deviation();
  void square_large(Label done);
  void count_bucket();
  Expected<void> quantize();
  Expected<void> quantile();
  void lquantize();
  void llquantize();
  Expected<void> distinct();

  Coder& coder_;
  Builder& builder_;
  const AggregateSpec& spec_;
  int32_t at_;
};

void Update::add_word(uint32_t word, Register value) {
  const int32_t offset = at_ + static_cast<int32_t>(8 * word);
  builder_.load(Size::Double, Register::R2, Register::R9, offset)
      .alu(Alu::Add, Register::R2, value)
      .store(Size::Double, Register::R9, offset, Register::R2);
}

void Update::add_one(uint32_t word) {
  const int32_t offset = at_ + static_cast<int32_t>(8 * word);
  builder_.load(Size::Double, Register::R2, Register::R9, offset)
      .alu(Alu::Add, Register::R2, 1)
      .store(Size::Double, Register::R9, offset, Register::R2);
}

void Update::extreme() {
  const Label take = builder_.label();
  const Label keep = builder_.label();
  const bool smaller = spec_.function == AggregateFunction::Min;
  const Jump worse = smaller ? (spec_.is_signed ? Jump::SignedGreaterOrEqual : Jump::GreaterOrEqual)
                             : (spec_.is_signed ? Jump::SignedLessOrEqual : Jump::LessOrEqual);
  builder_.load(Size::Double, Register::R2, Register::R9, at_ + 8)
      .jump_if(Jump::Equal, Register::R2, 0, take)
      .load(Size::Double, Register::R2, Register::R9, at_)
      .jump_if(worse, Register::R0, Register::R2, keep)
      .bind(take)
      .store(Size::Double, Register::R9, at_, Register::R0)
      .store(Size::Double, Register::R9, at_ + 8, 1)
      .bind(keep);
}

// Words 2 and 3 are the 128-bit sum of squares. A magnitude below 2^32 has a 64-bit square.
void Update::deviation() {
  const Label positive = builder_.label();
  const Label large = builder_.label();
  const Label done = builder_.label();
  add_one(0);
  add_word(1, Register::R0);
  if (spec_.is_signed) {
    builder_.jump_if(Jump::SignedGreaterOrEqual, Register::R0, 0, positive).negate(Register::R0);
  }
  builder_.bind(positive)
      .move(Register::R3, Register::R0)
      .alu(Alu::ShiftRight, Register::R3, 32)
      .jump_if(Jump::NotEqual, Register::R3, 0, large)
      .alu(Alu::Multiply, Register::R0, Register::R0)
      .load(Size::Double, Register::R2, Register::R9, at_ + 16)
      .alu(Alu::Add, Register::R2, Register::R0)
      .store(Size::Double, Register::R9, at_ + 16, Register::R2)
      .jump_if(Jump::GreaterOrEqual, Register::R2, Register::R0, done);
  add_one(3);
  builder_.bind(done);
  coder_.out_of_line([this_copy = *this, large, done]() mutable {
    this_copy.builder_.bind(large);
    this_copy.square_large(done);
  });
}

// (a 2^32 + b)^2 = a^2 2^64 + 2ab 2^32 + b^2, with a = r3.
void Update::square_large(Label done) {
  const Label no_carry = builder_.label();
  const Label no_carry_middle = builder_.label();
  const Label no_carry_top = builder_.label();
  builder_
      .move(Register::R4, Register::R0, isa::Width::Bits32)  // b
      .move(Register::R5, Register::R3)
      .alu(Alu::Multiply, Register::R5, Register::R4)  // ab < 2^64; 2ab may carry
      .alu(Alu::Multiply, Register::R3, Register::R3)  // a^2
      .alu(Alu::Multiply, Register::R4, Register::R4)  // b^2
      .move(Register::R2, Register::R5)
      .alu(Alu::ShiftRight, Register::R2, 31)  // high part of 2ab
      .alu(Alu::Add, Register::R3, Register::R2)
      .alu(Alu::ShiftLeft, Register::R5, 33)  // low part of 2ab
      .alu(Alu::Add, Register::R4, Register::R5)
      .jump_if(Jump::GreaterOrEqual, Register::R4, Register::R5, no_carry_middle)
      .alu(Alu::Add, Register::R3, 1)
      .bind(no_carry_middle)
      .load(Size::Double, Register::R2, Register::R9, at_ + 16)
      .alu(Alu::Add, Register::R2, Register::R4)
      .store(Size::Double, Register::R9, at_ + 16, Register::R2)
      .jump_if(Jump::GreaterOrEqual, Register::R2, Register::R4, no_carry)
      .alu(Alu::Add, Register::R3, 1)
      .bind(no_carry)
      .load(Size::Double, Register::R2, Register::R9, at_ + 24)
      .alu(Alu::Add, Register::R2, Register::R3)
      .store(Size::Double, Register::R9, at_ + 24, Register::R2)
      .bind(no_carry_top)
      .jump(done);
}

// Adds one to word r0 of the cell.
void Update::count_bucket() {
  builder_.alu(Alu::ShiftLeft, Register::R0, 3)
      .move(Register::R3, Register::R9)
      .alu(Alu::Add, Register::R3, Register::R0)
      .load(Size::Double, Register::R2, Register::R3, at_)
      .alu(Alu::Add, Register::R2, 1)
      .store(Size::Double, Register::R3, at_, Register::R2);
}

Expected<void> Update::quantize() {
  const Label positive = builder_.label();
  const Label done = builder_.label();
  if (spec_.is_signed) {
    const Label in_range = builder_.label();
    builder_.jump_if(Jump::SignedGreaterOrEqual, Register::R0, 0, positive)
        .negate(Register::R0)
        .move(Register::R1, Register::R0)
        .call(abi::Accessor::BitLength)
        .move(Register::R2, static_cast<int32_t>(abi::kQuantizeZero))
        .jump_if(Jump::LessOrEqual, Register::R0, Register::R2, in_range)
        .move(Register::R0, Register::R2)
        .bind(in_range)
        .alu(Alu::Subtract, Register::R2, Register::R0)
        .move(Register::R0, Register::R2)
        .jump(done)
        .bind(positive);
  }
  builder_.move(Register::R1, Register::R0)
      .call(abi::Accessor::BitLength)
      .alu(Alu::Add, Register::R0, static_cast<int32_t>(abi::kQuantizeZero))
      .bind(done);
  count_bucket();
  return {};
}

Expected<void> Update::quantile() {
  CLEW_TRY(find_quantile_bucket(coder_, spec_.is_signed));
  count_bucket();
  return {};
}

void Update::lquantize() {
  const Label below = builder_.label();
  const Label found = builder_.label();
  const uint64_t steps = abi::linear_steps(linear_of(spec_));
  builder_.load_constant(Register::R2, static_cast<uint64_t>(spec_.low))
      .jump_if(Jump::SignedLess, Register::R0, Register::R2, below)
      .alu(Alu::Subtract, Register::R0, Register::R2)
      .load_constant(Register::R2, static_cast<uint64_t>(spec_.step))
      .alu(Alu::Divide, Register::R0, Register::R2)
      .alu(Alu::Add, Register::R0, 1)
      .load_constant(Register::R2, steps + 1)
      .jump_if(Jump::LessOrEqual, Register::R0, Register::R2, found)
      .move(Register::R0, Register::R2)
      .jump(found)
      .bind(below)
      .move(Register::R0, 0)
      .bind(found);
  count_bucket();
}

void Update::llquantize() {
  const Label below = builder_.label();
  const Label found = builder_.label();
  uint64_t buckets = 0;
  const auto write_order = [&](uint64_t first, uint64_t next, uint64_t width, uint64_t before) {
    if (before == 0) {
      builder_.load_constant(Register::R2, first)
          .jump_if(Jump::SignedLess, Register::R0, Register::R2, below);
    }
    const Label larger = builder_.label();
    builder_.load_constant(Register::R2, next)
        .jump_if(Jump::GreaterOrEqual, Register::R0, Register::R2, larger)
        .load_constant(Register::R2, first)
        .alu(Alu::Subtract, Register::R0, Register::R2)
        .load_constant(Register::R2, width)
        .alu(Alu::Divide, Register::R0, Register::R2)
        .alu(Alu::Add, Register::R0, static_cast<int32_t>(before + 1))
        .jump(found)
        .bind(larger);
    buckets = before + abi::order_steps(first, next, width);
    return true;
  };
  abi::each_order(log_linear_of(spec_), 0, write_order);
  builder_.move(Register::R0, static_cast<int32_t>(buckets + 1))
      .jump(found)
      .bind(below)
      .move(Register::R0, 0)
      .bind(found);
  count_bucket();
}

// r0 = hash.
Expected<void> Update::distinct() {
  const Label keep = builder_.label();
  CLEW_TRY(find_distinct_register(coder_));
  builder_.alu(Alu::Add, Register::R2, Register::R9)
      .load(Size::Byte, Register::R4, Register::R2, at_)
      .jump_if(Jump::GreaterOrEqual, Register::R4, Register::R3, keep)
      .store(Size::Byte, Register::R2, at_, Register::R3)
      .bind(keep);
  return {};
}

Expected<void> Update::write() {
  switch (spec_.function) {
    case AggregateFunction::Count:
    case AggregateFunction::TopK:
      add_one(0);
      return {};
    case AggregateFunction::Sum:
      add_word(0, Register::R0);
      return {};
    case AggregateFunction::Min:
    case AggregateFunction::Max:
      extreme();
      return {};
    case AggregateFunction::Average:
      add_one(0);
      add_word(1, Register::R0);
      return {};
    case AggregateFunction::StandardDeviation:
    case AggregateFunction::Variance:
      deviation();
      return {};
    case AggregateFunction::Quantize:
      return quantize();
    case AggregateFunction::Lquantize:
      lquantize();
      return {};
    case AggregateFunction::Llquantize:
      llquantize();
      return {};
    case AggregateFunction::Distinct:
      return distinct();
    case AggregateFunction::Quantile:
      return quantile();
  }
  return {};
}

}  // namespace

std::vector<const query::Expression*> key_parts(const query::Query& query) {
  std::vector<const query::Expression*> parts;
  parts.reserve(query.values.size() + query.aggregates.size());
  for (const query::NamedExpression& value : query.values)
    parts.push_back(&value.expression);
  for (const query::Aggregate& aggregate : query.aggregates) {
    if (aggregate.function == AggregateFunction::TopK) parts.push_back(&aggregate.arguments[0]);
  }
  return parts;
}

aggregate::TableShape table_shape(const query::Query& query) {
  aggregate::TableShape shape;
  for (const query::Expression* part : key_parts(query))
    shape.key_words += stored_words(*part);
  for (const query::Aggregate& aggregate : query.aggregates)
    shape.group.cells.push_back(spec_of(aggregate));
  return shape;
}

AggregateSpec spec_of(const query::Aggregate& aggregate) {
  AggregateSpec spec;
  spec.function = aggregate.function;
  if (!aggregate.arguments.empty()) {
    const query::Type& type = aggregate.arguments[0].type;
    spec.is_signed = type.kind == query::TypeKind::Integer && type.is_signed;
    spec.is_real = type.kind == query::TypeKind::Float;
    spec.unit = unit_of(type.unit);
  } else {
    spec.is_signed = false;
  }
  switch (aggregate.function) {
    case AggregateFunction::Lquantize:
      spec.low = aggregate.parameters[0];
      spec.high = aggregate.parameters[1];
      spec.step = aggregate.parameters[2];
      break;
    case AggregateFunction::Llquantize:
      spec.factor = static_cast<uint32_t>(aggregate.parameters[0]);
      spec.low = aggregate.parameters[1];
      spec.high = aggregate.parameters[2];
      spec.steps = static_cast<uint32_t>(aggregate.parameters[3]);
      break;
    case AggregateFunction::TopK:
      spec.count_max = static_cast<uint32_t>(aggregate.parameters[0]);
      break;
    case AggregateFunction::Quantile:
      spec.quantile = aggregate.fraction;
      break;
    case AggregateFunction::Count:
    case AggregateFunction::Sum:
    case AggregateFunction::Min:
    case AggregateFunction::Max:
    case AggregateFunction::Average:
    case AggregateFunction::StandardDeviation:
    case AggregateFunction::Variance:
    case AggregateFunction::Quantize:
    case AggregateFunction::Distinct:
      break;
  }
  return spec;
}

bool needs_value(const query::Aggregate& aggregate) {
  return aggregate.function != AggregateFunction::Count &&
         aggregate.function != AggregateFunction::TopK;
}

Expected<void> compute(Coder& coder, const query::Aggregate& aggregate) {
  if (aggregate.function == AggregateFunction::Distinct) {
    return coder.hash_of(aggregate.arguments[0]);
  }
  return coder.value(aggregate.arguments[0]);
}

Expected<void> find_quantile_bucket(Coder& coder, bool is_signed) {
  Builder& builder = coder.builder();
  const Label found = builder.label();
  const int32_t value = CLEW_TRY(coder.reserve(8));
  if (is_signed) {
    const Label positive = builder.label();
    builder.jump_if(Jump::SignedGreaterOrEqual, Register::R0, 0, positive)
        .move(Register::R0, 0)
        .bind(positive);
  }
  builder.jump_if(Jump::Less, Register::R0, 16, found)
      .store(Size::Double, Register::R10, value, Register::R0)
      .move(Register::R1, Register::R0)
      .call(abi::Accessor::BitLength)
      .alu(Alu::Subtract, Register::R0, 5)
      .load(Size::Double, Register::R2, Register::R10, value)
      .alu(Alu::ShiftRight, Register::R2, Register::R0)
      .alu(Alu::ShiftLeft, Register::R0, 4)
      .alu(Alu::Add, Register::R0, Register::R2)
      .bind(found);
  return {};
}

Expected<void> find_distinct_register(Coder& coder) {
  const int32_t index = CLEW_TRY(coder.reserve(8));
  coder.builder()
      .move(Register::R2, Register::R0)
      .alu(Alu::And, Register::R2, static_cast<int32_t>(abi::kDistinctRegisters - 1))
      .store(Size::Double, Register::R10, index, Register::R2)
      .alu(Alu::ShiftRight, Register::R0, 10)
      .move(Register::R1, Register::R0)
      .call(abi::Accessor::BitLength)
      .move(Register::R3, 55)
      .alu(Alu::Subtract, Register::R3, Register::R0)
      .load(Size::Double, Register::R2, Register::R10, index);
  return {};
}

Expected<int32_t> prepare(Coder& coder, const query::Aggregate& aggregate) {
  const int32_t area = CLEW_TRY(coder.reserve(8));
  CLEW_TRY(compute(coder, aggregate));
  coder.builder().store(Size::Double, Register::R10, area, Register::R0);
  return area;
}

Expected<void> update(Coder& coder, const query::Aggregate& aggregate, uint32_t offset_bytes,
                      std::optional<int32_t> prepared) {
  if (prepared) {
    coder.builder().load(Size::Double, Register::R0, Register::R10, *prepared);
  } else if (needs_value(aggregate)) {
    CLEW_TRY(compute(coder, aggregate));
  }
  const aggregate::AggregateSpec spec = spec_of(aggregate);
  const int32_t mark = coder.frame_used();
  CLEW_TRY(Update(coder, spec, offset_bytes).write());
  coder.release(mark);
  return {};
}

}  // namespace clew::plan
