// SPDX-License-Identifier: Apache-2.0
#include "target/module_image.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include <elf.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <lzma.h>

#include "target/test_support.h"

namespace clew::target {
namespace {

ModuleImage read_image(const std::string& path, const ReadOptions& options = {}) {
  auto image = ModuleImage::read(path, options);
  if (!image) {
    ADD_FAILURE() << image.error().message;
    std::abort();
  }
  return std::move(*image);
}

const Function* find(const ModuleImage& image, std::string_view name) {
  for (const Function& function : image.functions()) {
    for (const FunctionName& alias : function.names) {
      if (alias.linkage == name || alias.plain == name) return &function;
    }
  }
  return nullptr;
}

std::set<std::string> linkage_names(const Function& function) {
  std::set<std::string> names;
  for (const FunctionName& name : function.names) {
    names.emplace(name.linkage);
  }
  return names;
}

uint64_t hex(const std::string& text) {
  return std::stoull(text, nullptr, 16);
}

TEST(ModuleImageTest, AliasesAreOneFunctionWithTheNameAUserWouldSay) {
  const ModuleImage image = read_image(test::fixture("shop"));
  const Function* function = find(image, "__charge_card");
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(linkage_names(*function),
            (std::set<std::string>{"__charge_card", "bill_card", "charge_card"}));
  EXPECT_EQ(function->name.find('_'), 4U) << function->name;
  EXPECT_EQ(image.function_at(function->address), function);
  EXPECT_EQ(image.function_covering(function->address + 1), function);
  EXPECT_EQ(image.function_at(function->address + 1), nullptr);
}

TEST(ModuleImageTest, AColdPartBelongsToItsFunction) {
  const ModuleImage image = read_image(test::fixture("shop"));
  const Function* refund = find(image, "refund");
  ASSERT_NE(refund, nullptr);
  if (refund->cold.empty()) GTEST_SKIP() << "this compiler made no cold part of refund";
  EXPECT_EQ(find(image, "refund.cold"), nullptr);
  EXPECT_EQ(image.function_covering(refund->cold[0].address + 1), refund);
  EXPECT_EQ(image.function_at(refund->cold[0].address), nullptr);
}

TEST(ModuleImageTest, CompilersCopiesAnswerToTheFunctionsName) {
  const ModuleImage image = read_image(test::fixture("shop"));
  const Function* discount = find(image, "discount");
  ASSERT_NE(discount, nullptr);
  EXPECT_EQ(discount->name, "discount");
  EXPECT_TRUE(discount->names[0].linkage.starts_with("discount"));
}

TEST(ModuleImageTest, SizesAndFunctionsThatSymbolsLackComeFromUnwindEntries) {
  const ModuleImage image = read_image(test::fixture("shop"));
  ASSERT_NE(find(image, "sizeless"), nullptr);
  EXPECT_EQ(find(image, "sizeless")->size_bytes, 6U);
  ASSERT_NE(find(image, "typeless"), nullptr);
  EXPECT_EQ(find(image, "typeless")->size_bytes, 6U);
  EXPECT_EQ(find(image, "just_a_label"), nullptr);
  EXPECT_EQ(find(image, "sequence_start"), nullptr);
  const uint64_t unnamed = find(image, "typeless")->range().end() + 1;
  const Function* function = image.function_at(unnamed);
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(function->name, fmt::format("shop+{:#x}", unnamed));
  EXPECT_EQ(function->origin, FunctionOrigin::UnwindEntry);
}

TEST(ModuleImageTest, IfuncsPointersAndSequencesAreSeen) {
  for (const std::string_view name : {"shop", "shop_relr", "shop_fixed"}) {
    const ModuleImage image = read_image(test::fixture(name));
    const Function* scale = find(image, "scale");
    ASSERT_NE(scale, nullptr) << name;
    EXPECT_TRUE(scale->is_ifunc);
    const auto slots = image.ifunc_slots();
    EXPECT_TRUE(std::any_of(slots.begin(), slots.end(), [&](const IfuncSlot& slot) {
      return slot.resolver_address == scale->address;
    })) << name;
    // The table `operations` holds both.
    for (const std::string_view pointed : {"charge_card", "refund"}) {
      const auto pointers = image.code_pointers();
      EXPECT_TRUE(
          std::binary_search(pointers.begin(), pointers.end(), find(image, pointed)->address))
          << name << " " << pointed;
    }
    ASSERT_EQ(image.restartable_sequences().size(), 1U) << name;
    const RestartableSequence& sequence = image.restartable_sequences()[0];
    EXPECT_EQ(sequence.size_bytes, 3U);
    EXPECT_EQ(sequence.abort_address, sequence.start + 4);
    EXPECT_TRUE(image.section_at(sequence.start)->executable);
    EXPECT_EQ(image.is_position_independent(), name != "shop_fixed");
  }
}

TEST(ModuleImageTest, ThePltIsNoFunction) {
  const ModuleImage image = read_image(test::fixture("shop"));
  size_t plt_sections = 0;
  for (const Section& section : image.sections()) {
    plt_sections += section.is_plt ? 1 : 0;
    for (const Function& function : image.functions()) {
      EXPECT_FALSE(section.is_plt && section.contains(function.address)) << function.name;
    }
  }
  EXPECT_GT(plt_sections, 0U);
}

TEST(ModuleImageTest, CppNamesAreReadable) {
  const ModuleImage image = read_image(test::fixture("classes"));
  const Function* function = find(image, "_ZN4shop5twiceIiEET_S1_");
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(function->name, "shop::twice<int>");
  EXPECT_EQ(function->demangled, "int shop::twice<int>(int)");
  // Complete and base constructor are one.
  const Function* constructor = find(image, "shop::Order::Order");
  ASSERT_NE(constructor, nullptr);
  EXPECT_EQ(constructor->names.size(), 2U);
}

// readelf's own account of the unwind entries and the symbols of whole libraries.
void compare_with_readelf(const std::string& path) {
  SCOPED_TRACE(path);
  ReadOptions only_this_file;
  only_this_file.debug_directory = "";
  const ModuleImage image = read_image(path, only_this_file);
  std::multimap<uint64_t, uint64_t> expected;
  for (const std::string& line :
       test::lines_of(test::run("readelf --debug-dump=frames " + path +
                                " 2>/dev/null | grep -o ' FDE .*pc=[0-9a-f.]*'"
                                " | grep -o 'pc=.*' | cut -c4-"))) {
    const uint64_t start = hex(line.substr(0, line.find('.')));
    const uint64_t end = hex(line.substr(line.rfind('.') + 1));
    const Section* section = image.section_at(start);
    const bool wanted =
        end > start && section != nullptr && section->executable && !section->is_plt;
    if (wanted) expected.emplace(start, end - start);
  }
  std::multimap<uint64_t, uint64_t> ours;
  for (const Fde& fde : image.fdes()) {
    ours.emplace(fde.address, fde.size_bytes);
  }
  EXPECT_EQ(ours, expected);

  std::map<uint64_t, std::set<std::string>> symbols;
  for (const std::string& line :
       test::lines_of(test::run("readelf -sW " + path +
                                " 2>/dev/null | awk '($4==\"FUNC\"||$4==\"IFUNC\") && "
                                "$7!=\"UND\" {print $2, $8}'"))) {
    const std::string name = line.substr(line.find(' ') + 1);
    symbols[hex(line)].insert(name.substr(0, name.find('@')));
  }
  for (const auto& [address, names] : symbols) {
    const Function* function = image.function_at(address);
    if (function == nullptr) {  // Only cold parts may be missing.
      ASSERT_NE(image.function_covering(address), nullptr) << *names.begin();
      EXPECT_NE(names.begin()->find(".cold"), std::string::npos) << *names.begin();
      continue;
    }
    EXPECT_EQ(linkage_names(*function), names);
  }
  // And no function has a symbol that readelf does not know, but for labels of assembly.
  for (const Function& function : image.functions()) {
    const bool known = symbols.count(function.address) != 0;
    const bool is_label = image.function_at(function.address)->names.size() == 1;
    EXPECT_TRUE(known || function.origin == FunctionOrigin::UnwindEntry || is_label)
        << function.name;
  }
}

TEST(ModuleImageTest, LibrariesAgreeWithReadelf) {
  compare_with_readelf(test::fixture("shop"));
  compare_with_readelf(test::fixture("classes"));
  for (const std::string path :
       {"/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
        "/usr/bin/redis-server"}) {
    if (std::filesystem::exists(path)) compare_with_readelf(path);
  }
}

TEST(ModuleImageTest, LandingPadsAgreeWithTheCompilersTable) {
  const ModuleImage image = read_image(test::fixture("classes"));
  const Function* guarded = find(image, "shop::guarded");
  ASSERT_NE(guarded, nullptr);
  std::vector<uint64_t> pads;
  for (const Fde& fde : image.fdes()) {
    if (!guarded->range().contains(fde.address)) continue;
    EXPECT_TRUE(fde.has_lsda);
    EXPECT_TRUE(fde.cfa_at_start_is_rsp_plus_8);
    pads.assign(fde.landing_pads.begin(), fde.landing_pads.end());
  }
  // A catch, and the clean-up of a string: both lead into the function or its cold part.
  ASSERT_GE(pads.size(), 2U);
  for (const uint64_t pad : pads) {
    EXPECT_EQ(image.function_covering(pad), guarded) << fmt::format("{:#x}", pad);
  }
  for (const AddressRange& cold : guarded->cold) {
    const auto fdes = image.fdes();
    const auto entry = std::find_if(fdes.begin(), fdes.end(),
                                    [&](const Fde& fde) { return fde.address == cold.address; });
    ASSERT_NE(entry, fdes.end());
    EXPECT_FALSE(entry->cfa_at_start_is_rsp_plus_8);
  }
}

// The same functions, wherever their symbols are kept.
class StrippedImageTest : public testing::Test {
 protected:
  StrippedImageTest() {
    full_ = test::fixture("kinds");
    stripped_ = directory_.file("kinds");
    test::run("strip -o " + stripped_ + " " + full_);
  }

  void expect_same_functions(FunctionOrigin origin, const ReadOptions& options) {
    const ModuleImage full = read_image(full_);
    const ModuleImage other = read_image(stripped_, options);
    EXPECT_TRUE(other.problems().empty()) << other.problems()[0];
    for (const std::string_view name : {"use_client", "many", "returns_big", "main"}) {
      const Function* expected = find(full, name);
      const Function* actual = find(other, name);
      ASSERT_NE(actual, nullptr) << name;
      EXPECT_EQ(actual->address, expected->address);
      EXPECT_EQ(actual->size_bytes, expected->size_bytes);
      EXPECT_EQ(actual->origin, origin);
    }
  }

  test::TemporaryDirectory directory_;
  std::string full_;
  std::string stripped_;
};

TEST_F(StrippedImageTest, WithoutAnySymbolsEveryFunctionIsStillThereByItsUnwindEntry) {
  ReadOptions options;
  options.debug_directory = directory_.path();
  const ModuleImage full = read_image(full_);
  const ModuleImage image = read_image(stripped_, options);
  for (const std::string_view name : {"use_client", "many", "returns_big"}) {
    const Function* expected = find(full, name);
    const Function* actual = image.function_at(expected->address);
    ASSERT_NE(actual, nullptr);
    EXPECT_EQ(actual->size_bytes, expected->size_bytes);
    EXPECT_EQ(actual->name, fmt::format("kinds+{:#x}", expected->address));
  }
}

TEST_F(StrippedImageTest, ADebugFileIsFoundByBuildId) {
  const std::string id(read_image(full_).build_id());
  ASSERT_EQ(id.size(), 40U);
  const std::string debug = fmt::format("{}/.build-id/{}", directory_.path(), id.substr(0, 2));
  std::filesystem::create_directories(debug);
  test::run(fmt::format("objcopy --only-keep-debug {} {}/{}.debug", full_, debug, id.substr(2)));
  ReadOptions options;
  options.debug_directory = directory_.path();
  expect_same_functions(FunctionOrigin::DebugFile, options);
}

TEST_F(StrippedImageTest, ADebugFileIsFoundByItsLinkAndOnlyIfItIsTheRightOne) {
  const std::string debug = directory_.file("kinds.debug");
  test::run(fmt::format("objcopy --only-keep-debug {} {}", full_, debug));
  test::run(fmt::format("objcopy --add-gnu-debuglink={} {}", debug, stripped_));
  ReadOptions options;
  options.debug_directory = directory_.path();
  expect_same_functions(FunctionOrigin::DebugFile, options);
  test::run(fmt::format("objcopy --only-keep-debug {} {}", test::fixture("classes"), debug));
  EXPECT_TRUE(read_image(stripped_, options).debug_file().empty());
}

TEST_F(StrippedImageTest, ADebugFileThatSomebodyElseMayHaveWrittenIsNotBelieved) {
  const std::string debug = directory_.file("kinds.debug");
  test::run(fmt::format("objcopy --only-keep-debug {} {}", full_, debug));
  test::run(fmt::format("objcopy --add-gnu-debuglink={} {}", debug, stripped_));
  ReadOptions options;
  options.debug_directory = directory_.path();
  test::run("chmod 0666 " + debug);
  EXPECT_TRUE(read_image(stripped_, options).debug_file().empty());
  test::run("chmod 0644 " + debug);
  EXPECT_EQ(read_image(stripped_, options).debug_file(), debug);
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  test::run("chown 65534 " + debug);
  EXPECT_TRUE(read_image(stripped_, options).debug_file().empty());
  test::run("chown 65534 " + stripped_);
  EXPECT_EQ(read_image(stripped_, options).debug_file(), debug) << "both are one user's";
}

TEST_F(StrippedImageTest, WithoutABuildIdTheChecksumOfTheLinkDecides) {
  const std::string debug = directory_.file("kinds.debug");
  const std::string bare = directory_.file("bare");
  test::run(fmt::format("objcopy --remove-section=.note.gnu.build-id {} {}", full_, bare));
  test::run(fmt::format("objcopy --only-keep-debug {} {}", bare, debug));
  test::run(fmt::format("strip -o {} {}", stripped_, bare));
  test::run(fmt::format("objcopy --add-gnu-debuglink={} {}", debug, stripped_));
  ReadOptions options;
  options.debug_directory = directory_.path();
  ASSERT_TRUE(read_image(stripped_, options).build_id().empty());
  expect_same_functions(FunctionOrigin::DebugFile, options);
  std::vector<uint8_t> changed = test::read_file(debug);
  changed.back() ^= 1;
  test::write_file(debug, changed);
  EXPECT_TRUE(read_image(stripped_, options).debug_file().empty());
}

TEST_F(StrippedImageTest, MiniDebugInfoIsDecompressed) {
  const std::string debug = directory_.file("mini");
  test::run(
      fmt::format("objcopy -S --keep-symbol=use_client --keep-symbol=many "
                  "--keep-symbol=returns_big --keep-symbol=main --remove-section=.comment "
                  "{} {}",
                  full_, debug));
  const std::vector<uint8_t> inner = test::read_file(debug);
  std::vector<uint8_t> packed(lzma_stream_buffer_bound(inner.size()));
  size_t size = 0;
  ASSERT_EQ(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC32, nullptr, inner.data(), inner.size(),
                                    packed.data(), &size, packed.size()),
            LZMA_OK);
  packed.resize(size);
  test::write_file(directory_.file("packed"), packed);
  test::run(fmt::format("objcopy --add-section .gnu_debugdata={} {}", directory_.file("packed"),
                        stripped_));
  ReadOptions options;
  options.debug_directory = directory_.path();
  expect_same_functions(FunctionOrigin::MiniDebugInfo, options);
}

TEST_F(StrippedImageTest, WithoutSectionHeadersTheDynamicTableAndTheUnwindHeaderAreEnough) {
  const ModuleImage full = read_image(test::fixture("shop"));
  // Where there is a first header, it is the one to say how many there are: none here, too.
  for (const bool has_place : {false, true}) {
    std::vector<uint8_t> bytes = test::read_file(test::fixture("shop"));
    Elf64_Ehdr header;
    std::memcpy(&header, bytes.data(), sizeof(header));
    if (!has_place) header.e_shoff = 0;
    header.e_shnum = 0;
    header.e_shstrndx = 0;
    std::memcpy(bytes.data(), &header, sizeof(header));
    const std::string path = directory_.file("headless");
    test::write_file(path, bytes);
    const ModuleImage image = read_image(path);
    EXPECT_EQ(image.build_id(), full.build_id());
    const Function* refund = find(image, "refund");
    ASSERT_NE(refund, nullptr);
    EXPECT_EQ(refund->address, find(full, "refund")->address);
    EXPECT_EQ(refund->origin, FunctionOrigin::DynamicSymbols);
    EXPECT_GE(image.fdes().size(), full.fdes().size());
  }
}

TEST(ModuleImageTest, ImportsAreFoundByName) {
  const ModuleImage image = read_image(test::fixture("shop"));
  const auto slots = image.import_slots("strlen");
  ASSERT_TRUE(slots);
  ASSERT_EQ(slots->size(), 1U);
  EXPECT_TRUE(image.section_at((*slots)[0].slot_address)->writable);
  EXPECT_TRUE(image.import_slots("no_such_import")->empty());
  const auto all = image.import_slots();
  ASSERT_TRUE(all);
  EXPECT_GE(std::count_if(all->begin(), all->end(),
                          [](const ImportSlot& slot) { return slot.symbol == "strlen"; }),
            1);
}

TEST(ModuleImageTest, SectionBytesAreThoseOfTheFile) {
  const ModuleImage image = read_image(test::fixture("shop"));
  const Function* sizeless = find(image, "sizeless");
  const Section* text = image.section_at(sizeless->address);
  ASSERT_NE(text, nullptr);
  const auto bytes = image.bytes(*text);
  ASSERT_TRUE(bytes);
  const auto code = bytes->subspan(sizeless->address - text->address, 6);
  EXPECT_EQ(std::vector<uint8_t>(code.begin(), code.end()),
            (std::vector<uint8_t>{0xb8, 7, 0, 0, 0, 0xc3}));
}

TEST(HostileFileTest, WhatIsNoProgramIsRefusedWithAReason) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.file("file");
  const auto refusal = [&](std::vector<uint8_t> bytes) {
    test::write_file(path, bytes);
    const auto image = ModuleImage::read(path);
    EXPECT_FALSE(image);
    return image ? std::string() : image.error().message;
  };
  EXPECT_NE(refusal({}).find("not an ELF file"), std::string::npos);
  EXPECT_NE(refusal({'#', '!', '/', 'b'}).find("not an ELF file"), std::string::npos);
  std::vector<uint8_t> program = test::read_file(test::fixture("shop"));
  program[EI_CLASS] = ELFCLASS32;
  EXPECT_NE(refusal(program).find("32-bit"), std::string::npos);
  program[EI_CLASS] = ELFCLASS64;
  program[18] = EM_AARCH64;
  EXPECT_NE(refusal(program).find("not an ELF file for 64-bit x86"), std::string::npos);
  EXPECT_EQ(ModuleImage::read(directory.file("missing")).error().code, ErrorCode::NotFound);
  EXPECT_EQ(ModuleImage::read(directory.path()).error().code, ErrorCode::Refused);
}

// Reads everything that an image offers, so that a bad range would be touched.
void use_everything(const ModuleImage& image) {
  size_t sum = 0;
  for (const Function& function : image.functions()) {
    ASSERT_NE(function.size_bytes, 0U);
    ASSERT_FALSE(function.names.empty());
    for (const FunctionName& name : function.names) {
      sum += name.plain.size() + name.demangled.size() + name.linkage.size();
    }
    sum += function.cold.size();
  }
  for (const Fde& fde : image.fdes()) {
    for (const uint64_t pad : fde.landing_pads) {
      sum += pad;
    }
  }
  for (const Section& section : image.sections()) {
    const auto bytes = image.bytes(section);
    if (bytes && !bytes->empty()) sum += bytes->front() + bytes->back();
  }
  (void)image.import_slots("strlen");
  (void)image.function_covering(sum);
}

TEST(HostileFileTest, ATruncatedFileIsAnErrorOrReadsWithoutWhatIsMissing) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.file("file");
  for (const std::string_view name : {"shop", "classes"}) {
    const std::vector<uint8_t> whole = test::read_file(test::fixture(name));
    for (size_t size = 0; size < whole.size(); size += 1 + whole.size() / 97) {
      test::write_file(path, {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
      const auto image = ModuleImage::read(path);
      if (image) use_everything(*image);
    }
  }
}

TEST(HostileFileTest, FlippedBitsNeverHarm) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.file("file");
  std::mt19937 random(1);  // The same bits each time.
  for (const std::string_view name : {"shop", "shop_fixed", "classes"}) {
    const std::vector<uint8_t> whole = test::read_file(test::fixture(name));
    for (int round = 0; round < 60; ++round) {
      std::vector<uint8_t> bytes = whole;
      for (int flip = 0; flip < 40; ++flip) {
        // Headers are a small part of the file, and the most telling.
        const size_t limit = flip % 2 == 0 ? 4096 : bytes.size();
        bytes[sizeof(Elf64_Ehdr) / 2 + random() % (limit - 64)] ^=
            static_cast<uint8_t>(1U << random() % 8);
      }
      test::write_file(path, bytes);
      const auto image = ModuleImage::read(path);
      if (image) use_everything(*image);
    }
  }
}

TEST(HostileFileTest, ABrokenEhFrameDoesNotHideTheSymbols) {
  const test::TemporaryDirectory directory;
  const ModuleImage whole = read_image(test::fixture("shop"));
  std::vector<uint8_t> bytes = test::read_file(test::fixture("shop"));
  for (const Section& section : whole.sections()) {
    if (section.name == ".eh_frame") bytes[section.file_offset + 1] = 0xff;
  }
  test::write_file(directory.file("shop"), bytes);
  const ModuleImage image = read_image(directory.file("shop"));
  EXPECT_FALSE(image.problems().empty());
  EXPECT_NE(find(image, "charge_card"), nullptr);
}

}  // namespace
}  // namespace clew::target
