// SPDX-License-Identifier: Apache-2.0
// The programs of joins in place: those that pack, that act on contexts, and what stands in front
// of the answer.
#include <bit>

#include <fmt/format.h>

#include "abi/region.h"
#include "base/assert.h"
#include "plan/lowering.h"
#include "plan/update.h"
#include "query/print.h"

namespace clew::plan {

using isa::Alu;
using isa::Jump;
using isa::Label;
using isa::Register;
using isa::Size;

namespace {

// Offset in a context of a bag.
int32_t bag_at(const abi::ContextLayout& layout, uint16_t bag) {
  return static_cast<int32_t>(8 * (abi::kContextBags + bag * layout.bag_words));
}

}  // namespace

uint32_t CoderEnvironment::packed_at(const query::Expression& column) const {
  CLEW_ASSERT(packed != nullptr && column.stream > 0 && column.stream <= packed->bags.size());
  const auto bag = static_cast<uint16_t>(column.stream - 1);
  return contexts.offset + static_cast<uint32_t>(bag_at(contexts, bag)) +
         8 * packed->bags[bag].column_words[column.index];
}

Expected<void> Lowering::place_contexts() {
  if (plan_.contexts.duties.empty()) return {};
  abi::ContextLayout& layout = result_.layout.contexts;
  layout.bags = static_cast<uint16_t>(plan_.contexts.bags.size());
  layout.bag_words = plan_.contexts.bag_words();
  CLEW_ASSERT(layout.words() <= abi::kContextWordsMax);
  if (plan_.contexts.are_counted)
    result_.duty_words = kDutyCounters * static_cast<uint32_t>(plan_.contexts.duties.size());
  const uint32_t counters = 8 * result_.duty_words + abi::kContextCountersBytes;
  layout.offset = place(counters + uint64_t{8} * layout.words()) + counters;
  const uint32_t block_bytes = 8 * layout.block_words();
  layout.blocks_log2 =
      static_cast<uint16_t>(std::bit_width(abi::kContextBlocksBytes / block_bytes) - 1);
  layout.blocks_offset = place(uint64_t{block_bytes} << layout.blocks_log2, 4096);
  environment_.contexts = layout;
  environment_.packed = &plan_.contexts;
  return {};
}

// An act, or a packed event, that is missed would make others wrong.
Expected<void> Lowering::check_duty(uint16_t source) const {
  const Duty* const duty = duty_of(source);
  if (duty == nullptr || duty->kind == Duty::Kind::Answer) return {};
  const Use use = use_of(query_.sources[source]);
  const bool is_act = duty->kind == Duty::Kind::Act;
  if (use.functions.empty() && (!is_act || (!use.any() && !use.memory))) return {};
  return fail(ErrorCode::InvalidQuery,
              fmt::format("this query is not answered in place: {} {} (--plan emit answers it)",
                          query::print(query_.sources[source]),
                          use.functions.empty() ? "asks for more than its arguments or its result"
                                                : "calls a function of an extension"));
}

void Lowering::count_of_contexts(Coder& coder, abi::ContextCounter counter) const {
  coder.count_loss(result_.layout.contexts.offset - abi::kContextCountersBytes +
                   8 * static_cast<uint32_t>(counter));
}

// In front of the counters of contexts.
void Lowering::count_of_duty(Coder& coder, uint16_t source, DutyCounter counter) const {
  if (result_.duty_words == 0) return;
  const uint32_t word = kDutyCounters * source + static_cast<uint32_t>(counter);
  coder.count_loss(result_.layout.contexts.offset - abi::kContextCountersBytes -
                   8 * (result_.duty_words - word));
}

// Leaves when the register is 0, and counts that.
void Lowering::require(Coder& coder, Register value, abi::ContextCounter otherwise) {
  const Label none = coder.builder().label();
  coder.builder().jump_if(Jump::Equal, value, 0, none);
  coder.out_of_line([this, &coder, none, otherwise] {
    coder.builder().bind(none);
    count_of_contexts(coder, otherwise);
    coder.builder().jump(coder.exit_label());
  });
}

// r9 = the context of the thread; leaves when it is in no request.
void Lowering::open_context(Coder& coder, const Duty& duty) {
  coder.builder().call(abi::Accessor::ContextOpen);
  require(coder, Register::R0, abi::ContextCounter::NoRequest);
  coder.builder().move(Register::R9, Register::R0);
  count_of_duty(coder, static_cast<uint16_t>(&duty - plan_.contexts.duties.data()),
                DutyCounter::InRequest);
}

// r0 = the number of this packed event, one more than the last one's. Uses r9.
void Lowering::count_event(Coder& coder) {
  constexpr int32_t kNumber = 8 * abi::kContextNumber;
  coder.builder()
      .load(Size::Double, Register::R0, Register::R9, kNumber)
      .alu(Alu::Add, Register::R0, 1)
      .store(Size::Double, Register::R9, kNumber, Register::R0);
}

// Leaves unless there is an event of each joined stream.
void Lowering::unpack(Coder& coder, const Duty& duty) {
  open_context(coder, duty);
  for (const query::Expression& number : duty.operands) {
    const uint32_t offset = environment_.packed_at(number) - result_.layout.contexts.offset;
    coder.builder().load(Size::Double, Register::R2, Register::R9, static_cast<int32_t>(offset));
    require(coder, Register::R2, abi::ContextCounter::Unjoined);
  }
}

// The columns of a bag, but for its number, behind [base + offset]. A text may have more room than
// this source fills.
Expected<void> Lowering::store_columns(Coder& coder, const Duty& duty, Register base,
                                       int32_t offset) const {
  const Bag& bag = plan_.contexts.bags[duty.bag];
  CLEW_ASSERT(bag.column_words.size() == duty.operands.size() + 1);
  for (size_t i = 0; i < duty.operands.size(); ++i) {
    const uint32_t begin = bag.column_words[i + 1];
    const uint32_t end = i + 2 < bag.column_words.size() ? bag.column_words[i + 2] : bag.words;
    CLEW_TRY(coder.store(duty.operands[i], base, offset + static_cast<int32_t>(8 * begin)));
    for (uint32_t word = begin + stored_words(duty.operands[i]); word < end; ++word)
      coder.builder().store(Size::Double, base, offset + static_cast<int32_t>(8 * word), 0);
  }
  return {};
}

// Which event it was that the bag of cells at r9 + `at` has last.
void Lowering::name_counted(Coder& coder, int32_t at) {
  constexpr int32_t kCounted = 8 * abi::kContextCounted;
  coder.builder()
      .load(Size::Double, Register::R0, Register::R9, kCounted)
      .alu(Alu::Add, Register::R0, 1)
      .store(Size::Double, Register::R9, kCounted, Register::R0)
      .store(Size::Double, Register::R9, at + 8, Register::R0);
}

// What cannot be read leaves the cells as they were: it is read first.
Expected<void> Lowering::pack_cells(Coder& coder, const Duty& duty) {
  const Bag& bag = plan_.contexts.bags[duty.bag];
  CLEW_ASSERT(bag.column_words.size() == duty.cells.size() + 1);
  const int32_t at = bag_at(result_.layout.contexts, duty.bag);
  std::vector<int32_t> prepared;
  prepared.reserve(duty.cells.size());
  for (const query::Aggregate& cell : duty.cells)
    prepared.push_back(CLEW_TRY(prepare(coder, cell)));
  open_context(coder, duty);
  coder.builder()
      .load(Size::Double, Register::R0, Register::R9, at)
      .alu(Alu::Add, Register::R0, 1)
      .store(Size::Double, Register::R9, at, Register::R0);
  if (plan_.contexts.are_joined()) name_counted(coder, at);
  for (size_t i = 0; i < duty.cells.size(); ++i) {
    const int32_t cell = at + static_cast<int32_t>(8 * bag.column_words[i + 1]);
    CLEW_TRY(update(coder, duty.cells[i], static_cast<uint32_t>(cell), prepared[i]));
  }
  return {};
}

// What cannot be read leaves the bag as it was: it is read first.
Expected<void> Lowering::pack(Coder& coder, const Duty& duty, const Use& use) {
  const Bag& bag = plan_.contexts.bags[duty.bag];
  if (bag.kind == abi::BagKind::Cells) return pack_cells(coder, duty);
  const int32_t at = bag_at(result_.layout.contexts, duty.bag);
  isa::Builder& builder = coder.builder();
  const int32_t area = use.memory ? CLEW_TRY(coder.reserve(8 * bag.words)) : 0;
  if (use.memory) CLEW_TRY(store_columns(coder, duty, Register::R10, area));
  open_context(coder, duty);
  count_event(coder);
  if (bag.kind == abi::BagKind::First) {
    builder.load(Size::Double, Register::R2, Register::R9, at)
        .jump_if(Jump::NotEqual, Register::R2, 0, coder.exit_label());
  }
  builder.store(Size::Double, Register::R9, at, Register::R0);
  if (plan_.contexts.are_joined())
    builder.call(abi::Accessor::Time).store(Size::Double, Register::R9, at + 8, Register::R0);
  if (!use.memory) return store_columns(coder, duty, Register::R9, at);
  for (int32_t offset = 16; offset < static_cast<int32_t>(8 * bag.words); offset += 8) {
    builder.load(Size::Double, Register::R0, Register::R10, area + offset)
        .store(Size::Double, Register::R9, at + offset, Register::R0);
  }
  return {};
}

// Whether the answer's program goes on behind it.
Expected<bool> Lowering::perform(Coder& coder, uint16_t source, const Use& use) {
  const Duty& duty = plan_.contexts.duties[source];
  if (duty.condition) CLEW_TRY(coder.require(*duty.condition));
  count_of_duty(coder, source, DutyCounter::Events);
  switch (duty.kind) {
    case Duty::Kind::Pack:
      CLEW_TRY(pack(coder, duty, use));
      break;
    case Duty::Kind::Act:
      CLEW_TRY(act(coder, duty));
      break;
    case Duty::Kind::Answer:
      unpack(coder, duty);
      break;
  }
  count_of_duty(coder, source, DutyCounter::Done);
  return duty.kind == Duty::Kind::Answer;
}

Expected<void> Lowering::act(Coder& coder, const Duty& duty) {
  if (duty.operands.empty()) {
    coder.builder().move(Register::R2, 0);
  } else {
    CLEW_TRY(coder.value(duty.operands[0]));
    coder.builder().move(Register::R2, Register::R0);
  }
  coder.builder()
      .move(Register::R1, static_cast<int32_t>(duty.act))
      .load_constant(Register::R3, plan_.contexts.kinds())
      .call(abi::Accessor::ContextAct);
  if (duty.is_weak) count_of_contexts(coder, abi::ContextCounter::Weak);
  if (duty.act == abi::ContextAct::Begin) count_of_contexts(coder, abi::ContextCounter::Requests);
  if (duty.act != abi::ContextAct::Take && duty.act != abi::ContextAct::Join) return {};
  require(coder, Register::R0, abi::ContextCounter::NoContext);
  const auto leave_at = [&](abi::ContextOutcome outcome, abi::ContextCounter counter) {
    const auto value = static_cast<int32_t>(outcome);
    coder.builder().move(Register::R2, Register::R0).alu(Alu::Xor, Register::R2, value);
    require(coder, Register::R2, counter);
  };
  // Why that is so has been counted.
  coder.builder().jump_if(Jump::Equal, Register::R0,
                          static_cast<int32_t>(abi::ContextOutcome::InDoubt), coder.exit_label());
  leave_at(abi::ContextOutcome::Other, abi::ContextCounter::Other);
  leave_at(abi::ContextOutcome::Overlap, abi::ContextCounter::Overlap);
  count_of_contexts(
      coder, static_cast<abi::ContextCounter>(static_cast<uint32_t>(abi::ContextCounter::Edges) +
                                              static_cast<uint32_t>(duty.how)));
  return {};
}

}  // namespace clew::plan
