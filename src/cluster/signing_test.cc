// SPDX-License-Identifier: Apache-2.0
#include "cluster/signing.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/message_examples.h"

namespace clew::cluster {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int64_t kNow = 1'700'000'000'000'000'000;

class Signing : public testing::Test {
 protected:
  Signing() : key_(SigningKey::make().value()) {
    ask_ = example_ask();
    ask_.signature = {};
    sign(ask_, "shop", key_, kNow);
  }
  [[nodiscard]] std::string refusal(const Ask& ask, int64_t now_ns = kNow) const {
    const auto checked = check_signature(ask, "shop", now_ns);
    if (checked) return "";
    EXPECT_EQ(checked.error().code, ErrorCode::Refused);
    return checked.error().message;
  }
  // As a root makes it.
  [[nodiscard]] Control want() const {
    return {.query = ask_.query,
            .revision = 1,
            .is_wanted = true,
            .text = ask_.text,
            .name_patterns = ask_.name_patterns,
            .labels = ask_.labels,
            .width_ns = ask_.width_ns,
            .signature = ask_.signature};
  }

  SigningKey key_;
  Ask ask_;
};

TEST_F(Signing, HoldsForWhatWasSigned) {
  EXPECT_EQ(refusal(ask_), "");
  EXPECT_EQ(refusal(ask_, kNow + kSignedForNs - 1), "");
  EXPECT_EQ(refusal(ask_, kNow - kSkewNs), "");
  EXPECT_TRUE(check_signature(want(), "shop", kNow));
}

TEST_F(Signing, OfAnythingElseIsRefused) {
  const std::vector<std::function<void(Ask&)>> changes = {
      [](Ask& ask) { ask.query = "q2"; },
      [](Ask& ask) { ask.is_wanted = !ask.is_wanted; },
      [](Ask& ask) { ask.text += " "; },
      [](Ask& ask) { ask.name_patterns.emplace_back("*"); },
      // The same characters, elsewhere.
      [](Ask& ask) { ask.name_patterns = {"redis-*" + std::string(1, '\0')}; },
      [](Ask& ask) { ask.labels.clear(); },
      [](Ask& ask) { ask.width_ns = 6; },
      [](Ask& ask) { ask.gives = Gives::AtEnd; },
      [](Ask& ask) { ask.is_standing = true; },
      [](Ask& ask) { ask.asker = "b"; },
      [](Ask& ask) { ask.install_ns = 2; },
      [](Ask& ask) { ask.root = "r_2"; },
      [](Ask& ask) { ask.has_rows = 1'000'000; },
      [](Ask& ask) { ++ask.signature.issued_ns; },
      [](Ask& ask) { --ask.signature.expires_ns; },
      [](Ask& ask) { ask.signature.rest[0] ^= std::byte{1}; },
      [](Ask& ask) { ask.signature.bytes[0] ^= std::byte{1}; },
      [](Ask& ask) { ask.signature.bytes[63] ^= std::byte{0x80}; },
      [](Ask& ask) { ask.signature.bytes = {}; },
      [](Ask& ask) { ask.signature.key = SigningKey::make()->public_key(); },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    Ask other = ask_;
    changes[i](other);
    EXPECT_NE(refusal(other), "") << i;
  }
  EXPECT_FALSE(check_signature(ask_, "other", kNow)) << "another tenant";
}

TEST_F(Signing, OfAWantHoldsForWhatNodesDo) {
  const std::vector<std::function<void(Control&)>> changes = {
      [](Control& want) { want.query = "q2"; },
      [](Control& want) { want.text = "from e in cluster.Function(\"sshd!*\") select count()"; },
      [](Control& want) { want.name_patterns.clear(); },
      [](Control& want) { want.labels = {}; },
      [](Control& want) { want.width_ns = 1; },
      [](Control& want) { want.is_standing = true; },
      [](Control& want) { want.is_wanted = false; },
      [](Control& want) { want.signature.expires_ns += 1; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    Control other = want();
    changes[i](other);
    EXPECT_FALSE(check_signature(other, "shop", kNow)) << i;
  }
  EXPECT_FALSE(check_signature(want(), "other", kNow));
}

// Who may ask cannot make one that holds for years either.
TEST_F(Signing, HoldsForItsTimeAlone) {
  EXPECT_THAT(refusal(ask_, kNow + kSignedForNs), HasSubstr("it is an old one"));
  EXPECT_THAT(refusal(ask_, kNow - kSkewNs - 1), HasSubstr("holds from 22:13:20 UTC to 22:18:20 "));
  constexpr int64_t kLongest = std::numeric_limits<int64_t>::max();
  for (const int64_t expires : {kNow + kSignedForNs, kNow + kSignedForNs + 1, kNow - 1, kLongest}) {
    Ask ask = ask_;
    ask.signature.expires_ns = expires;
    ask.signature.bytes = {};
    // What is signed, once more: the words in front, and the message.
    const std::string_view domain = "clew: a query of a cluster\n";
    const auto words = std::as_bytes(std::span(domain));
    Bytes bytes(words.begin(), words.end());
    const Bytes message = to_bytes(SignedQuery{.tenant = "shop",
                                               .query = ask.query,
                                               .is_wanted = ask.is_wanted,
                                               .text = ask.text,
                                               .name_patterns = ask.name_patterns,
                                               .labels = ask.labels,
                                               .width_ns = ask.width_ns,
                                               .signature = ask.signature});
    bytes.insert(bytes.end(), message.begin(), message.end());
    ask.signature.bytes = key_.sign(bytes);
    EXPECT_EQ(refusal(ask),
              expires == kNow + kSignedForNs ? "" : "the query is signed for too long a time");
  }
}

TEST_F(Signing, IsMissedWhereItIsNot) {
  EXPECT_THAT(refusal(example_ask()), HasSubstr("is not what the key"));
  Ask ask = example_ask();
  ask.signature = {};
  EXPECT_THAT(refusal(ask), HasSubstr("the query is not signed"));
}

TEST_F(Signing, IsNewerEachTime) {
  Ask again = ask_;
  sign(again, "shop", key_, kNow - 5);  // Its clock was set.
  EXPECT_EQ(again.signature.issued_ns, kNow + 1);
  EXPECT_EQ(refusal(again), "");
}

TEST_F(Signing, IsNotUsedAgainBehindTheEnd) {
  Ended ended;
  EXPECT_FALSE(ended.has("q1", ask_.signature));
  ended.add("q1", kNow + 1);
  EXPECT_TRUE(ended.has("q1", ask_.signature));
  EXPECT_FALSE(ended.has("q2", ask_.signature));
  Ask later = ask_;
  sign(later, "shop", key_, kNow + 2 * kSkewNs);
  EXPECT_FALSE(ended.has("q1", later.signature));
  // Too many to be known by name: all that were signed before are taken for ended.
  for (int i = 0; i < 70'000; ++i)
    ended.add(std::to_string(i), kNow + 1);
  EXPECT_TRUE(ended.has("q1", ask_.signature));
}

class KeyFiles : public testing::Test {
 protected:
  KeyFiles() {
    std::string name = (fs::temp_directory_path() / "clew-key-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~KeyFiles() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string file(const std::string& name) const { return folder_ / name; }

  fs::path folder_;
};

TEST_F(KeyFiles, AreTheirOwnersAndReadBack) {
  const SigningKey key = SigningKey::make().value();
  const mode_t before = umask(0);
  ASSERT_TRUE(key.write(file("a.key")));
  (void)umask(before);
  struct stat status {};
  ASSERT_EQ(stat(file("a.key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  const auto read = SigningKey::read(file("a.key"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->public_key(), key.public_key());
  Ask ask = example_ask();
  sign(ask, "shop", *read, kNow);
  EXPECT_TRUE(check_signature(ask, "shop", kNow));
}

TEST_F(KeyFiles, ThatAreThereStayAsTheyAre) {
  std::ofstream(file("a.key")) << "mine";
  EXPECT_FALSE(SigningKey::make()->write(file("a.key")));
  fs::create_symlink(file("elsewhere"), file("link.key"));
  EXPECT_FALSE(SigningKey::make()->write(file("link.key")));
  std::ifstream in(file("a.key"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "mine");
  EXPECT_FALSE(fs::exists(file("elsewhere")));
}

TEST_F(KeyFiles, ThatOthersMayReadAreRefused) {
  ASSERT_TRUE(SigningKey::make()->write(file("a.key")));
  fs::permissions(file("a.key"), fs::perms(0640));
  const auto read = SigningKey::read(file("a.key"));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::Refused);
  EXPECT_THAT(read.error().message, HasSubstr("chmod 600"));
}

TEST_F(KeyFiles, ThatAreNoKeysSaySo) {
  const auto error_of = [this](const std::string& text) {
    std::ofstream(file("b.key")) << text;
    fs::permissions(file("b.key"), fs::perms(0600));
    const auto read = SigningKey::read(file("b.key"));
    return read ? "" : read.error().message;
  };
  EXPECT_THAT(error_of("key"), HasSubstr("no key in PEM"));
  EXPECT_THAT(error_of(std::string(20'000, 'A')), HasSubstr("no key in PEM"));
  EXPECT_FALSE(SigningKey::read(file("absent")));
  EXPECT_FALSE(SigningKey::read(folder_.string()));
  // Of the tools of OpenSSL, which say by themselves what a key is.
  const std::string make = "openssl genpkey -quiet -algorithm ";
  const std::string end = " -out " + file("c.key") + " 2>/dev/null && chmod 600 " + file("c.key");
  const auto make_key = [&](const std::string& kind) {
    return std::system((make + kind + end).c_str());
  };
  if (make_key("ed25519") != 0) GTEST_SKIP() << "openssl makes no keys";
  const auto key = SigningKey::read(file("c.key"));
  ASSERT_TRUE(key) << key.error().message;
  ASSERT_EQ(make_key("x25519"), 0);
  EXPECT_THAT(SigningKey::read(file("c.key")).error().message, HasSubstr("no key of Ed25519"));
}

TEST(PublicKeys, AreTextAndBack) {
  const PublicKey key = SigningKey::make()->public_key();
  EXPECT_EQ(text_of(key).size(), 44U);
  EXPECT_EQ(public_key_of(text_of(key)).value(), key);
  for (const char* wrong : {"", "AAAA", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
                            "not base64 at all, but of forty-four bytes.."})
    EXPECT_FALSE(public_key_of(wrong)) << wrong;
}

// RFC 8032, section 7.1, test 2: what others call Ed25519.
TEST(PublicKeys, SignAsTheStandardSays) {
  const std::string pem =
      "-----BEGIN PRIVATE KEY-----\n"
      "MC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7\n"
      "-----END PRIVATE KEY-----\n";
  std::string name = (fs::temp_directory_path() / "clew-rfc-XXXXXX").string();
  (void)close(mkstemp(name.data()));
  std::ofstream(name) << pem;
  const auto key = SigningKey::read(name);
  fs::remove(name);
  ASSERT_TRUE(key) << key.error().message;
  const std::array<std::byte, 1> message = {std::byte{0x72}};
  EXPECT_EQ(std::to_integer<int>(key->sign(message)[0]), 0x92);
  EXPECT_EQ(std::to_integer<int>(key->sign(message)[63]), 0x00);
  EXPECT_EQ(std::to_integer<int>(key->public_key()[0]), 0x3d);
}

}  // namespace
}  // namespace clew::cluster
