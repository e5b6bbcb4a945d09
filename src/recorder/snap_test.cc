// SPDX-License-Identifier: Apache-2.0
#include "recorder/snap.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recorder/save_snap.h"
#include "recorder/snap_clock.h"

namespace clew::recorder {
namespace {

namespace fs = std::filesystem;

SnapModule some_module() {
  SnapModule module;
  module.load_bias = 0x5555'0000'0000;
  module.copy_address = 0x5555'1000'0040;
  module.code_size = 4711;
  module.recipe = {.first_id = 77,
                   .cursor = 0x1300,
                   .loops = Loops::Each,
                   .imports = {{8, 0}, {16, 5}},
                   .stamped = {{24, Stamped::InFront, abi::Transfer::Closes},
                               {32, Stamped::Around, abi::Transfer::Receives, abi::Register::R8}}};
  module.id_count = 99;
  std::iota(module.digest.begin(), module.digest.end(), uint8_t{1});
  module.build_id = "0123abcd";
  module.path = "/usr/bin/some";
  return module;
}

Snap some_snap() {
  Snap snap;
  snap.reason = {.signal = 11, .code = 1, .thread = 43, .address = 0x123456789a, .time_ns = 5};
  snap.pid = 42;
  snap.command = {"some", "", "word with spaces"};
  snap.modules = {some_module(), SnapModule{}};
  snap.threads.resize(2);
  snap.threads[0].thread = 43;
  snap.threads[0].slot = 3;
  snap.threads[0].registers.rip = 0x5555'1000'0123;
  snap.threads[1].thread = 42;
  snap.threads[1].called_from = 0x5555'1000'0456;
  SnapLobe lobe;
  lobe.slot = 3;
  lobe.thread = 43;
  lobe.cursor = 0x7f00'0000'0010;
  lobe.address = 0x7f00'0000'0000;
  lobe.words.resize(abi::kLobeWords);
  std::iota(lobe.words.begin(), lobe.words.end(), 17U);
  snap.lobes = {lobe};
  snap.network = "boot net:[1]";
  snap.forked = 1234;
  snap.streams = {
      {.descriptor = 5, .sent = 7, .received = 9, .own = "1.2.3.4:5", .peer = "[::1]:80"}};
  snap.began = {.ticks = 1000, .time_ns = 5000};
  snap.taken = {.ticks = 3000, .time_ns = 6000};
  return snap;
}

void expect_equal(const SnapModule& one, const SnapModule& other) {
  EXPECT_EQ(one.load_bias, other.load_bias);
  EXPECT_EQ(one.copy_address, other.copy_address);
  EXPECT_EQ(one.code_size, other.code_size);
  EXPECT_EQ(one.recipe.first_id, other.recipe.first_id);
  EXPECT_EQ(one.recipe.cursor, other.recipe.cursor);
  EXPECT_EQ(one.recipe.loops, other.recipe.loops);
  EXPECT_EQ(one.recipe.stamped, other.recipe.stamped);
  EXPECT_EQ(one.id_count, other.id_count);
  EXPECT_EQ(one.digest, other.digest);
  EXPECT_EQ(one.build_id, other.build_id);
  EXPECT_EQ(one.path, other.path);
}

class Folder {
 public:
  Folder() {
    std::string name = fs::temp_directory_path() / "clew-snap-XXXXXX";
    path_ = mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }
  [[nodiscard]] std::string path() const { return path_; }
  [[nodiscard]] std::string file(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Snap, ComesBackFromItsBytes) {
  const Snap snap = some_snap();
  const auto read = parse_snap(snap_bytes(snap));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->reason.signal, 11);
  EXPECT_EQ(read->reason.code, 1);
  EXPECT_EQ(read->reason.thread, 43);
  EXPECT_EQ(read->reason.address, 0x123456789aU);
  EXPECT_EQ(read->reason.time_ns, 5U);
  EXPECT_EQ(read->pid, 42);
  EXPECT_EQ(read->command, snap.command);
  ASSERT_EQ(read->modules.size(), 2U);
  expect_equal(read->modules[0], snap.modules[0]);
  expect_equal(read->modules[1], snap.modules[1]);
  ASSERT_EQ(read->threads.size(), 2U);
  EXPECT_EQ(read->threads[0].slot, 3U);
  EXPECT_EQ(read->threads[0].registers.rip, 0x5555'1000'0123U);
  EXPECT_EQ(read->threads[1].slot, kNoSlot);
  EXPECT_EQ(read->threads[1].called_from, snap.threads[1].called_from);
  ASSERT_EQ(read->lobes.size(), 1U);
  EXPECT_EQ(read->lobes[0].words, snap.lobes[0].words);
}

TEST(Snap, TheQueryComesBackWhereThereIsOne) {
  Snap snap = some_snap();
  EXPECT_EQ(parse_snap(snap_bytes(snap))->condition, "");
  snap.condition = "from e in profile(1hz)";
  EXPECT_EQ(parse_snap(snap_bytes(snap))->condition, snap.condition);
  snap.condition = std::string((64U << 10) + 1, 'x');
  EXPECT_FALSE(parse_snap(snap_bytes(snap)));
}

TEST(Snap, WhatRecordsIsTheSameInAllModules) {
  Snap snap = some_snap();
  snap.modules[0].recipe.front_end = FrontEnd::Guards;
  const auto read = parse_snap(snap_bytes(snap));  // The other one is not recorded.
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->modules[0].recipe.front_end, FrontEnd::Guards);
  snap.modules[1].id_count = 1;
  EXPECT_FALSE(parse_snap(snap_bytes(snap)));
  snap.modules[1].recipe.front_end = FrontEnd::Guards;
  EXPECT_TRUE(parse_snap(snap_bytes(snap)));
  snap.modules[1].recipe.front_end = static_cast<FrontEnd>(2);
  EXPECT_FALSE(parse_snap(snap_bytes(snap)));
}

TEST(Snap, ScriptsComeBackWhereThereIsAnInterpreter) {
  Snap snap = some_snap();
  EXPECT_EQ(parse_snap(snap_bytes(snap))->scripts, Scripts{});
  snap.scripts.interpreters = {{.name = "Python 3.11.2", .problem = "", .loop = 0x55551234},
                               {.name = "Perl", .problem = "not known", .loop = 0}};
  snap.scripts.functions = {{"hä", "/a.py"}, {"<module>", ""}};
  snap.scripts.stacks = {
      {.thread = 43, .interpreter = 0, .calls = {{1, 7, true}, {0, 0, false}}, .is_whole = true},
      {.thread = 42, .interpreter = 1, .calls = {}, .is_whole = false}};
  const auto read = parse_snap(snap_bytes(snap));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->scripts, snap.scripts);
}

TEST(Snap, ScriptsWithoutSenseAreRefused) {
  Snap snap = some_snap();
  snap.scripts.interpreters = {{.name = "Python 3.11.2", .problem = "", .loop = 1}};
  snap.scripts.functions = {{"f", "f.py"}};
  snap.scripts.stacks = {{.thread = 43, .interpreter = 0, .calls = {{0, 7, true}}}};
  ASSERT_TRUE(parse_snap(snap_bytes(snap)));
  Snap wrong = snap;
  wrong.scripts.stacks[0].interpreter = 1;
  EXPECT_FALSE(parse_snap(snap_bytes(wrong)));
  wrong = snap;
  wrong.scripts.stacks[0].calls[0].function = 1;
  EXPECT_FALSE(parse_snap(snap_bytes(wrong)));
  for (const char* const text : {"\x1b[2J", "a\nb", "\xc2\x9b", "\x7f"}) {
    wrong = snap;
    wrong.scripts.functions[0].name = text;
    EXPECT_FALSE(parse_snap(snap_bytes(wrong))) << text;
  }
}

TEST(Snap, OneThatIsCutIsRefusedAtEachLength) {
  constexpr size_t kLengthsMax = 4096;
  const std::vector<uint8_t> whole = snap_bytes(some_snap());
  ASSERT_GT(whole.size(), kLengthsMax);
  for (size_t size = 0; size <= kLengthsMax; ++size)
    EXPECT_FALSE(parse_snap(std::span(whole).first(size))) << size;
  EXPECT_FALSE(parse_snap(std::span(whole).first(whole.size() - 1)));
}

TEST(Snap, EachByteThatIsFlippedIsFound) {
  constexpr size_t kBytesMax = 2048;  // The headers, and all sections but the lobes' words.
  std::vector<uint8_t> bytes = snap_bytes(some_snap());
  for (size_t at = 0; at < kBytesMax; ++at) {
    bytes[at] ^= 0xff;
    EXPECT_FALSE(parse_snap(bytes)) << at;
    bytes[at] ^= 0xff;
  }
  bytes.back() ^= 1;
  EXPECT_FALSE(parse_snap(bytes));
}

// As a hostile writer does.
TEST(Snap, EachByteThatIsFlippedUnderARightDigestIsReadOrRefused) {
  constexpr size_t kDigestEnd = 48;
  constexpr uint32_t kSections = 8;
  const std::vector<uint8_t> whole = snap_bytes(some_snap());
  std::vector<uint8_t> rest(whole.begin() + kDigestEnd, whole.end());
  ASSERT_EQ(with_header(kSections, rest), whole);
  size_t refused = 0;
  for (size_t at = 0; at < 1024; ++at) {
    rest[at] ^= 0xff;
    if (!parse_snap(with_header(kSections, rest))) ++refused;
    rest[at] ^= 0xff;
  }
  EXPECT_GT(refused, 100U);
}

TEST(Snap, HasStreams) {
  const auto read = parse_snap(snap_bytes(some_snap()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->network, "boot net:[1]");
  EXPECT_EQ(read->forked, 1234U);
  ASSERT_EQ(read->streams.size(), 1U);
  EXPECT_EQ(read->streams[0].descriptor, 5U);
  EXPECT_EQ(read->streams[0].sent, 7U);
  EXPECT_EQ(read->streams[0].received, 9U);
  EXPECT_EQ(read->streams[0].own, "1.2.3.4:5");
  EXPECT_EQ(read->streams[0].peer, "[::1]:80");
}

TEST(Snap, AnAddressIsNoText) {
  Snap snap = some_snap();
  snap.streams[0].peer = "\033[2J";
  EXPECT_FALSE(parse_snap(snap_bytes(snap)));
}

// The last sections are not counted, as if they were not there.
TEST(Snap, WithoutTimesIsRead) {
  constexpr size_t kDigestEnd = 48;
  const std::vector<uint8_t> whole = snap_bytes(some_snap());
  const auto read = parse_snap(with_header(6, {whole.begin() + kDigestEnd, whole.end()}));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->threads.size(), 2U);
  EXPECT_EQ(read->taken.ticks, 0U);
  EXPECT_TRUE(read->modules[0].recipe.stamped.empty());
  EXPECT_EQ(SnapClock(*read).ns_at(5), std::nullopt);
}

TEST(Snap, TellsTimesRelativeToItsMoment) {
  Snap snap = some_snap();
  EXPECT_EQ(SnapClock(snap).ns_at(2000), -500);
  EXPECT_EQ(SnapClock(snap).ns_at(3002), 1);
  EXPECT_EQ(SnapClock(snap).ns_at(std::nullopt), std::nullopt);
  snap.began.time_ns = UINT64_MAX;  // Without sense.
  EXPECT_EQ(SnapClock(snap).ns_at(2000), std::nullopt);
  snap.began = {.ticks = 2999, .time_ns = 0};
  snap.taken.time_ns = UINT64_MAX;  // Longer ago than anything.
  EXPECT_EQ(SnapClock(snap).ns_at(0), std::nullopt);
}

TEST(Snap, AnotherVersionIsToldByItsNumber) {
  std::vector<uint8_t> bytes = snap_bytes(some_snap());
  bytes[8] = 200;
  const auto read = parse_snap(bytes);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("200"), std::string::npos);
}

TEST(Snap, AFileIsItsOwnersAlone) {
  const Folder folder;
  const mode_t before = umask(0);
  const auto written = write_snap(folder.file("a.snap"), some_snap());
  umask(before);
  ASSERT_TRUE(written) << written.error().message;
  struct stat status {};
  ASSERT_EQ(stat(folder.file("a.snap").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  const auto read = read_snap(folder.file("a.snap"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->pid, 42);
}

// Processes choose it, and users type it.
TEST(Snap, ItsNameHasNoSignsOfAShell) {
  const Folder folder;
  Snap snap = some_snap();
  for (const auto& [command, name] : std::vector<std::pair<const char*, const char*>>{
           {"/usr/bin/redis-server 127.0.0.1:7399   ", "redis-server_127.0.0.1_7399.snap"},
           {"$(id)", "__id_.snap"},
           {"-rf", "rf.snap"},
           {"-bash", "bash.snap"},
           {"", "process.snap"},
           {"größe", "größe.snap"}}) {
    snap.command = {command};
    const auto path = save_snap(folder.path(), snap);
    ASSERT_TRUE(path) << path.error().message;
    EXPECT_EQ(*path, folder.file(name));
  }
}

TEST(Snap, AFileThatIsThereStaysAsItIs) {
  const Folder folder;
  std::ofstream(folder.file("a.snap")) << "somebody's";
  EXPECT_FALSE(write_snap(folder.file("a.snap"), some_snap()));
  EXPECT_EQ(text_of(folder.file("a.snap")), "somebody's");
}

TEST(Snap, ALinkIsNotFollowed) {
  const Folder folder;
  fs::create_symlink(folder.file("aim"), folder.file("a.snap"));
  EXPECT_FALSE(write_snap(folder.file("a.snap"), some_snap()));
  EXPECT_FALSE(fs::exists(folder.file("aim")));
}

TEST(Snap, WhatIsNoFileIsNoSnap) {
  const Folder folder;
  EXPECT_FALSE(read_snap(folder.file("")));
  EXPECT_FALSE(read_snap(folder.file("missing")));
  EXPECT_FALSE(read_snap("/dev/zero"));
  std::ofstream(folder.file("text")) << "text";
  const auto read = read_snap(folder.file("text"));
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("it is no snap"), std::string::npos);
}

}  // namespace
}  // namespace clew::recorder
