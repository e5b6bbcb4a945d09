// SPDX-License-Identifier: Apache-2.0
// Random system calls of this process, counted by programs in the kernel and judged by the plan's
// evaluator: both must give the same rows. So do calls of a function of the kernel that gets the
// arguments of a system call as they are.
#include "engine/kernel/kernel_tracee.h"

#include <array>
#include <cstring>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "answer/answer.h"
#include "answer/kept_rows.h"
#include "engine/kernel/event_types.h"
#include "plan/evaluate.h"
#include "plan/update.h"
#include "query/parse.h"

namespace clew::engine {
namespace {

using aggregate::Value;
using query::Expression;

using Call = std::array<uint64_t, 6>;

constexpr const char* kCall = "getppid";
// prctl() asks the security modules first: int option, and four words. No option has this number.
constexpr const char* kFunction = "security_task_prctl";
constexpr uint64_t kOption = 0x7EED'0000;

constexpr std::array<const char*, 5> kTexts = {"get", "set", "getrange", "12345678", ""};
constexpr size_t kTextBytes = 64;

// Where the calls point to.
alignas(64) char memory[kTexts.size()][kTextBytes];

bool is_readable(uint64_t address, size_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(&memory[0][0]);
  return address >= begin && address - begin <= sizeof memory - bytes;
}

// One call as the judge sees it.
class CallBindings final : public plan::Bindings {
 public:
  CallBindings(const query::Query& query, const char* name, const Call& call)
      : query_(query), name_(name), call_(call) {}

  Value field(const Expression& expression) override {
    switch (expression.field) {
      case query::Field::Argument:
        return static_cast<int64_t>(call_[expression.index]);
      case query::Field::Pid:
        return int64_t{getpid()};
      case query::Field::Tid:
        return int64_t{gettid()};
      case query::Field::Comm:
        return std::string("judged");
      case query::Field::Function:
        return std::string(name_);
      default:
        ADD_FAILURE() << "a field that the judge does not know";
        return {};
    }
  }
  Value input(uint16_t index) override {
    return plan::evaluate(query_.sources[0].inputs[index], *this);
  }
  Value let(uint16_t index) override {
    return plan::evaluate(query_.lets[index].expression, *this);
  }
  Value value(uint16_t) override { return {}; }
  Value aggregate(uint16_t) override { return {}; }
  Value memory(const Expression& expression, uint64_t address) override {
    const query::Type& type = expression.type;
    const bool is_text = expression.kind == query::ExpressionKind::ReadString;
    const size_t bytes = is_text ? 1 : type.size_bytes;
    if (!is_readable(address, bytes)) {
      unreadable = true;
      return {};
    }
    const auto* from = reinterpret_cast<const char*>(address);
    if (is_text) return std::string(from, strnlen(from, type.capacity_bytes - 1U));
    uint64_t word = 0;
    std::memcpy(&word, from, bytes);
    if (!type.is_signed) return word;
    const unsigned unused = 64 - 8U * type.size_bytes;
    return static_cast<int64_t>(word << unused) >> unused;
  }

  bool unreadable = false;

 private:
  const query::Query& query_;
  const char* name_;
  const Call& call_;
};

// Adds a call to the table, as the tracer counts events.
void judge(const query::Query& query, const char* name, const Call& call, aggregate::Table& table) {
  CallBindings bindings(query, name, call);
  for (const Expression& condition : query.where) {
    if (!plan::is_true(plan::evaluate(condition, bindings))) return;
  }
  aggregate::Key key;
  for (const query::NamedExpression& value : query.values)
    key.push_back(plan::evaluate(value.expression, bindings));
  std::vector<uint64_t> cells;
  for (const query::Aggregate& aggregate : query.aggregates) {
    const aggregate::AggregateSpec spec = plan::spec_of(aggregate);
    std::vector<uint64_t> own(aggregate::cell_words(spec));
    Value value;
    if (!aggregate.arguments.empty()) value = plan::evaluate(aggregate.arguments[0], bindings);
    if (aggregate.function == abi::AggregateFunction::TopK) key.push_back(value);
    if (aggregate.function == abi::AggregateFunction::Distinct) {
      aggregate::add_distinct(own, plan::hash_of_value(value, aggregate.arguments[0].type));
    } else {
      aggregate::add(spec, own, plan::bits_of(value));
    }
    cells.insert(cells.end(), own.begin(), own.end());
  }
  if (!bindings.unreadable) table.add(key, cells);
}

uint64_t random_number(std::mt19937_64& random) {
  switch (random() % 5) {
    case 0:
      return random();
    case 1:
      return 0 - (random() % 10);
    case 2:
      return random() >> (random() % 64);
    default:
      return random() % 8;
  }
}

// The first two arguments are addresses, most of them good.
std::vector<Call> random_calls(size_t count) {
  std::mt19937_64 random(20);
  std::vector<Call> calls(count);
  for (Call& call : calls) {
    for (uint64_t& argument : call)
      argument = random_number(random);
    for (size_t i = 0; i < 2; ++i) {
      if (random() % 8 != 0) {
        call[i] = reinterpret_cast<uint64_t>(&memory[random() % kTexts.size()][0]);
      }
    }
  }
  return calls;
}

std::string show(const std::vector<aggregate::Row>& rows) {
  std::string text;
  for (const aggregate::Row& row : rows) {
    for (const Value& value : row) {
      std::visit(
          [&](const auto& one) {
            using One = std::decay_t<decltype(one)>;
            if constexpr (std::is_arithmetic_v<One> || std::is_same_v<One, std::string>) {
              text += fmt::format("{} ", one);
            } else if constexpr (std::is_same_v<One, std::monostate>) {
              text += "- ";
            } else {
              text += "? ";
            }
          },
          value);
    }
    text += "\n";
  }
  return text;
}

class Equivalence : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED IN THE KERNEL: it needs root";
    (void)prctl(PR_SET_NAME, "judged");
    for (size_t i = 0; i < kTexts.size(); ++i)
      std::strncpy(memory[i], kTexts[i], kTextBytes - 1);
  }
};

// Whether this kernel lets programs at its functions; if not, the message says so.
bool is_refused(const Expected<void>& attached) {
  return !attached &&
         attached.error().message.find("lets no program at its functions") != std::string::npos;
}

// Compares what the kernel counted of `calls`, which `make` makes, with what the evaluator counts.
std::vector<aggregate::Row> rows_of(const plan::Plan& plan, const aggregate::Table& table) {
  answer::KeptRows kept;
  answer::Answer(plan, 0, kept).take(table);
  return kept.rows;
}

// Attached and started, on this process.
Expected<std::unique_ptr<KernelTracee>> trace(const std::string& text) {
  kernel::Catalogue catalogue;
  kernel::TraceEvents events;
  EventTypes types(catalogue, events, nullptr, true);
  const query::Query query = CLEW_TRY(
      query::parse({.name = "query", .text = text}, {.vocabulary = nullptr, .types = &types}));
  auto sites = find_kernel_sites(query, catalogue, events, false);
  if (!sites) return tl::unexpected(sites.error().error);
  auto tracee = CLEW_TRY(KernelTracee::make(query, std::move(*sites), {.pids = {getpid()}}, {}));
  CLEW_TRY(tracee->attach());
  CLEW_TRY(tracee->start(0));
  return tracee;
}

template <typename Make>
void compare(const std::string& text, const char* name, const std::vector<Call>& calls, Make make) {
  const Expected<query::Query> query = query::parse({.name = "query", .text = text}, {});
  ASSERT_TRUE(query.has_value()) << query.error().message;
  kernel::Catalogue catalogue;
  kernel::TraceEvents events;
  auto sites = find_kernel_sites(*query, catalogue, events, false);
  ASSERT_TRUE(sites.has_value()) << sites.error().error.message;
  auto tracee = KernelTracee::make(*query, std::move(*sites), {.pids = {getpid()}}, {});
  ASSERT_TRUE(tracee.has_value()) << tracee.error().message;
  const Expected<void> attached = (*tracee)->attach();
  if (is_refused(attached)) GTEST_SKIP() << "NOT TESTED: " << attached.error().message;
  ASSERT_TRUE(attached.has_value()) << attached.error().message;
  ASSERT_TRUE((*tracee)->start(0).has_value());
  for (const Call& call : calls)
    make(call);
  ASSERT_TRUE((*tracee)->detach().has_value());
  collect::EventBatch batch;
  ASSERT_TRUE((*tracee)->read_events(batch).has_value());
  answer::RowBatch none(query->values.size());
  (*tracee)->take_events(batch, {.begin = 0, .end = batch.size()}, none);
  const Expected<aggregate::Table> got = (*tracee)->total();
  ASSERT_TRUE(got.has_value()) << got.error().message;
  aggregate::Table expected(got->schema());
  for (const Call& call : calls)
    judge(*query, name, call, expected);
  EXPECT_EQ(show(rows_of((*tracee)->plan(), *got)), show(rows_of((*tracee)->plan(), expected)));
  EXPECT_TRUE(got->cells() == expected.cells());
  EXPECT_FALSE(expected.cells().empty());
}

TEST_P(Equivalence, OfKernelAndEvaluator) {
  compare(fmt::format("from e in syscall(\"{}\") {}", kCall, GetParam()), kCall, random_calls(600),
          [](const Call& call) {
            (void)syscall(SYS_getppid, call[0], call[1], call[2], call[3], call[4], call[5]);
          });
}

// Of its arguments the first is the option, and there is no sixth: those next to them stand for
// them.
TEST_P(Equivalence, OfAFunctionAndEvaluator) {
  std::string text = GetParam();
  for (size_t at = text.find("e.arg"); at != std::string::npos; at = text.find("e.arg", at + 1)) {
    char& number = text[at + 5];
    if (number == '0') number = '1';
    if (number == '5') number = '4';
  }
  compare(fmt::format("from e in kernel(\"{}\") {}", kFunction, text), kFunction, random_calls(600),
          [](const Call& call) {
            (void)syscall(SYS_prctl, kOption, call[1], call[2], call[3], call[4]);
          });
}

INSTANTIATE_TEST_SUITE_P(
    KernelTracee, Equivalence,
    testing::Values(
        "select count()", "groupby e.arg2 select e.arg2, count(), sum(e.arg3)",
        "groupby e.arg2 & 3 select min(e.arg3), max(e.arg4), avg(e.arg5), stddev(e.arg3), "
        "variance(e.arg3), quantize(e.arg3), lquantize(e.arg4, -10, 50, 3), "
        "llquantize(e.arg5, 10, 0, 6, 20)",
        "groupby e.arg2 & 3 select sum((unsigned)e.arg2), min((unsigned long)e.arg3), "
        "max((unsigned char)e.arg3), max((unsigned long)e.arg4)",
        "groupby e.arg2 & 1 select distinct(e.arg3), quantile(e.arg4, .5), count()",
        "groupby e.arg2 & 3 as k select k, p50(e.arg3), p99(e.arg3), distinct(e.arg4), "
        "distinct(str(e.arg0)), quantile((unsigned long)e.arg5, .9), median((short)e.arg3), "
        "count()",
        "select p99(e.arg3), distinct(e.arg2), p50(e.arg3)", "select topk(e.arg2, 3)",
        "groupby e.tid, e.pid, e.comm select topk(e.arg3, 4), count()",
        "where !(e.arg2 > 2 && e.arg3 < 4) || (e.arg4 ? e.arg5 == 1 : e.arg3 != 2) select count(), "
        "sum(e.arg2 > e.arg3)",
        "where e.arg2 in (1, 3, 4294967295, 9000000000) || !(e.arg3 in (0, 2)) select count()",
        "let x = e.arg2 * 3 let y = x + e.arg3 where y > 4 || x == 0 groupby y & 7 as k select k, "
        "count(), sum(y), max(x)",
        "groupby (char)e.arg2, (unsigned short)e.arg3 select count(), "
        "sum((int)e.arg2 * (int)e.arg3), sum((unsigned)e.arg2 - (unsigned)e.arg3)",
        "select sum(e.arg2 << e.arg3), sum(e.arg2 >> e.arg3), sum((unsigned long)e.arg2 >> "
        "e.arg3), sum((int)e.arg2 << 31)",
        "select sum(e.arg2 / e.arg3), sum(e.arg2 % e.arg3), sum((unsigned)e.arg2 / "
        "(unsigned)e.arg3), sum((int)e.arg2 / -1), sum(e.arg4 / 3)",
        "select sum(min(e.arg2, e.arg3)), sum(max((unsigned)e.arg2, (unsigned)e.arg3)), "
        "sum(abs(e.arg2)), sum(log2(e.arg3)), sum(hash(e.arg2) & 15)",
        "where str(e.arg0) == \"getrange\" || str(e.arg1, 4) != \"get\" select count()",
        "where str(e.arg0) in (\"get\", \"set\", \"12345678\") groupby str(e.arg0) as s select s, "
        "count(), distinct(s)",
        "groupby str(e.arg0) as s, e.function select s, count(), max(e.arg2)",
        "where startswith(str(e.arg0), \"get\") select count(), sum(hash(str(e.arg0)) & 31)",
        "where str(e.arg0) like \"%t\" && e.arg2 > 0 groupby e.arg2 & 3 select count(), "
        "sum(e.arg3)",
        "groupby e.arg2 > 2 ? str(e.arg0) : str(e.arg1, 16) as text select text, count()",
        "select count(), sum(*(int *)e.arg0), sum(*(unsigned char *)e.arg1), min(*(short *)(e.arg1 "
        "+ 2))",
        "groupby e.arg2 & 15 as k where count() > 3 && k != 2 select k, count() orderby count() "
        "descending, k take 5"));

// The record of an event is memory of the kernel, and these calls say what is in it: a word that is
// 0 is read like all others, and one that is not there leaves the hit out.
constexpr uint64_t kNoAddress = 0xDEAD'0000'0000'0100;  // Of nobody (include/linux/poison.h).
constexpr const char* kOfRecords =
    "from e in tracepoint(\"syscalls:sys_enter_getpriority\") let who = *(long *)(e.arg0 + 24) "
    "where who < 100 select count(), sum(who), sum(*(int *)(e.arg0 + 24)), "
    "sum(*(signed char *)(e.arg0 + 24)), sum(*(unsigned short *)(e.arg0 + 24)), "
    "sum(who == 7 ? *(long *)(*(long *)(e.arg0 + 16)) : 1)";

TEST(KernelMemory, IsLoadedAsItIsOrLeavesTheHitOut) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED IN THE KERNEL: it needs root";
  const auto traced = trace(kOfRecords);
  ASSERT_TRUE(traced.has_value()) << traced.error().message;
  KernelTracee& tracee = **traced;
  const std::array<int64_t, 6> who = {0, 5, -1, -200, 100, -32769};
  for (const int64_t each : who)
    (void)syscall(SYS_getpriority, 0, each);
  for (const uint64_t which : {kNoAddress, ~uint64_t{0}, uint64_t{8}})
    (void)syscall(SYS_getpriority, which, 7);
  ASSERT_TRUE(tracee.detach().has_value());
  const Expected<aggregate::Table> got = tracee.total();
  ASSERT_TRUE(got.has_value()) << got.error().message;
  // All but 100; as int, as signed and as unsigned parts; and 1 for each.
  const int64_t parts = 0 + 5 - 1 + 56 - 1;
  const int64_t halves = 0 + 5 + 65535 + 65336 + 32767;
  EXPECT_EQ(show(rows_of(tracee.plan(), *got)),
            fmt::format("5 {0} {0} {1} {2} 5 \n", 0 + 5 - 1 - 200 - 32769, parts, halves));
  EXPECT_EQ(tracee.losses().missed, (collect::Causes{{"unreadable", 3}}));
}

// As the kernel's code has them: a pointer, where a record has what it points to.
TEST(RawTracepoints, HaveArgumentsByTheirNamesAndTypes) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED IN THE KERNEL: it needs root";
  const auto traced = trace(
      "from e in tracepoint(\"rawtp:sys_enter\") where e.id == 140 && e.regs->orig_ax == 140 "
      "select count(), sum(e.regs->si), sum(e.regs->di)");
  ASSERT_TRUE(traced.has_value()) << traced.error().message;
  KernelTracee& tracee = **traced;
  for (const int64_t who : {3, 4, 2000})
    (void)syscall(SYS_getpriority, 0, who);
  ASSERT_TRUE(tracee.detach().has_value());
  const Expected<aggregate::Table> got = tracee.total();
  ASSERT_TRUE(got.has_value()) << got.error().message;
  EXPECT_EQ(show(rows_of(tracee.plan(), *got)), "3 2007 0 \n");
  EXPECT_TRUE(tracee.losses().missed.empty());
}

TEST(RawTracepoints, AreRefusedByNameWhereTheyAreNotOrHaveNoSuchArgument) {
  if (geteuid() != 0) GTEST_SKIP() << "NOT TESTED IN THE KERNEL: it needs root";
  const auto refusal = [](const std::string& text) {
    const auto traced = trace(text);
    return traced ? std::string() : traced.error().message;
  };
  EXPECT_NE(refusal("from e in tracepoint(\"rawtp:sys_entr\") select count()").find("'sys_enter'?"),
            std::string::npos);
  EXPECT_NE(refusal("from e in tracepoint(\"rawtp:sys_enter\") select e.arg1")
                .find("has arguments by their names, and arg0"),
            std::string::npos);
  EXPECT_NE(
      refusal("from e in tracepoint(\"rawtp:sys_enter\") select e.reg").find("exports no 'reg'"),
      std::string::npos);
}

}  // namespace
}  // namespace clew::engine
