// SPDX-License-Identifier: Apache-2.0
#include "target/types.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "target/dwarf_file.h"
#include "target/dwarf_lines.h"
#include "target/test_support.h"

namespace clew::target {
namespace {

struct Program {
  ModuleImage image;
  DebugInfo debug;

  uint64_t address(std::string_view name) const {
    for (const Function& function : image.functions()) {
      if (function.name == name) return function.address;
    }
    return 0;
  }
  Signature signature(std::string_view name) {
    auto result = debug.signature(address(name));
    EXPECT_TRUE(result) << name << ": " << result.error().message;
    return result ? std::move(*result) : Signature{};
  }
};

Program open_program(std::string_view fixture, const ReadOptions& options = {}) {
  auto image = ModuleImage::read(test::fixture(fixture), options);
  if (!image) std::abort();
  auto debug = DebugInfo::open(*image, options);
  if (!debug) {
    ADD_FAILURE() << debug.error().message;
    std::abort();
  }
  return {std::move(*image), std::move(*debug)};
}

// "name: type place index" for each parameter, then the result.
std::string text_of(DebugInfo& debug, const Signature& signature) {
  std::string text;
  for (const Parameter& parameter : signature.parameters) {
    const auto place = [&]() -> std::string {
      switch (parameter.place) {
        case ArgumentPlace::IntegerRegister:
          return fmt::format("int{}", parameter.index);
        case ArgumentPlace::Stack:
          return fmt::format("stack{}", parameter.index);
        case ArgumentPlace::VectorRegister:
          return fmt::format("xmm{}", parameter.index);
        case ArgumentPlace::IntegerPair:
          return fmt::format("pair{}", parameter.index);
        case ArgumentPlace::Unavailable:
          return "none";
      }
      return "?";
    };
    text += fmt::format("{} {} {}, ", debug.describe(parameter.type).name, parameter.name, place());
  }
  text += signature.is_variadic ? "... " : "";
  return text + "-> " + debug.describe(signature.return_type).name +
         (signature.returns_in_rax ? " in rax" : "");
}

bool is_mapped(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with(path)) return true;
  }
  return false;
}

// A mapping of a file that shrinks is a SIGBUS.
TEST(LargeDebugFiles, AreMappedWhenNobodyElseCanTruncateThem) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("clew-large-{}", getpid());
  std::filesystem::copy_file(test::fixture("kinds"), path);
  std::filesystem::resize_file(path, kCopyMaxBytes + 1);
  for (const bool is_shared : {false, true}) {
    using std::filesystem::perms;
    const perms mode = perms::owner_read | perms::owner_write;
    std::filesystem::permissions(path, is_shared ? mode | perms::others_write : mode);
    const auto image = ModuleImage::read(path.string());
    ASSERT_TRUE(image) << image.error().message;
    auto file = DwarfFile::find(*image, {});
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_FALSE(file->units().empty());
    EXPECT_EQ(is_mapped(path.string()), !is_shared);
  }
  std::filesystem::resize_file(path, kForeignMaxBytes + 1);
  const auto image = ModuleImage::read(path.string());
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_FALSE(DwarfFile::find(*image, {}).has_value());
  std::filesystem::remove(path);
}

// The convention must be the same whether DWARF gives registers (-O2) or frame slots (-O0).
class SignatureTest : public testing::TestWithParam<const char*> {};

TEST_P(SignatureTest, ArgumentsAreWhereTheConventionPutsThem) {
  Program program = open_program(GetParam());
  const auto expect = [&](std::string_view function, std::string_view expected) {
    EXPECT_EQ(text_of(program.debug, program.signature(function)), expected) << function;
  };
  expect("use_client",
         "client_t * c int0, const char * name int1, long unsigned int count int2, -> int in rax");
  expect("floats",
         "float f xmm0, int i int0, double d xmm1, long double wide none, unsigned char b int1, "
         "-> double");
  expect("records",
         "struct two_longs pair pair0, struct two_doubles reals none, struct mixed m none, "
         "struct big b none, struct one_int one int3, struct packed p stack3, -> int in rax");
  expect("many",
         "int a1 int0, int a2 int1, int a3 int2, int a4 int3, int a5 int4, int a6 int5, "
         "int a7 stack0, char a8 stack1, -> long int in rax");
  expect("returns_big", "int seed int1, -> struct big");
  expect("returns_pair", "int seed int0, -> struct two_longs in rax");
  expect("returns_double", "int seed int0, -> double");
  expect("returns_nothing", "-> void");
  expect("returns_wide", "__int128 w pair0, int after int2, -> __int128 in rax");
  expect("variadic", "const char * format int0, ... -> int in rax");
}

INSTANTIATE_TEST_SUITE_P(Optimisation, SignatureTest,
                         testing::Values("kinds", "kinds_dwarf4", "kinds_unoptimised"));

TEST(DebugInfoTest, ACopyWithItsOwnConventionOnlyShowsWhatDwarfSays) {
  Program program = open_program("kinds");
  const Signature signature = program.signature("private_step");
  ASSERT_EQ(signature.parameters.size(), 3U);
  const auto functions = program.image.functions();
  const auto step = std::find_if(functions.begin(), functions.end(), [](const Function& function) {
    return function.name == "private_step";
  });
  if (step->names[0].linkage == "private_step") GTEST_SKIP() << "this compiler made no copy";
  EXPECT_EQ(signature.parameters[1].name, "unused");
  EXPECT_EQ(signature.parameters[1].place, ArgumentPlace::Unavailable);
  EXPECT_FALSE(signature.parameters[1].problem.empty());
}

class MembersTest : public testing::TestWithParam<const char*> {};

TEST_P(MembersTest, AreFoundThroughTypedefsAnonymousUnionsAndBitFields) {
  Program program = open_program(GetParam());
  DebugInfo& debug = program.debug;
  const TypeId client = debug.find_type("client_t");
  ASSERT_NE(client, kVoidType);
  EXPECT_EQ(debug.describe(client).kind, TypeKind::Record);
  std::string text;
  for (const TypeMember& member : debug.members(client)) {
    text += fmt::format("{} {} @{}", debug.describe(member.type).name, member.name,
                        member.offset_bytes);
    text += member.bit_size != 0 ? fmt::format(" bits {}+{}\n", member.bit_offset, member.bit_size)
                                 : "\n";
  }
  EXPECT_EQ(text,
            "int fd @0\n"
            "enum state state @4\n"
            "const struct key * key @8\n"
            "unsigned int low @16 bits 0+3\n"
            "unsigned int middle @16 bits 3+7\n"
            "int high @16 bits 10+12\n"
            "uint64_t number @24\n"
            "double real @24\n"
            "struct {…} named @32\n"
            "struct opaque * hidden @40\n"
            "struct client * next @48\n"
            "int[] matrix @56\n"
            "_Bool alive @80\n"
            "void (*)() on_close @88\n");
  const TypeMember named = *debug.member(client, "named");
  EXPECT_EQ(debug.member(named.type, "inner_short")->offset_bytes, 2U);
  EXPECT_EQ(debug.member(client, "sate").error().message,
            "'client_t' has no member 'sate'; did you mean 'state'?");
  EXPECT_EQ(debug.member(debug.find_type("struct packed"), "unaligned")->offset_bytes, 1U);
}

// DWARF 4 and 5 count bit-fields from different ends.
INSTANTIATE_TEST_SUITE_P(Versions, MembersTest, testing::Values("kinds", "kinds_dwarf4"));

TEST(DebugInfoTest, TypesAreDescribedAsTheMachineHoldsThem) {
  Program program = open_program("kinds");
  DebugInfo& debug = program.debug;
  const TypeId client = debug.find_type("struct client");
  const auto type_of = [&](std::string_view member) {
    return debug.describe(debug.member(client, member)->type);
  };
  const TypeDescription matrix = type_of("matrix");
  EXPECT_EQ(matrix.kind, TypeKind::Array);
  EXPECT_EQ(matrix.count, 2U);
  EXPECT_EQ(matrix.size_bytes, 24U);
  EXPECT_EQ(debug.describe(matrix.target).count, 3U);
  EXPECT_EQ(debug.describe(debug.describe(matrix.target).target).name, "int");
  EXPECT_EQ(type_of("alive").kind, TypeKind::Boolean);
  EXPECT_EQ(type_of("real").kind, TypeKind::Float);
  const TypeDescription number = type_of("number");
  EXPECT_EQ(number.kind, TypeKind::Integer);
  EXPECT_EQ(number.size_bytes, 8U);
  EXPECT_FALSE(number.is_signed);
  const TypeDescription next = type_of("next");
  EXPECT_EQ(next.kind, TypeKind::Pointer);
  EXPECT_EQ(debug.describe(next.target).name, "struct client");
  EXPECT_EQ(debug.describe(debug.member(debug.find_type("struct key"), "text")->type).count, 16U);
}

TEST(DebugInfoTest, ATypeThatIsOnlyDeclaredHereIsFoundWhereItIsDefined) {
  Program program = open_program("kinds");
  DebugInfo& debug = program.debug;
  const TypeMember hidden = *debug.member(debug.find_type("client_t"), "hidden");
  const TypeId opaque = debug.describe(hidden.type).target;
  EXPECT_EQ(debug.describe(opaque).size_bytes, 16U);
  EXPECT_EQ(debug.member(opaque, "depth")->offset_bytes, 8U);
}

TEST(DebugInfoTest, TypesAreFoundAsAUserSpellsThem) {
  Program program = open_program("kinds");
  DebugInfo& debug = program.debug;
  EXPECT_EQ(debug.describe(debug.find_type("unsigned long")).size_bytes, 8U);
  EXPECT_EQ(debug.describe(debug.find_type("unsigned")).name, "unsigned int");
  EXPECT_EQ(debug.describe(debug.find_type("struct client *")).kind, TypeKind::Pointer);
  EXPECT_EQ(debug.describe(debug.find_type("const struct key*")).name, "struct key *");
  EXPECT_EQ(debug.describe(debug.find_type("void *")).size_bytes, 8U);
  EXPECT_EQ(debug.find_type("struct state"), kVoidType);
  EXPECT_EQ(debug.find_type("no_such_type"), kVoidType);
}

TEST(DebugInfoTest, EnumeratorsAreFoundByNameAndListedWithTheirSign) {
  Program program = open_program("kinds");
  DebugInfo& debug = program.debug;
  const TypeId state = debug.find_type("enum state");
  EXPECT_TRUE(debug.describe(state).is_signed);
  const auto enumerators = debug.enumerators(state);
  ASSERT_EQ(enumerators.size(), 3U);
  EXPECT_EQ(enumerators[1].name, "STATE_BUSY");
  EXPECT_EQ(enumerators[1].value, 5);
  EXPECT_EQ(enumerators[2].value, -1);
  EXPECT_EQ(debug.find_enumerator("LOOSE_LIMIT")->value, 77);
  EXPECT_FALSE(debug.find_enumerator("STATE_UNKNOWN"));
}

TEST(DebugInfoTest, CppTypesHaveTheirNamespacesBasesAndClasses) {
  Program program = open_program("classes");
  DebugInfo& debug = program.debug;
  const TypeId order = debug.find_type("shop::Order");
  ASSERT_NE(order, kVoidType);
  EXPECT_EQ(debug.describe(order).name, "shop::Order");
  EXPECT_EQ(debug.member(order, "base_value")->offset_bytes, 8U);
  const TypeMember color = *debug.member(order, "color_");
  EXPECT_EQ(debug.describe(color.type).name, "shop::Color");
  EXPECT_EQ(debug.enumerators(color.type)[1].value, 200);
  EXPECT_EQ(debug.describe(debug.member(order, "line")->type).name, "shop::Order::Line");
  const Signature risky = program.signature("shop::risky");
  ASSERT_EQ(risky.parameters.size(), 1U);
  EXPECT_EQ(risky.parameters[0].place, ArgumentPlace::IntegerRegister);
  EXPECT_TRUE(debug.describe(risky.parameters[0].type).is_reference);
  const Signature constructor = program.signature("shop::Order::Order");
  ASSERT_EQ(constructor.parameters.size(), 2U);
  EXPECT_EQ(constructor.parameters[0].name, "this");
  EXPECT_EQ(constructor.parameters[1].name, "id");
  EXPECT_EQ(constructor.parameters[1].index, 1U);
}

TEST(DebugInfoTest, LinesLeadToStatementsAndBack) {
  Program program = open_program("kinds_unoptimised");
  DebugInfo& debug = program.debug;
  const uint32_t line = test::marked_line("kinds.c", "use_client body");
  for (const std::string_view file : {"kinds.c", "fixtures/kinds.c", "target/fixtures/kinds.c"}) {
    const auto found = debug.find_line(file, line);
    ASSERT_TRUE(found) << file << ": " << found.error().message;
    ASSERT_EQ(found->size(), 1U);
    const uint64_t address = found->front().address;
    EXPECT_EQ(program.image.function_covering(address)->name, "use_client");
    EXPECT_EQ(debug.line_of(address)->line, line);
  }
  // The line before the body's is the function's own, the one before that is empty.
  const auto empty = debug.find_line("kinds.c", line - 2);
  ASSERT_TRUE(empty);
  EXPECT_EQ(empty->front().source.line, line - 1);
  EXPECT_EQ(empty->front().address, program.address("use_client"));
}

TEST(DebugInfoTest, ALineOfAnInlinedFunctionIsAtEachCopy) {
  for (const std::string_view name : {"kinds", "kinds_dwarf4"}) {
    Program program = open_program(name);
    const auto found = program.debug.find_line("kinds.c", test::marked_line("kinds.c", "helper"));
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->size(), 3U) << name;
  }
}

TEST(DebugInfoTest, CallsAtAnAddressAreThoseOfTheSource) {
  const uint32_t line = test::marked_line("kinds.c", "helper");
  const uint32_t body = test::marked_line("kinds.c", "use_client body");
  for (const std::string_view name : {"kinds", "kinds_dwarf4"}) {
    Program program = open_program(name);
    const auto copies = program.debug.find_line("kinds.c", line);
    ASSERT_TRUE(copies) << copies.error().message;
    const auto copy = std::find_if(copies->begin(), copies->end(), [&](const LineAddress& one) {
      return program.image.function_covering(one.address)->name == "use_client";
    });
    ASSERT_NE(copy, copies->end());
    const std::vector<SourceCall> calls = program.debug.calls_at(copy->address);
    ASSERT_EQ(calls.size(), 2U) << name;
    EXPECT_EQ(calls[0].function, "helper");
    EXPECT_EQ(calls[0].place.line, line);
    EXPECT_TRUE(calls[0].is_inlined);
    EXPECT_EQ(calls[1].function, "use_client");
    EXPECT_EQ(calls[1].place.line, body + 1);
    EXPECT_TRUE(calls[1].place.file.ends_with("fixtures/kinds.c")) << calls[1].place.file;
    EXPECT_FALSE(calls[1].is_inlined);
    EXPECT_TRUE(program.debug.calls_at(1).empty());
  }
}

TEST(DebugInfoTest, AFileOrLineThatIsNotThereIsAnErrorWithTheNearest) {
  Program program = open_program("kinds");
  const auto file = program.debug.find_line("kind.c", 10);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message, "no source file 'kind.c'; did you mean 'kinds.c'?");
  EXPECT_FALSE(program.debug.find_line("inds.c", 10));
  const auto line = program.debug.find_line("kinds.c", 9999);
  ASSERT_FALSE(line);
  EXPECT_NE(line.error().message.find("no code at kinds.c:9999"), std::string::npos);
}

TEST(DebugInfoTest, InlinedCopiesAreCounted) {
  const auto copies = [](std::string_view fixture, std::string_view function) {
    Program program = open_program(fixture);
    const auto count = program.debug.inlined_copies(program.address(function));
    EXPECT_TRUE(count) << count.error().message;
    return count.value_or(99);
  };
  EXPECT_EQ(copies("kinds", "tiny"), 2U);
  EXPECT_EQ(copies("kinds_unoptimised", "tiny"), 0U);
  EXPECT_EQ(copies("classes", "shop::risky"), 0U);
  Program program = open_program("kinds");
  EXPECT_EQ(program.debug.inlined_copies(1).error().code, ErrorCode::NotFound);
}

TEST(DebugInfoTest, ASeparateDebugFileServesAStrippedProgram) {
  const test::TemporaryDirectory directory;
  const std::string stripped = directory.file("kinds");
  const std::string debug_file = directory.file("kinds.debug");
  test::run(fmt::format("objcopy --only-keep-debug {} {}", test::fixture("kinds"), debug_file));
  test::run(fmt::format("strip -o {} {}", stripped, test::fixture("kinds")));
  test::run(fmt::format("objcopy --add-gnu-debuglink={} {}", debug_file, stripped));
  auto image = ModuleImage::read(stripped);
  ASSERT_TRUE(image);
  auto debug = DebugInfo::open(*image);
  ASSERT_TRUE(debug) << debug.error().message;
  Program program{std::move(*image), std::move(*debug)};
  EXPECT_EQ(program.signature("use_client").parameters.size(), 3U);
}

TEST(DebugInfoTest, BrokenDwarfIsNoCrash) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.file("kinds");
  const std::vector<uint8_t> whole = test::read_file(test::fixture("kinds"));
  uint32_t random = 7;
  for (int round = 0; round < 40; ++round) {
    std::vector<uint8_t> bytes = whole;
    // The sections of DWARF are the second half of the file, before the section headers.
    const size_t first = bytes.size() / 2;
    for (int flip = 0; flip < 60; ++flip) {
      random = random * 1664525 + 1013904223;
      bytes[first + (random >> 8) % (bytes.size() - first - 4096)] ^=
          static_cast<uint8_t>(1U << (random >> 5) % 8);
    }
    test::write_file(path, bytes);
    auto image = ModuleImage::read(path);
    if (!image) continue;
    auto debug = DebugInfo::open(*image);
    if (!debug) continue;
    for (const Function& function : image->functions()) {
      const auto signature = debug->signature(function.address);
      if (signature) (void)text_of(*debug, *signature);
      (void)debug->line_of(function.address);
    }
    (void)debug->members(debug->find_type("client_t"));
    (void)debug->find_line("kinds.c", 50);
    (void)debug->inlined_copies(image->functions()[0].address);
    (void)debug->find_enumerator("NONE");
  }
}

TEST(PathTest, OnlyWholePartsOfAPathMatch) {
  EXPECT_TRUE(path_ends_with("/src/redis/server.c", "server.c"));
  EXPECT_TRUE(path_ends_with("/src/redis/server.c", "redis/server.c"));
  EXPECT_TRUE(path_ends_with("/src/redis/server.c", "./server.c"));
  EXPECT_TRUE(path_ends_with("server.c", "server.c"));
  EXPECT_FALSE(path_ends_with("/src/redis/server.c", "erver.c"));
  EXPECT_FALSE(path_ends_with("server.c", "redis/server.c"));
}

}  // namespace
}  // namespace clew::target
