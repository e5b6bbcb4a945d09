// SPDX-License-Identifier: Apache-2.0
// The code that answers unwinders, called here as they call it.
#include "inline/answers.h"

#include <array>
#include <cstring>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace clew::inline_ {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kFunction = 0x100;
constexpr size_t kTable = 0x400;

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
    const auto made = make_answering_code(
        code::analyse(text),
        {address() + kFunction, 0, address() + kTable + 0x200, address() + kTable});
    EXPECT_TRUE(made) << made.error().message;
    std::memcpy(page_ + kTable + 0x200, made->bytes.data(), made->bytes.size());
    for (const code::Patch& patch : made->window.patches)
      std::memcpy(reinterpret_cast<void*>(patch.address), patch.replacement.data(),
                  patch.size_bytes);
  }
  Finder(const Finder&) = delete;
  Finder& operator=(const Finder&) = delete;
  ~Finder() { munmap(page_, kPage); }

  void set_status(int status) { std::memcpy(page_, &status, sizeof(status)); }
  void set_answer(size_t index, const Answer& answer) {
    std::memcpy(page_ + kTable + index * sizeof(answer), &answer, sizeof(answer));
  }
  int find(uint64_t pc, Found& found) const {
    return reinterpret_cast<int (*)(uint64_t, Found*)>(page_ + kFunction)(pc, &found);
  }

 private:
  [[nodiscard]] uint64_t address() const { return reinterpret_cast<uint64_t>(page_); }
  uint8_t* page_ = nullptr;
};

constexpr Answer kFirst = {0x10000, 0x100, 0x7000, 0x8000};
constexpr Answer kSecond = {0x20000, 0x10, 0x9000, 0xa000};

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

TEST(Answering, NeedsAFunctionThatTakesAJump) {
  const std::array<uint8_t, 2> function = {0x90, 0xc3};
  code::ModuleText text;
  text.sections.push_back({0x1000, function, true});
  text.functions.push_back({.address = 0x1000, .size_bytes = function.size()});
  const auto made = make_answering_code(code::analyse(text), {0x1000, 0, 0x3000, 0x2000});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("[unwinding]"), std::string::npos);
}

}  // namespace
}  // namespace clew::inline_
