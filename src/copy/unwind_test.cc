// SPDX-License-Identifier: Apache-2.0
// Unwinding through copies: what is written is put into an ELF file and read by those who read
// .eh_frame of any file, and at each instruction it says what the original's says.
#include "copy/unwind.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <elf.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "copy/frame_states.h"
#include "copy/victims_testing.h"
#include "target/unwind_rows.h"

namespace clew::copy {
namespace {

template <typename Word>
Word word_at(std::span<const uint8_t> bytes, size_t at) {
  Word word{};
  EXPECT_LE(at + sizeof(word), bytes.size());
  if (at + sizeof(word) <= bytes.size()) std::memcpy(&word, bytes.data() + at, sizeof(word));
  return word;
}

// In .eh_frame_hdr.
constexpr size_t kFramesField = 4;
constexpr size_t kCountField = 8;
constexpr size_t kTableField = 12;

size_t frames_offset(const UnwindBytes& unwind) {
  const size_t field = unwind.header + kFramesField;
  return field + static_cast<size_t>(word_at<int32_t>(unwind.bytes, field));
}

// A file with the copy as its .text.
class CopyFile {
 public:
  CopyFile(const ModuleCopy& copy, const UnwindBytes& unwind)
      : path_(fmt::format("{}/clew-unwind-{}", testing::TempDir(), getpid())) {
    const std::span<const uint8_t> bytes = unwind.bytes;
    const size_t frames = frames_offset(unwind);
    add(".text", SHF_ALLOC | SHF_EXECINSTR, copy.address,
        std::span(copy.bytes).first(copy.code_size));
    add(".gcc_except_table", SHF_ALLOC, unwind.address, bytes.first(frames));
    add(".eh_frame", SHF_ALLOC, unwind.address + frames,
        bytes.subspan(frames, unwind.header - frames));
    write();
  }
  CopyFile(const CopyFile&) = delete;
  CopyFile& operator=(const CopyFile&) = delete;
  ~CopyFile() { std::filesystem::remove(path_); }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  void add(const char* name, uint64_t flags, uint64_t address, std::span<const uint8_t> bytes) {
    Elf64_Shdr section{};
    section.sh_name = static_cast<Elf64_Word>(names_.size());
    section.sh_type = SHT_PROGBITS;
    section.sh_flags = flags;
    section.sh_addr = address;
    section.sh_offset = sizeof(Elf64_Ehdr) + content_.size();
    section.sh_size = bytes.size();
    names_ += std::string(name) + '\0';
    content_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    sections_.push_back(section);
  }

  void write() {
    Elf64_Shdr names{};
    names.sh_name = static_cast<Elf64_Word>(names_.size());
    names_ += std::string(".shstrtab") + '\0';
    names.sh_type = SHT_STRTAB;
    names.sh_offset = sizeof(Elf64_Ehdr) + content_.size();
    names.sh_size = names_.size();
    content_ += names_;
    sections_.push_back(names);
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_DYN;
    header.e_machine = EM_X86_64;
    header.e_version = EV_CURRENT;
    header.e_ehsize = sizeof(header);
    header.e_shoff = sizeof(header) + content_.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(sections_.size());
    header.e_shstrndx = static_cast<Elf64_Half>(sections_.size() - 1);
    std::ofstream file(path_, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&header), sizeof(header));
    file << content_;
    file.write(reinterpret_cast<const char*>(sections_.data()),
               static_cast<std::streamsize>(sections_.size() * sizeof(Elf64_Shdr)));
  }

  std::string path_;
  std::string content_;
  std::string names_ = std::string(1, '\0');
  std::vector<Elf64_Shdr> sections_ = {Elf64_Shdr{}};
};

// As unwinders find them in one file.
struct Unwinding {
  explicit Unwinding(const std::string& path)
      : rows(*target::read_unwind_rows(path)), tables(*target::read_frame_tables(path)) {}

  [[nodiscard]] const target::FrameEntry* entry_at(uint64_t address) const {
    const auto behind = std::upper_bound(
        tables.entries.begin(), tables.entries.end(), address,
        [](uint64_t value, const target::FrameEntry& one) { return value < one.address; });
    if (behind == tables.entries.begin() || (behind - 1)->end() <= address) return nullptr;
    return &*(behind - 1);
  }
  [[nodiscard]] const target::UnwindRule& rule_at(uint64_t address) const {
    const auto behind = std::upper_bound(
        rows.rows.begin(), rows.rows.end(), address,
        [](uint64_t value, const target::UnwindRow& row) { return value < row.address; });
    return rows.rules[behind == rows.rows.begin() ? 0 : (behind - 1)->rule];
  }
  [[nodiscard]] const target::ExceptionTable* exceptions_of(const target::FrameEntry& entry) const {
    return entry.exceptions == target::kNoExceptionTable ? nullptr
                                                         : &tables.exceptions[entry.exceptions];
  }

  target::UnwindRows rows;
  target::FrameTables tables;
};

const target::CallSite* site_at(const target::ExceptionTable& table, uint64_t address) {
  for (const target::CallSite& site : table.sites) {
    if (site.begin <= address && address < site.end) return &site;
  }
  return nullptr;
}

template <typename Item>
bool begins_with(const std::vector<Item>& all, const std::vector<Item>& part) {
  return part.size() <= all.size() && std::equal(part.begin(), part.end(), all.begin());
}

// So many bytes that do nothing wherever something may be inserted.
Insertions everywhere(const Victim& victim, size_t size) {
  Insertions insertions;
  const std::vector<uint8_t> nops(size, 0x90);
  for (const Proved& proved : victim.proof().proved) {
    for (const code::Block& block : proved.blocks.blocks()) {
      insertions.before.emplace(block.begin, nops);
      const code::Flow flow = victim.facts().code.at(block.last)->flow;
      if (flow == code::Flow::Conditional) insertions.taken.emplace(block.last, nops);
      if (flow == code::Flow::Conditional || flow == code::Flow::Call)
        insertions.passed.emplace(block.last, nops);
    }
  }
  return insertions;
}

struct Written {
  Written(const Victim& victim, size_t inserted)
      : inserted_bytes(inserted),
        insertions(inserted == 0 ? Insertions() : everywhere(victim, inserted)),
        copy(*write_copy(victim.facts(), victim.proof().proved, insertions, victim.behind())),
        tables(*target::read_frame_tables(victim.path)),
        unwind(
            *write_unwind({tables, insertions, copy, victim.image().is_position_independent()})) {}

  size_t inserted_bytes;
  Insertions insertions;
  ModuleCopy copy;
  target::FrameTables tables;
  UnwindBytes unwind;
};

// A file, and an unwinder's view of it and of its copy.
struct Case {
  Case(const char* path, size_t inserted) : victim(path), written(victim, inserted) {
    const CopyFile file(written.copy, written.unwind);
    original.emplace(path);
    copied.emplace(file.path());
  }

  Victim victim;
  Written written;
  std::optional<Unwinding> original;
  std::optional<Unwinding> copied;
};

class UnwindFiles : public testing::TestWithParam<std::tuple<const char*, size_t>> {
 protected:
  // Each is made once, for all tests.
  void SetUp() override {
    static std::map<std::tuple<const char*, size_t>, std::unique_ptr<Case>> cases;
    const auto [path, inserted] = GetParam();
    if (access(path, R_OK) != 0) GTEST_SKIP() << "not installed";
    std::unique_ptr<Case>& made = cases[GetParam()];
    if (made == nullptr) made = std::make_unique<Case>(path, inserted);
    case_ = made.get();
    written_ = &case_->written;
    original_ = &*case_->original;
    copied_ = &*case_->copied;
  }

  // Each instruction and what is inserted, with its place in the copy.
  template <typename Check>
  void each_pc(Check check) const {
    for (const CopiedPc& pc : written_->copy.pcs) {
      const target::FrameEntry* const entry = original_->entry_at(pc.original);
      const uint64_t address = written_->copy.address + pc.offset;
      if (entry != nullptr) check(pc, *entry, address);
      if (HasFatalFailure()) return;
    }
  }

  const Case* case_ = nullptr;
  const Written* written_ = nullptr;
  const Unwinding* original_ = nullptr;
  const Unwinding* copied_ = nullptr;
};

TEST_P(UnwindFiles, EachPlaceOfACopyHasTheRowOfItsOriginal) {
  EXPECT_TRUE(copied_->tables.problems.empty());
  size_t compared = 0;
  each_pc([&](const CopiedPc& pc, const target::FrameEntry&, uint64_t address) {
    ASSERT_EQ(copied_->rule_at(address), original_->rule_at(pc.original))
        << fmt::format("{:x} of {:x}", address, pc.original);
    ++compared;
  });
  EXPECT_GT(compared, 1000U);
}

TEST_P(UnwindFiles, EachCallLandsWhereItsOriginalDoes) {
  const CopyMap map(written_->copy);
  size_t landings = 0;
  each_pc([&](const CopiedPc& pc, const target::FrameEntry& entry, uint64_t address) {
    const target::FrameEntry* const copied = copied_->entry_at(address);
    ASSERT_NE(copied, nullptr);
    const target::ExceptionTable* const wanted = original_->exceptions_of(entry);
    const target::ExceptionTable* const table = copied_->exceptions_of(*copied);
    ASSERT_EQ(table != nullptr, wanted != nullptr);
    if (table == nullptr) return;
    const target::CallSite* const site = site_at(*table, address);
    const target::CallSite* const wanted_site = site_at(*wanted, pc.original);
    ASSERT_EQ(site != nullptr, wanted_site != nullptr) << fmt::format("{:x}", pc.original);
    if (site == nullptr) return;
    ASSERT_EQ(site->action, wanted_site->action);
    ASSERT_EQ(site->landing_pad == 0, wanted_site->landing_pad == 0);
    if (site->landing_pad == 0) return;
    const auto landing = map.copy_of(wanted_site->landing_pad);
    ASSERT_EQ(site->landing_pad, landing.value_or(0) - written_->inserted_bytes);
    // Unwinders look up the last byte of a call.
    const auto at = case_->victim.facts().code.at(pc.original);
    if (pc.kind == PcKind::Instruction && at->flow == code::Flow::Call) {
      ASSERT_EQ(site_at(*table, address + at->length - 1), site);
    }
    ++landings;
  });
  EXPECT_GT(landings, 10'000U);
}

TEST_P(UnwindFiles, TypesAndPersonalitiesAreTheModulesOwn) {
  each_pc([&](const CopiedPc&, const target::FrameEntry& entry, uint64_t address) {
    const target::FrameEntry& copied = *copied_->entry_at(address);
    const target::FrameCommon& common = copied_->tables.commons[copied.common];
    const target::FrameCommon& wanted_common = original_->tables.commons[entry.common];
    ASSERT_EQ(common.personality, wanted_common.personality);
    ASSERT_EQ(common.is_signal_frame, wanted_common.is_signal_frame);
    const target::ExceptionTable* const wanted = original_->exceptions_of(entry);
    const target::ExceptionTable* const table = copied_->exceptions_of(copied);
    if (table == nullptr) return;
    // Those that the calls of a piece need are read.
    ASSERT_TRUE(begins_with(wanted->actions, table->actions));
    ASSERT_TRUE(begins_with(wanted->specifications, table->specifications));
    ASSERT_TRUE(begins_with(wanted->types, table->types));
  });
}

TEST_P(UnwindFiles, TheHeaderLeadsToEachEntry) {
  const UnwindBytes& unwind = written_->unwind;
  const std::span<const uint8_t> bytes = unwind.bytes;
  const uint64_t header = unwind.address + unwind.header;
  const auto count = word_at<uint32_t>(bytes, unwind.header + kCountField);
  EXPECT_EQ(count, copied_->tables.entries.size());
  for (uint32_t i = 0; i < count; ++i) {
    const size_t row = unwind.header + kTableField + size_t{8} * i;
    const uint64_t address = header + static_cast<uint64_t>(word_at<int32_t>(bytes, row));
    ASSERT_EQ(address, copied_->tables.entries[i].address);
    const uint64_t record =
        header + static_cast<uint64_t>(word_at<int32_t>(bytes, row + 4)) - unwind.address;
    const uint64_t field = record + 8;
    ASSERT_EQ(unwind.address + field + static_cast<uint64_t>(word_at<int32_t>(bytes, field)),
              address);
  }
}

TEST_P(UnwindFiles, MovedTheyLeadToTheMovedModule) {
  UnwindBytes moved = written_->unwind;
  ASSERT_TRUE(moved.move_to(0x5000, 0x7000));
  const auto at = [](const UnwindBytes& bytes, uint32_t field) {
    return bytes.address + field + static_cast<uint64_t>(word_at<int32_t>(bytes.bytes, field));
  };
  for (const uint32_t field : moved.outward)
    ASSERT_EQ(at(moved, field), at(written_->unwind, field) + 0x5000);
  EXPECT_FALSE(moved.move_to(uint64_t{1} << 40, 0) && !moved.outward.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Installed, UnwindFiles,
    testing::Values(std::tuple("/lib/x86_64-linux-gnu/libstdc++.so.6", size_t{0}),
                    std::tuple("/lib/x86_64-linux-gnu/libstdc++.so.6", size_t{9})));

// ---- by hand ----

TEST(UnwindTables, AreRefusedWhereACopiedFunctionsTableIsNotUnderstood) {
  const Victim victim("layout");
  const ModuleCopy copy = victim.write();
  target::FrameTables tables;
  tables.commons.push_back({.code_alignment = 1, .data_alignment = -8, .return_column = 16});
  const uint64_t address = victim.function("run_reads").address;
  tables.entries.push_back({.exceptions = 0, .address = address, .size_bytes = 8});
  tables.exceptions.emplace_back();
  const auto written = write_unwind({tables, {}, copy, true});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::Refused);
  EXPECT_NE(written.error().message.find(fmt::format("{:#x}", address)), std::string::npos);
  tables.entries.front().exceptions = target::kNoExceptionTable;
  EXPECT_TRUE(write_unwind({tables, {}, copy, true}));
}

TEST(UnwindTables, AreRefusedWhereTypesHaveAddressesThatMove) {
  const Victim victim("layout");
  const ModuleCopy copy = victim.write();
  target::FrameTables tables;
  tables.commons.push_back({.code_alignment = 1, .data_alignment = -8, .return_column = 16});
  const uint64_t address = victim.function("run_reads").address;
  tables.entries.push_back({.exceptions = 0, .address = address, .size_bytes = 8});
  tables.exceptions.push_back({.is_understood = true,
                               .type_form = target::TypeForm::Absolute32,
                               .types = {{0x1000, false}}});
  EXPECT_FALSE(write_unwind({tables, {}, copy, true}));
  EXPECT_TRUE(write_unwind({tables, {}, copy, false}));
}

// Rust before 1.73 takes a base that is said for 4 bytes more than it is.
TEST(UnwindTables, SayNoLandingBaseUnlessALandingPadBeginsThePiece) {
  constexpr size_t kFirstTable = 4;
  const Victim victim("layout");
  const ModuleCopy copy = victim.write();
  const auto function = victim.function("run_reads");
  target::FrameTables tables;
  tables.commons.push_back({.code_alignment = 1, .data_alignment = -8, .return_column = 16});
  tables.entries.push_back(
      {.exceptions = 0, .address = function.address, .size_bytes = function.size_bytes});
  const auto first = std::find_if(copy.pcs.begin(), copy.pcs.end(), [&](const CopiedPc& pc) {
    return pc.original == function.address;
  });
  ASSERT_LT(first + 1, copy.pcs.end());
  const auto base_with_pad = [&](uint64_t pad) {
    target::ExceptionTable table = {.is_understood = true};
    table.sites.push_back(
        {.begin = function.address, .end = function.address + 1, .landing_pad = pad});
    tables.exceptions = {std::move(table)};
    const auto written = write_unwind({tables, {}, copy, true});
    return written && written->bytes.size() > kFirstTable ? written->bytes[kFirstTable] : 0;
  };
  EXPECT_EQ(base_with_pad((first + 1)->original), 0xff);  // DW_EH_PE_omit
  EXPECT_EQ(base_with_pad(first->original), 0x1b);        // DW_EH_PE_pcrel | DW_EH_PE_sdata4
}

std::optional<std::vector<FrameRow>> rows_of(std::vector<uint8_t> instructions) {
  // CFA = rsp + 8, the return address at CFA - 8.
  const target::FrameCommon common = {.code_alignment = 1,
                                      .data_alignment = -8,
                                      .return_column = 16,
                                      .instructions = {0x0c, 7, 8, 0x90, 1}};
  const auto initial = initial_state(common);
  if (!initial) return std::nullopt;
  return frame_rows(common, *initial,
                    {.address = 0x1000, .size_bytes = 64, .instructions = std::move(instructions)});
}

TEST(FrameStates, AreWhatTheInstructionsSay) {
  // push rbp; mov rbp, rsp; …; leave | ret, and what is cold behind it.
  const auto rows =
      rows_of({0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x50, 0x0a, 0x0c, 7, 8, 0x41, 0x0b});
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 5U);
  EXPECT_EQ((*rows)[0].state.cfa, (CfaRule{7, 8, {}}));
  EXPECT_EQ((*rows)[1].address, 0x1001U);
  EXPECT_EQ((*rows)[1].state.cfa, (CfaRule{7, 16, {}}));
  EXPECT_EQ((*rows)[2].state.cfa, (CfaRule{6, 16, {}}));
  EXPECT_EQ((*rows)[3].state.cfa, (CfaRule{7, 8, {}}));
  EXPECT_EQ((*rows)[4].state, (*rows)[2].state);
  ASSERT_EQ((*rows)[4].state.rules.size(), 2U);
  EXPECT_EQ((*rows)[4].state.rules[0].instruction, (std::vector<uint8_t>{0x86, 2}));
}

TEST(FrameStates, LeadToEachOther) {
  const auto rows = rows_of({0x41, 0x0e, 16, 0x86, 2, 0x2e, 24, 0x41, 0x0f, 3, 0x76, 0x78, 0x06,
                             0x41, 0xc6, 0x0c, 7, 32});
  ASSERT_TRUE(rows);
  for (const FrameRow& from : *rows) {
    for (const FrameRow& to : *rows) {
      std::vector<uint8_t> change;
      append_change((*rows)[0].state, from.state, change);
      append_advance(1, change);
      append_change(from.state, to.state, change);
      const auto found = rows_of(change);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->back().state, to.state);
    }
  }
}

TEST(FrameStates, AreNotKnownWhereAnInstructionIsNot) {
  EXPECT_FALSE(rows_of({0x3c}));
  EXPECT_FALSE(rows_of({0x01, 0, 0, 0, 0, 0, 0, 0, 0}));  // set_loc
  EXPECT_FALSE(rows_of({0x0b}));                          // Nothing was remembered.
  EXPECT_FALSE(rows_of({0x0e}));
  EXPECT_FALSE(rows_of({0x0f, 200, 1}));
  EXPECT_FALSE(rows_of({0x04, 0xff, 0xff, 0xff, 0xff}));
  EXPECT_TRUE(rows_of({0x02, 64}));
}

}  // namespace
}  // namespace clew::copy
