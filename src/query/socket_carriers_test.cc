// SPDX-License-Identifier: Apache-2.0
#include "query/socket_carriers.h"

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "query/vocabulary.h"

namespace clew::query {
namespace {

using causal::EdgeClass;
using causal::Onward;

Expected<void> load_into(Vocabulary& vocabulary, const std::string& text) {
  return vocabulary.load_text("v.toml", text);
}

std::string mistake_in(const std::string& text) {
  Vocabulary vocabulary;
  const auto loaded = load_into(vocabulary, text);
  return loaded ? "" : loaded.error().message;
}

TEST(Programs, SayHowTheyHandRequestsOn) {
  Vocabulary vocabulary;
  ASSERT_TRUE(load_into(vocabulary,
                        "[[program]]\nname = \"a\"\nonward = \"oldest\"\n"
                        "[[program]]\nname = \"b\"\ndoc = \"d\"\nonward = \"blocking\"\n"
                        "reply = \"none\"\nhow = \"heuristic\"\n"));
  ASSERT_EQ(vocabulary.programs().size(), 2);
  const causal::Profile a = vocabulary.find_program("a")->profile;
  EXPECT_EQ(
      a, (causal::Profile{.onward = Onward::Oldest, .alternates = true, .how = EdgeClass::Recipe}));
  const Program& b = *vocabulary.find_program("b");
  EXPECT_EQ(b.doc, "d");
  EXPECT_EQ(b.profile,
            (causal::Profile{
                .onward = Onward::Blocking, .alternates = false, .how = EdgeClass::Heuristic}));
  EXPECT_EQ(name_of(b.profile.onward), "blocking");
  EXPECT_EQ(vocabulary.find_program("c"), nullptr);
}

TEST(Programs, AreDescribed) {
  causal::Profile profile{.onward = causal::Onward::Last, .how = causal::EdgeClass::Recipe};
  EXPECT_EQ(text_of(profile), "onward last, reply alternating (recipe)");
  EXPECT_EQ(describe(profile), "writes onward for the message read last (recipe)");
  profile.follows_pipes = true;
  EXPECT_EQ(text_of(profile), "onward last, reply alternating, pipes followed (recipe)");
  EXPECT_EQ(describe(profile),
            "writes onward for the message read last, and reads requests from pipes (recipe)");
  profile = {.onward = causal::Onward::None, .alternates = false};
  EXPECT_EQ(text_of(profile), "onward none, reply none (heuristic)");
  EXPECT_EQ(describe(profile),
            "only its hand-overs say for which request it writes onward, and answers in no order "
            "(heuristic)");
}

TEST(Programs, AreSaidOnce) {
  Vocabulary vocabulary;
  const std::string one = "[[program]]\nname = \"a\"\nonward = \"last\"\n";
  ASSERT_TRUE(load_into(vocabulary, one));
  EXPECT_TRUE(load_into(vocabulary, one)) << "the same twice is one";
  EXPECT_EQ(vocabulary.programs().size(), 1);
  const auto other = load_into(vocabulary, "[[program]]\nname = \"a\"\nonward = \"none\"\n");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, testing::HasSubstr("already said in v.toml"));
}

TEST(Programs, MistakesHaveAMessageWithAPlace) {
  using testing::HasSubstr;
  const std::string begin = "[[program]]\nname = \"a\"\n";
  EXPECT_THAT(mistake_in(begin), HasSubstr("v.toml:1:1: error: the table needs 'onward'"));
  EXPECT_THAT(mistake_in(begin + "onward = \"lst\"\n"), HasSubstr("did you mean 'last'"));
  EXPECT_THAT(mistake_in(begin + "onward = \"last\"\nreply = \"never\"\n"),
              HasSubstr("'reply' is alternating or none, not 'never'"));
  EXPECT_THAT(mistake_in(begin + "onward = \"last\"\nhow = \"sound\"\n"),
              HasSubstr("'how' is recipe or heuristic, not 'sound'"));
  EXPECT_THAT(mistake_in(begin + "onward = \"last\"\npipes = \"follow\"\n"),
              HasSubstr("'pipes' is followed or ignored, not 'follow'; did you mean 'followed'?"));
  EXPECT_THAT(mistake_in(begin + "onwards = \"last\"\n"), HasSubstr("did you mean 'onward'"));
  EXPECT_THAT(mistake_in("[[programs]]\n"), HasSubstr("unknown table 'programs'"));
  EXPECT_THAT(mistake_in("[program]\n"), HasSubstr("expected [[program]]"));
}

// As the kernel has them: 127.0.0.1:8080, whose peer is 127.0.0.1:50000, in namespace 7.
TEST(SocketKeys, AreThoseOfTheKernel) {
  constexpr uint64_t kPorts = 0x7ULL << 32 | 0x901fULL << 16 | 0x50c3;
  const std::array<uint64_t, kSocketKeys> keys = {
      0xffff888000000000, 0x0100007f, 0x0200007f, kPorts, 0x5ULL << 32 | 0x10, 1};
  const causal::Passage passage = passage_of({3, 4}, Medium::Tcp, keys);
  EXPECT_EQ(passage.thread, (causal::Thread{3, 4}));
  EXPECT_EQ(
      passage.out,
      (causal::StreamKey{
          .from = 0x0200007f, .to = 0x0100007f, .from_port = 8080, .to_port = 50000, .space = 7}));
  EXPECT_EQ(passage.bytes.begin, 0xfffffff5) << "numbers go round";
  EXPECT_EQ(passage.bytes.end, 5);
  EXPECT_TRUE(passage.accepted);
}

TEST(UnixKeys, AreThoseOfTheKernel) {
  constexpr uint64_t kOwn = 0xffff888000000000;
  constexpr uint64_t kPeer = 0xffff888000000480;
  const auto passage = [](uint64_t bytes) {
    return passage_of({3, 4}, Medium::Unix,
                      std::array<uint64_t, kUnixKeys>{kOwn, kPeer, 12ULL << 32 | 11, bytes});
  };
  const causal::Passage accepted = passage(7ULL << 32 | 0x80000064);
  EXPECT_EQ(accepted.out, (causal::StreamKey{.from = kOwn, .to = kPeer}));
  EXPECT_EQ(accepted.socket, kOwn);
  EXPECT_EQ(accepted.bytes.end, 100);
  EXPECT_TRUE(accepted.accepted);
  EXPECT_FALSE(accepted.is_of_pair);
  ASSERT_TRUE(accepted.count);
  EXPECT_EQ(accepted.count->own, 11);
  EXPECT_EQ(accepted.count->peers, 12);
  EXPECT_EQ(accepted.count->unread, 7);
  const causal::Passage connected = passage(0xffffffffULL << 32 | 100);
  EXPECT_FALSE(connected.accepted);
  EXPECT_FALSE(connected.is_of_pair);
  EXPECT_EQ(connected.count->unread, std::nullopt);
  EXPECT_TRUE(passage(100).is_of_pair);
  EXPECT_FALSE(passage(100).accepted);
}

TEST(PipeKeys, AreThoseOfTheKernel) {
  constexpr uint64_t kPipe = 0xffff888000000000;
  const auto passage = [](uint64_t pipe, uint64_t bytes) {
    return passage_of({3, 4}, Medium::Pipe, std::array<uint64_t, kPipeKeys>{pipe, 11, bytes});
  };
  const causal::Passage written = passage(kPipe, 0x7fffffffULL << 32 | 100);
  EXPECT_EQ(written.out, (causal::StreamKey{.from = kPipe, .to = kPipe + 1}));
  EXPECT_EQ(written.bytes.end, 100);
  EXPECT_TRUE(written.is_of_pipe);
  EXPECT_FALSE(written.is_moved);
  ASSERT_TRUE(written.count);
  EXPECT_EQ(written.count->own, 11);
  EXPECT_EQ(written.count->peers, 11);
  EXPECT_EQ(written.count->unread, std::nullopt);
  const causal::Passage read = passage(kPipe + 1, 7ULL << 32 | 0x80000064);
  EXPECT_EQ(read.out, written.out.reversed());
  EXPECT_EQ(read.socket, kPipe + 1);
  EXPECT_EQ(read.bytes.end, 100);
  EXPECT_TRUE(read.is_moved);
  EXPECT_EQ(read.count->unread, 7);
}

// Both ends of a connection between two namespaces have the same key.
TEST(SocketKeys, OfOtherAddressesAreOfNoNamespace) {
  constexpr uint64_t kPorts = 0x7ULL << 32 | 0x901fULL << 16 | 0x50c3;
  const std::array<uint64_t, kSocketKeys> keys = {1, 0x0100000a, 0x0200000a, kPorts, 5, 0};
  EXPECT_EQ(passage_of({3, 4}, Medium::Tcp, keys).out.space, 0);
}

}  // namespace
}  // namespace clew::query
