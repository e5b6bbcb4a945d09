// SPDX-License-Identifier: Apache-2.0
#include "output/d/record.h"

#include <gtest/gtest.h>

#include "output/d/record_testing.h"

namespace clew::output::d {
namespace {

using query::d::Action;
using query::d::FieldKind;
using query::d::RecordedAction;
using query::d::RecordField;
using query::d::RecordLayout;

// --- rows ----------------------------------------------------------------------------------------

TEST_F(RecordTest, AnEmptyClausePrintsARowUnderOneHeading) {
  fire({});
  fire({}, {4096, "syscall", "vmlinux", "read", "entry"}, Firing{12});
  EXPECT_EQ(written(),
            "CPU     ID                    FUNCTION:NAME\n"
            "  0      1                           :BEGIN \n"
            " 12   4096                       read:entry \n");
}

TEST_F(RecordTest, LongNamesWidenTheRow) {
  fire({}, {123456, "fbt", "vmlinux", "a_function_with_quite_a_long_name", "return"});
  EXPECT_EQ(written(),
            std::string(kHeading) + "  0 123456 a_function_with_quite_a_long_name:return \n");
}

TEST_F(RecordTest, QuietScriptsPrintNoRows) {
  EXPECT_EQ(quiet({}), "");
  EXPECT_EQ(quiet(Builder().action(Action::Exit).integer(0, 4)), "");
}

TEST_F(RecordTest, ExitAndActionsOfTheProbePrintAnEmptyRow) {
  for (const Action action :
       {Action::Exit, Action::Raise, Action::Stop, Action::Chill, Action::Panic, Action::Copyout,
        Action::Copyoutstr, Action::Breakpoint, Action::Commit, Action::Discard}) {
    EXPECT_EQ(row(Builder().action(action)), "\n");
  }
}

TEST_F(RecordTest, AClauseWhoseActionsWereAllSkippedPrintsNothing) {
  EXPECT_EQ(row(Builder().action(Action::Trace, false).integer(5)), "");
}

TEST_F(RecordTest, SkippedActionsPrintNothing) {
  EXPECT_EQ(quiet(Builder()
                      .action(Action::Trace, false)
                      .integer(5)
                      .action(Action::Trace)
                      .integer(6)
                      .action(Action::Trace, false)
                      .integer(7)),
            "6");
}

TEST_F(RecordTest, RecordsThatAreTooShortPrintNothingWrong) {
  Builder builder;
  builder.action(Action::Trace).string("hello");
  std::vector<uint8_t> record = builder.record({});
  printer_->print(std::span(record).first(16), builder.layout(), kBegin);
  EXPECT_EQ(written(), "");
  printer_->print(std::span(record).first(sizeof(abi::MachineRecordHeader) + 10), builder.layout(),
                  kBegin);
  EXPECT_EQ(written(), std::string(kHeading) + std::string(kBeginRow) +
                           "  he                               \n");
}

// --- trace ---------------------------------------------------------------------------------------

TEST_F(RecordTest, TracedIntegersArePaddedByTheirType) {
  struct Case {
    int64_t value;
    uint32_t size_bytes;
    bool is_signed;
    std::string_view padded;
    std::string_view bare;
  };
  const Case cases[] = {
      {-1, 8, true, "                  -1", "-1"},
      {INT64_MIN, 8, true, " -9223372036854775808", "-9223372036854775808"},
      {42, 8, false, "                   42", "42"},
      {-1, 8, false, " 18446744073709551615", "18446744073709551615"},
      {-1, 4, true, "         -1", "-1"},
      {-1, 4, false, " 4294967295", "4294967295"},
      {-1, 2, true, "    -1", "-1"},
      {-1, 2, false, " 65535", "65535"},
      {-1, 1, true, "  -1", "-1"},
      {-1, 1, false, " 255", "255"},
      {7, 1, false, "   7", "7"},
  };
  for (const Case& each : cases) {
    const Builder builder =
        Builder().action(Action::Trace).integer(each.value, each.size_bytes, each.is_signed);
    options_.is_quiet = false;
    EXPECT_EQ(row(builder), std::string(each.padded) + "\n");
    EXPECT_EQ(quiet(builder), each.bare);
  }
}

TEST_F(RecordTest, TracedStringsTakeThirtyThreeColumns) {
  const Builder builder = Builder().action(Action::Trace).string("bash");
  EXPECT_EQ(row(builder), "  bash                             \n");
  EXPECT_EQ(quiet(builder), "bash");
}

TEST_F(RecordTest, TracedValuesFollowOneAnother) {
  EXPECT_EQ(
      row(Builder().action(Action::Trace).string("bash").action(Action::Trace).integer(10, 4)),
      "  bash                             " + std::string("         10\n"));
}

TEST_F(RecordTest, TracedBytesAreATable) {
  const Builder builder = Builder().action(Action::Trace).memory(std::string_view("\1\2\0A", 4));
  constexpr std::string_view kTable =
      "\n"
      "             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef\n"
      "         0: 01 02 00 41                                      ...A\n";
  EXPECT_EQ(row(builder), std::string(kTable) + "\n");
  EXPECT_EQ(quiet(builder), kTable);
}

TEST_F(RecordTest, TracedCharactersAreAStringUnlessRawBytesAreWanted) {
  const Builder builder = Builder().action(Action::Trace).memory(std::string_view("eth0\0\0", 6));
  EXPECT_EQ(quiet(builder), "eth0");
  options_.has_raw_bytes = true;
  EXPECT_EQ(quiet(builder),
            "\n"
            "             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef\n"
            "         0: 65 74 68 30 00 00                                eth0..\n");
}

TEST_F(RecordTest, MemoryIsATableOfSixteenBytesALine) {
  EXPECT_EQ(quiet(Builder().action(Action::Tracemem).memory("0123456789abcdefXYZ\x7f")),
            "\n"
            "             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef\n"
            "         0: 30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef\n"
            "        10: 58 59 5a 7f                                      XYZ.\n");
}

TEST_F(RecordTest, MemoryIsCutToTheSizeThatWasUsed) {
  const auto used = [&](int64_t size) {
    return quiet(Builder().action(Action::Tracemem).memory("abcd").integer(size));
  };
  constexpr std::string_view kColumns =
      "\n             0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f  0123456789abcdef\n";
  EXPECT_EQ(used(2), std::string(kColumns) +
                         "         0: 61 62                                            ab\n");
  EXPECT_EQ(used(9), std::string(kColumns) +
                         "         0: 61 62 63 64                                      abcd\n");
  EXPECT_EQ(used(0), "");
  EXPECT_EQ(used(-1), "");
}

// --- stacks and symbols --------------------------------------------------------------------------

TEST_F(RecordTest, StacksStandBelowTheRow) {
  const Builder builder =
      Builder()
          .action(Action::Stack)
          .words(FieldKind::KernelStack, {0xffffffff81000010, 0xffffffff81000104, 0x99, 0});
  EXPECT_EQ(row(builder),
            "\n"
            "              vmlinux`vfs_read+0x10\n"
            "              vmlinux`vfs_write+0x4\n"
            "              0x99\n"
            "\n");
  EXPECT_EQ(quiet(builder),
            "\n"
            "              vmlinux`vfs_read+0x10\n"
            "              vmlinux`vfs_write+0x4\n"
            "              0x99\n");
}

TEST_F(RecordTest, UserStacksNameTheModulesOfTheProcess) {
  for (const Action action : {Action::Ustack, Action::Jstack}) {
    EXPECT_EQ(
        row(Builder().action(action).words(FieldKind::UserStack, {7, 0x1001, 0x2040, 0x10, 0, 9})),
        "\n"
        "              libc.so.6`read+0x1\n"
        "              a.out`0x2040\n"
        "              0x10\n"
        "\n");
  }
}

TEST_F(RecordTest, StackIndentIsAnOption) {
  options_.stack_indent = 2;
  EXPECT_EQ(
      quiet(Builder().action(Action::Stack).words(FieldKind::KernelStack, {0xffffffff81000010, 0})),
      "\n  vmlinux`vfs_read+0x10\n");
}

TEST_F(RecordTest, AnEmptyStackIsAnEmptyLine) {
  EXPECT_EQ(row(Builder().action(Action::Stack).words(FieldKind::KernelStack, {0})), "\n\n");
}

TEST_F(RecordTest, SymbolsTakeFiftyColumns) {
  struct Case {
    Action action;
    std::vector<uint64_t> words;
    std::string_view expected;
  };
  const Case cases[] = {
      {Action::Sym, {0xffffffff81000010}, "  vmlinux`vfs_read                                  "},
      {Action::Mod, {0xffffffff81000010}, "  vmlinux                                           "},
      {Action::Sym, {0x10}, "  0x10                                              "},
      {Action::Mod, {0x10}, "  0x10                                              "},
      {Action::Usym, {7, 0x1004}, "  libc.so.6`read                                    "},
      {Action::Ufunc, {7, 0x1004}, "  libc.so.6`read                                    "},
      {Action::Umod, {7, 0x1004}, "  libc.so.6                                         "},
      {Action::Uaddr, {7, 0x1004}, "  libc.so.6`read+0x4                                "},
      {Action::Usym, {7, 0x2004}, "  a.out`0x2004                                      "},
      {Action::Usym, {8, 0x1004}, "  0x1004                                            "},
      // The idle thread, which has no symbols; it is not the target of the command.
      {Action::Usym, {0, 0x1004}, "  0x1004                                            "},
      {Action::Ufunc, {0, 0x1004}, "  0x1004                                            "},
      {Action::Umod, {0, 0x1004}, "  0x1004                                            "},
      {Action::Uaddr, {0, 0x1004}, "  0x1004                                            "},
  };
  for (const Case& each : cases) {
    const FieldKind kind =
        each.words.size() == 1 ? FieldKind::KernelAddress : FieldKind::UserAddress;
    EXPECT_EQ(quiet(Builder().action(each.action).words(kind, each.words)), each.expected);
  }
}

// --- printf, printa, actions of the host
// -----------------------------------------------------------

TEST_F(RecordTest, FormattedTextFollowsTheRow) {
  const uint32_t format = add_format("%s is %d");
  const Builder builder = Builder().action(Action::Printf).format(format).string("x").integer(5, 4);
  EXPECT_EQ(row(builder), "x is 5\n");
  EXPECT_EQ(quiet(builder), "x is 5");
}

TEST_F(RecordTest, PrintaAsksForTheNewestValues) {
  aggregations_->take(0, {{{}, {3}}});
  EXPECT_EQ(quiet(Builder().action(Action::Printa).of({0})), "\n                3\n");
  const uint32_t format = add_format("n=%@d\n");
  EXPECT_EQ(quiet(Builder().action(Action::Printa).of({0}).format(format)), "n=3\n");
  EXPECT_EQ(host_.calls, "refresh 0;refresh 0;");
}

TEST_F(RecordTest, ActionsOnAggregationsChangeWhatIsPrinted) {
  const uint32_t format = add_format("%@d;");
  const auto printa = Builder().action(Action::Printa).of({0}).format(format);
  aggregations_->take(0, {{{}, {30}}});
  fire(Builder().action(Action::Normalize).of({0}).integer(10));
  EXPECT_EQ(quiet(printa), std::string(kHeading) + std::string(kBeginRow) + "\n3;");
  quiet(Builder().action(Action::Denormalize).of({0}));
  EXPECT_EQ(quiet(printa), "30;");
  host_.calls.clear();
  quiet(Builder().action(Action::Clear).of({0}));
  EXPECT_EQ(host_.calls, "take out 0;");
  EXPECT_EQ(quiet(printa), "0;");
  quiet(Builder().action(Action::Trunc).of({0}));
  EXPECT_EQ(quiet(printa), "");
}

TEST_F(RecordTest, CommandsRunAfterTheTextBeforeThem) {
  const uint32_t text = add_format("before ");
  const uint32_t command = add_format("echo %d");
  const uint32_t path = add_format("/tmp/out.%s");
  EXPECT_EQ(quiet(Builder()
                      .action(Action::Printf)
                      .format(text)
                      .action(Action::System)
                      .format(command)
                      .integer(7, 4)
                      .action(Action::Freopen)
                      .format(path)
                      .string("1")
                      .action(Action::Printf)
                      .format(text)
                      .action(Action::Ftruncate)),
            "before <run echo 7><open /tmp/out.1>before <truncate>");
}

TEST_F(RecordTest, OptionsAreSetWhileTheScriptRuns) {
  fire(Builder().action(Action::Setopt).string("quiet"));
  EXPECT_TRUE(options_.is_quiet);
  fire(Builder().action(Action::Setopt).string("aggsortpos").string("2"));
  EXPECT_EQ(options_.sort_position, 2U);
  EXPECT_EQ(written(), std::string(kHeading) + std::string(kBeginRow));
}

TEST_F(RecordTest, OptionsThatDoNotPrintAreTheHostsToRefuse) {
  fire(Builder().action(Action::Setopt).string("bufsize").string("1m"));
  fire(Builder().action(Action::Setopt).string("quiet").string("perhaps"));
  EXPECT_FALSE(options_.is_quiet);
  EXPECT_EQ(written(), std::string(kHeading) + std::string(kBeginRow) + "<refuse bufsize=1m>\n" +
                           std::string(kBeginRow) + "<refuse quiet=perhaps>\n");
}

TEST_F(RecordTest, PrintShowsTheAddressAndWhatLiesThere) {
  const query::d::TypeId type = script_.types.integer(4, true);
  const Builder builder =
      Builder()
          .action(Action::Print)
          .integer(0xffff8880, 8, false)
          .field({.kind = FieldKind::Bytes, .size_bytes = 4, .type = type}, bytes_of({42}));
  EXPECT_EQ(quiet(builder), "0xffff8880 = *\n(int)42\n");
}

TEST_F(RecordTest, PrintOfAPointerToAPointerShowsTheSecondAddress) {
  const query::d::TypeId type = script_.types.pointer_to(script_.types.integer(2, false));
  EXPECT_EQ(
      quiet(Builder()
                .action(Action::Print)
                .integer(0x10)
                .field({.kind = FieldKind::Bytes, .size_bytes = 8, .type = type}, bytes_of({42}))),
      "0x10 = *\n(unsigned short *)0x2a\n");
}

TEST_F(RecordTest, PrintOfANumberHasNoAddress) {
  const query::d::TypeId type = script_.types.integer(4, true);
  EXPECT_EQ(
      quiet(Builder().action(Action::Print).field({.size_bytes = 4, .type = type}, bytes_of({7}))),
      "(int)7\n");
}

// --- flow indentation ----------------------------------------------------------------------------

class FlowTest : public RecordTest {
 protected:
  void SetUp() override {
    RecordTest::SetUp();
    options_.has_flow_indent = true;
  }
  void fire_flow(uint32_t probe, std::string_view function, std::string_view name,
                 std::string_view provider = "fbt") {
    fire({}, {probe, provider, "vmlinux", function, name}, Firing{0, probe});
  }
};

TEST_F(FlowTest, EntriesIndentAndReturnsUnindent) {
  fire_flow(1, "f", "entry");
  fire_flow(2, "g", "entry");
  fire_flow(3, "g", "return");
  fire_flow(4, "f", "return");
  EXPECT_EQ(written(),
            "CPU FUNCTION                                 \n"
            "  0  -> f                                     \n"
            "  0    -> g                                   \n"
            "  0    <- g                                   \n"
            "  0  <- f                                     \n");
}

TEST_F(FlowTest, SystemCallsHaveDoubleArrows) {
  fire_flow(1, "read", "entry", "syscall");
  fire_flow(2, "read", "return", "syscall");
  EXPECT_EQ(written(),
            "CPU FUNCTION                                 \n"
            "  0  => read                                  \n"
            "  0  <= read                                  \n");
}

TEST_F(FlowTest, OtherProbesStandBehindABar) {
  fire_flow(1, "f", "entry");
  fire_flow(2, "f", "tick");
  fire_flow(3, "f", "carpentry");
  fire_flow(4, "", "method-entry");
  fire_flow(5, "", "method-return");
  EXPECT_EQ(written(),
            "CPU FUNCTION                                 \n"
            "  0  -> f                                     \n"
            "  0   | f:tick                                \n"
            "  0   | f:carpentry                           \n"
            "  0    ->                                     \n"
            "  0    <-                                     \n");
}

TEST_F(FlowTest, AReturnWithoutEntryStaysAtTheMargin) {
  fire_flow(2, "f", "return");
  EXPECT_EQ(written(),
            "CPU FUNCTION                                 \n"
            "  0  <- f                                     \n");
}

TEST_F(FlowTest, EachCpuHasItsOwnLevel) {
  fire({}, {1, "fbt", "", "f", "entry"}, Firing{0, 1});
  fire({}, {1, "fbt", "", "f", "entry"}, Firing{3, 1});
  EXPECT_EQ(written(),
            "CPU FUNCTION                                 \n"
            "  0  -> f                                     \n"
            "  3  -> f                                     \n");
}

TEST_F(FlowTest, SeveralClausesOfOneProbeIndentOnce) {
  const ProbeNames entry = {1, "fbt", "", "f", "entry"};
  const ProbeNames leave = {2, "fbt", "", "f", "return"};
  fire({}, entry, Firing{0, 1, 0});
  fire({}, entry, Firing{0, 1, 1});
  const Firing last = {0, 2, 3};
  const abi::MachineRecordHeader last_header = last.header();
  fire({}, leave, Firing{0, 2, 2}, &last_header);
  fire({}, leave, last);
  EXPECT_EQ(written(),
            "CPU FUNCTION                                 \n"
            "  0  -> f                                     \n"
            "  0   | f:entry                               \n"
            "  0   | f:return                              \n"
            "  0  <- f                                     \n");
}

TEST_F(FlowTest, DataFollowTheRow) {
  fire(Builder().action(Action::Trace).integer(5, 4), {1, "fbt", "", "f", "entry"});
  EXPECT_EQ(written(),
            "CPU FUNCTION                                 \n"
            "  0  -> f                                     " +
                std::string("          5\n"));
}

TEST_F(FlowTest, QuietRowsHaveNoNewline) {
  options_.is_quiet = true;
  const uint32_t format = add_format("x\n");
  fire(Builder().action(Action::Printf).format(format), {1, "fbt", "", "f", "entry"});
  EXPECT_EQ(written(),
            "CPU FUNCTION                                 \n"
            "  0  -> f                                     x\n");
}

}  // namespace
}  // namespace clew::output::d
