// SPDX-License-Identifier: Apache-2.0
// Files of C are compiled and run by the interpreter, in a window as a thread has it.
#include "extension/extension.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/run_program.h"
#include "isa/interpreter.h"

namespace clew::extension {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const Library kSources = {CLEW_SOURCE_DIR "/extensions"};

// A file of its own, for one test.
class CFile {
 public:
  explicit CFile(const std::string& text) {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            (std::string("clew_") + test->name() + std::to_string(getpid()) + ".c");
    std::ofstream(path_) << text;
  }
  CFile(const CFile&) = delete;
  CFile& operator=(const CFile&) = delete;
  ~CFile() { std::filesystem::remove(path_); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

Expected<Extension> compiled(const std::string& text) {
  const CFile file("#include \"clew.h\"\n" + text);
  return load(file.path(), kSources);
}

std::string refusal_of(const std::string& text) {
  const Expected<Extension> result = compiled(text);
  return result ? "" : result.error().message;
}

// One thread that calls functions of one extension, whose state is in its window.
class Thread {
 public:
  explicit Thread(Extension extension, uint64_t time = 0)
      : extension_(std::move(extension)), host_({}) {
    host_.time = time;
    window_.resize(kState + extension_.state_bytes + 8);
    for (const InitialWord& word : extension_.initial_words)
      std::memcpy(&window_[kState + word.offset_bytes], &word.value, 8);
    host_.read_memory = [this](std::span<uint8_t> to, uint64_t address) {
      const auto found = memory_.upper_bound(address);
      if (found == memory_.begin()) return false;
      const auto& [begin, bytes] = *std::prev(found);
      if (address + to.size() > begin + bytes.size()) return false;
      std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(address - begin), to.size(), to.begin());
      return true;
    };
  }

  void put_memory(uint64_t address, const void* bytes, size_t size) {
    const auto* from = static_cast<const uint8_t*>(bytes);
    memory_[address].assign(from, from + size);
  }

  uint64_t call(std::string_view name, const std::vector<uint64_t>& arguments) {
    const Function* function = extension_.find(name);
    EXPECT_NE(function, nullptr) << name;
    isa::Program program{.name = std::string(name), .code = {}};
    for (size_t i = 0; i < arguments.size(); ++i) {
      program.code.push_back(
          {isa::kLoad64Opcode, static_cast<uint8_t>(i + 1), 0, static_cast<int32_t>(arguments[i])});
      program.code.push_back({0, 0, 0, static_cast<int32_t>(arguments[i] >> 32)});
    }
    for (isa::Instruction i : function->code) {
      const bool is_state = i.opcode == isa::kLoad64Opcode && i.source() == 1;
      if (is_state) i.immediate += kState;
      program.code.push_back(i);
    }
    const auto outcome = isa::interpret(program, {.window = window_, .host = &host_});
    EXPECT_TRUE(outcome) << outcome.error().message;
    return outcome ? outcome->result : 0;
  }

 private:
  static constexpr int32_t kState = 1024;
  Extension extension_;
  std::vector<uint8_t> window_;
  std::map<uint64_t, std::vector<uint8_t>> memory_;
  isa::RegionHost host_;
};

Thread thread_of(const std::string& text) {
  Expected<Extension> extension = compiled(text);
  EXPECT_TRUE(extension) << extension.error().message;
  return Thread(extension ? std::move(*extension) : Extension{});
}

Thread shipped(const std::string& name) {
  Expected<Extension> extension = load(kSources.folder + "/" + name + ".c", kSources);
  EXPECT_TRUE(extension) << extension.error().message;
  return Thread(extension ? std::move(*extension) : Extension{});
}

// --- what a file may say

TEST(Extension, FunctionsAreKnownByNameAndType) {
  const auto extension = compiled(
      "static u64 calls;\n"
      "s16 f(u8 a, const char *text, bool really) { ++calls; return a + (text != NULL) + really; "
      "}\n"
      "static int hidden(int a) { return a; }\n"
      "int g(void) { return hidden(3); }\n");
  ASSERT_TRUE(extension) << extension.error().message;
  ASSERT_EQ(extension->functions.size(), 2U);
  const Function* f = extension->find("f");
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->result, (ValueType{.size_bytes = 2, .is_signed = true, .is_pointer = false}));
  ASSERT_EQ(f->parameters.size(), 3U);
  EXPECT_EQ(f->parameters[0],
            (Parameter{"a", {.size_bytes = 1, .is_signed = false, .is_pointer = false}}));
  EXPECT_EQ(f->parameters[1],
            (Parameter{"text", {.size_bytes = 8, .is_signed = false, .is_pointer = true}}));
  EXPECT_EQ(f->parameters[2].type.size_bytes, 1);
  EXPECT_FALSE(f->has_loops);
  EXPECT_EQ(extension->state_bytes, 8U);
}

TEST(Extension, AFunctionWithoutANumberCannotBeCalledAndSaysWhy) {
  const auto extension = compiled(
      "struct pair { long a, b; };\n"
      "static int last;\n"
      "void nothing(int a) { last = a; }\n"
      "int fine(void) { return last; }\n");
  ASSERT_TRUE(extension) << extension.error().message;
  EXPECT_EQ(extension->find("nothing")->refusal, "it gives no integer");
  EXPECT_EQ(extension->find("fine")->refusal, "");
}

TEST(Extension, StateStaysFromCallToCallAndBeginsAsTheFileSays) {
  Thread thread = thread_of(
      "static u64 next = 41;\n"
      "static const u8 table[4] = {7, 8, 9, 10};\n"
      "u64 counter(void) { return ++next; }\n"
      "u64 look(u64 i) { return table[i & 3]; }\n");
  EXPECT_EQ(thread.call("counter", {}), 42U);
  EXPECT_EQ(thread.call("counter", {}), 43U);
  EXPECT_EQ(thread.call("look", {2}), 9U);
}

TEST(Extension, FunctionsStandInTheirCallers) {
  Thread thread = thread_of(
      "static __attribute__((noinline)) u64 twice(u64 x) { u64 a[2] = {x, x}; u64 *volatile p = a; "
      "return p[0] + p[1]; }\n"
      "static __attribute__((noinline)) u64 deep(u64 x) { u64 b = twice(x); return b + twice(b); "
      "}\n"
      "u64 f(u64 x) { u64 keep = x * 3; return deep(x) + keep + twice(1); }\n");
  EXPECT_EQ(thread.call("f", {5}), 2U * 5 + 4 * 5 + 15 + 2);
}

TEST(Extension, LoopsAreKnown) {
  const auto extension = compiled(
      "u64 sum(u64 n) { u64 s = 0; for (u64 i = 0; i < n; ++i) s += clew_mix(i); return s; }\n");
  ASSERT_TRUE(extension) << extension.error().message;
  EXPECT_TRUE(extension->find("sum")->has_loops);
}

TEST(Extension, MemoryOfTheProgramIsReadOrRefused) {
  Thread thread = thread_of(
      "u64 third(const u64 *p) { u64 v; return clew_read(&v, 8, p + 2) ? v : 999; }\n"
      "s64 length(const char *p) { char text[16]; return clew_read_string(text, 16, p); }\n");
  const uint64_t words[3] = {10, 20, 30};
  thread.put_memory(0x5000, words, sizeof words);
  EXPECT_EQ(thread.call("third", {0x5000}), 30U);
  EXPECT_EQ(thread.call("third", {0x6000}), 999U);
  thread.put_memory(0x7000, "hello\0\0\0\0\0\0\0\0\0\0\0", 16);
  EXPECT_EQ(thread.call("length", {0x7000}), 5U);
}

// --- what it may not, with the line

TEST(ExtensionRefusal, Recursion) {
  const std::string message = refusal_of(
      "u64 odd(u64 n);\n"
      "__attribute__((noinline)) u64 even(u64 n) { return n == 0 ? 1 : odd(n - 1) * 3; }\n"
      "__attribute__((noinline)) u64 odd(u64 n) { return n == 0 ? 0 : even(n - 1) * 5; }\n");
  EXPECT_THAT(message, HasSubstr("error: recursion: "));
  EXPECT_THAT(message, ::testing::AnyOf(HasSubstr(".c:3:"), HasSubstr(".c:4:")));
}

TEST(ExtensionRefusal, PointersToFunctions) {
  EXPECT_THAT(refusal_of("static int one(int a) { return a + 1; }\n"
                         "static int two(int a) { return a + 2; }\n"
                         "static int (*volatile which)(int);\n"
                         "int f(int a) {\n"
                         "  which = a > 3 ? one : two;\n"
                         "  return which(a);\n"
                         "}\n"),
              ::testing::AnyOf(HasSubstr("a pointer to a function; extensions call by name only"),
                               HasSubstr("a call through a pointer"), HasSubstr("error:")));
}

TEST(ExtensionRefusal, FunctionsThatAreNotThere) {
  const std::string message = refusal_of(
      "u64 strlen(const char *);\n"
      "u64 list_length(u64 a) { return a; }\n"
      "u64 list_lenght(u64 a);\n"
      "u64 f(u64 p) {\n"
      "  return list_lenght(p);\n"
      "}\n");
  EXPECT_THAT(message, HasSubstr(".c:6: error: 'list_lenght' is not defined in this file; did you "
                                 "mean 'list_length'?"));
}

TEST(ExtensionRefusal, FloatingPoint) {
  const std::string message = refusal_of(
      "int f(int a) {\n"
      "  double d = a;\n"
      "  return d * 1.5 > 3.0;\n"
      "}\n");
  EXPECT_THAT(message, HasSubstr(".c:3:"));
  EXPECT_THAT(message, HasSubstr("an extension has no floating point"));
}

TEST(ExtensionRefusal, WhatTheCompilerRefusesIsInItsOwnWords) {
  EXPECT_THAT(refusal_of("int f(int a) { return a + ; }\n"), HasSubstr(".c:2:27: error: expected"));
  EXPECT_THAT(refusal_of("int f(int n) { volatile char a[n]; a[0] = 1; return a[n - 1]; }\n"),
              HasSubstr(".c:2:32: error: variable length array used"));
}

TEST(ExtensionRefusal, TooManyLocalVariables) {
  EXPECT_THAT(
      refusal_of("static __attribute__((noinline)) u64 f(u64 n) { volatile u64 a[40]; a[n % "
                 "40] = n; return a[(n + 1) % 40]; }\n"
                 "u64 g(u64 n) { volatile u64 b[20]; b[n % 20] = n; return f(n) + b[n % "
                 "20]; }\n"),
      HasSubstr("needs more than 384 bytes of local variables"));
}

// A line with the place of the first error, and then the compiler's words.
TEST(ExtensionRefusal, WhatDoesNotCompile) {
  const std::string message = refusal_of(
      "int unused;\nint f(int a) {\n"
      "  int x;\n  return a + nobody;\n}\n");
  EXPECT_THAT(message,
              ContainsRegex("^/[^ ]*\\.c:5:14: error: the extension does not compile; clang"));
  EXPECT_THAT(message, HasSubstr(" says:\n"));
  EXPECT_THAT(message, HasSubstr("error: use of undeclared identifier 'nobody'"));
  EXPECT_THAT(message, Not(HasSubstr("warning")));
  const std::string division = refusal_of("int f(int a, int b) {\n  return (a + 1) / b;\n}\n");
  EXPECT_THAT(division, ContainsRegex("^/[^ ]*\\.c:3: error: the extension does not compile"));
  EXPECT_THAT(division, AllOf(HasSubstr("clew_divide"), Not(HasSubstr("\n  0x"))));
}

TEST(ExtensionRefusal, CompilersAreCutShort) {
  std::string text = "int f(int a) {\n";
  for (int i = 0; i < 100; ++i)
    text += "  a = a + nobody" + std::to_string(i) + ";\n";
  const std::string message = refusal_of(text + "  return a;\n}\n");
  EXPECT_THAT(message, HasSubstr("nobody0"));
  EXPECT_LT(std::count(message.begin(), message.end(), '\n'), 30);
}

TEST(ExtensionRefusal, NothingToCall) {
  EXPECT_THAT(refusal_of("static int f(int a) { return a; }\n"), HasSubstr("nothing to call"));
}

TEST(ExtensionRefusal, AnAddressInATable) {
  EXPECT_THAT(refusal_of("static int a, b;\n"
                         "int *pointers[2] = {&a, &b};\n"
                         "int f(int i) { return *pointers[i & 1]; }\n"),
              HasSubstr("a variable or a table begins with the address of"));
}

TEST(ExtensionRefusal, AccessorsOfQueries) {
  EXPECT_THAT(refusal_of("static u64 (*const find)(u64, void *, u64) = (void *)9;\n"
                         "u64 f(u64 a) { return find(0, &a, a); }\n"),
              HasSubstr("no accessor 9 for extensions"));
}

TEST(ExtensionRefusal, NoFileAndNoName) {
  EXPECT_EQ(load("/no/such/file.c", kSources).error().message, "no file /no/such/file.c");
  EXPECT_THAT(load("skech", kSources).error().message, StartsWith("no extension 'skech'"));
}

TEST(ExtensionRefusal, FilesThatCannotBeRead) {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::temp_directory_path() / ("clew_extension_files_" + std::to_string(getpid()));
  const auto said = [&](const char* name) {
    return load((folder / name).string(), kSources).error().message;
  };
  for (const char* name : {"folder.c", "folder.o", "folder"})
    fs::create_directories(folder / name);
  for (const char* name : {"folder.c", "folder.o", "folder"})
    EXPECT_THAT(said(name), HasSubstr("it is a directory; --ext takes a file")) << name;
  for (const char* name : {"empty.c", "empty.o"}) {
    std::ofstream(folder / name).flush();
    EXPECT_THAT(said(name), HasSubstr("it is empty")) << name;
  }
  for (const char* name : {"huge.c", "huge.o"}) {
    std::ofstream(folder / name).flush();
    fs::resize_file(folder / name, uint64_t{20} << 20);
    EXPECT_THAT(said(name), HasSubstr("it has 20 MiB, at most 16 are possible")) << name;
  }
  fs::create_symlink("loop.o", folder / "loop.o");
  EXPECT_THAT(said("loop.o"), StartsWith("cannot read"));
  EXPECT_THAT(load("/dev/null/x.c", kSources).error().message, HasSubstr("/dev/null/x.c"));
  fs::remove_all(folder);
}

TEST(ExtensionRefusal, WhatIsNoObject) {
  const std::vector<uint8_t> nothing(100, 7);
  EXPECT_THAT(read(nothing, "x").error().message, HasSubstr("not an object file for BPF"));
  EXPECT_THAT(read({}, "x").error().message, HasSubstr("not an object file for BPF"));
}

std::string object_of(const std::string& text) {
  const CFile file(text);
  const auto run = run_program(
      {"clang-16", "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-c", file.path(), "-o", "-"}, "");
  EXPECT_TRUE(run && run->succeeded);
  return run ? run->output : "";
}

Expected<Extension> read_text(const std::string& object) {
  return read({reinterpret_cast<const uint8_t*>(object.data()), object.size()}, "object");
}

// Calls across sections have relocations; each place of one is moved, each of its fields changed.
TEST(ExtensionRefusal, BrokenObjectsAreErrorsAtMost) {
  const std::string object = object_of(
      "static unsigned long n[9]; __attribute__((section(\".text.a\"), noinline)) "
      "unsigned long a(unsigned long x) { return ++n[x & 7]; }\n"
      "__attribute__((section(\".text.b\"), noinline)) unsigned long b(unsigned long x) {\n"
      "  unsigned long s = 0; for (unsigned long i = 0; i < x; ++i) s += a(i); return s; }\n");
  ASSERT_TRUE(read_text(object));
  size_t accepted = 0;
  for (size_t at = 0; at < object.size(); ++at) {
    for (const int change : {1, 8, 16, 128, 255}) {
      std::string changed = object;
      changed[at] = static_cast<char>(changed[at] ^ change);
      accepted += read_text(changed) ? 1 : 0;
    }
  }
  EXPECT_GT(accepted, 0U);
}

// --- the library, against what is known otherwise

// RFC 1321, A.5.
TEST(Library, Md5IsThatOfTheRfc) {
  const std::map<std::string, std::pair<uint64_t, uint64_t>> known = {
      {"", {0xd41d8cd98f00b204, 0xe9800998ecf8427e}},
      {"abc", {0x900150983cd24fb0, 0xd6963f7d28e17f72}},
      {"message digest", {0xf96b697d7cb7938d, 0x525a2f31aaf161d0}},
      {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
       {0xd174ab98d277d9f5, 0xa5611c2c9f419d9f}},
      {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
       {0x57edf4a22be3c955, 0xac49da2e2107b67a}}};
  Thread thread = shipped("md5");
  for (const auto& [text, digest] : known) {
    thread.put_memory(0x1000, text.data(), text.size());
    EXPECT_EQ(thread.call("md5_high", {0x1000, text.size()}), digest.first) << text;
    EXPECT_EQ(thread.call("md5_low", {0x1000, text.size()}), digest.second) << text;
  }
}

TEST(Library, ASketchPassesPowersOfTwo) {
  Thread thread = shipped("sketch");
  int passed = 0;
  for (int i = 1; i <= 1000; ++i)
    passed += static_cast<int>(thread.call("sketch_sample", {77}));
  EXPECT_EQ(passed, 10);  // 1, 2, 4, …, 512
  EXPECT_EQ(thread.call("sketch_sample", {12345}), 1U);
}

TEST(Library, AMovingAverageIsThatOfTheLastValues) {
  Thread thread = shipped("average");
  std::vector<int64_t> values;
  for (int64_t i = 0; i < 200; ++i) {
    values.push_back((i * 37 % 101) - 50);
    int64_t sum = 0;
    const size_t count = std::min<size_t>(values.size(), 64);
    for (size_t k = values.size() - count; k < values.size(); ++k)
      sum += values[k];
    const auto expected = static_cast<uint64_t>(sum / static_cast<int64_t>(count));
    EXPECT_EQ(thread.call("moving_average", {static_cast<uint64_t>(values.back())}), expected);
  }
}

TEST(Library, AnExponentialAverageComesNear) {
  Thread thread = shipped("average");
  EXPECT_EQ(thread.call("exponential_average", {1000, 8}), 1000U);
  uint64_t last = 0;
  for (int i = 0; i < 100; ++i)
    last = thread.call("exponential_average", {2000, 8});
  EXPECT_GE(last, 1998U);
  EXPECT_LE(last, 2000U);
}

TEST(Library, EachEventIsAsLikelyInAReservoir) {
  constexpr uint64_t kEvents = 400;
  constexpr uint64_t kPlaces = 10;
  constexpr uint64_t kRounds = 400;
  const auto extension = load(kSources.folder + "/reservoir.c", kSources);
  ASSERT_TRUE(extension) << extension.error().message;
  uint64_t early = 0;
  for (uint64_t round = 0; round < kRounds; ++round) {
    Thread thread(*extension, round * 7919);
    std::map<uint64_t, uint64_t> taken;
    for (uint64_t i = 0; i < kEvents; ++i) {
      if (const uint64_t place = thread.call("reservoir", {kPlaces}); place != 0) taken[place] = i;
    }
    ASSERT_EQ(taken.size(), kPlaces);
    for (const auto& [place, event] : taken)
      early += event < kEvents / 2 ? 1 : 0;
  }
  // Half of 4,000; a standard deviation is 32.
  EXPECT_NEAR(static_cast<double>(early), 2000, 5 * 32);
}

TEST(Library, HyperLogLogComesNear) {
  Thread thread = shipped("hyperloglog");
  uint64_t estimate = 0;
  for (uint64_t i = 0; i < 20'000; ++i) {
    estimate = thread.call("hyperloglog", {i * 0x10001});
    if (i == 99) {
      EXPECT_NEAR(static_cast<double>(estimate), 100, 10);
    }
    if (i == 999) {
      EXPECT_NEAR(static_cast<double>(estimate), 1000, 100);
    }
  }
  EXPECT_NEAR(static_cast<double>(estimate), 20'000, 2000);
  EXPECT_EQ(thread.call("hyperloglog", {0x10001}), estimate);  // Known already.
}

TEST(Library, TheMostFrequentValuesAreFound) {
  Thread thread = shipped("topk");
  for (uint64_t i = 0; i < 5000; ++i) {
    (void)thread.call("topk_rank", {1'000'000 + i});
    if (i % 2 == 0) (void)thread.call("topk_rank", {7});
    if (i % 4 == 0) (void)thread.call("topk_rank", {8});
  }
  EXPECT_EQ(thread.call("topk_rank", {7}), 0U);
  EXPECT_EQ(thread.call("topk_rank", {8}), 1U);
  EXPECT_GE(thread.call("topk_count", {7}), 2501U);
  EXPECT_LE(thread.call("topk_count", {7}) - thread.call("topk_error", {7}), 2501U);
}

TEST(Library, ARunningQuantileIsNearTheTrueOne) {
  Thread thread = shipped("quantile");
  std::vector<uint64_t> values;
  for (uint64_t i = 0; i < 2000; ++i) {
    const uint64_t value = i * i % 10'007 * (i % 3 + 1);
    values.push_back(value);
    const uint64_t found = thread.call("running_quantile", {value, 900});
    if (i < 100 || i % 50 != 0) continue;
    std::vector<uint64_t> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const auto below = static_cast<size_t>(0.9 * static_cast<double>(sorted.size()));
    const auto truth = static_cast<double>(sorted[std::min(below, sorted.size() - 1)]);
    EXPECT_NEAR(static_cast<double>(found), truth, truth / 16 + 8) << i;
  }
}

TEST(Library, ListsAndTreesAreWalked) {
  Thread thread = shipped("structures");
  // {next, key}, three nodes; the last one ends the list.
  const uint64_t nodes[3][2] = {{0x2010, 5}, {0x2020, 6}, {0, 7}};
  thread.put_memory(0x2000, nodes, sizeof nodes);
  EXPECT_EQ(thread.call("list_length", {0x2000, 0}), 3U);
  EXPECT_EQ(thread.call("list_length", {0, 0}), 0U);
  EXPECT_EQ(thread.call("list_find", {0x2000, 0, 8, 7}), 3U);
  EXPECT_EQ(thread.call("list_find", {0x2000, 0, 8, 9}), 0U);
  const uint64_t ring[2][2] = {{0x3010, 5}, {0x3000, 6}};
  thread.put_memory(0x3000, ring, sizeof ring);
  EXPECT_EQ(thread.call("list_length", {0x3000, 0}), 2U);
  // {left, right}
  const uint64_t tree[4][2] = {{0x4010, 0x4020}, {0, 0x4030}, {0, 0}, {0, 0}};
  thread.put_memory(0x4000, tree, sizeof tree);
  EXPECT_EQ(thread.call("tree_size", {0x4000, 0, 8}), 4U);
  EXPECT_EQ(thread.call("tree_size", {0, 0, 8}), 0U);
}

}  // namespace
}  // namespace clew::extension
