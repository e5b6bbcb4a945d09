// SPDX-License-Identifier: Apache-2.0
// Events of calls that are open at the end of the session: what a probe would have computed of them
// is computed here, from the record of the entry and from memory as it is now.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "answer/intake.h"
#include "plan/evaluate.h"

namespace clew::answer {

using aggregate::Value;
using query::Expression;
using query::ExpressionKind;
using query::Field;

class Intake::OpenBindings final : public plan::Bindings {
 public:
  OpenBindings(Intake& intake, const query::Query& query, const OpenCall& call,
               ProcessMemory& memory)
      : intake_(intake),
        query_(query),
        source_(query.sources[call.source]),
        clock_(intake.lowered_.clock),
        call_(call),
        memory_(memory) {}

  [[nodiscard]] bool is_unreadable() const { return is_unreadable_; }

  Value field(const Expression& expression) override {
    switch (expression.field) {
      case Field::Time:
        return static_cast<int64_t>(clock_.monotonic_ns(call_.end_ticks));
      case Field::Elapsed:
        return static_cast<int64_t>(clock_.monotonic_ns(call_.end_ticks) -
                                    clock_.monotonic_ns(call_.entry_ticks));
      case Field::Tid:
        return static_cast<int64_t>(call_.tid);
      case Field::Caller:
        return call_.caller;
      case Field::EntryArgument:
        return argument(expression);
      case Field::Pid:
      case Field::ProcName:
      case Field::Host:
      case Field::NodeName:
        return name(expression.field, call_.process);
      case Field::Container:
      case Field::Unit:
      case Field::ControlGroup:
      case Field::User:
      case Field::Uid:
        return name(expression.field,
                    intake_.decoder_.process_word(expression.field, call_.process));
      case Field::Comm:
        return name(expression.field, call_.tid);
      case Field::Function:
      case Field::Module:
      case Field::Probe:
        return name(expression.field, call_.names);
      case Field::Cpu:
      case Field::Stack:
      case Field::UserStack:
      case Field::KernelStack:
      case Field::Argument:
      case Field::ReturnValue:
        return {};
    }
    return {};
  }
  Value input(uint16_t index) override { return evaluate(source_.inputs[index], *this); }
  Value let(uint16_t index) override { return evaluate(query_.lets[index].expression, *this); }
  Value value(uint16_t) override { return {}; }
  Value aggregate(uint16_t) override { return {}; }

  Value memory(const Expression& expression, uint64_t address) override {
    if (expression.kind == ExpressionKind::ReadString) return text(expression, address);
    const bool is_number = expression.kind == ExpressionKind::Load;
    const size_t size = is_number ? expression.type.size_bytes : expression.type.capacity_bytes;
    std::vector<uint64_t> words((size + 7) / 8);
    if (!read(address, {reinterpret_cast<uint8_t*>(words.data()), size})) return {};
    Value whole;
    intake_.decoder_.decode(expression, words, call_.process, whole);
    if (!is_number || expression.type.kind == query::TypeKind::Float) return whole;
    Expression narrowed;  // Sign and width.
    narrowed.type = expression.type;
    narrowed.integer = static_cast<int64_t>(words[0]);
    return evaluate(narrowed, *this);
  }

 private:
  Value name(Field field, uint64_t word) {
    Value value;
    (void)intake_.decoder_.name_field(field, word, call_.process, value);
    return value;
  }

  Value argument(const Expression& expression) {
    const plan::RecordShape& shape = intake_.lowered_.records;
    const auto found = std::find(shape.arguments.begin(), shape.arguments.end(), expression.index);
    const auto word =
        static_cast<size_t>(found - shape.arguments.begin()) + (shape.has_time ? 1 : 0);
    if (found == shape.arguments.end() || word >= call_.payload.size()) return {};
    Value value;
    intake_.decoder_.decode(expression, call_.payload.subspan(word, 1), call_.process, value);
    return value;
  }

  bool read(uint64_t address, std::span<uint8_t> bytes) {
    const bool is_read = memory_.read(call_.process, address, bytes);
    is_unreadable_ = is_unreadable_ || !is_read;
    return is_read;
  }

  // Up to its NUL, which may be the last byte before memory that is not there.
  Value text(const Expression& expression, uint64_t address) {
    constexpr uint64_t kPage = 4096;
    std::string result;
    const size_t size_max = expression.type.capacity_bytes - size_t{1};
    while (result.size() < size_max) {
      const uint64_t at = address + result.size();
      std::vector<uint8_t> bytes(std::min<uint64_t>(size_max - result.size(), kPage - at % kPage));
      if (!read(at, bytes)) return {};
      const auto end = std::find(bytes.begin(), bytes.end(), uint8_t{0});
      result.append(bytes.begin(), end);
      if (end != bytes.end()) break;
    }
    return result;
  }

  Intake& intake_;
  const query::Query& query_;
  const query::Source& source_;
  const plan::Clock& clock_;
  const OpenCall& call_;
  ProcessMemory& memory_;
  bool is_unreadable_ = false;
};

bool Intake::take_open(const query::Query& query, const OpenCall& call, ProcessMemory& memory,
                       RowBatch& rows) {
  OpenBindings bindings(*this, query, call, memory);
  const bool pass = plan::are_true(query.where, bindings);
  if (bindings.is_unreadable()) return false;
  if (!pass) return true;
  select(query, bindings, true);
  if (bindings.is_unreadable()) return false;
  rows_.set(rows);
  behind_selection().take(selected_);
  return true;
}

}  // namespace clew::answer
