// SPDX-License-Identifier: Apache-2.0
#include "collect/spill.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collect/crc32c.h"

namespace clew::collect {
namespace {

using testing::HasSubstr;

class SpillTest : public testing::Test {
 protected:
  SpillTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "spill-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~SpillTest() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path() const { return folder_ + "/events"; }

  [[nodiscard]] std::string bytes() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void set_bytes(std::string_view content) const {
    std::ofstream(path(), std::ios::binary) << content;
  }

  std::string folder_;
};

// Events of the second shape have three words, those of the third what they need.
const SpillStart kStart{.event_words = {{1, 1}, {3, 3}, {2, 9}}, .note = "fields and clock"};

EventBatch random_batch(std::mt19937_64& random, size_t count) {
  EventBatch batch;
  for (size_t i = 0; i < count; ++i) {
    const auto shape = static_cast<uint32_t>(random() % kStart.event_words.size());
    const EventWords& range = kStart.event_words[shape];
    std::vector<uint64_t> words(range.least + random() % (1 + range.most - range.least));
    for (uint64_t& word : words)
      word = random();
    batch.push({.shape = shape,
                .process = static_cast<uint32_t>(random() % 3),
                .tid = static_cast<uint32_t>(random()),
                .time = random(),
                .words = words});
  }
  return batch;
}

void write_rounds(const std::string& path, std::span<const EventBatch> rounds, bool finish) {
  auto writer = SpillWriter::create(path, kStart);
  ASSERT_TRUE(writer);
  for (size_t i = 0; i < rounds.size(); ++i)
    ASSERT_TRUE(writer->write(rounds[i], i));
  if (finish) {
    ASSERT_TRUE(writer->finish());
  }
}

EventBatch read_to_end(SpillReader& reader) {
  EventBatch all;
  while (true) {
    const auto round = reader.next();
    EXPECT_TRUE(round);
    if (!round || !*round) return all;
    all.append((*round)->batch);
  }
}

TEST_F(SpillTest, GivesBackWhatWasWritten) {
  std::mt19937_64 random(10);
  const std::vector<EventBatch> rounds = {random_batch(random, 100), {}, random_batch(random, 1)};
  write_rounds(path(), rounds, true);
  auto reader = SpillReader::open(path());
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->start(), kStart);
  EventBatch expected = rounds[0];
  expected.append(rounds[2]);
  EXPECT_EQ(read_to_end(*reader), expected);
  EXPECT_TRUE(reader->complete());
  EXPECT_EQ(reader->damaged_frames(), 0U);
}

TEST_F(SpillTest, SplitsALargeRound) {
  std::mt19937_64 random(11);
  const EventBatch large = random_batch(random, 20'000);
  write_rounds(path(), std::span(&large, 1), true);
  auto reader = SpillReader::open(path());
  ASSERT_TRUE(reader);
  EXPECT_EQ(read_to_end(*reader), large);
}

TEST_F(SpillTest, AFileThatWasCutAnywhereGivesItsWholeRounds) {
  std::mt19937_64 random(12);
  const std::vector<EventBatch> rounds = {random_batch(random, 3), random_batch(random, 3)};
  write_rounds(path(), rounds, true);
  size_t events_before = 6;
  for (size_t size = bytes().size(); size-- > 0;) {
    std::filesystem::resize_file(path(), size);
    auto reader = SpillReader::open(path());
    if (!reader) break;  // Cut in the start frame.
    const EventBatch all = read_to_end(*reader);
    EXPECT_LE(all.size(), events_before);
    EXPECT_FALSE(reader->complete());
    events_before = all.size();
  }
  EXPECT_EQ(events_before, 0U);
}

TEST_F(SpillTest, SkipsADamagedRoundAndCountsIt) {
  std::mt19937_64 random(13);
  const std::vector<EventBatch> rounds = {random_batch(random, 5), random_batch(random, 5),
                                          random_batch(random, 5)};
  write_rounds(path(), std::span(rounds).first(1), false);
  const size_t second_round = bytes().size();
  write_rounds(path(), rounds, true);
  std::string content = bytes();
  content[second_round + 60] = static_cast<char>(content[second_round + 60] ^ 1);
  set_bytes(content);
  auto reader = SpillReader::open(path());
  ASSERT_TRUE(reader);
  EventBatch expected = rounds[0];
  expected.append(rounds[2]);
  EXPECT_EQ(read_to_end(*reader), expected);
  EXPECT_EQ(reader->damaged_frames(), 1U);
  EXPECT_TRUE(reader->complete());
}

TEST_F(SpillTest, LooksForTheNextFrameWhereNoneBegins) {
  std::mt19937_64 random(15);
  const std::vector<EventBatch> rounds = {random_batch(random, 5), random_batch(random, 5),
                                          random_batch(random, 5)};
  write_rounds(path(), std::span(rounds).first(1), false);
  const size_t second_round = bytes().size();
  write_rounds(path(), rounds, true);
  std::string content = bytes();
  content[second_round] = 'X';
  set_bytes(content);
  auto reader = SpillReader::open(path());
  ASSERT_TRUE(reader);
  EventBatch expected = rounds[0];
  expected.append(rounds[2]);
  EXPECT_EQ(read_to_end(*reader), expected);
  EXPECT_EQ(reader->damaged_frames(), 1U);
  ASSERT_EQ(reader->problems().size(), 1U);
  EXPECT_THAT(reader->problems()[0], HasSubstr(": byte " + std::to_string(second_round) + ": "));
  EXPECT_TRUE(reader->complete());
}

TEST_F(SpillTest, CanBeReadWhileItIsWritten) {
  std::mt19937_64 random(16);
  auto writer = SpillWriter::create(path(), kStart);
  auto reader = SpillReader::open(path());
  ASSERT_TRUE(writer && reader);
  for (int i = 0; i < 3; ++i) {
    const auto nothing = reader->next();
    ASSERT_TRUE(nothing);
    EXPECT_FALSE(*nothing);
    const EventBatch batch = random_batch(random, 4);
    ASSERT_TRUE(writer->write(batch, 1));
    const auto round = reader->next();
    ASSERT_TRUE(round && *round);
    EXPECT_EQ((*round)->batch, batch);
  }
  ASSERT_TRUE(writer->finish("the last names"));
  ASSERT_TRUE(reader->next());
  EXPECT_TRUE(reader->complete());
  EXPECT_EQ(reader->end_note(), "the last names");
}

TEST_F(SpillTest, AFlippedBitInAnyByteIsSeen) {
  std::mt19937_64 random(14);
  const EventBatch batch = random_batch(random, 2);
  write_rounds(path(), std::span(&batch, 1), true);
  std::fstream file(path(), std::ios::binary | std::ios::in | std::ios::out);
  const std::string whole = bytes();
  const auto put = [&](size_t at, int byte) {
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte)).flush();
  };
  for (size_t at = 0; at < whole.size(); ++at) {
    put(at, whole[at] ^ (1 << (at % 8)));
    auto reader = SpillReader::open(path());
    if (reader) {
      const EventBatch all = read_to_end(*reader);
      EXPECT_TRUE(reader->damaged_frames() > 0 || !reader->complete()) << at;
      EXPECT_TRUE(all.empty() || all == batch) << at;
    }
    put(at, whole[at]);
  }
}

TEST_F(SpillTest, SaysWhatIsWrongWithAFile) {
  set_bytes("this is text, and more than a frame header of it");
  const auto no_events = SpillReader::open(path());
  ASSERT_FALSE(no_events);
  EXPECT_THAT(no_events.error().message, HasSubstr("not a file of events"));
  const auto missing = SpillReader::open(folder_ + "/missing");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("No such file"));
  EXPECT_FALSE(SpillWriter::create(folder_ + "/no/folder", kStart));
}

TEST(Crc32c, AgreesWithTheVectorsOfRfc3720) {
  const std::vector<std::byte> zeros(32, std::byte{0});
  const std::vector<std::byte> ones(32, std::byte{0xFF});
  EXPECT_EQ(crc32c(zeros), 0x8A9136AAU);
  EXPECT_EQ(crc32c(ones), 0x62A8AB43U);
}

TEST(Crc32c, IsTheSameWithAndWithoutTheInstruction) {
  if (__builtin_cpu_supports("sse4.2") == 0) GTEST_SKIP() << "NOT TESTED: no SSE4.2";
  std::mt19937_64 random(3);
  std::vector<std::byte> bytes;
  for (size_t size = 0; size < 70; ++size) {
    EXPECT_EQ(detail::crc32c_by_instruction(7, bytes), detail::crc32c_by_table(7, bytes)) << size;
    bytes.push_back(static_cast<std::byte>(random()));
  }
}

}  // namespace
}  // namespace clew::collect
