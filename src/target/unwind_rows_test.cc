// SPDX-License-Identifier: Apache-2.0
#include "target/unwind_rows.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <random>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "target/address_space.h"
#include "target/eh_frame.h"
#include "target/elf_file.h"
#include "target/test_support.h"
#include "target/unwind_expression.h"

namespace clew::target {
namespace {

UnwindRows rows_of(const std::string& path) {
  auto rows = read_unwind_rows(path);
  EXPECT_TRUE(rows.has_value()) << path;
  return rows ? std::move(*rows) : UnwindRows();
}

const UnwindRule& rule_at(const UnwindRows& rows, uint64_t address) {
  const auto after =
      std::upper_bound(rows.rows.begin(), rows.rows.end(), address,
                       [](uint64_t wanted, const UnwindRow& row) { return wanted < row.address; });
  return rows.rules[after == rows.rows.begin() ? 0 : (after - 1)->rule];
}

// As binutils' readelf writes it: "rsp+8", "rbp+16", "exp".
std::string cfa_text(const UnwindRule& rule) {
  static const char* const kNames[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
                                       "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
  if (rule.kind != UnwindKind::Base || rule.is_loaded) return "exp";
  return fmt::format("{}{:+}", kNames[rule.base], rule.offset);
}

std::string saved_text(const SavedRegister& saved) {
  switch (saved.at) {
    case SavedAt::Same:
    case SavedAt::Lost:
      return "u";
    case SavedAt::Cfa:
      return fmt::format("c{:+}", saved.offset);
    case SavedAt::Sp:
    case SavedAt::Fp:
      return "exp";
  }
  return "";
}

// Lines of `readelf --debug-dump=frames-interp`: a head that names columns, then rows.
void expect_as_readelf_says(const std::string& path) {
  const UnwindRows rows = rows_of(path);
  std::vector<std::string> columns;
  size_t compared = 0;
  size_t different = 0;
  for (const std::string& line :
       test::lines_of(test::run("readelf --debug-dump=frames-interp,no-follow-links " + path))) {
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;)
      words.push_back(word);
    if (words.empty() || line.find("FDE") != std::string::npos) columns.clear();
    if (line.find("CIE") != std::string::npos) columns = {"skip"};  // Its rows are of no code.
    if (!words.empty() && words[0] == "LOC" && columns.empty()) columns = words;
    if (columns.size() < 2 || words.size() != columns.size() || words[0] == "LOC") continue;
    const UnwindRule& rule = rule_at(rows, std::stoull(words[0], nullptr, 16));
    if (rule.kind == UnwindKind::End) continue;
    ++compared;
    std::string ours = cfa_text(rule);
    std::string theirs = words[1];
    for (size_t i = 2; i < columns.size(); ++i) {
      const SavedRegister* saved = columns[i] == "rbp"   ? &rule.fp
                                   : columns[i] == "rbx" ? &rule.bx
                                   : columns[i] == "ra"  ? &rule.pc
                                                         : nullptr;
      if (saved == nullptr) continue;
      ours += ' ' + saved_text(*saved);
      // "s": it is as it was, said and not assumed.
      theirs += ' ' + (words[i] == "s" ? "u" : words[i]);
    }
    if (ours != theirs && ++different < 10) {
      ADD_FAILURE() << path << " at " << words[0] << ": " << ours << ", readelf: " << theirs;
    }
  }
  EXPECT_GT(compared, 30U) << path;
  EXPECT_EQ(different, 0U) << path;
}

TEST(UnwindRows, AreThoseThatReadelfPrints) {
  for (const char* path : {"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2",
                           "/bin/bash", "/proc/self/exe"}) {
    const std::string real = test::lines_of(test::run(fmt::format("readlink -f {}", path)))[0];
    expect_as_readelf_says(std::string_view(path) == "/proc/self/exe" ? test::fixture("classes")
                                                                      : real);
  }
}

TEST(UnwindRows, AreByAddressAndDifferFromTheirNeighbours) {
  const UnwindRows rows = rows_of(test::fixture("shop"));
  ASSERT_FALSE(rows.rows.empty());
  EXPECT_EQ(rows.rules[0], UnwindRule());
  EXPECT_EQ(rows.rows.back().rule, 0U);  // Nothing is said of what lies behind.
  for (size_t i = 1; i < rows.rows.size(); ++i) {
    EXPECT_LT(rows.rows[i - 1].address, rows.rows[i].address);
    EXPECT_NE(rows.rows[i - 1].rule, rows.rows[i].rule);
  }
}

TEST(UnwindRows, OfTheLinkersStubsDependOnThePlaceInTheStub) {
  const UnwindRows rows = rows_of("/bin/bash");
  const bool has_plt = std::any_of(rows.rules.begin(), rows.rules.end(), [](const auto& rule) {
    return rule.kind == UnwindKind::Plt && rule.offset == 8 && rule.second_offset == 11;
  });
  EXPECT_TRUE(has_plt);
}

TEST(UnwindRows, OfTheEndOfASignalHandlerAreInTheContext) {
  const UnwindRows rows = rows_of("/lib/x86_64-linux-gnu/libc.so.6");
  const auto found = std::find_if(rows.rules.begin(), rows.rules.end(),
                                  [](const UnwindRule& rule) { return rule.is_signal; });
  ASSERT_NE(found, rows.rules.end());
  EXPECT_TRUE(found->is_loaded);
  EXPECT_EQ(found->offset, 160);
  EXPECT_EQ(found->pc, (SavedRegister{SavedAt::Sp, 168}));
  EXPECT_EQ(found->fp, (SavedRegister{SavedAt::Sp, 120}));
}

TEST(UnwindRows, OfTheVdsoAreReadFromMemory) {
  const std::vector<uint8_t> image = read_vdso();
  ASSERT_FALSE(image.empty());
  const auto rows = read_unwind_rows(image);
  ASSERT_TRUE(rows.has_value());
  EXPECT_FALSE(rows->rows.empty());
}

TEST(UnwindRows, OfAFileThatIsNoProgramAreAnError) {
  EXPECT_FALSE(read_unwind_rows("/etc/passwd"));
  EXPECT_FALSE(read_unwind_rows("/nowhere"));
  EXPECT_FALSE(read_unwind_rows(std::vector<uint8_t>{1, 2, 3}));
}

void expect_in_order(const UnwindRows& rows) {
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    ASSERT_LT(rows.rows[i].rule, rows.rules.size());
    if (i == 0) continue;
    ASSERT_LT(rows.rows[i - 1].address, rows.rows[i].address);
  }
}

TEST(UnwindRows, OfBrokenFilesAreFewerOrNone) {
  const std::vector<uint8_t> good = test::read_file(test::fixture("shop"));
  const ElfFile file = *ElfFile::open(test::fixture("shop"));
  const ElfSection* section = file.find_section(".eh_frame");
  ASSERT_NE(section, nullptr);
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint8_t> broken = good;
    for (uint32_t i = 0; i < 1 + random() % 8; ++i) {
      broken[section->header.sh_offset + random() % section->header.sh_size] =
          static_cast<uint8_t>(random());
    }
    if (round % 4 == 0) broken.resize(section->header.sh_offset + random() % good.size());
    const auto rows = read_unwind_rows(broken);
    if (rows) expect_in_order(*rows);
  }
}

// The fixture `shop` with an entry at the begin that is longer than its section.
UnwindRows rows_without_entries() {
  std::vector<uint8_t> broken = test::read_file(test::fixture("shop"));
  const ElfFile file = *ElfFile::open(test::fixture("shop"));
  const size_t begin = file.find_section(".eh_frame")->header.sh_offset;
  std::fill_n(broken.begin() + static_cast<std::ptrdiff_t>(begin), 4, uint8_t{0x7f});
  auto rows = read_unwind_rows(broken);
  EXPECT_TRUE(rows.has_value());
  return rows ? std::move(*rows) : UnwindRows();
}

TEST(UnwindRows, OfAnEntryWhoseLengthIsTooLongEndThere) {
  const UnwindRows rows = rows_without_entries();
  EXPECT_LE(rows.rules.size(), 2U);  // Those of the first instructions.
  EXPECT_FALSE(rows.problems.empty());
}

TEST(UnwindRows, WithoutAnEntryKnowTheFirstInstructionOfAFunction) {
  const UnwindRows rows = rows_without_entries();
  const auto image = ModuleImage::read(test::fixture("shop"), ReadOptions());
  ASSERT_TRUE(image.has_value());
  const auto functions = image->functions();
  const auto main_function = std::find_if(functions.begin(), functions.end(),
                                          [](const Function& it) { return it.name == "main"; });
  ASSERT_NE(main_function, functions.end());
  const UnwindRule& first = rule_at(rows, main_function->address);
  EXPECT_EQ(cfa_text(first) + " " + saved_text(first.pc), "rsp+8 c-8");
  EXPECT_EQ(rule_at(rows, main_function->address + 1), UnwindRule());
  expect_in_order(rows);
}

TEST(UnwindExpression, KnowsTheFormsThatCompilersMake) {
  const auto cfa = [](std::vector<uint8_t> bytes) { return read_cfa_expression(bytes); };
  EXPECT_EQ(cfa({0x76, 0x78}).offset, -8);                                // breg6 -8
  EXPECT_TRUE(cfa({0x76, 0x78, 0x06}).is_loaded);                         // … deref
  EXPECT_EQ(cfa({0x77, 0xc8, 0x00, 0x06, 0x23, 0x08}).second_offset, 8);  // … plus_uconst 8
  EXPECT_EQ(cfa({0x77, 0x00, 0x06, 0x38, 0x22}).second_offset, 8);        // … lit8; plus
  const CfaExpression plt = cfa({0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22});
  EXPECT_EQ(plt.kind, UnwindKind::Plt);
  EXPECT_EQ(plt.second_offset, 11);
}

TEST(UnwindExpression, LeavesOutWhatItDoesNotKnow) {
  const std::vector<std::vector<uint8_t>> strange = {{},
                                                     {0x70},
                                                     {0x76, 0xff},
                                                     {0x76, 0x00, 0x06, 0x06},
                                                     {0x76, 0x00, 0x22},
                                                     {0x30},
                                                     {0x80, 0x00},
                                                     {0x77, 0x08, 0x80},
                                                     {0x77, 0x08, 0x76, 0x00, 0x3f, 0x1a}};
  for (const auto& bytes : strange) {
    EXPECT_EQ(read_cfa_expression(bytes).kind, UnwindKind::Unsupported);
  }
  EXPECT_EQ(read_saved_expression(strange[3]).at, SavedAt::Lost);
}

}  // namespace
}  // namespace clew::target
