// SPDX-License-Identifier: Apache-2.0
#include "answer/fake_machine.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <random>

#include "answer/answer.h"
#include "answer/intake.h"
#include "answer/kept_rows.h"
#include "isa/accessor_host.h"
#include "isa/interpreter.h"
#include "plan/sites.h"

namespace clew::answer {

using plan::Grouping;
using plan::Lowered;
using plan::Plan;
using plan::ProbeProgram;
using plan::ProgramPoint;
using plan::SiteConstant;
using plan::SiteNames;
using plan::StateForm;

namespace {

constexpr std::array<std::string_view, kFakeFunctions> kNames = {"work", "walk", "wait"};
constexpr uint32_t kTextBytes = 32;  // Of one text in the fake memory.
constexpr uint32_t kTexts = 32;

std::array<uint8_t, kFakeMemoryBytes> make_memory() {
  constexpr std::array<std::string_view, 8> kWords = {
      "", "a", "get", "getrange", "get_longer_than_one_word", "set", "alpha", "12345678"};
  std::array<uint8_t, kFakeMemoryBytes> memory{};
  std::mt19937_64 random(7);
  for (uint32_t i = 0; i < kTexts; ++i) {
    const std::string_view word = kWords[i % kWords.size()];
    std::memcpy(memory.data() + size_t{i} * kTextBytes, word.data(), word.size());
  }
  for (size_t i = size_t{kTexts} * kTextBytes; i < memory.size(); ++i) {
    memory[i] = static_cast<uint8_t>(random() % 4 == 0 ? random() : random() % 3);
  }
  return memory;
}

class RandomCalls {
 public:
  RandomCalls(uint64_t seed, uint64_t tid, uint64_t process)
      : random_(seed), tid_(tid), process_(process) {}

  FakeThread thread(size_t calls) {
    calls_ = calls;
    while (calls_ > 0) {
      call(0x7fff'0000'0000 + tid_ * 0x100000);
    }
    return std::move(thread_);
  }

 private:
  uint64_t below(uint64_t limit) { return random_() % limit; }

  uint64_t argument() {
    switch (below(8)) {
      case 0:
        return random_();
      case 1:
        return 0 - below(5);
      case 2:
        return 0xffff'fff0 + below(32);
      case 3:
        return uint64_t{1} << below(64);
      default:
        return below(6);
    }
  }

  uint64_t pointer() {
    if (below(12) == 0) return 0;
    if (below(2) == 0) return kFakeMemoryStart + kTextBytes * below(kTexts);
    return kFakeMemoryStart + below(kFakeMemoryBytes - 16);
  }

  Hit hit(uint32_t function, uint64_t frame, bool at_exit) {
    Hit result{.at_exit = at_exit, .function = function, .time = time_, .cpu = below(2)};
    time_ += 1024 * (1 + below(1000));
    abi::Context& context = result.context;
    for (uint64_t& word : context.arguments) {
      word = argument();
    }
    context.arguments[0] = pointer();  // Conventions of the queries: arg0 and arg1 are addresses.
    context.arguments[1] = pointer();
    for (uint64_t& word : context.stack_arguments) {
      word = argument();
    }
    context.return_value = argument();
    std::copy_n(context.stack_arguments, std::size(context.vectors), context.vectors);
    context.return_value_high = random_();
    context.frame = frame;
    context.caller = 0x40'0000 + below(3);
    context.tid = tid_;
    context.process = process_;
    return result;
  }

  void call(uint64_t frame) {
    --calls_;
    const auto function = static_cast<uint32_t>(below(kFakeFunctions));
    thread_.hits.push_back(hit(function, frame, false));
    if (below(3) == 0 && calls_ > 0) call(frame - 64);
    if (below(20) == 0) return;  // Left by longjmp.
    thread_.hits.push_back(hit(function, frame, true));
    if (below(30) == 0) thread_.hits.push_back(hit(function, frame, true));  // Never entered.
  }

  std::mt19937_64 random_;
  uint64_t tid_;
  uint64_t process_;
  uint64_t time_ = 1 << 20;
  size_t calls_ = 0;
  FakeThread thread_;
};

bool matches(const query::Source& source, uint32_t function) {
  const std::string name = fake_function(function);
  if (source.function.ends_with('*')) {
    return name.starts_with(source.function.substr(0, source.function.size() - 1));
  }
  return name == source.function;
}

std::vector<SiteNames> sites_of(const query::Query& query) {
  std::vector<SiteNames> sites;
  for (uint16_t source = 0; source < query.sources.size(); ++source) {
    for (uint32_t function = 0; function < kFakeFunctions; ++function) {
      sites.push_back({.source = source,
                       .function = fake_function(function),
                       .module = "app",
                       .probe = "probe " + std::to_string(source)});
    }
  }
  return sites;
}

// One plan, run over the hits of all threads.
class Machine {
 public:
  Machine(const Plan& plan, const Lowered& lowered, const Grouping& grouping, Intake& intake,
          const FakeRun& run)
      : plan_(plan),
        lowered_(lowered),
        grouping_(grouping),
        intake_(intake),
        last_(plan, 0, kept_),
        rows_(plan.query.values.size()),
        run_(run),
        cells_(lowered.state) {}

  Expected<FakeAnswer> run(std::span<const FakeThread> threads) {
    for (const FakeThread& thread : threads) {
      CLEW_TRY(run_thread(thread));
    }
    if (plan_.query.shape == query::Shape::Groups) {
      last_.take(lowered_.form == StateForm::Events ? intake_.counted() : intake_.table_of(cells_));
      answer_.rows = kept_.rows;
    } else {
      answer_.rows = kept_.rows;
      std::stable_sort(answer_.rows.begin(), answer_.rows.end(), aggregate::KeyLess());
    }
    answer_.form = lowered_.form;
    return std::move(answer_);
  }

 private:
  Expected<void> run_thread(const FakeThread& thread) {
    window_.assign((size_t{1} << lowered_.layout.size_log2) + abi::kWindowSlackBytes, 0);
    for (const Hit& hit : thread.hits) {
      for (const ProbeProgram& program : lowered_.programs) {
        if (is_at_unwinder(program.point)) continue;  // Nobody throws here.
        const bool at_exit = program.point == ProgramPoint::Exit;
        if (at_exit != hit.at_exit || !matches(plan_.query.sources[program.source], hit.function)) {
          continue;
        }
        CLEW_TRY(run_program(program, hit));
      }
    }
    answer_.unreadable += word(offsetof(abi::RegionHeader, missed_unreadable));
    if (thread.hits.empty()) return {};
    collect(thread.hits[0].context);
    return {};
  }

  Expected<void> run_program(const ProbeProgram& program, const Hit& hit) {
    const uint32_t site = program.source * kFakeFunctions + hit.function;
    const std::optional<uint32_t> group = grouping_.group_of_site[site];
    if (!group) return {};
    std::vector<uint64_t> constants;
    for (const SiteConstant constant : program.site_constants) {
      constants.push_back(constant_of(constant, program, hit, *group));
    }
    isa::RegionHost host(lowered_.layout);
    host.time = hit.time;
    host.cpu = hit.cpu;
    host.generation = run_.generation;
    host.read_memory = read_fake_memory;
    abi::Context context = hit.context;
    context.generation = run_.generation;
    const isa::Outcome outcome = CLEW_TRY(isa::interpret(
        program.program,
        {.window = window_, .context = &context, .site_constants = constants, .host = &host}));
    answer_.instructions += outcome.instructions;
    ++answer_.runs;
    return {};
  }

  uint64_t constant_of(SiteConstant constant, const ProbeProgram& program, const Hit& hit,
                       uint32_t group) const {
    switch (constant) {
      case SiteConstant::GroupPointer:
        return lowered_.group_pointer(group);
      case SiteConstant::RecordTag:
        return (uint64_t{program.source} * kFakeFunctions + hit.function) << abi::kFunctionIdShift;
      case SiteConstant::FunctionIndex:
        return hit.function;
      case SiteConstant::ModuleIndex:
        return 0;
      case SiteConstant::SiteAddress:
        return hit.function;
      case SiteConstant::ProbeIndex:
        return program.source;
    }
    return 0;
  }

  uint64_t word(uint64_t offset) const {
    uint64_t result = 0;
    std::memcpy(&result, window_.data() + offset, sizeof result);
    return result;
  }

  std::vector<uint64_t> words(uint64_t offset, uint32_t count) const {
    std::vector<uint64_t> result(count);
    for (uint32_t i = 0; i < count; ++i) {
      result[i] = word(offset + uint64_t{8} * i);
    }
    return result;
  }

  void collect(const abi::Context& context) {
    const collect::SlotIdentity slot{.slot = 0,
                                     .process = static_cast<uint32_t>(context.process),
                                     .tid = static_cast<uint32_t>(context.tid)};
    const uint64_t half = lowered_.layout.generations == 2 ? run_.generation : 0;
    const uint64_t cells = lowered_.layout.cells_offset + half * lowered_.layout.cells_half_bytes;
    if (lowered_.dense_words > 0) cells_.dense(slot, words(cells, lowered_.dense_words));
    if (lowered_.passed_dense) answer_.passed += word(cells + 8 * (lowered_.dense_words - 1));
    if (lowered_.form == StateForm::Table) collect_table(slot, half);
    if (lowered_.form == StateForm::Events) collect_ring(slot);
  }

  void collect_table(const collect::SlotIdentity& slot, uint64_t generation) {
    const abi::TableLayout& table = lowered_.layout.tables[0];
    for (uint32_t i = 0; i < 2U << table.entries_log2; ++i) {
      const uint64_t at = table.offset + generation * table.generation_size_bytes() +
                          uint64_t{i} * table.entry_size_bytes();
      if (word(at) == 0) continue;
      cells_.entry(slot, 0, words(at + 8, table.key_words),
                   words(at + 8 + uint64_t{8} * table.key_words, table.cell_words));
    }
  }

  void collect_ring(const collect::SlotIdentity& slot) {
    const uint64_t head = word(offsetof(abi::RegionHeader, ring_head));
    for (uint64_t at = 0; at < head;) {
      const uint64_t record = lowered_.layout.ring.offset + at;
      const auto shape = static_cast<uint32_t>(word(record) >> 32);
      const auto size = static_cast<uint32_t>(word(record));
      const std::vector<uint64_t> fields = words(record + 16, (size - 16) / 8);
      collect::EventBatch one;
      one.push({.shape = shape,
                .process = slot.process,
                .tid = slot.tid,
                .time = word(record + 8),
                .words = fields});
      intake_.take(one, {.begin = 0, .end = 1}, rows_);
      if (!rows_.empty()) last_.take(rows_);
      rows_.clear();
      at += size;
    }
  }

  const Plan& plan_;
  const Lowered& lowered_;
  const Grouping& grouping_;
  Intake& intake_;
  KeptRows kept_;
  Answer last_;
  RowBatch rows_;
  const FakeRun& run_;
  aggregate::Accumulator cells_;
  std::vector<uint8_t> window_;
  FakeAnswer answer_;
};

}  // namespace

std::string fake_function(uint32_t index) {
  return std::string(kNames.at(index));
}

std::span<const uint8_t> fake_memory() {
  static const std::array<uint8_t, kFakeMemoryBytes> memory = make_memory();
  return memory;
}

bool read_fake_memory(std::span<uint8_t> into, uint64_t address) {
  if (address < kFakeMemoryStart || into.size() > kFakeMemoryBytes ||
      address - kFakeMemoryStart > kFakeMemoryBytes - into.size()) {
    return false;
  }
  std::memcpy(into.data(), fake_memory().data() + (address - kFakeMemoryStart), into.size());
  return true;
}

std::vector<FakeThread> random_threads(uint64_t seed, size_t calls) {
  std::vector<FakeThread> threads;
  for (uint64_t i = 0; i < 3; ++i) {
    threads.push_back(RandomCalls(seed * 3 + i, 1000 + i, i / 2).thread(calls));
  }
  return threads;
}

Expected<FakeAnswer> answer_of(const Plan& plan, std::span<const FakeThread> threads,
                               const FakeRun& run) {
  const std::vector<SiteNames> sites = sites_of(plan.query);
  Grouping grouping;
  plan::group_sites(plan, sites, 1000, grouping);
  plan::LowerInput input{
      .tick_multiplier = 3, .tick_shift = 6, .base_ticks = 1024, .base_ns = 5'000'000};
  input.group_count = static_cast<uint32_t>(grouping.keys.size());
  const Lowered lowered = CLEW_TRY(plan::lower(plan, input));
  FakeNames names;
  const auto intake = CLEW_TRY(Intake::make(plan, lowered, grouping, names));
  return Machine(plan, lowered, grouping, *intake, run).run(threads);
}

}  // namespace clew::answer
