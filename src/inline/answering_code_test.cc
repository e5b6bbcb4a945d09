// SPDX-License-Identifier: Apache-2.0
// The code that answers unwinders, called here as they call it.
#include "inline/answering_code.h"

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>

namespace clew::inline_ {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kFunction = 0x100;
constexpr size_t kTable = 0x400;
constexpr size_t kCode = 0x800;

// As the C library has it.
struct Found {
  uint64_t flags = 0;
  uint64_t map_start = 0;
  uint64_t map_end = 0;
  uint64_t link_map = 0;
  uint64_t eh_frame = 0;
  uint64_t reserved[7] = {};
};

// A page with a function that tells as the link map what it was asked for, and returns `status`.
class Finder {
 public:
  Finder() {
    page_ = static_cast<uint8_t*>(mmap(nullptr, kPage, PROT_READ | PROT_WRITE | PROT_EXEC,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(page_, MAP_FAILED);
    const std::array<uint8_t, 11> function = {0x8b, 0x05, 0xfa, 0xfe,
                                              0xff, 0xff,              // mov eax, [page]
                                              0x48, 0x89, 0x7e, 0x18,  // mov [rsi + 24], rdi
                                              0xc3};
    std::memcpy(page_ + kFunction, function.data(), function.size());
    code::ModuleText text;
    text.sections.push_back({address() + kFunction, {page_ + kFunction, function.size()}, true});
    text.functions.push_back({.address = address() + kFunction, .size_bytes = function.size()});
    const auto made = make_finding_code(
        code::analyse(text), {address() + kFunction, 0, address() + kCode, address() + kTable, 0});
    EXPECT_TRUE(made) << made.error().message;
    std::memcpy(page_ + kCode, made->bytes.data(), made->bytes.size());
    for (const code::Patch& patch : made->window.patches)
      std::memcpy(reinterpret_cast<void*>(patch.address), patch.replacement.data(),
                  patch.size_bytes);
  }
  Finder(const Finder&) = delete;
  Finder& operator=(const Finder&) = delete;
  ~Finder() { munmap(page_, kPage); }

  void set_status(int status) { std::memcpy(page_, &status, sizeof(status)); }
  void set_answer(size_t index, const Answer& answer) {
    const AnswerRow row = row_of(answer);
    std::memcpy(page_ + kTable + index * sizeof(row), &row, sizeof(row));
  }
  int find(uint64_t pc, Found& found) const {
    return reinterpret_cast<int (*)(uint64_t, Found*)>(page_ + kFunction)(pc, &found);
  }

 private:
  [[nodiscard]] uint64_t address() const { return reinterpret_cast<uint64_t>(page_); }
  uint8_t* page_ = nullptr;
};

constexpr Answer kFirst = {0x10000, 0x100, 0x7000, 0x8000, 20};
constexpr Answer kSecond = {0x20000, 0x10, 0x9000, 0xa000, 28};

TEST(Answering, LeavesWhatLiesInNoCopyToTheLibrary) {
  Finder finder;
  for (unsigned answers = 0; answers <= 2; ++answers) {
    if (answers > 0) finder.set_answer(answers - 1, answers == 1 ? kFirst : kSecond);
    for (const uint64_t pc :
         {uint64_t{0xffff}, uint64_t{0x10100}, uint64_t{0x20010}, uint64_t{0}, ~uint64_t{0}}) {
      for (const int status : {0, -1}) {
        finder.set_status(status);
        Found found;
        EXPECT_EQ(finder.find(pc, found), status);
        EXPECT_EQ(found.link_map, pc);
        EXPECT_EQ(found.eh_frame | found.map_start | found.map_end, 0U);
      }
    }
  }
}

TEST(Answering, GivesTheOriginalsObjectWithTheCopiesHeader) {
  Finder finder;
  finder.set_answer(0, kFirst);
  finder.set_answer(1, kSecond);
  for (const Answer& answer : {kFirst, kSecond}) {
    for (const uint64_t pc : {answer.begin, answer.begin + answer.size_bytes - 1}) {
      Found found;
      EXPECT_EQ(finder.find(pc, found), 0);
      EXPECT_EQ(found.link_map, answer.original);
      EXPECT_EQ(found.map_start, answer.begin);
      EXPECT_EQ(found.map_end, answer.begin + answer.size_bytes);
      EXPECT_EQ(found.eh_frame, answer.header);
      EXPECT_EQ(found.flags | found.reserved[0], 0U);
    }
  }
}

TEST(Answering, KnowsNothingOfCopiesWhoseModuleIsGone) {
  Finder finder;
  finder.set_answer(0, kFirst);
  finder.set_status(-1);
  Found found;
  EXPECT_EQ(finder.find(kFirst.begin, found), -1);
  EXPECT_EQ(found.eh_frame, 0U);
}

// What a callback was told.
struct Object {
  uint64_t base = 0;
  std::string name;
  std::vector<Elf64_Phdr> segments;
  uint64_t adds = 0;
  uint64_t subs = 0;
  size_t size_bytes = 0;
};

struct Seen {
  std::vector<Object> objects;
  size_t ends_behind = 100;  // So many, with this result:
  int result = 7;
};

int see(dl_phdr_info* info, size_t size_bytes, void* data) {
  EXPECT_EQ(reinterpret_cast<uint64_t>(__builtin_frame_address(0)) % 16, 0U);
  Seen& seen = *static_cast<Seen*>(data);
  seen.objects.push_back({.base = info->dlpi_addr,
                          .name = info->dlpi_name,
                          .segments = {info->dlpi_phdr, info->dlpi_phdr + info->dlpi_phnum},
                          .adds = info->dlpi_adds,
                          .subs = info->dlpi_subs,
                          .size_bytes = size_bytes});
  return seen.objects.size() == seen.ends_behind ? seen.result : 0;
}

size_t info_bytes = sizeof(dl_phdr_info);

// As the C library's, of a process with two modules.
int list_two(int (*callback)(dl_phdr_info*, size_t, void*), void* data) {
  constexpr std::array<Elf64_Phdr, 1> kSegments = {};
  int result = 0;
  for (const char* const name : {"program", "library"}) {
    dl_phdr_info info = {.dlpi_addr = 0x5000,
                         .dlpi_name = name,
                         .dlpi_phdr = kSegments.data(),
                         .dlpi_phnum = 1,
                         .dlpi_adds = 30,
                         .dlpi_subs = 4,
                         .dlpi_tls_modid = 1,
                         .dlpi_tls_data = data};
    result = callback(&info, info_bytes, data);
    if (result != 0) break;
  }
  return result;
}

// A page with a function that calls list_two().
class Lister {
 public:
  Lister() {
    page_ = static_cast<uint8_t*>(mmap(nullptr, kPage, PROT_READ | PROT_WRITE | PROT_EXEC,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(page_, MAP_FAILED);
    // sub rsp, 8; mov rax, list_two; call rax; add rsp, 8; ret
    std::array<uint8_t, 21> function = {0x48, 0x83, 0xec, 0x08, 0x48, 0xb8, 0,
                                        0,    0,    0,    0,    0,    0,    0,
                                        0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0xc3};
    const auto target = reinterpret_cast<uint64_t>(&list_two);
    std::memcpy(function.data() + 6, &target, sizeof(target));
    std::memcpy(page_ + kFunction, function.data(), function.size());
    code::ModuleText text;
    text.sections.push_back({address() + kFunction, {page_ + kFunction, function.size()}, true});
    text.functions.push_back({.address = address() + kFunction, .size_bytes = function.size()});
    const auto made = make_listing_code(code::analyse(text), {.function = address() + kFunction,
                                                              .load_bias = 0,
                                                              .code = address() + kCode,
                                                              .table = address() + kTable,
                                                              .askers = address()});
    EXPECT_TRUE(made) << made.error().message;
    std::memcpy(page_ + kCode, made->bytes.data(), made->bytes.size());
    for (const code::Patch& patch : made->window.patches)
      std::memcpy(reinterpret_cast<void*>(patch.address), patch.replacement.data(),
                  patch.size_bytes);
  }
  Lister(const Lister&) = delete;
  Lister& operator=(const Lister&) = delete;
  ~Lister() { munmap(page_, kPage); }

  void set_answer(size_t index, const Answer& answer) {
    const AnswerRow row = row_of(answer);
    std::memcpy(page_ + kTable + index * sizeof(row), &row, sizeof(row));
  }
  void set_asker(size_t index, const Asker& asker) {
    std::memcpy(page_ + index * sizeof(asker), &asker, sizeof(asker));
  }
  int list(Seen& seen) const {
    using Callback = int (*)(dl_phdr_info*, size_t, void*);
    return reinterpret_cast<int (*)(Callback, void*)>(page_ + kFunction)(&see, &seen);
  }
  [[nodiscard]] std::string names() const {
    Seen seen;
    EXPECT_EQ(list(seen), 0);
    std::string names;
    for (const Object& object : seen.objects)
      names += object.name + " ";
    return names;
  }

 private:
  [[nodiscard]] uint64_t address() const { return reinterpret_cast<uint64_t>(page_); }
  uint8_t* page_ = nullptr;
};

constexpr Asker kNobody = {0x1000, 0x10};
constexpr Asker kAnybody = {0, ~uint64_t{0}};

TEST(Listing, TellsCopiesToAskersAlone) {
  Lister lister;
  lister.set_answer(0, kFirst);
  EXPECT_EQ(lister.names(), "program library ");
  lister.set_asker(0, kNobody);
  EXPECT_EQ(lister.names(), "program library ");
  lister.set_asker(1, kAnybody);
  EXPECT_EQ(lister.names(), "program [clew] library ");
  lister.set_answer(1, kSecond);
  EXPECT_EQ(lister.names(), "program [clew] [clew] library ");
}

TEST(Listing, HasNothingToTellWithoutCopies) {
  Lister lister;
  lister.set_asker(0, kAnybody);
  EXPECT_EQ(lister.names(), "program library ");
}

TEST(Listing, SaysWhereCopiesAndTheirTablesAre) {
  Lister lister;
  lister.set_asker(0, kAnybody);
  lister.set_answer(0, kFirst);
  lister.set_answer(1, kSecond);
  Seen seen;
  EXPECT_EQ(lister.list(seen), 0);
  ASSERT_EQ(seen.objects.size(), 4U);
  for (size_t i = 1; i < 3; ++i) {
    const Object& object = seen.objects[i];
    const Answer& answer = i == 1 ? kFirst : kSecond;
    EXPECT_EQ(object.base, 0U);
    EXPECT_EQ(object.size_bytes, sizeof(dl_phdr_info));
    EXPECT_EQ(object.adds, 30U);
    EXPECT_EQ(object.subs, 4U);
    ASSERT_EQ(object.segments.size(), 2U);
    EXPECT_EQ(object.segments[0].p_type, PT_LOAD);
    EXPECT_EQ(object.segments[0].p_vaddr, answer.begin);
    EXPECT_EQ(object.segments[0].p_memsz, answer.size_bytes);
    EXPECT_EQ(object.segments[1].p_type, PT_GNU_EH_FRAME);
    EXPECT_EQ(object.segments[1].p_vaddr, answer.header);
    EXPECT_EQ(object.segments[1].p_memsz, answer.header_bytes);
  }
}

TEST(Listing, EndsWhereTheCallbackEndsIt) {
  Lister lister;
  lister.set_asker(0, kAnybody);
  lister.set_answer(0, kFirst);
  lister.set_answer(1, kSecond);
  for (const int result : {7, -1}) {
    for (size_t ends_behind = 1; ends_behind <= 4; ++ends_behind) {
      Seen seen = {.objects = {}, .ends_behind = ends_behind, .result = result};
      EXPECT_EQ(lister.list(seen), result);
      EXPECT_EQ(seen.objects.size(), ends_behind);
    }
  }
}

TEST(Listing, LeavesAStructureThatItDoesNotKnow) {
  Lister lister;
  lister.set_asker(0, kAnybody);
  lister.set_answer(0, kFirst);
  info_bytes = offsetof(dl_phdr_info, dlpi_adds);
  EXPECT_EQ(lister.names(), "program library ");
  info_bytes = sizeof(dl_phdr_info);
}

TEST(Answering, NeedsAFunctionThatTakesAJump) {
  const std::array<uint8_t, 2> function = {0x90, 0xc3};
  code::ModuleText text;
  text.sections.push_back({0x1000, function, true});
  text.functions.push_back({.address = 0x1000, .size_bytes = function.size()});
  const auto made = make_finding_code(code::analyse(text), {0x1000, 0, 0x3000, 0x2000, 0});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("[unwinding]"), std::string::npos);
  EXPECT_FALSE(make_listing_code(code::analyse(text), {0x1000, 0, 0x3000, 0x2000, 0x2800}));
}

}  // namespace
}  // namespace clew::inline_
