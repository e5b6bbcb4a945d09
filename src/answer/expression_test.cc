// SPDX-License-Identifier: Apache-2.0
// Random typed expressions: what a probe program computes is what `evaluate` says.
#include <algorithm>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "answer/fake_machine.h"
#include "isa/accessor_host.h"
#include "isa/interpreter.h"
#include "plan/coder.h"
#include "plan/evaluate.h"
#include "query/parse.h"
#include "query/print.h"

namespace clew::answer {

using plan::Bindings;
using plan::bits_of;
using plan::Coder;
using plan::CoderEnvironment;
using plan::evaluate;
using plan::probe_can;

namespace {

using query::BinaryOperator;
using query::Expression;
using query::ExpressionKind;
using query::Function;
using query::Type;
using query::TypeKind;

constexpr uint32_t kResultOffset = 1024;

Type integer_type(uint8_t bytes, bool is_signed) {
  return {.kind = TypeKind::Integer, .size_bytes = bytes, .is_signed = is_signed};
}
const Type kTruth = integer_type(4, true);
const Type kLong = integer_type(8, true);
const Type kAddress = integer_type(8, false);

Expression make_expression(ExpressionKind kind, const Type& type,
                           std::vector<Expression> operands = {}) {
  Expression e;
  e.kind = kind;
  e.type = type;
  e.operands = std::move(operands);
  return e;
}

Expression constant(const Type& type, uint64_t bits) {
  Expression e = make_expression(ExpressionKind::Integer, type);
  const int unused = 64 - 8 * type.size_bytes;
  e.integer = type.is_signed ? static_cast<int64_t>(bits << unused) >> unused
                             : static_cast<int64_t>(bits << unused >> unused);
  return e;
}

Expression binary(BinaryOperator op, const Type& type, Expression left, Expression right) {
  Expression e = make_expression(ExpressionKind::Binary, type, {std::move(left), std::move(right)});
  e.binary = op;
  return e;
}

Expression call(Function function, const Type& type, std::vector<Expression> operands) {
  Expression e = make_expression(ExpressionKind::Call, type, std::move(operands));
  e.function = function;
  return e;
}

Expression text(std::string_view value) {
  Expression e = make_expression(ExpressionKind::String,
                                 {.kind = TypeKind::String,
                                  .size_bytes = 0,
                                  .is_signed = false,
                                  .capacity_bytes = static_cast<uint16_t>(value.size() + 1)});
  e.text = value;
  return e;
}

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  uint64_t below(uint64_t limit) { return random_() % limit; }
  uint64_t number() {
    switch (below(6)) {
      case 0:
        return random_();
      case 1:
        return 0 - below(4);
      case 2:
        return uint64_t{1} << below(64);
      case 3:
        return (uint64_t{1} << below(64)) - 1;
      default:
        return below(8);
    }
  }
  Type type() { return integer_type(static_cast<uint8_t>(1U << below(4)), below(2) == 0); }

  // Of exactly this type.
  Expression integer(const Type& type, unsigned depth) {
    if (depth == 0) return leaf(type);
    switch (below(9)) {
      case 0:
        return leaf(type);
      case 1:
        return unary(type, depth);
      case 2:
        return make_expression(
            ExpressionKind::Conditional, type,
            {condition(depth - 1), integer(type, depth - 1), integer(type, depth - 1)});
      case 3:
        return convert(integer(this->type(), depth - 1), type);
      case 4:
        return convert(condition(depth - 1), type);
      case 5:
        return function(type, depth);
      default:
        return arithmetic(type, depth);
    }
  }

  void add_let(query::Query& query) {
    const Type let_type = type();
    query.lets.push_back({.name = "x", .expression = integer(let_type, 3)});
    lets_.push_back(let_type);
  }

 private:
  static Expression convert(Expression from, const Type& type) {
    if (from.type == type) return from;
    return make_expression(ExpressionKind::Convert, type, {std::move(from)});
  }

  Expression leaf(const Type& type) {
    const uint64_t choice = below(6);
    if (choice < 2) return constant(type, number());
    if (choice == 2) return make_expression(ExpressionKind::Load, type, {address(0)});
    if (choice == 3 && !lets_.empty()) {
      Expression let = make_expression(ExpressionKind::Let, {});
      let.index = static_cast<uint16_t>(below(lets_.size()));
      let.type = lets_[let.index];
      return convert(std::move(let), type);
    }
    Expression field = make_expression(ExpressionKind::Field, kLong);
    field.field = query::Field::Argument;
    field.index = static_cast<uint16_t>(below(query::kArgumentsMax));
    return convert(std::move(field), type);
  }

  // Always readable.
  Expression address(unsigned depth) {
    Expression offset = depth == 0 ? convert(make_argument(2), kAddress) : integer(kAddress, depth);
    return binary(BinaryOperator::Add, kAddress, constant(kAddress, kFakeMemoryStart),
                  binary(BinaryOperator::And, kAddress, std::move(offset),
                         constant(kAddress, kFakeMemoryBytes / 2 - 1)));
  }

  static Expression make_argument(uint16_t index) {
    Expression field = make_expression(ExpressionKind::Field, kLong);
    field.field = query::Field::Argument;
    field.index = index;
    return field;
  }

  Expression read_text(unsigned depth) {
    const bool bytes = below(4) == 0;
    const auto capacity = static_cast<uint16_t>(2 + below(24));
    return make_expression(bytes ? ExpressionKind::ReadBytes : ExpressionKind::ReadString,
                           {.kind = bytes ? TypeKind::Bytes : TypeKind::String,
                            .size_bytes = 0,
                            .is_signed = false,
                            .capacity_bytes = capacity},
                           {address(depth)});
  }

  Expression unary(const Type& type, unsigned depth) {
    Expression e = make_expression(ExpressionKind::Unary, type, {integer(type, depth - 1)});
    e.unary = below(2) == 0 ? query::UnaryOperator::Negate : query::UnaryOperator::Complement;
    return e;
  }

  Expression arithmetic(const Type& type, unsigned depth) {
    constexpr BinaryOperator kOperators[] = {BinaryOperator::Multiply,   BinaryOperator::Divide,
                                             BinaryOperator::Modulo,     BinaryOperator::Add,
                                             BinaryOperator::Subtract,   BinaryOperator::ShiftLeft,
                                             BinaryOperator::ShiftRight, BinaryOperator::And,
                                             BinaryOperator::Xor,        BinaryOperator::Or};
    const BinaryOperator op = kOperators[below(std::size(kOperators))];
    const bool shifts = op == BinaryOperator::ShiftLeft || op == BinaryOperator::ShiftRight;
    return binary(op, type, integer(type, depth - 1), integer(shifts ? kAddress : type, depth - 1));
  }

  Expression function(const Type& type, unsigned depth) {
    switch (below(6)) {
      case 0:
        return call(Function::Min, type, {integer(type, depth - 1), integer(type, depth - 1)});
      case 1:
        return call(Function::Max, type, {integer(type, depth - 1), integer(type, depth - 1)});
      case 2:
        return call(Function::Abs, type, {integer(type, depth - 1)});
      case 3:
        return convert(call(Function::Log2, kTruth, {integer(this->type(), depth - 1)}), type);
      case 4:
        return convert(call(Function::Hash, kAddress, {read_text(depth - 1)}), type);
      default:
        return convert(call(Function::Hash, kAddress, {integer(this->type(), depth - 1)}), type);
    }
  }

  Expression condition(unsigned depth) {
    if (depth == 0) return compare(0);
    switch (below(7)) {
      case 0: {
        Expression e = make_expression(ExpressionKind::Unary, kTruth, {integer(type(), depth - 1)});
        e.unary = query::UnaryOperator::Not;
        return e;
      }
      case 1:
        return binary(BinaryOperator::LogicalAnd, kTruth, condition(depth - 1),
                      integer(type(), depth - 1));
      case 2:
        return binary(BinaryOperator::LogicalOr, kTruth, condition(depth - 1),
                      condition(depth - 1));
      case 3:
        return about_text(depth - 1);
      case 4: {
        const Type of = type();
        Expression e = make_expression(ExpressionKind::In, kTruth, {integer(of, depth - 1)});
        for (uint64_t i = 0; i <= below(4); ++i) {
          e.operands.push_back(constant(of, number()));
        }
        return e;
      }
      default:
        return compare(depth - 1);
    }
  }

  Expression about_text(unsigned depth) {
    constexpr std::string_view kWords[] = {"",
                                           "a",
                                           "get",
                                           "getrange",
                                           "get_longer_than_one_word",
                                           "g",
                                           "12345678",
                                           "123456789",
                                           "much longer than any text that is in the memory"};
    const auto word = [&] { return text(kWords[below(std::size(kWords))]); };
    Expression left = read_text(depth);
    if (below(3) == 0) return call(Function::StartsWith, kTruth, {std::move(left), word()});
    left.kind = ExpressionKind::ReadString;
    left.type.kind = TypeKind::String;
    if (below(2) == 0) {
      return make_expression(ExpressionKind::In, kTruth, {std::move(left), word(), word(), word()});
    }
    const auto op = below(2) == 0 ? BinaryOperator::Equal : BinaryOperator::NotEqual;
    return binary(op, kTruth, std::move(left), word());
  }

  Expression compare(unsigned depth) {
    constexpr BinaryOperator kOperators[] = {BinaryOperator::Less,    BinaryOperator::LessEqual,
                                             BinaryOperator::Greater, BinaryOperator::GreaterEqual,
                                             BinaryOperator::Equal,   BinaryOperator::NotEqual};
    const Type of = type();
    return binary(kOperators[below(std::size(kOperators))], kTruth, integer(of, depth),
                  integer(of, depth));
  }

  std::mt19937_64 random_;
  std::vector<Type> lets_;
};

class ContextBindings final : public Bindings {
 public:
  ContextBindings(const query::Query& query, const abi::Context& context)
      : query_(query), context_(context) {}

  aggregate::Value field(const Expression& e) override {
    return static_cast<int64_t>(e.index < 6 ? context_.arguments[e.index]
                                            : context_.stack_arguments[e.index - 6U]);
  }
  aggregate::Value input(uint16_t) override { return {}; }
  aggregate::Value let(uint16_t index) override {
    return evaluate(query_.lets[index].expression, *this);
  }
  aggregate::Value value(uint16_t) override { return {}; }
  aggregate::Value aggregate(uint16_t) override { return {}; }
  aggregate::Value memory(const Expression& e, uint64_t address) override {
    const bool is_text = e.type.kind != TypeKind::Integer;
    const size_t size = is_text ? e.type.capacity_bytes : e.type.size_bytes;
    std::string bytes(size, '\0');
    EXPECT_TRUE(read_fake_memory({reinterpret_cast<uint8_t*>(bytes.data()), size}, address));
    if (e.kind == ExpressionKind::ReadBytes) return bytes;
    if (is_text) return bytes.substr(0, std::min(size - 1, bytes.find('\0')));
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data(), size);
    const auto number = static_cast<uint64_t>(constant(e.type, bits).integer);
    if (e.type.is_signed) return static_cast<int64_t>(number);
    return number;
  }

 private:
  const query::Query& query_;
  const abi::Context& context_;
};

Expected<isa::Program> program_of(const query::Query& query, const Expression& expression) {
  const query::Source source;
  const CoderEnvironment environment;
  Coder coder(query, source, environment);
  coder.begin();
  CLEW_TRY(coder.value(expression));
  coder.builder()
      .load_window(isa::Register::R2, kResultOffset)
      .store(isa::Size::Double, isa::Register::R2, 0, isa::Register::R0);
  return coder.finish("expression");
}

TEST(Expression, ProgramsComputeWhatEvaluateSays) {
  std::vector<uint8_t> window(4096);
  for (uint64_t seed = 0; seed < 600; ++seed) {
    Generator generator(seed);
    query::Query query;
    generator.add_let(query);
    generator.add_let(query);
    const Expression expression =
        generator.integer(generator.type(), static_cast<unsigned>(1 + seed % 6));
    ASSERT_TRUE(probe_can(expression));
    const Expected<isa::Program> program = program_of(query, expression);
    ASSERT_TRUE(program.has_value()) << program.error().message;
    for (int hit = 0; hit < 6; ++hit) {
      abi::Context context{};
      for (uint64_t& argument : context.arguments) {
        argument = generator.number();
      }
      for (uint64_t& argument : context.stack_arguments) {
        argument = generator.number();
      }
      isa::RegionHost host({});
      host.read_memory = read_fake_memory;
      std::memset(window.data() + kResultOffset, 0xee, 8);
      const auto outcome =
          isa::interpret(*program, {.window = window, .context = &context, .host = &host});
      ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
      uint64_t computed = 0;
      std::memcpy(&computed, window.data() + kResultOffset, sizeof computed);
      ContextBindings bindings(query, context);
      ASSERT_EQ(computed, bits_of(evaluate(expression, bindings)))
          << "seed " << seed << ": " << query::print(expression, query);
    }
  }
}

// A sum of products of fields: each product waits in the frame while the next is computed.
TEST(Expression, WaitingOperandsShareTheFrame) {
  Expression sum = constant(kLong, 0);
  for (int i = 0; i < 100; ++i) {
    Expression product = binary(BinaryOperator::Multiply, kLong, constant(kLong, 3),
                                binary(BinaryOperator::Add, kLong, sum, constant(kLong, 1)));
    sum = binary(BinaryOperator::Add, kLong,
                 binary(BinaryOperator::Xor, kLong, constant(kLong, 5), constant(kLong, 6)),
                 std::move(product));
    if (i == 20) break;  // Deep to the right: as many words wait as there are levels.
  }
  EXPECT_TRUE(program_of({}, sum).has_value());
  Expression wide = constant(kLong, 0);
  for (int i = 0; i < 150; ++i) {
    Expression product =
        binary(BinaryOperator::Multiply, kLong, constant(kLong, 3), constant(kLong, 4));
    wide = binary(BinaryOperator::Add, kLong, std::move(wide), std::move(product));
  }
  EXPECT_TRUE(program_of({}, wide).has_value());
}

TEST(Expression, TextThatDoesNotFitTheFrameIsAnError) {
  query::Query query;
  Expression all = constant(kTruth, 0);
  for (int i = 0; i < 3; ++i) {
    Expression read = make_expression(ExpressionKind::ReadString,
                                      {.kind = TypeKind::String,
                                       .size_bytes = 0,
                                       .is_signed = false,
                                       .capacity_bytes = query::kStringMaxBytes},
                                      {constant(kAddress, kFakeMemoryStart)});
    query.lets.push_back({.name = "s", .expression = read});
    Expression let = make_expression(ExpressionKind::Let, read.type);
    let.index = static_cast<uint16_t>(i);
    all = binary(BinaryOperator::LogicalOr, kTruth, std::move(all),
                 binary(BinaryOperator::Equal, kTruth, std::move(let), text("x")));
  }
  const Expected<isa::Program> program = program_of(query, all);
  ASSERT_FALSE(program.has_value());
  EXPECT_EQ(program.error().code, ErrorCode::Limit);
  EXPECT_NE(program.error().message.find("512 bytes"), std::string::npos);
}

// A span of which the product with the multiplier has more than 64 bits.
TEST(Elapsed, IsRightForCallsThatLastForYears) {
  constexpr uint64_t kTicks = uint64_t{1} << 62;
  Hit entry{.at_exit = false, .function = 0, .time = 1000, .cpu = 0};
  entry.context.frame = 0x7fff'0000'0000;
  entry.context.tid = 7;
  Hit exit = entry;
  exit.at_exit = true;
  exit.time = entry.time + kTicks;
  FakeThread thread;
  thread.hits = {entry, exit};
  const query::Text text{.name = "query",
                         .text = R"(from e in return("app!work") select sum(e.elapsed))"};
  const Expected<query::Query> query = query::parse(text, {});
  ASSERT_TRUE(query.has_value()) << query.error().message;
  const Expected<FakeAnswer> got = answer_of(clew::plan::make(*query), {&thread, 1});
  ASSERT_TRUE(got.has_value()) << got.error().message;
  ASSERT_EQ(got->rows.size(), 1U);
  // The fake clock has 3 / 2^6 nanoseconds a tick.
  EXPECT_EQ(got->rows[0][0], aggregate::Value(static_cast<int64_t>(kTicks / 64 * 3)));
}

}  // namespace
}  // namespace clew::answer
