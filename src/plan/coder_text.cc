// SPDX-License-Identifier: Apache-2.0
// The text half of Coder, and what a probe can compute at all.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "abi/context.h"
#include "abi/query_window.h"
#include "plan/coder.h"
#include "plan/coder_parts.h"
#include "plan/kernel_form.h"
#include "query/walk.h"

namespace clew::plan {

using isa::Alu;
using isa::Jump;
using isa::Label;
using isa::Register;
using isa::Size;
using query::Expression;
using query::ExpressionKind;
using query::Field;
using query::TypeKind;

namespace {

// The bytes [at, at + 8) of a text as a little-endian word; zeros behind its end.
uint64_t word_at(std::string_view text, size_t at) {
  uint64_t word = 0;
  if (at < text.size()) {
    std::memcpy(&word, text.data() + at, std::min<size_t>(8, text.size() - at));
  }
  return word;
}

enum class FieldHome : uint8_t {
  Probe,   // The probe has its value.
  Tracer,  // The probe has words from which the tracer makes it.
};

FieldHome home_of(Field field) {
  switch (field) {
    case Field::Time:
    case Field::Tid:
    case Field::Cpu:
    case Field::Caller:
    case Field::Argument:
    case Field::ReturnValue:
    case Field::Elapsed:
    case Field::EntryArgument:
      return FieldHome::Probe;
    case Field::Pid:
    case Field::Comm:
    case Field::ProcName:
    case Field::Host:
    case Field::NodeName:
    case Field::Container:
    case Field::Unit:
    case Field::ControlGroup:
    case Field::User:
    case Field::Uid:
    case Field::Function:
    case Field::Module:
    case Field::Probe:
    case Field::Stack:
    case Field::UserStack:
    case Field::KernelStack:
      return FieldHome::Tracer;
  }
  return {};
}

bool decoded_by_tracer(const Expression& expression) {
  return expression.kind == ExpressionKind::Field && home_of(expression.field) == FieldHome::Tracer;
}

bool computes_function(query::Function function) {
  switch (function) {
    case query::Function::Log2:
    case query::Function::Min:
    case query::Function::Max:
    case query::Function::Abs:
    case query::Function::Hash:
    case query::Function::StartsWith:
    case query::Function::Sample:
    case query::Function::Extension:
      return true;
    case query::Function::Len:
    case query::Function::Substr:
    case query::Function::Before:
    case query::Function::Contains:
    case query::Function::Like:
    case query::Function::Hex:
    case query::Function::Cut:
    case query::Function::WideText:
    case query::Function::Address:
    case query::Function::SocketAddress:
    case query::Function::Print:
    case query::Function::IsNothing:
      return false;
  }
  return {};
}

// Text comparisons are between text in memory and a constant, for equality only.
bool computes_text_comparison(const Expression& expression) {
  return query::is_equality(expression.binary) &&
         expression.operands[1].kind == ExpressionKind::String;
}

bool computes_node(const Expression& expression) {
  switch (expression.kind) {
    case ExpressionKind::Integer:
    case ExpressionKind::String:
    case ExpressionKind::Input:
    case ExpressionKind::Let:
    case ExpressionKind::Unary:
    case ExpressionKind::Convert:
    case ExpressionKind::Load:
    case ExpressionKind::ReadString:
    case ExpressionKind::ReadBytes:
    case ExpressionKind::In:
    case ExpressionKind::Conditional:
    case ExpressionKind::JoinColumn:
      return true;
    case ExpressionKind::Binary:
      return !is_text(expression.operands[0].type) || computes_text_comparison(expression);
    case ExpressionKind::Field:
      return home_of(expression.field) == FieldHome::Probe;
    case ExpressionKind::Call:
      return computes_function(expression.function);
    case ExpressionKind::Float:
    case ExpressionKind::Value:
    case ExpressionKind::Aggregate:
      return false;
  }
  return false;
}

}  // namespace

bool probe_can(const Expression& expression) {
  if (expression.type.kind == TypeKind::Float || expression.type.kind == TypeKind::Stack) {
    return false;
  }
  return computes_node(expression) &&
         std::all_of(expression.operands.begin(), expression.operands.end(), probe_can);
}

// A probe reads the bits of a real number; the tracer knows what they mean.
bool loads_real(const Expression& expression) {
  if (expression.type.kind != TypeKind::Float) return false;
  if (expression.kind == ExpressionKind::Load) return probe_can(expression.operands[0]);
  return expression.kind == ExpressionKind::Field;
}

bool probe_can_store(const Expression& expression) {
  return decoded_by_tracer(expression) || loads_real(expression) || probe_can(expression);
}

uint32_t frames_of(const Expression& expression) {
  return expression.type.capacity_bytes / 8;
}

bool is_stored_as_word(const Expression& expression) {
  if (expression.type.kind == TypeKind::Stack) return false;
  return decoded_by_tracer(expression) || !is_text(expression.type);
}

uint32_t stored_words(const Expression& expression) {
  if (is_stored_as_word(expression)) return 1;
  if (expression.type.kind == TypeKind::Stack) return abi::stack_words(frames_of(expression));
  return text_words(expression.type.capacity_bytes);
}

// In a file of events it is a value like others.
bool is_own_stack(const Expression& expression) {
  return expression.type.kind == TypeKind::Stack && expression.kind != ExpressionKind::Field &&
         expression.kind != ExpressionKind::Let;
}

bool has_own_length(const Expression& expression) {
  if (is_own_stack(expression)) return true;
  return !is_stored_as_word(expression) && expression.type.kind == TypeKind::String &&
         expression.type.capacity_bytes > query::kStringDefaultBytes;
}

uint32_t count_samples(const Expression& expression) {
  uint32_t count = 0;
  query::visit(expression, [&count](const Expression& node) {
    const bool is_sample =
        node.kind == ExpressionKind::Call && node.function == query::Function::Sample;
    if (is_sample) ++count;
  });
  return count;
}

Label Coder::unreadable() {
  if (!unreadable_) {
    unreadable_ = builder_.label();
    out_of_line([this] {
      builder_.bind(*unreadable_);
      count_loss(offsetof(abi::RegionHeader, missed_unreadable));
      builder_.jump(exit_);
    });
  }
  return *unreadable_;
}

Expected<void> Coder::store_sized_text(const Expression& expression, int32_t offset) {
  CLEW_TRY(need_lets(expression));
  CLEW_TRY(text_with_length(expression, offset + 8));
  builder_.store(Size::Double, Register::R9, offset, Register::R0);
  return {};
}

Expected<void> Coder::text_with_length(const Expression& expression, int32_t offset) {
  if (expression.kind == ExpressionKind::Input) {
    return text_with_length(source_->inputs[expression.index], offset);
  }
  if (expression.kind == ExpressionKind::Conditional) {
    return choose_text_with_length(expression, offset);
  }
  const auto whole = static_cast<int32_t>(8 * stored_words(expression));
  if (expression.kind != ExpressionKind::ReadString) {
    CLEW_TRY(store_text(expression, Register::R9, offset));
    builder_.move(Register::R0, whole);
    return {};
  }
  const uint32_t bytes = expression.type.capacity_bytes;
  if (expression.operands.size() == 2) {
    CLEW_TRY(read_counted(expression, Register::R9, offset));
  } else {
    CLEW_TRY(integer(expression.operands[0]));
    if (bytes % 8 != 0) builder_.store(Size::Double, Register::R9, offset + whole - 8, 0);
    CLEW_TRY(read_long_text({.base = Register::R9, .offset = offset, .capacity = bytes}));
  }
  // The mask is one that the kernel's verifier understands: what all texts of an event may have is
  // less than twice what they were given.
  builder_.alu(Alu::Add, Register::R0, 7)
      .alu(Alu::And, Register::R0, static_cast<int32_t>(2 * std::bit_ceil(bytes) - 8));
  return {};
}

Expected<void> Coder::choose_text_with_length(const Expression& expression, int32_t offset) {
  const Label otherwise = builder_.label();
  const Label done = builder_.label();
  CLEW_TRY(branch(expression.operands[0], false, otherwise));
  CLEW_TRY(text_with_length(expression.operands[1], offset));
  builder_.jump(done).bind(otherwise);
  CLEW_TRY(text_with_length(expression.operands[2], offset));
  builder_.bind(done);
  return {};
}

Expected<int32_t> Coder::text_in_frame(const Expression& expression) {
  if (expression.kind == ExpressionKind::Let) return lets_.at(expression.index);
  const int32_t area = CLEW_TRY(reserve(8 * stored_words(expression)));
  CLEW_TRY(store_text(expression, Register::R10, area));
  return area;
}

Expected<void> Coder::store_text(const Expression& expression, Register base, int32_t offset) {
  const uint32_t words = stored_words(expression);
  switch (expression.kind) {
    case ExpressionKind::Input:
      return store_text(source_->inputs[expression.index], base, offset);
    case ExpressionKind::ReadString:
    case ExpressionKind::ReadBytes:
      return read_memory(expression, base, offset);
    case ExpressionKind::Let:
      for (uint32_t word = 0; word < words; ++word) {
        const auto at = static_cast<int32_t>(8 * word);
        builder_.load(Size::Double, Register::R0, Register::R10, lets_.at(expression.index) + at)
            .store(Size::Double, base, offset + at, Register::R0);
      }
      return {};
    case ExpressionKind::String:
      for (uint32_t word = 0; word < words; ++word) {
        const auto at = static_cast<int32_t>(8 * word);
        builder_.load_constant(Register::R0, word_at(expression.text, size_t{8} * word))
            .store(Size::Double, base, offset + at, Register::R0);
      }
      return {};
    case ExpressionKind::JoinColumn:
      builder_.load_window(Register::R3, environment_.packed_at(expression));
      for (uint32_t word = 0; word < words; ++word) {
        const auto at = static_cast<int32_t>(8 * word);
        builder_.load(Size::Double, Register::R0, Register::R3, at)
            .store(Size::Double, base, offset + at, Register::R0);
      }
      return {};
    case ExpressionKind::Conditional:
      return choose_text(expression, base, offset);
    case ExpressionKind::Integer:
    case ExpressionKind::Float:
    case ExpressionKind::Field:
    case ExpressionKind::Value:
    case ExpressionKind::Aggregate:
    case ExpressionKind::Unary:
    case ExpressionKind::Binary:
    case ExpressionKind::Convert:
    case ExpressionKind::Load:
    case ExpressionKind::Call:
    case ExpressionKind::In:
      return fail(ErrorCode::InvalidQuery, "text that a probe cannot compute");
  }
  return {};
}

// Only the memory of the chosen side is read.
Expected<void> Coder::choose_text(const Expression& expression, Register base, int32_t offset) {
  const Label otherwise = builder_.label();
  const Label done = builder_.label();
  const auto side = [&](const Expression& text) -> Expected<void> {
    CLEW_TRY(store_text(text, base, offset));
    for (uint32_t word = stored_words(text); word < stored_words(expression); ++word)
      builder_.store(Size::Double, base, offset + static_cast<int32_t>(8 * word), 0);
    return {};
  };
  CLEW_TRY(branch(expression.operands[0], false, otherwise));
  CLEW_TRY(side(expression.operands[1]));
  builder_.jump(done).bind(otherwise);
  CLEW_TRY(side(expression.operands[2]));
  builder_.bind(done);
  return {};
}

Expected<void> Coder::word(const Expression& expression) {
  CLEW_TRY(need_lets(expression));
  if (!decoded_by_tracer(expression)) return integer(expression);
  const auto context = [&](size_t at) {
    builder_.load(Size::Double, Register::R0, Register::R6, static_cast<int32_t>(at));
  };
  if (expression.field == Field::Comm) {
    context(offsetof(abi::Context, tid));
  } else if (expression.field == Field::Function) {
    load_site(Register::R0, SiteConstant::FunctionIndex);
  } else if (expression.field == Field::Module) {
    load_site(Register::R0, SiteConstant::ModuleIndex);
  } else if (expression.field == Field::Probe) {
    load_site(Register::R0, SiteConstant::ProbeIndex);
  } else if (environment_.for_kernel && query::is_of_owner(expression.field)) {
    load_owner(word_of_owner(expression.field), Register::R0);
  } else {  // pid, procName, host, nodename and its owner: the process decides.
    context(offsetof(abi::Context, process));
  }
  return {};
}

Expected<void> Coder::store(const Expression& expression, Register base, int32_t offset) {
  if (expression.type.kind == TypeKind::Stack) {
    store_stack(meaning_of(query_, *source_, expression), base, offset);
    return {};
  }
  CLEW_TRY(need_lets(expression));
  if (expression.kind == ExpressionKind::Input) {
    const Expression& own = source_->inputs[expression.index];
    CLEW_TRY(store(own, base, offset));
    // Another source may have a longer text.
    for (uint32_t word = stored_words(own); word < stored_words(expression); ++word)
      builder_.store(Size::Double, base, offset + static_cast<int32_t>(8 * word), 0);
    return {};
  }
  if (!is_stored_as_word(expression)) return store_text(expression, base, offset);
  CLEW_TRY(word(expression));
  builder_.store(Size::Double, base, offset, Register::R0);
  return {};
}

// Jumps to `differ` unless the compared bytes of the text equal those of `right`, which counts as
// padded with zeros.
void Coder::compare_text(const TextTest& test, Label differ) {
  const std::string_view right = test.right;
  const uint32_t bytes = test.prefix ? static_cast<uint32_t>(right.size()) : test.capacity;
  for (uint32_t at = 0; at < bytes; at += 8) {
    const uint32_t count = std::min<uint32_t>(8, bytes - at);
    const uint64_t wanted = word_at(right.substr(0, std::min<size_t>(right.size(), bytes)), at);
    builder_.load(Size::Double, Register::R0, Register::R10, test.left + static_cast<int32_t>(at));
    if (count < 8) {
      builder_.load_constant(Register::R3, (1ULL << (8 * count)) - 1)
          .alu(Alu::And, Register::R0, Register::R3);
    }
    if (wanted == 0) {
      builder_.jump_if(Jump::NotEqual, Register::R0, 0, differ);
    } else {
      builder_.load_constant(Register::R2, wanted)
          .jump_if(Jump::NotEqual, Register::R0, Register::R2, differ);
    }
    // The rest is padding: a text that ends here has only zeros behind.
    const bool ended = !test.prefix && at + 8 > right.size();
    if (ended && test.zero_padded) break;
  }
}

void Coder::test_text(const TextTest& test, bool when, Label target) {
  const bool any_will_do = test.prefix && test.right.empty();
  if (any_will_do || test.right.size() > test.capacity) {  // Longer than the text can be.
    builder_.move(Register::R0, any_will_do ? 1 : 0)
        .jump_if(when ? Jump::NotEqual : Jump::Equal, Register::R0, 0, target);
    return;
  }
  if (!when) return compare_text(test, target);
  const Label differ = builder_.label();
  compare_text(test, differ);
  builder_.jump(target).bind(differ);
}

// The same text, of which no more is read than a comparison with so many bytes needs.
Expression Coder::as_compared(const Expression& text, size_t bytes) const {
  if (text.kind == ExpressionKind::Input) return as_compared(source_->inputs[text.index], bytes);
  Expression result = text;
  if (text.kind == ExpressionKind::Conditional) {
    result.operands[1] = as_compared(text.operands[1], bytes);
    result.operands[2] = as_compared(text.operands[2], bytes);
    result.type.capacity_bytes =
        std::max(result.operands[1].type.capacity_bytes, result.operands[2].type.capacity_bytes);
    return result;
  }
  const size_t needed = (bytes + 2 + 7) / 8 * 8;  // With what follows, and a NUL.
  const bool is_longer = result.type.capacity_bytes > needed;
  if (text.kind == ExpressionKind::ReadString && is_longer) {
    result.type.capacity_bytes = static_cast<uint16_t>(needed);
  }
  return result;
}

Expected<void> Coder::branch_text(const Expression& expression, bool when, Label target) {
  const Expression left = as_compared(expression.operands[0], expression.operands[1].text.size());
  const bool prefix = expression.kind == ExpressionKind::Call;
  const bool is_equality = prefix || expression.binary == query::BinaryOperator::Equal;
  const int32_t mark = frame_used_;
  const int32_t area = CLEW_TRY(text_in_frame(left));
  test_text({.left = area,
             .capacity = 8 * stored_words(left),
             .right = expression.operands[1].text,
             .prefix = prefix,
             .zero_padded = left.type.kind == TypeKind::String},
            is_equality ? when : !when, target);
  release(mark);
  return {};
}

}  // namespace clew::plan
