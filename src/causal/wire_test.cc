// SPDX-License-Identifier: Apache-2.0
// The bytes of baggage: spelled out, and from those who mean harm.
#include "causal/wire.h"

#include <random>

#include <gtest/gtest.h>

#include "causal/authenticate.h"
#include "causal/causal_testing.h"

namespace clew::causal {
namespace {

std::string hex_of(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes)
    hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

std::string of_hex(std::string_view hex) {
  std::string bytes;
  for (size_t at = 0; at < hex.size(); at += hex[at] == ' ' ? 1 : 2) {
    if (hex[at] != ' ')
      bytes += static_cast<char>(std::stoi(std::string(hex.substr(at, 2)), nullptr, 16));
  }
  return bytes;
}

// A branch with some of everything.
Baggage example(TestRequest& request) {
  request.pack(request.root, kFirstBag, -1, "a");
  request.add(request.root, kSumBag, 300, "k");
  Baggage branch = request.root.branch(request.faults);
  request.add(branch, kSumBag, 2, "k");
  request.pack(branch, kLeastBag, 7, "key");
  return branch;
}

constexpr std::string_view kExample =
    "01 00 6500 00000000 8877665544332211 e8030000"  // Version to expiry.
    "02"                                             // n
    "01 01 01"                                       // The right half.
    "02 00 01 01 01 02"                              // Height 1 from 0 on, 2 from the half on.
    "03"                                             // Bags.
    "01000000 0000 00 01 00 0a00 01 01 01000000 03 01 01 61"
    "06000000 0000 03 00 00 0c00 01 02 02000000 05 0e 03 6b6579"
    "08000000 0000 05 00 00 0f00 01 00 02 00 01 01 6b 04 01 00 01 01 6b d804";

// --- bytes ---------------------------------------------------------------------------------------

TEST(Wires, HaveTheseBytes) {
  TestRequest request;
  EXPECT_EQ(hex_of(wire_text(example(request))), hex_of(of_hex(kExample)));
}

TEST(Wires, OfEmptyBaggageHaveNone) {
  EXPECT_EQ(wire_text(Baggage()), "");
  Baggage baggage({.id = 1});
  EXPECT_EQ(read_text("", baggage), Refusal::None);
  EXPECT_TRUE(baggage.is_empty());
}

TEST(Wires, BringBackWhatWasWritten) {
  TestRequest request;
  const Baggage written = example(request);
  Baggage read;
  ASSERT_EQ(read_text(wire_text(written), read), Refusal::None);
  EXPECT_EQ(read.contents().stamp, written.contents().stamp);
  EXPECT_EQ(read.contents().expires_s, 1000U);
  EXPECT_EQ(tuples_in(read, kFirstBag.name), "-1:a");
  EXPECT_EQ(groups_in(read, kSumBag.name), "k:302");
  EXPECT_EQ(read.size_bytes(), written.size_bytes());
}

TEST(Wires, SayWhatIsLost) {
  TestRequest request;
  for (uint32_t number = 0; number <= kBagsMax; ++number)
    request.pack(request.root, {.name = {number, 0}, .kind = BagKind::All}, 1);
  const std::string text(250, 'x');
  EXPECT_EQ(request.pack(request.root, {.name = {7, 0}, .kind = BagKind::All}, 1, text),
            Outcome::EmitOnly);
  Baggage read;
  ASSERT_EQ(read_text(wire_text(request.root), read), Refusal::None);
  EXPECT_TRUE(read.contents().lost_bags);
  EXPECT_EQ(tuples_in(read, {7, 0}), "emit");
  EXPECT_EQ(tuples_in(read, {8, 0}), "1:");
}

// --- hostile bytes -------------------------------------------------------------------------------

// Refused, and then it is empty; or taken, and then it is what its bytes say, within all limits.
void expect_harmless(std::string_view bytes) {
  Baggage read({.id = 77});
  if (read_text(bytes, read) != Refusal::None) {
    EXPECT_TRUE(read.is_empty());
    return;
  }
  std::string written(kBaggageBytesMax, 0);
  written.resize(write_wire(read, key_epoch_of(as_bytes_of(bytes)),
                            std::as_writable_bytes(std::span(written))));
  EXPECT_EQ(hex_of(written), hex_of(bytes));
}

std::string with_size(std::string bytes) {
  bytes[2] = static_cast<char>(bytes.size() & 0xFF);
  bytes[3] = static_cast<char>(bytes.size() >> 8);
  return bytes;
}

TEST(HostileWires, ThatAreTruncatedAreRefused) {
  const std::string whole = of_hex(kExample);
  Baggage read;
  for (size_t size = 1; size < whole.size(); ++size) {
    EXPECT_EQ(read_text(whole.substr(0, size), read), Refusal::Size) << size;
    if (size < 4) continue;
    EXPECT_NE(read_text(with_size(whole.substr(0, size)), read), Refusal::None) << size;
    EXPECT_TRUE(read.is_empty());
  }
  EXPECT_EQ(read_text(whole + '\0', read), Refusal::Size);
  EXPECT_EQ(read_text(with_size(whole + '\0'), read), Refusal::Damaged);
}

// Each byte of it is any other one.
TEST(HostileWires, WithOneWrongByteAreHarmless) {
  const std::string whole = of_hex(kExample);
  Baggage read;
  ASSERT_EQ(read_text(whole, read), Refusal::None);
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(value);
      expect_harmless(bytes);
    }
  }
}

TEST(HostileWires, WithManyWrongBytesAreHarmless) {
  std::mt19937_64 random(1);
  const std::string whole = of_hex(kExample);
  for (int run = 0; run < 100'000; ++run) {
    std::string bytes = whole;
    for (uint64_t i = 0; i < 1 + random() % 4; ++i)
      bytes[4 + random() % (bytes.size() - 4)] = static_cast<char>(random());
    if (run % 4 == 0) bytes.resize(24 + random() % (bytes.size() - 24));
    expect_harmless(with_size(bytes));
  }
}

// Every place where a number says how much follows.
TEST(HostileWires, WithLengthBombsAreRefused) {
  const std::string header = "01 00 0000 00000000 0100000000000000 00000000 00";
  const std::string head = " 01000000 0000 ";
  const std::vector<std::string> bombs = {
      header + "ff",                                                         // Intervals,
      header + "00 ff",                                                      // steps,
      header + "00 00 ff",                                                   // bags,
      header + "00 00 01" + head + "02 00 00 ffff 01",                       // the size of a body,
      header + "00 00 01" + head + "02 00 00 0100 ff",                       // tuples,
      header + "00 00 01" + head + "02 00 00 0700 01 00 00000000 ff",        // fields,
      header + "01 00 00 00 01" + head + "05 00 00 0100 ff",                 // words,
      header + "01 00 00 00 01" + head + "05 00 00 0300 01 00 ff",           // instances,
      header + "01 00 00 00 01" + head + "05 00 00 0500 01 00 01 00 ff",     // groups,
      header + "01 00 00 00 01" + head + "05 00 00 0600 01 00 01 00 01 ff",  // a key,
      header + "01 00 01 00 ffffffffffffffffffff 00",  // a number of more than 64 bits,
      header + "01 ff 00 00 00",                       // a depth.
      header + "01 30 ffffffffffffff 00 00",
  };
  Baggage read;
  for (const std::string& bomb : bombs)
    EXPECT_EQ(read_text(with_size(of_hex(bomb)), read), Refusal::Damaged) << bomb;
  EXPECT_EQ(read_text(with_size(std::string(65535, 1)), read), Refusal::Size);
  EXPECT_EQ(read_text(with_size(of_hex(header + "00 00 00")), read), Refusal::None);
}

// It would be frozen a second time under the same name.
TEST(HostileWires, WithInstancesThatTheyHaveNotSeenAreRefused) {
  const std::string header = "01 00 0000 00000000 0100000000000000 00000000 00 01 00";
  const std::string bag = "01 01000000 0000 05 00 00 0900 01 00 01 02 00 01 01 6b 02";
  Baggage read;
  EXPECT_EQ(read_text(with_size(of_hex(header + "01 00 01" + bag)), read), Refusal::Damaged);
  EXPECT_EQ(read_text(with_size(of_hex(header + "01 00 02" + bag)), read), Refusal::None);
}

TEST(HostileWires, OfAnotherVersionAreRefused) {
  std::string bytes = of_hex(kExample);
  bytes[0] = 2;
  Baggage read;
  EXPECT_EQ(read_text(bytes, read), Refusal::Version);
}

// --- authentication ------------------------------------------------------------------------------

constexpr uint32_t kTenant = 7;
constexpr uint32_t kNeighbour = 8;

Key key_of(uint32_t tenant, uint32_t epoch, uint8_t first = 0) {
  Key key{.tenant = tenant, .epoch = epoch};
  for (size_t i = 0; i < key.secret.size(); ++i)
    key.secret[i] = static_cast<std::byte>(first + i);
  return key;
}

std::string sealed(const Baggage& baggage, const Keys& keys, uint32_t tenant = kTenant) {
  std::string bytes(kSealedBytesMax, 0);
  const auto size = seal(baggage, keys, tenant, std::as_writable_bytes(std::span(bytes)));
  EXPECT_TRUE(size.has_value());
  bytes.resize(size.value_or(0));
  return bytes;
}

class Authentications : public testing::Test {
 protected:
  Authentications() { EXPECT_TRUE(keys.add(key_of(kTenant, 3)).has_value()); }

  Refusal opened(std::string_view bytes,
                 const Receiver& receiver = {.tenant = kTenant, .now_s = 1000}) {
    return open(as_bytes_of(bytes), keys, receiver, read, refusals);
  }
  uint64_t count(Refusal refusal) const { return refusals[static_cast<size_t>(refusal)]; }

  Keys keys;
  TestRequest request;
  Baggage read;
  Refusals refusals{};
};

// The last 16 bytes are by Python: hmac.new(bytes(range(32)), data, 'sha256').digest()[:16].
TEST_F(Authentications, AreTheseBytes) {
  std::string expected = of_hex(kExample);
  expected[4] = 3;
  EXPECT_EQ(hex_of(sealed(example(request), keys)),
            hex_of(expected) + "e04af23c60ada849ea0310c136a4dd5e");
}

TEST_F(Authentications, LetTheirOwnersIn) {
  EXPECT_EQ(opened(sealed(example(request), keys)), Refusal::None);
  EXPECT_EQ(groups_in(read, kSumBag.name), "k:302");
  EXPECT_EQ(opened(""), Refusal::None);
  EXPECT_TRUE(read.is_empty());
  EXPECT_EQ(refusals, Refusals());
}

TEST_F(Authentications, OfEmptyBaggageAreNoBytes) {
  EXPECT_EQ(sealed(Baggage(), keys), "");
}

TEST_F(Authentications, AreNotForged) {
  const std::string whole = sealed(example(request), keys);
  for (size_t at = 0; at < whole.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string forged = whole;
      forged[at] = static_cast<char>(static_cast<unsigned char>(forged[at]) ^ (1U << bit));
      const bool is_epoch = at >= 4 && at < 8;
      EXPECT_EQ(opened(forged), is_epoch ? Refusal::UnknownKey : Refusal::Forged) << at;
      EXPECT_TRUE(read.is_empty());
    }
  }
  EXPECT_EQ(count(Refusal::Forged), 8 * (whole.size() - 4));
  EXPECT_EQ(count(Refusal::UnknownKey), 32U);
}

TEST_F(Authentications, AreNotOfBytesWithoutThem) {
  EXPECT_EQ(opened(wire_text(example(request))), Refusal::UnknownKey);
  EXPECT_EQ(opened(std::string(16, 'x')), Refusal::Size);
}

TEST_F(Authentications, OfTruncatedBytesAreRefused) {
  const std::string whole = sealed(example(request), keys);
  for (size_t size = 1; size < whole.size(); ++size) {
    EXPECT_NE(opened(whole.substr(0, size)), Refusal::None) << size;
    EXPECT_TRUE(read.is_empty());
  }
  EXPECT_EQ(count(Refusal::Size) + count(Refusal::Forged) + count(Refusal::UnknownKey),
            whole.size() - 1);
}

TEST_F(Authentications, OfForeignTenantsAreRefused) {
  ASSERT_TRUE(keys.add(key_of(kNeighbour, 3, 100)).has_value());
  ASSERT_TRUE(keys.add(key_of(kNeighbour, 4, 101)).has_value());
  const std::string theirs = sealed(example(request), keys, kNeighbour);
  EXPECT_EQ(opened(theirs), Refusal::ForeignTenant);
  EXPECT_TRUE(read.is_empty());
  // Of an epoch that both have, too.
  keys.remove(kNeighbour, 4);
  EXPECT_EQ(opened(sealed(read = request.root, keys, kNeighbour)), Refusal::ForeignTenant);
  EXPECT_EQ(opened(theirs, {.tenant = kNeighbour, .now_s = 1000}), Refusal::UnknownKey);
  EXPECT_EQ(count(Refusal::ForeignTenant), 2U);
}

TEST_F(Authentications, EndWithTheRequest) {
  const std::string whole = sealed(example(request), keys);
  EXPECT_EQ(opened(whole, {.tenant = kTenant, .now_s = 1000}), Refusal::None);
  EXPECT_EQ(opened(whole, {.tenant = kTenant, .now_s = 1001}), Refusal::Expired);
  EXPECT_TRUE(read.is_empty());
  EXPECT_EQ(count(Refusal::Expired), 1U);
}

// In time it changes nothing; later it is not taken.
TEST_F(Authentications, OfReplayedBytesAreHarmless) {
  Baggage branch = example(request);
  const std::string message = sealed(branch.hand_over(request.faults), keys);
  ASSERT_EQ(opened(message), Refusal::None);
  request.root.receive(read, request.faults);
  const std::string before = wire_text(request.root);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(opened(message), Refusal::None);
    request.root.receive(read, request.faults);
    EXPECT_EQ(wire_text(request.root), before);
  }
  EXPECT_EQ(request.faults.stale, 3U);
  EXPECT_EQ(opened(message, {.tenant = kTenant, .now_s = 2000}), Refusal::Expired);
}

TEST_F(Authentications, FollowTheKeys) {
  const std::string old = sealed(example(request), keys);
  ASSERT_TRUE(keys.add(key_of(kTenant, 4, 50)).has_value());
  const std::string renewed = sealed(request.root, keys);
  EXPECT_EQ(key_epoch_of(as_bytes_of(renewed)), 4U);
  EXPECT_EQ(opened(old), Refusal::None);
  EXPECT_EQ(opened(renewed), Refusal::None);
  keys.remove(kTenant, 3);
  EXPECT_EQ(opened(old), Refusal::UnknownKey);
  EXPECT_EQ(opened(renewed), Refusal::None);
  keys.remove(kTenant, 4);
  std::array<std::byte, kSealedBytesMax> room;
  EXPECT_FALSE(seal(request.root, keys, kTenant, room).has_value());
}

TEST_F(Authentications, HaveSomeKeysAndNoneTwice) {
  EXPECT_FALSE(keys.add(key_of(kTenant, 3)).has_value());
  EXPECT_FALSE(keys.add(key_of(kTenant, 0)).has_value());
  for (uint32_t epoch = 4; epoch < 3 + kKeysMax; ++epoch)
    ASSERT_TRUE(keys.add(key_of(kTenant, epoch)).has_value());
  EXPECT_EQ(keys.add(key_of(kTenant, 100)).error().code, ErrorCode::Limit);
}

TEST_F(Authentications, OfLengthBombsAreRefused) {
  EXPECT_EQ(opened(std::string(1 << 20, '\1')), Refusal::Size);
  EXPECT_EQ(opened(with_size(std::string(kSealedBytesMax, '\3'))), Refusal::UnknownKey);
  // By somebody who has the key.
  std::string bomb = of_hex("01 00 0000 00000000 0100000000000000 00000000 00 ff");
  EXPECT_EQ(opened(with_size(bomb) + std::string(16, 0)), Refusal::UnknownKey);
}

}  // namespace
}  // namespace clew::causal
