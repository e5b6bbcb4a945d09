// SPDX-License-Identifier: Apache-2.0
#include "target/perf_map.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace clew::target {
namespace {

// The map of this process, where others would look for it; gone with the test.
class MapFile {
 public:
  MapFile() : path_(fmt::format("/tmp/perf-{}.map", getpid())) {}
  MapFile(const MapFile&) = delete;
  MapFile& operator=(const MapFile&) = delete;
  ~MapFile() { std::filesystem::remove(path_); }
  void append(const std::string& text) const { std::ofstream(path_, std::ios::app) << text; }
  void rewrite(const std::string& text) const { std::ofstream(path_) << text; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

using Time = PerfMap::Clock::time_point;
constexpr Time kFirst{std::chrono::hours(1)};
constexpr Time kLater = kFirst + std::chrono::seconds(1);
constexpr Time kMuchLater = kLater + std::chrono::seconds(1);

std::string found(PerfMap& map, uint64_t address, Time now = kFirst) {
  const auto place = map.find(address, now);
  return place ? fmt::format("{}+{}", place->function, place->offset_bytes) : "";
}

// All that this process has read so far.
uint64_t read_bytes() {
  std::ifstream file("/proc/self/io");
  std::string name;
  uint64_t bytes = 0;
  file >> name >> bytes;
  EXPECT_EQ(name, "rchar:");
  return bytes;
}

// Functions at 0x10000, 0x10010, …
std::string many_lines() {
  constexpr uint64_t kFunctions = 50'000;
  std::string text;
  for (uint64_t i = 0; i < kFunctions; ++i)
    text += fmt::format("{:x} 10 f{}\n", 0x10000 + 16 * i, i);
  return text;
}

TEST(PerfMap, NamesFunctionsByTheirRanges) {
  const MapFile file;
  file.append("7f0000001000 40 LazyCompile:~f /app/main.js:1\n0x7f00 10 no\n7f0000001040 8 g h\n");
  PerfMap map(getpid());
  EXPECT_EQ(found(map, 0x7f0000001000), "LazyCompile:~f /app/main.js:1+0");
  EXPECT_EQ(found(map, 0x7f000000103f), "LazyCompile:~f /app/main.js:1+63");
  EXPECT_EQ(found(map, 0x7f0000001040), "g h+0");
  EXPECT_EQ(found(map, 0x7f0000001048), "");
  EXPECT_EQ(found(map, 0x7f00), "");
}

TEST(PerfMap, LaterLinesReplaceWhatTheyCover) {
  const MapFile file;
  file.append("1000 100 old\n1100 10 next\n");
  PerfMap map(getpid());
  EXPECT_EQ(found(map, 0x1080), "old+128");
  file.append("1080 88 new\n");
  EXPECT_EQ(found(map, 0x1080), "old+128");  // Known, so the file is not asked.
  EXPECT_EQ(found(map, 0x1200, kLater), "");
  EXPECT_EQ(found(map, 0x1080), "new+0");
  EXPECT_EQ(found(map, 0x1010), "");
  EXPECT_EQ(found(map, 0x1108), "");
}

TEST(PerfMap, ReadsOnlyWhatIsNew) {
  const MapFile file;
  const std::string many = many_lines();
  file.append(many + "1000 10 unfin");
  PerfMap map(getpid());
  EXPECT_EQ(found(map, 0x1000), "");
  file.append("ished\n2000 10 next\n");
  const uint64_t before = read_bytes();
  EXPECT_EQ(found(map, 0x2000, kLater), "next+0");
  EXPECT_EQ(found(map, 0x1000, kLater), "unfinished+0");
  EXPECT_EQ(found(map, 0x10000, kLater), "f0+0");
  EXPECT_LT(read_bytes() - before, many.size() / 4);
}

TEST(PerfMap, IsNotReadForEachAddressThatIsInNoMap) {
  const MapFile file;
  const std::string many = many_lines();
  PerfMap map(getpid());
  const uint64_t before = read_bytes();
  for (int i = 0; i < 100; ++i) {
    file.rewrite(many + std::string(static_cast<size_t>(i), '\n'));
    EXPECT_EQ(found(map, 0x1000), "");
  }
  EXPECT_LT(read_bytes() - before, 2 * many.size());
  file.append("1000 10 late\n");
  EXPECT_EQ(found(map, 0x1000, kLater), "late+0");
}

TEST(PerfMap, AFileThatIsWrittenAnewIsReadWhole) {
  const MapFile file;
  file.append("1000 10 old\n2000 10 old\n");
  PerfMap map(getpid());
  EXPECT_EQ(found(map, 0x1000), "old+0");
  file.rewrite("3000 10 new\n4000 10 new\n5000 10 new\n");
  EXPECT_EQ(found(map, 0x3000, kLater), "new+0");
  EXPECT_EQ(found(map, 0x1000, kLater), "");
  file.rewrite("1000 10 newer\n");
  EXPECT_EQ(found(map, 0x1000, kMuchLater), "newer+0");
  EXPECT_EQ(found(map, 0x3000, kMuchLater), "");
}

TEST(PerfMap, LeavesOutWhatIsNoFunction) {
  const MapFile file;
  file.append("\n\n \nzz 10 f\n1000\n1000 \n1000 10\n1000 10 \n1000 0 f\n");
  file.append("ffffffffffffff00 200 wraps\n11111111111111111 10 f\n2000 10 unfinished");
  PerfMap map(getpid());
  EXPECT_EQ(found(map, 0x1000), "");
  EXPECT_EQ(found(map, 0xffffffffffffff00), "");
  EXPECT_EQ(found(map, 0x2000), "");
}

TEST(PerfMap, TrustsNobodyElsesFile) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const MapFile file;
  file.append("1000 100 f\n");
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(chown(file.path().c_str(), kNobody, kNobody), 0);
  PerfMap map(getpid());
  EXPECT_EQ(found(map, 0x1000), "");
}

TEST(PerfMap, FollowsNoLink) {
  const MapFile file;
  std::ofstream("/tmp/" + std::to_string(getpid()) + ".elsewhere") << "1000 100 f\n";
  const std::string elsewhere = "/tmp/" + std::to_string(getpid()) + ".elsewhere";
  std::filesystem::create_symlink(elsewhere, file.path());
  PerfMap map(getpid());
  EXPECT_EQ(found(map, 0x1000), "");
  std::filesystem::remove(elsewhere);
}

}  // namespace
}  // namespace clew::target
